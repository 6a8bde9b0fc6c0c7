"""Disable the schedules of a definition that was switched off, once for that change; that nothing starts meanwhile is R1's.

The change is told by the definition's status, which says how the switch was when it was last acted on, and by what this
process saw since. The status is written after the schedules, so whoever leads next finishes what a crash left half done.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from workflow_schedules.api.definition import OnDisable
from workflow_schedules.cluster.apply import reread_schedule
from workflow_schedules.cluster.errors import ClusterError, ConflictError, ForbiddenError, InvalidError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.core.model import Definition, Schedule

log = logging.getLogger(__name__)

WRITERS = 8


class SwitchOff:
    """Writes `enabled: false` on the schedules of definitions that were switched off.

    Those of another installation are left to it (R33).

    Source: contract R2, R3.
    """

    def __init__(self, cluster: Cluster, wake: Callable[[str], None]) -> None:
        """Take the cluster, and who is told that a schedule is another one than it was."""
        self._cluster = cluster
        self._wake = wake
        self._done: dict[str, set[str]] = {}  # per definition, what this change has dealt with: nothing is fought

    def forget_all_but(self, uids: set[str]) -> None:
        """Forget definitions that are gone."""
        self._done = {uid: done for uid, done in self._done.items() if uid in uids}

    async def finish(self, definition: Definition, fence: Fence) -> bool:
        """Disable what is still enabled, if the definition was switched off.

        Returns:
            Whether nothing is left to do, so that the status may say that the switch was acted on.

        Raises:
            LostLeaseError: this epoch may not write any more.
        """
        if not self._is_due(definition):
            self._settle(definition)
            return True
        done = self._done.setdefault(definition.uid, set())
        slots = asyncio.Semaphore(WRITERS)

        async def disable(schedule: Schedule) -> None:
            async with slots:
                if await self._disable(schedule, definition, fence):
                    done.add(schedule.uid)

        lease = fence.writer.lease
        done.update(
            each.uid for each in self._enabled(definition, done) if self._cluster.cache.is_anothers(each.uid, lease)
        )
        left = self._enabled(definition, done)
        await asyncio.gather(*map(disable, left))
        return not self._enabled(definition, done)

    def _settle(self, definition: Definition) -> None:
        """Forget a change that is on record, or was none for the schedules."""
        if definition.problem is None:
            self._done.pop(definition.uid, None)
            self._cluster.cache.desired.switched_off.discard(definition.uid)

    def _is_due(self, definition: Definition) -> bool:
        if definition.is_enabled or definition.problem is not None:
            return False
        if definition.on_disable is not OnDisable.DISABLE_SCHEDULES:
            return False
        status = definition.status
        if status is not None and status.observed_generation == definition.generation:
            return False
        was_enabled = status is not None and status.enabled
        return bool(was_enabled) or definition.uid in self._cluster.cache.desired.switched_off

    def _enabled(self, definition: Definition, done: set[str]) -> list[Schedule]:
        cache = self._cluster.cache
        uids = sorted(cache.desired.children_of(definition.ref) - done)
        known = map(cache.schedules.get, uids)
        return [each for each in known if each and not each.is_deleting and each.spec and each.spec.enabled]

    async def _disable(self, schedule: Schedule, definition: Definition, fence: Fence) -> bool:
        """Write one schedule; tell whether it is dealt with. Refused for good, it stays as it is, and held."""
        fence.check()
        ref, client = schedule.ref, self._cluster.client
        try:
            answer = await client.disable_schedule(ref.namespace, ref.name, resource_version=schedule.resource_version)
        except (ConflictError, NotFoundError):
            await self._look_again(schedule)
            return False
        except (ForbiddenError, InvalidError) as error:
            log.warning(
                "a schedule was not disabled with its definition, which holds it all the same",
                extra={"schedule": str(ref), "definition": str(definition.ref), "error": error.message},
            )
            return True
        except ClusterError as error:
            log.warning("a schedule is not disabled yet", extra={"schedule": str(ref), "error": error.message})
            return False
        self._cluster.cache.desired.refresh_schedule(answer)
        self._wake(schedule.uid)
        log.info("disabled with its definition", extra={"schedule": str(ref), "definition": str(definition.ref)})
        return True

    async def _look_again(self, schedule: Schedule) -> None:
        try:
            await reread_schedule(self._cluster, schedule)
            self._wake(schedule.uid)
        except ClusterError as error:
            log.debug("could not be read again", extra={"schedule": str(schedule.ref), "error": error.message})
