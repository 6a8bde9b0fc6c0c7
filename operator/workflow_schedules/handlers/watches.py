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

import aiohttp
import kopf

from workflow_schedules.api.names import GROUP, PLURAL_DEFINITION, PLURAL_SCHEDULE, VERSION
from workflow_schedules.cluster.watch import STALL_MARGIN_SECONDS, STALL_SECONDS
from workflow_schedules.handlers.hearing import Hearing
from workflow_schedules.handlers.sessions import account, session_of

if TYPE_CHECKING:
    from workflow_schedules.handlers.feed import Feed

log = logging.getLogger(__name__)

RESTART_SECONDS = 2.0
RESTART_LIMIT_SECONDS = 8.0
FAILURES_TOO_MANY = 5
WATCHED_WELL_SECONDS = 60.0
BACKOFFS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # or as long as Retry-After says; then all is begun anew
LOOK_SECONDS = 1.0
registry = kopf.OperatorRegistry()


class DeafError(Exception):
    """The watches live, and hear nothing."""


@kopf.on.event(GROUP, VERSION, PLURAL_SCHEDULE, registry=registry)
async def schedule_changed(type: str | None, body: kopf.Body, memo: Any, **_: object) -> None:  # noqa: A002, ANN401
    """Pass on a WorkflowSchedule."""
    memo.feed.from_thread(memo.feed.schedule, type, body)


@kopf.on.event(GROUP, VERSION, PLURAL_DEFINITION, registry=registry)
async def definition_changed(type: str | None, body: kopf.Body, memo: Any, **_: object) -> None:  # noqa: A002, ANN401
    """Pass on a WorkflowDefinition."""
    memo.feed.from_thread(memo.feed.definition, type, body)


@kopf.on.login(registry=registry)
async def login(memo: Any, **kwargs: Any) -> kopf.AiohttpSession | None:  # noqa: ANN401
    """Open a session that reads what others nested too deeply; again, with what the account is by then, when it is refused."""
    found = account(**kwargs)
    if found is None:
        return None
    session = session_of(found, memo.hearing)
    memo.sessions[:] = [session, *(each for each in memo.sessions if not each.aiohttp_session.closed)]
    return session


@kopf.on.startup(registry=registry)
def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    """Watch and nothing else."""
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = round(STALL_SECONDS - STALL_MARGIN_SECONDS)  # the server takes whole seconds
    settings.watching.client_timeout = STALL_SECONDS
    settings.watching.inactivity_timeout = STALL_SECONDS
    settings.networking.request_timeout = 15
    settings.networking.error_backoffs = BACKOFFS
    settings.queueing.worker_limit = 100


class Watches:
    """kopf in a thread of its own."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._hearing = Hearing(on_list=feed.list_from_thread)
        self._stop = threading.Event()
        self._anew = threading.Event()
        self._failures = 0
        self._faults = 0
        self._last_error = ""
        self._thread = threading.Thread(target=self._run, name="watches", daemon=True)

    @property
    def problem(self) -> str | None:
        """Return why a new process is needed, or None.

        A watch that fails now and then is begun anew and is none. Nor is one that the API server fails, however often: what
        is known stays in force, and a new process would know less.
        """
        if not self._thread.is_alive():
            return "the watches have ended"
        return f"the watches fail again and again: {self._last_error}" if self._faults >= FAILURES_TOO_MANY else None

    @property
    def unready_reason(self) -> str | None:
        """Return what keeps it from seeing what people write, or None."""
        if (refusal := self._hearing.refusal) is not None:
            return f"the API server refuses a watch: {refusal}"
        return f"the watches fail again and again: {self._last_error}" if self._failures >= FAILURES_TOO_MANY else None

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """End watching, soon; returns at once."""
        self._stop.set()

    def begin_anew(self) -> None:
        """Watch on from a new list, soon; returns at once."""
        self._anew.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            began_at = time.monotonic()
            error: Exception | None = None
            self._hearing.begin()
            self._anew.clear()
            try:
                asyncio.run(self._watch())
            except Exception as raised:
                said = log.warning if _is_of_the_server(raised) else log.exception
                said("the watches ended, they are started again", extra={"error": repr(raised)})
                error = raised
            if time.monotonic() - began_at > WATCHED_WELL_SECONDS:
                self._failures = self._faults = 0
            if self._anew.is_set() and error is None:
                continue
            self._failures += 1
            self._faults += not _is_of_the_server(error)
            self._last_error = repr(error) if error else "they ended by themselves"
            self._stop.wait(min(RESTART_SECONDS * 2.0 ** min(self._failures - 1, 16), RESTART_LIMIT_SECONDS))

    async def _watch(self) -> None:
        sessions: list[kopf.AiohttpSession] = []
        watching = asyncio.create_task(self._operate(sessions))
        deafness = None
        while not watching.done():
            await asyncio.wait({watching}, timeout=LOOK_SECONDS)
            deafness = deafness or self._hearing.deafness
            if self._stop.is_set() or self._anew.is_set() or deafness:
                watching.cancel()
            _insist_on_the_end()
        await _end_the_rest()
        for session in sessions:  # kopf does that at its end, but not when it is cancelled again meanwhile
            await session.aiohttp_session.close()
        if not watching.cancelled():
            watching.result()
        elif deafness:
            raise DeafError(deafness)

    async def _operate(self, sessions: list[kopf.AiohttpSession]) -> None:
        await kopf.operator(
            registry=registry,
            memo=kopf.Memo(feed=self._feed, hearing=self._hearing, sessions=sessions),
            standalone=True,
            # without one kopf asks for the user's name, and the image's user has none
            identity="watches",  # type: ignore[arg-type]  # kopf does not export its type of it
            clusterwide=True,
        )


def _insist_on_the_end() -> None:
    """Cancel again what was cancelled and goes on.

    When one of kopf's watches fails, it cancels the others and waits for their end; one that finds its session closed
    swallows that, and waits for a new session that nobody opens any more (seen with kopf 1.45.2).
    """
    for task in asyncio.all_tasks():
        if task.cancelling() and not task.done():
            task.cancel()


async def _end_the_rest() -> None:
    """Cancel what was left behind until it has ended: `asyncio.run` does so once, and waits for it for ever."""
    while rest := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in rest:
            task.cancel()
        await asyncio.wait(rest, timeout=LOOK_SECONDS)


def _is_of_the_server(error: Exception | None) -> bool:
    """Tell whether the API server, or the way to it, ended the watches; kopf exports none of its errors but this one."""
    if isinstance(error, DeafError | kopf.LoginError | aiohttp.ClientError | TimeoutError | OSError):
        return True
    return type(error).__module__.startswith("kopf._cogs.clients.")
