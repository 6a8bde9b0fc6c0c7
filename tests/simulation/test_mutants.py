"""The simulation can fail: each mutant of the protocol is caught, by the invariant that its rule is for."""

from __future__ import annotations

import pytest

from simulation.mutants import MUTANTS, Mutant
from simulation.play import play


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_of_the_protocol_is_killed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.also(monkeypatch)
    assert play(mutant.plan).kinds <= mutant.noise, "the rule is kept, and the world of the mutant goes wrong even so"
    mutant.breaks(monkeypatch)
    verdict = play(mutant.plan)
    assert verdict.kinds & mutant.kinds, f"the mutant survives: {verdict.problems[:3]}"
