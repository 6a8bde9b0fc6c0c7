"""Make a plan that fails as small as it can be while it still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from simulation.plan import Do, Plan

MOST_TRIES = 400
_NEEDED = frozenset({"name", "on", "slot", "seconds", "of", "run"})


def shrink(plan: Plan, is_bad: Callable[[Plan], bool], *, tries: int = MOST_TRIES) -> Plan:
    """Leave out actions, then operators, settings and arguments, as long as `is_bad` still says so."""
    left = [tries]
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(plan):
            if left[0] == 0:
                return plan
            left[0] -= 1
            if is_bad(smaller):
                plan, changed = smaller, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    yield from _without_actions(plan)
    if len(plan.operators) > 2:
        yield replace(plan, operators=plan.operators[:-1])
    if any(plan.operators):
        yield replace(plan, operators=(0.0,) * len(plan.operators))
    if plan.settings:
        yield replace(plan, settings={})
    yield from _without_arguments(plan)
    last = max((do.at for do in plan.actions), default=0.0)
    if plan.seconds > last + 40:
        yield replace(plan, seconds=last + 40)


def _without_actions(plan: Plan) -> Iterator[Plan]:
    """Leave out large pieces first: delta debugging."""
    size = len(plan.actions) // 2
    while size >= 1:
        for begin in range(0, len(plan.actions), size):
            yield replace(plan, actions=plan.actions[:begin] + plan.actions[begin + size :])
        size //= 2


def _without_arguments(plan: Plan) -> Iterator[Plan]:
    for index, do in enumerate(plan.actions):
        for name in sorted(do.args.keys() - _NEEDED):
            rest = {key: value for key, value in do.args.items() if key != name}
            yield _with(plan, index, Do(do.at, do.what, **rest))


def _with(plan: Plan, index: int, do: Do) -> Plan:
    return replace(plan, actions=(*plan.actions[:index], do, *plan.actions[index + 1 :]))
