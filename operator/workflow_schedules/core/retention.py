"""What may be removed of what is finished, and when to look again: Jobs by their limits and time to live, records by theirs.

Once something may go it may go for ever: outcomes are final, the stored head and the newest record only move forward. So a
removal that was decided a while ago, or by a leader that has been replaced since, removes nothing that had to stay. Who
removes, and how fast, is scheduler/retention's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from workflow_schedules.api.occurrence import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from workflow_schedules.core.model import ObjectRef, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When it is, and since when that matters.

    Attributes:
        now: aware UTC.
        name_kept: K, how long the name of a record or Job is kept.
        since_acquired: time since this epoch was acquired.
    """

    now: datetime
    name_kept: timedelta
    since_acquired: timedelta

    def free_at(self, *facts: datetime | None) -> datetime:
        """Return when a name may be freed: K after the latest fact about it and after this epoch's acquisition.

        Source: reliability P1.
        """
        return max([self.now - self.since_acquired, *filter(None, facts)]) + self.name_kept


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """How many finished Jobs a schedule keeps; None keeps all."""

    successful: int | None = None
    failed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedJob:
    """A Job that has ended.

    Attributes:
        ended_at: when it ended.
        recorded_at: when its run's final outcome was recorded; None when that is not known.
        ttl: the template's `ttlSecondsAfterFinished`.
    """

    ref: ObjectRef
    uid: str
    is_successful: bool
    created_at: datetime
    ended_at: datetime
    recorded_at: datetime | None
    ttl: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPruning:
    """What to do about a schedule's finished Jobs.

    Attributes:
        now: to be removed, oldest first.
        unread: to be removed once it is known that their result is on record.
        next_at: when the next one may go; None when none is waiting.
    """

    now: tuple[FinishedJob, ...]
    unread: tuple[FinishedJob, ...]
    next_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRecord:
    """What retention needs to know of a record or a request.

    Attributes:
        number: its place in the log; None for a request.
        finished_at: when it was made or got its final outcome, whichever is later; None while its run is unfinished.
        open: numbers of the runs that it calls unfinished.
        gone_since: since when its schedule is known to be deleted; stands on the newest record only.
        lease: under which it was written or resolved; None where it doesn't say.
    """

    ref: ObjectRef
    uid: str
    number: int | None
    outcome: Outcome | None
    created_at: datetime
    finished_at: datetime | None
    schedule_name: str
    open: tuple[int, ...]
    gone_since: datetime | None
    lease: str | None

    @property
    def age_key(self) -> tuple[datetime, int, str]:
        """Sort oldest first: by creation, within the log by number."""
        return (self.created_at, self.number or 0, self.ref.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPruning:
    """What to do about a schedule's records; see `JobPruning`."""

    now: tuple[KeptRecord, ...]
    next_at: datetime | None


def prune_jobs(jobs: Sequence[FinishedJob], limits: JobLimits, times: Times) -> JobPruning:
    """Decide which finished Jobs go: those beyond the limits, and those whose time to live is over.

    Never before their result is on record, and not within K after it.

    Source: contract R22, R26; reliability P1.
    """
    due_at = {job.ref: at for job in jobs if (at := _ttl_end(job)) is not None}
    everything = sorted(jobs, key=lambda job: (job.created_at, job.ref))
    for is_successful, limit in ((True, limits.successful), (False, limits.failed)):
        if limit is not None:
            same = [job for job in everything if job.is_successful is is_successful]
            due_at |= {job.ref: job.ended_at for job in same[: max(0, len(same) - limit)]}
    now: list[FinishedJob] = []
    unread: list[FinishedJob] = []
    later: list[datetime] = []
    for job in everything:
        if job.ref not in due_at:
            continue
        at = max(due_at[job.ref], times.free_at(job.created_at, job.ended_at, job.recorded_at))
        if at > times.now:
            later.append(at)
        else:
            (unread if job.recorded_at is None else now).append(job)
    return JobPruning(now=tuple(now), unread=tuple(unread), next_at=min(later, default=None))


def _ttl_end(job: FinishedJob) -> datetime | None:
    return None if job.ttl is None else job.ended_at + job.ttl


def prunable_records(
    records: Sequence[KeptRecord],
    *,
    log_head: int | None,
    open_numbers: Collection[int],
    with_jobs: Collection[ObjectRef],
) -> Iterator[KeptRecord]:
    """Yield the records that nothing but K protects, oldest first.

    Args:
        records: of one schedule, all or some of them: the newest of each kind among the log's given stay, so fewer given
            means more kept. Requests are no part of the log: none stays for being the newest, nor lets one of the log go.
        log_head: the head that the schedule's status names; None protects the whole log.
        open_numbers: runs that the newest record calls open: a successor reads them, ended or not.
        with_jobs: whose Job still exists: removing the record would take the Job with it.

    Source: contract R30; reliability P7.
    """
    ordered = sorted(records, key=lambda record: record.age_key)
    stays = _newest([record for record in ordered if record.number is not None])
    stays |= {record.uid for record in ordered if record.gone_since}  # from then on counts how long the others are kept
    for record in ordered:
        is_below_head = record.number is None or (log_head is not None and record.number < log_head)
        is_finished = record.finished_at is not None and record.number not in open_numbers
        if is_below_head and is_finished and record.uid not in stays and record.ref not in with_jobs:
            yield record


def _newest(ordered: Sequence[KeptRecord]) -> set[str]:
    """Return the UIDs of the newest record, the newest Completed and the newest Failed."""
    newest = {record.uid for record in ordered[-1:]}
    for outcome in (Outcome.COMPLETED, Outcome.FAILED):
        newest |= {record.uid for record in [each for each in ordered if each.outcome is outcome][-1:]}
    return newest


def prune_records(prunable: Iterable[KeptRecord], *, surplus: int, times: Times) -> RecordPruning:
    """Decide which records go now: the oldest that may, as many as are too many.

    Args:
        prunable: oldest first, see `prunable_records`.
        surplus: how many records are beyond the limit.
        times: now, and what K counts from.

    Source: contract R30; reliability P1.
    """
    now: list[KeptRecord] = []
    next_at: datetime | None = None
    for record in prunable:
        if len(now) >= surplus:
            break
        at = times.free_at(record.finished_at)
        if at <= times.now:
            now.append(record)
        else:
            next_at = at if next_at is None else min(at, next_at)
    return RecordPruning(now=tuple(now), next_at=next_at)


def prune_deleted(records: Sequence[KeptRecord], *, retained: timedelta, times: Times) -> RecordPruning:
    """Decide whether all that is left of a deleted schedule goes, the newest record last.

    Nothing goes while a run is unfinished, and before the schedule has been known to be gone for as long as its history is
    kept.

    Source: contract section 2 (`deletionPolicy`), R20.
    """
    ordered = sorted(records, key=lambda record: record.age_key)
    since = max((record.gone_since for record in records if record.gone_since), default=None)
    if since is None or any(record.finished_at is None for record in records):
        return RecordPruning(now=(), next_at=None)
    at = max(since + retained, times.free_at(*(record.finished_at for record in records)))
    is_due = at <= times.now
    return RecordPruning(now=tuple(ordered) if is_due else (), next_at=None if is_due else at)


def prune_refused(records: Sequence[KeptRecord], *, retained: timedelta, times: Times) -> RecordPruning:
    """Decide which refused requests go that name no schedule there is: each as long after its end as a deleted one's history.

    Source: contract R27, R30.
    """
    ordered = sorted(records, key=lambda record: record.age_key)
    due = [each for each in ordered if each.finished_at is not None and each.finished_at + retained <= times.now]
    return prune_records(due, surplus=len(due), times=times)


def recorded_at(record: Record) -> datetime | None:
    """Return when a run's final outcome was recorded; None while there is none."""
    status = record.status
    if status.outcome is None or not status.outcome.is_final:
        return None
    written = [transition.time for transition in status.transitions]
    return max(filter(None, (*written, status.completion_time)), default=record.created_at)
