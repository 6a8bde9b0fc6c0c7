"""Contract: selectors, pages, watches."""

from __future__ import annotations

import pytest

from support.api_world import World, a_name, contract, version
from workflow_schedules.api.names import (
    KIND_OCCURRENCE,
)
from workflow_schedules.cluster.errors import (
    ClusterError,
    GoneError,
    InvalidError,
    error_of_status,
)
from workflow_schedules.cluster.methods import JOBS, OCCURRENCES


async def _names(world: World, **selectors: str) -> list[str]:
    pages = [page async for page in world.client.list_occurrences(namespace=world.namespace, **selectors)]
    return [item["metadata"]["name"] for page in pages for item in page.items]


LABEL_CASES = {
    "a=x": [1, 2],
    "a==x,b": [2],
    "a!=x": [3],
    "!a": [3],
    "a in (x, y),b notin (z)": [1],
    "b in (z)": [2, 3],
}


@contract
async def lists_select_by_labels(world: World) -> None:
    for number, labels in enumerate(({"a": "x"}, {"a": "x", "b": "z"}, {"b": "z"}), start=1):
        await world.client.create_occurrence(world.namespace, world.record(number, labels=labels))
    for selector, wanted in LABEL_CASES.items():
        assert await _names(world, label_selector=selector) == [a_name(n) for n in wanted], selector


FIELD_CASES = {
    "status.outcome!=Completed": [1, 3],
    "status.outcome=Completed": [2],
    "status.outcome=": [3],
    "spec.decision=Admitted,status.outcome!=Completed": [1],
    "spec.scheduleRef.name=other": [3],
    "spec.cause==Scheduled": [1, 2, 3],
    "metadata.name=s-00000000-000000002": [2],
}


@contract
async def lists_select_by_fields_and_absent_is_empty(world: World) -> None:
    await world.client.create_occurrence(world.namespace, world.record(1))
    await world.client.create_occurrence(world.namespace, world.record(2))
    await world.client.create_occurrence(world.namespace, world.record(3, decision="SkippedOverlap", schedule="other"))
    await world.set_outcome("Running", 1)
    await world.set_outcome("Completed", 2)
    for selector, wanted in FIELD_CASES.items():
        assert await _names(world, field_selector=selector) == [a_name(n) for n in wanted], selector
    with pytest.raises(InvalidError):
        await _names(world, field_selector="spec.writer=w")


@contract
async def pages_of_a_list_show_one_instant(world: World) -> None:
    for number in range(1, 6):
        await world.client.create_occurrence(world.namespace, world.record(number))
    pages = world.client.pages(OCCURRENCES, namespace=world.namespace, limit=2)
    first = await anext(pages)
    await world.client.create_occurrence(world.namespace, world.record(9))
    rest = [page async for page in pages]

    assert [len(page.items) for page in (first, *rest)] == [2, 2, 1]
    assert {page.resource_version for page in rest} == {first.resource_version}


@contract
async def items_of_built_in_kinds_do_not_say_their_kind(world: World) -> None:
    await world.client.create_job(world.namespace, world.job())
    await world.client.create_occurrence(world.namespace, world.record())
    jobs, _ = await world.client.list_all(JOBS, namespace=world.namespace)
    records = [page async for page in world.client.list_occurrences(namespace=world.namespace)]

    assert "kind" not in jobs[0]
    assert records[0].items[0]["kind"] == KIND_OCCURRENCE


@contract
async def a_watch_tells_what_happened_since_its_version(world: World) -> None:
    before = await world.client.create_occurrence(world.namespace, world.record(1))
    record = await world.client.create_occurrence(world.namespace, world.record(2))
    await world.set_outcome("Running", 2)
    await world.client.delete_occurrence(world.namespace, a_name(2), uid=record["metadata"]["uid"])
    events = await world.watched(OCCURRENCES, version(before), count=3)

    assert [kind for kind, _ in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(version(body)) for _, body in events]
    assert versions == sorted(set(versions))
    assert events[0][1]["spec"] == record["spec"]
    assert events[2][1]["status"]["outcome"] == "Running"


@contract
async def a_watch_tells_a_lost_label_as_a_deletion(world: World) -> None:
    first = await world.client.create_occurrence(world.namespace, world.record(1, labels={"a": "x"}))
    changed = await world.send("PATCH", OCCURRENCES, a_name(1), {"metadata": {"labels": {"a": "y"}}})
    await world.send("PATCH", OCCURRENCES, a_name(1), {"metadata": {"labels": {"a": "x"}}})
    events = await world.watched(OCCURRENCES, version(first), count=2, labelSelector="a=x")

    assert [(kind, body["metadata"]["labels"]["a"]) for kind, body in events] == [("DELETED", "x"), ("ADDED", "x")]
    assert version(events[0][1]) == version(changed)


@contract
async def a_watch_selects_by_fields(world: World) -> None:
    """As the watch of requests does: what doesn't match is not among what it tells."""
    first = await world.client.create_occurrence(world.namespace, world.record(1))
    other = await world.client.create_occurrence(world.namespace, world.record(2, decision="SkippedOverlap"))
    await world.client.create_occurrence(world.namespace, world.record(3))
    await world.client.delete_occurrence(world.namespace, a_name(2), uid=other["metadata"]["uid"])
    events = await world.watched(OCCURRENCES, version(first), count=2, fieldSelector="spec.decision!=Admitted")

    assert [(kind, body["metadata"]["name"]) for kind, body in events] == [("ADDED", a_name(2)), ("DELETED", a_name(2))]


@contract
async def a_watch_from_a_forgotten_version_is_gone(world: World) -> None:
    await world.client.create_occurrence(world.namespace, world.record(1))
    world.forget_history()
    try:
        events = await world.watched(OCCURRENCES, "1", count=1)
        error: ClusterError = error_of_status(events[0][1])
    except ClusterError as refused:
        error = refused
    assert isinstance(error, GoneError)


@contract
async def a_watch_from_a_version_to_come_is_silent(world: World) -> None:
    record = await world.client.create_occurrence(world.namespace, world.record(1))
    ahead = str(int(version(record)) + 1_000_000)
    await world.client.create_occurrence(world.namespace, world.record(2))
    assert await world.watched(OCCURRENCES, ahead, count=1, timeoutSeconds="2") == []
