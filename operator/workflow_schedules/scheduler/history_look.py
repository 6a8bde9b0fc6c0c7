"""What one look at every record found: what is to go, which schedules are gone, and what may go if there are too many records.

Bounded, however much there is: the next look takes the rest. Who is asked to go, and when, is the sweep's business; no requests
may live here.
"""

from __future__ import annotations

import heapq
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workflow_schedules.core.retention import KeptRecord

log = logging.getLogger(__name__)

MOST_AT_ONCE = 5000  # records that one look puts on the list to be removed; the next look takes the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One record that is to go; that of a deleted schedule takes its Job along."""

    schedule_uid: str
    record: KeptRecord
    is_of_deleted: bool = False


class Found:
    """What one look found."""

    def __init__(self, max_records: int) -> None:
        self.total = 0
        self.newly_gone: list[tuple[str, KeptRecord]] = []
        self.is_cut = False
        self._max_records = max_records
        self._due: list[Removal] = []
        self._spare: list[tuple[float, int, Removal]] = []  # the oldest that could go, newest of them first
        self._noted = 0

    def add(self, uid: str, records: tuple[KeptRecord, ...], *, is_of_deleted: bool = False) -> None:
        """Put records on the list."""
        room = max(0, MOST_AT_ONCE - len(self._due))
        self.is_cut = self.is_cut or len(records) > room
        self._due += [
            Removal(schedule_uid=uid, record=record, is_of_deleted=is_of_deleted) for record in records[:room]
        ]

    def note_spare(self, uid: str, records: tuple[KeptRecord, ...]) -> None:
        """Note records that may go if there are too many in all."""
        if not self._max_records:
            return
        for record in records:
            self._noted += 1  # a tie-breaker
            age = (record.finished_at or record.created_at).timestamp()
            heapq.heappush(self._spare, (-age, self._noted, Removal(schedule_uid=uid, record=record)))
            if len(self._spare) > MOST_AT_ONCE:
                heapq.heappop(self._spare)

    def removals(self) -> list[Removal]:
        """Return everything that is to go."""
        excess = self.total - len(self._due) - self._max_records if self._max_records else 0
        if excess <= 0:
            return self._due
        oldest_first = [removal for _, _, removal in sorted(self._spare, reverse=True)]
        self.is_cut = self.is_cut or len(oldest_first) == MOST_AT_ONCE < excess
        log.info("there are more records than maxOccurrenceRecords", extra={"records": self.total})
        return self._due + oldest_first[:excess]
