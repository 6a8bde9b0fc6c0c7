"""The decision table, row by row, through the core: docs/decisions.md says what happens, and this holds it to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.simulated import log_of
from unit.decision_table import SITUATIONS

if TYPE_CHECKING:
    from unit.decision_table import Row

ROWS = [
    pytest.param(
        row,
        id=f"{situation.title}: {row.policy}",
    )
    for situation in SITUATIONS
    for row in situation.rows
]


@pytest.mark.parametrize("row", ROWS)
def test_what_is_recorded(row: Row) -> None:
    """R1, R3, R4, R7, R9, R10, R12 to R14, R16 to R19, R21, R25, R28."""
    assert log_of(row) == row.want
