"""What goes on, and what is closed, when a record is set aside (R31)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from support.builders import (
    a_definition,
    a_job,
    a_record,
    a_run,
    a_schedule,
    a_snapshot,
    a_status,
    an_admission,
    at,
    listed,
    of_definition,
)
from workflow_schedules.api.occurrence import Decision, Outcome, ScheduleOccurrenceStatus, Totals
from workflow_schedules.api.schedule import Counts, Pause, State, WorkflowScheduleStatus
from workflow_schedules.core.decide import decide
from workflow_schedules.core.listed import Listed
from workflow_schedules.core.model import Job, JobPhase, ObjectRef, Record, Schedule, Snapshot
from workflow_schedules.core.plan import Unblock
from workflow_schedules.core.runs import SETTLE
from workflow_schedules.core.unblock import SetAside, blocked_message, set_aside

NOW = "10:20:30"


def name(number: int) -> str:
    return a_record(number).ref.name


def ended(number: int, scheduled: str) -> Record:
    status = ScheduleOccurrenceStatus(outcome=Outcome.COMPLETED, completion_time=at("10:10"))
    return an_admission(number, at(scheduled), status=status)


def no_jobs(_ref: ObjectRef) -> Job | None:
    return None


def has(job: Job) -> Callable[[ObjectRef], Job | None]:
    return lambda ref: job if ref == job.ref else None


def resolve(
    found: list[Listed],
    number: int,
    *,
    jobs: Callable[[ObjectRef], Job | None] = no_jobs,
    schedule: Schedule | None = None,
) -> SetAside:
    schedule = schedule or a_schedule()
    step = Unblock(record=name(number), state=State.ACTIVE)
    return set_aside(a_snapshot(schedule), schedule, found, jobs, step=step, now=at(NOW))


BASE = listed(a_record(1))
OPEN = listed(an_admission(2))
STARTED = ScheduleOccurrenceStatus(outcome=Outcome.RUNNING, start_time=at("10:00:01"), job_uid="job-2")
RUNS = listed(an_admission(2, status=STARTED))


@dataclass(frozen=True, slots=True)
class Case:
    """A log, the record that blocks, and what the Baseline says."""

    name: str
    log: list[Listed]
    blocking: int
    number: int
    previous: str | None
    open: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()


CASES = [
    Case("the head can't be read", [BASE, listed(a_record(2), is_readable=False)], 2, 3, "record-2"),
    Case("nor its run: closed", [BASE, listed(an_admission(2), is_readable=False)], 2, 3, "record-2", closed=(2,)),
    Case("one in the middle: what follows it is trusted",
         [BASE, listed(a_record(2), is_readable=False), listed(an_admission(3, open=(3,)))], 2, 4, "record-3", (3,)),
    Case("a broken link: what follows is not trusted", [BASE, OPEN, listed(an_admission(3, open=(2, 3)), previous="x")],
         3, 4, "record-3", (2,), (3,)),
    Case("nor what follows that",
         [BASE, OPEN, listed(an_admission(3, open=(3,)), previous="x"), listed(an_admission(4, open=(3, 4)))],
         3, 5, "record-4", (2,), (3, 4)),
    Case("it can be read and follows, but says what can't be", [BASE, OPEN, listed(an_admission(3, open=(2, 3)))],
         3, 4, "record-3", (2,), (3,)),
    Case("a run that the head calls open, and that is set aside", [BASE, OPEN, listed(an_admission(3, open=(2, 3)))],
         2, 4, "record-3", (3,), (2,)),
    Case("gone: the number is not used again", [BASE], 2, 3, "record-1"),
    Case("forged beyond a hole", [BASE, listed(an_admission(7), previous="x")], 7, 8, "record-7", closed=(7,)),
    Case("nothing is left", [], 5, 6, None),
    Case("nothing is left to trust", [listed(an_admission(2))], 2, 3, "record-2", closed=(2,)),
    Case("all runs that the head calls open go on",
         [BASE, OPEN, listed(an_admission(3, open=(2, 3))), listed(a_record(4), is_readable=False)], 4, 5, "record-4", (2, 3)),
    Case("one that runs and is set aside is open no more", [BASE, RUNS, listed(an_admission(3, open=(2, 3)))],
         2, 4, "record-3", (3,), (2,)),
    Case("what was set aside before counts for nothing", [BASE, listed(an_admission(2), is_readable=False), listed(a_record(
        3, reason="Unblocked")), listed(an_admission(4)), listed(a_record(5), is_readable=False)], 5, 6, "record-5", (4,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_how_the_log_goes_on(case: Case) -> None:
    """R31 P3 P8."""
    found = resolve(case.log, case.blocking)
    spec = found.spec
    assert (spec.decision, spec.reason, spec.state) == (Decision.BASELINE, "Unblocked", State.ACTIVE)
    assert (spec.sequence, spec.previous_uid, spec.open) == (case.number, case.previous, case.open)
    assert tuple(record.number for record in found.runs) == case.open
    assert tuple(closing.listed.number for closing in found.closings) == case.closed
    assert {closing.status.reason for closing in found.closings} <= {"SetAside"}
    assert spec.consumed_through_time == at("10:20:30")
    assert found.waits_for is None


TORN = listed(an_admission(2), is_readable=False)
TORN_END = listed(ended(2, "10:00"), is_readable=False)
FORGED = listed(an_admission(3, open=(3,)), previous="x")
SEEN_1 = a_schedule(status=a_status(log_head=1, counts=Counts(admitted=5)))
SEEN_2 = a_schedule(status=a_status(log_head=2, counts=Counts(admitted=6)))
ADMITTED = [
    ("one that can't be read", [BASE, TORN], 2, no_jobs, None, 1),
    ("though it is the very first", [listed(an_admission(1), is_readable=False)], 1, no_jobs, None, 1),
    ("though it has ended", [BASE, TORN_END], 2, no_jobs, None, 1),
    ("and one behind it", [BASE, TORN, listed(an_admission(3, open=(3,)), is_readable=False)], 3, no_jobs, None, 2),
    ("nothing else that can't be read", [BASE, listed(a_record(2), is_readable=False)], 2, no_jobs, None, 0),
    ("not what the last one to trust has counted", [BASE, TORN, listed(a_record(3, totals=Totals(admitted=1)))], 2, no_jobs,
     None, 1),
    ("not what the status has counted", [BASE, TORN], 2, no_jobs, SEEN_2, 6),
    ("but what it has not seen", [listed(a_record(1), is_readable=False), TORN], 2, no_jobs, SEEN_1, 6),
    ("not what does not follow", [BASE, OPEN, FORGED], 3, no_jobs, None, 0),
    ("unless it runs", [BASE, OPEN, FORGED], 3, has(a_job(number=3)), None, 1),
    ("nor what follows that", [BASE, OPEN, FORGED, listed(an_admission(4, open=(4,)))], 3, no_jobs, None, 0),
    ("what lies beyond a hole, that may have been pruned", [listed(an_admission(5), is_readable=False)], 5, no_jobs, None, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("log", "blocking", "jobs", "schedule", "want"), [row[1:] for row in ADMITTED], ids=[row[0] for row in ADMITTED]
)
def test_what_is_set_aside_counts_for_a_limit(
    log: list[Listed], blocking: int, jobs: Callable[[ObjectRef], Job | None], schedule: Schedule | None, want: int
) -> None:
    """R31 P6: what was decided there is consumed."""
    totals = resolve(log, blocking, jobs=jobs, schedule=schedule).spec.totals
    assert totals is not None
    assert totals.admitted == want


def test_the_number_is_beyond_all_that_were_seen() -> None:
    """R31 P8: also what the status saw of records that are gone, and a name that holds no number says nothing."""
    seen = a_schedule(status=a_status(log_head=9))
    spec = resolve([BASE, OPEN], 3, schedule=seen).spec
    assert (spec.sequence, spec.previous_uid) == (10, "record-2")
    behind = resolve([BASE, OPEN, listed(a_record(3), is_readable=False)], 3, schedule=seen).spec
    assert (behind.sequence, behind.previous_uid) == (10, "record-2"), (
        "what is not the next one follows what is trusted"
    )
    for log, number in (([], 1), ([BASE], 2)):
        step = Unblock(record="odd", state=State.ACTIVE)
        assert set_aside(a_snapshot(), a_schedule(), log, no_jobs, step=step, now=at(NOW)).spec.sequence == number


def test_the_message_is_cut_to_what_the_schema_takes() -> None:
    step = Unblock(record="r" * 5000, state=State.ACTIVE)
    message = set_aside(a_snapshot(), a_schedule(), [BASE], no_jobs, step=step, now=at(NOW)).spec.message
    assert len(message or "") == 4096


def test_what_the_last_record_to_trust_knew() -> None:
    """R31 P5: a record that can't be read breaks no chain, and is none to trust."""
    head = listed(an_admission(2, generation=7, waiting=(at("10:15"),)))
    found = resolve([BASE, head, *(listed(a_record(n), is_readable=False) for n in (3, 4))], 3)
    assert (found.known_generation, found.spec.waiting) == (7, (at("10:15"),))
    assert found.spec.message is not None
    assert found.spec.message.startswith("Unblocked at generation 1")
    assert found.spec.message.endswith(f"; set aside: {name(3)}")
    assert resolve([BASE, head, listed(a_record(3, generation=9))], 3).known_generation == 7, (
        "what blocks is not trusted"
    )
    assert resolve([], 3).known_generation is None
    assert resolve([], 3).spec.waiting == ()


def test_a_run_with_its_own_job_keeps_its_slot_whoever_called_it_open() -> None:
    """R31: overlap is not cleared."""
    log = [BASE, listed(an_admission(2), previous="x")]
    found = resolve(log, 2, jobs=has(a_job()))
    assert (found.spec.open, [record.number for record in found.runs], found.closings) == ((2,), [2], ())
    assert resolve(log, 2, jobs=has(a_job(owner_uid="forged"))).spec.open == ()


@pytest.mark.parametrize(
    ("job", "waits", "want"),
    [
        (a_job(), True, "SetAside"),
        (a_job(JobPhase.SUSPENDED), True, "SetAside"),
        (a_job(JobPhase.COMPLETED), False, "JobComplete"),
        (a_job(JobPhase.FAILED, reason="DeadlineExceeded"), False, "DeadlineExceeded"),
        (a_job(is_gone=True), False, "SetAside"),
        (a_job(owner_uid="other"), False, "SetAside"),
    ],
    ids=["active", "suspended", "complete", "exhausted", "gone", "another's"],
)
def test_a_run_that_can_not_be_read_ends_as_its_job_did(job: Job, waits: bool, want: str) -> None:
    """R31: closed as far as it can be known, and nothing beside what still runs."""
    found = resolve([BASE, listed(an_admission(2), is_readable=False)], 2, jobs=has(job))
    assert (found.waits_for == job.ref) is waits
    if not waits:
        assert [closing.status.reason for closing in found.closings] == [want]


def test_the_job_of_a_record_that_is_gone_is_waited_for() -> None:
    assert resolve([BASE], 2, jobs=has(a_job())).waits_for == a_job().ref
    assert resolve([BASE], 2, jobs=has(a_job(JobPhase.COMPLETED))).waits_for is None
    assert resolve([BASE], 2, jobs=has(a_job(is_gone=True))).waits_for is None


def test_what_is_known_of_a_run_that_is_set_aside_stays() -> None:
    """R31: and it counts as a failure of its own revision."""
    log = [BASE, RUNS, listed(an_admission(3, open=(2, 3)))]
    (closing,) = resolve(log, 2).closings
    assert (closing.status.start_time, closing.status.job_uid) == (at("10:00:01"), "job-2")
    pausing = a_schedule(pause_after_failures=3)
    runs = [an_admission(2, schedule=pausing), an_admission(3, schedule=pausing, open=(2, 3))]
    totals = resolve([listed(a_record(1, schedule=pausing)), *map(listed, runs)], 2, schedule=pausing).spec.totals
    assert totals is not None
    assert totals.counted_failures == 1


def test_totals_come_from_the_last_record_to_trust_or_the_status() -> None:
    """R31 P3."""
    head = an_admission(2, totals=Totals(admitted=4, completed=3))
    log = [BASE, listed(head), listed(a_record(3), is_readable=False)]
    assert resolve(log, 3).spec.totals == Totals(admitted=4, completed=3)
    newer = a_schedule(status=a_status(log_head=3, counts=Counts(admitted=9), consecutive_failures=2))
    found = resolve(log, 3, schedule=newer).spec.totals
    assert found is not None
    assert (found.admitted, found.consecutive_failures) == (9, 2)
    log = [BASE, listed(ended(2, "10:00")), listed(a_record(3), is_readable=False)]
    counted = resolve(log, 3).spec.totals
    assert counted is not None
    assert (counted.completed, counted.last_successful_time) == (1, at("10:10"))
    assert resolve(log, 3).runs == (), "it has ended"


STORED = {"counts": Counts(admitted=9, completed=5), "consecutive_failures": 2, "last_schedule_time": at("09:00"),
          "last_successful_time": at("08:01"), "last_failure_time": at("09:01")}  # fmt: skip
KNOWN = Totals(admitted=9, completed=5, consecutive_failures=2, last_schedule_time=at("09:00"),
               last_successful_time=at("08:01"), last_failure_time=at("09:01"))  # fmt: skip
LOGGED = Totals(admitted=4)


def logged(number: int) -> Record:
    return a_record(number, totals=LOGGED, consumed=at("10:15"))


TOTALS = [
    ("nothing is left: what the status says", [], a_status(log_head=2, **STORED), KNOWN),
    ("the status is newer", [listed(logged(2))], a_status(log_head=3, **STORED), KNOWN),
    ("the status is as new", [listed(logged(2))], a_status(log_head=2, **STORED), LOGGED),
    ("the status is older", [listed(logged(3))], a_status(log_head=2, **STORED), LOGGED),
    ("the status says nothing", [listed(logged(2))], a_status(log_head=3), LOGGED),
    ("nor of failures", [], a_status(log_head=3, counts=Counts(admitted=9)), Totals(admitted=9)),
    ("there is no status", [], None, Totals()),
]


@pytest.mark.parametrize(("log", "status", "want"), [row[1:] for row in TOTALS], ids=[row[0] for row in TOTALS])
def test_whose_totals_go_on(log: list[Listed], status: WorkflowScheduleStatus | None, want: Totals) -> None:
    """R31 P3: those of whichever is newer."""
    assert resolve(log, 4, schedule=a_schedule(status=status)).spec.totals == want


def test_which_outcomes_are_counted_in_them() -> None:
    """R31 P3: of runs that the last record to trust called open, however they ended; each once."""
    lost = listed(an_admission(2), is_readable=False)
    spec = resolve([BASE, lost, listed(an_admission(3, open=(2, 3)))], 2).spec
    assert spec.totals is not None
    assert (spec.totals.failed, spec.open) == (1, (3,)), "what can't be read has failed"
    others = [listed(ended(2, "09:00")), listed(ended(3, "10:00")), listed(a_record(4, open=(3,)))]
    counted = resolve([BASE, *others, listed(a_record(5), is_readable=False)], 5).spec.totals
    assert counted is not None
    assert counted.completed == 1, "number 2 was counted when it left what is open"
    running = an_admission(2, status=ScheduleOccurrenceStatus(outcome=Outcome.RUNNING))
    going_on = resolve([BASE, listed(running), listed(a_record(3), is_readable=False)], 3)
    assert going_on.spec.open == (2,)
    assert going_on.spec.totals == Totals()


def test_the_watermark_and_what_was_given_up() -> None:
    """R31 I3 I4: what was due and undecided is named, and the watermark never goes back."""
    head = a_record(1, consumed=at("08:30"))
    spec = resolve([listed(head)], 2).spec
    assert spec.span is not None
    assert (spec.span.first_time, spec.span.last_time, spec.span.count) == (at("09:00"), at("10:00"), 2)
    later = a_schedule(status=a_status(consumed=at("11:00")))
    assert resolve([BASE], 2, schedule=later).spec.consumed_through_time == at("11:00")
    ahead = listed(a_record(1, consumed=at("12:00")))
    assert resolve([ahead], 2, schedule=later).spec.consumed_through_time == at("12:00")


EARLY, NO_CRON = at("08:30"), a_schedule(schedule="no")
GIVEN_UP = [
    ("what was due", a_record(1, consumed=EARLY), a_schedule(), 2),
    ("what waited is not given up twice", a_record(1, consumed=EARLY, waiting=(at("09:00"),)), a_schedule(), 1),
    ("nothing while it was disabled", a_record(1, consumed=EARLY, state=State.DISABLED), a_schedule(), None),
    ("nor under a calendar that nobody knows any more", a_record(1, consumed=EARLY), a_schedule(schedule="5 * * * *"), None),
    ("nor while the spec is refused", a_record(1, schedule=NO_CRON, consumed=EARLY), NO_CRON, None),
]  # fmt: skip


@pytest.mark.parametrize(("head", "schedule", "want"), [row[1:] for row in GIVEN_UP], ids=[row[0] for row in GIVEN_UP])
def test_what_was_given_up(head: Record, schedule: Schedule, want: int | None) -> None:
    """R31 I3."""
    spec = resolve([listed(head)], 2, schedule=schedule).spec
    assert (spec.span.count if spec.span else None) == want


def blocked(annotation: str | None, **known: object) -> Snapshot:
    schedule = replace(a_schedule(), unblock=annotation)
    return replace(a_snapshot(schedule, contradiction="record r is gone"), blocked_by="r", **known)


def of(schedule: Schedule | None, **known: object) -> Snapshot:
    asked = replace(schedule, unblock="r") if schedule else None
    return replace(a_snapshot(asked, contradiction="record r is gone", **known), blocked_by="r")


REFUSED = {"schedule": a_schedule(**of_definition(input={"day": 1})),
           "definition": a_definition(input_schema={"properties": {"day": {"type": "string"}}})}  # fmt: skip
GOES_ON_AS = [
    ("as it is declared", of(a_schedule()), State.ACTIVE),
    ("R18 disabled meanwhile", of(a_schedule(enabled=False)), State.DISABLED),
    ("R19 paused meanwhile", of(a_schedule(pause=Pause(until_time=at("12:00")))), State.PAUSED),
    ("R19 a pause that is over", of(a_schedule(pause=Pause(until_time=at("10:00")))), State.ACTIVE),
    ("R24 with an input that its definition refuses", of(**REFUSED), State.BLOCKED),
    ("R20 not while it is deleted", of(a_schedule(is_deleting=True)), None),
    ("R20 nor afterwards", of(None), None),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "want"), [row[1:] for row in GOES_ON_AS], ids=[row[0] for row in GOES_ON_AS])
def test_the_state_it_goes_on_in(snapshot: Snapshot, want: State | None) -> None:
    """R31: set aside, it does what the schedule says now."""
    step = decide(snapshot, now=at("10:20:30")).step
    assert (step.state if isinstance(step, Unblock) else None) is want


WAITING = a_run(job=a_job(JobPhase.WAITING, started=None), is_create_unanswered=True)
GOES_ON = a_run(outcome=Outcome.RUNNING, job=a_job())
DECISIONS = [
    ("nobody asks", blocked(None), False, None,
     "to set it aside: kubectl annotate wfs -n team hourly workflow-schedules.dev/unblock=r"),
    ("another is named", blocked("q"), False, None, "names q, which does not block: write r"),
    ("it is named", blocked("r"), True, None, "as soon as no write of an earlier holder can arrive"),
    ("P12 not right after a takeover", blocked("r", since_acquired=SETTLE), False, "10:20:31", "as soon as"),
    ("P12 for as long as it takes", blocked("r", since_acquired=SETTLE - timedelta(seconds=5)), False, "10:20:36", "as soon as"),
    ("P12 but then", blocked("r", since_acquired=SETTLE + timedelta(seconds=1)), True, None, "as soon as"),
    ("P12 not while an own create may arrive", blocked("r", runs=(WAITING,)),
     False, "10:20:31", "as soon as"),
    ("P12 nor the outcome of one of two", blocked("r", runs=(GOES_ON, replace(GOES_ON, is_outcome_unanswered=True))),
     False, "10:20:31", "as soon as"),
    ("not while its Job runs", blocked("r", waits_for=a_job()), False, None, "when its Job"),
    ("nothing is named, and nothing blocks by name", a_snapshot(contradiction="record r is gone"), False, None, "r is gone"),
    ("the schedule is gone", of(None), False, None, "r is gone"),
    ("its Job is gone", blocked("r", waits_for=a_job(is_gone=True)), True, None, "r is gone"),
    ("but afterwards", blocked("r", waits_for=a_job(JobPhase.FAILED)), True, None, "r is gone"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "snapshot", "want", "wake", "says"), DECISIONS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_when_it_is_set_aside(case: str, snapshot: Snapshot, want: bool, wake: str | None, says: str) -> None:
    """R31: only the one that blocks, and named so in the conditions."""
    assert case
    plan = decide(snapshot, now=at("10:20:30"))
    assert isinstance(plan.step, Unblock) is want
    assert (plan.step.record if isinstance(plan.step, Unblock) else "r") == "r"
    assert plan.next_wake_at == (at(wake) if wake else None)
    assert says in blocked_message(snapshot)
