"""What time it is at the API server, by the ``Date`` of its answers. What may not be later than that is the caller's business."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workflow_schedules.cluster.transport import Answer


class ServerClock:
    """See the module.

    Source: reliability P13.
    """

    def __init__(self) -> None:
        self._date = ""
        self._time: datetime | None = None
        self._read_at = 0.0

    def now(self, monotonic: float) -> datetime | None:
        """Give the API server's clock at ``monotonic`` (the event loop's time), never later than it really is.

        None before the first answer. Up to a second early: the ``Date`` header has whole seconds.
        """
        if self._time is None:
            return None
        return self._time + timedelta(seconds=monotonic - self._read_at)

    def read(self, answer: Answer) -> None:
        """Note the server's time; the first answer of each second says it best."""
        date = answer.headers.get("date", "")
        if date == self._date:
            return
        try:
            server_time = parsedate_to_datetime(date)
        except ValueError:
            return
        if server_time.tzinfo is None:
            return
        self._date, self._time = date, server_time
        self._read_at = asyncio.get_running_loop().time()
