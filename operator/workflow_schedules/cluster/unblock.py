"""Set a record aside that a person has named: list what there is, close what it decided. The Baseline is apply's to append.

Closing comes first: a crash in between leaves a schedule that is still blocked, and finds nothing more to close.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from workflow_schedules.api import names
from workflow_schedules.cluster.errors import NotFoundError, RefusedError
from workflow_schedules.cluster.listing import list_log
from workflow_schedules.cluster.memory import RunMemory
from workflow_schedules.core.unblock import SetAside, set_aside

if TYPE_CHECKING:
    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.cluster.memory import ScheduleLog
    from workflow_schedules.core.model import Record, Schedule, Snapshot
    from workflow_schedules.core.plan import Unblock
    from workflow_schedules.core.unblock import Closing

log = logging.getLogger(__name__)


async def prepare(
    cluster: Cluster, step: Unblock, snapshot: Snapshot, schedule: Schedule, *, fence: Fence
) -> SetAside | None:
    """Close the runs that are set aside and return what is to be appended; None while a Job of theirs still runs.

    Raises:
        ClusterError: not everything could be read or closed; it is to be tried again.
        LostLeaseError: this epoch may not write any more.

    Source: contract R31.
    """
    listed = await list_log(cluster.client, schedule)
    found = set_aside(snapshot, schedule, listed, cluster.cache.jobs.get, step=step, now=cluster.now())
    memory = cluster.cache.log(snapshot.uid)
    memory.waits_for = found.waits_for
    if found.waits_for is not None:
        return None
    for closing in found.closings:
        fence.check()
        await _close(cluster, closing)
    number = await _free_number(cluster, schedule, found.spec.sequence or 1)
    return replace(found, spec=found.spec.model_copy(update={"sequence": number}))


def begin_anew(memory: ScheduleLog, found: SetAside, head: Record) -> None:
    """Take in that the log begins anew with a record."""
    memory.unblock()
    memory.head = head
    memory.runs = {record.number: memory.runs.get(record.number) or RunMemory(record=record) for record in found.runs}


async def _close(cluster: Cluster, closing: Closing) -> None:
    listed = closing.listed
    patch = {"metadata": {"resourceVersion": listed.resource_version}, "status": closing.status.wire()}
    try:
        await cluster.client.patch_occurrence_status(listed.ref.namespace, listed.ref.name, patch)
    except NotFoundError:
        return
    except RefusedError as error:
        if listed.record is not None:
            raise
        # a record that does not fit the schema may take no status either; the Baseline sets it aside all the same
        log.warning("a record could not be closed", extra={"record": str(listed.ref), "error": error.message})


async def _free_number(cluster: Cluster, schedule: Schedule, number: int) -> int:
    """Return the first number whose name is free: one without our label was not listed."""
    while True:
        try:
            await cluster.client.get_occurrence(
                schedule.ref.namespace, names.record_name(schedule.ref.name, schedule.uid, number)
            )
        except NotFoundError:
            return number
        number += 1
