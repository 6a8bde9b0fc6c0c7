"""kopf itself on real JSON text from loopback: one deep object ends no watch; needs no control plane."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import kopf
import orjson
import pytest
from aiohttp import web

from support.deep import nested_text
from workflow_schedules.api.names import API_VERSION, GROUP, KIND_SCHEDULE, PLURAL_DEFINITION, PLURAL_SCHEDULE, VERSION
from workflow_schedules.cluster.wire import schedule_of
from workflow_schedules.handlers import sessions
from workflow_schedules.handlers.hearing import Hearing
from workflow_schedules.handlers.watches import Watches, registry


def a_kind(name: str, kind: str, *, namespaced: bool) -> dict[str, Any]:
    verbs = ["get", "list", "watch"]
    return {"name": name, "singularName": kind.lower(), "kind": kind, "namespaced": namespaced, "verbs": verbs}


OURS = {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
DISCOVERY: dict[str, Any] = {
    "/api": {"versions": ["v1"]},
    "/api/v1": {"resources": [a_kind("namespaces", "Namespace", namespaced=False)]},
    "/apis": {"groups": [{"name": GROUP, "versions": [OURS], "preferredVersion": OURS}]},
    f"/apis/{GROUP}/{VERSION}": {
        "resources": [
            a_kind(PLURAL_SCHEDULE, "WorkflowSchedule", namespaced=True),
            a_kind(PLURAL_DEFINITION, "WorkflowDefinition", namespaced=True),
        ]
    },
}


def an_object(name: str, version: int, levels: int) -> bytes:
    head = {
        "apiVersion": API_VERSION,
        "kind": KIND_SCHEDULE,
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version), "generation": 1},
    }
    return orjson.dumps(head)[:-1] + b',"spec":{"schedule":"* * * * *","input":' + nested_text(levels) + b"}}"


class Server:
    """Says of schedules what a test wants, and of everything else that there is nothing."""

    def __init__(self) -> None:
        self.listed: list[bytes] = []
        self.events: list[bytes] = []
        self.raw: list[bytes] = []  # lines that are told first, once
        self.raw_lists: list[bytes] = []
        self.lists = 0
        self.is_list_seen: Callable[[], bool] = lambda: True
        self.app = web.Application()
        self.app.router.add_get("/{path:.*}", self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path in DISCOVERY:
            return web.json_response(DISCOVERY[request.path])
        is_of_schedules = request.path.endswith(PLURAL_SCHEDULE)
        if request.query.get("watch") == "true":
            return await self._watch(request, self.events if is_of_schedules else [])
        self.lists += is_of_schedules
        if is_of_schedules and self.raw_lists:
            return web.Response(body=self.raw_lists.pop(0), content_type="application/json")
        items = b",".join(self.listed if is_of_schedules else [])
        text = b'{"metadata":{"resourceVersion":"10"},"items":[' + items + b"]}"
        return web.Response(body=text, content_type="application/json")

    async def _watch(self, request: web.Request, events: list[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if events and self.raw:
            await response.write(self.raw.pop(0) + b"\n")
            await asyncio.sleep(60)
        while not self.is_list_seen():  # noqa: ASYNC110 - kopf tells, in another thread, only the newest of what is soon changed
            await asyncio.sleep(0.05)
        for event in events:
            line = b'{"type":"MODIFIED","object":' + event + b"}\n"
            for start in range(0, len(line), 4096):
                await response.write(line[start : start + 4096])
                await asyncio.sleep(0)
        with suppress(asyncio.CancelledError, ConnectionError):
            await asyncio.sleep(60)
        return response


class Listener:
    """Stands where the feed does."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, Any]] = {}

    def from_thread(self, _take: object, _kind: str | None, body: kopf.Body) -> None:
        self.seen[f"{body['metadata']['name']} {body['metadata']['resourceVersion']}"] = dict(body)

    def list_from_thread(self) -> None:
        """Not looked at here."""

    def schedule(self) -> None:
        """Taken by name only."""

    definition = schedule


async def watched(server: Server, monkeypatch: pytest.MonkeyPatch, until: Callable[[Listener], bool]) -> Listener:
    runner = web.AppRunner(server.app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    monkeypatch.setattr(kopf, "login_with_kubeconfig", lambda **_: kopf.ConnectionInfo(server=url))
    listener = Listener()
    server.is_list_seen = lambda: len(listener.seen) >= len(server.listed)
    watches = Watches(listener)  # type: ignore[arg-type]
    watching = asyncio.create_task(
        asyncio.to_thread(lambda: asyncio.run(watches._watch()))
    )  # it ends what its loop holds
    try:
        async with asyncio.timeout(60):
            while not until(listener) and not watching.done():  # noqa: ASYNC110 - kopf's loop is watched from outside
                await asyncio.sleep(0.05)
        assert not watching.done(), "kopf has ended"
        assert watches.problem == "the watches have ended", "its thread was never started here"
    finally:
        watches.stop()
        await asyncio.wait([watching], timeout=10)
        await runner.cleanup()
    return listener


@pytest.mark.parametrize("levels", [300, 990, 1_100, 9_000])
async def test_a_deep_object_is_seen_and_so_are_the_others(levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """I9: in a list, and in a watch, which goes on without a second list."""
    server = Server()
    server.listed = [an_object("a", 1, 2), an_object("deep", 2, levels), an_object("b", 3, 2)]
    server.events = [an_object("a", 11, 3), an_object("deep", 12, levels + 1), an_object("b", 13, 3)]
    listener = await watched(server, monkeypatch, lambda listener: len(listener.seen) == 6)
    assert sorted(listener.seen) == ["a 1", "a 11", "b 13", "b 3", "deep 12", "deep 2"]
    assert server.lists == 1
    for name in ("deep 2", "deep 12"):
        problem = schedule_of(listener.seen[name]).problem
        assert problem is not None
        assert "nested deeper" in problem
    assert listener.seen["b 13"]["spec"]["input"] == {"a": {"a": {"a": 1}}}


NONSENSE = [
    ("half of a line", b'{"type":"MODIFIED","object":{"metada'),
    ("a page of a load balancer", b"<html><body>502 Bad Gateway</body></html>"),
    ("no event", b"[]"),
    ("no type", b"{}"),
    ("an error of the server", b'{"type":"ERROR","object":{"code":500,"message":"no leader"}}'),
    ("an error that says nothing", b'{"type":"ERROR","object":null}'),
]


@pytest.mark.parametrize("line", [row[1] for row in NONSENSE], ids=[row[0] for row in NONSENSE])
async def test_a_line_that_makes_no_sense_is_a_broken_watch(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """I9: kopf itself would end by it; so it goes on from the last version, without a second list."""
    monkeypatch.setattr(sessions, "NONSENSE_PAUSE_SECONDS", 0.01)
    server = Server()
    server.listed = [an_object("a", 1, 2)]
    server.raw = [line]
    server.events = [an_object("a", 11, 3)]
    listener = await watched(server, monkeypatch, lambda listener: len(listener.seen) == 2)
    assert sorted(listener.seen) == ["a 1", "a 11"]
    assert (server.lists, server.raw) == (1, [])


async def test_a_list_that_is_no_json_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    server.raw_lists = [b"<html>sign in</html>", b'{"metadata":{"res']
    server.listed = [an_object("a", 1, 2)]
    listener = await watched(server, monkeypatch, lambda listener: len(listener.seen) == 1)
    assert (server.lists, server.raw_lists) == (3, [])
    assert sorted(listener.seen) == ["a 1"]


async def test_an_account_that_was_refused_is_known_again() -> None:
    """Or kopf would log in for ever, as fast as it is refused."""
    info = kopf.ConnectionInfo(server="http://127.0.0.1:1", token="x")
    one, same, other = (
        sessions.session_of(each, Hearing()) for each in (info, info, kopf.ConnectionInfo(server="http://h"))
    )
    assert one == same
    assert one != other
    for each in (one, same, other):
        await each.aiohttp_session.close()


def test_the_watches_of_this_module_are_those_of_production() -> None:
    assert len(list(registry._watching.get_all_handlers())) == 2
