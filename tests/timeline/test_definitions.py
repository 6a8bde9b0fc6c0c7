"""Switching a definition off: its schedules are disabled once, or held; nothing of it ever starts meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.api_transport import Fault, LogEntry
from support.harness import World
from support.objects import a_definition, a_schedule, a_template
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual

MINUTELY = {"schedule": "* * * * *"}
NAMES = [f"s{number}" for number in range(6)]


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:58") -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await story(world)
        world.auditor.check()

    run_virtual(main, at(start))


async def started(world: World, **definition: object) -> None:
    world.apply(a_definition(**definition))
    for name in NAMES:
        world.apply(a_schedule(name, workflow="w", **MINUTELY))
    world.apply(a_schedule("off", workflow="w", enabled=False, **MINUTELY))
    world.apply(a_schedule("other", **MINUTELY))
    await world.until_leading(world.start())
    await asyncio.sleep(12)


def switched(world: World) -> list[bool]:
    return [world.schedule(name)["spec"]["enabled"] for name in NAMES]


def spec_writes(world: World, since: int = 0) -> list[LogEntry]:
    return [
        entry
        for entry in world.writes(since=since)
        if entry.method == "PATCH" and "/workflowschedules/" in entry.path and not entry.path.endswith("/status")
    ]


def parent(world: World) -> Json:
    return dict(world.server.get("workflowdefinitions", "ns", "w")["status"])


def test_switching_off_disables_its_enabled_schedules_once_and_they_stay_so() -> None:
    """R2: one write each, none for what is off already, none for others; enabling the definition brings none back."""

    async def story(world: World) -> None:
        await started(world)
        assert (parent(world)["enabled"], parent(world)["enabledSchedules"], parent(world)["schedules"]) == (True, 6, 7)
        world.edit_definition(enabled=False)
        await asyncio.sleep(12)
        assert switched(world) == [False] * 6
        assert len(spec_writes(world)) == 6
        assert world.schedule("other")["spec"]["enabled"] is True
        assert world.status("s0")["state"] == "Disabled"
        assert (parent(world)["enabled"], parent(world)["enabledSchedules"]) == (False, 0)
        assert parent(world)["observedGeneration"] == 2
        world.edit_definition(enabled=True)
        await asyncio.sleep(70)
        assert switched(world) == [False] * 6
        assert len(spec_writes(world)) == 6
        assert parent(world)["enabled"] is True

    run(story)


def test_a_schedule_that_gitops_enables_again_is_not_fought_and_is_held() -> None:
    """R1 R2: nor does an edit of the definition while it is off, or another leader, disable it again."""

    async def story(world: World) -> None:
        await started(world)
        world.edit_definition(enabled=False)
        await asyncio.sleep(12)
        world.edit("s0", enabled=True)
        world.apply(a_schedule("late", workflow="w", **MINUTELY))
        since = len(world.server.log)
        await asyncio.sleep(30)
        world.edit_definition(description="still off")
        await asyncio.sleep(30)
        await world.restart()
        await asyncio.sleep(30)
        world.edit_definition(jobTemplate=a_template("busybox:2"))
        await asyncio.sleep(30)
        assert spec_writes(world, since) == []
        for name in ("s0", "late"):
            assert world.schedule(name)["spec"]["enabled"] is True
            assert world.status(name)["state"] == "Held"
            assert world.condition("ParentEnabled", name)["reason"] == "WorkflowDisabled"
        jobs = [job["metadata"]["name"] for job in world.server.objects("jobs", "ns")]
        assert not [name for name in jobs if name.startswith("late")]
        world.edit_definition(enabled=True)
        await asyncio.sleep(12)
        world.edit_definition(enabled=False)
        await asyncio.sleep(12)
        assert len(spec_writes(world, since)) == 2

    run(story)


def test_hold_schedules_leaves_specs_alone_and_goes_on_from_the_next_instant() -> None:
    """R3: going over to DisableSchedules while it is off is no switching off."""

    async def story(world: World) -> None:
        await started(world, onDisable="HoldSchedules")
        await world.sleep_until(at("09:59:30"))
        world.edit_definition(enabled=False)
        await world.sleep_until(at("10:02:20"))
        world.edit_definition(onDisable="DisableSchedules")
        await world.sleep_until(at("10:02:40"))
        assert switched(world) == [True] * 6
        assert {world.status(name)["state"] for name in NAMES} == {"Held"}
        world.edit_definition(enabled=True)
        await world.sleep_until(at("10:03:30"))
        times = [each["spec"].get("scheduledTime", "")[11:16] for each in world.records("s0")]
        assert times == ["", "09:59", "", "", "10:03"]

    run(story)


@pytest.mark.parametrize("how", ["before its first sight", "at its creation"])
def test_what_was_never_seen_enabled_is_not_switched_off(how: str) -> None:
    """R2: there was no change from true to false."""

    async def story(world: World) -> None:
        world.apply(a_definition(enabled=how == "before its first sight"))
        if how == "before its first sight":
            world.edit_definition(enabled=False)
        for name in NAMES:
            world.apply(a_schedule(name, workflow="w", **MINUTELY))
        world.start()
        await asyncio.sleep(90)
        assert switched(world) == [True] * 6
        assert spec_writes(world) == []
        assert parent(world)["enabled"] is False

    run(story)


def test_a_change_within_moments_of_the_creation_is_seen() -> None:
    """R2: also before the first status of the definition."""

    async def story(world: World) -> None:
        await world.until_leading(world.start())
        await asyncio.sleep(6)
        world.apply(a_definition())
        world.apply(a_schedule("s", workflow="w", **MINUTELY))
        await asyncio.sleep(0.3)
        world.edit_definition(enabled=False)
        await asyncio.sleep(12)
        assert world.schedule()["spec"]["enabled"] is False

    run(story)


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("after", range(7))
def test_a_crash_halfway_is_finished_by_the_next_leader(after: int, is_lost: bool) -> None:
    """R2: wherever it happens, each is disabled once."""

    async def story(world: World) -> None:
        await started(world)
        seen = 0

        def crash(request: ApiRequest) -> Fault | None:
            nonlocal seen
            is_ours = request.method == "PATCH" and (
                "/workflowdefinitions/" in request.path
                or ("/workflowschedules/" in request.path and not request.path.endswith("/status"))
            )
            if not is_ours:
                return None
            seen += 1
            if seen != after + 1:
                return None
            tasks.append(asyncio.ensure_future(world.restart()))
            return Fault(is_dropped=not is_lost, is_answer_lost=is_lost)

        tasks: list[asyncio.Task[object]] = []
        world.server.faults.append(crash)
        world.edit_definition(enabled=False)
        await asyncio.sleep(60)
        await asyncio.gather(*tasks)
        assert seen > after
        assert switched(world) == [False] * 6
        assert {world.schedule(name)["metadata"]["generation"] for name in NAMES} == {2}
        assert (parent(world)["enabled"], parent(world)["observedGeneration"]) == (False, 2)

    run(story)


def test_a_switch_off_in_an_outage_is_acted_on_afterwards() -> None:
    """R1 R2: the status says how it was."""

    async def story(world: World) -> None:
        await started(world)
        await world.kill()
        world.edit_definition(enabled=False)
        world.edit_definition(description="and another edit")
        since = len(world.server.log)
        ran = len(world.records("s0"))
        await world.sleep_until(at("10:00:30"))
        world.start()
        await asyncio.sleep(30)
        assert switched(world) == [False] * 6
        assert len(spec_writes(world, since)) == 6
        assert [each["spec"]["decision"] for each in world.records("s0")[ran:]] == ["Baseline"]

    run(story)


def test_somebody_edits_a_schedule_at_that_moment() -> None:
    """R2: nothing of the edit is overwritten, and the switch is tried again."""

    async def story(world: World) -> None:
        await started(world)

        def edit_first(request: ApiRequest) -> Fault | None:
            if request.method == "PATCH" and request.path.endswith("/workflowschedules/s0") and not edited:
                edited.append(True)
                world.edit("s0", input={"a": 1})
            return None

        edited: list[bool] = []
        world.server.faults.append(edit_first)
        world.edit_definition(enabled=False)
        await asyncio.sleep(30)
        spec = world.schedule("s0")["spec"]
        assert edited
        assert (spec["enabled"], spec["input"]) == (False, {"a": 1})
        assert parent(world)["enabled"] is False

    run(story)


def test_a_schedule_that_may_not_be_changed_is_held_and_asked_once() -> None:
    """R1 R2: a policy of the cluster may refuse it; that delays no other."""

    async def story(world: World) -> None:
        await started(world)
        world.fault(
            Fault(status=403, reason="Forbidden"),
            matches=lambda request: request.method == "PATCH" and request.path.endswith("/workflowschedules/s0"),
        )
        world.edit_definition(enabled=False)
        await asyncio.sleep(60)
        assert switched(world) == [True, *[False] * 5]
        assert world.status("s0")["state"] == "Held"
        assert len(spec_writes(world)) == 6
        assert parent(world)["enabled"] is False

    run(story)


def test_a_spec_that_can_t_be_read_is_no_switching_off() -> None:
    """R2."""

    async def story(world: World) -> None:
        await started(world)
        world.edit_definition(maxActiveRuns="many")
        await asyncio.sleep(30)
        assert switched(world) == [True] * 6
        assert world.status("s0")["state"] == "Held"
        world.edit_definition(maxActiveRuns=5)
        await asyncio.sleep(12)
        assert world.status("s0")["state"] == "Active"

    run(story)


@pytest.mark.parametrize("kind", ["workflowdefinitions", "workflowschedules"])
def test_an_admission_found_without_a_job_is_not_started_while_the_definition_is_off(kind: str) -> None:
    """R1 P11: crash between record and Job, and the switch in between."""

    async def story(world: World) -> None:
        world.apply(a_definition(onDisable="HoldSchedules"))
        world.apply(a_schedule("s", workflow="w", schedule="0 10 * * *", misfirePolicy="Latest"))
        await world.until_leading(world.start())
        world.fault(Fault(is_dropped=True), matches=lambda r: r.method == "POST" and r.path.endswith("/jobs"))
        await world.sleep_until(at("10:00:00.1"))
        await world.kill()
        world.heal()
        world.edit_definition(enabled=False) if kind == "workflowdefinitions" else world.edit("s", enabled=False)
        world.start()
        await world.sleep_until(at("10:12"))
        assert world.job_names() == []
        admitted = next(each for each in world.records() if each["spec"]["decision"] == "Admitted")
        assert admitted["status"]["outcome"] == "Failed"

    run(story)


@pytest.mark.parametrize("lag_seconds", [0, 25, 60])
def test_a_stalled_leader_starts_nothing_of_a_definition_that_another_saw_switched_off(lag_seconds: int) -> None:
    """R1 P5 P11: its late record meets the other's Baseline, or the other finds it and makes no Job."""

    async def story(world: World) -> None:
        world.apply(a_definition(onDisable="HoldSchedules"))
        world.apply(a_schedule("s", workflow="w", schedule="0 10 * * *", startingDeadlineSeconds=300))
        await world.until_leading(world.start("a"))
        world.start("b")
        world.fence.lag_seconds = lag_seconds
        await world.sleep_until(at("09:59:59"))
        world.fault(
            Fault(delay_seconds=40),
            matches=lambda r: (
                r.client == "a" and r.path.endswith(("/scheduleoccurrences", "/leases/workflow-schedules"))
            ),
        )
        await world.sleep_until(at("10:00:01"))
        world.edit_definition(enabled=False)
        await world.sleep_until(at("10:08"))
        assert world.job_names() == []
        assert world.records()[-1]["spec"]["reason"] == "Held"

    run(story)


def test_the_active_runs_of_a_definition_are_all_of_its_runs() -> None:
    """Contract section 1 (`status.activeRuns`): those of schedules that are gone go on, too."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        await started(world)
        await world.sleep_until(at("09:59:30"))
        assert parent(world)["activeRuns"] == 6
        world.delete("s0")
        await asyncio.sleep(12)
        assert (parent(world)["activeRuns"], parent(world)["schedules"]) == (6, 6)
        await world.restart()
        await asyncio.sleep(12)
        assert parent(world)["activeRuns"] == 6

    run(story)
