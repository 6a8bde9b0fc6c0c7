"""Thousands of small worlds, each from a seed, in which two or three real operators live through what a cluster can do.

A failing seed is shrunk and printed as a plan, ready for the table of test_fixed_plans, and with the command that repeats it.
More seeds: `hack/test simulation --seeds 50000`; one: `hack/test simulation --seed 17`.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import pytest

from simulation.generator import plan_of
from simulation.mutations import edits_only_in_status
from simulation.plan import Do, Plan
from simulation.play import Verdict, play
from simulation.shrink import shrink

SHOWN = 3
SHRINK_TRIES = 150

pytestmark = pytest.mark.timeout(1200)  # a machine that is busy with other things


def problems_of(seed: int) -> tuple[int, tuple[str, ...]]:
    return seed, play(plan_of(seed)).problems


def told(seed: int, problems: tuple[str, ...], *, tries: int = SHRINK_TRIES) -> str:
    """Say what is wrong with a seed, as small as it gets."""
    plan, kinds = plan_of(seed), Verdict(problems).kinds

    def is_bad(smaller: Plan) -> bool:
        try:
            return not kinds.isdisjoint(play(smaller).kinds)
        except TypeError:  # an action without an argument that it needs
            return False

    small = shrink(plan, is_bad, tries=tries)
    wrong = "\n".join(play(small).problems[:SHOWN])
    return f"seed {seed}:\n{wrong}\n    {small.text()},\nrepeat it: hack/test simulation --seed {seed}"


def test_whatever_happens_the_invariants_hold(seeds: range, pool: ProcessPoolExecutor) -> None:
    """I1 to I8, and what the rules P5, P11, P15 and R11 say of single writes."""
    found = [*pool.map(problems_of, seeds, chunksize=4)]
    bad = [(seed, problems) for seed, problems in found if problems]
    if bad:
        pytest.fail(
            "\n\n".join(told(*each) for each in bad[:SHOWN]) + f"\n{len(bad)} of {len(seeds)} seeds", pytrace=False
        )


def test_a_seed_that_fails_is_told_as_a_small_plan_and_with_what_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    edits_only_in_status(monkeypatch)
    seed = next(number for number in range(100) if play(plan_of(number)).problems)
    text = told(seed, problems_of(seed)[1], tries=60)
    assert f"hack/test simulation --seed {seed}" in text
    plan = text[text.index("Plan(") : text.index(",\nrepeat it")]
    small = eval(plan, {"Plan": Plan, "Do": Do})
    assert len(small.actions) < len(plan_of(seed).actions)
    assert play(small).problems
