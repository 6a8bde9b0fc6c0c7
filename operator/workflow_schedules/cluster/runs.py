"""Make the Job of an admitted record, and find out what became of an attempt. When to try is core's business."""

from __future__ import annotations

from datetime import UTC, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from workflow_schedules.cluster.backoff import BACKOFF_FIRST_SECONDS, BACKOFF_LIMIT_SECONDS
from workflow_schedules.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    RefusedError,
    UnansweredError,
)
from workflow_schedules.core.acceptance import template_of
from workflow_schedules.core.events import Happening
from workflow_schedules.core.job import job_manifest
from workflow_schedules.core.requests import last_successful_time
from workflow_schedules.core.zones import UnknownTimeZoneError, load_zone

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.cluster.memory import RunMemory
    from workflow_schedules.core.model import ObjectRef, Run, Snapshot, Template


async def create_job(cluster: Cluster, run: Run, snapshot: Snapshot, fence: Fence) -> None:
    """Create a run's Job; what became of the attempt is remembered with the run.

    Raises:
        ForbiddenError: the Lease fence refused it.
        LostLeaseError: this epoch may not write any more.

    Source: contract R24, R35; reliability P2, P10.
    """
    ref, memory = run.record.ref, cluster.cache.run_memory(snapshot.uid, run.record)
    if memory is None:
        return
    manifest = await _manifest(cluster, run, snapshot, memory, fence)
    if manifest is None:
        return
    try:
        fence.check()
        cluster.cache.put_job(await cluster.client.create_job(ref.namespace, manifest))
        cluster.tell(Happening.STARTED, run.record)
    except AlreadyExistsError:
        await read_job(cluster, ref)
    except UnansweredError as error:
        note_failure(memory, error, cluster.now())
        memory.create_given_up_at = cluster.cache.log(snapshot.uid).write_given_up_at = cluster.monotonic()
        await read_job(cluster, ref)
    except RefusedError as error:
        if isinstance(error, ForbiddenError) and error.is_fence:
            raise
        if is_for_good(error):
            memory.refused = error.message
        else:
            note_failure(memory, error, cluster.now())


def is_for_good(error: RefusedError) -> bool:
    """Tell whether the API server will never take this Job: 400, 404, 422, and 403 that isn't quota (R24)."""
    if isinstance(error, ForbiddenError):
        return not (error.is_quota or error.is_terminating)
    return isinstance(error, InvalidError | NotFoundError)


async def _manifest(
    cluster: Cluster, run: Run, snapshot: Snapshot, memory: RunMemory, fence: Fence
) -> dict[str, Any] | None:
    """Render the Job; None where its pinned template had to be read, or can't be had now, which is noted and tried again.

    Reading takes its time, in which the deadline may have passed: then it is decided anew (R35).
    """
    is_known = cluster.templates.is_known(run.record.ref.namespace, run.record.spec.template_hash or "")
    try:
        template = await _template(cluster, run, snapshot, fence)
    except ClusterError as error:
        note_failure(memory, error, cluster.now())
        return None
    if not is_known:
        return None
    spec = snapshot.schedule.spec if snapshot.schedule else None
    totals = run.record.spec.totals  # as when it was admitted, like its input: a recovery renders the same
    return job_manifest(
        run.record,
        template,
        zone=_zone(spec.time_zone if spec else "UTC"),
        last_successful_at=totals.last_successful_time if totals else last_successful_time(snapshot),
        writer=snapshot.writer,
    )


async def _template(cluster: Cluster, run: Run, snapshot: Snapshot, fence: Fence) -> Template:
    """Return the template that a record pins; one that is gone is pinned again if it is still in force."""
    namespace, pinned_hash = run.record.ref.namespace, run.record.spec.template_hash or ""
    try:
        return await cluster.templates.pinned(namespace, pinned_hash)
    except NotFoundError:
        current = template_of(snapshot.schedule, snapshot.definition) if snapshot.schedule else None
        if current is None or current.hash != pinned_hash:
            raise
        await cluster.templates.pin(namespace, current, fence=fence)
        return current


def _zone(name: str) -> tzinfo:
    try:
        return load_zone(name)
    except UnknownTimeZoneError:
        return UTC


def note_failure(memory: RunMemory, error: ClusterError, now: datetime) -> None:
    """Remember that an attempt failed, and when the next one may be."""
    pause = min(BACKOFF_FIRST_SECONDS * 2.0 ** min(memory.attempts, 16), BACKOFF_LIMIT_SECONDS)
    memory.attempts += 1
    memory.last_error = error.message
    memory.retry_at = now + timedelta(seconds=max(pause, error.retry_after_seconds))


async def read_job(cluster: Cluster, ref: ObjectRef) -> bool:
    """Ask the API server itself for a Job; tell whether there is one, and take it into the cache."""
    try:
        cluster.cache.put_job(await cluster.client.get_job(ref.namespace, ref.name))
    except NotFoundError:
        return False
    return True
