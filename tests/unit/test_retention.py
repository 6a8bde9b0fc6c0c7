"""What may be removed, and when (R22, R26, R30; P1, P7)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import an_admission, at
from workflow_schedules.api.occurrence import Outcome, ScheduleOccurrenceStatus, Transition
from workflow_schedules.core.model import ObjectRef
from workflow_schedules.core.retention import (
    FinishedJob,
    JobLimits,
    KeptRecord,
    Times,
    prunable_records,
    prune_deleted,
    prune_jobs,
    prune_records,
    prune_refused,
    recorded_at,
)

K = timedelta(seconds=180)
NOON = at("12:00")
COMPLETED, FAILED, EXHAUSTED = Outcome.COMPLETED, Outcome.FAILED, Outcome.EXHAUSTED


def times(now: datetime = NOON, *, since_acquired: timedelta = timedelta(hours=3)) -> Times:
    return Times(now=now, name_kept=K, since_acquired=since_acquired)


def job(
    number: int,
    minutes_ago: float = 30.0,
    *,
    is_successful: bool = True,
    recorded_seconds_ago: float | None = -1.0,
    ttl_seconds: int | None = None,
) -> FinishedJob:
    """A Job that ended so long ago, its result on record at once unless told otherwise; None for not known to be."""
    ended = NOON - timedelta(minutes=minutes_ago)
    recorded = None if recorded_seconds_ago is None else NOON - timedelta(seconds=recorded_seconds_ago)
    return FinishedJob(
        ref=ObjectRef(namespace="team", name=f"j{number}"),
        uid=f"job-{number}",
        is_successful=is_successful,
        created_at=ended - timedelta(minutes=1),
        ended_at=ended,
        recorded_at=ended if recorded_seconds_ago == -1.0 else recorded,
        ttl=None if ttl_seconds is None else timedelta(seconds=ttl_seconds),
    )


@dataclass(frozen=True)
class JobCase:
    name: str
    jobs: list[FinishedJob]
    limits: JobLimits
    gone: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    next_at: datetime | None = None
    since_acquired: timedelta = timedelta(hours=3)


OLDEST_FIRST = [job(1, 50), job(2, 40), job(3, 30), job(4, 20)]
JOB_CASES = [
    JobCase("within the limits nothing goes", OLDEST_FIRST, JobLimits(successful=4, failed=0)),
    JobCase("the oldest beyond the limit go", OLDEST_FIRST, JobLimits(successful=2, failed=0), ["j1", "j2"]),
    JobCase("no limit keeps all", OLDEST_FIRST, JobLimits()),
    JobCase("a limit of 0 keeps none", OLDEST_FIRST[:2], JobLimits(successful=0, failed=0), ["j1", "j2"]),
    JobCase(
        "each outcome has its own limit",
        [job(1, 50, is_successful=False), job(2, 40), job(3, 30, is_successful=False)],
        JobLimits(successful=1, failed=1),
        ["j1"],
    ),
    JobCase(
        "one that stays lets a newer one go",
        [job(1, 50), job(2, 40, is_successful=False)],
        JobLimits(successful=1, failed=0),
        ["j2"],
    ),
    JobCase(
        "not within K after the result is on record (R26, P1)",
        [job(1, 30, recorded_seconds_ago=100), job(2, 20)],
        JobLimits(successful=1, failed=1),
        next_at=NOON + timedelta(seconds=80),
    ),
    JobCase(
        "one whose result is not known to be on record is read first (R26)",
        [job(1, 50, recorded_seconds_ago=None), job(2, 40), job(3, 30)],
        JobLimits(successful=1, failed=1),
        gone=["j2"],
        unread=["j1"],
    ),
    JobCase(
        "not within K after this epoch was acquired (P1)",
        OLDEST_FIRST,
        JobLimits(successful=3, failed=0),
        next_at=NOON + timedelta(seconds=120),
        since_acquired=timedelta(seconds=60),
    ),
    JobCase(
        "the oldest go first, however they are listed",
        OLDEST_FIRST[::-1],
        JobLimits(successful=2, failed=0),
        ["j1", "j2"],
    ),
    JobCase(
        "not within K after its end, where its result is not known to be on record (P1)",
        [job(1, 1, recorded_seconds_ago=None)],
        JobLimits(successful=0),
        next_at=NOON + timedelta(seconds=120),
    ),
    JobCase(
        "not within K after its creation, where another clock says when it ended (P1)",
        [replace(job(1, 10), created_at=NOON - timedelta(seconds=60))],
        JobLimits(successful=0),
        next_at=NOON + timedelta(seconds=120),
    ),
    JobCase(
        "the first of those that wait wakes",
        [job(1, 30, recorded_seconds_ago=100), job(2, 20, recorded_seconds_ago=60)],
        JobLimits(successful=0),
        next_at=NOON + timedelta(seconds=80),
    ),
    JobCase("its template's time to live is over (R22)", [job(1, 10, ttl_seconds=600)], JobLimits(), ["j1"]),
    JobCase(
        "its template's time to live is not over (R22)",
        [job(1, 10, ttl_seconds=900)],
        JobLimits(),
        next_at=NOON + timedelta(minutes=5),
    ),
    JobCase(
        "a time to live of 0 waits for K",
        [job(1, 2, ttl_seconds=0)],
        JobLimits(),
        next_at=NOON + timedelta(minutes=1),
    ),
    JobCase("a limit wins over a longer time to live", [job(1, 10, ttl_seconds=9000)], JobLimits(successful=0), ["j1"]),
]


@pytest.mark.parametrize("case", JOB_CASES, ids=lambda case: case.name)
def test_jobs(case: JobCase) -> None:
    plan = prune_jobs(case.jobs, case.limits, times(since_acquired=case.since_acquired))
    assert [each.ref.name for each in plan.now] == case.gone
    assert [each.ref.name for each in plan.unread] == case.unread
    assert plan.next_at == case.next_at


def record(
    number: int,
    outcome: Outcome | None = None,
    *,
    is_finished: bool = True,
    finished_seconds_ago: float | None = None,
    is_request: bool = False,
    gone_since: datetime | None = None,
) -> KeptRecord:
    """Record n is n minutes younger than two hours; without an outcome it is a skip."""
    created = NOON - timedelta(minutes=120 - number)
    finished = created if finished_seconds_ago is None else NOON - timedelta(seconds=finished_seconds_ago)
    return KeptRecord(
        ref=ObjectRef(namespace="team", name=f"r{number}"),
        uid=f"record-{number}",
        number=None if is_request else number,
        outcome=outcome,
        created_at=created,
        finished_at=finished if is_finished else None,
        schedule_name="hourly",
        open=(),
        gone_since=gone_since,
        lease=None,
    )


@dataclass(frozen=True)
class RecordCase:
    name: str
    records: list[KeptRecord]
    want: list[int]
    surplus: int = 100
    log_head: int | None = 50
    open_numbers: tuple[int, ...] = ()
    with_jobs: tuple[int, ...] = ()
    since_acquired: timedelta = timedelta(hours=3)


SKIPS = [record(number) for number in range(1, 6)]
RECORD_CASES = [
    RecordCase("as many as are too many, oldest first", SKIPS, [1, 2], surplus=2),
    RecordCase("never the newest (R30)", SKIPS, [1, 2, 3, 4]),
    RecordCase("nothing without a surplus", SKIPS, [], surplus=-3),
    RecordCase("only below the head that the status names (P7)", SKIPS, [1, 2], log_head=3),
    RecordCase("nothing where the status names none (P7)", SKIPS, [], log_head=None),
    RecordCase("no unfinished run (R30)", [record(1, is_finished=False), record(2), record(3)], [2]),
    RecordCase(
        "no run that the newest calls open, ended or not (P3, P7)",
        [record(1, COMPLETED), *SKIPS[1:3], record(4, COMPLETED)],
        [2, 3],
        open_numbers=(1,),
    ),
    RecordCase(
        "neither the newest Completed nor the newest Failed (R30)",
        [record(1, COMPLETED), record(2, FAILED), record(3, COMPLETED), record(4, FAILED), record(5), record(6)],
        [1, 2, 5],
    ),
    RecordCase("Exhausted is not Failed", [record(1, EXHAUSTED), record(2)], [1]),
    RecordCase("nothing before its Job", SKIPS, [1, 3, 4], with_jobs=(2,)),
    RecordCase(
        "nothing that ended within K (R30)",
        [record(1, FAILED, finished_seconds_ago=179), record(2, FAILED), record(3)],
        [],
    ),
    RecordCase(
        "what ended K ago goes", [record(1, FAILED, finished_seconds_ago=180), record(2, FAILED), record(3)], [1]
    ),
    RecordCase("nothing within K of a takeover (P1)", SKIPS, [], since_acquired=timedelta(seconds=179)),
    RecordCase(
        "of requests none is the newest Completed or Failed, so those of the log stay (R30)",
        [
            record(1, COMPLETED),
            record(2, FAILED),
            record(3),
            record(4, COMPLETED, is_request=True),
            record(5, FAILED, is_request=True),
        ],
        [4, 5],
    ),
    RecordCase(
        "the newest of the log stays, though a request is newer (R30)",
        [record(1), record(2), record(3, COMPLETED, is_request=True)],
        [1, 3],
    ),
    RecordCase(
        "what says since when the schedule is gone goes with the last (R20)",
        [record(1), record(2, COMPLETED, is_request=True, gone_since=NOON), record(3)],
        [1],
    ),
    RecordCase(
        "requests count as the others do (R27)",
        [record(1, COMPLETED, is_request=True), record(2, COMPLETED), record(3)],
        [1],
    ),
    RecordCase(
        "an unfinished request stays", [record(1, is_request=True, is_finished=False), record(2), record(3)], [2]
    ),
]


@pytest.mark.parametrize("case", RECORD_CASES, ids=lambda case: case.name)
def test_records(case: RecordCase) -> None:
    by_number = {int(each.ref.name[1:]): each for each in case.records}
    prunable = prunable_records(
        case.records,
        log_head=case.log_head,
        open_numbers=case.open_numbers,
        with_jobs={by_number[number].ref for number in case.with_jobs},
    )
    plan = prune_records(prunable, surplus=case.surplus, times=times(since_acquired=case.since_acquired))
    assert [int(each.ref.name[1:]) for each in plan.now] == case.want


def test_records_say_when_the_next_may_go() -> None:
    ended = [record(number, FAILED, finished_seconds_ago=ago) for number, ago in ((1, 60), (2, 100), (3, 80))]
    prunable = prunable_records([*ended, record(4, FAILED), record(5)], log_head=9, open_numbers=(), with_jobs=())
    assert prune_records(prunable, surplus=9, times=times()).next_at == NOON + timedelta(seconds=80)


def test_of_the_same_second_requests_go_first_and_the_log_by_number() -> None:
    """R30: the API server's clock tells seconds, and the names of a log need not sort."""
    second = {"created_at": NOON - timedelta(hours=1), "finished_at": NOON - timedelta(hours=1)}
    named = [(10, "a"), (2, "b"), (1, "c"), (None, "e"), (None, "d")]
    records = [
        replace(record(1), number=number, ref=ObjectRef(namespace="team", name=name), uid=name, **second)
        for number, name in named
    ]
    prunable = prunable_records(records, log_head=50, open_numbers=(), with_jobs=())
    assert [each.ref.name for each in prunable] == ["d", "e", "c", "b"]


MARK = NOON - timedelta(days=30)
DELETED_CASES = [
    ("kept long enough: all go, the newest last", [record(2), record(1, gone_since=MARK)], ["r1", "r2"], None),
    ("not known to be gone", [record(1), record(2)], [], None),
    ("not long enough", [record(1, gone_since=MARK + timedelta(seconds=1))], [], NOON + timedelta(seconds=1)),
    ("a run is unfinished (R20)", [record(1, is_finished=False), record(2, gone_since=MARK)], [], None),
    (
        "ended within K",
        [record(1, FAILED, finished_seconds_ago=10, gone_since=MARK)],
        [],
        NOON + timedelta(seconds=170),
    ),
]


@pytest.mark.parametrize(
    ("records", "want", "next_at"), [case[1:] for case in DELETED_CASES], ids=[case[0] for case in DELETED_CASES]
)
def test_histories_of_deleted_schedules(records: list[KeptRecord], want: list[str], next_at: datetime | None) -> None:
    plan = prune_deleted(records, retained=timedelta(days=30), times=times())
    assert ([each.ref.name for each in plan.now], plan.next_at) == (want, next_at)


def test_a_history_waits_for_the_last_that_says_that_its_schedule_is_gone() -> None:
    """R20."""
    records = [record(1, gone_since=MARK), record(2, gone_since=MARK + timedelta(days=2)), record(3, gone_since=MARK)]
    plan = prune_deleted(records, retained=timedelta(days=30), times=times())
    assert (plan.now, plan.next_at) == ((), NOON + timedelta(days=2))


RUNNING, ENDED = (
    Transition(outcome=Outcome.RUNNING, time=at("10:00:11")),
    Transition(outcome=COMPLETED, time=at("10:01:05")),
)
RECORDED = [
    ("nothing is on record", {}, None),
    ("what is on record is no end", {"outcome": Outcome.RUNNING, "transitions": (RUNNING,)}, None),
    ("when its end was written",
     {"outcome": COMPLETED, "transitions": (RUNNING, ENDED), "completion_time": at("10:01")}, at("10:01:05")),
    ("not before its end", {"outcome": COMPLETED, "transitions": (RUNNING,), "completion_time": at("10:01")}, at("10:01")),
    ("an end without a time: its creation", {"outcome": FAILED}, at("10:00")),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "want"), [row[1:] for row in RECORDED], ids=[row[0] for row in RECORDED])
def test_when_an_outcome_was_recorded(fields: dict[str, object], want: datetime | None) -> None:
    """R26, P1: K counts from then on."""
    assert recorded_at(an_admission(status=ScheduleOccurrenceStatus(**fields))) == want


REFUSED = [record(1, FAILED, is_request=True), record(3, FAILED, is_request=True), record(2, FAILED, is_request=True)]
REFUSED_CASES = [
    ("all that are old enough, oldest first", REFUSED, 110, ["r1", "r2", "r3"]),
    ("each on its own", REFUSED, 118, ["r1", "r2"]),
    ("none within K", [record(1, FAILED, finished_seconds_ago=179)], 0, []),
    ("none that is unfinished", [record(1, is_finished=False)], 0, []),
]


@pytest.mark.parametrize(("name", "records", "minutes", "want"), REFUSED_CASES, ids=[case[0] for case in REFUSED_CASES])
def test_refused_requests_of_no_schedule(name: str, records: list[KeptRecord], minutes: int, want: list[str]) -> None:
    """R30."""
    plan = prune_refused(records, retained=timedelta(minutes=minutes), times=times())
    assert [each.ref.name for each in plan.now] == want, name


@st.composite
def logs(draw: st.DrawFn) -> list[KeptRecord]:
    count = draw(st.integers(1, 12))
    outcomes = st.sampled_from([None, COMPLETED, FAILED, EXHAUSTED])
    return [
        record(
            number,
            draw(outcomes),
            is_finished=draw(st.booleans()),
            finished_seconds_ago=draw(st.one_of(st.none(), st.integers(0, 400))),
            is_request=draw(st.integers(0, 9)) == 0,
        )
        for number in range(1, count + 1)
    ]


@given(
    records=logs(),
    part=st.integers(0, 12),
    log_head=st.one_of(st.none(), st.integers(0, 14), st.just(14)),
    open_numbers=st.frozensets(st.integers(1, 6), max_size=3),
    surplus=st.integers(-2, 14),
    since_acquired=st.one_of(st.integers(0, 400), st.just(400)),
)
def test_what_must_stay_stays_whatever_is_asked(
    records: list[KeptRecord],
    part: int,
    log_head: int | None,
    open_numbers: frozenset[int],
    surplus: int,
    since_acquired: int,
) -> None:
    """R30, P1, P7; also where only the oldest records were read."""
    now = times(since_acquired=timedelta(seconds=since_acquired))
    prunable = prunable_records(records[:part], log_head=log_head, open_numbers=open_numbers, with_jobs=())
    gone = prune_records(prunable, surplus=surplus, times=now).now
    assert len(gone) <= max(0, surplus)
    of_log = [each for each in records if each.number is not None]
    assert not {each.uid for each in gone} & {each.uid for each in of_log[-1:]}
    for outcome in (COMPLETED, FAILED):
        assert not {each.uid for each in gone} & {each.uid for each in _newest(of_log, outcome)}
    for each in gone:
        assert each.finished_at is not None
        assert NOON - each.finished_at >= K
        assert since_acquired >= K.total_seconds()
        if each.number is not None:
            assert log_head is not None
            assert each.number < log_head
            assert each.number not in open_numbers


def _newest(records: list[KeptRecord], outcome: Outcome) -> list[KeptRecord]:
    return [each for each in records if each.outcome is outcome][-1:]
