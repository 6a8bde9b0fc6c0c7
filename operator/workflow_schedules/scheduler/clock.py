"""The clocks: the wall clock for calendars and records, the monotonic one for leases and waiting. Nothing else reads them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Protocol


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
