"""Which due instants start, wait or are given up. Works on a range of instants, never on a list of them all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, assert_never

from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import MisfirePolicy
from workflow_schedules.core.due_times import count_due_times, latest_due_time, newest_due_times, next_due_time

if TYPE_CHECKING:
    from workflow_schedules.api.schedule import WorkflowScheduleSpec
    from workflow_schedules.core.triggers import Trigger

DEFAULT_SKIP_DEADLINE = timedelta(seconds=60)
_LONGEST_DEADLINE = timedelta(days=36_500)  # the field has no upper bound, the calendar has one


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfire:
    """The misfire rule of one schedule.

    Attributes:
        deadline: no start later than this after the instant; None is unbounded.
    """

    policy: MisfirePolicy
    deadline: timedelta | None

    @classmethod
    def of(cls, spec: WorkflowScheduleSpec) -> Misfire:
        """Read the rule from a spec; unset, the deadline is 60 s under `Skip` and unbounded under `Latest`."""
        seconds = spec.starting_deadline_seconds
        if seconds is not None:
            longest = int(_LONGEST_DEADLINE.total_seconds())
            return cls(policy=spec.misfire_policy, deadline=timedelta(seconds=min(seconds, longest)))
        is_skip = spec.misfire_policy is MisfirePolicy.SKIP
        return cls(policy=spec.misfire_policy, deadline=DEFAULT_SKIP_DEADLINE if is_skip else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The fate of the oldest due instants.

    Attributes:
        decision: what to record about them.
        first: oldest instant.
        last: newest instant; equal to `first` for one.
        count: how many.
    """

    decision: Decision
    first: datetime
    last: datetime
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What becomes of the due instants.

    Attributes:
        verdict: what to record now, or None when all that is due waits.
        candidate: the instant retained until a slot is free, or None.
    """

    verdict: Verdict | None = None
    candidate: datetime | None = None


def judge_due(trigger: Trigger, misfire: Misfire, *, after: datetime, now: datetime, free_slots: int) -> Judgement:
    """Judge the instants in ``(after, now]``, oldest first; none of them due is an empty judgement.

    One verdict at a time, always about the oldest instants, so that the watermark moves over whole verdicts.

    Args:
        trigger: what yields the instants.
        misfire: the rule for those that can't start now.
        after: the watermark.
        now: aware UTC.
        free_slots: how many runs may start now.

    Source: contract R16, R17.
    """
    newest = latest_due_time(trigger, after=after, until=now)
    if newest is None:
        return Judgement()
    if misfire.deadline is not None:
        # a start at instant + deadline is still in time, so only what is strictly older is late
        in_time_after = now - misfire.deadline - timedelta(microseconds=1)
        if in_time_after > after and (late := _all(trigger, after, in_time_after, Decision.SKIPPED_MISFIRE)):
            return Judgement(verdict=late)
    match misfire.policy:
        case MisfirePolicy.SKIP:
            return _skip(trigger, after, now, free_slots)
        case MisfirePolicy.LATEST:
            return _latest(trigger, after, newest, free_slots)
        case _:
            assert_never(misfire.policy)


def _skip(trigger: Trigger, after: datetime, now: datetime, free_slots: int) -> Judgement:
    if free_slots == 0:
        return Judgement(verdict=_all(trigger, after, now, Decision.SKIPPED_OVERLAP))
    newest = list(islice(newest_due_times(trigger, after=after, until=now), free_slots + 1))
    if len(newest) > free_slots:
        return Judgement(verdict=_all(trigger, after, newest[-1], Decision.SKIPPED_MISFIRE))
    return Judgement(verdict=_one(newest[-1]))


def _latest(trigger: Trigger, after: datetime, newest: datetime, free_slots: int) -> Judgement:
    # older ones are given up as soon as a newer one is due, so that only the candidate itself is ever without a record
    older = latest_due_time(trigger, after=after, until=newest - timedelta(seconds=1))
    if older is not None:
        return Judgement(verdict=_all(trigger, after, older, Decision.COALESCED), candidate=newest)
    if free_slots == 0:
        return Judgement(candidate=newest)
    return Judgement(verdict=_one(newest))


def _one(instant: datetime) -> Verdict:
    return Verdict(decision=Decision.ADMITTED, first=instant, last=instant, count=1)


def _all(trigger: Trigger, after: datetime, until: datetime, decision: Decision) -> Verdict | None:
    first = next_due_time(trigger, after=after)
    last = latest_due_time(trigger, after=after, until=until)
    if first is None or last is None:
        return None
    return Verdict(decision=decision, first=first, last=last, count=count_due_times(trigger, after=after, until=until))
