"""The proxy that the fault tests put before the API server, against a small server on loopback; needs no control plane."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from support.control_plane import FaultProxy, faults, seen, streams
from workflow_schedules.cluster.client import Client
from workflow_schedules.cluster.connection import Connection
from workflow_schedules.cluster.errors import (
    ClusterError,
    ConflictError,
    GoneError,
    InvalidError,
    ThrottledError,
    UnansweredError,
)
from workflow_schedules.cluster.methods import JOBS
from workflow_schedules.cluster.transport import AiohttpTransport
from workflow_schedules.cluster.watch import watch

JOB = {"metadata": {"name": "a", "namespace": "ns"}}


class Server:
    """Takes every Job, lists none, and tells its watches what a test wants."""

    def __init__(self) -> None:
        self.created: list[str] = []
        self.tokens: set[str] = set()
        self.events: list[tuple[int, bytes]] = []
        self.app = web.Application()
        self.app.router.add_post("/{path:.*}", self.create)
        self.app.router.add_get("/{path:.*}", self.read)

    async def create(self, request: web.Request) -> web.Response:
        self.tokens.add(request.headers.get("Authorization", ""))
        body = await request.json()
        self.created.append(body["metadata"]["name"])
        return web.json_response(body, status=201)

    async def read(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") != "true":
            newest = self.events[-1][0] if self.events else 1
            return web.json_response({"metadata": {"resourceVersion": str(newest)}, "items": []})
        response = web.StreamResponse()
        await response.prepare(request)
        told = int(request.query.get("resourceVersion", 0))
        while request.transport is not None:  # as long as somebody listens
            for version, line in [event for event in self.events if event[0] > told]:
                await response.write(line + b"\n")
                told = version
            await asyncio.sleep(0.02)
        return response

    def tell(self, kind: str, name: str, version: int) -> None:
        body = {"metadata": {"name": name, "resourceVersion": str(version)}}
        self.events.append((version, json.dumps({"type": kind, "object": body}).encode()))


@asynccontextmanager
async def between(tmp_path: Path) -> AsyncIterator[tuple[Server, FaultProxy, Client]]:
    server = Server()
    runner = web.AppRunner(server.app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    kubeconfig = tmp_path / "kubeconfig"
    upstream = f"http://127.0.0.1:{runner.addresses[0][1]}"
    kubeconfig.write_text(json.dumps({"clusters": [{"cluster": {"server": upstream}}]}))
    with FaultProxy(kubeconfig) as proxy:
        transport = AiohttpTransport(Connection(server=proxy.url, token="secret"))
        try:
            yield server, proxy, Client(transport)
        finally:
            await transport.close()
            await runner.cleanup()


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    action: faults.Action
    error: type[ClusterError]
    is_committed: bool


CASES = [
    Case("a conflict", faults.refuse(409), ConflictError, False),
    Case("gone", faults.refuse(410), GoneError, False),
    Case("invalid", faults.refuse(422), InvalidError, False),
    Case("throttled", faults.refuse(429, retry_after_seconds=3), ThrottledError, False),
    Case("500", faults.refuse(500), UnansweredError, False),
    Case("503", faults.refuse(503), UnansweredError, False),
    Case("500 although it was carried out", faults.fail_after_commit(500), UnansweredError, True),
    Case("504 although it was carried out", faults.fail_after_commit(504), UnansweredError, True),
    Case("a page of a load balancer", faults.html(), UnansweredError, False),
    Case("a page with 200", faults.html_as_success(), UnansweredError, True),
    Case("the request is lost", faults.lose_request(), UnansweredError, False),
    Case("the answer is lost", faults.lose_answer(), UnansweredError, True),
    Case("half of the JSON", faults.cut_json(), UnansweredError, True),
    Case("half of the bytes", faults.cut_body(), UnansweredError, True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_fault_meets_the_request_that_it_is_for(case: Case, tmp_path: Path) -> None:
    async with between(tmp_path) as (server, proxy, client):
        fault = faults.Fault(case.name, seen.on("create", "jobs", namespace="ns"), case.action, nth=2)
        proxy.add(fault)
        await client.create_job("ns", JOB)
        with pytest.raises(case.error) as told:
            await client.create_job("ns", {"metadata": {"name": "b"}})
        await client.create_job("ns", {"metadata": {"name": "c"}})
        assert ("b" in server.created) is case.is_committed
        assert told.value.retry_after_seconds == (3 if case.error is ThrottledError else 0)
        assert [(each.number, each.name, each.is_committed) for each in proxy.seen] == [
            (1, "a", True),
            (2, "b", case.is_committed),
            (3, "c", True),
        ]
        assert server.tokens == {"Bearer secret"}
        assert fault.struck == 1


async def test_a_held_request_goes_on_when_it_is_released_though_its_sender_is_gone(tmp_path: Path) -> None:
    async with between(tmp_path) as (server, proxy, client):
        release = threading.Event()
        proxy.add(faults.Fault("held", seen.on("create", "jobs"), faults.hold(release)))
        sending = asyncio.create_task(client.create_job("ns", JOB))
        await until(lambda: bool(proxy.seen))
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert server.created == []
        release.set()
        await until(lambda: server.created == ["a"])


async def test_something_is_done_before_or_after_a_write(tmp_path: Path) -> None:
    async with between(tmp_path) as (server, proxy, client):
        done: list[list[str]] = []
        note: Callable[[], object] = lambda: done.append(list(server.created))  # noqa: E731
        proxy.add(
            faults.Fault("before", seen.numbered(1), faults.call_before(note)),
            faults.Fault("after", seen.numbered(2), faults.call_after(note)),
        )
        with pytest.raises(UnansweredError):
            await client.create_job("ns", JOB)
        await client.create_job("ns", {"metadata": {"name": "b"}})
        assert done == [[], ["b"]]


@dataclass(frozen=True, slots=True)
class StreamCase:
    name: str
    action: streams.StreamAction
    told: list[str]
    errors: int
    lists: int = 1


STREAM_CASES = [
    StreamCase("swallowed", streams.swallow(), ["a", "d"], 0),
    StreamCase("twice", streams.twice(), ["a", "b", "b", "c", "c", "d"], 0),
    StreamCase("late", streams.lag(0.3), ["a", "b", "c", "d"], 0),
    StreamCase("broken", streams.break_off(), ["a", "b", "c", "d"], 1),
    StreamCase("ended", streams.end(), ["a", "b", "c", "d"], 1),
    StreamCase("cut", streams.cut_line(), ["a", "b", "c", "d"], 1),
    StreamCase("expired", streams.expire(), ["a", "d"], 1, lists=2),  # b and c are in the list that follows
]


@pytest.mark.parametrize("case", STREAM_CASES, ids=lambda case: case.name)
async def test_a_watch_goes_on_after_the_lines_that_a_fault_met(case: StreamCase, tmp_path: Path) -> None:
    async with between(tmp_path) as (server, proxy, client):
        told: list[str] = []
        errors: list[ClusterError] = []
        lists: list[str] = []
        watching = asyncio.create_task(
            watch(
                client,
                JOBS,
                on_list=lambda _items, version: lists.append(version),
                on_event=lambda _kind, body: told.append(body["metadata"]["name"]),
                on_error=errors.append,
            )
        )
        fault = streams.StreamFault(
            case.name,
            seen.on("watch", "jobs"),
            case.action,
            chooses=streams.chosen(names={"b", "c"}),
            times=1 if case.errors else 0,
        )
        try:
            await until(lambda: bool(lists))
            server.tell("ADDED", "a", 2)
            await until(lambda: told == ["a"])
            proxy.add_stream(fault)  # meets the watch that is open already
            server.tell("ADDED", "b", 3)
            server.tell("ADDED", "c", 4)
            await until(lambda: fault.struck == (1 if case.errors else 2) and len(errors) == case.errors)
            await until(lambda: len(lists) == case.lists)
            server.tell("ADDED", "d", 5)
            await until(lambda: told[-1:] == ["d"])
            assert told == case.told
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def test_a_stalled_watch_is_silent_and_open(tmp_path: Path) -> None:
    async with between(tmp_path) as (server, proxy, client):
        lines: list[bytes] = []
        proxy.add_stream(streams.StreamFault("stalled", seen.on("watch", "jobs"), streams.stall()))

        async def follow() -> None:
            async with aclosing(client.watch_lines(JOBS, query={}, idle_timeout_seconds=0.8)) as told:
                lines.extend([line async for line in told])

        server.tell("ADDED", "a", 2)
        with pytest.raises(UnansweredError, match=r"(?i)timeout"):
            await follow()
        assert lines == []


async def until(is_reached: Callable[[], bool], *, seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not is_reached():  # noqa: ASYNC110 - another thread's doing
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("method", "path", "want"),
    [
        ("GET", "/api/v1/namespaces/ns", ("get", "namespaces", "", "ns")),
        ("GET", "/api/v1/namespaces", ("list", "namespaces", "", "")),
        ("GET", "/apis/batch/v1/jobs?watch=true", ("watch", "jobs", "", "")),
        ("GET", "/apis/batch/v1/namespaces/ns/jobs/a", ("get", "jobs", "ns", "a")),
        ("PATCH", "/apis/g/v1/namespaces/ns/wfs/a/status", ("patch", "wfs/status", "ns", "a")),
        ("DELETE", "/apis/g/v1/namespaces/ns/wfs/a", ("delete", "wfs", "ns", "a")),
        ("GET", "/apis/g/v1", ("get", "", "", "")),
    ],
)
def test_requests_are_named_as_the_audit_log_names_them(method: str, path: str, want: tuple[str, ...]) -> None:
    path, _, query = path.partition("?")
    found = seen.seen(method, path, dict([query.split("=")]) if query else {}, b"")
    assert (found.verb, found.resource, found.namespace, found.name) == want
