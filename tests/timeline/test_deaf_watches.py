"""A running operator whose watches fail, fall silent or are cut: what is due runs all the same, and news arrive in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import World
from support.objects import a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual

MINUTELY = {"schedule": "* * * * *"}
ONE_MINUTE = timedelta(minutes=1)


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:58") -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await story(world)
        world.auditor.check()

    run_virtual(main, at(start))


def is_list(request: ApiRequest) -> bool:
    return request.method == "GET" and request.path.endswith(("s", "jobs")) and "/leases/" not in request.path


def decided(world: World, name: str) -> list[str]:
    found = [each["spec"] for each in world.records(name)]
    return [f"{each['decision']} {each['scheduledTime'][11:16]}" for each in found if each["decision"] != "Baseline"]


def test_lists_refused_for_a_minute_at_the_start_and_watches_cut_later() -> None:
    """K-064: a schedule made after either is acted on within seconds, without a restart."""

    async def story(world: World) -> None:
        refusing = world.fault(Fault(status=500, reason="InternalError"), matches=is_list)
        world.start()
        await asyncio.sleep(60)
        world.server.faults.remove(refusing)
        await asyncio.sleep(20)
        world.apply(a_schedule("first", **MINUTELY))
        await asyncio.sleep(3)
        assert [each["spec"]["reason"] for each in world.records("first")] == ["Created"]
        world.server.break_watches()
        world.apply(a_schedule("second", **MINUTELY))
        await asyncio.sleep(5)
        assert [each["spec"]["reason"] for each in world.records("second")] == ["Created"]

    run(story)


def test_half_open_watches() -> None:
    """K-067: no event and no error; an edit is in force within half a minute, and what is due runs meanwhile."""

    async def story(world: World) -> None:
        world.apply(a_schedule("edited", schedule="0 11 * * *"))
        world.apply(a_schedule("due", **MINUTELY))
        await world.until_leading(world.start())
        await world.sleep_until(at("09:59:30"))
        silent = world.fault(Fault(is_silent=True), matches=lambda request: request.method == "WATCH")
        world.server.break_watches()
        await asyncio.sleep(2)  # all watches are connected anew by now, and hear nothing
        world.server.faults.remove(silent)
        world.edit("edited", **MINUTELY)
        await world.sleep_until(at("10:00:10"))
        assert decided(world, "due") == ["Admitted 09:59", "Admitted 10:00"]
        assert [each["spec"]["reason"] for each in world.records("edited")] == ["Created", "Edited"]
        await world.sleep_until(at("10:05:30"))
        assert decided(world, "edited") == [f"Admitted 10:0{minute}" for minute in range(1, 6)]
        assert decided(world, "due")[-1] == "Admitted 10:05"

    run(story)


@pytest.mark.parametrize("every_seconds", [7, 20])
def test_a_history_that_is_forgotten_again_and_again(every_seconds: int) -> None:
    """410 K-064: every watch lists anew, many times in a busy stretch; each decision is made once, and none is missed."""

    async def story(world: World) -> None:
        await world.until_leading(world.start())
        for number in range(5):
            world.apply(a_schedule(f"s{number}", **MINUTELY, successfulJobsHistoryLimit=100))
        end = at("10:04:30")
        while world.clock.now() < end:
            await asyncio.sleep(every_seconds)
            world.server.break_watches()
            world.edit("s0", failedJobsHistoryLimit=int(world.clock.monotonic()))
            world.server.compact()
        await asyncio.sleep(5)
        lists = [entry for entry in world.server.log if entry.method == "GET" and entry.path.endswith("/jobs")]
        assert len(lists) > 240 // every_seconds
        for number in range(5):
            assert decided(world, f"s{number}") == [
                f"Admitted {at('09:59') + minute * ONE_MINUTE:%H:%M}" for minute in range(6)
            ]
        assert len(world.job_names()) == 30

    run(story)


RIGHTS = [("jobs", "list"), ("jobs", "watch"), ("scheduleoccurrences", "list"), ("scheduleoccurrences", "watch")]


@pytest.mark.parametrize(("plural", "verb"), [*RIGHTS, ("workflowschedules", "list"), ("workflowdefinitions", "list")])
def test_a_right_that_is_missing_is_named(plural: str, verb: str) -> None:
    """K-093: not ready, with the verb; tried again at a bounded rate; ready and at work when the right is granted."""

    async def story(world: World) -> None:
        message = f'{plural} is forbidden: User "x" cannot {verb} resource "{plural}" at the cluster scope'
        method = "WATCH" if verb == "watch" else "GET"
        hook = world.fault(
            Fault(status=403, reason="Forbidden", message=message),
            matches=lambda request: (request.method, request.path.rpartition("/")[2]) == (method, plural),
        )
        world.apply(a_schedule("due", **MINUTELY))
        process = world.start("op")
        await world.sleep_until(at("10:01"))
        assert f'cannot {verb} resource "{plural}"' in str(process.operator.unready_reason)
        refused = [entry for entry in world.server.log if entry.client == "op" and entry.status == 403]
        assert 3 <= len(refused) <= 100, "of two watches and a takeover, each every eight seconds or more in the end"
        world.server.faults.remove(hook)
        await world.sleep_until(at("10:03:30"))
        assert process.operator.unready_reason is None
        assert decided(world, "due")[-1] == "Admitted 10:03"

    run(story)


def test_a_watch_that_is_refused_later_does_not_stop_what_is_due() -> None:
    """K-093 K-067: what is known stays in force; Jobs are seen again when the right is back."""

    async def story(world: World) -> None:
        world.apply(a_schedule("due", **MINUTELY, concurrencyPolicy="Allow", maxActiveRuns=9))
        process = world.start()
        await world.until_leading(process)
        hook = world.fault(
            Fault(status=403, reason="Forbidden", message='cannot watch resource "jobs"'),
            matches=lambda request: request.method == "WATCH" and request.path.endswith("/jobs"),
        )
        world.server.break_watches()
        await world.sleep_until(at("10:02:30"))
        assert "cannot watch" in str(process.operator.unready_reason)
        world.server.faults.remove(hook)
        await world.sleep_until(at("10:04:30"))
        assert process.operator.unready_reason is None
        assert decided(world, "due") == [f"Admitted {at('09:59') + minute * ONE_MINUTE:%H:%M}" for minute in range(6)]

    run(story)
