"""May one more run of this schedule start now. Counting and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from workflow_schedules.api.schedule import ConcurrencyPolicy

if TYPE_CHECKING:
    from workflow_schedules.api.schedule import WorkflowScheduleSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """The overlap rule of one schedule."""

    policy: ConcurrencyPolicy
    max_active_runs: int

    @classmethod
    def of(cls, spec: WorkflowScheduleSpec) -> Overlap:
        """Read the rule from a spec; without `maxActiveRuns` one run is the limit."""
        return cls(policy=spec.concurrency_policy, max_active_runs=spec.max_active_runs or 1)


def free_slots(overlap: Overlap, *, active_runs: int) -> int:
    """Return how many more runs of this schedule may start now.

    Args:
        overlap: the rule.
        active_runs: unfinished scheduled runs; interrupted ones keep their slot.

    Source: contract R12, R13, R14.
    """
    match overlap.policy:
        case ConcurrencyPolicy.REPLACE:
            return 1  # whatever is unfinished ends for the next one (R14), which waits until that is gone
        case ConcurrencyPolicy.FORBID:
            limit = 1
        case ConcurrencyPolicy.ALLOW:
            limit = overlap.max_active_runs
        case _:
            assert_never(overlap.policy)
    return max(0, limit - active_runs)


def freed_places(overlap: Overlap, *, active_runs: int) -> int:
    """Return how many places of others' limits the next run frees by starting: under `Replace` those of the runs it ends.

    Source: contract R14, R28.
    """
    return active_runs if overlap.policy is ConcurrencyPolicy.REPLACE else 0
