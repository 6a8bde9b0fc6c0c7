"""decide on random states of affairs: it rests, never spins, never goes back, loses no run."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from support.builders import (
    CREATED,
    a_definition,
    a_job,
    a_record,
    a_run,
    a_schedule,
    a_snapshot,
    a_status,
    an_admission,
    at,
)
from workflow_schedules.api.occurrence import Decision, Totals
from workflow_schedules.api.schedule import MisfirePolicy, Pause, State, WorkflowRef
from workflow_schedules.core.decide import decide
from workflow_schedules.core.model import JobPhase, Schedule, Snapshot
from workflow_schedules.core.plan import Append

TIMES = st.integers(0, 4 * 3600 * 1000).map(lambda ms: at("08:00") + timedelta(milliseconds=ms))
SCHEDULES = st.builds(
    a_schedule,
    schedule=st.sampled_from(["* * * * *", "0 * * * *", "30 10 * * *", "61 * * * *"]),
    enabled=st.sampled_from([True, True, False]),
    generation=st.integers(1, 4),
    misfire_policy=st.sampled_from(MisfirePolicy),
    starting_deadline_seconds=st.sampled_from([None, 5, 600, 10**12]),
    workflow_ref=st.sampled_from([None, WorkflowRef(name="report")]),
    pause=st.sampled_from([None, None, Pause(), Pause(until_time=at("09:15")), Pause(until_time=at("11:00"))]),
    run_limit=st.sampled_from([None, None, 1, 3]),
    pause_after_failures=st.sampled_from([None, None, 1, 2]),
    end_time=st.sampled_from([None, None, at("10:10")]),
    is_deleting=st.sampled_from([False, False, True]),
    status=st.one_of(
        st.none(),
        st.builds(
            a_status,
            st.sampled_from(State),
            consumed=TIMES,
            generation=st.integers(1, 4),
            active_count=st.integers(0, 1),
        ),
    ),
)
JOBS = st.builds(
    a_job,
    st.sampled_from(JobPhase),
    owner_uid=st.sampled_from([None, None, "other"]),
    started=st.sampled_from([None, "10:00:01"]),
    is_gone=st.booleans(),
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    schedule: Schedule | None = draw(st.one_of(SCHEDULES, st.none()))
    run = a_run(
        record=an_admission(schedule=schedule or a_schedule(), scheduled=draw(TIMES).replace(microsecond=0)),
        job=draw(st.one_of(st.none(), JOBS)),
        refused=draw(st.sampled_from([None, "no such field"])),
        retry_at=draw(st.one_of(st.none(), TIMES)),
        is_create_unanswered=draw(st.booleans()),
        is_outcome_unanswered=draw(st.booleans()),
    )
    waiting = draw(st.sampled_from([(), (), (at("08:30"),)]))
    states = st.sampled_from([State.ACTIVE, State.ACTIVE, State.DISABLED, State.HELD, State.BLOCKED, State.PAUSED])
    baseline = a_record(
        3,
        schedule=schedule or a_schedule(),
        open=(2,),
        consumed=draw(TIMES),
        waiting=waiting,
        state=draw(states),
        totals=Totals(admitted=draw(st.integers(0, 3)), counted_failures=draw(st.integers(0, 2))),
    )
    head = draw(st.sampled_from([None, baseline, run.record]))
    return a_snapshot(
        schedule,
        head=head,
        runs=(run,) if head else (),
        definition=draw(
            st.one_of(st.none(), st.builds(a_definition, is_enabled=st.booleans(), generation=st.integers(1, 4)))
        ),
        held=draw(st.sampled_from([(), (at("09:00"),)])),
        is_log_read=draw(st.booleans()),
        since_acquired=timedelta(seconds=draw(st.sampled_from([0, 90, 91, 4000]))),
        last_good_manual_at=draw(st.one_of(st.none(), TIMES)),
    )


@settings(max_examples=3 * settings.default.max_examples)
@given(snapshot=snapshots(), now=TIMES)
def test_without_a_step_the_wake_up_lies_ahead(snapshot: Snapshot, now: datetime) -> None:
    """I8, K-053: a wake-up that is already past, and nothing to do, would spin."""
    plan = decide(snapshot, now=now)
    assert plan.step is not None or plan.next_wake_at is None or plan.next_wake_at > now


@settings(max_examples=2 * settings.default.max_examples)
@given(snapshot=snapshots(), now=TIMES)
def test_no_record_moves_the_watermark_back_or_loses_a_run(snapshot: Snapshot, now: datetime) -> None:
    """I4, P3, P5: whatever is appended goes on from the head."""
    plan = decide(snapshot, now=now)
    if not isinstance(plan.step, Append):
        return
    spec, head = plan.step.spec, snapshot.head
    assert spec.consumed_through_time is not None
    assert spec.consumed_through_time <= max(
        now, *([head.spec.consumed_through_time] if head else []), *_stored(snapshot)
    )
    if head is not None:
        assert spec.consumed_through_time >= head.spec.consumed_through_time
        assert (spec.sequence, spec.previous_uid) == (head.number + 1, head.uid)
        assert spec.generation >= head.spec.generation
    unfinished = {run.record.number for run in snapshot.runs}
    assert unfinished <= set(spec.open)
    assert (spec.sequence in spec.open) == (spec.decision is Decision.ADMITTED)


def _stored(snapshot: Snapshot) -> list[datetime]:
    status = snapshot.schedule.status if snapshot.schedule else None
    return [status.consumed_through_time, CREATED] if status else [CREATED]


@given(snapshot=snapshots(), now=TIMES)
def test_nothing_is_admitted_while_paused_or_used_up(snapshot: Snapshot, now: datetime) -> None:
    """I5, R19, R21: neither by the spec nor by what the head says."""
    step, head, schedule = decide(snapshot, now=now).step, snapshot.head, snapshot.schedule
    if not isinstance(step, Append) or step.spec.decision is not Decision.ADMITTED:
        return
    assert head is not None
    assert head.spec.state is State.ACTIVE
    assert schedule is not None
    assert schedule.spec is not None
    pause, limit = schedule.spec.pause, schedule.spec.run_limit
    if pause is not None:
        assert pause.until_time is not None
        assert pause.until_time <= max(now, head.spec.consumed_through_time or now)
    assert limit is None or step.spec.totals.admitted <= limit


def settle(snapshot: Snapshot, now: datetime) -> list[Decision]:
    """Append what decide says until it says nothing; return the decisions."""
    found: list[Decision] = []
    for number in range(20):
        step = decide(snapshot, now=now).step
        if not isinstance(step, Append):
            return found
        found.append(step.spec.decision)
        head = replace(a_record(), uid=f"n{number}", spec=step.spec)
        runs = snapshot.runs
        if step.spec.decision is Decision.ADMITTED:
            record = an_admission(step.spec.sequence, step.spec.scheduled_time)
            runs = (*runs, a_run(record=record, job=a_job(JobPhase.WAITING, number=step.spec.sequence)))
        snapshot = replace(snapshot, head=head, runs=runs)
    raise AssertionError(f"does not settle: {found}")


@given(snapshot=snapshots(), now=TIMES)
def test_appending_settles(snapshot: Snapshot, now: datetime) -> None:
    """I8: a handful of records at one moment, then rest."""
    settle(replace(snapshot, runs=tuple(replace(run, job=a_job(JobPhase.WAITING)) for run in snapshot.runs)), now)
