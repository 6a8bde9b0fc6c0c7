"""Trigger now and backfill: what people ask for is resolved on record, runs once, and shows where runs show."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.api_store import api_time
from support.api_transport import Fault
from support.disturbances import DISTURBANCES, Disturbance, Trap
from support.harness import World
from support.job_runner import Course
from support.objects import a_definition, a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api import names

FIVE = {"schedule": "*/5 * * * *"}
DAILY = {"schedule": "0 3 * * *"}


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:58") -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        jobs_made: Counter[str] = Counter()
        world.server.store.observers.append(
            lambda kind, change: jobs_made.update(
                [change.key[1]] if kind.plural == "jobs" and change.before is None else []
            )
        )
        await world.until_leading(world.start())
        await story(world)
        assert max(jobs_made.values(), default=0) <= 1, "a Job was made a second time"
        world.auditor.check()

    run_virtual(main, at(start))


def ask(world: World, name: str = "now", schedule: str = "s", **spec: object) -> Json:
    """Ask for a run as a person does; a `time` makes it a backfill of that instant."""
    fields: Json = {"scheduleRef": {"name": schedule}, "cause": "Manual", **spec}
    if "time" in fields:
        fields |= {"cause": "Backfill", "scheduledTime": api_time(at(fields.pop("time")))}
    return world.server.create(
        {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND_OCCURRENCE,
            "metadata": {"name": name, "namespace": "ns"},
            "spec": fields,
        }
    )


def found(world: World, name: str = "now") -> Json:
    return dict(world.server.get("scheduleoccurrences", "ns", name).get("status") or {})


def outcome(world: World, name: str = "now") -> tuple[str | None, str | None]:
    status = found(world, name)
    return status.get("outcome"), status.get("reason")


def test_a_run_asked_for_now_is_resolved_runs_and_shows() -> None:
    """R27: in history and last success, not in the log, the counts, or the failure streak."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**DAILY, input={"a": 1}))
        await asyncio.sleep(2)
        request = ask(world)
        await asyncio.sleep(5)
        status = found(world)
        uid = world.schedule()["metadata"]["uid"]
        assert outcome(world) == ("Completed", "JobComplete")
        assert (status["scheduleUID"], status["revision"], status["inputJSON"]) == (uid, 1, '{"a":1}')
        assert [each["type"] for each in status["conditions"]] == ["Resolved"]
        job = world.server.get("jobs", "ns", "now")
        assert job["metadata"]["ownerReferences"][0]["uid"] == request["metadata"]["uid"]
        labels = job["metadata"]["labels"]
        assert (labels[names.LABEL_SCHEDULE_UID], labels[names.LABEL_CAUSE]) == (uid, "Manual")
        assert names.LABEL_SCHEDULED_AT not in labels
        shown = world.status()
        assert shown["lastSuccessfulTime"] == status["completionTime"]
        assert [(line["name"], line["decision"], line["outcome"]) for line in shown["recent"]] == [
            ("now", "Manual", "Completed")
        ]
        assert (shown["counts"]["admitted"], shown["activeCount"], shown["consecutiveFailures"]) == (0, 0, 0)
        assert len(world.records()) == 2, "a Baseline and the request"

    run(story)


def test_a_failed_one_is_a_failure_but_no_streak() -> None:
    """R27."""

    async def story(world: World) -> None:
        world.jobs.course = lambda _job: Course(is_failed=True)
        world.apply(a_schedule(**DAILY))
        await asyncio.sleep(2)
        ask(world)
        await asyncio.sleep(5)
        assert outcome(world) == ("Failed", "BackoffLimitExceeded")
        assert world.status()["lastFailureTime"] == found(world)["completionTime"]
        assert world.status()["consecutiveFailures"] == 0

    run(story)


@dataclass(frozen=True, slots=True)
class Case:
    """A request and what becomes of it at once."""

    name: str
    want: tuple[str, str]
    objects: tuple[Json, ...] = (a_schedule(**FIVE),)
    asked: dict[str, object] = field(default_factory=dict)
    says: str = ""
    is_busy: bool = False


OFF = a_definition(enabled=False)
CHILD = a_schedule(workflow="w", **FIVE)
CASES = [
    Case("disabled", ("Completed", "JobComplete"), (a_schedule(enabled=False),)),
    Case("paused", ("Completed", "JobComplete"), (a_schedule(pause={"reason": "holiday"}),)),
    Case("beside a run, under Forbid", ("Completed", "JobComplete"), is_busy=True),
    Case("complete", ("Completed", "JobComplete"), (a_schedule(runOnceTime="2026-03-01T00:00:00Z", schedule=None),)),
    Case("with a definition", ("Completed", "JobComplete"), (a_definition(), CHILD)),
    Case("no schedule", ("Failed", "ScheduleNotFound"), (), says="WorkflowSchedule s does not exist in namespace ns"),
    Case("not accepted", ("Failed", "ScheduleNotAccepted"), (a_schedule(schedule="0 0 31 2 *"),), says="spec.schedule"),
    Case("no definition", ("Failed", "WorkflowNotFound"), (CHILD,), says="WorkflowDefinition w does not exist"),
    Case("definition off", ("Failed", "WorkflowDisabled"), (OFF, CHILD), says="has enabled: false; enable it"),
    Case("too much input", ("Failed", "InputTooLarge"), asked={"input": {"a": "x" * 32768}}, says="32776 bytes"),
    Case("a past instant", ("Completed", "JobComplete"), asked={"time": "2026-02-01T10:05"}),
    Case("an excluded one", ("Completed", "JobComplete"), (a_schedule(**FIVE, excludeDates=["2026-02-01"]),),
         {"time": "2026-02-01T10:05"}),
    Case("no instant", ("Failed", "NotAnInstant"), asked={"time": "2026-02-01T10:06"},
         says="2026-02-01T10:06:00Z is no instant of this schedule; the next one after it is 2026-02-01T10:10:00Z"),
    Case("after the end", ("Failed", "NotAnInstant"), (a_schedule(**FIVE, endTime="2026-01-01T00:00:00Z"),),
         {"time": "2026-02-01T10:05"}, says="no instant"),
    Case("a future instant", ("Failed", "InstantInFuture"), asked={"time": "2026-05-01T10:05"}, says="is not past"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_request_bypasses_and_what_not(case: Case) -> None:
    """R27: a refusal is visible, and final."""

    async def story(world: World) -> None:
        for body in case.objects:
            world.apply(body)
        if case.is_busy:
            world.jobs.run_for(600)
            await world.sleep_until(at("10:00:15"))
            assert world.status()["activeCount"] == 1
            world.jobs.run_for(2)
        await asyncio.sleep(2)
        ask(world, **case.asked)
        await asyncio.sleep(8)
        assert outcome(world) == case.want
        assert case.says in found(world).get("message", "")
        assert ("now" in world.job_names()) is (case.want[0] == "Completed")

    run(story)


def test_the_same_instant_may_be_asked_for_twice() -> None:
    """R27: each request is a run of its own, also of an instant that the calendar has run; R8 is about the calendar's."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**FIVE))
        await world.sleep_until(at("10:00:10"))
        for name in ("one", "two"):
            ask(world, name, time="2026-03-02T10:00")
        await asyncio.sleep(10)
        assert outcome(world, "one") == outcome(world, "two") == ("Completed", "JobComplete")
        assert len(world.job_names()) == 3

    run(story)


def test_a_request_whose_input_the_schema_refuses() -> None:
    """R24 R27: no Job; the schedule goes on."""
    schema = {"type": "object", "required": ["region"]}

    async def story(world: World) -> None:
        world.apply(a_definition(inputSchema=schema))
        world.apply(a_schedule(workflow="w", **FIVE, input={"region": "eu"}))
        await asyncio.sleep(2)
        ask(world, input={"other": 1})
        await world.sleep_until(at("10:00:10"))
        assert outcome(world) == ("Failed", "InputRejected")
        assert 'has no "region"' in found(world)["message"]
        assert len(world.job_names()) == 1
        assert "lastFailureTime" not in world.status()

    run(story)


def test_a_request_holds_no_slot() -> None:
    """R12 R27: what people ask for never counts in overlap."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(**FIVE))
        await world.sleep_until(at("09:59:50"))
        ask(world)
        ask(world, "back", time="2026-02-01T10:05")
        await world.sleep_until(at("10:00:12"))
        admitted = [each for each in world.records() if each["spec"].get("decision") == "Admitted"]
        assert [each["spec"]["open"] for each in admitted] == [[2]]
        assert world.status()["active"] == [admitted[0]["metadata"]["name"]]
        assert outcome(world) == outcome(world, "back") == ("Running", "JobRunning")

    run(story)


def test_own_input_replaces_the_schedules_and_nothing_else() -> None:
    """R27."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**DAILY, input={"a": 1, "b": 2}))
        await asyncio.sleep(2)
        ask(world, "one", input={"b": 3})
        ask(world, "none", input={})
        await asyncio.sleep(5)
        assert found(world, "one")["inputJSON"] == '{"b":3}'
        assert found(world, "none")["inputJSON"] == "{}"

    run(story)


def test_the_budget_of_the_schedule_is_that_of_its_requests() -> None:
    """R27, `activeDeadlineSeconds`: of one run, whoever asks for it; as the schedule had it when that was resolved."""

    async def story(world: World) -> None:
        world.jobs.run_for(60)
        world.apply(a_schedule(**DAILY, activeDeadlineSeconds=7))
        await asyncio.sleep(2)
        ask(world, "one")
        await asyncio.sleep(2)
        world.apply(a_schedule(**DAILY, activeDeadlineSeconds=8))
        await asyncio.sleep(2)
        ask(world, "two")
        await asyncio.sleep(2)
        budgets = [world.server.get("jobs", "ns", name)["spec"]["activeDeadlineSeconds"] for name in ("one", "two")]
        assert budgets == [7, 8]
        assert found(world, "one")["activeDeadlineSeconds"] == 7

    run(story)


def test_without_a_ready_pod_in_time_it_ends_and_its_job_goes() -> None:
    """R27, `startTimeoutSeconds`: as the schedule had it when that was resolved, for a backfill too (R10)."""

    async def story(world: World) -> None:
        world.jobs.course = lambda _job: Course(is_ready=False)
        world.apply(a_schedule(**DAILY, startTimeoutSeconds=60))
        await asyncio.sleep(100)  # the settling after a takeover is over
        ask(world, "one")
        ask(world, "past", time="2026-02-01T03:00")
        await asyncio.sleep(2)
        world.apply(a_schedule(**DAILY))
        ask(world, "unlimited")
        await asyncio.sleep(50)
        assert [outcome(world, name)[0] for name in ("one", "past", "unlimited")] == [None] * 3
        assert sorted(world.job_names()) == ["one", "past", "unlimited"]
        await asyncio.sleep(20)
        assert [outcome(world, name) for name in ("one", "past")] == [("Failed", "StartTimeout")] * 2
        assert found(world, "one")["startTimeoutSeconds"] == 60
        assert (world.job_names(), outcome(world, "unlimited")[0]) == (["unlimited"], None)

    run(story)


@pytest.mark.parametrize(
    ("spec", "want"),
    [({}, ["c", "a", "b"]), ({"concurrencyPolicy": "Allow", "maxActiveRuns": 2}, ["c", "a", "b"])],
    ids=["one at a time", "two at a time"],
)
def test_backfills_run_oldest_instant_first(spec: Json, want: list[str]) -> None:
    """R27: as many at a time as the schedule may have runs, and no live run waits for them."""
    limit = spec.get("maxActiveRuns", 1)

    async def story(world: World) -> None:
        world.jobs.run_for(30)
        world.apply(a_schedule(**FIVE, **spec))
        await world.sleep_until(at("09:59:50"))
        await world.kill()
        for name, time in (("a", "2026-02-01T10:05"), ("b", "2026-02-02T10:05"), ("c", "2026-01-01T10:05")):
            ask(world, name, time=time)
        world.start()
        most = 0
        while world.clock.now() < at("10:02:30"):
            await asyncio.sleep(1)
            most = max(most, sum(outcome(world, each)[0] == "Running" or is_active(world, each) for each in want))
        assert most == limit
        made = sorted(
            (each for each in world.server.objects("jobs", "ns") if each["metadata"]["name"] in want),
            key=lambda job: int(job["metadata"]["uid"].split("-")[0], 16),
        )
        assert [each["metadata"]["name"] for each in made] == want
        assert [outcome(world, each)[0] for each in want] == ["Completed"] * 3
        scheduled = [each for each in world.records() if each["spec"].get("decision") == "Admitted"]
        assert [each["spec"]["scheduledTime"][11:16] for each in scheduled] == ["10:00"]

    run(story)


def is_active(world: World, name: str) -> bool:
    job = world.server.find("jobs", "ns", name)
    return job is not None and not any(
        each["type"] in {"Complete", "Failed"} for each in job.get("status", {}).get("conditions", ())
    )


def no_jobs(request: ApiRequest) -> bool:
    return request.method == "POST" and request.path.endswith("/jobs")


def test_without_a_job_for_ten_minutes_it_has_not_started() -> None:
    """R35."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**DAILY))
        await asyncio.sleep(2)
        lift = world.refuse(403, "Forbidden", 'jobs.batch "now" is forbidden: exceeded quota: q', plural="jobs")
        ask(world)
        await asyncio.sleep(590)
        assert outcome(world) == (None, None)
        await asyncio.sleep(30)
        assert outcome(world) == ("Failed", "NotStarted")
        assert "exceeded quota" in found(world)["message"]
        lift()
        await asyncio.sleep(60)
        assert "now" not in world.job_names()

    run(story)


@pytest.mark.parametrize(
    ("minutes", "want"), [(5, ("Completed", "JobComplete")), (11, ("Failed", "NotStarted"))], ids=["5 min", "11 min"]
)
def test_now_is_not_much_later(minutes: int, want: tuple[str, str]) -> None:
    """R27 R35: asked for while nobody ran; a backfill may wait as long as it likes."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**DAILY))
        await asyncio.sleep(2)
        await world.kill()
        ask(world)
        ask(world, "back", time="2026-02-01T03:00")
        await asyncio.sleep(60 * minutes)
        world.start()
        await asyncio.sleep(30)
        assert outcome(world) == want
        assert outcome(world, "back") == ("Completed", "JobComplete")

    run(story)


def test_a_job_of_somebody_else_is_not_adopted() -> None:
    """P10 K-095."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**DAILY))
        await asyncio.sleep(2)
        uid = world.schedule()["metadata"]["uid"]
        metadata = {"name": "now", "namespace": "ns", "labels": {names.LABEL_SCHEDULE_UID: uid}}
        world.server.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}})
        ask(world)
        await asyncio.sleep(5)
        assert outcome(world) == ("Failed", "NameTaken")

    run(story)


def test_a_job_deleted_by_hand_is_missing_and_not_made_again() -> None:
    """R25 R26, by a successor neither."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(**DAILY))
        await asyncio.sleep(100)
        ask(world)
        await asyncio.sleep(15)
        assert outcome(world) == ("Running", "JobRunning")
        world.delete("now", plural="jobs")
        await world.restart()
        await asyncio.sleep(120)
        assert outcome(world) == ("Failed", "JobMissing")

    run(story)


def test_deleting_a_request_ends_it() -> None:
    """R27: its Job goes with it."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(**DAILY))
        await asyncio.sleep(2)
        ask(world)
        await asyncio.sleep(15)
        world.delete("now", plural="scheduleoccurrences")
        world.server.run_gc()
        before = len(world.server.log)
        await asyncio.sleep(60)
        cache = next(iter(world.processes.values())).operator._cluster.cache
        assert (len(cache.requests), len(cache.jobs), world.job_names()) == (0, 0, [])
        assert world.status().get("recent", []) == []
        assert len(world.writes(since=before)) <= 1

    run(story)


def test_the_schedule_of_that_name_now_is_not_the_one_it_was_resolved_with() -> None:
    """R20 P11: no Job is made for the new one."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**DAILY))
        await asyncio.sleep(2)
        lift = world.refuse(403, "Forbidden", 'jobs.batch "now" is forbidden: exceeded quota: q', plural="jobs")
        ask(world)
        await asyncio.sleep(5)
        world.delete("s")
        world.apply(a_schedule(**DAILY))
        lift()
        await asyncio.sleep(60)
        assert "now" not in world.job_names()
        await asyncio.sleep(600)
        assert outcome(world) == ("Failed", "NotStarted")

    run(story)


def test_a_refusal_is_not_made_on_a_stale_view() -> None:
    """What the watch has not told yet exists all the same; asked for right after it was made."""

    async def story(world: World) -> None:
        hook = world.fault(
            Fault(delay_seconds=4),
            matches=lambda request: request.method in {"WATCH", "GET"} and request.path.endswith("/workflowschedules"),
        )
        world.server.break_watches()
        await asyncio.sleep(1)
        world.apply(a_schedule(**DAILY))
        ask(world)
        await asyncio.sleep(1)
        assert outcome(world) == (None, None)
        world.server.faults.remove(hook)
        await asyncio.sleep(20)
        assert outcome(world) == ("Completed", "JobComplete")

    run(story)


def test_one_bad_request_delays_no_other() -> None:
    """I9: the status of one is refused for ever."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**DAILY))
        await asyncio.sleep(2)
        world.fault(Fault(status=422, reason="Invalid"), matches=lambda request: request.path.endswith("/bad/status"))
        ask(world, "bad")
        ask(world, "good")
        before = len(world.server.log)
        await asyncio.sleep(10)
        assert outcome(world, "good") == ("Completed", "JobComplete")
        await asyncio.sleep(290)
        assert sum("/bad" in entry.path for entry in world.server.log[before:]) <= 15
        assert "bad" not in world.job_names()

    run(story)


def test_afterwards_nothing_is_written_and_a_restart_changes_nothing() -> None:
    """I8."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**DAILY))
        await asyncio.sleep(2)
        ask(world)
        ask(world, "no", schedule="other")
        await asyncio.sleep(10)
        before, status = len(world.server.log), world.status()
        await world.restart()
        await asyncio.sleep(600)
        assert world.writes(since=before) == []
        assert world.status() == status

    run(story)


def test_a_request_costs_three_writes_and_its_schedule_one() -> None:
    """Performance: and no run of the calendar costs more."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**DAILY))
        await asyncio.sleep(2)
        ask(world, "first")
        await asyncio.sleep(10)
        before = len(world.server.log)
        ask(world)
        await asyncio.sleep(10)
        written = Counter((entry.method, entry.path.rpartition("/")[2]) for entry in world.writes(since=before))
        assert written == {("PATCH", "status"): 3, ("POST", "jobs"): 1}

    run(story)


def disturbed(number: int, disturbance: Disturbance | None) -> tuple[World, int, Counter[str]]:
    async def story(clock: VirtualClock) -> tuple[World, int, Counter[str]]:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(3.0)
        jobs_made: Counter[str] = Counter()
        world.server.store.observers.append(
            lambda kind, change: jobs_made.update(
                [change.key[1]] if kind.plural == "jobs" and change.before is None else []
            )
        )
        world.apply(a_schedule(**DAILY))
        await world.until_leading(world.start())
        await asyncio.sleep(3)
        trap = Trap(world, number, disturbance)
        world.server.faults.append(trap)
        ask(world)
        ask(world, "back", time="2026-02-01T03:00")
        await asyncio.sleep(150)
        await asyncio.gather(*trap.tasks)
        world.auditor.check()
        return world, trap.writes, jobs_made

    return run_virtual(story, at("09:59:20"))


@pytest.mark.parametrize("disturbance", DISTURBANCES, ids=lambda disturbance: disturbance.name)
def test_a_disturbed_write_changes_nothing_in_the_end(disturbance: Disturbance) -> None:
    """R27 P2 P11: crash before and after each write, lost answers; at most one Job, and the same outcome."""
    _, writes, _ = disturbed(0, None)
    assert writes == 8, "template, two decisions, two Jobs, two outcomes, one status of the schedule"
    wrong = []
    for number in range(1, writes + 1):
        world, _, jobs_made = disturbed(number, disturbance)
        ends = [outcome(world)[0], outcome(world, "back")[0]]
        shown = sorted((line["name"], line["outcome"]) for line in world.status().get("recent", ()))
        if (ends, jobs_made, shown) != (
            ["Completed"] * 2,
            {"now": 1, "back": 1},
            [("back", "Completed"), ("now", "Completed")],
        ):
            wrong.append((number, ends, jobs_made, shown))
    assert not wrong


@pytest.mark.parametrize("lag_seconds", [0.0, 35.0, 60.0])
@pytest.mark.parametrize("kind", ["/jobs", "/status"])
def test_a_leader_stalled_in_the_middle(kind: str, lag_seconds: float) -> None:
    """P11 P14: its write arrives 40 s late, when another leads; one decision, one Job."""

    async def story(world: World) -> None:
        await world.kill()
        await world.until_leading(world.start("a"))
        world.apply(a_schedule(**DAILY))
        world.start("b")
        await asyncio.sleep(3)
        world.fence.lag_seconds = lag_seconds

        def is_stalled(request: ApiRequest) -> bool:
            is_lease = request.path.endswith("/leases/workflow-schedules")
            return request.client == "a" and (is_lease or (request.method != "GET" and request.path.endswith(kind)))

        world.fault(Fault(delay_seconds=40), matches=is_stalled)
        ask(world)
        await asyncio.sleep(150)
        assert outcome(world) == ("Completed", "JobComplete")
        assert world.job_names() == ["now"]

    run(story)


def test_what_was_deleted_unseen_is_forgotten() -> None:
    """A relist of the requests tells what is gone."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**DAILY))
        await asyncio.sleep(2)
        ask(world)
        await asyncio.sleep(10)
        hook = world.fault(Fault(is_dropped=True), matches=partial(_reads, plural="/scheduleoccurrences"))
        world.server.break_watches()
        world.delete("now", plural="scheduleoccurrences")
        world.server.compact()
        await asyncio.sleep(5)
        world.server.faults.remove(hook)
        await asyncio.sleep(30)
        assert len(next(iter(world.processes.values())).operator._cluster.cache.requests) == 0

    run(story)


def _reads(request: ApiRequest, *, plural: str) -> bool:
    return request.method in {"WATCH", "GET"} and request.path.endswith(plural)
