"""One run at a time, or so many: what blocks, what waits, what is given up."""

from __future__ import annotations

import pytest

from support.api_kinds import Json
from support.harness import World
from support.objects import a_schedule
from support.story import (
    At,
    Crash,
    Outage,
    Step,
    admitted,
    coalesced,
    completed,
    failed,
    play,
    skipped_misfire,
    skipped_overlap,
)

LATEST = {"misfirePolicy": "Latest"}
MINUTELY = {"schedule": "* * * * *"}
UP_TO_THREE = {"concurrencyPolicy": "Allow", "maxActiveRuns": 3}


def end_oldest(world: World) -> None:
    """End the oldest run that goes on."""
    for job in world.server.objects("jobs", "ns"):
        if not job["status"].get("completionTime"):
            world.jobs.finish("ns", job["metadata"]["name"])
            return


def suspend_job(world: World) -> None:
    world.jobs.controller.suspend_job("ns", world.job_names()[-1])


def resume_job(world: World) -> None:
    world.jobs.controller.resume_job("ns", world.job_names()[-1])


def outcome_is(outcome: str) -> object:
    def check(world: World) -> None:
        assert world.records()[1]["status"]["outcome"] == outcome

    return check


STORIES: dict[str, tuple[list[Step], Json]] = {
    "R12: under Forbid and Skip a run that goes on makes the next one skip": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:01", want=[skipped_overlap("10:01")]),
            At("10:01:30", do=end_oldest, want=[], ends=[completed("10:00")]),
            At("10:02", want=[admitted("10:02")]),
        ],
        MINUTELY,
    ),
    "R16: under Latest the newest waits for the slot, the older are coalesced": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:01", want=[]),
            At("10:02", want=[coalesced("10:01")]),
            At("10:03", want=[coalesced("10:02")], settle_seconds=6, status={"candidates": ["2026-03-02T10:03:00Z"]}),
            At("10:03:30", do=end_oldest, want=[admitted("10:03")], ends=[completed("10:00")]),
        ],
        {**MINUTELY, **LATEST},
    ),
    "R16: a candidate survives a crash": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:15", want=[], settle_seconds=8),
            Crash("10:16"),
            At("10:17", want=[], status={"candidates": ["2026-03-02T10:15:00Z"]}),
            At("10:18", do=end_oldest, want=[admitted("10:15")]),
        ],
        LATEST,
    ),
    "R16: a candidate beyond its deadline is a misfire": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:15", want=[]),
            At("10:20:02", want=[skipped_misfire("10:15")], settle_seconds=8, status={"candidates": []}),
        ],
        {**LATEST, "startingDeadlineSeconds": 300},
    ),
    "K-033 K-082: under Allow three run, and seven are skipped on record": (
        [
            *(At(f"10:0{minute}", want=[admitted(f"10:0{minute}")]) for minute in range(3)),
            *(At(f"10:0{minute}", want=[skipped_overlap(f"10:0{minute}")]) for minute in range(3, 10)),
            At("10:09:30", want=[], status={"activeCount": 3}, check=lambda world: _jobs_are(world, 3)),
            At("10:09:40", check=lambda world: _counts_are(world, admitted=3, skipped=7)),
            At("10:09:50", do=end_oldest, want=[], ends=[completed("10:00")]),
            At("10:10", want=[admitted("10:10")]),
        ],
        {**MINUTELY, **UP_TO_THREE},
    ),
    "K-036 R13: a lowered limit cancels nothing and admits nothing until there is room": (
        [
            *(At(f"10:0{minute}", want=[admitted(f"10:0{minute}")]) for minute in range(3)),
            At("10:02:30", do=lambda world: world.edit("s", maxActiveRuns=1), want=[], check=lambda w: _jobs_are(w, 3)),
            At("10:03", want=[skipped_overlap("10:03")]),
            At("10:03:10", do=end_oldest),
            At("10:04", want=[skipped_overlap("10:04")]),
            At("10:04:10", do=end_oldest),
            At("10:05", want=[skipped_overlap("10:05")]),
            At("10:05:10", do=end_oldest),
            At("10:06", want=[admitted("10:06")]),
        ],
        {**MINUTELY, **UP_TO_THREE},
    ),
    "R12 R25: an interrupted run keeps its slot, across a restart too, and can go on": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:00:20", do=suspend_job, check=outcome_is("Interrupted")),
            At("10:01", want=[skipped_overlap("10:01")]),
            Crash("10:01:10"),
            At("10:02", want=[skipped_overlap("10:02")]),
            At("10:02:20", do=resume_job),
            At("10:02:40", check=outcome_is("Running")),
            At("10:02:50", do=end_oldest, ends=[completed("10:00")]),
            At("10:03", want=[admitted("10:03")]),
        ],
        MINUTELY,
    ),
    "R12: a run that ended while nobody looked frees its slot at the restart": (
        [
            At("10:00", want=[admitted("10:00")]),
            Outage("10:00:30", "10:00:50"),
            At("10:00:50", do=end_oldest, want=None),
            At("10:01:15", want=[admitted("10:01")], ends=[completed("10:00")]),
        ],
        MINUTELY,
    ),
    "R25: a Job deleted while it runs fails the run once, frees the slot, and is not run again": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:00:20", do=lambda world: world.delete(world.job_names()[0], plural="jobs")),
            At("10:02", want=[admitted("10:01"), skipped_overlap("10:02")], ends=[failed("10:00", "JobMissing")]),
        ],
        MINUTELY,
    ),
}


def _jobs_are(world: World, count: int) -> None:
    assert len(world.job_names()) == count


def _counts_are(world: World, **want: int) -> None:
    counts = world.status()["counts"]
    assert {name: counts[name] for name in want} == want


@pytest.mark.parametrize("name", STORIES)
def test_overlap(name: str) -> None:
    steps, spec = STORIES[name]
    play(steps, a_schedule(**spec), run_seconds=None, start="09:59")
