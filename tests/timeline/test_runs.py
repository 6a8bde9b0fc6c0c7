"""From the admission to the outcome: Jobs that fail, vanish, are refused, forged, or late."""

from __future__ import annotations

from functools import partial

import pytest

from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import World
from support.job_runner import Course
from support.objects import a_schedule
from support.story import At, Crash, Outage, Step, admitted, completed, failed, play
from workflow_schedules.api.names import LABEL_SCHEDULE_UID, record_name

FIVE = {"schedule": "*/5 * * * *"}
QUOTA = "exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1"


class Refusal:
    """Refuses Jobs from one step of a story to another."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        self._how = (code, reason, message)

    def begin(self, world: World) -> None:
        self._lift = world.refuse(*self._how, plural="jobs")

    def end(self, _world: World) -> None:
        self._lift()


def last_job(world: World) -> str:
    return world.job_names()[-1]


def delete_last_job(world: World) -> None:
    world.delete(last_job(world), plural="jobs")


def finish_and_delete(world: World) -> None:
    world.jobs.finish("ns", last_job(world))
    delete_last_job(world)


def outcome_of_first_run(world: World, **want: object) -> None:
    status = world.records()[1]["status"]
    assert {name: status.get(name) for name in want} == want


def forge(world: World, *, number: int, owner_uid: str) -> None:
    """K-095: a Job with our label and, maybe, the name and owner of the next run."""
    uid = world.schedule()["metadata"]["uid"]
    owner = {
        "apiVersion": "workflow-schedules.dev/v1alpha1",
        "kind": "ScheduleOccurrence",
        "name": "x",
        "controller": True,
    }
    world.server.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": record_name("s", uid, number),
                "namespace": "ns",
                "labels": {LABEL_SCHEDULE_UID: uid},
                "ownerReferences": [{**owner, "uid": owner_uid or uid}],
            },
            "spec": {},
        }
    )


quota = Refusal(403, "Forbidden", f'jobs.batch "x" is forbidden: {QUOTA}')
long_quota = Refusal(403, "Forbidden", f'jobs.batch "x" is forbidden: {QUOTA}')
pod_security = Refusal(422, "Invalid", 'Job.batch "x" is invalid: spec.template.spec.containers: Required value')


def _is_unhealthy(world: World) -> None:
    condition = world.condition("RunsHealthy")
    assert condition["status"] == "False"
    assert "exceeded quota" in condition["message"]


STORIES: dict[str, tuple[list[Step], Json, Course]] = {
    "R25: a failed Job is a failed run; a later success ends the streak": (
        [
            At("10:00", ends=[failed("10:00", "BackoffLimitExceeded")]),
            At("10:00:10", status={"consecutiveFailures": 1, "lastSuccessfulTime": None}),
            At("10:01", do=lambda world: world.jobs.run_for(2.0)),
            At("10:05", ends=[completed("10:05")], settle_seconds=8, status={"consecutiveFailures": 0}),
        ],
        FIVE,
        Course(is_failed=True),
    ),
    "R25: a deadline used up is Exhausted": (
        [At("10:00", ends=["Exhausted/DeadlineExceeded 10:00"])],
        FIVE,
        Course(is_failed=True, reason="DeadlineExceeded"),
    ),
    "R29: a run that goes on is recorded as running, once, and its end too": (
        [
            At("10:00:12", check=partial(outcome_of_first_run, outcome="Running", reason="JobRunning")),
            At("10:01:32", ends=[completed("10:00")], check=partial(outcome_of_first_run, duration="1m30s")),
        ],
        FIVE,
        Course(run_seconds=90),
    ),
    "R25: a Job that never starts stays admitted": (
        [At("10:02", want=[admitted("10:00")], ends=[], status={"activeCount": 1})],
        FIVE,
        Course(start_seconds=None),
    ),
    "R26: a finished Job deleted by hand is recorded from its last state": (
        [At("10:00"), At("10:00:30", do=finish_and_delete, ends=[completed("10:00")])],
        FIVE,
        Course(run_seconds=None),
    ),
    "R26: a Job that finished and vanished unseen: outcome unknown": (
        [
            At("10:00:30", want=[admitted("10:00")]),
            Outage("10:00:40", "10:01:10", do=finish_and_delete),
            At("10:03", ends=[failed("10:00", "JobMissing")]),
        ],
        FIVE,
        Course(run_seconds=None),
    ),
    "R25: a Job deleted while it runs fails the run; it is not made again, by a successor neither": (
        [
            At("10:00:30", do=delete_last_job, want=[admitted("10:00")], ends=[failed("10:00", "JobMissing")]),
            At("10:02", ends=[], check=lambda world: _has_jobs(world, 0)),
            Crash("10:02:10"),
            At("10:05", want=[admitted("10:05")], ends=[], check=lambda world: _has_jobs(world, 1)),
        ],
        FIVE,
        Course(run_seconds=None),
    ),
    "R35: while a quota refuses, the Job is tried again with back-off, and runs once there is room": (
        [
            At("09:59", do=quota.begin),
            At("10:00", want=[admitted("10:00")], ends=[]),
            At("10:00:20", do=quota.end, check=lambda world: _tried(world, at_most=7)),
            At("10:00:40", ends=[completed("10:00")]),
        ],
        FIVE,
        Course(),
    ),
    "R35: a quota that refuses beyond the deadline: NotStarted, the slot is free": (
        [
            At("09:59", do=long_quota.begin),
            At("10:00:20", want=[admitted("10:00")], ends=[]),
            At("10:00:30", status={"activeCount": 1}, check=_is_unhealthy),
            At("10:02", ends=[failed("10:00", "NotStarted")], check=lambda world: _tried(world, at_most=12)),
            At("10:04", do=long_quota.end),
            At("10:05", want=[admitted("10:05")], ends=[completed("10:05")]),
        ],
        FIVE,
        Course(),
    ),
    "R24: a Job that is refused for good ends JobRejected after one attempt": (
        [
            At("09:59", do=pod_security.begin),
            At("10:02", want=[admitted("10:00")], ends=[failed("10:00", "JobRejected")]),
            At("10:02:10", check=lambda world: _tried(world, at_most=1)),
            At("10:03", do=pod_security.end),
            At("10:05", want=[admitted("10:05")], ends=[completed("10:05")]),
        ],
        FIVE,
        Course(),
    ),
    "K-095: a forged Job with our labels neither holds the slot nor suppresses the run": (
        [
            At("09:59", do=partial(forge, number=77, owner_uid="")),
            At("10:00", want=[admitted("10:00")], ends=[completed("10:00")]),
        ],
        FIVE,
        Course(),
    ),
    "P10 K-095: a forged Job of our name is never adopted": (
        [
            At("09:59", do=partial(forge, number=2, owner_uid="")),
            At("10:00", want=[admitted("10:00")], ends=[failed("10:00", "NameTaken")]),
            At("10:05", want=[admitted("10:05")], ends=[completed("10:05")]),
        ],
        FIVE,
        Course(),
    ),
    "R18: a schedule disabled between record and Job starts nothing": (
        [
            At("09:59", do=(disabled := Refusal(403, "Forbidden", f'jobs.batch "x" is forbidden: {QUOTA}')).begin),
            At("10:00", want=[admitted("10:00")]),
            At("10:00:05", do=lambda world: (world.edit("s", enabled=False), disabled.end(world))),
            At("10:03", ends=[failed("10:00", "NotStarted")], check=lambda world: _has_jobs(world, 0)),
        ],
        FIVE,
        Course(),
    ),
}


def _has_jobs(world: World, count: int) -> None:
    assert len(world.job_names()) == count


def _tried(world: World, *, at_most: int) -> None:
    posts = [entry for entry in world.server.log if entry.method == "POST" and entry.path.endswith("/jobs")]
    creates = [entry for entry in posts if not entry.is_dry_run]
    assert 1 <= len(creates) <= at_most


@pytest.mark.parametrize("name", STORIES)
def test_runs(name: str) -> None:
    steps, spec, course = STORIES[name]

    def follow(world: World) -> None:
        world.jobs.course = lambda _job: course

    play([At("09:58:10", do=follow), *steps], a_schedule(**spec), start="09:58")


def test_a_terminating_namespace_is_left_alone_and_others_are_not_affected() -> None:
    """K-102: one attempt (its template is to be pinned first), and the other namespace runs on time."""

    def terminate(world: World) -> None:
        world.server.requests.terminating.add("ns")

    def one_attempt(world: World) -> None:
        creates = [each for each in world.server.log if each.method == "POST" and "/namespaces/ns/" in each.path]
        refused = [each.path.rpartition("/")[2] for each in creates if each.status == 403]
        assert refused == ["controllerrevisions"]

    play(
        [
            At("09:59:30", do=terminate),
            At("10:00", want=[]),
            At("10:00:10", want=[admitted("10:00")], of="elsewhere/other"),
            At("10:05", want=[admitted("10:05")], of="elsewhere/other", check=one_attempt),
        ],
        a_schedule(**FIVE),
        a_schedule("other", namespace="elsewhere", **FIVE),
        start="09:58",
        is_settled=False,
    )


def test_a_quota_that_a_young_job_fills_fails_the_next_run_and_no_more() -> None:
    """K-035 P1: its name is kept for K, so the run that comes too early ends NotStarted, and the one after it runs."""

    def is_full(world: World, request: ApiRequest) -> bool:
        is_create = request.method == "POST" and request.path.endswith("/jobs") and not request.query.get("dryRun")
        return is_create and len(world.job_names()) > 0

    def limit_to_one_job(world: World) -> None:
        full = Fault(status=403, reason="Forbidden", message=f'jobs.batch "x" is forbidden: {QUOTA}')
        world.fault(full, matches=partial(is_full, world))

    play(
        [
            At("10:07", do=limit_to_one_job),
            At("10:08:10", want=[admitted("10:08")], ends=[completed("10:08")]),
            At("10:10:20", want=[admitted("10:10")], ends=[], check=lambda world: _has_jobs(world, 1)),
            At("10:10:57", ends=[], check=lambda world: _has_jobs(world, 1)),
            At("10:11:10", ends=[failed("10:10", "NotStarted")], check=lambda world: _has_jobs(world, 0)),
            At("10:12:10", want=[admitted("10:12")], ends=[completed("10:12")]),
        ],
        a_schedule(schedule="8-58/2 10 * * *", successfulJobsHistoryLimit=0),
        start="10:03",
    )
