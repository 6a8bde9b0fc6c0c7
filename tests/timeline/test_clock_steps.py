"""Wall clocks that are set while something waits: instants follow the clock, pauses between two tries don't."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import World
from support.objects import a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.scheduler.clock import Steps

STEPS = [timedelta(hours=-1), timedelta(minutes=-5), timedelta(minutes=5)]


def is_job_create(request: ApiRequest) -> bool:
    return request.method == "POST" and request.path.endswith("/jobs")


def is_outcome(request: ApiRequest) -> bool:
    return request.method == "PATCH" and "scheduleoccurrences" in request.path


def is_schedule_status(request: ApiRequest) -> bool:
    return request.method == "PATCH" and "workflowschedules" in request.path


@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.parametrize("matches", [is_job_create, is_outcome, is_schedule_status])
def test_a_retry_is_not_delayed_by_a_clock_that_is_set(step: timedelta, matches: object) -> None:
    """R35: what fails is tried again after seconds, whatever the clock says meanwhile, and not in a hurry either."""
    assert callable(matches)

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        world.apply(a_schedule(schedule="0 10 * * *", misfirePolicy="Latest"))
        await world.sleep_until(at("09:59:55"))
        world.fault(Fault(status=503, reason="ServiceUnavailable"), matches=matches)
        await asyncio.sleep(25)
        began = len(world.server.log)
        clock.jump(step)
        await asyncio.sleep(20)
        tried = [entry for entry in world.server.log[began:] if entry.status == 503]
        assert 1 <= len(tried) <= 5
        world.heal()
        await asyncio.sleep(40)
        assert [each["status"]["outcome"] for each in world.records() if each["spec"]["decision"] == "Admitted"] == [
            "Completed"
        ]
        assert world.status()["counts"]["completed"] == 1
        world.auditor.check()

    run_virtual(story, at("09:58"))


LOOKS = [
    ("it goes on as it should", [(0, 0), (10, 10), (20, 20)], [0, 0, 0]),
    ("it is set back", [(0, 0), (-3590, 10), (-3580, 20)], [0, -3600, 0]),
    ("it is set forward", [(0, 0), (3610, 10)], [0, 3600]),
    ("it is corrected a little", [(0, 0), (11, 10), (20, 20)], [0, 0, 0]),
    ("it creeps, which adds up", [(0, 0), (11, 10), (22, 20)], [0, 0, 2]),
]


@pytest.mark.parametrize(("looks", "want"), [row[1:] for row in LOOKS], ids=[row[0] for row in LOOKS])
def test_steps_are_told_from_time_that_passes(looks: list[tuple[float, float]], want: list[float]) -> None:
    steps, start = Steps(), datetime(2026, 1, 1, tzinfo=UTC)
    found = [steps.look(start + timedelta(seconds=wall), monotonic).total_seconds() for wall, monotonic in looks]
    assert found == want
