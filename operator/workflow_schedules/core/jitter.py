"""The stable spread of starts: how much later than its instant each occurrence starts. Identity stays the nominal instant."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from workflow_schedules.core.due_times import next_due_time

if TYPE_CHECKING:
    from workflow_schedules.api.schedule import WorkflowScheduleSpec
    from workflow_schedules.core.triggers import Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Jitter:
    """The spread of one schedule.

    Attributes:
        uid: of the schedule: two schedules of one expression spread apart.
        max_seconds: longest delay; 0 for none.
    """

    uid: str
    max_seconds: int

    @classmethod
    def of(cls, uid: str, spec: WorkflowScheduleSpec) -> Jitter:
        """Read the spread from a spec; unset, there is none."""
        return cls(uid=uid, max_seconds=spec.max_jitter_seconds or 0)

    def start_of(self, instant: datetime, trigger: Trigger) -> datetime:
        """Return when the occurrence of an instant may start: always before half the gap to the next instant.

        Source: contract `maxJitterSeconds`.
        """
        if not self.max_seconds:
            return instant
        following = next_due_time(trigger, after=instant)
        limit = self.max_seconds
        if following is not None:
            limit = min(limit, (int((following - instant).total_seconds()) - 1) // 2)
        digest = hashlib.sha256(f"{self.uid}/{instant:%Y%m%dT%H%M%SZ}".encode()).digest()
        return instant + timedelta(seconds=int.from_bytes(digest[:8]) % (limit + 1))


NO_JITTER = Jitter(uid="", max_seconds=0)
