"""Find out what was deleted while nobody watched: kopf lists anew after a gap and says nothing of what is gone by then.

Runs only after such a list, and only in the leader: everybody else reads everything anew before it leads.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from workflow_schedules.cluster.errors import ClusterError
from workflow_schedules.cluster.methods import DEFINITIONS, SCHEDULES

if TYPE_CHECKING:
    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.scheduler.wakeups import WakeUps

log = logging.getLogger(__name__)

SETTLE_SECONDS = 3.0  # one list is many events, and several watches break together


class Sweep:
    """Compares the cache with a list of the leader's own."""

    def __init__(self, cluster: Cluster, wakeups: WakeUps) -> None:
        """Create it inside the running event loop."""
        self._cluster = cluster
        self._wakeups = wakeups
        self._is_needed = asyncio.Event()

    def note_list(self) -> None:
        """Learn that a watch began anew."""
        self._is_needed.set()

    async def run(self) -> None:
        """Sweep whenever it is needed, until cancelled."""
        while True:
            await self._is_needed.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self._is_needed.clear()
            try:
                await self._sweep()
            except ClusterError as error:
                log.warning("could not read what is left, it is tried again", extra={"error": error.message})
                self._is_needed.set()

    async def _sweep(self) -> None:
        client, cache = self._cluster.client, self._cluster.cache
        definitions = await client.list_all(DEFINITIONS)
        schedules = await client.list_all(SCHEDULES)
        woken = cache.desired.drop_vanished(schedules, definitions)
        if woken:
            log.info("found deletions that no watch had told", extra={"schedules": len(woken)})
        self._wakeups.wake_all(woken)
