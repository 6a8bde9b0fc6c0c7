"""The slow look at every record there is: what no schedule's own look finds.

Deleted schedules' histories, requests, what an earlier leader left beyond the limits, and the cap over all records. One paged
list soon after a takeover and every few hours; of each namespace only as much is in memory as has to go.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from workflow_schedules.api.common import format_utc
from workflow_schedules.api.schedule import State
from workflow_schedules.cluster.backoff import pause_seconds
from workflow_schedules.cluster.errors import ClusterError, NotFoundError
from workflow_schedules.cluster.kept import SCHEDULE_GONE, kept_record
from workflow_schedules.cluster.methods import OCCURRENCES
from workflow_schedules.cluster.request_store import is_key
from workflow_schedules.core.leases_apart import is_other_lease
from workflow_schedules.core.retention import (
    KeptRecord,
    Times,
    prunable_records,
    prune_deleted,
    prune_records,
    prune_refused,
)
from workflow_schedules.scheduler.history_look import Found
from workflow_schedules.scheduler.removal import NotNowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.scheduler.history_look import Removal
    from workflow_schedules.scheduler.pacing import Pacer
    from workflow_schedules.scheduler.removal import Remover

log = logging.getLogger(__name__)

FIRST_AFTER_SECONDS = 15.0  # after a takeover: what was due by then has been started
EVERY_SECONDS = 6 * 3600.0
SOON_SECONDS = 60.0
LOOK_AGAIN_SECONDS = 2.0


class HistorySweep:
    """Finds what is to go and removes it, oldest first."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        name_kept: timedelta,
        deleted_kept: timedelta,
        max_records: int,
        on_removed: Callable[[str], None],
    ) -> None:
        """Take the settings, and who is told the UID of the schedule of whose log a record was removed."""
        self._cluster = cluster
        self._name_kept = name_kept
        self._deleted_kept = deleted_kept
        self._max_records = max_records
        self._on_removed = on_removed
        self._removals: deque[Removal] = deque()
        self._lease = ""

    @property
    def waiting(self) -> int:
        """Return how many records are on the list to be removed."""
        return len(self._removals)

    async def run(self, remover: Remover, pacer: Pacer, fence: Fence, stop: asyncio.Event) -> None:
        """Sweep until `stop` is set or this is cancelled.

        Raises:
            LostLeaseError: this epoch may not write any more.
        """
        self._removals.clear()
        self._lease = fence.writer.lease
        await asyncio.sleep(self._until(fence, FIRST_AFTER_SECONDS))
        while not stop.is_set():
            again_seconds = EVERY_SECONDS
            try:
                found = await self._look(pacer)
                await asyncio.sleep(self._until(fence, self._name_kept.total_seconds()))  # P1: nothing goes before
                await self._mark(found.newly_gone, remover, fence)
                self._removals.extend(found.removals())
                again_seconds = SOON_SECONDS if found.is_cut else EVERY_SECONDS
            except ClusterError as error:
                log.warning("could not read all records, it is tried again", extra={"error": error.message})
                again_seconds = SOON_SECONDS
            await self._remove_all(remover, stop)
            await asyncio.sleep(again_seconds)

    def _until(self, fence: Fence, seconds: float) -> float:
        return max(0.0, fence.acquired_at + seconds - self._cluster.monotonic())

    # what there is

    async def _look(self, pacer: Pacer) -> Found:
        found = Found(self._max_records)
        namespace, rows = "", defaultdict[str, list[KeptRecord]](list)
        unreadable: set[str] = set()
        await pacer.turn()
        async for page in self._cluster.client.pages(OCCURRENCES):
            for body in page.items:
                if body["metadata"].get("namespace", "") != namespace:  # lists are ordered by namespace, then name
                    self._judge_namespace(rows, unreadable, found)
                    namespace, rows, unreadable = body["metadata"].get("namespace", ""), defaultdict(list), set()
                if (row := kept_record(body)) is not None:
                    rows[row[0] or self._whose(row[1])].append(row[1])
                elif uid := ((body.get("spec") or {}).get("scheduleRef") or {}).get("uid"):
                    unreadable.add(str(uid))
            found.total += len(page.items)
            await pacer.turn()
        self._judge_namespace(rows, unreadable, found)
        return found

    def _judge_namespace(self, rows: dict[str, list[KeptRecord]], unreadable: set[str], found: Found) -> None:
        for uid, records in rows.items():
            if is_key(uid):
                self._judge_refused(uid, records, found, self._times())
            elif uid not in unreadable and not self._is_blocked(uid) and not self._is_anothers(records):
                self._judge(uid, records, found, self._times())

    def _judge(self, uid: str, records: list[KeptRecord], found: Found, times: Times) -> None:
        cache = self._cluster.cache
        schedule = cache.schedules.get(uid)
        numbered = [record for record in records if record.number is not None]
        head = max(numbered, key=lambda record: record.number or 0, default=None)
        if schedule is None:
            if not any(record.gone_since for record in records):
                found.newly_gone.append((uid, head or max(records, key=lambda record: record.age_key)))
            gone = prune_deleted(records, retained=self._deleted_kept, times=times)
            if gone.now:
                found.add(uid, gone.now, is_of_deleted=True)
                return
        stored = schedule.status.log_head if schedule and schedule.status else None
        prunable = list(
            prunable_records(
                records,
                log_head=stored if schedule is not None else (head.number if head else None),
                open_numbers=head.open if head else (),
                with_jobs={job.ref for job in cache.job_store.of_schedule(uid)},
            )
        )
        surplus = 0
        if schedule is not None and schedule.spec is not None:
            finished = sum(1 for record in records if record.finished_at is not None)
            surplus = finished - schedule.spec.occurrence_history_limit
        due = prune_records(prunable, surplus=surplus, times=times).now
        found.add(uid, due)
        free = prune_records(prunable, surplus=len(prunable), times=times).now
        found.note_spare(uid, free[len(due) :])

    def _whose(self, refused: KeptRecord) -> str:
        """Return whose history a refused request is in: that of the schedule it names, else by the key of its name."""
        ref = replace(refused.ref, name=refused.schedule_name)
        return self._cluster.cache.desired.uid_named(ref) or str(ref)

    def _judge_refused(self, key: str, records: list[KeptRecord], found: Found, times: Times) -> None:
        due = prune_refused(records, retained=self._deleted_kept, times=times).now
        found.add(key, due)
        waiting = sorted(set(records).difference(due), key=lambda record: record.age_key)
        found.note_spare(key, prune_records(waiting, surplus=len(waiting), times=times).now)

    def _is_anothers(self, records: list[KeptRecord]) -> bool:
        """Tell whether another installation writes this log, or resolved these requests where there is none (R33)."""
        of_log = [record for record in records if record.number is not None]
        return is_other_lease(max(of_log or records, key=lambda record: record.age_key).lease, self._lease)

    def _is_blocked(self, uid: str) -> bool:
        """Tell whether the log can't be trusted: nothing of it is touched then (R31)."""
        memory, schedule = self._cluster.cache.logs.get(uid), self._cluster.cache.schedules.get(uid)
        if memory is not None and memory.contradiction is not None:
            return True
        return bool(schedule and schedule.status and schedule.status.state is State.BLOCKED)

    def _times(self) -> Times:
        """Return when it is; that K has passed since the acquisition is waited for before anything is removed."""
        return Times(now=self._cluster.now(), name_kept=self._name_kept, since_acquired=self._name_kept)

    # what is done about it

    async def _remove_all(self, remover: Remover, stop: asyncio.Event) -> None:
        while self._removals and not stop.is_set():
            removal = self._removals[0]
            try:
                await self._remove(removal, remover)
            except NotNowError:
                await self._put_off(removal.schedule_uid, LOOK_AGAIN_SECONDS)
            except ClusterError as error:
                log.warning("a record was not removed, it is tried again", extra={"error": error.message})
                await self._put_off(removal.schedule_uid, pause_seconds(error, failures=3))
            else:
                self._removals.popleft()

    async def _put_off(self, uid: str, seconds: float) -> None:
        """Let the others go first: all of this schedule wait in their order, since its newest record goes last."""
        others = [removal for removal in self._removals if removal.schedule_uid != uid]
        self._removals = deque([*others, *(removal for removal in self._removals if removal.schedule_uid == uid)])
        await asyncio.sleep(seconds)

    async def _remove(self, removal: Removal, remover: Remover) -> None:
        uid, record = removal.schedule_uid, removal.record
        cache = self._cluster.cache
        if self._is_blocked(uid) or (removal.is_of_deleted and uid in cache.schedules):
            return
        if (job := cache.jobs.get(record.ref)) is not None and not job.is_gone:
            if not removal.is_of_deleted or job.owner_uid != record.uid:
                return  # it came since, or is somebody else's
            await remover.remove_job(uid, job.ref, job.uid)
        await remover.remove_record(uid, record.ref, record.uid)
        if record.number is not None:
            self._on_removed(uid)

    async def _mark(self, newly_gone: list[tuple[str, KeptRecord]], remover: Remover, fence: Fence) -> None:
        """Note on the newest record of each deleted schedule since when it is known to be gone: one write, once."""
        for uid, record in newly_gone:
            try:
                await remover.turn(uid)
                if await self._is_gone(uid, record):
                    await self._mark_one(record, fence)
            except NotNowError:
                continue
            except ClusterError as error:
                log.warning("a deleted schedule's history was not marked", extra={"error": error.message})

    async def _is_gone(self, uid: str, record: KeptRecord) -> bool:
        if uid in self._cluster.cache.schedules:
            return False
        try:
            found = await self._cluster.client.get_schedule(record.ref.namespace, record.schedule_name)
        except NotFoundError:
            return True
        return bool(found["metadata"]["uid"] != uid)

    async def _mark_one(self, record: KeptRecord, fence: Fence) -> None:
        client, ref = self._cluster.client, record.ref
        body = await client.get_occurrence(ref.namespace, ref.name)
        fence.check()
        await client.patch_occurrence_status(ref.namespace, ref.name, _gone_patch(body, self._cluster.now(), fence))


def _gone_patch(body: dict[str, Any], now: datetime, fence: Fence) -> dict[str, Any]:
    condition = {
        "type": SCHEDULE_GONE,
        "status": "True",
        "reason": "Deleted",
        "message": "the schedule was deleted; its history is kept for a while from here on",
        "lastTransitionTime": format_utc(now),
    }
    return {
        "metadata": {"resourceVersion": body["metadata"]["resourceVersion"]},
        "status": {
            "conditions": [*((body.get("status") or {}).get("conditions") or ()), condition],
            "fencingEpoch": fence.writer.epoch,
            "writer": fence.writer.identity,
        },
    }
