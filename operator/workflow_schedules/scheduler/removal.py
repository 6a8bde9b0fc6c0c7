"""Remove one Job or record: paced, fenced, by UID, and not while a write of its schedule may still arrive.

A DELETE carries no epoch, so no policy can fence it. What keeps a stale leader's harmless: it asks its own fence before each,
names the UID, and removes only what no leader needs any more (core/retention).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workflow_schedules.cluster.errors import ConflictError, NotFoundError, UnansweredError
from workflow_schedules.core.runs import REQUEST_LIFE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.core.model import ObjectRef
    from workflow_schedules.scheduler.pacing import Pacer


class NotNowError(Exception):
    """A write of the schedule is under way or may still arrive, or the process is stopping (P2)."""


class Remover:
    """Sends the DELETEs of one epoch, one at a time."""

    def __init__(
        self,
        cluster: Cluster,
        pacer: Pacer,
        *,
        fence: Fence,
        stop: asyncio.Event,
        is_working_on: Callable[[str], bool],
    ) -> None:
        self._cluster = cluster
        self._pacer = pacer
        self._fence = fence
        self._stop = stop
        self._is_working_on = is_working_on
        self._is_settled = asyncio.Event()
        self._is_settled.set()

    @property
    def lease(self) -> str:
        """Return the Lease under which it removes."""
        return self._fence.writer.lease

    async def remove_job(self, schedule_uid: str, ref: ObjectRef, uid: str) -> None:
        """Remove a Job and its pods.

        Raises:
            ClusterError: it was not removed, or nobody knows; it may be tried again.
            LostLeaseError: this epoch may not write any more.
            NotNowError: see there.

        Source: contract R22, R26; reliability P2, P15, P19.
        """
        client = self._cluster.client
        await self._remove(schedule_uid, lambda: client.delete_job(ref.namespace, ref.name, uid=uid))
        self._cluster.cache.job_store.drop_removed(ref, uid)

    async def remove_record(self, schedule_uid: str, ref: ObjectRef, uid: str) -> None:
        """Remove a record; see `remove_job`."""
        client = self._cluster.client
        await self._remove(schedule_uid, lambda: client.delete_occurrence(ref.namespace, ref.name, uid=uid))

    async def turn(self, schedule_uid: str) -> None:
        """Wait for the next turn of this schedule.

        Raises:
            LostLeaseError: this epoch may not write any more.
            NotNowError: see there.
        """
        await self._pacer.turn()
        if self._stop.is_set() or self._is_working_on(schedule_uid) or self._may_still_arrive(schedule_uid):
            raise NotNowError
        self._fence.check()

    async def settle(self) -> None:
        """Wait until what was sent is answered, so that the Lease can be released."""
        await self._is_settled.wait()

    async def _remove(self, schedule_uid: str, send: Callable[[], Awaitable[object]]) -> None:
        await self.turn(schedule_uid)
        self._is_settled.clear()
        try:
            await send()
        except (NotFoundError, ConflictError):
            pass  # gone already, or another one of its name: either way this one is no more
        except UnansweredError:
            self._cluster.cache.log(schedule_uid).write_given_up_at = self._cluster.monotonic()
            raise
        finally:
            self._is_settled.set()

    def _may_still_arrive(self, schedule_uid: str) -> bool:
        memory = self._cluster.cache.logs.get(schedule_uid)
        given_up_at = memory.write_given_up_at if memory else None
        return given_up_at is not None and self._cluster.monotonic() - given_up_at <= REQUEST_LIFE.total_seconds()
