"""What people do while a new leader reads everything: the lists don't have it, and the watches told it already (P9)."""

from __future__ import annotations

import asyncio

import pytest

from support.harness import World
from support.objects import a_definition, a_schedule
from support.story import at
from support.virtual_loop import VirtualClock, run_virtual
from timeline.test_requests import ask, outcome

MINUTELY = {"schedule": "* * * * *"}
LATE_SECONDS = 5.0


@pytest.mark.parametrize("late", ["workflowdefinitions", "workflowschedules", "scheduleoccurrences"])
def test_what_is_told_during_a_takeover_counts(late: str) -> None:
    """I3: whichever list is long on its way, all that changed since it was made is known after the takeover."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock)
        world.jobs.run_for(2)
        for name in ("edited", "deleted"):
            world.apply(a_schedule(name, **MINUTELY))
        first = world.start("first")
        await world.until_leading(first)
        second = world.start("second")
        await asyncio.sleep(20)
        world.late.append(lambda method, path: LATE_SECONDS if method == "GET" and path.endswith(late) else 0.0)
        await world.stop("first")
        await asyncio.sleep(LATE_SECONDS / 2)
        assert not second.operator.is_leading
        world.apply(a_definition("parent"))
        world.apply(a_schedule("made", **MINUTELY))
        world.apply(a_schedule("child", **MINUTELY, workflow="parent"))
        world.edit("edited", schedule="30 * * * *")
        world.delete("deleted")
        ask(world, schedule="edited")
        await world.until_leading(second)
        world.late.clear()
        await world.sleep_until(at("10:02:30"))
        assert outcome(world) == ("Completed", "JobComplete")
        assert [runs(world, name) for name in ("made", "child")] == [["10:00", "10:01", "10:02"]] * 2
        assert [runs(world, name) for name in ("edited", "deleted")] == [[], []]
        world.auditor.check()

    run_virtual(story, at("09:59:00"))


def runs(world: World, name: str) -> list[str]:
    specs = [record["spec"] for record in world.records(name)]
    return [
        spec["scheduledTime"][11:16]
        for spec in specs
        if spec.get("decision") == "Admitted" and spec["cause"] == "Scheduled"
    ]
