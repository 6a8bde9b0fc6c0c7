"""Contract: the Lease, the fence, and what of the log never changes."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from support.api_world import LEASE_NAME, LEASE_NAMESPACE, World, a_name, a_schedule, contract, eventually
from workflow_schedules.api.names import (
    ANNOTATION_EPOCH,
    ANNOTATION_WRITER,
)
from workflow_schedules.cluster.client import Json
from workflow_schedules.cluster.errors import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from workflow_schedules.cluster.leases import LeaseRecord, create_lease, read_lease, replace_lease
from workflow_schedules.cluster.methods import LEASES, OCCURRENCES, SCHEDULES


@contract
async def a_finalizer_keeps_a_deleted_object(world: World) -> None:
    body = world.record()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    record = await world.client.create_occurrence(world.namespace, body)
    await world.client.delete_occurrence(world.namespace, a_name(), uid=record["metadata"]["uid"])
    deleting = await world.client.get_occurrence(world.namespace, a_name())
    assert deleting["metadata"]["deletionTimestamp"]
    assert deleting["metadata"]["generation"] == 2
    with pytest.raises(AlreadyExistsError):
        await world.client.create_occurrence(world.namespace, world.record())

    await world.send("PATCH", OCCURRENCES, a_name(), {"metadata": {"finalizers": None}})
    with pytest.raises(NotFoundError):
        await world.client.get_occurrence(world.namespace, a_name())


@contract
async def a_lease_is_replaced_by_compare_and_set(world: World) -> None:
    wanted = LeaseRecord(holder="a", transitions=1, duration_seconds=15)
    first = await create_lease(world.client, world.namespace, "l", wanted)
    second = await replace_lease(world.client, world.namespace, "l", first)
    assert second == first, "nothing changed"
    with pytest.raises(AlreadyExistsError):
        await create_lease(world.client, world.namespace, "l", wanted)
    with pytest.raises(InvalidError):
        await replace_lease(world.client, world.namespace, "l", wanted)

    await world.send("PATCH", LEASES, "l", {"spec": {"holderIdentity": "b", "leaseTransitions": 2}})
    with pytest.raises(ConflictError):
        await replace_lease(world.client, world.namespace, "l", first)
    assert (await read_lease(world.client, world.namespace, "l")).holder == "b"


@contract
async def a_deleted_lease_is_not_made_anew_by_its_holder(world: World) -> None:
    wanted = LeaseRecord(holder="a", transitions=1, duration_seconds=15)
    first = await create_lease(world.client, world.namespace, "l", wanted)
    await world.send("DELETE", LEASES, "l")
    with pytest.raises(ConflictError):
        await replace_lease(world.client, world.namespace, "l", first)

    without_uid = LeaseRecord(holder="a", transitions=1, duration_seconds=15, resource_version=first.resource_version)
    remade = await replace_lease(world.client, world.namespace, "l", without_uid)
    assert remade.uid != first.uid, "which is why a LeaseRecord has a UID"


@contract
async def a_record_and_its_final_outcome_never_change(world: World) -> None:
    await world.client.create_occurrence(world.namespace, world.record())
    with pytest.raises(InvalidError):
        await world.send("PATCH", OCCURRENCES, a_name(), {"spec": {"sequence": 2}})
    await world.set_outcome("Running")
    await world.set_outcome("Failed")
    for outcome in ("Completed", "Running", None):
        with pytest.raises(InvalidError):
            await world.set_outcome(outcome)


@contract
async def the_log_of_a_schedule_never_goes_back(world: World) -> None:
    await world.send("POST", SCHEDULES, None, a_schedule())
    at = {"logHead": 3, "consumedThroughTime": "2026-01-01T00:00:03Z"}
    await world.client.patch_schedule_status(world.namespace, "s", world.status(**at))
    backwards: tuple[Json, ...] = (
        {"logHead": 2},
        {"logHead": None},
        {"consumedThroughTime": "2026-01-01T00:00:02Z"},
        {"consumedThroughTime": None},
    )
    for patch in backwards:
        with pytest.raises(InvalidError):
            await world.client.patch_schedule_status(world.namespace, "s", world.status(**patch))


@contract
async def the_fence_wants_the_epoch_and_the_writer_of_the_lease(world: World) -> None:
    stored = await world.client.create_occurrence(world.namespace, world.record())
    for field, annotation, value in (
        ("fencingEpoch", ANNOTATION_EPOCH, world.epoch - 1),
        ("fencingEpoch", ANNOTATION_EPOCH, world.epoch + 1),
        ("writer", ANNOTATION_WRITER, "another"),
    ):
        record, job, status = world.record(2), world.job(), world.status(outcome="Running")
        record["spec"][field] = status["status"][field] = value
        job["metadata"]["annotations"][annotation] = str(value)
        await refused_by_fence(world.client.create_occurrence(world.namespace, record))
        await refused_by_fence(world.client.create_occurrence(world.namespace, record, dry_run=True))
        await refused_by_fence(world.client.create_job(world.namespace, job))
        await refused_by_fence(world.client.patch_occurrence_status(world.namespace, a_name(), status))
    assert await world.client.get_occurrence(world.namespace, a_name()) == stored


@contract
async def the_fence_is_asked_before_the_name(world: World) -> None:
    record = world.record()
    await world.client.create_occurrence(world.namespace, record)
    record["spec"]["fencingEpoch"] -= 1
    await refused_by_fence(world.client.create_occurrence(world.namespace, record))


@contract
async def the_fence_follows_the_lease(world: World) -> None:
    old = world.record()
    await world.hold_lease()
    assert old["spec"]["fencingEpoch"] < world.epoch
    assert await world.is_fenced(old)


@contract
async def the_fence_refuses_all_without_a_lease(world: World) -> None:
    path = f"{LEASES.path(LEASE_NAMESPACE)}/{LEASE_NAME}"
    await world.transport.request("DELETE", path, timeout_seconds=15)
    await eventually(lambda: world.is_fenced(world.record()), True)
    await refused_by_fence(world.client.create_job(world.namespace, world.job()))


async def refused_by_fence(request: Awaitable[Json]) -> None:
    with pytest.raises(ForbiddenError) as refused:
        await request
    assert refused.value.is_fence, refused.value
    assert not refused.value.is_quota
    assert not refused.value.is_terminating
