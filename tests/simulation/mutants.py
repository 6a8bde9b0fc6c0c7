"""The write protocol with one rule broken at a time: each must make the simulation fail (reliability, "How it is shown").

A mutant changes the real code in one place (mutations.py), and its plan is a world in which just that rule keeps the invariants.
Where another defence would catch the same, that one is taken away, too (`no_fence`, `no_rules`, `also`): each is shown on its
own, and the plan without the mutant must hold even so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulation.mutations import (
    Patch,
    adopted,
    below_the_head,
    blind_retry,
    both,
    contents_not_generations,
    current_template,
    edits_only_in_status,
    epoch_restarts,
    head_not_read,
    job_before_outcome,
    k_from_finish,
    late_running,
    missing_from_cache,
    named_by_instant,
    no_baseline_on_pause,
    no_epoch_check,
    no_k_for_jobs,
    no_k_for_records,
    no_second_read,
    no_self_fence,
    no_uid_in_names,
    no_wait_before_pruning,
    no_wait_for_late_creates,
    only_older_is_refused,
    open_from_jobs,
    past_the_stored_head,
    slow_renewal,
    stale_delete,
    standby_cache,
    walk_after_wiped_status,
)
from simulation.plan import Do, Plan


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broken rule.

    Attributes:
        name: as in reliability.md.
        breaks: changes the code.
        plan: a world that catches it.
        kinds: what is wrong then, at least.
        also: changes the code, too, but with the mutant and without: another defence against the same.
        noise: what is wrong for want of that other defence.
    """

    name: str
    breaks: Callable[[Patch], None]
    plan: Plan
    kinds: frozenset[str]
    also: Callable[[Patch], None] = lambda _patch: None
    noise: frozenset[str] = frozenset()


MINUTELY: dict[str, Any] = {"name": "s", "schedule": "* * * * *"}
EVERY_TEN: dict[str, Any] = {"name": "s", "schedule": "*/10 * * * *"}
DUE = 30.0  # 10:00, the first full minute


def _dead(on: str, delay: float = 29.0) -> tuple[Do, ...]:
    """Let the first leader die with a request on its way, which arrives late, while the admission cache lags as far as it may."""
    return (
        Do(DUE - 0.7, "fence_lag", seconds=25.0),
        Do(DUE - 0.5, "fault", on=on, delay_seconds=delay, of=0),
        Do(DUE + 0.02, "kill", slot=0, down=400.0),
    )


def _many_edits(begin: float, count: int) -> tuple[Do, ...]:
    return tuple(Do(begin + 4 * number, "edit", name="s", input={"a": number}) for number in range(count))


MUTANTS = [
    Mutant(
        "K = 0 for Jobs",
        no_k_for_jobs,
        Plan(
            (
                Do(0.5, "schedule", **EVERY_TEN, successfulJobsHistoryLimit=0, misfirePolicy="Latest"),
                Do(0.6, "no_fence"),
                Do(DUE - 0.5, "freeze_at", on="job", seconds=120.0, held=True),
            ),
            seconds=200.0,
        ),
        frozenset({"I1"}),
    ),
    Mutant(
        "K = 0 for records",
        no_k_for_records,
        Plan(
            (
                Do(0.5, "schedule", **EVERY_TEN, occurrenceHistoryLimit=1),
                Do(0.6, "no_fence"),
                Do(19.0, "freeze_at", on="record", seconds=160.0, held=True),
                *_many_edits(20.0, 20),
            ),
            seconds=260.0,
        ),
        frozenset({"I3", "I4"}),
    ),
    Mutant(
        "K from finish with blind retry",
        both(k_from_finish, blind_retry),
        Plan(
            (
                Do(0.5, "schedule", **EVERY_TEN, successfulJobsHistoryLimit=0),
                Do(0.6, "no_fence"),
                Do(DUE - 0.5, "fault", on="job", is_answer_lost=True),
                Do(DUE - 1.0, "deaf", slot=0, seconds=300.0),
                Do(DUE + 0.5, "freeze_at", on="job", seconds=192.0, held=True),
            ),
            seconds=300.0,
        ),
        frozenset({"I1"}),
    ),
    Mutant(
        "pruning while a write is unanswered or younger than R",
        no_wait_before_pruning,
        Plan(
            (
                Do(0.5, "schedule", **EVERY_TEN, successfulJobsHistoryLimit=0),
                Do(DUE - 0.5, "fault", on="job", delay_seconds=25.0),
            ),
            seconds=90.0,
            settings={"name_kept_seconds": 0.5},
        ),
        frozenset({"I1"}),
    ),
    Mutant(
        '"older" instead of equality in the fence',
        only_older_is_refused,
        Plan(
            (
                Do(0.5, "schedule", **EVERY_TEN, startingDeadlineSeconds=5),
                Do(0.5, "schedule", name="t", schedule="0 0 1 1 *"),
                Do(52.0, "edit", name="t", input={"a": 1}),
                *_dead("job"),
            ),
            seconds=120.0,
        ),
        frozenset({"I6"}),
    ),
    Mutant(
        "edit only in status",
        edits_only_in_status,
        Plan((Do(0.5, "schedule", **MINUTELY), Do(40.0, "edit", name="s", input={"a": 1})), seconds=100.0),
        frozenset({"R11"}),
    ),
    Mutant(
        "no Baseline on pause",
        no_baseline_on_pause,
        Plan((Do(0.5, "schedule", **MINUTELY), Do(40.0, "edit", name="s", pause={"reason": "x"})), seconds=100.0),
        frozenset({"R11"}),
    ),
    Mutant(
        "contents compared instead of generations",
        contents_not_generations,
        Plan(
            (
                Do(0.5, "schedule", **MINUTELY, misfirePolicy="Latest"),
                Do(40.0, "down", seconds=70.0),
                Do(45.0, "edit", name="s", pause={"reason": "x"}),
                Do(DUE + 65.0, "edit", name="s", pause=None),
            ),
            seconds=140.0,
        ),
        frozenset({"R19"}),
    ),
    Mutant(
        "append below the head's generation",
        below_the_head,
        Plan(
            (
                Do(0.5, "schedule", **MINUTELY),
                Do(35.0, "deaf", slot=1, seconds=200.0),
                Do(50.0, "edit", name="s", input={"a": 1}),
                Do(60.0, "kill", slot=0, down=300.0),
            ),
            seconds=160.0,
        ),
        frozenset({"P5"}),
        also=standby_cache,
    ),
    Mutant(
        "head from status without reading record n",
        head_not_read,
        Plan(
            (
                Do(0.0, "jobs", run=[100.0]),
                Do(0.5, "schedule", **MINUTELY, misfirePolicy="Latest"),
                Do(DUE - 0.5, "fault", on="record", is_answer_lost=True),
            ),
            seconds=120.0,
        ),
        frozenset({"I2"}),
    ),
    Mutant(
        "prune past the stored head",
        past_the_stored_head,
        Plan(
            (
                Do(0.5, "schedule", **EVERY_TEN, occurrenceHistoryLimit=1),
                *_many_edits(40.0, 12),
                Do(35.0, "fault", on="status", times=10**6, status=403),
            ),
            seconds=140.0,
            settings={"name_kept_seconds": 5.0},
        ),
        frozenset({"P7"}),
    ),
    Mutant(
        "walk forward after a wiped status",
        walk_after_wiped_status,
        Plan(
            (
                Do(0.5, "schedule", **EVERY_TEN, occurrenceHistoryLimit=1),
                *_many_edits(40.0, 12),
                Do(120.0, "kill", slot=0, down=5.0),
                Do(120.0, "kill", slot=1, down=5.0),
                Do(121.0, "wipe_status", name="s"),
            ),
            seconds=180.0,
            settings={"name_kept_seconds": 5.0},
        ),
        frozenset({"I3"}),
    ),
    Mutant(
        "no UID part in names",
        no_uid_in_names,
        Plan((Do(0.5, "schedule", **MINUTELY), Do(70.0, "recreate", name="s")), seconds=160.0),
        frozenset({"R31"}),
    ),
    Mutant(
        "outcome overwritten by a late Running",
        late_running,
        Plan(
            (
                Do(0.0, "jobs", run=[14.0]),
                Do(0.5, "schedule", **EVERY_TEN),
                Do(0.6, "no_rules"),
                Do(DUE + 1.0, "fault", on="outcome", delay_seconds=25.0),
            ),
            seconds=120.0,
        ),
        frozenset({"I7"}),
    ),
    Mutant(
        "JobMissing from a cache",
        missing_from_cache,
        Plan(
            (
                Do(0.0, "jobs", run=[100.0]),
                Do(0.5, "schedule", **MINUTELY),
                Do(DUE - 1.0, "deaf", slot=1, seconds=100.0),
                Do(DUE + 20.0, "kill", slot=0, down=200.0),
            ),
            seconds=160.0,
        ),
        frozenset({"P12"}),
    ),
    Mutant(
        "NotStarted without the wait",
        no_wait_for_late_creates,
        Plan(
            (Do(0.5, "schedule", **EVERY_TEN, startingDeadlineSeconds=5), Do(2.0, "no_fence"), *_dead("job")),
            seconds=120.0,
        ),
        frozenset({"I1"}),
    ),
    Mutant(
        "NotStarted without the second read",
        no_second_read,
        Plan(
            (
                Do(0.0, "jobs", run=[200.0]),
                Do(0.5, "schedule", **EVERY_TEN, startingDeadlineSeconds=5),
                Do(DUE - 2.0, "deaf", slot=1, seconds=200.0),
                *_dead("job"),
            ),
            seconds=200.0,
        ),
        frozenset({"P12"}),
    ),
    Mutant(
        "Job removed before its outcome",
        job_before_outcome,
        Plan(
            (
                Do(0.5, "schedule", **EVERY_TEN, successfulJobsHistoryLimit=0),
                Do(0.6, "fault", on="outcome", times=10**6, status=500),
            ),
            seconds=300.0,
        ),
        frozenset({"R26"}),
    ),
    Mutant(
        "AlreadyExists adopted without owner check",
        adopted,
        Plan((Do(0.5, "schedule", **EVERY_TEN), Do(5.0, "forge_job", of="s")), seconds=90.0),
        frozenset({"P10"}),
    ),
    Mutant(
        "recovery with the current template",
        current_template,
        Plan(
            (
                Do(0.5, "schedule", **EVERY_TEN, misfirePolicy="Latest", image="one"),
                Do(DUE - 0.5, "crash_at", on="job", down=200.0),
                Do(DUE + 5.0, "edit", name="s", image="two"),
            ),
            seconds=120.0,
        ),
        frozenset({"P11"}),
    ),
    Mutant(
        "open counted from Jobs",
        open_from_jobs,
        Plan(
            (
                Do(0.5, "schedule", **MINUTELY, misfirePolicy="Latest"),
                Do(DUE - 0.5, "refuse_jobs", seconds=90.0),
            ),
            seconds=150.0,
        ),
        frozenset({"I2"}),
    ),
    Mutant(
        "no epoch check",
        no_epoch_check,
        Plan(
            (
                Do(0.5, "schedule", **MINUTELY, misfirePolicy="All"),
                Do(0.6, "no_fence"),
                Do(DUE - 0.1, "fault", on="lease", of=0, times=10**6, delay_seconds=8.0, seconds=300.0),
                Do(DUE - 0.1, "freeze_at", on="record", seconds=121.0, held=True),
                Do(DUE + 119.0, "kill", slot=1, down=60.0),
            ),
            seconds=250.0,
        ),
        frozenset({"I6"}),
        also=no_self_fence,
        noise=frozenset({"P15"}),
    ),
    Mutant(
        "epoch restarting with a new Lease",
        epoch_restarts,
        Plan(
            (
                Do(0.5, "schedule", **MINUTELY),
                Do(5.0, "kill", slot=0, down=1.0),
                Do(60.0, "delete_lease"),
            ),
            seconds=160.0,
        ),
        frozenset({"I6"}),
        also=no_epoch_check,
    ),
    Mutant(
        "names by instant",
        named_by_instant,
        Plan(
            (
                Do(0.5, "schedule", **MINUTELY),
                Do(0.6, "no_fence"),
                Do(DUE - 1.0, "kill", slot=1, down=122.0),
                Do(DUE - 0.5, "freeze_at", on="record", seconds=175.0, held=True),
            ),
            seconds=260.0,
        ),
        frozenset({"I4", "late"}),  # the record of who slept is stored, beside that of who decided meanwhile
    ),
    Mutant(
        "takeover on the standby's cache",
        standby_cache,
        Plan(
            (
                Do(0.5, "schedule", **EVERY_TEN, occurrenceHistoryLimit=1),
                Do(35.0, "deaf", slot=1, seconds=200.0),
                *_many_edits(40.0, 12),
                Do(130.0, "kill", slot=0, down=300.0),
            ),
            seconds=180.0,
            settings={"name_kept_seconds": 5.0},
        ),
        frozenset({"R31"}),
    ),
    Mutant(
        "DELETE by a stale leader",
        stale_delete,
        Plan(
            (
                Do(0.5, "schedule", **EVERY_TEN, successfulJobsHistoryLimit=0),
                Do(205.0, "freeze", slot=0, seconds=60.0),
            ),
            seconds=300.0,
        ),
        frozenset({"P15"}),
        also=slow_renewal,
    ),
]
