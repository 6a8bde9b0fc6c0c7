"""Commits of an API server, in the order of their resourceVersions, from sources that tell them late, twice or not at all.

An audit log tells a write when its answer is complete, one that a kill -9 met not at all; a watch leaves out what it
missed while it was cut off. Together they leave few holes, and what they leave is taken from a list of what is there.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

Json = dict[str, Any]

# No request outlives this at the API server: ours end after 10 s, those of kubectl and the controllers after 60 s.
LATEST = timedelta(seconds=65)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One version of one object: `before` is None for a create, `after` for a removal.

    Attributes:
        kind: the plural, in lower case.
        at: when it was made, by the API server's clock or that of whoever saw it.
        received_at: when the API server got the request, where that is known.
    """

    kind: str
    before: Json | None
    after: Json | None
    at: datetime
    received_at: datetime | None = None

    @property
    def body(self) -> Json:
        """The object as it is, or as it last was."""
        body = self.after or self.before
        assert body is not None, "one of the two is there"
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A version of an object as a source told it; `body` is None for a removal of which only name and UID are known."""

    version: int
    kind: str
    key: tuple[str, str]
    body: Json | None
    is_removed: bool
    at: datetime
    uid: str = ""  # only without a body
    received_at: datetime | None = None


class CommitOrder:
    """Takes versions in any order and gives commits in theirs, once nothing older can come any more."""

    def __init__(self, *, latest: timedelta = LATEST) -> None:
        self._latest = latest
        self._heap: list[tuple[int, int, Told]] = []
        self._count = itertools.count()
        self._now: datetime | None = None
        self._bodies: dict[tuple[str, str, str], Json] = {}  # by kind, namespace and name, as of the last commit given
        self._waiting: dict[tuple[str, str, str, int], datetime | None] = {}  # versions in the heap, and when received
        self._gone: set[str] = set()  # UIDs
        self.newest_version = 0

    def add(self, told: Told) -> None:
        """Take one version; one that is known already changes nothing, so that telling it again holds nothing up."""
        self.newest_version = max(self.newest_version, told.version)
        if self._is_known(told):
            return
        self._now = told.at if self._now is None else max(self._now, told.at)
        heapq.heappush(self._heap, (told.version, next(self._count), told))

    def given(self, *, everything: bool = False) -> Iterator[Commit]:
        """Give the commits that are old enough; all of them when nothing more will be added."""
        while self._heap and (everything or self._is_old(self._heap[0][2])):
            yield from self._commits(heapq.heappop(self._heap)[2])

    def present(self, kind: str) -> dict[tuple[str, str], Json]:
        """Give what is there of one kind, as of the last commit given."""
        return {(namespace, name): body for (of, namespace, name), body in self._bodies.items() if of == kind}

    def _is_known(self, told: Told) -> bool:
        if told.body is None or told.is_removed:
            return False
        waiting = (told.kind, *told.key, told.version)
        known = self._bodies.get((told.kind, *told.key))
        if known is not None and not _is_newer(told, known):
            return True
        is_waiting = waiting in self._waiting
        self._waiting[waiting] = self._waiting.get(waiting) or told.received_at
        return is_waiting

    def _is_old(self, told: Told) -> bool:
        return self._now is not None and self._now - told.at > self._latest

    def _commits(self, told: Told) -> Iterator[Commit]:
        place = (told.kind, *told.key)
        received_at = self._waiting.pop((*place, told.version), None)
        before = self._bodies.get(place)
        body = told.body if told.body is not None else before
        if (
            body is None
            or body["metadata"]["uid"] in self._gone
            or (before is not None and not _is_newer(told, before))
        ):
            return
        if before is not None and before["metadata"]["uid"] != body["metadata"]["uid"]:
            yield self._removed(place, before, told)  # another of the same name: nobody told that the old one went
            before = None
        if told.is_removed:
            yield self._removed(place, before or body, told)
            return
        self._bodies[place] = body
        yield Commit(kind=told.kind, before=before, after=body, at=told.at, received_at=received_at)

    def _removed(self, place: tuple[str, str, str], body: Json, told: Told) -> Commit:
        self._bodies.pop(place, None)
        self._gone.add(body["metadata"]["uid"])
        return Commit(kind=told.kind, before=body, after=None, at=told.at)


def _is_newer(told: Told, before: Json) -> bool:
    """Tell whether it is not the version that is known, told again."""
    if told.body is None:
        return told.uid in {"", before["metadata"]["uid"]}
    return told.is_removed or told.version > int(before["metadata"]["resourceVersion"])
