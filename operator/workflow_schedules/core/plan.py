"""What the core answers: a Plan with the one step to do now.

Plain frozen values; no rules of the contract and no I/O may live here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec, ScheduleOccurrenceStatus
    from workflow_schedules.api.schedule import State
    from workflow_schedules.core.model import Run, Template


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLog:
    """Read the log before anything is decided on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAgain:
    """Re-read schedule and definition: the log knows a newer generation than the cache (P5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Append the next record; its name is the compare-and-set."""

    spec: ScheduleOccurrenceSpec
    template: Template | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Write this epoch into the record's status before its Job is made by another holder than its author (P11)."""

    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateJob:
    """Create the Job of an admitted record."""

    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """Write the outcome of a run.

    Attributes:
        confirm_absence: first ask the API server itself, and only write when it has no Job of that name (P12).
    """

    run: Run
    status: ScheduleOccurrenceStatus
    confirm_absence: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteJob:
    """Delete the Job of a run that was ended on record (P19)."""

    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class FindJob:
    """Ask the API server itself whether the Job of a run that was ended is still there, and touch nothing."""

    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPods:
    """Find out which Pods keep a Job from going, and on which nodes they are."""

    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Unblock:
    """Set the record that blocks aside: list what there is, close what it decided, and begin anew behind it (R31).

    Attributes:
        record: its name, as a person wrote it.
        state: of the schedule from then on.
    """

    record: str
    state: State


RunStep = Claim | CreateJob | WriteOutcome | DeleteJob | FindJob | ReadPods
Step = ReadLog | LookAgain | Append | Unblock | RunStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now: at most one write, since each is decided on the result of the one before.

    Attributes:
        step: None when there is nothing to do.
        next_wake_at: when to look again if nothing happens; None for never.
        candidates: instants retained but not yet admitted, oldest first.
        waits_for_place: they wait for capacity alone: an end of any run may let them start (R28).
    """

    step: Step | None = None
    next_wake_at: datetime | None = None
    candidates: tuple[datetime, ...] = ()
    waits_for_place: bool = False
