"""Every call of eight small stories, disturbed in every way, with a second operator there to take over (K-050, P2, P11)."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import pytest

from simulation.enumeration import STORIES, WAYS, Story, cases_of, judged

SHOWN = 3

pytestmark = pytest.mark.timeout(1200)  # a machine that is busy with other things


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_whichever_call_is_disturbed_the_invariants_hold(story: Story, pool: ProcessPoolExecutor) -> None:
    cases = cases_of(story)
    assert len(cases) >= 5 * len(WAYS), "the story has too few calls to be one"
    found = [*pool.map(judged, cases, chunksize=4)]
    bad = [(name, plan, verdict.problems) for name, plan, verdict in found if verdict.problems]
    if bad:
        told = [f"{name}\n    {plan.text()}\n" + "\n".join(problems[:SHOWN]) for name, plan, problems in bad[:SHOWN]]
        pytest.fail("\n".join(told) + f"\n{len(bad)} of {len(cases)} cases", pytrace=False)
