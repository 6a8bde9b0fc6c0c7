"""How much later than its instant an occurrence starts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.brute_calendar import Cron, crons
from support.builders import a_schedule, a_spec
from workflow_schedules.core.acceptance import trigger_of
from workflow_schedules.core.due_times import next_due_time, parse_cron
from workflow_schedules.core.jitter import NO_JITTER, Jitter
from workflow_schedules.core.refusals import refusals


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "seconds", "limit"),
    [("* * * * *", 86400, 29), ("*/5 * * * *", 60, 60), ("0 * * * *", 86400, 1799), ("0 0 * * *", 3600, 3600)],
)
def test_a_start_is_late_by_a_stable_part_below_half_the_gap(schedule: str, seconds: int, limit: int) -> None:
    """`maxJitterSeconds`."""
    trigger, jitter = parse_cron(schedule, "UTC"), Jitter(uid="one", max_seconds=seconds)
    instants = [at("2026-01-01") + timedelta(days=day) for day in range(300)]
    delays = [(jitter.start_of(instant, trigger) - instant).total_seconds() for instant in instants]
    assert all(0 <= delay <= limit for delay in delays)
    assert len(set(delays)) > limit / 30
    assert max(delays) > 0.9 * limit
    assert delays == [(jitter.start_of(instant, trigger) - instant).total_seconds() for instant in instants]
    other = Jitter(uid="other", max_seconds=seconds)
    assert delays != [(other.start_of(instant, trigger) - instant).total_seconds() for instant in instants]


def test_a_delay_never_changes_between_releases() -> None:
    """Stable: what one replica of one version computes, any other does."""
    jitter, trigger = (
        Jitter(uid="5c4ed01e-0000-4000-8000-000000000001", max_seconds=600),
        parse_cron("0 * * * *", "UTC"),
    )
    assert jitter.start_of(at("2026-01-01T10:00"), trigger) == at("2026-01-01T10:02:47")
    assert NO_JITTER.start_of(at("2026-01-01T10:00"), trigger) == at("2026-01-01T10:00")


def test_the_last_instant_has_all_of_it() -> None:
    once = trigger_of(a_spec(run_once_time="2026-01-01T10:00:00Z"))
    delays = {Jitter(uid=str(n), max_seconds=5).start_of(at("2026-01-01T10:00"), once) for n in range(60)}
    assert delays == {at("2026-01-01T10:00") + timedelta(seconds=n) for n in range(6)}


@given(union=st.lists(crons(), min_size=1, max_size=2), seconds=st.integers(1, 86400), uid=st.text(max_size=3))
@settings(max_examples=settings.default.max_examples // 2)
def test_starts_keep_the_order_of_their_instants(union: list[Cron], seconds: int, uid: str) -> None:
    """A delay ends before half the gap, so that only the newest due instant can be waiting."""
    assume(not refusals(a_schedule(schedule=None, schedules=tuple(cron.text for cron in union))))
    trigger = trigger_of(a_spec(schedule=None, schedules=tuple(cron.text for cron in union)))
    jitter = Jitter(uid=uid, max_seconds=seconds)
    instants = [at("2026-01-01")]
    while len(instants) < 5 and (following := next_due_time(trigger, after=instants[-1])) is not None:
        instants.append(following)
    for instant, following in pairwise(instants[1:]):
        assert instant <= jitter.start_of(instant, trigger) < instant + (following - instant) / 2


def test_what_a_spec_says() -> None:
    """`maxJitterSeconds`: unset = 0."""
    assert Jitter.of("u", a_spec(max_jitter_seconds=600)) == Jitter(uid="u", max_seconds=600)
    assert Jitter.of("", a_spec()) == NO_JITTER == Jitter(uid="", max_seconds=0)


def test_half_of_an_odd_gap_is_below_its_middle() -> None:
    """`maxJitterSeconds`: below half the gap, where a clock was set back by 9 min 21 s: 4161 s leave 2080."""
    trigger, instant = parse_cron("0 * * * *", "Europe/Paris"), at("1911-03-10T22:50:39")
    assert next_due_time(trigger, after=instant) == at("1911-03-11T00:00:00")
    longest = Jitter(uid="u120", max_seconds=86400)  # this one's share is all of it
    assert longest.start_of(instant, trigger) == instant + timedelta(seconds=2080)
