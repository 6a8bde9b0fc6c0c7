"""What the virtual world is told beforehand, and what it answers.

Plain values; no rules of the contract may live here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workflow_schedules.api.occurrence import Decision, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from workflow_schedules.core.model import Definition, Schedule

_LONGEST_SECONDS = 10_000 * 366 * 86_400  # a deadline has no upper bound, the calendar has one


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run goes.

    Attributes:
        seconds: from its start; whole.
        outcome: how it stands after them; `Running` is a run that never ends, `Interrupted` one that is suspended.
    """

    seconds: int
    outcome: Outcome = Outcome.COMPLETED

    def within(self, deadline_seconds: int | None) -> Ending:
        """Return how it goes where the Job has a deadline: one that is still running by then ends there, used up.

        Source: contract R25 (`DeadlineExceeded`), `activeDeadlineSeconds`.
        """
        if deadline_seconds is None or (self.outcome is not Outcome.RUNNING and self.seconds <= deadline_seconds):
            return self
        return Ending(seconds=min(deadline_seconds, _LONGEST_SECONDS), outcome=Outcome.EXHAUSTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What people wrote, from an instant on. The world counts generations itself."""

    at: datetime
    schedule: Schedule
    definition: Definition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """From `start` until just before `end` nothing is decided; runs go on."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the world is told beforehand.

    Attributes:
        changes: oldest first; the first one makes the schedule.
        until: the last second in which anything happens.
        ending: how the run of an instant goes; asked in the order of the starts.
        outages: oldest first, apart from one another.
        note: told of instants that a Baseline, which is no row, gave up.
        at_end: told of what is open when the scene is over.
    """

    changes: Sequence[Change]
    until: datetime
    ending: Callable[[datetime], Ending]
    outages: Sequence[Outage] = ()
    note: Callable[[str], None] | None = None
    at_end: Callable[[str], None] | None = None


@dataclass(slots=True, kw_only=True)
class Row:
    """One record, Baselines aside, and what became of its run by the end of the scene."""

    scheduled_time: datetime
    decision: Decision
    reason: str
    count: int
    first_time: datetime
    last_time: datetime
    start_time: datetime | None = None
    completion_time: datetime | None = None
    outcome: Outcome | None = None

    @property
    def is_settled(self) -> bool:
        """Tell whether nothing about it can change any more."""
        return self.decision is not Decision.ADMITTED or self.outcome is not None
