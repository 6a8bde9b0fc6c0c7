"""The fields beside the expression, as they are lived through: dates left out, validity, unions, jitter."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from support.api_kinds import Json
from support.harness import World
from support.objects import a_schedule
from support.story import DAY, At, Crash, Outage, Step, admitted, completed, play, superseded
from workflow_schedules.api.common import parse_utc
from workflow_schedules.core.due_times import parse_cron
from workflow_schedules.core.jitter import Jitter

TODAY, TOMORROW = "2026-03-02", "2026-03-03"
UNION_TIMES = [f"{TODAY}T{time}:00Z" for time in ("10:00", "10:10", "10:20", "10:30", "11:00")]


def skipped_excluded(first: str, last: str = "", count: int = 0) -> str:
    span = f"..{last}" + (f" x{count}" if count > 2 else "") if last else ""
    return f"SkippedExcluded {first}{span}"


STORIES: dict[str, tuple[list[Step], Json]] = {
    "excludeDates: instants on the date are skipped on record, one by one as they come": (
        [
            At("10:00", want=[skipped_excluded("10:00")], ends=[]),
            At("10:15", want=[skipped_excluded("10:15")]),
            At("10:20", do=lambda world: world.edit("s", excludeDates=[TOMORROW]), baselines=["Edited"]),
            At("10:30", want=[admitted("10:30")], ends=[completed("10:30")]),
        ],
        {"excludeDates": [TODAY]},
    ),
    "excludeDates R17: after an outage they are one record": (
        [
            Outage("09:55", "10:47"),
            At("10:48", want=[skipped_excluded("10:00", "10:45", 4)]),
            At("11:00", want=[skipped_excluded("11:00")], ends=[]),
        ],
        {"excludeDates": [TODAY], "misfirePolicy": "Latest"},
    ),
    "excludeDates: the dates are those of the zone": (
        [At("10:00", want=[skipped_excluded("10:00")]), At("11:00", want=[admitted("11:00")])],
        {"schedule": "0 * * * *", "timeZone": "Etc/GMT+11", "excludeDates": ["2026-03-01"]},
    ),
    "schedules: equal instants fire once": (
        [
            At("09:59", status={"nextScheduleTimes": UNION_TIMES}),
            At("10:00", want=[admitted("10:00")]),
            At("10:35", want=[admitted("10:10"), admitted("10:20"), admitted("10:30")]),
        ],
        {"schedule": None, "schedules": ["0 * * * *", "0-20/10 10 * * *", "0,30 10 * * *"]},
    ),
    "endTime R21: the last instant runs, then the schedule is complete, and an edit reopens it": (
        [
            At("10:00", want=[admitted("10:00")], status={"state": "Active"}),
            At("10:15", want=[admitted("10:15")]),
            At("10:16", status={"state": "Complete", "nextScheduleTime": None}),
            Crash("10:20"),
            At("10:40", want=[], status={"state": "Complete"}),
            At("10:41", do=lambda world: world.edit("s", endTime=None), status={"state": "Active"}),
            At("10:45", want=[admitted("10:45")]),
        ],
        {"endTime": f"{TODAY}T10:15:00Z"},
    ),
    "startTime: nothing before it": (
        [
            At("10:10", want=[], status={"nextScheduleTime": f"{TODAY}T10:15:00Z"}),
            At("10:15", want=[admitted("10:15")]),
        ],
        {"startTime": f"{TODAY}T10:00:01Z"},
    ),
    "a one-shot on an excluded date is skipped on record and complete": (
        [
            At("10:00", want=[skipped_excluded("10:00")], settle_seconds=10, status={"state": "Complete"}),
            At("10:30", want=[], ends=[]),
        ],
        {"runOnceTime": f"{TODAY}T10:00:00Z", "excludeDates": [TODAY]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_fields(name: str) -> None:
    steps, spec = STORIES[name]
    play(steps, a_schedule(**spec), start="09:54:30")


HOURLY = parse_cron("0 * * * *", "UTC")
JITTER_SECONDS = 1700


def start_of(world: World, hour: int) -> datetime:
    uid = world.schedule()["metadata"]["uid"]
    return Jitter(uid=uid, max_seconds=JITTER_SECONDS).start_of(DAY + timedelta(hours=hour), HOURLY)


def jittered(**spec: object) -> Json:
    return a_schedule(schedule="0 * * * *", maxJitterSeconds=JITTER_SECONDS, **spec)


def test_jitter_delays_the_start_but_not_the_identity() -> None:
    """R8, `maxJitterSeconds`: through a crash, too."""

    def it_started_late(world: World) -> None:
        record = world.records()[-1]
        assert record["spec"]["scheduledTime"] == f"{TODAY}T10:00:00Z"
        made_at = parse_utc(record["metadata"]["creationTimestamp"])
        assert timedelta() <= made_at - start_of(world, 10) <= timedelta(seconds=3)
        job = world.job_of(record)
        assert job is not None
        assert (
            job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
            == f"{TODAY}T10:00:00+00:00"
        )

    def it_waits(world: World) -> None:
        assert start_of(world, 10) > DAY + timedelta(hours=10, seconds=60), "choose another seed"

    play(
        [
            At("10:00", want=[], check=it_waits),
            Crash("10:00:20"),
            At("10:29", want=[admitted("10:00")], check=it_started_late),
            At("10:59", want=[], status={"nextScheduleTime": f"{TODAY}T11:00:00Z"}),
            At("11:29", want=[admitted("11:00")]),
        ],
        jittered(),
        start="09:54:30",
    )


@pytest.mark.parametrize(
    ("edit", "baseline"),
    [({"input": {"a": 1}}, "Edited"), ({"schedule": "30 * * * *"}, "Edited"), ({"enabled": False}, "Disabled")],
    ids=str,
)
def test_an_edit_while_it_waits_for_its_jitter_supersedes_it(edit: Json, baseline: str) -> None:
    """R9, R10, R18: on record, and it never runs."""
    play(
        [
            At("10:00:10", want=[], ends=[]),
            At(
                "10:00:20",
                do=lambda world: world.edit("s", **edit),
                want=[superseded("10:00")],
                baselines=[baseline],
            ),
            At("10:29", want=[], ends=[]),
        ],
        jittered(),
        start="09:54:30",
    )


def test_a_schedule_made_while_an_instant_waits_never_runs_it() -> None:
    """R9: the watermark starts at its creation, not half an hour before."""
    play([At("10:29:30", want=[], ends=[]), At("11:29", want=[admitted("11:00")])], jittered(), start="10:00:05")
