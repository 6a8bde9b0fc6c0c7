"""Every request of a small scenario, disturbed in every way: the end is the same, and nothing runs twice.

The scenario: a schedule with a parent is created, runs at two instants, is edited, and runs once more. First it is played
without faults and its writes are counted; then once for each write and each fault.
"""

from __future__ import annotations

import asyncio

import pytest

from support.disturbances import DISTURBANCES, Disturbance, Trap
from support.harness import World
from support.objects import a_definition, a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual

WRITES = 18  # of the undisturbed scenario, Lease and proof of the fence left out; counted below


def play(number: int, disturbance: Disturbance | None) -> tuple[World, int]:
    async def story(clock: VirtualClock) -> tuple[World, int]:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(3.0)
        trap = Trap(world, number, disturbance)
        world.server.faults.append(trap)
        world.start()
        world.apply(a_definition())
        world.apply(a_schedule(workflow="w", schedule="* * * * *", misfirePolicy="Latest"))
        await world.sleep_until(at("10:01:30"))
        world.edit("s", input={"a": 1})
        await world.sleep_until(at("10:02:56"))
        await asyncio.gather(*trap.tasks)
        world.auditor.check()
        return world, trap.writes

    return run_virtual(story, at("09:59:20"))


def outcome_of(world: World) -> dict[str, object]:
    """What must not depend on faults."""
    records = [each for each in world.records() if each["spec"]["decision"] != "Baseline"]
    status = world.status()
    return {
        "decided": [
            (each["spec"]["decision"], each["spec"]["scheduledTime"], each["spec"]["revision"]) for each in records
        ],
        "ended": [each["status"]["outcome"] for each in records],
        "jobs": len(world.job_names()),
        "counts": status["counts"],
        "revision": status["revision"],
        "next": status["nextScheduleTime"],
        "active": status["activeCount"],
        "last": (status["lastScheduleTime"], status["lastOccurrence"]["outcome"]),
        "head": status["logHead"] - len(world.records()),
        "parent": {
            name: value
            for name, value in world.server.get("workflowdefinitions", "ns", "w")["status"].items()
            if name != "conditions"
        },
    }


def test_the_undisturbed_scenario() -> None:
    world, writes = play(0, None)
    assert writes == WRITES
    assert outcome_of(world) == WANT


WANT: dict[str, object] = {
    "decided": [
        ("Admitted", "2026-03-02T10:00:00Z", 1),
        ("Admitted", "2026-03-02T10:01:00Z", 1),
        ("Admitted", "2026-03-02T10:02:00Z", 2),
    ],
    "ended": ["Completed", "Completed", "Completed"],
    "jobs": 3,
    "counts": {"admitted": 3, "completed": 3, "failed": 0, "skipped": 0, "coalesced": 0, "superseded": 0},
    "revision": 2,
    "next": "2026-03-02T10:03:00Z",
    "active": 0,
    "last": ("2026-03-02T10:02:00Z", "Completed"),
    "head": 0,
    "parent": {"observedGeneration": 1, "enabled": True, "schedules": 1, "enabledSchedules": 1, "activeRuns": 0},
}


@pytest.mark.parametrize("disturbance", DISTURBANCES, ids=lambda disturbance: disturbance.name)
def test_a_disturbed_write_changes_nothing_in_the_end(disturbance: Disturbance) -> None:
    """P2 P3 P10 P11 P15, K-050: for each write of the scenario."""
    wrong = []
    for number in range(1, WRITES + 1):
        world, writes = play(number, disturbance)
        assert writes >= number
        found = outcome_of(world)
        if found != WANT:
            wrong.append((number, {key: value for key, value in found.items() if value != WANT[key]}))
    assert not wrong
