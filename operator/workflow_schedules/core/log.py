"""The append-only log of one schedule: what the next record says, given the head and what was decided.

Each record carries everything the next decision needs (P3). When to append what is decide's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_schedules.api.common import MAX_MESSAGE_LENGTH, format_utc
from workflow_schedules.api.occurrence import (
    Cause,
    Decision,
    ScheduleOccurrenceSpec,
    ScheduleRef,
    Span,
    Totals,
)
from workflow_schedules.api.schedule import ConcurrencyPolicy, State
from workflow_schedules.core.ending import is_ending
from workflow_schedules.core.totals import totals_now, with_verdict

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from workflow_schedules.core.misfire import Verdict
    from workflow_schedules.core.model import Record, Run, Schedule, Snapshot, Template

FORMAT = 1
# what all records share, copied for each of them: making a model with all its fields takes ten times as long
_BLANK = ScheduleOccurrenceSpec(schedule_ref=ScheduleRef(name="-"), format=FORMAT, cause=Cause.SCHEDULED)
_SEEN = ("generation", "spec_hash", "definition_uid", "definition_generation")


def next_number(head: Record | None) -> int:
    """Return the sequence number after the head; the log starts at 1."""
    return 1 if head is None else head.number + 1


def watermark(snapshot: Snapshot) -> datetime | None:
    """Return the instant through which everything is consumed, or None before the first record."""
    return snapshot.head.spec.consumed_through_time if snapshot.head else None


def open_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs that hold their slot (R12 to R14): no final outcome on record, or ended with a Job not yet gone."""
    return tuple(run for run in runs if not run.is_finished or is_ending(run))


def unread_runs(snapshot: Snapshot) -> frozenset[int]:
    """Return the runs that the head calls open and that were not read: nothing may be appended without them (P3)."""
    called_open = snapshot.head.spec.open if snapshot.head else ()
    return frozenset(called_open) - {run.record.number for run in snapshot.runs}


def failures_in_a_row(snapshot: Snapshot, schedule: Schedule) -> int:
    """Return the failures in a row that `pauseAfterFailures` counts.

    An edit begins anew, also the one that sets that field, so none is counted without it. So does a manual run that
    completed after the last failure. A pause that is on record is not ended by a run that was still going.

    Source: contract `pauseAfterFailures`; P6.
    """
    head, limit = snapshot.head, schedule.spec.pause_after_failures if schedule.spec else None
    if limit is None or head is None or head.spec.totals is None:
        return 0
    if revision_now(snapshot, schedule) != head.spec.revision:
        return 0
    totals, good = totals_now(head, snapshot.runs), snapshot.last_good_manual_at
    if good is not None and totals.last_failure_time is not None and good >= totals.last_failure_time:
        return 0
    kept = head.spec.totals.counted_failures
    if head.spec.state is State.PAUSED and kept >= limit:
        return max(kept, totals.counted_failures)
    return totals.counted_failures


def baseline(
    snapshot: Snapshot,
    *,
    schedule: Schedule,
    state: State,
    reason: str,
    consumed_through: datetime,
    waiting: tuple[datetime, ...],
    given_up: Verdict | None = None,
    detail: str = "",
) -> ScheduleOccurrenceSpec:
    """Return the record of a change of generation: from it on nothing older can be admitted by anyone.

    Source: contract R11, P4.
    """
    before = watermark(snapshot)
    message = f"{reason} at generation {schedule.generation}" + (f": {detail}" if detail else "")
    if before is not None and before < consumed_through:
        message += f"; instants after {format_utc(before)} through {format_utc(consumed_through)} are consumed"
    record = _record(snapshot, schedule, Decision.BASELINE, state=state)
    update: dict[str, object] = {
        "reason": reason,
        "revision": revision_now(snapshot, schedule),
        "consumed_through_time": consumed_through,
        "waiting": waiting,
    }
    if given_up is not None:
        message += f", {given_up.count} of which were due and undecided"
        totals = record.totals or Totals()
        update["span"] = Span(first_time=given_up.first, last_time=given_up.last, count=given_up.count)
        update["totals"] = totals.model_copy(update={"superseded": totals.superseded + given_up.count})
    return record.model_copy(update={**update, "message": message})


def verdict_record(
    snapshot: Snapshot,
    *,
    schedule: Schedule,
    verdict: Verdict,
    message: str,
    template: Template | None,
    reason: str | None = None,
    input_json: str | None = None,
) -> ScheduleOccurrenceSpec:
    """Return the record of a verdict about due instants.

    Args:
        snapshot: what was decided on.
        schedule: the snapshot's.
        verdict: what was decided.
        message: why, for people.
        template: of a run, pinned by its hash.
        reason: why, where the decision itself doesn't say it.
        input_json: resolved input of a run.

    Source: contract R8, R16, R17, R22, R29.
    """
    record = _record(snapshot, schedule, verdict.decision, state=State.ACTIVE)
    totals = record.totals or Totals()
    update: dict[str, object] = {
        "scheduled_time": verdict.last,
        "reason": reason or str(verdict.decision),
        "message": message[:MAX_MESSAGE_LENGTH],
        "consumed_through_time": verdict.last,
        "waiting": (),
        "totals": with_verdict(totals, verdict),
    }
    if verdict.count > 1:
        update["span"] = Span(first_time=verdict.first, last_time=verdict.last, count=verdict.count)
    if verdict.decision is Decision.ADMITTED:
        update["open"] = (*record.open, next_number(snapshot.head))
        update["template_hash"] = template.hash if template else None
        update["input_json"] = input_json
        update["replaces"] = replaced_by_next(snapshot)
        update |= _limits(schedule)
    return record.model_copy(update=update)


def replaced_by_next(snapshot: Snapshot) -> int | None:
    """Return the newest run that the next one ends, or waits for until it is gone; older ones end with it.

    Source: contract R14.
    """
    spec = snapshot.schedule.spec if snapshot.schedule else None
    if spec is None or spec.concurrency_policy is not ConcurrencyPolicy.REPLACE:
        return None
    return max((run.record.number for run in open_runs(snapshot.runs)), default=None)


def _limits(schedule: Schedule) -> dict[str, object]:
    """Return the limits of a run as they are now: an edit changes only what is admitted after it (R10)."""
    spec = schedule.spec
    if spec is None:
        return {}
    return {
        "active_deadline_seconds": spec.active_deadline_seconds,
        "start_timeout_seconds": spec.start_timeout_seconds,
    }


def verdict_message(snapshot: Snapshot, verdict: Verdict, *, now: datetime) -> str:
    """Return why a verdict is what it is, for people."""
    match verdict.decision:
        case Decision.ADMITTED:
            replaced = replaced_by_next(snapshot)
            place = "" if replaced is None else f", in place of number {replaced}"
            late = (now - verdict.last).total_seconds()
            return f"due at {format_utc(verdict.last)}, admitted {late:.0f} s after it{place}"
        case Decision.SKIPPED_OVERLAP:
            names = ", ".join(run.record.ref.name for run in open_runs(snapshot.runs)[:3])
            return f"no free slot: {names} had not finished"
        case Decision.SKIPPED_MISFIRE:
            seconds = (now - verdict.last).total_seconds()
            return f"could not start in time: noticed {seconds:.0f} s after the newest of {verdict.count}"
        case Decision.SKIPPED_EXCLUDED:
            return "on a date of excludeDates"
        case Decision.SUPERSEDED:
            return "runLimit is used up by the run before"
        case _:
            return f"a newer instant stands for {verdict.count}"


def superseded(snapshot: Snapshot, *, schedule: Schedule, state: State) -> ScheduleOccurrenceSpec:
    """Return the record that gives up the instants a Baseline left waiting.

    Source: contract R10, R19.
    """
    head = snapshot.head.spec if snapshot.head else None
    waiting = head.waiting if head else ()
    record = _record(snapshot, schedule, Decision.SUPERSEDED, state=state)
    totals = record.totals or Totals()
    return record.model_copy(
        update={
            "scheduled_time": waiting[-1],
            "reason": str(Decision.SUPERSEDED),
            "message": "the schedule changed while this instant waited to start",
            "span": Span(first_time=waiting[0], last_time=waiting[-1], count=len(waiting))
            if len(waiting) > 1
            else None,
            "waiting": (),
            "totals": totals.model_copy(update={"superseded": totals.superseded + len(waiting)}),
            # it belongs to the Baseline before it: what changed since then must still meet a Baseline of its own (P4)
            **{name: getattr(head, name) for name in _SEEN if head},
        }
    )


def revision_now(snapshot: Snapshot, schedule: Schedule) -> int:
    """Return the revision of this spec: one more than the last one known whenever an edit moved the hash.

    An upgrade that hashes the same generation otherwise is no edit. The last one known is the head's or the stored
    status's, whichever is of the newer generation: while a schedule admits nothing its edits leave no record.

    Source: contract R10.
    """
    head, status = snapshot.head, schedule.status
    known: list[tuple[int, int, str]] = []
    if head and head.spec.revision is not None:
        known.append((head.spec.generation or 0, head.spec.revision, head.spec.spec_hash or ""))
    if status and status.revision is not None:  # no hash: its spec didn't parse
        known.append((status.observed_generation or 0, status.revision, status.spec_hash or ""))
    if not known:
        return 1
    generation, revision, known_hash = max(known)
    return revision if schedule.spec_hash == known_hash or schedule.generation <= generation else revision + 1


def _record(snapshot: Snapshot, schedule: Schedule, decision: Decision, *, state: State) -> ScheduleOccurrenceSpec:
    """Return what every record says, whatever was decided."""
    head, definition, writer = snapshot.head, snapshot.definition, snapshot.writer
    spec = schedule.spec
    names_definition = spec is not None and spec.workflow_ref is not None
    said: dict[str, object] = {
        "schedule_ref": ScheduleRef(name=schedule.ref.name, uid=schedule.uid),
        "sequence": next_number(head),
        "previous_uid": head.uid if head else None,
        "decision": decision,
        "revision": head.spec.revision if head else 1,
        "spec_hash": schedule.spec_hash,
        "generation": schedule.generation,
        "definition_uid": definition.uid if definition and names_definition else None,
        "definition_generation": definition.generation if definition and names_definition else None,
        "state": state,
        "consumed_through_time": watermark(snapshot),
        "open": tuple(run.record.number for run in open_runs(snapshot.runs)),
        "totals": _totals(snapshot, schedule),
        "fencing_epoch": writer.epoch,
        "writer": writer.identity,
        "lease": writer.lease,
    }
    return _BLANK.model_copy(update=said)


def _totals(snapshot: Snapshot, schedule: Schedule) -> Totals:
    totals, counted = totals_now(snapshot.head, snapshot.runs), failures_in_a_row(snapshot, schedule)
    asked = snapshot.requested.last_successful_time
    update: dict[str, object] = {}
    if counted != totals.counted_failures:
        update["counted_failures"] = counted
    if asked is not None and (totals.last_successful_time is None or asked > totals.last_successful_time):
        update["last_successful_time"] = asked  # a run that people asked for counts here, too (R27)
    return totals.model_copy(update=update) if update else totals
