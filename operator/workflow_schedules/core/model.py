"""What the core is given: a Snapshot, and what it is made of; what it answers is a Plan (see `plan`).

Plain frozen values; no rules of the contract and no I/O may live here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from workflow_schedules.api.definition import OnDisable

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from workflow_schedules.api.definition import WorkflowDefinitionStatus
    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec, ScheduleOccurrenceStatus
    from workflow_schedules.api.schedule import RecentOccurrence, WorkflowScheduleSpec, WorkflowScheduleStatus


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
        input_schema: canonical JSON text, or None; whether it is a schema is input_schema's business.
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
    input_schema: str | None = None
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
        unblock: the record that a person sets aside by annotation, or None (R31).
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
    unblock: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A ScheduleOccurrence: immutable spec, latest known status.

    Of a request, what its status says it was resolved to stands in `spec`, as it does in a record of the log.

    Attributes:
        cancel_request: what its cancel annotation said when it was read; None without one.
        owner_uids: of the objects that take it along when they are all deleted.
    """

    ref: ObjectRef
    uid: str
    resource_version: str
    created_at: datetime
    spec: ScheduleOccurrenceSpec
    status: ScheduleOccurrenceStatus
    cancel_request: str | None = None
    owner_uids: frozenset[str] = frozenset()

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
        was_ready: at some time a Pod of it was ready or had finished.
        suspension_changed_at: when it was last suspended (if it is) or resumed; None when it never was suspended.
        is_deleting: it waits for its Pods to go.
        deleting_since: when its deletion was asked for.
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
    was_ready: bool = False
    suspension_changed_at: datetime | None = None
    is_deleting: bool = False
    deleting_since: datetime | None = None
    is_gone: bool = False
    ttl: timedelta | None = None
    recorded_at: datetime | None = None

    @property
    def is_finished(self) -> bool:
        """Tell whether it ended by itself."""
        return self.phase in {JobPhase.COMPLETED, JobPhase.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An admitted record, with what is known of its Job.

    Attributes:
        job: the Job of that name, also when it is gone or not ours; None when none was ever seen.
        cancel_request: what the cancel annotation of its record says; None without one.
        refused: the API server's final refusal of the Job, or None.
        last_error: why the latest attempt to create or to delete the Job failed.
        retry_at: no new attempt before this.
        is_create_unanswered: an own Job create was given up less than R ago (P2, P12).
        is_outcome_unanswered: an own status write was given up less than R ago (P11).
        is_resolved_here: a request that this very holder of the Lease resolved; who wrote its status last may be another.
        is_job_gone: the API server said that the Job on record is no more.
        pods_read_at: when it was last looked at what keeps a Job from going; None before.
        stuck_on: what was found then.
    """

    record: Record
    job: Job | None = None
    cancel_request: str | None = None
    refused: str | None = None
    last_error: str | None = None
    retry_at: datetime | None = None
    is_create_unanswered: bool = False
    is_outcome_unanswered: bool = False
    is_resolved_here: bool = False
    is_job_gone: bool = False
    pods_read_at: datetime | None = None
    stuck_on: str | None = None

    @property
    def is_finished(self) -> bool:
        """Tell whether its final outcome is on record."""
        outcome = self.record.status.outcome
        return outcome is not None and outcome.is_final


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """What became of the runs of one schedule that people asked for (R27).

    Attributes:
        recent: those with an outcome, newest first.
    """

    last_successful_time: datetime | None = None
    last_failure_time: datetime | None = None
    last_good_manual_time: datetime | None = None
    recent: tuple[RecentOccurrence, ...] = ()


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


class RefusedBy(StrEnum):
    """What stands in the way of a new record, as far as the API server tells."""

    NAMESPACE_END = "NamespaceEnd"
    QUOTA = "Quota"
    OTHER = "Other"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRefusal:
    """The API server's refusal of the next record.

    Attributes:
        words: what the server said.
    """

    by: RefusedBy
    words: str


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
        last_good_manual_at: when a manual run last completed, as far as known; newer than the last failure, it ends a
            pause by `pauseAfterFailures`.
        capacity: how many more runs may start now by the limits beyond this schedule (R28); None is unlimited.
        template_refusal: what the API server said when it last refused a dry run of the template in force, or None.
        unknown_fields: paths in that template which nobody knows, by that dry run.
        told_since: while this leader had no answer, what the status says of the template since this generation stands.
        requested: runs that people asked for; they are in no log.
        requested_runs: those of them that are unfinished, or were ended and have a Job that is still there.
        blocked_by: name of the record that the contradiction is about; what `unblock` has to name.
        waits_for: the Job of what is to be set aside, which must end first; None when there is none.
        before_edit: the schedule before the edits that are not on record yet; None when this process didn't see it.
        not_before: the setting: until when a restore may have forgotten what was decided; None without one.
        record_refusal: how the API server last refused the next record, since the last one that it took; None when it didn't.
        is_append_unanswered: an own next record was given up less than R ago, and may still arrive (P2).
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
    last_good_manual_at: datetime | None = None
    capacity: int | None = None
    template_refusal: str | None = None
    unknown_fields: tuple[str, ...] = ()
    told_since: int | None = None
    requested: Requested = Requested()
    requested_runs: tuple[Run, ...] = ()
    blocked_by: str | None = None
    waits_for: Job | None = None
    before_edit: Schedule | None = None
    record_refusal: RecordRefusal | None = None
    not_before: datetime | None = None
    is_append_unanswered: bool = False
