"""An API server in this process, for virtual time: same answers as the real one, and faults on demand.

``server.transport("a")`` is what ``Client`` needs. Requests of one server are carried out one after the other, each at
one instant; between sending, carrying out and answering, other tasks run. A request goes on when its sender is gone.
The contract tests hold it to what the real API server does. Not here: schemas, defaults of custom kinds, RBAC.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from typing import Protocol

import orjson

from support.api_kinds import KIND_OF, Json, Kind, RefusedError
from support.api_requests import USER, ApiRequest, Requests
from support.api_store import Key, Store, Stored
from support.api_transport import NO_FAULT, FakeTransport, Fault, FaultHook, LogEntry
from support.deep import unfolded
from workflow_schedules.cluster.client import Client
from workflow_schedules.cluster.errors import UnansweredError
from workflow_schedules.cluster.transport import Answer

__all__ = ["FakeApiServer", "FakeTransport", "Fault", "FaultHook", "LogEntry", "Snapshot"]


class Clock(Protocol):
    def now(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A backup of etcd."""

    version: int
    objects: dict[Kind, dict[Key, Stored]] = field(repr=False)


class FakeApiServer:
    """See the module; ``faults`` are asked about each request in turn, and the first fault counts.

    ``warnings`` give the text of a `Warning` header of the answer to a request, or none.
    """

    def __init__(self, clock: Clock, *, seed: int = 0, auto_namespaces: bool = True) -> None:
        self._clock = clock
        self.store = Store(clock.now, seed=seed)
        self.requests = Requests(self.store, auto_namespaces=auto_namespaces)
        self.admission = self.requests.admission
        self.faults: list[FaultHook] = []
        self.warnings: list[Callable[[ApiRequest], str]] = []
        self.log: list[LogEntry] = []
        self.in_flight: dict[asyncio.Task[Answer], None] = {}  # in order: a set's is that of addresses
        self.is_up = True
        self.era = 0
        self.injected: list[bytes] = []
        self._date = (0, "")
        self._waiting: dict[Kind, dict[asyncio.Future[None], None]] = {}
        self.store.observers.append(lambda kind, _change: self._wake_watches_of(kind))

    # what operators use

    def transport(self, client: str = "a", latency_seconds: float = 0.0) -> FakeTransport:
        return FakeTransport(self, client, latency_seconds)

    def client(self, client: str = "a", latency_seconds: float = 0.0) -> Client:
        return Client(self.transport(client, latency_seconds))

    # what tests do as a user, at once and without faults

    def create(self, body: Json) -> Json:
        kind, namespace = _kind_of(body), body["metadata"].get("namespace", "")
        return self._send(USER, "POST", _path(kind, namespace, ""), body)

    def get(self, plural: str, namespace: str, name: str) -> Json:
        return self._send(USER, "GET", _path(KIND_OF[plural], namespace, name), None)

    def find(self, plural: str, namespace: str, name: str) -> Json | None:
        stored = self.store.of(KIND_OF[plural]).get((namespace, name))
        return None if stored is None else dict(orjson.loads(stored.data))

    def objects(self, plural: str, namespace: str = "") -> list[Json]:
        """All objects of a kind, sorted by namespace and name."""
        objects = sorted(self.store.of(KIND_OF[plural]).items())
        return [orjson.loads(stored.data) for key, stored in objects if not namespace or key[0] == namespace]

    def patch(
        self, plural: str, namespace: str, name: str, patch: Json, *, subresource: str = "", client: str = USER
    ) -> Json:
        path = _path(KIND_OF[plural], namespace, name) + (f"/{subresource}" if subresource else "")
        return self._send(client, "PATCH", path, patch, "application/merge-patch+json")

    def replace(self, body: Json) -> Json:
        metadata = body["metadata"]
        path = _path(_kind_of(body), metadata.get("namespace", ""), metadata["name"])
        return self._send(USER, "PUT", path, body)

    def delete(self, plural: str, namespace: str, name: str, *, propagation: str = "Background") -> None:
        self._send(USER, "DELETE", _path(KIND_OF[plural], namespace, name), {"propagationPolicy": propagation})

    def _send(self, client: str, method: str, path: str, body: Json | None, content_type: str | None = None) -> Json:
        data = None if body is None else orjson.dumps(body)
        request = ApiRequest(client=client, method=method, path=path, body=data, content_type=content_type)
        return dict(orjson.loads(self.requests.answer(request)[1]))

    # what happens to servers

    def run_gc(self) -> int:
        """Collect garbage, as the controller manager does some time later."""
        return self.store.run_gc()

    def compact(self) -> None:
        """Forget history: older resourceVersions and continue tokens are gone."""
        self.store.compact()
        self.requests.forget_pages()
        self.wake_watches()

    def go_down(self) -> None:
        """Refuse connections and break watches until ``come_up``."""
        self.is_up = False
        self.break_watches()

    def come_up(self) -> None:
        self.is_up = True

    def break_watches(self) -> None:
        """Close every watch connection, as a proxy or a restart does."""
        self.era += 1
        self.wake_watches()

    def inject_line(self, line: bytes) -> None:
        """Send this line, whatever it says, down every open watch."""
        self.injected.append(line)
        self.wake_watches()

    def backup(self) -> Snapshot:
        return Snapshot(self.store.version, {kind: dict(objects) for kind, objects in self.store.objects.items()})

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a backup: objects and resourceVersions written since are as if they had never been."""
        self.store.objects = {kind: dict(objects) for kind, objects in snapshot.objects.items()}
        self.store.version = snapshot.version
        self.store.compact()
        self.break_watches()

    def wake_watches(self) -> None:
        for kind in self._waiting:
            self._wake_watches_of(kind)

    def _wake_watches_of(self, kind: Kind) -> None:
        waiting = self._waiting.get(kind)
        if waiting:
            for future in waiting:
                _finish(future)
            waiting.clear()

    # the inside, used by FakeTransport

    def fault_of(self, request: ApiRequest) -> Fault:
        return next((fault for hook in self.faults if (fault := hook(request)) is not None), NO_FAULT)

    def note(self, request: ApiRequest, status: int) -> None:
        now = asyncio.get_running_loop().time()
        self.log.append(
            LogEntry(now, request.client, request.method, request.path, status, request.query.get("dryRun") == "All")
        )

    def carry_out(self, request: ApiRequest, fault: Fault) -> Answer:
        if not self.is_up:
            self.note(request, 0)
            raise UnansweredError("connection refused", reason="Down")
        headers = {"date": self._http_date()}
        if warned := [text for hook in self.warnings if (text := hook(request))]:
            headers["warning"] = ", ".join(f"299 - {orjson.dumps(text).decode()}" for text in warned)
        try:
            fault.refuse()
            status, body = self.requests.answer(request)
        except RefusedError as refusal:
            status, body = refusal.code, refusal.body
            headers |= refusal.headers
        self.note(request, status)
        return Answer(status, headers, unfolded(body))

    async def change(self, kind: Kind, timeout_seconds: float) -> None:
        """Wait until something happens to objects of a kind or to the server, or the time is over."""
        future = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(kind, {})
        waiting[future] = None
        handle = asyncio.get_running_loop().call_later(timeout_seconds, _finish, future)
        try:
            await future
        finally:
            handle.cancel()
            waiting.pop(future, None)

    def _http_date(self) -> str:
        now = self._clock.now()
        second = int(now.timestamp())
        if second != self._date[0]:
            self._date = (second, format_datetime(now, usegmt=True))
        return self._date[1]


def _kind_of(body: Json) -> Kind:
    return next(
        kind for kind in KIND_OF.values() if (kind.api_version, kind.kind) == (body["apiVersion"], body["kind"])
    )


def _path(kind: Kind, namespace: str, name: str) -> str:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    middle = f"/namespaces/{namespace}" if kind.is_namespaced else ""
    return f"{root}{middle}/{kind.plural}" + (f"/{name}" if name else "")


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
