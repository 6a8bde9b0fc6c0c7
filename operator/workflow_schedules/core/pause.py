"""What pauses a schedule, its owner or failures in a row, and from when on it admits again.

A pause can end without anybody's write, at `untilTime` or by a good manual run, so the log keeps the changes of a paused
schedule like those of an active one: who resumes it must know that nothing else happened meanwhile. No switch, parent or
calendar may live here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_schedules.api.common import format_utc
from workflow_schedules.api.schedule import State
from workflow_schedules.core import log
from workflow_schedules.core.totals import totals_now

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.api.schedule import Pause, WorkflowScheduleStatus
    from workflow_schedules.core.model import Record, Schedule, Snapshot

CONDITION = "Paused"
BY_OWNER = "PausedByOwner"
BY_FAILURES = "TooManyFailures"


def owner_pause(snapshot: Snapshot, *, now: datetime) -> Pause | None:
    """Return the owner's pause while it is in force: up to its `untilTime`, which the watermark passes only once.

    Source: contract `pause`, R19.
    """
    pause = _written(snapshot.schedule)
    if pause is None or pause.until_time is None:
        return pause
    reached = max(now, log.watermark(snapshot) or now)  # a clock that steps back doesn't pause it again
    return pause if pause.until_time > reached else None


def is_paused_by_failures(snapshot: Snapshot) -> bool:
    """Tell whether `pauseAfterFailures` failures in a row stop the schedule, as the log knows them.

    Source: contract `pauseAfterFailures`; P6.
    """
    schedule, limit = snapshot.schedule, _limit(snapshot.schedule)
    return schedule is not None and limit is not None and log.failures_in_a_row(snapshot, schedule) >= limit


def is_paused(snapshot: Snapshot, *, now: datetime) -> bool:
    """Tell whether a pause stops admissions."""
    return owner_pause(snapshot, now=now) is not None or is_paused_by_failures(snapshot)


def ends_at(snapshot: Snapshot, *, now: datetime) -> datetime | None:
    """Return when the owner's pause ends by itself, or None."""
    pause = owner_pause(snapshot, now=now)
    return pause.until_time if pause else None


def changes_by_failures(snapshot: Snapshot, head: Record) -> bool:
    """Tell whether failures stop the schedule, or a good manual run ended that, and the log doesn't say so yet.

    The state alone doesn't show it while the owner pauses the schedule, too; and the request of a manual run may be deleted.
    """
    return is_paused_by_failures(snapshot) != _is_failing_at(head, snapshot.schedule)


def ended_unseen(head: Record, schedule: Schedule) -> bool:
    """Tell whether the one change since the head of an active schedule was a pause that is over by now."""
    pause, consumed = _written(schedule), head.spec.consumed_through_time
    if pause is None or pause.until_time is None:
        return False
    return _steps(head, schedule) == 1 and (consumed is None or pause.until_time > consumed)


def resumed_at(snapshot: Snapshot, head: Record, schedule: Schedule) -> datetime | None:
    """Return the `untilTime` at which a pause ended, where the log shows that nothing else stopped the schedule since.

    What came after it is downtime then, not pause. None where something else may hide, so that it resumes from now: another
    change since the head (a moved `untilTime`, too: when the former one was to end is not known), or failures.

    Source: contract R19; P4, P6.
    """
    pause = _written(schedule)
    if pause is None:
        return None
    steps = 0 if head.spec.state is State.PAUSED else 1
    if _steps(head, schedule) != steps:
        return None
    limit, folded = _limit(schedule), totals_now(head, snapshot.runs).counted_failures
    if limit is not None and (folded >= limit or _is_failing_at(head, schedule)):
        return None
    return pause.until_time


def first_seen_end(schedule: Schedule, *, now: datetime) -> datetime | None:
    """Return when the pause that a schedule was born with ended, or None while it lasts or where there is none."""
    pause = _written(schedule)
    return pause.until_time if pause and pause.until_time and pause.until_time <= now else None


def why(snapshot: Snapshot, *, now: datetime) -> tuple[str, str] | None:
    """Return reason and message of the condition `Paused`, or None when nothing pauses the schedule.

    Source: contract section 2 (`conditions`).
    """
    pause = owner_pause(snapshot, now=now)
    if pause is not None:
        until = f"until {format_utc(pause.until_time)}" if pause.until_time else "until spec.pause is removed"
        return BY_OWNER, f"{pause.reason[:1024]} ({until})" if pause.reason else f"paused {until}"
    if not is_paused_by_failures(snapshot) or snapshot.schedule is None:
        return None
    count = log.failures_in_a_row(snapshot, snapshot.schedule)
    return BY_FAILURES, (
        f"{count} {'run' if count == 1 else 'runs'} failed in a row (pauseAfterFailures {_limit(snapshot.schedule)}): "
        "an edit of what runs or when, or a good manual run, resumes it"
    )


def is_shown_wrong(snapshot: Snapshot, status: WorkflowScheduleStatus, *, now: datetime) -> bool:
    """Tell whether the stored condition is wrong about the owner's pause: it may have ended while nobody looked."""
    shown = any(one.type == CONDITION and one.reason == BY_OWNER for one in status.conditions)
    return shown != (owner_pause(snapshot, now=now) is not None)


def _written(schedule: Schedule | None) -> Pause | None:
    return schedule.spec.pause if schedule and schedule.spec else None


def _limit(schedule: Schedule | None) -> int | None:
    return schedule.spec.pause_after_failures if schedule and schedule.spec else None


def _steps(head: Record, schedule: Schedule) -> int:
    return schedule.generation - (head.spec.generation or 0)


def _is_failing_at(head: Record, schedule: Schedule | None) -> bool:
    limit, totals = _limit(schedule), head.spec.totals
    return limit is not None and totals is not None and totals.counted_failures >= limit
