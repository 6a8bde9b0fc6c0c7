"""Records that contradict block their schedule alone, and a person sets them aside; nothing runs twice over it (R31)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.disturbances import DISTURBANCES, Disturbance, Trap
from support.harness import World
from support.objects import a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api.names import ANNOTATION_UNBLOCK, record_name

FIVE = {"schedule": "*/5 * * * *"}


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:58") -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        await story(world)

    run_virtual(main, at(start))


def annotate(world: World, record: str | None, name: str = "s") -> None:
    world.server.patch("workflowschedules", "ns", name, {"metadata": {"annotations": {ANNOTATION_UNBLOCK: record}}})


def name_of(world: World, number: int) -> str:
    return record_name("s", world.schedule()["metadata"]["uid"], number)


def rewrite(world: World, number: int, **spec: object) -> str:
    """Change a record in place, as no policy would allow."""
    name = name_of(world, number)
    rules = world.suspend_rules()
    world.server.patch("scheduleoccurrences", "ns", name, {"spec": spec})
    rules()
    return name


def cut_down(path: str) -> Callable[[World], str]:
    """Take a field of the head away."""
    first, _, then = path.partition(".")
    return lambda world: rewrite(world, 2, **{first: {then: None} if then else None})


def forge(world: World, number: int, **spec: object) -> str:
    """Make a record with a name of the log, as somebody could while the policy was absent: an admission in the future."""
    name, model = name_of(world, number), world.record(2)
    rules = world.suspend_rules()
    fields = {"sequence": number, "open": [number], "scheduledTime": "2026-03-02T10:05:00Z", "previousUID": "forged"}
    body = {**model, "metadata": {"name": name, "namespace": "ns", "labels": model["metadata"]["labels"]}}
    world.server.create({**body, "spec": {**model["spec"], **fields, **spec}})
    rules()
    return name


def remove(world: World, number: int) -> str:
    name = name_of(world, number)
    rules = world.suspend_rules()
    world.delete(name, plural="scheduleoccurrences")
    rules()
    return name


def without_status(world: World, corrupt: Callable[[World], str]) -> str:
    name = corrupt(world)
    rules = world.suspend_rules()
    world.server.patch("workflowschedules", "ns", "s", {"status": dict.fromkeys(world.status())}, subresource="status")
    rules()
    return name


@dataclass(frozen=True, slots=True)
class Kind:
    """A way in which a log contradicts itself.

    Attributes:
        corrupt: while nobody leads, after the run of 10:00, number 2; returns the record that is to be named.
        says: part of the diagnostic.
        number: of the Baseline that sets it aside.
    """

    name: str
    corrupt: Callable[[World], str]
    says: str
    number: int = 3


KINDS = [
    Kind("a spec that does not parse", lambda world: rewrite(world, 2, decision="Perhaps"), "spec.decision"),
    Kind("a foreign UID", lambda world: rewrite(world, 2, scheduleRef={"uid": "other"}), "belongs to another schedule"),
    Kind("a newer format", lambda world: rewrite(world, 2, format=2), "format 2, newer than this operator reads"),
    Kind("a wrong number", lambda world: rewrite(world, 2, sequence=7), "says it is number 7"),
    Kind("not open by its own word", lambda world: rewrite(world, 2, open=[]), "does not call open"),
    Kind("another Lease", lambda world: rewrite(world, 2, lease="other/lease"), "another installation"),
    Kind("an open run that is not there", lambda world: (rewrite(world, 2, open=[1, 2, 0]), name_of(world, 0))[1],
         "gone although its run was unfinished"),
    Kind("the head is gone", lambda world: remove(world, 2), "gone although the status names it"),
    Kind("forged behind the head", lambda world: forge(world, 3), "does not follow", 4),
    Kind("forged beyond a hole", lambda world: forge(world, 7), "beyond a hole", 8),
    Kind("forged below the head", lambda world: forge(world, 0), "does not call it open"),
    Kind("garbled and unfinished", lambda world: forge(world, 0, scheduledTime="never"), "scheduledTime"),
    Kind("broken, found by a list", lambda world: without_status(world, lambda world: rewrite(world, 2, previousUID="x")),
         "does not follow"),
    Kind("no status, does not parse", lambda world: without_status(world, lambda world: rewrite(world, 1, revision="x")),
         "spec.revision"),
    Kind("a request by a name of the log", lambda world: rewrite(world, 2, cause="Manual"), "has the cause Manual"),
    Kind("a Baseline of which little is left", lambda world: without_status(world, lambda world: rewrite(
        world, 1, state=None, totals=None)), "lacks spec.state, spec.totals, which"),
    *(Kind(f"without {field}", cut_down(field), f"lacks spec.{field}, which every such record has")
      for field in ("sequence", "format", "decision", "revision", "specHash", "generation", "state", "consumedThroughTime",
                    "open", "waiting", "totals", "totals.admitted", "fencingEpoch", "writer", "lease", "scheduleRef.uid",
                    "scheduledTime", "templateHash", "previousUID")),
]  # fmt: skip


def decided(world: World, name: str = "s") -> list[str]:
    found = [each["spec"] for each in world.records(name)]
    return [f"{each['decision']} {each.get('scheduledTime', '')[11:16]}" for each in found]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_blocked_alone_named_and_set_aside(kind: Kind) -> None:
    """R31 K-028 K-095: no run of what was forged, nothing twice, and every other schedule goes on."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**FIVE))
        world.apply(
            a_schedule("good", **FIVE, successfulJobsHistoryLimit=9)
        )  # so that nothing of it is removed meanwhile
        await world.sleep_until(at("10:01"))
        await world.kill()
        record = kind.corrupt(world)
        world.start()
        await world.sleep_until(at("10:06"))
        assert world.status()["state"] == "Blocked"
        for condition in ("Ready", "Stalled"):
            message = world.condition(condition)["message"]
            assert record in message
            assert kind.says in message
        assert f"kubectl annotate wfs -n ns s {ANNOTATION_UNBLOCK}={record}" in message
        assert len(world.job_names()) == 3, "one of this schedule, two of the other"
        annotate(world, "another")
        await world.sleep_until(at("10:07"))
        assert "names another, which does not block" in world.condition("Stalled")["message"]
        assert world.status()["state"] == "Blocked"
        annotate(world, record)
        await world.sleep_until(at("10:08"))
        assert world.status()["state"] == "Active"
        baseline = world.record(kind.number)
        assert (baseline["spec"]["decision"], baseline["spec"]["reason"]) == ("Baseline", "Unblocked")
        assert record in baseline["spec"]["message"]
        assert "2026-03-02T10:07:00Z" <= baseline["spec"]["consumedThroughTime"] <= "2026-03-02T10:07:02Z"
        assert baseline["spec"].get("open", []) == []
        await world.sleep_until(at("10:11"))
        await world.restart()
        await world.sleep_until(at("10:16"))
        assert world.status()["state"] == "Active"
        assert world.record(kind.number + 1)["spec"]["scheduledTime"] == "2026-03-02T10:10:00Z"
        assert world.record(kind.number + 2)["spec"]["scheduledTime"] == "2026-03-02T10:15:00Z"
        runs = [f"{each['metadata']['labels']['workflow-schedules.dev/scheduled-at']}" for each in jobs_of(world)]
        assert sorted(runs) == ["20260302T100000Z", "20260302T101000Z", "20260302T101500Z"]
        for each in world.records():
            if each["spec"].get("decision") == "Admitted":
                assert each["status"]["outcome"] in {"Completed", "Failed"}
        assert decided(world, "good") == [
            "Baseline ",
            "Admitted 10:00",
            "Admitted 10:05",
            "Admitted 10:10",
            "Admitted 10:15",
        ]
        before = len(world.server.log)
        await world.sleep_until(at("10:19"))
        assert world.writes(since=before) == [], "what stays annotated does nothing more"

    run(story)


def jobs_of(world: World, name: str = "s") -> list[Json]:
    found = world.server.objects("jobs", "ns")
    return [each for each in found if each["metadata"]["labels"]["workflow-schedules.dev/schedule"] == name]


RUNNING = [
    ("can't be read", lambda world: rewrite(world, 2, format=2)),
    ("is gone", lambda world: remove(world, 2)),
    ("says not what was decided", cut_down("decision")),
    ("says nobody knows what", lambda world: rewrite(world, 2, decision="Perhaps")),
    ("says not how far it went", cut_down("consumedThroughTime")),
]


@pytest.mark.parametrize("corrupt", [row[1] for row in RUNNING], ids=[row[0] for row in RUNNING])
def test_a_run_that_goes_on_keeps_its_slot(corrupt: Callable[[World], str]) -> None:
    """R31: overlap is not cleared; what is set aside must have ended, and its end is recorded as far as it is known."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(**FIVE))
        await world.sleep_until(at("10:01"))
        await world.kill()
        record = corrupt(world)
        job = world.job_names()[0]
        annotate(world, record)
        world.start()
        await world.sleep_until(at("10:08"))
        assert world.status()["state"] == "Blocked"
        assert f"when its Job {job} has ended; delete that" in world.condition("Stalled")["message"]
        assert world.job_names() == [job]
        world.jobs.finish("ns", job)
        await world.sleep_until(at("10:09"))
        assert world.status()["state"] == "Active"
        if left := [each for each in world.records() if each["metadata"]["name"] == record]:
            assert [each["status"]["outcome"] for each in left] == ["Completed"]
        await world.sleep_until(at("10:11"))
        assert len(world.job_names()) == 2

    run(story)


@pytest.mark.parametrize(
    ("until", "log_head", "field"),
    [("10:01", 2, "totals"), ("10:00:01", 1, "totals"), ("10:00:01", 1, "decision")],
    ids=["in the status", "nowhere else", "nor what was decided"],
)
def test_counts_that_are_gone_do_not_begin_anew(until: str, log_head: int, field: str) -> None:
    """R31 P6: what the status repeats of them counts on, and what is set aside counts, so that no run is one too many."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**FIVE, runLimit=2))
        await world.sleep_until(at(until))
        assert world.status()["logHead"] == log_head
        await world.kill()
        record = cut_down(field)(world)
        world.start()
        await world.sleep_until(at("10:06"))
        assert world.status()["state"] == "Blocked"
        annotate(world, record)
        await world.sleep_until(at("10:21"))
        assert (world.status()["state"], world.status()["counts"]["admitted"]) == ("Complete", 2)
        assert [each["spec"]["sequence"] for each in world.records()] == [1, 2, 3, 4]
        assert [world.record(number)["spec"]["decision"] for number in (3, 4)] == ["Baseline", "Admitted"]
        assert len(world.job_names()) == 2

    run(story)


@pytest.mark.parametrize("rules", [{}, {"concurrencyPolicy": "Allow", "maxActiveRuns": 2}], ids=["Forbid", "Allow"])
def test_setting_aside_twice_forgets_no_run(rules: dict[str, Any]) -> None:
    """R31 I2 I7: a run that the first time left open keeps its slot the second time, and its end is recorded."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(**FIVE, **rules))
        await world.sleep_until(at("10:01"))
        for number, until in ((3, "10:03"), (5, "10:04:50")):
            await world.kill()
            annotate(world, forge(world, number, decision="SkippedMisfire", open=[]))
            world.start()
            await world.sleep_until(at(until))
            assert (world.record(number + 1)["spec"]["reason"], world.record(number + 1)["spec"]["open"]) == (
                "Unblocked",
                [2],
            )
        await world.sleep_until(at("10:11"))
        assert len(world.job_names()) == rules.get("maxActiveRuns", 1)
        world.jobs.finish("ns", world.job_names()[0])
        await world.sleep_until(at("10:12"))
        assert world.record(2)["status"]["outcome"] == "Completed"
        await world.sleep_until(at("10:16"))
        assert len(world.job_names()) == rules.get("maxActiveRuns", 1) + 1
        assert world.status()["counts"]["completed"] == 1

    run(story)


def test_a_run_below_the_head_says_too_little() -> None:
    """R31 P3: nothing is decided on a run that can't be read whole, and the others go on when it is set aside."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(**FIVE, concurrencyPolicy="Allow", maxActiveRuns=3))
        await world.sleep_until(at("10:06"))
        await world.kill()
        record = cut_down("templateHash")(world)
        first, second = world.job_names()
        world.start()
        await world.sleep_until(at("10:11"))
        assert world.status()["state"] == "Blocked"
        assert f"record {record} lacks spec.templateHash" in world.condition("Stalled")["message"]
        assert world.job_names() == [first, second]
        annotate(world, record)
        world.jobs.finish("ns", first)
        await world.sleep_until(at("10:12"))
        assert world.record(2)["status"]["outcome"] == "Completed"
        assert (world.record(4)["spec"]["reason"], world.record(4)["spec"]["open"]) == ("Unblocked", [3])
        await world.sleep_until(at("10:16"))
        assert world.record(5)["spec"]["open"] == [3, 5]

    run(story)


def test_a_run_whose_record_can_be_read_stays_open() -> None:
    """R31 P3: the Baseline calls it open, its end is recorded as ever, and it blocks meanwhile."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(**FIVE))
        await world.sleep_until(at("10:01"))
        await world.kill()
        record = forge(world, 3, decision="SkippedMisfire", open=[])
        annotate(world, record)
        world.start()
        await world.sleep_until(at("10:04"))
        assert world.record(4)["spec"]["open"] == [2]
        assert world.record(4)["spec"]["totals"]["admitted"] == 1
        await world.sleep_until(at("10:05:20"))
        assert world.record(5)["spec"]["decision"] == "SkippedOverlap"
        world.jobs.finish("ns", world.job_names()[0])
        await world.sleep_until(at("10:10:20"))
        assert world.record(2)["status"]["outcome"] == "Completed"
        assert world.record(6)["spec"]["decision"] == "Admitted"
        assert world.status()["counts"]["completed"] == 1

    run(story)


def disturbed(number: int, disturbance: Disturbance | None) -> tuple[World, int]:
    async def story(clock: VirtualClock) -> tuple[World, int]:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(30)
        world.apply(a_schedule(**FIVE))
        await world.until_leading(world.start())
        await world.sleep_until(at("10:00:10"))
        await world.kill()
        record = rewrite(world, 2, format=2)
        world.start()
        await world.sleep_until(at("10:02:30"))
        trap = Trap(world, number, disturbance)
        world.server.faults.append(trap)
        annotate(world, record)
        await world.sleep_until(at("10:06:00"))
        await asyncio.gather(*trap.tasks)
        return world, trap.writes

    return run_virtual(story, at("09:58"))


@pytest.mark.parametrize("disturbance", DISTURBANCES, ids=lambda disturbance: disturbance.name)
def test_a_disturbed_unblocking_changes_nothing_in_the_end(disturbance: Disturbance) -> None:
    """R31: crash before and after each write, lost answers."""
    wrong = []
    for number in range(1, 4):  # the end of the run, the Baseline, the status of the schedule
        world, writes = disturbed(number, disturbance)
        assert writes >= number
        reasons = [each["spec"]["reason"] for each in world.records() if each["spec"]["decision"] == "Baseline"]
        found = (reasons, decided(world)[-1], len(world.job_names()), world.record(2)["status"]["outcome"])
        if found != (["Created", "Unblocked"], "Admitted 10:05", 2, "Completed"):
            wrong.append((number, found))
    assert not wrong


@pytest.mark.parametrize("lag_seconds", [0.0, 60.0])
def test_an_old_leader_can_not_undo_it(lag_seconds: float) -> None:
    """R31 P14: its append for the instant before arrives after the record was set aside, or its name is taken."""

    async def story(world: World) -> None:
        await world.kill()
        await world.until_leading(world.start("a"))
        world.apply(a_schedule(**FIVE, startingDeadlineSeconds=300))
        await world.sleep_until(at("10:01"))
        world.start("b")
        await world.sleep_until(at("10:04:58"))
        world.fence.lag_seconds = lag_seconds

        def is_stalled(request: ApiRequest) -> bool:
            is_lease = request.path.endswith("/leases/workflow-schedules")
            return request.client == "a" and (is_lease or (request.method == "POST" and "/ns/" in request.path))

        world.fault(Fault(delay_seconds=130), matches=is_stalled)
        await world.sleep_until(at("10:05:01"))
        record = rewrite(world, 2, format=2)
        annotate(world, record)
        await world.sleep_until(at("10:09"))
        assert world.status()["state"] == "Active"
        await world.sleep_until(at("10:11"))
        runs = [each["metadata"]["labels"]["workflow-schedules.dev/scheduled-at"] for each in jobs_of(world)]
        assert runs == ["20260302T100000Z", "20260302T101000Z"]

    run(story)


def test_one_corrupt_record_among_150_on_a_slow_server() -> None:
    """K-028: 149 have their Jobs within the allowance, and the corrupt one is blocked, alone."""

    async def story(world: World) -> None:
        for number in range(149):
            world.apply(a_schedule(f"s{number:03d}", schedule="0 2 * * *"))
        world.apply(a_schedule(schedule="0 2 * * *"))
        await asyncio.sleep(30)
        await world.kill()
        record = rewrite(world, 1, decision="Perhaps")
        world.start(workers=4)
        world.fault(Fault(delay_seconds=0.4), matches=lambda request: request.method == "POST")
        await world.sleep_until(at("02:02"))
        assert sum("Admitted 02:00" in decided(world, f"s{number:03d}") for number in range(149)) == 149
        made = sorted(job["metadata"]["creationTimestamp"] for job in world.server.objects("jobs", "ns"))
        assert len(made) == 149
        assert "2026-03-02T02:00:00Z" <= made[0] <= made[-1] <= "2026-03-02T02:01:00Z"
        assert world.status()["state"] == "Blocked"
        assert record in world.condition("Stalled")["message"]

    run(story, start="01:57")


def test_nothing_of_a_framework_is_stored_and_effects_happen_once() -> None:
    """K-079: though the first write fails for a while."""

    async def story(world: World) -> None:
        hook = world.fault(
            Fault(status=500, reason="InternalError"),
            matches=lambda request: request.method == "POST" and "/ns/scheduleoccurrences" in request.path,
        )
        made = world.apply(a_schedule(**FIVE))
        await asyncio.sleep(10)
        world.server.faults.remove(hook)
        await asyncio.sleep(20)
        metadata = world.schedule()["metadata"]
        assert {key: metadata[key] for key in metadata if key != "resourceVersion"} == {
            key: made["metadata"][key] for key in made["metadata"] if key != "resourceVersion"
        }
        assert decided(world) == ["Baseline "]

    run(story)
