"""What this process knows: schedules and definitions as people wrote them, Jobs as they stand, the logs it has read.

Fed by watches and by the answers to our own requests, which overtake each other; read as a Snapshot. Only newer objects
replace what is here, an answer never brings back what was deleted meanwhile, and a takeover replaces everything (P9). No
requests and no decisions may live here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from workflow_schedules.api import names
from workflow_schedules.cluster import wire
from workflow_schedules.cluster.memory import RunMemory, ScheduleLog, is_final
from workflow_schedules.cluster.places import Places
from workflow_schedules.cluster.request_store import RequestStore, key_of
from workflow_schedules.core.acceptance import template_of
from workflow_schedules.core.decide_requests import Queue
from workflow_schedules.core.ending import is_ending
from workflow_schedules.core.leases_apart import is_other_lease
from workflow_schedules.core.model import ObjectRef, Run, Snapshot
from workflow_schedules.core.requests import is_request
from workflow_schedules.core.retention import recorded_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime, timedelta

    from workflow_schedules.core.model import Definition, Job, Record, Schedule, Writer


class SeenJob(NamedTuple):
    """A Job, and the resourceVersion it was seen at."""

    job: Job
    version: int


class Cache:
    """Everything known, by UID; see the module's docstring."""

    def __init__(self, places: Places | None = None, *, not_before: datetime | None = None) -> None:
        """Take the places that runs may have (without, there is no limit), and the setting `notBefore`."""
        self.places = places or Places()
        self.not_before = not_before
        self.schedules: dict[str, Schedule] = {}
        self.definitions: dict[ObjectRef, Definition] = {}
        self.jobs: dict[ObjectRef, Job] = {}
        self.logs: dict[str, ScheduleLog] = {}
        self.switched_off: set[str] = set()  # definitions whose switch was seen to go from true to false
        self.cancel_requests: dict[str, str] = {}  # by the UID of the record, whatever became of its schedule
        self.template_refusals: dict[tuple[str, str], str] = {}  # by namespace and hash: see scheduler/dry_runs
        self.requests = RequestStore()
        self._named: dict[ObjectRef, str] = {}
        self._children: dict[ObjectRef, set[str]] = {}
        self._floors = {"schedules": 0, "definitions": 0}
        self._job_versions: dict[ObjectRef, int] = {}
        self._jobs_of: dict[str, set[ObjectRef]] = {}
        self._jobs_seen_through = 0
        self.are_jobs_stale = False  # of a history that is no more, until the next list

    # what people write

    def put_schedule(self, body: Mapping[str, Any]) -> str | None:
        """Take in a schedule; return its UID when something changed that a decision may depend on."""
        uid, version = str(body["metadata"]["uid"]), wire.version_of(body)
        known = self.schedules.get(uid)
        if version <= self._floors["schedules"] if known is None else version <= int(known.resource_version or 0):
            return None
        return self._take_in(known, wire.schedule_of(body))

    def _take_in(self, known: Schedule | None, schedule: Schedule) -> str | None:
        uid = schedule.uid
        if known is not None:
            self._unlink(known)
            if known.spec_hash != schedule.spec_hash and uid in self.logs:
                self.logs[uid].note_edit(known)
        self.schedules[uid] = schedule
        self._named[schedule.ref] = uid
        if (parent := _parent(schedule)) is not None:
            self._children.setdefault(parent, set()).add(uid)
        is_news = known is None or _heeded(known) != _heeded(schedule)
        return uid if is_news else None

    def refresh_schedule(self, body: Mapping[str, Any]) -> None:
        """Take in the answer to a request of ours about a schedule, unless it was deleted meanwhile."""
        if body["metadata"]["uid"] in self.schedules:
            self.put_schedule(body)

    def remove_schedule(self, uid: str) -> str | None:
        """Forget a deleted schedule; its unfinished runs stay known under its UID (R20)."""
        known = self.schedules.pop(uid, None)
        if known is None:
            return None
        self._unlink(known)
        if self._named.get(known.ref) == uid:
            del self._named[known.ref]
        return uid

    def put_definition(self, body: Mapping[str, Any]) -> set[str]:
        """Take in a definition; return the UIDs of the schedules it matters to."""
        ref, version = wire.ref_of(body), wire.version_of(body)
        known = self.definitions.get(ref)
        if version <= self._floors["definitions"] if known is None else version <= int(known.resource_version or 0):
            return set()
        definition = wire.definition_of(body)
        self.definitions[ref] = definition
        if known is not None and known.uid != definition.uid:
            self._lose_definition(known)
        self.places.set_limit(definition.uid, definition.max_active_runs)
        if _is_switched_off(known, definition):
            self.switched_off.add(definition.uid)
        elif definition.is_enabled:
            self.switched_off.discard(definition.uid)
        is_news = known is None or (known.uid, known.generation) != (definition.uid, definition.generation)
        return self.children_of(ref) if is_news else set()

    def refresh_definition(self, body: Mapping[str, Any]) -> None:
        """Take in the answer to a request of ours about a definition, unless it was deleted meanwhile."""
        known = self.definitions.get(wire.ref_of(body))
        if known is not None and known.uid == body["metadata"]["uid"]:
            self.put_definition(body)

    def remove_definition(self, ref: ObjectRef, uid: str) -> set[str]:
        """Forget a deleted definition; return the UIDs of the schedules that it held together."""
        known = self.definitions.get(ref)
        if known is None or known.uid != uid:
            return set()
        del self.definitions[ref]
        self._lose_definition(known)
        return self.children_of(ref)

    def _lose_definition(self, known: Definition) -> None:
        self.places.set_limit(known.uid, None)
        self.switched_off.discard(known.uid)

    def children_of(self, definition: ObjectRef) -> set[str]:
        """Return the UIDs of the schedules that name a definition."""
        return set(self._children.get(definition, ()))

    def parent_of(self, schedule: Schedule) -> Definition | None:
        """Return the definition that a schedule names, if there is one."""
        parent = _parent(schedule)
        return self.definitions.get(parent) if parent else None

    def replace_all(
        self,
        schedules: tuple[Iterable[Schedule], str],
        definitions: tuple[Iterable[Mapping[str, Any]], str],
    ) -> None:
        """Drop everything about schedules, definitions and logs for a consistent re-read (P9); never merged.

        Args:
            schedules: all there are, already read since that takes long, and the resourceVersion at which that is so.
            definitions: all there are, as they were listed, and the same.
        """
        self.schedules.clear()
        self._named.clear()
        self.definitions.clear()
        self._children.clear()
        self.logs.clear()
        self.places.clear()
        self.switched_off.clear()
        self.template_refusals.clear()
        self._floors = {"schedules": 0, "definitions": 0}
        for body in definitions[0]:
            self.put_definition(body)
        for schedule in schedules[0]:
            self._take_in(self.schedules.get(schedule.uid), schedule)
        # events older than the re-read may still come in: what it didn't list is gone
        self._floors = {"schedules": _number(schedules[1]), "definitions": _number(definitions[1])}

    def drop_vanished(
        self, schedules: tuple[Iterable[Mapping[str, Any]], str], definitions: tuple[Iterable[Mapping[str, Any]], str]
    ) -> set[str]:
        """Forget what a later list does not have; return the UIDs of the schedules that it matters to.

        Args:
            schedules: all there are, and the resourceVersion at which that is so.
            definitions: the same of definitions.
        """
        there = {body["metadata"]["uid"] for body in (*schedules[0], *definitions[0])}
        woken: set[str] = set()
        for uid, schedule in list(self.schedules.items()):
            if uid not in there and int(schedule.resource_version or 0) <= _number(schedules[1]):
                self.remove_schedule(uid)
                woken.add(uid)
        for ref, definition in list(self.definitions.items()):
            if definition.uid not in there and int(definition.resource_version or 0) <= _number(definitions[1]):
                woken |= self.remove_definition(ref, definition.uid)
        return woken

    # what machines write

    def put_job(self, body: Mapping[str, Any]) -> str | None:
        """Take in a Job; return whom to wake when something changed that an outcome may depend on.

        That is the schedule's UID, or the key of the request whose run it is.
        """
        return self._put_job(SeenJob(wire.job_of(body), wire.version_of(body)))

    def remove_job(self, body: Mapping[str, Any]) -> str | None:
        """Note that a Job is gone; its last state is kept while its run is unfinished (R26)."""
        return self._put_job(SeenJob(wire.job_of(body, is_gone=True), wire.version_of(body)))

    def see_jobs_through(self, version: int) -> None:
        """Note how far the watch of Jobs has come."""
        self._jobs_seen_through = max(self._jobs_seen_through, version)

    def replace_jobs(self, listed: Iterable[SeenJob], version: int) -> set[str]:
        """Take in a whole list of Jobs; return the UIDs of the schedules for which something changed.

        What an answer to a request of ours brought after the list was made stays, unless the server itself went back
        behind what its watch had told (a restore of etcd).

        Args:
            listed: every Job there was.
            version: resourceVersion at which that is so.
        """
        if version < self._jobs_seen_through:
            self._job_versions = dict.fromkeys(self._job_versions, 0)
        self._jobs_seen_through, self.are_jobs_stale = version, False
        by_ref = {seen.job.ref: seen for seen in listed}
        changed = {self._put_job(seen) for seen in by_ref.values()}
        for ref, known in list(self.jobs.items()):
            if ref not in by_ref and self._job_versions.get(ref, 0) <= version:
                changed.add(self._put_job(SeenJob(replace(known, is_gone=True), version)))
        return {uid for uid in changed if uid is not None}

    def _put_job(self, seen: SeenJob) -> str | None:
        job, known = seen.job, self.jobs.get(seen.job.ref)
        if seen.version < self._job_versions.get(job.ref, 0):
            return None
        if known is not None and known.uid == job.uid:
            # whoever takes its owner away doesn't make it somebody else's
            job = replace(
                job,
                was_started=job.was_started or known.was_started,
                was_ready=job.was_ready or known.was_ready,
                owner_uid=job.owner_uid or known.owner_uid,
                recorded_at=job.recorded_at or known.recorded_at,
            )
        elif known is not None and job.is_gone:
            return None
        if job.is_gone and not self._is_awaited(job):
            self._forget_gone(job)
        else:
            if known is not None and known.schedule_uid != job.schedule_uid:
                self._unlist_job(known)
            self.jobs[job.ref], self._job_versions[job.ref] = job, seen.version
            self._jobs_of.setdefault(job.schedule_uid, set()).add(job.ref)
        if known == job:
            return None
        request = self.requests.of_job(job)
        if request is None:
            return job.schedule_uid
        self.follow_request(request.ref)
        return key_of(request)

    def _forget_gone(self, job: Job) -> None:
        """Drop a Job that is gone; what remains to be known of it is that it is (R14)."""
        self._drop_job(job.ref)
        for run in self._runs_of(job):
            run.is_job_gone = run.is_job_gone or run.record.status.job_uid == job.uid

    def _drop_job(self, ref: ObjectRef) -> None:
        if (known := self.jobs.pop(ref, None)) is not None:
            self._unlist_job(known)
        self._job_versions.pop(ref, None)

    def _unlist_job(self, job: Job) -> None:
        refs = self._jobs_of.get(job.schedule_uid, set())
        refs.discard(job.ref)
        if not refs:
            self._jobs_of.pop(job.schedule_uid, None)

    # what is kept of finished runs

    def schedules_with_jobs(self) -> list[str]:
        """Return the UIDs that Jobs name as their schedule's."""
        return list(self._jobs_of)

    def jobs_of(self, uid: str) -> list[Job]:
        """Return the Jobs that say they are of this schedule, those that are gone left out."""
        return [job for ref in self._jobs_of.get(uid, ()) if not (job := self.jobs[ref]).is_gone]

    def note_recorded(self, record: Record) -> bool:
        """Note on the Job of a run that its result is on record; tell whether there is one, and it is the run's own."""
        at, job = recorded_at(record), self.jobs.get(record.ref)
        if at is None or job is None or job.owner_uid != record.uid:
            return False
        self.jobs[record.ref] = replace(job, recorded_at=at)
        return True

    def forget_job(self, ref: ObjectRef, uid: str) -> None:
        """Forget a Job that was removed by us."""
        if (known := self.jobs.get(ref)) is not None and known.uid == uid:
            self._drop_job(ref)

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

    def count_places(self, uid: str, *, answered_before: float) -> None:
        """Count the places of a schedule after a write; one of an admission that may still arrive, or has, stays taken.

        Whether it has arrived shows only when the log is read again.

        Args:
            uid: of the schedule.
            answered_before: monotonic second; what was given up before it can't arrive any more.
        """
        self._count_runs(uid)
        log = self.log(uid)
        if log.is_read and not _is_recent(log.append_given_up_at, answered_before):
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
        self.requests.keep_open(memory.record, is_open=is_own and is_ending(self._run(memory, 0.0)))

    def remove_request(self, ref: ObjectRef, uid: str | None = None) -> Record | None:
        """Forget and return a request that is gone."""
        gone = self.requests.remove(ref, uid)
        self._drop_unawaited(ref)
        return gone

    def _take_note(self, record: Record) -> None:
        self.note_recorded(record)
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

    def forget_log(self, uid: str) -> None:
        """Forget the log of a schedule that is gone and whose runs have all ended."""
        self.logs.pop(uid, None)

    def snapshot(self, uid: str, *, writer: Writer, since_acquired: timedelta, answered_before: float) -> Snapshot:
        """Return everything known of one schedule.

        Args:
            uid: of the schedule, which may be gone.
            writer: who decides.
            since_acquired: time since its epoch was acquired.
            answered_before: monotonic second; what was given up before it can't arrive any more.
        """
        schedule, log = self.schedules.get(uid), self.log(uid)
        definition = self.parent_of(schedule) if schedule else None
        held = log.held or (schedule.status.candidates if schedule and schedule.status else ())
        self.count_places(uid, answered_before=answered_before)
        return Snapshot(
            uid=uid,
            schedule=schedule,
            definition=definition,
            is_log_read=log.is_read,
            head=log.head,
            runs=tuple(self._run(run, answered_before) for _, run in sorted(log.runs.items())),
            held=held,
            contradiction=log.contradiction,
            writer=writer,
            since_acquired=since_acquired,
            last_good_manual_at=self.requests.requested(uid).last_good_manual_time,
            capacity=self.places.free(uid, definition.uid if definition else None),
            template_refusal=self._template_refusal(schedule, definition) if schedule else None,
            requested=self.requests.requested(uid),
            blocked_by=log.blocked_by,
            waits_for=self.jobs.get(log.waits_for) if log.waits_for else None,
            before_edit=log.before_edit,
            not_before=self.not_before,
        )

    def _template_refusal(self, schedule: Schedule, definition: Definition | None) -> str | None:
        template = template_of(schedule, definition) if self.template_refusals else None
        return None if template is None else self.template_refusals.get((schedule.ref.namespace, template.hash))

    def queue(self, key: str, *, writer: Writer, since_acquired: timedelta, answered_before: float) -> Queue:
        """Return the unfinished requests of a key (see `follow_request`), and everything known of the schedule they name."""
        namespace, _, name = key.partition("/")
        ref = ObjectRef(namespace=namespace, name=name)
        uid = self.uid_named(ref)
        runs = tuple(self._run(memory, answered_before) for memory in self.requests.unfinished(key))
        if uid is None:
            snapshot = replace(_without_schedule(writer, since_acquired), not_before=self.not_before)
        else:
            snapshot = self.snapshot(uid, writer=writer, since_acquired=since_acquired, answered_before=answered_before)
        is_anothers = uid is not None and self.is_anothers(uid, writer.lease)
        return Queue(ref=ref, snapshot=snapshot, runs=runs, is_anothers=is_anothers)

    def uid_named(self, ref: ObjectRef) -> str | None:
        """Return the UID of the schedule that has a name now."""
        return self._named.get(ref)

    def uids_in(self, namespace: str) -> list[str]:
        """Return the UIDs of the schedules of a namespace."""
        return [uid for ref, uid in self._named.items() if ref.namespace == namespace]

    def key_of_schedule(self, uid: str) -> str | None:
        """Return the key of a schedule's requests, where it has unfinished ones."""
        schedule = self.schedules.get(uid)
        key = str(schedule.ref) if schedule else ""
        return key if self.requests.has_unfinished(key) else None

    def _run(self, memory: RunMemory, answered_before: float) -> Run:
        return Run(
            record=memory.record,
            job=self.jobs.get(memory.record.ref),
            cancel_request=self._cancel_request(memory.record),
            refused=memory.refused,
            last_error=memory.last_error,
            retry_at=memory.retry_at,
            is_create_unanswered=_is_recent(memory.create_given_up_at, answered_before),
            is_outcome_unanswered=_is_recent(memory.outcome_given_up_at, answered_before),
            is_job_gone=memory.is_job_gone,
            pods_read_at=memory.pods_read_at,
            stuck_on=memory.stuck_on,
        )

    def _cancel_request(self, record: Record) -> str | None:
        """Return what is asked: requests are watched whole, of the log's records only their annotations (R31)."""
        return record.cancel_request if is_request(record) else self.cancel_requests.get(record.uid)

    def _unlink(self, schedule: Schedule) -> None:
        if (parent := _parent(schedule)) is None or (children := self._children.get(parent)) is None:
            return
        children.discard(schedule.uid)
        if not children:
            del self._children[parent]


def _parent(schedule: Schedule) -> ObjectRef | None:
    if schedule.spec is None or schedule.spec.workflow_ref is None:
        return None
    return replace(schedule.ref, name=schedule.spec.workflow_ref.name)


def _is_switched_off(before: Definition | None, now: Definition) -> bool:
    """Tell whether the switch went from true to false; a spec that can't be read says nothing of it."""
    if before is None or before.uid != now.uid or now.problem is not None:
        return False
    return before.is_enabled and not now.is_enabled


def _heeded(schedule: Schedule) -> tuple[object, ...]:
    """Return what of a schedule is worth a look; its annotations change no generation, and a status by others is mended."""
    writer = schedule.status.writer if schedule.status else None
    return schedule.generation, schedule.is_deleting, schedule.unblock, writer


def _without_schedule(writer: Writer, since_acquired: timedelta) -> Snapshot:
    return Snapshot(
        uid="",
        schedule=None,
        definition=None,
        is_log_read=False,
        head=None,
        runs=(),
        held=(),
        contradiction=None,
        writer=writer,
        since_acquired=since_acquired,
    )


def _is_recent(given_up_at: float | None, answered_before: float) -> bool:
    return given_up_at is not None and given_up_at >= answered_before


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
