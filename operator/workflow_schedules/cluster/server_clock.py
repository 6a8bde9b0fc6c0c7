"""What time it is at the API server, by the ``Date`` of its answers. What may not be later than that is the caller's business."""

from __future__ import annotations

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

_WHOLE_SECOND: Final = timedelta(seconds=1)  # the header has no parts of it


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

    def read(self, date: str, *, sent_at: float, received_at: float) -> None:
        """Note the server's time of an answer, if that says more than is known; the first answer of each second says most.

        An answer that was long on its way says too little: it would hold decisions back, past deadlines that have passed. What
        is known stays where the answer agrees with it; where it can't (somebody set that clock), the answer is believed.

        Args:
            date: the header.
            sent_at: when the request was, on the event loop's clock.
            received_at: when its answer was.
        """
        if date == self._date:
            return
        try:
            server_time = parsedate_to_datetime(date)
        except ValueError:
            return
        if server_time.tzinfo is None:
            return
        self._date = date
        known, latest = self.now(received_at), server_time + _WHOLE_SECOND + timedelta(seconds=received_at - sent_at)
        if known is None or not server_time <= known <= latest:
            self._time, self._read_at = server_time, received_at
