"""Keep the status of definitions true: counted late, written only when a count has settled."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from workflow_schedules.api.common import MAX_CONDITION_MESSAGE_LENGTH, Condition, ConditionStatus, set_condition
from workflow_schedules.api.definition import WorkflowDefinitionStatus
from workflow_schedules.cluster.errors import ClusterError, ForbiddenError, NotFoundError
from workflow_schedules.core.acceptance import definition_problem, definition_warnings
from workflow_schedules.scheduler.switch_off import SwitchOff

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.core.model import Definition, ObjectRef

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0  # a count must be the same in two looks before it is written: short runs cost no write


class DefinitionStatuses:
    """Writes the status of each definition when it has changed and settled."""

    def __init__(self, cluster: Cluster, *, wake: Callable[[str], None]) -> None:
        """Take the cluster, and who is told that a schedule is another one than it was."""
        self._cluster = cluster
        self._switch_off = SwitchOff(cluster, wake)
        self._patience_seconds = 0.0  # as the API server asked for
        self._counted: dict[ObjectRef, tuple[int, int, int]] = {}

    async def run(self, fence: Fence) -> None:
        """Look every few seconds until cancelled."""
        while True:
            definitions = dict(self._cluster.cache.definitions)
            self._counted = {ref: counts for ref, counts in self._counted.items() if ref in definitions}
            self._switch_off.forget_all_but({definition.uid for definition in definitions.values()})
            for definition in definitions.values():
                await self._keep(definition, fence)
            await asyncio.sleep(max(LOOK_SECONDS, self._patience_seconds))
            self._patience_seconds = 0.0

    async def _keep(self, definition: Definition, fence: Fence) -> None:
        if not await self._switch_off.finish(definition, fence):
            return  # its generation is acted on when all of its schedules are
        if self._has_anothers(definition, fence):
            return  # both would count their own runs, and write against each other for ever (R33)
        counts = self._count(definition)
        wanted, stored = self._status(definition, counts), definition.status
        is_settled = self._counted.get(definition.ref) == counts or stored is None or stored.enabled != wanted.enabled
        self._counted[definition.ref] = counts
        if not is_settled or wanted == stored:
            return
        fence.check()
        patch = {"metadata": {"resourceVersion": definition.resource_version}, "status": wanted.wire()}
        ref = definition.ref
        try:
            self._cluster.cache.desired.refresh_definition(
                await self._cluster.client.patch_definition_status(ref.namespace, ref.name, patch)
            )
        except (NotFoundError, ForbiddenError):
            return
        except ClusterError as error:
            self._patience_seconds = max(self._patience_seconds, error.retry_after_seconds)
            log.debug(
                "a status was not written, it is tried again", extra={"definition": str(ref), "error": str(error)}
            )

    def _has_anothers(self, definition: Definition, fence: Fence) -> bool:
        cache, lease = self._cluster.cache, fence.writer.lease
        return any(cache.is_anothers(uid, lease) for uid in cache.desired.children_of(definition.ref))

    def _count(self, definition: Definition) -> tuple[int, int, int]:
        cache = self._cluster.cache
        children = [cache.schedules[uid] for uid in cache.desired.children_of(definition.ref) if uid in cache.schedules]
        enabled = sum(1 for schedule in children if schedule.spec and schedule.spec.enabled)
        return len(children), enabled, cache.places.unfinished_of(definition.uid)

    def _status(self, definition: Definition, counts: tuple[int, int, int]) -> WorkflowDefinitionStatus:
        schedules, enabled, active = counts
        before = definition.status or WorkflowDefinitionStatus()
        problem = definition_problem(definition)
        message = problem or "; ".join(definition_warnings(definition))
        conditions = before.conditions
        for kind in ("Accepted", "Ready"):
            new = Condition(
                type=kind,
                status=ConditionStatus.FALSE if problem else ConditionStatus.TRUE,
                reason="InvalidSpec" if problem else "Valid",
                message=message[:MAX_CONDITION_MESSAGE_LENGTH],
                observed_generation=definition.generation,
            )
            conditions = set_condition(conditions, new, self._cluster.now())
        return WorkflowDefinitionStatus(
            observed_generation=definition.generation,
            enabled=definition.is_enabled if definition.problem is None else before.enabled,
            schedules=schedules,
            enabled_schedules=enabled,
            active_runs=active,
            conditions=conditions,
        )
