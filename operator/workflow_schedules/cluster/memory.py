"""What this process remembers of one schedule's log: its head, its unfinished runs, and what it lived through with them.

Plain state that the cache keeps; no requests and no decisions may live here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import RecentOccurrence

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.core.model import Record

_RECENT = 10


@dataclass(slots=True)
class RunMemory:
    """An admitted record and what this process lived through with it.

    Attributes:
        create_given_up_at: monotonic second in which a Job create was last left without an answer.
        outcome_given_up_at: monotonic second in which a status write was last left without an answer.
    """

    record: Record
    refused: str | None = None
    last_error: str | None = None
    attempts: int = 0
    retry_at: datetime | None = None
    create_given_up_at: float | None = None
    outcome_given_up_at: float | None = None


@dataclass(slots=True)
class ScheduleLog:
    """The log of one schedule as read in this epoch.

    Attributes:
        is_read: head and open runs were read and nothing since then says otherwise.
        recent: newest decisions first, Baselines left out.
        failures: requests that failed since the last one that didn't.
        write_given_up_at: monotonic second in which a write of this schedule was last left without an answer.
    """

    is_read: bool = False
    head: Record | None = None
    runs: dict[int, RunMemory] = field(default_factory=dict)
    contradiction: str | None = None
    held: tuple[datetime, ...] = ()
    recent: list[RecentOccurrence] = field(default_factory=list)
    failures: int = 0
    write_given_up_at: float | None = None

    @property
    def unfinished(self) -> int:
        """Return how many runs have no final outcome yet."""
        return sum(1 for run in self.runs.values() if not is_final(run.record))

    def add(self, record: Record) -> None:
        """Take in the newest record."""
        self.head = record
        if record.spec.decision is Decision.ADMITTED:
            self.runs[record.number] = RunMemory(record=record)
        still_open = frozenset(record.spec.open)
        for number in [n for n, run in self.runs.items() if n not in still_open and is_final(run.record)]:
            del self.runs[number]  # folded into the record's totals
        self._note(record)

    def update(self, record: Record) -> None:
        """Take in a newer status of a run."""
        run = self.runs.get(record.number)
        if run is not None:
            run.record = record
        self._note(record)

    def _note(self, record: Record) -> None:
        if record.spec.decision in {None, Decision.BASELINE}:
            return
        line = RecentOccurrence(
            name=record.ref.name,
            time=record.spec.scheduled_time,
            decision=str(record.spec.decision),
            outcome=str(record.status.outcome) if record.status.outcome else None,
            reason=record.status.reason or record.spec.reason,
        )
        others = [other for other in self.recent if other.name != line.name]
        self.recent = sorted([line, *others], key=lambda other: other.name, reverse=True)[:_RECENT]


def is_final(record: Record) -> bool:
    """Tell whether a run's final outcome is on record."""
    return record.status.outcome is not None and record.status.outcome.is_final
