"""What may go wrong with a watch, each as a function from one of its lines to what the operator gets instead.

    proxy.add_stream(StreamFault("deaf", on("watch", "jobs"), swallow(kinds={"ADDED", "DELETED"})))

A stream fault meets every line of the watches that it matches, of those that are open already too, until it is taken away.
Lines behind one that is kept back wait with it, as on a connection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from faults_lib.seen import Match


class HangUpError(Exception):
    """The connection of this watch breaks now."""


class EndError(Exception):
    """This watch ends now, politely."""


@dataclass(frozen=True, slots=True)
class Event:
    """A line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and its object."""

    kind: str
    body: dict[str, Any]
    line: bytes

    @property
    def name(self) -> str:
        return str(self.body.get("metadata", {}).get("name", ""))

    @property
    def namespace(self) -> str:
        return str(self.body.get("metadata", {}).get("namespace", ""))


StreamAction: TypeAlias = Callable[[Event], Awaitable[list[bytes]]]
Chooses: TypeAlias = Callable[[Event], bool]


@dataclass(slots=True)
class StreamFault:
    """An action for the lines of some watches.

    Attributes:
        name: for the log.
        match: which watches.
        action: gives the lines to send instead of one; none swallows it.
        times: how many lines it meets that `chooses` chooses; 0 is all.
        chooses: which lines.
        struck: how many it met.
    """

    name: str
    match: Match
    action: StreamAction
    chooses: Chooses = lambda _event: True
    times: int = 0
    struck: int = 0

    def meets(self, event: Event) -> bool:
        """Tell whether a line is meant, and count it then."""
        if not self.chooses(event) or (self.times and self.struck >= self.times):
            return False
        self.struck += 1
        return True


def read_event(line: bytes) -> Event:
    """Read a line; what is none is passed on as an event of no kind."""
    try:
        event = json.loads(line)
        return Event(str(event["type"]), dict(event["object"]), line)
    except (ValueError, KeyError, TypeError):
        return Event("", {}, line)


def chosen(*, kinds: Collection[str] = (), names: Collection[str] = (), namespace: str = "") -> Chooses:
    """Choose lines by kind, name and namespace of their object; left out: any."""
    return lambda event: (
        (not kinds or event.kind in kinds) and (not names or event.name in names) and namespace in {"", event.namespace}
    )


def swallow() -> StreamAction:
    """Lose the line; what comes after it comes through, so nobody can tell."""

    async def act(_event: Event) -> list[bytes]:
        return []

    return act


def stall() -> StreamAction:
    """Say nothing more on a connection that stays open."""

    async def act(_event: Event) -> list[bytes]:
        await asyncio.Event().wait()
        return []

    return act


def lag(seconds: float) -> StreamAction:
    """Be late; the lines behind wait their turn and then are late as well."""

    async def act(event: Event) -> list[bytes]:
        await asyncio.sleep(seconds)
        return [event.line]

    return act


def break_off() -> StreamAction:
    """Break the connection instead of sending the line."""

    async def act(_event: Event) -> list[bytes]:
        raise HangUpError

    return act


def end() -> StreamAction:
    """End the watch early and politely instead of sending the line."""

    async def act(_event: Event) -> list[bytes]:
        raise EndError

    return act


def cut_line() -> StreamAction:
    """Send half of the line as if it were a line."""

    async def act(event: Event) -> list[bytes]:
        return [event.line[: len(event.line) // 2]]

    return act


def twice() -> StreamAction:
    """Tell it twice."""

    async def act(event: Event) -> list[bytes]:
        return [event.line, event.line]

    return act


def expire() -> StreamAction:
    """Say 410 in a line instead of it, and end."""

    async def act(_event: Event) -> list[bytes]:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
        status["message"] = "too old resource version: a fault that was asked for"
        return [json.dumps({"type": "ERROR", "object": status}).encode()]

    return act
