"""The runs that people asked for, as far as this process knows them: by name, by schedule, newest version wins.

Plain state that the cache keeps and a watch of its own feeds; finished ones are kept for history, without their input. No
requests to the API server and no decisions may live here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workflow_schedules.cluster import wire
from workflow_schedules.cluster.memory import RunMemory, is_final
from workflow_schedules.core.model import Requested
from workflow_schedules.core.requests import is_resolved, summarise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workflow_schedules.core.model import Job, ObjectRef, Record

_NONE = Requested()


def key_of(record: Record) -> str:
    """Return under which key a request is worked off: all that name one schedule together, so that they keep their order."""
    return str(replace(record.ref, name=record.spec.schedule_ref.name))


def is_key(woken: str) -> bool:
    """Tell a key of requests from the UID of a schedule, which has no slash."""
    return "/" in woken


class RequestStore:
    """See the module."""

    def __init__(self) -> None:
        self._by_ref: dict[ObjectRef, RunMemory] = {}
        self._unfinished: dict[str, set[ObjectRef]] = {}
        self._of_schedule: dict[str, set[ObjectRef]] = {}
        self._summaries: dict[str, Requested] = {}
        self._floor = 0

    def __len__(self) -> int:
        return len(self._by_ref)

    def put(self, record: Record) -> bool:
        """Take in a request; tell whether that was news."""
        known, version = self._by_ref.get(record.ref), _version(record)
        if version <= (self._floor if known is None else _version(known.record)):
            return False
        if known is None or known.record.uid != record.uid:
            self.remove(record.ref)
            known = self._by_ref[record.ref] = RunMemory(record=record)
        elif is_resolved(known.record):
            record = replace(record, spec=known.record.spec)  # whoever claims it later did not decide it
        known.record = _slim(record) if is_final(record) else record
        self._index(known.record)
        return True

    def remove(self, ref: ObjectRef, uid: str | None = None) -> Record | None:
        """Forget a request that is gone, if it is the one of this UID."""
        known = self._by_ref.get(ref)
        if known is None or uid not in {None, known.record.uid}:
            return None
        del self._by_ref[ref]
        _discard(self._unfinished, key_of(known.record), ref)
        if (schedule_uid := known.record.spec.schedule_ref.uid) is not None:
            _discard(self._of_schedule, schedule_uid, ref)
            self._summaries.pop(schedule_uid, None)
        return known.record

    def replace_all(self, records: Iterable[Record], version: int) -> None:
        """Drop everything for a consistent re-read (P9)."""
        for ref in list(self._by_ref):
            self.remove(ref)
        self._floor = 0
        for record in records:
            self.put(record)
        self._floor = version

    def keep_open(self, record: Record, *, is_open: bool) -> None:
        """Keep a finished request among the unfinished ones, or let it go."""
        if is_open:
            self._unfinished.setdefault(key_of(record), set()).add(record.ref)
        else:
            _discard(self._unfinished, key_of(record), record.ref)

    def drop_vanished(self, listed: Iterable[Record], version: int) -> list[Record]:
        """Forget and return what a later list doesn't have."""
        there = {record.ref: record.uid for record in listed}
        gone = [
            memory.record
            for ref, memory in self._by_ref.items()
            if there.get(ref) != memory.record.uid and _version(memory.record) <= version
        ]
        for record in gone:
            self.remove(record.ref)
        return gone

    def memory(self, ref: ObjectRef) -> RunMemory | None:
        """Return what is remembered of a request."""
        return self._by_ref.get(ref)

    def memories(self) -> Iterable[RunMemory]:
        """Return what is known of all requests."""
        return self._by_ref.values()

    def unfinished(self, key: str) -> list[RunMemory]:
        """Return the unfinished requests that name one schedule."""
        return [self._by_ref[ref] for ref in self._unfinished.get(key, ())]

    def unfinished_keys(self) -> list[str]:
        """Return the keys of all schedules that have unfinished requests."""
        return list(self._unfinished)

    def has_unfinished(self, key: str) -> bool:
        """Tell whether a schedule of that name has unfinished requests."""
        return key in self._unfinished

    def of_job(self, job: Job) -> Record | None:
        """Return the request whose run a Job is."""
        known = self._by_ref.get(job.ref)
        return known.record if known is not None and known.record.uid == job.owner_uid else None

    def requested(self, schedule_uid: str) -> Requested:
        """Return what became of the requests of one schedule; summed up once for each change."""
        refs = self._of_schedule.get(schedule_uid)
        if not refs:
            return _NONE
        if schedule_uid not in self._summaries:
            self._summaries[schedule_uid] = summarise(self._by_ref[ref].record for ref in refs)
        return self._summaries[schedule_uid]

    def _index(self, record: Record) -> None:
        if is_final(record):
            _discard(self._unfinished, key_of(record), record.ref)
        else:
            self._unfinished.setdefault(key_of(record), set()).add(record.ref)
        if (schedule_uid := record.spec.schedule_ref.uid) is not None:
            self._of_schedule.setdefault(schedule_uid, set()).add(record.ref)
            self._summaries.pop(schedule_uid, None)


def _slim(record: Record) -> Record:
    return replace(record, spec=record.spec.model_copy(update={"input": None, "input_json": None}))


def _version(record: Record) -> int:
    return wire.number_of(record.resource_version)


def _discard(index: dict[str, set[ObjectRef]], key: str, ref: ObjectRef) -> None:
    refs = index.get(key)
    if refs is not None:
        refs.discard(ref)
        if not refs:
            del index[key]
