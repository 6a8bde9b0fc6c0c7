"""What is decided about runs that people ask for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from support.builders import (
    EARLIER_WRITER,
    TEMPLATE,
    UID,
    WRITER,
    a_definition,
    a_record,
    a_schedule,
    a_snapshot,
    at,
    of_definition,
)
from support.request_builders import a_job_of, a_request, resolved
from workflow_schedules.api.common import Condition, ConditionStatus
from workflow_schedules.api.occurrence import Outcome, ScheduleOccurrenceStatus
from workflow_schedules.api.schedule import InputBinding, OccurrenceField
from workflow_schedules.core.decide_requests import Own, Queue, Refuse, RequestPlan, Resolve, decide_requests
from workflow_schedules.core.depth import MAX_LEVELS
from workflow_schedules.core.model import JobPhase, ObjectRef, Requested, Run, Snapshot
from workflow_schedules.core.plan import WriteOutcome


def told(plan: RequestPlan) -> str:
    step = plan.step
    if step is None:
        return "nothing"
    status = getattr(step, "status", None)
    why = f" {status.reason}" if status is not None and status.outcome else ""
    return f"{type(step).__name__} {step.run.record.ref.name}{why}"


def a_deep_input() -> dict[str, object]:
    deep: dict[str, object] = {}
    for _ in range(MAX_LEVELS):
        deep = {"a": deep}
    return deep


def with_instant(run: Run, time: str | None) -> Run:
    instant = at(time) if time else None
    return replace(run, record=replace(run.record, spec=run.record.spec.model_copy(update={"scheduled_time": instant})))


def without_instant(run: Run) -> Run:
    return with_instant(run, None)


def owned(run: Run) -> Run:
    return replace(run, record=replace(run.record, owner_uids=frozenset({UID})))


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
WAITING = a_job_of("run", JobPhase.WAITING, started=None)
GOES_ALONG = a_snapshot(a_schedule(deletion_policy="Delete"))
ENDED = {
    "outcome": Outcome.CANCELLED,
    "reason": "CancelRequested",
    "job_uid": "job-2",
    "completion_time": at("10:00:03"),
}
CANCELLED = a_request(status=resolved(**ENDED), job=a_job_of("now"))
CANCELLED_BACK = a_request("gone", "2025-12-01T08:00", status=resolved(**ENDED), job=a_job_of("gone"))
OVER = a_request("over", "2025-12-01T08:00", status=resolved(
    outcome=Outcome.COMPLETED, job_uid="job-2", completion_time=at("09:00")))  # fmt: skip
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
    Case("R24 I9 input too deep", (a_request(given=a_deep_input()),), "Refuse now InputTooDeep"),
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
    Case("R27 the oldest instant first, whoever asked first",
         (a_request("a", "09:00", asked="09:59"), a_request("b", "08:00")), "Resolve b"),
    Case("R27 of manual ones the one asked for first", (a_request("a"), a_request("b", asked="09:59")), "Resolve b"),
    Case("R27 a backfill without an instant, which no schema lets in, breaks nothing",
         (without_instant(a_request("a", "09:00")), a_request("b", "08:00")), "Resolve b"),
    Case("R27 nor does a manual one with an instant", (with_instant(a_request(), "23:00"),), "Resolve now"),
    Case("I9 until then", (a_request("a", retry_at=at("10:00:05")),), "Resolve a"),
    Case("I9 the earliest of two is looked at",
         (a_request("a", retry_at=at("10:00:09")), a_request("b", retry_at=at("10:00:07"))), "nothing", wake="10:00:07"),
    Case("R27 to the last moment", (a_request(),), "Resolve now", "10:10:00"),
    Case("R27 a backfill may wait for its turn", (a_request(backfill="09:00"),), "Resolve now", "23:00:00"),
    Case("R27 a definition that can't be used", (a_request(),), "Refuse now WorkflowInvalid",
         snapshot=a_snapshot(CHILD, definition=a_definition(template=None))),
    Case("R27 those of a former schedule of this name take no place",
         (replace(BUSY, record=a_request("busy", "08:00", status=resolved(schedule_uid="gone")).record, job=None),
          a_request("back", "07:00")), "Resolve back"),
    Case("R27 nor does a manual run", (a_request("run", status=resolved(), job=WAITING), a_request("back", "08:00")),
         "Resolve back"),
    Case("R27 nor one that is not resolved yet", (a_request("late", "09:00"), a_request("back", "08:00")), "Resolve back"),
    Case("R27 nor one that has ended", (OVER, a_request("back", "08:00")), "Resolve back"),
    Case("R20 owned by its schedule before its Job is made", (a_request(status=resolved()),), "Own now", snapshot=GOES_ALONG),
    Case("R20 P11 and before it is claimed", (a_request(status=resolved(EARLIER_WRITER)),), "Own now", snapshot=GOES_ALONG),
    Case("R20 once", (owned(a_request(status=resolved())),), "CreateJob now", snapshot=GOES_ALONG),
    Case("R20 not when it has ended", (a_request(status=resolved(), job=a_job_of("now", JobPhase.COMPLETED)),),
         "WriteOutcome now JobComplete", snapshot=GOES_ALONG),
    Case("R20 nor by one that can't be read", (a_request(status=resolved()),), "nothing", wake="10:10:01",
         snapshot=a_snapshot(a_schedule(problem="spec.enabled: no"))),
    Case("P11 the schedule of that name is another", (a_request(status=resolved(schedule_uid="gone")),), "nothing",
         wake="10:10:01"),
    Case("P11 the schedule is gone", (a_request(status=resolved()),), "nothing", wake="10:10:01",
         snapshot=a_snapshot(None, head=None)),
    Case("P11 definition on", (a_request(status=resolved()),), "CreateJob now",
         snapshot=a_snapshot(CHILD, definition=a_definition())),
    Case("P11 definition switched off since", (a_request(status=resolved()),), "nothing", wake="10:10:01",
         snapshot=a_snapshot(CHILD, definition=a_definition(is_enabled=False))),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_decide_requests(case: Case) -> None:
    queue = Queue(ref=ObjectRef(namespace="team", name="hourly"), snapshot=case.snapshot, runs=case.runs)
    plan = decide_requests(queue, now=at(case.now))
    assert (told(plan), plan.next_wake_at) == (case.want, at(case.wake) if case.wake else None)


OURS, OTHERS = WRITER.lease, "elsewhere/scheduler"
APART = [
    ("ours", None, False, "Resolve now"),
    ("another installation is to resolve it", None, True, "nothing"),
    ("we have resolved it", OURS, True, "CreateJob now"),
    ("another has resolved it", OTHERS, False, "nothing"),
]


@pytest.mark.parametrize(("lease", "is_anothers", "want"), [row[1:] for row in APART], ids=[row[0] for row in APART])
def test_whose_request_it_is(lease: str | None, is_anothers: bool, want: str) -> None:
    """R33: what another Lease has written is not overruled."""
    run = a_request(status=resolved(lease=lease) if lease else None)
    queue = Queue(
        ref=ObjectRef(namespace="team", name="hourly"), snapshot=a_snapshot(), runs=(run,), is_anothers=is_anothers
    )
    assert told(decide_requests(queue, now=at("10:00:05"))) == want


REFUSALS = [
    ("late", a_request(), a_snapshot(), "10:10:01",
     "asked for at 2026-01-01T10:00:00Z and not seen within 10 minutes; ask again"),
    ("no schedule", a_request(), a_snapshot(None, head=None), "10:00:05",
     "spec.scheduleRef.name: WorkflowSchedule hourly does not exist in namespace team; name one that does"),
    ("refused", a_request(), a_snapshot(a_schedule(run_limit=0)), "10:00:05",
     "WorkflowSchedule hourly is not accepted: spec.runLimit: 0 is not positive; write 1 or more, or leave it out"),
    ("no definition", a_request(), a_snapshot(CHILD), "10:00:05",
     "WorkflowDefinition report does not exist in this namespace; apply it and ask again"),
    ("off", a_request(), a_snapshot(CHILD, definition=a_definition(is_enabled=False)), "10:00:05",
     "WorkflowDefinition report has enabled: false; enable it and ask again"),
    ("bad", a_request(), a_snapshot(CHILD, definition=a_definition(template=None)), "10:00:05",
     "WorkflowDefinition report can not be used"),
    ("future", a_request(backfill="11:00"), a_snapshot(), "10:00:05",
     "spec.scheduledTime: 2026-01-01T11:00:00Z is not past; a backfill runs a past instant"),
    ("none", a_request(backfill="09:01"), a_snapshot(), "10:00:05",
     "spec.scheduledTime: 2026-01-01T09:01:00Z is no instant of this schedule; the next one after it is 2026-01-01T10:00:00Z"),
    ("a second after one", a_request(backfill="09:00:01"), a_snapshot(), "10:00:05",
     "spec.scheduledTime: 2026-01-01T09:00:01Z is no instant of this schedule; the next one after it is 2026-01-01T10:00:00Z"),
    ("none any more", a_request(backfill="09:00"), a_snapshot(a_schedule(end_time=at("08:00"))), "10:00:05",
     "spec.scheduledTime: 2026-01-01T09:00:00Z is no instant of this schedule"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("run", "snapshot", "now", "message"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS]
)
def test_why_a_request_is_refused(run: Run, snapshot: Snapshot, now: str, message: str) -> None:
    """R27, R36: final, with what would do; written by whoever holds the Lease now (R33)."""
    queue = Queue(ref=ObjectRef(namespace="team", name="hourly"), snapshot=snapshot, runs=(run,))
    step = decide_requests(queue, now=at(now)).step
    assert isinstance(step, Refuse)
    status = step.status
    assert (status.message, status.outcome, status.completion_time) == (message, Outcome.FAILED, at(now))
    assert (status.fencing_epoch, status.writer) == (WRITER.epoch, WRITER.identity)


def test_a_cancelled_request_says_who_wrote_that_and_when() -> None:
    """R31, R33."""
    queue = Queue(ref=a_schedule().ref, snapshot=a_snapshot(), runs=(a_request(cancel_request="no"),))
    step = decide_requests(queue, now=at("10:00:05")).step
    assert isinstance(step, WriteOutcome)
    status = step.status
    assert (status.outcome, status.completion_time) == (Outcome.CANCELLED, at("10:00:05"))
    assert (status.fencing_epoch, status.writer) == (WRITER.epoch, WRITER.identity)


def test_whose_schedule_a_request_goes_with() -> None:
    """R20."""
    queue = Queue(ref=a_schedule().ref, snapshot=GOES_ALONG, runs=(a_request(status=resolved()),))
    step = decide_requests(queue, now=at("10:00:05")).step
    assert isinstance(step, Own)
    assert step.schedule is GOES_ALONG.schedule


def a_condition(kind: str, message: str = "", *, since: str = "10:00:05") -> Condition:
    return Condition(
        type=kind, status=ConditionStatus.TRUE, reason=kind, message=message, last_transition_time=at(since)
    )


def test_all_that_a_request_is_resolved_to() -> None:
    """R27, R33: the schedule as it is now, and its limits; what others say about the request stays."""
    schedule = a_schedule(active_deadline_seconds=60, start_timeout_seconds=30)
    other, stale = a_condition("Other", since="09:00"), a_condition("Resolved", since="09:00")
    run = a_request(status=ScheduleOccurrenceStatus(conditions=(stale, other)))
    snapshot = a_snapshot(schedule, head=a_record(schedule=schedule, revision=4))
    step = decide_requests(Queue(ref=schedule.ref, snapshot=snapshot, runs=(run,)), now=at("10:00:05.5")).step
    assert isinstance(step, Resolve)
    assert step.template is TEMPLATE
    assert step.status == ScheduleOccurrenceStatus(
        schedule_uid=UID,
        revision=4,
        template_hash=TEMPLATE.hash,
        active_deadline_seconds=60,
        start_timeout_seconds=30,
        conditions=(other, a_condition("Resolved", f"resolved under the Lease {WRITER.lease}")),
        lease=WRITER.lease,
        fencing_epoch=WRITER.epoch,
        writer=WRITER.identity,
    )


def test_what_a_request_is_bound_to() -> None:
    """R23, R27: it is named and counted by itself, not as one of the log."""
    every = tuple(InputBinding(name=field.value, occurrence_field=field) for field in OccurrenceField)
    schedule = a_schedule(input_from=every)
    snapshot = replace(
        a_snapshot(schedule, head=a_record(schedule=schedule, revision=4)),
        requested=Requested(last_successful_time=at("08:00")),
    )
    queue = Queue(ref=schedule.ref, snapshot=snapshot, runs=(a_request("back", "09:00"),))
    step = decide_requests(queue, now=at("10:00:05")).step
    assert isinstance(step, Resolve)
    assert json.loads(step.status.input_json or "") == {
        "scheduledTime": "2026-01-01T09:00:00Z",
        "name": "back",
        "scheduleName": "hourly",
        "revision": 4,
        "cause": "Backfill",
        "lastSuccessfulTime": "2026-01-01T08:00:00Z",
    }


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
