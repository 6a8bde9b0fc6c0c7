"""When work that can wait may be done: a little at a time, off the due second, and never while schedules wait their turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cluster import Cluster

LEAST_PER_SECOND = 10.0
MOST_PER_SECOND = 100.0
DRAIN_SECONDS = 60.0  # what waits is to be done in about this time, so that a busy cluster's history does not pile up
QUIET_FROM_SECOND = 59.0
QUIET_UNTIL_SECOND = 2.0
BUSY_SECONDS = 0.25


class Pacer:
    """Lets one piece of work after the other go."""

    def __init__(self, cluster: Cluster, *, is_busy: Callable[[], bool], waiting: Callable[[], int]) -> None:
        """Take who knows whether schedules wait their turn, and how many pieces of work wait here."""
        self._cluster = cluster
        self._is_busy = is_busy
        self._waiting = waiting
        self._last_at = float("-inf")

    async def turn(self) -> None:
        """Wait until the next piece of work may be done."""
        while (seconds := self._pause_seconds()) > 0:  # noqa: ASYNC110 - until a time, and nobody says when it is less busy
            await asyncio.sleep(seconds)
        self._last_at = self._cluster.monotonic()

    def _pause_seconds(self) -> float:
        per_second = min(max(self._waiting() / DRAIN_SECONDS, LEAST_PER_SECOND), MOST_PER_SECOND)
        until_next = self._last_at + 1 / per_second - self._cluster.monotonic()
        if until_next > 0:
            return until_next
        return BUSY_SECONDS if self._is_busy() else self._seconds_of_quiet()

    def _seconds_of_quiet(self) -> float:
        now = self._cluster.now()
        second = now.second + now.microsecond / 1e6
        if second >= QUIET_FROM_SECOND:
            return 60 - second + QUIET_UNTIL_SECOND
        return max(0.0, QUIET_UNTIL_SECOND - second)
