"""All parts of the operator but the edge towards kopf and the kubelet, wired together once."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from workflow_schedules.api.names import LABEL_SCHEDULE_UID
from workflow_schedules.cluster.cache import Cache
from workflow_schedules.cluster.cluster import Cluster
from workflow_schedules.cluster.errors import ForbiddenError, UnauthorizedError
from workflow_schedules.cluster.methods import JOBS, OCCURRENCES
from workflow_schedules.cluster.places import Places
from workflow_schedules.cluster.templates import Templates
from workflow_schedules.cluster.watch import WENT_BACK, watch
from workflow_schedules.handlers.feed import Feed
from workflow_schedules.scheduler.leader import Leader
from workflow_schedules.scheduler.leadership import Elector
from workflow_schedules.scheduler.recovery import REQUESTS, UNFINISHED
from workflow_schedules.scheduler.retention import RetentionSettings
from workflow_schedules.scheduler.sweep import Sweep
from workflow_schedules.scheduler.wakeups import WakeUps
from workflow_schedules.telemetry.events import Events

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.app.settings import Settings
    from workflow_schedules.cluster.client import Client
    from workflow_schedules.cluster.errors import ClusterError
    from workflow_schedules.cluster.methods import Resource
    from workflow_schedules.scheduler.clock import Clock

log = logging.getLogger(__name__)


class Operator:
    """One process of the operator: a candidate that leads when it holds the Lease.

    Attributes:
        feed: where the watches of what people write end.
        on_history_lost: told when the API server went back to a backup: who watches must list anew, since a watch from a
            version that is still to come is silent.
    """

    def __init__(self, settings: Settings, client: Client, *, clock: Clock, identity: str) -> None:
        """Create it inside the running event loop."""
        self.on_history_lost: Callable[[], None] = lambda: None
        wakeups = WakeUps()
        cache = Cache(Places(settings.max_concurrent_runs, wake=wakeups.wake), not_before=settings.not_before)
        self._client = client
        self._refusals: dict[str, str] = {}  # what the API server refused of a watch, and has not granted since
        self._events = Events(
            client.create_event,
            instance=identity,
            level=settings.events,
            now=clock.now,
            is_busy=self._is_busy,
        )
        self._cluster = Cluster(
            client=client,
            cache=cache,
            templates=Templates(client),
            wall_clock=clock.now,
            monotonic=clock.monotonic,
            tell=self._events.occurrence,
            tell_refused=self._events.refused,
        )
        sweep = Sweep(self._cluster, wakeups)
        self.feed = Feed(cache, wakeups, asyncio.get_running_loop(), on_list=sweep.note_list, lease=str(settings.lease))
        self._elector = Elector(
            client,
            settings.lease,
            identity=identity,
            clock=clock,
            times=settings.lease_times,
            on_history_lost=self._lose_history,
        )
        self._leader = Leader(
            cluster=self._cluster,
            wakeups=wakeups,
            sweep=sweep,
            note_epoch=self._elector.note_epoch,
            has_jobs=lambda: self.feed.has_jobs and self.feed.has_requests,
            watch_cancels=self._watch_cancels,
            drain_seconds=settings.drain_seconds,
            workers=settings.workers,
            retention=RetentionSettings(
                name_kept=timedelta(seconds=settings.name_kept_seconds),
                deleted_kept=timedelta(seconds=settings.retain_deleted_seconds),
                max_records=settings.max_occurrence_records,
            ),
        )

    @property
    def unready_reason(self) -> str | None:
        """Return why it knows too little to take over, or can't write where it leads; None when it is ready."""
        if self._refusals:
            return f"the API server refuses a watch: {next(iter(self._refusals.values()))}"
        if not self.feed.has_jobs:
            return "the Jobs have not been listed yet"
        if not self.feed.has_requests:
            return "the requests have not been listed yet"
        if self._elector.fence is None:
            return self._elector.problem
        return self._leader.problem

    @property
    def is_leading(self) -> bool:
        """Tell whether it schedules."""
        return self._leader.is_leading

    def _is_busy(self) -> bool:
        return self._leader.is_busy()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set; then finish what was begun and release the Lease last.

        Source: contract R33, R34.
        """
        async with (
            asyncio.TaskGroup() as tasks
        ):  # a watch that ends by a fault of ours ends the process: it would be blind
            helpers = [
                tasks.create_task(helper) for helper in (self._watch_jobs(), self._watch_requests(), self._events.run())
            ]
            await self._elector.run(
                lambda fence: self._leader.lead(fence, stop=stop),
                stop=stop,
                may_release=self._cluster.is_everything_answered,
            )
            for helper in helpers:
                helper.cancel()

    def _lose_history(self) -> None:
        """Read everything anew: what is known is of a history that is no more, so no log may go on from it (P9)."""
        log.warning("the API server's history went back, as after a restore of etcd: everything is read anew")
        self._cluster.cache.lose_history()
        self._cluster.templates.forget()
        self._elector.drop_history()
        self.on_history_lost()

    async def _watch_jobs(self) -> None:
        feed = self.feed
        await self._watch(
            JOBS, label_selector=LABEL_SCHEDULE_UID, on_list=feed.jobs, on_event=feed.job, slim=feed.slim_job
        )

    async def _watch_requests(self) -> None:
        """See what people ask for: runs now, and backfills."""
        feed = self.feed
        await self._watch(
            OCCURRENCES,
            field_selector=REQUESTS,
            on_list=feed.requests,
            on_event=feed.request,
            slim=feed.slim_request,
        )

    async def _watch_cancels(self) -> None:
        """See the cancel annotations of scheduled runs while leading.

        No request per run, and nothing is kept but what is asked: the field selector narrows the watch to unfinished runs, of
        which each is told twice or thrice in its life (begun, maybe running, ended). A label would make it cheaper still, but a
        request is an annotation (R31), and the labels of records are the operator's alone.
        """
        feed = self.feed
        await self._watch(
            OCCURRENCES,
            field_selector=UNFINISHED,
            on_list=feed.cancels,
            on_event=feed.cancel,
            slim=feed.slim_cancel,
        )

    async def _watch(self, resource: Resource, **listener: Any) -> None:  # noqa: ANN401 - those of `watch`
        """Watch, and remember what is refused until it is granted."""
        what = f"{resource.plural} {listener.get('field_selector', '')}"
        is_over = partial(self._refusals.pop, what, None)
        try:
            await watch(self._client, resource, on_error=partial(self._note_error, what), on_answer=is_over, **listener)
        finally:
            is_over()

    def _note_error(self, what: str, error: ClusterError) -> None:
        if isinstance(error, ForbiddenError | UnauthorizedError):
            self._refusals[what] = error.message
        log.warning("a watch was interrupted, it goes on", extra={"watch": what, "error": error.message})
        if error.reason == WENT_BACK:
            self._lose_history()
