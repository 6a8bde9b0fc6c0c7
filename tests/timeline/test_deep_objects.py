"""Objects nested as deeply as the API server stores them: a problem of their own, and nobody else's (I9)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from support.api_kinds import Json
from support.deep import nested
from support.harness import World
from support.objects import a_definition, a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api import names

FIVE = {"schedule": "*/5 * * * *"}


def a_request(name: str, **spec: object) -> Json:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND_OCCURRENCE,
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"scheduleRef": {"name": "s"}, "cause": "Manual", **spec},
    }


def a_job(name: str, levels: int) -> Json:
    """A Job that says it is ours; of built-in kinds only unknown fields could be as deep, and these are not stored."""
    metadata = {"name": name, "namespace": "ns", "labels": {names.LABEL_SCHEDULE_UID: "nobody"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"x": nested(levels)}}


@dataclass(frozen=True, slots=True)
class Case:
    levels: int
    is_there_at_start: bool


CASES = [Case(levels, is_there) for levels in (230, 990, 1_100, 9_000) for is_there in (False, True)]


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.levels} {'listed' if case.is_there_at_start else 'new'}"
)
def test_a_deep_object_concerns_itself_alone(case: Case) -> None:
    """I9 R31 R36 K-096: of each kind one, met in a list or in a watch, and by a successor."""
    deep = nested(case.levels)

    async def story(world: World) -> None:
        if not case.is_there_at_start:
            await world.until_leading(world.start())
            await asyncio.sleep(1)
        world.apply(a_schedule(**FIVE))
        world.apply(a_schedule("inline", **FIVE, jobTemplate={"spec": deep}))
        world.apply(a_schedule("given", **FIVE, input={"x": deep}))
        world.apply(a_definition("w", jobTemplate={"spec": deep}))
        world.apply(a_definition("v", inputSchema={"x": deep}))
        world.apply(a_schedule("child", workflow="w", **FIVE))
        world.server.create(a_job("alien", case.levels))
        if case.is_there_at_start:
            await world.until_leading(world.start())
        await asyncio.sleep(2)
        world.server.create(a_request("good"))
        world.server.create(a_request("bad", input={"x": deep}))
        await world.sleep_until(at("10:00:10"))
        _check(world, "10:00")
        before = len(world.server.log)
        world.edit("given", maxActiveRuns=None)
        await asyncio.sleep(5)
        assert len([each for each in world.server.log[before:] if "/leases" not in each.path]) < 6
        await world.restart()
        await world.sleep_until(at("10:05:10"))
        _check(world, "10:05")
        idle = len(world.server.log)
        await world.sleep_until(at("10:09:50"))
        assert world.writes(since=idle) == []
        world.auditor.check()

    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await story(world)

    run_virtual(main, at("09:59:30"))


def _check(world: World, time: str) -> None:
    newest = world.records()[-1]
    assert newest["spec"]["scheduledTime"][11:16] == time
    assert newest["status"]["outcome"] == "Completed"
    for name, field in (("inline", "spec.jobTemplate"), ("given", "spec.input")):
        assert world.status(name)["state"] == "Blocked", name
        assert f"{field}: is nested deeper than 200 levels" in world.condition("Accepted", name)["message"]
        assert world.records(name) == []
    assert world.status("child")["state"] == "Held"
    for name, field in (("w", "jobTemplate"), ("v", "inputSchema")):
        conditions = world.server.get("workflowdefinitions", "ns", name)["status"]["conditions"]
        accepted = next(each for each in conditions if each["type"] == "Accepted")
        assert accepted["status"] == "False"
        assert f"spec.{field}: is nested deeper" in accepted["message"]
    requests = {name: world.server.get("scheduleoccurrences", "ns", name)["status"] for name in ("good", "bad")}
    assert requests["good"]["outcome"] == "Completed"
    assert (requests["bad"]["outcome"], requests["bad"]["reason"]) == ("Failed", "InputTooDeep")
    assert "input: is nested deeper than 200 levels" in requests["bad"]["message"]
