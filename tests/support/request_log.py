"""What was said to one API server and what it answered, to be said to another one: both must answer alike.

UIDs, resourceVersions and namespaces differ between two servers, so each is translated as soon as both have answered. Compared
are status code and reason, kind, generation, and whether a write changed the object's version. Watches are left out.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from support.api_kinds import Json, RefusedError
from support.api_requests import ApiRequest
from support.api_server import FakeApiServer
from workflow_schedules.cluster.transport import Answer, Transport

PATIENCE = 30
_UID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


_OF_CONTROLLERS = frozenset({"Job"})  # who writes them, too, in their own time


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer."""

    request: ApiRequest
    status: int
    answer: bytes


Send = Callable[[ApiRequest], Awaitable[tuple[int, bytes]]]


class Facts(NamedTuple):
    """What two servers must agree on."""

    status: int
    reason: str = ""
    kind: str = ""
    generation: int | None = None
    is_new_version: bool | None = None


class RecordingTransport:
    """A way to an API server that notes what is answered on it."""

    def __init__(self, transport: Transport, client: str, log: list[Exchange]) -> None:
        self._transport = transport
        self._client = client
        self._log = log
        self.stream = transport.stream
        self.close = transport.close

    async def request(self, method: str, path: str, **options: Any) -> Answer:  # noqa: ANN401 - as Transport has them
        answer = await self._transport.request(method, path, **options)
        told = {name: options.get(name) for name in ("body", "content_type")}
        request = ApiRequest(client=self._client, method=method, path=path, query=options.get("query") or {}, **told)
        self._log.append(Exchange(request, answer.status, answer.body))
        return answer


def record(server: FakeApiServer) -> list[Exchange]:
    """Note from now on what the fake server is told and answers, in the order in which it does."""
    log: list[Exchange] = []
    real = server.requests.answer

    def answer(request: ApiRequest) -> tuple[int, bytes]:
        try:
            status, body = real(request)
        except RefusedError as refusal:
            log.append(Exchange(request, refusal.code, refusal.body))
            raise
        log.append(Exchange(request, status, body))
        return status, body

    server.requests.answer = answer  # type: ignore[method-assign]
    return log


def to_fake(server: FakeApiServer) -> Send:
    """Send requests to a fake server, at once."""

    async def send(request: ApiRequest) -> tuple[int, bytes]:
        try:
            return server.requests.answer(request)
        except RefusedError as refusal:
            return refusal.code, refusal.body

    return send


def to_real(transport_of: Callable[[str], Transport]) -> Send:
    """Send requests to a real server, each client's on its own way."""

    async def send(request: ApiRequest) -> tuple[int, bytes]:
        for _ in range(PATIENCE):
            status, body = await once(request)
            if status != 429:  # it has just been started
                break
            await asyncio.sleep(1.0)
        return status, body

    async def once(request: ApiRequest) -> tuple[int, bytes]:
        answer = await transport_of(request.client).request(
            request.method,
            request.path,
            query=request.query,
            body=request.body,
            content_type=request.content_type or "application/json",
            timeout_seconds=30,
        )
        return answer.status, answer.body

    return send


@dataclass(slots=True)
class Replay:
    """Says everything again, and notes where the other server answers otherwise.

    Attributes:
        namespaces: of the one server, and what they are called on the other.
        differences: in words.
        compared: how many answers were compared.
    """

    send: Send
    namespaces: Mapping[str, str] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    compared: int = 0
    _uids: dict[bytes, bytes] = field(default_factory=dict)
    _versions: dict[str, str] = field(default_factory=dict)
    _last: tuple[dict[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}))

    async def run(
        self, log: Iterable[Exchange], *, after: Callable[[ApiRequest], Awaitable[None]] | None = None
    ) -> None:
        """Say everything again, one after the other.

        Args:
            log: what was said.
            after: awaited after each request, to let what follows from it happen.
        """
        for exchange in log:
            if exchange.request.query.get("continue"):
                continue
            request = self._translated(exchange.request)
            status, answer = await self.send(request)
            self._compare(exchange, status, answer)
            if after is not None:
                await after(request)

    def _compare(self, exchange: Exchange, status: int, answer: bytes) -> None:
        told, now = _parsed(exchange.answer), _parsed(answer)
        self._learn(told, now)
        is_list = exchange.request.method == "GET" and "items" in told
        wanted = self._facts(exchange.status, told, 0, is_list=is_list)
        found = self._facts(status, now, 1, is_list=is_list)
        self.compared += 1
        if wanted != found:
            what = f"{exchange.request.client}: {exchange.request.method} {exchange.request.path}"
            self.differences.append(f"{what}\n    {wanted}, and here {found}: {now.get('message', '')}")

    def _facts(self, status: int, body: Json, side: int, *, is_list: bool) -> Facts:
        if status >= 300:
            return Facts(status, str(body.get("reason", "")))
        if is_list:
            return Facts(status, kind=str(body.get("kind", "")))
        metadata = body.get("metadata") or {}
        uid, version = metadata.get("uid", ""), metadata.get("resourceVersion", "")
        known = self._last[side].get(uid)
        self._last[side][uid] = version
        kind = str(body.get("kind", ""))
        is_new = None if kind in _OF_CONTROLLERS else known != version
        return Facts(status, "", kind, metadata.get("generation"), is_new)

    def _learn(self, told: Json, now: Json) -> None:
        was, is_now = told.get("metadata") or {}, now.get("metadata") or {}
        if "uid" in was and "uid" in is_now:
            self._uids[was["uid"].encode()] = is_now["uid"].encode()
            if "resourceVersion" in was and "resourceVersion" in is_now:  # not a list's, which may be an object's, too
                self._versions[was["resourceVersion"]] = is_now["resourceVersion"]

    def _translated(self, request: ApiRequest) -> ApiRequest:
        path, body = request.path, request.body
        for mine, theirs in self.namespaces.items():
            path = re.sub(f"/namespaces/{mine}(?=/|$)", f"/namespaces/{theirs}", path)
            body = body and body.replace(f'"namespace":"{mine}"'.encode(), f'"namespace":"{theirs}"'.encode())
        if body:
            body = _UID.sub(lambda match: self._uids.get(match[0], match[0]), body)
            body = self._with_version(body)
        query = dict(request.query)
        selector = query.get("labelSelector", "").encode()
        if selector:
            query["labelSelector"] = _UID.sub(lambda match: self._uids.get(match[0], match[0]), selector).decode()
        return ApiRequest(
            client=request.client,
            method=request.method,
            path=path,
            query=query,
            body=body,
            content_type=request.content_type,
        )

    def _with_version(self, body: bytes) -> bytes:
        parsed = orjson.loads(body)
        metadata = parsed.get("metadata")
        if isinstance(metadata, dict) and (version := metadata.get("resourceVersion")) in self._versions:
            metadata["resourceVersion"] = self._versions[version]
            return orjson.dumps(parsed)
        return body


def _parsed(body: bytes) -> Json:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
