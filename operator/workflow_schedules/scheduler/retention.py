"""Remove what is finished and no longer wanted: Jobs soon, records in batches, each schedule on its own and none in a hurry.

Costs one DELETE per removed object and one list page per batch of records; a schedule within its limits costs nothing. What
may go is core's business. What this does not see (deleted schedules, requests, what an earlier leader left, the cap over all
records) the slow look at everything finds: history_sweep.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from workflow_schedules.api.names import LABEL_SCHEDULE_UID
from workflow_schedules.api.occurrence import Cause
from workflow_schedules.cluster import wire
from workflow_schedules.cluster.backoff import pause_seconds
from workflow_schedules.cluster.client import PAGE_OBJECTS
from workflow_schedules.cluster.errors import ClusterError, NotFoundError
from workflow_schedules.cluster.kept import kept_record
from workflow_schedules.cluster.methods import OCCURRENCES
from workflow_schedules.core.leases_apart import is_other_lease
from workflow_schedules.core.model import JobPhase
from workflow_schedules.core.retention import (
    FinishedJob,
    JobLimits,
    KeptRecord,
    Times,
    prunable_records,
    prune_jobs,
    prune_records,
)
from workflow_schedules.scheduler.history_sweep import HistorySweep
from workflow_schedules.scheduler.pacing import Pacer
from workflow_schedules.scheduler.removal import NotNowError, Remover
from workflow_schedules.scheduler.wakeups import WakeUps

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.core.model import Job, Record, Schedule

log = logging.getLogger(__name__)

BATCH = 20  # records removed per list page, at least
LEAST_BATCH = 5  # of schedules that are to keep fewer than that
TURN = 100  # records of one schedule removed before the others have their turn (K-085)
SPARE = 25  # records that may be among the oldest and must stay
LATER = timedelta(seconds=2)
LONGEST_SLEEP_SECONDS = 60.0
SETTLE_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long what is kept.

    Attributes:
        name_kept: K.
        deleted_kept: how long runs and records of a deleted schedule are kept.
        max_records: how many records there may be in the whole cluster; 0 is unlimited.
    """

    name_kept: timedelta
    deleted_kept: timedelta
    max_records: int


class Retention:
    """Looks at a schedule some time after something of it ended, and removes what is too much."""

    def __init__(
        self,
        cluster: Cluster,
        settings: RetentionSettings,
        *,
        is_busy: Callable[[], bool],
        is_working_on: Callable[[str], bool],
    ) -> None:
        """Take who knows whether schedules wait their turn, and whether one is being worked on."""
        self._cluster = cluster
        self._settings = settings
        self._is_working_on = is_working_on
        self._due = WakeUps()
        self._removed: dict[str, int] = {}  # records of a log that are gone, where it may have more than it is to keep
        self._foreign: set[str] = set()  # Jobs that no result on record is known of
        self._remover: Remover | None = None
        self._waiting = 0
        self._sweep = HistorySweep(
            cluster,
            name_kept=settings.name_kept,
            deleted_kept=settings.deleted_kept,
            max_records=settings.max_records,
            on_removed=self._note_removed,
        )
        self._pacer = Pacer(cluster, is_busy=is_busy, waiting=lambda: self._waiting + self._sweep.waiting)

    def note(self, uid: str) -> None:
        """Learn that something may have become of a schedule."""
        self._due.wake_at(uid, self._cluster.now() + self._settings.name_kept)

    def begin(self, fence: Fence, *, stop: asyncio.Event) -> None:
        """Begin anew with a fence: nothing that an earlier epoch knew counts any more."""
        self._remover = Remover(self._cluster, self._pacer, fence=fence, stop=stop, is_working_on=self._is_working_on)
        self._due.clear()
        self._removed.clear()
        self._foreign.clear()
        for uid in self._cluster.cache.job_store.schedules():
            self._due.wake_at(uid, self._times(fence).free_at())

    async def run(self, fence: Fence, *, stop: asyncio.Event) -> None:
        """Look at schedules and remove what may go until `stop` is set or this is cancelled.

        Raises:
            LostLeaseError: this epoch may not write any more.
        """
        remover = self._begun()
        while not stop.is_set():
            due = self._due.take_due(self._cluster.now())
            for begun, uid in enumerate(due, start=1):
                self._waiting = len(due) - begun
                at = await self._look(uid, remover, self._times(fence))
                if at is not None:
                    self._due.wake_at(uid, at)
            await self._due.wait_changed(self._sleep_seconds())

    async def sweep(self, fence: Fence, *, stop: asyncio.Event) -> None:
        """Look at every record now and then; see `run`."""
        await self._sweep.run(self._begun(), self._pacer, fence, stop)

    async def settle(self) -> None:
        """Wait until the DELETE under way is answered, so that the Lease can be released."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._begun().settle()

    def _begun(self) -> Remover:
        if self._remover is None:
            raise RuntimeError("begin comes first")
        return self._remover

    def _sleep_seconds(self) -> float:
        at = self._due.next_at()
        if at is None:
            return LONGEST_SLEEP_SECONDS
        return min(max((at - self._cluster.now()).total_seconds(), 0.0), LONGEST_SLEEP_SECONDS)

    def _times(self, fence: Fence) -> Times:
        return Times(
            now=self._cluster.now(),
            name_kept=self._settings.name_kept,
            since_acquired=timedelta(seconds=self._cluster.monotonic() - fence.acquired_at),
        )

    async def _look(self, uid: str, remover: Remover, times: Times) -> datetime | None:
        """Remove what may go of one schedule; return when to look again, None for when something becomes of it."""
        if self._cluster.cache.is_anothers(uid, remover.lease):
            return None  # what another installation made is removed by that one (R33)
        try:
            jobs_at = await self._prune_jobs(uid, remover, times)
            records_at = await self._prune_records(uid, remover, times)
        except NotNowError:
            return self._cluster.now() + LATER
        except ClusterError as error:
            log.warning("history was not pruned, it is tried again", extra={"schedule": uid, "error": error.message})
            return self._cluster.now() + LATER + timedelta(seconds=pause_seconds(error, failures=3))
        return min(filter(None, (jobs_at, records_at)), default=None)

    # Jobs

    async def _prune_jobs(self, uid: str, remover: Remover, times: Times) -> datetime | None:
        cache = self._cluster.cache
        memory, schedule = cache.logs.get(uid), cache.schedules.get(uid)
        if memory is not None and memory.contradiction is not None:
            return None  # fail closed (R31)
        plan = prune_jobs(self._finished_jobs(uid, remover.lease), _job_limits(schedule), times)
        for job in plan.unread:
            await self._read_result(uid, job, remover)
        for job in plan.now:
            await remover.remove_job(uid, job.ref, job.uid)
        return self._cluster.now() if plan.unread else plan.next_at

    def _finished_jobs(self, uid: str, lease: str) -> list[FinishedJob]:
        cache = self._cluster.cache
        ended = [
            job
            for job in cache.job_store.of_schedule(uid)
            if job.phase in _ENDED and not cache.is_of_another_s_request(job, lease)
        ]
        return [_finished(job) for job in ended if job.recorded_at is not None or job.uid not in self._foreign]

    async def _read_result(self, uid: str, job: FinishedJob, remover: Remover) -> None:
        """Find out whether the result of a Job's run is on record: it ended before this process led (R26)."""
        await remover.turn(uid)
        try:
            record: Record | None = wire.record_of(
                await self._cluster.client.get_occurrence(job.ref.namespace, job.ref.name)
            )
        except (NotFoundError, wire.NotARecordError):
            record = None
        if record is not None and is_other_lease(record.spec.lease, remover.lease):
            record = None
        if record is None or not self._cluster.cache.job_store.note_recorded(record):
            self._foreign.add(job.uid)  # not a run's, or its outcome is still to be written, which is noted then

    # records

    async def _prune_records(self, uid: str, remover: Remover, times: Times) -> datetime | None:
        cache = self._cluster.cache
        memory, schedule = cache.logs.get(uid), cache.schedules.get(uid)
        if memory is None or not memory.is_read or memory.head is None or memory.contradiction is not None:
            return None
        if schedule is None or schedule.spec is None or schedule.status is None:
            return None
        limit = schedule.spec.occurrence_history_limit
        surplus = self._surplus(uid, memory.head, limit)
        if surplus < min(BATCH, max(LEAST_BATCH, limit)):
            return None
        await remover.turn(uid)
        size = min(min(surplus, TURN) + SPARE + len(cache.job_store.of_schedule(uid)), PAGE_OBJECTS)
        oldest, is_all = await self._oldest(schedule, size)
        surplus = _count(oldest, memory.head, is_all=is_all) - limit
        prunable = prunable_records(
            oldest,
            log_head=schedule.status.log_head,
            open_numbers=memory.head.spec.open,
            with_jobs={job.ref for job in cache.job_store.of_schedule(uid)},
        )
        plan = prune_records(prunable, surplus=min(surplus, TURN), times=times)
        for record in plan.now:
            await remover.remove_record(uid, record.ref, record.uid)
        return self._after_pass(uid, memory.head.number, limit, left=surplus - len(plan.now), did_some=bool(plan.now))

    def _surplus(self, uid: str, head: Record, limit: int) -> int:
        """Return how many records are too many as far as is known; until it is known, a log counts as full."""
        if head.number <= limit:
            self._removed.pop(uid, None)
            return 0
        return head.number - self._removed.setdefault(uid, head.number - limit) - limit

    def _after_pass(self, uid: str, head: int, limit: int, *, left: int, did_some: bool) -> datetime | None:
        """Note how many records are left; where nothing could go the next look waits for another batch."""
        goes_on = did_some and left >= LEAST_BATCH
        self._removed[uid] = head - limit - (left if goes_on or left < 0 else max(0, min(left, LEAST_BATCH - 1)))
        return self._cluster.now() if goes_on else None

    def _note_removed(self, uid: str) -> None:
        if uid in self._removed:
            self._removed[uid] += 1

    async def _oldest(self, schedule: Schedule, size: int) -> tuple[list[KeptRecord], bool]:
        """Return the oldest records of a log, which a list names first, and whether these are all."""
        pages = self._cluster.client.pages(
            OCCURRENCES,
            namespace=schedule.ref.namespace,
            label_selector=f"{LABEL_SCHEDULE_UID}={schedule.uid}",
            field_selector=f"spec.cause={Cause.SCHEDULED}",
            limit=size,
        )
        try:
            async for page in pages:
                found = [record for body in page.items if (record := kept_record(body))]
                return [record for uid, record in found if uid == schedule.uid], len(page.items) < size
        finally:
            await pages.aclose()
        return [], True


_ENDED = frozenset({JobPhase.COMPLETED, JobPhase.FAILED})


def _count(oldest: list[KeptRecord], head: Record, *, is_all: bool) -> int:
    """Return how many records a log has: after the oldest ones no number is missing."""
    if is_all or not oldest:
        return len(oldest)
    return len(oldest) + head.number - (oldest[-1].number or 0)


def _job_limits(schedule: Schedule | None) -> JobLimits:
    if schedule is None or schedule.spec is None:
        return JobLimits()
    spec = schedule.spec
    return JobLimits(successful=spec.successful_jobs_history_limit, failed=spec.failed_jobs_history_limit)


def _finished(job: Job) -> FinishedJob:
    return FinishedJob(
        ref=job.ref,
        uid=job.uid,
        is_successful=job.phase is JobPhase.COMPLETED,
        created_at=job.created_at,
        ended_at=job.finished_at or job.created_at,
        recorded_at=job.recorded_at,
        ttl=job.ttl,
    )
