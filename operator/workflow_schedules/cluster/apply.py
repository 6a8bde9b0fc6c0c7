"""Carry out one step of a plan: one write, fenced, and what its answer teaches the cache.

The record comes before the Job, the status last: the record's name is the compare-and-set, so a stalled leader that wakes
collides with what another decided meanwhile, and a crash before the Job leaves a record that recovery completes (P11). A
write without an answer is followed by a consistent read before anything is decided anew (P2). What to write is core's
business; when to try again is the caller's.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, assert_never

from workflow_schedules.api.occurrence import Decision
from workflow_schedules.cluster import wire
from workflow_schedules.cluster.appending import append
from workflow_schedules.cluster.backoff import (
    BACKOFF_FIRST_SECONDS,
    FENCE_LAG_TRIES,
    pause_seconds,
)
from workflow_schedules.cluster.errors import (
    ClusterError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnansweredError,
)
from workflow_schedules.cluster.history import read_log
from workflow_schedules.cluster.removal import end_job
from workflow_schedules.cluster.runs import create_job, read_job
from workflow_schedules.cluster.unblock import begin_anew, prepare
from workflow_schedules.cluster.watch import is_older
from workflow_schedules.core.events import Happening
from workflow_schedules.core.plan import (
    Append,
    Claim,
    CreateJob,
    DeleteJob,
    FindJob,
    LookAgain,
    ReadLog,
    ReadPods,
    Unblock,
    WriteOutcome,
)
from workflow_schedules.core.runs import REQUEST_LIFE

if TYPE_CHECKING:
    from workflow_schedules.api.occurrence import ScheduleOccurrenceStatus
    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.cluster.memory import RunMemory
    from workflow_schedules.core.model import Definition, Record, Run, Schedule, Snapshot
    from workflow_schedules.core.plan import RunStep, Step

log = logging.getLogger(__name__)

LOST_TRIES = 4


async def apply(cluster: Cluster, step: Step, snapshot: Snapshot, *, fence: Fence) -> float:
    """Carry out a step.

    Returns:
        Seconds to wait before the schedule is looked at again; 0 when the step was done or taught something new.

    Raises:
        LostLeaseError: this epoch may not write any more.

    Source: reliability, the write protocol and P2, P5, P10, P11, P13, P18.
    """
    fence.check()
    memory = cluster.cache.log(snapshot.uid)
    _reserve(cluster, step, snapshot)  # before any await: others decide meanwhile
    try:
        wait_seconds = await _carry_out(cluster, step, snapshot, fence)
    except ClusterError as error:
        if isinstance(error, UnansweredError):
            memory.write_given_up_at = cluster.monotonic()
        pause = max(pause_seconds(error, failures=memory.failures), _kept_seconds(cluster, step, snapshot))
        memory.failures += 1
        if isinstance(error, ForbiddenError) and error.is_fence and memory.failures <= FENCE_LAG_TRIES:
            return pause  # the admission cache lags behind the Lease for a moment after a takeover (P14)
        log.warning(
            "a request failed, it is tried again",
            extra={"schedule": snapshot.uid, "error": error.message, "pause_seconds": pause},
        )
        return pause
    finally:
        cluster.cache.count_places(snapshot.uid, answered_before=cluster.answered_before())
    memory.failures = 0
    return wait_seconds


def _reserve(cluster: Cluster, step: Step, snapshot: Snapshot) -> None:
    if isinstance(step, Append) and step.spec.decision is Decision.ADMITTED:
        cluster.cache.places.reserve(snapshot.uid, step.spec.definition_uid)


def _kept_seconds(cluster: Cluster, step: Step, snapshot: Snapshot) -> float:
    """Return how long to leave an admission alone that gets no answer again and again, though others wait for its place.

    Each attempt keeps a place for as long as it may still arrive (R28), so that place must go round in between (I9).
    """
    memory = cluster.cache.log(snapshot.uid)
    is_lost = isinstance(step, Append) and memory.append_given_up_at is not None
    is_scarce = snapshot.capacity is not None and memory.failures >= LOST_TRIES
    return REQUEST_LIFE.total_seconds() + BACKOFF_FIRST_SECONDS if is_lost and is_scarce else 0.0


async def reread_schedule(cluster: Cluster, schedule: Schedule) -> None:
    """Read a schedule from the API server itself; forget it if it is gone, or is another one of its name.

    Raises:
        ClusterError: it could not be read.
    """
    try:
        body = await cluster.client.get_schedule(schedule.ref.namespace, schedule.ref.name)
    except NotFoundError:
        body = {"metadata": {"uid": ""}}
    if body["metadata"]["uid"] == schedule.uid:
        cluster.cache.desired.refresh_schedule(body)
    else:
        cluster.cache.desired.remove_schedule(schedule.uid)


async def _carry_out(cluster: Cluster, step: Step, snapshot: Snapshot, fence: Fence) -> float:
    match step:
        case ReadLog():
            await read_log(cluster.client, cluster.cache, snapshot)
        case LookAgain():
            return await _look_again(cluster, snapshot)
        case Append():
            return await append(cluster, step, snapshot, fence=fence)
        case Unblock():
            return await _unblock(cluster, step, snapshot, fence)
        case _:
            await _carry_out_for_run(cluster, step, snapshot, fence)
    return 0.0


async def _carry_out_for_run(cluster: Cluster, step: RunStep, snapshot: Snapshot, fence: Fence) -> None:
    match step:
        case Claim():
            await _claim(cluster, step.run, snapshot)
        case CreateJob():
            await create_job(cluster, step.run, snapshot, fence)
        case WriteOutcome():
            await _write_outcome(cluster, step, snapshot, fence)
        case DeleteJob() | FindJob() | ReadPods():
            await end_job(cluster, step, cluster.cache.log(snapshot.uid).runs[step.run.record.number])
        case _:
            assert_never(step)


async def _look_again(cluster: Cluster, snapshot: Snapshot) -> float:
    """Read schedule and definition from the server itself, since the log knows a newer generation."""
    schedule = snapshot.schedule
    if schedule is None:
        return 0.0
    await reread_schedule(cluster, schedule)
    if snapshot.definition is not None:
        await _reread_definition(cluster, snapshot.definition)
    return BACKOFF_FIRST_SECONDS  # whatever was read, a second look right now would read the same


async def _reread_definition(cluster: Cluster, definition: Definition) -> None:
    ref = definition.ref
    try:
        cluster.cache.desired.refresh_definition(await cluster.client.get_definition(ref.namespace, ref.name))
    except NotFoundError:
        cluster.cache.desired.remove_definition(ref, definition.uid)


async def _unblock(cluster: Cluster, step: Unblock, snapshot: Snapshot, fence: Fence) -> float:
    """Close what is set aside, and append the Baseline that the log begins anew with (R31)."""
    if snapshot.schedule is None:
        return 0.0
    found = await prepare(cluster, step, snapshot, snapshot.schedule, fence=fence)
    if found is None:
        return 0.0
    if (found.spec.generation or 0) < (found.known_generation or 0):
        return await _look_again(cluster, snapshot)
    fence.check()
    memory = cluster.cache.log(snapshot.uid)
    before = memory.head
    wait_seconds = await append(cluster, Append(spec=found.spec), snapshot, fence=fence)
    if memory.head is not None and memory.head is not before and memory.head.number == found.spec.sequence:
        begin_anew(memory, found, memory.head)
        return wait_seconds
    return max(wait_seconds, BACKOFF_FIRST_SECONDS)  # somebody knew more


async def _claim(cluster: Cluster, run: Run, snapshot: Snapshot) -> None:
    patch = {"fencingEpoch": snapshot.writer.epoch, "writer": snapshot.writer.identity}
    await _patch_run(cluster, run, snapshot, patch)


async def _write_outcome(cluster: Cluster, step: WriteOutcome, snapshot: Snapshot, fence: Fence) -> None:
    if step.confirm_absence and await read_job(cluster, step.run.record.ref):
        return
    fence.check()
    record = await _patch_run(cluster, step.run, snapshot, {"message": None, **step.status.wire()})
    log_outcome(record, step.status)


def log_outcome(stored: Record | None, tried: ScheduleOccurrenceStatus) -> None:
    """Log an outcome if the record has it from this write: where somebody was faster, it is decided anew."""
    if stored is None or _mark(stored.status) != _mark(tried):
        return
    log.info(
        "outcome", extra={"record": str(stored.ref), "outcome": str(stored.status.outcome), "reason": tried.reason}
    )


def _mark(status: ScheduleOccurrenceStatus) -> tuple[object, ...]:
    return status.outcome, status.reason, status.completion_time, status.fencing_epoch, status.writer


async def _patch_run(cluster: Cluster, run: Run, snapshot: Snapshot, status: dict[str, Any]) -> Record | None:
    """Patch the status of a run, and return it as it is stored then; None if that can't be read."""
    memory = cluster.cache.log(snapshot.uid)
    try:
        known = memory.runs.get(run.record.number)
        record = wire.record_of(await patch_status(cluster, run, known, status))
        cluster.cache.update_run(snapshot.uid, record)
        cluster.tell(Happening.ENDED, record)
    except NotFoundError:
        memory.block(run.record.ref.name, f"record {run.record.ref.name} is gone although its run was unfinished")
        memory.runs.pop(run.record.number, None)  # there is nothing left to write to
        return None
    except wire.NotARecordError as error:
        memory.block(run.record.ref.name, str(error))
        memory.runs.pop(run.record.number, None)
        return None
    return record


async def patch_status(cluster: Cluster, run: Run, known: RunMemory | None, status: dict[str, Any]) -> dict[str, Any]:
    """Patch a record's status; where that is not answered, or somebody was faster, return what is there now."""
    ref, client = run.record.ref, cluster.client
    patch = {"metadata": {"resourceVersion": run.record.resource_version}, "status": status}
    try:
        return await client.patch_occurrence_status(ref.namespace, ref.name, patch)
    except (ConflictError, UnansweredError) as error:
        if isinstance(error, UnansweredError):
            if (memory := cluster.cache.logs.get(run.record.spec.schedule_ref.uid or "")) is not None:
                memory.write_given_up_at = cluster.monotonic()
            if known is not None:
                known.outcome_given_up_at = cluster.monotonic()
        found = await client.get_occurrence(ref.namespace, ref.name)
        known_version, version = run.record.resource_version, found["metadata"]["resourceVersion"]
        if version == known_version or is_older(version, known_version):
            raise  # nothing was learnt (or a backup was restored), so deciding anew at once would send the same again
        return found
