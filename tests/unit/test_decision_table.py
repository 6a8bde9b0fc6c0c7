"""The decision table, row by row, through the core: docs/decisions.md says what happens, and this holds it to it.

Rows about more than one schedule are played by operators: tests/timeline/test_decision_table.py.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from support.simulated import log_of
from unit.decision_row import ANY_CONCURRENCY, ANY_MISFIRE, policies
from unit.decision_table import SITUATIONS

if TYPE_CHECKING:
    from unit.decision_row import Row, Situation

CONCURRENCY = [str(each["concurrencyPolicy"]) for each in ANY_CONCURRENCY]
MISFIRE = [str(each["misfirePolicy"]) for each in ANY_MISFIRE]
PLAYS = [
    pytest.param(play, id=f"{situation.title}: {row.policy}: {name}")
    for situation in SITUATIONS
    for row in situation.rows
    for name, play in row.plays()
    if not row.needs_operator
]


@pytest.mark.parametrize("row", PLAYS)
def test_what_is_recorded(row: Row) -> None:
    """R1, R3, R4, R7, R9, R10, R12 to R14, R16 to R19, R21, R24, R25, R28."""
    log, outcomes = log_of(row)
    assert log == row.want
    assert not row.outcomes or outcomes == row.outcomes


def played(row: Row) -> set[tuple[str, str]]:
    return {policies(play.fields) for _, play in row.plays()}


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.title)
def test_each_combination_of_policies_has_a_row_or_an_excuse(situation: Situation) -> None:
    has_row = set().union(*map(played, situation.rows))
    excused = {
        (concurrency, misfire)
        for concurrency, misfire in product(CONCURRENCY, MISFIRE)
        if any(which in situation.excused for which in ((concurrency, misfire), ("any", misfire), (concurrency, "any")))
    }
    assert set(product(CONCURRENCY, MISFIRE)) - has_row == excused
    assert all(situation.excused.values())


@pytest.mark.parametrize(
    ("row", "text"),
    [pytest.param(row, each.text, id=f"{each.title}: {row.policy}") for each in SITUATIONS for row in each.rows],
)
def test_a_row_plays_the_policies_that_it_names(row: Row, text: str) -> None:
    """What neither a row nor the text above it names makes no difference, like what it calls `any`: each is played."""
    for number, (field, known) in enumerate({"concurrencyPolicy": CONCURRENCY, "misfirePolicy": MISFIRE}.items()):
        is_any = "any policies" in row.policy or f"any `{field}`" in row.policy
        names = [] if is_any else named(known, row.policy) or named(known, text)
        assert {pair[number] for pair in played(row)} == set(names or known), field


def named(known: list[str], text: str) -> list[str]:
    return [name for name in known if f"`{name}`" in text]
