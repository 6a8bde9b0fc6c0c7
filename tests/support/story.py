"""A story over time as a list of steps, played by real operators on virtual time and held to the invariants.

    play(
        [At("10:00", want=[admitted("10:00")]), Outage("10:01", "10:47"), At("10:47", want=[coalesced("10:15", "10:30")])],
        a_schedule(misfirePolicy="Latest"),
    )

`want` is all that was decided since the step before, oldest first, of the one schedule named `s` unless told otherwise;
`ends` is all that ended since then. Baselines are compared only where `baselines` is given.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from support.api_kinds import Json
from support.auditor import FINAL
from support.harness import NAMESPACE, World
from support.virtual_loop import VirtualClock, run_virtual
from workflow_schedules.api.common import parse_utc
from workflow_schedules.scheduler.lease_times import LeaseTimes

DAY = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
SETTLE_SECONDS = 3.0
# as long as by default, but renewed less often: most of the cost of an idle hour
LEASE_TIMES = LeaseTimes(duration_seconds=15, renew_deadline_seconds=12, retry_seconds=5, look_seconds=5)

Act: TypeAlias = Callable[[World], Awaitable[object] | object]


@dataclass(frozen=True, slots=True)
class At:
    """At this time do something, let it settle, and compare what was decided since the step before.

    Attributes:
        time: `10:00`, `10:00:30`, or with a date in front: `2026-03-09T10:00`.
        want: decisions, oldest first; None to compare nothing.
        ends: outcomes of runs, oldest first; None to compare nothing.
        baselines: reasons of Baseline records; None to compare nothing.
        do: what people or the environment do at this time.
        status: fields of the schedule's status and their values after settling.
        check: anything else, after settling.
        of: name of the schedule; `other/s` for one in the namespace `other`.
    """

    time: str
    want: list[str] | None = None
    ends: list[str] | None = None
    baselines: list[str] | None = None
    do: Act | None = None
    status: Json = field(default_factory=dict)
    check: Act | None = None
    of: str = "s"
    settle_seconds: float = SETTLE_SECONDS


@dataclass(frozen=True, slots=True)
class Outage:
    """No operator from kill -9 at the one time to a start at the other; `do` is done without one."""

    begin: str
    end: str
    do: Act | None = None


@dataclass(frozen=True, slots=True)
class ServerDown:
    """No API server from the one time to the other."""

    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class Crash:
    """The operator is killed at this time and another starts at once."""

    time: str


@dataclass(frozen=True, slots=True)
class Jump:
    """At this time all wall clocks step."""

    time: str
    by: timedelta


Step: TypeAlias = At | Outage | ServerDown | Crash | Jump


def admitted(time: str) -> str:
    return f"Admitted {time}"


def coalesced(first: str, last: str = "", count: int = 0) -> str:
    return _span("Coalesced", first, last, count)


def skipped_overlap(first: str, last: str = "", count: int = 0) -> str:
    return _span("SkippedOverlap", first, last, count)


def skipped_misfire(first: str, last: str = "", count: int = 0) -> str:
    return _span("SkippedMisfire", first, last, count)


def superseded(first: str, last: str = "", count: int = 0) -> str:
    return _span("Superseded", first, last, count)


def completed(time: str) -> str:
    return f"Completed {time}"


def failed(time: str, reason: str) -> str:
    return f"Failed/{reason} {time}"


def play(
    steps: Iterable[Step],
    *objects: Json,
    start: str = "09:50",
    run_seconds: float | None = 2.0,
    is_settled: bool = True,
) -> World:
    """Play a story with one operator; at its end the auditor must find nothing."""

    async def story(clock: VirtualClock) -> World:
        world = World(clock, lease_times=LEASE_TIMES)
        world.jobs.run_for(run_seconds)
        for body in objects:
            world.apply(body)
        await world.until_leading(world.start())
        await Player(world).play(steps)
        world.auditor.check(is_settled=is_settled)
        return world

    return run_virtual(story, at(start))


class Player:
    """Plays steps in a world and remembers what was already compared."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._decided: set[str] = set()
        self._ended: set[str] = set()

    async def play(self, steps: Iterable[Step]) -> None:
        world = self._world
        for step in steps:
            match step:
                case At():
                    await self._at(step)
                case Outage(begin, end, do):
                    await world.sleep_until(at(begin))
                    await world.kill()
                    await _do(do, world)
                    await world.sleep_until(at(end))
                    world.start()
                case ServerDown(begin, end):
                    await world.sleep_until(at(begin))
                    world.server.go_down()
                    await world.sleep_until(at(end))
                    world.server.come_up()
                case Crash(time):
                    await world.sleep_until(at(time))
                    await world.restart()
                case Jump(time, by):
                    await world.sleep_until(at(time))
                    world.clock.jump(by)

    async def _at(self, step: At) -> None:
        world = self._world
        await world.sleep_until(at(step.time))
        await _do(step.do, world)
        await asyncio.sleep(step.settle_seconds)
        decided, ended, baselines = self._news(step.of)
        assert step.want is None or decided == step.want, f"at {step.time}: {decided}, wanted {step.want}"
        assert step.ends is None or ended == step.ends, f"at {step.time}: {ended}, wanted {step.ends}"
        assert step.baselines is None or baselines == step.baselines, f"at {step.time}: {baselines}"
        if step.status:
            namespace, _, name = step.of.rpartition("/")
            status = world.status(name, namespace or NAMESPACE)
            shown = {name: status.get(name) for name in step.status}
            assert shown == step.status, f"at {step.time}: {shown}, wanted {step.status}"
        await _do(step.check, world)

    def _news(self, of: str) -> tuple[list[str], list[str], list[str]]:
        decided, ended, baselines = [], [], []
        namespace, _, name = of.rpartition("/")
        records = self._world.records(name, namespace or NAMESPACE)
        for record in sorted(records, key=lambda each: int(each["metadata"]["resourceVersion"])):
            uid, spec, status = record["metadata"]["uid"], record["spec"], record.get("status") or {}
            if uid not in self._decided:
                self._decided.add(uid)
                if spec["decision"] == "Baseline":
                    baselines.append(spec["reason"])
                else:
                    decided.append((spec["sequence"], _told(spec)))
            if status.get("outcome") in FINAL and uid not in self._ended:
                self._ended.add(uid)
                why = f"/{status['reason']}" if status["outcome"] != "Completed" else ""
                ended.append((spec["scheduledTime"], f"{status['outcome']}{why} {_short(spec['scheduledTime'])}"))
        return [text for _, text in sorted(decided)], [text for _, text in sorted(ended)], baselines


def at(time: str) -> datetime:
    """Read a time of a story."""
    date, _, clock = time.rpartition("T")
    day = datetime.fromisoformat(date).replace(tzinfo=UTC) if date else DAY
    hours, minutes, seconds = [*map(float, clock.split(":")), 0.0][:3]
    return day + timedelta(hours=hours, minutes=minutes, seconds=seconds)


async def _do(act: Act | None, world: World) -> None:
    result = act(world) if act else None
    if inspect.isawaitable(result):
        await result


def _told(spec: Json) -> str:
    span = spec.get("span")
    if span is None:
        return f"{spec['decision']} {_short(spec['scheduledTime'])}"
    return _span(spec["decision"], _short(span["firstTime"]), _short(span["lastTime"]), span["count"])


def _span(decision: str, first: str, last: str, count: int) -> str:
    if not last:
        return f"{decision} {first}"
    return f"{decision} {first}..{last}" + (f" x{count}" if count != 2 and count else "")


def _short(time: str) -> str:
    when = parse_utc(time)
    text = f"{when:%H:%M}" if when.second == 0 else f"{when:%H:%M:%S}"
    return text if when.date() == DAY.date() else f"{when:%Y-%m-%d}T{text}"
