"""What pauses a schedule, what is on record of it, and from when on it admits again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from support.builders import (
    CREATED,
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
from workflow_schedules.api.occurrence import Outcome, ScheduleOccurrenceStatus, Totals
from workflow_schedules.api.schedule import MisfirePolicy, Pause, State
from workflow_schedules.core import log, pause
from workflow_schedules.core.decide import decide
from workflow_schedules.core.model import Record, Run, Schedule, Snapshot
from workflow_schedules.core.plan import Append
from workflow_schedules.core.totals import totals_now


def paused(until: str | None = None, *, generation: int = 2, **fields: object) -> Schedule:
    return a_schedule(pause=Pause(until_time=at(until) if until else None), generation=generation, **fields)


def head(schedule: Schedule, state: State = State.PAUSED, consumed: str = "10:15", **fields: object) -> Record:
    return a_record(2, schedule=schedule, state=state, consumed=at(consumed), **fields)


@dataclass(frozen=True, slots=True)
class Case:
    """What is decided at `now`, and when decide wants to look again."""

    name: str
    snapshot: Snapshot
    now: str
    want: str
    wake: str | None = None


PLAIN = a_schedule()
FOREVER, TILL_12 = paused(), paused("12:00")
RESUMED = a_schedule(generation=3)
LATEST = {"misfire_policy": MisfirePolicy.LATEST}
THREE = {"pause_after_failures": 3}
BOTH = paused("12:00", **THREE)
CHILD = of_definition()
SEEN = {"definition_uid": DEFINITION_UID, "definition_generation": 1}

PAUSING = [
    Case("R19 a pause is on record before anything else", a_snapshot(FOREVER, head=a_record()), "10:00:30",
         "Baseline Paused Paused @10:00:30 gives up 1"),
    Case("R19 a pause of an idle schedule, too", a_snapshot(FOREVER, head=a_record()), "09:45",
         "Baseline Paused Paused @09:45:00"),
    Case("R19 a candidate, or what waits for its jitter, is given up on record", a_snapshot(paused(**LATEST),
         head=a_record(schedule=a_schedule(**LATEST)), held=(at("10:00"),)), "10:15",
         "Baseline Paused Paused @10:15:00 waiting 10:00"),
    Case("R19 then as Superseded", a_snapshot(FOREVER, head=head(FOREVER, waiting=(at("10:00"),))), "10:20",
         "Superseded 10:00"),
    Case("R19 paused stays paused: no write", a_snapshot(FOREVER, head=head(FOREVER)), "18:30", "nothing"),
    Case("R19 born paused: on record, since it may end by itself", a_snapshot(paused("12:00", generation=1), head=None), "09:31",
         "Baseline Created Paused @09:30:00"),
    Case("R18 paused while disabled: disabled goes first, no record", a_snapshot(paused(enabled=False, generation=3),
         head=head(a_schedule(enabled=False, generation=2), State.DISABLED)), "10:30", "nothing"),
    Case("R18 enabled while paused: paused, on record", a_snapshot(paused("12:00", generation=4),
         head=head(a_schedule(enabled=False, generation=2), State.DISABLED)), "10:30", "Baseline Paused Paused @10:30:00"),
    Case("R11 disabled while paused: on record, since the pause might have ended", a_snapshot(
         paused("12:00", enabled=False, generation=3), head=head(TILL_12)), "10:30", "Baseline Disabled Disabled @10:30:00"),
    Case("R4 paused while held: held goes first, no record", a_snapshot(paused(generation=3, **CHILD), head=head(
         a_schedule(generation=2, **CHILD), State.HELD)), "10:30", "nothing"),
    Case("R3 released while paused: paused, on record", a_snapshot(paused("12:00", **CHILD), definition=a_definition(),
         head=head(paused("12:00", **CHILD), State.HELD)), "10:30", "Baseline Paused Paused @10:30:00"),
    Case("R11 held while paused: on record", a_snapshot(paused("12:00", **CHILD), definition=a_definition(is_enabled=False,
         generation=2), head=head(paused("12:00", **CHILD), **SEEN)), "10:30", "Baseline Held Held @10:30:00"),
    Case("R11 edited while paused: on record", a_snapshot(paused(generation=3, schedule="5 * * * *"), head=head(FOREVER)),
         "10:30", "Baseline Edited Paused @10:30:00"),
    Case("R36 broken while paused: on record", a_snapshot(paused(generation=3, schedule="61 * * * *"), head=head(FOREVER)),
         "10:30", "Baseline Edited Blocked @10:30:00"),
    Case("P4 a pause and a resume unseen", a_snapshot(RESUMED, head=a_record()), "10:00:30",
         "Baseline Edited Active @10:00:30 gives up 1"),
    Case("P5 the log knows a pause that the cache doesn't", a_snapshot(PLAIN, head=head(FOREVER)), "11:00", "LookAgain"),
]  # fmt: skip

RESUMING = [
    Case("R19 resumed: from now, nothing of the pause runs", a_snapshot(RESUMED, head=head(FOREVER)), "11:30",
         "Baseline Resumed Active @11:30:00"),
    Case("K-022 what is due in the second of the resume is not run", a_snapshot(RESUMED, head=head(FOREVER)), "11:00:00",
         "Baseline Resumed Active @11:00:00"),
    Case("R19 untilTime wakes", a_snapshot(TILL_12, head=head(TILL_12)), "11:59:59.9", "nothing", "12:00"),
    Case("R19 at untilTime it resumes by itself", a_snapshot(TILL_12, head=head(TILL_12)), "12:00:00",
         "Baseline Resumed Active @12:00:00"),
    Case("R19 down past untilTime: downtime from there on", a_snapshot(TILL_12, head=head(TILL_12)), "15:30",
         "Baseline Resumed Active @12:00:00"),
    Case("R19 a pause that was set and ended unseen: downtime from its end on", a_snapshot(TILL_12, head=a_record(
         consumed=at("09:59"))), "15:30", "Baseline Resumed Active @12:00:00 gives up 3"),
    Case("R19 what waited and is later than such a pause still counts", a_snapshot(paused("10:30"), head=a_record(),
         held=(at("11:00"),)), "15:30", "Baseline Resumed Active @10:30:00 gives up 1"),
    Case("R19 one that ended at the watermark itself hides nothing: no record", a_snapshot(paused("10:00"), head=a_record(
         consumed=at("10:00"))), "10:20", "nothing", "11:00"),
    Case("P4 an active head of this generation has seen its pause: downtime", a_snapshot(TILL_12, head=head(TILL_12,
         State.ACTIVE)), "12:30", "SkippedMisfire 11:00-12:00 (2)"),
    Case("K-108 an upgrade that hashes otherwise hides nothing: downtime from its end on", a_snapshot(TILL_12, head=head(TILL_12,
         spec_hash="older")), "15:30", "Baseline Resumed Active @12:00:00"),
    Case("R19 an untilTime in the past is no pause", a_snapshot(paused("09:00"), head=a_record()), "09:59", "nothing", "10:00"),
    Case("R19 another step after a pause that is over needs no record", a_snapshot(paused("09:45", generation=4), head=head(
         paused("09:45", generation=3), State.ACTIVE)), "10:20", "nothing", "11:00"),
    Case("R9 born with a pause that is over: from its end", a_snapshot(paused("12:00", generation=1), head=None), "15:30",
         "Baseline Created Active @12:00:00"),
    Case("R9 born with a pause that ends this very moment: from its end", a_snapshot(paused("12:00", generation=1), head=None),
         "12:00:00", "Baseline Created Active @12:00:00"),
    Case("R9 a pause is the reason, too, where the log begins after other things were seen", a_snapshot(replace(FOREVER,
         status=a_status(State.DISABLED)), head=None), "10:30", "Baseline Paused Paused @10:30:00"),
    Case("R19 without a failure in the log pauseAfterFailures doesn't matter: downtime from its end on", a_snapshot(BOTH,
         head=head(BOTH)), "15:30", "Baseline Resumed Active @12:00:00"),
    Case("P6 untilTime moved: the new end is on record", a_snapshot(paused("13:00", generation=3), head=head(TILL_12)), "11:00",
         "Baseline Paused Paused @11:00:00"),
    Case("P6 then that is where it goes on from", a_snapshot(paused("13:00", generation=3), head=head(paused("13:00",
         generation=3))), "15:30", "Baseline Resumed Active @13:00:00"),
    Case("P6 moved unseen, and over: what was the former end is not known, so from now", a_snapshot(paused("11:00",
         generation=3), head=head(TILL_12)), "15:30", "Baseline Resumed Active @15:30:00"),
    Case("P6 made endless: on record, no leader may end it at the former end", a_snapshot(paused(generation=3),
         head=head(TILL_12)), "11:00", "Baseline Paused Paused @11:00:00"),
    Case("R19 removed before its end: from now", a_snapshot(RESUMED, head=head(TILL_12)), "11:30",
         "Baseline Resumed Active @11:30:00"),
    Case("R10 edited and over: from now", a_snapshot(paused("12:00", generation=3, schedule="5 * * * *"), head=head(TILL_12)),
         "15:30", "Baseline Resumed Active @15:30:00"),
    Case("P4 a hold may hide in it: from now", a_snapshot(paused("12:00", **CHILD), definition=a_definition(generation=3),
         head=head(paused("12:00", **CHILD), **SEEN)), "15:30", "Baseline Resumed Active @15:30:00"),
    Case("P4 one step of the definition hides none", a_snapshot(paused("12:00", **CHILD), definition=a_definition(generation=2),
         head=head(paused("12:00", **CHILD), **SEEN)), "15:30", "Baseline Resumed Active @12:00:00"),
    Case("R3 held beyond its end: from now", a_snapshot(paused("12:00", **CHILD), definition=a_definition(generation=3),
         head=head(paused("12:00", **CHILD), State.HELD)), "15:30", "Baseline Released Active @15:30:00"),
    Case("R18 disabled beyond its end: from now", a_snapshot(paused("12:00", generation=4), head=head(
         paused("12:00", enabled=False, generation=3), State.DISABLED)), "15:30", "Baseline Enabled Active @15:30:00"),
    Case("K-041 the clock steps back behind untilTime: not paused again", a_snapshot(TILL_12, head=head(TILL_12, State.ACTIVE,
         consumed="12:00")), "11:58", "nothing", "13:00"),
    Case("R18 disabled with a pause: the condition changes at its end", a_snapshot(paused("12:00", enabled=False), head=head(
         paused("12:00", enabled=False), State.DISABLED)), "11:00", "nothing", "12:00"),
]  # fmt: skip

UNREAD = {"is_log_read": False, "head": None}


def told(state: State, reason: str = "NotPaused", generation: int = 2) -> dict[str, object]:
    is_paused = ConditionStatus.FALSE if reason == "NotPaused" else ConditionStatus.TRUE
    condition = Condition(type="Paused", status=is_paused, reason=reason)
    return {"status": a_status(state, generation=generation, conditions=(condition,))}


LOGS = [
    Case("P9 paused stays paused: not worth a request", a_snapshot(replace(TILL_12, **told(State.PAUSED, "PausedByOwner")),
         **UNREAD), "11:00", "nothing", "12:00"),
    Case("P9 paused without an end: nothing to wait for", a_snapshot(replace(FOREVER, **told(State.PAUSED, "PausedByOwner")),
         **UNREAD), "11:00", "nothing"),
    Case("P9 over: read", a_snapshot(replace(TILL_12, **told(State.PAUSED, "PausedByOwner")), **UNREAD), "12:00", "ReadLog"),
    Case("P9 disabled, and its pause over: the condition says otherwise", a_snapshot(replace(paused("12:00", enabled=False),
         **told(State.DISABLED, "PausedByOwner")), **UNREAD), "12:00", "ReadLog"),
    Case("P9 disabled and not paused", a_snapshot(replace(a_schedule(enabled=False, generation=2), **told(State.DISABLED)),
         **UNREAD), "12:00", "nothing"),
    Case("P9 another condition's reason says nothing of the pause", a_snapshot(a_schedule(enabled=False, generation=2,
         status=a_status(State.DISABLED, generation=2, conditions=(Condition(type="Other", status=ConditionStatus.TRUE,
         reason="PausedByOwner"),))), **UNREAD), "12:00", "nothing"),
    Case("P6 paused by failures: only the log knows whether still", a_snapshot(a_schedule(pause_after_failures=3, generation=2,
         **told(State.PAUSED, "TooManyFailures")), **UNREAD), "10:00", "ReadLog"),
]  # fmt: skip

GUARDED = a_schedule(**THREE)


def streak(count: int, **fields: object) -> dict[str, object]:
    return {"totals": Totals(admitted=9, failed=count, consecutive_failures=count, counted_failures=count,
                             last_failure_time=at("10:00:31"), **fields)}  # fmt: skip


def ended(number: int, outcome: Outcome, when: str = "10:00:31", **fields: object) -> Run:
    status = ScheduleOccurrenceStatus(outcome=outcome, completion_time=at(when))
    return a_run(record=an_admission(number, status=status, **fields))


def after_run(count: int, outcome: Outcome = Outcome.FAILED, schedule: Schedule = GUARDED) -> Snapshot:
    """Build a log with so many failures before its newest run, and how that ended."""
    run = ended(2, outcome, schedule=schedule, **streak(count))
    return a_snapshot(schedule, head=run.record, runs=(run,))


def manual(snapshot: Snapshot, when: str) -> Snapshot:
    return replace(snapshot, last_good_manual_at=at(when))


STOPPED = a_snapshot(GUARDED, head=a_record(3, schedule=GUARDED, state=State.PAUSED, consumed=at("10:01"), **streak(3)))
FIXED = a_schedule(schedule="0 * * * *", input={"fixed": True}, generation=2, **THREE)
FAILURES = [
    Case("P6 the third failure: on record at once, before what is due", after_run(2), "11:00",
         "Baseline Paused Paused @11:00:00 gives up 1"),
    Case("P6 two are not three", after_run(1), "10:30", "nothing", "11:00"),
    Case("P6 without the field nothing stops", after_run(8, schedule=PLAIN), "10:30", "nothing", "11:00"),
    Case("R27 a manual run completed, and none ever failed", manual(after_run(0, Outcome.COMPLETED), "10:20"), "10:30", "nothing",
         "11:00"),
    Case("P6 a good run in between begins anew", after_run(2, Outcome.COMPLETED), "10:30", "nothing", "11:00"),
    Case("P6 so does one that went on, with no pause on record", after_run(3, Outcome.COMPLETED), "10:30", "nothing", "11:00"),
    Case("P6 out of time is a failure", after_run(2, Outcome.EXHAUSTED), "10:30", "Baseline Paused Paused @10:30:00"),
    Case("P6 a cancelled run is none", after_run(2, Outcome.CANCELLED), "10:30", "nothing", "11:00"),
    Case("P6 it stays: no write, no wake-up", STOPPED, "18:30", "nothing"),
    Case("P6 a run that was still going and ends well does not end it", replace(STOPPED, runs=(ended(2, Outcome.COMPLETED),),
         head=a_record(3, schedule=GUARDED, state=State.PAUSED, consumed=at("10:01"), open=(2,), **streak(3))), "10:30",
         "nothing"),
    Case("R10 an edit ends it: from now", replace(STOPPED, schedule=FIXED), "11:30", "Baseline Resumed Active @11:30:00"),
    Case("R10 an irrelevant edit doesn't", replace(STOPPED, schedule=replace(GUARDED, generation=2)), "11:30",
         "Baseline Paused Paused @11:30:00"),
    Case("R18 neither does disabling and enabling", replace(STOPPED, schedule=replace(GUARDED, generation=3)), "11:30",
         "Baseline Edited Paused @11:30:00"),
    Case("R27 a manual run that completed since ends it: from now", manual(STOPPED, "10:20"), "11:30",
         "Baseline Resumed Active @11:30:00"),
    Case("R27 one that completed before the last failure doesn't", manual(STOPPED, "10:00:30"), "11:30", "nothing"),
    Case("R27 one of the same second does, for seconds are all that is on record", manual(STOPPED, "10:00:31"), "11:30",
         "Baseline Resumed Active @11:30:00"),
    Case("R27 one just before it is on record: no pause", manual(after_run(2), "10:00:40"), "10:30", "nothing", "11:00"),
    Case("P6 the failures of a run from before the edit don't count", a_snapshot(FIXED, head=a_record(3, schedule=FIXED,
         revision=2, open=(2,), consumed=at("10:15"), **streak(2)), runs=(ended(2, Outcome.FAILED),)), "10:30", "nothing",
         "11:00"),
    Case("P6 failing while its owner pauses it, too: on record, since that pause ends", a_snapshot(BOTH, head=head(BOTH,
         open=(2,), **streak(2)), runs=(ended(2, Outcome.FAILED, schedule=BOTH),)), "10:30", "Baseline Paused Paused @10:30:00"),
    Case("P6 then the end of the owner's changes nothing", a_snapshot(BOTH, head=head(BOTH, **streak(3))), "12:30", "nothing"),
    Case("P6 and the end of both is now, not untilTime", manual(a_snapshot(BOTH, head=head(BOTH, **streak(3))), "13:00"), "13:30",
         "Baseline Resumed Active @13:30:00"),
    Case("P6 also where a run that went on ended the streak meanwhile", manual(a_snapshot(BOTH, head=head(BOTH, open=(2,),
         **streak(3)), runs=(ended(2, Outcome.COMPLETED, schedule=BOTH),)), "13:00"), "13:30",
         "Baseline Resumed Active @13:30:00"),
    Case("P6 and where the last failure is not in the log yet", manual(a_snapshot(BOTH, head=head(BOTH, open=(2,), **streak(2)),
         runs=(ended(2, Outcome.FAILED, schedule=BOTH),)), "13:00"), "13:30", "Baseline Resumed Active @13:30:00"),
    Case("P11 a run not yet started waits while it is paused", a_snapshot(paused("10:00:30"), head=head(paused("10:00:30"),
         consumed="10:00:10", open=(1,)), runs=(a_run(record=an_admission(1)),)), "10:00:20", "nothing", "10:00:30"),
    Case("P11 and starts after it, within its deadline", a_snapshot(paused("10:00:30"), head=head(paused("10:00:30"),
         State.ACTIVE, consumed="10:00:30", open=(1,)), runs=(a_run(record=an_admission(1)),)), "10:00:30", "CreateJob"),
]  # fmt: skip


@pytest.mark.parametrize("case", [*PAUSING, *RESUMING, *LOGS, *FAILURES], ids=lambda case: case.name)
def test_pauses(case: Case) -> None:
    plan = decide(case.snapshot, now=at(case.now))
    wake = f"{plan.next_wake_at:%H:%M:%S}" if plan.next_wake_at else None
    assert in_words(plan.step) == case.want
    assert wake == (f"{at(case.wake):%H:%M:%S}" if case.wake else None)


def appended(snapshot: Snapshot, now: str) -> Record:
    step = decide(snapshot, now=at(now)).step
    assert isinstance(step, Append)
    return replace(a_record(step.spec.sequence or 0), spec=step.spec)


def test_a_pause_is_no_revision() -> None:
    """R19."""
    assert appended(a_snapshot(FOREVER, head=a_record(revision=4)), "10:15").spec.revision == 4


COUNTS = [
    ("R29 the record of the pause counts all", after_run(2), 3),
    ("P6 an edit begins anew", replace(STOPPED, schedule=FIXED), 0),
    ("P6 so does a good manual run", manual(STOPPED, "10:20"), 0),
    ("P6 the end of the owner's pause doesn't", a_snapshot(BOTH, head=head(BOTH, **streak(2))), 2),
    ("P6 nor does it keep failures that a good run ended", a_snapshot(BOTH, head=head(BOTH, open=(2,), **streak(2)),
     runs=(ended(2, Outcome.COMPLETED, schedule=BOTH),)), 0),
    ("P6 a pause by failures on record outlives a run that still went on", a_snapshot(replace(GUARDED, generation=2),
     head=a_record(3, schedule=GUARDED, state=State.PAUSED, open=(2,), **streak(3)), runs=(ended(2, Outcome.COMPLETED),)), 3),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "want"), [row[1:] for row in COUNTS], ids=[row[0] for row in COUNTS])
def test_the_next_record_counts(snapshot: Snapshot, want: int) -> None:
    totals = appended(snapshot, "12:30").spec.totals
    assert totals is not None
    assert totals.counted_failures == want


def test_after_an_edit_it_takes_as_many_failures_again() -> None:
    """P6: what an edit mends gets its full number of tries; the streak that people see goes on."""
    resumed = appended(replace(STOPPED, schedule=FIXED), "10:30")
    run = ended(5, Outcome.FAILED, schedule=FIXED, revision=2, totals=resumed.spec.totals, open=(5,))
    snapshot = a_snapshot(FIXED, head=run.record, runs=(run,))
    assert log.failures_in_a_row(snapshot, FIXED) == 1
    assert totals_now(run.record, (run,)).consecutive_failures == 4
    assert not pause.is_paused_by_failures(snapshot)


def test_an_empty_log_has_no_failures() -> None:
    assert not pause.is_paused_by_failures(a_snapshot(GUARDED, head=None))
    assert not pause.is_paused_by_failures(a_snapshot(None, head=None))


def test_nothing_pauses_a_schedule_that_is_gone() -> None:
    """R20."""
    assert not pause.is_paused(a_snapshot(None, head=None), now=at("10:00"))


MESSAGES = [
    ("for ever", a_snapshot(FOREVER, head=head(FOREVER)), ("PausedByOwner", "paused until spec.pause is removed")),
    ("until", a_snapshot(TILL_12, head=head(TILL_12)), ("PausedByOwner", "paused until 2026-01-01T12:00:00Z")),
    ("why", a_snapshot(a_schedule(pause=Pause(reason="incident 7", until_time=at("12:00")))),
     ("PausedByOwner", "incident 7 (until 2026-01-01T12:00:00Z)")),
    ("failures", STOPPED, ("TooManyFailures", "3 runs failed in a row (pauseAfterFailures 3): an edit of what runs or when, "
     "or a good manual run, resumes it")),
    ("the owner goes first", a_snapshot(BOTH, head=head(BOTH, **streak(3))),
     ("PausedByOwner", "paused until 2026-01-01T12:00:00Z")),
    ("not", a_snapshot(), None),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "want"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES])
def test_why(snapshot: Snapshot, want: tuple[str, str] | None) -> None:
    """R29, R36."""
    assert pause.why(snapshot, now=at("10:30")) == want


def test_the_record_says_why_it_is_paused() -> None:
    """R29."""
    message = appended(after_run(2), "10:30").spec.message
    assert message is not None
    assert message.startswith("Paused at generation 1: 3 runs failed in a row (pauseAfterFailures 3): an edit")
    by_owner = a_snapshot(a_schedule(pause=Pause(reason="incident 7"), generation=2), head=a_record())
    assert appended(by_owner, "09:45").spec.message == (
        f"Paused at generation 2: incident 7 (until spec.pause is removed); instants after {CREATED:%Y-%m-%dT%H:%M:%SZ} "
        "through 2026-01-01T09:45:00Z are consumed"
    )
    born_paused = a_snapshot(a_schedule(pause=Pause(reason="incident 7")), head=None)
    assert appended(born_paused, "09:45").spec.message == (
        "Created at generation 1: incident 7 (until spec.pause is removed)"
    )


def test_the_record_of_another_switch_does_not_tell_of_the_pause() -> None:
    """R29: its owner disables it while it is paused."""
    disabled = a_snapshot(paused(enabled=False, generation=3), head=head(FOREVER))
    assert (appended(disabled, "10:30").spec.message or "").startswith("Disabled at generation 3; instants after")


def test_a_paused_schedule_goes_on_with_its_runs() -> None:
    """R19: pause stops admissions, not runs."""
    run = a_run(job=a_job(finished_at=at("10:20")), record=an_admission(schedule=FOREVER))
    snapshot = a_snapshot(FOREVER, head=head(FOREVER, open=(2,)), runs=(run,))
    assert in_words(decide(snapshot, now=at("10:25")).step) == "WriteOutcome"
