"""An edit that comes while instants are due and undecided: they are given up by name and number (R10, I3)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from support.harness import World
from support.objects import a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual


@dataclass(frozen=True, slots=True)
class Case:
    """No record can be written from 10:02 to 10:27; the schedule is edited meanwhile."""

    name: str
    edits: tuple[str, ...]
    want: tuple[int, str, str] | None
    is_taken_over: bool = False
    policy: str = "Skip"


CASES = [
    Case("one edit", ("*/10 * * * *",), (4, "10:05", "10:20")),
    Case("two edits: the calendar on record counts", ("*/10 * * * *", "*/15 * * * *"), (4, "10:05", "10:20")),
    Case("nothing is known of it by a successor", ("*/10 * * * *",), None, is_taken_over=True),
    Case("under Latest the newest waited in sight", ("*/10 * * * *",), (4, "10:05", "10:20"), policy="Latest"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_was_due_before_an_edit_is_on_record(case: Case) -> None:
    """R10 R29 I3: with count and span, and in the totals of the schedule; no request more than without."""

    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        world.apply(a_schedule(schedule="*/5 * * * *", misfirePolicy=case.policy))
        await world.sleep_until(at("10:02"))
        lift = world.refuse(403, "Forbidden", "no", plural="scheduleoccurrences")
        await world.sleep_until(at("10:21"))
        for number, schedule in enumerate(case.edits):
            world.edit("s", schedule=schedule)
            await world.sleep_until(at(f"10:2{2 + number}"))
        if case.is_taken_over:
            await world.restart()
        lift()
        await world.sleep_until(at("10:27"))
        baseline = next(each["spec"] for each in world.records() if each["spec"]["reason"] == "Edited")
        span = baseline.get("span")
        found = span and (span["count"], span["firstTime"][11:16], span["lastTime"][11:16])
        assert found == case.want
        assert "instants after 2026-03-02T10:00:00Z through " in baseline["message"]
        assert baseline["totals"]["superseded"] == world.status()["counts"]["superseded"] == (found[0] if found else 0)
        await world.sleep_until(at("10:31"))
        assert world.records()[-1]["spec"]["scheduledTime"][11:16] == "10:30"
        cache = next(iter(world.processes.values())).operator._cluster.cache
        assert [log.before_edit for log in cache.logs.values()] == [None]
        world.auditor.check()

    run_virtual(main, at("09:58"))


def test_an_edit_during_a_clean_stop_shows_when_it_is_on_record_and_not_before() -> None:
    """R11: else the next leader takes it for done, and gives up what is due by the time it finds out."""

    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(0.5)
        process = world.start()
        await world.until_leading(process)
        world.apply(a_schedule(schedule="*/5 * * * *"))
        world.apply(a_schedule("slow", namespace="elsewhere", schedule="*/5 * * * *"))
        await world.sleep_until(at("09:59:58"))
        world.late.append(lambda method, path: 5.0 if method == "POST" and "/elsewhere/" in path else 0.0)
        await world.sleep_until(at("10:00:01"))
        process.ask_to_stop()  # what is in flight is waited for
        world.edit("s", schedule="* * * * *")
        await world.stop()
        assert (world.status()["observedGeneration"], len(world.records())) == (1, 2)
        world.late.clear()
        world.start()
        await world.sleep_until(at("10:01:10"))
        decided = [(each["spec"]["decision"], each["spec"]["generation"]) for each in world.records()]
        assert decided == [("Baseline", 1), ("Admitted", 1), ("Baseline", 2), ("Admitted", 2)]
        world.auditor.check()

    run_virtual(main, at("09:58"))
