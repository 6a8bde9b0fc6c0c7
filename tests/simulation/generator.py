"""From a seed to a plan: a few schedules with any rules, a few things that people do, a few things that go wrong."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from simulation.plan import Do, Plan

FIRST_MINUTE = 30.0
# around an instant there are a few milliseconds per request, and everything interesting
_OFFSETS = (
    -0.5,
    -0.01,
    -0.001,
    0.0,
    0.001,
    0.003,
    0.005,
    0.007,
    0.009,
    0.011,
    0.013,
    0.02,
    0.05,
    0.3,
    1.0,
    2.5,
    10.0,
    30.0,
)
# Mostly a minute or two, at times long enough for a name to be freed (K), which is three minutes: each second costs.
_LENGTHS = (*(70.0, 95.0, 100.0) * 3, *(100.0, 130.0, 130.0), *(160.0, 220.0, 400.0))
_WRITES = ("record", "job", "outcome", "status", "write", "any", "delete")


def plan_of(seed: int) -> Plan:
    """Return the plan of a seed; the same for ever, as long as this module stays as it is."""
    random = Random(seed)
    seconds = random.choice(_LENGTHS)
    operators = 2 if random.random() < 0.8 else 3
    names = [f"s{number}" for number in range(random.choice((1, 1, 1, 2, 2, 3)))]
    actions = [_jobs(random, 0.0)]
    if random.random() < 0.35:
        actions.append(Do(0.0, "definition", **_some(random, maxActiveRuns=(1, 2), onDisable=("HoldSchedules",))))
        parent: dict[str, Any] = {"workflow": "w"}
    else:
        parent = {}
    actions += [_schedule(random, name, parent) for name in names]
    actions += [_person(random, names, seconds, number) for number in range(random.choice((0, 1, 2, 3, 4, 6)))]
    actions += [_trouble(random, names, seconds) for _ in range(random.choice((1, 1, 2, 2, 3, 4, 6)))]
    settings = {"max_concurrent_runs": 1} if random.random() < 0.05 else {}
    ahead = tuple(random.choice((-90.0, -3.0, 3.0, 90.0)) if random.random() < 0.06 else 0.0 for _ in range(operators))
    return Plan(tuple(sorted(actions, key=lambda each: each.at)), seconds, ahead, settings, seed)


def _some(random: Random, *, share: float = 0.3, **choices: tuple[Any, ...]) -> dict[str, Any]:
    """Choose some of these, each with one of its values."""
    return {name: random.choice(values) for name, values in choices.items() if random.random() < share}


def _when(random: Random, seconds: float) -> float:
    """Choose a time, often close to a full minute."""
    minute = random.randrange(int((seconds - FIRST_MINUTE) // 60) + 1)
    offset = random.choice(_OFFSETS) if random.random() < 0.8 else random.uniform(0.0, 59.0)
    return round(max(0.5, FIRST_MINUTE + 60.0 * minute + offset), 3)


def _calendar(random: Random) -> dict[str, Any]:
    kind = random.random()
    if kind < 0.07:
        return {"onceIn": random.choice((20, 45, 90))}
    if kind < 0.12:
        return {"schedules": ["*/2 * * * *", "*/3 * * * *"], "schedule": None}
    return {"schedule": random.choice(("* * * * *", "* * * * *", "* * * * *", "*/2 * * * *", "*/3 * * * *"))}


def _rules(random: Random) -> dict[str, Any]:
    overlap = random.choice(("Forbid", "Forbid", "Allow", "Replace"))
    rules: dict[str, Any] = {"concurrencyPolicy": overlap}
    if overlap == "Allow":
        rules["maxActiveRuns"] = random.choice((1, 2, 3))
    misfire = random.choice(("Skip", "Latest", "All"))
    rules["misfirePolicy"] = misfire
    if misfire == "All":
        rules |= _some(random, maxCatchUpRuns=(1, 2, 3))
    return rules | _some(
        random,
        share=0.15,
        startingDeadlineSeconds=(5, 20, 120),
        maxJitterSeconds=(10, 25),
        runLimit=(1, 2, 3),
        pauseAfterFailures=(1, 2),
        successfulJobsHistoryLimit=(0, 1),
        failedJobsHistoryLimit=(0,),
        occurrenceHistoryLimit=(1, 2, 5),
        startTimeoutSeconds=(5, 30),
        deletionPolicy=("Delete",),
        endsIn=(70, 130),
    )


def _schedule(random: Random, name: str, parent: dict[str, Any]) -> Do:
    at = 0.5 if random.random() < 0.7 else round(random.uniform(0.0, 45.0), 3)
    chosen = parent if random.random() < 0.7 else {}
    image = {} if chosen else {"image": "one"}
    return Do(at, "schedule", name=name, **_calendar(random), **_rules(random), **image, **chosen)


def _jobs(random: Random, at: float) -> Do:
    run: list[float | None] = random.choice(
        ([2.0], [2.0, 20.0], [20.0, 70.0], [70.0, 100.0], [2.0, 130.0], [None, 2.0])
    )
    failed, unready = random.choice((0.0, 0.0, 0.3, 0.8)), random.choice((0.0, 0.0, 0.0, 0.0, 0.3))
    return Do(at, "jobs", run=run, failed=failed, unready=unready)


_Choice = Callable[[Random, float, str, int], Do]


def _relevant(random: Random, at: float, name: str, number: int) -> Do:
    calendar = {"schedule": "* * * * *"}
    fields = random.choice(({"image": f"two{number}"}, {"input": {"a": number}}, calendar, _rules(random)))
    return Do(at, "edit", name=name, **fields)


def _pause(random: Random, at: float, name: str, _number: int) -> Do:
    paused = ({"pause": {"reason": "x"}}, {"pause": None}, {"pause": None}, {"pausedFor": random.choice((20, 70))})
    return Do(at, "edit", name=name, **random.choice(paused))


def _definition(random: Random, at: float, _name: str, number: int) -> Do:
    return random.choice(
        (
            Do(at, "edit_definition", enabled=False),
            Do(at, "edit_definition", enabled=True),
            Do(at, "edit_definition", image=f"three{number}"),
            Do(at, "edit_definition", maxActiveRuns=random.choice((1, 3, None))),
            Do(at, "delete_definition"),
            Do(at, "definition"),
        )
    )


def _of_one(what: str) -> _Choice:
    return lambda _random, at, name, _number: Do(at, what, name=name)


def _of_a_run(what: str) -> _Choice:
    return lambda random, at, _name, _number: Do(at, what, newest=random.randrange(2))


def _of_all(what: str) -> _Choice:
    return lambda _random, at, _name, _number: Do(at, what)


def _request(random: Random, at: float, name: str, number: int) -> Do:
    return Do(at, "request", name=f"ask{number}", of=name, ago=random.choice((None, None, 60.0, 180.0)))


_PEOPLE: tuple[_Choice, ...] = (
    *(_relevant, _relevant, _pause, _pause, _request, _request, _definition, _definition),
    *(lambda r, at, name, _n: Do(at, "edit", name=name, enabled=r.random() < 0.5),) * 2,
    lambda random, at, name, _n: Do(at, "edit", name=name, occurrenceHistoryLimit=random.choice((1, 3, 100))),
    lambda random, at, _name, _number: _jobs(random, at),
    *map(_of_one, ("delete", "recreate")),
    *map(_of_a_run, ("cancel", "suspend", "delete_job")),
    *map(_of_all, ("resume_jobs", "gc", "stuck_pod", "free_pods")),
)


def _person(random: Random, names: list[str], seconds: float, number: int) -> Do:
    at = _when(random, seconds)
    return random.choice(_PEOPLE)(random, at, random.choice(names), number)


def _crash(random: Random, at: float, _name: str, _slot: int) -> Do:
    down, on = random.choice((0.0, 0.0, 5.0, 40.0, 200.0)), random.choice(_WRITES)
    return Do(at, "crash_at", on=on, skip=random.choice((0, 0, 1, 2, 4)), after=random.random() < 0.5, down=down)


def _late(random: Random, at: float, _name: str, _slot: int) -> Do:
    delay, times = random.choice((2.0, 14.0, 16.0, 25.0, 29.0)), random.choice((1, 1, 2, 4))
    return Do(at, "fault", on=random.choice(_WRITES), times=times, delay_seconds=delay)


def _freeze(random: Random, at: float, _name: str, slot: int) -> Do:
    stall = random.choice((3.0, 11.0, 14.0, 17.0, 40.0, 100.0, 300.0))
    if random.random() < 0.3:
        return Do(at, "freeze", slot=slot, seconds=stall)
    on, skip = random.choice(_WRITES), random.choice((0, 0, 1, 3))
    return Do(at, "freeze_at", on=on, skip=skip, seconds=stall, held=random.random() < 0.6)


def _ending(what: str) -> _Choice:
    return lambda random, at, _name, slot: Do(at, what, slot=slot, down=random.choice((0.0, 5.0, 20.0, 90.0)))


def _server(random: Random, at: float, _name: str, _slot: int) -> Do:
    length = random.choice((1.0, 5.0, 20.0, 75.0, 130.0))
    return Do(at, random.choice(("slow", "down", "down")), seconds=length)


def _clock(random: Random, at: float, _name: str, slot: int) -> Do:
    return Do(at, "step_clock", slot=slot, seconds=random.choice((-600.0, -30.0, 30.0, 3600.0)))


def _trouble(random: Random, names: list[str], seconds: float) -> Do:
    at, slot = _when(random, seconds), random.randrange(3)
    return random.choice(_TROUBLES)(random, at, random.choice(names), slot)


def _fault(random: Random, at: float, _name: str, _slot: int) -> Do:
    on, times = random.choice((*_WRITES, "read")), random.choice((1, 1, 2, 5, 20))
    kinds: tuple[dict[str, Any], ...] = (
        {"is_dropped": True},
        {"is_answer_lost": True},
        {"is_answer_lost": True},
        {"is_answer_lost": True, "is_silent": True},
        {"is_dropped": True, "is_silent": True},
        {"status": 409, "reason": "Conflict"},
        {"status": 410, "reason": "Expired"},
        {"status": 429, "reason": "TooManyRequests", "retry_after_seconds": random.choice((0, 1, 10))},
        {"status": 500, "reason": "InternalError"},
        {"status": 503, "reason": "ServiceUnavailable"},
        {"status": 504, "reason": "Timeout"},
    )
    return Do(at, "fault", on=on, skip=random.choice((0, 0, 1, 2)), times=times, **random.choice(kinds))


def _watch(random: Random, at: float, _name: str, slot: int) -> Do:
    length = random.choice((20.0, 60.0, 150.0))
    return random.choice(
        (
            Do(at, "break_watches"),
            Do(at, "compact"),
            Do(at, "deaf", slot=slot, seconds=length),
            Do(at, "deaf", slot=slot, seconds=length),
            Do(at, "lag", slot=slot, seconds=length, by=random.choice((0.5, 5.0, 20.0))),
        )
    )


def _lease(random: Random, at: float, _name: str, _slot: int) -> Do:
    return random.choice(
        (
            Do(at, "steal_lease", transitions=random.choice((0, 1, 5))),
            Do(at, "delete_lease"),
            Do(at, "fault", on="renewal", times=random.choice((2, 5)), status=403, reason="Forbidden"),
            Do(at, "fault", on="lease", times=100, status=500, seconds=random.choice((8.0, 20.0, 60.0))),
            Do(at, "fault", on="renewal", times=3, is_answer_lost=True),
            Do(max(0.5, at - 20.0), "fence_lag", seconds=random.choice((1.0, 20.0, 45.0, 60.0))),
            Do(max(0.5, at - 20.0), "fence_lag", seconds=random.choice((1.0, 20.0, 45.0, 60.0))),
        )
    )


def _refusal(random: Random, at: float, _name: str, _slot: int) -> Do:
    length = random.choice((5.0, 30.0, 90.0))
    return random.choice(
        (
            Do(at, "refuse_jobs", seconds=length),
            Do(at, "refuse_jobs", seconds=length, code=422, message='Job.batch "x" is invalid: spec: Invalid value'),
            Do(at, "terminate_namespace", seconds=length),
        )
    )


def _forgery(random: Random, at: float, name: str, _slot: int) -> Do:
    return Do(at, "forge_job", of=name, ahead=random.choice((1, 1, 2)))


_TROUBLES: tuple[_Choice, ...] = (
    *(_crash, _crash, _crash, _fault, _fault, _fault, _late, _late, _freeze, _freeze, _watch, _watch, _lease, _lease),
    *(_ending("kill"), _ending("stop"), _server, _refusal, _clock, _forgery),
)
