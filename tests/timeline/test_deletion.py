"""Deleting schedules, with and without their records, with and without an operator; and making them anew."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import orjson
import pytest

from support.api_kinds import Json, RefusedError
from support.api_requests import Admission, ApiRequest
from support.api_transport import Fault
from support.harness import World
from support.objects import a_definition, a_schedule
from support.story import LEASE_TIMES, At, Crash, Outage, admitted, at, coalesced, completed, play
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api import names

MINUTELY = {"schedule": "* * * * *"}
FIVE = {"schedule": "*/5 * * * *"}
DELETE = {"deletionPolicy": "Delete"}


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:59:10") -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        await story(world)
        world.auditor.check()

    run_virtual(main, at(start))


def owners(record: Json) -> list[tuple[str, str]]:
    return [(each["kind"], each["uid"]) for each in record["metadata"].get("ownerReferences", ())]


def delete(world: World) -> None:
    world.delete("s")
    world.server.run_gc()


def finish_first(world: World) -> None:
    world.jobs.finish("ns", world.job_names()[0])


def test_the_owner_is_set_by_the_policy_of_the_moment() -> None:
    """R20: `Delete` when a record is made binds it to the schedule, `Retain` doesn't; what is made stays as it is."""

    def the_first_two_stay_unowned(world: World) -> None:
        uid = world.schedule()["metadata"]["uid"]
        found = [owners(record) for record in world.records()]
        assert found == [[], [], [("WorkflowSchedule", uid)]]

    play(
        [
            At("10:00", want=[admitted("10:00")], baselines=["Created"]),
            At("10:00:30", do=lambda world: world.edit("s", **DELETE), want=[], baselines=[], status={"revision": 1}),
            At("10:01", want=[admitted("10:01")], check=the_first_two_stay_unowned),
        ],
        a_schedule(**MINUTELY),
        start="09:59:30",
    )


def nothing_is_left(world: World) -> None:
    assert (world.records(), world.job_names()) == ([], [])


def test_with_delete_records_and_jobs_go_with_the_schedule() -> None:
    """R20: also the Job of a run that goes on; the operator adds nothing, and complains to nobody."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(**MINUTELY, **DELETE))
        await world.sleep_until(at("10:00:10"))
        assert len(world.job_names()) == 1
        delete(world)
        nothing_is_left(world)
        since = len(world.server.log)
        await world.sleep_until(at("10:10"))
        nothing_is_left(world)
        assert len(world.writes(since=since)) <= 1, "the end of a run that has no record any more is tried once"
        await world.restart()
        await world.sleep_until(at("10:12"))
        nothing_is_left(world)

    run(story)


def ask(world: World, **metadata: object) -> Json:
    """Ask for a run as a person does."""
    return world.server.create(
        {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND_OCCURRENCE,
            "metadata": {"name": "now", "namespace": "ns", **metadata},
            "spec": {"scheduleRef": {"name": "s"}, "cause": "Manual"},
        }
    )


def test_with_delete_what_was_asked_for_goes_with_the_schedule() -> None:
    """R20 R27: a run in progress, too."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(schedule="0 3 * * *", **DELETE))
        await asyncio.sleep(2)
        before = len(world.server.log)
        ask(world)
        await asyncio.sleep(3)
        assert world.job_names() == ["now"]
        assert Counter(each.method for each in world.writes(since=before)) == {"PATCH": 2, "POST": 2}
        delete(world)
        nothing_is_left(world)
        await asyncio.sleep(60)
        cache = next(iter(world.processes.values())).operator._cluster.cache
        assert (len(cache.requests), len(cache.jobs)) == (0, 0)

    run(story)


def test_with_retain_what_was_asked_for_stays_and_costs_no_write_more() -> None:
    """R20 R27."""

    async def story(world: World) -> None:
        world.apply(a_schedule(schedule="0 3 * * *"))
        await asyncio.sleep(2)
        ask(world)
        await asyncio.sleep(10)
        assert owners(world.server.get("scheduleoccurrences", "ns", "now")) == []
        assert [each.path for each in world.server.log if each.method == "PATCH" and each.path.endswith("/now")] == []
        delete(world)
        assert world.job_names() == ["now"]

    run(story)


def test_an_owner_that_its_maker_named_keeps_a_request() -> None:
    """R20: Kubernetes collects what has lost all its owners."""

    async def story(world: World) -> None:
        world.apply(a_schedule("other", schedule="0 3 * * *"))
        world.apply(a_schedule(schedule="0 3 * * *", **DELETE))
        other = world.schedule("other")["metadata"]["uid"]
        reference = {"apiVersion": names.API_VERSION, "kind": names.KIND_SCHEDULE, "name": "other", "uid": other}
        await asyncio.sleep(2)
        ask(world, ownerReferences=[{**reference, "controller": True}])
        await asyncio.sleep(10)
        uid = world.schedule()["metadata"]["uid"]
        found = world.server.get("scheduleoccurrences", "ns", "now")
        assert owners(found) == [("WorkflowSchedule", other), ("WorkflowSchedule", uid)]
        assert [each.get("controller", False) for each in found["metadata"]["ownerReferences"]] == [True, False]
        delete(world)
        assert world.job_names() == ["now"]

    run(story)


@pytest.mark.parametrize("fault", [Fault(is_answer_lost=True), Fault(is_dropped=True), Fault(status=403)], ids=repr)
def test_no_job_is_made_before_the_request_has_its_owner(fault: Fault) -> None:
    """R20 P2: whatever becomes of the write, it is tried again and done once."""

    async def story(world: World) -> None:
        world.apply(a_schedule(schedule="0 3 * * *", **DELETE))
        await asyncio.sleep(2)
        world.fault(fault, matches=is_owning, times=2)
        ask(world)
        await asyncio.sleep(90)
        found = world.server.get("scheduleoccurrences", "ns", "now")
        assert owners(found) == [("WorkflowSchedule", world.schedule()["metadata"]["uid"])]
        assert found["status"]["outcome"] == "Completed"

    run(story)


def test_a_request_that_can_not_have_its_owner_ends_in_time_and_says_why() -> None:
    """R35: as where the operator's role is of an older version."""

    async def story(world: World) -> None:
        world.apply(a_schedule(schedule="0 3 * * *", **DELETE))
        await asyncio.sleep(2)
        world.fault(Fault(status=403, reason="Forbidden", message="no right to patch"), matches=is_owning)
        ask(world)
        await asyncio.sleep(650)
        status = world.server.get("scheduleoccurrences", "ns", "now")["status"]
        assert (status["outcome"], status["reason"]) == ("Failed", "NotStarted")
        assert "no right to patch" in status["message"]
        assert world.job_names() == []

    run(story)


def is_owning(request: ApiRequest) -> bool:
    return request.method == "PATCH" and request.path.endswith("/scheduleoccurrences/now")


def test_with_delete_a_foreground_deletion_waits_for_records_and_jobs() -> None:
    """R20: nothing new is made while it is being deleted, so it can come to its end."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(**MINUTELY, **DELETE))
        await world.sleep_until(at("10:00:10"))
        world.server.delete("workflowschedules", "ns", "s", propagation="Foreground")
        await world.sleep_until(at("10:02:10"))
        assert len(world.job_names()) == 1
        world.server.run_gc()
        nothing_is_left(world)
        assert world.server.find("workflowschedules", "ns", "s") is None

    run(story)


def test_with_retain_the_run_goes_on_and_is_recorded_also_by_the_next_leader() -> None:
    """R20."""

    def both_are_there(world: World) -> None:
        assert len(world.records()) == 2
        assert len(world.job_names()) == 1
        assert [owners(record) for record in world.records()] == [[], []]

    play(
        [
            At("10:00", want=[admitted("10:00")], ends=[]),
            At("10:00:30", do=delete, check=both_are_there),
            Crash("10:01:10"),
            At("10:02", want=[], ends=[]),
            At("10:03", do=finish_first, ends=[completed("10:00")], check=both_are_there),
        ],
        a_schedule(**MINUTELY),
        run_seconds=None,
        start="09:59:30",
    )


def test_a_one_shot_made_anew_is_another_one() -> None:
    """R7 R20 K-042: its instant is past for the new one, whatever the old one did."""

    def make_anew(world: World) -> None:
        delete(world)
        world.apply(a_schedule(runOnceTime="2026-03-02T10:00:00Z"))

    play(
        [
            At("10:00", want=[admitted("10:00")], ends=[completed("10:00")]),
            At("10:00:30", do=make_anew, want=[], baselines=["Created"], status={"state": "Complete"}),
            At("10:02", want=[]),
        ],
        a_schedule(runOnceTime="2026-03-02T10:00:00Z"),
        start="09:59",
    )


def test_made_anew_with_a_limit_it_counts_from_its_own_beginning() -> None:
    """R20 R21 K-042: the old runs are not counted."""

    def make_anew(world: World) -> None:
        world.delete("s")
        world.apply(a_schedule(**MINUTELY, runLimit=1, pauseAfterFailures=1))

    play(
        [
            At("10:00", want=[admitted("10:00")], settle_seconds=8, status={"state": "Complete"}),
            At("10:00:30", do=make_anew, want=[], status={"state": "Active"}),
            At("10:01", want=[admitted("10:01")], settle_seconds=8, status={"state": "Complete"}),
        ],
        a_schedule(**MINUTELY, runLimit=1, pauseAfterFailures=1),
        start="09:59",
    )


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_the_operator_uninstalled_first_a_namespace_goes_away(policy: str) -> None:
    """K-097: nothing of ours has a finalizer, so nothing waits for an operator that is gone."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_definition())
        for number in range(10):
            world.apply(a_schedule(f"s{number}", workflow="w", **MINUTELY, deletionPolicy=policy))
        await world.sleep_until(at("10:00:10"))
        assert len(world.job_names()) == 10
        await world.kill()
        plurals = ("workflowschedules", "workflowdefinitions", "scheduleoccurrences", "jobs", "controllerrevisions")
        for plural in plurals:
            for body in world.server.objects(plural, "ns"):
                assert "finalizers" not in body["metadata"]
                if world.server.find(plural, "ns", body["metadata"]["name"]) is not None:
                    world.server.delete(plural, "ns", body["metadata"]["name"])
            world.server.run_gc()
        assert [world.server.objects(plural, "ns") for plural in plurals] == [[]] * len(plurals)
        world.start()

    run(story)


def test_deleted_right_after_its_creation() -> None:
    """K-099: gone at once, nothing is made for it, and no request about it is tried again and again."""

    async def story(world: World) -> None:
        since = len(world.server.log)
        world.apply(a_schedule(**MINUTELY))
        world.delete("s")
        assert world.server.find("workflowschedules", "ns", "s") is None
        await world.sleep_until(at("10:05"))
        nothing_is_left(world)
        assert len(world.writes(since=since)) <= 1
        about_it = [entry for entry in world.server.log[since:] if "/namespaces/ns/" in entry.path]
        assert len(about_it) <= 6

    run(story)


def test_deleted_with_a_finalizer_of_somebody_else() -> None:
    """K-099: while it waits for that one, nothing is admitted and none of its fields is written."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY))
        await world.sleep_until(at("10:00:30"))
        body = world.schedule()
        world.server.replace({**body, "metadata": {**body["metadata"], "finalizers": ["example.com/slow"]}})
        world.delete("s")
        await world.sleep_until(at("10:00:40"))
        since = len(world.server.log)
        await world.sleep_until(at("10:05"))
        assert world.writes(since=since) == []
        assert len(world.job_names()) == 1
        assert world.schedule()["metadata"]["finalizers"] == ["example.com/slow"]

    run(story)


@pytest.mark.parametrize("is_operator_there", [True, False])
def test_records_and_job_deleted_by_hand_before_the_schedule(is_operator_there: bool) -> None:
    """K-100: what is gone already is done; others go on."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(**MINUTELY, **DELETE))
        world.apply(a_schedule("other", **MINUTELY, concurrencyPolicy="Allow", maxActiveRuns=100))
        await world.sleep_until(at("10:00:10"))
        if not is_operator_there:
            await world.kill()
        for record in world.records():
            world.delete(record["metadata"]["name"], plural="scheduleoccurrences")
        world.server.run_gc()
        delete(world)
        assert world.server.find("workflowschedules", "ns", "s") is None
        assert world.records() == []
        if not is_operator_there:
            world.start()
        await world.sleep_until(at("10:03:10"))
        assert world.records() == []
        assert len(world.job_names()) == 4, "the other one goes on"

    run(story)


def test_a_namespace_that_terminates_is_said_and_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """K-102: one record is tried, and refused; the log says so, and the schedule's end is no contradiction."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**FIVE, **DELETE))
        world.apply(a_schedule("other", namespace="elsewhere", **FIVE))
        await world.sleep_until(at("10:04:30"))
        assert world.status()["counts"]["admitted"] == 1, "its template is pinned: nothing comes before the record"
        since = len(world.server.log)
        world.server.requests.terminating.add("ns")
        await world.sleep_until(at("10:10:30"))
        creates = [
            each for each in world.server.log[since:] if each.method == "POST" and "/namespaces/ns/" in each.path
        ]
        assert [(each.path.rpartition("/")[2], each.status) for each in creates] == [("scheduleoccurrences", 403)]
        assert "because it is being terminated" in " ".join(str(vars(line).get("error")) for line in caplog.records)
        delete(world)
        await asyncio.sleep(1)
        since = len(world.server.log)
        await world.sleep_until(at("10:20:10"))
        assert [entry for entry in world.server.log[since:] if "/namespaces/ns/" in entry.path] == []
        assert world.status("other", "elsewhere")["counts"]["admitted"] == 5

    run(story)


def test_deleted_and_made_anew_while_the_operator_is_down() -> None:
    """R20 K-042: the new one begins at its own creation, the old one's run is recorded under its own UID."""

    def make_anew(world: World) -> None:
        delete(world)
        world.apply(a_schedule(**FIVE, misfirePolicy="Latest"))
        finish_first(world)

    play(
        [
            At("10:00", want=[admitted("10:00")], ends=[], baselines=["Created"]),
            Outage("10:06", "10:16", do=make_anew),
            At("10:17", want=[coalesced("10:10"), admitted("10:15")], ends=[completed("10:00")], baselines=["Created"]),
        ],
        a_schedule(**FIVE, misfirePolicy="Latest"),
        run_seconds=None,
        start="09:58",
    )


def test_refused_owner_references_are_no_reason_to_admit_without_a_record() -> None:
    """R8 R20: the record comes first, whatever refuses it."""

    async def story(world: World) -> None:
        def no_owners(admission: Admission) -> RefusedError | None:
            if admission.kind.plural == "scheduleoccurrences" and admission.new["metadata"].get("ownerReferences"):
                return RefusedError(403, "Forbidden", "cannot set blockOwnerDeletion")
            return None

        world.server.admission.append(no_owners)
        world.apply(a_schedule(**MINUTELY, **DELETE))
        await world.sleep_until(at("10:01:30"))
        nothing_is_left(world)
        world.server.admission.remove(no_owners)
        await world.sleep_until(at("10:03:10"))
        assert world.records()[0]["spec"]["decision"] == "Baseline"
        assert len(world.job_names()) >= 1

    run(story)


def test_pruned_jobs_take_their_pods_along_and_only_theirs() -> None:
    """K-103: ten runs with a limit of three; how the Pods go is said in each request, and no Job waits for a finalizer."""

    async def story(world: World) -> None:
        deletions: list[ApiRequest] = []
        world.server.faults.append(lambda each: deletions.append(each) if is_deletion_of_job(each) else None)
        world.apply(a_schedule(**FIVE, successfulJobsHistoryLimit=3))
        for minute in range(0, 50, 5):
            await world.sleep_until(at(f"10:{minute:02d}:10"))
            add_pod(world, world.job_names()[-1])
        await world.sleep_until(at("10:49:50"))
        world.server.run_gc()
        jobs = world.server.objects("jobs", "ns")
        assert len(deletions) == 7
        assert {orjson.loads(each.body or b"{}")["propagationPolicy"] for each in deletions} == {"Background"}
        assert [each["metadata"].get("finalizers") for each in jobs] == [None] * 3
        owners = [each["metadata"]["ownerReferences"][0]["uid"] for each in world.server.objects("pods", "ns")]
        assert sorted(owners) == sorted(each["metadata"]["uid"] for each in jobs)

    run(story)


def is_deletion_of_job(request: ApiRequest) -> bool:
    return request.method == "DELETE" and "/jobs/" in request.path


def add_pod(world: World, job: str) -> None:
    """Give a finished Job the Pod that it had."""
    uid = world.server.get("jobs", "ns", job)["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid, "controller": True}
    metadata = {"name": f"{job}-x", "namespace": "ns", "ownerReferences": [owner]}
    world.server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}})


@pytest.mark.parametrize("is_watched", [True, False])
def test_an_admission_that_arrives_after_its_schedule_was_deleted_gets_an_outcome(is_watched: bool) -> None:
    """R20 R35: the record was on its way for longer than its sender waited, and nobody reads that log any more."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY))
        await world.sleep_until(at("09:59:59"))

        def is_admission(request: ApiRequest) -> bool:
            return request.method == "POST" and request.path.endswith("/scheduleoccurrences")

        world.fault(Fault(delay_seconds=20), matches=is_admission)
        await world.sleep_until(at("10:00:10"))
        world.delete("s")
        await asyncio.sleep(1)
        if not is_watched:  # what a list tells, after a gap, instead of an event
            world.fault(Fault(status=503), matches=lambda request: request.method == "WATCH")
            world.server.break_watches()
            await world.sleep_until(at("10:00:25"))
            world.server.compact()
            world.heal()
        await world.sleep_until(at("10:11"))
        last = world.records()[-1]
        assert last["spec"]["decision"] == "Admitted"
        assert last["status"]["reason"] == "NotStarted"
        assert world.job_names() == []

    run(story)
