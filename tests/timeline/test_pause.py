"""Pauses over time: by the owner, to an end of their own, by failures in a row; with outages, crashes and a second leader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import World
from support.job_runner import Course
from support.objects import a_definition, a_schedule
from support.story import (
    LEASE_TIMES,
    At,
    Crash,
    Jump,
    Outage,
    Step,
    admitted,
    at,
    coalesced,
    completed,
    failed,
    play,
    superseded,
)
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api.names import API_VERSION, KIND_OCCURRENCE

LATEST = {"misfirePolicy": "Latest"}
FIVE = {"schedule": "*/5 * * * *"}
MINUTELY = {"schedule": "* * * * *"}
PAUSED = {"state": "Paused", "nextScheduleTime": None, "candidates": []}


def pause(world: World, until: str | None = None, reason: str | None = None) -> None:
    until = f"2026-03-02T{until}Z" if until else None
    given = {"untilTime": until, "reason": reason}
    world.edit("s", pause={key: value for key, value in given.items() if value is not None})


def until(time: str) -> Callable[[World], None]:
    return partial(pause, until=time)


def move_until(time: str | None) -> Callable[[World], object]:
    return lambda world: world.edit("s", pause={"untilTime": f"2026-03-02T{time}Z" if time else None})


def resume(world: World) -> None:
    world.edit("s", pause=None)


def edit(world: World) -> None:
    world.edit("s", input={"a": 1})


def flicker(world: World) -> None:
    world.apply(a_schedule(**MINUTELY))
    world.edit("s", **FIVE)
    pause(world)
    resume(world)


def finish_first(world: World) -> None:
    world.jobs.finish("ns", world.job_names()[0])


def shows(status: str, reason: str, message: str = "") -> Callable[[World], None]:
    def check(world: World) -> None:
        condition = world.condition("Paused")
        assert (condition["status"], condition["reason"], condition["message"]) == (status, reason, message)

    return check


STORIES: dict[str, tuple[list[Step], list[Json]]] = {
    "R19: a pause stops admissions, says why, and its end takes the next future instant": (
        [
            At("10:00", want=[admitted("10:00")], baselines=["Created"]),
            At("10:02", do=partial(pause, reason="incident 7"), baselines=["Paused"], status={**PAUSED, "revision": 1},
               check=shows("True", "PausedByOwner", "incident 7 (until spec.pause is removed)")),
            At("10:21", want=[], baselines=[]),
            At("10:22:30", do=resume, want=[], baselines=["Resumed"], check=shows("False", "NotPaused"),
               status={"state": "Active", "revision": 1, "nextScheduleTime": "2026-03-02T10:25:00Z"}),
            At("10:25", want=[admitted("10:25")]),
        ],
        [a_schedule(**FIVE, **LATEST)],
    ),
    "R19: pausing what is paused changes and writes nothing": (
        [
            At("10:01", do=pause, baselines=["Created", "Paused"]),
            At("10:02", do=pause, baselines=[]),
            Crash("10:03"),
            At("10:06", want=[], baselines=[], status=PAUSED),
        ],
        [a_schedule(**FIVE)],
    ),
    "R19: at untilTime it resumes by itself": (
        [
            At("10:02", do=until("10:12:00"), status=PAUSED,
               check=shows("True", "PausedByOwner", "paused until 2026-03-02T10:12:00Z")),
            At("10:11:50", want=[], baselines=[]),
            At("10:12", want=[], baselines=["Resumed"], status={"state": "Active",
               "consumedThroughTime": "2026-03-02T10:12:00Z", "nextScheduleTime": "2026-03-02T10:15:00Z"},
               check=shows("False", "NotPaused")),
            At("10:15", want=[admitted("10:15")]),
        ],
        [a_schedule(**FIVE, **LATEST)],
    ),
    "R19: an instant at untilTime itself belongs to the pause": (
        [
            At("10:02", do=until("10:10:00"), want=[admitted("10:00")]),
            At("10:10:10", want=[], status={"state": "Active"}),
            At("10:15", want=[admitted("10:15")]),
        ],
        [a_schedule(**FIVE, **LATEST)],
    ),
    "R19: while the operator is down, from untilTime on it is downtime, not pause": (
        [
            At("10:01", do=until("10:12:00"), baselines=["Created", "Paused"]),
            Outage("10:04", "10:31"),
            At("10:32", want=[coalesced("10:15", "10:25", 3), admitted("10:30")], baselines=["Resumed"]),
        ],
        [a_schedule(**FIVE, **LATEST)],
    ),
    "R19: a pause set, and over, while the operator is down": (
        [
            Outage("10:01", "10:31", do=until("10:12:00")),
            At("10:32", want=[admitted("10:00"), coalesced("10:15", "10:25", 3), admitted("10:30")],
               baselines=["Created", "Resumed"]),
        ],
        [a_schedule(**FIVE, **LATEST)],
    ),
    "P6: an untilTime that was moved is the end, also when the operator is down then": (
        [
            At("10:01", do=until("10:12:00"), baselines=["Created", "Paused"]),
            At("10:03", do=move_until("10:22:00"), baselines=["Paused"]),
            Outage("10:04", "10:31"),
            At("10:32", want=[coalesced("10:25"), admitted("10:30")], baselines=["Resumed"]),
        ],
        [a_schedule(**FIVE, **LATEST)],
    ),
    "P6: a pause made endless does not end at its former end": (
        [
            At("10:01", do=until("10:12:00"), baselines=["Created", "Paused"]),
            At("10:03", do=move_until(None), baselines=["Paused"]),
            Outage("10:04", "10:31"),
            At("10:32", want=[], baselines=[], status=PAUSED),
        ],
        [a_schedule(**FIVE, **LATEST)],
    ),
    "P6: an untilTime shortened unseen brings nothing of the pause back": (
        [
            At("10:01", do=until("10:40:00"), baselines=["Created", "Paused"]),
            Outage("10:04", "10:31", do=move_until("10:08:00")),
            At("10:32", want=[], baselines=["Resumed"]),
            At("10:35", want=[admitted("10:35")]),
        ],
        [a_schedule(**FIVE, **LATEST)],
    ),
    "K-041: a clock that steps back behind untilTime does not pause again": (
        [
            At("10:01", do=until("10:03:30"), baselines=["Created", "Paused"]),
            At("10:04", want=[], baselines=["Resumed"]),
            Jump("10:04:10", timedelta(minutes=-2)),
            At("10:04:20", want=[], baselines=[]),
            At("10:05", want=[admitted("10:05")], baselines=[]),
        ],
        [a_schedule(**FIVE)],
    ),
    "R19: a pause supersedes the candidate on record and lets the run end": (
        [
            At("10:00", want=[admitted("10:00")], ends=[]),
            At("10:06", want=[], status={"candidates": ["2026-03-02T10:05:00Z"]}),
            At("10:07", do=pause, want=[superseded("10:05")], status={"state": "Paused", "candidates": [], "activeCount": 1}),
            At("10:08", do=finish_first, want=[], ends=[completed("10:00")]),
            At("10:12", do=resume, want=[]),
            At("10:15", want=[admitted("10:15")]),
        ],
        [a_schedule(**FIVE, **LATEST)],
    ),
    "R19: also what waits only for its jitter": (
        [
            At("10:00:01", want=[superseded("10:00")], do=pause, status=PAUSED),
            At("10:04", want=[]),
        ],
        [a_schedule("s", schedule="*/30 * * * *", maxJitterSeconds=800, startingDeadlineSeconds=60)],
    ),
    "P4: paused and resumed unseen: nothing of that time runs": (
        [
            At("10:00", want=[admitted("10:00")], baselines=["Created"]),
            Outage("10:01", "10:21", do=lambda world: (pause(world), resume(world))),
            At("10:22", want=[], baselines=["Edited"]),
            At("10:25", want=[admitted("10:25")]),
        ],
        [a_schedule(**FIVE, **LATEST)],
    ),
    "R11: edited while paused: on record, and the resume runs the new revision": (
        [
            At("10:02", do=pause, want=[admitted("10:00")]),
            At("10:07", do=edit, want=[], baselines=["Edited"], status={"state": "Paused", "revision": 2}),
            Crash("10:07:30"),
            At("10:12", do=resume, want=[], baselines=["Resumed"], status={"revision": 2}),
            At("10:15", want=[admitted("10:15")], check=lambda world: _revision_is(world, 2)),
        ],
        [a_schedule(**FIVE, **LATEST)],
    ),
    "R18: paused while disabled, enabled while paused": (
        [
            At("10:02", do=pause, want=[], baselines=[], status={"state": "Disabled"}, check=shows(
               "True", "PausedByOwner", "paused until spec.pause is removed")),
            At("10:07", do=lambda world: world.edit("s", enabled=True), want=[], baselines=["Paused"], status=PAUSED),
            At("10:12", do=resume, want=[], baselines=["Resumed"]),
            At("10:15", want=[admitted("10:15")]),
        ],
        [a_schedule(enabled=False, **FIVE, **LATEST)],
    ),
    "R4: paused while held, released while paused": (
        [
            At("10:02", do=pause, want=[], baselines=[], status={"state": "Held"}),
            At("10:07", do=lambda world: world.apply(a_definition()), want=[], baselines=["Paused"], status=PAUSED),
            At("10:12", do=resume, want=[], baselines=["Resumed"]),
            At("10:15", want=[admitted("10:15")]),
        ],
        [a_schedule(workflow="w", **FIVE, **LATEST)],
    ),
    "R18: disabled with a pause that ends: the condition says so": (
        [
            At("10:02", do=until("10:04:00"), status={"state": "Disabled"}),
            At("10:04", settle_seconds=5, want=[], baselines=[], check=shows("False", "NotPaused")),
        ],
        [a_schedule(enabled=False, **FIVE)],
    ),
    "R9: born with a pause that ends while the operator is down": (
        [
            Outage("10:01", "10:31", do=lambda world: (world.apply(a_schedule(**FIVE, **LATEST, pause={
                "untilTime": "2026-03-02T10:12:00Z"})))),
            At("10:32", want=[coalesced("10:15", "10:25", 3), admitted("10:30")], baselines=["Created"]),
        ],
        [],
    ),
    "K-065: of a burst of changes with a pause in it only the last state counts": (
        [
            At("10:00:10", do=flicker, want=[]),
            At("10:01", want=[]),
            At("10:05", want=[admitted("10:05")], status={"state": "Active", "observedGeneration": 4}),
        ],
        [],
    ),
}  # fmt: skip
FOREVER = {name for name in STORIES if "candidate" in name}


def _revision_is(world: World, revision: int) -> None:
    assert world.records()[-1]["spec"]["revision"] == revision


@pytest.mark.parametrize("name", STORIES)
def test_pause(name: str) -> None:
    steps, objects = STORIES[name]
    play(steps, *objects, start="09:58:30", run_seconds=None if name in FOREVER else 2.0)


def test_a_weekend_of_minutes() -> None:
    """K-022: nothing before the resume runs, its own minute included, and the next one runs once."""
    play(
        [
            At("2026-03-06T18:00:20", do=pause, want=[admitted("2026-03-06T17:59"), admitted("2026-03-06T18:00")]),
            Outage("2026-03-06T18:10", "2026-03-09T07:58"),
            At("2026-03-09T08:00:20", do=resume, want=[], settle_seconds=30),
            At("2026-03-09T08:01", want=[admitted("2026-03-09T08:01")]),
        ],
        a_schedule(**MINUTELY, **LATEST),
        start="2026-03-06T17:58:30",
    )


# by failures in a row

TWO = {"pauseAfterFailures": 2, **MINUTELY}
MESSAGE = (
    "2 runs failed in a row (pauseAfterFailures 2): an edit of what runs or when, or a good manual run, resumes it"
)
FIRST_TWO = [
    At("10:00", want=[admitted("10:00")], ends=[failed("10:00", "BackoffLimitExceeded")], settle_seconds=5),
    At("10:01", want=[admitted("10:01")], ends=[failed("10:01", "BackoffLimitExceeded")], baselines=["Paused"],
       settle_seconds=5, status={"state": "Paused", "consecutiveFailures": 2}, check=shows("True", "TooManyFailures", MESSAGE)),
]  # fmt: skip


def succeed(world: World) -> None:
    world.jobs.run_for(2.0)


FAILURES: dict[str, list[Step]] = {
    "R18: after so many failures nothing more is admitted, through restarts, and nothing is written": [
        *FIRST_TWO,
        Crash("10:02:30"),
        At("10:05", want=[], baselines=[], check=shows("True", "TooManyFailures", MESSAGE)),
        Outage("10:06", "10:20"),
        At("10:25", want=[], baselines=[], status={"state": "Paused"}),
    ],
    "R10: an edit resumes from then on, and takes as many failures again": [
        *FIRST_TWO,
        At("10:04:30", do=edit, want=[], baselines=["Resumed"], status={"state": "Active", "revision": 2}),
        At("10:05", want=[admitted("10:05")], settle_seconds=5, baselines=[], status={"consecutiveFailures": 3}),
        At("10:06", want=[admitted("10:06")], settle_seconds=5, baselines=["Paused"], status={"state": "Paused"}),
        At("10:09", want=[]),
    ],
    "R10: an edit that mends it": [
        *FIRST_TWO,
        At("10:04:30", do=lambda world: (succeed(world), edit(world)), want=[]),
        At("10:05", want=[admitted("10:05")], settle_seconds=5, status={"state": "Active", "consecutiveFailures": 0}),
        At("10:06", want=[admitted("10:06")]),
    ],
    "R10: what changes only what is kept, disabling and enabling resume nothing": [
        *FIRST_TWO,
        At("10:04:30", do=lambda world: world.edit("s", failedJobsHistoryLimit=5), want=[], status={"state": "Paused"}),
        At("10:06:30", do=lambda world: world.edit("s", enabled=False), want=[], status={"state": "Disabled"}),
        At("10:07:30", do=lambda world: world.edit("s", enabled=True), want=[], status={"state": "Paused"}),
        At("10:09", want=[]),
    ],
    "R19: failing and paused by its owner: the one does not end the other": [
        At("10:00", want=[admitted("10:00")], settle_seconds=5),
        At("10:01:01", do=until("10:03:30"), want=[admitted("10:01")], settle_seconds=5,
           check=shows("True", "PausedByOwner", "paused until 2026-03-02T10:03:30Z")),
        At("10:04", want=[], status={"state": "Paused"}, check=shows("True", "TooManyFailures", MESSAGE)),
        At("10:05:30", do=edit, want=[], status={"state": "Active"}),
        At("10:06", want=[admitted("10:06")]),
    ],
    "P6: the second failure while the operator is down": [
        At("10:00", want=[admitted("10:00")], settle_seconds=5),
        Outage("10:01:01", "10:04:30"),
        At("10:05:30", want=[admitted("10:01")], baselines=["Paused"], status={"state": "Paused"}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_pause_after_failures(name: str) -> None:
    def fail(world: World) -> None:
        world.jobs.course = lambda _job: Course(is_failed=True)

    play([At("09:59:05", do=fail), *FAILURES[name]], a_schedule(**TWO), start="09:59")


# every write disturbed


class Trap:
    """Disturbs the n-th write, whatever is written, once, and kills its sender if asked to."""

    def __init__(self, world: World, number: int, fault: Fault | None, *, is_crash: bool) -> None:
        self.writes = 0
        self.tasks: list[asyncio.Task[object]] = []
        self._world, self._number, self._fault, self._is_crash = world, number, fault, is_crash

    def __call__(self, request: ApiRequest) -> Fault | None:
        is_write = request.method in {"POST", "PATCH"} and not request.query.get("dryRun")
        if not is_write or "/leases" in request.path:
            return None
        self.writes += 1
        if self._fault is None or self.writes != self._number:
            return None
        if self._is_crash:
            self.tasks.append(asyncio.ensure_future(self._world.restart()))
        return self._fault


DISTURBANCES = {
    "lost before": (Fault(is_dropped=True), False),
    "lost after": (Fault(is_answer_lost=True), False),
    "500": (Fault(status=500, reason="InternalError"), False),
    "crash before": (Fault(is_dropped=True), True),
    "crash after": (Fault(is_answer_lost=True), True),
}
PAUSES = ["Created", "Paused", "Resumed", "Paused", "Resumed"]
WRITES = 23  # of the undisturbed story, the Lease left out; one is the Event of the failure (R32)


def play_disturbed(number: int, fault: Fault | None, *, is_crash: bool) -> tuple[World, int]:
    """A pause with an end, a failure that pauses, an edit that resumes."""

    async def story(clock: VirtualClock) -> tuple[World, int]:
        world = World(clock, lease_times=LEASE_TIMES)
        trap = Trap(world, number, fault, is_crash=is_crash)
        world.server.faults.append(trap)
        world.start()
        world.apply(a_schedule(**MINUTELY, **LATEST, pauseAfterFailures=1))
        await world.sleep_until(at("10:00:30"))
        pause(world, "10:01:45")
        await world.sleep_until(at("10:01:50"))
        world.jobs.course = lambda _job: Course(is_failed=True)
        await world.sleep_until(at("10:03:40"))
        world.jobs.run_for(2.0)
        edit(world)
        await world.sleep_until(at("10:04:50"))
        await asyncio.gather(*trap.tasks)
        world.auditor.check()
        return world, trap.writes

    return run_virtual(story, at("09:59:20"))


def outcome_of(world: World) -> list[str]:
    return [
        f"{record['spec']['decision']} {record['spec']['scheduledTime'][11:16]}"
        for record in world.records()
        if record["spec"]["decision"] != "Baseline"
    ]


WANT = ["Admitted 10:00", "Admitted 10:02", "Admitted 10:04"]


def test_the_undisturbed_pauses() -> None:
    world, writes = play_disturbed(0, None, is_crash=False)
    assert outcome_of(world) == WANT
    assert [each["spec"]["reason"] for each in world.records() if each["spec"]["decision"] == "Baseline"] == PAUSES
    assert writes == WRITES


@pytest.mark.parametrize("how", DISTURBANCES)
def test_a_disturbed_write_changes_nothing_in_the_end(how: str) -> None:
    """P2 P4 P6 R19: for each write of the story, also the Baselines'."""
    fault, is_crash = DISTURBANCES[how]
    wrong = []
    for number in range(1, WRITES + 1):
        world, _ = play_disturbed(number, fault, is_crash=is_crash)
        if outcome_of(world) != WANT or world.status()["state"] != "Active":
            wrong.append((number, outcome_of(world), world.status()["state"]))
    assert not wrong


@pytest.mark.parametrize("lag_seconds", [0.0, 60.0])
def test_a_leader_that_stalls_before_a_pause_admits_nothing_after_it(lag_seconds: float) -> None:
    """P4 P11 P14 R11: its record for the instant arrives a minute late, after the pause.

    Where the API server's view of the Lease lags as long, the record comes before the other leader's first one, and that
    one starts nothing.
    """

    async def story(clock: VirtualClock) -> None:
        world = World(clock)
        world.jobs.run_for(2)
        await world.until_leading(world.start("a"))
        world.apply(a_schedule(**FIVE, startingDeadlineSeconds=120))
        world.start("b")
        await asyncio.sleep(3)
        world.fence.lag_seconds = lag_seconds
        await world.sleep_until(at("09:59:58"))
        world.fault(
            Fault(delay_seconds=60),
            matches=lambda request: (
                request.client == "a" and request.path.endswith(("/scheduleoccurrences", "/leases/workflow-schedules"))
            ),
        )
        await world.sleep_until(at("10:00:03"))
        pause(world)
        await world.sleep_until(at("10:02"))
        assert world.status()["state"] == "Paused"
        assert outcome_of(world) == ([] if lag_seconds == 0.0 else ["Admitted 10:00"])
        assert world.job_names() == []
        world.auditor.check()

    run_virtual(story, at("09:58"))


def test_a_good_manual_run_is_on_record_while_the_owner_pauses_too() -> None:
    """P6 `pauseAfterFailures`: the request may be deleted, and what it ended stays ended."""

    async def story(clock: VirtualClock) -> None:
        world = World(clock, lease_times=LEASE_TIMES)
        await world.until_leading(world.start())
        world.jobs.course = lambda _job: Course(is_failed=True)
        world.apply(a_schedule(**FIVE, pauseAfterFailures=1))
        await world.sleep_until(at("10:00:20"))
        world.edit("s", pause={"reason": "on call"})
        await asyncio.sleep(5)
        world.jobs.run_for(2)
        spec = {"scheduleRef": {"name": "s"}, "cause": "Manual"}
        metadata = {"name": "now", "namespace": "ns"}
        world.server.create({"apiVersion": API_VERSION, "kind": KIND_OCCURRENCE, "metadata": metadata, "spec": spec})
        await asyncio.sleep(10)
        world.server.delete("scheduleoccurrences", "ns", "now")
        await asyncio.sleep(5)
        world.edit("s", pause=None)
        await asyncio.sleep(5)
        assert world.status()["state"] == "Active"
        world.auditor.check()

    run_virtual(story, at("09:58"))
