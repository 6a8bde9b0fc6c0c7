"""A watch keeps its listener right through every fault of the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from support.api_contract import World, a_name
from support.api_requests import ApiRequest
from support.api_server import FakeApiServer, Fault
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.cluster.client import Json
from workflow_schedules.cluster.errors import ClusterError
from workflow_schedules.cluster.methods import OCCURRENCES
from workflow_schedules.cluster.watch import watch

START = datetime(2026, 1, 1, tzinfo=UTC)


class Listener:
    """Holds what it was told of; ``names`` must end up as what the server holds."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.lists = 0
        self.errors: list[tuple[float, ClusterError]] = []

    def on_list(self, items: list[Any], _version: str) -> None:
        self.lists += 1
        self.objects = {item["metadata"]["name"]: item for item in items}

    def on_event(self, kind: str, body: Json) -> None:
        if kind == "DELETED":
            self.objects.pop(body["metadata"]["name"], None)
        else:
            self.objects[body["metadata"]["name"]] = body

    def on_error(self, error: ClusterError) -> None:
        self.errors.append((asyncio.get_running_loop().time(), error))


Story = Callable[[FakeApiServer, World, Listener], Awaitable[None]]


def play(story: Story, *, label_selector: str | None = None) -> None:
    async def watched(clock: VirtualClock) -> None:
        server, listener = FakeApiServer(clock), Listener()
        world = World(transport=server.transport("test"), namespace="ns", forget_history=server.compact)
        await world.client.create_occurrence("ns", world.record(1, labels={"a": "x"}))
        task = asyncio.create_task(
            watch(
                server.client("watch"),
                OCCURRENCES,
                on_list=listener.on_list,
                on_event=listener.on_event,
                on_error=listener.on_error,
                label_selector=label_selector,
            )
        )
        await asyncio.sleep(0.1)
        await story(server, world, listener)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(watched, START)


async def append(world: World, number: int, **labels: str) -> None:
    await world.client.create_occurrence("ns", world.record(number, labels=labels))


def names(*numbers: int) -> set[str]:
    return {a_name(number) for number in numbers}


def watches(server: FakeApiServer) -> int:
    return sum(entry.method == "WATCH" for entry in server.log)


def test_what_was_and_what_comes_is_told() -> None:
    async def story(server: FakeApiServer, world: World, listener: Listener) -> None:
        assert set(listener.objects) == names(1)
        await append(world, 2)
        await world.set_outcome("Running", 1)
        await asyncio.sleep(0.1)
        assert set(listener.objects) == names(1, 2)
        assert listener.objects[a_name(1)]["status"]["outcome"] == "Running"
        server.delete("scheduleoccurrences", "ns", a_name(1))
        await asyncio.sleep(0.1)
        assert set(listener.objects) == names(2)
        assert (listener.lists, listener.errors) == (1, [])

    play(story)


def test_a_lost_label_is_a_deletion() -> None:
    async def story(server: FakeApiServer, _world: World, listener: Listener) -> None:
        server.patch("scheduleoccurrences", "ns", a_name(1), {"metadata": {"labels": {"a": "y"}}})
        await asyncio.sleep(0.1)
        assert listener.objects == {}

    play(story, label_selector="a=x")


def test_a_healthy_watch_is_renewed_without_a_list() -> None:
    async def story(server: FakeApiServer, world: World, listener: Listener) -> None:
        await asyncio.sleep(600)
        await append(world, 2)
        await asyncio.sleep(0.1)
        assert set(listener.objects) == names(1, 2)
        assert (listener.lists, listener.errors) == (1, [])
        assert watches(server) == 25

    play(story)


def test_a_compacted_history_is_listed_anew() -> None:
    async def story(server: FakeApiServer, world: World, listener: Listener) -> None:
        server.go_down()
        await asyncio.sleep(1)
        server.come_up()
        server.delete("scheduleoccurrences", "ns", a_name(1))
        await append(world, 2)
        server.compact()
        await asyncio.sleep(5)
        assert set(listener.objects) == names(2)
        assert listener.lists == 2

    play(story)


def test_a_broken_watch_goes_on_where_it_was() -> None:
    async def story(server: FakeApiServer, world: World, listener: Listener) -> None:
        server.break_watches()
        await append(world, 2)
        await asyncio.sleep(1)
        assert set(listener.objects) == names(1, 2)
        assert listener.lists == 1
        assert len(listener.errors) == 1

    play(story)


def test_silence_is_noticed_within_half_a_minute() -> None:
    async def story(server: FakeApiServer, world: World, listener: Listener) -> None:
        faults = [Fault(is_silent=True)]
        server.faults.append(lambda request: faults.pop() if faults and request.method == "WATCH" else None)
        await asyncio.sleep(25)
        await append(world, 2)
        await asyncio.sleep(29.5)
        assert set(listener.objects) == names(1)
        await asyncio.sleep(1.5)
        assert set(listener.objects) == names(1, 2)

    play(story)


def test_an_outage_is_met_with_patience() -> None:
    async def story(server: FakeApiServer, world: World, listener: Listener) -> None:
        server.go_down()
        await asyncio.sleep(60)
        waits = [round(b - a, 2) for (a, _), (b, _) in zip(listener.errors, listener.errors[1:], strict=False)]
        assert waits[:8] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
        server.come_up()
        await append(world, 2)
        await asyncio.sleep(8)
        assert set(listener.objects) == names(1, 2)

    play(story)


@pytest.mark.parametrize(
    ("status", "seconds"), [(429, 20.0), (500, 20.0), (403, 0.25), (410, 0.25), (503, 20.0), (400, 0.25)]
)
def test_a_refused_watch_is_tried_again(status: int, seconds: float) -> None:
    async def story(server: FakeApiServer, world: World, listener: Listener) -> None:
        fault = Fault(status=status, retry_after_seconds=20 if seconds > 1 else 0)
        faults = [fault]

        def refuse(request: ApiRequest) -> Fault | None:
            return faults.pop() if faults and request.method == "WATCH" else None

        server.faults.append(refuse)
        await asyncio.sleep(25)
        before = watches(server)
        await append(world, 2)
        await asyncio.sleep(seconds - 0.15)
        assert watches(server) == before
        await asyncio.sleep(0.5)
        assert watches(server) == before + 1
        assert set(listener.objects) == names(1, 2)

    play(story)


def test_a_restored_backup_is_listed_anew() -> None:
    async def story(server: FakeApiServer, world: World, listener: Listener) -> None:
        backup = server.backup()
        for number in range(2, 9):
            await append(world, number)
        await asyncio.sleep(1)
        assert len(listener.objects) == 8
        server.restore(backup)
        await append(world, 2)
        await asyncio.sleep(2)
        assert set(listener.objects) == names(1, 2)
        assert listener.lists == 2

    play(story)


def test_nonsense_in_a_watch_is_a_broken_watch() -> None:
    lines = [
        b"nonsense",
        b"[]",
        b"{}",
        b'{"type":"ADDED","object":{}}',
        b'{"type":"ERROR","object":3}',
        b'{"type":"ADDED"',
    ]

    async def story(server: FakeApiServer, world: World, listener: Listener) -> None:
        for line in lines:
            server.inject_line(line)
            await asyncio.sleep(9)
        assert len(listener.errors) == len(lines)
        await append(world, 2)
        await asyncio.sleep(10)
        assert set(listener.objects) == names(1, 2)
        assert listener.lists == 1

    play(story)


@pytest.mark.parametrize("code", [400, 403, 410, 429, 500, 504])
def test_an_error_in_the_stream_is_a_broken_watch(code: int) -> None:
    """It ends no watch; only a history that is gone is listed anew, and in either case nothing is missed."""

    async def story(server: FakeApiServer, world: World, listener: Listener) -> None:
        server.inject_line(b'{"type":"ERROR","object":{"kind":"Status","code":%d,"message":"injected"}}' % code)
        await asyncio.sleep(0.1)
        await append(world, 2)
        server.delete("scheduleoccurrences", "ns", a_name(1))
        await asyncio.sleep(2)
        assert set(listener.objects) == names(2)
        assert listener.lists == (2 if code == 410 else 1)
        assert len(listener.errors) == 1

    play(story)


def test_objects_can_be_made_small_as_they_are_listed() -> None:
    async def story(clock: VirtualClock) -> None:
        server = FakeApiServer(clock)
        world = World(transport=server.transport(), namespace="ns", forget_history=server.compact)
        for number in range(1, 1202):
            await append(world, number)
        listed: list[list[Any]] = []
        task = asyncio.create_task(
            watch(
                server.client("watch"),
                OCCURRENCES,
                on_list=lambda items, _version: listed.append(items),
                on_event=lambda _kind, _body: None,
                slim=lambda body: body["spec"]["sequence"],
            )
        )
        await asyncio.sleep(1)
        task.cancel()
        assert listed == [list(range(1, 1202))]
        assert [entry.method for entry in server.log if entry.client == "watch"] == ["GET", "GET", "GET", "WATCH"]

    run_virtual(story, START)
