"""Keep the schedule's status true, late and merged: soon when idle, after the herd when busy, always at a clean stop.

The status is a projection of the log: losing a write loses nothing, so many changes may become one. What it says is core's
business.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from workflow_schedules.api.common import ConditionStatus, wire_name
from workflow_schedules.api.schedule import WorkflowScheduleStatus
from workflow_schedules.cluster.apply import reread_schedule
from workflow_schedules.cluster.backoff import REFUSED_LIMIT_SECONDS, pause_seconds
from workflow_schedules.cluster.errors import (
    ClusterError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnansweredError,
)
from workflow_schedules.core.log import open_runs
from workflow_schedules.core.outcome import RUNNING_AFTER
from workflow_schedules.core.status import is_change_unrecorded, project

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.core.model import Schedule, Snapshot

log = logging.getLogger(__name__)

ACKNOWLEDGE_AFTER = timedelta(milliseconds=100)  # people and `kubectl wait` look at observedGeneration
AFTER_OUTCOME = timedelta(seconds=1)
AFTER_ADMISSION = RUNNING_AFTER  # a run that ends within this costs one write of each status, not two
WHEN_BUSY = timedelta(seconds=1)
LONGEST_WAIT = timedelta(seconds=REFUSED_LIMIT_SECONDS)
WRITERS_AT_STOP = 8
_WRITER_FIELDS = ("fencing_epoch", "writer", "lease")
_FIELDS = frozenset(map(wire_name, WorkflowScheduleStatus.model_fields))


class Projections:
    """Writes statuses when they are due; one per schedule at a time, since the loop calls it per schedule."""

    def __init__(self, cluster: Cluster, *, is_busy: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._is_busy = is_busy
        self._due: dict[str, datetime] = {}
        self._failures: dict[str, int] = {}
        self._reported: dict[str, tuple[int, str]] = {}

    async def keep(
        self, uid: str, snapshot: Snapshot, *, fence: Fence, overdue_until: datetime | None = None
    ) -> datetime | None:
        """Write the status if it is due and says something new.

        Args:
            uid: of the schedule.
            snapshot: what is known of it.
            fence: of the epoch that writes.
            overdue_until: it is due already, and when this is called again at the latest, whatever is returned.

        Returns:
            When to call again; None when there is nothing left to write.
        """
        schedule = snapshot.schedule
        if schedule is None or schedule.is_deleting or not snapshot.is_log_read:
            self._due.pop(uid, None)
            self._failures.pop(uid, None)
            self._reported.pop(uid, None)
            return None
        now = self._cluster.now()
        due = self._due.get(uid)
        wanted = now + _delay(snapshot, schedule, held=self._cluster.cache.log(uid).held)
        if due is None or (due > now and wanted < due and uid not in self._failures):
            due = self._due[uid] = wanted
        if overdue_until is not None and uid not in self._failures:
            due = now
        if due > now:
            return due
        can_wait = overdue_until is None or overdue_until <= now + LONGEST_WAIT
        if self._is_busy() and schedule.status is not None and can_wait:
            self._due[uid] = now + WHEN_BUSY
            return self._due[uid]
        return await self._write(uid, snapshot, schedule, fence)

    async def flush(self, observe: Callable[[str], Snapshot], *, fence: Fence) -> None:
        """Write everything that waits, for a clean stop."""
        slots = asyncio.Semaphore(WRITERS_AT_STOP)

        async def flush_one(uid: str) -> None:
            async with slots:
                snapshot = observe(uid)
                if (
                    snapshot.schedule is not None
                    and snapshot.is_log_read
                    and self._may_show(snapshot, snapshot.schedule)
                ):
                    await self._write(uid, snapshot, snapshot.schedule, fence)

        await asyncio.gather(*(flush_one(uid) for uid in list(self._due)))

    def _may_show(self, snapshot: Snapshot, schedule: Schedule) -> bool:
        """Tell whether the schedule as it is now is on record: an edit may have come in while the last writes were awaited."""
        return not is_change_unrecorded(snapshot, schedule, now=self._cluster.now())

    async def _write(self, uid: str, snapshot: Snapshot, schedule: Schedule, fence: Fence) -> datetime | None:
        del self._due[uid]
        memory = self._cluster.cache.log(uid)
        wanted = project(
            snapshot, schedule, recent=tuple(memory.recent), candidates=memory.held, now=self._cluster.now()
        )
        if self._cluster.cache.is_anothers(uid, fence.writer.lease):
            said = (fence.writer.epoch, _stalled_message(wanted))
            if self._reported.get(uid) == said:
                return None  # the other one writes its own over it: saying it again would be a quarrel without an end
            self._reported[uid] = said
            wanted = _report(wanted, schedule)
        if _says_the_same(wanted, schedule.status):
            return None
        patch = _patch(schedule, wanted)
        fence.check()
        try:
            answer = await self._cluster.client.patch_schedule_status(schedule.ref.namespace, schedule.ref.name, patch)
            self._cluster.cache.desired.refresh_schedule(answer)
        except (ConflictError, NotFoundError) as error:
            return await self._look_again(uid, schedule, error)
        except ClusterError as error:
            return self._try_later(uid, error)
        self._failures.pop(uid, None)
        self._tell(schedule, wanted)
        return None

    def _tell(self, schedule: Schedule, written: WorkflowScheduleStatus) -> None:
        """Tell of a spec that can't be used, once per generation."""
        if schedule.status is not None and schedule.status.observed_generation == written.observed_generation:
            return
        for condition in written.conditions:
            if condition.type == "Accepted" and condition.status is ConditionStatus.FALSE:
                self._cluster.tell_refused(schedule, condition)

    async def _look_again(self, uid: str, schedule: Schedule, refusal: ClusterError) -> datetime:
        """Somebody edited it, or it is gone: find out, since the watch may have missed that."""
        try:
            await reread_schedule(self._cluster, schedule)
        except ClusterError as error:
            return self._try_later(uid, error)
        found = self._cluster.cache.schedules.get(uid)
        if found is not None and found.resource_version == schedule.resource_version:
            return self._try_later(uid, refusal)
        self._due[uid] = self._cluster.now() + WHEN_BUSY
        return self._due[uid]

    def _try_later(self, uid: str, error: ClusterError) -> datetime:
        if isinstance(error, UnansweredError):
            self._cluster.cache.log(uid).write_given_up_at = self._cluster.monotonic()
        self._reported.pop(uid, None)
        failures = self._failures.get(uid, 0)
        self._failures[uid] = failures + 1
        pause = timedelta(seconds=pause_seconds(error, failures=failures))
        if not (isinstance(error, ForbiddenError) and error.is_fence and not failures):  # a lag, the first time
            log.warning("a status was not written, it is tried again", extra={"schedule": uid, "error": error.message})
        self._due[uid] = self._cluster.now() + pause
        return self._due[uid]


def _delay(snapshot: Snapshot, schedule: Schedule, *, held: tuple[datetime, ...]) -> timedelta:
    if schedule.status is None or schedule.status.observed_generation != schedule.generation:
        return ACKNOWLEDGE_AFTER
    has_runs = bool(open_runs(snapshot.runs))
    if held != schedule.status.candidates:  # people want to see what is blocked; what waits for its jitter starts soon
        return AFTER_OUTCOME if has_runs or not held else AFTER_ADMISSION
    return AFTER_ADMISSION if has_runs else AFTER_OUTCOME


def _stalled_message(status: WorkflowScheduleStatus) -> str:
    return next((each.message for each in status.conditions if each.type == "Stalled"), "")


def _report(wanted: WorkflowScheduleStatus, schedule: Schedule) -> WorkflowScheduleStatus:
    """Return a status that leaves the schedule to the Lease that it says it is scheduled under (R33)."""
    lease = schedule.status.lease if schedule.status else None
    return wanted if lease is None else wanted.model_copy(update={"lease": lease})


def _says_the_same(wanted: WorkflowScheduleStatus, stored: WorkflowScheduleStatus | None) -> bool:
    """Tell whether only the writer would change: a takeover alone is no reason to write."""
    if stored is None:
        return False
    return wanted.model_copy(update={name: getattr(stored, name) for name in _WRITER_FIELDS}) == stored


def _patch(schedule: Schedule, wanted: WorkflowScheduleStatus) -> dict[str, Any]:
    """Return a merge patch; where nothing readable is stored, it clears every field that it doesn't set."""
    status: dict[str, Any] = wanted.wire()
    gone = (schedule.status.wire().keys() if schedule.status else _FIELDS) - status.keys()
    return {
        "metadata": {"resourceVersion": schedule.resource_version},
        "status": {**dict.fromkeys(gone), **status},
    }
