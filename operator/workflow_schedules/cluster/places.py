"""Who holds the places that scheduled runs may take, and who waits for one: the operator's limit and the definitions'.

Counted as logs change, so that a decision costs the same with one schedule as with a million. No requests and no rules about
instants may live here; that a place is missed is core's to say.

A place is taken by an unfinished run, by an admission on its way (many decide at once), and by an offer: a place that
frees is kept for the one that has waited longest, so that nobody who comes by can snatch it.
"""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

_SLACK = 64
_EVERYWHERE = ""  # the key of the operator's own limit, beside UIDs of definitions


@dataclass(frozen=True, slots=True, order=True)
class _Turn:
    """A schedule's turn: the oldest candidate first, and of equals the one that has waited longest."""

    since: datetime
    number: int
    uid: str = field(compare=False)
    definition: str | None = field(compare=False)


class Places:
    """Counts places by schedule and by definition, by UID; None stands for runs of no definition.

    Source: contract R28.
    """

    def __init__(self, limit: int = 0, *, wake: Callable[[str], None] = lambda _uid: None) -> None:
        """Take the operator's limit (0 is unlimited), and who is told that a schedule may have a place."""
        self._wake = wake
        self._limit = limit
        self.clear()

    def clear(self) -> None:
        """Forget definitions, who holds and who waits, for a consistent re-read (P9)."""
        self._limits: dict[str, int] = {_EVERYWHERE: self._limit} if self._limit else {}
        self._taken: Counter[str] = Counter()
        self._unfinished: Counter[str] = Counter()
        self._runs: dict[str, tuple[str | None, ...]] = {}
        self._reserved: dict[str, str | None] = {}
        self._offers: dict[str, str | None] = {}
        self._waiting: dict[str, _Turn] = {}
        self._line: list[_Turn] = []
        self._parked: dict[str, list[_Turn]] = {}
        self._entries = 0
        self._numbers = 0

    # who holds

    def unfinished_of(self, definition: str) -> int:
        """Return how many scheduled runs of a definition are unfinished, also those of schedules that are gone."""
        return self._unfinished[definition]

    def set_runs(self, uid: str, definitions: tuple[str | None, ...]) -> None:
        """Learn the unfinished scheduled runs of a schedule, each by the definition that its record names."""
        known = self._runs.get(uid, ())
        if known == definitions:
            return
        for definition in definitions:
            self._take(definition)
            self._unfinished[definition or _EVERYWHERE] += 1
        for definition in known:
            self._unfinished[definition or _EVERYWHERE] -= 1
            self._free(definition)
        if definitions:
            self._runs[uid] = definitions
        else:
            del self._runs[uid]
        self._hand_out()

    def set_limit(self, definition: str, limit: int | None) -> None:
        """Learn `maxActiveRuns` of a definition; None is unlimited, or it is gone. Lowering it ends nothing."""
        if self._limits.get(definition) == limit:
            return
        if limit is None:
            del self._limits[definition]
        else:
            self._limits[definition] = limit
        for turn in self._parked.pop(definition, ()):
            heapq.heappush(self._line, turn)
        self._hand_out()

    def free(self, uid: str, definition: str | None) -> int | None:
        """Return how many more runs a schedule may start now, an offer to it and a lost admission of its own included.

        None is unlimited.
        """
        if not self._limits:
            return None
        rooms = [self._room(key, own=uid) for key in _keys(definition) if key in self._limits]
        return max(0, min(rooms)) if rooms else None

    def reserve(self, uid: str, definition: str | None) -> None:
        """Keep a place for an admission that may arrive; it is the one that was offered, if one was."""
        self.unreserve(uid)
        self._take(definition)
        self._reserved[uid] = definition
        self.give_back(uid)

    def unreserve(self, uid: str) -> None:
        """Give up the place of an admission that is answered: its run, if there is one, is counted by now."""
        if uid in self._reserved:
            self._free(self._reserved.pop(uid))
            self._hand_out()

    # who waits

    def wait(self, uid: str, definition: str | None, since: datetime) -> None:
        """Stand in line with the oldest candidate; the turn among equals stays that of the first call."""
        known = self._waiting.get(uid)
        if known is not None and (known.since, known.definition) == (since, definition):
            return
        self._numbers += 1
        turn = _Turn(since, known.number if known else self._numbers, uid, definition)
        self._waiting[uid] = turn
        self._enter(turn)
        self._hand_out()

    def leave(self, uid: str) -> None:
        """Wait no more."""
        turn = self._waiting.pop(uid, None)
        if turn is not None and turn.definition is not None:
            self._call_back(turn.definition)
            self._hand_out()

    def give_back(self, uid: str) -> None:
        """Give back a place that was offered and not taken."""
        if uid in self._offers:
            self._free(self._offers.pop(uid))
            self._hand_out()

    def _hand_out(self) -> None:
        """Offer free places to those who have waited longest; one whose definition has none steps aside."""
        while self._line and self._room(_EVERYWHERE) > 0:
            turn = heapq.heappop(self._line)
            self._entries -= 1
            if self._waiting.get(turn.uid) is not turn:
                continue
            if turn.definition is not None and self._room(turn.definition) <= 0:
                heapq.heappush(self._parked.setdefault(turn.definition, []), turn)
                self._entries += 1
                continue
            del self._waiting[turn.uid]
            self._take(turn.definition)
            self._offers[turn.uid] = turn.definition
            self._wake(turn.uid)

    def _enter(self, turn: _Turn) -> None:
        heapq.heappush(self._line, turn)
        self._entries += 1
        if self._entries > 2 * len(self._waiting) + _SLACK:  # most are of turns that were since exchanged
            self._line, self._parked = list(self._waiting.values()), {}
            heapq.heapify(self._line)
            self._entries = len(self._line)

    def _take(self, definition: str | None) -> None:
        for key in _keys(definition):
            self._taken[key] += 1

    def _free(self, definition: str | None) -> None:
        for key in _keys(definition):
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]
        if definition is not None:
            self._call_back(definition)

    def _call_back(self, definition: str) -> None:
        """Let the first of those who stepped aside for want of this definition's places stand in line again."""
        parked = self._parked.get(definition)
        while parked:
            turn = heapq.heappop(parked)
            if self._waiting.get(turn.uid) is turn:
                heapq.heappush(self._line, turn)
                break
            self._entries -= 1
        if not parked:
            self._parked.pop(definition, None)

    def _room(self, key: str, *, own: str | None = None) -> int:
        """Return how many places are free; those kept for `own` count as free to it."""
        if key not in self._limits:
            return sys.maxsize
        kept = sum(own in by and key in _keys(by[own]) for by in (self._offers, self._reserved)) if own else 0
        return self._limits[key] - self._taken[key] + kept


def _keys(definition: str | None) -> tuple[str, ...]:
    return (_EVERYWHERE,) if definition is None else (_EVERYWHERE, definition)
