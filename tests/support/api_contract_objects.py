"""Contract: names, status, generations, deletion, refusals."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest

from support.api_world import World, a_name, a_schedule, contract, version
from workflow_schedules.cluster.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    NotFoundError,
    UnansweredError,
)
from workflow_schedules.cluster.methods import OCCURRENCES, SCHEDULES, Resource


@contract
async def a_name_is_taken_once(world: World) -> None:
    await world.client.create_occurrence(world.namespace, world.record())
    with pytest.raises(AlreadyExistsError):
        await world.client.create_occurrence(world.namespace, world.record(decision="SkippedOverlap"))


@contract
async def a_create_drops_status_and_takes_no_identity(world: World) -> None:
    body = world.record()
    body["metadata"] |= {"uid": "mine", "generation": 7}
    record = await world.client.create_occurrence(world.namespace, {**body, "status": {"outcome": "Running"}})
    job = await world.client.create_job(world.namespace, world.job())

    assert "status" not in record
    assert record["spec"] == body["spec"]
    assert record["metadata"]["uid"] != "mine"
    assert record["metadata"]["generation"] == 1
    assert len(record["metadata"]["creationTimestamp"]) == len("2026-01-01T00:00:00Z")
    assert job["status"] == {}


@contract
async def a_status_patch_is_a_compare_and_set(world: World) -> None:
    first = await world.client.create_occurrence(world.namespace, world.record())
    patch = {"metadata": {"resourceVersion": version(first)}, **world.status(outcome="Running")}
    second = await world.client.patch_occurrence_status(world.namespace, a_name(), patch)

    assert int(version(second)) > int(version(first))
    with pytest.raises(ConflictError):
        await world.client.patch_occurrence_status(
            world.namespace, a_name(), {**patch, **world.status(outcome="Completed")}
        )
    assert (await world.client.get_occurrence(world.namespace, a_name()))["status"]["outcome"] == "Running"


@contract
async def a_status_patch_changes_nothing_else(world: World) -> None:
    first = await world.client.create_occurrence(world.namespace, world.record(labels={"a": "b"}))
    patch = {"metadata": {"labels": {"a": "z"}}, "spec": {"sequence": 9}, **world.status(outcome="Running")}
    second = await world.client.patch_occurrence_status(world.namespace, a_name(), patch)

    assert second["spec"] == first["spec"]
    assert second["metadata"]["labels"] == first["metadata"]["labels"]
    assert second["metadata"]["generation"] == 1


@contract
async def a_patch_of_the_object_leaves_status(world: World) -> None:
    await world.client.create_occurrence(world.namespace, world.record())
    patch = {"metadata": {"labels": {"a": "b"}}, "status": {"outcome": "Running"}}
    patched = await world.send("PATCH", OCCURRENCES, a_name(), patch)

    assert "status" not in patched
    assert patched["metadata"]["labels"]["a"] == "b"


@contract
async def a_stale_patch_of_the_object_is_refused(world: World) -> None:
    first = await world.send("POST", SCHEDULES, None, a_schedule())
    await world.send("PATCH", SCHEDULES, "s", {"spec": {"enabled": False}})
    with pytest.raises(ConflictError):
        await world.send(
            "PATCH", SCHEDULES, "s", {"metadata": {"resourceVersion": version(first)}, "spec": {"enabled": True}}
        )


@contract
async def a_write_without_a_change_keeps_the_version(world: World) -> None:
    await world.client.create_occurrence(world.namespace, world.record())
    patch = world.status(outcome="Running")
    first = await world.client.patch_occurrence_status(world.namespace, a_name(), patch)
    again = await world.client.patch_occurrence_status(world.namespace, a_name(), patch)
    other = await world.send("PATCH", OCCURRENCES, a_name(), {"spec": {"sequence": 1}})

    assert version(first) == version(again) == version(other)


@contract
async def generation_counts_changes_of_spec_only(world: World) -> None:
    await world.send("POST", SCHEDULES, None, a_schedule())
    status = await world.client.patch_schedule_status(world.namespace, "s", world.status(observedGeneration=1))
    label = await world.send("PATCH", SCHEDULES, "s", {"metadata": {"labels": {"a": "b"}}})
    spec = await world.send("PATCH", SCHEDULES, "s", {"spec": {"enabled": False}})
    same = await world.send("PATCH", SCHEDULES, "s", {"spec": {"enabled": False}})

    assert [body["metadata"]["generation"] for body in (status, label, spec, same)] == [1, 1, 2, 2]


@contract
async def a_delete_needs_the_right_uid(world: World) -> None:
    record = await world.client.create_occurrence(world.namespace, world.record())
    with pytest.raises(ConflictError):
        await world.client.delete_occurrence(world.namespace, a_name(), uid="another")
    await world.client.delete_occurrence(world.namespace, a_name(), uid=record["metadata"]["uid"])
    with pytest.raises(NotFoundError):
        await world.client.delete_occurrence(world.namespace, a_name(), uid=record["metadata"]["uid"])
    again = await world.client.create_occurrence(world.namespace, world.record())
    assert again["metadata"]["uid"] != record["metadata"]["uid"]


@contract
async def a_foreground_delete_waits_for_dependents(world: World) -> None:
    job = await world.client.create_job(world.namespace, world.job())
    answer = await world.client.delete_job(world.namespace, "j", uid=job["metadata"]["uid"], propagation="Foreground")
    assert answer["kind"] == "Job"
    assert "deletionTimestamp" in answer["metadata"]
    # A garbage collector may be at work and have finished already.
    try:
        left = await world.client.get_job(world.namespace, "j")
    except NotFoundError:
        return
    assert left["metadata"]["finalizers"] == ["foregroundDeletion"]


@contract
async def a_dry_run_asks_and_stores_nothing(world: World) -> None:
    asked = await world.client.create_occurrence(world.namespace, world.record(), dry_run=True)
    assert asked["metadata"]["name"] == a_name()
    with pytest.raises(NotFoundError):
        await world.client.get_occurrence(world.namespace, a_name())
    await world.client.create_occurrence(world.namespace, world.record())
    with pytest.raises(AlreadyExistsError):
        await world.client.create_occurrence(world.namespace, world.record(), dry_run=True)


@contract
async def what_is_wrong_is_refused(world: World) -> None:
    with pytest.raises(NotFoundError):
        await world.client.create_occurrence("no-such-namespace", world.record())
    with pytest.raises(NotFoundError):
        await world.client.patch_occurrence_status(world.namespace, a_name(), {"status": {}})
    body = world.record()
    body["metadata"]["name"] = "Not_A_Name"
    with pytest.raises(InvalidError):
        await world.client.create_occurrence(world.namespace, body)
    body["metadata"] = {"name": a_name(), "namespace": "another"}
    with pytest.raises(InvalidError):
        await world.client.create_occurrence(world.namespace, body)


@contract
async def the_clock_of_the_server_is_known(world: World) -> None:
    client = world.client
    assert client.server_now(0.0) is None
    record = await client.create_occurrence(world.namespace, world.record())
    created_at = datetime.fromisoformat(record["metadata"]["creationTimestamp"])
    now = client.server_now(asyncio.get_running_loop().time())
    assert now is not None
    assert abs((now - created_at).total_seconds()) <= 2


@contract
async def a_kind_that_is_not_served_is_no_free_name(world: World) -> None:
    with pytest.raises(UnansweredError):
        await world.send("GET", Resource(OCCURRENCES.group, OCCURRENCES.version, "nosuchkinds"), "x")
