"""Everything that can go wrong with one write of an operator, and a trap that lets it happen to the n-th."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import World


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What happens to one write, and whether the process that sent it dies."""

    name: str
    fault: Fault
    is_crash: bool = False


DISTURBANCES = (
    Disturbance("dropped before", Fault(is_dropped=True)),
    Disturbance("lost after", Fault(is_answer_lost=True)),
    Disturbance("lost after, in silence", Fault(is_answer_lost=True, is_silent=True)),
    Disturbance("500", Fault(status=500, reason="InternalError")),
    Disturbance("429", Fault(status=429, reason="TooManyRequests", retry_after_seconds=2)),
    Disturbance("crash before", Fault(is_dropped=True), is_crash=True),
    Disturbance("crash after", Fault(is_answer_lost=True), is_crash=True),
    Disturbance("late by 20 s", Fault(delay_seconds=20)),
)


def is_counted_write(request: ApiRequest) -> bool:
    if request.method not in {"POST", "PATCH", "PUT"} or request.query.get("dryRun"):
        return False
    return "/leases" not in request.path


def is_write_or_delete(request: ApiRequest) -> bool:
    return request.method == "DELETE" or is_counted_write(request)


class Trap:
    """Disturbs the n-th write, once, and kills its sender if asked to."""

    def __init__(
        self,
        world: World,
        number: int,
        disturbance: Disturbance | None,
        counts: Callable[[ApiRequest], bool] = is_counted_write,
    ) -> None:
        self._counts = counts
        self.writes = 0
        self._world = world
        self._number = number
        self._disturbance = disturbance
        self.tasks: list[asyncio.Task[object]] = []

    def __call__(self, request: ApiRequest) -> Fault | None:
        if not self._counts(request):
            return None
        self.writes += 1
        if self._disturbance is None or self.writes != self._number:
            return None
        if self._disturbance.is_crash:
            self.tasks.append(asyncio.ensure_future(self._world.restart()))
        return self._disturbance.fault
