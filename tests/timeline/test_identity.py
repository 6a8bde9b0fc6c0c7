"""Who is who over time: long names that run, two installations in one cluster, upgrades that look like edits and are none."""

from __future__ import annotations

import asyncio

import pytest

from support.api_kinds import KIND_OF, Json
from support.harness import SETTINGS, World
from support.objects import a_schedule
from support.story import LEASE_TIMES, At, Outage, Player, Step, admitted, at, completed, play
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api.names import record_name
from workflow_schedules.core.model import ObjectRef

FIVE = {"schedule": "*/5 * * * *"}
MINUTELY = {"schedule": "* * * * *"}
THEIRS = ObjectRef(namespace="elsewhere", name="theirs")

NAMES = [
    ("K-045 52 characters", "a" * 52),
    ("K-045 53 characters", "b" * 53),
    ("K-045 63 characters", "c" * 63),
    ("K-045 253 characters", ".".join(["d" * 62] * 4) + "e"),
    ("K-048 cut at a dot", "f" * 32 + ".gh"),
    ("K-048 cut at a dash", "i" * 32 + "-jk"),
    ("K-048 cut at a dot after a dash", "l" * 31 + "-" + "m.no"),
    ("K-048 a digit first, and dots", "0.nightly.report"),
]


@pytest.mark.parametrize("name", [row[1] for row in NAMES], ids=[row[0] for row in NAMES])
def test_a_name_of_any_length_runs(name: str) -> None:
    """K-045 K-048: a name that Kubernetes takes has a Job, within the limit of Job names."""

    def named_as_promised(world: World) -> None:
        (job,) = world.job_names()
        assert len(job) <= 52
        assert job.replace("-", "").isalnum()
        assert job[0].isalnum()

    play(
        [At("10:00", want=[admitted("10:00")], ends=[completed("10:00")], of=name, check=named_as_promised)],
        a_schedule(name, **FIVE),
        start="09:58",
    )


def test_names_that_differ_only_at_their_end() -> None:
    """K-046: two Jobs, each of its own schedule, in the same minute."""
    names = ["n" * 60 + "a", "n" * 60 + "b"]

    def two_jobs(world: World) -> None:
        assert len(set(world.job_names())) == 2
        for name in names:
            assert [each["spec"]["decision"] for each in world.records(name)] == ["Baseline", "Admitted"]

    play(
        [At("10:00", want=[admitted("10:00")], of=names[0]), At("10:00:05", of=names[1], check=two_jobs)],
        *(a_schedule(name, **FIVE) for name in names),
        start="09:58",
    )


@pytest.mark.parametrize("has_fence", [True, False])
def test_two_installations_with_leases_of_their_own(has_fence: bool) -> None:
    """K-038: never two Jobs for an instant; the fence refuses the one, or the log does where there is no fence."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(2)
        if not has_fence:
            world.suspend_rules()
        await world.until_leading(world.start("a"))
        world.apply(a_schedule(**MINUTELY))
        await world.sleep_until(at("09:59:30"))
        world.start("b", lease=THEIRS)
        await world.sleep_until(at("10:05:30"))
        jobs = world.server.objects("jobs", "ns")
        instants = [each["metadata"]["labels"]["workflow-schedules.dev/scheduled-at"] for each in jobs]
        assert len(instants) == len(set(instants)) >= 1
        writers = {each["spec"]["lease"] for each in world.records()}
        assert len(writers) == 1
        foreign = world.processes["b"].operator
        assert foreign.is_leading
        assert ("another installation's Lease" in str(foreign.unready_reason)) is has_fence
        if not has_fence:
            await world.kill("a")
            await world.kill("b")
            world.start("c", lease=THEIRS)
            await asyncio.sleep(90)
            assert world.status()["state"] == "Blocked"
            message = world.condition("Stalled")["message"]
            assert f"under the Lease {SETTINGS.lease}" in message
            assert "another installation schedules here" in message

    run_virtual(story, at("09:58"))


def a_schema_that_defaults(world: World) -> None:
    """A new CRD writes a default into what is stored, which raises the generation, as the API server does."""
    world.edit("s", startTimeoutSeconds=None, skippedTimePolicy="NextValid", repeatedTimePolicy="Both", timeZone="UTC")


def forget_new_fields(world: World) -> None:
    """Make records and status look as an older version wrote them."""
    lift = world.suspend_rules()
    for record in world.records():
        totals: Json = {"countedFailures": None, "lastScheduleTime": record["spec"]["totals"].get("lastScheduleTime")}
        world.server.patch("scheduleoccurrences", "ns", record["metadata"]["name"], {"spec": {"totals": totals}})
    world.server.patch("workflowschedules", "ns", "s", {"status": {"conditions": []}}, subresource="status")
    lift()


def test_a_new_default_of_the_schema_is_no_edit() -> None:
    """K-108 R10: no revision, no superseded candidate, no move of the watermark."""
    play(
        [
            At("10:00", want=[admitted("10:00")], baselines=["Created"]),
            At("10:06", want=[], status={"candidates": ["2026-03-02T10:05:00Z"], "revision": 1}),
            At("10:07", do=a_schema_that_defaults, want=[], baselines=[], status={"revision": 1, "observedGeneration": 2,
               "candidates": ["2026-03-02T10:05:00Z"], "consumedThroughTime": "2026-03-02T10:00:00Z"}),
            At("10:08", do=lambda world: world.jobs.finish("ns", world.job_names()[0]), want=[admitted("10:05")]),
        ],
        a_schedule(**FIVE, misfirePolicy="Latest"),
        run_seconds=None,
        start="09:58",
    )  # fmt: skip


def test_an_upgrade_with_records_of_the_version_before() -> None:
    """K-108: what it wrote is read, nothing is decided anew, nothing is paused or used up by it."""
    play(
        [
            At("10:00", want=[admitted("10:00")], baselines=["Created"]),
            Outage("10:01", "10:01:30", do=forget_new_fields),
            At("10:04", want=[], baselines=[], status={"revision": 1, "state": "Active"}),
            At("10:05", want=[admitted("10:05")], settle_seconds=8, status={"consecutiveFailures": 0}),
        ],
        a_schedule(**FIVE, pauseAfterFailures=1, runLimit=9),
        start="09:58",
    )


def test_a_stored_expression_that_an_upgrade_no_longer_reads() -> None:
    """K-109: it is said on its object, which stays; nothing runs on a guess, and others go on."""

    def older_dialect(world: World) -> None:
        """Store it with the generation that it had, as a version of the operator did that read it."""
        body = world.schedule()
        kind, key = KIND_OF["workflowschedules"], ("ns", "s")
        world.server.store.commit_update(kind, key, {**body, "spec": {**body["spec"], "schedule": "*/5 * * * ?"}})

    def is_blocked(world: World) -> None:
        accepted = world.condition("Accepted")
        assert (accepted["status"], accepted["reason"]) == ("False", "InvalidSchedule")
        assert "*/5 * * * ?" in accepted["message"]

    steps: list[Step] = [
        At("10:00", want=[admitted("10:00")]),
        Outage("10:01", "10:01:30", do=older_dialect),
        At("10:02", want=[], status={"state": "Blocked", "nextScheduleTime": None}, check=is_blocked),
        At("10:05", want=[]),
        At("10:05:10", want=[admitted("10:00"), admitted("10:05")], of="good"),
    ]

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        for name in ("s", "good"):
            world.apply(a_schedule(name, **FIVE))
        await world.until_leading(world.start())
        await Player(world).play(steps)
        assert world.auditor.violations == []  # what the calendar wants can't be told any more

    run_virtual(story, at("09:58"))


def test_a_first_name_that_another_s_record_has_blocks_that_schedule_and_says_so() -> None:
    """P8 P18 R31: two hashes may be equal, however unlikely; tried again and again in silence, nobody would know."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        await world.until_leading(world.start())
        world.apply(a_schedule("other", **FIVE))
        await asyncio.sleep(3)
        (theirs,) = world.records("other")
        taken_after = await _create_with_a_first_name_taken(world, theirs)
        await asyncio.sleep(5)
        assert world.status()["state"] == "Blocked"
        assert taken_after in world.condition("Ready")["message"]
        assert world.status("other")["state"] == "Active"

    run_virtual(story, at("09:58"))


async def _create_with_a_first_name_taken(world: World, theirs: Json) -> str:
    """Create the schedule `s` while no operator sees it, and then a record of another's where its first one belongs."""
    await world.kill()
    uid = world.apply(a_schedule(**FIVE))["metadata"]["uid"]
    name = record_name("s", uid, 1)
    lift = world.suspend_rules()
    metadata = {"name": name, "namespace": "ns", "labels": theirs["metadata"]["labels"]}
    world.server.create({**theirs, "metadata": metadata})
    lift()
    await world.until_leading(world.start())
    return name
