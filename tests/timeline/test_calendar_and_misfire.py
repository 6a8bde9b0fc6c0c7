"""Instants that come, are missed or are late: what runs, and what is on record about the rest."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from support.api_kinds import Json
from support.harness import World
from support.objects import a_schedule
from support.story import (
    LEASE_TIMES,
    At,
    Crash,
    Jump,
    Outage,
    Step,
    admitted,
    coalesced,
    completed,
    play,
    skipped_misfire,
)
from support.story import at as instant
from support.virtual_loop import VirtualClock, run_virtual

LATEST = {"misfirePolicy": "Latest"}
MINUTELY = {"schedule": "* * * * *"}
HALF_HOURLY = {"schedule": "*/30 * * * *"}
EVERY_THREE = {"concurrencyPolicy": "Allow", "maxActiveRuns": 3}
NINE_IN_VANCOUVER = {"schedule": "0 9 * * *", "timeZone": "America/Vancouver"}


def a_next_time_by_the_old_rule(world: World) -> None:
    """Let the status say what an operator with the tzdata of 2025 wrote, when Vancouver still had winter time."""
    status = {"nextScheduleTime": "2026-11-02T17:00:00Z", "nextScheduleTimes": ["2026-11-02T17:00:00Z"]}
    lift = world.suspend_rules()
    world.server.patch("workflowschedules", "ns", "s", {"status": status}, subresource="status")
    lift()


STORIES: dict[str, tuple[list[Step], Json]] = {
    "R8 R9 R22: a cron schedule runs once at each instant after its creation": (
        [
            At("09:59", want=[], status={"state": "Active", "nextScheduleTime": "2026-03-02T10:00:00Z"}),
            At("10:00", want=[admitted("10:00")], ends=[completed("10:00")]),
            At("10:14:59", want=[], settle_seconds=0.5),
            At("10:15", want=[admitted("10:15")], ends=[completed("10:15")]),
            At("10:16", status={"lastScheduleTime": "2026-03-02T10:15:00Z", "activeCount": 0}),
        ],
        {},
    ),
    "R16 R17: under Latest what was missed is coalesced and the newest runs": (
        [
            At("10:00", want=[admitted("10:00")]),
            Outage("10:01", "10:47"),
            At("10:48", want=[coalesced("10:15", "10:30", 2), admitted("10:45")]),
            At("11:00", want=[admitted("11:00")]),
        ],
        LATEST,
    ),
    "R16: under Skip what was missed beyond its deadline never runs, and is on record": (
        [
            At("10:00", want=[admitted("10:00")]),
            Outage("10:01", "10:32"),
            At("10:33", want=[skipped_misfire("10:15", "10:30", 2)]),
            At("10:45", want=[admitted("10:45")]),
        ],
        {},
    ),
    "R16: an instant still within its deadline after a restart is not late": (
        [Outage("09:59:30", "10:00:10"), At("10:01", want=[admitted("10:00")])],
        {},
    ),
    "R16: what exceeds an explicit deadline is skipped under Latest too": (
        [
            Outage("09:55", "10:20"),
            At("10:21", want=[skipped_misfire("09:55", "10:10", 4), coalesced("10:15"), admitted("10:20")]),
            At("10:22", want=[]),
        ],
        {**LATEST, "schedule": "*/5 * * * *", "startingDeadlineSeconds": 450},
    ),
    "K-021: 24 missed instants under Skip do not stop the schedule": (
        [
            Outage("00:10", "12:20"),
            At("12:21", want=[skipped_misfire("00:30", "12:00", 24)]),
            At("12:30", want=[admitted("12:30")]),
        ],
        HALF_HOURLY,
    ),
    "K-021 K-082: 24 missed instants under Latest give one run; the counts match the rows": (
        [
            Outage("00:10", "12:20"),
            At("12:21", want=[coalesced("00:30", "11:30", 23), admitted("12:00")], ends=[completed("12:00")]),
            At(
                "12:30",
                want=[admitted("12:30")],
                settle_seconds=8,
                status={
                    "counts": {
                        "admitted": 2,
                        "completed": 2,
                        "failed": 0,
                        "skipped": 0,
                        "coalesced": 23,
                        "superseded": 0,
                    }
                },
            ),
        ],
        {**HALF_HOURLY, **LATEST},
    ),
    "K-027: three free slots after a long outage get one run, never three": (
        [Outage("00:10", "12:20"), At("12:21", want=[coalesced("01:00", "11:00", 11), admitted("12:00")])],
        {"schedule": "0 * * * *", **LATEST, **EVERY_THREE},
    ),
    "K-041: a clock that steps back over a due minute runs nothing twice": (
        [
            At("10:00", want=[admitted("10:00")]),
            Jump("10:00:30", timedelta(minutes=-2)),
            At("10:00", want=[]),
            At("10:01", want=[admitted("10:01")]),
        ],
        MINUTELY,
    ),
    "K-041: a clock that steps forward finds what it jumped over": (
        [
            At("10:00", want=[admitted("10:00")]),
            Jump("10:00:30", timedelta(minutes=10)),
            At("10:11", want=[skipped_misfire("10:01", "10:09", 9), admitted("10:10"), admitted("10:11")]),
        ],
        MINUTELY,
    ),
    "R7 R21: a one-shot runs once, is complete, and stays complete through a restart": (
        [
            At("09:59", want=[], status={"state": "Active", "nextScheduleTime": "2026-03-02T10:00:00Z"}),
            At("10:00", want=[admitted("10:00")], ends=[completed("10:00")]),
            At("10:00:10", status={"state": "Complete", "nextScheduleTime": None}),
            Crash("10:01"),
            At("10:02", want=[], status={"state": "Complete"}),
        ],
        {"runOnceTime": "2026-03-02T11:00:00+01:00"},
    ),
    "R7: a one-shot in the past is complete and never runs": (
        [At("09:55", want=[], status={"state": "Complete"}), Crash("10:00"), At("10:01", want=[])],
        {"runOnceTime": "2026-03-02T09:00:00Z"},
    ),
    "R16 R21: a one-shot missed under Skip is complete and never runs": (
        [
            Outage("09:59", "10:05"),
            At("10:06", want=[skipped_misfire("10:00")], status={"state": "Complete"}),
            At("10:30", want=[]),
        ],
        {"runOnceTime": "2026-03-02T10:00:00Z"},
    ),
    "R16: a one-shot missed under Latest runs late": (
        [Outage("09:59", "10:05"), At("10:06", want=[admitted("10:00")], ends=[completed("10:00")])],
        {"runOnceTime": "2026-03-02T10:00:00Z", **LATEST},
    ),
    "R21: an edit that makes a one-shot due again reopens it": (
        [
            At("10:00", want=[admitted("10:00")]),
            At(
                "10:05",
                do=lambda world: world.edit("s", runOnceTime="2026-03-02T10:10:00Z"),
                status={"state": "Active"},
            ),
            At("10:10", want=[admitted("10:10")], ends=None),
            At("10:11", status={"state": "Complete"}),
        ],
        {"runOnceTime": "2026-03-02T10:00:00Z"},
    ),
    "K-044: another spelling of an instant that ran does not run it again": (
        [
            At("12:00", want=[admitted("12:00")]),
            At("12:00:20", do=lambda world: world.edit("s", schedule="0 13 * * *", timeZone="Europe/Berlin"), want=[]),
            At("12:30", want=[], status={"nextScheduleTime": "2026-03-03T12:00:00Z"}),
        ],
        {"schedule": "0 12 * * *"},
    ),
    "K-023: an edit to an earlier time of day never fires the past, whatever the misfire policy": (
        [
            At("14:00", want=[admitted("14:00")]),
            At("15:30", do=lambda world: world.edit("s", schedule="0 15 * * *"), want=[], baselines=["Edited"]),
            At("15:31", want=[], status={"nextScheduleTime": "2026-03-03T15:00:00Z", "revision": 2}),
        ],
        {"schedule": "0 14 * * *", **LATEST},
    ),
    "K-025: the shortest deadline there may be is enough for an operator that runs": (
        [
            At("00:01", want=[admitted("00:01")], ends=[completed("00:01")]),
            Jump("00:01:30", timedelta(hours=23, minutes=59)),
            At("2026-03-03T00:01", want=[admitted("2026-03-03T00:01")]),
            Jump("2026-03-03T00:01:30", timedelta(hours=23, minutes=59)),
            At("2026-03-04T00:01", want=[admitted("2026-03-04T00:01")]),
        ],
        {"schedule": "1 0 * * *", "startingDeadlineSeconds": 5},
    ),
    "K-017: under Skip, an upgrade that knows a zone's new rule goes by it": (
        [
            Outage("2026-11-02T15:55", "2026-11-02T16:30", do=a_next_time_by_the_old_rule),
            At("2026-11-02T16:31", want=[skipped_misfire("2026-11-02T16:00")]),
            At("2026-11-02T17:01", want=[], status={"nextScheduleTime": "2026-11-03T16:00:00Z"}),
        ],
        NINE_IN_VANCOUVER,
    ),
    "K-017: under Latest, its instant runs late, and the old rule's does not": (
        [
            Outage("2026-11-02T15:55", "2026-11-02T16:30", do=a_next_time_by_the_old_rule),
            At("2026-11-02T16:31", want=[admitted("2026-11-02T16:00")]),
            At("2026-11-02T17:01", want=[], status={"nextScheduleTime": "2026-11-03T16:00:00Z"}),
        ],
        {**NINE_IN_VANCOUVER, **LATEST},
    ),
}
STARTS = {
    "K-017": "2026-11-02T15:50",
    "K-021": "00:05",
    "K-021 K-082": "00:05",
    "K-023": "13:58",
    "K-025": "00:00:30",
    "K-027": "00:05",
    "K-041": "09:59:30",
    "K-044": "11:58",
}


@pytest.mark.parametrize("name", STORIES)
def test_instants(name: str) -> None:
    steps, spec = STORIES[name]
    play(steps, a_schedule(**spec), start=STARTS.get(name.partition(":")[0], "09:54:30"))


def test_a_year_of_downtime_of_a_minutely_schedule_is_one_record() -> None:
    """R17."""

    def year_is_one_record(world: World) -> None:
        spans = [each["spec"].get("span") for each in world.records()]
        assert spans[-3:] == [
            {"firstTime": "2026-03-02T10:01:00Z", "lastTime": "2027-03-02T09:59:00Z", "count": 525599},
            None,
            None,
        ]

    play(
        [
            At("10:00", want=[admitted("10:00")]),
            Jump("10:00:30", timedelta(days=365)),
            At("2027-03-02T10:01", want=None, check=year_is_one_record),
        ],
        a_schedule(**MINUTELY, **LATEST),
        start="09:59:30",
        is_settled=False,
    )


def test_nominal_and_real_start_are_both_on_record() -> None:
    """K-081: the next instant follows from the nominal one."""

    def both_are_kept(world: World) -> None:
        record = world.records()[-1]
        assert record["spec"]["scheduledTime"] == "2026-03-02T10:00:00Z"
        lateness = record["status"]["startLatenessSeconds"]
        assert 41 <= lateness <= 60
        job = world.job_of(record)
        assert job is not None
        assert job["metadata"]["creationTimestamp"] == f"2026-03-02T10:00:{lateness:02d}Z"
        annotations = job["metadata"]["annotations"]
        assert annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2026-03-02T10:00:00+00:00"

    play(
        [
            Outage("09:59", "10:00:41"),
            At("10:01:10", want=[admitted("10:00")], check=both_are_kept),
            At("10:01:20", status={"nextScheduleTime": "2026-03-02T10:15:00Z"}),
        ],
        a_schedule(),
        start="09:58:30",
    )


def test_375_schedules_made_shortly_before_their_common_instant_all_run_at_it() -> None:
    """K-084: 48 2 2 7 * in Los Angeles is 2020-07-02T09:48:00Z."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        await world.until_leading(world.start())
        for number in range(375):
            world.apply(a_schedule(f"s{number:03d}", schedule="48 2 2 7 *", timeZone="America/Los_Angeles"))
            await asyncio.sleep(0 if number % 75 else 110)
        assert clock.now() < instant("2020-07-02T09:47:40")
        await world.sleep_until(instant("2020-07-02T09:48:30"))
        times = [
            job["metadata"]["labels"]["workflow-schedules.dev/scheduled-at"] for job in world.server.objects("jobs")
        ]
        assert times == ["20200702T094800Z"] * 375
        world.auditor.check()

    run_virtual(story, instant("2020-07-02T09:38"))
