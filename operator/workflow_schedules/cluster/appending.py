"""Append the next record to a schedule's log: the one write whose name is the compare-and-set (P3).

What the record says is core's business, and so is what a refusal is called in the status; when to try again is the caller's.
No other write may live here.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from workflow_schedules.api import names
from workflow_schedules.api.schedule import DeletionPolicy
from workflow_schedules.cluster import wire
from workflow_schedules.cluster.cluster import CLOCK_TOLERANCE
from workflow_schedules.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ForbiddenError,
    RefusedError,
    ThrottledError,
    UnansweredError,
    UnauthorizedError,
)
from workflow_schedules.cluster.history import check_first_name, read_log
from workflow_schedules.core.events import Happening
from workflow_schedules.core.job import labels
from workflow_schedules.core.model import RecordRefusal, RefusedBy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.cluster.memory import ScheduleLog
    from workflow_schedules.core.model import Schedule, Snapshot
    from workflow_schedules.core.plan import Append

log = logging.getLogger(__name__)


async def append(cluster: Cluster, step: Append, snapshot: Snapshot, *, fence: Fence) -> float:
    """Append the next record, and take it in; how it was refused is remembered, since it is to be shown.

    Returns:
        Seconds to wait before the schedule is looked at again; 0 when it was appended, or something new was learnt.

    Raises:
        ClusterError: it was not, and nothing was learnt.
        LostLeaseError: this epoch may not write any more.

    Source: reliability, the write protocol and P2, P13, P18.
    """
    schedule = snapshot.schedule
    if schedule is None:
        return 0.0
    if (wait := _ahead_of_server(cluster, step.spec.consumed_through_time)) > 0:
        return wait
    memory = cluster.cache.log(snapshot.uid)
    template, namespace = step.template, schedule.ref.namespace
    if template is not None and not cluster.templates.is_known(namespace, template.hash):
        with _refusal_noted(memory):
            await cluster.templates.pin(namespace, template, fence=fence)
        return 0.0  # that took its time, in which a deadline may have passed: decided anew, with nothing left to ask
    body = _record_body(schedule, step)
    try:
        with _refusal_noted(memory):
            answer = await cluster.client.create_occurrence(schedule.ref.namespace, body)
    except (AlreadyExistsError, UnansweredError) as error:
        if isinstance(error, UnansweredError):
            memory.append_given_up_at = memory.write_given_up_at = cluster.monotonic()
        known = memory.head
        await _read_anew(cluster, snapshot, is_taken=isinstance(error, AlreadyExistsError))
        if memory.head is known and memory.contradiction is None:
            raise  # nothing was learnt, so deciding anew at once would send the same again
        return 0.0
    record = wire.record_of(answer)
    memory.add(record)
    if missing := [key for key, value in body["spec"].items() if answer["spec"].get(key) != value]:
        memory.block(
            record.ref.name,
            f"record {record.ref.name} came back without spec.{', '.join(missing)} as sent: "
            "the installed CRD is older than this operator; apply the CRDs of its version",
        )
    cluster.tell(Happening.DECIDED, record)
    log.info(
        "decided",
        extra={"schedule": str(schedule.ref), "record": record.ref.name, "decision": str(record.spec.decision)},
    )
    return 0.0


async def _read_anew(cluster: Cluster, snapshot: Snapshot, *, is_taken: bool) -> None:
    """Read a log before deciding anew: somebody knew more, or nobody knows what became of a write."""
    cluster.cache.log(snapshot.uid).is_read = False
    await read_log(cluster.client, cluster.cache, snapshot)
    if is_taken:
        await check_first_name(cluster.client, cluster.cache, snapshot)


@contextmanager
def _refusal_noted(memory: ScheduleLog) -> Iterator[None]:
    try:
        yield
    except ClusterError as error:
        memory.record_refusal = refusal_of(error) or memory.record_refusal
        raise


def refusal_of(error: ClusterError) -> RecordRefusal | None:
    """Return what people should know of a failure; None where it is no word about the record, or passes by itself."""
    match error:
        case ForbiddenError(is_fence=True) | ThrottledError() | UnauthorizedError() | AlreadyExistsError():
            return None
        case ForbiddenError(is_terminating=True):
            return RecordRefusal(by=RefusedBy.NAMESPACE_END, words=error.message)
        case ForbiddenError(is_quota=True):
            return RecordRefusal(by=RefusedBy.QUOTA, words=error.message)
        case RefusedError() | UnansweredError(reason="InternalError"):  # the latter: a webhook that can't be called
            return RecordRefusal(by=RefusedBy.OTHER, words=error.message)
    return None


def _ahead_of_server(cluster: Cluster, watermark: datetime | None) -> float:
    """Return the seconds until the API server's clock has reached a watermark, 0 when it has (P13)."""
    server = cluster.client.server_now(cluster.monotonic())
    if server is None or watermark is None:
        return 0.0
    return max(0.0, (watermark - server - CLOCK_TOLERANCE).total_seconds())


def _record_body(schedule: Schedule, step: Append) -> dict[str, Any]:
    spec, uid, ref = step.spec, step.spec.schedule_ref.uid or "", schedule.ref
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND_OCCURRENCE,
        "metadata": {
            "name": names.record_name(ref.name, uid, spec.sequence or 0),
            "namespace": ref.namespace,
            "labels": labels(ref.name, uid, str(spec.cause), spec.scheduled_time),
            "ownerReferences": _owners(schedule),
        },
        "spec": spec.wire(),
    }


def _owners(schedule: Schedule) -> list[dict[str, Any]]:
    """Return who takes the record along when it is deleted: with `deletionPolicy: Delete` the schedule (R20)."""
    if schedule.spec is None or schedule.spec.deletion_policy is DeletionPolicy.RETAIN:
        return []
    return [{**owner_reference(schedule), "controller": True}]


def owner_reference(schedule: Schedule) -> dict[str, Any]:
    """Return the reference by which a schedule takes something along when it is deleted."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND_SCHEDULE,
        "name": schedule.ref.name,
        "uid": schedule.uid,
        "blockOwnerDeletion": False,
    }
