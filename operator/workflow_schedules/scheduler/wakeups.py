"""Who is to be looked at when: one heap for all schedules, one earliest time each. Who looks is the loop's business."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SLACK = 64
_AT_ONCE = datetime.min.replace(tzinfo=UTC)


class WakeUps:
    """The wake-ups of all schedules, by UID; the earliest of each wins."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, str]] = []
        self._at: dict[str, datetime] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._at)

    def wake(self, uid: str) -> None:
        """Look at a schedule now."""
        self.wake_at(uid, _AT_ONCE)

    def wake_all(self, uids: Iterable[str]) -> None:
        """Look at several schedules now."""
        for uid in uids:
            self.wake(uid)

    def wake_in_order(self, uids: Iterable[str]) -> None:
        """Look at several schedules now, at the first one first."""
        for place, uid in enumerate(uids):
            self.wake_at(uid, _AT_ONCE + timedelta(microseconds=place))

    def wake_at(self, uid: str, at: datetime) -> None:
        """Look at a schedule at that time, or earlier if it is already to be looked at earlier."""
        known = self._at.get(uid)
        if known is not None and known <= at:
            return
        self._at[uid] = at
        if len(self._heap) > 2 * len(self._at) + _SLACK:
            self._heap = [(when, other) for other, when in self._at.items()]  # without those brought forward since
            heapq.heapify(self._heap)
            self._changed.set()
            return
        heapq.heappush(self._heap, (at, uid))
        self._changed.set()

    def wake_known(self) -> None:
        """Look now at everyone who is to be looked at some time."""
        self.wake_all(list(self._at))

    def take_due(self, now: datetime) -> list[str]:
        """Take out every UID whose time has come, earliest first."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            at, uid = heapq.heappop(self._heap)
            if self._at.get(uid) == at:
                del self._at[uid]
                due.append(uid)
        return due

    def next_at(self) -> datetime | None:
        """Return the earliest wake-up, or None."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    async def wait_changed(self, seconds: float) -> None:
        """Wait until a wake-up is added, at most that long."""
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass

    def poke(self) -> None:
        """End a wait, though no wake-up was added."""
        self._changed.set()

    def clear(self) -> None:
        """Forget all."""
        self._heap.clear()
        self._at.clear()
