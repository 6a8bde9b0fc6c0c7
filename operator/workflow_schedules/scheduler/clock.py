"""The clocks: the wall clock for calendars and records, the monotonic one for leases and waiting. Nothing else reads them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

LEAST_STEP: Final = timedelta(seconds=2)  # what the API server says of its own clock is a second apart anyway


class Clock(Protocol):
    """What the scheduler needs to know about time."""

    def now(self) -> datetime:
        """Return the wall clock, aware UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never step back; the event loop's own time."""
        ...


class SystemClock:
    """The machine's clocks; to be used inside the running event loop."""

    def now(self) -> datetime:
        """See `Clock.now`."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return asyncio.get_running_loop().time()


class Steps:
    """Notices when the wall clock is set, by the monotonic one."""

    def __init__(self) -> None:
        self._known: tuple[datetime, float] | None = None

    def look(self, now: datetime, monotonic: float) -> timedelta:
        """Return by how much the wall clock was set since the last look; zero when it went on as it should."""
        known, self._known = self._known, (now, monotonic)
        if known is None:
            return timedelta()
        step = now - known[0] - timedelta(seconds=monotonic - known[1])
        if abs(step) < LEAST_STEP:
            self._known = (now - step, monotonic)  # what creeps adds up
            return timedelta()
        return step
