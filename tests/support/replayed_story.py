"""A story of operators on the fake server, every request of which is noted: what is said to the real one again."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from support.harness import NAMESPACE, World
from support.objects import a_definition, a_schedule, a_template
from support.request_log import Exchange, record
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api import names


def tell() -> list[Exchange]:
    """Play it: runs, skips, an edit, a pause, a request, a takeover, a stale leader, removal; return what was said."""

    async def story(clock: VirtualClock) -> list[Exchange]:
        world = World(clock, lease_times=LEASE_TIMES)
        world.retention.kept = timedelta(seconds=2)
        log = record(world.server)
        world.jobs.run_for(3.0)
        await world.until_leading(world.start("a", name_kept_seconds=5.0))
        world.apply(a_definition())
        world.apply(a_schedule("parented", workflow="w", schedule="* * * * *", misfirePolicy="Latest"))
        world.apply(a_schedule("inline", schedule="* * * * *", successfulJobsHistoryLimit=0, occurrenceHistoryLimit=1))
        world.apply(a_schedule("long", schedule="*/2 * * * *", concurrencyPolicy="Replace"))
        world.start("b", name_kept_seconds=5.0)
        await world.sleep_until(at("10:00:10"))
        world.edit("inline", jobTemplate=a_template("busybox:1.38"))
        world.jobs.run_for(100.0)
        _ask(world)
        await world.sleep_until(at("10:01:20"))
        world.edit("parented", pause={"reason": "by hand"})
        await asyncio.sleep(2)
        world.edit("parented", pause=None)
        for number in range(8):
            world.edit("inline", input={"a": number})
            await asyncio.sleep(0.5)
        await world.sleep_until(at("10:02:00.006"))
        await world.kill("a")
        await world.sleep_until(at("10:02:40"))
        world.delete("parented")
        await world.sleep_until(at("10:03:30"))
        await world.stop("b")
        world.auditor.check(is_settled=False)
        return log

    return run_virtual(story, at("09:59:30"))


def _ask(world: World) -> None:
    spec = {"scheduleRef": {"name": "inline"}, "cause": "Manual", "input": {"by": "hand"}}
    metadata = {"name": "asked", "namespace": NAMESPACE}
    body = {"apiVersion": names.API_VERSION, "kind": names.KIND_OCCURRENCE, "metadata": metadata, "spec": spec}
    world.server.create(body)
