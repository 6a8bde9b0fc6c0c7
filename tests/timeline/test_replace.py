"""R14: the next run takes the place of the one that goes on, which is really gone before the next one starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import World
from support.objects import a_schedule
from support.story import LEASE_TIMES, At, Crash, Outage, Step, admitted, at, failed, play
from support.virtual_loop import VirtualClock, run_virtual

QUOTA = 'jobs.batch "x" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=1'
REPLACE = {"concurrencyPolicy": "Replace", "schedule": "* * * * *"}
FIVE = {**REPLACE, "schedule": "*/5 * * * *"}
FORBID = {"concurrencyPolicy": "Forbid", "schedule": "*/5 * * * *"}


def replaced(time: str) -> str:
    return f"Cancelled/Replaced {time}"


def jobs(world: World) -> list[int]:
    """The numbers of the Jobs that exist."""
    return [int(name[-9:]) for name in world.job_names()]


def job_name(world: World, number: int) -> str:
    return world.record(number)["metadata"]["name"]


def jobs_are(*numbers: int) -> Callable[[World], None]:
    def check(world: World) -> None:
        assert jobs(world) == list(numbers)

    return check


def stick(world: World) -> None:
    world.jobs.add_stuck_pod("ns", world.job_names()[-1], "node-7")


def let_go(world: World) -> None:
    world.jobs.let_pod_go("ns", world.job_names()[0])


def suspend(world: World) -> None:
    world.jobs.controller.suspend_job("ns", world.job_names()[-1])


def is_stuck(world: World) -> None:
    condition = world.condition("RunsHealthy")
    assert (condition["status"], condition["reason"]) == ("False", "CannotBeRemoved")
    assert "Pod " in condition["message"]
    assert "on node node-7" in condition["message"]


def is_healthy(world: World) -> None:
    assert world.condition("RunsHealthy")["status"] == "True"


def message_of(number: int, *parts: str) -> Callable[[World], None]:
    def check(world: World) -> None:
        for part in parts:
            assert part in world.record(number)["status"]["message"]

    return check


def pods_read(world: World) -> int:
    return len([entry for entry in world.server.log if "/pods" in entry.path])


def replaces(number: int, want: int | None) -> Callable[[World], None]:
    def check(world: World) -> None:
        assert world.record(number)["spec"].get("replaces") == want

    return check


def both(*checks: Callable[[World], None]) -> Callable[[World], None]:
    def check(world: World) -> None:
        for each in checks:
            each(world)

    return check


def drop_deletions(world: World) -> None:
    world.fault(Fault(is_dropped=True), matches=lambda request: request.method == "DELETE")


def no_pods_were_read(world: World) -> None:
    assert pods_read(world) == 0


def pods_were_read_rarely(world: World) -> None:
    assert 1 <= pods_read(world) <= 5


STORIES: dict[str, tuple[list[Step], Json]] = {
    "each run takes the place of the one before; without one nothing is replaced": (
        [
            At("10:00", want=[admitted("10:00")], ends=[], check=replaces(2, None)),
            At("10:01", want=[admitted("10:01")], ends=[replaced("10:00")], check=jobs_are(3)),
            At("10:02", want=[admitted("10:02")], ends=[replaced("10:01")], check=jobs_are(4)),
            At("10:02:30", check=replaces(4, 3)),
            At("10:02:40", check=no_pods_were_read),
        ],
        REPLACE,
    ),
    "K-052: a crash at the changeover ends and starts nothing twice": (
        [
            At("10:00", want=[admitted("10:00")]),
            Crash("10:01:00.3"),
            At("10:01:10", want=[admitted("10:01")], ends=[replaced("10:00")], settle_seconds=15, check=jobs_are(3)),
        ],
        REPLACE,
    ),
    "R12 an interrupted run is replaced like any other": (
        [
            At("10:00:30", do=suspend, want=[admitted("10:00")]),
            At("10:05", want=[admitted("10:05")], ends=[replaced("10:00")], check=jobs_are(3)),
        ],
        FIVE,
    ),
    "a pod that can't go: the next waits, its node is named, and it starts once the pod is gone": (
        [
            At("10:00:30", do=stick, want=[admitted("10:00")]),
            At("10:05", want=[admitted("10:05")], ends=[replaced("10:00")], check=jobs_are(2)),
            At("10:06:20", ends=[], check=is_stuck),
            At("10:08", do=let_go, ends=[], settle_seconds=15, check=jobs_are(3)),
            At("10:08:30", check=is_healthy),
            At("10:09", check=pods_were_read_rarely),
        ],
        {**FIVE, "startingDeadlineSeconds": 240},
    ),
    "n+2 replaces n+1, which never had a Job, and waits for all older ones": (
        [
            At("10:00:30", do=stick, want=[admitted("10:00")]),
            At("10:01", want=[admitted("10:01")], ends=[replaced("10:00")]),
            At("10:02", want=[admitted("10:02")], ends=[replaced("10:01")], check=jobs_are(2)),
            At("10:02:30", do=let_go, check=jobs_are(4)),
        ],
        {**REPLACE, "startingDeadlineSeconds": 600},
    ),
    "a deadline that passes meanwhile: NotStarted names what it waited for": (
        [
            At("10:00:30", do=stick, want=[admitted("10:00")]),
            At("10:05", want=[admitted("10:05")], ends=[replaced("10:00")]),
            At("10:06:10", ends=[failed("10:05", "NotStarted")], check=message_of(3, "waited for", "000000002")),
            At("10:10", want=[admitted("10:10")], ends=[]),
            At("10:10:30", do=let_go, check=jobs_are(4)),
        ],
        FIVE,
    ),
    "after a crash the successor goes on waiting, and knows which node": (
        [
            At("10:00:30", do=stick, want=[admitted("10:00")]),
            At("10:05", want=[admitted("10:05")], ends=[replaced("10:00")]),
            Crash("10:05:30"),
            At("10:06", want=[], check=jobs_are(2)),
            At("10:07:20", check=is_stuck),
            At("10:08", do=let_go, settle_seconds=10, ends=[], check=jobs_are(3)),
        ],
        {**FIVE, "startingDeadlineSeconds": 240},
    ),
    "P12 R35: a new leader leaves the Job in place for L + R: what can't wait so long says what it waited for": (
        [
            At("10:04:50", do=drop_deletions, want=[admitted("10:00")]),
            Outage("10:05:10", "10:05:12", do=lambda world: world.heal()),
            At("10:06:50", want=[admitted("10:05")], ends=[replaced("10:00")], check=both(jobs_are(2), is_healthy)),
            At("10:07:10", ends=[failed("10:05", "NotStarted")], check=both(jobs_are(), is_healthy)),
            At("10:07:20", check=message_of(3, "it waited for s-f34a2bff-000000002 to be gone")),
            At("10:10", want=[admitted("10:10")], ends=[], check=jobs_are(4)),
        ],
        FIVE,
    ),
    "a Job that goes while nobody leads frees the slot all the same": (
        [
            At("10:00:30", do=stick, want=[admitted("10:00")]),
            At("10:05", ends=[replaced("10:00")]),
            Outage("10:05:20", "10:06", do=let_go),
            At("10:06:30", ends=[], check=jobs_are(3)),
        ],
        {**FIVE, "startingDeadlineSeconds": 240},
    ),
    "R10 an edit to Forbid leaves the decision standing, and the next instant finds its slot taken": (
        [
            At("10:00:30", do=stick, want=[admitted("10:00")]),
            At("10:05", want=[admitted("10:05")], ends=[replaced("10:00")]),
            At("10:06", do=lambda world: world.edit("s", concurrencyPolicy="Forbid"), want=[], ends=[]),
            At("10:07", do=let_go, settle_seconds=5, check=jobs_are(3)),
            At("10:10", want=["SkippedOverlap 10:10"], ends=[]),
        ],
        {**FIVE, "startingDeadlineSeconds": 240},
    ),
    "an edit from Allow: all that go on end for the next one": (
        [
            At("10:01", want=[admitted("10:00"), admitted("10:01")]),
            At("10:01:30", do=lambda world: world.edit("s", concurrencyPolicy="Replace", maxActiveRuns=None)),
            At("10:02", want=[admitted("10:02")], ends=[replaced("10:00"), replaced("10:01")], check=jobs_are(5)),
        ],
        {"schedule": "* * * * *", "concurrencyPolicy": "Allow", "maxActiveRuns": 3},
    ),
    "R20 a schedule deleted meanwhile: what was ended goes, what goes on is left alone": (
        [
            At("10:00:30", do=stick, want=[admitted("10:00")]),
            At("10:05", want=[admitted("10:05")], ends=[replaced("10:00")]),
            At("10:06", do=lambda world: (world.delete("s"), let_go(world)), settle_seconds=5, check=jobs_are()),
        ],
        {**FIVE, "startingDeadlineSeconds": 240},
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_replace(name: str) -> None:
    steps, spec = STORIES[name]
    play(steps, a_schedule(**spec), start="09:59", run_seconds=None)


CHANGEOVER = 5  # its writes: record, outcome of the old run, deletion, Job, status of the schedule
DISTURBANCES = {
    "dropped before": (Fault(is_dropped=True), False),
    "lost after": (Fault(is_answer_lost=True), False),
    "lost after, in silence": (Fault(is_answer_lost=True, is_silent=True), False),
    "500": (Fault(status=500, reason="InternalError"), False),
    "refused": (Fault(status=403, reason="Forbidden", message=QUOTA), False),
    "crash before": (Fault(is_dropped=True), True),
    "crash after": (Fault(is_answer_lost=True), True),
    "late by 20 s": (Fault(delay_seconds=20), False),
}


def is_write(request: ApiRequest) -> bool:
    is_change = request.method in {"POST", "PATCH", "PUT", "DELETE"} and not request.query.get("dryRun")
    return is_change and "/leases" not in request.path


def changeover(number: int, fault: Fault, *, is_crash: bool) -> tuple[World, int]:
    """Play one changeover in which the write of this number is disturbed; give the number of writes."""

    async def story(clock: VirtualClock) -> tuple[World, int]:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(None)
        world.apply(a_schedule(**FIVE, startingDeadlineSeconds=240))
        world.start()
        await world.sleep_until(at("10:04:50"))
        seen = 0
        restarts: list[asyncio.Task[object]] = []

        def hook(request: ApiRequest) -> Fault | None:
            nonlocal seen
            if not is_write(request):
                return None
            seen += 1
            if seen != number:
                return None
            if is_crash:
                restarts.append(asyncio.ensure_future(world.restart()))
            return fault

        world.server.faults.append(hook)
        await world.sleep_until(at("10:08:30"))
        await asyncio.gather(*restarts)
        world.auditor.check()
        return world, seen

    return run_virtual(story, at("09:59"))


def test_a_changeover_has_as_many_writes_as_are_disturbed_below() -> None:
    world, writes = changeover(0, Fault(), is_crash=False)
    assert jobs(world) == [3]
    assert CHANGEOVER <= writes <= CHANGEOVER + 2  # the status of a run that goes on, and the schedule's once more


@pytest.mark.parametrize("number", range(1, CHANGEOVER + 1))
@pytest.mark.parametrize("how", DISTURBANCES)
def test_a_changeover_disturbed(how: str, number: int) -> None:
    """I1 I2 I7 P2 P19 K-050: at every write, in every way, the end is the same."""
    fault, is_crash = DISTURBANCES[how]
    world, _ = changeover(number, fault, is_crash=is_crash)
    assert jobs(world) == [3]
    outcomes = [(record.get("status") or {}).get("outcome") for record in world.records()[1:3]]
    assert outcomes == ["Cancelled", "Running"]


def test_a_leader_that_stalls_over_the_deletion_ends_nothing_else() -> None:
    """P14 P19: its request comes 60 s late, when another leads and has long started the next run."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(None)
        await world.until_leading(world.start("a"))
        world.apply(a_schedule(**FIVE, startingDeadlineSeconds=240))
        await asyncio.sleep(3)
        world.start("b")
        world.fault(
            Fault(delay_seconds=60),
            matches=lambda request: request.client == "a" and request.method == "DELETE",
            times=1,
        )
        world.fault(
            Fault(is_dropped=True, is_silent=True),
            matches=lambda request: request.client == "a" and clock.now() > at("10:05:00.5"),
        )
        await world.sleep_until(at("10:07"))
        assert jobs(world) == [3]
        world.auditor.check()

    run_virtual(story, at("09:59"))


def test_a_watch_of_jobs_that_lags_starts_nothing_too_early() -> None:
    """I2 P9: the new leader has not seen the old run's Job at all, so it asks before it calls the slot free."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(None)
        world.apply(a_schedule(**FIVE, startingDeadlineSeconds=240))
        await world.until_leading(world.start("a"))
        late = world.start("b")
        await asyncio.sleep(5)
        world.fault(
            Fault(is_dropped=True, is_silent=True),
            matches=lambda request: request.client == "b" and request.method == "WATCH" and "/jobs" in request.path,
        )
        world.server.break_watches()
        await world.sleep_until(at("10:00:30"))
        stick(world)
        await world.sleep_until(at("10:05:03"))
        await world.kill("a")
        await world.until_leading(late)
        await world.sleep_until(at("10:06:30"))
        assert jobs(world) == [2]
        let_go(world)
        world.heal()
        await world.sleep_until(at("10:07:30"))
        assert jobs(world) == [3]
        world.auditor.check()

    run_virtual(story, at("09:59"))
