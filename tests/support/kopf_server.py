"""A small API server on loopback for kopf alone: lists and watches of schedules, and everything that can go wrong with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import kopf
import orjson
import pytest
from aiohttp import web

from workflow_schedules.api.names import API_VERSION, GROUP, KIND_SCHEDULE, PLURAL_DEFINITION, PLURAL_SCHEDULE, VERSION
from workflow_schedules.handlers.feed import Feed
from workflow_schedules.handlers.watches import Watches

VERBS = ["get", "list", "watch"]
OURS = {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
Refusal = tuple[int, dict[str, str], bytes]


def a_kind(plural: str, kind: str) -> dict[str, Any]:
    return {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": True, "verbs": VERBS}


def status(code: int, message: str, **headers: str) -> Refusal:
    body = {"kind": "Status", "status": "Failure", "code": code, "message": message}
    return code, headers, orjson.dumps(body)


class KopfServer:
    """Serves while it is told to; each change gets a version of its own, and open watches are told of it.

    Attributes:
        is_served: the kinds are known.
        is_silent: watches are answered, and then nothing is said in them.
        refuse: asked about every request of schedules, with whether it is a watch.
        token: the only one that is known; None takes all.
        requests: what was asked for: `list` and `watch` of schedules, and other paths.
    """

    def __init__(self) -> None:
        self.is_served = True
        self.is_silent = False
        self.refuse: Callable[[bool], Refusal | None] = lambda _is_watch: None
        self.token: str | None = None
        self.requests: list[str] = []
        self.url = ""
        self._version = 10
        self._stored: dict[str, dict[str, Any]] = {}
        self._history: list[tuple[int, bytes]] = []
        self._streams: list[asyncio.Queue[bytes | None]] = []

    # what people and faults do

    def write(self, name: str) -> str:
        """Create or change a schedule; return its name and version."""
        self._version += 1
        metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(self._version)}
        self._stored[name] = {
            "apiVersion": API_VERSION,
            "kind": KIND_SCHEDULE,
            "metadata": {**metadata, "generation": 1},
            "spec": {"schedule": "* * * * *"},
        }
        self._tell("MODIFIED", self._stored[name])
        return f"{name} {self._version}"

    def delete(self, name: str) -> None:
        self._version += 1
        self._tell("DELETED", self._stored.pop(name))

    def compact(self) -> None:
        """Forget the history."""
        self._history.clear()

    def say(self, line: bytes) -> None:
        """Say a line in every open watch."""
        for stream in self._streams:
            stream.put_nowait(line + b"\n")

    def cut(self) -> None:
        """End every open watch."""
        for stream in self._streams:
            stream.put_nowait(None)

    def asked(self, what: str, *, since: int = 0) -> int:
        return self.requests[since:].count(what)

    def _tell(self, kind: str, body: dict[str, Any]) -> None:
        line = orjson.dumps({"type": kind, "object": body})
        self._history.append((self._version, line))
        self.say(line)

    # what is answered

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return _refused(status(401, "Unauthorized"))
        is_watch = request.query.get("watch") == "true"
        if not request.path.endswith(PLURAL_SCHEDULE):
            self.requests.append(request.path)
            return await self._other(request, is_watch=is_watch)
        self.requests.append("watch" if is_watch else "list")
        if (refusal := self.refuse(is_watch)) is not None:
            return _refused(refusal)
        if is_watch:
            return await self._watch(request)
        return self._listed(list(self._stored.values()))

    async def _other(self, request: web.Request, *, is_watch: bool) -> web.StreamResponse:
        kinds = [a_kind(PLURAL_SCHEDULE, KIND_SCHEDULE), a_kind(PLURAL_DEFINITION, "WorkflowDefinition")]
        group = {"name": GROUP, "versions": [OURS], "preferredVersion": OURS}
        discovery: dict[str, Any] = {
            "/api": {"versions": ["v1"]},
            "/api/v1": {"resources": [{**a_kind("namespaces", "Namespace"), "namespaced": False}]},
            "/apis": {"groups": [group] if self.is_served else []},
        }
        if self.is_served:
            discovery[f"/apis/{GROUP}/{VERSION}"] = {"resources": kinds}
        if request.path in discovery:
            return web.json_response(discovery[request.path])
        if not request.path.endswith(PLURAL_DEFINITION):
            return _refused(status(403, f'cannot list resource "{request.path}"'))
        return await self._watch(request, is_empty=True) if is_watch else self._listed([])

    def _listed(self, items: list[dict[str, Any]]) -> web.Response:
        return web.json_response({"metadata": {"resourceVersion": str(self._version)}, "items": items})

    async def _watch(self, request: web.Request, *, is_empty: bool = False) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        since = int(request.query["resourceVersion"])
        stream: asyncio.Queue[bytes | None] = asyncio.Queue()
        if not is_empty and not self.is_silent:
            for version, line in self._history:
                if version > since:
                    stream.put_nowait(line + b"\n")
            self._streams.append(stream)
        with suppress(asyncio.CancelledError, ConnectionError, TimeoutError):
            async with asyncio.timeout(float(request.query["timeoutSeconds"]) if not self.is_silent else None):
                while (said := await stream.get()) is not None:
                    await response.write(said)
        if stream in self._streams:
            self._streams.remove(stream)
        return response


def _refused(refusal: Refusal) -> web.Response:
    code, headers, body = refusal
    return web.Response(status=code, headers=headers, body=body, content_type="application/json")


class Listener:
    """Stands where the feed does; `seen` has name and version of what it was told, in this order."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.kinds: list[str | None] = []
        self.lists = 0

    def from_thread(self, _take: object, kind: str | None, body: kopf.Body) -> None:
        self.kinds.append(kind)
        self.seen.append(f"{body['metadata']['name']} {body['metadata']['resourceVersion']}")

    def list_from_thread(self) -> None:
        self.lists += 1

    def schedule(self) -> None:
        """Taken by name only."""

    definition = schedule

    async def until_seen(self, what: str, *, seconds: float = 30.0) -> float:
        """Wait until it was told of this; return how long that took."""
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(seconds):
            while what not in self.seen:  # noqa: ASYNC110 - another thread adds to it
                await asyncio.sleep(0.02)
        return asyncio.get_running_loop().time() - began


@asynccontextmanager
async def watched(
    server: KopfServer, monkeypatch: pytest.MonkeyPatch, token: Callable[[], str | None] = lambda: None
) -> AsyncIterator[tuple[Listener, Watches]]:
    """Run the operator's watches in their thread against a server of one's own."""
    app = web.Application()
    app.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    monkeypatch.setattr(
        kopf, "login_with_kubeconfig", lambda **_: kopf.ConnectionInfo(server=server.url, token=token())
    )
    listener = Listener()
    watches = Watches(cast("Feed", listener))
    watches.start()
    try:
        yield listener, watches
    finally:
        watches.stop()
        server.cut()
        await asyncio.to_thread(watches._thread.join, 15)
        await runner.cleanup()
        assert not watches._thread.is_alive()
