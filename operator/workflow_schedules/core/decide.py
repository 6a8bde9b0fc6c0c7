"""Decide what to do about one schedule: the table of contents of the rules.

`decide` reads like the contract: runs first (they outlive edits, pauses and the schedule itself), then whether the schedule
admits at all, then the change of generation that must be on record before anything else, then what is due.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import State
from workflow_schedules.core import log
from workflow_schedules.core.acceptance import Accepted, Refusal, accept, template_of
from workflow_schedules.core.due_times import next_due_time
from workflow_schedules.core.jitter import Jitter
from workflow_schedules.core.job import template_problem
from workflow_schedules.core.misfire import Judgement, Misfire, Verdict, all_due, judge_due
from workflow_schedules.core.model import Append, LookAgain, Plan, ReadLog, Step
from workflow_schedules.core.overlap import Overlap, free_slots
from workflow_schedules.core.requests import has_news
from workflow_schedules.core.runs import decide_runs
from workflow_schedules.core.unblock import decide_blocked

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec
    from workflow_schedules.api.schedule import WorkflowScheduleStatus
    from workflow_schedules.core.model import Definition, Record, Schedule, Snapshot
    from workflow_schedules.core.triggers import Trigger

_ONE_SECOND = timedelta(seconds=1)
_INTO = {State.DISABLED: "Disabled", State.HELD: "Held", State.PAUSED: "Paused", State.BLOCKED: "Edited"}
_OUT_OF = {State.PAUSED: "Resumed", State.HELD: "Released", State.BLOCKED: "Edited"}


def decide(snapshot: Snapshot, *, now: datetime) -> Plan:
    """Decide the next write for a schedule, and when to look again.

    Args:
        snapshot: everything that is known of it.
        now: aware UTC.

    Source: contract R1, R4, R8 to R18, R31; P3, P4, P5, P11, P12.
    """
    if not snapshot.is_log_read:
        return Plan(step=ReadLog()) if _needs_log(snapshot, now) else Plan(next_wake_at=_next_from_status(snapshot))
    runs = decide_runs(snapshot, now=now)
    if runs.step is not None:
        return runs
    is_blocked = snapshot.contradiction is not None
    admission = _decide_blocked(snapshot, now) if is_blocked else _decide_admission(snapshot, now)
    return Plan(
        step=admission.step,
        next_wake_at=_earliest((runs.next_wake_at, admission.next_wake_at)),
        candidates=admission.candidates,
    )


def state_of(snapshot: Snapshot, verdict: Accepted | Refusal, *, now: datetime) -> State:
    """Return what the schedule is doing: the first state that applies.

    Source: contract section 2 (`state`), R1, R4, R18, R21.
    """
    schedule = snapshot.schedule
    if isinstance(verdict, Refusal) or snapshot.contradiction is not None or schedule is None:
        return State.BLOCKED
    if is_complete(snapshot, verdict, now=now):
        return State.COMPLETE
    return admission_state(snapshot, verdict)


def admission_state(snapshot: Snapshot, verdict: Accepted | Refusal) -> State:
    """Return the state that the log keeps: whether the schedule admits, by its spec, its own switch and its parent's."""
    if isinstance(verdict, Refusal):
        return State.BLOCKED
    if not verdict.spec.enabled:
        return State.DISABLED
    if hold_reason(snapshot, verdict) is not None:
        return State.HELD
    return State.ACTIVE


def hold_reason(snapshot: Snapshot, accepted: Accepted) -> str | None:
    """Return why the parent holds the schedule, or None.

    Source: contract R1, R4.
    """
    if accepted.spec.workflow_ref is None:
        return None
    definition = snapshot.definition
    if definition is None:
        return "WorkflowNotFound"
    if definition.template is None or template_problem(definition.template) is not None:
        return "WorkflowInvalid"
    return None if definition.is_enabled else "WorkflowDisabled"


def is_complete(snapshot: Snapshot, accepted: Accepted, *, now: datetime) -> bool:
    """Tell whether nothing will ever be due again and nothing waits.

    Source: contract R7, R21.
    """
    consumed = log.watermark(snapshot) or first_watermark(snapshot, now=now)
    return next_due_time(accepted.trigger, after=consumed) is None


def first_watermark(snapshot: Snapshot, *, now: datetime) -> datetime:
    """Return where the log starts: at creation, unless the schedule lived through something unseen.

    Source: contract R9, P4.
    """
    schedule = snapshot.schedule
    if schedule is not None and schedule.generation == 1 and schedule.status is None:
        return schedule.created_at
    stored = schedule.status.consumed_through_time if schedule and schedule.status else None
    return max(filter(None, (stored, now.replace(microsecond=0))))


def _needs_log(snapshot: Snapshot, now: datetime) -> bool:
    """Tell whether this schedule may need a write: only then its log is worth reading (P9)."""
    schedule = snapshot.schedule
    if snapshot.runs or schedule is None or schedule.status is None or schedule.status.log_head is None:
        return True
    status = schedule.status
    if (
        status.observed_generation != schedule.generation
        or status.candidates
        or status.active_count
        or status.state is None
        or has_news(snapshot.requested, status)
    ):
        return True
    verdict = accept(schedule)
    if isinstance(verdict, Refusal):
        return False
    state = state_of(snapshot, verdict, now=now)
    if state is not status.state and State.COMPLETE not in {state, status.state}:
        return True
    if state is State.ACTIVE and _definition_reason(snapshot.definition, status) is not None:
        return True
    at = _next_from_status(snapshot)
    return at is not None and at <= now


def _next_from_status(snapshot: Snapshot) -> datetime | None:
    schedule = snapshot.schedule
    if schedule is None or schedule.status is None or schedule.status.state is not State.ACTIVE:
        return None
    verdict = accept(schedule)
    consumed = schedule.status.consumed_through_time
    if isinstance(verdict, Refusal) or consumed is None:
        return None
    return next_due_time(verdict.trigger, after=consumed)


def _decide_blocked(snapshot: Snapshot, now: datetime) -> Plan:
    schedule = snapshot.schedule
    if schedule is None or schedule.is_deleting:
        return Plan()
    return decide_blocked(snapshot, schedule, state=admission_state(snapshot, accept(schedule)), now=now)


def _decide_admission(snapshot: Snapshot, now: datetime) -> Plan:
    schedule = snapshot.schedule
    if schedule is None or schedule.is_deleting:
        return Plan()
    if _is_behind_log(snapshot):
        return Plan(step=LookAgain())
    if log.unread_runs(snapshot):
        return Plan(step=ReadLog())
    verdict = accept(schedule)
    state = admission_state(snapshot, verdict)
    step = _change_of_generation(snapshot, schedule, state, now)
    if step is not None:
        return Plan(step=step)
    if isinstance(verdict, Refusal) or state is not State.ACTIVE:
        return Plan()
    return _decide_due(snapshot, schedule, verdict, now)


def _is_behind_log(snapshot: Snapshot) -> bool:
    """Tell whether the log knows a newer schedule or definition than this process (P5)."""
    head, schedule, definition = snapshot.head, snapshot.schedule, snapshot.definition
    if head is None or schedule is None:
        return False
    if (head.spec.generation or 0) > schedule.generation:
        return True
    return (
        definition is not None
        and head.spec.definition_uid == definition.uid
        and (head.spec.definition_generation or 0) > definition.generation
    )


def _change_of_generation(snapshot: Snapshot, schedule: Schedule, state: State, now: datetime) -> Step | None:
    """Return the Baseline that must come before anything else, or what a Baseline left to do.

    Source: contract R9, R10, R11, R19; P4, P6.
    """
    head = snapshot.head
    if head is None:
        if state is not State.ACTIVE:
            return None
        start = first_watermark(snapshot, now=now)
        reason = "Created" if schedule.status is None else _switch_reason(schedule.status.state, state)
        return Append(
            spec=log.baseline(
                snapshot, schedule=schedule, state=state, reason=reason, consumed_through=start, waiting=()
            )
        )
    if head.spec.waiting:
        return Append(spec=log.superseded(snapshot, schedule=schedule, state=head.spec.state or state))
    changed = _baseline_reason(snapshot, head, schedule, state)
    if changed is None or State.ACTIVE not in {head.spec.state, state}:
        return None
    consumed = max(filter(None, (head.spec.consumed_through_time, now.replace(microsecond=0))))
    before = head.spec.consumed_through_time
    displaced = tuple(at for at in snapshot.held if before is None or at > before)
    unrecorded_until = displaced[0] - _ONE_SECOND if displaced else consumed
    return Append(
        spec=log.baseline(
            snapshot,
            schedule=schedule,
            state=state,
            reason=changed,
            consumed_through=consumed,
            waiting=displaced,
            given_up=_given_up(head, schedule, unrecorded_until),
        )
    )


def _given_up(head: Record, schedule: Schedule, until: datetime) -> Verdict | None:
    """Return the instants that were due and undecided when the schedule changed, as far as its calendar is still known."""
    verdict, before = accept(schedule), head.spec.consumed_through_time
    was_due = head.spec.state is State.ACTIVE and head.spec.spec_hash == schedule.spec_hash
    if not was_due or before is None or isinstance(verdict, Refusal):
        return None
    return all_due(verdict.trigger, before, until, Decision.SUPERSEDED)


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
    return _definition_reason(snapshot.definition, head.spec)


def _switch_reason(was: State | None, state: State) -> str:
    return _INTO.get(state) or (_OUT_OF.get(was) if was else None) or "Enabled"


def _definition_reason(
    definition: Definition | None, seen: ScheduleOccurrenceSpec | WorkflowScheduleStatus
) -> str | None:
    """Return why a Baseline is due by the definition, beside what the head saw of it (the status repeats that)."""
    if definition is None or seen.definition_uid is None:
        return None
    if definition.uid != seen.definition_uid:
        return "Released"
    return "Released" if definition.generation - (seen.definition_generation or 0) >= 2 else None


def _decide_due(snapshot: Snapshot, schedule: Schedule, accepted: Accepted, now: datetime) -> Plan:
    misfire, overlap = Misfire.of(accepted.spec), Overlap.of(accepted.spec)
    consumed = log.watermark(snapshot) or first_watermark(snapshot, now=now)
    slots = free_slots(overlap, active_runs=len(log.open_runs(snapshot.runs)))
    jitter = Jitter.of(schedule.uid, accepted.spec)
    judgement = judge_due(accepted.trigger, misfire, after=consumed, now=now, free_slots=slots, jitter=jitter)
    waiting = tuple(at for at in (judgement.candidate, judgement.spread) if at is not None)
    if judgement.verdict is not None:
        return Plan(step=_append(snapshot, schedule, judgement.verdict, now), candidates=waiting)
    at = _next_wake(accepted.trigger, misfire, judgement, jitter, max(consumed, now.replace(microsecond=0)))
    return Plan(next_wake_at=at, candidates=waiting)


def _append(snapshot: Snapshot, schedule: Schedule, verdict: Verdict, now: datetime) -> Append:
    template = template_of(schedule, snapshot.definition) if verdict.decision is Decision.ADMITTED else None
    record = log.verdict_record(
        snapshot,
        schedule=schedule,
        verdict=verdict,
        message=log.verdict_message(snapshot, verdict, now=now),
        template=template,
    )
    return Append(spec=record, template=template)


def _next_wake(
    trigger: Trigger, misfire: Misfire, judgement: Judgement, jitter: Jitter, after: datetime
) -> datetime | None:
    if judgement.spread is not None:
        starts: datetime | None = jitter.start_of(judgement.spread, trigger)
    else:
        starts = next_due_time(trigger, after=after)  # though it waits for its jitter: from here on it is a candidate
    expiry = None
    if judgement.candidate is not None and misfire.deadline is not None:
        expiry = jitter.start_of(judgement.candidate, trigger) + misfire.deadline + _ONE_SECOND
    return _earliest((starts, expiry))


def _earliest(times: Iterable[datetime | None]) -> datetime | None:
    return min((at for at in times if at is not None), default=None)
