"""What a new leader reads before its first write: everything, from the server itself and not from a standby's cache (P9)."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from workflow_schedules.api import names
from workflow_schedules.api.occurrence import FINAL_OUTCOMES, Cause, Decision
from workflow_schedules.cluster import wire
from workflow_schedules.cluster.errors import ForbiddenError, InvalidError, NotFoundError, RefusedError
from workflow_schedules.cluster.job_store import SeenJob
from workflow_schedules.cluster.methods import DEFINITIONS, JOBS, OCCURRENCES, SCHEDULES
from workflow_schedules.core import essentials
from workflow_schedules.core.job import labels
from workflow_schedules.core.leases_apart import is_other_lease
from workflow_schedules.core.log import FORMAT
from workflow_schedules.core.requests import is_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.core.model import Record, Writer
    from workflow_schedules.scheduler.wakeups import WakeUps

Read = TypeVar("Read")

log = logging.getLogger(__name__)

SLICE = 100  # objects that are read at a stretch, some milliseconds
_NEVER = datetime.max.replace(tzinfo=UTC)

UNFINISHED = ",".join(
    [
        f"spec.cause={Cause.SCHEDULED}",
        f"spec.decision={Decision.ADMITTED}",
        *(f"status.outcome!={outcome}" for outcome in sorted(FINAL_OUTCOMES)),
    ]
)

REQUESTS = f"spec.cause!={Cause.SCHEDULED}"


async def take_over(cluster: Cluster, wakeups: WakeUps, *, writer: Writer) -> int:
    """Read schedules, definitions and unfinished runs anew, and wake every schedule.

    Logs are not read here: each is read before the first decision that may write to it.

    Returns:
        The highest epoch of this Lease that anybody else has stored anywhere (R33).

    Raises:
        ClusterError: the API server could not be read.

    Source: reliability P9, P16.
    """
    with cluster.cache.meanwhile.is_kept():
        await _read_desired(cluster, wakeups)
    epochs = [
        schedule.status.fencing_epoch or 0
        for schedule in cluster.cache.schedules.values()
        if schedule.status is not None
        and schedule.status.lease in {None, writer.lease}
        and schedule.status.writer != writer.identity
    ]
    async for page in cluster.client.list_occurrences(field_selector=UNFINISHED):
        epochs.extend(_remember_run(cluster, body, writer) for body in page.items)
    await _remember_ended(cluster, writer)
    _wake_everything(cluster, wakeups)
    log.info("took over", extra={"schedules": len(cluster.cache.schedules), "unfinished": len(cluster.cache.logs)})
    return max(epochs, default=0)


async def _read_desired(cluster: Cluster, wakeups: WakeUps) -> None:
    """Read what people want; Jobs, too, where what is known of them does not count."""
    found, of_definitions = await cluster.client.list_all(DEFINITIONS)
    definitions = await _read(found, wire.definition_of)
    found, of_schedules = await cluster.client.list_all(SCHEDULES)
    schedules = await _read(found, wire.schedule_of)
    requests = await _read_requests(cluster)
    if cluster.cache.are_jobs_stale:
        await _read_jobs(cluster)
    wakeups.clear()
    cluster.cache.replace_all((schedules, of_schedules), (definitions, of_definitions))
    cluster.cache.replace_requests(*requests)
    cluster.cache.meanwhile.tell_again()


async def _read_jobs(cluster: Cluster) -> None:
    """Read all Jobs, which a watch keeps known otherwise: it may not have noticed yet that a backup was restored.

    Or it has, and tells what happens meanwhile: that is newer than the list.
    """
    bodies, version = await cluster.client.list_all(JOBS, label_selector=names.LABEL_SCHEDULE_UID)
    cluster.cache.reread_jobs(await _read(bodies, SeenJob.of), wire.number_of(version))


async def _read(bodies: list[wire.Json], read: Callable[[wire.Json], Read]) -> list[Read]:
    """Read objects in slices: thousands take a second, in which the Lease is to be renewed and probes answered (K-089)."""
    found = []
    for body in bodies:
        found.append(read(body))
        if len(found) % SLICE == 0:
            await asyncio.sleep(0)
    return found


def _wake_everything(cluster: Cluster, wakeups: WakeUps) -> None:
    """Look at every schedule, first at those with unfinished runs, then at those that wait, oldest first (R28)."""
    wakeups.wake_all(cluster.cache.logs)
    wakeups.wake_in_order(sorted(cluster.cache.schedules, key=lambda uid: _waits_since(cluster, uid)))
    wakeups.wake_all(cluster.cache.requests.unfinished_keys())


def _waits_since(cluster: Cluster, uid: str) -> datetime:
    status = cluster.cache.schedules[uid].status
    return status.candidates[0] if status is not None and status.candidates else _NEVER


async def _read_requests(cluster: Cluster) -> tuple[list[Record], int]:
    """Read what people asked for, and at which resourceVersion that is so."""
    items, version = await cluster.client.list_all(OCCURRENCES, field_selector=REQUESTS)
    records = [record for record in await _read(items, _readable) if record is not None]
    return records, wire.number_of(version)


def _readable(body: wire.Json) -> Record | None:
    with suppress(wire.NotARecordError):  # the watch has said so
        return wire.record_of(body)
    return None


def _remember_run(cluster: Cluster, body: wire.Json, writer: Writer) -> int:
    try:
        record = wire.record_of(body)
    except wire.NotARecordError as error:
        _suspect(cluster, body, str(error))
        return 0
    if is_other_lease(record.spec.lease, writer.lease):
        return 0  # its own installation ends it (R33)
    uid = record.spec.schedule_ref.uid
    if uid and record.ref.name == names.record_name(record.spec.schedule_ref.name, uid, record.number):
        cluster.cache.remember_run(uid, record)
        cluster.cache.put_cancel(body)  # before anything of it is started
    else:
        _suspect(cluster, body, f"record {record.ref.name} says it is number {record.number} of another name")
    if (incomplete := essentials.problem(record.spec)) is not None:  # its run holds its place all the same (R31)
        _suspect(cluster, body, f"record {record.ref.name} {incomplete}")
    is_known = record.spec.lease is not None and record.spec.writer != writer.identity
    return (record.spec.fencing_epoch or 0) if is_known else 0


async def _remember_ended(cluster: Cluster, writer: Writer) -> None:
    """Find runs of deleted schedules that were ended on record, but whose Job was not deleted any more (P19).

    Runs of other schedules are found by their log. A Job that is being deleted needs nobody.
    """
    for job in list(cluster.cache.jobs.values()):
        if job.schedule_uid in cluster.cache.schedules or job.is_gone or job.is_finished or job.is_deleting:
            continue
        known = cluster.cache.log(job.schedule_uid).runs.values()
        if cluster.cache.requests.of_job(job) or any(run.record.uid == job.owner_uid for run in known):
            continue
        try:
            record = wire.record_of(await cluster.client.get_occurrence(job.ref.namespace, job.ref.name))
        except (NotFoundError, wire.NotARecordError):
            continue
        if is_request(record) or is_other_lease(record.spec.lease, writer.lease):
            continue
        if record.spec.schedule_ref.uid == job.schedule_uid and record.uid == job.owner_uid:
            cluster.cache.remember_run(job.schedule_uid, record)


def _suspect(cluster: Cluster, body: wire.Json, why: str) -> None:
    """Note an unfinished record that contradicts with the log whose name it has; one that has none concerns nobody (K-095)."""
    name = str(body["metadata"]["name"])
    reference = (body.get("spec") or {}).get("scheduleRef")
    uid = reference.get("uid") if isinstance(reference, dict) else None
    for known in (uid, *cluster.cache.desired.uids_in(wire.ref_of(body).namespace)):
        if isinstance(known, str) and names.is_record_name_of(name, known):
            cluster.cache.log(known).suspect = (name, why)
            return
    log.warning("a record belongs to no schedule, it is left alone", extra={"record": name, "problem": why})


class FenceProof(StrEnum):
    """What the server's fence does with writes of the operator."""

    HOLDS = "Holds"
    IS_MISSING = "IsMissing"
    REFUSES_THE_HOLDER = "RefusesTheHolder"


async def prove_fence(cluster: Cluster, fence: Fence, namespace: str) -> FenceProof:
    """Ask the server what it would do with a write of this epoch, and with one of the epoch before (P14).

    All are dry runs that write nothing: a record of each epoch, and the status of a schedule, where there is one, of the
    older, since creates and statuses are bound to the policy apart.

    Raises:
        ClusterError: the API server could not be asked.
    """
    if await _is_refused(cluster, fence.writer, namespace):
        return FenceProof.REFUSES_THE_HOLDER
    older = replace(fence.writer, epoch=fence.writer.epoch - 1)
    is_held = await _is_refused(cluster, older, namespace) and not await _is_status_taken(cluster, older)
    return FenceProof.HOLDS if is_held else FenceProof.IS_MISSING


async def _is_status_taken(cluster: Cluster, writer: Writer) -> bool:
    """Tell whether the server would store the status of a schedule, any that has one, as of this writer."""
    known = cluster.cache.schedules.values()
    mine = (each for each in known if each.status is not None and not is_other_lease(each.status.lease, writer.lease))
    schedule = next(mine, None)
    if schedule is None:
        return False
    status = {"fencingEpoch": writer.epoch, "writer": writer.identity}
    ref = schedule.ref
    try:
        await cluster.client.patch_schedule_status(ref.namespace, ref.name, {"status": status}, dry_run=True)
    except RefusedError:
        return False
    return True


async def _is_refused(cluster: Cluster, writer: Writer, namespace: str) -> bool:
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
            "fencingEpoch": writer.epoch,
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
