"""The counters that every record carries: what an ended run and a verdict add to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_schedules.api.occurrence import Decision, Outcome, Totals
from workflow_schedules.core.ending import is_ending

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workflow_schedules.core.misfire import Verdict
    from workflow_schedules.core.model import Record, Run

_SKIPS = frozenset(
    {Decision.SKIPPED_OVERLAP, Decision.SKIPPED_MISFIRE, Decision.SKIPPED_EXCLUDED, Decision.PREFLIGHT_REJECTED}
)


def totals_now(head: Record | None, runs: Iterable[Run]) -> Totals:
    """Return the head's totals with the outcomes recorded since folded in, in the order of the runs.

    A run counts when it leaves `open`, so that it counts once.
    """
    if head is None:
        return Totals()
    totals = head.spec.totals or Totals()
    for run in runs:
        if run.is_finished and run.record.number in head.spec.open and not is_ending(run):
            totals = with_outcome(totals, run, revision=head.spec.revision)
    return totals


def with_outcome(totals: Totals, run: Run, *, revision: int | None) -> Totals:
    """Return totals with the final outcome of a run counted; a failure of another revision is not in its streak."""
    ended, outcome = run.record.status.completion_time, run.record.status.outcome
    if outcome is Outcome.COMPLETED:
        newest = max(filter(None, (totals.last_successful_time, ended)), default=None)
        return totals.model_copy(
            update={
                "completed": totals.completed + 1,
                "consecutive_failures": 0,
                "counted_failures": 0,
                "last_successful_time": newest,
            }
        )
    if outcome is Outcome.CANCELLED:  # on purpose: neither a failure in a row nor the end of a streak
        return totals.model_copy(update={"failed": totals.failed + 1})
    newest = max(filter(None, (totals.last_failure_time, ended)), default=None)
    is_counted = run.record.spec.revision == revision
    return totals.model_copy(
        update={
            "failed": totals.failed + 1,
            "consecutive_failures": totals.consecutive_failures + 1,
            "counted_failures": totals.counted_failures + is_counted,
            "last_failure_time": newest,
        }
    )


def with_verdict(totals: Totals, verdict: Verdict) -> Totals:
    """Return totals with the instants of a verdict counted."""
    count = verdict.count
    if verdict.decision is Decision.ADMITTED:
        return totals.model_copy(update={"admitted": totals.admitted + 1, "last_schedule_time": verdict.last})
    if verdict.decision in _SKIPS:
        return totals.model_copy(update={"skipped": totals.skipped + count})
    if verdict.decision is Decision.SUPERSEDED:
        return totals.model_copy(update={"superseded": totals.superseded + count})
    return totals.model_copy(update={"coalesced": totals.coalesced + count})
