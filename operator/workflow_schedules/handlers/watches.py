"""The kopf edge: what people write is watched by kopf, in a thread of its own; handlers only pass it on.

kopf is used for watching alone: no annotations, no finalizers, no peering, no timers. It runs beside the scheduler's loop,
so that neither its load nor its end can delay a run; if it ends, it is started again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import kopf

from workflow_schedules.api.names import GROUP, PLURAL_DEFINITION, PLURAL_SCHEDULE, VERSION
from workflow_schedules.handlers.sessions import account, session_of

if TYPE_CHECKING:
    from workflow_schedules.handlers.feed import Feed

log = logging.getLogger(__name__)

RESTART_SECONDS = 2.0
FAILURES_TOO_MANY = 5
WATCHED_WELL_SECONDS = 60.0
registry = kopf.OperatorRegistry()


@kopf.on.event(GROUP, VERSION, PLURAL_SCHEDULE, registry=registry)
async def schedule_changed(type: str | None, body: kopf.Body, memo: Any, **_: object) -> None:  # noqa: A002, ANN401
    """Pass on a WorkflowSchedule."""
    memo.feed.from_thread(memo.feed.schedule, type, body)


@kopf.on.event(GROUP, VERSION, PLURAL_DEFINITION, registry=registry)
async def definition_changed(type: str | None, body: kopf.Body, memo: Any, **_: object) -> None:  # noqa: A002, ANN401
    """Pass on a WorkflowDefinition."""
    memo.feed.from_thread(memo.feed.definition, type, body)


@kopf.on.login(registry=registry)
async def login(**kwargs: Any) -> kopf.AiohttpSession | None:  # noqa: ANN401
    """Open a session that reads what others nested too deeply."""
    found = account(**kwargs)
    return session_of(found) if found else None


@kopf.on.startup(registry=registry)
def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    """Watch and nothing else."""
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = 25
    settings.watching.client_timeout = 30
    settings.watching.inactivity_timeout = 30
    settings.networking.request_timeout = 15
    settings.queueing.worker_limit = 100


class Watches:
    """kopf in a thread of its own."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._stop = threading.Event()
        self._end = threading.Event()  # of this run of kopf
        self._is_to_begin_anew = False
        self._failures = 0
        self._last_error = ""
        self._thread = threading.Thread(target=self._run, name="watches", daemon=True)

    @property
    def problem(self) -> str | None:
        """Return why nothing is watched, or None; a watch that fails now and then is started again and is none."""
        if not self._thread.is_alive():
            return "the watches have ended"
        return f"the watches fail again and again: {self._last_error}" if self._failures >= FAILURES_TOO_MANY else None

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """End watching; returns at once."""
        self._stop.set()
        self._end.set()

    def begin_anew(self) -> None:
        """Watch on from a new list; returns at once."""
        self._is_to_begin_anew = True
        self._end.set()

    def _run(self) -> None:
        while True:
            began_at = time.monotonic()
            self._end.clear()
            if self._stop.is_set():  # asked after that, so that no stop is overlooked
                return
            error: Exception | None = None
            try:
                asyncio.run(self._watch())
            except Exception as raised:
                log.exception("the watches ended, they are started again")
                error = raised
            if time.monotonic() - began_at > WATCHED_WELL_SECONDS:
                self._failures = 0
            if not self._is_to_begin_anew:
                self._failures += 1
                self._last_error = repr(error) if error else "they ended by themselves"
            self._is_to_begin_anew = False
            self._stop.wait(RESTART_SECONDS)

    async def _watch(self) -> None:
        try:
            await kopf.operator(
                registry=registry,
                memo=kopf.Memo(feed=self._feed),
                standalone=True,
                # without one kopf asks for the user's name, and the image's user has none
                identity="watches",  # type: ignore[arg-type]  # kopf does not export its type of it
                clusterwide=True,
                stop_flag=self._end,
            )
        finally:
            self._end.set()  # kopf waits for it in a thread, for which the loop waits when it closes
