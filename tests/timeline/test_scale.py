"""Many schedules, and years of instants: how much work they are, counted in computations, turns of the loop and requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import orjson
import pytest

from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.harness import NAMESPACE, SETTINGS, World
from support.objects import a_definition, a_schedule
from support.story import LEASE_TIMES, At, at, play
from support.virtual_loop import VirtualClock, VirtualTimeLoop, run_virtual
from workflow_schedules.api.common import parse_utc
from workflow_schedules.api.names import LABEL_SCHEDULE, LABEL_SCHEDULE_UID, record_name
from workflow_schedules.cluster import wire
from workflow_schedules.core import wall_times

SECOND = timedelta(seconds=1)
MINUTELY = {"schedule": "* * * * *"}
STORED, DUE = 1_000, 100
AT_A_STRETCH = 200  # schedules read: some fifteen milliseconds


@dataclass(slots=True)
class Work:
    """What was computed, counted by the turn of the loop in which it was.

    Attributes:
        enumerations: of a calendar.
        instants: that they gave.
        reads: of a schedule as the API server gives it.
    """

    enumerations: Counter[int] = field(default_factory=Counter)
    instants: Counter[int] = field(default_factory=Counter)
    reads: Counter[int] = field(default_factory=Counter)

    def forget(self) -> None:
        for counter in (self.enumerations, self.instants, self.reads):
            counter.clear()


def turn() -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop.turns


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Count what passes, and change nothing of it."""
    counted = Work()

    def enumerating(function: Callable[..., Iterator[int]]) -> Callable[..., Iterator[int]]:
        def enumerate_(*span: Any) -> Iterator[int]:  # noqa: ANN401 - whatever the function takes
            counted.enumerations[turn()] += 1
            for instant in function(*span):
                counted.instants[turn()] += 1
                yield instant

        return enumerate_

    def counting(*span: Any) -> int:  # noqa: ANN401
        counted.enumerations[turn()] += 1
        return count(*span)

    def reading(body: Json) -> object:
        counted.reads[turn()] += 1
        return read(body)

    count, read = wall_times.count_between, wire.schedule_of
    monkeypatch.setattr(wall_times, "ascending", enumerating(wall_times.ascending))
    monkeypatch.setattr(wall_times, "descending", enumerating(wall_times.descending))
    monkeypatch.setattr(wall_times, "count_between", counting)
    monkeypatch.setattr(wire, "schedule_of", reading)
    return counted


async def store(world: World, count: int, *, due: int) -> None:
    """Let there be schedules that have been in order for long, so many of them due at half past ten."""
    world.apply(a_schedule("s", schedule="0 9 * * *"))
    await world.sleep_until(at("10:00"))
    await world.kill()
    status, record = world.status(), world.record(1)
    lift = world.suspend_rules()
    for number in range(count):
        name = f"s{number:05d}"
        uid = world.apply(a_schedule(name, schedule="30 10 * * *" if number < due else "0 9 * * *"))["metadata"]["uid"]
        labels = record["metadata"]["labels"] | {LABEL_SCHEDULE: name, LABEL_SCHEDULE_UID: uid}
        spec_hash = wire.schedule_of(world.schedule(name)).spec_hash
        spec = record["spec"] | {"scheduleRef": {"name": name, "uid": uid}, "specHash": spec_hash}
        metadata = {"name": record_name(name, uid, 1), "namespace": NAMESPACE, "labels": labels}
        world.server.create({**record, "metadata": metadata, "spec": spec})
        world.server.patch("workflowschedules", NAMESPACE, name, {"status": status}, subresource="status")
    lift()


def test_thousands_of_schedules_at_a_takeover(work: Work) -> None:
    """K-089: nothing keeps the loop for long, idle means idle, and work comes with what is due, in proportion to it."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        await world.until_leading(world.start())
        await store(world, STORED, due=DUE)
        await world.until_leading(world.start("leader"))
        standby = world.start("standby")
        await world.sleep_until(at("10:05"))
        work.forget()
        before = len(world.server.log)
        await world.stop("leader")
        await world.until_leading(standby)
        await world.sleep_until(at("10:06"))
        assert work.reads.total() == STORED + 1
        assert max(work.reads.values()) <= AT_A_STRETCH
        assert work.enumerations.total() <= 4 * STORED, "each is looked at once"
        assert max(work.enumerations.values()) <= 4 * SETTINGS.workers, "and the loop turns meanwhile"
        assert world.writes(since=before) == []
        work.forget()
        await world.sleep_until(at("10:29:50"))
        assert (work.enumerations.total(), work.reads.total()) == (0, 0)
        await world.sleep_until(at("10:31"))
        assert len(world.job_names()) == DUE
        assert work.enumerations.total() <= 40 * DUE, "those that are not due are not looked at"
        assert work.instants.total() <= 40 * DUE
        assert max(work.enumerations.values()) <= 8 * SETTINGS.workers
        assert len(world.writes(since=before)) <= 4 * DUE + 1

    run_virtual(story, at("09:58"))


def test_thousands_of_definitions_at_a_takeover(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """K-089: read in slices like schedules: two thousand with a schema took a second at a stretch."""
    read = wire.definition_of

    def reading(body: Json) -> object:
        work.reads[turn()] += 1
        return read(body)

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        await world.until_leading(world.start("leader"))
        for number in range(5 * AT_A_STRETCH):
            world.apply(a_definition(f"w{number:04d}"))
        standby = world.start("standby")
        await asyncio.sleep(60)
        await world.stop("leader")
        monkeypatch.setattr(wire, "definition_of", reading)
        work.forget()
        await world.until_leading(standby)
        assert work.reads.total() == 5 * AT_A_STRETCH
        assert max(work.reads.values()) <= AT_A_STRETCH

    run_virtual(story, at("09:58"))


@pytest.mark.parametrize(
    ("spec", "years", "missed"),
    [({"schedule": "* * * * *"}, 10, 5_259_000), ({"schedule": "0 0 29 2 *"}, 50, 11)],
    ids=["each minute of ten years", "each leap day of fifty years"],
)
def test_years_of_missed_instants(work: Work, spec: Json, years: int, missed: int) -> None:
    """K-087: found by a few steps back from now, told in one record, and one runs; nothing is listed."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        await world.until_leading(world.start())
        world.apply(a_schedule(**spec, misfirePolicy="Latest"))
        await world.sleep_until(at("09:58:30"))
        await world.kill()
        clock.jump(at(f"{2026 + years}-03-02T10:00:30") - at("09:58:30"))
        work.forget()
        world.start()
        await asyncio.sleep(25)
        skipped, run = [each["spec"] for each in world.records()][1:]
        assert (skipped["decision"], run["decision"]) == ("Coalesced", "Admitted")
        assert skipped["span"]["count"] >= missed
        assert skipped["span"]["lastTime"] < run["scheduledTime"]
        assert work.instants.total() <= 50
        assert work.enumerations.total() <= 50

    run_virtual(story, at("09:58"))


CHANGEOVERS = {
    "clocks go on: half past two is not there": (
        ["2026-03-08T06:59", *(f"2026-03-08T07:0{minute}" for minute in range(6))],
        "2026-03-08T07:00",
        ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"],
    ),
    "clocks go back: half past two is yet to come": (
        ["2026-11-01T05:59", *(f"2026-11-01T06:0{minute}" for minute in range(6))],
        None,
        ["2026-11-01T07:30:00Z"],
    ),
}


@pytest.mark.parametrize(("minutes", "daily", "want_next"), CHANGEOVERS.values(), ids=CHANGEOVERS)
def test_idle_between_the_minutes_of_a_changeover(
    work: Work, minutes: list[str], daily: str | None, want_next: list[str]
) -> None:
    """K-053: each minute once, each next later than the last, little work at each and none between."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        world.apply(a_schedule("s", **MINUTELY, timeZone="America/New_York"))
        world.apply(a_schedule("d", schedule="30 2 * * *", timeZone="America/New_York"))
        await world.sleep_until(at(minutes[0]) - 30 * SECOND)
        nexts: dict[str, list[str]] = {"s": [], "d": []}
        for minute in minutes:
            work.forget()
            before = turn()
            await world.sleep_until(at(minute) - 5 * SECOND)
            assert (work.enumerations.total(), work.reads.total()) == (0, 0)
            assert turn() - before <= 10 * 35, "watches and the Lease, every few seconds"
            await world.sleep_until(at(minute) + 20 * SECOND)
            due = 2 if minute == daily else 1
            assert 0 < max(work.enumerations.total(), work.instants.total()) <= 30 * due
            for name, told in nexts.items():
                told.append(world.status(name)["nextScheduleTime"])
        assert nexts["s"] == sorted({*nexts["s"]})
        assert all(told[:16] > minute for told, minute in zip(nexts["s"], minutes, strict=True))
        assert sorted({*nexts["d"]}) == list(dict.fromkeys(nexts["d"])) == want_next
        assert [instants(world, "s"), instants(world, "d")] == [minutes, [daily] if daily else []]
        assert world.auditor.violations == []

    run_virtual(story, at(minutes[0]) - 60 * SECOND)


def instants(world: World, name: str) -> list[str]:
    runs = (each["spec"] for each in world.records(name) if each["spec"]["decision"] == "Admitted")
    return [each["scheduledTime"][:16] for each in runs]


async def append_old_records(world: World, name: str, count: int) -> None:
    """Let a schedule have so many finished records more."""
    last = world.records(name)[-1]
    uid = world.schedule(name)["metadata"]["uid"]
    for number in range(2, count + 2):
        spec = last["spec"] | {"sequence": number, "previousUID": last["metadata"]["uid"]}
        spec |= {"decision": "SkippedOverlap", "reason": "SkippedOverlap", "scheduledTime": "2026-03-02T10:00:00Z"}
        metadata = {
            "name": record_name(name, uid, number),
            "namespace": NAMESPACE,
            "labels": last["metadata"]["labels"],
        }
        last = world.server.create({**last, "metadata": metadata, "spec": spec})
    status = {"status": {"logHead": count + 1}}
    world.server.patch("workflowschedules", NAMESPACE, name, status, subresource="status")


def test_a_schedule_with_a_long_history_delays_nobody() -> None:
    """K-085: others are on time to the second, lists are paged and selected, and its history goes at a pace."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        await world.until_leading(world.start())
        world.apply(a_schedule("long", schedule="0 9 1 1 *"))
        await world.sleep_until(at("09:58:30"))
        await world.kill()
        lift = world.suspend_rules()
        await append_old_records(world, "long", 1_200)
        lift()
        await world.sleep_until(at("10:02:30"))
        world.apply(a_schedule("other", **MINUTELY))
        lists: list[ApiRequest] = []
        world.server.faults.append(lambda each: lists.append(each) if is_list_of_records(each) else None)
        world.start()
        await world.sleep_until(at("10:20:30"))
        assert len(lists) > 0
        assert all(int(each.query["limit"]) <= 500 for each in lists)
        assert all(
            each.query.get("labelSelector") or each.query.get("fieldSelector") for each in lists if is_whole(each)
        )
        removed = Counter(int(each.time) for each in world.server.log if each.method == "DELETE")
        assert max(removed.values()) <= 101
        assert len(world.records("long")) <= 100 + 20
        runs = [each for each in world.records("other") if each["spec"]["decision"] == "Admitted"]
        assert len(runs) == 18
        assert all(made_after(each) <= 1 for each in runs)
        assert world.auditor.violations == []

    run_virtual(story, at("09:58"))


def is_list_of_records(request: ApiRequest) -> bool:
    return request.method == "GET" and request.path.endswith("/scheduleoccurrences")


def is_whole(request: ApiRequest) -> bool:
    """Tell whether a list is of one schedule's namespace or less; the sweep over all records has no selector."""
    return "/namespaces/" in request.path


def made_after(record: Json) -> float:
    """Return how many seconds after its instant a record was made."""
    created = parse_utc(record["metadata"]["creationTimestamp"])
    return (created - parse_utc(record["spec"]["scheduledTime"])).total_seconds()


def test_hours_of_runs_that_fail_at_length_leave_small_objects() -> None:
    """K-077: what is told of them is in records, which go; the schedule stays small, and writes go on."""
    why = "a very long reason, " * 5000

    def all_small(world: World) -> None:
        assert len(orjson.dumps(world.schedule())) < 16 * 1024
        records = world.records()
        assert len(records) <= 20 + 20 + 5
        assert max(len(orjson.dumps(each)) for each in records) < 16 * 1024

    play(
        [
            At("00:01:30", do=lambda world: world.refuse(422, "Invalid", why, plural="jobs")),
            *(At(f"{hour:02d}:59:50", check=all_small, status={"logHead": 60 * hour + 60}) for hour in range(4)),
        ],
        a_schedule(**MINUTELY, occurrenceHistoryLimit=20),
        start="00:00:30",
    )
