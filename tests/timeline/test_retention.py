"""What is finished goes in time and nothing else does (R20, R22, R26, R30; P1, P2, P7, P19). The auditor judges every DELETE."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import NAMESPACE, SETTINGS, World
from support.job_runner import Course
from support.objects import TEMPLATE, a_schedule
from support.story import LEASE_TIMES, at
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api.names import API_VERSION, KIND_OCCURRENCE, record_name
from workflow_schedules.api.occurrence import Totals
from workflow_schedules.core.events import EventLevel

MINUTELY = {"schedule": "* * * * *"}


def run(
    story: Callable[[World], Awaitable[None]], *, start: str = "09:59:30", is_audited: bool = True, **settings: object
) -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.start(**settings)
        await story(world)
        if is_audited:
            world.auditor.check()

    run_virtual(main, at(start))


def deletes(world: World, plural: str, *, since: int = 0) -> int:
    return sum(1 for each in world.server.log[since:] if each.method == "DELETE" and f"/{plural}/" in each.path)


def lists(world: World, *, since: int = 0) -> int:
    return sum(
        1 for each in world.server.log[since:] if each.method == "GET" and each.path.endswith("/scheduleoccurrences")
    )


def removal(plural: str) -> Callable[[ApiRequest], bool]:
    return lambda request: request.method == "DELETE" and f"/{plural}/" in request.path


async def until_removed(world: World) -> None:
    """Wait until one more object is removed."""
    removed = len(world.retention.removed)
    while len(world.retention.removed) == removed:  # noqa: ASYNC110 - what it does is watched from outside
        await asyncio.sleep(0.05)


# Jobs


def test_finished_jobs_go_by_their_limits_three_minutes_after_their_result_is_on_record() -> None:
    """R22, R26, P1: of a minutely schedule those of the last three minutes stay in any case."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY, successfulJobsHistoryLimit=1))
        await world.sleep_until(at("10:03"))
        assert deletes(world, "jobs") == 0
        await world.sleep_until(at("10:03:10"))
        assert deletes(world, "jobs") == 1
        await world.sleep_until(at("10:30:50"))
        assert len(world.job_names()) == 3

    run(story)


def test_failed_jobs_have_a_limit_of_their_own() -> None:
    async def story(world: World) -> None:
        world.apply(a_schedule("good", schedule="*/5 * * * *", successfulJobsHistoryLimit=2, failedJobsHistoryLimit=0))
        await world.sleep_until(at("10:24"))
        assert len(world.job_names()) == 2

    run(story)


def test_a_time_to_live_of_the_template_removes_the_job_though_no_limit_does() -> None:
    """R22."""

    async def story(world: World) -> None:
        template = {"spec": {**TEMPLATE["spec"], "ttlSecondsAfterFinished": 600}}
        world.apply(a_schedule(schedule="0 * * * *", jobTemplate=template))
        await world.sleep_until(at("10:09:50"))
        assert len(world.job_names()) == 1
        await world.sleep_until(at("10:10:15"))
        assert world.job_names() == []
        assert world.records()[-1]["status"]["outcome"] == "Completed"

    run(story)


def test_a_new_leader_reads_the_result_before_it_removes_what_another_left() -> None:
    """R26, P1: K counts from its own acquisition."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY, successfulJobsHistoryLimit=9))
        await world.sleep_until(at("10:05:30"))
        world.edit("s", enabled=False)
        await world.sleep_until(at("10:06"))
        await world.restart()
        await world.sleep_until(at("10:07"))
        world.edit("s", successfulJobsHistoryLimit=1)
        await world.sleep_until(at("10:09:10"))
        assert deletes(world, "jobs") == 0
        await world.sleep_until(at("10:12"))
        assert len(world.job_names()) == 1

    run(story)


def test_a_job_that_only_looks_like_ours_is_left_alone() -> None:
    """P10."""

    async def story(world: World) -> None:
        world.apply(a_schedule(schedule="*/5 * * * *", successfulJobsHistoryLimit=0))
        await world.sleep_until(at("10:01"))
        own = world.server.objects("jobs")[0]
        metadata = {"name": "mine", "namespace": NAMESPACE, "labels": own["metadata"]["labels"]}
        world.server.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": own["spec"]})
        uid = world.schedule()["metadata"]["uid"]
        taken = record_name("s", uid, world.records()[-1]["spec"]["sequence"] + 1)
        metadata = {**metadata, "name": taken}
        world.server.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": own["spec"]})
        await world.sleep_until(at("10:14"))
        assert [each["status"].get("reason") for each in world.records()[1:]] == [
            "JobComplete",
            "NameTaken",
            "JobComplete",
        ]
        assert sorted(world.job_names()) == sorted(["mine", taken])

    run(story)


def test_a_quota_that_is_used_up_is_freed_though_no_create_succeeds() -> None:
    """K-035: pruning does not depend on a successful create."""

    async def story(world: World) -> None:
        def is_full(request: ApiRequest) -> bool:
            return request.method == "POST" and "/jobs" in request.path and len(world.job_names()) > 0

        world.fault(
            Fault(status=403, reason="Forbidden", message="exceeded quota: jobs, used: 1, limited: 1"), matches=is_full
        )
        world.apply(a_schedule(schedule="*/5 * * * *", successfulJobsHistoryLimit=0))
        await world.sleep_until(at("10:16"))
        outcomes = [each["status"]["outcome"] for each in world.records() if each["spec"]["decision"] == "Admitted"]
        assert outcomes == ["Completed"] * 4

    run(story)


# records


@pytest.mark.parametrize(("limit", "most"), [(3, 3 + 5 + 4), (30, 30 + 20 + 4)])
def test_records_go_by_their_limit_in_batches(limit: int, most: int) -> None:
    """R30: those of the last three minutes stay in any case."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY, occurrenceHistoryLimit=limit))
        for minute in range(10, 100, 5):
            await world.sleep_until(at("10:00") + timedelta(minutes=minute))
            assert len(world.records()) <= most
        assert len(world.records()) >= limit

    run(story)


def test_the_newest_failure_stays_however_old_it_is() -> None:
    """R30."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY, occurrenceHistoryLimit=2))
        await world.sleep_until(at("10:02:01"))
        world.jobs.finish(NAMESPACE, world.job_names()[-1], is_failed=True)
        await world.sleep_until(at("10:40"))
        outcomes = Counter(each.get("status", {}).get("outcome") for each in world.records())
        assert outcomes["Failed"] == 1
        assert len(world.records()) <= 2 + 5 + 5

    run(story)


def test_a_pruned_log_is_read_on_by_the_next_leader() -> None:
    """P8: the head's link to a record that is gone is no contradiction."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY, occurrenceHistoryLimit=0))
        await world.sleep_until(at("10:20:30"))
        assert len(world.records()) < 10
        await world.restart()
        await world.sleep_until(at("10:25:30"))
        assert world.status()["state"] == "Active"
        assert world.records()[-1]["spec"]["sequence"] == 27

    run(story)


def test_pruning_costs_one_request_per_object_and_one_list_for_twenty_records() -> None:
    """Performance: by default limits, in the long run."""

    async def story(world: World) -> None:
        for number in range(3):
            world.apply(a_schedule(f"s{number}", **MINUTELY))
        await world.sleep_until(at("11:35"))
        before, gone = len(world.server.log), len(world.retention.removed)
        await world.sleep_until(at("13:15"))
        removed = [each.partition("/")[0] for each in world.retention.removed[gone:]]
        assert len(removed) == deletes(world, "jobs", since=before) + deletes(
            world, "scheduleoccurrences", since=before
        )
        assert 294 <= removed.count("jobs") <= 306
        assert removed.count("scheduleoccurrences") >= 240
        assert lists(world, since=before) <= removed.count("scheduleoccurrences") / 20

    run(story)


def seed_records(world: World, count: int) -> None:
    """Let schedule s have so many old records."""
    last = world.records()[-1]
    uid = world.schedule()["metadata"]["uid"]
    for _ in range(count):
        number = last["spec"]["sequence"] + 1
        spec = {**last["spec"], "sequence": number, "previousUID": last["metadata"]["uid"], "open": []}
        spec |= {"decision": "SkippedOverlap", "reason": "SkippedOverlap", "scheduledTime": "2026-03-02T10:00:00Z"}
        labels = last["metadata"]["labels"]
        metadata = {"name": record_name("s", uid, number), "namespace": NAMESPACE, "labels": labels}
        last = world.server.create({**last, "metadata": metadata, "spec": spec})


def test_a_schedule_with_thousands_of_records_delays_nobody() -> None:
    """K-085: its history goes in bounded steps, paced."""

    async def story(world: World) -> None:
        world.apply(a_schedule(enabled=False))
        await world.sleep_until(at("10:00:30"))
        await world.kill()
        with_rules = world.suspend_rules()
        uid = world.schedule()["metadata"]["uid"]
        world.server.create(a_first_record(uid))
        seed_records(world, 1500)
        world.server.patch("workflowschedules", NAMESPACE, "s", {"status": {"logHead": 1501}}, subresource="status")
        with_rules()
        await world.sleep_until(at("10:04:30"))
        world.apply(a_schedule("other", **MINUTELY))
        world.start()
        await world.sleep_until(at("10:24:30"))
        posts = [each for each in world.server.log if each.method == "POST" and each.path.endswith("/jobs")]
        assert len([each for each in posts if not each.is_dry_run]) == 20
        busiest = max(Counter(int(each.time) for each in world.server.log if each.method == "DELETE").values())
        assert busiest <= 101
        assert len(world.records()) <= 100 + 20
        assert world.records()[-1]["spec"]["sequence"] == 1501
        assert world.auditor.violations == []

    run(story, is_audited=False)  # the seeded records tell of no instants


def a_first_record(uid: str) -> Json:
    spec = {
        "scheduleRef": {"name": "s", "uid": uid}, "sequence": 1, "format": 1, "cause": "Scheduled", "generation": 1,
        "decision": "Baseline", "reason": "Created", "state": "Disabled", "consumedThroughTime": "2026-03-02T10:00:00Z",
        "fencingEpoch": 1, "writer": "pod-old", "lease": str(SETTINGS.lease), "revision": 1,
        "specHash": "", "open": [], "waiting": [], "totals": Totals().wire(),
    }  # fmt: skip
    labels = {"workflow-schedules.dev/schedule": "s", "workflow-schedules.dev/schedule-uid": uid}
    metadata = {"name": record_name("s", uid, 1), "namespace": NAMESPACE, "labels": labels}
    return {
        "apiVersion": "workflow-schedules.dev/v1alpha1",
        "kind": "ScheduleOccurrence",
        "metadata": metadata,
        "spec": spec,
    }


def test_the_cap_over_all_records_takes_the_oldest() -> None:
    """R30: the newest of each schedule stay."""

    async def story(world: World) -> None:
        world.apply(a_schedule("old", schedule="0 9 * * *"))
        for number in range(3):
            world.apply(a_schedule(f"s{number}", **MINUTELY, successfulJobsHistoryLimit=0))
        await world.sleep_until(at("12:00:30"))
        await world.restart()
        await world.sleep_until(at("12:05:30"))
        assert len(world.server.objects("scheduleoccurrences")) > 250
        await world.stop()
        world.start(max_occurrence_records=60)
        await world.sleep_until(at("12:14:30"))
        assert len(world.server.objects("scheduleoccurrences")) <= 60 + 3 * 9
        assert len(world.records("old")) == 1

    run(story)


def ask(world: World, name: str, schedule: str = "s", **spec: object) -> None:
    """Ask for a run as a person does."""
    world.server.create(
        {
            "apiVersion": API_VERSION,
            "kind": KIND_OCCURRENCE,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"scheduleRef": {"name": schedule}, "cause": "Manual", **spec},
        }
    )


def kept(world: World) -> set[str]:
    return {each["metadata"]["name"] for each in world.server.objects("scheduleoccurrences", NAMESPACE)}


def test_a_run_asked_for_does_not_let_the_newest_success_of_the_log_go() -> None:
    """R30: the slow look counts requests among the finished, and none as the newest of the log."""

    async def story(world: World) -> None:
        world.jobs.run_for(2)
        limits = {"occurrenceHistoryLimit": 1, "successfulJobsHistoryLimit": 0}
        world.apply(a_schedule(schedule="*/5 * * * *", **limits, endTime="2026-03-02T10:00:30Z"))
        await world.sleep_until(at("10:01"))
        success = next(each["metadata"]["name"] for each in world.records() if each.get("status"))
        ask(world, "one")
        await asyncio.sleep(20)
        for number in (1, 2):
            world.edit("s", input={"a": number})
            await asyncio.sleep(5)
        await world.sleep_until(at("10:10"))
        await world.restart()
        await world.sleep_until(at("10:17"))
        assert success in kept(world)
        assert "one" not in kept(world)

    run(story)


REFUSED = {f"bad{number}" for number in range(30)}


def test_refused_requests_are_pruned_by_the_limit_of_the_schedule_they_name() -> None:
    """R30: with its finished records, oldest first; they were never resolved, so only the name says whose they are."""

    async def story(world: World) -> None:
        world.apply(a_schedule(schedule="0 * * * *", occurrenceHistoryLimit=5))
        await world.sleep_until(at("10:00:30"))
        for name in sorted(REFUSED):
            ask(world, name, cause="Backfill", scheduledTime="2026-03-01T10:01:00Z")
        await world.sleep_until(at("10:05"))
        assert kept(world) > REFUSED
        await world.restart()
        await world.sleep_until(at("10:10"))
        assert len(kept(world)) == 5
        assert len(kept(world) & REFUSED) == 4, "beside them the newest of the log, which is its newest Completed"

    run(story)


def test_what_ended_shortly_before_a_takeover_goes_shortly_after_it() -> None:
    """R30, P1: the slow look finds what is younger than K, too, and not only hours later; the auditor minds the K."""

    async def story(world: World) -> None:
        world.apply(a_schedule(schedule="0 3 * * *", occurrenceHistoryLimit=5))
        for name in sorted(REFUSED):
            ask(world, name, cause="Backfill", scheduledTime="2026-03-01T10:01:00Z")
        await world.sleep_until(at("10:00:20"))
        await world.restart()
        await world.sleep_until(at("10:05"))
        assert len(kept(world)) <= 6

    run(story)


def test_refused_requests_that_name_no_schedule_go_after_the_time_that_deleted_ones_are_kept() -> None:
    """R30."""

    async def story(world: World) -> None:
        ask(world, "bad", schedule="nope")
        await world.sleep_until(at("10:20"))
        await world.restart()
        await world.sleep_until(at("10:30"))
        assert kept(world) == {"bad"}
        await world.kill()
        world.start(retain_deleted_seconds=1800)
        await world.sleep_until(at("10:36"))
        assert kept(world) == set()

    run(story, retain_deleted_seconds=1800)


def test_refused_requests_that_name_no_schedule_go_before_younger_records() -> None:
    """R30: the cap over all records takes the oldest, whoever they are of; nobody's records go in their place."""

    async def story(world: World) -> None:
        for name in sorted(REFUSED):
            ask(world, name, schedule="nope")
        await asyncio.sleep(30)
        world.apply(a_schedule(schedule="*/5 * * * *"))
        await world.sleep_until(at("11:01"))
        good = kept(world) - REFUSED
        assert len(good) == 1 + 12
        await world.stop()
        world.start(max_occurrence_records=20)
        await world.sleep_until(at("11:04:50"))
        assert kept(world) >= good
        assert len(kept(world)) == 20

    run(story)


# deleted schedules


def test_the_history_of_a_deleted_schedule_is_kept_and_goes_wholly_after_its_time() -> None:
    """R20: the time counts from when its deletion is noted, on its newest record, and survives a new leader."""

    async def story(world: World) -> None:
        world.apply(a_schedule(schedule="*/5 * * * *"))
        await world.sleep_until(at("10:16"))
        world.delete("s")
        await world.restart()
        await world.sleep_until(at("10:21"))
        marks = [each["status"].get("conditions") for each in world.records() if each.get("status")]
        assert [[each["type"] for each in mark or ()] for mark in marks] == [[], [], [], ["ScheduleDeleted"]]
        kept = len(world.records()), len(world.job_names())
        await world.restart()
        await world.sleep_until(at("10:50"))
        assert (len(world.records()), len(world.job_names())) == kept
        await world.kill()
        world.start(retain_deleted_seconds=1800)
        await world.sleep_until(at("10:58"))
        assert (world.records(), world.job_names()) == ([], [])

    run(story)


def test_a_deleted_schedule_that_lets_its_history_go_takes_it_along() -> None:
    """Contract section 2, deletionPolicy: by owner references, set when made."""

    async def story(world: World) -> None:
        world.apply(a_schedule(schedule="*/5 * * * *", deletionPolicy="Delete"))
        await world.sleep_until(at("10:06"))
        assert len(world.records()) == 3
        world.delete("s")
        world.server.run_gc()
        assert (world.records(), world.job_names()) == ([], [])

    run(story)


# what goes wrong


def test_a_lost_answer_removes_nothing_twice_and_the_rest_goes_on() -> None:
    """P2, P19: 404 is done; nothing of that schedule is pruned for R after it."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY, successfulJobsHistoryLimit=0))
        world.fault(Fault(is_answer_lost=True, is_silent=True), matches=removal("jobs"), times=1)
        await world.sleep_until(at("10:12"))
        assert len(world.job_names()) <= 4
        first, second = [each.time for each in world.server.log if each.method == "DELETE"][:2]
        assert second - first >= 15 + 30

    run(story)


def test_nothing_is_pruned_while_a_write_may_still_arrive() -> None:
    """P2: an outcome write that nobody answers holds back the pruning of its schedule, and of no other."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY, successfulJobsHistoryLimit=0, concurrencyPolicy="Allow", maxActiveRuns=99))
        world.apply(a_schedule("other", **MINUTELY, successfulJobsHistoryLimit=0))
        await world.sleep_until(at("10:01:30"))
        uid = world.schedule()["metadata"]["uid"]
        prefix = record_name("s", uid, 0)[:-9]

        def is_status_of_s(request: ApiRequest) -> bool:
            return request.method == "PATCH" and prefix in request.path

        world.fault(Fault(is_dropped=True, is_silent=True), matches=is_status_of_s)
        await world.sleep_until(at("10:08"))
        removed = [each.partition("/")[2] for each in world.retention.removed]
        assert not [each for each in removed if each.startswith(prefix)]
        assert removed
        world.heal()
        await world.sleep_until(at("10:16"))
        assert [each for each in world.retention.removed if prefix in each]

    run(story)


def test_a_crash_between_two_removals_leaves_the_rest_to_the_next_leader() -> None:
    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY, occurrenceHistoryLimit=5, successfulJobsHistoryLimit=1))
        for minute in (11, 19, 27):
            await world.sleep_until(at(f"10:{minute}:07"))
            await until_removed(world)
            await world.restart()
        await world.sleep_until(at("10:45:30"))
        assert len(world.records()) <= 5 + 5 + 5
        assert len(world.job_names()) <= 5

    run(story)


def test_an_old_leader_that_wakes_removes_nothing_any_more() -> None:
    """P15: what it sent before arrives late and does no harm; the auditor knows what had to stay."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY, successfulJobsHistoryLimit=0, occurrenceHistoryLimit=0))
        await world.sleep_until(at("10:06:30"))
        old = next(iter(world.processes.values()))
        world.start("new")
        cut = world.fault(
            Fault(is_dropped=True, is_silent=True),
            matches=lambda request: request.client == old.name and "/leases/" in request.path,
        )
        world.fault(
            Fault(delay_seconds=28), matches=lambda request: request.client == old.name and request.method == "DELETE"
        )
        await world.until_leading(world.processes["new"])
        taken_over = len(world.server.log)
        world.server.faults.remove(cut)
        await world.sleep_until(at("10:20:30"))
        late = [each for each in world.server.log[taken_over:] if each.client == old.name and each.method == "DELETE"]
        assert len(late) <= 1
        assert len(world.records()) <= 10

    run(story)


def test_a_clean_stop_in_the_midst_of_pruning_releases_the_lease() -> None:
    """R34."""

    async def story(world: World) -> None:
        world.apply(a_schedule(**MINUTELY, occurrenceHistoryLimit=5))
        await world.sleep_until(at("10:10:59"))
        world.fault(Fault(delay_seconds=0.4), matches=lambda request: request.method == "DELETE")
        await until_removed(world)
        await asyncio.sleep(0.2)
        await world.stop()
        assert (
            world.server.get("leases", SETTINGS.lease.namespace, SETTINGS.lease.name)["spec"].get("holderIdentity", "")
            == ""
        )
        world.start()
        await asyncio.sleep(60)

    run(story)


# Events


def events(world: World) -> list[str]:
    return [each["reason"] for each in world.server.objects("events")]


def test_problems_have_one_event_each_and_successes_none() -> None:
    """R32: not per sync, nor per leader."""

    async def story(world: World) -> None:
        world.apply(a_schedule(schedule="*/5 * * * *"))
        world.apply(a_schedule("bad", timeZone="Mars/Olympus"))
        await world.sleep_until(at("10:06"))
        assert events(world) == ["UnknownTimeZone"]
        world.jobs.run_for(None)
        await world.sleep_until(at("10:31"))
        assert events(world) == ["UnknownTimeZone"], "that a run blocks the next is on record"
        await world.restart()
        world.edit("bad", timeZone="Mars/Hellas")
        await world.sleep_until(at("10:41"))
        assert events(world) == ["UnknownTimeZone"] * 2
        body = world.server.objects("events")[0]
        assert body["regarding"]["uid"] == world.schedule("bad")["metadata"]["uid"]

    run(story)


def test_of_what_a_run_blocks_the_first_has_an_event_where_all_are_written() -> None:
    """R32: and again after a restart, which knows of none."""

    async def story(world: World) -> None:
        world.jobs.run_for(None)
        world.apply(a_schedule(schedule="*/5 * * * *"))
        await world.sleep_until(at("10:16"))
        assert Counter(events(world)) == {"SuccessfulCreate": 1, "JobAlreadyActive": 1}
        await world.kill()
        world.start(events=EventLevel.ALL)
        await world.sleep_until(at("10:26"))
        assert Counter(events(world)) == {"SuccessfulCreate": 1, "JobAlreadyActive": 2}

    run(story, events=EventLevel.ALL)


def test_a_herd_of_problems_has_as_many_events_as_the_bucket_holds() -> None:
    """Performance: dropped first, and never in the way of a run."""

    async def story(world: World) -> None:
        world.refuse(422, "Invalid", "no", plural="jobs")
        for number in range(100):
            world.apply(a_schedule(f"s{number}", schedule="5 10 * * *"))
        await world.sleep_until(at("10:06"))
        assert 25 <= events(world).count("FailedCreate") <= 30, "the bucket, and what it gained while it was emptied"

    run(story)


def test_an_event_that_can_not_be_written_hinders_nothing() -> None:
    async def story(world: World) -> None:
        world.fault(Fault(is_dropped=True, is_silent=True), matches=lambda request: "/events" in request.path)
        world.jobs.course = lambda _job: Course(is_failed=True)
        await world.sleep_until(at("10:01:30"))
        world.apply(a_schedule(**MINUTELY))
        await world.sleep_until(at("10:05:30"))
        outcomes = [each.get("status", {}).get("outcome") for each in world.records()]
        assert outcomes == [None, *["Failed"] * 4]

    run(story)
