"""The Lease itself: when it is taken, kept, given up and handed over, to the second; what its holder does is told elsewhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import SETTINGS, Process, World
from support.objects import a_schedule
from support.story import at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.core.lease import HIGHEST_EPOCH
from workflow_schedules.scheduler.lease_times import LeaseTimes

TIMES = SETTINGS.lease_times
MINUTELY = {"schedule": "* * * * *"}
MOMENT = 0.1


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:58") -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        world.jobs.run_for(2)
        await story(world)
        world.auditor.check()

    run_virtual(main, at(start))


def lease(world: World) -> Json:
    return dict(world.server.get("leases", SETTINGS.lease.namespace, SETTINGS.lease.name)["spec"])


def write_lease(world: World, **spec: object) -> None:
    body = world.server.get("leases", SETTINGS.lease.namespace, SETTINGS.lease.name)
    body["spec"] = {key: value for key, value in (body["spec"] | spec).items() if value is not None}
    world.server.replace(body)


def is_of_lease(client: str, method: str = "") -> Callable[[ApiRequest], bool]:
    def matches(request: ApiRequest) -> bool:
        return request.client == client and request.method.startswith(method) and "/leases" in request.path

    return matches


def renewals(world: World, client: str) -> list[float]:
    """When renewals arrived."""
    return [
        entry.time
        for entry in world.server.log
        if entry.client == client and entry.method == "PUT" and "/leases/" in entry.path and entry.status == 200
    ]


async def seconds_until(world: World, process: Process) -> float:
    """How long it takes until a process leads."""
    began = world.clock.monotonic()
    await world.until_leading(process)
    return world.clock.monotonic() - began


def test_a_clean_stop_hands_over_within_a_second() -> None:
    """R34: released last, seen by the standby at its next look."""

    async def story(world: World) -> None:
        await world.until_leading(world.start("a"))
        standby = world.start("b")
        for pause in (3.0, 3.3, 3.6):  # wherever between two looks it falls
            await asyncio.sleep(pause)
            await world.stop("a")
            assert await seconds_until(world, standby) < 1.0
            world.processes["a"], standby = standby, world.start(f"c{pause}")

    run(story)


@pytest.mark.parametrize("after_renewal", [0.01, 1.0, 1.9])
def test_a_crash_is_made_good_within_the_lease_duration(after_renewal: float) -> None:
    """R34: counted from the last renewal; the standby sees that half a second late at the most."""

    async def story(world: World) -> None:
        await world.until_leading(world.start("a"))
        standby = world.start("b")
        await asyncio.sleep(10)
        seen = len(renewals(world, "a"))
        while len(renewals(world, "a")) == seen:  # noqa: ASYNC110 - the server's log is watched from outside
            await asyncio.sleep(0.005)
        last = renewals(world, "a")[-1]
        await asyncio.sleep(after_renewal)
        await world.kill("a")
        await world.until_leading(standby)
        assert TIMES.duration_seconds <= world.clock.monotonic() - last
        assert world.clock.monotonic() - last < TIMES.duration_seconds + TIMES.look_seconds + 2 * MOMENT

    run(story)


@pytest.mark.parametrize(("lag", "most"), [(0.0, 60), (0.1, 90)])
def test_a_standby_hears_of_renewals_and_seldom_asks(lag: float, most: int) -> None:
    """Idle costs little: twice a second would be 120 requests a minute, for each standby; a few tell of a late watch."""

    async def story(world: World) -> None:
        await world.until_leading(world.start("a"))
        world.start("b").transport.connection.watch_lag_seconds = lag
        await asyncio.sleep(10)
        before = len(world.server.log)
        await asyncio.sleep(600)
        asked = [entry.method for entry in world.server.log[before:] if entry.client == "b" and "/leases" in entry.path]
        assert asked.count("WATCH") <= 3
        assert 40 <= asked.count("GET") <= most

    run(story)


def deaf(_world: World, standby: Process) -> None:
    """Let its watch be silent from now on, as when the other end is gone without a word."""
    standby.transport.connection.watch_lag_seconds = 1e6


def refused(world: World, _standby: Process) -> None:
    """Let the right to watch be missing, as in the roles of an older version."""
    world.fault(Fault(status=403, reason="Forbidden"), matches=is_of_lease("b", "WATCH"))
    world.server.break_watches()


def lost(world: World, _standby: Process) -> None:
    """Let no watch of the Lease get through."""
    world.fault(Fault(is_dropped=True, is_silent=True), matches=is_of_lease("b", "WATCH"))
    world.server.break_watches()


@pytest.mark.parametrize("trouble", [deaf, refused, lost])
@pytest.mark.parametrize("after", [0.4, 1.7, 3.1, 30.0])
def test_a_standby_whose_watch_is_silent_looks_by_itself(
    trouble: Callable[[World, Process], None], after: float
) -> None:
    """R34: a release is seen within a second all the same, once the silence is longer than between two renewals."""

    async def story(world: World) -> None:
        await world.until_leading(world.start("a"))
        standby = world.start("b")
        await asyncio.sleep(10)
        trouble(world, standby)
        await asyncio.sleep(after)
        await world.stop("a")
        silent_for = TIMES.hush_seconds if after < TIMES.hush_seconds else 0.0
        assert await seconds_until(world, standby) < 1.0 + silent_for

    run(story)


@pytest.mark.parametrize("trouble", [deaf, refused, lost])
def test_a_crash_is_made_good_in_time_though_the_watch_is_silent(trouble: Callable[[World, Process], None]) -> None:
    """R34: neither earlier nor later."""

    async def story(world: World) -> None:
        await world.until_leading(world.start("a"))
        standby = world.start("b")
        await asyncio.sleep(10)
        trouble(world, standby)
        await asyncio.sleep(25)
        await world.kill("a")
        last = renewals(world, "a")[-1]
        await world.until_leading(standby)
        assert TIMES.duration_seconds <= world.clock.monotonic() - last
        assert world.clock.monotonic() - last < TIMES.duration_seconds + TIMES.look_seconds + 2 * MOMENT

    run(story)


async def fall_behind(standby: Process, seconds: float, *, step: float) -> None:
    """Let what its watch tells come later, by so much more each time."""
    while standby.transport.connection.watch_lag_seconds < seconds:
        standby.transport.connection.watch_lag_seconds += step
        await asyncio.sleep(TIMES.retry_seconds)


async def a_standby_behind(world: World, lag: float, *, step: float) -> Process:
    """Let `a` lead, and `b` stand by whose watch falls behind."""
    await world.until_leading(world.start("a"))
    standby = world.start("b")
    await asyncio.sleep(10)
    await fall_behind(standby, lag, step=step)
    return standby


@pytest.mark.parametrize(
    ("lag", "step"), [(0.7, 0.7), (0.7, 0.1), (1.3, 0.45), (1.9, 1.9), (1.9, 0.38), (1.9, 0.1), (1.9, 0.02)]
)
@pytest.mark.parametrize("after", [0.0, 0.9, 30.0, 31.3])
def test_a_crash_is_made_good_in_time_though_the_watch_is_late(lag: float, step: float, after: float) -> None:
    """R34: late each time, since long or just now, at once or little by little."""

    async def story(world: World) -> None:
        standby = await a_standby_behind(world, lag, step=step)
        await asyncio.sleep(after)
        await world.kill("a")
        last = renewals(world, "a")[-1]
        await world.until_leading(standby)
        assert TIMES.duration_seconds <= world.clock.monotonic() - last
        assert world.clock.monotonic() - last < TIMES.duration_seconds + TIMES.look_seconds + 2 * MOMENT

    run(story)


@pytest.mark.parametrize(("lag", "step"), [(1.2, 1.2), (1.9, 1.9), (1.9, 0.1)])
@pytest.mark.parametrize("after", [10.0, 11.3, 12.8])
def test_a_release_is_seen_within_a_second_though_the_watch_is_late(lag: float, step: float, after: float) -> None:
    """R34: once it was late it is not waited for."""

    async def story(world: World) -> None:
        standby = await a_standby_behind(world, lag, step=step)
        await asyncio.sleep(after)
        await world.stop("a")
        assert await seconds_until(world, standby) < 1.0

    run(story)


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_release_that_is_heard_while_a_request_is_on_its_way_is_not_forgotten(method: str) -> None:
    """R34: another was faster, and gives it up before the standby's request gets there; asked for again once, not in a hurry."""

    async def story(world: World) -> None:
        await world.until_leading(world.start("a"))
        standby = world.start("b")
        await asyncio.sleep(10)
        world.fault(Fault(delay_seconds=1.0), matches=is_of_lease("b", method), times=1)
        await world.stop("a")
        await asyncio.sleep(0.1)
        write_lease(world, holderIdentity="c", leaseTransitions=2)
        await asyncio.sleep(0.1)
        write_lease(world, holderIdentity=None)
        before = len(world.server.log)
        assert await seconds_until(world, standby) < 1.0
        asked = [entry for entry in world.server.log[before:] if entry.client == "b" and "/leases/" in entry.path]
        assert len(asked) <= 4

    run(story)


def test_an_answer_that_a_watch_has_overtaken_is_no_restored_backup() -> None:
    """P9: the Lease was read before the renewal that the watch told of first."""

    async def story(world: World) -> None:
        await world.until_leading(world.start("a"))
        standby, told = world.start("b"), list[None]()
        standby.operator.on_history_lost = lambda: told.append(None)
        await asyncio.sleep(10)
        world.late.append(lambda method, path: 3.0 if (method, "/leases/" in path) == ("GET", True) else 0.0)
        for _ in range(20):
            hook = world.fault(Fault(delay_seconds=2.3), matches=is_of_lease("a", "PUT"), times=1)
            await asyncio.sleep(5.3)
            world.server.faults.remove(hook)
        asked = [entry for entry in world.server.log if entry.client == "b" and entry.method == "GET"]
        assert sum("/leases/" in entry.path for entry in asked) > 10
        assert told == []
        assert not standby.operator.is_leading

    run(story)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(status=403, reason="Forbidden", message="exceeded quota"), id="refused"),
        pytest.param(Fault(status=409, reason="Conflict"), id="conflicts"),
        pytest.param(Fault(is_dropped=True, is_silent=True), id="unanswered"),
        pytest.param(Fault(is_dropped=True), id="reset"),
    ],
)
def test_at_the_deadline_all_work_has_ended(fault: Fault) -> None:
    """R34, P15, K-057: not a moment after it, though requests hang, and before anybody else may lead."""

    async def story(world: World) -> None:
        leader = world.start("a")
        await world.until_leading(leader)
        for number in range(20):
            world.apply(a_schedule(f"s{number}", **MINUTELY))
        await world.sleep_until(at("09:59:50"))
        world.fault(fault, matches=is_of_lease("a", "PUT"))
        world.fault(
            Fault(is_dropped=True, is_silent=True),
            matches=lambda request: request.client == "a" and request.method == "POST",
        )
        last = renewals(world, "a")[-1]
        await asyncio.sleep(last + TIMES.renew_deadline_seconds - MOMENT - world.clock.monotonic())
        assert leader.operator.is_leading
        hung = [entry for entry in world.server.log if entry.client == "a" and entry.method == "POST"]
        await asyncio.sleep(2 * MOMENT)
        assert not leader.operator.is_leading, "its work is cancelled and has ended"
        sent = [entry for entry in world.server.log if entry.client == "a" and entry.method == "POST"]
        await asyncio.sleep(30)
        later = [entry for entry in world.server.log if entry.client == "a" and entry.method == "POST"]
        assert hung == sent == later
        world.heal()
        await world.sleep_until(at("10:02:30"))

    run(story, start="09:59:20")


def test_a_renewal_whose_answer_is_lost_is_found_and_costs_nothing() -> None:
    """R33: the Lease is still this epoch's, so the leader goes on."""

    async def story(world: World) -> None:
        leader = world.start("a")
        await world.until_leading(leader)
        for is_silent in (False, True):
            epoch = lease(world)["leaseTransitions"]
            world.fault(Fault(is_answer_lost=True, is_silent=is_silent), matches=is_of_lease("a", "PUT"), times=1)
            await asyncio.sleep(20)
            assert (leader.operator.is_leading, lease(world)["leaseTransitions"]) == (True, epoch)

    run(story)


def test_the_server_is_left_alone_for_as_long_as_it_asks_while_the_lease_allows() -> None:
    """K-069: Retry-After of 4 s on renewals is honoured; one of five minutes does not cost the Lease."""

    async def story(world: World) -> None:
        leader = world.start("a")
        await world.until_leading(leader)
        epoch = lease(world)["leaseTransitions"]
        for seconds in (4, 300):
            await asyncio.sleep(9)
            began = len(world.server.log)
            throttled = Fault(status=429, reason="TooManyRequests", retry_after_seconds=seconds)
            world.fault(throttled, matches=is_of_lease("a", "PUT"), times=1)
            await asyncio.sleep(9)
            tries = [entry.time for entry in world.server.log[began:] if "/leases/" in entry.path]
            refused = next(entry.time for entry in world.server.log[began:] if entry.status == 429)
            following = min(time for time in tries if time > refused)
            assert following - refused >= min(seconds, 3.9)
        assert (leader.operator.is_leading, lease(world)["leaseTransitions"]) == (True, epoch)

    run(story)


def test_a_candidate_waits_for_as_long_as_the_holder_says() -> None:
    """K-060: the holder's 30 s, renewed every 20 s, hold for a candidate that is set to 10 s."""

    async def story(world: World) -> None:
        slow = LeaseTimes(duration_seconds=30, renew_deadline_seconds=25, retry_seconds=20)
        fast = LeaseTimes(duration_seconds=10, renew_deadline_seconds=6, retry_seconds=2)
        leader = world.start("a", lease_times=slow)
        await world.until_leading(leader)
        candidate = world.start("b", lease_times=fast)
        await asyncio.sleep(200)
        assert (leader.operator.is_leading, lease(world)["leaseTransitions"]) == (True, 1)
        await world.kill("a")
        last = renewals(world, "a")[-1]
        await world.until_leading(candidate)
        assert 30 <= world.clock.monotonic() - last < 31
        assert lease(world)["leaseDurationSeconds"] == 10

    run(story)


def test_what_is_published_is_never_shorter_than_what_the_holder_relies_on() -> None:
    """R34: the Lease says whole seconds; a candidate without a word on it waits for its own duration."""

    async def story(world: World) -> None:
        await world.until_leading(
            world.start(
                "a", lease_times=LeaseTimes(duration_seconds=2.4, renew_deadline_seconds=2.2, retry_seconds=0.5)
            )
        )
        assert lease(world)["leaseDurationSeconds"] == 3
        await world.kill("a")
        write_lease(world, leaseDurationSeconds=None)
        took = await seconds_until(world, world.start("b"))
        assert TIMES.duration_seconds <= took < TIMES.duration_seconds + 1

    run(story)


def test_a_lease_that_is_lost_while_nobody_runs_is_made_anew_above_the_log() -> None:
    """R33, P16: nothing is written under the epoch that it begins with."""

    async def story(world: World) -> None:
        await world.until_leading(world.start())
        world.apply(a_schedule(**MINUTELY))
        for _ in range(3):
            await world.restart()
            await asyncio.sleep(25)
        epoch = lease(world)["leaseTransitions"]
        await world.kill()
        world.server.delete("leases", SETTINGS.lease.namespace, SETTINGS.lease.name)
        gone = len(world.server.log)
        await world.until_leading(world.start())
        assert lease(world)["leaseTransitions"] == epoch + 1
        assert world.writes(since=gone) == []
        await world.sleep_until(at("10:01:10"))
        assert world.records()[-1]["spec"]["fencingEpoch"] == epoch + 1

    run(story)


def test_an_epoch_that_can_not_be_raised_is_said_and_mended_by_hand(caplog: pytest.LogCaptureFixture) -> None:
    """P16: leaseTransitions is an int32; whoever writes its end into the Lease stops the scheduling, and is told how to go on."""

    async def story(world: World) -> None:
        caplog.set_level(logging.ERROR)
        process = world.start()
        await world.until_leading(process)
        world.apply(a_schedule(**MINUTELY))
        await asyncio.sleep(20)
        write_lease(world, holderIdentity=None, leaseTransitions=HIGHEST_EPOCH)
        await asyncio.sleep(20)
        assert not process.operator.is_leading
        assert "delete the Lease" in str(process.operator.unready_reason)
        assert "delete the Lease" in caplog.text
        world.server.delete("leases", SETTINGS.lease.namespace, SETTINGS.lease.name)
        await world.until_leading(process)
        assert process.operator.unready_reason is None
        assert lease(world)["leaseTransitions"] == 2

    run(story)


def test_a_missing_fence_is_said_and_the_others_hold(caplog: pytest.LogCaptureFixture) -> None:
    """P14: the scheduling goes on, what is wrong is in the log once and in the readiness, and its mending is noticed."""

    async def story(world: World) -> None:
        caplog.set_level(logging.ERROR)
        world.server.admission.remove(world.fence)
        process = world.start()
        await world.until_leading(process)
        world.apply(a_schedule(**MINUTELY))
        await world.sleep_until(at("10:02:30"))
        assert "workflow-schedules-fence" in str(process.operator.unready_reason)
        assert "it is missing (apply the manifests)" in caplog.text
        assert len(caplog.records) == 1
        assert [each["spec"]["decision"] for each in world.records()].count("Admitted") == 4
        world.server.admission.append(world.fence)
        await asyncio.sleep(61)
        assert process.operator.unready_reason is None

    run(story)


def test_a_fence_that_takes_any_status_is_said() -> None:
    """P14: creates and statuses are bound to the policy apart, so each is asked about."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY))
        await world.until_leading(world.start())
        await world.sleep_until(at("10:00:30"))
        await world.kill()
        world.server.admission.remove(world.fence)
        world.server.admission.append(lambda asked: None if asked.subresource == "status" else world.fence(asked))
        process = world.start()
        await world.until_leading(process)
        await asyncio.sleep(1)
        assert "or one of its bindings" in str(process.operator.unready_reason)

    run(story)


def test_a_right_to_the_lease_that_is_missing_is_named() -> None:
    """K-093: neither ready nor in a hurry, and back by itself."""

    async def story(world: World) -> None:
        message = 'leases.coordination.k8s.io "workflow-schedules" is forbidden: User "x" cannot get resource "leases"'
        hook = world.fault(Fault(status=403, reason="Forbidden", message=message), matches=is_of_lease("a", "GET"))
        process = world.start("a")
        await asyncio.sleep(60)
        assert 'cannot get resource "leases"' in str(process.operator.unready_reason)
        assert len([entry for entry in world.server.log if "/leases" in entry.path]) <= 31
        world.server.faults.remove(hook)
        await world.until_leading(process)
        assert process.operator.unready_reason is None

    run(story)


def test_a_holder_finds_its_lease_restored_after_the_deadline() -> None:
    """P9: while etcd is restored nobody answers, so that the right to write ends first; the Lease still tells of it."""

    async def story(world: World) -> None:
        process, told = world.start("a"), list[None]()
        process.operator.on_history_lost = lambda: told.append(None)
        await world.until_leading(process)
        await asyncio.sleep(5)
        backup = world.server.backup()  # nothing but the Lease is written after it: no watch can know
        await asyncio.sleep(5)
        hook = world.fault(Fault(is_dropped=True), matches=lambda request: request.client == "a")
        await asyncio.sleep(1.5 * TIMES.renew_deadline_seconds)
        assert not process.operator.is_leading
        assert told == []
        world.server.restore(backup)
        world.server.faults.remove(hook)
        await world.until_leading(process)
        assert told == [None]

    run(story)
