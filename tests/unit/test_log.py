"""What the next record says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.builders import (
    DEFINITION_UID,
    TEMPLATE,
    UID,
    WRITER,
    a_definition,
    a_job,
    a_record,
    a_run,
    a_schedule,
    a_snapshot,
    a_status,
    an_admission,
    at,
    of_definition,
)
from workflow_schedules.api.occurrence import (
    Cause,
    Decision,
    Outcome,
    ScheduleOccurrenceSpec,
    ScheduleOccurrenceStatus,
    Span,
    Totals,
)
from workflow_schedules.api.schedule import ConcurrencyPolicy, State
from workflow_schedules.core import log
from workflow_schedules.core.misfire import Verdict
from workflow_schedules.core.model import Definition, Requested, Run, Schedule, Snapshot
from workflow_schedules.core.totals import totals_now


def ended(number: int, outcome: Outcome, when: str | None = None) -> Run:
    status = ScheduleOccurrenceStatus(outcome=outcome, completion_time=at(when) if when else None)
    return a_run(record=an_admission(number, status=status))


def a_verdict(decision: Decision, first: str = "11:00", last: str | None = None, count: int = 1) -> Verdict:
    return Verdict(decision=decision, first=at(first), last=at(last or first), count=count)


GOING = ScheduleOccurrenceStatus(outcome=Outcome.CANCELLED, reason="Replaced", job_uid="job-2")
ENDING = a_run(record=an_admission(status=GOING), job=a_job(is_deleting=True))
BEFORE = Totals(admitted=5, completed=2, failed=2, consecutive_failures=1, last_successful_time=at("09:00"))


def test_an_end_is_counted_in_one_record_only() -> None:
    """P3: the record that folds it in no longer calls the run open."""
    run = ended(2, Outcome.COMPLETED, "10:01")
    snapshot = a_snapshot(head=an_admission(2), runs=(run,))
    spec = log.verdict_record(
        snapshot, schedule=a_schedule(), verdict=a_verdict(Decision.SKIPPED_MISFIRE), message="", template=None
    )
    assert (spec.open, spec.totals.completed) == ((), 1)
    following = replace(a_record(3), spec=spec)
    assert totals_now(following, (run,)) == spec.totals


VERDICTS = [
    ("R8 admitted", a_verdict(Decision.ADMITTED), {"admitted": 6, "last_schedule_time": at("11:00")}, (2, 4), None),
    ("R17 a span of misses", a_verdict(Decision.SKIPPED_MISFIRE, "11:00", "13:00", 3), {"skipped": 3}, (2,), 3),
    ("R12 an overlap", a_verdict(Decision.SKIPPED_OVERLAP), {"skipped": 1}, (2,), None),
    ("R24 rejected", a_verdict(Decision.PREFLIGHT_REJECTED), {"skipped": 1}, (2,), None),
    ("R16 coalesced", a_verdict(Decision.COALESCED, "11:00", "12:00", 2), {"coalesced": 2}, (2,), 2),
]


@pytest.mark.parametrize(
    ("verdict", "totals", "still_open", "count"), [row[1:] for row in VERDICTS], ids=[row[0] for row in VERDICTS]
)
def test_verdict_record(
    verdict: Verdict, totals: dict[str, object], still_open: tuple[int, ...], count: int | None
) -> None:
    """P3: a record carries all that the next decision needs."""
    schedule = a_schedule(input={"a": "\u00e9"}, generation=4)
    snapshot = a_snapshot(schedule, head=a_record(3, open=(2,), totals=BEFORE, revision=7), runs=(a_run(2),))
    spec = log.verdict_record(
        snapshot, schedule=schedule, verdict=verdict, message="why", template=TEMPLATE, input_json='{"a":"\u00e9"}'
    )
    is_run = verdict.decision is Decision.ADMITTED
    assert (spec.sequence, spec.previous_uid, spec.format, spec.cause) == (4, "record-3", 1, Cause.SCHEDULED)
    assert (spec.generation, spec.spec_hash, spec.revision, spec.state) == (4, schedule.spec_hash, 7, State.ACTIVE)
    assert (spec.fencing_epoch, spec.writer, spec.lease) == (WRITER.epoch, WRITER.identity, WRITER.lease)
    assert (spec.schedule_ref.name, spec.schedule_ref.uid) == ("hourly", UID)
    assert (spec.scheduled_time, spec.consumed_through_time) == (verdict.last, verdict.last)
    assert (spec.reason, spec.message) == (str(verdict.decision), "why")
    assert (spec.open, spec.waiting) == (still_open, ())
    assert spec.totals == BEFORE.model_copy(update=totals)
    assert spec.span == (Span(first_time=verdict.first, last_time=verdict.last, count=count) if count else None)
    assert (spec.template_hash, spec.input_json) == ((TEMPLATE.hash, '{"a":"\u00e9"}') if is_run else (None, None))


def test_baseline() -> None:
    """R11, P4."""
    child = a_schedule(generation=2, **of_definition())
    snapshot = a_snapshot(child, definition=a_definition(generation=6), head=an_admission(2), runs=(a_run(2),))
    spec = log.baseline(
        snapshot,
        schedule=child,
        state=State.ACTIVE,
        reason="Edited",
        consumed_through=at("10:20"),
        waiting=(at("10:10"),),
    )
    assert (spec.decision, spec.reason, spec.sequence) == (Decision.BASELINE, "Edited", 3)
    assert (spec.definition_uid, spec.definition_generation) == (DEFINITION_UID, 6)
    assert (spec.consumed_through_time, spec.waiting, spec.open) == (at("10:20"), (at("10:10"),), (2,))
    assert spec.message == (
        "Edited at generation 2; instants after 2026-01-01T10:00:00Z through 2026-01-01T10:20:00Z are consumed"
    )
    assert spec.scheduled_time is None


def test_a_baseline_of_the_same_second_consumes_nothing() -> None:
    """R29: so its message doesn't say so."""
    snapshot = a_snapshot(EDIT, head=a_record(consumed=at("10:15")))
    spec = log.baseline(
        snapshot, schedule=EDIT, state=State.ACTIVE, reason="Edited", consumed_through=at("10:15"), waiting=()
    )
    assert spec.message == "Edited at generation 2"


def test_a_definition_that_the_schedule_does_not_name_is_not_on_record() -> None:
    """P4: its generations are nothing to it."""
    spec = admission(a_schedule(), definition=a_definition(generation=6))
    assert (spec.definition_uid, spec.definition_generation) == (None, None)


ASKED = [
    ("R27 a run that was asked for is the first success", None, "10:30", "10:30"),
    ("R27 it is later than the log's", "10:00", "10:30", "10:30"),
    ("R27 the log's is later", "10:45", "10:30", "10:45"),
    ("R27 nobody asked for one", "10:45", None, "10:45"),
]


@pytest.mark.parametrize(("known", "asked", "want"), [row[1:] for row in ASKED], ids=[row[0] for row in ASKED])
def test_the_last_success_on_record(known: str | None, asked: str | None, want: str) -> None:
    totals = Totals(completed=7, last_successful_time=at(known) if known else None)
    snapshot = replace(
        a_snapshot(head=a_record(totals=totals)),
        requested=Requested(last_successful_time=at(asked) if asked else None),
    )
    spec = log.verdict_record(
        snapshot, schedule=a_schedule(), verdict=a_verdict(Decision.COALESCED), message="", template=None
    )
    assert spec.totals is not None
    assert (spec.totals.last_successful_time, spec.totals.completed) == (at(want), 7)


def test_a_message_is_no_longer_than_a_record_takes() -> None:
    spec = log.verdict_record(
        a_snapshot(), schedule=a_schedule(), verdict=a_verdict(Decision.COALESCED), message="x" * 99999, template=None
    )
    assert ScheduleOccurrenceSpec.model_validate(spec.model_dump()) == spec


def test_superseded() -> None:
    """R10, R19: what waited, and nothing newer than the Baseline before it saw."""
    waiting = (at("10:00"), at("10:30"), at("11:00"))
    head = a_record(2, waiting=waiting, consumed=at("11:20"), generation=5, spec_hash="then", totals=BEFORE)
    snapshot = a_snapshot(a_schedule(generation=6), head=head)
    spec = log.superseded(snapshot, schedule=a_schedule(generation=6), state=State.DISABLED)
    assert (spec.decision, spec.scheduled_time) == (Decision.SUPERSEDED, at("11:00"))
    assert spec.span == Span(first_time=at("10:00"), last_time=at("11:00"), count=3)
    assert (spec.waiting, spec.consumed_through_time, spec.state) == ((), at("11:20"), State.DISABLED)
    assert (spec.generation, spec.spec_hash) == (5, "then")
    assert spec.totals == BEFORE.model_copy(update={"superseded": 3})
    assert (spec.reason, spec.message) == ("Superseded", "the schedule changed while this instant waited to start")


def test_one_that_waited_is_no_span_and_two_are() -> None:
    """R17: a span names more instants than the record's own."""
    spans = []
    for waiting in ((at("10:00"),), (at("10:00"), at("10:30"))):
        snapshot = a_snapshot(head=a_record(2, waiting=waiting))
        spans.append(log.superseded(snapshot, schedule=a_schedule(), state=State.ACTIVE).span)
    assert spans == [None, Span(first_time=at("10:00"), last_time=at("10:30"), count=2)]


def test_a_run_that_was_asked_for_ends_no_streak_where_none_failed() -> None:
    """R27, `pauseAfterFailures`."""
    schedule = a_schedule(pause_after_failures=2)
    snapshot = replace(a_snapshot(schedule, head=a_record(schedule=schedule)), last_good_manual_at=at("10:30"))
    assert log.failures_in_a_row(snapshot, schedule) == 0


HASH = a_schedule().spec_hash
EDIT = a_schedule(schedule="5 * * * *", generation=2)
REVISIONS = [
    ("R10 from 1", a_snapshot(head=None), a_schedule(), 1),
    ("R10 an edit", a_snapshot(), EDIT, 2),
    ("R10 a step without contents", a_snapshot(), a_schedule(generation=2), 1),
    ("P4 a jump without contents", a_snapshot(), a_schedule(generation=9), 1),
    ("K-108 an upgrade that hashes otherwise", a_snapshot(head=a_record(spec_hash="older", revision=4)), a_schedule(), 4),
    ("R10 an edit while off is known from the status alone", a_snapshot(head=a_record(revision=4)), a_schedule(
        generation=3, status=a_status(generation=2, revision=5, spec_hash="between")), 6),
    ("R10 a step without contents behind one", a_snapshot(head=a_record(revision=4)), a_schedule(
        generation=3, status=a_status(generation=2, revision=5, spec_hash=HASH)), 5),
    ("R10 mended while off: an edit, as breaking it was", a_snapshot(head=a_record(revision=4)), a_schedule(
        generation=3, status=a_status(generation=2, revision=5)), 6),
    ("R10 broken stays broken, on record and in the status", a_snapshot(head=a_record(revision=5, generation=2, spec_hash="")),
        a_schedule(problem="no", generation=2, status=a_status(generation=2, revision=5)), 5),
    ("R10 a status older than the log says nothing", a_snapshot(head=a_record(revision=4, generation=3)), a_schedule(
        generation=3, status=a_status(generation=2, revision=3, spec_hash="older")), 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("snapshot", "schedule", "want"), [row[1:] for row in REVISIONS], ids=[row[0] for row in REVISIONS]
)
def test_revision_now(snapshot: Snapshot, schedule: Schedule, want: int) -> None:
    assert log.revision_now(snapshot, schedule) == want


def test_numbers_and_watermark() -> None:
    assert (log.next_number(None), log.next_number(a_record(7))) == (1, 8)
    assert log.watermark(a_snapshot(head=None)) is None
    assert log.watermark(a_snapshot(head=a_record(consumed=at("10:00")))) == at("10:00")


def test_unread_runs() -> None:
    """P3."""
    assert log.unread_runs(a_snapshot(head=an_admission(4, open=(2, 4)), runs=(a_run(4),))) == {2}
    assert not log.unread_runs(a_snapshot(head=None))


def admission(schedule: Schedule, *runs: Run, definition: Definition | None = None) -> ScheduleOccurrenceSpec:
    snapshot = a_snapshot(schedule, head=a_record(7), runs=runs, definition=definition)
    verdict = a_verdict(Decision.ADMITTED)
    message = log.verdict_message(snapshot, verdict, now=at("11:00:01"))
    return log.verdict_record(snapshot, schedule=schedule, verdict=verdict, message=message, template=TEMPLATE)


REPLACE = a_schedule(concurrency_policy=ConcurrencyPolicy.REPLACE)
REPLACES = [
    ("R14 the newest unfinished run", REPLACE, (a_run(2), a_run(3)), 3),
    ("R14 one that still goes is waited for", REPLACE, (ENDING,), 2),
    ("R14 one that has ended is not", REPLACE, (ended(2, Outcome.COMPLETED),), None),
    ("R14 none", REPLACE, (), None),
    ("R12 another policy replaces none", a_schedule(), (a_run(2),), None),
]


@pytest.mark.parametrize(("schedule", "runs", "want"), [row[1:] for row in REPLACES], ids=[row[0] for row in REPLACES])
def test_replaces(schedule: Schedule, runs: tuple[Run, ...], want: int | None) -> None:
    spec = admission(schedule, *runs)
    assert spec.replaces == want
    assert (f"in place of number {want}" in (spec.message or "")) is (want is not None)


def test_a_run_that_still_goes_stays_open() -> None:
    """R14: so that a successor knows of it."""
    assert admission(REPLACE, ENDING).open == (2, 8)


def test_an_admission_pins_the_limits_of_its_run() -> None:
    """R10: an edit changes only what is admitted after it."""
    spec = admission(a_schedule(active_deadline_seconds=60, start_timeout_seconds=30))
    assert (spec.active_deadline_seconds, spec.start_timeout_seconds) == (60, 30)
