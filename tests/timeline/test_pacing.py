"""Writes that fail while reads work: each is tried again at a bounded rate, and what is due happens once they work again."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import World
from support.objects import a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual

PER_MINUTE = 60


@dataclass(frozen=True)
class Write:
    name: str
    method: str
    ending: str  # of the path; a star stands for a name

    def is_one(self, request: ApiRequest) -> bool:
        parts, wanted = request.path.split("/"), self.ending.split("/")
        tail = parts[-len(wanted) :]
        return request.method == self.method and all(
            want in ("*", part) for part, want in zip(tail, wanted, strict=True)
        )


WRITES = [
    Write("a record", "POST", "scheduleoccurrences"),
    Write("an outcome", "PATCH", "scheduleoccurrences/*/status"),
    Write("a Job", "POST", "jobs"),
    Write("a pinned template", "POST", "controllerrevisions"),
    Write("a schedule's status", "PATCH", "workflowschedules/*/status"),
]
ANSWERS = [500, 503, 409, 429, 403]


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
@pytest.mark.parametrize("status", ANSWERS)
def test_a_write_that_fails_is_paced_and_done_in_the_end(write: Write, status: int) -> None:
    """K-069, R35: no hot loop whatever the answer; the run is started once, and on record, when writes work again."""
    counted: list[int] = []
    outcome: list[str] = []

    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        world.apply(a_schedule(schedule="0 * * * *", startingDeadlineSeconds=600))
        await world.sleep_until(at("10:59:50"))
        since = len(world.server.log)
        world.fault(Fault(status=status, reason="Conflict" if status == 409 else "Injected"), matches=write.is_one)
        await world.sleep_until(at("11:02"))
        counted.append(sum(not _is_leases(entry.path) for entry in world.server.log[since:]))
        world.heal()
        await world.sleep_until(at("11:08"))
        outcome.extend(str(record.get("status", {}).get("outcome")) for record in world.records() if _is_run(record))

    run_virtual(main, at("10:30"))
    assert counted[0] <= 2 * PER_MINUTE
    if not (write.name == "a Job" and status == 403):  # a refusal for good: recorded, not tried again
        assert outcome == ["Completed"]


@pytest.mark.parametrize(
    ("policy", "fault_on", "want"),
    [
        ("Skip", "scheduleoccurrences", ["SkippedMisfire None"]),
        ("Skip", "jobs", ["Admitted Failed/NotStarted"]),
        ("Latest", "scheduleoccurrences", ["Admitted Completed/JobComplete"]),
        ("Latest", "jobs", ["Admitted Completed/JobComplete"]),
    ],
)
def test_a_server_that_is_overloaded_when_something_is_due(policy: str, fault_on: str, want: list[str]) -> None:
    """K-069: 429 with Retry-After for 20 s costs nothing; 503 for 90 s is past a deadline of 60 s: Skip says so, Latest runs."""

    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        world.apply(a_schedule(schedule="0 * * * *", misfirePolicy=policy))
        await world.sleep_until(at("09:59:58"))
        throttled = Fault(status=429, reason="TooManyRequests", retry_after_seconds=5)
        world.fault(throttled, matches=WRITES[2].is_one)
        await world.sleep_until(at("10:00:20"))
        assert 3 <= sum(entry.status == 429 for entry in world.server.log) <= 5
        world.heal()
        await world.sleep_until(at("10:00:40"))
        assert told(world) == ["Admitted Completed/JobComplete"]
        await world.sleep_until(at("10:59:58"))
        since = len(world.server.log)
        world.fault(
            Fault(status=503, reason="ServiceUnavailable"),
            matches=lambda request: request.method == "POST" and request.path.endswith(f"/{fault_on}"),
        )
        await world.sleep_until(at("11:01:30"))
        assert sum(entry.status == 503 for entry in world.server.log[since:]) <= 20
        world.heal()
        await world.sleep_until(at("11:03:30"))
        assert told(world)[1:] == want
        world.auditor.check()

    run_virtual(main, at("09:58"))


def told(world: World) -> list[str]:
    found = [each for each in world.records() if each["spec"]["decision"] != "Baseline"]
    return [f"{each['spec']['decision']} {_ended(each.get('status') or {})}" for each in found]


def _ended(status: dict[str, object]) -> str:
    return f"{status['outcome']}/{status['reason']}" if status else "None"


def _is_leases(path: str) -> bool:
    return "/leases" in path


def _is_run(record: dict[str, dict[str, object]]) -> bool:
    return record["spec"]["decision"] == "Admitted"
