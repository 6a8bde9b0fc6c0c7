"""Limits over many schedules: never more at once than they say, by any order of events, and each free place is used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from support.api_kinds import Json, Kind
from support.api_requests import ApiRequest
from support.api_store import Change
from support.api_transport import Fault
from support.auditor import FINAL
from support.harness import World
from support.objects import a_definition, a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api.names import API_VERSION, KIND_OCCURRENCE

LATEST = {"misfirePolicy": "Latest"}
MINUTELY = {"schedule": "* * * * *"}
FIVE = {"schedule": "*/5 * * * *"}


class Peak:
    """The most unfinished scheduled runs that were ever on record at once, overall and per definition."""

    def __init__(self, world: World) -> None:
        self.now: dict[str, str] = {}
        self.overall = 0
        self.of: dict[str, int] = {}
        world.server.store.observers.append(self._observe)

    def _observe(self, kind: Kind, change: Change) -> None:
        if kind.plural != "scheduleoccurrences" or change.after is None:
            return
        body = change.after.body
        uid, spec = body["metadata"]["uid"], body["spec"]
        if spec.get("decision") != "Admitted" or (body.get("status") or {}).get("outcome") in FINAL:
            self.now.pop(uid, None)
            return
        self.now[uid] = definition = spec.get("definitionUID", "")
        self.overall = max(self.overall, len(self.now))
        of_it = sum(each == definition for each in self.now.values())
        self.of[definition] = max(self.of.get(definition, 0), of_it)


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:58", is_settled: bool = True) -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        await story(world)
        world.auditor.check(is_settled=is_settled)

    run_virtual(main, at(start))


def decided(world: World, name: str = "s") -> list[str]:
    specs = [each["spec"] for each in world.records(name) if each["spec"]["cause"] == "Scheduled"]
    return [
        f"{spec['decision']}/{spec['reason']} {spec['scheduledTime'][11:16]}"
        for spec in specs
        if spec["decision"] != "Baseline"
    ]


def all_decided(world: World) -> list[Json]:
    specs = [each["spec"] for each in world.server.objects("scheduleoccurrences", "ns")]
    return [spec for spec in specs if spec["decision"] != "Baseline"]


def end(world: World, name: str) -> None:
    """End the run of a schedule that goes on."""
    for job in world.server.objects("jobs", "ns"):
        is_its = job["metadata"]["labels"]["workflow-schedules.dev/schedule"] == name
        if is_its and not job["status"].get("completionTime"):
            world.jobs.finish("ns", job["metadata"]["name"])


def running(world: World) -> list[str]:
    jobs = world.server.objects("jobs", "ns")
    label = "workflow-schedules.dev/schedule"
    return sorted(job["metadata"]["labels"][label] for job in jobs if not job["status"].get("completionTime"))


def herd(world: World, size: int, **spec: object) -> None:
    for number in range(size):
        world.apply(a_schedule(f"s{number:03d}", **{**FIVE, **LATEST, **spec}))


@pytest.mark.parametrize("latency_seconds", [0.004, 1.0])
def test_a_herd_never_passes_the_operator_s_limit_and_all_run_in_the_end(latency_seconds: float) -> None:
    """R28: sixteen workers decide at once, on a quick and on a slow API server."""

    async def story(world: World) -> None:
        world.jobs.run_for(5)
        peak = Peak(world)
        world.start(max_concurrent_runs=7, latency_seconds=latency_seconds)
        herd(world, 60, schedule="0 10 * * *")
        await world.sleep_until(at("10:04"))
        assert peak.overall == 7
        assert world.auditor.jobs_started() == 60

    run(story)


def test_a_definition_s_limit_binds_its_schedules_alone() -> None:
    """R28."""

    async def story(world: World) -> None:
        world.jobs.run_for(5)
        peak = Peak(world)
        world.apply(a_definition("w", maxActiveRuns=3))
        world.apply(a_definition("v"))
        herd(world, 20, workflow="w")
        for number in range(20):
            world.apply(a_schedule(f"v{number:02d}", workflow="v", **FIVE))
        world.start()
        await world.sleep_until(at("10:04"))
        limited, free = (world.server.get("workflowdefinitions", "ns", name)["metadata"]["uid"] for name in "wv")
        assert peak.of == {limited: 3, free: 20}
        assert world.auditor.jobs_started() == 40

    run(story)


def test_under_skip_a_blocked_instant_is_skipped_and_the_reason_is_capacity() -> None:
    """R16 R28: its own run in the way is said as ever."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.start(max_concurrent_runs=1)
        world.apply(a_schedule("first", schedule="59 9 * * *"))
        world.apply(a_schedule(**MINUTELY))
        await world.sleep_until(at("09:59:30"))
        running_now = running(world)
        await world.sleep_until(at("10:00:30"))
        other = "s" if running_now == ["first"] else "first"
        assert running_now == running(world)
        assert len(running_now) == 1
        skipped = [spec for spec in all_decided(world) if spec["decision"] == "SkippedOverlap"]
        assert {spec["reason"] for spec in skipped if spec["scheduleRef"]["name"] == other} == {"CapacityExceeded"}
        assert all("MAX_CONCURRENT_RUNS" in spec["message"] for spec in skipped if spec["scheduleRef"]["name"] == other)
        end(world, running_now[0])
        await world.sleep_until(at("10:01:30"))
        assert decided(world)[-1] == "Admitted/Admitted 10:01"
        await world.sleep_until(at("10:02:30"))
        assert decided(world)[-1] == "SkippedOverlap/SkippedOverlap 10:02"

    run(story)


def test_a_place_that_frees_goes_to_the_oldest_candidate() -> None:
    """R28: whoever waits for it is in sight, and nobody who comes by takes it."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.start(max_concurrent_runs=1)
        for name, minute in (("first", 0), ("second", 1), ("third", 2)):
            world.apply(a_schedule(name, schedule=f"{minute} * * * *", misfirePolicy="All"))
        await world.sleep_until(at("10:02:30"))
        assert running(world) == ["first"]
        assert world.status("third")["candidates"] == ["2026-03-02T10:02:00Z"]
        assert world.status("third")["state"] == "Active"
        end(world, "first")
        await asyncio.sleep(2)
        assert running(world) == ["second"]
        end(world, "second")
        await asyncio.sleep(2)
        assert running(world) == ["third"]

    run(story)


def test_minutely_schedules_that_want_one_place_take_turns() -> None:
    """R28: though under Latest all their candidates are the same instant each minute."""

    async def story(world: World) -> None:
        world.jobs.run_for(55)
        world.start(max_concurrent_runs=1)
        for name in "abcd":
            world.apply(a_schedule(name, **MINUTELY, **LATEST))
        await world.sleep_until(at("10:20"))
        runs = [len([each for each in decided(world, name) if each.startswith("Admitted")]) for name in "abcd"]
        assert min(runs) >= 4
        assert max(runs) - min(runs) <= 1

    run(story)


@pytest.mark.parametrize(("limit", "runs"), [(1, 3), (5, 5), (None, 7)])
def test_a_limit_that_changes_cancels_nothing_and_lets_in_as_many(limit: int | None, runs: int) -> None:
    """R28: three of seven run, four wait."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_definition(maxActiveRuns=3))
        world.start()
        herd(world, 7, workflow="w", schedule="0 10 * * *")
        await world.sleep_until(at("10:01"))
        assert len(running(world)) == 3
        world.edit_definition(maxActiveRuns=limit)
        await world.sleep_until(at("10:02"))
        assert len(running(world)) == runs
        for name in running(world)[:2]:
            end(world, name)
        await world.sleep_until(at("10:03"))
        assert len(running(world)) == min(limit or 5, 5)

    run(story)


def test_a_definition_made_anew_does_not_inherit_the_runs_of_the_old_one() -> None:
    """R28: its runs go on, and count where the operator's limit is concerned."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_definition(maxActiveRuns=1))
        world.start(max_concurrent_runs=2)
        herd(world, 3, workflow="w")
        await world.sleep_until(at("10:01"))
        assert len(running(world)) == 1
        world.delete("w", plural="workflowdefinitions")
        await world.sleep_until(at("10:02"))
        world.apply(a_definition(maxActiveRuns=5))
        await world.sleep_until(at("10:06"))
        assert len(running(world)) == 2

    run(story)


@pytest.mark.parametrize("seconds", [0.5, 3.0, 20.0])
def test_a_new_leader_knows_the_count_before_it_admits(seconds: float) -> None:
    """R28: logs that it has not read count, too, also those of schedules that are gone."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        peak = Peak(world)
        world.start("a", max_concurrent_runs=4)
        herd(world, 4, schedule="0 10 * * *")
        await world.sleep_until(at("10:00:00") if seconds < 1 else at("10:00:10"))
        await asyncio.sleep(seconds)
        world.delete("s000")
        for number in range(4, 12):
            world.apply(a_schedule(f"s{number:03d}", schedule="1 10 * * *", **LATEST))
        await world.kill("a")
        world.start("b", max_concurrent_runs=4)
        await world.sleep_until(at("10:01:30"))
        assert peak.overall == len(running(world)) == 4
        end(world, "s000")
        end(world, "s001")
        await asyncio.sleep(3)
        assert peak.overall == len(running(world)) == 4
        assert not {"s000", "s001"} & {*running(world)}

    run(story)


def test_two_leaders_with_one_stalled_stay_within_the_limit() -> None:
    """R28: the old one wakes with its decisions made."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        peak = Peak(world)
        await world.until_leading(world.start("a", max_concurrent_runs=3))
        herd(world, 12, schedule="0 10 * * *", startingDeadlineSeconds=300)
        world.start("b", max_concurrent_runs=3)
        await world.sleep_until(at("09:59:58"))

        def is_stalled(request: ApiRequest) -> bool:
            return request.client == "a" and request.path.endswith(
                ("/scheduleoccurrences", "/leases/workflow-schedules")
            )

        world.fault(Fault(delay_seconds=40), matches=is_stalled)
        await world.sleep_until(at("10:02"))
        assert peak.overall == len(running(world)) == 3

    run(story)


@pytest.mark.parametrize("fault", [Fault(is_answer_lost=True), Fault(is_dropped=True), Fault(delay_seconds=20)])
def test_an_admission_without_an_answer_keeps_its_place(fault: Fault) -> None:
    """R28 P2: it may still arrive; it is counted once, and given up when it can't any more."""

    async def story(world: World) -> None:
        world.jobs.run_for(8)
        peak = Peak(world)
        await world.until_leading(world.start(max_concurrent_runs=3))
        herd(world, 15, schedule="0 10 * * *")
        await world.sleep_until(at("09:59:58"))
        world.fault(fault, matches=lambda request: request.method == "POST" and "occurrences" in request.path, times=3)
        await world.sleep_until(at("10:04"))
        assert peak.overall == 3
        assert world.auditor.jobs_started() == 15

    run(story)


def test_a_schedule_that_can_t_be_admitted_does_not_keep_the_place() -> None:
    """I9 R28."""

    async def story(world: World) -> None:
        world.jobs.run_for(5)
        await world.until_leading(world.start(max_concurrent_runs=1))
        herd(world, 6, schedule="0 10 * * *")
        await world.sleep_until(at("09:59:58"))
        uid = world.schedule("s000")["metadata"]["uid"]
        world.fault(
            Fault(status=500, reason="InternalError"),
            matches=lambda request: request.method == "POST" and uid.encode() in (request.body or b""),
        )
        await world.sleep_until(at("10:08"))
        assert world.auditor.jobs_started() == 5

    run(story, is_settled=False)


def test_requests_of_people_hold_no_place() -> None:
    """R12 R27 R28: by their cause, whatever their labels and status say."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        world.apply(a_schedule(**FIVE))
        uid = world.schedule()["metadata"]["uid"]
        world.server.create(
            {
                "apiVersion": API_VERSION,
                "kind": KIND_OCCURRENCE,
                "metadata": {
                    "name": "by-hand",
                    "namespace": "ns",
                    "labels": {"workflow-schedules.dev/schedule-uid": uid},
                },
                "spec": {"scheduleRef": {"name": "s", "uid": uid}, "cause": "Manual"},
            }
        )
        world.start(max_concurrent_runs=1)
        await world.sleep_until(at("10:00:30"))
        assert decided(world)[-1] == "Admitted/Admitted 10:00"

    run(story)


def test_waiting_costs_no_request_and_an_end_no_more_than_one_admission() -> None:
    """R28: two hundred wait, one place frees: one record and one Job."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        await world.until_leading(world.start(max_concurrent_runs=1))
        herd(world, 200, schedule="0 10 * * *")
        await world.sleep_until(at("10:03"))
        before = len(world.server.log)
        await world.sleep_until(at("10:08"))
        assert world.writes(since=before) == []
        end(world, running(world)[0])
        await world.sleep_until(at("10:09"))
        kinds = sorted(
            f"{entry.method} {entry.path.split('/namespaces/ns/')[1].split('/')[0]}"
            for entry in world.server.log[before:]
            if "/namespaces/ns/" in entry.path and entry.method != "WATCH"
        )
        assert kinds.count("POST scheduleoccurrences") == kinds.count("POST jobs") == 1
        assert len(kinds) <= 8, kinds

    run(story)


def test_an_admission_that_nobody_could_look_for_keeps_its_place() -> None:
    """R28: it is on record, its answer is lost, and its log can't be read for longer than a request lives."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        peak = Peak(world)
        world.jobs.run_for(20)
        await world.until_leading(world.start(max_concurrent_runs=1))
        for name, minute in (("first", 0), ("second", 1)):
            world.apply(a_schedule(name, schedule=f"{minute} 10 * * *", **LATEST))
        await world.sleep_until(at("09:59:30"))
        uid = world.schedule("first")["metadata"]["uid"]

        def is_of_first(request: ApiRequest) -> bool:
            if "scheduleoccurrences" not in request.path:
                return False
            if request.method == "POST":
                return b'"name":"first-' in (request.body or b"")
            return request.method == "GET" and ("/first-" in request.path or uid in str(request.query))

        world.fault(Fault(is_answer_lost=True, is_silent=True), matches=is_of_first)
        await world.sleep_until(at("10:00:58"))
        world.heal()
        await world.sleep_until(at("10:03"))
        assert peak.overall == 1
        assert len(world.job_names()) == 2
        world.auditor.check()

    run_virtual(story, at("09:58"))
