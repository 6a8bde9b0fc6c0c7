"""One bad object delays no other, nothing spins, nothing grows: what goes wrong stays where it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from support.api_kinds import Json, RefusedError
from support.api_requests import Admission, ApiRequest
from support.api_transport import Fault
from support.harness import World
from support.objects import a_definition, a_schedule, a_template
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api.common import parse_utc
from workflow_schedules.api.names import LABEL_CAUSE, LABEL_SCHEDULE_UID

FIVE = {"schedule": "*/5 * * * *"}
MINUTELY = {"schedule": "* * * * *"}
WATCHES_OF_PEOPLE = ("/workflowschedules", "/workflowdefinitions")


def run(story: Callable[[World], Awaitable[None]], *, start: str = "09:58") -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        await world.until_leading(world.start())
        await story(world)

    run_virtual(main, at(start))


def requests_of(world: World, since: int, *parts: str) -> int:
    """How many requests, the Lease's own left out, name one of these parts in their path."""
    entries = [entry for entry in world.server.log[since:] if "/leases" not in entry.path and entry.method != "WATCH"]
    return sum(not parts or any(part in entry.path for part in parts) for entry in entries)


def decisions(world: World, name: str) -> list[str]:
    found = [record["spec"] for record in world.records(name)]
    return [f"{spec['decision']} {spec['scheduledTime'][11:16]}" for spec in found if spec["decision"] != "Baseline"]


def test_two_bad_schedules_among_twenty() -> None:
    """K-056 K-071: a status that no longer parses is rebuilt, an empty expression is blocked with a reason, all others run."""

    async def story(world: World) -> None:
        for number in range(19):
            world.apply(a_schedule(f"s{number:02d}", **FIVE))
        world.apply(a_schedule("empty", schedule=""))
        await world.sleep_until(at("09:59"))
        await world.kill()
        rules = world.suspend_rules()  # as if these had been written before any rule existed
        garbage = {
            "recent": "none",
            "lastFailureTime": "yesterday",
            "counts": [],
            "candidates": {"a": 1},
            "logHead": None,
        }
        world.server.patch("workflowschedules", "ns", "s00", {"status": garbage}, subresource="status")
        rules()
        world.start()
        await world.sleep_until(at("10:01"))
        for number in range(19):
            assert decisions(world, f"s{number:02d}") == ["Admitted 10:00"]
        assert decisions(world, "empty") == []
        assert world.status("empty")["state"] == "Blocked"
        accepted = world.condition("Accepted", "empty")
        assert accepted["status"] == "False"
        assert "spec.schedule" in accepted["message"]
        rebuilt = world.status("s00")
        assert (rebuilt["logHead"], rebuilt["counts"]["completed"]) == (2, 1)
        assert "lastFailureTime" not in rebuilt
        before = len(world.server.log)
        await world.restart()
        await world.sleep_until(at("10:04"))
        assert world.writes(since=before) == [], "the rebuilt status parses"
        world.auditor.check()

    run(story)


def test_a_record_that_contradicts_blocks_its_schedule_alone() -> None:
    """R31: also when it is found by a list, and the status says so."""

    async def story(world: World) -> None:
        world.apply(a_schedule("good", **FIVE))
        for name in ("garbled", "foreign"):
            world.apply(a_schedule(name, **FIVE))
        await world.sleep_until(at("10:01"))
        await world.kill()
        rules = world.suspend_rules()
        _rewrite(world, "garbled", {"decision": "Perhaps"})
        _rewrite(world, "foreign", {"scheduleRef": {"name": "foreign", "uid": "somebody-else"}})
        for name in ("garbled", "foreign"):
            body = world.schedule(name)
            world.server.patch(
                "workflowschedules", "ns", name, {"status": dict.fromkeys(body["status"])}, subresource="status"
            )
        rules()
        before = len(world.server.log)
        world.start()
        await world.sleep_until(at("10:06"))
        for name in ("garbled", "foreign"):
            assert world.status(name)["state"] == "Blocked", name
            assert world.condition("Stalled", name)["status"] == "True"
            assert name in world.condition("Stalled", name)["message"]
        assert decisions(world, "good") == ["Admitted 10:00", "Admitted 10:05"]
        assert requests_of(world, before) < 60
        idle = len(world.server.log)
        await world.sleep_until(at("10:09:30"))
        assert requests_of(world, idle) == 0

    run(story)


def test_a_lost_head_blocks_its_schedule_and_the_status_says_so() -> None:
    """R31 P7 P8: the stored head stays what it was, so that the CRD's rule takes the status."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**FIVE))
        await world.sleep_until(at("10:01"))
        await world.kill()
        world.delete(world.record(2)["metadata"]["name"], plural="scheduleoccurrences")
        world.start()
        await world.sleep_until(at("10:06"))
        assert world.status()["state"] == "Blocked"
        assert world.status()["logHead"] == 2

    run(story)


def _rewrite(world: World, name: str, spec: Json) -> None:
    record = world.record(2, name)["metadata"]["name"]
    world.server.patch("scheduleoccurrences", "ns", record, {"spec": spec})


def test_a_user_s_occurrence_with_our_labels_blocks_nothing() -> None:
    """K-095: a request is no record, whatever its labels say."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**FIVE))
        await world.sleep_until(at("10:01"))
        await world.kill()
        uid = world.schedule()["metadata"]["uid"]
        world.server.create(
            {
                "apiVersion": "workflow-schedules.dev/v1alpha1",
                "kind": "ScheduleOccurrence",
                "metadata": {
                    "name": "forged",
                    "namespace": "ns",
                    "labels": {LABEL_SCHEDULE_UID: uid, LABEL_CAUSE: "Scheduled"},
                },
                "spec": {"scheduleRef": {"name": "s"}, "cause": "Manual"},
            }
        )
        rules = world.suspend_rules()
        world.server.patch(
            "workflowschedules", "ns", "s", {"status": dict.fromkeys(world.status())}, subresource="status"
        )
        rules()
        world.start()
        await world.sleep_until(at("10:06"))
        assert world.status()["state"] == "Active"
        assert "Admitted 10:05" in [
            f"{each['spec'].get('decision')} {each['spec'].get('scheduledTime', '')[11:16]}" for each in world.records()
        ]

    run(story)


@pytest.mark.parametrize("is_deleted_too", [False, True])
def test_a_record_deleted_under_a_run_does_not_spin(is_deleted_too: bool) -> None:
    """R31: by hand, or by the end of a namespace, which takes the schedule too."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(**FIVE))
        world.apply(a_schedule("good", **MINUTELY))
        await world.sleep_until(at("10:00:30"))
        record = world.record(2)["metadata"]["name"]
        if is_deleted_too:
            world.delete("s")
        world.delete(record, plural="scheduleoccurrences")
        world.server.run_gc()
        before = len(world.server.log)
        await world.sleep_until(at("10:03"))
        assert requests_of(world, before, record) <= 4
        assert requests_of(world, before) < 40
        assert decisions(world, "good")[-1] == "SkippedOverlap 10:02"
        if not is_deleted_too:
            assert world.status()["state"] == "Blocked"

    run(story)


@pytest.mark.parametrize("code", [403, 422])
def test_a_refused_status_is_not_tried_in_a_hot_loop(code: int) -> None:
    async def story(world: World) -> None:
        world.apply(a_schedule(**FIVE))
        await world.sleep_until(at("09:59"))

        def refuse(admission: Admission) -> RefusedError | None:
            is_status = admission.kind.plural == "workflowschedules" and admission.subresource == "status"
            return RefusedError(code, "Forbidden", "no") if is_status else None

        world.server.admission.append(refuse)
        before = len(world.server.log)
        await world.sleep_until(at("10:04:30"))
        assert decisions(world, "s") == ["Admitted 10:00"]
        assert requests_of(world, before, "/status") <= 20
        world.server.admission.remove(refuse)
        await world.sleep_until(at("10:06"))
        assert world.status()["lastScheduleTime"] == "2026-03-02T10:05:00Z"

    run(story)


def test_a_refused_record_is_not_tried_in_a_hot_loop() -> None:
    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY, misfirePolicy="Latest"))
        await world.sleep_until(at("09:59:50"))
        lift = world.refuse(422, "Invalid", "spec: no", plural="scheduleoccurrences")
        before = len(world.server.log)
        await world.sleep_until(at("10:04:50"))
        assert requests_of(world, before) <= 25
        lift()
        await world.sleep_until(at("10:06"))
        assert decisions(world, "s")[-1] == "Admitted 10:05"
        world.auditor.check()

    run(story)


def test_a_deletion_that_the_watch_missed_is_noticed() -> None:
    """Stale cache: kopf lists anew after a gap and says nothing of what is gone by then."""

    async def story(world: World) -> None:
        world.apply(a_definition())
        world.apply(a_schedule("s", workflow="w", **FIVE))
        world.apply(a_schedule("other", workflow="w", **FIVE))
        await world.sleep_until(at("10:01"))
        hook = world.fault(Fault(is_dropped=True), matches=_watches_people)
        world.server.break_watches()
        world.delete("s")
        world.delete("w", plural="workflowdefinitions")
        world.server.compact()
        await asyncio.sleep(5)
        world.server.faults.remove(hook)
        await world.sleep_until(at("10:04"))
        before = len(world.server.log)
        await world.sleep_until(at("10:11"))
        assert world.server.find("workflowschedules", "ns", "s") is None
        assert decisions(world, "s") == ["Admitted 10:00"], "R20: nothing is admitted for a schedule that is gone"
        assert decisions(world, "other") == ["Admitted 10:00"], "R1: no orphan fires"
        assert world.status("other")["state"] == "Held"
        assert requests_of(world, before) < 10

    run(story)


def _watches_people(request: ApiRequest) -> bool:
    return (
        request.path.endswith(WATCHES_OF_PEOPLE)
        and request.client.startswith("op")
        and request.method in {"WATCH", "GET"}
    )


def test_a_status_answer_that_overtakes_a_deletion_revives_nothing() -> None:
    """Stale cache: the answer to our own status write arrives after the event of the deletion."""

    async def story(world: World) -> None:
        world.late.append(lambda _method, path: 2.0 if path.endswith("/status") else 0.0)
        world.apply(a_schedule(**FIVE))
        await asyncio.sleep(1)
        assert any(entry.path.endswith("workflowschedules/s/status") for entry in world.server.log)
        world.delete("s")
        await world.sleep_until(at("10:06"))
        assert decisions(world, "s") == []

    run(story)


def test_a_list_of_jobs_that_is_older_than_a_new_job_does_not_lose_it() -> None:
    """Stale cache: a relist was under way while we made the Job; its answer comes after ours."""

    async def story(world: World) -> None:
        world.jobs.run_for(20)
        world.apply(a_schedule(**FIVE))
        await world.sleep_until(at("09:59:58"))

        world.late.append(lambda method, path: 5.0 if (method, path) == ("GET", "/apis/batch/v1/jobs") else 0.0)
        world.server.compact()
        await world.sleep_until(at("10:00:30"))
        before = len(world.server.log)
        await world.sleep_until(at("10:04"))
        assert requests_of(world, before) < 10
        assert world.records()[-1]["status"]["outcome"] == "Completed"
        world.auditor.check()

    run(story, start="09:55")


def test_an_answer_that_is_older_than_an_event_changes_nothing() -> None:
    """Stale cache: the Job's end was seen before the answer to its creation."""

    async def story(world: World) -> None:
        world.jobs.run_for(0.5)
        world.apply(a_schedule(**FIVE))
        await world.sleep_until(at("09:59:58"))
        world.late.append(lambda method, path: 5.0 if method == "POST" and path.endswith("/jobs") else 0.0)
        await world.sleep_until(at("10:00:30"))
        assert world.records()[-1]["status"]["outcome"] == "Completed"
        world.auditor.check()

    run(story)


def test_with_one_worker_statuses_are_written_too() -> None:
    async def story(world: World) -> None:
        await world.kill()
        world.start(workers=1)
        for number in range(5):
            world.apply(a_schedule(f"s{number}", **FIVE))
        await world.sleep_until(at("10:01"))
        for number in range(5):
            assert world.status(f"s{number}")["lastSuccessfulTime"]
        world.auditor.check()

    run(story)


def test_memory_does_not_grow_with_what_is_gone() -> None:
    """Schedules, runs and Jobs that were deleted, and wake-ups that were brought forward, leave nothing behind."""

    async def story(world: World) -> None:
        operator = next(iter(world.processes.values())).operator
        for number in range(10):
            world.apply(a_schedule(f"s{number}", schedule="0 0 1 1 *"))
            world.apply(a_definition(f"w{number}"))
            world.apply(a_schedule(f"m{number}", **MINUTELY))
        for _ in range(50):
            for number in range(10):
                world.edit_definition(f"w{number}", description=str(_))
                world.edit(f"s{number}", enabled=bool(_ % 2))
            await asyncio.sleep(3)
        assert len(operator._leader._wakeups._heap) < 200
        for number in range(10):
            world.delete(f"s{number}")
            world.delete(f"m{number}")
            world.delete(f"w{number}", plural="workflowdefinitions")
        for name in world.job_names():
            world.delete(name, plural="jobs")
        await asyncio.sleep(120)
        cache = operator._cluster.cache
        assert (len(cache.schedules), len(cache.definitions), len(cache.logs), len(cache.jobs)) == (0, 0, 0, 0)
        assert not any(cache.desired._children.values())
        assert operator._leader._loop._projections._due == {}
        assert operator._leader._definitions._counted == {}

    run(story)


def test_two_edits_of_a_definition_do_not_cost_the_next_run() -> None:
    """I3: the log of an idle schedule is not read at a takeover; its definition's edits still count from when they are seen."""

    async def story(world: World) -> None:
        world.apply(a_definition())
        world.apply(a_schedule(workflow="w", **FIVE))
        await world.sleep_until(at("10:01"))
        await world.restart()
        await world.sleep_until(at("10:02"))
        world.edit_definition(description="one")
        await world.sleep_until(at("10:03"))
        world.edit_definition(description="two")
        await world.sleep_until(at("10:06"))
        assert decisions(world, "s") == ["Admitted 10:00", "Admitted 10:05"]

    run(story)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(is_dropped=True, is_silent=True),
        Fault(status=500, delay_seconds=9.0),
        Fault(status=403, reason="Forbidden"),
    ],
    ids=["no answer", "a late 500", "refused"],
)
def test_a_template_that_can_not_be_pinned_delays_no_schedule_of_another(fault: Fault) -> None:
    """I9: forty schedules share it; each of them would wait for its own time-out, and there are sixteen workers."""

    def is_theirs(request: ApiRequest) -> bool:
        return request.path.endswith("/controllerrevisions") and b'"herd"' in (request.body or b"")

    async def story(world: World) -> None:
        hook = world.fault(fault, matches=is_theirs)
        for number in range(40):
            template = a_template("herd")
            world.apply(
                a_schedule(f"herd-{number}", schedule="0 * * * *", misfirePolicy="Latest", jobTemplate=template)
            )
        world.apply(a_schedule("other", **MINUTELY))
        await world.sleep_until(at("10:05:30"))
        runs = [each for each in world.records("other") if each["spec"]["decision"] == "Admitted"]
        late = [
            parse_utc(each["metadata"]["creationTimestamp"]) - parse_utc(each["spec"]["scheduledTime"]) for each in runs
        ]
        assert len(late) == 7
        assert max(late).total_seconds() <= 5
        world.server.faults.remove(hook)
        await world.sleep_until(at("10:20"))
        assert {str(decisions(world, f"herd-{number}")) for number in range(40)} == {"['Admitted 10:00']"}

    run(story)
