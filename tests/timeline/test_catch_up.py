"""`misfirePolicy: All`: what was missed or blocked runs oldest first, as slots free up, and never more than its limit."""

from __future__ import annotations

import pytest

from support.api_kinds import Json
from support.harness import World
from support.objects import a_definition, a_schedule
from support.story import (
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
    superseded,
)
from support.story import at as instant

ALL = {"misfirePolicy": "All"}
MINUTELY = {"schedule": "* * * * *"}
FIVE = {"schedule": "*/5 * * * *"}
NEVER_ENDS = None


def end_oldest(world: World) -> None:
    """End the oldest run that goes on."""
    for job in world.server.objects("jobs", "ns"):
        if not job["status"].get("completionTime"):
            world.jobs.finish("ns", job["metadata"]["name"])
            return


def candidates(*times: str) -> Json:
    return {"candidates": [f"2026-03-02T{time}:00Z" for time in times]}


def nothing_is_told_twice(world: World) -> None:
    """I3: candidates of an edit, by name or by count, are each in one record."""
    told = [each["spec"] for each in world.records() if each["spec"]["decision"] == "Superseded"]
    spans = [(spec.get("span") or {}).get("count", 1) for spec in told]
    assert world.status()["counts"]["superseded"] == sum(spans)


STORIES: dict[str, tuple[list[Step], list[Json], float | None]] = {
    "R16: after an outage all that was missed runs, oldest first, one at a time under Forbid": (
        [
            At("10:00", want=[admitted("10:00")]),
            Outage("10:01", "10:17"),
            At(
                "10:19",
                want=[admitted("10:05"), admitted("10:10"), admitted("10:15")],
                ends=[completed("10:00"), completed("10:05"), completed("10:10"), completed("10:15")],
            ),
            At("10:20", want=[admitted("10:20")]),
        ],
        [a_schedule(**ALL, **FIVE)],
        20.0,
    ),
    "R16: beyond maxCatchUpRuns the oldest are coalesced, the rest run oldest first": (
        [
            At("10:00", want=[admitted("10:00")]),
            Outage("10:01", "10:32"),
            At("10:34", want=[coalesced("10:05", "10:20", 4), admitted("10:25"), admitted("10:30")]),
        ],
        [a_schedule(**ALL, **FIVE, maxCatchUpRuns=2)],
        2.0,
    ),
    "R16: blocked instants wait in sight, the oldest falls out as soon as there are too many": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:01", want=[], settle_seconds=6, status=candidates("10:01")),
            At("10:02", want=[], settle_seconds=6, status=candidates("10:01", "10:02")),
            At("10:03", want=[], settle_seconds=6, status=candidates("10:01", "10:02", "10:03")),
            At("10:04", want=[coalesced("10:01")], settle_seconds=6, status=candidates("10:02", "10:03", "10:04")),
            At("10:04:20", do=end_oldest, want=[admitted("10:02")], status=candidates("10:03", "10:04")),
            At("10:04:40", do=end_oldest, want=[admitted("10:03")], status=candidates("10:04")),
        ],
        [a_schedule(**ALL, **MINUTELY, maxCatchUpRuns=3)],
        NEVER_ENDS,
    ),
    "R13 R16: under Allow as many as there are slots, never a burst beyond them": (
        [
            At("10:00", want=[admitted("10:00")]),
            Outage("10:01", "10:27"),
            At("10:28", want=[admitted("10:05"), admitted("10:10")], status=candidates("10:15", "10:20", "10:25")),
            At("10:29", do=end_oldest, want=[admitted("10:15")], status=candidates("10:20", "10:25")),
        ],
        [a_schedule(**ALL, **FIVE, concurrencyPolicy="Allow", maxActiveRuns=3)],
        NEVER_ENDS,
    ),
    "K-027: thirty days of hours with three slots are ten runs, never hundreds": (
        [
            At("00:00", want=[admitted("00:00")]),
            Outage("00:10", "2026-04-01T00:10"),
            At(
                "2026-04-01T00:11",
                want=[
                    coalesced("01:00", "2026-03-31T14:00", 710),
                    *(admitted(f"2026-03-31T{hour}:00") for hour in range(15, 24)),
                    admitted("2026-04-01T00:00"),
                ],
            ),
        ],
        [a_schedule(**ALL, schedule="0 * * * *", concurrencyPolicy="Allow", maxActiveRuns=3)],
        2.0,
    ),
    "R16: what exceeds a deadline of its own is a misfire, also while it waits": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:05", want=[], settle_seconds=6, status=candidates("10:05")),
            At("10:12:02", want=[skipped_misfire("10:05")], settle_seconds=8, status=candidates("10:10")),
            At("10:13", do=end_oldest, want=[admitted("10:10")]),
        ],
        [a_schedule(**ALL, **FIVE, startingDeadlineSeconds=420)],
        NEVER_ENDS,
    ),
    "R16: candidates survive a crash": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:11", want=[], settle_seconds=6, status=candidates("10:05", "10:10")),
            Crash("10:12"),
            At("10:13", want=[], status=candidates("10:05", "10:10")),
            At("10:14", do=end_oldest, want=[admitted("10:05")]),
            Crash("10:14:10"),
            At("10:14:30", do=end_oldest, want=[admitted("10:10")], status=candidates()),
        ],
        [a_schedule(**ALL, **FIVE)],
        NEVER_ENDS,
    ),
    "R10 I3: an edit supersedes all that waits, on one record with its count": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:16", want=[], settle_seconds=6, status=candidates("10:05", "10:10", "10:15")),
            At(
                "10:17",
                do=lambda world: world.edit("s", input={"a": 1}),
                want=[superseded("10:05", "10:15", 3)],
                status=candidates(),
                check=nothing_is_told_twice,
            ),
            At("10:18", do=end_oldest, want=[]),
            At("10:20", want=[admitted("10:20")]),
        ],
        [a_schedule(**ALL, **FIVE)],
        NEVER_ENDS,
    ),
    "R10: lowering maxCatchUpRuns while some wait is an edit like any other": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:16", want=[], settle_seconds=6, status=candidates("10:05", "10:10", "10:15")),
            At("10:17", do=lambda world: world.edit("s", maxCatchUpRuns=1), want=[superseded("10:05", "10:15", 3)]),
            At("10:20", want=[]),
            At("10:25", want=[coalesced("10:20")]),
            At("10:26", do=end_oldest, want=[admitted("10:25")]),
        ],
        [a_schedule(**ALL, **FIVE)],
        NEVER_ENDS,
    ),
    "R1 R3: a held parent supersedes what waits": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:11", want=[], settle_seconds=6, status=candidates("10:05", "10:10")),
            At(
                "10:12",
                do=lambda world: world.edit_definition(enabled=False),
                want=[superseded("10:05", "10:10", 2)],
                check=nothing_is_told_twice,
            ),
            At("10:13", do=lambda world: world.edit_definition(enabled=True)),
            At("10:14", do=end_oldest, want=[]),
            At("10:15", want=[admitted("10:15")]),
        ],
        [a_definition(onDisable="HoldSchedules"), a_schedule(**ALL, **FIVE, workflow="w")],
        NEVER_ENDS,
    ),
    "R16: dates to exclude between candidates are skipped in their turn, and cost no candidate its place": (
        [
            At("12:00", want=[admitted("12:00")]),
            Outage("12:10", "2026-03-05T00:29"),
            At(
                "2026-03-05T00:31",
                do=end_oldest,
                want=[admitted("18:00")],
                status={"candidates": ["2026-03-03T00:00:00Z", "2026-03-03T06:00:00Z", "2026-03-03T12:00:00Z",
                                       "2026-03-03T18:00:00Z", "2026-03-05T00:00:00Z"]},
            ),
            *(At(f"2026-03-05T00:3{number}", do=end_oldest, want=[admitted(f"2026-03-03T{6 * number - 12:02d}:00")])
              for number in range(2, 5)),
            At("2026-03-05T00:35", do=end_oldest, want=[
                admitted("2026-03-03T18:00"), "SkippedExcluded 2026-03-04T00:00..2026-03-04T18:00 x4"]),
            At("2026-03-05T00:36", do=end_oldest, want=[admitted("2026-03-05T00:00")]),
        ],
        [a_schedule(**ALL, schedule="0 */6 * * *", excludeDates=["2026-03-04"])],
        NEVER_ENDS,
    ),
}  # fmt: skip
STARTS = {"R16: blocked": "09:59:30", "K-027": "2026-03-01T23:58", "R16: dates": "11:58"}


@pytest.mark.parametrize("name", STORIES)
def test_catch_up(name: str) -> None:
    steps, objects, run_seconds = STORIES[name]
    start = next((time for prefix, time in STARTS.items() if name.startswith(prefix)), "09:58:30")
    play(steps, *objects, start=start, run_seconds=run_seconds)


def test_a_year_of_downtime_is_one_coalesced_record_and_ten_runs() -> None:
    """R17, K-087."""

    def one_record_and_ten_runs(world: World) -> None:
        specs = [each["spec"] for each in world.records()][2:]
        assert specs[0]["span"]["count"] == 525_600 - 10
        assert [spec["decision"] for spec in specs] == ["Coalesced", *["Admitted"] * 11]

    play(
        [
            At("10:00", want=[admitted("10:00")]),
            Jump("10:00:30", instant("2027-03-02T10:00:30") - instant("10:00:30")),
            At("2027-03-02T10:01", want=None, check=one_record_and_ten_runs),
        ],
        a_schedule(**ALL, **MINUTELY),
        start="09:59:30",
        run_seconds=0.5,
        is_settled=False,
    )
