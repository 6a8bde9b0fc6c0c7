"""What one decision of the core costs with a warm calendar: medians of one run, CPU time of this process.

The limit, 200 µs, is for every row. Two things are as long as people make them, are measured by themselves ("apart"), and do
not count: what an outage of many days asks of the calendar about each of its months, and the check of an input against the
schema of its definition, which is a library's.
The rows take turns, so that a busy second of the machine is a busy second of all of them; the yardstick, a loop of plain
Python, shows how fast the machine was, to compare one run with another.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from situations import Situation, situations

from workflow_schedules.core.decide import decide
from workflow_schedules.core.plan import Append, Plan, WriteOutcome

LIMIT = 200.0
IN_A_ROW = 20  # the first of them finds what another row left in the processor's caches


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One situation.

    Attributes:
        median, low: microseconds; low is what the fastest tenth keeps below.
        apart: microseconds at the median of what does not count; 0 where the limit is for all of it.
    """

    name: str
    median: float
    low: float
    apart: float = 0.0

    @property
    def judged(self) -> float:
        """Return what the limit is for."""
        return self.median - self.apart


def times(calls: list[Callable[[], object]], rounds: int) -> list[list[float]]:
    """Return how long each of some calls took each time, in microseconds of CPU time; they take turns."""
    found: list[list[float]] = [[] for _ in calls]
    for round_ in range(-(-rounds // IN_A_ROW) + 1):
        for call, taken in zip(calls, found, strict=True):
            for _ in range(IN_A_ROW):
                started = time.process_time_ns()
                call()
                taken.append((time.process_time_ns() - started) / 1e3)
            if round_ == 0:
                taken.clear()  # that was to warm up
    return found


def measure(rounds: int) -> tuple[float, list[Row]]:
    """Return the yardstick and the rows."""
    asked = list(situations())
    for each in asked:
        check(each)
    deciding: list[Callable[[], object]] = [lambda each=each: decide(each.snapshot, now=each.now) for each in asked]
    asking = [each.apart for each in asked if each.apart]
    yardstick, *found = map(sorted, times([yardstick_loop, *deciding, *asking], rounds))
    others = iter(found[len(asked) :])
    rows = [
        Row(
            name=each.name,
            median=statistics.median(taken),
            low=taken[len(taken) // 10],
            apart=statistics.median(next(others)) if each.apart else 0.0,
        )
        for each, taken in zip(asked, found, strict=False)
    ]
    return statistics.median(yardstick), rows


def yardstick_loop() -> int:
    total = 0
    for number in range(2000):
        total += number % 7
    return total


def check(asked: Situation) -> None:
    """Make sure that no row measures another situation than it says."""
    said = told(decide(asked.snapshot, now=asked.now))
    if said != asked.want:
        raise AssertionError(f"{asked.name}: want {asked.want}, got {said}")


def told(plan: Plan) -> str:
    """Return what was decided, in a word or two."""
    match plan.step:
        case None:
            return f"None waiting {len(plan.candidates)}" if plan.candidates else "None"
        case Append(spec=spec):
            return f"Append {spec.decision}"
        case WriteOutcome(status=status):
            return f"WriteOutcome {status.outcome}"
    return type(plan.step).__name__


def main() -> int:
    parser = argparse.ArgumentParser(prog="hack/bench decide", description=__doc__)
    parser.add_argument("--rounds", metavar="N", type=int, default=1000, help="decisions of each row (default 1000)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows there, too")
    options = parser.parse_args()
    yardstick, rows = measure(options.rounds)
    print(f"load {os.getloadavg()[0]:.1f}, yardstick {yardstick:.1f} µs, limit {LIMIT:.0f} µs")
    print(f"{'microseconds, median of one run':36}{'ours':>8}{'fast':>8}{'apart':>10}{'judged':>8}{'of limit':>10}")
    for row in rows:
        apart = f"{row.apart:.1f}" if row.apart else "-"
        print(f"{row.name:36}{row.median:>8.1f}{row.low:>8.1f}{apart:>10}{row.judged:>8.1f}{row.judged / LIMIT:>10.0%}")
    print(
        "apart: the calendar of an outage of many days, the check against a schema; the limit is for the rest of that row"
    )
    if options.json:
        said = {"yardstick": yardstick, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(said, indent=2) + "\n")
    slow = [row.name for row in rows if row.judged > LIMIT]
    if slow:
        print(f"hack/bench: over the limit: {'; '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
