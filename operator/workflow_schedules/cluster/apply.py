"""Carry out one step of a plan: one write, fenced, and what its answer teaches the cache.

The record comes before the Job, the status last: the record's name is the compare-and-set, so a stalled leader that wakes
collides with what another decided meanwhile, and a crash before the Job leaves a record that recovery completes (P11). A
write without an answer is followed by a consistent read before anything is decided anew (P2). What to write is core's
business; when to try again is the caller's.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, assert_never

from workflow_schedules.api import names
from workflow_schedules.cluster import wire
from workflow_schedules.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnansweredError,
)
from workflow_schedules.cluster.history import read_log
from workflow_schedules.cluster.templates import Templates
from workflow_schedules.core.job import job_manifest, labels
from workflow_schedules.core.log import totals_now
from workflow_schedules.core.model import Append, Claim, CreateJob, LookAgain, ReadLog, WriteOutcome
from workflow_schedules.core.runs import REQUEST_LIFE
from workflow_schedules.core.zones import UnknownTimeZoneError, load_zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cache import Cache, RunMemory
    from workflow_schedules.cluster.client import Client
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.core.model import ObjectRef, Run, Snapshot, Step

log = logging.getLogger(__name__)

CLOCK_TOLERANCE = timedelta(seconds=2)
FENCE_RETRY_SECONDS = 0.25
BACKOFF_FIRST_SECONDS = 1.0
BACKOFF_LIMIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a step is carried out with.

    Attributes:
        now: the wall clock, aware UTC.
        monotonic: seconds, never stepping back.
    """

    client: Client
    cache: Cache
    templates: Templates
    now: Callable[[], datetime]
    monotonic: Callable[[], float]

    def is_everything_answered(self) -> bool:
        """Tell whether no write of ours can still arrive: the Lease may be released then (P15)."""
        given_up_at = self.client.last_unanswered_write_at
        return given_up_at is None or self.monotonic() - given_up_at > REQUEST_LIFE.total_seconds()


async def apply(cluster: Cluster, step: Step, snapshot: Snapshot, *, fence: Fence) -> float:
    """Carry out a step.

    Returns:
        Seconds to wait before the schedule is looked at again; 0 when the step was done or taught something new.

    Raises:
        LostLeaseError: this epoch may not write any more.

    Source: reliability, the write protocol and P2, P5, P10, P11, P13, P18.
    """
    fence.check()
    try:
        return await _carry_out(cluster, step, snapshot, fence)
    except ForbiddenError as error:
        return _refused(error, snapshot)
    except ClusterError as error:
        log.warning("a request failed, it is tried again", extra={"schedule": snapshot.uid, "error": str(error)})
        return max(error.retry_after_seconds, BACKOFF_FIRST_SECONDS)


async def _carry_out(cluster: Cluster, step: Step, snapshot: Snapshot, fence: Fence) -> float:
    match step:
        case ReadLog():
            await read_log(cluster.client, cluster.cache, snapshot)
        case LookAgain():
            return await _look_again(cluster, snapshot)
        case Append():
            return await _append(cluster, step, snapshot, fence)
        case Claim():
            await _claim(cluster, step.run, snapshot)
        case CreateJob():
            await _create_job(cluster, step.run, snapshot, fence)
        case WriteOutcome():
            await _write_outcome(cluster, step, snapshot)
        case _:
            assert_never(step)
    return 0.0


def _refused(error: ForbiddenError, snapshot: Snapshot) -> float:
    if error.is_fence:  # the admission cache lags behind the Lease for a moment after a takeover (P14)
        return FENCE_RETRY_SECONDS
    log.warning("a write was forbidden", extra={"schedule": snapshot.uid, "error": error.message})
    return max(error.retry_after_seconds, BACKOFF_LIMIT_SECONDS)


async def _look_again(cluster: Cluster, snapshot: Snapshot) -> float:
    """Read schedule and definition from the server itself, since the log knows a newer generation."""
    schedule = snapshot.schedule
    if schedule is None:
        return 0.0
    cluster.cache.put_schedule(await cluster.client.get_schedule(schedule.ref.namespace, schedule.ref.name))
    if snapshot.definition is not None:
        ref = snapshot.definition.ref
        cluster.cache.put_definition(await cluster.client.get_definition(ref.namespace, ref.name))
    return BACKOFF_FIRST_SECONDS  # whatever was read, a second look right now would read the same


async def _append(cluster: Cluster, step: Append, snapshot: Snapshot, fence: Fence) -> float:
    schedule = snapshot.schedule
    if schedule is None:
        return 0.0
    if (wait := _ahead_of_server(cluster, step.spec.consumed_through_time)) > 0:
        return wait
    if step.template is not None:
        await cluster.templates.pin(schedule.ref.namespace, step.template)
        fence.check()
    body = _record_body(schedule.ref, step)
    memory = cluster.cache.log(snapshot.uid)
    try:
        answer = await cluster.client.create_occurrence(schedule.ref.namespace, body)
    except (AlreadyExistsError, UnansweredError):
        memory.is_read = False  # somebody knew more, or nobody knows: read before deciding anew
        await read_log(cluster.client, cluster.cache, snapshot)
        return 0.0
    record = wire.record_of(answer)
    memory.add(record)
    if missing := [key for key, value in body["spec"].items() if answer["spec"].get(key) != value]:
        memory.contradiction = (
            f"record {record.ref.name} came back without spec.{', '.join(missing)} as sent: "
            "the installed CRD is older than this operator; apply the CRDs of its version"
        )
    log.info(
        "decided",
        extra={"schedule": str(schedule.ref), "record": record.ref.name, "decision": str(record.spec.decision)},
    )
    return 0.0


def _ahead_of_server(cluster: Cluster, watermark: datetime | None) -> float:
    """Return the seconds until the API server's clock has reached a watermark, 0 when it has (P13)."""
    server = cluster.client.server_now(cluster.monotonic())
    if server is None or watermark is None:
        return 0.0
    return max(0.0, (watermark - server - CLOCK_TOLERANCE).total_seconds())


def _record_body(schedule: ObjectRef, step: Append) -> dict[str, Any]:
    spec, uid = step.spec, step.spec.schedule_ref.uid or ""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND_OCCURRENCE,
        "metadata": {
            "name": names.record_name(schedule.name, uid, spec.sequence or 0),
            "namespace": schedule.namespace,
            "labels": labels(schedule.name, uid, str(spec.cause), spec.scheduled_time),
        },
        "spec": spec.wire(),
    }


async def _claim(cluster: Cluster, run: Run, snapshot: Snapshot) -> None:
    patch = {"fencingEpoch": snapshot.writer.epoch, "writer": snapshot.writer.identity}
    await _patch_run(cluster, run, snapshot, patch)


async def _write_outcome(cluster: Cluster, step: WriteOutcome, snapshot: Snapshot) -> None:
    if step.confirm_absence and await _read_job(cluster, step.run.record.ref):
        return
    await _patch_run(cluster, step.run, snapshot, step.status.wire())
    log.info(
        "outcome",
        extra={"record": str(step.run.record.ref), "outcome": str(step.status.outcome), "reason": step.status.reason},
    )


async def _patch_run(cluster: Cluster, run: Run, snapshot: Snapshot, status: dict[str, Any]) -> None:
    ref, memory = run.record.ref, cluster.cache.log(snapshot.uid)
    patch = {"metadata": {"resourceVersion": run.record.resource_version}, "status": status}
    try:
        memory.update(wire.record_of(await cluster.client.patch_occurrence_status(ref.namespace, ref.name, patch)))
    except (ConflictError, UnansweredError) as error:
        if isinstance(error, UnansweredError) and (known := memory.runs.get(run.record.number)) is not None:
            known.outcome_given_up_at = cluster.monotonic()
        memory.update(wire.record_of(await cluster.client.get_occurrence(ref.namespace, ref.name)))
    except NotFoundError:
        memory.contradiction = f"record {ref.name} is gone although its run was unfinished"


async def _create_job(cluster: Cluster, run: Run, snapshot: Snapshot, fence: Fence) -> None:
    ref, memory = run.record.ref, cluster.cache.log(snapshot.uid).runs[run.record.number]
    try:
        manifest = await _manifest(cluster, run, snapshot)
        fence.check()
        cluster.cache.put_job(await cluster.client.create_job(ref.namespace, manifest))
    except AlreadyExistsError:
        await _read_job(cluster, ref)
    except UnansweredError as error:
        _note_failure(memory, error, cluster.now())
        memory.create_given_up_at = cluster.monotonic()
        await _read_job(cluster, ref)
    except (InvalidError, NotFoundError) as error:
        memory.refused = error.message
    except ForbiddenError as error:
        if error.is_fence:
            raise
        if error.is_quota or error.is_terminating:
            _note_failure(memory, error, cluster.now())
        else:
            memory.refused = error.message
    except ClusterError as error:
        _note_failure(memory, error, cluster.now())


async def _manifest(cluster: Cluster, run: Run, snapshot: Snapshot) -> dict[str, Any]:
    template = await cluster.templates.pinned(run.record.ref.namespace, run.record.spec.template_hash or "")
    spec = snapshot.schedule.spec if snapshot.schedule else None
    return job_manifest(
        run.record,
        template,
        zone=_zone(spec.time_zone if spec else "UTC"),
        last_successful_at=totals_now(snapshot.head, snapshot.runs).last_successful_time,
        writer=snapshot.writer,
    )


def _zone(name: str) -> tzinfo:
    try:
        return load_zone(name)
    except UnknownTimeZoneError:
        return UTC


def _note_failure(memory: RunMemory, error: ClusterError, now: datetime) -> None:
    pause = min(BACKOFF_FIRST_SECONDS * 2**memory.attempts, BACKOFF_LIMIT_SECONDS)
    memory.attempts += 1
    memory.last_error = error.message
    memory.retry_at = now + timedelta(seconds=max(pause, error.retry_after_seconds))


async def _read_job(cluster: Cluster, ref: ObjectRef) -> bool:
    """Ask the API server itself for a Job; tell whether there is one, and take it into the cache."""
    try:
        cluster.cache.put_job(await cluster.client.get_job(ref.namespace, ref.name))
    except NotFoundError:
        return False
    return True
