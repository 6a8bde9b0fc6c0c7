"""Write Events: rarely, late, and never in the way of a run. What deserves one is core's business.

A bucket of its own holds them to a low rate; what does not fit is dropped, and so is what fails. Nobody waits for an Event.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from workflow_schedules.api import names
from workflow_schedules.core.events import EventLevel, EventText, Happening, event_of, event_of_refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from workflow_schedules.api.common import Condition
    from workflow_schedules.core.model import Record, Schedule

log = logging.getLogger(__name__)

BURST = 25
PER_SECOND = 1.0
BUSY_SECONDS = 0.5
_REMEMBERED = 1024
_CONTROLLER = f"{names.GROUP}/operator"
_NOTE_MAX = 1024


class _Bucket:
    """Holds to PER_SECOND on average, BURST at once."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._free_at = clock() - BURST / PER_SECOND  # when everything that was let through is paid for

    def take(self) -> float:
        """Return the seconds to wait before one more."""
        now = self._clock()
        self._free_at = max(self._free_at, now - BURST / PER_SECOND) + 1 / PER_SECOND
        return max(0.0, self._free_at - now)


class Events:
    """The Events of one process."""

    def __init__(
        self,
        send: Callable[[str, dict[str, Any]], Awaitable[object]],
        *,
        instance: str,
        level: EventLevel,
        now: Callable[[], datetime],
        is_busy: Callable[[], bool],
    ) -> None:
        """Take how an Event is sent (namespace, body), and who knows whether schedules wait their turn."""
        self._send = send
        self._instance = instance
        self._level = level
        self._now = now
        self._is_busy = is_busy
        self._waiting: asyncio.Queue[tuple[EventText, datetime]] = asyncio.Queue(maxsize=BURST)
        self._told: OrderedDict[str, None] = OrderedDict()
        self.dropped = 0

    def occurrence(self, happening: Happening, record: Record) -> None:
        """Tell what became of an occurrence, if that deserves an Event."""
        self._put(event_of(happening, record, level=self._level))

    def refused(self, schedule: Schedule, accepted: Condition) -> None:
        """Tell that a spec can't be used."""
        if self._level is not EventLevel.NONE:
            self._put(event_of_refusal(schedule, accepted))

    async def run(self) -> None:
        """Send what waits until cancelled."""
        bucket = _Bucket(asyncio.get_running_loop().time)
        while True:
            text, at = await self._waiting.get()
            while self._is_busy():  # noqa: ASYNC110 - whose end nobody announces
                await asyncio.sleep(BUSY_SECONDS)
            await asyncio.sleep(bucket.take())
            await self._write(text, at)

    def _put(self, text: EventText | None) -> None:
        if text is None or text.name in self._told or text.about in self._told:
            return
        try:
            self._waiting.put_nowait((text, self._now()))
        except asyncio.QueueFull:
            self.dropped += 1
            return
        for key in filter(None, (text.name, text.about)):
            self._told[key] = None
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)

    async def _write(self, text: EventText, at: datetime) -> None:
        try:
            await self._send(text.schedule.namespace, self._body(text, at))
        except Exception as error:
            self.dropped += 1
            log.debug("an Event was not written", extra={"event": text.name, "error": str(error)})

    def _body(self, text: EventText, at: datetime) -> dict[str, Any]:
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": text.name, "namespace": text.schedule.namespace},
            "eventTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": _CONTROLLER,
            "reportingInstance": self._instance[:128],
            "action": text.action,
            "reason": text.reason,
            "type": "Warning" if text.is_warning else "Normal",
            "note": text.note[:_NOTE_MAX],
            "regarding": {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND_SCHEDULE,
                "namespace": text.schedule.namespace,
                "name": text.schedule.name,
                "uid": text.schedule_uid,
            },
        }
