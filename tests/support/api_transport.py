"""How requests and watches travel to the fake API server and back, and what can go wrong on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import orjson

from support.api_kinds import RefusedError, field_matcher, label_matcher, target_of
from support.api_requests import ApiRequest
from support.api_store import Change, Key, Stored
from support.deep import unfolded
from support.virtual_loop import outside
from workflow_schedules.cluster.errors import UnansweredError, error_of
from workflow_schedules.cluster.transport import Answer

if TYPE_CHECKING:
    from support.api_server import FakeApiServer

BOOKMARK_SECONDS = 60.0
WATCH_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to one request.

    Attributes:
        delay_seconds: time on the way to the server; the sender may give up meanwhile, the request still arrives.
        is_dropped: it never arrives.
        is_answer_lost: it is carried out, and the sender never learns it.
        is_held: its sender is frozen before it leaves: see `FreezingLoop`.
        is_silent: a loss shows as a time-out (or a silent watch), not as a reset connection.
        status: answered with this code instead of being carried out.
        reason: of that answer.
        message: of that answer.
        retry_after_seconds: of that answer.
    """

    delay_seconds: float = 0.0
    is_dropped: bool = False
    is_answer_lost: bool = False
    is_held: bool = False
    is_silent: bool = False
    status: int = 0
    reason: str = ""
    message: str = "injected"
    retry_after_seconds: int = 0

    def refuse(self) -> None:
        """Raise the refusal that this fault injects, if it does."""
        if self.status:
            raise RefusedError(self.status, self.reason, self.message, retry_after=self.retry_after_seconds)


NO_FAULT = Fault()
FaultHook = Callable[[ApiRequest], Fault | None]


class LogEntry(NamedTuple):
    """One request that was sent; ``status`` 0 means that it never arrived. Watches have the method ``WATCH``."""

    time: float
    client: str
    method: str
    path: str
    status: int
    is_dry_run: bool = False


class FakeTransport:
    """One client's way to the server; implements ``Transport``."""

    def __init__(self, server: FakeApiServer, client: str, latency_seconds: float) -> None:
        self._server = server
        self._client = client
        self.latency_seconds = latency_seconds
        self.watch_lag_seconds = 0.0
        self.is_closed = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str | None = None,
        timeout_seconds: float,
    ) -> Answer:
        request = ApiRequest(
            client=self._client, method=method, path=path, query=query or {}, body=body, content_type=content_type
        )
        if self.is_closed:
            raise UnansweredError("the transport is closed", reason="Closed")
        fault = self._server.fault_of(request)
        if fault.is_held:
            await asyncio.sleep(0)
            if self.is_closed:
                raise UnansweredError("the transport is closed", reason="Closed")
        task = asyncio.create_task(self._travel(request, fault), context=outside())
        self._server.in_flight[task] = None
        task.add_done_callback(self._done)
        done, _ = await asyncio.wait({task}, timeout=timeout_seconds)
        if not done:
            raise UnansweredError("no answer in time", reason="TimeoutError")
        if fault.is_dropped or fault.is_answer_lost:
            if fault.is_silent:
                await asyncio.sleep(timeout_seconds)
            raise UnansweredError("connection reset", reason="Reset")
        return task.result()

    async def _travel(self, request: ApiRequest, fault: Fault) -> Answer:
        await asyncio.sleep(self.latency_seconds / 2 + fault.delay_seconds)
        if fault.is_dropped:
            self._server.note(request, 0)
            raise UnansweredError("the request never arrived", reason="Dropped")
        answer = self._server.carry_out(request, fault)
        await asyncio.sleep(self.latency_seconds / 2)
        return answer

    def _done(self, task: asyncio.Task[Answer]) -> None:
        self._server.in_flight.pop(task, None)
        if not task.cancelled():
            task.exception()  # whoever sent it may have gone

    async def stream(
        self, path: str, *, query: Mapping[str, str], idle_timeout_seconds: float
    ) -> AsyncGenerator[bytes, None]:
        request = ApiRequest(client=self._client, method="WATCH", path=path, query=query)
        fault = self._server.fault_of(request)
        await asyncio.sleep(self.latency_seconds / 2 + fault.delay_seconds)
        if fault.is_dropped or fault.is_answer_lost or not self._server.is_up:
            self._server.note(request, 0)
            await asyncio.sleep(idle_timeout_seconds if fault.is_silent else 0)
            raise UnansweredError("connection reset", reason="Reset")
        try:
            fault.refuse()
            watch = _Watch(self._server, path, query)
        except RefusedError as refusal:
            self._server.note(request, refusal.code)
            raise error_of(refusal.code, refusal.headers, refusal.body) from None
        self._server.note(request, 200)
        if fault.is_silent:
            await asyncio.sleep(idle_timeout_seconds)
            raise UnansweredError("silence", reason="Idle")
        async for line in watch.lines(idle_timeout_seconds):
            await asyncio.sleep(self.latency_seconds / 2 + self.watch_lag_seconds)
            yield unfolded(line)

    async def close(self) -> None:
        self.is_closed = True


class _Watch:
    """One watch connection."""

    def __init__(self, server: FakeApiServer, path: str, query: Mapping[str, str]) -> None:
        target = target_of(path)
        self._server = server
        self._kind = target.kind
        self._namespace = target.namespace
        self._matchers = [
            matcher
            for matcher in (
                label_matcher(query.get("labelSelector", "")),
                field_matcher(target.kind, query.get("fieldSelector", "")),
            )
            if matcher
        ]
        self._bookmarks = query.get("allowWatchBookmarks") == "true"
        self._seconds = float(query.get("timeoutSeconds", WATCH_SECONDS))
        self._position = int(query.get("resourceVersion") or 0)
        self._ends_at = self._bookmark_at = 0.0
        self._is_gone = False
        self._injected = len(server.injected)

    async def lines(self, idle_timeout_seconds: float) -> AsyncGenerator[bytes, None]:
        server, loop = self._server, asyncio.get_running_loop()
        era, last_line_at = server.era, loop.time()
        self._ends_at, self._bookmark_at = loop.time() + self._seconds, loop.time() + BOOKMARK_SECONDS
        for line in self._first_lines():
            yield line
        while loop.time() < self._ends_at:
            if server.era != era or loop.time() >= last_line_at + idle_timeout_seconds:
                raise UnansweredError("the connection broke, or was silent for too long", reason="Reset")
            for line in self._due_lines(loop.time()):
                last_line_at = loop.time()
                yield line
            if server.store.version <= self._position and server.era == era:
                wake_at = min(self._ends_at, self._bookmark_at, last_line_at + idle_timeout_seconds)
                await server.change(self._kind, wake_at - loop.time())
        for line in self._bookmark_lines():
            yield line

    def _due_lines(self, now: float) -> list[bytes]:
        if self._position < self._server.store.compacted:
            self._is_gone, self._ends_at = True, now
            gone = f"too old resource version: {self._position} ({self._server.store.compacted})"
            return [_line("ERROR", RefusedError(410, "Expired", gone).body)]
        lines = [*self._next_lines(), *self._server.injected[self._injected :]]
        self._injected = len(self._server.injected)
        if now >= self._bookmark_at:
            self._bookmark_at = now + BOOKMARK_SECONDS
            lines += self._bookmark_lines()
        return lines

    def _first_lines(self) -> list[bytes]:
        """Give what a watch from no version starts with, and fix where it goes on."""
        if self._position:
            return []
        self._position = self._server.store.version
        objects = sorted(self._server.store.of(self._kind).items())
        return [_line("ADDED", stored.data) for key, stored in objects if self._matches(key, stored)]

    def _next_lines(self) -> list[bytes]:
        changes = self._server.store.changes_after(self._kind, self._position)
        # A version yet to come stays: the real server is silent until it gets there, too.
        self._position = max(self._position, self._server.store.version)
        return [line for change in changes if (line := self._line_of(change))]

    def _bookmark_lines(self) -> list[bytes]:
        """Give a bookmark, if one is due and the version is one that the server has reached."""
        if not self._bookmarks or self._is_gone or self._position > self._server.store.version:
            return []
        metadata = {"resourceVersion": str(self._position), "creationTimestamp": None}
        body = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata}
        return [_line("BOOKMARK", orjson.dumps(body))]

    def _matches(self, key: Key, stored: Stored | None) -> bool:
        if stored is None or (self._namespace and key[0] != self._namespace):
            return False
        return all(matcher(stored.body) for matcher in self._matchers)

    def _line_of(self, change: Change) -> bytes | None:
        was, is_now = self._matches(change.key, change.before), self._matches(change.key, change.after)
        if is_now:
            return _line("MODIFIED" if was else "ADDED", change.last)
        if not was or change.before is None:
            return None
        if change.after is None:
            return _line("DELETED", change.last)
        # It stopped matching: the watcher is shown its last matching state under the new version.
        body = change.before.body
        metadata = {**body["metadata"], "resourceVersion": str(change.version)}
        return _line("DELETED", orjson.dumps({**body, "metadata": metadata}))


def _line(kind: str, data: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + data + b"}"
