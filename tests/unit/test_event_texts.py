"""Which happenings deserve an Event, and that it never says what an input says (R32, K-096)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from support.builders import a_record, a_schedule, an_admission, at
from workflow_schedules.api.common import Condition, ConditionStatus
from workflow_schedules.api.occurrence import Decision, Outcome, ScheduleOccurrenceStatus
from workflow_schedules.core.events import EventLevel, Happening, event_of, event_of_refusal
from workflow_schedules.core.model import Record

DECIDED, STARTED, ENDED = Happening.DECIDED, Happening.STARTED, Happening.ENDED
SECRET = "s3cr3t"


def ended(outcome: Outcome, reason: str) -> Record:
    status = ScheduleOccurrenceStatus(outcome=outcome, reason=reason, message=f"Invalid value: {SECRET}")
    return an_admission(status=status, input_json=f'{{"token":"{SECRET}"}}')


def decided(decision: Decision) -> Record:
    return a_record(2, decision, scheduled_time=at("10:00"), message=SECRET, input_json=SECRET)


@dataclass(frozen=True)
class Case:
    name: str
    happening: Happening
    record: Record
    problems: str | None
    all: str | None


CASES = [
    Case("an admission", DECIDED, decided(Decision.ADMITTED), None, None),
    Case("a Job made", STARTED, an_admission(), None, "SuccessfulCreate"),
    Case("a Baseline", DECIDED, a_record(), None, None),
    Case("late", DECIDED, decided(Decision.SKIPPED_MISFIRE), "MissSchedule", "MissSchedule"),
    Case("blocked", DECIDED, decided(Decision.SKIPPED_OVERLAP), None, "JobAlreadyActive"),
    Case("excluded by its owner", DECIDED, decided(Decision.SKIPPED_EXCLUDED), None, None),
    Case("coalesced", DECIDED, decided(Decision.COALESCED), None, None),
    Case("its input is refused", DECIDED, decided(Decision.PREFLIGHT_REJECTED), "FailedCreate", "FailedCreate"),
    Case("completed", ENDED, ended(Outcome.COMPLETED, "JobComplete"), None, "SawCompletedJob"),
    Case("failed", ENDED, ended(Outcome.FAILED, "BackoffLimitExceeded"), "SawCompletedJob", "SawCompletedJob"),
    Case("exhausted", ENDED, ended(Outcome.EXHAUSTED, "DeadlineExceeded"), "SawCompletedJob", "SawCompletedJob"),
    Case("replaced", ENDED, ended(Outcome.CANCELLED, "Replaced"), None, "SawCompletedJob"),
    Case("cancelled", ENDED, ended(Outcome.CANCELLED, "CancelRequested"), None, "SawCompletedJob"),
    Case("still running", ENDED, ended(Outcome.RUNNING, "JobRunning"), None, None),
    Case("refused", ENDED, ended(Outcome.FAILED, "JobRejected"), "FailedCreate", "FailedCreate"),
    Case("never started", ENDED, ended(Outcome.FAILED, "NotStarted"), "FailedCreate", "FailedCreate"),
    Case("somebody else's Job", ENDED, ended(Outcome.FAILED, "NameTaken"), "UnexpectedJob", "UnexpectedJob"),
    Case("gone", ENDED, ended(Outcome.FAILED, "JobMissing"), "MissingJob", "MissingJob"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events(case: Case) -> None:
    for level, want in ((EventLevel.NONE, None), (EventLevel.PROBLEMS, case.problems), (EventLevel.ALL, case.all)):
        found = event_of(case.happening, case.record, level=level)
        assert (found.reason if found else None) == want
        if found is not None:
            assert SECRET not in repr(found)
            assert found.name == f"{case.record.ref.name}.{found.reason.lower()}"


@pytest.mark.parametrize(
    ("why", "want"),
    [("UnknownTimeZone", "UnknownTimeZone"), ("InvalidSpec", "InvalidSchedule"), ("NeverMatches", "InvalidSchedule")],
)
def test_an_event_tells_of_a_spec_that_is_not_accepted(why: str, want: str) -> None:
    accepted = Condition(type="Accepted", status=ConditionStatus.FALSE, reason=why, message=SECRET)
    found = event_of_refusal(a_schedule(generation=4), accepted)
    assert (found.reason, "generation-4" in found.name, SECRET in repr(found)) == (want, True, False)
