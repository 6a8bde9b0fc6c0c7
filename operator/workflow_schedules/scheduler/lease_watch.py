"""Hear of each change of a Lease while another holds it, so that it need not be read twice a second.

Only a hint: whoever wants the Lease reads it before it takes it. A watch may be silent without having ended, or late each time,
so it is trusted for as long as it is the first to tell what changes, and no longer. A holder leaves a pause between two renewals:
from the last read and what was heard since follows when the next one may have come, and if half a second later nothing is
heard the Lease is read. So a change is never known later than that, however slowly the watch falls behind (R34). When to look,
and who may lead, is the elector's to say.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING

from workflow_schedules.cluster.errors import ClusterError, RefusedError
from workflow_schedules.cluster.leases import follow_lease
from workflow_schedules.scheduler.lease_times import TIMER_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.client import Client
    from workflow_schedules.cluster.leases import LeaseRecord
    from workflow_schedules.core.model import ObjectRef
    from workflow_schedules.scheduler.lease_times import LeaseTimes

log = logging.getLogger(__name__)


class LeaseWatch:
    """Watches a Lease from what is known of it, again and again until cancelled.

    Attributes:
        is_trusted: it told the last change first.
        look_at: monotonic second at which the Lease is to be read; whoever hears of a change may move it.
    """

    def __init__(
        self,
        client: Client,
        lease: ObjectRef,
        *,
        known_version: Callable[[], str],
        on_change: Callable[[LeaseRecord], None],
        monotonic: Callable[[], float],
        times: LeaseTimes,
    ) -> None:
        self._client = client
        self._lease = lease
        self._known_version = known_version
        self._on_change = on_change
        self._monotonic = monotonic
        self._times = times
        self._heard = asyncio.Event()
        self._said = ""
        self._read_at = 0.0
        self._suspicious_at = 0.0
        self.is_trusted = False
        self.look_at = 0.0

    def note_news(self, *, is_heard: bool, is_renewal: bool) -> None:
        """Take in that the Lease changed, and whether the watch told of it first; its holder won't renew it at once again.

        Counted from when it may have been renewed, not from when that was heard: what is late would be called punctual.
        """
        self.is_trusted = is_heard
        if is_renewal:
            latest = self._monotonic() + self._times.hush_seconds  # its holder may renew more often than is known
            self._suspicious_at = min(self._suspicious_at + self._times.retry_seconds, latest)

    def note_read(self, begun_at: float) -> None:
        """Take in that by a read that began then everything before it is known."""
        self._read_at = begun_at
        self._suspicious_at = max(self._suspicious_at, begun_at + self._times.look_seconds)

    def trusted_seconds(self) -> float:
        """Return how long it may be relied on without a read."""
        if not self.is_trusted:
            return 0.0
        return min(self._suspicious_at, self._read_at + self._times.duration_seconds) - self._monotonic()

    async def rest(self, stop: asyncio.Event) -> None:
        """Wait until the Lease is to be read, or `stop` is set."""
        stopping = asyncio.ensure_future(stop.wait())
        try:
            while not stop.is_set() and (left := self.look_at - self._monotonic()) > 0:
                self._heard.clear()
                hearing = asyncio.ensure_future(self._heard.wait())
                await asyncio.wait(
                    {stopping, hearing}, timeout=left + TIMER_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                hearing.cancel()
        finally:
            stopping.cancel()

    async def run(self) -> None:
        """Watch until cancelled; no error of the API server ends it."""
        try:
            while True:
                pause = self._times.look_seconds
                if version := self._known_version():
                    pause = max(pause, await self._follow(version))
                self.is_trusted = False
                await asyncio.sleep(pause)
        finally:
            self.is_trusted = False

    async def _follow(self, version: str) -> float:
        """Follow one watch to its end; return how long to leave the server alone after it."""
        ref, silence_seconds = self._lease, self._times.duration_seconds  # its holder writes more often than that
        records = follow_lease(
            self._client, ref.namespace, ref.name, resource_version=version, silence_seconds=silence_seconds
        )
        try:
            async with aclosing(records):
                async for record in records:
                    self._on_change(record)
                    self._heard.set()
        except ClusterError as error:
            if error.message != self._said:
                log.info("the Lease is read, not watched", extra={"lease": str(ref), "error": error.message})
            self._said = error.message
            is_refused = isinstance(error, RefusedError)
            return max(error.retry_after_seconds, silence_seconds if is_refused else self._times.retry_seconds)
        return 0.0
