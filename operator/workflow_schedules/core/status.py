"""The schedule's status: a projection of the log, computed only when it is about to be written."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, assert_never

from workflow_schedules.api.common import Condition, ConditionStatus, set_condition
from workflow_schedules.api.schedule import (
    Counts,
    OccurrenceOutcome,
    RecentOccurrence,
    State,
    WorkflowScheduleSpec,
    WorkflowScheduleStatus,
)
from workflow_schedules.core import completion, log, pause
from workflow_schedules.core.acceptance import Accepted, accept, definition_problem
from workflow_schedules.core.baselines import change_of_generation, first_watermark
from workflow_schedules.core.decide import admission_state, hold_reason, state_of
from workflow_schedules.core.due_times import due_times
from workflow_schedules.core.ending import RUNS_HEALTHY, run_problem
from workflow_schedules.core.model import RefusedBy
from workflow_schedules.core.refusals import Refusal
from workflow_schedules.core.requests import last_successful_time, merge_recent
from workflow_schedules.core.template_fields import unknown_problem
from workflow_schedules.core.template_told import TEMPLATE_REJECTED, UNKNOWN_FIELDS, told_of_template
from workflow_schedules.core.totals import totals_now
from workflow_schedules.core.unblock import blocked_message
from workflow_schedules.core.zones import LAST_SECOND, to_utc

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.api.occurrence import Totals
    from workflow_schedules.core.model import RecordRefusal, Schedule, Snapshot

_MAX_ACTIVE = 50
_MAX_NEXT = 5
_FROM_LOG = ("last_schedule_time", "consecutive_failures", "counts")


def project(
    snapshot: Snapshot,
    schedule: Schedule,
    *,
    recent: tuple[RecentOccurrence, ...],
    candidates: tuple[datetime, ...],
    now: datetime,
) -> WorkflowScheduleStatus:
    """Return the status that says what the log says; where the log can't take a change, that and nothing else is new.

    Args:
        snapshot: of an existing schedule, its log read.
        schedule: the snapshot's.
        recent: newest decisions first, Baselines left out.
        candidates: instants retained, not yet admitted.
        now: aware UTC.

    Source: contract section 2 (`status`), R29; performance (late and merged).
    """
    if snapshot.record_refusal is not None and is_change_unrecorded(snapshot, schedule, now=now):
        return _still(snapshot, schedule, now)
    verdict = accept(schedule, snapshot.definition)
    state = state_of(snapshot, verdict, now=now)
    totals = totals_now(snapshot.head, snapshot.runs)
    active = [run.record.ref.name for run in log.open_runs(snapshot.runs)]
    upcoming = _upcoming(snapshot, verdict, state, now)
    before = schedule.status or WorkflowScheduleStatus()
    revision = log.revision_now(snapshot, schedule)
    recent = merge_recent(recent, snapshot.requested)
    newest = recent[0] if recent else None
    head = snapshot.head.spec if snapshot.head else None
    status = WorkflowScheduleStatus(
        observed_generation=schedule.generation,
        revision=revision,
        revision_time=before.revision_time if before.revision == revision else now,
        spec_hash=schedule.spec_hash or None,
        log_head=max(snapshot.head.number if snapshot.head else 0, before.log_head or 0),  # never back (P7)
        definition_uid=head.definition_uid if head else before.definition_uid,
        definition_generation=head.definition_generation if head else before.definition_generation,
        fencing_epoch=snapshot.writer.epoch,
        writer=snapshot.writer.identity,
        lease=snapshot.writer.lease,
        consumed_through_time=_consumed_through(snapshot, schedule, now),
        schedule_text=_schedule_text(schedule.spec),
        next_schedule_time=upcoming[0] if upcoming else None,
        next_schedule_times=upcoming,
        last_schedule_time=totals.last_schedule_time,
        last_occurrence=OccurrenceOutcome(name=newest.name, outcome=newest.outcome or newest.decision)
        if newest
        else None,
        last_successful_time=last_successful_time(snapshot),
        last_failure_time=_last_failure_time(snapshot, totals),
        consecutive_failures=totals.consecutive_failures,
        active=tuple(active[:_MAX_ACTIVE]),
        active_count=len(active),
        candidates=candidates if state is State.ACTIVE else (),
        counts=Counts(**{name: getattr(totals, name) for name in Counts.model_fields}),
        recent=recent,
        state=state,
        conditions=_conditions(snapshot, schedule, verdict, state, now),
    )
    if head is None and before.log_head:  # the log can't be read: what it said last stays
        return status.model_copy(update={name: getattr(before, name) for name in _FROM_LOG})
    return status


def is_change_unrecorded(snapshot: Snapshot, schedule: Schedule, *, now: datetime) -> bool:
    """Tell whether a change still waits for its Baseline, before which nothing of it may show (R11)."""
    if snapshot.contradiction is not None:
        return False
    state = admission_state(snapshot, accept(schedule, snapshot.definition), now=now)
    return change_of_generation(snapshot, schedule, state, now) is not None


def _still(snapshot: Snapshot, schedule: Schedule, now: datetime) -> WorkflowScheduleStatus:
    """Return the stored status, and that the log does not go on."""
    before = schedule.status or WorkflowScheduleStatus()
    new = _condition(_runs_healthy(snapshot, now), schedule)
    return before.model_copy(
        update={
            "conditions": set_condition(before.conditions, new, now),
            "fencing_epoch": snapshot.writer.epoch,
            "writer": snapshot.writer.identity,
            "lease": snapshot.writer.lease,
        }
    )


def _consumed_through(snapshot: Snapshot, schedule: Schedule, now: datetime) -> datetime | None:
    stored = schedule.status.consumed_through_time if schedule.status else None
    known = [at for at in (stored, log.watermark(snapshot)) if at is not None]
    return max(known) if known else first_watermark(snapshot, now=now)


def _last_failure_time(snapshot: Snapshot, totals: Totals) -> datetime | None:
    """Return when a run last ended otherwise; as far as it is known, since requests may be deleted by anyone."""
    status = snapshot.schedule.status if snapshot.schedule else None
    stored = status.last_failure_time if status else None
    known = (totals.last_failure_time, snapshot.requested.last_failure_time, stored)
    return max((at for at in known if at is not None), default=None)


def _schedule_text(spec: WorkflowScheduleSpec | None) -> str | None:
    if spec is None:
        return None
    expressions = spec.schedules or ((spec.schedule,) if spec.schedule is not None else ())
    if expressions:
        return "; ".join(" ".join(expression.split()) for expression in expressions)[:1024]
    return f"once {spec.run_once_time}" if spec.run_once_time else None


def _upcoming(snapshot: Snapshot, verdict: Accepted | Refusal, state: State, now: datetime) -> tuple[datetime, ...]:
    if state is not State.ACTIVE or isinstance(verdict, Refusal):
        return ()
    after = max(filter(None, (log.watermark(snapshot), now)))
    left = completion.runs_left(snapshot, verdict.spec)
    count = _MAX_NEXT if left is None else min(left, _MAX_NEXT)
    return tuple(islice(due_times(verdict.trigger, after=after, until=to_utc(LAST_SECOND)), count))


def _conditions(
    snapshot: Snapshot, schedule: Schedule, verdict: Accepted | Refusal, state: State, now: datetime
) -> tuple[Condition, ...]:
    conditions = schedule.status.conditions if schedule.status else ()
    for row in (
        _accepted(verdict),
        _ready(snapshot, verdict, state),
        _stalled(snapshot, verdict),
        _runs_healthy(snapshot, now),
        _paused(snapshot, now),
        _parent_enabled(snapshot, verdict),
        _complete(snapshot, verdict, state),
    ):
        conditions = set_condition(conditions, _condition(row, schedule), now)
    return conditions


_Row = tuple[str, bool, str, str]


def _condition(row: _Row, schedule: Schedule) -> Condition:
    kind, is_true, reason, message = row
    return Condition(
        type=kind,
        status=ConditionStatus.TRUE if is_true else ConditionStatus.FALSE,
        reason=reason,
        message=message[:32768],
        observed_generation=schedule.generation,
    )


def _accepted(verdict: Accepted | Refusal) -> _Row:
    if isinstance(verdict, Refusal):
        return ("Accepted", False, verdict.reason, verdict.message)
    return ("Accepted", True, "Valid", "; ".join(verdict.warnings))


def _ready(snapshot: Snapshot, verdict: Accepted | Refusal, state: State) -> _Row:
    if isinstance(verdict, Refusal):
        return ("Ready", False, verdict.reason, verdict.message)
    if snapshot.contradiction is not None:
        return ("Ready", False, "Blocked", blocked_message(snapshot))
    held = _parent_enabled(snapshot, verdict)[3] if state is State.HELD else ""
    return ("Ready", True, str(state), held)


def _stalled(snapshot: Snapshot, verdict: Accepted | Refusal) -> _Row:
    if isinstance(verdict, Refusal):
        return ("Stalled", True, verdict.reason, verdict.message)
    if snapshot.contradiction is not None:
        return ("Stalled", True, "Blocked", blocked_message(snapshot))
    return ("Stalled", False, "Progressing", "")


def _runs_healthy(snapshot: Snapshot, now: datetime) -> _Row:
    if snapshot.record_refusal is not None:  # the first to mend: until then nothing of this schedule goes on
        return (RUNS_HEALTHY, False, "RecordNotCreated", _not_created(snapshot, snapshot.record_refusal))
    for run in (*log.open_runs(snapshot.runs), *snapshot.requested_runs):
        if (problem := run_problem(run, now)) is not None:
            reason, message = problem
            return (RUNS_HEALTHY, False, reason, f"{run.record.ref.name}: {message}")
    if snapshot.told_since is not None and (told := _told_before(snapshot, snapshot.told_since)) is not None:
        return told
    unknown = _unknown_fields(snapshot)
    if snapshot.template_refusal is not None:
        said = "; ".join(filter(None, (snapshot.template_refusal, unknown)))
        return (RUNS_HEALTHY, False, TEMPLATE_REJECTED, said)
    if unknown:
        return (RUNS_HEALTHY, False, UNKNOWN_FIELDS, unknown)
    return (RUNS_HEALTHY, True, "Healthy", "")


def _told_before(snapshot: Snapshot, since: int) -> _Row | None:
    """Return what the status says of this same template: another leader was told, and the answer may be the same."""
    told = told_of_template(snapshot.schedule.status if snapshot.schedule else None)
    if told is None or (told.observed_generation or 0) < since:
        return None
    return (RUNS_HEALTHY, False, told.reason, told.message)


def _unknown_fields(snapshot: Snapshot) -> str:
    spec = snapshot.schedule.spec if snapshot.schedule else None
    if spec is None or not snapshot.unknown_fields:
        return ""
    return unknown_problem(snapshot.unknown_fields, spec.workflow_ref.name if spec.workflow_ref else None)


def _not_created(snapshot: Snapshot, refusal: RecordRefusal) -> str:
    """Return what the API server said, and what would help (R36)."""
    match refusal.by:
        case RefusedBy.NAMESPACE_END:
            advice = "nothing can be created in a namespace that is being deleted, so nothing is started here any more"
        case RefusedBy.QUOTA:
            advice = "nothing is started before that quota is raised, or objects that it counts are removed"
        case RefusedBy.OTHER:
            advice = (
                "nothing is started before the API server takes it; see what the webhook or policy that it names wants"
            )
        case _:
            assert_never(refusal.by)
    return f"record {log.next_number(snapshot.head)} of this schedule can't be created: {refusal.words}; {advice}"


def _paused(snapshot: Snapshot, now: datetime) -> _Row:
    why = pause.why(snapshot, now=now)
    return (pause.CONDITION, True, *why) if why else (pause.CONDITION, False, "NotPaused", "")


def _parent_enabled(snapshot: Snapshot, verdict: Accepted | Refusal) -> _Row:
    if isinstance(verdict, Refusal):
        return ("ParentEnabled", True, "Unknown", "")
    if verdict.spec.workflow_ref is None:
        return ("ParentEnabled", True, "NoParent", "")
    reason = hold_reason(snapshot, verdict)
    name = verdict.spec.workflow_ref.name
    match reason:
        case None:
            return ("ParentEnabled", True, "WorkflowEnabled", "")
        case "WorkflowNotFound":
            return (
                "ParentEnabled",
                False,
                reason,
                f"WorkflowDefinition {name} does not exist in this namespace; apply it",
            )
        case "WorkflowDisabled":
            return ("ParentEnabled", False, reason, f"WorkflowDefinition {name} has enabled: false; enable it")
        case _:
            problem = definition_problem(snapshot.definition) if snapshot.definition else None
            return ("ParentEnabled", False, reason, f"WorkflowDefinition {name} can't be used: {problem}")


def _complete(snapshot: Snapshot, verdict: Accepted | Refusal, state: State) -> _Row:
    if state is not State.COMPLETE or isinstance(verdict, Refusal):
        return ("Complete", False, "NotComplete", "")
    return ("Complete", True, *completion.why(snapshot, verdict))
