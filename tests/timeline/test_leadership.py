"""Several processes, crashes, stops and stalls: one leads, nothing runs twice, nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import SETTINGS, World
from support.objects import a_schedule
from support.story import At, Crash, Outage, Player, ServerDown, Step, admitted, at, completed, play
from support.virtual_loop import VirtualClock, run_virtual

MINUTELY = {"schedule": "* * * * *"}
FIVE = {"schedule": "*/5 * * * *"}


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:58") -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        await story(world)

    run_virtual(main, at(start))


def lease(world: World) -> dict[str, object]:
    return dict(world.server.get("leases", SETTINGS.lease.namespace, SETTINGS.lease.name)["spec"])


def herd(world: World, size: int, **spec: object) -> None:
    for number in range(size):
        world.apply(a_schedule(f"s{number:03d}", **{**FIVE, **spec}))


def jobs_at(world: World, compact: str) -> list[str]:
    label = "workflow-schedules.dev/scheduled-at"
    return [
        job["metadata"]["labels"]["workflow-schedules.dev/schedule"]
        for job in world.server.objects("jobs", "ns")
        if job["metadata"]["labels"].get(label) == compact
    ]


async def standby(world: World) -> None:
    """Start a second process and give it time to fill its cache."""
    world.start()
    await asyncio.sleep(3)


def test_a_standby_takes_over_within_the_lease_duration_and_runs_what_is_due() -> None:
    """R34 K-052: the run of the dead leader is neither repeated nor replaced."""

    async def story(world: World) -> None:
        world.jobs.run_for(40)
        first = world.start("a")
        await world.until_leading(first)
        world.apply(a_schedule(**MINUTELY))
        await standby(world)
        await world.sleep_until(at("10:00:00.5"))
        await world.kill("a")
        await world.sleep_until(at("10:00:18"))
        assert lease(world)["holderIdentity"] == "pod-op2"
        await world.sleep_until(at("10:01:50"))
        assert len(jobs_at(world, "20260302T100000Z")) == len(jobs_at(world, "20260302T100100Z")) == 1
        world.auditor.check()

    run(story)


def test_a_clean_stop_hands_over_within_moments() -> None:
    """R34."""

    async def story(world: World) -> None:
        first = world.start("a")
        await world.until_leading(first)
        await standby(world)
        epoch = lease(world)["leaseTransitions"]
        await world.stop("a")
        assert "holderIdentity" not in lease(world)
        await asyncio.sleep(SETTINGS.lease_times.retry_seconds + 0.5)
        assert lease(world)["holderIdentity"] == "pod-op2"
        assert lease(world)["leaseTransitions"] == epoch + 1

    run(story)


def test_sigterm_in_a_herd_of_200_loses_and_doubles_nothing() -> None:
    """K-055: the old process finishes what it began and releases the Lease last, the new one admits the rest."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        first = world.start("a", latency_seconds=0.05)
        await world.until_leading(first)
        herd(world, 200)
        await standby(world)
        await world.sleep_until(at("09:59:59.9"))
        await asyncio.sleep(0.3)
        writes = len(world.writes())
        await world.stop("a")
        assert writes > 0
        assert lease(world).get("holderIdentity") != "pod-a"
        sent_by_old = len([entry for entry in world.server.log if entry.client == "a"])
        await world.sleep_until(at("10:00:50"))
        assert sorted(jobs_at(world, "20260302T100000Z")) == [f"s{number:03d}" for number in range(200)]
        assert len([entry for entry in world.server.log if entry.client == "a"]) == sent_by_old
        assert {entry.client for entry in world.writes()} == {"a", "op2"}
        world.auditor.check()

    run(story)


@pytest.mark.parametrize(
    ("kind", "lag_seconds", "answers"),
    [
        ("jobs", 0.0, [403]),
        ("scheduleoccurrences", 0.0, [403]),
        ("jobs", 60.0, [201]),
        ("scheduleoccurrences", 60.0, [201]),
        ("jobs", 35.0, [201, 409]),
        ("scheduleoccurrences", 35.0, [201, 409]),
    ],
)
def test_a_leader_stalled_in_the_middle_of_an_admission(kind: str, lag_seconds: float, answers: list[int]) -> None:
    """K-037 K-063 P14 P15: its request arrives 40 s late, when another leads; whoever is first decides, once.

    While the API server's view of the Lease lags, the late request may still be taken, and the successor finds it.
    """

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        await world.until_leading(world.start("a"))
        world.apply(a_schedule(**FIVE, startingDeadlineSeconds=120))
        await standby(world)
        world.fence.lag_seconds = lag_seconds

        def is_stalled(request: ApiRequest) -> bool:
            return request.client == "a" and request.path.endswith((f"/{kind}", "/leases/workflow-schedules"))

        await world.sleep_until(at("09:59:58"))
        world.fault(Fault(delay_seconds=40), matches=is_stalled)
        await world.sleep_until(at("10:02"))
        assert lease(world)["holderIdentity"] == "pod-op2"
        late = [entry for entry in world.server.log if entry.client == "a" and entry.method == "POST"]
        assert [entry.status for entry in late if entry.path.endswith(f"/{kind}")][-1] in answers
        assert len(jobs_at(world, "20260302T100000Z")) == 1
        world.auditor.check()

    run(story)


def test_clocks_that_differ_do_not_matter_for_the_lease() -> None:
    """K-059."""

    async def story(world: World) -> None:
        first = world.start("a", ahead_seconds=-120)
        await world.until_leading(first)
        world.start("b", ahead_seconds=120)
        epoch = lease(world)["leaseTransitions"]
        await asyncio.sleep(120)
        assert lease(world)["holderIdentity"] == "pod-a"
        assert lease(world)["leaseTransitions"] == epoch

    run(story)


def test_a_replica_whose_clock_is_90_s_ahead_runs_nothing_twice_and_nothing_early() -> None:
    """K-041 P13: no record is ahead of the API server's clock."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        first = world.start("a", ahead_seconds=90)
        await world.until_leading(first)
        world.apply(a_schedule(**FIVE))
        await world.sleep_until(at("09:59:50"))
        assert jobs_at(world, "20260302T100000Z") == []
        await world.kill("a")
        world.start("b")
        await world.sleep_until(at("10:01"))
        assert len(jobs_at(world, "20260302T100000Z")) == 1
        world.auditor.check()

    run(story)


def test_edits_take_effect_also_where_the_clock_is_90_s_ahead() -> None:
    """P13: a Baseline's watermark is "now"; were that the clock ahead, it would wait for the server's for ever."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        await world.until_leading(world.start("a", ahead_seconds=90))
        world.apply(a_schedule(**MINUTELY))
        await world.sleep_until(at("09:59:10"))
        world.edit("s", enabled=False)
        await world.sleep_until(at("09:59:20"))
        assert world.status()["state"] == "Disabled"
        world.edit("s", enabled=True)
        await world.sleep_until(at("10:00:20"))
        assert world.status()["state"] == "Active"
        assert len(jobs_at(world, "20260302T100000Z")) == 1
        world.auditor.check()

    run(story)


def test_a_slow_api_server_slows_and_does_not_stop() -> None:
    """2 s a call: the Lease is acquired and kept, what is due runs within its deadline."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        await world.until_leading(world.start("a", latency_seconds=2.0))
        world.apply(a_schedule(**MINUTELY))
        await world.sleep_until(at("10:02:50"))
        assert lease(world)["leaseTransitions"] == 1
        for minute in range(3):
            assert len(jobs_at(world, f"20260302T100{minute}00Z")) == 1
        world.auditor.check()

    run(story)


def test_a_deleted_lease_is_made_anew_above_every_epoch_on_record() -> None:
    """R33 P16."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        world.apply(a_schedule(**MINUTELY))
        for _ in range(3):
            await world.restart()
            await asyncio.sleep(25)
        epoch = lease(world)["leaseTransitions"]
        world.server.delete("leases", SETTINGS.lease.namespace, SETTINGS.lease.name)
        await asyncio.sleep(90)
        assert isinstance(epoch, int)
        assert lease(world)["leaseTransitions"] > epoch
        world.auditor.check()

    run(story)


@pytest.mark.parametrize("has_fence", [True, False])
def test_a_lease_that_can_not_be_renewed_ends_the_leadership(has_fence: bool) -> None:
    """K-057: by its own deadline, before another leads; that one runs what is due, once."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        if not has_fence:
            world.suspend_rules()
        await world.until_leading(world.start("a"))
        world.apply(a_schedule(**MINUTELY))
        await standby(world)
        await world.sleep_until(at("09:59:50"))

        def is_renewal(request: ApiRequest) -> bool:
            return request.client == "a" and request.method == "PUT" and "/leases/" in request.path

        world.fault(Fault(status=403, reason="Forbidden", message="exceeded quota"), matches=is_renewal, times=2)
        world.fault(Fault(status=409, reason="Conflict"), matches=is_renewal)
        deadline = world.clock.monotonic() + SETTINGS.lease_times.renew_deadline_seconds
        await world.sleep_until(at("10:00:40"))
        assert lease(world)["holderIdentity"] == "pod-op2"
        late = [entry for entry in world.writes() if entry.client == "a" and entry.time > deadline]
        assert late == []
        assert len(jobs_at(world, "20260302T100000Z")) == 1
        world.auditor.check()

    run(story)


def test_a_lease_that_somebody_stole_ends_the_leadership() -> None:
    """R33: nothing is written after it, and the Lease is taken back when the thief lets it expire."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        world.apply(a_schedule(**MINUTELY))
        await world.sleep_until(at("09:59:50"))
        body = world.server.get("leases", SETTINGS.lease.namespace, SETTINGS.lease.name)
        body["spec"] |= {"holderIdentity": "thief", "leaseTransitions": 99}
        world.server.replace(body)
        stolen = len(world.server.log)
        await world.sleep_until(at("10:00:04"))
        assert world.writes(since=stolen) == []
        await world.sleep_until(at("10:00:30"))
        assert lease(world)["leaseTransitions"] == 100
        assert len(jobs_at(world, "20260302T100000Z")) == 1
        world.auditor.check()

    run(story)


def test_an_api_server_that_is_down_for_minutes() -> None:
    """K-069: in time for Latest, on record for Skip, and not flooded with requests while it is down."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        herd(world, 5, misfirePolicy="Latest")
        world.apply(a_schedule("skip", **FIVE))
        await Player(world).play(
            [
                At("09:59", of="skip"),
                ServerDown("09:59:30", "10:03"),
                At("10:04", want=["SkippedMisfire 10:00"], of="skip"),
                At("10:05", want=[admitted("10:05")], of="skip"),
            ]
        )
        assert len(jobs_at(world, "20260302T100000Z")) == 5
        down = [entry for entry in world.server.log if entry.status == 0]
        assert len(down) < 210 * 2.5
        world.auditor.check()

    run(story)


def test_a_throttled_job_create_runs_within_its_deadline() -> None:
    """K-069: 429 with Retry-After for 20 s."""

    async def story(world: World) -> None:
        await world.until_leading(world.start())
        world.apply(a_schedule(**FIVE))
        await world.sleep_until(at("09:59:55"))
        hook = world.fault(
            Fault(status=429, reason="TooManyRequests", retry_after_seconds=5),
            matches=lambda request: request.path.endswith("/jobs") and request.method == "POST",
        )
        await world.sleep_until(at("10:00:20"))
        refused = [entry for entry in world.server.log if entry.status == 429]
        assert 2 <= len(refused) <= 5
        world.server.faults.remove(hook)
        await world.sleep_until(at("10:00:50"))
        assert len(jobs_at(world, "20260302T100000Z")) == 1
        world.auditor.check()

    run(story)


def test_a_job_that_ends_while_the_watch_is_silent_and_vanishes() -> None:
    """K-031 K-067: the slot is free again, the run has an outcome, nothing is made again."""
    play(
        [
            At("10:00:30", want=[admitted("10:00")]),
            At("10:01", do=_break_watches_and_lose_the_job),
            At("10:04", ends=["Failed/JobMissing 10:00"]),
            At("10:05", want=[admitted("10:05")]),
        ],
        a_schedule(**FIVE),
        run_seconds=None,
        start="09:58",
    )


async def _break_watches_and_lose_the_job(world: World) -> None:
    hook = world.fault(
        Fault(is_dropped=True), matches=lambda request: "watch" in request.query or request.method == "WATCH"
    )
    world.server.break_watches()
    await asyncio.sleep(1)
    name = world.job_names()[0]
    world.jobs.finish("ns", name)
    world.delete(name, plural="jobs")
    world.server.compact()
    await asyncio.sleep(60)
    world.server.faults.remove(hook)


STEPS: list[Step] = [
    At("10:00", want=[admitted("10:00")], ends=[completed("10:00")]),
    Crash("10:00:59.9"),
    At("10:01:25", want=[admitted("10:01")], ends=[completed("10:01")]),
    Crash("10:02:00.005"),
    Crash("10:02:00.012"),
    Crash("10:02:00.020"),
    At("10:02:25", want=[admitted("10:02")], ends=[completed("10:02")]),
    Outage("10:02:30", "10:02:35"),
    At("10:03:20", want=[admitted("10:03")]),
]


def test_crashes_at_awkward_moments() -> None:
    """K-050: within milliseconds of a due instant, three in a row."""
    play(STEPS, a_schedule(**MINUTELY), start="09:59")


def test_wall_clock_of_the_fence_is_the_monotonic_one() -> None:
    """P15: a wall clock that jumps neither extends nor ends a leadership."""

    async def story(world: World) -> None:
        first = world.start()
        await world.until_leading(first)
        epoch = lease(world)["leaseTransitions"]
        world.clock.jump(timedelta(hours=3))
        await asyncio.sleep(30)
        world.clock.jump(timedelta(hours=-6))
        await asyncio.sleep(30)
        assert first.operator.is_leading
        assert lease(world)["leaseTransitions"] == epoch

    run(story)
