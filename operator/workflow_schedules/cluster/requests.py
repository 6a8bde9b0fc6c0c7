"""Carry out one step of a run that people asked for: resolved on record first, then its Job, its outcome last.

Each write is a compare-and-set on the request itself, so whoever is late learns what was decided. What to write is core's
business.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from workflow_schedules.cluster import wire
from workflow_schedules.cluster.appending import owner_reference
from workflow_schedules.cluster.apply import log_outcome, patch_status
from workflow_schedules.cluster.backoff import BACKOFF_FIRST_SECONDS, pause_seconds
from workflow_schedules.cluster.errors import ClusterError, NotFoundError
from workflow_schedules.cluster.removal import end_job
from workflow_schedules.cluster.runs import create_job, note_failure, read_job
from workflow_schedules.core.decide_requests import Own, Queue, Refuse, RequestStep, Resolve
from workflow_schedules.core.plan import Claim, CreateJob, DeleteJob, FindJob, ReadPods, WriteOutcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workflow_schedules.api.occurrence import ScheduleOccurrenceStatus
    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.cluster.memory import RunMemory
    from workflow_schedules.core.model import Record, Run, Writer

log = logging.getLogger(__name__)


async def apply_request(cluster: Cluster, step: RequestStep, queue: Queue, *, fence: Fence) -> None:
    """Carry out a step; what fails is remembered with the request, which is left alone for a while.

    Raises:
        LostLeaseError: this epoch may not write any more.

    Source: contract R27; reliability P2, P10, P11, P12.
    """
    fence.check()
    memory = cluster.cache.requests.memory(step.run.record.ref)
    if memory is None:
        return
    try:
        await _carry_out(cluster, step, queue, memory, fence)
    except ClusterError as error:
        pause = pause_seconds(error, failures=memory.attempts)
        memory.attempts += 1
        memory.retry_at = cluster.now() + timedelta(seconds=pause)
        log.warning(
            "a request failed, it is tried again",
            extra={"request": str(step.run.record.ref), "error": error.message, "pause_seconds": pause},
        )


async def _carry_out(cluster: Cluster, step: RequestStep, queue: Queue, memory: RunMemory, fence: Fence) -> None:
    run = step.run
    match step:
        case Resolve():
            await cluster.templates.pin(run.record.ref.namespace, step.template, fence=fence)
            fence.check()
            record = await _patch(cluster, run, step.status.wire())
            memory.is_resolved_here = record is not None and _is_by(record, queue.snapshot.writer)
        case Refuse():
            await _refuse(cluster, step, queue, fence)
        case Own():
            await _own(cluster, step, memory, fence)
        case Claim():
            writer = queue.snapshot.writer
            await _patch(cluster, run, {"fencingEpoch": writer.epoch, "writer": writer.identity})
        case CreateJob():
            await create_job(cluster, run, queue.snapshot, fence)
        case DeleteJob() | FindJob() | ReadPods():
            await end_job(cluster, step, memory)
            cluster.cache.follow_request(run.record.ref)
        case WriteOutcome():
            await _write_outcome(cluster, step, fence)


def _is_by(record: Record, writer: Writer) -> bool:
    return (record.status.fencing_epoch, record.status.writer) == (writer.epoch, writer.identity)


async def _refuse(cluster: Cluster, step: Refuse, queue: Queue, fence: Fence) -> None:
    if await _is_judged_by_the_latest(cluster, queue, step.run):
        fence.check()
        await _write(cluster, step.run, step.status)


async def _write_outcome(cluster: Cluster, step: WriteOutcome, fence: Fence) -> None:
    if not (step.confirm_absence and await read_job(cluster, step.run.record.ref)):
        fence.check()
        await _write(cluster, step.run, step.status)


async def _write(cluster: Cluster, run: Run, status: ScheduleOccurrenceStatus) -> None:
    log_outcome(await _patch(cluster, run, status.wire()), status)


async def _patch(cluster: Cluster, run: Run, status: dict[str, Any]) -> Record | None:
    """Patch the status of a request, and return it as it is stored then; None if there is none."""
    ref = run.record.ref
    memory = cluster.cache.requests.memory(ref)
    try:
        record = wire.record_of(await patch_status(cluster, run, memory, status))
        cluster.cache.put_request(record)
    except (NotFoundError, wire.NotARecordError):
        cluster.cache.remove_request(ref)  # whoever deletes it ends it: the collector takes its Job
        return None
    return record


async def _own(cluster: Cluster, step: Own, memory: RunMemory, fence: Fence) -> None:
    """Add the schedule to a request's owners; whom its maker named stays, so it goes when all of them are gone (R20)."""
    ref, client = step.run.record.ref, cluster.client
    try:
        found = await client.get_occurrence(ref.namespace, ref.name)
        metadata, owners = found["metadata"], found["metadata"].get("ownerReferences") or []
        if metadata["uid"] == step.run.record.uid and all(each["uid"] != step.schedule.uid for each in owners):
            fence.check()
            owners = [*owners, owner_reference(step.schedule)]
            version = metadata["resourceVersion"]
            found = await client.own_occurrence(ref.namespace, ref.name, owners=owners, resource_version=version)
        cluster.cache.put_request(wire.record_of(found))
    except (NotFoundError, wire.NotARecordError):
        cluster.cache.remove_request(ref)
    except ClusterError as error:
        note_failure(memory, error, cluster.now())  # no Job before it has its owner; why there is none is told (R35)


async def _is_judged_by_the_latest(cluster: Cluster, queue: Queue, run: Run) -> bool:
    """Ask the server itself for schedule and definition: the watches may be behind, and a refusal is final.

    The answers are only compared: what is taken in past the watches would wake nobody else whom it concerns.
    """
    client, snapshot, namespace = cluster.client, queue.snapshot, queue.ref.namespace
    pairs = [(client.get_schedule, queue.ref.name, snapshot.schedule.resource_version if snapshot.schedule else "")]
    spec = snapshot.schedule.spec if snapshot.schedule else None
    if spec is not None and spec.workflow_ref is not None:
        known = snapshot.definition.resource_version if snapshot.definition else ""
        pairs.append((client.get_definition, spec.workflow_ref.name, known))
    found = [await _version_of(get, namespace, name) for get, name, _ in pairs]
    if found == [known for _, _, known in pairs]:
        return True
    memory = cluster.cache.requests.memory(run.record.ref)
    if memory is not None:
        memory.retry_at = cluster.now() + timedelta(seconds=BACKOFF_FIRST_SECONDS)
    return False


async def _version_of(get: Callable[[str, str], Awaitable[wire.Json]], namespace: str, name: str) -> str:
    try:
        return str((await get(namespace, name))["metadata"]["resourceVersion"])
    except NotFoundError:
        return ""
