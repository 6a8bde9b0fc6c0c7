"""What a restore of an older backup made the log forget: nothing at or before `notBefore` is started any more.

What was due until then may have run, and its record and Job are lost; a second run can't be told from a first one. So
whoever restores says until when the lost history went, and all of that counts as consumed: on record, counted, not silently.

Source: reliability I1 (its exceptions), I3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_schedules.api.common import format_utc
from workflow_schedules.core import log
from workflow_schedules.core.due_times import next_due_time
from workflow_schedules.core.misfire import undecided
from workflow_schedules.core.plan import Append

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.api.schedule import State
    from workflow_schedules.core.acceptance import Accepted
    from workflow_schedules.core.model import Schedule, Snapshot

RESTORED = "Restored"


def is_forgotten(snapshot: Snapshot, at: datetime) -> bool:
    """Tell whether what belongs to this time may have been done before a restore, with no trace of it left."""
    return snapshot.not_before is not None and at <= snapshot.not_before


def why(snapshot: Snapshot) -> str:
    """Return why what is forgotten is not started, for people."""
    until = format_utc(snapshot.not_before) if snapshot.not_before else "never"
    return f"at or before notBefore {until}: it may have run before a backup was restored"


def consumed(snapshot: Snapshot, schedule: Schedule, accepted: Accepted, state: State, now: datetime) -> Append | None:
    """Return the Baseline that consumes what is forgotten, where anything of it is due; None otherwise.

    A `notBefore` to come consumes what is due until then as it comes: the watermark is never ahead of the clock (P13).
    """
    before = log.watermark(snapshot)
    if snapshot.not_before is None or before is None:
        return None
    until = min(snapshot.not_before, now).replace(microsecond=0)
    oldest = next_due_time(accepted.trigger, after=before)
    if oldest is None or oldest > until:
        return None
    waiting = tuple(at for at in snapshot.held if before < at <= until)
    return Append(
        spec=log.baseline(
            snapshot,
            schedule=schedule,
            state=state,
            reason=RESTORED,
            consumed_through=until,
            waiting=waiting,
            given_up=undecided(accepted.trigger, after=before, until=until, besides=waiting),
            detail=why(snapshot),
        )
    )
