"""Where all watches end: they feed the cache and wake the schedules concerned, in the scheduler's own event loop."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from workflow_schedules.cluster import wire
from workflow_schedules.cluster.cache import SeenJob

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from workflow_schedules.cluster.cache import Cache
    from workflow_schedules.scheduler.wakeups import WakeUps

log = logging.getLogger(__name__)

Body = dict[str, Any]


class Feed:
    """Takes in what watches see. Level-driven: what kind of event it was matters only for deletions."""

    def __init__(
        self,
        cache: Cache,
        wakeups: WakeUps,
        loop: asyncio.AbstractEventLoop,
        *,
        on_list: Callable[[], None],
    ) -> None:
        """Take what is fed, and who is told that a watch of what people write began anew with a list."""
        self._cache = cache
        self._wakeups = wakeups
        self._loop = loop
        self._on_list = on_list
        self.has_jobs = False

    def from_thread(self, take: Callable[[str | None, Body], None], kind: str | None, body: Mapping[str, Any]) -> None:
        """Hand an event of another thread to the scheduler's loop."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(take, kind, dict(body))

    def schedule(self, kind: str | None, body: Body) -> None:
        """Take in a WorkflowSchedule; the kind None is that of a listed one."""
        if kind is None:
            self._on_list()
        gone = kind == "DELETED"
        uid = self._cache.remove_schedule(body["metadata"]["uid"]) if gone else self._cache.put_schedule(body)
        if uid is not None:
            self._wakeups.wake(uid)

    def definition(self, kind: str | None, body: Body) -> None:
        """Take in a WorkflowDefinition; the kind None is that of a listed one."""
        if kind is None:
            self._on_list()
        if kind == "DELETED":
            self._wakeups.wake_all(self._cache.remove_definition(wire.ref_of(body), body["metadata"]["uid"]))
        else:
            self._wakeups.wake_all(self._cache.put_definition(body))

    def cancel(self, kind: str, body: Body) -> None:
        """Take in the record of an unfinished run, of which something may be asked; ``DELETED``: it has ended."""
        if kind == "DELETED":
            self._cache.remove_cancel(body)
        elif (uid := self._cache.put_cancel(body)) is not None:
            self._wakeups.wake(uid)

    def cancels(self, listed: list[Body], _resource_version: str) -> None:
        """Take in the records of all unfinished runs."""
        self._wakeups.wake_all(self._cache.replace_cancels(listed))

    def job(self, kind: str, body: Body) -> None:
        """Take in a Job."""
        self._cache.see_jobs_through(wire.version_of(body))
        uid = self._cache.remove_job(body) if kind == "DELETED" else self._cache.put_job(body)
        if uid is not None:
            self._wakeups.wake(uid)

    def jobs(self, listed: list[SeenJob], resource_version: str) -> None:
        """Take in a whole list of Jobs."""
        version = int(resource_version) if resource_version.isdecimal() else 0
        self._wakeups.wake_all(self._cache.replace_jobs(listed, version))
        self.has_jobs = True

    @staticmethod
    def slim_cancel(body: Body) -> Body:
        """Keep of a listed record what may ask for something."""
        return {"metadata": body["metadata"]}

    @staticmethod
    def slim_job(body: Body) -> SeenJob:
        """Keep of a listed Job what matters."""
        return SeenJob(wire.job_of(body), wire.version_of(body))
