"""Runs that people ask for, in their own words: what a request is resolved to, until when it may start, how it is shown.

They are in no log: nothing here counts in overlap or `open`. What to do next about one is decide_requests' business.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from workflow_schedules.api.occurrence import Cause, Outcome
from workflow_schedules.api.schedule import RecentOccurrence
from workflow_schedules.core.model import Requested
from workflow_schedules.core.totals import totals_now

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec, ScheduleOccurrenceStatus
    from workflow_schedules.api.schedule import WorkflowScheduleStatus
    from workflow_schedules.core.model import Record, Snapshot

RESOLVED = "Resolved"  # the condition that says when
CAUSES = frozenset({str(Cause.MANUAL), str(Cause.BACKFILL)})
MAX_RECENT = 10
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def is_request(record: Record) -> bool:
    """Tell a request from a record of the log."""
    return record.spec.cause is not Cause.SCHEDULED


def is_resolved(record: Record) -> bool:
    """Tell whether the decision to run it is on record."""
    return record.status.template_hash is not None


def resolved_spec(spec: ScheduleOccurrenceSpec, status: ScheduleOccurrenceStatus) -> ScheduleOccurrenceSpec:
    """Return a request's spec with what its status says it was resolved to, so that it reads like a record of the log."""
    return spec.model_copy(
        update={
            "schedule_ref": spec.schedule_ref.model_copy(update={"uid": status.schedule_uid}),
            "revision": status.revision,
            "template_hash": status.template_hash,
            "input_json": status.input_json,
            "active_deadline_seconds": status.active_deadline_seconds,
            "start_timeout_seconds": status.start_timeout_seconds,
            "fencing_epoch": status.fencing_epoch,
            "writer": status.writer,
            "lease": status.lease,
        }
    )


def counts_from(record: Record) -> datetime:
    """Return from when the time counts in which a request must get its Job.

    Whoever asks for a run now means now, so it is when they asked; a backfill waits its turn, so it is when that came.
    """
    if record.spec.cause is Cause.MANUAL:
        return record.created_at
    found = (each.last_transition_time for each in record.status.conditions if each.type == RESOLVED)
    return next((at for at in found if at is not None), record.created_at)


def summarise(records: Iterable[Record]) -> Requested:
    """Sum up the requests of one schedule for its status.

    Source: contract R27 (history, last success and failure).
    """
    ended = [each for each in records if each.status.outcome is not None]
    ran = [each for each in ended if is_resolved(each)]
    lines = sorted(map(_line, ended), key=_time_of, reverse=True)
    return Requested(
        last_successful_time=_newest(each for each in ran if each.status.outcome is Outcome.COMPLETED),
        last_failure_time=_newest(each for each in ran if _has_failed(each)),
        last_good_manual_time=_newest(each for each in ran if _is_good_manual(each)),
        recent=tuple(lines[:MAX_RECENT]),
    )


def merge_recent(lines: Iterable[RecentOccurrence], requested: Requested) -> tuple[RecentOccurrence, ...]:
    """Return the newest lines of a history: those of the log as given, those of requests as they are now.

    Args:
        lines: newest first; what is of a request among them is left out.
        requested: the requests of the schedule.
    """
    of_log = [line for line in lines if line.decision not in CAUSES]
    if not requested.recent:
        return tuple(of_log[:MAX_RECENT])
    return tuple(sorted([*of_log, *requested.recent], key=_time_of, reverse=True)[:MAX_RECENT])


def last_successful_time(snapshot: Snapshot) -> datetime | None:
    """Return when a run last completed, whoever asked for it; as the status knew it where the log was not read.

    Source: contract R23, R27.
    """
    status = snapshot.schedule.status if snapshot.schedule else None
    known = (
        totals_now(snapshot.head, snapshot.runs).last_successful_time,
        snapshot.requested.last_successful_time,
        status.last_successful_time if status else None,
    )
    return max((at for at in known if at is not None), default=None)


def has_news(requested: Requested, status: WorkflowScheduleStatus) -> bool:
    """Tell whether a schedule's status does not yet say what became of its requests."""
    pairs = (
        (requested.last_successful_time, status.last_successful_time),
        (requested.last_failure_time, status.last_failure_time),
    )
    if any(new is not None and (old is None or old < new) for new, old in pairs):
        return True
    return bool(requested.recent) and merge_recent(status.recent, requested) != status.recent


def _line(record: Record) -> RecentOccurrence:
    return RecentOccurrence(
        name=record.ref.name,
        time=record.spec.scheduled_time or record.created_at,
        decision=str(record.spec.cause),
        outcome=str(record.status.outcome),
        reason=record.status.reason,
    )


def _time_of(line: RecentOccurrence) -> datetime:
    return line.time or _LONG_AGO


def _has_failed(record: Record) -> bool:
    outcome = record.status.outcome
    return outcome in {Outcome.FAILED, Outcome.EXHAUSTED}  # a cancelled one ended on purpose, as in the log's totals


def _is_good_manual(record: Record) -> bool:
    return record.spec.cause is Cause.MANUAL and record.status.outcome is Outcome.COMPLETED


def _newest(records: Iterable[Record]) -> datetime | None:
    times = (each.status.completion_time for each in records)
    return max((at for at in times if at is not None), default=None)
