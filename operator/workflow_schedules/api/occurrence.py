"""ScheduleOccurrence: one decision, a record of a schedule's log. Shape and bounds only."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from workflow_schedules.api.common import MAX_MESSAGE_LENGTH, MAX_REASON_LENGTH, Condition, Model, UtcTime
from workflow_schedules.api.facets import Wire
from workflow_schedules.api.names import SEQUENCE_MAX
from workflow_schedules.api.schedule import Counts, State

MAX_INPUT_JSON_LENGTH = 65536
REQUEST_FIELDS = (
    "scheduleRef",
    "cause",
    "scheduledTime",
    "input",
)  # what people may write; of scheduleRef its name alone


class Cause(StrEnum):
    """Why the occurrence exists; only Scheduled ones are records of the log."""

    SCHEDULED = "Scheduled"
    MANUAL = "Manual"
    BACKFILL = "Backfill"


class Decision(StrEnum):
    """What was decided about the instant or the span."""

    ADMITTED = "Admitted"
    SKIPPED_OVERLAP = "SkippedOverlap"
    SKIPPED_MISFIRE = "SkippedMisfire"
    SKIPPED_EXCLUDED = "SkippedExcluded"
    SUPERSEDED = "Superseded"
    COALESCED = "Coalesced"
    PREFLIGHT_REJECTED = "PreflightRejected"
    BASELINE = "Baseline"


class Outcome(StrEnum):
    """How a run stands or ended."""

    RUNNING = "Running"
    INTERRUPTED = "Interrupted"
    COMPLETED = "Completed"
    FAILED = "Failed"
    EXHAUSTED = "Exhausted"
    CANCELLED = "Cancelled"

    @property
    def is_final(self) -> bool:
        """Tell whether the run has ended; a final outcome never changes (I7)."""
        return self in FINAL_OUTCOMES


FINAL_OUTCOMES = frozenset({Outcome.COMPLETED, Outcome.FAILED, Outcome.EXHAUSTED, Outcome.CANCELLED})


class ScheduleRef(Model):
    """The schedule, by name and identity."""

    name: Annotated[str, Wire("Name of the WorkflowSchedule.", min_length=1, max_length=253)]
    uid: Annotated[str | None, Wire("Its UID; only records have one.", min_length=1, max_length=64)] = None


class Span(Model):
    """A run of adjacent instants that share one decision."""

    first_time: Annotated[UtcTime, Wire("Oldest instant.")]
    last_time: Annotated[UtcTime, Wire("Newest instant.")]
    count: Annotated[int, Wire("How many.", minimum=1)]


class Totals(Counts):
    """Counts of the schedule up to and including this record."""

    consecutive_failures: Annotated[int, Wire("Failures since the last success.", minimum=0)] = 0
    counted_failures: Annotated[
        int,
        Wire("With pauseAfterFailures: failures in a row of this revision's runs, since the last good run.", minimum=0),
    ] = 0
    last_schedule_time: Annotated[UtcTime | None, Wire("Newest admitted instant.")] = None
    last_successful_time: Annotated[UtcTime | None, Wire("When a run last completed.")] = None
    last_failure_time: Annotated[UtcTime | None, Wire("When a run last failed.")] = None


class ScheduleOccurrenceSpec(Model):
    """The whole decision, immutable: everything that the next decision needs to know."""

    schedule_ref: Annotated[ScheduleRef, Wire("The schedule.")]
    sequence: Annotated[int | None, Wire("Number in the log.", minimum=0, maximum=SEQUENCE_MAX)] = None
    format: Annotated[int, Wire("Version of the record's meaning.", minimum=1, maximum=1000)] = 1
    previous_uid: Annotated[str | None, Wire("UID of the record before.", max_length=64)] = None
    cause: Annotated[Cause, Wire("Scheduled (a record of the log), Manual or Backfill (requests).")]
    scheduled_time: Annotated[
        UtcTime | None,
        Wire(
            "Nominal instant; of a Backfill one of the schedule's past ones, dates of excludeDates included: who names "
            "one wants it. One that is named twice, or ran already, runs again: each request is a run of its own."
        ),
    ] = None
    input: Annotated[
        dict[str, Any] | None,
        Wire(
            "Requests only: input in place of the schedule's, a JSON object of at most 32 KiB; keys of inputFrom are filled "
            "in all the same. Unset or null is the schedule's input, {} is none. One that the definition's inputSchema "
            "does not take ends the request: Failed, InputRejected."
        ),
    ] = None
    decision: Annotated[Decision | None, Wire("What was decided.")] = None
    reason: Annotated[str | None, Wire("Why, CamelCase.", max_length=MAX_REASON_LENGTH)] = None
    message: Annotated[str | None, Wire("Why, for people.", max_length=MAX_MESSAGE_LENGTH)] = None
    span: Annotated[Span | None, Wire("The instants, where it is more than one.")] = None
    revision: Annotated[int | None, Wire("Revision of the schedule.", minimum=0)] = None
    spec_hash: Annotated[str | None, Wire("Hash of the schedule's relevant fields.", max_length=128)] = None
    generation: Annotated[int | None, Wire("Generation of the schedule.", minimum=0)] = None
    definition_uid: Annotated[str | None, Wire("UID of the definition.", max_length=64)] = None
    definition_generation: Annotated[int | None, Wire("Generation of the definition.", minimum=0)] = None
    state: Annotated[State | None, Wire("State of the schedule as the log knows it.")] = None
    template_hash: Annotated[str | None, Wire("Name of the pinned template.", max_length=253)] = None
    input_json: Annotated[str | None, Wire("Resolved input, JSON.", max_length=MAX_INPUT_JSON_LENGTH)] = None
    active_deadline_seconds: Annotated[
        int | None, Wire("Budget of the run, as the schedule had it; its template may have a smaller one.", minimum=1)
    ] = None
    start_timeout_seconds: Annotated[
        int | None, Wire("startTimeoutSeconds of the run, as the schedule had it.", minimum=1)
    ] = None
    consumed_through_time: Annotated[UtcTime | None, Wire("Watermark after this record.")] = None
    open: Annotated[tuple[int, ...], Wire("Numbers of the runs unfinished when this was decided.", max_items=128)] = ()
    waiting: Annotated[tuple[UtcTime, ...], Wire("Instants that still wait.", max_items=100)] = ()
    replaces: Annotated[int | None, Wire("Number of the run that ends for this one.", minimum=0)] = None
    totals: Annotated[Totals | None, Wire("Counts up to and including this record.")] = None
    fencing_epoch: Annotated[int | None, Wire("Epoch of the writer.", minimum=0)] = None
    writer: Annotated[str | None, Wire("Lease holder that wrote this.", max_length=253)] = None
    lease: Annotated[str | None, Wire("namespace/name of its Lease.", max_length=320)] = None


class Transition(Model):
    """One change of the outcome."""

    outcome: Annotated[Outcome, Wire("New outcome.")]
    time: Annotated[UtcTime, Wire("When.")]
    reason: Annotated[str | None, Wire("Why.", max_length=MAX_REASON_LENGTH)] = None


class ScheduleOccurrenceStatus(Model):
    """What became of the run. Only the operator writes it; a final outcome never changes."""

    outcome: Annotated[Outcome | None, Wire("How the run stands or ended.")] = None
    reason: Annotated[str | None, Wire("Why, CamelCase.", max_length=MAX_REASON_LENGTH)] = None
    message: Annotated[str | None, Wire("Why, for people.", max_length=MAX_MESSAGE_LENGTH)] = None
    job_uid: Annotated[str | None, Wire("UID of the Job.", max_length=64)] = None
    start_time: Annotated[UtcTime | None, Wire("When the Job started.")] = None
    completion_time: Annotated[UtcTime | None, Wire("When the run ended.")] = None
    start_lateness_seconds: Annotated[int | None, Wire("From the nominal instant to the start.")] = None
    duration: Annotated[str | None, Wire("From start to end, such as 1m3s.", max_length=32)] = None
    transitions: Annotated[tuple[Transition, ...], Wire("Changes of the outcome, oldest first.", max_items=20)] = ()
    conditions: Annotated[tuple[Condition, ...], Wire("Conditions.", max_items=16, map_key="type")] = ()
    fencing_epoch: Annotated[int | None, Wire("Epoch of the writer.", minimum=0)] = None
    writer: Annotated[str | None, Wire("Lease holder that wrote this.", max_length=253)] = None
    schedule_uid: Annotated[
        str | None, Wire("Requests only: UID of the schedule that it was resolved with.", max_length=64)
    ] = None
    revision: Annotated[int | None, Wire("Requests only: revision of the schedule.", minimum=0)] = None
    template_hash: Annotated[str | None, Wire("Requests only: name of the pinned template.", max_length=253)] = None
    input_json: Annotated[
        str | None, Wire("Requests only: resolved input, JSON.", max_length=MAX_INPUT_JSON_LENGTH)
    ] = None
    lease: Annotated[
        str | None, Wire("Requests only: namespace/name of the Lease that it was resolved under.", max_length=320)
    ] = None
    active_deadline_seconds: Annotated[
        int | None, Wire("Requests only: budget of the run, as the schedule had it.", minimum=1)
    ] = None
    start_timeout_seconds: Annotated[
        int | None, Wire("Requests only: startTimeoutSeconds of the run, as the schedule had it.", minimum=1)
    ] = None
