"""What hack/soak prints: a line now and then, and tables at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from soak_lib.auditor import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from soak_lib.auditor import Auditor
    from soak_lib.vitals import Growth, Vitals

_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How it ended.

    Attributes:
        problems: of the auditor, each with its invariant in front.
        growths: of memory, descriptors and tasks.
        failures: why the soak itself can't be trusted.
    """

    problems: Sequence[str]
    growths: Sequence[Growth]
    failures: Sequence[str] = ()

    @property
    def is_good(self) -> bool:
        return not self.problems and not self.failures and all(growth.is_flat for growth in self.growths)

    def counts(self) -> dict[str, int]:
        """How many violations there are of each kind."""
        found = Counter(problem.partition(":")[0] for problem in self.problems)
        return {title: found[name] for name, title in NAMES.items()}


def progress(auditor: Auditor, vitals: Vitals, *, latest_fault: str, leader: str | None) -> str:
    decisions, outcomes = auditor.decisions(), auditor.outcomes()
    ended = sum(count for outcome, count in outcomes.items() if outcome not in {"none yet", "Running", "Interrupted"})
    rss = " ".join(f"{sample.rss:.0f}" for sample in vitals.latest().values())
    return (
        f"{auditor.commits} commits, admitted {decisions['Admitted']}, ended {ended}, violations "
        f"{len(auditor.violations)}; leader {leader or '-'}; RSS {rss} MiB; last fault: {latest_fault}"
    )


def tables(
    auditor: Auditor,
    verdict: Verdict,
    *,
    told: Mapping[str, int],
    deeds: Mapping[str, int],
    faults: Mapping[str, int],
    vitals: Vitals,
) -> Iterator[str]:
    """Yield the lines of the end."""
    yield ""
    yield from _table("what happened", {**told, "commits judged": auditor.commits, "Jobs made": auditor.jobs_started()})
    yield from _table("decisions", auditor.decisions())
    yield from _table("outcomes of admitted runs", auditor.outcomes())
    yield from _table("people", deeds)
    yield from _table("faults", faults)
    yield from _start_times(auditor.lateness)
    yield "operators, samples of RSS (MiB), file descriptors, tasks: seven of each process, from first to last"
    for name, samples in vitals.series.items():
        some = [samples[(len(samples) - 1) * sixth // 6] for sixth in range(7)]
        shown = "  ".join(f"{each.rss:.0f}/{each.fds:.0f}/{each.tasks:.0f}" for each in some)
        yield f"  {name:16} {len(samples):4} samples  {shown}"
    yield "growth over the second half of each process that ran for long enough"
    for growth in verdict.growths:
        shape = f"median {growth.median:7.1f}  {growth.grown:+7.1f} (up to {growth.allowed:.1f})"
        yield f"  {growth.process:24} {growth.figure:6} {shape}  {'flat' if growth.is_flat else 'GROWS'}"
    yield from _table("violations", verdict.counts())
    for problem in (*verdict.problems[:_SHOWN], *verdict.failures):
        yield f"  {problem}"
    if len(verdict.problems) > _SHOWN:
        yield f"  and {len(verdict.problems) - _SHOWN} more"


def _table(title: str, rows: Mapping[str, int]) -> Iterator[str]:
    yield title
    for name, count in sorted(rows.items(), key=lambda row: -row[1]) or [("none", 0)]:
        yield f"  {name:36} {count:8}"


def _start_times(seconds: Sequence[float]) -> Iterator[str]:
    if not seconds:
        return
    ordered = sorted(seconds)
    shown = {f"p{share}": ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 90, 99)}
    line = ", ".join(f"{name} {value:.1f} s" for name, value in {**shown, "max": ordered[-1]}.items())
    yield f"Jobs stored after their instant and jitter: {line} (faults, catch-up and full slots included)"
