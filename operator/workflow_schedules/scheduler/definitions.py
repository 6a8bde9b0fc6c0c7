"""Keep the status of definitions true: counted late, written only when a count has settled."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from workflow_schedules.api.common import MAX_CONDITION_MESSAGE_LENGTH, Condition, ConditionStatus, set_condition
from workflow_schedules.api.definition import WorkflowDefinitionStatus
from workflow_schedules.cluster.errors import ClusterError, ForbiddenError, NotFoundError
from workflow_schedules.core.acceptance import definition_problem

if TYPE_CHECKING:
    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.core.model import Definition, ObjectRef

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0  # a count must be the same in two looks before it is written: short runs cost no write


class DefinitionStatuses:
    """Writes the status of each definition when it has changed and settled."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._counted: dict[ObjectRef, tuple[int, int, int]] = {}

    async def run(self, fence: Fence) -> None:
        """Look every few seconds until cancelled."""
        while True:
            definitions = dict(self._cluster.cache.definitions)
            self._counted = {ref: counts for ref, counts in self._counted.items() if ref in definitions}
            for definition in definitions.values():
                await self._keep(definition, fence)
            await asyncio.sleep(LOOK_SECONDS)

    async def _keep(self, definition: Definition, fence: Fence) -> None:
        counts = self._count(definition)
        is_settled = self._counted.get(definition.ref) == counts or definition.status is None
        self._counted[definition.ref] = counts
        wanted = self._status(definition, counts)
        if not is_settled or wanted == definition.status:
            return
        fence.check()
        patch = {"metadata": {"resourceVersion": definition.resource_version}, "status": wanted.wire()}
        ref = definition.ref
        try:
            self._cluster.cache.refresh_definition(
                await self._cluster.client.patch_definition_status(ref.namespace, ref.name, patch)
            )
        except (NotFoundError, ForbiddenError):
            return
        except ClusterError as error:
            log.debug(
                "a status was not written, it is tried again", extra={"definition": str(ref), "error": str(error)}
            )

    def _count(self, definition: Definition) -> tuple[int, int, int]:
        cache = self._cluster.cache
        children = cache.children_of(definition.ref)
        enabled = active = 0
        for uid in children:
            schedule = cache.schedules.get(uid)
            if schedule is None:
                continue
            enabled += bool(schedule.spec and schedule.spec.enabled)
            known = cache.logs.get(uid)
            active += known.unfinished if known else 0
        return len(children), enabled, active

    def _status(self, definition: Definition, counts: tuple[int, int, int]) -> WorkflowDefinitionStatus:
        schedules, enabled, active = counts
        before = definition.status or WorkflowDefinitionStatus()
        problem = definition_problem(definition)
        conditions = before.conditions
        for kind in ("Accepted", "Ready"):
            new = Condition(
                type=kind,
                status=ConditionStatus.FALSE if problem else ConditionStatus.TRUE,
                reason="InvalidSpec" if problem else "Valid",
                message=(problem or "")[:MAX_CONDITION_MESSAGE_LENGTH],
                observed_generation=definition.generation,
            )
            conditions = set_condition(conditions, new, self._cluster.now())
        return WorkflowDefinitionStatus(
            observed_generation=definition.generation,
            schedules=schedules,
            enabled_schedules=enabled,
            active_runs=active,
            conditions=conditions,
        )
