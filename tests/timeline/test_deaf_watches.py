"""A running operator whose watches fail, fall silent or are cut: what is due runs all the same, and news arrive in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import World
from support.objects import a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual

MINUTELY = {"schedule": "* * * * *"}


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
