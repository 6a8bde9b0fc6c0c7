"""Which due instants start, wait or are given up. Works on a range of instants, never on a list of them all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, assert_never

from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import ConcurrencyPolicy, MisfirePolicy
from workflow_schedules.core.due_times import (
    count_due_times,
    due_times,
    end_of_date,
    is_excluded,
    latest_due_time,
    newest_due_times,
    next_due_time,
    next_exclusion,
    start_of_date,
)
from workflow_schedules.core.jitter import NO_JITTER, Jitter
from workflow_schedules.core.zones import moved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workflow_schedules.api.schedule import WorkflowScheduleSpec
    from workflow_schedules.core.triggers import Trigger

_ONE_SECOND = timedelta(seconds=1)
DEFAULT_SKIP_DEADLINE = timedelta(seconds=60)
DEFAULT_CATCH_UP_RUNS = 10
MAX_WAITING = 100  # what a record and a status can name, an instant that waits for its jitter included
_LONGEST_DEADLINE = timedelta(days=36_500)  # the field has no upper bound, the calendar has one


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfire:
    """The misfire rule of one schedule.

    Attributes:
        deadline: no start later than this after the instant; None is unbounded.
        keep: how many instants may wait under `Latest` and `All`.
    """

    policy: MisfirePolicy
    deadline: timedelta | None
    keep: int

    @classmethod
    def of(cls, spec: WorkflowScheduleSpec) -> Misfire:
        """Read the rule from a spec; unset, the deadline is 60 s under `Skip` and unbounded otherwise, and `All` keeps ten.

        Under `Replace` one is kept, whatever the policy.
        """
        policy, seconds = spec.misfire_policy, spec.starting_deadline_seconds
        keep = (spec.max_catch_up_runs or DEFAULT_CATCH_UP_RUNS) if policy is MisfirePolicy.ALL else 1
        if spec.concurrency_policy is ConcurrencyPolicy.REPLACE:
            keep = 1  # each would end the one before it at once
        if seconds is None:
            return cls(
                policy=policy, deadline=DEFAULT_SKIP_DEADLINE if policy is MisfirePolicy.SKIP else None, keep=keep
            )
        longest = int(_LONGEST_DEADLINE.total_seconds())
        return cls(policy=policy, deadline=timedelta(seconds=min(seconds, longest)), keep=keep)


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
        candidates: the instants retained until a slot is free, oldest first.
        spread: the instant that waits only for its jitter, or None.
    """

    verdict: Verdict | None = None
    candidates: tuple[datetime, ...] = ()
    spread: datetime | None = None


def judge_due(
    trigger: Trigger,
    misfire: Misfire,
    *,
    after: datetime,
    now: datetime,
    free_slots: int,
    jitter: Jitter = NO_JITTER,
) -> Judgement:
    """Judge the instants in ``(after, now]``, oldest first; none of them due is an empty judgement.

    One verdict at a time, always about the oldest instants, so that the watermark moves over whole verdicts.

    Args:
        trigger: what yields the instants.
        misfire: the rule for those that can't start now.
        after: the watermark.
        now: aware UTC.
        free_slots: how many runs may start now.
        jitter: how much later than its instant each may start.

    Source: contract R16, R17, `excludeDates`, `maxJitterSeconds`.
    """
    oldest = next_due_time(trigger, after=after)
    if oldest is None or oldest > now:
        return Judgement()
    spread = _waits_for_jitter(trigger, oldest, now, jitter)
    if spread is None:
        return _judge(trigger, misfire, oldest=oldest, until=now, now=now, free_slots=free_slots, jitter=jitter)
    if spread == oldest:
        return Judgement(spread=spread)
    misfire, until = replace(misfire, keep=min(misfire.keep, MAX_WAITING - 1)), spread - _ONE_SECOND
    judged = _judge(trigger, misfire, oldest=oldest, until=until, now=now, free_slots=free_slots, jitter=jitter)
    return replace(judged, spread=spread)


def _waits_for_jitter(trigger: Trigger, oldest: datetime, now: datetime, jitter: Jitter) -> datetime | None:
    """Return the due instant that may not start yet; only the newest can be one: a delay ends before half the gap."""
    if not jitter.max_seconds:
        return None
    newest = latest_due_time(trigger, after=oldest, until=now) or oldest
    return newest if jitter.start_of(newest, trigger) > now and not is_excluded(trigger, newest) else None


def _judge(
    trigger: Trigger,
    misfire: Misfire,
    *,
    oldest: datetime,
    until: datetime,
    now: datetime,
    free_slots: int,
    jitter: Jitter,
) -> Judgement:
    """Judge the oldest stretch of instants between two excluded dates; nearly always there is but one."""
    if is_excluded(trigger, oldest):
        through = _excluded_through(trigger, oldest, until)
        return Judgement(verdict=_from(oldest, trigger, through, Decision.SKIPPED_EXCLUDED))
    exclusion = next_exclusion(trigger, oldest)
    end = until if exclusion is None else min(until, exclusion - _ONE_SECOND)
    late_until = _late_until(trigger, misfire, oldest, now, jitter)
    if late_until is not None and oldest <= min(late_until, end):
        return Judgement(verdict=_from(oldest, trigger, min(late_until, end), Decision.SKIPPED_MISFIRE))
    most = free_slots if misfire.policy is MisfirePolicy.SKIP else misfire.keep
    newer = list(islice(_newest_not_excluded(trigger, end, until), most))
    match misfire.policy:
        case MisfirePolicy.SKIP:
            return _skip(trigger, oldest, end, free_slots, newer=len(newer))
        case MisfirePolicy.LATEST | MisfirePolicy.ALL:
            return _retain(trigger, oldest, end, free_slots, keep=misfire.keep, newer=newer)
        case _:
            assert_never(misfire.policy)


def _late_until(trigger: Trigger, misfire: Misfire, oldest: datetime, now: datetime, jitter: Jitter) -> datetime | None:
    """Return the time through which instants are late: a start at instant + jitter + deadline is still in time."""
    if misfire.deadline is None or (since := moved(now, -misfire.deadline)) is None or oldest > since:
        return None
    newest = latest_due_time(trigger, after=oldest, until=since) or oldest
    return newest if jitter.start_of(newest, trigger) < since else newest - _ONE_SECOND


def _excluded_through(trigger: Trigger, oldest: datetime, until: datetime) -> datetime:
    """Return the end of the excluded dates that follow one another without an instant between them."""
    end = end_of_date(trigger, oldest)
    while end < until and (following := next_due_time(trigger, after=end)) and is_excluded(trigger, following):
        end = end_of_date(trigger, following)
    return min(end, until)


def _newest_not_excluded(trigger: Trigger, after: datetime, until: datetime) -> Iterator[datetime]:
    while (newest := latest_due_time(trigger, after=after, until=until)) is not None:
        if is_excluded(trigger, newest):
            until = start_of_date(trigger, newest) - _ONE_SECOND
        else:
            yield newest
            until = newest - _ONE_SECOND


def _newest_first(trigger: Trigger, oldest: datetime, end: datetime) -> Iterator[datetime]:
    return chain(newest_due_times(trigger, after=oldest, until=end), (oldest,))


def _skip(trigger: Trigger, oldest: datetime, end: datetime, free_slots: int, *, newer: int) -> Judgement:
    if free_slots == 0:
        return Judgement(verdict=_from(oldest, trigger, end, Decision.SKIPPED_OVERLAP))
    slots = free_slots - newer  # the newest start
    newest = list(islice(_newest_first(trigger, oldest, end), max(slots, 0) + 1))
    if len(newest) > slots:
        return Judgement(verdict=_from(oldest, trigger, newest[-1], Decision.SKIPPED_MISFIRE))
    return Judgement(verdict=_one(newest[-1]))


def _retain(
    trigger: Trigger, oldest: datetime, end: datetime, free_slots: int, *, keep: int, newer: list[datetime]
) -> Judgement:
    # older ones are given up as soon as a newer one is due, so that only the candidates are ever without a record
    here = list(islice(_newest_first(trigger, oldest, end), keep - len(newer) + 1))
    fallen = here.pop() if len(here) + len(newer) > keep else None
    waiting = tuple(reversed((*newer, *here)))
    if fallen is not None:
        return Judgement(verdict=_from(oldest, trigger, fallen, Decision.COALESCED), candidates=waiting)
    if free_slots:
        return Judgement(verdict=_one(waiting[0]), candidates=waiting[1:])
    return Judgement(candidates=waiting)


def _one(instant: datetime) -> Verdict:
    return Verdict(decision=Decision.ADMITTED, first=instant, last=instant, count=1)


def all_due(trigger: Trigger, after: datetime, until: datetime, decision: Decision) -> Verdict | None:
    """Return one verdict about all instants in ``(after, until]``, or None where there are none."""
    first = next_due_time(trigger, after=after)
    return None if first is None or first > until else _from(first, trigger, until, decision)


def _from(first: datetime, trigger: Trigger, until: datetime, decision: Decision) -> Verdict:
    """Return one verdict about an instant and all that come after it through `until`."""
    last = latest_due_time(trigger, after=first, until=until)
    if last is None:
        return Verdict(decision=decision, first=first, last=first, count=1)
    count = 1 + count_due_times(trigger, after=first, until=until)
    return Verdict(decision=decision, first=first, last=last, count=count)


def undecided(trigger: Trigger, *, after: datetime, until: datetime, besides: tuple[datetime, ...]) -> Verdict | None:
    """Return one verdict about the instants in ``(after, until]`` that are given up without having waited in sight.

    Args:
        trigger: what yields the instants.
        after: the watermark.
        until: through when the calendar is given up.
        besides: instants that are named one by one elsewhere.

    Source: invariant I3.
    """
    named = {at for at in besides if latest_due_time(trigger, after=at - _ONE_SECOND, until=at) and after < at <= until}
    count = count_due_times(trigger, after=after, until=until) - len(named)
    if count == 0:
        return None
    first = next(at for at in due_times(trigger, after=after, until=until) if at not in named)
    last = next(at for at in newest_due_times(trigger, after=after, until=until) if at not in named)
    return Verdict(decision=Decision.SUPERSEDED, first=first, last=last, count=count)
