"""What the core is given and what it answers: Snapshot in, Plan out.

Plain frozen values; no rules of the contract and no I/O may live here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from workflow_schedules.api.definition import OnDisable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from workflow_schedules.api.definition import WorkflowDefinitionStatus
    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec, ScheduleOccurrenceStatus
    from workflow_schedules.api.schedule import WorkflowScheduleSpec, WorkflowScheduleStatus


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectRef:
    """Namespace and name of an object."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A Job template as canonical JSON, and the hash that names its pinned copy.

    Source: contract R22.
    """

    hash: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What was seen of a WorkflowDefinition.

    Attributes:
        problem: why the spec can't be used, or None.
        input_schema: as written, or None.
        max_active_runs: over the scheduled runs of all its schedules; None is unlimited.
    """

    ref: ObjectRef
    uid: str
    generation: int
    resource_version: str
    is_enabled: bool
    template: Template | None
    problem: str | None
    status: WorkflowDefinitionStatus | None
    input_schema: Mapping[str, Any] | None = None
    max_active_runs: int | None = None
    on_disable: OnDisable = OnDisable.DISABLE_SCHEDULES


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What was seen of a WorkflowSchedule.

    Attributes:
        spec: without its template (see `template`); None when it doesn't parse (see `problem`).
        spec_hash: hash over the relevant fields that differ from their defaults (R10); empty when the spec doesn't parse.
        template: the inline Job template, or None with a `workflowRef`.
        problem: why the spec doesn't parse, naming field, value and what would do.
        status: as stored; None when never written or unreadable.
    """

    ref: ObjectRef
    uid: str
    generation: int
    resource_version: str
    created_at: datetime
    is_deleting: bool
    spec: WorkflowScheduleSpec | None
    spec_hash: str
    template: Template | None
    problem: str | None
    status: WorkflowScheduleStatus | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A ScheduleOccurrence of the log: immutable spec, latest known status."""

    ref: ObjectRef
    uid: str
    resource_version: str
    created_at: datetime
    spec: ScheduleOccurrenceSpec
    status: ScheduleOccurrenceStatus

    @property
    def number(self) -> int:
        """Return its sequence number."""
        return self.spec.sequence or 0


class JobPhase(StrEnum):
    """How a Job stands, as far as an outcome depends on it (R25)."""

    WAITING = "Waiting"
    ACTIVE = "Active"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What was seen of a run's Job.

    Attributes:
        owner_uid: UID of its controller owner; only the record of that UID may call it its own (P10).
        reason: the Failed condition's reason.
        was_started: it had started at some time, also when it is suspended now.
        is_gone: the object was deleted; everything else is its last state.
        ttl: how long it is kept after its end by its template; None leaves that to the history limits (R22).
        recorded_at: when its run's final outcome was recorded; None when that is not known.
    """

    ref: ObjectRef
    uid: str
    owner_uid: str
    schedule_uid: str
    phase: JobPhase
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    reason: str = ""
    message: str = ""
    was_started: bool = False
    is_gone: bool = False
    ttl: timedelta | None = None
    recorded_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An admitted record, with what is known of its Job.

    Attributes:
        job: the Job of that name, also when it is gone or not ours; None when none was ever seen.
        refused: the API server's final refusal of the Job, or None.
        last_error: why the latest attempt to create the Job failed.
        retry_at: no new attempt before this.
        is_create_unanswered: an own Job create was given up less than R ago (P2, P12).
        is_outcome_unanswered: an own status write was given up less than R ago (P11).
    """

    record: Record
    job: Job | None = None
    refused: str | None = None
    last_error: str | None = None
    retry_at: datetime | None = None
    is_create_unanswered: bool = False
    is_outcome_unanswered: bool = False

    @property
    def is_finished(self) -> bool:
        """Tell whether its final outcome is on record."""
        outcome = self.record.status.outcome
        return outcome is not None and outcome.is_final


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes: stamped on every record, Job and status (R33).

    Attributes:
        epoch: the Lease's `leaseTransitions`.
        identity: the Lease's `holderIdentity`.
        lease: namespace/name of the Lease.
    """

    epoch: int
    identity: str
    lease: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything one decision is made on.

    Attributes:
        uid: of the schedule, which may be gone.
        schedule: None when deleted.
        definition: the parent, when the schedule names one and it exists.
        is_log_read: the head record and every run it calls open have been read in this epoch (P3, P9).
        head: newest record; None when the log is empty.
        runs: the runs that the head calls open, and those still unfinished of older records, oldest first.
        held: instants that were retained when last decided, from memory or the stored status.
        contradiction: why the log can't be trusted, naming the record; the schedule is Blocked then (R31).
        since_acquired: time since this epoch was acquired.
    """

    uid: str
    schedule: Schedule | None
    definition: Definition | None
    is_log_read: bool
    head: Record | None
    runs: tuple[Run, ...]
    held: tuple[datetime, ...]
    contradiction: str | None
    writer: Writer
    since_acquired: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLog:
    """Read the log before anything is decided on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAgain:
    """Re-read schedule and definition: the log knows a newer generation than the cache (P5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Append the next record; its name is the compare-and-set."""

    spec: ScheduleOccurrenceSpec
    template: Template | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Write this epoch into the record's status before its Job is made by another holder than its author (P11)."""

    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateJob:
    """Create the Job of an admitted record."""

    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """Write the outcome of a run.

    Attributes:
        confirm_absence: first ask the API server itself, and only write when it has no Job of that name (P12).
    """

    run: Run
    status: ScheduleOccurrenceStatus
    confirm_absence: bool = False


Step = ReadLog | LookAgain | Append | Claim | CreateJob | WriteOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now: at most one write, since each is decided on the result of the one before.

    Attributes:
        step: None when there is nothing to do.
        next_wake_at: when to look again if nothing happens; None for never.
        candidates: instants retained but not yet admitted.
    """

    step: Step | None = None
    next_wake_at: datetime | None = None
    candidates: tuple[datetime, ...] = ()
