"""decide, rule by rule: a snapshot and a time in, one step and a wake-up out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from support.builders import (
    DEFINITION_UID,
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
from support.steps import in_words
from workflow_schedules.api.common import Condition, ConditionStatus
from workflow_schedules.api.occurrence import Decision, Outcome
from workflow_schedules.api.schedule import ConcurrencyPolicy, MisfirePolicy, State
from workflow_schedules.core.acceptance import accept
from workflow_schedules.core.decide import decide, state_of
from workflow_schedules.core.model import JobPhase, Requested, Schedule, Snapshot
from workflow_schedules.core.plan import Append

FORBID, ALLOW = ConcurrencyPolicy.FORBID, ConcurrencyPolicy.ALLOW
LATEST = MisfirePolicy.LATEST
HELD_BY_PARENT = of_definition()


def of_parent(definition_generation: int = 1, uid: str = DEFINITION_UID, **fields: object) -> dict[str, object]:
    """Return record fields that say which definition was seen."""
    return {"definition_uid": uid, "definition_generation": definition_generation, **fields}


@dataclass(frozen=True, slots=True)
class Case:
    """What is decided at `now`, and when decide wants to look again."""

    name: str
    snapshot: Snapshot
    now: str
    want: str
    wake: str | None = None


EDITED = a_schedule(schedule="30 * * * *", generation=2)
TWICE_EDITED = a_schedule(generation=3)
OFF = a_schedule(enabled=False, generation=2)
BROKEN = a_schedule(schedule="61 * * * *", generation=2)
UNREADABLE = a_schedule(problem="spec.enabled: want true or false", generation=2)
RUNNING = a_run(job=a_job(JobPhase.WAITING))
ONE_OPEN = {"head": RUNNING.record, "runs": (RUNNING,)}
WAITING = a_record(2, schedule=EDITED, consumed=at("10:20"), waiting=(at("10:00"),), reason="Edited")
CHILD = a_schedule(**HELD_BY_PARENT)
ONCE_HELD = a_status(State.HELD)
SPREAD = a_schedule(max_jitter_seconds=600)
SPREAD_LATEST = a_schedule(max_jitter_seconds=600, misfire_policy=LATEST, starting_deadline_seconds=90)

BIRTH = [
    Case("R9 the log begins at creation", a_snapshot(head=None), "09:31", "Baseline Created Active @09:30:00"),
    Case("R9 first seen later, still at creation: downtime, not birth", a_snapshot(head=None), "10:31",
         "Baseline Created Active @09:30:00"),
    Case("P4 a first generation once written: now", a_snapshot(a_schedule(status=a_status(State.HELD)), head=None),
         "10:31:00.9", "Baseline Released Active @10:31:00"),
    Case("P4 so is one that was observed and left no record", a_snapshot(a_schedule(status=ONCE_HELD.model_copy(
         update={"log_head": None})), head=None), "10:31", "Baseline Released Active @10:31:00"),
    Case("P4 or whose records are all that is known of it", a_snapshot(a_schedule(status=ONCE_HELD.model_copy(
         update={"observed_generation": None})), head=None), "10:31", "Baseline Released Active @10:31:00"),
    Case("P4 never written, but edited unseen: now", a_snapshot(a_schedule(generation=2), head=None), "10:31",
         "Baseline Created Active @10:31:00"),
    Case("R9 never behind the stored watermark", a_snapshot(
        a_schedule(generation=2, status=a_status(State.DISABLED, consumed=at("11:00"))), head=None), "10:31",
        "Baseline Enabled Active @11:00:00"),
    Case("R18 born disabled: nothing to say", a_snapshot(a_schedule(enabled=False), head=None), "09:31", "nothing"),
    Case("R4 born before its definition: nothing to say", a_snapshot(CHILD, head=None), "09:31", "nothing"),
    Case("R36 born broken: nothing to say", a_snapshot(replace(BROKEN, generation=1), head=None), "09:31", "nothing"),
]  # fmt: skip

CHANGES = [
    Case("R10 an edit moves the watermark to now", a_snapshot(EDITED, head=a_record()), "10:15:30",
         "Baseline Edited Active @10:15:30"),
    Case("K-023 an edit to an earlier time of day fires nothing", a_snapshot(
        a_schedule(schedule="0 10 * * *", generation=2), head=a_record()), "13:50", "Baseline Edited Active @13:50:00"),
    Case("R9 an edit never moves it back", a_snapshot(EDITED, head=a_record(consumed=at("10:20"))), "10:15",
         "Baseline Edited Active @10:20:00"),
    Case("R10 an edit gives up what waits, on record", a_snapshot(EDITED, head=a_record(), held=(at("10:00"),)), "10:15",
         "Baseline Edited Active @10:15:00 waiting 10:00"),
    Case("R10 also what became due in this very second", a_snapshot(EDITED, head=a_record(), held=(at("10:00"),)), "10:00:00.5",
         "Baseline Edited Active @10:00:00 waiting 10:00"),
    Case("R10 what was consumed since does not wait", a_snapshot(EDITED, head=a_record(consumed=at("10:00")),
         held=(at("10:00"),)), "10:15", "Baseline Edited Active @10:15:00"),
    Case("R10 then as Superseded", a_snapshot(EDITED, head=WAITING), "10:20", "Superseded 10:00"),
    Case("R10 also of a schedule that is off by now", a_snapshot(replace(OFF, generation=3), head=WAITING), "10:20",
         "Superseded 10:00"),
    Case("P4 one step without contents needs no Baseline", a_snapshot(a_schedule(generation=2), head=a_record()), "09:59",
         "nothing", "10:00"),
    Case("P4 a jump of two may hide a pause", a_snapshot(TWICE_EDITED, head=a_record()), "10:15",
         "Baseline Edited Active @10:15:00 gives up 1"),
    Case("K-108 another hash at one generation is an upgrade", a_snapshot(head=a_record(spec_hash="older")), "09:59",
         "nothing", "10:00"),
    Case("R11 disabled", a_snapshot(OFF, head=a_record()), "10:15", "Baseline Disabled Disabled @10:15:00 gives up 1"),
    Case("R18 disabled gives up what waits", a_snapshot(OFF, head=a_record(), held=(at("10:00"),)), "10:15",
         "Baseline Disabled Disabled @10:15:00 waiting 10:00"),
    Case("R18 disabled stays disabled: no write", a_snapshot(OFF, head=a_record(state=State.DISABLED, schedule=OFF)), "10:15",
         "nothing"),
    Case("R11 edits of what is off leave no record", a_snapshot(a_schedule(enabled=False, schedule="1 * * * *", generation=9),
         head=a_record(state=State.DISABLED, schedule=OFF)), "10:15", "nothing"),
    Case("R18 enabled: from now", a_snapshot(TWICE_EDITED, head=a_record(state=State.DISABLED, schedule=OFF)), "10:15",
         "Baseline Enabled Active @10:15:00"),
    Case("R11 an edit that breaks it is on record too", a_snapshot(BROKEN, head=a_record(), held=(at("10:00"),)), "10:15",
         "Baseline Edited Blocked @10:15:00 waiting 10:00"),
    Case("R11 one that does not even parse", a_snapshot(UNREADABLE, head=a_record()), "10:15",
         "Baseline Edited Blocked @10:15:00"),
    Case("R11 mended: from now", a_snapshot(TWICE_EDITED, head=a_record(state=State.BLOCKED, schedule=BROKEN)), "10:15",
         "Baseline Edited Active @10:15:00"),
    Case("R11 broken stays broken: no write", a_snapshot(BROKEN, head=a_record(state=State.BLOCKED, schedule=BROKEN)), "10:15",
         "nothing"),
    Case("P5 the log knows a newer generation", a_snapshot(head=a_record(generation=2)), "10:15", "LookAgain"),
    Case("P5 also when this one is broken", a_snapshot(BROKEN, head=a_record(generation=3)), "10:15", "LookAgain"),
]  # fmt: skip

PARENTS = [
    Case("R4 without its definition", a_snapshot(CHILD, head=a_record(schedule=CHILD, **of_parent())), "10:15",
         "Baseline Held Held @10:15:00 gives up 1"),
    Case("R1 its definition is off", a_snapshot(CHILD, head=a_record(schedule=CHILD, **of_parent()),
         definition=a_definition(is_enabled=False, generation=2)), "10:15", "Baseline Held Held @10:15:00 gives up 1"),
    Case("R4 its definition can't be used", a_snapshot(CHILD, head=a_record(schedule=CHILD, **of_parent()),
         definition=a_definition(template=None, generation=2)), "10:15", "Baseline Held Held @10:15:00 gives up 1"),
    Case("R1 held: nothing fires", a_snapshot(CHILD, head=a_record(schedule=CHILD, state=State.HELD),
         definition=a_definition(is_enabled=False)), "12:15", "nothing"),
    Case("R4 held, and then its definition goes: no write", a_snapshot(CHILD, head=a_record(schedule=CHILD, state=State.HELD,
         **of_parent())), "12:15", "nothing"),
    Case("R3 released: from now", a_snapshot(CHILD, head=a_record(schedule=CHILD, state=State.HELD), definition=a_definition()),
         "12:15", "Baseline Released Active @12:15:00"),
    Case("R18 disabled goes before held", a_snapshot(a_schedule(enabled=False, generation=2, **HELD_BY_PARENT),
         head=a_record(schedule=CHILD, **of_parent())), "10:15", "Baseline Disabled Disabled @10:15:00 gives up 1"),
    Case("P4 one step of the definition alone is none of ours", a_snapshot(CHILD,
         head=a_record(schedule=CHILD, **of_parent()), definition=a_definition(generation=2)), "09:59", "nothing", "10:00"),
    Case("P4 a jump of the definition may hide a hold", a_snapshot(CHILD, head=a_record(schedule=CHILD, **of_parent()),
         definition=a_definition(generation=3)), "10:15", "Baseline Released Active @10:15:00 gives up 1"),
    Case("P4 another definition of the same name", a_snapshot(CHILD, head=a_record(schedule=CHILD, **of_parent()),
         definition=a_definition(uid="other")), "10:15", "Baseline Released Active @10:15:00 gives up 1"),
    Case("P5 the log knows a newer definition", a_snapshot(CHILD, head=a_record(schedule=CHILD, **of_parent(5)),
         definition=a_definition(generation=4)), "10:15", "LookAgain"),
    Case("P5 generations of another definition don't compare", a_snapshot(CHILD,
         head=a_record(schedule=CHILD, **of_parent(5, uid="other")), definition=a_definition(generation=4)), "10:15",
         "Baseline Released Active @10:15:00 gives up 1"),
]  # fmt: skip

DUE = [
    Case("R8 not yet due", a_snapshot(), "09:59:59.9", "nothing", "10:00"),
    Case("R8 due", a_snapshot(), "10:00:00", "Admitted 10:00"),
    Case("R8 consumed: never again", a_snapshot(head=a_record(consumed=at("10:00"))), "10:00:30", "nothing", "11:00"),
    Case("K-041 the clock steps back: never again", a_snapshot(head=a_record(consumed=at("10:00"))), "09:58", "nothing", "11:00"),
    Case("R16 late", a_snapshot(), "10:01:01", "SkippedMisfire 10:00"),
    Case("R17 an outage is one record", a_snapshot(), "20:30", "SkippedMisfire 10:00-20:00 (11)"),
    Case("R12 forbid: a waiting run blocks", a_snapshot(**ONE_OPEN), "11:00", "SkippedOverlap 11:00"),
    Case("R12 forbid: an interrupted run still blocks", a_snapshot(head=RUNNING.record, runs=(
        a_run(outcome=Outcome.INTERRUPTED, job=a_job(JobPhase.SUSPENDED)),)), "11:00", "SkippedOverlap 11:00"),
    Case("R12 forbid: a finished run doesn't", a_snapshot(head=RUNNING.record, runs=(a_run(outcome=Outcome.FAILED),)), "11:00",
         "Admitted 11:00"),
    Case("R13 allow: one more", a_snapshot(a_schedule(concurrency_policy=ALLOW, max_active_runs=2), head=an_admission(
        schedule=a_schedule(concurrency_policy=ALLOW, max_active_runs=2)), runs=(RUNNING,)), "11:00", "Admitted 11:00"),
    Case("R13 allow: full", a_snapshot(a_schedule(concurrency_policy=ALLOW, max_active_runs=1), head=an_admission(
        schedule=a_schedule(concurrency_policy=ALLOW, max_active_runs=1)), runs=(RUNNING,)), "11:00", "SkippedOverlap 11:00"),
    Case("R16 latest: blocked waits, and looks again when due or told", a_snapshot(a_schedule(misfire_policy=LATEST),
         head=an_admission(schedule=a_schedule(misfire_policy=LATEST)), runs=(RUNNING,)), "11:00:10", "nothing", "12:00"),
    Case("R16 latest: a deadline wakes", a_snapshot(a_schedule(misfire_policy=LATEST, starting_deadline_seconds=90),
         head=an_admission(schedule=a_schedule(misfire_policy=LATEST, starting_deadline_seconds=90)), runs=(RUNNING,)),
         "11:00:10", "nothing", "11:01:31"),
    Case("R16 latest: freed", a_snapshot(a_schedule(misfire_policy=LATEST), held=(at("11:00"),), head=an_admission(
        schedule=a_schedule(misfire_policy=LATEST)), runs=(a_run(outcome=Outcome.COMPLETED),)), "11:20", "Admitted 11:00"),
    Case("R35 runs come first: a Job to make before what is due", a_snapshot(head=a_run().record, runs=(a_run(),)), "10:00:30",
         "CreateJob"),
    Case("R25 an end to write before what is due", a_snapshot(head=a_run().record, runs=(a_run(job=a_job(JobPhase.FAILED)),)),
         "11:00", "WriteOutcome"),
    Case("R29 the earlier wake-up of run and schedule", a_snapshot(head=a_run().record, runs=(a_run(job=a_job()),)), "10:00:05",
         "nothing", "10:00:11"),
    Case("R16 due, and starts by its own UID's part of maxJitterSeconds", a_snapshot(SPREAD, head=a_record(schedule=SPREAD)),
         "10:00:00", "nothing", "10:02:47"),
    Case("R16 the deadline of what waits counts from the end of its jitter", a_snapshot(SPREAD_LATEST, head=an_admission(
         schedule=SPREAD_LATEST), runs=(RUNNING,)), "11:06:30", "nothing", "11:07:53"),
    Case("R20 deleting: nothing new", a_snapshot(a_schedule(is_deleting=True)), "10:00", "nothing"),
    Case("R20 deleted: nothing new", a_snapshot(None, head=a_record()), "10:00", "nothing"),
    Case("R31 contradiction: nothing new", a_snapshot(contradiction="record 7 is gone"), "10:00", "nothing"),
    Case("R21 a one-shot is due", a_snapshot(a_schedule(run_once_time="2026-01-01T10:00:00Z"),
         head=a_record(schedule=a_schedule(run_once_time="2026-01-01T10:00:00Z"))), "10:00", "Admitted 10:00"),
    Case("R21 a one-shot that ran never wakes", a_snapshot(a_schedule(run_once_time="2026-01-01T10:00:00Z"),
         head=a_record(schedule=a_schedule(run_once_time="2026-01-01T10:00:00Z"), consumed=at("10:00"))), "10:01", "nothing"),
    Case("R7 a one-shot before its creation never runs", a_snapshot(a_schedule(run_once_time="2025-01-01T10:00:00Z"),
         head=a_record(schedule=a_schedule(run_once_time="2025-01-01T10:00:00Z"))), "10:01", "nothing"),
]  # fmt: skip


def seen_definition(generation: int) -> Schedule:
    return a_schedule(
        status=a_status(definition_uid=DEFINITION_UID, definition_generation=generation), **HELD_BY_PARENT
    )


UNREAD = {"is_log_read": False, "head": None}
UNHEALTHY = Condition(type="RunsHealthy", status=ConditionStatus.FALSE, reason="NotStarted", message="no Pod")


def asked_for(since: str) -> Snapshot:
    """Build what is known of a schedule at rest of which a requested run waits for its first Pod."""
    run = a_run(job=replace(a_job(started=None), created_at=at(since)))
    return replace(a_snapshot(a_schedule(status=a_status()), **UNREAD), requested_runs=(run,))


NUMBER_GIVEN = of_definition(input={"day": 1})
WANTS_TEXT = a_definition(input_schema={"properties": {"day": {"type": "string"}}})
LOGS = [
    Case("P9 idle: not worth a request", a_snapshot(a_schedule(status=a_status()), **UNREAD), "09:59", "nothing", "10:00"),
    Case("P9 due: read before deciding", a_snapshot(a_schedule(status=a_status()), **UNREAD), "10:00", "ReadLog"),
    Case("P8 never written", a_snapshot(**UNREAD), "09:31", "ReadLog"),
    Case("P8 no head known", a_snapshot(a_schedule(status=a_status().model_copy(update={"log_head": None})), **UNREAD), "09:59",
         "ReadLog"),
    Case("P4 another generation", a_snapshot(a_schedule(generation=2, status=a_status()), **UNREAD), "09:59", "ReadLog"),
    Case("P9 a run is open", a_snapshot(a_schedule(status=a_status(active_count=1)), **UNREAD), "09:59", "ReadLog"),
    Case("P9 a run was found", a_snapshot(a_schedule(status=a_status()), runs=(RUNNING,), **UNREAD), "09:59", "ReadLog"),
    Case("P9 a candidate waits", a_snapshot(a_schedule(status=a_status(candidates=(at("09:00"),))), **UNREAD), "09:59",
         "ReadLog"),
    Case("P9 it says that something is wrong with a run", a_snapshot(a_schedule(status=a_status(conditions=(UNHEALTHY,))),
         **UNREAD), "09:59", "ReadLog"),
    Case("P9 something is wrong with a run that was asked for", asked_for(since="09:40"), "09:59", "ReadLog"),
    Case("P9 nothing is wrong with it yet", asked_for(since="09:50"), "09:59", "nothing", "10:00"),
    Case("R4 its definition went", a_snapshot(a_schedule(status=a_status(), **HELD_BY_PARENT), **UNREAD), "09:59", "ReadLog"),
    Case("R3 its definition came", a_snapshot(a_schedule(status=a_status(State.HELD), **HELD_BY_PARENT),
         definition=a_definition(), **UNREAD), "09:59", "ReadLog"),
    Case("P4 one step of its definition", a_snapshot(seen_definition(1), definition=a_definition(generation=2), **UNREAD),
         "09:59", "nothing", "10:00"),
    Case("P4 a jump of its definition counts from when it is seen", a_snapshot(seen_definition(1),
         definition=a_definition(generation=3), **UNREAD), "09:59", "ReadLog"),
    Case("P4 another definition", a_snapshot(seen_definition(1), definition=a_definition(uid="other"), **UNREAD), "09:59",
         "ReadLog"),
    Case("R18 off stays off", a_snapshot(a_schedule(enabled=False, status=a_status(State.DISABLED)), **UNREAD), "20:00",
         "nothing"),
    Case("R36 broken stays broken", a_snapshot(replace(BROKEN, status=a_status(State.BLOCKED, generation=2)), **UNREAD),
         "20:00", "nothing"),
    Case("R21 a one-shot missed while down", a_snapshot(a_schedule(run_once_time="2026-01-01T10:00:00Z", status=a_status()),
         **UNREAD), "20:00", "ReadLog"),
    Case("R21 complete stays complete", a_snapshot(a_schedule(run_once_time="2026-01-01T09:00:00Z",
         status=a_status(State.COMPLETE)), **UNREAD), "20:00", "nothing"),
    Case("P8 deleted: its runs are found by reading", a_snapshot(None, **UNREAD), "09:59", "ReadLog"),
    Case("R27 a request ended that the status doesn't tell of", replace(a_snapshot(a_schedule(status=a_status()), **UNREAD),
         requested=Requested(last_failure_time=at("09:40"))), "09:59", "ReadLog"),
    Case("R24 the schema of its definition refuses its input by now", a_snapshot(a_schedule(status=a_status(), **NUMBER_GIVEN),
         definition=WANTS_TEXT, **UNREAD), "09:59", "ReadLog"),
    Case("R24 refused stays refused: nothing to wait for, not even the end of its calendar", a_snapshot(a_schedule(
         end_time=at("20:00"), status=a_status(State.BLOCKED), **NUMBER_GIVEN), definition=WANTS_TEXT, **UNREAD), "09:59",
         "nothing"),
    Case("R21 the calendar alone tells that a one-shot is over: not worth a request", a_snapshot(a_schedule(
         run_once_time="2026-01-01T10:00:00Z", status=a_status(consumed=at("10:00"))), **UNREAD), "10:30", "nothing"),
    Case("R18 a jump of its definition is nothing to one that is off", a_snapshot(a_schedule(enabled=False, status=a_status(
         State.DISABLED, **of_parent()), **HELD_BY_PARENT), definition=a_definition(generation=3), **UNREAD), "09:59", "nothing"),
    Case("P3 a run that the head calls open was not read", a_snapshot(head=RUNNING.record), "11:00", "ReadLog"),
]  # fmt: skip


@pytest.mark.parametrize("case", [*BIRTH, *CHANGES, *PARENTS, *DUE, *LOGS], ids=lambda case: case.name)
def test_decide(case: Case) -> None:
    plan = decide(case.snapshot, now=at(case.now))
    wake = f"{plan.next_wake_at:%H:%M:%S}" if plan.next_wake_at else None
    assert in_words(plan.step) == case.want
    assert wake == (f"{at(case.wake):%H:%M:%S}" if case.wake else None)


def test_an_edit_between_a_baseline_and_its_superseded_still_meets_its_own_baseline() -> None:
    """P4, R10: a leader died after the Baseline; the edit of the meantime must not hide behind the Superseded."""
    edited_again = a_schedule(schedule="45 * * * *", generation=3)
    step = decide(a_snapshot(edited_again, head=WAITING), now=at("11:00")).step
    assert isinstance(step, Append)
    head = replace(WAITING, uid="record-3", spec=step.spec)
    assert (
        in_words(decide(a_snapshot(edited_again, head=head), now=at("11:00")).step)
        == "Baseline Edited Active @11:00:00"
    )


def test_what_is_superseded_says_the_state_of_the_baseline_before_it() -> None:
    """P4: it is off by now, and that must still meet a Baseline of its own."""
    step = decide(a_snapshot(replace(OFF, generation=3), head=WAITING), now=at("10:20")).step
    assert isinstance(step, Append)
    assert (step.spec.decision, step.spec.state) == (Decision.SUPERSEDED, State.ACTIVE)


def test_what_waits_is_in_the_plan() -> None:
    """R29: a held candidate shows."""
    schedule = a_schedule(misfire_policy=LATEST)
    snapshot = a_snapshot(schedule, head=an_admission(schedule=schedule), runs=(RUNNING,))
    assert decide(snapshot, now=at("11:30")).candidates == (at("11:00"),)


def test_an_admission_pins_the_template_in_force() -> None:
    """R22."""
    step = decide(a_snapshot(), now=at("10:00")).step
    assert isinstance(step, Append)
    assert step.template is not None
    assert step.spec.template_hash == step.template.hash
    late = decide(a_snapshot(), now=at("10:30")).step
    assert isinstance(late, Append)
    assert (late.template, late.spec.template_hash) == (None, None)


MESSAGES = [
    ("admitted", a_snapshot(), "10:00:02", "due at 2026-01-01T10:00:00Z, admitted 2 s after it"),
    ("late", a_snapshot(), "11:30", "could not start in time: noticed 1800 s after the newest of 2"),
    ("blocked", a_snapshot(**ONE_OPEN), "11:00", "no free slot: hourly-b8ce660c-000000002 had not finished"),
    ("blocked by many", a_snapshot(head=an_admission(5, open=(2, 3, 4, 5)), runs=tuple(a_run(number, job=a_job(
        JobPhase.WAITING, number=number)) for number in (2, 3, 4, 5))), "11:00", "no free slot: hourly-b8ce660c-000000002, "
        "hourly-b8ce660c-000000003, hourly-b8ce660c-000000004 had not finished"),
    ("excluded", a_snapshot(a_schedule(exclude_dates=("2026-01-01",)), head=a_record(schedule=a_schedule(exclude_dates=(
        "2026-01-01",)))), "10:00", "on a date of excludeDates"),
    ("coalesced", a_snapshot(a_schedule(misfire_policy=LATEST), head=a_record(schedule=a_schedule(misfire_policy=LATEST))),
     "12:00", "a newer instant stands for 2"),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "now", "want"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES])
def test_a_record_says_why(snapshot: Snapshot, now: str, want: str) -> None:
    """R29, K-082."""
    step = decide(snapshot, now=at(now)).step
    assert isinstance(step, Append)
    assert step.spec.message == want


STATES = [
    ("active", a_snapshot(), State.ACTIVE),
    ("disabled", a_snapshot(OFF), State.DISABLED),
    ("held", a_snapshot(CHILD), State.HELD),
    ("blocked by its spec, though disabled", a_snapshot(a_schedule(schedule="61 * * * *", enabled=False)), State.BLOCKED),
    ("blocked by its log", a_snapshot(contradiction="x"), State.BLOCKED),
    ("complete goes before disabled",
     a_snapshot(a_schedule(run_once_time="2026-01-01T09:00:00Z", enabled=False)), State.COMPLETE),
    ("a one-shot to come", a_snapshot(a_schedule(run_once_time="2026-01-01T19:00:00Z")), State.ACTIVE),
    ("a one-shot that waits",
     a_snapshot(a_schedule(run_once_time="2026-01-01T09:45:00Z", misfire_policy=LATEST)), State.ACTIVE),
    ("R21 reopened by an edit", a_snapshot(a_schedule(run_once_time="2026-01-02T09:00:00Z", generation=2),
     head=a_record(consumed=at("09:45"))), State.ACTIVE),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "want"), [row[1:] for row in STATES], ids=[row[0] for row in STATES])
def test_state(snapshot: Snapshot, want: State) -> None:
    """R18, R21: the first that applies."""
    schedule = snapshot.schedule
    assert schedule is not None
    assert state_of(snapshot, accept(schedule), now=at("10:00")) is want
