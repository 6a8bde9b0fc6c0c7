"""Runs that end before their Job does, or never begin: cancel requests, start timeouts, suspension, budgets."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from support.api_kinds import Json
from support.api_transport import Fault
from support.harness import World
from support.job_runner import Course
from support.objects import a_schedule
from support.story import LEASE_TIMES, At, Crash, Outage, Step, admitted, at, completed, failed, play
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api.names import ANNOTATION_CANCEL

FIVE = {"schedule": "*/5 * * * *"}
HOURLY = {"schedule": "0 * * * *"}
NEVER = Course(run_seconds=None)
NEVER_READY = Course(is_ready=False)
QUOTA = 'jobs.batch "x" is forbidden: exceeded quota: q'


def cancelled(time: str) -> str:
    return f"Cancelled/CancelRequested {time}"


def cancel(number: int, why: str = "wrong data") -> Callable[[World], None]:
    """Ask for the end of a run, as `kubectl annotate` does."""

    def act(world: World) -> None:
        name = world.record(number)["metadata"]["name"]
        world.server.patch("scheduleoccurrences", "ns", name, {"metadata": {"annotations": {ANNOTATION_CANCEL: why}}})

    return act


def has_jobs(count: int) -> Callable[[World], None]:
    def check(world: World) -> None:
        assert len(world.job_names()) == count

    return check


def both(*checks: Callable[[World], None]) -> Callable[[World], None]:
    def check(world: World) -> None:
        for each in checks:
            each(world)

    return check


def last_job(world: World) -> str:
    return world.job_names()[-1]


def suspend(world: World) -> None:
    world.jobs.controller.suspend_job("ns", last_job(world))


def resume(world: World) -> None:
    world.jobs.controller.resume_job("ns", last_job(world))


def resume_unready(world: World) -> None:
    world.jobs.controller.resume_job("ns", last_job(world), ready=0)


def lose_readiness(world: World) -> None:
    world.jobs.controller.start_job("ns", last_job(world), ready=0)


def get_ready(world: World) -> None:
    world.jobs.controller.start_job("ns", last_job(world))


def stick(world: World) -> None:
    world.jobs.add_stuck_pod("ns", last_job(world), "node-7")


def let_go(world: World) -> None:
    world.jobs.let_pod_go("ns", world.job_names()[0])


def first_run(**want: object) -> Callable[[World], None]:
    def check(world: World) -> None:
        status = world.records()[1].get("status") or {}
        assert {name: status.get(name) for name in want} == want

    return check


def health(status: str, reason: str) -> Callable[[World], None]:
    def check(world: World) -> None:
        condition = world.condition("RunsHealthy")
        assert (condition["status"], condition["reason"]) == (status, reason)

    return check


def refuse_jobs(world: World) -> None:
    world.refuse(403, "Forbidden", QUOTA, plural="jobs")


def refuse_deletions_by_webhook(world: World) -> None:
    world.refuse(403, "Forbidden", "a webhook says no", plural="jobs", operation="DELETE")


def no_job_was_made(world: World) -> None:
    assert world.auditor.jobs_started() == 0


def forbid_pods(world: World) -> None:
    world.fault(Fault(status=403, reason="Forbidden"), matches=lambda request: "/pods" in request.path)


def is_stuck_for(why: str) -> Callable[[World], None]:
    def check(world: World) -> None:
        condition = world.condition("RunsHealthy")
        assert (condition["status"], condition["reason"]) == ("False", "CannotBeRemoved")
        assert why in condition["message"]

    return check


def totals_count_it_once(world: World) -> None:
    totals = world.records()[-1]["spec"]["totals"]
    assert (totals["failed"], totals["consecutiveFailures"], totals.get("lastFailureTime")) == (1, 0, None)


STORIES: dict[str, tuple[list[Step], Json, Course]] = {
    "R31: a cancel request ends the run, says what it said, and frees the slot": (
        [
            At("10:00:30", do=cancel(2), want=[admitted("10:00")], ends=[cancelled("10:00")], check=has_jobs(0)),
            At("10:00:40", check=first_run(message=f"annotation {ANNOTATION_CANCEL}: 'wrong data'")),
            At("10:05", want=[admitted("10:05")], ends=[]),
            At("10:10", want=["SkippedOverlap 10:10"], ends=[], check=totals_count_it_once),
        ],
        FIVE,
        NEVER,
    ),
    "R31: a cancel request made while nobody leads": (
        [
            At("10:00:30", want=[admitted("10:00")]),
            Outage("10:01", "10:02", do=cancel(2)),
            At("10:02:30", want=[], ends=[cancelled("10:00")], check=has_jobs(1)),
            At("10:03:40", status={"activeCount": 1}, check=both(has_jobs(1), health("True", "Healthy"))),
            At("10:03:50", check=has_jobs(0)),  # L + R after the takeover (P12)
            At("10:05", want=[admitted("10:05")]),
        ],
        FIVE,
        NEVER,
    ),
    "R31: a run whose Job is refused is cancelled, once no create can be on its way": (
        [
            At("09:59:50", do=refuse_jobs),
            At("10:00:10", do=cancel(2), want=[admitted("10:00")], ends=[cancelled("10:00")], settle_seconds=8),
            At("10:03", check=has_jobs(0)),
        ],
        FIVE,
        NEVER,
    ),
    "R31 P12: cancelled while nobody leads and it has no Job: the successor makes none": (
        [
            At("09:59:50", do=refuse_jobs),
            At("10:00:05", want=[admitted("10:00")]),
            Outage("10:00:10", "10:00:20", do=lambda world: (world.server.admission.pop(), cancel(2)(world))),
            At("10:02:30", ends=[cancelled("10:00")], check=no_job_was_made),
        ],
        FIVE,
        NEVER,
    ),
    "R12 R14: a cancelled run whose pod can't go keeps its slot, over a crash, and says which node": (
        [
            At("10:00:30", do=stick, want=[admitted("10:00")]),
            At("10:01", do=cancel(2), ends=[cancelled("10:00")], check=has_jobs(1)),
            Crash("10:01:30"),
            At("10:03", status={"activeCount": 1}, check=health("False", "CannotBeRemoved")),
            At("10:05", want=["SkippedOverlap 10:05"]),
            At("10:06", do=let_go, settle_seconds=15, status={"activeCount": 0}, check=health("True", "Healthy")),
            At("10:10", want=[admitted("10:10")], ends=[], check=totals_count_it_once),
        ],
        FIVE,
        NEVER,
    ),
    "R20 R31: the schedule is deleted, the leader dies between outcome and deletion: the successor deletes": (
        [
            At("10:00:30", want=[admitted("10:00")]),
            At("10:01", do=lambda w: (refuse_deletions(w), cancel(2)(w)), ends=[cancelled("10:00")], check=has_jobs(1)),
            Outage("10:01:05", "10:01:30", do=lambda world: (world.delete("s"), world.heal())),
            At("10:03", check=has_jobs(1)),
            At("10:03:20", check=has_jobs(0)),  # L + R after the takeover (P12)
        ],
        FIVE,
        NEVER,
    ),
    "I9: a deletion that a webhook refuses is tried again, is said, and keeps nothing else waiting": (
        [
            At("10:00:30", do=refuse_deletions_by_webhook, want=[admitted("10:00")]),
            At("10:01", do=cancel(2), ends=[cancelled("10:00")], check=has_jobs(1)),
            At("10:03", status={"activeCount": 1}, check=is_stuck_for("a webhook says no")),
            At("10:05", want=[admitted("10:05")], ends=[], check=has_jobs(2)),
            At("10:06", do=lambda world: world.server.admission.pop(), settle_seconds=20, check=has_jobs(1)),
        ],
        {**FIVE, "concurrencyPolicy": "Allow", "maxActiveRuns": 2},
        NEVER,
    ),
    "I9: pods that may not be read are said, and keep nothing else waiting": (
        [
            At("10:00:30", do=lambda world: (stick(world), forbid_pods(world)), want=[admitted("10:00")]),
            At("10:01", do=cancel(2), ends=[cancelled("10:00")]),
            At("10:03", check=is_stuck_for("its Pods could not be read")),
            At("10:05", want=[admitted("10:05")], ends=[], check=has_jobs(2)),
        ],
        {**FIVE, "concurrencyPolicy": "Allow", "maxActiveRuns": 2},
        NEVER,
    ),
    "K-031: a watch outage in which the cancelled Job goes": (
        [
            At("10:00:30", do=stick, want=[admitted("10:00")]),
            At("10:01", do=cancel(2), ends=[cancelled("10:00")]),
            At("10:01:10", do=lambda world: (blind_jobs(world), let_go(world))),
            At("10:03", do=lambda world: (world.heal(), world.server.compact()), settle_seconds=20),
            At("10:05", want=[admitted("10:05")], ends=[]),
        ],
        FIVE,
        NEVER,
    ),
    "startTimeoutSeconds: no ready pod by then: StartTimeout, the Job goes, the slot is free": (
        [
            At("10:01:55", want=[admitted("10:00")], ends=[]),
            At("10:02", ends=[failed("10:00", "StartTimeout")], check=has_jobs(0)),
            At("10:05", want=[admitted("10:05")], ends=[]),
        ],
        {**FIVE, "startTimeoutSeconds": 120},
        NEVER_READY,
    ),
    "startTimeoutSeconds: the clock goes on over a restart": (
        [
            Outage("10:00:30", "10:01:30"),
            At("10:01:55", ends=[]),
            At("10:02", ends=[failed("10:00", "StartTimeout")]),
        ],
        {**FIVE, "startTimeoutSeconds": 120},
        NEVER_READY,
    ),
    "R10 startTimeoutSeconds: an edit changes only what is admitted after it": (
        [
            At("10:00:30", do=lambda world: world.edit("s", startTimeoutSeconds=None), want=[admitted("10:00")]),
            At("10:02", ends=[failed("10:00", "StartTimeout")]),
        ],
        {**FIVE, "startTimeoutSeconds": 120},
        NEVER_READY,
    ),
    "startTimeoutSeconds: a pod that was ready once and is not now is no such run, for a successor neither": (
        [
            At("10:00:30", do=lose_readiness, check=first_run(outcome="Running")),
            Crash("10:01"),
            At("10:03", ends=[], check=has_jobs(1)),
        ],
        {**FIVE, "startTimeoutSeconds": 120},
        NEVER,
    ),
    "startTimeoutSeconds: the clock stands still while the Job is suspended (Kueue)": (
        [
            At("10:00:10", do=suspend, want=[admitted("10:00")]),
            Crash("10:20"),
            At("10:30", do=resume_unready, want=None, ends=[]),
            At("10:31:50", want=None, ends=[]),
            At("10:32", want=None, ends=[failed("10:00", "StartTimeout")]),
        ],
        {**HOURLY, "startTimeoutSeconds": 120},
        Course(start_seconds=None),
    ),
    "without it: RunsHealthy is False after 900 s, and True again when a pod is ready": (
        [
            At("10:14:50", ends=[], check=health("True", "Healthy")),
            At("10:15:15", ends=[], check=health("False", "NotStarted")),
            At("10:16", do=get_ready, settle_seconds=15, ends=[], check=health("True", "Healthy")),
        ],
        HOURLY,
        NEVER_READY,
    ),
    "R25: suspended before its first start stays admitted, visibly; resumed, it runs": (
        [
            At("10:00:03", do=suspend, check=first_run(outcome=None, reason=None)),
            At("10:00:20", check=first_run(outcome=None, reason="Suspended")),
            Crash("10:01"),
            At("10:02", ends=[], status={"activeCount": 1}, check=first_run(outcome=None, reason="Suspended")),
            At("10:03", do=resume, settle_seconds=15, ends=[], check=first_run(outcome="Running", message=None)),
            At("10:04", do=lambda world: world.jobs.finish("ns", last_job(world)), ends=[completed("10:00")]),
        ],
        FIVE,
        Course(start_seconds=None),
    ),
    "R12 R25: interrupted keeps its slot over a restart, and is resumable": (
        [
            At(
                "10:00:30",
                do=suspend,
                want=[admitted("10:00")],
                check=first_run(outcome="Interrupted", reason="JobSuspended"),
            ),
            Outage("10:01", "10:02"),
            At("10:05", want=["SkippedOverlap 10:05"], ends=[]),
            At("10:06", do=resume, settle_seconds=12, ends=[], check=first_run(outcome="Running")),
        ],
        FIVE,
        NEVER,
    ),
    "R26: an interrupted run whose Job is deleted by hand: what may have happened is said": (
        [
            At("10:00:30", do=suspend),
            At("10:01", do=lambda w: w.delete(last_job(w), plural="jobs"), ends=[failed("10:00", "JobMissing")]),
            At("10:01:10", check=lambda w: says(w, "external effects may already have happened")),
        ],
        FIVE,
        NEVER,
    ),
    "activeDeadlineSeconds: the smaller one is the Job's, and an edit does not change what recovery renders": (
        [
            At(
                "09:59:50",
                do=lambda world: setattr(world, "lift", world.refuse(403, "Forbidden", QUOTA, plural="jobs")),
            ),
            At("10:00:05", want=[admitted("10:00")]),
            At("10:00:10", do=lambda world: world.edit("s", activeDeadlineSeconds=7)),
            Crash("10:00:15"),
            At("10:00:20", do=lambda world: world.lift(), settle_seconds=15, check=lambda w: budget_is(w, 30)),
        ],
        {**FIVE, "activeDeadlineSeconds": 30},
        NEVER,
    ),
}


def refuse_deletions(world: World) -> None:
    world.fault(Fault(status=500), matches=lambda request: request.method == "DELETE")


def blind_jobs(world: World) -> None:
    world.fault(
        Fault(is_dropped=True),
        matches=lambda request: request.method in {"WATCH", "GET"} and request.path.endswith("/jobs"),
    )
    world.server.break_watches()


def says(world: World, text: str) -> None:
    assert text in world.records()[1]["status"]["message"]


def budget_is(world: World, seconds: int) -> None:
    assert [job["spec"].get("activeDeadlineSeconds") for job in world.server.objects("jobs", "ns")] == [seconds]


@pytest.mark.parametrize("name", STORIES)
def test_endings(name: str) -> None:
    steps, spec, course = STORIES[name]

    def follow(world: World) -> None:
        world.jobs.course = lambda _job: course

    play([At("09:58:10", do=follow), *steps], a_schedule(**spec), start="09:58")


LATE = {
    "R31 cancelled": (FIVE, cancel(2), []),
    "R14 replaced": (
        {"schedule": "0,1 10 * * *", "concurrencyPolicy": "Replace", "startingDeadlineSeconds": 240},
        lambda _world: None,
        ["000000003"],
    ),
}


@pytest.mark.parametrize("how", LATE)
def test_a_late_create_of_the_earlier_leader_brings_no_ended_run_back(how: str) -> None:
    """P1 P12 I1: its first attempt arrives 65 s late, at an API server that still sees its Lease; the second made the Job.

    The other leader has ended the run meanwhile, and keeps the name taken by leaving the Job in its place.
    """
    spec, end, jobs_left = LATE[how]

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(None)
        world.apply(a_schedule(**spec))
        await world.until_leading(world.start("a"))
        late = world.start("b")
        world.fault(
            Fault(delay_seconds=65),
            matches=lambda each: each.method == "POST" and each.path.endswith("/jobs") and clock.now() >= at("10:00"),
            times=1,
        )
        await world.sleep_until(at("10:00:25"))
        assert len(world.job_names()) == 1
        await world.kill("a")
        await world.until_leading(late)
        end(world)
        await world.sleep_until(at("10:01:04"))
        assert world.record(2)["status"]["outcome"] == "Cancelled"
        world.fence.lag_seconds = 60  # of the API server that the late create arrives at
        await world.sleep_until(at("10:01:07"))
        assert ("a", "POST", 409) in [(each.client, each.method, each.status) for each in world.server.log]
        world.fence.lag_seconds = 0
        await world.sleep_until(at("10:02:30"))
        assert [name[-9:] for name in world.job_names()] == jobs_left
        world.auditor.check()

    run_virtual(story, at("09:59"))


def test_what_a_cancelled_and_a_suspended_run_cost() -> None:
    """One deletion and nothing else beside a run's own writes; one write for a suspension that lasts."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.course = lambda _job: Course(start_seconds=None)
        world.apply(a_schedule(**FIVE))
        await world.until_leading(world.start())
        await world.sleep_until(at("10:00:05"))
        suspend(world)
        await world.sleep_until(at("10:01"))
        before = len(world.server.log)
        await world.sleep_until(at("10:04"))
        assert world.writes(since=before) == []
        cancel(2)(world)
        await asyncio.sleep(10)
        kinds = Counter(entry.method for entry in world.writes(since=before))
        assert kinds["DELETE"] == 1
        assert (
            kinds["PATCH"] <= 3
        )  # the outcome, once in vain for the annotation moved the version, and the schedule's status
        assert not [entry for entry in world.server.log if "/pods" in entry.path]

    run_virtual(story, at("09:59"))


def test_two_looks_of_which_the_second_does_not_know_the_job_yet_make_one() -> None:
    """K-030: the schedule changes 200 ms after its instant, and the watch of Jobs tells nothing."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(None)
        world.apply(a_schedule(**FIVE))
        await world.until_leading(world.start())
        await world.sleep_until(at("09:59:50"))
        blind_jobs(world)
        await world.sleep_until(at("10:00:00.2"))
        world.edit("s", enabled=True, successfulJobsHistoryLimit=5)
        await world.sleep_until(at("10:00:20"))
        assert len(world.job_names()) == 1
        assert [each["spec"]["decision"] for each in world.records()] == ["Baseline", "Admitted"]
        world.auditor.check()

    run_virtual(story, at("09:59"))
