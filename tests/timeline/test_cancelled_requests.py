"""Runs that people asked for and then cancel: on record first, then their Job goes, whoever leads by then (R27, R31)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.api_store import api_time
from support.disturbances import DISTURBANCES, Disturbance, Trap, is_write_or_delete
from support.harness import World
from support.objects import a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api import names

DAILY = {"schedule": "0 3 * * *"}
CANCELLED = ("Cancelled", "CancelRequested")


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:58") -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(None)
        world.apply(a_schedule(**DAILY))
        await world.until_leading(world.start())
        await asyncio.sleep(100)  # the settling after a takeover is over
        await story(world)
        world.auditor.check()

    run_virtual(main, at(start))


def ask(world: World, name: str = "now", *, backfill: str = "") -> None:
    spec: Json = {"scheduleRef": {"name": "s"}, "cause": "Backfill" if backfill else "Manual"}
    if backfill:
        spec["scheduledTime"] = api_time(at(backfill))
    metadata = {"name": name, "namespace": "ns"}
    world.server.create(
        {"apiVersion": names.API_VERSION, "kind": names.KIND_OCCURRENCE, "metadata": metadata, "spec": spec}
    )


def cancel(world: World, name: str = "now", why: str = "wrong data") -> None:
    patch = {"metadata": {"annotations": {names.ANNOTATION_CANCEL: why}}}
    world.server.patch("scheduleoccurrences", "ns", name, patch)


def outcome(world: World, name: str = "now") -> tuple[str | None, str | None]:
    status = world.server.get("scheduleoccurrences", "ns", name).get("status") or {}
    return status.get("outcome"), status.get("reason")


def message(world: World, name: str = "now") -> str:
    return str(world.server.get("scheduleoccurrences", "ns", name)["status"]["message"])


def unfinished(world: World) -> list[str]:
    return next(iter(world.processes.values())).operator._cluster.cache.requests.unfinished_keys()


def test_a_running_one() -> None:
    """R31: no failure of the schedule; one status, one DELETE, and the schedule's own status."""

    async def story(world: World) -> None:
        ask(world)
        await asyncio.sleep(15)
        assert outcome(world) == ("Running", "JobRunning")
        before = len(world.server.log)
        cancel(world)
        await asyncio.sleep(5)
        assert outcome(world) == CANCELLED
        assert "'wrong data'" in message(world)
        assert (world.job_names(), unfinished(world)) == ([], [])
        written = Counter((entry.method, entry.path.rpartition("/")[2]) for entry in world.writes(since=before))
        assert written == {("PATCH", "status"): 2, ("DELETE", "now"): 1}
        shown = world.status()
        assert [line["outcome"] for line in shown["recent"]] == ["Cancelled"]
        assert "lastFailureTime" not in shown
        idle = len(world.server.log)
        await world.restart()
        cancel(world, why="again")
        await asyncio.sleep(200)
        assert world.writes(since=idle) == []

    run(story)


@pytest.mark.parametrize("is_asked_for", [True, False], ids=["a request's", "a scheduled run's"])
def test_an_outcome_that_met_a_conflict_is_logged_once(*, is_asked_for: bool, caplog: pytest.LogCaptureFixture) -> None:
    """R31: what is logged is what was written, not what was tried."""

    async def story(world: World) -> None:
        caplog.set_level("INFO")
        if is_asked_for:
            ask(world)
        await asyncio.sleep(35)
        name = "now" if is_asked_for else world.record(2)["metadata"]["name"]
        world.server.faults.append(_edit_before_outcome(world, name))
        cancel(world, name)
        await asyncio.sleep(5)
        assert outcome(world, name) == CANCELLED
        logged = [vars(line)["outcome"] for line in caplog.records if line.message == "outcome"]
        assert logged == ["Running", "Cancelled"]

    run(story, start="09:58" if is_asked_for else "02:58")


def _edit_before_outcome(world: World, name: str) -> Callable[[ApiRequest], None]:
    """Annotate a record right before its final status arrives, so that this meets a conflict, once."""
    seen: list[ApiRequest] = []

    def edit(request: ApiRequest) -> None:
        if not seen and request.path.endswith(f"/{name}/status") and "Cancelled" in str(request.body):
            seen.append(request)
            world.server.patch("scheduleoccurrences", "ns", name, {"metadata": {"annotations": {"a": "b"}}})

    return edit


def test_one_that_waits_for_its_turn() -> None:
    """R27: never resolved, so it never was anyone's run."""

    async def story(world: World) -> None:
        ask(world, "first", backfill="2026-02-01T03:00")
        await asyncio.sleep(3)
        ask(world, "second", backfill="2026-02-02T03:00")
        await asyncio.sleep(3)
        cancel(world, "second")
        await asyncio.sleep(3)
        assert outcome(world, "second") == CANCELLED
        assert "jobUID" not in world.server.get("scheduleoccurrences", "ns", "second")["status"]
        assert world.job_names() == ["first"]

    run(story)


def test_one_whose_schedule_does_not_exist_any_more() -> None:
    """R20 R31."""

    async def story(world: World) -> None:
        ask(world)
        await asyncio.sleep(15)
        world.delete("s")
        await asyncio.sleep(1)
        cancel(world)
        await asyncio.sleep(5)
        assert (outcome(world), world.job_names()) == (CANCELLED, [])

    run(story)


def test_one_whose_job_can_t_be_made() -> None:
    """P12: cancelled while its Job is refused for the moment, it gets none later."""

    async def story(world: World) -> None:
        lift = world.refuse(403, "Forbidden", 'jobs.batch "now" is forbidden: exceeded quota: q', plural="jobs")
        ask(world)
        await asyncio.sleep(5)
        cancel(world)
        await asyncio.sleep(5)
        assert outcome(world) == CANCELLED
        lift()
        await asyncio.sleep(120)
        assert world.job_names() == []

    run(story)


@pytest.mark.parametrize("is_taken_over", [False, True])
def test_a_cancelled_backfill_keeps_its_place_until_its_job_is_gone(is_taken_over: bool) -> None:
    """R27 R14: as its pod still runs, which the schedule says; also for a successor, who has never seen it unfinished."""

    async def story(world: World) -> None:
        ask(world, "first", backfill="2026-02-01T03:00")
        ask(world, "second", backfill="2026-02-02T03:00")
        await asyncio.sleep(15)
        world.jobs.add_stuck_pod("ns", "first", "node-7")
        cancel(world, "first")
        await asyncio.sleep(5)
        assert outcome(world, "first") == CANCELLED
        if is_taken_over:
            await world.restart()
        await asyncio.sleep(150)
        assert world.job_names() == ["first"]
        assert outcome(world, "second") == (None, None)
        told = world.condition("RunsHealthy")
        assert (told["status"], told["reason"]) == ("False", "CannotBeRemoved")
        assert "first: its Job is ended but not gone" in told["message"]
        assert "node-7" in told["message"]
        world.jobs.let_pod_go("ns", "first")
        await asyncio.sleep(15)
        assert world.job_names() == ["second"]
        assert world.condition("RunsHealthy")["status"] == "True"

    run(story)


def test_a_deletion_that_is_refused_is_tried_again() -> None:
    """R14 P19, and by a successor."""

    async def story(world: World) -> None:
        lift = world.refuse(403, "Forbidden", "no", plural="jobs", operation="DELETE")
        ask(world)
        await asyncio.sleep(15)
        cancel(world)
        await asyncio.sleep(20)
        assert (outcome(world), world.job_names()) == (CANCELLED, ["now"])
        await world.restart()
        await asyncio.sleep(120)
        lift()
        await asyncio.sleep(60)
        assert (world.job_names(), unfinished(world)) == ([], [])

    run(story)


def test_asked_and_cancelled_while_nobody_leads() -> None:
    """R31: it is not started first."""

    async def story(world: World) -> None:
        await world.kill()
        ask(world)
        cancel(world)
        world.start()
        await asyncio.sleep(30)
        assert (outcome(world), world.job_names()) == (CANCELLED, [])

    run(story)


def disturbed(number: int, disturbance: Disturbance | None) -> tuple[World, int, Counter[str]]:
    async def story(clock: VirtualClock) -> tuple[World, int, Counter[str]]:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(None)
        made: Counter[str] = Counter()
        world.server.store.observers.append(
            lambda kind, change: made.update([change.key[1]] if kind.plural == "jobs" and change.before is None else [])
        )
        world.apply(a_schedule(**DAILY))
        await world.until_leading(world.start())
        ask(world)
        await asyncio.sleep(120)
        trap = Trap(world, number, disturbance, counts=is_write_or_delete)
        world.server.faults.append(trap)
        cancel(world)
        await asyncio.sleep(240)
        await asyncio.gather(*trap.tasks)
        world.auditor.check()
        return world, trap.writes, made

    return run_virtual(story, at("09:57:00"))


@pytest.mark.parametrize("disturbance", DISTURBANCES, ids=lambda disturbance: disturbance.name)
def test_a_disturbed_cancellation_ends_the_same(disturbance: Disturbance) -> None:
    """R31 P2 P19: crash before and after each write, lost answers: Cancelled once, and its Job is gone."""
    _, writes, _ = disturbed(0, None)
    assert writes == 3, "the outcome, the DELETE, the schedule's status"
    wrong = []
    for number in range(1, writes + 1):
        world, _, made = disturbed(number, disturbance)
        shown = [(line["name"], line["outcome"]) for line in world.status().get("recent", ())]
        found = (outcome(world), world.job_names(), made, shown, unfinished(world))
        if found != (CANCELLED, [], {"now": 1}, [("now", "Cancelled")], []):
            wrong.append((number, found))
    assert not wrong
