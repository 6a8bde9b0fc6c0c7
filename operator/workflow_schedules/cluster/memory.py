"""What this process remembers of one schedule's log: its head, its unfinished runs, and what it lived through with them.

Plain state that the cache keeps; no requests and no decisions may live here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import RecentOccurrence

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from workflow_schedules.core.model import ObjectRef, Record, RecordRefusal, Schedule

_RECENT = 10


@dataclass(slots=True)
class RunMemory:
    """An admitted record and what this process lived through with it.

    Attributes:
        create_given_up_at: monotonic second in which a Job create was last left without an answer.
        outcome_given_up_at: monotonic second in which a status write was last left without an answer.
        is_resolved_here: a request that this holder of the Lease resolved: nobody made a Job of it before.
        is_job_gone: the API server said that the Job on record is no more.
        pods_read_at: when it was last looked at what keeps its Job from going.
        stuck_on: what was found then.
    """

    record: Record
    refused: str | None = None
    last_error: str | None = None
    attempts: int = 0
    retry_at: datetime | None = None
    create_given_up_at: float | None = None
    outcome_given_up_at: float | None = None
    is_resolved_here: bool = False
    is_job_gone: bool = False
    pods_read_at: datetime | None = None
    stuck_on: str | None = None

    def move(self, step: timedelta) -> None:
        """Move what waits along with a wall clock that was set: a pause is as long as it was to be."""
        self.retry_at = self.retry_at + step if self.retry_at else None
        self.pods_read_at = self.pods_read_at + step if self.pods_read_at else None


@dataclass(slots=True)
class ScheduleLog:
    """The log of one schedule as read in this epoch.

    Attributes:
        is_read: head and open runs were read and nothing since then says otherwise.
        blocked_by: name of the record that the contradiction is about.
        waits_for: the Job that must end before the record that blocks can be set aside.
        suspect: an unfinished record that can't be read, as found at the takeover: its name, and what is wrong.
        recent: newest decisions first, Baselines left out.
        failures: requests that failed since the last one that didn't.
        append_given_up_at: monotonic second in which the next record was last left without an answer, and not found since.
        write_given_up_at: monotonic second in which a write of this schedule was last left without an answer.
        before_edit: the schedule before the edits that have no Baseline yet.
        is_anothers: it is blocked since another installation writes it (R33).
        record_refusal: how the API server last refused the next record; None since it took one, or none is wanted any more.
        template_found: hash of the template in force when it was first looked at, and the schedule's generation then; no
            hash since another one was.
    """

    is_read: bool = False
    head: Record | None = None
    runs: dict[int, RunMemory] = field(default_factory=dict)
    contradiction: str | None = None
    blocked_by: str | None = None
    waits_for: ObjectRef | None = None
    suspect: tuple[str, str] | None = None
    held: tuple[datetime, ...] = ()
    recent: list[RecentOccurrence] = field(default_factory=list)
    failures: int = 0
    append_given_up_at: float | None = None
    write_given_up_at: float | None = None
    before_edit: Schedule | None = None
    is_anothers: bool = False
    record_refusal: RecordRefusal | None = None
    template_found: tuple[str, int] | None = None

    def note_template(self, template_hash: str, generation: int) -> None:
        """Note which template is in force: what other leaders told is about the first one (R24)."""
        if self.template_found is None:
            self.template_found = (template_hash, generation)
        elif self.template_found[0] != template_hash:
            self.template_found = ("", generation)

    def note_edit(self, before: Schedule) -> None:
        """Note what an edit replaced: what was due by then is still to be told of (I3).

        Of several edits the first counts, unless the head is known and was decided on a later version.
        """
        is_heads = self.head is not None and self.head.spec.spec_hash == before.spec_hash
        if self.before_edit is None or is_heads:
            self.before_edit = before

    def block(self, record_name: str, why: str) -> None:
        """Note that the log contradicts itself: nothing is decided on it until a person sets that record aside (R31)."""
        self.contradiction, self.blocked_by = why, record_name
        self.is_anothers = False

    def unblock(self) -> None:
        """Note that it doesn't any more."""
        self.contradiction = self.blocked_by = self.waits_for = self.suspect = None
        self.is_anothers = False

    def add(self, record: Record) -> None:
        """Take in the newest record."""
        self.head = record
        self.append_given_up_at = self.record_refusal = None
        if self.before_edit is not None and self.before_edit.spec_hash != record.spec.spec_hash:
            self.before_edit = None
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


def may_still_arrive(given_up_at: float | None, answered_before: float) -> bool:
    """Tell whether a write without an answer may still be carried out.

    Args:
        given_up_at: monotonic second in which it was given up; None when there is none.
        answered_before: monotonic second; what was given up before it can't arrive any more (P2).
    """
    return given_up_at is not None and given_up_at >= answered_before
