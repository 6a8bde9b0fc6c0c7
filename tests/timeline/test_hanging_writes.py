"""Two hundred schedules whose writes hang, behind a webhook or a proxy that never answers, hold up nobody else (I9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import SETTINGS, World
from support.objects import a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.cluster.client import CLIENT_TIMEOUT_SECONDS
from workflow_schedules.scheduler.turns import MOST, MOST_OF_ONE

HANGING = 200
OF_ONE = 150
MINUTELY = {"schedule": "* * * * *", "misfirePolicy": "Latest"}
SILENCE = Fault(is_dropped=True, is_silent=True)
LATE_500 = Fault(status=500, delay_seconds=9.0)
WRITES = {
    "records": ("POST", "/scheduleoccurrences"),
    "Jobs": ("POST", "/jobs"),
    "outcomes": ("PATCH", "/status"),
    "statuses": ("PATCH", "/status"),
}


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:58") -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        await story(world)

    run_virtual(main, at(start))


def hangs(what: str) -> Callable[[ApiRequest], bool]:
    method, part = WRITES[what]
    plural = {"outcomes": "/scheduleoccurrences/", "statuses": "/workflowschedules/"}.get(what, "")

    def matches(request: ApiRequest) -> bool:
        is_theirs = "/namespaces/team" in request.path and plural in request.path
        return is_theirs and request.method == method and request.path.endswith(part)

    return matches


def lateness(world: World, namespace: str, since: int = 0) -> list[float]:
    """How many seconds after its minute each Job of a namespace was asked for."""
    sent = [each for each in world.server.log[since:] if (each.method, each.status) == ("POST", 201)]
    return [each.time % 60 for each in sent if each.path.endswith(f"/namespaces/{namespace}/jobs")]


async def assert_late_once_at_most(world: World, namespace: str) -> None:
    since = len(world.server.log)
    await world.sleep_until(at("10:04:30"))
    late = lateness(world, namespace, since)
    assert len(late) == 5
    assert late[0] < 59
    assert max(late[1:]) < 1.0


ROWS = [
    *((what, SILENCE, 200) for what in WRITES),
    ("records", LATE_500, 1),
    ("Jobs", SILENCE, 1),
]


@pytest.mark.parametrize(
    ("what", "fault", "namespaces"),
    ROWS,
    ids=[f"{what} of {namespaces} namespaces: {fault.status or 'no answer'}" for what, fault, namespaces in ROWS],
)
def test_who_is_well_is_late_once_at_most(what: str, fault: Fault, namespaces: int) -> None:
    async def story(world: World) -> None:
        for number in range(HANGING):
            world.apply(a_schedule(f"h{number}", namespace=f"team-{number % namespaces}", **MINUTELY))
        world.apply(a_schedule("well", namespace="calm", **MINUTELY))
        await world.sleep_until(at("09:59:30"))
        world.fault(fault, matches=hangs(what))
        before = len(world.server.log)
        await assert_late_once_at_most(world, "calm")
        dry_runs = 1  # has no turn: one is under way at a time
        assert most_hanging(world, before) <= MOST + 2 * SETTINGS.workers + dry_runs

    run(story)


def test_who_is_well_among_them_is_late_once() -> None:
    """How many may hang in a namespace is bounded, so who is well there may wait for their first time-outs, and never again."""

    async def story(world: World) -> None:
        for number in range(OF_ONE):
            world.apply(a_schedule(f"h{number}", namespace="team", **MINUTELY))
        world.apply(a_schedule("well", namespace="team", **MINUTELY))
        uid = world.schedule("well", "team")["metadata"]["uid"].encode()
        await world.sleep_until(at("09:59:30"))
        is_record = hangs("records")
        world.fault(SILENCE, matches=lambda request: is_record(request) and uid not in (request.body or b""))
        before = len(world.server.log)
        await assert_late_once_at_most(world, "team")
        assert most_hanging(world, before) <= MOST_OF_ONE + SETTINGS.workers

    run(story)


def most_hanging(world: World, since: int) -> int:
    """How many requests waited for their time-out together."""
    lost = [each.time for each in world.server.log[since:] if each.status == 0]
    others = CLIENT_TIMEOUT_SECONDS - 0.01  # whose time-out is over at that moment waits no more
    return max((sum(begun - others < other <= begun for other in lost) for begun in lost), default=0)
