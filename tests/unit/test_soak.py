"""The parts of hack/soak that need no cluster: what it makes is drawn from its seed, and growth is told from noise."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any, NamedTuple

import pytest

from soak_lib import population
from soak_lib.finisher import course_of
from soak_lib.report import Verdict
from soak_lib.vitals import Growth, Sample, Vitals, growth_of
from workflow_schedules.cluster import wire
from workflow_schedules.core.acceptance import Accepted, accept

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
FLAT = Growth(process="op-a/1", figure="rss", median=100.0, grown=1.0, allowed=12.0)
GROWN = Growth(process="op-a/1", figure="rss", median=100.0, grown=13.0, allowed=12.0)


def made(seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    return population.definitions(random) + population.schedules(random, 1500, now=NOW, minutes=5)


def test_a_seed_says_what_is_made() -> None:
    assert made(1) == made(1)
    assert made(1) != made(2)
    assert course_of(Random("1/s-0")) == course_of(Random("1/s-0"))


def test_every_schedule_that_is_made_is_accepted_and_all_policies_are_among_them() -> None:
    schedules = [body for body in made(3) if body["kind"] == "WorkflowSchedule"]
    for number, body in enumerate(schedules):
        stored = {
            "uid": str(number),
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": "2026-03-02T10:00:00Z",
        }
        found = accept(wire.schedule_of({**body, "metadata": {**body["metadata"], **stored}}))
        assert isinstance(found, Accepted), found
    policies = {(body["spec"]["concurrencyPolicy"], body["spec"]["misfirePolicy"]) for body in schedules}
    assert len(policies) == 9
    minutely = [
        body for body in schedules if body["spec"].get("schedule") in {"* * * * *", "*/1 * * * *", "0-59 * * * *"}
    ]
    assert 100 < len(minutely) < 200


class Row(NamedTuple):
    name: str
    figure: str
    values: list[float]
    is_flat: bool


ROWS = [
    Row("steady memory", "rss", [100.0] * 20, is_flat=True),
    Row("memory that wobbles", "rss", [100.0, 106.0] * 10, is_flat=True),
    Row("one peak", "rss", [100.0] * 10 + [400.0] + [100.0] * 9, is_flat=True),
    Row("memory that grows by a megabyte a sample", "rss", [100.0 + n for n in range(20)], is_flat=False),
    Row("a tenth of a large memory", "rss", [400.0 + n for n in range(20)], is_flat=True),
    Row("descriptors that leak", "fds", [30.0 + 2 * n for n in range(20)], is_flat=False),
    Row("tasks of herds", "tasks", [40.0, 42.0, 300.0, 41.0] * 5, is_flat=True),
    Row("tasks that leak", "tasks", [40.0 + 5 * n for n in range(20)], is_flat=False),
    Row("what shrinks", "tasks", [400.0 - 10 * n for n in range(20)], is_flat=True),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_growth_is_told_from_noise(row: Row) -> None:
    figures = {"rss": 100.0, "fds": 30.0, "tasks": 40.0}
    samples = [Sample(at=5.0 * n, **{**figures, row.figure: value}) for n, value in enumerate(row.values)]
    assert growth_of("op-a/1", row.figure, samples).is_flat is row.is_flat


@pytest.mark.parametrize(
    ("lives", "minutes", "is_said"),
    [
        pytest.param([350.0] * 40, 60.0, True, id="every process was killed too soon"),
        pytest.param([], 15.0, True, id="nobody answered"),
        pytest.param([350.0, 370.0], 60.0, False, id="one lived for long enough"),
        pytest.param([350.0], 14.0, False, id="a short soak promises nothing of growth"),
    ],
)
def test_a_long_soak_that_judged_no_growth_says_so(lives: list[float], minutes: float, *, is_said: bool) -> None:
    vitals = Vitals()
    for number, seconds in enumerate(lives):
        looks = [5.0 * look for look in range(int(seconds / 5) + 1)]
        vitals.series[f"op-a/{number}"] = [Sample(at=at, rss=100.0, fds=30.0, tasks=40.0) for at in looks]
    assert bool(vitals.growths()) is not (is_said or minutes < 15)
    assert bool(vitals.why_unjudged(minutes=minutes)) is is_said


@pytest.mark.parametrize(
    ("verdict", "is_good"),
    [
        (Verdict(problems=[], growths=[FLAT]), True),
        (Verdict(problems=["I1: twice"], growths=[FLAT]), False),
        (Verdict(problems=[], growths=[FLAT, GROWN]), False),
        (Verdict(problems=[], growths=[], failures=["op-a ended by itself"]), False),
    ],
)
def test_whatever_is_wrong_makes_the_verdict_bad(verdict: Verdict, is_good: bool) -> None:
    assert verdict.is_good is is_good


def test_each_kind_of_violation_is_counted() -> None:
    counts = Verdict(problems=["I1: a", "I1: b", "late: c"], growths=[]).counts()
    assert (counts["duplicates"], counts["late admissions"], counts["gaps"]) == (2, 1, 0)
