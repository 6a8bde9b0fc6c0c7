"""An older backup of etcd is restored: with `notBefore` nothing that it forgot is run a second time, and that is told."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from support.api_kinds import Json
from support.harness import World
from support.objects import a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual

FIVE = a_schedule("five", schedule="* * * * *", misfirePolicy="All", concurrencyPolicy="Allow", maxActiveRuns=9)


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    not_before: str | None
    want: list[str]
    again: list[str]


CASES = [
    Case("all that is forgotten is consumed", "10:04:10",
         ["Baseline Restored through 10:04: 3 superseded", "Admitted 10:05"], []),
    Case("one that is too early lets the rest run again", "10:03:10",
         ["Baseline Restored through 10:03: 2 superseded", "Admitted 10:04", "Admitted 10:05"], ["10:04"]),
    Case("without it they run again", None,
         ["Admitted 10:02", "Admitted 10:03", "Admitted 10:04", "Admitted 10:05"], ["10:02", "10:03", "10:04"]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_backup_forgot(case: Case) -> None:
    """I1, I3: the backup is of 10:01:30, and is restored at 10:04:10, while no operator runs."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        world.apply(FIVE)
        world.start()
        await world.sleep_until(at("10:01:30"))
        backup, known = world.server.backup(), len(world.records("five"))
        await world.sleep_until(at("10:04:10"))
        before = {each["spec"]["scheduledTime"] for each in world.records("five") if is_run(each)}
        await world.stop()
        world.server.restore(backup)
        world.start(not_before=at(case.not_before) if case.not_before else None)
        await world.sleep_until(at("10:05:30"))
        after = world.records("five")[known:]
        assert [told(each) for each in after] == case.want
        again = [each["spec"]["scheduledTime"] for each in after if is_run(each)]
        assert [each[11:16] for each in again if each in before] == case.again
        assert all(each["status"]["outcome"] == "Completed" for each in after if is_run(each))

    run_virtual(story, at("09:59:30"))


def test_a_running_operator_goes_on_from_the_backup_and_not_from_memory() -> None:
    """P8, P9: no log has a gap, no schedule that is no more runs, and what is new is seen and run."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        world.apply(FIVE)
        await world.until_leading(world.start())
        await world.sleep_until(at("10:01:30"))
        backup, known = world.server.backup(), len(world.records("five"))
        world.apply(a_schedule("forgotten", schedule="* * * * *"))
        await world.sleep_until(at("10:04:10"))
        world.server.restore(backup)
        world.apply(a_schedule("new", schedule="* * * * *"))
        await world.sleep_until(at("10:05:30"))
        records = world.records("five")
        assert [each["spec"]["sequence"] for each in records] == list(range(1, len(records) + 1))
        assert [each["spec"].get("previousUID") for each in records[1:]] == [
            each["metadata"]["uid"] for each in records[:-1]
        ]
        assert [told(each) for each in records[known:]] == [f"Admitted 10:0{minute}" for minute in (2, 3, 4, 5)]
        assert all(each["status"]["outcome"] == "Completed" for each in records if is_run(each))
        assert world.records("forgotten") == []
        assert [told(each) for each in world.records("new") if is_run(each)] == ["Admitted 10:05"]
        assert {world.status(name)["state"] for name in ("five", "new")} == {"Active"}

    run_virtual(story, at("09:59:30"))


def is_run(record: Json) -> bool:
    return bool(record["spec"]["decision"] == "Admitted")


def told(record: Json) -> str:
    spec = record["spec"]
    if is_run(record):
        return f"Admitted {spec['scheduledTime'][11:16]}"
    return f"{spec['decision']} {spec['reason']} through {spec['consumedThroughTime'][11:16]}: {spec['span']['count']} superseded"


def test_what_the_watch_says_while_jobs_are_read_anew_is_not_taken_back() -> None:
    """P9: another watch notices the restore later, when that of Jobs goes on already; a Job ends while all are listed."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(25)
        world.apply(FIVE)
        process = world.start()
        await world.until_leading(process)
        await world.sleep_until(at("10:01:20"))
        world.late.append(lambda method, path: 10.0 if is_list_of_jobs(method, path) else 0.0)
        process.operator._lose_history()
        await world.sleep_until(at("10:01:50"))
        world.late.clear()
        await world.until_leading(process)
        await world.sleep_until(at("10:03:50"))
        outcomes = {told(each): each["status"].get("outcome") for each in world.records("five") if is_run(each)}
        assert outcomes == {f"Admitted 10:0{minute}": "Completed" for minute in (0, 1, 2, 3)}

    run_virtual(story, at("09:59:30"))


def is_list_of_jobs(method: str, path: str) -> bool:
    return method == "GET" and path.endswith("/jobs")
