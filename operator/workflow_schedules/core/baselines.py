"""When a change must be on record before anything else is decided, what that Baseline says, and where it goes on from.

From a Baseline on nothing older can be admitted by anyone. What is due after it is decide's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_schedules.api.schedule import State
from workflow_schedules.core import completion, log, pause
from workflow_schedules.core.acceptance import accept
from workflow_schedules.core.misfire import Verdict, undecided
from workflow_schedules.core.plan import Append
from workflow_schedules.core.refusals import Refusal

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec
    from workflow_schedules.api.schedule import WorkflowScheduleStatus
    from workflow_schedules.core.model import Definition, Record, Schedule, Snapshot
    from workflow_schedules.core.plan import Step

_ADMITTING = {State.ACTIVE, State.PAUSED}  # what admits, now or by itself later: its changes stand in the log
_INTO = {State.DISABLED: "Disabled", State.HELD: "Held", State.PAUSED: "Paused", State.BLOCKED: "Edited"}
_RESUMED = "Resumed"
_OUT_OF: dict[State | None, str] = {State.PAUSED: _RESUMED, State.HELD: "Released", State.BLOCKED: "Edited"}


def first_watermark(snapshot: Snapshot, *, now: datetime) -> datetime:
    """Return where the log starts: at creation, unless the schedule lived through something unseen.

    Source: contract R9, P4.
    """
    schedule = snapshot.schedule
    if schedule is not None and schedule.generation == 1 and _is_unseen(schedule):
        return max(filter(None, (schedule.created_at, pause.first_seen_end(schedule, now=now))))
    stored = schedule.status.consumed_through_time if schedule and schedule.status else None
    return max(filter(None, (stored, now.replace(microsecond=0))))


def _is_unseen(schedule: Schedule) -> bool:
    """Tell whether the status was never written, but to say that the first record can't be created."""
    status = schedule.status
    return status is None or (status.observed_generation is None and status.log_head is None)


def change_of_generation(snapshot: Snapshot, schedule: Schedule, state: State, now: datetime) -> Step | None:
    """Return the Baseline that must come before anything else, or what a Baseline left to do.

    Source: contract R9, R10, R11, R19; P4, P6.
    """
    head = snapshot.head
    if head is None:
        if not _is_for_the_log(snapshot, state):
            return None
        start = first_watermark(snapshot, now=now)
        was = schedule.status.state if schedule.status else None
        reason = "Created" if _is_unseen(schedule) else _switch_reason(was, state)
        return Append(
            spec=log.baseline(
                snapshot,
                schedule=schedule,
                state=state,
                reason=reason,
                consumed_through=start,
                waiting=(),
                detail=_detail(snapshot, state, now),
            )
        )
    if head.spec.waiting:
        return Append(spec=log.superseded(snapshot, schedule=schedule, state=head.spec.state or state))
    changed = _baseline_reason(snapshot, head, schedule, state)
    if changed is None or not _is_for_the_log(snapshot, head.spec.state, state):
        return None
    since = _resumed_at(snapshot, head, schedule) if changed == _RESUMED else None
    consumed = max(filter(None, (head.spec.consumed_through_time, since or now.replace(microsecond=0))))
    before = head.spec.consumed_through_time
    displaced = tuple(at for at in snapshot.held if (before is None or at > before) and at <= consumed)
    return Append(
        spec=log.baseline(
            snapshot,
            schedule=schedule,
            state=state,
            reason=changed,
            consumed_through=consumed,
            waiting=displaced,
            given_up=_given_up(snapshot, head, schedule, consumed, displaced),
            detail=_detail(snapshot, state, now),
        )
    )


def _is_for_the_log(snapshot: Snapshot, *states: State | None) -> bool:
    """Tell whether a change between these states must be on record.

    A record that may still arrive could say that the schedule admits: the next one takes its place, or makes it known.

    Source: contract R11; P2.
    """
    return not _ADMITTING.isdisjoint(states) or snapshot.is_append_unanswered


def _detail(snapshot: Snapshot, state: State, now: datetime) -> str:
    paused = pause.why(snapshot, now=now) if state is State.PAUSED else None
    return paused[1] if paused else ""


def _resumed_at(snapshot: Snapshot, head: Record, schedule: Schedule) -> datetime | None:
    """Return when a pause ended by itself, or None to go on from now: a hold may hide in the definition's generations."""
    if definition_reason(snapshot.definition, head.spec) is not None:
        return None
    return pause.resumed_at(snapshot, head, schedule)


def _given_up(
    snapshot: Snapshot, head: Record, schedule: Schedule, until: datetime, displaced: tuple[datetime, ...]
) -> Verdict | None:
    """Return what else was due and undecided when the schedule changed, as far as its calendar is still known.

    Source: contract R10, R29; I3.
    """
    was, before = _as_of(head, schedule, snapshot.before_edit), head.spec.consumed_through_time
    if head.spec.state is not State.ACTIVE or was is None or before is None:
        return None
    verdict = accept(was)
    if isinstance(verdict, Refusal):
        return None
    if completion.runs_left(snapshot, verdict.spec) == 0:
        return completion.over_limit(snapshot, verdict, now=until)
    return undecided(verdict.trigger, after=before, until=until, besides=displaced)


def _as_of(head: Record, *known: Schedule | None) -> Schedule | None:
    """Return the schedule that the head was decided on, if it is among the known ones."""
    return next((each for each in known if each is not None and each.spec_hash == head.spec.spec_hash), None)


def _baseline_reason(snapshot: Snapshot, head: Record, schedule: Schedule, state: State) -> str | None:
    """Return why a Baseline is due, or None; compared with the head's own generation and contents, never with status."""
    was = head.spec.state
    if was is not state:
        return _switch_reason(was, state)
    steps = schedule.generation - (head.spec.generation or 0)
    if steps >= 1 and head.spec.spec_hash != schedule.spec_hash:
        return "Edited"
    if steps >= 2:
        return "Edited"  # a pause and a resume, or a disabling, may hide in a jump
    if state is State.PAUSED and (steps == 1 or pause.changes_by_failures(snapshot, head)):
        return "Paused"  # another end, or another cause: who resumes it must know of both (P6)
    if state is State.ACTIVE and pause.ended_unseen(head, schedule):
        return _RESUMED
    return definition_reason(snapshot.definition, head.spec)


def _switch_reason(was: State | None, state: State) -> str:
    return _INTO.get(state) or _OUT_OF.get(was) or "Enabled"


def definition_reason(
    definition: Definition | None, seen: ScheduleOccurrenceSpec | WorkflowScheduleStatus
) -> str | None:
    """Return why a Baseline is due by the definition, beside what the head saw of it (the status repeats that)."""
    if definition is None or seen.definition_uid is None:
        return None
    if definition.uid != seen.definition_uid:
        return "Released"
    return "Released" if definition.generation - (seen.definition_generation or 0) >= 2 else None
