"""Small stories in which every single call of the operators is disturbed once, in every way: enumerated, not sampled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from simulation.plan import Do, Plan
from simulation.play import Verdict, play

# what happens to one call: killed before and after it, its answer lost at once and in silence
WAYS: dict[str, dict[str, Any]] = {
    "crash before": {"what": "crash_at", "after": False},
    "crash after": {"what": "crash_at", "after": True},
    "lost after": {"what": "fault", "is_answer_lost": True},
    "lost after, in silence": {"what": "fault", "is_answer_lost": True, "is_silent": True},
    "dropped before": {"what": "fault", "is_dropped": True},
    "late by 20 s": {"what": "fault", "delay_seconds": 20.0},
    "stalled before": {"what": "freeze_at", "held": True, "seconds": 40.0},
}
CALLS = "call"  # of operators: reads, writes and the Lease's, watches left out


@dataclass(frozen=True, slots=True)
class Story:
    """A plan without faults of its own, and which part of it is disturbed.

    Attributes:
        since: calls sent from this second on are disturbed, each in a world of its own.
        until: and no later.
    """

    name: str
    plan: Plan
    since: float
    until: float


MINUTELY: dict[str, Any] = {"name": "s", "schedule": "* * * * *"}
STORIES = (
    Story(
        "a plain run",
        Plan((Do(0.5, "schedule", **MINUTELY, misfirePolicy="Latest"),), seconds=95.0),
        0.0,
        34.0,
    ),
    Story(
        "Replace",
        Plan(
            (
                Do(0.0, "jobs", run=[70.0]),
                Do(0.5, "schedule", **MINUTELY, concurrencyPolicy="Replace", misfirePolicy="Latest"),
            ),
            seconds=155.0,
        ),
        89.0,
        94.0,
    ),
    Story(
        "Forbid skips",
        Plan((Do(0.0, "jobs", run=[70.0]), Do(0.5, "schedule", **MINUTELY)), seconds=155.0),
        89.0,
        103.0,
    ),
    Story(
        "coalesce after an outage",
        Plan(
            (
                Do(0.5, "schedule", **MINUTELY, misfirePolicy="Latest"),
                Do(35.0, "kill", slot=0, down=140.0),
                Do(35.0, "kill", slot=1, down=135.0),
            ),
            seconds=220.0,
        ),
        169.0,
        182.0,
    ),
    Story(
        "a request",
        Plan(
            (Do(0.5, "schedule", name="s", schedule="0 * * * *"), Do(20.0, "request", name="ask", of="s")),
            seconds=70.0,
        ),
        19.9,
        24.0,
    ),
    Story(
        "an edit that supersedes",
        Plan(
            (
                Do(0.0, "jobs", run=[100.0]),
                Do(0.5, "schedule", **MINUTELY, misfirePolicy="Latest"),
                Do(95.0, "edit", name="s", input={"a": 1}),
            ),
            seconds=150.0,
        ),
        94.9,
        99.0,
    ),
    Story(
        "what is finished is removed",
        Plan(
            (
                Do(0.5, "schedule", **MINUTELY, successfulJobsHistoryLimit=0, occurrenceHistoryLimit=1),
                *(Do(34.0 + number, "edit", name="s", input={"a": number}) for number in range(8)),
            ),
            seconds=320.0,
        ),
        180.0,
        285.0,
    ),
    Story(
        "a takeover with a run half made",
        Plan(
            (
                Do(0.5, "schedule", name="s", schedule="*/10 * * * *", misfirePolicy="Latest"),
                Do(29.5, "crash_at", on="job", down=200.0),
            ),
            seconds=95.0,
        ),
        31.0,
        60.0,
    ),
)


def cases_of(story: Story) -> list[tuple[str, Plan]]:
    """Return the story disturbed at each of its calls in each way; the calls are counted in an undisturbed world."""
    log = play(story.plan).log
    sent = [entry for entry in log if story.since <= entry.time <= story.until and entry.method != "WATCH"]
    return [*_cases(story, len(sent))]


def _cases(story: Story, calls: int) -> Iterator[tuple[str, Plan]]:
    for name, way in WAYS.items():
        for number in range(calls):
            rest = {key: value for key, value in way.items() if key != "what"}
            do = Do(story.since, way["what"], on=CALLS, skip=number, **rest)
            yield (
                f"{story.name}: call {number + 1} of {calls}, {name}",
                replace(story.plan, actions=(*story.plan.actions, do)),
            )


def judged(case: tuple[str, Plan]) -> tuple[str, Plan, Verdict]:
    name, plan = case
    verdict = play(plan)
    return name, plan, replace(verdict, log=())
