"""The model of the simulation against the real API server: what was said to the one is answered alike by the other.

The contract tests hold both to what was thought of; a log of what operators really say, in its order, holds them to the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import orjson

from support.api_hooks import JOB_CONTROLLER, lease_fence, record_rules
from support.api_kinds import Json
from support.api_requests import USER, ApiRequest
from support.api_server import FakeApiServer
from support.api_world import World, eventually
from support.control_plane import OPERATOR_USER
from support.objects import a_definition, a_schedule
from support.replayed_story import tell
from support.request_log import Exchange, RecordingTransport, Replay, to_fake, to_real
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.app.composition import Operator
from workflow_schedules.app.settings import read_settings
from workflow_schedules.cluster.client import Client
from workflow_schedules.cluster.connection import Connection
from workflow_schedules.cluster.errors import NotFoundError, error_of
from workflow_schedules.cluster.leases import read_lease
from workflow_schedules.cluster.methods import DEFINITIONS, SCHEDULES, Resource
from workflow_schedules.cluster.transport import AiohttpTransport, Answer, Transport
from workflow_schedules.cluster.watch import watch
from workflow_schedules.scheduler.clock import SystemClock

AS_OPERATOR = {"Impersonate-User": OPERATOR_USER, "Impersonate-Group": "system:masters"}
SETTINGS = read_settings({})
LEASE_PATH = f"/apis/coordination.k8s.io/v1/namespaces/{SETTINGS.lease.namespace}/leases/{SETTINGS.lease.name}"


class _Ways:
    """One connection as an administrator, one as the operator, and no Lease at first."""

    def __init__(self, connection: Connection) -> None:
        self.user = AiohttpTransport(connection)
        self.operator = AiohttpTransport(connection, extra_headers=AS_OPERATOR)

    def of(self, client: str) -> Transport:
        return self.user if client == USER else self.operator

    async def close(self) -> None:
        await self.user.close()
        await self.operator.close()


class _Fence:
    """Waits until the real admission sees the Lease as it is: how long that takes is not the model's business."""

    def __init__(self, operator: Transport) -> None:
        self._client = Client(operator)
        self._world = World(transport=operator, namespace="default", forget_history=lambda: None)
        self._seen = ("", 0)

    async def follow(self) -> None:
        try:
            lease = await read_lease(self._client, SETTINGS.lease.namespace, SETTINGS.lease.name)
        except NotFoundError:
            return
        before, self._seen = self._seen, (lease.holder, lease.transitions)
        if lease.holder and self._seen != before:
            await eventually(lambda: self._world.is_fenced(self._record(*self._seen)), False)
        elif before[0] and self._seen != before:  # it was let go of
            await eventually(lambda: self._world.is_fenced(self._record(*before)), True)

    def _record(self, holder: str, epoch: int) -> Json:
        record = self._world.record()
        record["spec"] |= {"writer": holder, "fencingEpoch": epoch}
        return record


@asynccontextmanager
async def the_ways(connection: Connection) -> AsyncIterator[_Ways]:
    ways = _Ways(connection)
    try:
        await ways.user.request("DELETE", LEASE_PATH, timeout_seconds=15)
        yield ways
    finally:
        await ways.user.request("DELETE", LEASE_PATH, timeout_seconds=15)
        await ways.close()


async def test_the_real_server_answers_what_operators_said_to_the_model(
    real_connection: Connection, namespace: str
) -> None:
    log = await asyncio.to_thread(tell)  # a virtual loop can't run inside this one
    said = [exchange for exchange in log if not _is_of_controllers(exchange)]
    async with the_ways(real_connection) as ways:
        fence = _Fence(ways.operator)

        async def settle(request: ApiRequest) -> None:
            if request.path.startswith(LEASE_PATH.rpartition("/")[0]) and request.body:
                await fence.follow()

        replay = Replay(to_real(ways.of), namespaces={"ns": namespace})
        await replay.run(said, after=settle)
    assert replay.differences == [], "\n".join(replay.differences)
    assert replay.compared > 200


def _is_of_controllers(exchange: Exchange) -> bool:
    """Tell whether it was for want of controllers: the real ones do that themselves."""
    request = exchange.request
    return request.client == JOB_CONTROLLER or (request.client == USER and request.method == "GET")


def _is_about(exchange: Exchange, namespaces: set[str]) -> bool:
    """Tell whether it was about one of these namespaces; those of other tests may still be there, and are being deleted."""
    return exchange.request.path.partition("/namespaces/")[2].partition("/")[0] in namespaces


class _Patient:
    """Lets a new holder of the Lease wait until admission knows it: how long that takes is not the model's business."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.stream, self.close = transport.stream, transport.close
        self._fence = _Fence(transport)

    async def request(self, method: str, path: str, **options: Any) -> Answer:  # noqa: ANN401 - as Transport has them
        answer = await self._transport.request(method, path, **options)
        if "/leases" in path and method in {"POST", "PUT"} and answer.status < 300:
            await self._fence.follow()
        return answer


class _Process:
    """An operator in this process that talks to the real server, each of its requests noted."""

    def __init__(self, name: str, ways: _Ways, log: list[Exchange]) -> None:
        transport = RecordingTransport(_Patient(ways.operator), name, log)
        self.operator = Operator(SETTINGS, Client(transport), clock=SystemClock(), identity=name)
        self._stop = asyncio.Event()
        self._run = asyncio.create_task(self.operator.run(self._stop))
        unseen = Client(ways.operator)
        feed = self.operator.feed
        self._watches = [
            asyncio.create_task(self._watch(unseen, SCHEDULES, feed.schedule)),
            asyncio.create_task(self._watch(unseen, DEFINITIONS, feed.definition)),
        ]

    async def _watch(self, client: Client, resource: Resource, take: Callable[[str | None, Json], None]) -> None:
        def listed(items: list[Json], _version: str) -> None:
            for body in items:
                take(None, body)

        await watch(client, resource, on_list=listed, on_event=take)

    async def stop(self) -> None:
        self._stop.set()
        await self._run
        await self.kill()

    async def kill(self) -> None:
        for task in (self._run, *self._watches):
            task.cancel()
        await asyncio.gather(self._run, *self._watches, return_exceptions=True)


class _People:
    """What people do, noted as well."""

    def __init__(self, ways: _Ways, namespace: str, log: list[Exchange]) -> None:
        self._transport = RecordingTransport(ways.user, USER, log)
        self._namespace = namespace
        self._reader = Client(ways.user)

    async def send(self, method: str, resource: Resource, name: str | None, body: Json) -> None:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = await self._transport.request(
            method,
            resource.path(self._namespace, name),
            body=orjson.dumps(body),
            content_type=kind,
            timeout_seconds=15,
        )
        if answer.status >= 300:
            raise error_of(answer.status, answer.headers, answer.body)

    async def until(self, is_so: Callable[[Json], bool], name: str = "s", *, seconds: float = 150.0) -> None:
        """Wait until the status of a schedule says it."""
        async with asyncio.timeout(seconds):
            while True:
                try:
                    found = await self._reader.get_schedule(self._namespace, name)
                except NotFoundError:
                    found = {}
                if is_so(found.get("status") or {}):
                    return
                await asyncio.sleep(0.2)


async def _live_through(ways: _Ways, namespace: str) -> list[Exchange]:
    """Let two operators run, edit, skip and take over on the real server; return what they and people said."""
    log: list[Exchange] = []
    people = _People(ways, namespace, log)
    await people.send("POST", DEFINITIONS, None, a_definition(namespace=namespace))
    first = _Process("first", ways, log)
    async with asyncio.timeout(60):
        while not first.operator.is_leading:  # noqa: ASYNC110 - what it does is watched from outside
            await asyncio.sleep(0.1)
    second = _Process("second", ways, log)
    await people.send("POST", SCHEDULES, None, a_schedule(namespace=namespace, workflow="w", schedule="* * * * *"))
    await people.until(lambda status: status.get("counts", {}).get("completed", 0) >= 1)
    await people.send("PATCH", SCHEDULES, "s", {"spec": {"pause": {"reason": "by hand"}}})
    await people.until(lambda status: status.get("state") == "Paused")
    await people.send("PATCH", SCHEDULES, "s", {"spec": {"pause": None, "input": {"a": 1}}})
    await people.until(lambda status: status.get("revision") == 2)
    await first.kill()
    await people.send("PATCH", SCHEDULES, "s", {"spec": {"enabled": False}})
    await people.until(lambda status: status.get("state") == "Disabled" and status.get("writer") == "second")
    await second.stop()
    return log


def _answer_of_the_model(log: list[Exchange], namespace: str) -> Replay:
    async def replay(clock: VirtualClock) -> Replay:
        server = FakeApiServer(clock, seed=3)
        server.admission.append(record_rules)
        lease_fence(server, SETTINGS.lease.namespace, SETTINGS.lease.name)
        answers = Replay(to_fake(server), namespaces={namespace: "ns"})
        await answers.run(log)
        return answers

    return run_virtual(replay, datetime.now(UTC))


async def test_the_model_answers_what_operators_said_to_the_real_server(
    real_connection: Connection, namespace: str
) -> None:
    async with the_ways(real_connection) as ways:
        log = await _live_through(ways, namespace)
    here = [exchange for exchange in log if _is_about(exchange, {"", namespace, SETTINGS.lease.namespace})]
    replay = await asyncio.to_thread(_answer_of_the_model, here, namespace)
    assert replay.differences == [], "\n".join(replay.differences)
    assert {exchange.request.method for exchange in here} == {"GET", "POST", "PATCH", "PUT"}
    assert replay.compared > 40
