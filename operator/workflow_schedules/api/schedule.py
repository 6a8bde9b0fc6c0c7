"""WorkflowSchedule: when to run. Shape and bounds only; what the fields do is core's business."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar

from workflow_schedules.api.common import MAX_REASON_LENGTH, Condition, Model, UtcTime
from workflow_schedules.api.facets import Rule, Wire

_RUN_ONCE_PATTERN = (
    "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    "([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)


_FIVE_FIELDS = Rule(
    rule=r"self.matches('^[ \t]*[^ \t]+([ \t]+[^ \t]+){4}[ \t]*$')",
    message="exactly five fields are needed: minute hour day-of-month month day-of-week, "
    "such as '*/15 * * * *'; seconds, years, @macros and TZ= are not supported (use timeZone)",
    message_expression="'\"' + self + '\" has not exactly five fields: write minute hour day-of-month "
    'month day-of-week, such as "*/15 * * * *"; seconds, years, @macros and TZ= are not supported '
    "(use timeZone)'",
)
_DATE_RULE = Rule(
    rule="self.matches('^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$')",
    message="want a date such as 2026-12-25",
    message_expression="'\"' + self + '\" is no date: write it as 2026-12-25'",
)


class ConcurrencyPolicy(StrEnum):
    """What an unfinished run means for the next one."""

    FORBID = "Forbid"
    ALLOW = "Allow"
    REPLACE = "Replace"


class MisfirePolicy(StrEnum):
    """What happens to an instant that can't start now."""

    SKIP = "Skip"
    LATEST = "Latest"
    ALL = "All"


class DeletionPolicy(StrEnum):
    """What happens to runs and records when their schedule is deleted."""

    RETAIN = "Retain"
    DELETE = "Delete"


class OccurrenceField(StrEnum):
    """What of an occurrence an input key can be bound to."""

    SCHEDULED_TIME = "scheduledTime"
    NAME = "name"
    SCHEDULE_NAME = "scheduleName"
    REVISION = "revision"
    CAUSE = "cause"
    LAST_SUCCESSFUL_TIME = "lastSuccessfulTime"


class SkippedTimePolicy(StrEnum):
    """What happens to a wall-clock time that a clock change skips."""

    NEXT_VALID = "NextValid"
    SKIP = "Skip"


class RepeatedTimePolicy(StrEnum):
    """What happens to a wall-clock time that a clock change repeats."""

    BOTH = "Both"
    FIRST = "First"


class State(StrEnum):
    """What a schedule is doing: the first of Blocked, Complete, Disabled, Held, Paused, Active that applies."""

    ACTIVE = "Active"
    PAUSED = "Paused"
    HELD = "Held"
    DISABLED = "Disabled"
    COMPLETE = "Complete"
    BLOCKED = "Blocked"


class WorkflowRef(Model):
    """The parent definition, in the same namespace."""

    name: Annotated[str, Wire("Name of the WorkflowDefinition.", min_length=1, max_length=253)]


class Pause(Model):
    """The runtime hold of whoever is on call: present means paused."""

    reason: Annotated[str | None, Wire("Why, for people.", max_length=1024)] = None
    until_time: Annotated[
        UtcTime | None,
        Wire(
            "When it ends by itself: instants up to and including it are not run. Past: not paused. Without it, the pause "
            "ends when it is removed."
        ),
    ] = None


class InputBinding(Model):
    """One top-level input key that each occurrence fills in itself."""

    name: Annotated[str, Wire("Key of the input.", min_length=1, max_length=253)]
    occurrence_field: Annotated[OccurrenceField, Wire("What of the occurrence it is set to.")]


class WorkflowScheduleSpec(Model):
    """What the owner declares."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="has(self.workflowRef) != has(self.jobTemplate)",
            message="exactly one of workflowRef and jobTemplate is needed: workflowRef names a WorkflowDefinition, "
            "jobTemplate is an inline Job template as in CronJob",
            message_expression="(has(self.workflowRef) ? 'workflowRef and jobTemplate are both set' : "
            "'neither workflowRef nor jobTemplate is set') + ': give exactly one; workflowRef names a "
            "WorkflowDefinition, jobTemplate is an inline Job template as in CronJob'",
        ),
        Rule(
            rule="[has(self.schedule), has(self.schedules), has(self.runOnceTime)].filter(given, given).size() == 1",
            message="exactly one of schedule, schedules and runOnceTime is needed: schedule is a five-field cron "
            "expression, schedules a list of them, runOnceTime one instant with an explicit offset",
            message_expression="(has(self.schedule) || has(self.schedules) || has(self.runOnceTime) ? 'several' : 'none') "
            "+ ' of schedule, schedules and runOnceTime are set: give exactly one; schedule is a five-field cron "
            "expression, schedules a list of them, runOnceTime one instant with an explicit offset'",
        ),
        Rule(
            rule="!has(self.startTime) || !has(self.endTime) || self.endTime > self.startTime",
            message="endTime is not later than startTime: write a later endTime, or leave one of them out",
            field_path=".endTime",
        ),
        Rule(
            rule="self.concurrencyPolicy != 'Allow' || has(self.maxActiveRuns)",
            message="maxActiveRuns is required with concurrencyPolicy Allow: give 1 to 100",
            field_path=".maxActiveRuns",
            reason="FieldValueRequired",
        ),
        Rule(
            rule="self.concurrencyPolicy == 'Allow' || !has(self.maxActiveRuns)",
            message="maxActiveRuns is only for concurrencyPolicy Allow: remove it, or set concurrencyPolicy: Allow",
            message_expression="'only for concurrencyPolicy Allow, this is ' + self.concurrencyPolicy + "
            "': remove maxActiveRuns, or set concurrencyPolicy: Allow'",
            field_path=".maxActiveRuns",
            reason="FieldValueForbidden",
        ),
    )

    workflow_ref: Annotated[
        WorkflowRef | None, Wire("The WorkflowDefinition that says what to run; or give jobTemplate.")
    ] = None
    job_template: Annotated[
        dict[str, Any] | None, Wire("What to run, exactly as in CronJob; or give workflowRef. Not checked here.")
    ] = None
    schedule: Annotated[
        str | None,
        Wire(
            "Cron expression of five fields: minute, hour, day of month, month, day of week. In timeZone.",
            min_length=9,
            max_length=120,
            rules=(_FIVE_FIELDS,),
        ),
    ] = None
    schedules: Annotated[
        tuple[Annotated[str, Wire(min_length=9, max_length=120, rules=(_FIVE_FIELDS,))], ...],
        Wire(
            "Several cron expressions: their union, equal instants fire once; or give schedule.",
            max_items=10,
            rules=(
                Rule(
                    rule="size(self) > 0",
                    message="schedules is empty: write one to ten cron expressions, or leave it out",
                ),
            ),
        ),
    ] = ()
    run_once_time: Annotated[
        str | None,
        Wire(
            "The one instant to run at, RFC 3339 with an explicit offset; or give schedule.",
            min_length=1,
            max_length=64,
            rules=(
                Rule(
                    rule=f"self.matches('{_RUN_ONCE_PATTERN}')",
                    message="want one instant as RFC 3339 with an explicit offset, such as 2026-08-27T18:00:00Z or "
                    "2026-08-28T02:00:00+08:00",
                    message_expression="'\"' + self + '\" is no instant with an explicit offset: write RFC 3339, such "
                    "as 2026-08-27T18:00:00Z or 2026-08-28T02:00:00+08:00'",
                ),
            ),
        ),
    ] = None
    time_zone: Annotated[
        str,
        Wire("IANA time zone that schedule is read in.", min_length=1, max_length=100, has_default=True),
    ] = "UTC"
    enabled: Annotated[
        bool, Wire("Whether the schedule admits runs. A schedule is born disabled.", has_default=True)
    ] = False
    pause: Annotated[Pause | None, Wire("Present: no run is admitted; runs in progress go on. A pause is no edit.")] = (
        None
    )
    concurrency_policy: Annotated[
        ConcurrencyPolicy,
        Wire(
            "Forbid: an unfinished run blocks the next. Allow: up to maxActiveRuns at once. Replace: the next ends it.",
            has_default=True,
        ),
    ] = ConcurrencyPolicy.FORBID
    max_active_runs: Annotated[
        int | None, Wire("Unfinished runs at once; required with Allow, refused without.", minimum=1, maximum=100)
    ] = None
    misfire_policy: Annotated[
        MisfirePolicy,
        Wire(
            "Skip: an instant that can't start now is skipped. Latest: the newest one waits. All: the newest "
            "maxCatchUpRuns wait and run oldest first (with Replace only the newest).",
            has_default=True,
        ),
    ] = MisfirePolicy.SKIP
    max_catch_up_runs: Annotated[
        int | None, Wire("With All: how many instants wait at most. Unset: 10.", minimum=1, maximum=100)
    ] = None
    starting_deadline_seconds: Annotated[
        int | None,
        Wire(
            "No start later than this after the instant. Unset: 60 under Skip, unbounded under Latest and All.",
            minimum=5,
        ),
    ] = None
    skipped_time_policy: Annotated[
        SkippedTimePolicy,
        Wire(
            "A wall-clock time that a clock change skips. NextValid: the first minute after the gap. Skip: not at all.",
            has_default=True,
        ),
    ] = SkippedTimePolicy.NEXT_VALID
    repeated_time_policy: Annotated[
        RepeatedTimePolicy,
        Wire(
            "A wall-clock time that a clock change repeats. Both: twice. First: the first time only.", has_default=True
        ),
    ] = RepeatedTimePolicy.BOTH
    max_jitter_seconds: Annotated[
        int | None,
        Wire(
            "Spreads starts: each is late by a stable part of this, below half the gap to the next instant.",
            minimum=0,
            maximum=86400,
        ),
    ] = None
    exclude_dates: Annotated[
        tuple[Annotated[str, Wire(min_length=10, max_length=10, rules=(_DATE_RULE,))], ...],
        Wire("Dates in timeZone whose instants are skipped, on record.", max_items=400),
    ] = ()
    start_time: Annotated[UtcTime | None, Wire("No instant before this is due.")] = None
    end_time: Annotated[UtcTime | None, Wire("No instant after this is due.")] = None
    input: Annotated[
        dict[str, Any] | None,
        Wire("Input of every run: a JSON object of at most 32 KiB, which the operator checks."),
    ] = None
    input_from: Annotated[
        tuple[InputBinding, ...], Wire("Input keys that each occurrence fills in itself.", max_items=32, map_key="name")
    ] = ()
    active_deadline_seconds: Annotated[
        int | None,
        Wire("Budget of one run; the smaller of this and the template's wins. Used up: Exhausted.", minimum=1),
    ] = None
    start_timeout_seconds: Annotated[
        int | None,
        Wire(
            "A run without a ready or finished Pod after this fails (StartTimeout). Suspended time does not count.",
            minimum=1,
        ),
    ] = None
    run_limit: Annotated[
        int | None,
        Wire(
            "After so many scheduled runs the schedule is complete. Counts from its creation, whatever became of the runs; "
            "edits don't begin anew, a higher limit reopens it from then on.",
            minimum=1,
        ),
    ] = None
    pause_after_failures: Annotated[
        int | None,
        Wire(
            "After so many failures of scheduled runs in a row nothing more is admitted until an edit of what runs or when, "
            "or a good manual run. Either begins the count anew.",
            minimum=1,
        ),
    ] = None
    successful_jobs_history_limit: Annotated[
        int, Wire("Completed Jobs kept.", minimum=0, maximum=1000, has_default=True)
    ] = 3
    failed_jobs_history_limit: Annotated[
        int, Wire("Jobs kept that ended otherwise.", minimum=0, maximum=1000, has_default=True)
    ] = 1
    occurrence_history_limit: Annotated[
        int, Wire("Finished records kept.", minimum=0, maximum=10000, has_default=True)
    ] = 100
    deletion_policy: Annotated[
        DeletionPolicy,
        Wire(
            "Retain keeps runs and records when the schedule is deleted. Delete lets them go with it, also those "
            "that people asked for. What is in force when a run is made counts for it.",
            has_default=True,
        ),
    ] = DeletionPolicy.RETAIN


class OccurrenceOutcome(Model):
    """Name and outcome of an occurrence."""

    name: Annotated[str, Wire("Name of the ScheduleOccurrence.", max_length=253)]
    outcome: Annotated[str, Wire("Its outcome, or its decision if it never ran.", max_length=MAX_REASON_LENGTH)] = ""


class RecentOccurrence(Model):
    """One line of the recent history."""

    name: Annotated[str, Wire("Name of the ScheduleOccurrence.", max_length=253)]
    time: Annotated[UtcTime | None, Wire("Nominal instant.")] = None
    decision: Annotated[str, Wire("What was decided.", max_length=MAX_REASON_LENGTH)] = ""
    outcome: Annotated[str | None, Wire("How the run ended or stands.", max_length=MAX_REASON_LENGTH)] = None
    reason: Annotated[str | None, Wire("Why.", max_length=MAX_REASON_LENGTH)] = None


class Counts(Model):
    """How often each thing happened since the schedule was created."""

    admitted: Annotated[int, Wire("Instants admitted.", minimum=0)] = 0
    completed: Annotated[int, Wire("Runs that completed.", minimum=0)] = 0
    failed: Annotated[int, Wire("Runs that ended otherwise.", minimum=0)] = 0
    skipped: Annotated[int, Wire("Instants skipped.", minimum=0)] = 0
    coalesced: Annotated[int, Wire("Instants covered by a later one.", minimum=0)] = 0
    superseded: Annotated[int, Wire("Instants given up by an edit, a pause, a hold or a limit.", minimum=0)] = 0


class WorkflowScheduleStatus(Model):
    """Projection of the log, written late and merged. Only the operator writes it."""

    observed_generation: Annotated[int | None, Wire("Newest generation acted on.", minimum=0)] = None
    revision: Annotated[int | None, Wire("Counts relevant edits, from 1.", minimum=0)] = None
    revision_time: Annotated[UtcTime | None, Wire("When the revision last changed.")] = None
    spec_hash: Annotated[str | None, Wire("Hash of the relevant fields.", max_length=128)] = None
    log_head: Annotated[
        int | None, Wire("Newest record number known when this was written; never goes back.", minimum=0)
    ] = None
    definition_uid: Annotated[str | None, Wire("UID of the definition that the newest record saw.", max_length=64)] = (
        None
    )
    definition_generation: Annotated[
        int | None, Wire("Generation of the definition that the newest record saw.", minimum=0)
    ] = None
    fencing_epoch: Annotated[int | None, Wire("Epoch of the writer.", minimum=0)] = None
    writer: Annotated[str | None, Wire("Lease holder that wrote this.", max_length=253)] = None
    lease: Annotated[str | None, Wire("namespace/name of its Lease.", max_length=320)] = None
    consumed_through_time: Annotated[
        UtcTime | None, Wire("Watermark: nothing at or before it is ever admitted; never goes back.")
    ] = None
    schedule_text: Annotated[str | None, Wire("The trigger, for people.", max_length=1024)] = None
    next_schedule_time: Annotated[UtcTime | None, Wire("Next instant.")] = None
    next_schedule_times: Annotated[tuple[UtcTime, ...], Wire("Next instants.", max_items=5)] = ()
    last_schedule_time: Annotated[UtcTime | None, Wire("Newest admitted instant.")] = None
    last_occurrence: Annotated[OccurrenceOutcome | None, Wire("Newest decision that wasn't a Baseline.")] = None
    last_successful_time: Annotated[UtcTime | None, Wire("When a run last completed.")] = None
    last_failure_time: Annotated[UtcTime | None, Wire("When a run last ended otherwise.")] = None
    consecutive_failures: Annotated[int | None, Wire("Failures since the last success.", minimum=0)] = None
    active: Annotated[
        tuple[Annotated[str, Wire(max_length=253)], ...], Wire("Names of unfinished runs, oldest first.", max_items=50)
    ] = ()
    active_count: Annotated[int, Wire("How many runs are unfinished.", minimum=0)] = 0
    candidates: Annotated[tuple[UtcTime, ...], Wire("Instants that wait to be admitted.", max_items=100)] = ()
    counts: Annotated[Counts | None, Wire("Totals.")] = None
    recent: Annotated[tuple[RecentOccurrence, ...], Wire("Newest decisions, newest first.", max_items=10)] = ()
    state: Annotated[State | None, Wire("What the schedule is doing.")] = None
    conditions: Annotated[
        tuple[Condition, ...],
        Wire("Accepted, Ready, Stalled, RunsHealthy, Paused, ParentEnabled, Complete.", max_items=16, map_key="type"),
    ] = ()
