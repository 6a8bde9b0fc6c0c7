"""A log as a LIST shows it, readable or not: which part of it counts, and the first thing that is wrong there (R31).

A log whose newest `Unblocked` Baseline has number n is read from n on: whatever is wrong below n was set aside. How a log
goes on behind what is wrong now is unblock's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from workflow_schedules.api.occurrence import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from workflow_schedules.core.model import ObjectRef, Record

UNBLOCKED = "Unblocked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One object with a name of the log, as far as it can be read.

    Attributes:
        number: by its name.
        previous_uid: of the record that it follows, as it says.
        record: None when it can't be read as a record of this log (see `problem`).
        is_admission: it admits a run, or may, as far as can be seen.
        is_open: it does, and has no final outcome.
    """

    ref: ObjectRef
    number: int
    uid: str
    resource_version: str
    created_at: datetime
    previous_uid: str | None
    is_admission: bool
    is_open: bool
    record: Record | None
    problem: str

    @property
    def is_beginning(self) -> bool:
        """Tell whether it sets aside what is wrong below it."""
        spec = self.record.spec if self.record else None
        return spec is not None and spec.decision is Decision.BASELINE and spec.reason == UNBLOCKED


def in_force(listed: Iterable[Listed]) -> list[Listed]:
    """Return the part of a log that counts, oldest first: from the newest Baseline on that begins anew."""
    ordered = sorted(listed, key=lambda each: each.number)
    begins = max((index for index, each in enumerate(ordered) if each.is_beginning), default=0)
    return ordered[begins:]


def first_problem(listed: Iterable[Listed]) -> tuple[str, str] | None:
    """Return the first record in force that can't be read or doesn't follow the one before: its name, and what is wrong."""
    part = in_force(listed)
    for each in part:
        if each.record is None:
            return each.ref.name, each.problem
    for before, after in pairwise(part):
        if not follows(before, after):
            return after.ref.name, f"record {after.ref.name} does not follow {before.ref.name}"
    return None


def follows(before: Listed, after: Listed) -> bool:
    """Tell whether two records are links of one chain; what lies between them may have been pruned."""
    return after.number != before.number + 1 or after.previous_uid == before.uid
