"""What the preview says about surprises: with dates, in local and UTC time, and nothing where nothing surprises."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from support.builders import a_spec
from workflow_schedules.api.schedule import RepeatedTimePolicy, SkippedTimePolicy
from workflow_schedules.core.acceptance import trigger_of
from workflow_schedules.core.explain import explain, local_text

NEW_YORK = "America/New_York"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Case:
    """What is said about ``(after, until]``: a part of each sentence, in order."""

    name: str
    schedules: tuple[str, ...]
    zone: str
    after: str
    until: str
    want: tuple[str, ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)


SPRING, AUTUMN = ("2026-03-07T12:00", "2026-03-09T12:00"), ("2026-10-31T12:00", "2026-11-02T12:00")
# fmt: off
CASES = [
    Case("an ordinary week", ("0 12 * * *",), NEW_YORK, "2026-06-01T00:00", "2026-06-08T00:00"),
    Case("an ordinary time on the day of the gap", ("0 12 * * *",), NEW_YORK, *SPRING),
    Case("no change in UTC", ("* * * * *",), "UTC", "2026-01-01T00:00", "2027-01-01T00:00"),
    Case("a time in the gap moves", ("30 2 * * *",), NEW_YORK, *SPRING, (
        "in America/New_York the clock goes from 2026-03-08 02:00 to 2026-03-08 03:00 (2026-03-08T07:00:00Z): 2026-03-08 02:30 "
        "does not exist and is moved to 2026-03-08 03:00 local time, 2026-03-08T07:00:00Z",)),
    Case("or is left out", ("30 2 * * *",), NEW_YORK, *SPRING,
         ("2026-03-08 02:30 does not exist and is left out (skippedTimePolicy Skip)",),
         {"skipped_time_policy": SkippedTimePolicy.SKIP}),
    Case("of every hour nothing moves", ("*/30 * * * *",), NEW_YORK, *SPRING,
         ("2026-03-08 02:00, 2026-03-08 02:30 do not exist and are left out, since '*/30 * * * *' runs in every hour",)),
    Case("many are counted", ("*/10 * * * *",), NEW_YORK, *SPRING, ("02:10, 2026-03-08 02:20 and 3 more do not",)),
    Case("the gap ends the span", ("30 2 * * *",), NEW_YORK, "2026-03-07T12:00", "2026-03-08T07:00",
         ("does not exist and is moved",)),
    Case("the gap comes after the span", ("30 2 * * *",), NEW_YORK, "2026-03-07T12:00", "2026-03-08T06:59:59"),
    Case("the gap was before the span", ("30 2 * * *",), NEW_YORK, "2026-03-08T07:01", "2026-03-10T00:00"),
    Case("a missing midnight", ("0 0 * * *",), "Africa/Cairo", "2026-04-22T12:00", "2026-04-24T12:00",
         ("(2026-04-23T22:00:00Z): 2026-04-24 00:00 does not exist and is moved to 2026-04-24 01:00",)),
    Case("a missing day", ("0 9 * * *",), "Pacific/Apia", "2011-12-28T12:00", "2011-12-31T12:00",
         ("2011-12-30 09:00 does not exist and is moved to 2011-12-31 00:00 local time, 2011-12-30T10:00:00Z",)),
    Case("a time in the fold comes twice", ("30 1 * * *",), NEW_YORK, *AUTUMN, (
        "in America/New_York the clock goes back from 2026-11-01 02:00 to 2026-11-01 01:00 (2026-11-01T06:00:00Z): "
        "2026-11-01 01:30 comes twice and runs both times, 2026-11-01T05:30:00Z and 2026-11-01T06:30:00Z",)),
    Case("or the first time only", ("30 1 * * *",), NEW_YORK, *AUTUMN,
         ("comes twice and runs the first time only, 2026-11-01T05:30:00Z (repeatedTimePolicy First)",),
         {"repeated_time_policy": RepeatedTimePolicy.FIRST}),
    Case("several come twice", ("*/30 1 * * *",), NEW_YORK, *AUTUMN,
         ("01:30 come twice and run both times, the first of them 2026-11-01T05:00:00Z and 2026-11-01T06:00:00Z",)),
    Case("the span begins inside of the second pass", ("30 1 * * *",), NEW_YORK, "2026-11-01T06:15", "2026-11-01T12:00",
         ("comes twice",)),
    Case("half an hour", ("45 1 * * *",), "Australia/Lord_Howe", "2026-04-04T00:00", "2026-04-05T00:00",
         ("from 2026-04-05 02:00 to 2026-04-05 01:30 (2026-04-04T15:00:00Z): 2026-04-05 01:45 comes twice and runs both times, "
          "2026-04-04T14:45:00Z and 2026-04-04T15:15:00Z",)),
    Case("gap and fold of a year, in order", ("30 1,2 * * *",), NEW_YORK, "2026-01-01T00:00", "2027-01-01T00:00",
         ("2026-03-08 02:30 does not exist", "2026-11-01 01:30 comes twice")),
    Case("each expression of a union for itself", ("30 2 * * *", "15 * * * *"), NEW_YORK, *SPRING,
         ("02:30 does not exist and is moved", "02:15 does not exist and is left out, since '15 * * * *'")),
    Case("either day field", ("0 9 13 * fri",), "UTC", "2026-02-01T00:00", "2026-03-01T00:00",
         ("'0 9 13 * fri' restricts both day-of-month and day-of-week: a day that matches either of them counts, for example "
          "2026-02-06, 2026-02-13, 2026-02-20 (write '*'",)),
    Case("a step is a restriction, too", ("0 9 */2 * 1",), "UTC", "2026-02-01T00:00", "2026-02-02T00:00", ("restricts both",)),
    Case("either day field at the end of the calendar", ("0 9 13 * fri",), "UTC", "9999-12-30T00:00", "9999-12-31T00:00",
         ("for example 9999-12-31 (write",)),
    Case("one day field", ("0 9 * * fri",), "UTC", "2026-02-01T00:00", "2026-03-01T00:00"),
    Case("excluded dates", ("0 */6 * * *",), NEW_YORK, "2026-12-24T00:00", "2026-12-27T00:00",
         ("2026-12-25 is in excludeDates: 4 instants on it will be skipped, on record",),
         {"exclude_dates": ("2026-12-25", "2027-12-25")}),
    Case("a part of an excluded date", ("0 */6 * * *",), NEW_YORK, "2026-12-25T12:00", "2026-12-25T18:00",
         ("2026-12-25 is in excludeDates: 1 instant on it",), {"exclude_dates": ("2026-12-25",)}),
    Case("excluded without an instant", ("0 0 1 * *",), NEW_YORK, "2026-12-01T00:00", "2027-01-01T00:00", (),
         {"exclude_dates": ("2026-12-25", "0001-01-01", "9999-12-31")}),
    Case("nothing outside of the validity", ("30 2 * * *",), NEW_YORK, *SPRING, (), {"end_time": "2026-03-08T00:00:00Z"}),
    Case("nothing before it", ("30 2 * * *",), NEW_YORK, *SPRING, (), {"start_time": "2026-03-08T12:00:00Z"}),
]
# fmt: on


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said(case: Case) -> None:
    """R5, R6."""
    trigger = trigger_of(a_spec(schedule=None, schedules=case.schedules, time_zone=case.zone, **case.fields))
    said = list(explain(trigger, after=at(case.after), until=at(case.until)))
    assert len(said) == len(case.want), said
    for sentence, part in zip(said, case.want, strict=True):
        assert part in sentence


def test_one_shots_are_said_to_be_excluded_and_nothing_else() -> None:
    fields: dict[str, Any] = {"run_once_time": "2026-11-01T05:30:00Z", "time_zone": NEW_YORK}
    span = {"after": at("2026-10-01T00:00"), "until": at("2026-12-01T00:00")}
    assert not list(explain(trigger_of(a_spec(**fields)), **span))
    (said,) = explain(trigger_of(a_spec(**fields, exclude_dates=("2026-11-01",))), **span)
    assert said == "2026-11-01 is in excludeDates: 1 instant on it will be skipped, on record"


def test_a_thousand_leap_days_take_no_time() -> None:
    """Only months in which something can fire are looked at."""
    trigger = trigger_of(a_spec(schedule="30 2 29 2 *", time_zone=NEW_YORK))
    assert not list(explain(trigger, after=at("2026-01-01T00:00"), until=at("3026-01-01T00:00")))


def test_local_time_has_an_offset_and_a_zone() -> None:
    lord_howe = trigger_of(a_spec(schedule="0 * * * *", time_zone="Australia/Lord_Howe"))
    assert local_text(lord_howe, at("2026-04-04T15:30")) == "Sun 2026-04-05 02:00:00+10:30 Australia/Lord_Howe"
    once = trigger_of(a_spec(run_once_time="2026-08-27T18:00:00Z", time_zone="Asia/Shanghai"))
    assert local_text(once, at("2026-08-27T18:00")) == "Fri 2026-08-28 02:00:00+08:00 Asia/Shanghai"
