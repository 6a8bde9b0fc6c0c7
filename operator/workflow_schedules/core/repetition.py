"""What was decided before in the same situation: so that a year of equal days is not decided anew minute by minute.

`decide` is pure, and where a spec has only plain fields nothing but distances in time and the number of unfinished runs
matters to it: what it said once it says again. Whatever else a spec sets, now or in a later version, is no plain field and
is decided each time. No rule of the contract may live here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workflow_schedules.api.schedule import ConcurrencyPolicy, MisfirePolicy
from workflow_schedules.core.acceptance import template_of
from workflow_schedules.core.due_times import due_times
from workflow_schedules.core.job import is_born_suspended
from workflow_schedules.core.zones import LAST_SECOND, to_utc

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec
    from workflow_schedules.core.model import Definition, Schedule
    from workflow_schedules.core.plan import Plan
    from workflow_schedules.core.triggers import Trigger

_PLAIN_FIELDS = frozenset(
    {
        "workflow_ref", "schedule", "schedules", "time_zone", "enabled", "concurrency_policy", "max_active_runs",
        "misfire_policy", "starting_deadline_seconds", "skipped_time_policy", "repeated_time_policy", "start_time",
        "end_time", "input", "successful_jobs_history_limit", "failed_jobs_history_limit", "occurrence_history_limit",
        "deletion_policy", "active_deadline_seconds", "start_timeout_seconds", "max_catch_up_runs",
    }
)  # fmt: skip
_PLAIN_POLICIES = frozenset(
    {ConcurrencyPolicy.FORBID, ConcurrencyPolicy.ALLOW, MisfirePolicy.SKIP, MisfirePolicy.LATEST, MisfirePolicy.ALL}
)
_MOST_DUE = 3
_END = to_utc(LAST_SECOND)

Situation = tuple[int, tuple["timedelta", ...]]


def is_plain(schedule: Schedule, definition: Definition | None) -> bool:
    """Tell whether only distances in time matter to what is decided about a schedule."""
    spec = schedule.spec
    if spec is None or {spec.concurrency_policy, spec.misfire_policy} - _PLAIN_POLICIES:
        return False
    if definition is not None and (definition.max_active_runs is not None or definition.input_schema is not None):
        return False
    template = template_of(schedule, definition)
    if template is not None and is_born_suspended(template):
        return False  # its runs are looked at again and again
    fields = type(spec).model_fields
    return all(name in _PLAIN_FIELDS or getattr(spec, name) == fields[name].default for name in spec.model_fields_set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was decided in a situation.

    Attributes:
        spec: of the record to append, or None where nothing was to be done.
        count: how many of the oldest due instants it is about.
        wake_after: from then until the next look.
        candidates: how far before the decision the retained instants lay.
    """

    spec: ScheduleOccurrenceSpec | None
    count: int
    wake_after: timedelta | None
    candidates: tuple[timedelta, ...]


class Repetition:
    """The situations that one spec has been in since it was written, and what was decided in each."""

    def __init__(self, trigger: Trigger) -> None:
        self._trigger = trigger
        self._times = due_times(trigger, after=_END, until=_END)
        self._due: deque[datetime] = deque()
        self._after: datetime | None = None
        self._answers: dict[Situation, Answer] = {}

    def situation(self, now: datetime, *, consumed: datetime, open_runs: int) -> Situation | None:
        """Return what a decision depends on: instants from the watermark to the next one; None if they are many."""
        if self._after != consumed:
            self._times, self._after = due_times(self._trigger, after=consumed, until=_END), consumed
            self._due.clear()
        while len(self._due) <= _MOST_DUE and not (self._due and self._due[-1] > now):
            if (following := next(self._times, None)) is None:
                break
            self._due.append(following)
        if len(self._due) > _MOST_DUE and self._due[-1] <= now:
            return None
        return open_runs, tuple([at - now for at in self._due])

    def answer(self, situation: Situation) -> Answer | None:
        """Return what was decided in a situation, if it ever was."""
        return self._answers.get(situation)

    def learn(self, situation: Situation, plan: Plan, spec: ScheduleOccurrenceSpec | None, now: datetime) -> None:
        """Remember a decision; not one whose record is about other instants than the oldest that are due."""
        count = 0
        if spec is not None:
            count = spec.span.count if spec.span else 1
            first = spec.span.first_time if spec.span else spec.scheduled_time
            last = self._due[count - 1] if count <= len(self._due) else None
            if first != self._due[0] or last != spec.scheduled_time or last != spec.consumed_through_time:
                return
        self._answers[situation] = Answer(
            spec=spec,
            count=count,
            wake_after=plan.next_wake_at - now if plan.next_wake_at else None,
            candidates=tuple(at - now for at in plan.candidates),
        )

    def consume(self, count: int) -> tuple[datetime, datetime]:
        """Move on over the oldest due instants; return the first and the last of them."""
        first = last = self._due.popleft()
        for _ in range(count - 1):
            last = self._due.popleft()
        self._after = last
        return first, last
