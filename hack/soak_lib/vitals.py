"""Memory, tasks and file descriptors of the operators over time, and whether they grow."""

from __future__ import annotations

import itertools
import json
import statistics
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from controlplane_lib.operator_process import OperatorProcess

MIB = 1 << 20
SHORTEST_SECONDS = 180.0  # of the part that is judged: a process that has just begun still fills its caches
JUDGED_FROM_MINUTES = 15.0  # of a soak: some process lives for long enough then


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at one process; `at` in seconds."""

    at: float
    rss: float  # MiB
    fds: float
    tasks: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What one figure of one process did over the part that is judged."""

    process: str
    figure: str
    median: float
    grown: float  # by the slope, over that part
    allowed: float

    @property
    def is_flat(self) -> bool:
        return self.grown <= self.allowed


# A figure may grow by this share of its median, or by this much, whichever is more: who begins to lead has 17 descriptors and
# 26 tasks more, and each request of a herd is a task.
_ALLOWED = {"rss": (0.10, 12.0), "fds": (0.25, 24.0), "tasks": (0.25, 40.0)}


class Vitals:
    """Collects samples; each process, from its start to its end, is a series of its own."""

    def __init__(self) -> None:
        self.series: dict[str, list[Sample]] = defaultdict(list)

    def sample(self, processes: Iterable[tuple[str, OperatorProcess]]) -> None:
        """Look at each process that runs and answers."""
        for name, process in processes:
            found = _look(process)
            if found is not None:
                self.series[f"{name}/{process.pid}"].append(found)

    def growths(self) -> list[Growth]:
        """Judge the second half of each series that is long enough, figure by figure."""
        return [
            growth_of(name, figure, half)
            for name, samples in self.series.items()
            if (half := samples[len(samples) // 2 :]) and half[-1].at - half[0].at >= SHORTEST_SECONDS
            for figure in _ALLOWED
        ]

    def why_unjudged(self, *, minutes: float) -> str | None:
        """Return what a soak of so many minutes does not show: with nothing judged, nothing has been found to grow."""
        if minutes < JUDGED_FROM_MINUTES or self.growths():
            return None
        return f"growth was not judged: no process was looked at for {2 * SHORTEST_SECONDS:.0f} s without a restart"

    def latest(self) -> dict[str, Sample]:
        """The newest sample of each operator, of the process it is now."""
        return {name.partition("/")[0]: samples[-1] for name, samples in self.series.items()}


def growth_of(process: str, figure: str, samples: Sequence[Sample]) -> Growth:
    """Fit a line that single peaks don't bend: the median of the slopes between all pairs (Theil and Sen)."""
    values = [float(getattr(sample, figure)) for sample in samples]
    points = list(zip((sample.at for sample in samples), values, strict=True))
    slopes = [(b - a) / (then - at) for (at, a), (then, b) in itertools.combinations(points, 2) if then > at]
    median = statistics.median(values)
    share, least = _ALLOWED[figure]
    return Growth(
        process=process,
        figure=figure,
        median=median,
        grown=(statistics.median(slopes) if slopes else 0.0) * (samples[-1].at - samples[0].at),
        allowed=max(share * median, least),
    )


def _look(process: OperatorProcess) -> Sample | None:
    with suppress(OSError, AssertionError, ValueError, StopIteration):
        folder = Path(f"/proc/{process.pid}")
        status = (folder / "status").read_text().splitlines()
        rss = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))
        fds = sum(1 for _ in (folder / "fd").iterdir())
        answer = process.ask("/vitals")  # not while it is stopped
        if answer is not None:
            return Sample(at=time.monotonic(), rss=rss / MIB, fds=fds, tasks=json.loads(answer)["tasks"])
    return None
