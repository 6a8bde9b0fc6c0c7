"""What goes on, and what is closed, when a record is set aside (R31)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from support.builders import (
    a_definition,
    a_job,
    a_record,
    a_run,
    a_schedule,
    a_snapshot,
    a_status,
    an_admission,
    at,
    listed,
    of_definition,
)
from workflow_schedules.api.occurrence import Decision, Outcome, ScheduleOccurrenceStatus, Totals
from workflow_schedules.api.schedule import Counts, Pause, State
from workflow_schedules.core.decide import decide
from workflow_schedules.core.listed import Listed
from workflow_schedules.core.model import Job, JobPhase, ObjectRef, Record, Schedule, Snapshot, Unblock
from workflow_schedules.core.runs import SETTLE
from workflow_schedules.core.unblock import SetAside, blocked_message, set_aside

NOW = "10:20:30"


def name(number: int) -> str:
    return a_record(number).ref.name


def ended(number: int, scheduled: str) -> Record:
    status = ScheduleOccurrenceStatus(outcome=Outcome.COMPLETED, completion_time=at("10:10"))
    return an_admission(number, at(scheduled), status=status)


def no_jobs(_ref: ObjectRef) -> Job | None:
    return None


def has(job: Job) -> Callable[[ObjectRef], Job | None]:
    return lambda ref: job if ref == job.ref else None


def resolve(
    found: list[Listed],
    number: int,
    *,
    jobs: Callable[[ObjectRef], Job | None] = no_jobs,
    schedule: Schedule | None = None,
) -> SetAside:
    schedule = schedule or a_schedule()
    step = Unblock(record=name(number), state=State.ACTIVE)
    return set_aside(a_snapshot(schedule), schedule, found, jobs, step=step, now=at(NOW))


BASE = listed(a_record(1))
OPEN = listed(an_admission(2))


@dataclass(frozen=True, slots=True)
class Case:
    """A log, the record that blocks, and what the Baseline says."""

    name: str
    log: list[Listed]
    blocking: int
    number: int
    previous: str | None
    open: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()


CASES = [
    Case("the head can't be read", [BASE, listed(a_record(2), is_readable=False)], 2, 3, "record-2"),
    Case("nor its run: closed", [BASE, listed(an_admission(2), is_readable=False)], 2, 3, "record-2", closed=(2,)),
    Case("one in the middle: what follows it is trusted",
         [BASE, listed(a_record(2), is_readable=False), listed(an_admission(3, open=(3,)))], 2, 4, "record-3", (3,)),
    Case("a broken link: what follows is not trusted", [BASE, OPEN, listed(an_admission(3, open=(2, 3)), previous="x")],
         3, 4, "record-3", (2,), (3,)),
    Case("nor what follows that",
         [BASE, OPEN, listed(an_admission(3, open=(3,)), previous="x"), listed(an_admission(4, open=(3, 4)))],
         3, 5, "record-4", (2,), (3, 4)),
    Case("gone: the number is not used again", [BASE], 2, 3, "record-1"),
    Case("forged beyond a hole", [BASE, listed(an_admission(7), previous="x")], 7, 8, "record-7", closed=(7,)),
    Case("nothing is left", [], 5, 6, None),
    Case("what was set aside before counts for nothing", [BASE, listed(an_admission(2), is_readable=False), listed(a_record(
        3, reason="Unblocked")), listed(an_admission(4)), listed(a_record(5), is_readable=False)], 5, 6, "record-5", (4,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_how_the_log_goes_on(case: Case) -> None:
    """R31 P3 P8."""
    found = resolve(case.log, case.blocking)
    spec = found.spec
    assert (spec.decision, spec.reason, spec.state) == (Decision.BASELINE, "Unblocked", State.ACTIVE)
    assert (spec.sequence, spec.previous_uid, spec.open) == (case.number, case.previous, case.open)
    assert tuple(record.number for record in found.runs) == case.open
    assert tuple(closing.listed.number for closing in found.closings) == case.closed
    assert {closing.status.reason for closing in found.closings} <= {"SetAside"}
    assert spec.consumed_through_time == at("10:20:30")
    assert found.waits_for is None


def test_a_run_with_its_own_job_keeps_its_slot_whoever_called_it_open() -> None:
    """R31: overlap is not cleared."""
    log = [BASE, listed(an_admission(2), previous="x")]
    assert resolve(log, 2, jobs=has(a_job())).spec.open == (2,)
    assert resolve(log, 2, jobs=has(a_job(owner_uid="forged"))).spec.open == ()


@pytest.mark.parametrize(
    ("job", "waits", "want"),
    [
        (a_job(), True, "SetAside"),
        (a_job(JobPhase.SUSPENDED), True, "SetAside"),
        (a_job(JobPhase.COMPLETED), False, "JobComplete"),
        (a_job(JobPhase.FAILED, reason="DeadlineExceeded"), False, "DeadlineExceeded"),
        (a_job(is_gone=True), False, "SetAside"),
        (a_job(owner_uid="other"), False, "SetAside"),
    ],
    ids=["active", "suspended", "complete", "exhausted", "gone", "another's"],
)
def test_a_run_that_can_not_be_read_ends_as_its_job_did(job: Job, waits: bool, want: str) -> None:
    """R31: closed as far as it can be known, and nothing beside what still runs."""
    found = resolve([BASE, listed(an_admission(2), is_readable=False)], 2, jobs=has(job))
    assert (found.waits_for == job.ref) is waits
    if not waits:
        assert [closing.status.reason for closing in found.closings] == [want]


def test_the_job_of_a_record_that_is_gone_is_waited_for() -> None:
    assert resolve([BASE], 2, jobs=has(a_job())).waits_for == a_job().ref
    assert resolve([BASE], 2, jobs=has(a_job(JobPhase.COMPLETED))).waits_for is None


def test_totals_come_from_the_last_record_to_trust_or_the_status() -> None:
    """R31 P3."""
    head = an_admission(2, totals=Totals(admitted=4, completed=3))
    log = [BASE, listed(head), listed(a_record(3), is_readable=False)]
    assert resolve(log, 3).spec.totals == Totals(admitted=4, completed=3)
    newer = a_schedule(status=a_status(log_head=3, counts=Counts(admitted=9), consecutive_failures=2))
    found = resolve(log, 3, schedule=newer).spec.totals
    assert found is not None
    assert (found.admitted, found.consecutive_failures) == (9, 2)
    log = [BASE, listed(ended(2, "10:00")), listed(a_record(3), is_readable=False)]
    counted = resolve(log, 3).spec.totals
    assert counted is not None
    assert (counted.completed, counted.last_successful_time) == (1, at("10:10"))


def test_the_watermark_and_what_was_given_up() -> None:
    """R31 I3 I4: what was due and undecided is named, and the watermark never goes back."""
    head = a_record(1, consumed=at("08:30"))
    spec = resolve([listed(head)], 2).spec
    assert spec.span is not None
    assert (spec.span.first_time, spec.span.last_time, spec.span.count) == (at("09:00"), at("10:00"), 2)
    later = a_schedule(status=a_status(consumed=at("11:00")))
    assert resolve([BASE], 2, schedule=later).spec.consumed_through_time == at("11:00")


def blocked(annotation: str | None, **known: object) -> Snapshot:
    schedule = replace(a_schedule(), unblock=annotation)
    return replace(a_snapshot(schedule, contradiction="record r is gone"), blocked_by="r", **known)


def of(schedule: Schedule | None, **known: object) -> Snapshot:
    asked = replace(schedule, unblock="r") if schedule else None
    return replace(a_snapshot(asked, contradiction="record r is gone", **known), blocked_by="r")


REFUSED = {"schedule": a_schedule(**of_definition(input={"day": 1})),
           "definition": a_definition(input_schema={"properties": {"day": {"type": "string"}}})}  # fmt: skip
GOES_ON_AS = [
    ("as it is declared", of(a_schedule()), State.ACTIVE),
    ("R18 disabled meanwhile", of(a_schedule(enabled=False)), State.DISABLED),
    ("R19 paused meanwhile", of(a_schedule(pause=Pause(until_time=at("12:00")))), State.PAUSED),
    ("R19 a pause that is over", of(a_schedule(pause=Pause(until_time=at("10:00")))), State.ACTIVE),
    ("R24 with an input that its definition refuses", of(**REFUSED), State.BLOCKED),
    ("R20 not while it is deleted", of(a_schedule(is_deleting=True)), None),
    ("R20 nor afterwards", of(None), None),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "want"), [row[1:] for row in GOES_ON_AS], ids=[row[0] for row in GOES_ON_AS])
def test_the_state_it_goes_on_in(snapshot: Snapshot, want: State | None) -> None:
    """R31: set aside, it does what the schedule says now."""
    step = decide(snapshot, now=at("10:20:30")).step
    assert (step.state if isinstance(step, Unblock) else None) is want


WAITING = a_run(job=a_job(JobPhase.WAITING, started=None), is_create_unanswered=True)
DECISIONS = [
    ("nobody asks", blocked(None), False, None, "to set it aside: kubectl wfs unblock hourly --record r"),
    ("another is named", blocked("q"), False, None, "names q, which does not block: write r"),
    ("it is named", blocked("r"), True, None, "as soon as no write of an earlier holder can arrive"),
    ("P12 not right after a takeover", blocked("r", since_acquired=SETTLE), False, "10:20:31", "as soon as"),
    ("P12 but then", blocked("r", since_acquired=SETTLE + timedelta(seconds=1)), True, None, "as soon as"),
    ("P12 not while an own create may arrive", blocked("r", runs=(WAITING,)),
     False, "10:20:31", "as soon as"),
    ("not while its Job runs", blocked("r", waits_for=a_job()), False, None, "when its Job"),
    ("but afterwards", blocked("r", waits_for=a_job(JobPhase.FAILED)), True, None, "r is gone"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "snapshot", "want", "wake", "says"), DECISIONS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_when_it_is_set_aside(case: str, snapshot: Snapshot, want: bool, wake: str | None, says: str) -> None:
    """R31: only the one that blocks, and named so in the conditions."""
    assert case
    plan = decide(snapshot, now=at("10:20:30"))
    assert isinstance(plan.step, Unblock) is want
    assert plan.next_wake_at == (at(wake) if wake else None)
    assert says in blocked_message(snapshot)
