"""Go on behind a record that can't be read or contradicts: what is kept, what is closed, and the Baseline that begins anew.

A person has named that record (R31). A log whose newest `Unblocked` Baseline has number n is read from n on: whatever is
wrong below n is set aside. When to do so is decide's business, how to list and write cluster's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from workflow_schedules.api.common import parse_utc
from workflow_schedules.api.names import ANNOTATION_UNBLOCK
from workflow_schedules.api.occurrence import (
    Cause,
    Decision,
    ScheduleOccurrenceSpec,
    ScheduleOccurrenceStatus,
    ScheduleRef,
    Totals,
)
from workflow_schedules.api.schedule import Counts, State
from workflow_schedules.core import log
from workflow_schedules.core.acceptance import Accepted, accept
from workflow_schedules.core.listed import UNBLOCKED, Listed, follows, in_force
from workflow_schedules.core.misfire import Verdict, all_due
from workflow_schedules.core.model import Job, JobPhase, Record, Run
from workflow_schedules.core.outcome import ended_without_job, outcome_due
from workflow_schedules.core.plan import Plan, Unblock
from workflow_schedules.core.runs import SETTLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from workflow_schedules.core.model import ObjectRef, Schedule, Snapshot, Writer

_ONE_SECOND = timedelta(seconds=1)
_ENDED = frozenset({JobPhase.COMPLETED, JobPhase.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The outcome of a run that is set aside."""

    listed: Listed
    status: ScheduleOccurrenceStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """What to write: first the closings, then the Baseline.

    Attributes:
        runs: the records that the Baseline calls open.
        waits_for: a Job that still runs for what is set aside; nothing may be written before its end.
        known_generation: of the schedule, as the last record to trust saw it (P5).
    """

    spec: ScheduleOccurrenceSpec
    runs: tuple[Record, ...]
    closings: tuple[Closing, ...]
    waits_for: ObjectRef | None
    known_generation: int | None


def decide_blocked(snapshot: Snapshot, schedule: Schedule, *, state: State, now: datetime) -> Plan:
    """Decide whether the record that blocks is to be set aside now.

    Not while a Job create of an earlier holder may still arrive, or one of ours: it would belong to no run (P12).

    Source: contract R31.
    """
    if schedule.unblock is None or schedule.unblock != snapshot.blocked_by:
        return Plan()
    if snapshot.waits_for is not None and _is_running(snapshot.waits_for):
        return Plan()
    if snapshot.since_acquired <= SETTLE:
        return Plan(next_wake_at=now + (SETTLE - snapshot.since_acquired) + _ONE_SECOND)
    if any(run.is_create_unanswered or run.is_outcome_unanswered for run in snapshot.runs):
        return Plan(next_wake_at=now + _ONE_SECOND)
    return Plan(step=Unblock(record=schedule.unblock, state=state))


def blocked_message(snapshot: Snapshot) -> str:
    """Return why a schedule is blocked and what would help, for its conditions."""
    schedule, why, record = snapshot.schedule, snapshot.contradiction or "", snapshot.blocked_by
    if schedule is None or record is None:
        return why
    if schedule.unblock is None:
        return f"{why}; to set it aside: {_command(schedule, record)}"
    if schedule.unblock != record:
        return (
            f"{why}; the annotation {ANNOTATION_UNBLOCK} names {schedule.unblock}, which does not block: write {record}"
        )
    if snapshot.waits_for is not None:
        return (
            f"{why}; it is set aside when its Job {snapshot.waits_for.ref.name} has ended; delete that to go on at once"
        )
    return f"{why}; it is set aside as soon as no write of an earlier holder can arrive"


def _command(schedule: Schedule, record: str) -> str:
    return f"kubectl annotate wfs -n {schedule.ref.namespace} {schedule.ref.name} {ANNOTATION_UNBLOCK}={record}"


def set_aside(
    snapshot: Snapshot,
    schedule: Schedule,
    listed: Iterable[Listed],
    jobs: Callable[[ObjectRef], Job | None],
    *,
    step: Unblock,
    now: datetime,
) -> SetAside:
    """Return how the log goes on behind the record that blocks, and behind everything else that is wrong by then.

    The next decision gets what the last record to trust knew; runs that have a Job keep their slot, whoever called them open;
    numbers go on behind the highest one that was ever seen.

    Source: contract R31, P3, P4.
    """
    listed = list(listed)
    part = in_force(listed)
    head = _last_to_trust(part, step.record)
    concerned = [*_open_before(listed, part, head), *part]
    kept = [each for each in concerned if _is_kept(each, head, jobs(each.ref), step.record)]
    lost = [each for each in concerned if each.is_open and each not in kept]
    closings = tuple(_closing(each, _own(each, jobs(each.ref)), snapshot.writer, now) for each in lost)
    known = replace(snapshot, head=head, runs=_runs(concerned, kept, closings))
    spec = _baseline(known, schedule, part, kept, step, now)
    return SetAside(
        spec=spec,
        runs=tuple(each.record for each in kept if each.record is not None),
        closings=closings,
        waits_for=_running_job(lost, part, schedule, jobs, step.record),
        known_generation=head.spec.generation if head else None,
    )


def _last_to_trust(part: list[Listed], blocking: str) -> Record | None:
    """Return the newest readable record before the first broken link; a record that can't be read breaks none."""
    head: Record | None = None
    for each in _chain(part):
        if each.record is not None and each.ref.name != blocking:
            head = each.record
    return head


def _open_before(listed: list[Listed], part: list[Listed], head: Record | None) -> list[Listed]:
    """Return the runs that an earlier setting aside kept open, and that the last record to trust still calls so."""
    still_open = head.spec.open if head else ()
    return [each for each in listed if each.number in still_open and each not in part]


def _chain(part: list[Listed]) -> list[Listed]:
    """Return what comes before the first broken link."""
    broken = (index for index, (before, each) in enumerate(pairwise(part), start=1) if not follows(before, each))
    return part[: next(broken, None)]


def _admitted_behind(part: list[Listed], kept: list[Listed], number: int) -> int:
    """Return how many runs were admitted behind a number: a limit counts what is set aside, too, as far as it was the log's."""
    own = {each.number for each in (*_chain(part), *kept) if each.is_admission}
    return sum(each > number for each in own)


def _is_kept(each: Listed, head: Record | None, job: Job | None, blocking: str) -> bool:
    """Tell whether a run goes on: one that the last record to trust calls open, or that has its Job."""
    if each.record is None or not each.is_open:
        return False
    if _own(each, job) is not None:
        return True
    return head is not None and each.number in head.spec.open and each.ref.name != blocking


def _own(each: Listed, job: Job | None) -> Job | None:
    return job if job is not None and job.owner_uid == each.uid and not job.is_gone else None


def _running_job(
    lost: list[Listed],
    part: list[Listed],
    schedule: Schedule,
    jobs: Callable[[ObjectRef], Job | None],
    blocking: str,
) -> ObjectRef | None:
    """Return the Job that must end first: it would overlap with what is admitted next."""
    found = [_own(each, jobs(each.ref)) for each in lost]
    if blocking not in {each.ref.name for each in part}:
        found.append(jobs(replace(schedule.ref, name=blocking)))  # the record is gone, its Job may not be
    return next((job.ref for job in found if job is not None and _is_running(job)), None)


def _is_running(job: Job) -> bool:
    return not job.is_gone and job.phase not in _ENDED


def _closing(each: Listed, job: Job | None, writer: Writer, now: datetime) -> Closing:
    record = each.record or _stand_in(each)
    ended = outcome_due(Run(record=record, job=job), now=now, writer=writer)
    unknown = ended_without_job(
        record,
        reason="SetAside",
        message="set aside on request: outcome unknown, external effects may already have happened; it is not run again",
        now=now,
        writer=writer,
    )
    return Closing(listed=each, status=ended or unknown)


def _stand_in(each: Listed) -> Record:
    """Return what can be said of a record that can't be read."""
    return Record(
        ref=each.ref,
        uid=each.uid,
        resource_version=each.resource_version,
        created_at=each.created_at,
        spec=ScheduleOccurrenceSpec.model_construct(
            cause=Cause.SCHEDULED, schedule_ref=ScheduleRef.model_construct(name=""), sequence=each.number
        ),
        status=ScheduleOccurrenceStatus(),
    )


def _runs(concerned: list[Listed], kept: list[Listed], closings: tuple[Closing, ...]) -> tuple[Run, ...]:
    """Return what is known of the runs, as they will be when those are closed that go on no more."""
    going_on = {each.number for each in kept}
    readable = [Run(record=each.record) for each in concerned if each.record is not None]
    closed = [replace(each.listed.record or _stand_in(each.listed), status=each.status) for each in closings]
    return (
        *(run for run in readable if run.is_finished or run.record.number in going_on),
        *(Run(record=record) for record in closed),
    )


def _baseline(
    known: Snapshot, schedule: Schedule, part: list[Listed], kept: list[Listed], step: Unblock, now: datetime
) -> ScheduleOccurrenceSpec:
    head = known.head
    consumed = max(filter(None, (_watermark(head), _stored_watermark(schedule), parse_utc(now))))
    spec = log.baseline(
        known,
        schedule=schedule,
        state=step.state,
        reason=UNBLOCKED,
        consumed_through=consumed,
        waiting=head.spec.waiting if head else (),
        given_up=_given_up(head, schedule, consumed),
    )
    last = part[-1] if part else None
    number = 1 + max(last.number if last else 0, _number_of(step.record), _stored_head(schedule))
    is_next = last is not None and last.number == number - 1
    return spec.model_copy(
        update={
            "sequence": number,
            "previous_uid": last.uid if last and is_next else head.uid if head else None,
            "totals": _totals(spec.totals or Totals(), head, schedule, part, kept),
            "message": f"{spec.message}; set aside: {step.record}"[:4096],
        }
    )


def _given_up(head: Record | None, schedule: Schedule, until: datetime) -> Verdict | None:
    """Return the instants that were due and undecided, as far as the calendar of that time is still known."""
    verdict, before = accept(schedule), _watermark(head)
    if head is None or before is None or head.spec.state is not State.ACTIVE or not isinstance(verdict, Accepted):
        return None
    if head.spec.spec_hash != schedule.spec_hash:
        return None
    since = max((*head.spec.waiting, before))
    return all_due(verdict.trigger, since, until, Decision.SUPERSEDED)


def _totals(counted: Totals, head: Record | None, schedule: Schedule, part: list[Listed], kept: list[Listed]) -> Totals:
    """Return the totals of the last record to trust, or the status's where that knows more; runs of after that count, too."""
    status, number = schedule.status, head.number if head else 0
    if status is not None and status.counts is not None and number < _stored_head(schedule):
        number = _stored_head(schedule)
        counted = Totals(
            **{name: getattr(status.counts, name) for name in Counts.model_fields},
            consecutive_failures=status.consecutive_failures or 0,
            counted_failures=counted.counted_failures,
            last_schedule_time=status.last_schedule_time,
            last_successful_time=status.last_successful_time,
            last_failure_time=status.last_failure_time,
        )
    more = _admitted_behind(part, kept, number)
    return counted.model_copy(update={"admitted": counted.admitted + more})


def _watermark(head: Record | None) -> datetime | None:
    return head.spec.consumed_through_time if head else None


def _stored_watermark(schedule: Schedule) -> datetime | None:
    return schedule.status.consumed_through_time if schedule.status else None


def _stored_head(schedule: Schedule) -> int:
    return (schedule.status.log_head if schedule.status else None) or 0


def _number_of(record_name: str) -> int:
    digits = record_name[-9:]
    return int(digits) if digits.isdecimal() else 0
