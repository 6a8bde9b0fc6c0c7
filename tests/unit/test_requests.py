"""What is decided about runs that people ask for, and how they are summed up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from support.builders import (
    EARLIER_WRITER,
    TEMPLATE,
    UID,
    WRITER,
    a_definition,
    a_job,
    a_schedule,
    a_snapshot,
    a_status,
    at,
    of_definition,
)
from workflow_schedules.api.common import Condition, ConditionStatus
from workflow_schedules.api.occurrence import (
    Cause,
    Outcome,
    ScheduleOccurrenceSpec,
    ScheduleOccurrenceStatus,
    ScheduleRef,
)
from workflow_schedules.api.schedule import InputBinding, OccurrenceField, RecentOccurrence
from workflow_schedules.core.decide_requests import Queue, Refuse, RequestPlan, Resolve, decide_requests
from workflow_schedules.core.model import Job, JobPhase, ObjectRef, Record, Requested, Run, Snapshot
from workflow_schedules.core.requests import has_news, merge_recent, resolved_spec, summarise


def a_request(
    name: str = "now",
    backfill: str | None = None,
    *,
    asked: str = "10:00:00",
    status: ScheduleOccurrenceStatus | None = None,
    given: dict[str, object] | None = None,
    **known: object,
) -> Run:
    """Build a request; a time makes it a backfill."""
    spec = ScheduleOccurrenceSpec(
        schedule_ref=ScheduleRef(name="hourly"),
        cause=Cause.BACKFILL if backfill else Cause.MANUAL,
        scheduled_time=at(backfill) if backfill else None,
        input=given,
    )
    status = status or ScheduleOccurrenceStatus()
    record = Record(
        ref=ObjectRef(namespace="team", name=name),
        uid=f"uid-of-{name}",
        resource_version="7",
        created_at=at(asked),
        spec=resolved_spec(spec, status),
        status=status,
    )
    return Run(record=record, **known)


def resolved(writer: object = WRITER, at_time: str = "10:00:01", **fields: object) -> ScheduleOccurrenceStatus:
    """Build the status of a request that is resolved."""
    fields.setdefault("schedule_uid", UID)
    return ScheduleOccurrenceStatus(
        revision=1,
        template_hash=TEMPLATE.hash,
        fencing_epoch=writer.epoch,
        writer=writer.identity,
        conditions=(
            Condition(
                type="Resolved", status=ConditionStatus.TRUE, reason="Resolved", last_transition_time=at(at_time)
            ),
        ),
        **fields,
    )


def a_job_of(name: str, phase: JobPhase = JobPhase.ACTIVE, **seen: object) -> Job:
    return replace(a_job(phase, owner_uid=f"uid-of-{name}", **seen), ref=ObjectRef(namespace="team", name=name))


def told(plan: RequestPlan) -> str:
    step = plan.step
    if step is None:
        return "nothing"
    status = getattr(step, "status", None)
    why = f" {status.reason}" if status is not None and status.outcome else ""
    return f"{type(step).__name__} {step.run.record.ref.name}{why}"


@dataclass(frozen=True, slots=True)
class Case:
    """What is done at `now` about some requests, and when it is looked at again."""

    name: str
    runs: tuple[Run, ...]
    want: str
    now: str = "10:00:05"
    wake: str | None = None
    snapshot: Snapshot = field(default_factory=a_snapshot)


CHILD = a_schedule(**of_definition())
RESTORED = replace(a_snapshot(), not_before=at("10:00:03"))
TWO = a_schedule(concurrency_policy="Allow", max_active_runs=2)
BUSY = a_request("busy", "2025-12-01T08:00", status=resolved(), job=a_job_of("busy", JobPhase.WAITING, started=None))
ENDED = {
    "outcome": Outcome.CANCELLED,
    "reason": "CancelRequested",
    "job_uid": "job-2",
    "completion_time": at("10:00:03"),
}
CANCELLED = a_request(status=resolved(**ENDED), job=a_job_of("now"))
CANCELLED_BACK = a_request("gone", "2025-12-01T08:00", status=resolved(**ENDED), job=a_job_of("gone"))
CASES = [
    Case("R27 a request is resolved first", (a_request(),), "Resolve now"),
    Case("R27 then its Job", (a_request(status=resolved()),), "CreateJob now"),
    Case("P11 another holder claims it first", (a_request(status=resolved(EARLIER_WRITER)),), "Claim now"),
    Case("R27 then its outcome", (a_request(status=resolved(), job=a_job_of("now", JobPhase.COMPLETED)),),
         "WriteOutcome now JobComplete"),
    Case("P10 of another", (a_request(status=resolved(), job=replace(a_job_of("now"), owner_uid="other")),),
         "WriteOutcome now NameTaken"),
    Case("R35 to the last moment", (a_request(status=resolved()),), "CreateJob now", "10:10:00"),
    Case("R35 and no longer", (a_request(status=resolved()),), "WriteOutcome now NotStarted", "10:10:01"),
    Case("P12 a new holder waits", (a_request(status=resolved()),), "nothing", "10:11:00", "10:12:31",
         a_snapshot(since_acquired=timedelta(0))),
    Case("R27 not long after", (a_request(),), "Refuse now NotStarted", "10:10:01"),
    Case("R35 of a backfill: since it was resolved", (a_request(backfill="09:00", status=resolved(at_time="11:00")),),
         "CreateJob now", "11:10:00"),
    Case("R27 manual ones first", (a_request("back", "2026-01-01T03:00"), a_request()), "Resolve now"),
    Case("R27 backfills oldest instant first", (a_request("late", "09:00"), a_request("early", "08:00")), "Resolve early"),
    Case("R27 one at a time", (BUSY, a_request("back", "08:00")), "nothing", wake="10:15:01"),
    Case("R27 or two", (BUSY, a_request("back", "08:00")), "Resolve back", snapshot=a_snapshot(TWO)),
    Case("R27 a manual one does not wait for them", (BUSY, a_request()), "Resolve now"),
    Case("I9 one that fails is left alone", (a_request("a", retry_at=at("10:00:09")), a_request("b")), "Resolve b"),
    Case("I9 for a while", (a_request("a", retry_at=at("10:00:09")),), "nothing", wake="10:00:09"),
    Case("R27 no schedule", (a_request(),), "Refuse now ScheduleNotFound", snapshot=a_snapshot(None, head=None)),
    Case("R27 a schedule that goes", (a_request(),), "Refuse now ScheduleNotFound",
         snapshot=a_snapshot(a_schedule(is_deleting=True))),
    Case("R27 a refused spec", (a_request(),), "Refuse now ScheduleNotAccepted",
         snapshot=a_snapshot(a_schedule(schedule="no"))),
    Case("R27 no definition", (a_request(),), "Refuse now WorkflowNotFound", snapshot=a_snapshot(CHILD)),
    Case("R27 definition off", (a_request(),), "Refuse now WorkflowDisabled",
         snapshot=a_snapshot(CHILD, definition=a_definition(is_enabled=False))),
    Case("R27 definition on", (a_request(),), "Resolve now", snapshot=a_snapshot(CHILD, definition=a_definition())),
    Case("R27 disabled", (a_request(),), "Resolve now", snapshot=a_snapshot(a_schedule(enabled=False))),
    Case("R31 blocked by its log", (a_request(status=resolved()),), "CreateJob now", snapshot=a_snapshot(contradiction="x")),
    Case("R27 an instant", (a_request(backfill="09:00"),), "Resolve now"),
    Case("R27 none", (a_request(backfill="09:01"),), "Refuse now NotAnInstant"),
    Case("R27 none any more", (a_request(backfill="09:00"),), "Refuse now NotAnInstant",
         snapshot=a_snapshot(a_schedule(end_time=at("08:00")))),
    Case("R27 this very second", (a_request(backfill="10:00"),), "Resolve now", "10:00:00"),
    Case("R27 the next", (a_request(backfill="10:00"),), "Refuse now InstantInFuture", "09:59:59"),
    Case("R24 input too large", (a_request(given={"a": "é" * 16384}),), "Refuse now InputTooLarge"),
    Case("I1 asked for before a restore", (a_request(),), "Refuse now NotStarted", snapshot=RESTORED),
    Case("I1 after it", (a_request(asked="10:00:04"),), "Resolve now", snapshot=RESTORED),
    Case("I1 a backfill asked for before it", (a_request(backfill="09:00"),), "Refuse now NotStarted", snapshot=RESTORED),
    Case("I1 one after it, of an instant before it", (a_request(backfill="09:00", asked="10:00:04"),), "Resolve now",
         snapshot=RESTORED),
    Case("I1 resolved before it", (a_request(status=resolved(EARLIER_WRITER)),), "WriteOutcome now StartUnknown",
         snapshot=RESTORED),
    Case("R31 cancelled before it was resolved", (a_request(cancel_request="no"),), "WriteOutcome now CancelRequested"),
    Case("R31 though it could not be run", (a_request(cancel_request="no"),), "WriteOutcome now CancelRequested",
         snapshot=a_snapshot(None, head=None)),
    Case("R31 cancelled before it had a Job", (a_request(status=resolved(), cancel_request="no"),),
         "WriteOutcome now CancelRequested"),
    Case("R31 P12 of a new holder: another's Job may still come", (a_request(status=resolved(), cancel_request="no"),),
         "nothing", wake="10:01:36", snapshot=a_snapshot(since_acquired=timedelta(0))),
    Case("R31 cancelled while it runs", (a_request(status=resolved(), job=a_job_of("now"), cancel_request="no"),),
         "WriteOutcome now CancelRequested"),
    Case("R31 its Job has ended: that counts", (a_request(status=resolved(), job=a_job_of("now", JobPhase.COMPLETED),
         cancel_request="no"),), "WriteOutcome now JobComplete"),
    Case("R31 then its Job goes", (CANCELLED,), "DeleteJob now"),
    Case("R31 which may take a while", (replace(CANCELLED, retry_at=at("10:00:09")),), "nothing", wake="10:00:09"),
    Case("R31 once", (replace(CANCELLED, job=a_job_of("now", is_deleting=True)),), "nothing", wake="10:01:03"),
    Case("R31 P12 of a new holder", (a_request(status=resolved(EARLIER_WRITER, **ENDED), job=a_job_of("now")),), "nothing",
         wake="10:01:36", snapshot=a_snapshot(since_acquired=timedelta(0))),
    Case("R27 a cancelled backfill keeps its place", (CANCELLED_BACK, a_request("back", "08:00")), "DeleteJob gone"),
    Case("R27 until its Job is gone", (replace(CANCELLED_BACK, job=a_job_of("gone", is_deleting=True)),
         a_request("back", "08:00")), "nothing", wake="10:01:03"),
    Case("R27 then the next one runs", (replace(CANCELLED_BACK, is_job_gone=True), a_request("back", "08:00")),
         "Resolve back"),
    Case("P11 the schedule of that name is another", (a_request(status=resolved(schedule_uid="gone")),), "nothing",
         wake="10:10:01"),
    Case("P11 definition switched off since", (a_request(status=resolved()),), "nothing", wake="10:10:01",
         snapshot=a_snapshot(CHILD, definition=a_definition(is_enabled=False))),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_decide_requests(case: Case) -> None:
    queue = Queue(ref=ObjectRef(namespace="team", name="hourly"), snapshot=case.snapshot, runs=case.runs)
    plan = decide_requests(queue, now=at(case.now))
    assert (told(plan), plan.next_wake_at) == (case.want, at(case.wake) if case.wake else None)


@pytest.mark.parametrize(
    ("schedule_input", "given", "want"),
    [
        (None, None, None),
        ({"a": 1}, None, '{"a":1}'),
        ({"a": 1}, {}, "{}"),
        ({"a": 1, "b": 2}, {"b": [None]}, '{"b":[null]}'),
    ],
)
def test_what_a_request_is_resolved_to(schedule_input: object, given: object, want: str | None) -> None:
    """R27: its own input in place of the schedule's."""
    schedule = a_schedule(input=schedule_input)
    queue = Queue(
        ref=schedule.ref,
        snapshot=a_snapshot(schedule),
        runs=(a_request(given=given),),  # type: ignore[arg-type]
    )
    step = decide_requests(queue, now=at("10:00:05")).step
    assert isinstance(step, Resolve)
    status = step.status
    assert (status.schedule_uid, status.revision, status.template_hash) == (UID, 1, TEMPLATE.hash)
    assert status.input_json == want
    assert (status.fencing_epoch, status.writer, status.outcome) == (WRITER.epoch, WRITER.identity, None)


def binding(name: str, field: str) -> InputBinding:
    return InputBinding(name=name, occurrence_field=OccurrenceField(field))


EU = {"type": "object", "required": ["region"], "properties": {"region": {"enum": ["eu"]}, "why": {"enum": ["Manual"]}}}
SINCE = {"type": "object", "required": ["since"], "properties": {"since": {"type": "string"}}}
GIVEN = {"input": {"region": "eu"}}


@dataclass(frozen=True, slots=True)
class Judged:
    """A request of a schedule whose definition has a schema."""

    name: str
    want: str
    schedule: dict[str, object] = field(default_factory=lambda: dict(GIVEN))
    given: dict[str, object] | None = None
    schema: dict[str, object] = field(default_factory=lambda: dict(EU))
    backfill: str | None = None
    last_success: str | None = None


WHY = {"input_from": (binding("why", "cause"),)}
LAST = {"input_from": (binding("since", "lastSuccessfulTime"),)}
AT = {"input": {"region": "eu"}, "input_from": (binding("at", "scheduledTime"),)}
BAD_REGION = 'InputRejected input.region: write one of "eu" (inputSchema.properties.region.enum)'
NO_REGION = 'InputRejected input: has no "region"; write it (inputSchema.required)'
BAD_WHY = 'InputRejected input.why: write one of "Manual" (inputSchema.properties.why.enum)'
NO_TIME = "InputRejected input.since: write text (inputSchema.properties.since.type)"
JUDGED = [
    Judged("the schedule's own", '{"region":"eu"}'),
    Judged("its own input is judged in its place", BAD_REGION, given={"region": "us"}),
    Judged("a required key is missing: nothing comes from the schedule", NO_REGION, given={}),
    Judged("a good one", '{"region":"eu","x":[1]}', given={"region": "eu", "x": [1]}),
    Judged("bound to its cause", '{"region":"eu","why":"Manual"}', {**GIVEN, **WHY}),
    Judged("which a schema may refuse", BAD_WHY, {**GIVEN, **WHY}, backfill="09:00"),
    Judged(
        "bound keys are filled into its own input, too",
        '{"region":"eu","why":"Manual"}',
        {**GIVEN, **WHY},
        given={"region": "eu"},
    ),
    Judged(
        "the binding goes before what it gives",
        '{"region":"eu","why":"Manual"}',
        {**GIVEN, **WHY},
        given={"region": "eu", "why": "else"},
    ),
    Judged("the last success", '{"since":"2026-01-01T08:00:00Z"}', LAST, schema=SINCE, last_success="08:00"),
    Judged("before the first there is none", NO_TIME, LAST, schema=SINCE),
    Judged("a manual run has no scheduled time", '{"region":"eu","at":null}', AT),
    Judged("a backfill has", '{"region":"eu","at":"2026-01-01T09:00:00Z"}', AT, backfill="09:00"),
    Judged("no input and a schema that needs one", NO_REGION, {}),
]


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: case.name)
def test_the_input_of_a_request_against_the_schema(case: Judged) -> None:
    """R24 R27: judged as it really is, and a refusal is final and names the path."""
    schedule = a_schedule(**of_definition(**case.schedule))
    snapshot = replace(
        a_snapshot(schedule, definition=a_definition(input_schema=case.schema)),
        requested=Requested(last_successful_time=at(case.last_success) if case.last_success else None),
    )
    queue = Queue(ref=schedule.ref, snapshot=snapshot, runs=(a_request(backfill=case.backfill, given=case.given),))
    step = decide_requests(queue, now=at("10:00:05")).step
    assert isinstance(step, Resolve | Refuse)
    status = step.status
    assert (status.input_json if isinstance(step, Resolve) else f"{status.reason} {status.message}") == case.want


@pytest.mark.parametrize("given", ["absent", None])
def test_input_null_is_no_input_of_its_own(given: object) -> None:
    """R27: a client that sets null, and one that leaves it out, mean the same."""
    spec = {"scheduleRef": {"name": "s"}, "cause": "Manual"} | ({} if given == "absent" else {"input": given})
    assert ScheduleOccurrenceSpec.model_validate(spec).input is None


def ended(name: str, outcome: Outcome, completed: str, asked: str = "10:00") -> Record:
    return a_request(name, asked=asked, status=resolved(outcome=outcome, completion_time=at(completed))).record


def test_summary() -> None:
    """R27: a refusal and what was cancelled are in the history, but no run has failed; what has no outcome yet is in neither."""
    refused = a_request(
        "no", status=ScheduleOccurrenceStatus(outcome=Outcome.FAILED, completion_time=at("12:00"))
    ).record
    found = summarise(
        [
            ended("a", Outcome.COMPLETED, "10:10", "10:02"),
            ended("b", Outcome.COMPLETED, "10:05", "10:01"),
            ended("c", Outcome.EXHAUSTED, "10:20", "10:03"),
            ended("d", Outcome.CANCELLED, "10:30", "10:02:30"),
            a_request("e", status=resolved()).record,
            refused,
        ]
    )
    assert (found.last_successful_time, found.last_failure_time) == (at("10:10"), at("10:20"))
    assert [line.name for line in found.recent] == ["c", "d", "a", "b", "no"]


def line(name: str, time: str, decision: str = "Admitted", outcome: str = "Completed") -> RecentOccurrence:
    return RecentOccurrence(name=name, time=at(time), decision=decision, outcome=outcome)


def test_histories_are_merged_by_time_and_requests_replaced() -> None:
    """R27."""
    log = [line("s-2", "10:15"), line("old", "10:10", "Manual", "Running"), line("s-1", "10:00")]
    requested = Requested(recent=(line("new", "10:05", "Manual"),))
    assert [each.name for each in merge_recent(log, requested)] == ["s-2", "new", "s-1"]
    assert [each.name for each in merge_recent(log, Requested())] == ["s-2", "s-1"]
    many = [line(f"s-{number}", "10:00") for number in range(10)]
    assert len(merge_recent(many, requested)) == 10


NEWS: list[tuple[str, Requested, dict[str, datetime | tuple[RecentOccurrence, ...]], bool]] = [
    ("nothing", Requested(), {}, False),
    ("a success", Requested(last_successful_time=at("10:00")), {}, True),
    ("an older one", Requested(last_successful_time=at("10:00")), {"last_successful_time": at("10:01")}, False),
    ("a failure", Requested(last_failure_time=at("10:02")), {"last_failure_time": at("10:01")}, True),
    ("a line", Requested(recent=(line("a", "10:00", "Manual"),)), {}, True),
    ("a known line", Requested(recent=(line("a", "10:00", "Manual"),)), {"recent": (line("a", "10:00", "Manual"),)}, False),
    ("one that is gone", Requested(), {"recent": (line("a", "10:00", "Manual"),)}, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "requested", "status", "want"), NEWS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_has_news(name: str, requested: Requested, status: dict[str, object], want: bool) -> None:
    """R27 I8: only then the schedule's status is written."""
    assert has_news(requested, a_status(**status)) is want, name
