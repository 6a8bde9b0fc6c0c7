"""Where all watches end: they feed the cache and wake the schedules concerned, in the scheduler's own event loop."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from workflow_schedules.api.names import LABEL_SCHEDULE_UID
from workflow_schedules.cluster import wire
from workflow_schedules.cluster.job_store import SeenJob
from workflow_schedules.cluster.request_store import key_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping

    from workflow_schedules.cluster.cache import Cache
    from workflow_schedules.core.model import Record
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
        lease: str = "",
    ) -> None:
        """Take what is fed, who is told that a watch of what people write began anew with a list, and the Lease in use."""
        self._cache = cache
        self._wakeups = wakeups
        self._loop = loop
        self._on_list = on_list
        self._lease = lease
        self.has_jobs = False
        self.has_requests = False

    def from_thread(self, take: Callable[[str | None, Body], None], kind: str | None, body: Mapping[str, Any]) -> None:
        """Hand an event of another thread to the scheduler's loop."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(take, kind, dict(body))

    def list_from_thread(self) -> None:
        """Note that a watch of another thread began anew; its list may be empty, and then no event follows."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_list)

    def schedule(self, kind: str | None, body: Body) -> None:
        """Take in a WorkflowSchedule; the kind None is that of a listed one."""
        self._cache.meanwhile.note(partial(self.schedule, kind, body))
        if kind is None:
            self._on_list()
        gone = kind == "DELETED"
        uid = (
            self._cache.desired.remove_schedule(body["metadata"]["uid"])
            if gone
            else self._cache.desired.put_schedule(body)
        )
        if uid is not None:
            self._wake([uid])

    def definition(self, kind: str | None, body: Body) -> None:
        """Take in a WorkflowDefinition; the kind None is that of a listed one."""
        self._cache.meanwhile.note(partial(self.definition, kind, body))
        if kind is None:
            self._on_list()
        if kind == "DELETED":
            self._wake(self._cache.desired.remove_definition(wire.ref_of(body), body["metadata"]["uid"]))
        else:
            self._wake(self._cache.desired.put_definition(body))

    def _wake(self, uids: Iterable[str]) -> None:
        """Wake schedules, and the requests that name them."""
        self._wakeups.wake_all(uids)
        self._wakeups.wake_all(key for uid in uids if (key := self._cache.key_of_schedule(uid)) is not None)

    def cancel(self, kind: str, body: Body) -> None:
        """Take in the record of an unfinished run, of which something may be asked; ``DELETED``: it has ended."""
        if kind == "DELETED":
            self._cache.remove_cancel(body)
            return
        self._take_stray(body)
        if (uid := self._cache.put_cancel(body)) is not None:
            self._wakeups.wake(uid)

    def cancels(self, listed: list[Body], _resource_version: str) -> None:
        """Take in the records of all unfinished runs."""
        for body in listed:
            self._take_stray(body)
        self._wakeups.wake_all(self._cache.replace_cancels(listed))

    def _take_stray(self, body: Body) -> None:
        """Remember a run that came late, after its schedule was deleted: nobody reads that log any more (R35)."""
        if "spec" in body and (uid := self._cache.remember_stray(body, self._lease)) is not None:
            self._wakeups.wake(uid)

    def job(self, kind: str, body: Body) -> None:
        """Take in a Job."""
        self._cache.job_store.see_through(wire.version_of(body))
        uid = self._cache.remove_job(body) if kind == "DELETED" else self._cache.put_job(body)
        if uid is not None:
            self._wakeups.wake(uid)

    def jobs(self, listed: list[SeenJob], resource_version: str) -> None:
        """Take in a whole list of Jobs."""
        version = wire.number_of(resource_version)
        self._wakeups.wake_all(self._cache.replace_jobs(listed, version))
        self.has_jobs = True

    def slim_cancel(self, body: Body) -> Body:
        """Keep of a listed record what may ask for something, and all of it where its schedule is gone."""
        uid = (body["metadata"].get("labels") or {}).get(LABEL_SCHEDULE_UID)
        return {"metadata": body["metadata"]} if uid in self._cache.schedules else body

    @staticmethod
    def slim_job(body: Body) -> SeenJob:
        """Keep of a listed Job what matters."""
        return SeenJob.of(body)

    def request(self, kind: str, body: Body) -> None:
        """Take in a run that somebody asks for."""
        self._cache.meanwhile.note(partial(self.request, kind, body))
        record = self.slim_request(body)
        if record is None:
            return
        if kind == "DELETED":
            self._wake_about(self._cache.remove_request(record.ref, record.uid))
        elif self._cache.put_request(record):
            self._wake_about(record)

    def requests(self, listed: list[Record | None], resource_version: str) -> None:
        """Take in a whole list of them."""
        self._cache.meanwhile.note(partial(self.requests, listed, resource_version))
        version = wire.number_of(resource_version)
        found = [record for record in listed if record is not None]
        for record in found:
            if self._cache.put_request(record):
                self._wake_about(record)
        for record in self._cache.requests.drop_vanished(found, version):
            self._wake_about(record)
        self.has_requests = True

    def _wake_about(self, record: Record | None) -> None:
        """Wake the requests of a schedule, and the schedule itself where its history changes."""
        if record is None:
            return
        self._wakeups.wake(key_of(record))
        uid = record.spec.schedule_ref.uid
        if record.status.outcome is not None and uid is not None:
            self._wakeups.wake(uid)

    @staticmethod
    def slim_request(body: Body) -> Record | None:
        """Read a request; None where it can't be read, which the schema rules out for all that this version can do."""
        try:
            return wire.record_of(body)
        except wire.NotARecordError as error:
            log.warning("a request can't be read, it is left alone", extra={"error": str(error)})
            return None
