"""The Jobs of runs as they were last seen: by name, and by the schedule that they name.

A Job that is gone is kept with its last state for as long as the cache wants it. Whom a change matters to is the cache's to say;
no requests and no decisions may live here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from workflow_schedules.cluster import wire
from workflow_schedules.core.model import Job
from workflow_schedules.core.retention import recorded_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from workflow_schedules.core.model import ObjectRef, Record


class SeenJob(NamedTuple):
    """A Job, and the resourceVersion it was seen at."""

    job: Job
    version: int

    @classmethod
    def of(cls, body: Mapping[str, Any], *, is_gone: bool = False) -> SeenJob:
        """Read what a list, a watch or an answer says."""
        return cls(wire.job_of(body, is_gone=is_gone), wire.version_of(body))


class JobStore:
    """See the module."""

    def __init__(self) -> None:
        self.by_ref: dict[ObjectRef, Job] = {}
        self._versions: dict[ObjectRef, int] = {}
        self._of_schedule: dict[str, set[ObjectRef]] = {}
        self._seen_through = 0

    def see_through(self, version: int) -> None:
        """Note how far the watch has come."""
        self._seen_through = max(self._seen_through, version)

    def begin_list(self, version: int) -> None:
        """Note that the watch listed all Jobs at a resourceVersion.

        Everything in the list is newer than what is here, if the server itself went back behind what its watch had told (a
        restore of etcd).
        """
        if version < self._seen_through:
            self.lose_history()
        self._seen_through = version

    def lose_history(self) -> None:
        """Note that what is known is of a history that is no more: all that is said from now on is newer."""
        self._versions = dict.fromkeys(self._versions, 0)
        self._seen_through = 0

    def missing_from(self, listed: Iterable[ObjectRef], version: int) -> Iterator[SeenJob]:
        """Yield, as gone, what a list of that resourceVersion would have, but doesn't."""
        there = frozenset(listed)
        for ref, known in list(self.by_ref.items()):
            if ref not in there and self._versions.get(ref, 0) <= version:
                yield SeenJob(replace(known, is_gone=True), version)

    def merged(self, seen: SeenJob) -> Job | None:
        """Return a Job together with what was seen of it before; None where it is older, or the end of one that is replaced."""
        job, known = seen.job, self.by_ref.get(seen.job.ref)
        if seen.version < self._versions.get(job.ref, 0):
            return None
        if known is None or known.uid != job.uid:
            return None if known is not None and job.is_gone else job
        # whoever takes its owner away doesn't make it somebody else's
        return replace(
            job,
            was_started=job.was_started or known.was_started,
            was_ready=job.was_ready or known.was_ready,
            owner_uid=job.owner_uid or known.owner_uid,
            recorded_at=job.recorded_at or known.recorded_at,
        )

    def keep(self, job: Job, version: int) -> None:
        """Keep a Job as it was seen at a resourceVersion."""
        known = self.by_ref.get(job.ref)
        if known is not None and known.schedule_uid != job.schedule_uid:
            self._unlist(known)
        self.by_ref[job.ref], self._versions[job.ref] = job, version
        self._of_schedule.setdefault(job.schedule_uid, set()).add(job.ref)

    def drop(self, ref: ObjectRef) -> None:
        """Forget a Job."""
        if (known := self.by_ref.pop(ref, None)) is not None:
            self._unlist(known)
        self._versions.pop(ref, None)

    def drop_removed(self, ref: ObjectRef, uid: str) -> None:
        """Forget a Job that was removed by us."""
        if (known := self.by_ref.get(ref)) is not None and known.uid == uid:
            self.drop(ref)

    def _unlist(self, job: Job) -> None:
        refs = self._of_schedule.get(job.schedule_uid, set())
        refs.discard(job.ref)
        if not refs:
            self._of_schedule.pop(job.schedule_uid, None)

    def schedules(self) -> list[str]:
        """Return the UIDs that Jobs name as their schedule's."""
        return list(self._of_schedule)

    def of_schedule(self, uid: str) -> list[Job]:
        """Return the Jobs that say they are of this schedule, those that are gone left out."""
        return [job for ref in self._of_schedule.get(uid, ()) if not (job := self.by_ref[ref]).is_gone]

    def note_recorded(self, record: Record) -> bool:
        """Note on the Job of a run that its result is on record; tell whether there is one, and it is the run's own."""
        at, job = recorded_at(record), self.by_ref.get(record.ref)
        if at is None or job is None or job.owner_uid != record.uid:
            return False
        self.by_ref[record.ref] = replace(job, recorded_at=at)
        return True
