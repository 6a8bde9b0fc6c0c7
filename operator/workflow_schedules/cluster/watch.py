"""Keep somebody told of every object of one kind: list, then watch, then again for ever.

Knows the watch protocol only; what the objects mean is for the callbacks, which must not block. All namespaces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import orjson

from workflow_schedules.cluster.client import Client, Json
from workflow_schedules.cluster.decoding import decode
from workflow_schedules.cluster.errors import ClusterError, GoneError, UnansweredError, error_of_status
from workflow_schedules.cluster.methods import Resource

T = TypeVar("T")

STALL_SECONDS: Final = 30.0
STALL_MARGIN_SECONDS: Final = 5.0
BACKOFF_FIRST_SECONDS: Final = 0.25
BACKOFF_LIMIT_SECONDS: Final = 8.0
WENT_BACK: Final = "WentBack"  # reason of the error that tells of a history older than what was seen: a restored backup


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """Who is told what.

    Attributes:
        on_list: all objects as of a resourceVersion: what isn't among them is gone.
        on_event: ``ADDED``, ``MODIFIED`` or ``DELETED``, and the object as it is or last was.
        on_error: what went wrong; the watch goes on by itself.
        on_answer: the server listed, said something, or ended a watch in time: what went wrong is over.
        slim: applied to every object of a list as its page arrives, so that a large list is never in memory whole.
    """

    on_list: Callable[[list[Any], str], None]
    on_event: Callable[[str, Json], None]
    on_error: Callable[[ClusterError], None]
    on_answer: Callable[[], object]
    slim: Callable[[Json], Any] | None


async def watch(  # noqa: PLR0913 - by keyword, and most callers leave most of them out
    client: Client,
    resource: Resource,
    *,
    on_list: Callable[[list[Any], str], None],
    on_event: Callable[[str, Json], None],
    on_error: Callable[[ClusterError], None] = lambda _error: None,
    on_answer: Callable[[], object] = lambda: None,
    slim: Callable[[Json], Any] | None = None,
    label_selector: str | None = None,
    field_selector: str | None = None,
    stall_seconds: float = STALL_SECONDS,
) -> None:
    """List and watch until cancelled; no error of the API server ends it.

    After a fault it waits 0.25 s, doubling to 8 s (or as long as ``Retry-After`` says), and goes on from the last
    resourceVersion seen; if the server has forgotten that one, it lists again and ``on_list`` is called anew.
    The server ends a healthy watch a little before ``stall_seconds``, so that much silence means a dead connection.

    Args:
        client: the way to the API server.
        resource: the kind to watch.
        on_list: see ``Callbacks``.
        on_event: see ``Callbacks``.
        on_error: see ``Callbacks``.
        on_answer: see ``Callbacks``.
        slim: see ``Callbacks``.
        label_selector: which objects; one that stops matching is told as ``DELETED``.
        field_selector: the same by fields.
        stall_seconds: longest silence of a connection before it is given up.
    """
    callbacks = Callbacks(on_list=on_list, on_event=on_event, on_error=on_error, on_answer=on_answer, slim=slim)
    selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
    chosen = {name: selector for name, selector in selectors.items() if selector}
    await _Watch(client, resource, callbacks, chosen, stall_seconds).run()


class _Watch:
    """One watch; ``resource_version`` is empty while a list is needed."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        callbacks: Callbacks,
        selectors: dict[str, str],
        stall_seconds: float,
    ) -> None:
        self._client = client
        self._resource = resource
        self._callbacks = callbacks
        self._selectors = selectors
        self._stall_seconds = stall_seconds
        self._resource_version = ""
        self._is_trusted = True
        self._backoff_seconds = BACKOFF_FIRST_SECONDS

    async def run(self) -> None:
        while True:
            try:
                if not self._is_trusted:
                    await self._check_history()
                if not self._resource_version:
                    await self._list()
                await self._follow()
            except GoneError as error:
                # Not at once: a server that answers 410 for ever must not be flooded with lists.
                self._resource_version, self._is_trusted = "", True
                await self._wait(error)
            except ClusterError as error:
                self._is_trusted = False
                await self._wait(error)

    async def _check_history(self) -> None:
        """Make sure that the server still knows the version to go on from.

        After a restore of etcd it may not have got there yet; a watch from a version to come is silent (measured).
        """
        async with aclosing(self._client.pages(self._resource, limit=1)) as pages:
            page = await anext(pages)
        if is_older(page.resource_version, self._resource_version):
            raise GoneError("the server's history is older than what was seen", reason=WENT_BACK)
        self._is_trusted = True

    async def _list(self) -> None:
        items: list[Any] = []
        resource_version = ""
        slim = self._callbacks.slim
        pages = self._client.pages(
            self._resource,
            label_selector=self._selectors.get("labelSelector"),
            field_selector=self._selectors.get("fieldSelector"),
        )
        async with aclosing(pages):
            async for page in pages:
                items.extend(map(slim, page.items) if slim else page.items)
                resource_version = page.resource_version
        if not resource_version:
            raise UnansweredError("the list has no resourceVersion", reason="Undecodable")
        self._callbacks.on_list(items, resource_version)
        self._callbacks.on_answer()
        self._resource_version = resource_version

    async def _follow(self) -> None:
        """Follow one connection until the server ends it, as it does after its time-out."""
        timeout_seconds = max(1, int(self._stall_seconds - STALL_MARGIN_SECONDS))
        query = {
            "resourceVersion": self._resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_seconds),
            **self._selectors,
        }
        started_at = asyncio.get_running_loop().time()
        async with aclosing(
            self._client.watch_lines(self._resource, query=query, idle_timeout_seconds=self._stall_seconds)
        ) as lines:
            async for line in lines:
                self._take(line)
                self._note_answer()
        # An end before its time is that of the server: it restarts, maybe with another history.
        if asyncio.get_running_loop().time() - started_at < timeout_seconds - 1:
            raise UnansweredError("the watch ended too soon", reason="Closed")
        self._note_answer()

    def _note_answer(self) -> None:
        self._backoff_seconds = BACKOFF_FIRST_SECONDS
        self._callbacks.on_answer()

    def _take(self, line: bytes) -> None:
        kind, (body, resource_version) = event_of(line, lambda body: (body, str(body["metadata"]["resourceVersion"])))
        if is_older(resource_version, self._resource_version):
            # The server's history is not the one we followed: etcd was restored from a backup, or events come again.
            raise GoneError("the watch went back in time", reason=WENT_BACK)
        if kind != "BOOKMARK":
            self._callbacks.on_event(kind, body)
        self._resource_version = resource_version

    async def _wait(self, error: ClusterError) -> None:
        self._callbacks.on_error(error)
        seconds = max(self._backoff_seconds, error.retry_after_seconds)
        self._backoff_seconds = min(2 * self._backoff_seconds, BACKOFF_LIMIT_SECONDS)
        await asyncio.sleep(seconds)


def event_of(line: bytes, read: Callable[[Json], T]) -> tuple[str, T]:
    """Return the kind of event that a line of a watch tells, and what `read` makes of its object.

    Raises:
        UnansweredError: it makes no sense.
        ClusterError: it tells of an error.
    """
    try:
        event = decode(line)
        kind, body = event["type"], event["object"]
        if kind == "ERROR":
            raise error_of_status(body)
        return kind, read(body)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise UnansweredError("a line of the watch makes no sense", reason="Undecodable") from error


def is_older(resource_version: str, than: str) -> bool:
    """Tell whether a resourceVersion is one from before another; False where that can't be told."""
    if not (resource_version.isdecimal() and than.isdecimal()):
        return False
    return int(resource_version) < int(than)
