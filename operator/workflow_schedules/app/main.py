"""Build everything once, run it, and stop in order: admission first, writes in flight next, the Lease last."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import sys
from typing import TYPE_CHECKING

from workflow_schedules.api.names import LABEL_SCHEDULE_UID
from workflow_schedules.app.settings import Settings, SettingsError, read_settings
from workflow_schedules.cluster.apply import Cluster
from workflow_schedules.cluster.cache import Cache
from workflow_schedules.cluster.client import Client
from workflow_schedules.cluster.connection import Connection, NoConnectionError, from_environment
from workflow_schedules.cluster.methods import JOBS
from workflow_schedules.cluster.templates import Templates
from workflow_schedules.cluster.transport import AiohttpTransport
from workflow_schedules.cluster.watch import watch
from workflow_schedules.handlers.feed import Feed
from workflow_schedules.handlers.probes import Probes
from workflow_schedules.handlers.watches import Watches
from workflow_schedules.scheduler.clock import SystemClock
from workflow_schedules.scheduler.leader import Leader
from workflow_schedules.scheduler.leadership import Elector
from workflow_schedules.scheduler.wakeups import WakeUps
from workflow_schedules.telemetry import logs

if TYPE_CHECKING:
    from workflow_schedules.cluster.errors import ClusterError
    from workflow_schedules.cluster.fence import Fence

log = logging.getLogger(__name__)


def main() -> None:
    """Run the operator until SIGTERM or SIGINT; the entry point of the image."""
    try:
        settings = read_settings(os.environ)
        logs.configure(level=settings.log_level, form=settings.log_form)
        connection = from_environment(os.environ)
    except (SettingsError, NoConnectionError) as error:
        sys.exit(f"workflow-schedules: {error}")
    asyncio.run(run(settings, connection))


async def run(settings: Settings, connection: Connection) -> None:
    """Run the operator until a signal asks it to stop."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    transport, lease_transport = AiohttpTransport(connection), AiohttpTransport(connection, pool_connections=2)
    try:
        await Operator(settings, Client(transport, lease_transport=lease_transport)).run(stop)
    finally:
        await lease_transport.close()
        await transport.close()


class Operator:
    """All parts, wired together."""

    def __init__(self, settings: Settings, client: Client) -> None:
        clock = SystemClock()
        cache, self._wakeups = Cache(), WakeUps()
        cluster = Cluster(
            client=client, cache=cache, templates=Templates(client), now=clock.now, monotonic=clock.monotonic
        )
        self._settings = settings
        self._client = client
        self._cluster = cluster
        self._feed = Feed(cache, self._wakeups, asyncio.get_running_loop())
        self._watches = Watches(self._feed)
        self._elector = Elector(
            client,
            settings.lease,
            identity=f"{settings.pod_id}_{secrets.token_hex(8)}",
            clock=clock,
            times=settings.lease_times,
        )
        self._leader = Leader(
            cluster=cluster,
            wakeups=self._wakeups,
            note_epoch=self._elector.note_epoch,
            has_jobs=lambda: self._feed.has_jobs,
            drain_seconds=settings.drain_seconds,
            workers=settings.workers,
        )
        self._probes = Probes(healthy=self._unhealthy, ready=self._unready)

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set."""
        port = await self._probes.start(self._settings.probe_port)
        log.info("started", extra={"probe_port": port})
        self._watches.start()
        jobs = asyncio.ensure_future(self._watch_jobs())
        try:
            await self._elector.run(
                lambda fence: self._lead(fence, stop), stop=stop, may_release=self._cluster.is_everything_answered
            )
        finally:
            self._watches.stop()
            jobs.cancel()
            await asyncio.gather(jobs, return_exceptions=True)
            await self._probes.stop()
            log.info("stopped")

    async def _lead(self, fence: Fence, stop: asyncio.Event) -> None:
        await self._leader.lead(fence, stop=stop)

    async def _watch_jobs(self) -> None:
        await watch(
            self._client,
            JOBS,
            label_selector=LABEL_SCHEDULE_UID,
            on_list=self._feed.jobs,
            on_event=self._feed.job,
            on_error=_say_error,
            slim=self._feed.slim_job,
        )

    def _unhealthy(self) -> str | None:
        return None if self._watches.is_alive else "the watches have ended"

    def _unready(self) -> str | None:
        return None if self._feed.has_jobs else "the Jobs have not been listed yet"


def _say_error(error: ClusterError) -> None:
    log.warning("the watch of Jobs was interrupted, it goes on", extra={"error": error.message})
