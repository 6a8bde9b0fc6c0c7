"""Which instants a Baseline of the simulated world consumed and no record names, by what was written when they came.

An operator that runs knows the calendar that an edit replaces and counts its instants on record; one that comes back does not
(R9: from the moment it first sees the edit). The world knows all that was ever written, so that its users can be told.
No rule of the contract may live here.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from workflow_schedules.api.common import format_utc
from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import State
from workflow_schedules.core import completion
from workflow_schedules.core.acceptance import Accepted, accept
from workflow_schedules.core.decide import hold_reason
from workflow_schedules.core.misfire import Verdict, undecided

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec
    from workflow_schedules.core.model import Definition, Snapshot
    from workflow_schedules.core.scene import Change


def unrecorded(snapshot: Snapshot, baseline: ScheduleOccurrenceSpec, written: Sequence[Change]) -> Verdict | None:
    """Return what was due by what was written at the time, as one verdict, or None where all is said.

    Args:
        snapshot: what the Baseline was decided on.
        baseline: the record, without a span of its own.
        written: all that people wrote, and when, oldest first.

    Source: contract R9, R29; invariant I3.
    """
    until = baseline.consumed_through_time
    return None if until is None else due_meanwhile(snapshot, until, written, besides=tuple(baseline.waiting))


def due_meanwhile(
    snapshot: Snapshot, until: datetime, written: Sequence[Change], *, besides: tuple[datetime, ...]
) -> Verdict | None:
    """Return what was due until then, since the newest record, by what was written at the time, or None.

    Args:
        snapshot: as it stands.
        until: the last instant that counts.
        written: all that people wrote, and when, oldest first.
        besides: instants that are named elsewhere.
    """
    found = [
        verdict
        for low, high, accepted in _stretches(snapshot, until, written)
        if (verdict := undecided(accepted.trigger, after=low, until=high, besides=besides))
    ]
    if not found:
        return None
    count = sum(verdict.count for verdict in found)
    return Verdict(decision=Decision.SUPERSEDED, first=found[0].first, last=found[-1].last, count=count)


def _stretches(
    snapshot: Snapshot, until: datetime, written: Sequence[Change]
) -> Iterator[tuple[datetime, datetime, Accepted]]:
    """Yield from when until when something held that would have admitted."""
    head = snapshot.head
    since = head.spec.consumed_through_time if head else None
    is_first = True
    for change, end in _lasting(written, until):
        if end <= (since or change.at):
            continue
        accepted = accept(change.schedule, change.definition)
        was = head.spec.state if is_first and head else None
        is_first = False
        if not isinstance(accepted, Accepted) or not _admits(snapshot, accepted, change.definition, was):
            continue
        paused_until = accepted.spec.pause.until_time if accepted.spec.pause else None
        begin = max(filter(None, (change.at, since, paused_until)))
        if begin < end:
            yield begin, end, accepted


def _lasting(written: Sequence[Change], until: datetime) -> Iterator[tuple[Change, datetime]]:
    known = [each for each in written if each.at <= until]
    for each, following in pairwise(known):
        yield each, following.at
    yield known[-1], until


def _admits(snapshot: Snapshot, accepted: Accepted, definition: Definition | None, was: State | None) -> bool:
    spec = accepted.spec
    is_held = hold_reason(replace(snapshot, definition=definition), accepted) is not None
    is_paused = was is State.PAUSED if spec.pause is None else spec.pause.until_time is None
    return spec.enabled and not is_held and not is_paused and completion.runs_left(snapshot, spec) != 0


def told(lost: Verdict) -> str:
    """Say it to people."""
    return (
        f"{lost.count} that were due ({span_text(lost)}) are on no record, since no operator ran when this was written"
    )


def span_text(verdict: Verdict) -> str:
    """Return the instants of a verdict for people."""
    first = format_utc(verdict.first)
    return first if verdict.count == 1 else f"{first} to {format_utc(verdict.last)}"
