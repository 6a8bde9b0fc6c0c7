"""Decide what to do about one schedule: the table of contents of the rules.

`decide` reads like the contract: runs first (they outlive edits, pauses and the schedule itself), then whether the schedule
admits at all, then the change of generation that must be on record before anything else, then what is due.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import State
from workflow_schedules.core import completion, forgotten, log, pause
from workflow_schedules.core.acceptance import Accepted, accept, definition_problem, template_of
from workflow_schedules.core.baselines import change_of_generation, definition_reason, first_watermark
from workflow_schedules.core.capacity import capacity_exceeded
from workflow_schedules.core.due_times import next_due_time
from workflow_schedules.core.ending import run_problem, says_unhealthy
from workflow_schedules.core.jitter import Jitter
from workflow_schedules.core.misfire import Judgement, Misfire, Verdict, judge_due
from workflow_schedules.core.overlap import Overlap, free_slots, freed_places
from workflow_schedules.core.plan import Append, LookAgain, Plan, ReadLog
from workflow_schedules.core.preflight import Rejection, preflight
from workflow_schedules.core.refusals import Refusal
from workflow_schedules.core.requests import has_news
from workflow_schedules.core.runs import decide_runs
from workflow_schedules.core.unblock import decide_blocked
from workflow_schedules.core.zones import moved

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from workflow_schedules.core.model import Schedule, Snapshot
    from workflow_schedules.core.triggers import Trigger

_ONE_SECOND = timedelta(seconds=1)


def decide(snapshot: Snapshot, *, now: datetime) -> Plan:
    """Decide the next write for a schedule, and when to look again.

    Args:
        snapshot: everything that is known of it.
        now: aware UTC.

    Source: contract R1, R4, R8 to R21, R25, R28, R31; P3, P4, P5, P6, P11, P12.
    """
    if not snapshot.is_log_read:
        return (
            Plan(step=ReadLog()) if _needs_log(snapshot, now) else Plan(next_wake_at=_next_from_status(snapshot, now))
        )
    runs = decide_runs(snapshot, now=now)
    if runs.step is not None:
        return runs
    is_blocked = snapshot.contradiction is not None
    admission = _decide_blocked(snapshot, now) if is_blocked else _decide_admission(snapshot, now)
    return replace(admission, next_wake_at=_earliest((runs.next_wake_at, admission.next_wake_at)))


def state_of(snapshot: Snapshot, verdict: Accepted | Refusal, *, now: datetime) -> State:
    """Return what the schedule is doing: the first state that applies.

    Source: contract section 2 (`state`), R1, R4, R18, R19, R21.
    """
    if isinstance(verdict, Refusal) or snapshot.contradiction is not None:
        return State.BLOCKED
    if is_complete(snapshot, verdict, now=now):
        return State.COMPLETE
    return admission_state(snapshot, verdict, now=now)


def admission_state(snapshot: Snapshot, verdict: Accepted | Refusal, *, now: datetime) -> State:
    """Return the state that the log keeps: whether the schedule admits, by its spec, its switch, its parent's, its pauses."""
    if isinstance(verdict, Refusal):
        return State.BLOCKED
    if not verdict.spec.enabled:
        return State.DISABLED
    if hold_reason(snapshot, verdict) is not None:
        return State.HELD
    return State.PAUSED if pause.is_paused(snapshot, now=now) else State.ACTIVE


def hold_reason(snapshot: Snapshot, accepted: Accepted) -> str | None:
    """Return why the parent holds the schedule, or None.

    Source: contract R1, R4.
    """
    if accepted.spec.workflow_ref is None:
        return None
    definition = snapshot.definition
    if definition is None:
        return "WorkflowNotFound"
    if definition_problem(definition) is not None:
        return "WorkflowInvalid"
    return None if definition.is_enabled else "WorkflowDisabled"


def is_complete(snapshot: Snapshot, accepted: Accepted, *, now: datetime) -> bool:
    """Tell whether nothing will ever be due again and nothing waits.

    Source: contract R7, R21.
    """
    if completion.runs_left(snapshot, accepted.spec) == 0:
        return True
    consumed = log.watermark(snapshot) or first_watermark(snapshot, now=now)
    if admission_state(snapshot, accepted, now=now) is not State.ACTIVE:
        consumed = max(consumed, now)  # what passes meanwhile is never run (R9)
    return next_due_time(accepted.trigger, after=consumed) is None


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
        or has_news(snapshot.requested, status)
        or says_unhealthy(status)
        or any(run_problem(run, now) for run in snapshot.requested_runs)
    ):
        return True
    verdict = accept(schedule, snapshot.definition)
    if isinstance(verdict, Refusal):
        return status.state is not State.BLOCKED  # its definition's schema may have changed unseen
    state = state_of(snapshot, verdict, now=now)
    is_told = state is status.state or {state, status.state} == {State.ACTIVE, State.COMPLETE}
    if not is_told or pause.is_shown_wrong(snapshot, status, now=now):
        return True
    if state is State.ACTIVE and definition_reason(snapshot.definition, status) is not None:
        return True
    at = _next_from_status(snapshot, now)
    return at is not None and at <= now


def _next_from_status(snapshot: Snapshot, now: datetime) -> datetime | None:
    schedule = snapshot.schedule
    if schedule is None or schedule.status is None:
        return None
    verdict = accept(schedule, snapshot.definition)
    consumed = schedule.status.consumed_through_time
    if isinstance(verdict, Refusal) or consumed is None:
        return None
    if schedule.status.state is not State.ACTIVE:
        return _idle_until(snapshot, verdict, now)
    return next_due_time(verdict.trigger, after=consumed)


def _decide_blocked(snapshot: Snapshot, now: datetime) -> Plan:
    schedule = snapshot.schedule
    if schedule is None or schedule.is_deleting:
        return Plan()
    return decide_blocked(
        snapshot, schedule, state=admission_state(snapshot, accept(schedule, snapshot.definition), now=now), now=now
    )


def _decide_admission(snapshot: Snapshot, now: datetime) -> Plan:
    schedule = snapshot.schedule
    if schedule is None or schedule.is_deleting:
        return Plan()
    if _is_behind_log(snapshot):
        return Plan(step=LookAgain())
    if log.unread_runs(snapshot):
        return Plan(step=ReadLog())
    verdict = accept(schedule, snapshot.definition)
    state = admission_state(snapshot, verdict, now=now)
    step = change_of_generation(snapshot, schedule, state, now)
    if step is not None:
        return Plan(step=step)
    return Plan() if isinstance(verdict, Refusal) else _decide_unchanged(snapshot, schedule, verdict, state, now)


def _decide_unchanged(snapshot: Snapshot, schedule: Schedule, accepted: Accepted, state: State, now: datetime) -> Plan:
    if state is not State.ACTIVE:
        return Plan(next_wake_at=_idle_until(snapshot, accepted, now))
    if completion.runs_left(snapshot, accepted.spec) == 0:
        return _decide_used_up(snapshot, schedule, accepted, now)
    restored = forgotten.consumed(snapshot, schedule, accepted, state, now)
    if restored is not None:
        return Plan(step=restored)
    return _decide_due(snapshot, schedule, accepted, now)


def _idle_until(snapshot: Snapshot, accepted: Accepted, now: datetime) -> datetime | None:
    """Return when a schedule that doesn't admit changes by itself: its pause ends, or its calendar does (R19, R21)."""
    return _earliest((pause.ends_at(snapshot, now=now), completion.calendar_ends_at(accepted, after=now)))


def _decide_used_up(snapshot: Snapshot, schedule: Schedule, accepted: Accepted, now: datetime) -> Plan:
    """Decide nothing more once `runLimit` is used, but for what was already due then: that is said on record (R21, I3)."""
    verdict = completion.over_limit(snapshot, accepted, now=now)
    if verdict is None:
        return Plan()
    step = _append(snapshot, schedule, verdict, now, has_slot=False)
    return Plan(step=replace(step, spec=step.spec.model_copy(update={"reason": completion.RUN_LIMIT_REACHED})))


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


def _decide_due(snapshot: Snapshot, schedule: Schedule, accepted: Accepted, now: datetime) -> Plan:
    misfire, overlap = Misfire.of(accepted.spec), Overlap.of(accepted.spec)
    consumed = log.watermark(snapshot) or first_watermark(snapshot, now=now)
    active = len(log.open_runs(snapshot.runs))
    slots = free_slots(overlap, active_runs=active)
    left = completion.runs_left(snapshot, accepted.spec)
    slots = slots if left is None else min(slots, left)
    room = (
        slots
        if snapshot.capacity is None
        else min(slots, snapshot.capacity + freed_places(overlap, active_runs=active))
    )
    jitter = Jitter.of(schedule.uid, accepted.spec)
    judgement = judge_due(accepted.trigger, misfire, after=consumed, now=now, free_slots=room, jitter=jitter)
    waiting = (*judgement.candidates, *filter(None, (judgement.spread,)))
    if judgement.verdict is not None:
        return Plan(step=_append(snapshot, schedule, judgement.verdict, now, has_slot=slots > 0), candidates=waiting)
    at = _next_wake(accepted.trigger, misfire, judgement, jitter, max(consumed, now.replace(microsecond=0)))
    return Plan(next_wake_at=at, candidates=waiting, waits_for_place=bool(judgement.candidates) and slots > 0)


def _append(snapshot: Snapshot, schedule: Schedule, verdict: Verdict, now: datetime, *, has_slot: bool) -> Append:
    if verdict.decision is Decision.ADMITTED:
        return _admit(snapshot, schedule, verdict, now)
    message = log.verdict_message(snapshot, verdict, now=now)
    record = log.verdict_record(snapshot, schedule=schedule, verdict=verdict, message=message, template=None)
    if has_slot and verdict.decision is Decision.SKIPPED_OVERLAP:  # so it was not this schedule's own runs
        record = capacity_exceeded(record, snapshot)
    return Append(spec=record)


def _admit(snapshot: Snapshot, schedule: Schedule, verdict: Verdict, now: datetime) -> Append:
    """Admit an instant with its real input, or consume it by a rejection (R24)."""
    judged = preflight(snapshot, schedule, scheduled_time=verdict.last)
    if isinstance(judged, Rejection):
        rejected = replace(verdict, decision=Decision.PREFLIGHT_REJECTED)
        return Append(
            spec=log.verdict_record(
                snapshot,
                schedule=schedule,
                verdict=rejected,
                message=judged.message,
                template=None,
                reason=judged.reason,
            )
        )
    template = template_of(schedule, snapshot.definition)
    record = log.verdict_record(
        snapshot,
        schedule=schedule,
        verdict=verdict,
        message=log.verdict_message(snapshot, verdict, now=now),
        template=template,
        input_json=judged.input_json,
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
    if judgement.candidates and misfire.deadline is not None:
        expiry = moved(jitter.start_of(judgement.candidates[0], trigger), misfire.deadline + _ONE_SECOND)
    return _earliest((starts, expiry))


def _earliest(times: Iterable[datetime | None]) -> datetime | None:
    return min((at for at in times if at is not None), default=None)
