"""What this process knows: schedules and definitions as people wrote them, Jobs as they stand, the logs it has read.

Fed by watches and by the answers to our own writes; read as a Snapshot. Only newer objects replace what is here, and a
takeover replaces everything (P9). No requests and no decisions may live here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import RecentOccurrence
from workflow_schedules.cluster import wire
from workflow_schedules.core.model import Run, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from workflow_schedules.core.model import Definition, Job, ObjectRef, Record, Schedule, Writer

_RECENT = 10


@dataclass(slots=True)
class RunMemory:
    """An admitted record and what this process lived through with it.

    Attributes:
        create_given_up_at: monotonic second in which a Job create was last left without an answer.
        outcome_given_up_at: monotonic second in which a status write was last left without an answer.
    """

    record: Record
    refused: str | None = None
    last_error: str | None = None
    attempts: int = 0
    retry_at: datetime | None = None
    create_given_up_at: float | None = None
    outcome_given_up_at: float | None = None


@dataclass(slots=True)
class ScheduleLog:
    """The log of one schedule as read in this epoch.

    Attributes:
        is_read: head and open runs were read and nothing since then says otherwise.
        recent: newest decisions first, Baselines left out.
    """

    is_read: bool = False
    head: Record | None = None
    runs: dict[int, RunMemory] = field(default_factory=dict)
    contradiction: str | None = None
    held: tuple[datetime, ...] = ()
    recent: list[RecentOccurrence] = field(default_factory=list)

    @property
    def unfinished(self) -> int:
        """Return how many runs have no final outcome yet."""
        return sum(1 for run in self.runs.values() if not _is_final(run.record))

    def add(self, record: Record) -> None:
        """Take in the newest record."""
        self.head = record
        if record.spec.decision is Decision.ADMITTED:
            self.runs[record.number] = RunMemory(record=record)
        still_open = frozenset(record.spec.open)
        for number in [n for n, run in self.runs.items() if n not in still_open and _is_final(run.record)]:
            del self.runs[number]  # folded into the record's totals
        self._note(record)

    def update(self, record: Record) -> None:
        """Take in a newer status of a run."""
        run = self.runs.get(record.number)
        if run is not None:
            run.record = record
        self._note(record)

    def _note(self, record: Record) -> None:
        if record.spec.decision in {None, Decision.BASELINE}:
            return
        line = RecentOccurrence(
            name=record.ref.name,
            time=record.spec.scheduled_time,
            decision=str(record.spec.decision),
            outcome=str(record.status.outcome) if record.status.outcome else None,
            reason=record.status.reason or record.spec.reason,
        )
        others = [other for other in self.recent if other.name != line.name]
        self.recent = sorted([line, *others], key=lambda other: other.name, reverse=True)[:_RECENT]


class Cache:
    """Everything known, by UID; see the module's docstring."""

    def __init__(self) -> None:
        self.schedules: dict[str, Schedule] = {}
        self.definitions: dict[ObjectRef, Definition] = {}
        self.jobs: dict[ObjectRef, Job] = {}
        self.logs: dict[str, ScheduleLog] = {}
        self._uids: dict[ObjectRef, str] = {}
        self._children: dict[ObjectRef, set[str]] = {}
        self._floors = {"schedules": 0, "definitions": 0}

    # what people write

    def put_schedule(self, body: Mapping[str, Any]) -> str | None:
        """Take in a schedule; return its UID when something changed that a decision may depend on."""
        uid, version = str(body["metadata"]["uid"]), wire.version_of(body)
        known = self.schedules.get(uid)
        if version <= self._floors["schedules"] if known is None else version <= int(known.resource_version or 0):
            return None
        schedule = wire.schedule_of(body)
        if known is not None:
            self._unlink(known)
        self.schedules[uid] = schedule
        self._uids[schedule.ref] = uid
        if (parent := _parent(schedule)) is not None:
            self._children.setdefault(parent, set()).add(uid)
        is_news = known is None or (known.generation, known.is_deleting) != (schedule.generation, schedule.is_deleting)
        return uid if is_news else None

    def remove_schedule(self, body: Mapping[str, Any]) -> str | None:
        """Forget a deleted schedule; its unfinished runs stay known under its UID (R20)."""
        uid = str(body["metadata"]["uid"])
        known = self.schedules.pop(uid, None)
        if known is None:
            return None
        self._unlink(known)
        if self._uids.get(known.ref) == uid:
            del self._uids[known.ref]
        return uid

    def put_definition(self, body: Mapping[str, Any]) -> set[str]:
        """Take in a definition; return the UIDs of the schedules it matters to."""
        ref, version = wire.ref_of(body), wire.version_of(body)
        known = self.definitions.get(ref)
        if version <= self._floors["definitions"] if known is None else version <= int(known.resource_version or 0):
            return set()
        definition = wire.definition_of(body)
        self.definitions[ref] = definition
        is_news = known is None or (known.uid, known.generation) != (definition.uid, definition.generation)
        return self.children_of(ref) if is_news else set()

    def remove_definition(self, body: Mapping[str, Any]) -> set[str]:
        """Forget a deleted definition; return the UIDs of the schedules that it held together."""
        ref = wire.ref_of(body)
        known = self.definitions.get(ref)
        if known is None or known.uid != body["metadata"]["uid"]:
            return set()
        del self.definitions[ref]
        return self.children_of(ref)

    def children_of(self, definition: ObjectRef) -> set[str]:
        """Return the UIDs of the schedules that name a definition."""
        return set(self._children.get(definition, ()))

    def uid_of(self, schedule: ObjectRef) -> str | None:
        """Return the UID of the schedule of that name."""
        return self._uids.get(schedule)

    def replace_all(
        self,
        schedules: tuple[Iterable[Mapping[str, Any]], str],
        definitions: tuple[Iterable[Mapping[str, Any]], str],
    ) -> None:
        """Drop everything about schedules, definitions and logs for a consistent re-read (P9); never merged."""
        self.schedules.clear()
        self.definitions.clear()
        self._uids.clear()
        self._children.clear()
        self.logs.clear()
        self._floors = {"schedules": 0, "definitions": 0}
        for body in definitions[0]:
            self.put_definition(body)
        for body in schedules[0]:
            self.put_schedule(body)
        # events older than the re-read may still come in: what it didn't list is gone
        self._floors = {"schedules": _number(schedules[1]), "definitions": _number(definitions[1])}

    # what machines write

    def put_job(self, body: Mapping[str, Any]) -> str | None:
        """Take in a Job; return the schedule's UID when something changed that an outcome may depend on."""
        job = wire.job_of(body)
        known = self.jobs.get(job.ref)
        if known is not None and known.uid == job.uid:
            if known.is_gone:
                return None
            job = replace(job, was_started=job.was_started or known.was_started)
        self.jobs[job.ref] = job
        return None if known == job else job.schedule_uid

    def remove_job(self, body: Mapping[str, Any]) -> str | None:
        """Note that a Job is gone; its last state is kept while its run is unfinished (R26)."""
        job = wire.job_of(body, is_gone=True)
        known = self.jobs.get(job.ref)
        if known is not None and known.uid != job.uid:
            return None
        if self._run_of(job) is None:
            self.jobs.pop(job.ref, None)
        else:
            self.jobs[job.ref] = replace(job, was_started=job.was_started or bool(known and known.was_started))
        return job.schedule_uid

    def replace_jobs(self, jobs: Iterable[Job]) -> set[str]:
        """Take in a whole list of Jobs; return the UIDs of the schedules for which something changed."""
        listed = {job.ref: job for job in jobs}
        changed = {job.schedule_uid for ref, job in listed.items() if self.jobs.get(ref) != job}
        for ref, known in list(self.jobs.items()):
            if ref not in listed:
                changed.add(known.schedule_uid)
                if self._run_of(known) is None:
                    del self.jobs[ref]
                else:
                    listed[ref] = replace(known, is_gone=True)
        self.jobs = listed
        return changed

    def _run_of(self, job: Job) -> RunMemory | None:
        log = self.logs.get(job.schedule_uid)
        runs = log.runs.values() if log else ()
        return next((run for run in runs if run.record.uid == job.owner_uid and not _is_final(run.record)), None)

    # what decisions are made on

    def log(self, uid: str) -> ScheduleLog:
        """Return the log of a schedule, unread at first."""
        return self.logs.setdefault(uid, ScheduleLog())

    def snapshot(self, uid: str, *, writer: Writer, since_acquired: timedelta, answered_before: float) -> Snapshot:
        """Return everything known of one schedule.

        Args:
            uid: of the schedule, which may be gone.
            writer: who decides.
            since_acquired: time since its epoch was acquired.
            answered_before: monotonic second; what was given up before it can't arrive any more.
        """
        schedule, log = self.schedules.get(uid), self.log(uid)
        parent = _parent(schedule) if schedule else None
        held = log.held or (schedule.status.candidates if schedule and schedule.status else ())
        return Snapshot(
            uid=uid,
            schedule=schedule,
            definition=self.definitions.get(parent) if parent else None,
            is_log_read=log.is_read,
            head=log.head,
            runs=tuple(self._run(run, answered_before) for _, run in sorted(log.runs.items())),
            held=held,
            contradiction=log.contradiction,
            writer=writer,
            since_acquired=since_acquired,
        )

    def _run(self, memory: RunMemory, answered_before: float) -> Run:
        return Run(
            record=memory.record,
            job=self.jobs.get(memory.record.ref),
            refused=memory.refused,
            last_error=memory.last_error,
            retry_at=memory.retry_at,
            is_create_unanswered=_is_recent(memory.create_given_up_at, answered_before),
            is_outcome_unanswered=_is_recent(memory.outcome_given_up_at, answered_before),
        )

    def _unlink(self, schedule: Schedule) -> None:
        if (parent := _parent(schedule)) is not None:
            self._children.get(parent, set()).discard(schedule.uid)


def _parent(schedule: Schedule) -> ObjectRef | None:
    if schedule.spec is None or schedule.spec.workflow_ref is None:
        return None
    return replace(schedule.ref, name=schedule.spec.workflow_ref.name)


def _is_final(record: Record) -> bool:
    return record.status.outcome is not None and record.status.outcome.is_final


def _is_recent(given_up_at: float | None, answered_before: float) -> bool:
    return given_up_at is not None and given_up_at >= answered_before


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
