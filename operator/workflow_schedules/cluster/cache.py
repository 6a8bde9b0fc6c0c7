"""What this process knows: what people want (desired), Jobs and requests as they stand (their stores), the logs it has read.

Fed by watches and by the answers to our own requests, which overtake each other; read as a Snapshot (snapshots). Each part keeps
its own objects straight; what one of them means for another is said here: a log's end for a Job, a Job's for a request, an
edit for a log. No requests and no decisions may live here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workflow_schedules.api import names
from workflow_schedules.cluster import wire
from workflow_schedules.cluster.desired import Desired
from workflow_schedules.cluster.job_store import JobStore, SeenJob
from workflow_schedules.cluster.meanwhile import Meanwhile
from workflow_schedules.cluster.memory import RunMemory, ScheduleLog, is_final, may_still_arrive
from workflow_schedules.cluster.places import Places
from workflow_schedules.cluster.request_store import RequestStore, key_of
from workflow_schedules.cluster.snapshots import run_of
from workflow_schedules.core.ending import is_ending
from workflow_schedules.core.leases_apart import is_other_lease
from workflow_schedules.core.requests import is_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime, timedelta

    from workflow_schedules.core.model import Definition, Job, ObjectRef, Record, Schedule
    from workflow_schedules.core.template_fields import TemplateVerdict


class Cache:
    """Everything known; see the module's docstring.

    Attributes:
        schedules: as people wrote them, by UID.
        definitions: the same, by name.
        jobs: of runs, by name.
        cancel_requests: by the UID of the record, whatever became of its schedule.
        template_verdicts: by namespace and hash, as far as there was an answer; see scheduler/dry_runs.
        meanwhile: what is told during a re-read of schedules, definitions and requests, which drops all that is known.
        are_jobs_stale: they are of a history that is no more, until the next list.
    """

    def __init__(self, places: Places | None = None, *, not_before: datetime | None = None) -> None:
        """Take the places that runs may have (without, there is no limit), and the setting `notBefore`."""
        self.places = places or Places()
        self.not_before = not_before
        self.are_jobs_stale = False
        self.meanwhile = Meanwhile()
        self.desired = Desired(self.places, on_edit=self._note_edit)
        self.schedules = self.desired.schedules
        self.definitions = self.desired.definitions
        self.job_store = JobStore()
        self.jobs = self.job_store.by_ref
        self.requests = RequestStore()
        self.logs: dict[str, ScheduleLog] = {}
        self.cancel_requests: dict[str, str] = {}
        self.template_verdicts: dict[tuple[str, str], TemplateVerdict] = {}

    def replace_all(
        self,
        schedules: tuple[Iterable[Schedule], str],
        definitions: tuple[Iterable[Definition], str],
    ) -> None:
        """Drop everything about schedules, definitions and logs for a consistent re-read (P9); never merged.

        Args:
            schedules: all there are, already read since that takes long, and the resourceVersion at which that is so.
            definitions: the same of definitions.
        """
        self.logs.clear()
        self.places.clear()
        self.template_verdicts.clear()
        self.desired.replace_all(schedules, definitions)

    def _note_edit(self, before: Schedule) -> None:
        if before.uid in self.logs:
            self.logs[before.uid].note_edit(before)

    # what machines write

    def put_job(self, body: Mapping[str, Any]) -> str | None:
        """Take in a Job; return whom to wake when something changed that an outcome may depend on.

        That is the schedule's UID, or the key of the request whose run it is.
        """
        return self._put_job(SeenJob.of(body))

    def remove_job(self, body: Mapping[str, Any]) -> str | None:
        """Note that a Job is gone; its last state is kept while its run is unfinished (R26)."""
        return self._put_job(SeenJob.of(body, is_gone=True))

    def replace_jobs(self, listed: Iterable[SeenJob], version: int) -> set[str]:
        """Take in the list that a watch of Jobs begins with; see `reread_jobs`.

        All of it counts where the server itself went back behind what its watch had told (a restore of etcd).
        """
        self.job_store.begin_list(version)
        return self.reread_jobs(listed, version)

    def lose_history(self) -> None:
        """Note that the Jobs are of a history that is no more (a restore of etcd): all that is said from now on is newer."""
        self.are_jobs_stale = True
        self.job_store.lose_history()

    def reread_jobs(self, listed: Iterable[SeenJob], version: int) -> set[str]:
        """Take in a whole list of Jobs; return the UIDs of the schedules for which something changed.

        What a watch or an answer to a request of ours brought after the list was made stays.

        Args:
            listed: every Job there was.
            version: resourceVersion at which that is so.
        """
        self.are_jobs_stale = False
        by_ref = {seen.job.ref: seen for seen in listed}
        changed = {self._put_job(seen) for seen in by_ref.values()}
        changed.update(self._put_job(seen) for seen in self.job_store.missing_from(by_ref, version))
        return {uid for uid in changed if uid is not None}

    def _put_job(self, seen: SeenJob) -> str | None:
        known, job = self.jobs.get(seen.job.ref), self.job_store.merged(seen)
        if job is None:
            return None
        if job.is_gone and not self._is_awaited(job):
            self._forget_gone(job)
        else:
            self.job_store.keep(job, seen.version)
        if known == job:
            return None
        request = self.requests.of_job(job)
        if request is None:
            return job.schedule_uid
        self.follow_request(request.ref)
        return key_of(request)

    def _forget_gone(self, job: Job) -> None:
        """Drop a Job that is gone; what remains to be known of it is that it is (R14)."""
        self.job_store.drop(job.ref)
        for run in self._runs_of(job):
            run.is_job_gone = run.is_job_gone or run.record.status.job_uid == job.uid

    def _is_awaited(self, job: Job) -> bool:
        """Tell whether the outcome of a Job's run is still to be recorded."""
        return any(run.record.uid == job.owner_uid and not is_final(run.record) for run in self._runs_of(job))

    def _runs_of(self, job: Job) -> Iterable[RunMemory]:
        """Return the runs that a Job may be of: a request of its name, and those of the log that it says it is of."""
        log, request = self.logs.get(job.schedule_uid), self.requests.memory(job.ref)
        return (*(log.runs.values() if log else ()), *((request,) if request else ()))

    # what people ask of a run

    def put_cancel(self, body: Mapping[str, Any]) -> str | None:
        """Take in what the annotations of a record ask for; return the schedule's UID when that is news."""
        metadata = body["metadata"]
        asked = (metadata.get("annotations") or {}).get(names.ANNOTATION_CANCEL)
        if asked == self.cancel_requests.get(metadata["uid"]):
            return None
        if asked is None:
            del self.cancel_requests[metadata["uid"]]
        else:
            self.cancel_requests[metadata["uid"]] = asked
        return (metadata.get("labels") or {}).get(names.LABEL_SCHEDULE_UID)

    def remove_cancel(self, body: Mapping[str, Any]) -> None:
        """Forget what was asked of a run that has ended, or whose record is gone."""
        self.cancel_requests.pop(body["metadata"]["uid"], None)

    def replace_cancels(self, records: Iterable[Mapping[str, Any]]) -> set[str]:
        """Take in the records of all unfinished runs; return the UIDs of the schedules of which something is asked."""
        self.cancel_requests.clear()
        woken = {self.put_cancel(body) for body in records}
        return {uid for uid in woken if uid is not None}

    # what decisions are made on

    def log(self, uid: str) -> ScheduleLog:
        """Return the log of a schedule, unread at first."""
        return self.logs.setdefault(uid, ScheduleLog())

    def remember_run(self, uid: str, record: Record) -> None:
        """Take in an unfinished run of a log that is not read yet; it holds its place from now on."""
        self.log(uid).runs[record.number] = RunMemory(record=record)
        self._count_runs(uid)

    def remember_stray(self, body: Mapping[str, Any], lease: str) -> str | None:
        """Take in an unfinished run of a schedule that is gone, where it is not known; return that schedule's UID.

        Its record arrived after the schedule was deleted: it was on its way for long, or another leader sent it.
        """
        try:
            record = wire.record_of(body)
        except wire.NotARecordError:
            return None
        uid, log = record.spec.schedule_ref.uid, self.logs.get(record.spec.schedule_ref.uid or "")
        if not uid or uid in self.schedules or is_final(record) or is_other_lease(record.spec.lease, lease):
            return None
        is_known = log is not None and record.number in log.runs
        if is_known or record.ref.name != names.record_name(record.spec.schedule_ref.name, uid, record.number):
            return None
        self.remember_run(uid, record)
        return uid

    def count_places(self, uid: str, *, answered_before: float) -> None:
        """Count the places of a schedule after a write; one of an admission that may still arrive, or has, stays taken.

        Whether it has arrived shows only when the log is read again.

        Args:
            uid: of the schedule.
            answered_before: monotonic second; what was given up before it can't arrive any more.
        """
        self._count_runs(uid)
        log = self.log(uid)
        if log.is_read and not may_still_arrive(log.append_given_up_at, answered_before):
            self.places.unreserve(uid)

    def _count_runs(self, uid: str) -> None:
        runs = self.log(uid).runs.values()
        self.places.set_runs(uid, tuple(run.record.spec.definition_uid for run in runs if not is_final(run.record)))

    def update_run(self, uid: str, record: Record) -> None:
        """Take in a newer status of a run; once it is final, a Job that is gone is needed no more."""
        self.log(uid).update(record)
        self._take_note(record)

    def run_memory(self, uid: str, record: Record) -> RunMemory | None:
        """Return what this process lived through with a run: of the schedule's log, or a request's."""
        return self.requests.memory(record.ref) if is_request(record) else self.log(uid).runs.get(record.number)

    def put_request(self, record: Record) -> bool:
        """Take in a request; tell whether that was news."""
        is_news = self.requests.put(record)
        self._take_note(record)
        self.follow_request(record.ref)
        return is_news

    def replace_requests(self, records: Iterable[Record], version: int) -> None:
        """Drop all requests for a consistent re-read (P9)."""
        self.requests.replace_all(records, version)
        for job in self.jobs.values():
            self.follow_request(job.ref)

    def follow_request(self, ref: ObjectRef) -> None:
        """Keep a request that was cancelled among the unfinished ones until its Job is gone, whoever cancelled it (P19)."""
        memory, job = self.requests.memory(ref), self.jobs.get(ref)
        if memory is None or not is_final(memory.record):
            return
        is_own = job is not None and job.uid == memory.record.status.job_uid
        self.requests.keep_open(memory.record, is_open=is_own and is_ending(run_of(self, memory, 0.0)))

    def remove_request(self, ref: ObjectRef, uid: str | None = None) -> Record | None:
        """Forget and return a request that is gone."""
        gone = self.requests.remove(ref, uid)
        self._drop_unawaited(ref)
        return gone

    def _take_note(self, record: Record) -> None:
        self.job_store.note_recorded(record)
        self._drop_unawaited(record.ref)

    def _drop_unawaited(self, ref: ObjectRef) -> None:
        job = self.jobs.get(ref)
        if job is not None and job.is_gone and not self._is_awaited(job):
            self._forget_gone(job)

    def is_anothers(self, uid: str, lease: str) -> bool:
        """Tell whether another installation schedules here: its log says so, or its status where that is not read (R33)."""
        log, schedule = self.logs.get(uid), self.schedules.get(uid)
        if log is not None and log.is_read:
            return log.is_anothers
        return is_other_lease(schedule.status.lease if schedule and schedule.status else None, lease)

    def is_of_another_s_request(self, job: Job, lease: str) -> bool:
        """Tell whether a Job was made for a request that another installation resolved (R33)."""
        request = self.requests.of_job(job)
        return request is not None and is_other_lease(request.spec.lease, lease)

    def move_times(self, step: timedelta) -> None:
        """Move what waits to be tried again along with a wall clock that was set."""
        for log in self.logs.values():
            for run in log.runs.values():
                run.move(step)
        for request in self.requests.memories():
            request.move(step)

    def forget_log(self, uid: str) -> None:
        """Forget the log of a schedule that is gone and whose runs have all ended."""
        self.logs.pop(uid, None)

    def key_of_schedule(self, uid: str) -> str | None:
        """Return the key of a schedule's requests, where it has unfinished ones."""
        schedule = self.schedules.get(uid)
        key = str(schedule.ref) if schedule else ""
        return key if self.requests.has_unfinished(key) else None
