"""What is still open when a simulated scene is over, and why nothing more starts, in words: no row says that.

No rule of the contract may live here.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from workflow_schedules.api.common import format_utc
from workflow_schedules.api.occurrence import Outcome
from workflow_schedules.core import completion, pause
from workflow_schedules.core.unrecorded import due_meanwhile, span_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from workflow_schedules.core.ledger import Ledger
    from workflow_schedules.core.scene import Row, Scene

_MOST_SAID = 10  # of each kind: a schedule can have a hundred runs, and a hundred instants that wait


def unfinished(scene: Scene, ledger: Ledger, rows: Mapping[int, Row]) -> Iterator[str]:
    """Yield a line for each run that has not ended, each instant that waits, those that nobody looked at, and what stops it all.

    Args:
        scene: which is over.
        ledger: as it stands.
        rows: of the runs that have not ended, by number.
    """
    for number, row in islice(rows.items(), _MOST_SAID):
        yield f"the run of {format_utc(row.scheduled_time)} {_standing(ledger, number, row)}"
    yield from _more(len(rows), "runs have not ended")
    for instant in ledger.held[:_MOST_SAID]:
        yield f"{format_utc(instant)} still waits to start, so it has no row"
    yield from _more(len(ledger.held), "instants still wait")
    yield from _unseen(scene, ledger)
    yield from _stopped(ledger, scene.until)


def _standing(ledger: Ledger, number: int, row: Row) -> str:
    if row.start_time is None:
        return "is suspended and has not started (spec.suspend of its Job); it keeps its slot and has no outcome"
    since = f"it started at {format_utc(row.start_time)} and has no outcome"
    if ledger.standing(number) is Outcome.INTERRUPTED:
        return f"is interrupted and keeps its slot; {since}"
    return f"is still in progress; {since}"


def _unseen(scene: Scene, ledger: Ledger) -> Iterator[str]:
    if not any(outage.start <= scene.until < outage.end for outage in scene.outages):
        return
    found = due_meanwhile(ledger.snapshot(), scene.until, scene.changes, besides=ledger.held)
    if found is not None:
        yield f"{found.count} that were due ({span_text(found)}) are undecided, so they have no row: no operator runs yet"


def _stopped(ledger: Ledger, now: datetime) -> Iterator[str]:
    """Say what stops the schedule where nobody wrote that, so that it would seem to have no more instants."""
    spec = ledger.schedule.spec
    if spec is None or (spec.run_limit is None and spec.pause_after_failures is None):
        return  # most have neither, and a snapshot may mean a million records to be summed up
    snapshot = ledger.snapshot()
    if completion.runs_left(snapshot, spec) == 0:
        yield f"the schedule is Complete: its runLimit of {spec.run_limit} is used"
    found = pause.why(snapshot, now=now)
    if found is not None and found[0] == pause.BY_FAILURES:
        yield f"the schedule is paused: {found[1]}"


def _more(count: int, what: str) -> Iterator[str]:
    if count > _MOST_SAID:
        yield f"{count} {what}, {count - _MOST_SAID} more than are named here"
