"""Switching schedules and their parents on and off, editing, deleting and making anew: what may still start, and when next."""

from __future__ import annotations

import pytest

from support.api_kinds import Json
from support.harness import World
from support.objects import a_definition, a_schedule, a_template
from support.story import At, Crash, Outage, Step, admitted, coalesced, completed, play, superseded

LATEST = {"misfirePolicy": "Latest"}
MINUTELY = {"schedule": "* * * * *"}


def enable(world: World) -> None:
    world.edit("s", enabled=True)


def disable(world: World) -> None:
    world.edit("s", enabled=False)


def disable_parent(world: World) -> None:
    world.edit_definition(enabled=False)


def enable_parent(world: World) -> None:
    world.edit_definition(enabled=True)


def create_parent(world: World) -> None:
    world.apply(a_definition())


def delete_parent(world: World) -> None:
    world.delete("w", plural="workflowdefinitions")


def flicker(world: World) -> None:
    """K-065: all within a moment."""
    world.apply(a_schedule(schedule="* * * * *"))
    world.edit("s", schedule="*/5 * * * *")
    world.edit("s", enabled=False)
    world.edit("s", enabled=True)


CHILD = a_schedule(workflow="w")
IMMEDIATE = a_schedule(**LATEST, schedule="*/5 * * * *")

STORIES: dict[str, tuple[list[Step], list[Json]]] = {
    "R18: a disabled schedule does nothing; enabled it takes the next future instant": (
        [
            At("10:00", want=[], baselines=[], status={"state": "Disabled", "nextScheduleTime": None}),
            At("10:07", do=enable, want=[], baselines=["Enabled"], status={"state": "Active"}),
            At("10:15", want=[admitted("10:15")]),
        ],
        [a_schedule(enabled=False, **LATEST)],
    ),
    "R18: disabling clears the next instant; nothing of that time runs later": (
        [
            At("10:00", want=[admitted("10:00")], baselines=["Created"]),
            At("10:05", do=disable, baselines=["Disabled"], status={"state": "Disabled", "nextScheduleTime": None}),
            At("10:06", do=disable, want=[], baselines=[]),
            At("10:40", do=enable, baselines=["Enabled"], status={"nextScheduleTime": "2026-03-02T10:45:00Z"}),
            At("10:45", want=[admitted("10:45")]),
        ],
        [a_schedule(**LATEST)],
    ),
    "K-022: what fell into a disabled time never runs, also when the operator was down at its end": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:01", do=disable),
            Outage("10:02", "10:40"),
            At("10:41", want=[]),
            Outage("10:42", "10:50:30", do=enable),
            At("10:52", want=[]),
            At("11:00", want=[admitted("11:00")]),
        ],
        [a_schedule(**LATEST)],
    ),
    "P4: a disabling and an enabling unseen in an outage move the watermark to the first sight": (
        [
            At("10:00", want=[admitted("10:00")], baselines=["Created"]),
            Outage("10:01", "10:20", do=lambda world: (disable(world), enable(world))),
            At("10:21", want=[], baselines=["Edited"]),
            At("10:25", want=[admitted("10:25")]),
        ],
        [IMMEDIATE],
    ),
    "R10 R19: disabling supersedes the candidate on record": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:06", want=[], status={"candidates": ["2026-03-02T10:05:00Z"]}),
            At("10:07", do=disable, want=[superseded("10:05")], status={"candidates": []}),
            At("10:08", do=enable, want=[]),
            At("10:09", do=lambda world: world.jobs.finish("ns", world.job_names()[0]), want=[]),
            At("10:10", want=[admitted("10:10")]),
        ],
        [IMMEDIATE],
    ),
    "R10: an edit supersedes the candidate and leaves the running run alone": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:05", want=[]),
            At("10:07", do=lambda world: world.edit("s", input={"a": 1}), want=[superseded("10:05")], ends=[]),
            At("10:08", do=lambda world: world.jobs.finish("ns", world.job_names()[0]), ends=[completed("10:00")]),
            At("10:10", want=[admitted("10:10")], status={"revision": 2}),
        ],
        [IMMEDIATE],
    ),
    "R10 K-108: an apply that changes nothing, and one of a default, are no edits": (
        [
            At("10:00", want=[admitted("10:00")], baselines=["Created"]),
            At("10:05", do=lambda world: world.apply(a_schedule()), baselines=[]),
            At("10:06", do=lambda world: world.edit("s", timeZone="UTC"), baselines=[], status={"revision": 1}),
            At("10:15", want=[admitted("10:15")], status={"revision": 1}),
        ],
        [a_schedule()],
    ),
    "K-065: of a burst of changes only the last state counts": (
        [
            At("10:02:10", do=flicker, want=[]),
            At("10:03", want=[]),
            At("10:05", want=[admitted("10:05")], status={"state": "Active", "observedGeneration": 4}),
        ],
        [],
    ),
    "R4: a parent that comes later releases the schedule, which takes the next future instant": (
        [
            At("10:01", want=[], status={"state": "Held", "nextScheduleTime": None}),
            At("10:07", do=create_parent, want=[], status={"state": "Active"}),
            At("10:15", want=[admitted("10:15")]),
        ],
        [CHILD],
    ),
    "R1 R3: a disabled parent holds its schedules, and nothing of that time runs later": (
        [
            At("10:00", want=[admitted("10:00")], ends=[completed("10:00")], baselines=["Created"]),
            At("10:05", do=disable_parent, baselines=["Held"], status={"state": "Held", "nextScheduleTime": None}),
            At("10:36", want=[], baselines=[]),
            At("10:37", do=enable_parent, want=[], baselines=["Released"]),
            At("10:45", want=[admitted("10:45")]),
        ],
        [a_definition(onDisable="HoldSchedules"), a_schedule(workflow="w", **LATEST)],
    ),
    "R1: a parent disabled while the operator is down holds from its return on": (
        [
            At("10:00", want=[admitted("10:00")]),
            Outage("10:01", "10:03", do=disable_parent),
            At("10:16", want=[], status={"state": "Held"}),
        ],
        [a_definition(onDisable="HoldSchedules"), a_schedule(workflow="w", **LATEST)],
    ),
    "R1: a deleted parent holds; made anew it releases, and its own template runs": (
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:01", do=delete_parent, status={"state": "Held"}),
            At("10:15", want=[]),
            At("10:20", do=lambda world: world.apply(a_definition(jobTemplate=a_template("busybox:2"))), want=[]),
            At("10:30", want=[admitted("10:30")], check=lambda world: _image_is(world, "busybox:2")),
        ],
        [a_definition(), a_schedule(workflow="w", **LATEST)],
    ),
    "R1: a parent deleted and made anew in a moment is another parent": (
        [
            At("10:00", want=[admitted("10:00")], baselines=["Created"]),
            At("10:01", do=lambda world: (delete_parent(world), create_parent(world)), baselines=["Held", "Released"]),
            At("10:15", want=[admitted("10:15")]),
        ],
        [a_definition(), a_schedule(workflow="w")],
    ),
    "R22: a new template of the parent is used from the next admission on, without an edit of the schedule": (
        [
            At("10:00", want=[admitted("10:00")], check=lambda world: _image_is(world, "busybox:1.37")),
            At("10:05", do=lambda world: world.edit_definition(jobTemplate=a_template("busybox:2")), want=[]),
            At("10:15", want=[admitted("10:15")], check=lambda world: _image_is(world, "busybox:2")),
        ],
        [a_definition(), CHILD],
    ),
    "R9: nothing before the creation is run, also when the operator was down at the creation": (
        [
            Outage("10:02", "10:16", do=lambda world: world.apply(IMMEDIATE)),
            At("10:17", want=[coalesced("10:05", "10:10", 2), admitted("10:15")]),
        ],
        [],
    ),
}
FOREVER = {name for name in STORIES if "candidate" in name}


def _image_is(world: World, image: str) -> None:
    job = world.job_of(world.records()[-1])
    assert job is not None
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == image


@pytest.mark.parametrize("name", STORIES)
def test_switches(name: str) -> None:
    steps, objects = STORIES[name]
    play(steps, *objects, start="09:58:30", run_seconds=None if name in FOREVER else 2.0)


def test_a_schedule_deleted_and_made_anew_is_another_one() -> None:
    """K-042 R20: the old run goes on, is recorded under its own schedule, and is neither adopted nor counted."""

    def make_anew(world: World) -> None:
        world.delete("s")
        world.apply(a_schedule(schedule="*/5 * * * *"))

    def both_have_their_records(world: World) -> None:
        uids = [
            record["spec"]["scheduleRef"]["uid"]
            for record in world.records()
            if record["spec"]["decision"] != "Baseline"
        ]
        assert len(uids) == len(set(uids)) == 2

    play(
        [
            At("10:00", want=[admitted("10:00")], ends=[]),
            At("10:00:10", do=make_anew, want=[]),
            At("10:02", do=lambda world: world.jobs.finish("ns", world.job_names()[0]), ends=[completed("10:00")]),
            At("10:05", want=[admitted("10:05")], check=both_have_their_records),
        ],
        a_schedule(schedule="*/5 * * * *"),
        run_seconds=None,
        start="09:58",
    )


def test_deleting_a_schedule_stops_admission_and_its_run_is_recorded() -> None:
    """R20."""
    play(
        [
            At("10:00", want=[admitted("10:00")], ends=[]),
            At("10:00:30", do=lambda world: world.delete("s")),
            At("10:02", want=[], ends=[]),
            Crash("10:02:10"),
            At("10:03", do=lambda world: world.jobs.finish("ns", world.job_names()[0]), ends=[completed("10:00")]),
        ],
        a_schedule(**MINUTELY),
        run_seconds=None,
        start="09:59",
    )
