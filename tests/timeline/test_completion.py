"""Schedules that are used up: by their runs, their one instant, the end of their calendar; and what opens them again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from support.api_kinds import Json, Kind
from support.api_store import Change
from support.harness import World
from support.objects import a_schedule
from support.story import LEASE_TIMES, At, Crash, Outage, Step, admitted, at, play, skipped_misfire, superseded
from support.virtual_loop import VirtualClock, run_virtual

LATEST = {"misfirePolicy": "Latest"}
MINUTELY = {"schedule": "* * * * *"}
COMPLETE = {"state": "Complete", "nextScheduleTime": None, "nextScheduleTimes": []}


def edit(**spec: object) -> Callable[[World], object]:
    return lambda world: world.edit("s", **spec)


def shows(reason: str) -> Callable[[World], None]:
    def check(world: World) -> None:
        assert world.condition("Complete")["reason"] == reason

    return check


def lose_status(world: World) -> None:
    lift = world.suspend_rules()
    world.server.patch("workflowschedules", "ns", "s", {"status": None}, subresource="status")
    lift()


STORIES: dict[str, tuple[list[Step], Json]] = {
    "R21: after runLimit runs nothing more fires, through a restart; a higher limit reopens from then on": (
        [
            At("10:00", want=[admitted("10:00")], status={"state": "Active"}),
            At("10:01", want=[admitted("10:01")], settle_seconds=8, status=COMPLETE, check=shows("RunLimitReached")),
            Crash("10:02:30"),
            At("10:05", want=[], status=COMPLETE),
            At("10:06:30", do=edit(runLimit=3), want=[], status={"state": "Active", "revision": 2}),
            At("10:07", want=[admitted("10:07")], settle_seconds=8, status=COMPLETE),
            At("10:09", want=[]),
        ],
        {**MINUTELY, **LATEST, "runLimit": 2},
    ),
    "R21: an edit of something else does not begin the count anew": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:01:30", do=edit(input={"a": 1}), want=[admitted("10:01")], status=COMPLETE),
            At("10:04", want=[], status={**COMPLETE, "revision": 2}),
        ],
        {**MINUTELY, "runLimit": 2},
    ),
    "R21: the count outlives a restart and a lost status": (
        [
            At("10:00", want=[admitted("10:00")]),
            Outage("10:00:30", "10:00:45", do=lose_status),
            At("10:01", want=[admitted("10:01")]),
            At("10:04", want=[], status=COMPLETE),
        ],
        {**MINUTELY, "runLimit": 2},
    ),
    "R21: a missed instant uses nothing of the limit": (
        [
            At("10:00", want=[admitted("10:00")]),
            Outage("10:00:30", "10:02:40"),
            At("10:03:10", want=[skipped_misfire("10:01"), admitted("10:02"), admitted("10:03")]),
            At("10:06", want=[], status=COMPLETE),
        ],
        {**MINUTELY, "runLimit": 3},
    ),
    "R21: a one-shot that ran; an edit that makes it due again reopens it": (
        [
            At("10:00", want=[admitted("10:00")], settle_seconds=8, status=COMPLETE, check=shows("OneShotDone")),
            Crash("10:01"),
            At("10:02", want=[], do=edit(runOnceTime="2026-03-02T10:05:00Z"), status={"state": "Active"}),
            At("10:05", want=[admitted("10:05")], settle_seconds=8, status=COMPLETE, check=shows("OneShotDone")),
            At("10:06", do=edit(runOnceTime="2026-03-02T10:05:30Z"), want=[], status=COMPLETE),
        ],
        {"runOnceTime": "2026-03-02T10:00:00Z"},
    ),
    "R21: a one-shot that was missed; it does not run late, and an edit reopens it": (
        [
            Outage("09:59:20", "10:10"),
            At("10:11", want=[skipped_misfire("10:00")], status=COMPLETE, check=shows("OneShotMissed")),
            At("10:12", do=edit(runOnceTime="2026-03-02T10:15:00Z"), want=[], status={"state": "Active"}),
            At("10:15", want=[admitted("10:15")]),
        ],
        {"runOnceTime": "2026-03-02T10:00:00Z"},
    ),
    "R7 R21: a one-shot that passed while its schedule was disabled": (
        [
            At("09:59:20", want=[], status={"state": "Disabled"}),
            At("10:00", want=[], status=COMPLETE, check=shows("OneShotPast")),
            At("10:01", do=edit(enabled=True), want=[], status=COMPLETE),
        ],
        {"runOnceTime": "2026-03-02T10:00:00Z", "enabled": False},
    ),
    "R21: a one-shot that passed while it was paused is complete, and stays so": (
        [
            At("09:59:20", do=edit(pause={}), want=[], status={"state": "Paused"}),
            At("10:00:10", want=[], status=COMPLETE),
            At("10:01", do=edit(pause=None), want=[], status=COMPLETE, check=shows("OneShotPast")),
        ],
        {"runOnceTime": "2026-03-02T10:00:00Z", **LATEST},
    ),
    "R21: after endTime nothing more; a later one reopens": (
        [
            At("10:01", want=[admitted("10:00"), admitted("10:01")], settle_seconds=8, status=COMPLETE,
               check=shows("EndTimePassed")),
            At("10:04:30", do=edit(endTime="2026-03-02T10:06:30Z"), want=[], status={"state": "Active"}),
            At("10:06:05", want=[admitted("10:05"), admitted("10:06")], settle_seconds=8, status=COMPLETE),
        ],
        {**MINUTELY, "endTime": "2026-03-02T10:01:30Z"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_completion(name: str) -> None:
    steps, spec = STORIES[name]
    play(steps, a_schedule(**spec), start="09:59:05")


def test_a_limit_lowered_below_what_ran_completes_at_once() -> None:
    """R21: cancels nothing, and the candidate is superseded by the edit."""
    play(
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:01:30", do=edit(runLimit=1), want=[superseded("10:01")], status={**COMPLETE, "activeCount": 1}),
            At("10:03", want=[], ends=[]),
        ],
        a_schedule(**MINUTELY, **LATEST, runLimit=5),
        run_seconds=None,
        start="09:59:30",
    )


@pytest.mark.parametrize(
    ("limit", "last"),
    [
        pytest.param(1, 2, id="used up: what was due then"),
        pytest.param(2, 3, id="not yet: what was due until the pause"),
    ],
)
def test_what_was_due_is_on_record_though_a_pause_comes_first(limit: int, last: int) -> None:
    """I3 R21: killed between the last admission and the rest, and paused before the successor looks."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        world.apply(a_schedule(**MINUTELY, misfirePolicy="All", runLimit=limit))
        await world.sleep_until(at("09:58:30"))
        await world.kill()
        await world.sleep_until(at("10:02:30"))
        stopping: list[asyncio.Future[None]] = []

        def stop_at_admission(kind: Kind, change: Change) -> None:
            if kind.plural != "scheduleoccurrences" or change.before is not None or change.after is None or stopping:
                return
            if change.after.body["spec"].get("decision") == "Admitted":
                stopping.append(asyncio.ensure_future(world.kill()))
                world.edit("s", pause={"reason": "x"})

        world.server.store.observers.append(stop_at_admission)
        world.start()
        await asyncio.sleep(30)
        world.start()
        await asyncio.sleep(60)
        told = [record["spec"] for record in world.records()]
        assert [spec["scheduledTime"] for spec in told if spec["decision"] == "Admitted"] == ["2026-03-02T09:59:00Z"]
        span = next(spec["span"] for spec in told if spec["decision"] == "Baseline" and spec["reason"] == "Paused")
        assert (span["firstTime"], span["lastTime"]) == ("2026-03-02T10:00:00Z", f"2026-03-02T10:0{last}:00Z")
        assert world.status()["counts"]["superseded"] == span["count"]
        world.auditor.check()

    run_virtual(story, at("09:58"))
