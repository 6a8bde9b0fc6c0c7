"""How many more runs may start."""

from __future__ import annotations

import pytest

from support.builders import a_spec
from workflow_schedules.api.schedule import ConcurrencyPolicy
from workflow_schedules.core.overlap import Overlap, free_slots, freed_places

FORBID = Overlap.of(a_spec())
UP_TO_TWO = Overlap.of(a_spec(concurrency_policy=ConcurrencyPolicy.ALLOW, max_active_runs=2))
REPLACE = Overlap.of(a_spec(concurrency_policy=ConcurrencyPolicy.REPLACE))

CASES = [
    ("R12 forbid: nothing runs", FORBID, 0, 1),
    ("R12 forbid: one unfinished run blocks", FORBID, 1, 0),
    ("R12 forbid: two left from another policy block", FORBID, 2, 0),
    ("R13 allow: nothing runs", UP_TO_TWO, 0, 2),
    ("R13 allow: one of two", UP_TO_TWO, 1, 1),
    ("R13 allow: full", UP_TO_TWO, 2, 0),
    ("R13 allow: limit lowered under the active count blocks and cancels nothing (K-036)", UP_TO_TWO, 3, 0),
    ("R14 replace: nothing runs", REPLACE, 0, 1),
    ("R14 replace: whatever runs ends for the next", REPLACE, 3, 1),
    ("allow without a limit is one", Overlap.of(a_spec(concurrency_policy=ConcurrencyPolicy.ALLOW)), 1, 0),
]


@pytest.mark.parametrize(("rule", "active", "want"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_free_slots(rule: Overlap, active: int, want: int) -> None:
    assert free_slots(rule, active_runs=active) == want


FREED = [
    ("R14, R28 replace: the places of the runs it ends", REPLACE, 3, 3),
    ("R28 forbid: none", FORBID, 1, 0),
    ("R28 allow: none", UP_TO_TWO, 2, 0),
]


@pytest.mark.parametrize(("rule", "active", "want"), [row[1:] for row in FREED], ids=[row[0] for row in FREED])
def test_freed_places(rule: Overlap, active: int, want: int) -> None:
    assert freed_places(rule, active_runs=active) == want
