"""What a new leader reads before its first write: everything, from the server itself and not from a standby's cache (P9)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from workflow_schedules.api import names
from workflow_schedules.api.occurrence import FINAL_OUTCOMES, Cause, Decision
from workflow_schedules.cluster import wire
from workflow_schedules.cluster.errors import ForbiddenError, InvalidError
from workflow_schedules.cluster.memory import RunMemory
from workflow_schedules.cluster.methods import DEFINITIONS, SCHEDULES
from workflow_schedules.core.job import labels
from workflow_schedules.core.log import FORMAT

if TYPE_CHECKING:
    from workflow_schedules.cluster.apply import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.scheduler.wakeups import WakeUps

log = logging.getLogger(__name__)

_UNFINISHED = ",".join(
    [
        f"spec.cause={Cause.SCHEDULED}",
        f"spec.decision={Decision.ADMITTED}",
        *(f"status.outcome!={outcome}" for outcome in sorted(FINAL_OUTCOMES)),
    ]
)


async def take_over(cluster: Cluster, wakeups: WakeUps, *, lease: str) -> int:
    """Read schedules, definitions and unfinished runs anew, and wake every schedule.

    Logs are not read here: each is read before the first decision that may write to it.

    Returns:
        The highest epoch of this Lease that is stored anywhere (R33).

    Raises:
        ClusterError: the API server could not be read.

    Source: reliability P9, P16.
    """
    definitions = await cluster.client.list_all(DEFINITIONS)
    schedules = await cluster.client.list_all(SCHEDULES)
    wakeups.clear()
    cluster.cache.replace_all(schedules, definitions)
    epochs = [
        schedule.status.fencing_epoch or 0
        for schedule in cluster.cache.schedules.values()
        if schedule.status is not None and schedule.status.lease in {None, lease}
    ]
    async for page in cluster.client.list_occurrences(field_selector=_UNFINISHED):
        epochs.extend(_remember_run(cluster, body, lease) for body in page.items)
    wakeups.wake_all(cluster.cache.schedules)
    wakeups.wake_all(cluster.cache.logs)
    log.info("took over", extra={"schedules": len(cluster.cache.schedules), "unfinished": len(cluster.cache.logs)})
    return max(epochs, default=0)


def _remember_run(cluster: Cluster, body: wire.Json, lease: str) -> int:
    try:
        record = wire.record_of(body)
    except wire.NotARecordError as error:
        uid = ((body.get("spec") or {}).get("scheduleRef") or {}).get("uid")
        if uid:
            cluster.cache.log(str(uid)).contradiction = str(error)
        return 0
    uid = record.spec.schedule_ref.uid
    if uid:
        cluster.cache.log(uid).runs[record.number] = RunMemory(record=record)
    return (record.spec.fencing_epoch or 0) if record.spec.lease == lease else 0


async def prove_fence(cluster: Cluster, fence: Fence, namespace: str) -> bool:
    """Ask the server whether it would refuse an older epoch (P14), with a dry run that writes nothing.

    Returns:
        True when it refused; False when the policy is missing: the other fences still hold, and it is said in the log.

    Raises:
        ClusterError: the API server could not be asked.
    """
    writer = fence.writer
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND_OCCURRENCE,
        "metadata": {
            "name": names.record_name("fence-proof", "none", 0),
            "namespace": namespace,
            "labels": labels("fence-proof", "none", str(Cause.SCHEDULED), None),
        },
        "spec": {
            "scheduleRef": {"name": "fence-proof", "uid": "none"},
            "sequence": 0,
            "format": FORMAT,
            "generation": 1,
            "cause": str(Cause.SCHEDULED),
            "decision": str(Decision.BASELINE),
            "fencingEpoch": writer.epoch - 1,
            "writer": writer.identity,
            "lease": writer.lease,
        },
    }
    try:
        await cluster.client.create_occurrence(namespace, body, dry_run=True)
    except ForbiddenError as error:
        return error.is_fence
    except InvalidError:
        return False
    return False
