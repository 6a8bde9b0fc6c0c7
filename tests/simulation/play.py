"""Play a plan: do what it says, heal everything, let it settle, and judge what was stored on the way and at the end."""

from __future__ import annotations

import asyncio
import gc
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from simulation.actions import perform
from simulation.plan import Plan
from simulation.world import SimulatedWorld
from support.auditor import ViolationError
from support.harness import LogEntry
from support.virtual_loop import DeadlockError, FreezingLoop, VirtualClock, run_virtual
from workflow_schedules.scheduler import loop

START = datetime(2026, 3, 2, 9, 59, 30, tzinfo=UTC)
SETTLE_SECONDS = 300.0  # at most: a takeover, L + R, and the longest pause between two tries
END_SECONDS = 900.0  # at most: what could not be started is given up after ten minutes (R35)
LONGEST_SECONDS = 3600.0  # after the faults; more than all of these together
REST_SECONDS = 12.0  # the last status write comes ten seconds after the last admission
QUIET_SECONDS = (
    45.0,
    12.0,
    12.0,
    12.0,
)  # by seed: what writes again and again does so at least each minute, mostly sooner
LOOK_SECONDS = 5.0  # how often the loop looks at the wall clock; a fifth of what it costs to look each second


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a plan: `problems` is empty where everything held."""

    problems: tuple[str, ...]
    log: tuple[LogEntry, ...] = ()

    @property
    def kinds(self) -> frozenset[str]:
        """Return the names of the invariants and rules that were broken."""
        return frozenset(problem.partition(":")[0] for problem in self.problems)


class _Faults(logging.Handler):
    """Notes what an operator logs with a traceback: a fault of ours, which the product survives and a test must not."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(f"fault: {record.getMessage()}: {record.exc_info[1]!r}")


def play(plan: Plan) -> Verdict:
    """Play a plan to its end."""
    faults, logger = _Faults(), logging.getLogger("workflow_schedules")
    before = logger.level, logger.propagate
    logger.addHandler(faults)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    looks, loop.LONGEST_SLEEP_SECONDS = loop.LONGEST_SLEEP_SECONDS, LOOK_SECONDS
    gc.disable()  # a fifth of the time; a world is small
    world: list[SimulatedWorld] = []
    try:
        problems = run_virtual(
            lambda clock: _story(clock, plan, world), START, loop=partial(FreezingLoop, plan.seconds + LONGEST_SECONDS)
        )
    except DeadlockError as error:
        problems = [f"deadlock: {error}"]
    finally:
        gc.enable()
        loop.LONGEST_SLEEP_SECONDS = looks
        logger.removeHandler(faults)
        logger.setLevel(before[0])
        logger.propagate = before[1]
    log = tuple(world[0].server.log) if world else ()
    return Verdict((*problems, *faults.found), log)


async def _story(clock: VirtualClock, plan: Plan, made: list[SimulatedWorld]) -> list[str]:
    world = SimulatedWorld(clock, plan)
    made.append(world)
    for slot in range(len(plan.operators)):
        world.fill(slot)
    for do in sorted(plan.actions, key=lambda each: each.at):
        if do.at <= plan.seconds:
            await asyncio.sleep(max(0.0, do.at - clock.monotonic()))
            perform(world, do.what, do.args)
    await asyncio.sleep(max(0.0, plan.seconds - clock.monotonic()))
    await world.recover()
    problems = await _settle(world)
    if not problems:
        problems = await _end(world)
    for process in filter(None, world.slots):
        if process.run.done():
            problems.append(f"fault: {process.name} ended: {process.run.exception()!r}")
        await process.kill()
    return [each for each in problems if not any(name in each for name in world.excused)]


async def _settle(world: SimulatedWorld) -> list[str]:
    """Wait until everything due is decided and every end is recorded; return what is wrong, or still to be done at the end."""
    deadline = world.clock.monotonic() + SETTLE_SECONDS
    await asyncio.sleep(5.0)
    while True:
        problems = _check(world)
        if not problems or world.auditor.violations or world.clock.monotonic() > deadline:
            return problems
        await asyncio.sleep(10.0)


async def _end(world: SimulatedWorld) -> list[str]:
    """Disable everything and let everything end; then nothing may be written any more (I7, I8)."""
    for schedule in world.server.objects("workflowschedules"):
        world.quietly(
            lambda name=schedule["metadata"]["name"]: world.edit(name, enabled=False, pause=None, endTime=None)
        )
    deadline = world.clock.monotonic() + END_SECONDS
    await asyncio.sleep(1.0)
    world.end_jobs()
    await asyncio.sleep(REST_SECONDS)
    while (
        world.unfinished() or world.unacknowledged() or world.server.in_flight
    ) and world.clock.monotonic() < deadline:
        world.end_jobs()
        await asyncio.sleep(REST_SECONDS)
    await asyncio.sleep(REST_SECONDS)
    problems = [f"I7: {name} has no outcome in the end" for name in world.unfinished()]
    problems += [f"R11: the last edit of {name} was never acknowledged" for name in world.unacknowledged()]
    since = len(world.server.log)
    await asyncio.sleep(QUIET_SECONDS[world.plan.seed % len(QUIET_SECONDS)])
    late = [entry for entry in world.writes(since=since) if not _is_due(world, entry)]
    problems += [f"I8: {entry.client} sent {entry.method} {entry.path} with nothing due" for entry in late[:3]]
    return problems + _check(world)


def _is_due(world: SimulatedWorld, entry: LogEntry) -> bool:
    """Tell whether a write removes what is finished, notes since when its schedule is gone, or that its calendar has ended."""
    where = _named(entry.path)
    record = world.server.find("scheduleoccurrences", *where)
    schedule = world.server.find("workflowschedules", *where)
    conditions = (record or {}).get("status", {}).get("conditions", ())
    is_marked = any(each["type"] == "ScheduleDeleted" for each in conditions)
    is_complete = (schedule or {}).get("status", {}).get("state") == "Complete"
    is_of_nothing = entry.status == 404  # a run is closed for want of a Job some time later (P12)
    return entry.method == "DELETE" or is_of_nothing or is_marked or is_complete


def _named(path: str) -> tuple[str, str]:
    """Return namespace and name in the path of a status."""
    parts = path.split("/")
    return (parts[5], parts[7]) if len(parts) > 7 else ("", "")


def _check(world: SimulatedWorld) -> list[str]:
    found = [f"R31: {name} is blocked though nobody wrote to its log" for name in _blocked(world)]
    try:
        world.auditor.check()
    except ViolationError as error:
        found += [each for each in str(error).splitlines() if not world.tampering.leaves_out(each)]
    return found + world.tampering.problems()


def _blocked(world: SimulatedWorld) -> list[str]:
    """Return the schedules whose spec is accepted and whose log is not."""
    found = []
    for schedule in world.server.objects("workflowschedules"):
        status = schedule.get("status") or {}
        is_accepted = any(
            each["type"] == "Accepted" and each["status"] == "True" for each in status.get("conditions", ())
        )
        is_tampered = world.tampering.leaves_out(schedule["metadata"]["name"])
        if status.get("state") == "Blocked" and is_accepted and not is_tampered:
            found.append(schedule["metadata"]["name"])
    return found
