"""The schedule's status as a projection of its log."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from support.builders import (
    CREATED,
    WRITER,
    a_definition,
    a_job,
    a_record,
    a_run,
    a_schedule,
    a_snapshot,
    a_status,
    an_admission,
    at,
    of_definition,
)
from workflow_schedules.api.common import Condition, ConditionStatus
from workflow_schedules.api.occurrence import Outcome, ScheduleOccurrenceStatus, Totals
from workflow_schedules.api.schedule import (
    Counts,
    OccurrenceOutcome,
    Pause,
    RecentOccurrence,
    State,
    WorkflowScheduleStatus,
)
from workflow_schedules.core.decide import decide
from workflow_schedules.core.identity import pin
from workflow_schedules.core.model import Job, RecordRefusal, RefusedBy, Requested, Schedule, Snapshot
from workflow_schedules.core.plan import Append
from workflow_schedules.core.status import project

NOW = at("10:15")
CHILD = a_schedule(**of_definition())
PICKY = a_definition(generation=2, input_schema={"required": ["region"]})
ONCE = a_schedule(run_once_time="2026-01-01T10:00:00Z")
LINE = RecentOccurrence(name="hourly-b8ce660c-000000002", time=at("10:00"), decision="Admitted", outcome="Completed")


def projected(snapshot: Snapshot, recent: tuple[RecentOccurrence, ...] = (), **known: object) -> WorkflowScheduleStatus:
    assert snapshot.schedule is not None
    return project(
        snapshot, snapshot.schedule, recent=recent, candidates=known.get("candidates", ()), now=known.get("now", NOW)
    )


def conditions(status: WorkflowScheduleStatus) -> dict[str, str]:
    return {one.type: f"{one.status} {one.reason}" for one in status.conditions}


def test_all_of_it() -> None:
    totals = Totals(admitted=1, skipped=3, last_schedule_time=at("10:00"))
    done = a_run(record=an_admission(totals=totals, status=ScheduleOccurrenceStatus(
        outcome=Outcome.COMPLETED, completion_time=at("10:00:31"))))  # fmt: skip
    snapshot = a_snapshot(head=done.record, runs=(done,))
    status = projected(snapshot, (LINE,))
    assert status.model_copy(update={"conditions": ()}) == WorkflowScheduleStatus(
        observed_generation=1,
        revision=1,
        revision_time=NOW,
        spec_hash=a_schedule().spec_hash,
        log_head=2,
        fencing_epoch=WRITER.epoch,
        writer=WRITER.identity,
        lease=WRITER.lease,
        consumed_through_time=at("10:00"),
        schedule_text="0 * * * *",
        next_schedule_time=at("11:00"),
        next_schedule_times=tuple(at(f"{hour}:00") for hour in range(11, 16)),
        last_schedule_time=at("10:00"),
        last_occurrence=OccurrenceOutcome(name=LINE.name, outcome="Completed"),
        last_successful_time=at("10:00:31"),
        consecutive_failures=0,
        counts=Counts(admitted=1, completed=1, skipped=3),
        recent=(LINE,),
        state=State.ACTIVE,
    )
    assert conditions(status) == {
        "Accepted": "True Valid",
        "Ready": "True Active",
        "Stalled": "False Progressing",
        "RunsHealthy": "True Healthy",
        "Paused": "False NotPaused",
        "ParentEnabled": "True NoParent",
        "Complete": "False NotComplete",
    }


@dataclass(frozen=True, slots=True)
class Case:
    """The state, and the conditions that say something else than for an ordinary schedule."""

    name: str
    snapshot: Snapshot
    state: State
    want: dict[str, str]


def held(**fields: object) -> dict[str, object]:
    return {"head": a_record(schedule=CHILD), **fields}


def unready(since: str) -> Job:
    return replace(a_job(started=None), created_at=at(since))


def refused(by: RefusedBy, schedule: Schedule = a_schedule(), **fields: object) -> Snapshot:  # noqa: B008 - frozen
    return a_snapshot(schedule, record_refusal=RecordRefusal(by=by, words="the server says no"), **fields)


FIELDS = ("spec.jobTemplate.spec.a",)
CASES = [
    Case("R18 disabled", a_snapshot(a_schedule(enabled=False)), State.DISABLED, {"Ready": "True Disabled"}),
    Case("R4 without its definition", a_snapshot(CHILD), State.HELD,
         {"Ready": "True Held", "ParentEnabled": "False WorkflowNotFound"}),
    Case("R1 its definition is off", a_snapshot(CHILD, definition=a_definition(is_enabled=False)), State.HELD,
         {"Ready": "True Held", "ParentEnabled": "False WorkflowDisabled"}),
    Case("R4 its definition can't be read", a_snapshot(CHILD, definition=a_definition(template=None)), State.HELD,
         {"Ready": "True Held", "ParentEnabled": "False WorkflowInvalid"}),
    Case("R24 nothing can be rendered from its definition", a_snapshot(CHILD, definition=a_definition(template=pin([]))),
         State.HELD, {"Ready": "True Held", "ParentEnabled": "False WorkflowInvalid"}),
    Case("R4 disabled, and its definition missing", a_snapshot(a_schedule(enabled=False, **of_definition())), State.DISABLED,
         {"Ready": "True Disabled", "ParentEnabled": "False WorkflowNotFound"}),
    Case("R4 its definition is on", a_snapshot(CHILD, definition=a_definition()), State.ACTIVE,
         {"ParentEnabled": "True WorkflowEnabled"}),
    Case("R36 refused", a_snapshot(a_schedule(schedule="61 * * * *")), State.BLOCKED,
         {"Accepted": "False InvalidSchedule", "Ready": "False InvalidSchedule", "Stalled": "True InvalidSchedule",
          "ParentEnabled": "True Unknown"}),
    Case("R24 its input is none that its definition takes", a_snapshot(CHILD, definition=PICKY), State.BLOCKED,
         {"Accepted": "False InputRejected", "Ready": "False InputRejected", "Stalled": "True InputRejected",
          "ParentEnabled": "True Unknown"}),
    Case("K-056 it does not parse", a_snapshot(a_schedule(problem="spec.enabled: no")), State.BLOCKED,
         {"Accepted": "False InvalidSpec", "Ready": "False InvalidSpec", "Stalled": "True InvalidSpec",
          "ParentEnabled": "True Unknown"}),
    Case("R31 blocked by its log", a_snapshot(contradiction="record 7 is gone"), State.BLOCKED,
         {"Ready": "False Blocked", "Stalled": "True Blocked"}),
    Case("R7 a one-shot long past", a_snapshot(a_schedule(run_once_time="2025-01-01T00:00:00Z")), State.COMPLETE,
         {"Ready": "True Complete", "Complete": "True OneShotPast"}),
    Case("R21 a one-shot that ran", a_snapshot(ONCE, head=an_admission(schedule=ONCE, totals=Totals(
        admitted=1, last_schedule_time=at("10:00"))), runs=(a_run(job=a_job()),)), State.COMPLETE,
        {"Ready": "True Complete", "Complete": "True OneShotDone"}),
    Case("R21 a one-shot that was missed", a_snapshot(ONCE, head=a_record(schedule=ONCE, consumed=at("10:00"), totals=Totals(
        skipped=1))), State.COMPLETE, {"Ready": "True Complete", "Complete": "True OneShotMissed"}),
    Case("R35 its Job can't be made", a_snapshot(runs=(a_run(last_error="quota exceeded"),)), State.ACTIVE,
         {"RunsHealthy": "False JobNotCreated"}),
    Case("K-102 the next record can't be made: the namespace ends", refused(RefusedBy.NAMESPACE_END), State.ACTIVE,
         {"RunsHealthy": "False RecordNotCreated"}),
    Case("K-035 the next record can't be made: a quota", refused(RefusedBy.QUOTA), State.ACTIVE,
         {"RunsHealthy": "False RecordNotCreated"}),
    Case("K-106 the next record can't be made: a webhook", refused(RefusedBy.OTHER), State.ACTIVE,
         {"RunsHealthy": "False RecordNotCreated"}),
    Case("that comes before what is wrong with a run", refused(RefusedBy.QUOTA, runs=(a_run(last_error="no"),)), State.ACTIVE,
         {"RunsHealthy": "False RecordNotCreated"}),
    Case("R31 a blocked schedule, of which nothing more can be recorded", refused(RefusedBy.QUOTA, contradiction="record 7"),
         State.BLOCKED, {"Ready": "False Blocked", "Stalled": "True Blocked", "RunsHealthy": "False RecordNotCreated"}),
    Case("R24 nor may it", a_snapshot(template_refusal="no"), State.ACTIVE, {"RunsHealthy": "False TemplateRejected"}),
    Case("R24 it may, but loses fields", a_snapshot(unknown_fields=FIELDS), State.ACTIVE, {"RunsHealthy": "False UnknownFields"}),
    Case("R24 neither", a_snapshot(template_refusal="no", unknown_fields=FIELDS), State.ACTIVE,
         {"RunsHealthy": "False TemplateRejected"}),
    Case("what is wrong with a run comes first", a_snapshot(unknown_fields=FIELDS, runs=(a_run(last_error="no"),)), State.ACTIVE,
         {"RunsHealthy": "False JobNotCreated"}),
    Case("R24 nobody was asked yet, nothing was told", a_snapshot(told_since=1), State.ACTIVE, {}),
    Case("R19 paused", a_snapshot(a_schedule(pause=Pause())), State.PAUSED,
         {"Ready": "True Paused", "Paused": "True PausedByOwner"}),
    Case("R19 paused until a time", a_snapshot(a_schedule(pause=Pause(until_time=at("10:15:01")))), State.PAUSED,
         {"Ready": "True Paused", "Paused": "True PausedByOwner"}),
    Case("R19 that time has come", a_snapshot(a_schedule(pause=Pause(until_time=NOW))), State.ACTIVE, {}),
    Case("no Pod was ready for 15 minutes", a_snapshot(runs=(a_run(job=unready("10:00")),)), State.ACTIVE,
         {"RunsHealthy": "False NotStarted"}),
    Case("nor for a second less", a_snapshot(runs=(a_run(job=unready("10:00:01")),)), State.ACTIVE, {}),
    Case("R35 its Job was made after all", a_snapshot(runs=(a_run(last_error="quota exceeded", job=a_job()),)), State.ACTIVE, {}),
]  # fmt: skip

ORDINARY = conditions(projected(a_snapshot()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_state_and_conditions(case: Case) -> None:
    status = projected(case.snapshot)
    assert status.state is case.state
    assert conditions(status) == ORDINARY | case.want
    if case.state is not State.ACTIVE:
        assert (status.next_schedule_time, status.next_schedule_times) == (None, ())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_first_message_is_why_it_is_not_an_ordinary_one(case: Case) -> None:
    """R36: what the wide column MESSAGE shows, so a condition that explains nothing has no message."""
    found = projected(case.snapshot).conditions
    why = [one.message for one in found if one.type in case.want and one.message]
    assert [one.message for one in found if one.message][:1] == why[:1]
    assert why or case.state in {State.ACTIVE, State.DISABLED}


def test_messages_name_what_to_do() -> None:
    """R36."""
    found = {case.name: {one.type: one.message for one in projected(case.snapshot).conditions} for case in CASES}
    assert found["R4 without its definition"]["ParentEnabled"].endswith(
        "report does not exist in this namespace; apply it"
    )
    assert "spec.jobTemplate: missing" in found["R4 its definition can't be read"]["ParentEnabled"]
    assert (
        "spec.jobTemplate: write an object" in found["R24 nothing can be rendered from its definition"]["ParentEnabled"]
    )
    assert found["K-056 it does not parse"]["Accepted"] == "spec.enabled: no"
    assert found["R31 blocked by its log"]["Stalled"] == "record 7 is gone"
    assert found["R35 its Job can't be made"]["RunsHealthy"].endswith("-000000002: quota exceeded")
    for why, part in (
        ("the namespace ends", "being deleted"),
        ("a quota", "before that quota is raised"),
        ("a webhook", "webhook or policy"),
    ):
        message = found[next(name for name in found if name.endswith(f"can't be made: {why}"))]["RunsHealthy"]
        assert message.startswith("record 2 of this schedule can't be created: the server says no; nothing ")
        assert part in message


EARLIER, EARLIER_CHILD = projected(a_snapshot()), projected(a_snapshot(CHILD, definition=a_definition()))
REFUSED_CHANGES = [
    ("an edit", refused(RefusedBy.QUOTA, a_schedule(schedule="5 * * * *", generation=2, status=EARLIER), head=a_record())),
    ("a switch", refused(RefusedBy.QUOTA, a_schedule(enabled=False, generation=2, status=EARLIER), head=a_record())),
    ("a pause that ends by itself", refused(RefusedBy.QUOTA, a_schedule(
        pause=Pause(until_time=at("12:00")), generation=2, status=EARLIER), head=a_record())),
    ("a schema that the input does not meet", refused(
        RefusedBy.QUOTA, a_schedule(status=EARLIER_CHILD, **of_definition()), head=a_record(schedule=CHILD),
        definition=PICKY)),
    ("a definition that is switched off", refused(
        RefusedBy.QUOTA, a_schedule(status=EARLIER_CHILD, **of_definition()), head=a_record(schedule=CHILD),
        definition=a_definition(is_enabled=False, generation=2))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "snapshot"), REFUSED_CHANGES)
def test_a_change_whose_baseline_is_refused_does_not_show(name: str, snapshot: Snapshot) -> None:
    """R11: not before it is on record, since a later leader would take it for that; only that it is not."""
    assert snapshot.schedule is not None
    stored, status = snapshot.schedule.status, projected(snapshot)
    assert stored is not None
    assert conditions(status) == conditions(stored) | {"RunsHealthy": "False RecordNotCreated"}, name
    assert status.model_copy(update={"conditions": stored.conditions}) == stored


def test_a_first_baseline_that_is_refused_leaves_the_schedule_unseen() -> None:
    """R9, P4: the status that says so is no status yet: the log still begins at the schedule's creation."""
    status = projected(refused(RefusedBy.QUOTA, head=None))
    assert conditions(status) == {"RunsHealthy": "False RecordNotCreated"}
    said = {"conditions": (), "fencing_epoch": None, "writer": None, "lease": None}
    assert status.model_copy(update=said) == WorkflowScheduleStatus()
    step = decide(a_snapshot(a_schedule(status=status), head=None), now=NOW).step
    assert isinstance(step, Append)
    assert (step.spec.reason, step.spec.consumed_through_time) == ("Created", CREATED)


def test_of_a_log_without_a_record_the_head_is_none() -> None:
    """P7: so that nothing is below it."""
    assert projected(a_snapshot(a_schedule(enabled=False), head=None)).log_head == 0


def test_what_does_not_parse_has_no_hash() -> None:
    """R10: so that mending it is an edit."""
    assert projected(a_snapshot(a_schedule(problem="no"), head=None)).spec_hash is None


def test_texts_are_bounded() -> None:
    """K-077: the API server takes no longer ones."""
    status = projected(a_snapshot(a_schedule(schedule="9" * 2000)))
    assert status.schedule_text == "9" * 1024
    long = projected(a_snapshot(contradiction="x" * 40_000)).conditions
    assert max(len(one.message) for one in long) == 32768


def test_candidates_show_while_it_admits() -> None:
    """R18, R29."""
    assert projected(a_snapshot(), candidates=(at("10:00"),)).candidates == (at("10:00"),)
    assert projected(a_snapshot(a_schedule(enabled=False)), candidates=(at("10:00"),)).candidates == ()


def test_the_watermark_never_goes_back() -> None:
    """R9, P7."""
    ahead = a_schedule(status=a_status(consumed=at("10:10")))
    assert projected(a_snapshot(ahead)).consumed_through_time == at("10:10")
    assert projected(a_snapshot(head=a_record(consumed=at("10:00")))).consumed_through_time == at("10:00")
    assert projected(a_snapshot(a_schedule(enabled=False), head=None)).consumed_through_time == CREATED
    assert projected(a_snapshot(a_schedule(enabled=False, generation=2), head=None)).consumed_through_time == NOW


def test_what_the_log_said_last_stays_where_it_can_not_be_read() -> None:
    """R31, P7."""
    stored = a_status(log_head=7, counts=Counts(admitted=5), consecutive_failures=2, last_schedule_time=at("09:00"))
    status = projected(a_snapshot(a_schedule(status=stored), head=None, contradiction="record 7 is gone"))
    assert (status.state, status.log_head, status.consecutive_failures) == (State.BLOCKED, 7, 2)
    assert (status.counts, status.last_schedule_time) == (Counts(admitted=5), at("09:00"))
    assert projected(a_snapshot(head=None)).counts == Counts(), "of a log without a record there is nothing to keep"
    behind = a_snapshot(a_schedule(status=stored), head=a_record(totals=Totals(admitted=6)))
    assert (projected(behind).counts, projected(behind).log_head) == (Counts(admitted=6), 7)


def test_it_repeats_which_definition_the_newest_record_saw() -> None:
    """P4: without reading the log, a later leader knows whether a hold may hide in the definition's generations."""
    head = a_record(schedule=CHILD, definition_uid="d", definition_generation=4)
    status = projected(a_snapshot(CHILD, definition=a_definition(generation=5), head=head))
    assert (status.definition_uid, status.definition_generation) == ("d", 4)
    unread = a_snapshot(a_schedule(**of_definition(), status=status), definition=a_definition(generation=5), head=None)
    assert (projected(unread).definition_uid, projected(unread).definition_generation) == ("d", 4)


def test_a_revision_keeps_its_time() -> None:
    """R10."""
    schedule = a_schedule()
    known = a_status(revision=1, spec_hash=schedule.spec_hash, revision_time=CREATED)
    assert projected(a_snapshot(replace(schedule, status=known))).revision_time == CREATED
    edited = a_schedule(schedule="5 * * * *", generation=2, status=known)
    status = projected(a_snapshot(edited, head=a_record()))
    assert (status.revision, status.revision_time) == (2, NOW)


def test_projecting_again_changes_nothing() -> None:
    """I8: a projection of what is stored is what is stored."""
    first = projected(a_snapshot())
    again = projected(a_snapshot(a_schedule(status=first)), now=at("10:20"))
    assert again == first


def test_lists_are_bounded() -> None:
    """K-077: the object stays small."""
    runs = tuple(a_run(number, record=an_admission(number)) for number in range(2, 80))
    lines = tuple(LINE.model_copy(update={"name": f"n{number}"}) for number in range(20))
    status = projected(a_snapshot(runs=runs), lines)
    assert (len(status.active), status.active_count, len(status.recent)) == (50, 78, 10)
    assert status.active[0].endswith("-000000002")


@pytest.mark.parametrize(
    ("schedule", "want"),
    [
        (a_schedule(schedule="0  0\t* * *"), "0 0 * * *"),
        (a_schedule(schedule=None, schedules=("0 0 * * *", "0  1 * * *")), "0 0 * * *; 0 1 * * *"),
        (ONCE, "once 2026-01-01T10:00:00Z"),
        (a_schedule(problem="no"), None),
        (a_schedule(schedule=None), None),
    ],
)
def test_schedule_text(schedule: object, want: str | None) -> None:
    assert projected(a_snapshot(schedule, head=None)).schedule_text == want


MANUAL = RecentOccurrence(name="now", time=at("10:05"), decision="Manual", outcome="Failed")
SKIPPED = RecentOccurrence(name="s", time=at("10:10"), decision="SkippedOverlap")


def test_the_last_occurrence_is_the_newest_of_the_log_and_of_requests() -> None:
    """R27, R29: with its outcome, or else what was decided."""
    asked = replace(a_snapshot(), requested=Requested(recent=(MANUAL,)))
    status = projected(asked, (LINE,))
    assert (status.last_occurrence, status.recent) == (OccurrenceOutcome(name="now", outcome="Failed"), (MANUAL, LINE))
    assert projected(asked, (SKIPPED,)).last_occurrence == OccurrenceOutcome(name="s", outcome="SkippedOverlap")
    assert projected(a_snapshot()).last_occurrence is None


FAILURES = [
    ("none", None, None, None, None),
    ("of the log", "10:09", "10:02", "10:03", "10:09"),
    ("of a request", "10:01", "10:09", "10:03", "10:09"),
    ("of a request that was deleted since", "10:01", "10:02", "10:09", "10:09"),
    ("of the log alone", "10:01", None, None, "10:01"),
]


@pytest.mark.parametrize(
    ("logged", "asked", "stored", "want"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES]
)
def test_the_last_failure(logged: str | None, asked: str | None, stored: str | None, want: str | None) -> None:
    """R27: whoever asked for it."""
    first, second, third, wanted = (at(text) if text else None for text in (logged, asked, stored, want))
    for status in (a_status(last_failure_time=third), *([] if third else [None])):
        snapshot = a_snapshot(a_schedule(status=status), head=a_record(totals=Totals(last_failure_time=first)))
        assert projected(replace(snapshot, requested=Requested(last_failure_time=second))).last_failure_time == wanted


UPCOMING = [
    ("five", a_snapshot(), ["11:00", "12:00", "13:00", "14:00", "15:00"]),
    ("R21 as many as are left", a_snapshot(a_schedule(run_limit=2)), ["11:00", "12:00"]),
    ("R21 not more than five", a_snapshot(a_schedule(run_limit=9)), ["11:00", "12:00", "13:00", "14:00", "15:00"]),
    ("R21 until its end", a_snapshot(a_schedule(end_time=at("12:30"))), ["11:00", "12:00"]),
    (
        "R9 none that is consumed",
        a_snapshot(a_schedule(end_time=at("13:30")), head=a_record(consumed=at("12:00"))),
        ["13:00"],
    ),
    ("R18 none while disabled", a_snapshot(a_schedule(enabled=False)), []),
]


@pytest.mark.parametrize(("snapshot", "want"), [row[1:] for row in UPCOMING], ids=[row[0] for row in UPCOMING])
def test_what_comes_next(snapshot: Snapshot, want: list[str]) -> None:
    """R6, section 2 (`nextScheduleTimes`)."""
    status = projected(snapshot)
    assert status.next_schedule_times == tuple(map(at, want))
    assert status.next_schedule_time == (at(want[0]) if want else None)


REFUSED_TEMPLATE = a_snapshot(template_refusal="image: Required value")
MESSAGES = [
    ("Accepted", a_snapshot(a_schedule(input={"é": 1, "ä": 2})), '"é", "ä": no name'),
    ("Ready", a_snapshot(CHILD), "WorkflowDefinition report does not exist in this namespace; apply it"),
    ("Ready", a_snapshot(a_schedule(schedule="no")), "spec.schedule: 'no'"),
    ("Ready", a_snapshot(contradiction="record 7 is gone"), "record 7 is gone"),
    ("Ready", a_snapshot(), ""),
    ("Stalled", a_snapshot(a_schedule(schedule="no")), "spec.schedule: 'no'"),
    ("RunsHealthy", REFUSED_TEMPLATE, "image: Required value"),
    ("RunsHealthy", a_snapshot(template_refusal="no", unknown_fields=FIELDS), "no; spec.jobTemplate.spec.a: the API"),
    ("RunsHealthy", a_snapshot(unknown_fields=FIELDS), "spec.jobTemplate.spec.a: the API server knows no such field"),
    ("RunsHealthy", a_snapshot(CHILD, definition=a_definition(), unknown_fields=FIELDS), "WorkflowDefinition report: spec.jobT"),
    ("RunsHealthy", a_snapshot(runs=(a_run(job=a_job()), a_run(3, last_error="quota"))), "hourly-b8ce660c-000000003: quota"),
    ("Paused", a_snapshot(a_schedule(pause=Pause(reason="holidays"))), "holidays"),
    ("ParentEnabled", a_snapshot(), ""),
    ("ParentEnabled", a_snapshot(CHILD, definition=a_definition(is_enabled=False)),
     "WorkflowDefinition report has enabled: false; enable it"),
    ("ParentEnabled", a_snapshot(CHILD, definition=a_definition(template=None)),
     "WorkflowDefinition report can't be used: spec.jobTemplate: missing"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "snapshot", "want"), MESSAGES)
def test_why_a_condition_is_what_it_is(kind: str, snapshot: Snapshot, want: str) -> None:
    """R36."""
    found = {one.type: one.message for one in projected(snapshot).conditions}
    assert want in found[kind]
    assert bool(found[kind]) is bool(want)


TOLD = [
    ("R24 of this template", "UnknownFields", 3, 3, True),
    ("R24 a refusal, too", "TemplateRejected", 3, 3, True),
    ("R24 an edit of something else came since", "UnknownFields", 3, 2, True),
    ("R24 of a template that was edited since", "UnknownFields", 2, 3, False),
    ("R24 nobody knows of which", "TemplateRejected", None, 3, False),
    ("R24 this leader had an answer, or saw that the template is another one", "UnknownFields", 3, None, False),
    ("what else was told is of its time", "NotStarted", 3, 3, False),
]


@pytest.mark.parametrize(
    ("reason", "generation", "since", "stands"), [row[1:] for row in TOLD], ids=[row[0] for row in TOLD]
)
def test_what_was_told_of_a_template_stands_until_there_is_an_answer(
    reason: str, generation: int | None, since: int | None, *, stands: bool
) -> None:
    """R24: "the last verdict", whichever leader got it, as long as it is about this template."""
    told = Condition(
        type="RunsHealthy",
        status=ConditionStatus.FALSE,
        reason=reason,
        message="as told",
        observed_generation=generation,
    )
    schedule = a_schedule(generation=3, status=a_status(conditions=(told,)))
    status = projected(a_snapshot(schedule, told_since=since))
    (found,) = [each for each in status.conditions if each.type == "RunsHealthy"]
    assert (found.reason, found.message) == ((reason, "as told") if stands else ("Healthy", ""))
    assert found.observed_generation == 3


def test_conditions_say_of_which_generation_they_are() -> None:
    schedule = a_schedule(generation=7)
    status = projected(a_snapshot(schedule, head=a_record(schedule=schedule)))
    assert {one.observed_generation for one in status.conditions} == {7}
    assert status.observed_generation == 7


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    first = projected(a_snapshot())
    blocked = projected(a_snapshot(a_schedule(status=first), contradiction="x"), now=at("10:20"))
    times = {one.type: (one.status, one.last_transition_time) for one in blocked.conditions}
    assert times["Stalled"] == (ConditionStatus.TRUE, at("10:20"))
    assert times["Accepted"] == (ConditionStatus.TRUE, NOW)
