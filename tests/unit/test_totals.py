"""What an ended run and a verdict add to the counters."""

from __future__ import annotations

import pytest

from support.builders import a_job, a_run, an_admission, at
from workflow_schedules.api.occurrence import Decision, Outcome, ScheduleOccurrenceStatus, Totals
from workflow_schedules.core.misfire import Verdict
from workflow_schedules.core.model import Run
from workflow_schedules.core.totals import totals_now, with_verdict


def ended(number: int, outcome: Outcome, when: str | None = None) -> Run:
    status = ScheduleOccurrenceStatus(outcome=outcome, completion_time=at(when) if when else None)
    return a_run(record=an_admission(number, status=status))


GOING = ScheduleOccurrenceStatus(outcome=Outcome.CANCELLED, reason="Replaced", job_uid="job-2")
ENDING = a_run(record=an_admission(status=GOING), job=a_job(is_deleting=True))
BEFORE = Totals(admitted=5, completed=2, failed=2, consecutive_failures=1, last_successful_time=at("09:00"))
TOTALS = [
    ("R29 nothing ended", (a_run(2),), {}),
    ("R29 one completed", (ended(2, Outcome.COMPLETED, "10:01"),),
     {"completed": 3, "consecutive_failures": 0, "last_successful_time": at("10:01")}),
    ("R29 one failed", (ended(2, Outcome.FAILED, "10:01"),),
     {"failed": 3, "consecutive_failures": 2, "counted_failures": 1, "last_failure_time": at("10:01")}),
    ("R29 out of time counts as failed", (ended(2, Outcome.EXHAUSTED, "10:01"),),
     {"failed": 3, "consecutive_failures": 2, "counted_failures": 1, "last_failure_time": at("10:01")}),
    ("R29 in the order of the runs", (ended(2, Outcome.COMPLETED, "10:09"), ended(3, Outcome.FAILED, "10:01")),
     {"completed": 3, "failed": 3, "consecutive_failures": 1, "counted_failures": 1, "last_successful_time": at("10:09"),
      "last_failure_time": at("10:01")}),
    ("R29 what the head no longer calls open is in it already", (ended(1, Outcome.COMPLETED, "10:01"),), {}),
    ("R29 an older success is not the last one", (ended(2, Outcome.COMPLETED, "08:00"),),
     {"completed": 3, "consecutive_failures": 0}),
    ("R29 nor is an older failure", (ended(2, Outcome.FAILED, "10:09"), ended(3, Outcome.FAILED, "10:01")),
     {"failed": 4, "consecutive_failures": 3, "counted_failures": 2, "last_failure_time": at("10:09")}),
    ("R29 interrupted is no end", (a_run(2, Outcome.INTERRUPTED),), {}),
    ("R29 cancelled is no failure in a row, nor the end of a streak", (ended(2, Outcome.CANCELLED, "10:01"),), {"failed": 3}),
    ("R14 one that still goes is not counted yet", (ENDING,), {}),
]  # fmt: skip


@pytest.mark.parametrize(("runs", "want"), [row[1:] for row in TOTALS], ids=[row[0] for row in TOTALS])
def test_totals_now(runs: tuple[Run, ...], want: dict[str, object]) -> None:
    head = an_admission(3, open=(2, 3), totals=BEFORE)
    assert totals_now(head, runs) == BEFORE.model_copy(update=want)


def test_totals_of_an_empty_log() -> None:
    assert totals_now(None, ()) == Totals()


VERDICTS = [
    ("R29 a span of misses is skipped", Decision.SKIPPED_MISFIRE, {"skipped": 6}),
    ("R29 what a newer one stands for is coalesced", Decision.COALESCED, {"coalesced": 5}),
]


@pytest.mark.parametrize(("decision", "want"), [row[1:] for row in VERDICTS], ids=[row[0] for row in VERDICTS])
def test_a_verdict_counts_its_instants(decision: Decision, want: dict[str, object]) -> None:
    before = Totals(skipped=3, coalesced=2)
    verdict = Verdict(decision=decision, first=at("10:00"), last=at("12:00"), count=3)
    assert with_verdict(before, verdict) == before.model_copy(update=want)
