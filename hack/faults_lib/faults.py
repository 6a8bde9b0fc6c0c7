"""What may go wrong with one request, each as a function from an exchange to the answer that the operator gets.

    proxy.add(Fault("lost", on("create", "jobs"), lose_answer(), nth=2))

An action may call `exchange.forward()` once, at any moment, and must return an answer; `exchange.hang_up()` is none.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import threading

    from faults_lib.seen import Match, Seen

HTML = b"<html><head><title>502 Bad Gateway</title></head><body>upstream is gone</body></html>"
_REASONS = {
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: `length` is what the header promises, where that is not what is sent; no status is no answer."""

    status: int | None
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None


class Exchange(Protocol):
    """One request on its way."""

    seen: Seen

    async def forward(self) -> Reply:
        """Let the API server carry it out, and give its answer."""
        ...


Action: TypeAlias = Callable[[Exchange], Awaitable[Reply]]
HANG_UP = Reply(None)


@dataclass(slots=True)
class Fault:
    """An action for some requests.

    Attributes:
        name: for the log.
        match: which requests count.
        action: what happens to those that are meant.
        nth: the first of the counted ones that is meant, from 1.
        times: how many in a row are; 0 is all.
        counted: how many came by.
        struck: how many were met.
    """

    name: str
    match: Match
    action: Action
    nth: int = 1
    times: int = 1
    counted: int = 0
    struck: int = 0

    def meets(self, request: Seen) -> bool:
        """Count a request and tell whether it is meant."""
        if not self.match(request):
            return False
        self.counted += 1
        if self.counted < self.nth or (self.times and self.struck >= self.times):
            return False
        self.struck += 1
        return True


def refuse(status: int, *, retry_after_seconds: int | None = None, reason: str = "") -> Action:
    """Answer with an error before anything is carried out, as the API server words it."""

    async def act(exchange: Exchange) -> Reply:
        return status_reply(status, exchange.seen, retry_after_seconds=retry_after_seconds, reason=reason)

    return act


def fail_after_commit(status: int) -> Action:
    """Carry it out and say that it failed."""

    async def act(exchange: Exchange) -> Reply:
        await exchange.forward()
        return status_reply(status, exchange.seen)

    return act


def html(status: int = 502, *, is_committed: bool = False) -> Action:
    """Answer as a load balancer whose upstream is gone does."""

    async def act(exchange: Exchange) -> Reply:
        if is_committed:
            await exchange.forward()
        return Reply(status, HTML, {"Content-Type": "text/html"})

    return act


def html_as_success() -> Action:
    """Carry it out, and answer with a page of a login portal and 200."""

    async def act(exchange: Exchange) -> Reply:
        await exchange.forward()
        return Reply(200, HTML, {"Content-Type": "text/html"})

    return act


def lose_request() -> Action:
    """Break the connection; the API server never sees the request."""

    async def act(_exchange: Exchange) -> Reply:
        return HANG_UP

    return act


def lose_answer() -> Action:
    """Carry it out, and break the connection instead of answering."""

    async def act(exchange: Exchange) -> Reply:
        await exchange.forward()
        return HANG_UP

    return act


def cut_json() -> Action:
    """Carry it out, and answer with the first half of the JSON as if that were all."""

    async def act(exchange: Exchange) -> Reply:
        answer = await exchange.forward()
        return Reply(answer.status, answer.body[: len(answer.body) // 2], answer.headers)

    return act


def cut_body() -> Action:
    """Carry it out, send half of the promised bytes, and break the connection."""

    async def act(exchange: Exchange) -> Reply:
        answer = await exchange.forward()
        return Reply(answer.status, answer.body[: len(answer.body) // 2], answer.headers, length=len(answer.body))

    return act


def delay(seconds: float, *, is_committed: bool = False) -> Action:
    """Be slow: before it is carried out, or after."""

    async def act(exchange: Exchange) -> Reply:
        if not is_committed:
            await asyncio.sleep(seconds)
            return await exchange.forward()
        answer = await exchange.forward()
        await asyncio.sleep(seconds)
        return answer

    return act


def hold(release: threading.Event, *, is_committed: bool = False, limit_seconds: float = 300.0) -> Action:
    """Keep the request (or, once it is carried out, its answer) until somebody releases it."""

    async def act(exchange: Exchange) -> Reply:
        answer = await exchange.forward() if is_committed else None
        await asyncio.to_thread(release.wait, limit_seconds)
        return answer or await exchange.forward()

    return act


def call_before(do: Callable[[], object], *, then_forward: bool = False) -> Action:
    """Do something (kill the sender) before the API server sees the request; it sees it afterwards only if asked for."""

    async def act(exchange: Exchange) -> Reply:
        await asyncio.to_thread(do)
        return await exchange.forward() if then_forward else HANG_UP

    return act


def call_after(do: Callable[[], object]) -> Action:
    """Do something (kill the sender) once it is carried out, and before it is answered."""

    async def act(exchange: Exchange) -> Reply:
        answer = await exchange.forward()
        await asyncio.to_thread(do)
        return answer

    return act


def status_reply(status: int, seen: Seen, *, retry_after_seconds: int | None = None, reason: str = "") -> Reply:
    """An error as the API server words it."""
    resource = seen.resource.partition("/")[0]
    body: dict[str, object] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'{resource} "{seen.name}": a fault that was asked for',
        "reason": reason or _REASONS.get(status, ""),
        "details": {"name": seen.name, "kind": resource, "retryAfterSeconds": retry_after_seconds or 0},
        "code": status,
    }
    headers = {"Content-Type": "application/json"}
    if retry_after_seconds is not None:
        headers["Retry-After"] = str(retry_after_seconds)
    return Reply(status, json.dumps(body).encode(), headers)
