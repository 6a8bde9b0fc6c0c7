"""How many requests things cost, counted by the API server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from support.api_transport import LogEntry
from support.harness import SETTINGS, World
from support.job_runner import Course
from support.objects import a_definition, a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual

HERD = 50


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:59:30") -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.start()
        await story(world)
        world.auditor.check()

    run_virtual(main, at(start))


def requests(world: World, since: int) -> Counter[str]:
    """Requests by kind; watches, the Lease's own and the proof of the fence left out."""
    return Counter(
        _kind(entry)
        for entry in world.server.log[since:]
        if not (entry.method == "WATCH" or "/leases" in entry.path or _is_fence_proof(entry))
    )


def _kind(entry: LogEntry) -> str:
    plural = next(
        name
        for name in (
            "scheduleoccurrences",
            "workflowschedules",
            "workflowdefinitions",
            "jobs",
            "controllerrevisions",
            "events",
        )
        if f"/{name}" in entry.path
    )
    return f"{entry.method} {plural}" + ("/status" if entry.path.endswith("/status") else "")


def fence_proofs(world: World, since: int) -> list[LogEntry]:
    return [entry for entry in world.server.log[since:] if _is_fence_proof(entry)]


def _is_fence_proof(entry: LogEntry) -> bool:
    """Tell whether it asks about a record in the Lease's namespace, or about a status."""
    is_record = f"/{SETTINGS.lease.namespace}/scheduleoccurrences" in entry.path
    return entry.is_dry_run and (is_record or entry.path.endswith("/status"))


def asked(world: World) -> int:
    """How often a Job was sent as a dry run."""
    return sum(1 for entry in world.server.log if entry.is_dry_run and entry.path.endswith("/jobs"))


def one_to_three_seconds(job: dict[str, object]) -> Course:
    """A run time that differs from Job to Job, and is the same in each run of the test."""
    return Course(run_seconds=1 + sum(map(ord, str(job["metadata"]))) % 200 / 100)


def a_herd(world: World, **spec: object) -> None:
    for number in range(HERD):
        world.apply(a_schedule(f"s{number:02d}", schedule="*/5 * * * *", **spec))


def test_a_run_costs_two_requests_before_its_job_exists_and_four_in_its_life() -> None:
    async def story(world: World) -> None:
        world.jobs.course = one_to_three_seconds
        a_herd(world)
        await world.sleep_until(at("09:59:59"))
        before = len(world.server.log)
        await world.sleep_until(at("10:00:01.1"))
        assert len(world.job_names()) == HERD
        posts = requests(world, before)
        assert posts == {"POST controllerrevisions": 1, "POST scheduleoccurrences": HERD, "POST jobs": HERD}
        await world.sleep_until(at("10:04:30"))
        assert requests(world, before) == {
            "POST controllerrevisions": 1,
            "POST scheduleoccurrences": HERD,
            "POST jobs": HERD,
            "PATCH scheduleoccurrences/status": HERD,
            "PATCH workflowschedules/status": HERD,
        }

    run(story)


def test_a_run_of_more_than_ten_seconds_costs_six() -> None:
    """That it runs is on record, and in its schedule's status (R29)."""

    async def story(world: World) -> None:
        world.jobs.run_for(45)
        a_herd(world)
        await world.sleep_until(at("10:04:30"))
        before = len(world.server.log)
        await world.sleep_until(at("10:09:30"))
        assert requests(world, before) == {
            "POST scheduleoccurrences": HERD,
            "POST jobs": HERD,
            "PATCH scheduleoccurrences/status": 2 * HERD,
            "PATCH workflowschedules/status": 2 * HERD,
        }

    run(story)


def test_a_long_run_of_a_definition_shows_in_its_status_too() -> None:
    async def story(world: World) -> None:
        world.jobs.run_for(45)
        world.apply(a_definition())
        a_herd(world, workflow="w", jobTemplate=None)
        await world.sleep_until(at("10:04:30"))
        before = len(world.server.log)
        await world.sleep_until(at("10:09:30"))
        assert requests(world, before)["PATCH workflowdefinitions/status"] == 2

    run(story)


def test_the_second_run_costs_no_more_than_the_first() -> None:
    async def story(world: World) -> None:
        world.jobs.course = one_to_three_seconds
        a_herd(world)
        await world.sleep_until(at("10:04:30"))
        before = len(world.server.log)
        await world.sleep_until(at("10:14:30"))
        assert sum(requests(world, before).values()) == 2 * 4 * HERD

    run(story)


def test_a_run_whose_history_is_full_costs_one_more_the_removal_of_the_oldest_job() -> None:
    """R22: later, and not on its path."""

    async def story(world: World) -> None:
        world.jobs.course = one_to_three_seconds
        a_herd(world)
        await world.sleep_until(at("10:29:58"))
        before = len(world.server.log)
        await world.sleep_until(at("10:30:01.1"))
        assert requests(world, before) == {"POST scheduleoccurrences": HERD, "POST jobs": HERD}
        await world.sleep_until(at("10:34:58"))
        assert requests(world, before) == {
            "POST scheduleoccurrences": HERD,
            "POST jobs": HERD,
            "PATCH scheduleoccurrences/status": HERD,
            "PATCH workflowschedules/status": HERD,
            "DELETE jobs": HERD,
        }

    run(story)


def test_runs_of_a_definition_cost_no_more() -> None:
    """Its status counts active runs, yet short runs cost no write of it."""

    async def story(world: World) -> None:
        world.jobs.course = one_to_three_seconds
        world.apply(a_definition())
        a_herd(world, workflow="w", jobTemplate=None)
        await world.sleep_until(at("10:04:30"))
        before = len(world.server.log)
        await world.sleep_until(at("10:09:30"))
        assert sum(requests(world, before).values()) <= 4 * HERD + 2

    run(story)


def test_a_skip_costs_one_request_and_its_status_one() -> None:
    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(schedule="* * * * *"))
        await world.sleep_until(at("10:00:50"))
        before = len(world.server.log)
        await world.sleep_until(at("10:01:50"))
        assert requests(world, before) == {"POST scheduleoccurrences": 1, "PATCH workflowschedules/status": 1}

    run(story)


def test_a_year_of_misses_costs_one_request() -> None:
    """R17."""

    async def story(world: World) -> None:
        world.apply(a_schedule(schedule="* * * * *"))
        await world.sleep_until(at("10:00:30"))
        await world.kill()
        world.clock.offset = at("2027-03-02T10:00:30") - at("10:00:30")
        before = len(world.server.log)
        world.start()
        await world.until_leading(next(iter(world.processes.values())))
        await world.sleep_until(at("2027-03-02T10:00:50"))
        assert requests(world, before)["POST scheduleoccurrences"] == 2
        assert [each["spec"]["decision"] for each in world.records()[-2:]] == ["SkippedMisfire", "Admitted"]

    run(story)


def test_an_idle_hour_writes_nothing() -> None:
    """I8: with schedules of every state, and Lease renewals and the hourly proof of the fence left out."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        world.apply(a_definition())
        world.apply(a_definition("off", enabled=False))
        world.apply(a_schedule("daily", schedule="0 9 * * *"))
        world.apply(a_schedule("child", schedule="0 10 * * *", workflow="w"))
        world.apply(a_schedule("held", workflow="off"))
        world.apply(a_schedule("orphan", workflow="nobody"))
        world.apply(a_schedule("disabled", enabled=False))
        world.apply(a_schedule("refused", schedule="0 0 31 2 *"))
        world.apply(a_schedule("once", runOnceTime="2026-03-02T10:00:00Z"))
        world.apply(a_schedule("past", runOnceTime="2026-03-02T08:00:00Z"))
        await world.sleep_until(at("10:02"))
        before = len(world.server.log)
        await world.sleep_until(at("11:02"))
        assert world.writes(since=before) == []
        assert requests(world, before) == {}
        assert [(each.method, each.is_dry_run) for each in fence_proofs(world, before)] == [
            *[("POST", True)] * 2,
            ("PATCH", True),
        ]

    run(story)


def test_a_template_is_asked_about_once_for_each_leader() -> None:
    """R24: before its first run is due, and never again while the answer was that it is fine."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        other = {"spec": {"template": {"spec": {"containers": [{"name": "other", "image": "other"}]}}}}
        for name, template in (("a", None), ("b", None), ("c", other), ("d", other), ("e", other)):
            world.apply(a_schedule(name, schedule="*/30 * * * *", **({"jobTemplate": template} if template else {})))
        await world.sleep_until(at("09:59:50"))
        assert asked(world) == 2
        world.edit("a", schedule="*/20 * * * *")
        await world.sleep_until(at("12:10"))
        assert asked(world) == 2
        await world.restart()
        await world.sleep_until(at("14:20"))
        assert asked(world) == 4

    run(story)


def test_a_takeover_writes_nothing_about_what_is_in_order() -> None:
    """I8: no status is written only because the writer is another one."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        world.apply(a_definition())
        world.apply(a_schedule("child", schedule="0 10 * * *", workflow="w"))
        world.apply(a_schedule("disabled", enabled=False))
        world.apply(a_schedule("once", runOnceTime="2026-03-02T10:00:00Z"))
        await world.sleep_until(at("10:02"))
        before = len(world.server.log)
        await world.restart()
        await world.sleep_until(at("10:05"))
        assert world.writes(since=before) == []

    run(story)


def test_an_apply_of_the_same_spec_writes_nothing() -> None:
    """R10."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        world.apply(a_definition())
        a_herd(world)
        world.apply(a_schedule("child", workflow="w"))
        await world.sleep_until(at("10:01"))
        before = len(world.server.log)
        a_herd(world)
        world.apply(a_definition())
        world.apply(a_schedule("child", workflow="w"))
        await world.sleep_until(at("10:04:30"))
        assert requests(world, before) == {}

    run(story)


def test_an_edit_costs_a_baseline_and_a_status() -> None:
    async def story(world: World) -> None:
        world.apply(a_schedule())
        await world.sleep_until(at("10:01"))
        before = len(world.server.log)
        world.edit("s", schedule="*/20 * * * *")
        await world.sleep_until(at("10:03"))
        assert requests(world, before) == {"POST scheduleoccurrences": 1, "PATCH workflowschedules/status": 1}

    run(story)
