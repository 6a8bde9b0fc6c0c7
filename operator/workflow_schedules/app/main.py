"""Start the operator, and stop it in order: admission first, writes in flight next, the Lease last."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import signal
import sys
from importlib.metadata import version

from workflow_schedules.app.composition import Operator
from workflow_schedules.app.settings import PREFIX, Settings, SettingsError, read_settings
from workflow_schedules.cluster.client import Client
from workflow_schedules.cluster.connection import Connection, NoConnectionError, from_environment
from workflow_schedules.cluster.transport import AiohttpTransport
from workflow_schedules.handlers.probes import Probes
from workflow_schedules.handlers.watches import Watches
from workflow_schedules.scheduler.clock import SystemClock
from workflow_schedules.telemetry import logs

log = logging.getLogger(__name__)


def main() -> None:
    """Run the operator until SIGTERM or SIGINT; the entry point of the image."""
    parser = argparse.ArgumentParser(
        prog="workflow-schedules",
        description="Run the operator until SIGTERM or SIGINT. It takes no arguments: every setting is a variable of the "
        f"environment ({PREFIX}…, see app/settings.py), and the cluster is that of KUBECONFIG or of the Pod it runs in.",
    )
    parser.add_argument("--version", action="version", version=version("workflow-schedules"))
    parser.parse_args()
    try:
        settings = read_settings(os.environ)
        logs.configure(level=settings.log_level, form=settings.log_form)
        connection = from_environment(os.environ)
        asyncio.run(run(settings, connection))
    except (SettingsError, NoConnectionError) as error:
        sys.exit(f"workflow-schedules: {error}")


async def run(settings: Settings, connection: Connection) -> None:
    """Run the operator until a signal asks it to stop.

    Raises:
        NoConnectionError: the connection's certificates can't be loaded.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    transport, lease_transport = AiohttpTransport(connection), AiohttpTransport(connection, pool_connections=2)
    try:
        identity = f"{settings.pod_id}_{secrets.token_hex(8)}"
        client = Client(transport, lease_transport=lease_transport)
        await _serve(Operator(settings, client, clock=SystemClock(), identity=identity), settings, stop)
    finally:
        await lease_transport.close()
        await transport.close()


async def _serve(operator: Operator, settings: Settings, stop: asyncio.Event) -> None:
    watches = Watches(operator.feed)
    operator.on_history_lost = watches.begin_anew
    probes = Probes(
        healthy=lambda: watches.problem,
        ready=lambda: operator.unready_reason,
    )
    try:
        port = await probes.start(settings.probe_port)
    except OSError as error:
        sys.exit(
            f"workflow-schedules: port {settings.probe_port} for the probes can't be opened "
            f"({error.strerror}); set {PREFIX}PROBE_PORT to a free one"
        )
    log.info("started", extra={"probe_port": port})
    watches.start()
    try:
        await operator.run(stop)
    finally:
        watches.stop()
        await probes.stop()
        log.info("stopped")
