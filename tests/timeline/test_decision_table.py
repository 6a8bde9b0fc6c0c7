"""Rows of the decision table that one simulated schedule can't play: other schedules, and runs that people ask for."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from support.api_kinds import Json
from support.harness import World
from support.job_runner import Course
from support.objects import a_schedule
from support.simulated import at, clock
from support.story import LEASE_TIMES
from support.virtual_loop import VirtualClock, run_virtual
from unit.decision_row import Row
from unit.decision_table import SITUATIONS
from workflow_schedules.api import names
from workflow_schedules.api.common import format_utc, parse_utc

PROMPT = timedelta(seconds=5)  # what follows from an event is on its way for a second or two
PLAYS = [
    pytest.param(play, id=f"{situation.title}: {row.policy}: {name}")
    for situation in SITUATIONS
    for row in situation.rows
    for name, play in row.plays()
    if row.needs_operator
]


@pytest.mark.parametrize("row", PLAYS)
def test_what_is_recorded(row: Row) -> None:
    """R12, R16, R27, R28."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.course = lambda job: Course(run_seconds=run_seconds(row, job))
        await world.until_leading(world.start(max_concurrent_runs=row.max_concurrent_runs))
        await world.sleep_until(at(row.start, row))
        world.apply(a_schedule(**{"schedule": "* * * * *", **row.fields}))
        if row.beside:
            world.apply(a_schedule("beside", runOnceTime=format_utc(at(row.beside[0], row))))
        for time in sorted({*row.edits, *row.asked}):
            await world.sleep_until(at(time, row))
            if time in row.edits:
                world.edit("s", **row.edits[time])
            else:
                ask(world, row.asked[time])
        await world.sleep_until(at(row.until, row) + PROMPT)
        assert log_of(world, row) == row.want
        assert not [each for each in world.records() if each.get("status", {}).get("outcome") == "Cancelled"]
        world.auditor.check(is_settled=False)

    run_virtual(story, at(row.start, row) - timedelta(minutes=2))


def run_seconds(row: Row, job: Json) -> float:
    if job["metadata"]["labels"][names.LABEL_SCHEDULE] == "beside" and row.beside:
        return (at(row.beside[1], row) - at(row.beside[0], row)).total_seconds()
    return float(row.runs[0]["seconds"])


def ask(world: World, spec: Json) -> None:
    body = {"apiVersion": names.API_VERSION, "kind": names.KIND_OCCURRENCE}
    world.server.create(
        {**body, "metadata": {"name": "now", "namespace": "ns"}, "spec": {"scheduleRef": {"name": "s"}, **spec}}
    )


def log_of(world: World, row: Row) -> tuple[str, ...]:
    """Return all that was recorded, in the order of the starts, as the table writes it."""
    lines: list[tuple[datetime, str]] = []
    for record in world.records():
        spec = record["spec"]
        if spec.get("decision") != "Baseline":
            began = started(world, record)
            instant = parse_utc(spec["scheduledTime"]) if spec["cause"] == "Scheduled" else began
            start = f" @{clock(near(began, row))}" if began - instant > PROMPT else ""
            word = spec.get("decision") if spec["cause"] == "Scheduled" else spec["cause"]
            lines.append((began, f"{word} {clock(near(instant, row))}{start}"))
    return tuple(line for _, line in sorted(lines))


def started(world: World, record: Json) -> datetime:
    job = world.job_of(record)
    return parse_utc((job or record)["metadata"]["creationTimestamp"])


def near(moment: datetime, row: Row) -> datetime:
    """Return the time of the row that something followed from."""
    known = [at(time, row) for time in (*row.asked, *(row.beside or ()))]
    return next((each for each in known if timedelta() <= moment - each <= PROMPT), moment)
