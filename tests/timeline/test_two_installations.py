"""Two installations in one cluster, each with a Lease of its own: what the one made, the other reports and leaves alone (R33)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from support.api_hooks import lease_fence
from support.api_kinds import Json
from support.harness import SETTINGS, World
from support.objects import a_definition, a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api import names
from workflow_schedules.core.model import ObjectRef

OURS = SETTINGS.lease
OTHERS = [ObjectRef(namespace="elsewhere", name=OURS.name), ObjectRef(namespace="elsewhere", name="theirs")]
FIVE = {"schedule": "*/5 * * * *"}
DAILY = {"schedule": "0 3 * * *"}


def run(story: Callable[[World], Awaitable[None]], theirs: ObjectRef, objects: list[Json], *, has_fences: bool) -> None:
    """The first installation is there for ten minutes before the second one comes."""

    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        world.server.admission.remove(world.fence)
        if has_fences:
            for lease, name in ((OURS, "ours"), (theirs, "theirs")):
                lease_fence(
                    world.server, lease.namespace, lease.name, is_operator=lambda client, name=name: client == name
                )
        for body in objects:
            world.apply(body)
        await world.until_leading(world.start("ours"))
        await asyncio.sleep(600)
        await world.until_leading(
            world.start("theirs", lease=theirs, retain_deleted_seconds=200.0, max_occurrence_records=2)
        )
        await story(world)
        world.auditor.check()

    run_virtual(main, at("09:49"))


def by(world: World, client: str, method: str = "", part: str = "", *, since: int = 0) -> list[str]:
    found = [each for each in world.writes(since=since) if each.client == client]
    return [f"{each.method} {each.path}" for each in found if each.method.startswith(method) and part in each.path]


def reports_at_most(world: World, times: int) -> bool:
    """Whether all that the second one wrote is that it can't schedule here, so many times."""
    made = by(world, "theirs")
    return len(made) <= times and all(each.startswith("PATCH") and each.endswith("schedules/s/status") for each in made)


def ask(world: World, name: str, schedule: str = "s", **annotations: str) -> None:
    metadata: Json = {"name": name, "namespace": "ns", "annotations": annotations}
    spec = {"scheduleRef": {"name": schedule}, "cause": "Manual"}
    world.server.create(
        {"apiVersion": names.API_VERSION, "kind": names.KIND_OCCURRENCE, "metadata": metadata, "spec": spec}
    )


both = pytest.mark.parametrize("theirs", OTHERS, ids=str)
fenced = pytest.mark.parametrize("has_fences", [True, False], ids=["fenced", "no fence"])


@both
@fenced
def test_the_second_one_reports_once_and_touches_nothing(theirs: ObjectRef, has_fences: bool) -> None:
    """R33 R31 K-038: no record, no Job, no DELETE, no definition; one status that says so, which the first one mends."""

    async def story(world: World) -> None:
        await world.sleep_until(at("10:00:30"))
        assert world.status()["state"] == "Active", "mended at once"
        await world.sleep_until(at("10:21"))
        made = by(world, "theirs")
        assert {each.partition(" ")[0] for each in made} <= {"PATCH", "POST"}
        assert all("/status" in each or "/events" in each for each in made), made
        assert len([each for each in made if "workflowschedules/s/status" in each]) <= 1
        assert not [each for each in made if "workflowdefinitions" in each]
        assert [
            each["spec"]["scheduledTime"][11:16] for each in world.records() if each["spec"]["decision"] == "Admitted"
        ]
        assert {each["spec"]["lease"] for each in world.records()} == {str(OURS)}
        assert (world.status()["state"], world.status()["lease"]) == ("Active", str(OURS))

    run(story, theirs, [a_definition(), a_schedule(workflow="w", **FIVE, successfulJobsHistoryLimit=1)],
        has_fences=has_fences)  # fmt: skip


@both
def test_the_second_one_ends_no_run(theirs: ObjectRef) -> None:
    """R33: neither by its outcome nor by a cancel request, nor when its schedule is gone."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        await world.sleep_until(at("10:00:30"))
        await world.kill("ours")
        newest = world.records()[-1]["metadata"]["name"]
        world.server.patch(
            "scheduleoccurrences", "ns", newest, {"metadata": {"annotations": {names.ANNOTATION_CANCEL: "why"}}}
        )
        await asyncio.sleep(30)
        await world.kill("theirs")
        before = len(world.server.log)
        world.start("theirs", lease=theirs)
        await asyncio.sleep(150)
        world.delete("s")
        await asyncio.sleep(400)
        assert by(world, "theirs", part=newest, since=before) == []
        assert newest in world.job_names()
        world.start("ours")
        await asyncio.sleep(120)
        record = world.server.get("scheduleoccurrences", "ns", newest)
        assert record["status"]["outcome"] == "Cancelled"
        assert newest not in world.job_names()

    run(story, theirs, [a_schedule(**FIVE)], has_fences=True)


@both
def test_requests_belong_to_who_schedules(theirs: ObjectRef) -> None:
    """R33 R27: resolved once, by the first one; the second neither refuses, cancels nor deletes any of them."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        ask(world, "one")
        await asyncio.sleep(15)
        await world.kill("ours")
        ask(world, "two")
        ask(world, "three", **{names.ANNOTATION_CANCEL: "why"})
        world.server.patch(
            "scheduleoccurrences", "ns", "one", {"metadata": {"annotations": {names.ANNOTATION_CANCEL: "why"}}}
        )
        await asyncio.sleep(20)
        await world.kill("theirs")
        world.start("theirs", lease=theirs)
        await asyncio.sleep(150)
        assert reports_at_most(world, 2)
        assert world.job_names() == ["one"]
        world.start("ours")
        await asyncio.sleep(150)
        found = {
            name: world.server.get("scheduleoccurrences", "ns", name)["status"] for name in ("one", "two", "three")
        }
        assert {name: status["outcome"] for name, status in found.items()} == {
            "one": "Cancelled",
            "two": "Running",
            "three": "Cancelled",
        }
        assert found["two"]["lease"] == str(OURS)
        assert reports_at_most(world, 2)
        assert world.status()["state"] == "Active"

    run(story, theirs, [a_schedule(**DAILY)], has_fences=True)


@both
def test_a_definition_that_is_switched_off_is_cascaded_by_who_schedules(theirs: ObjectRef) -> None:
    """R2 R33."""

    async def story(world: World) -> None:
        await world.kill("ours")
        world.edit_definition(enabled=False)
        await asyncio.sleep(60)
        assert reports_at_most(world, 1)
        world.start("ours")
        await asyncio.sleep(60)
        assert world.schedule()["spec"]["enabled"] is False
        assert reports_at_most(world, 1)

    run(story, theirs, [a_definition(), a_schedule(workflow="w", **DAILY)], has_fences=True)


@both
def test_history_is_pruned_by_who_wrote_it(theirs: ObjectRef) -> None:
    """R30 R20 R33: neither limits, nor the cap over all records, nor the time after a deletion."""

    async def story(world: World) -> None:
        await world.kill("ours")
        world.delete("gone")
        before = (world.job_names(), len(world.records("s")), len(world.records("gone")))
        await asyncio.sleep(7 * 3600)
        assert (world.job_names(), len(world.records("s")), len(world.records("gone"))) == before
        assert by(world, "theirs", "DELETE") == []
        world.start("ours")
        await asyncio.sleep(120)

    limits = {"successfulJobsHistoryLimit": 0, "occurrenceHistoryLimit": 1}
    run(story, theirs, [a_schedule(schedule="* * * * *", **limits), a_schedule("gone", **FIVE)], has_fences=True)
