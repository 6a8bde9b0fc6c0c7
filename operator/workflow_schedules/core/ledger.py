"""What a cluster would hold of one simulated schedule: its objects, its log, its runs. Read as a Snapshot.

Plain state without a fault or a delay; nothing is decided here. Records that repeat what was decided before are folded into
the head only when it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from workflow_schedules.api import names
from workflow_schedules.api.occurrence import Decision, Outcome, ScheduleOccurrenceStatus, Totals
from workflow_schedules.core.misfire import Verdict
from workflow_schedules.core.model import Job, JobPhase, ObjectRef, Record, Run, Snapshot, Writer
from workflow_schedules.core.totals import with_outcome, with_verdict

if TYPE_CHECKING:
    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec
    from workflow_schedules.api.schedule import WorkflowScheduleStatus
    from workflow_schedules.core.model import Definition, Schedule

_WRITER = Writer(epoch=1, identity="simulation", lease="simulation/simulation")
_LONG_HELD = timedelta(days=1)  # the Lease: no request of an earlier holder can still be on its way


@dataclass(slots=True, kw_only=True)
class Life:
    """One run, from its record on.

    Attributes:
        spec: of its record, or of one that says the same about another instant.
        made_at: when its Job was made; it starts with that, or never, where it is born suspended.
        status: as recorded; None is what `outcome` and the times say.
        is_job_gone: its Job was deleted.
    """

    number: int
    instant: datetime
    spec: ScheduleOccurrenceSpec
    admitted_at: datetime
    made_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    outcome: Outcome | None = None
    status: ScheduleOccurrenceStatus | None = None
    is_job_gone: bool = False

    @property
    def is_finished(self) -> bool:
        """Tell whether its final outcome is on record."""
        return self.outcome is not None and self.outcome.is_final


class Ledger:
    """The objects of one schedule, as stored."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = replace(schedule, generation=0, status=None)
        self._before_edit: Schedule | None = None
        self.definition: Definition | None = None
        self._definitions: dict[str, Definition] = {}
        self.held: tuple[datetime, ...] = ()
        self._head: Record | None = None
        self._number = 0
        self._lives: dict[int, Life] = {}
        self._unstarted: set[int] = set()
        self._finished: list[Life] = []  # since the newest record
        self._unfolded: list[Verdict | Life] = []
        self._newest: tuple[ScheduleOccurrenceSpec, Verdict, datetime] | None = None

    @property
    def open_runs(self) -> int:
        """Return how many runs are unfinished."""
        return len(self._lives) - len(self._finished)

    @property
    def is_starting(self) -> bool:
        """Tell whether a run has a record and no Job yet."""
        return bool(self._unstarted)

    @property
    def consumed(self) -> datetime | None:
        """Return the watermark."""
        if self._newest is not None:
            return self._newest[1].last
        return self._head.spec.consumed_through_time if self._head else None

    def write(self, schedule: Schedule, definition: Definition | None, *, is_seen: bool = True) -> None:
        """Store what people wrote; what changes nothing is no new generation.

        Args:
            schedule: as written.
            definition: as written with it or before.
            is_seen: an operator ran and knows what was replaced (as cluster/memory keeps it).
        """
        before = self.schedule
        self._before_edit = before if is_seen else None
        is_news = not before.generation or (schedule.spec, schedule.template) != (before.spec, before.template)
        self.schedule = replace(schedule, generation=before.generation + is_news, status=before.status)
        self.definition = None if definition is None else self._stored(definition)

    def _stored(self, definition: Definition) -> Definition:
        """Return a definition with the generation that it has, or gets by being other than before."""
        known = self._definitions.get(definition.uid)
        seen = known.generation if known else 0
        if known is None or replace(definition, generation=seen) != known:
            known = self._definitions[definition.uid] = replace(definition, generation=seen + 1)
        return known

    def keep_status(self, status: WorkflowScheduleStatus) -> None:
        """Store the schedule's status."""
        self.schedule = replace(self.schedule, status=status)

    def append(self, spec: ScheduleOccurrenceSpec, now: datetime) -> None:
        """Store the next record."""
        self._number = spec.sequence or 0
        self._head = self._record(spec, now, ScheduleOccurrenceStatus())
        self._forget_finished()
        if spec.decision is Decision.ADMITTED and spec.scheduled_time is not None:
            self._unstarted.add(self._number)
            self._lives[self._number] = Life(
                number=self._number, instant=spec.scheduled_time, spec=spec, admitted_at=now
            )

    def append_alike(self, spec: ScheduleOccurrenceSpec, verdict: Verdict, now: datetime) -> int:
        """Store a record that says of other instants what an earlier one said; return its number."""
        self._number += 1
        self._unfolded += self._finished
        self._unfolded.append(verdict)
        self._newest = (spec, verdict, now)
        self._forget_finished()
        if verdict.decision is Decision.ADMITTED:
            self._unstarted.add(self._number)
            self._lives[self._number] = Life(number=self._number, instant=verdict.last, spec=spec, admitted_at=now)
        return self._number

    def start(self, number: int, now: datetime, *, is_suspended: bool = False) -> None:
        """Store the Job of a run; one that is suspended does not start."""
        self._unstarted.discard(number)
        life = self._lives[number]
        life.made_at = now
        if not is_suspended:
            life.started_at, life.outcome = now, Outcome.RUNNING

    def standing(self, number: int) -> Outcome | None:
        """Return how an unfinished run stands; None before its start."""
        return self._lives[number].outcome

    def remove_job(self, number: int) -> None:
        """Delete the Job of a run: here it is gone at once."""
        self._lives[number].is_job_gone = True

    def end(self, number: int, at: datetime, outcome: Outcome) -> bool:
        """Store how a run stands; return False for one that has ended already."""
        life = self._lives.get(number)
        if life is None or life.is_finished:
            return False
        life.outcome, life.status = outcome, None
        if outcome.is_final:
            life.finished_at = at
            self._unstarted.discard(number)
            self._finished.append(life)
        return True

    def record_outcome(self, number: int, status: ScheduleOccurrenceStatus) -> None:
        """Store the status of a run as it was decided."""
        life = self._lives[number]
        if status.outcome is not None and status.outcome.is_final:
            self.end(number, status.completion_time or life.admitted_at, status.outcome)
        life.outcome, life.status = status.outcome, status

    def snapshot(self) -> Snapshot:
        """Return everything that a decision is made on."""
        self._fold()
        return Snapshot(
            uid=self.schedule.uid,
            schedule=self.schedule,
            definition=self.definition,
            is_log_read=True,
            head=self._head,
            runs=tuple(self._run(life) for life in self._lives.values()),
            held=self.held,
            contradiction=None,
            writer=_WRITER,
            since_acquired=_LONG_HELD,
            capacity=self._capacity(),
            before_edit=self._before_edit,
        )

    def _capacity(self) -> int | None:
        """Return how many more runs the definition allows, where this is its only schedule."""
        limit = self.definition.max_active_runs if self.definition else None
        return None if limit is None else max(0, limit - self.open_runs)

    def _forget_finished(self) -> None:
        for life in self._finished:
            del self._lives[life.number]
        self._finished.clear()

    def _fold(self) -> None:
        """Make the head say what the records since then said."""
        if self._newest is None or self._head is None:
            return
        totals = self._head.spec.totals or Totals()
        for entry in self._unfolded:
            totals = self._counted(totals, entry)
        spec, verdict, now = self._newest
        update = {"consumed_through_time": verdict.last, "open": tuple(self._lives), "totals": totals}
        self._head = self._record(_about(spec, self._number, verdict.last).model_copy(update=update), now)
        self._unfolded.clear()
        self._newest = None

    def _counted(self, totals: Totals, entry: Verdict | Life) -> Totals:
        if isinstance(entry, Verdict):
            return with_verdict(totals, entry)
        return with_outcome(totals, self._run(entry), revision=self._head.spec.revision if self._head else None)

    def _run(self, life: Life) -> Run:
        status = life.status or ScheduleOccurrenceStatus.model_construct(
            outcome=life.outcome, start_time=life.started_at, completion_time=life.finished_at
        )
        record = self._record(_about(life.spec, life.number, life.instant), life.admitted_at, status)
        return Run(record=record, job=self._job(life, record) if life.made_at else None)

    def _record(
        self, spec: ScheduleOccurrenceSpec, now: datetime, status: ScheduleOccurrenceStatus | None = None
    ) -> Record:
        schedule, number = self.schedule, spec.sequence or 0
        return Record(
            ref=ObjectRef(
                namespace=schedule.ref.namespace, name=names.record_name(schedule.ref.name, schedule.uid, number)
            ),
            uid=f"record-{number}",
            resource_version="1",
            created_at=now,
            spec=spec,
            status=status or ScheduleOccurrenceStatus(),
        )

    def _job(self, life: Life, record: Record) -> Job:
        was_started = life.started_at is not None
        is_suspended = not was_started or life.outcome is Outcome.INTERRUPTED
        return Job(
            ref=record.ref,
            uid=f"job-{life.number}",
            owner_uid=record.uid,
            schedule_uid=self.schedule.uid,
            phase=JobPhase.SUSPENDED if is_suspended else JobPhase.ACTIVE,
            created_at=life.made_at or life.admitted_at,
            started_at=life.started_at,
            finished_at=life.finished_at,
            was_started=was_started,
            was_ready=was_started,
            is_gone=life.is_job_gone,
        )


def _about(spec: ScheduleOccurrenceSpec, number: int, instant: datetime) -> ScheduleOccurrenceSpec:
    """Return a record's spec, as it is written about another instant."""
    if spec.sequence == number:
        return spec
    return spec.model_copy(update={"sequence": number, "scheduled_time": instant})
