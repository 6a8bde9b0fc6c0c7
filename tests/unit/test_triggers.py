"""One-shot instants, and the days that a trigger names."""

from __future__ import annotations

import pytest

from workflow_schedules.core.due_times import parse_cron
from workflow_schedules.core.triggers import InvalidTriggerError, matching_days, parse_one_shot
from workflow_schedules.core.zones import to_utc

INSTANTS = [
    ("UTC", "2026-09-08T12:00:00Z", "2026-09-08T12:00:00"),
    (
        "an offset east: the same instant, the same occurrence (K-044)",
        "2026-09-08T17:30:00+05:30",
        "2026-09-08T12:00:00",
    ),
    ("a wall time that New York does not have: the offset wins", "2026-03-08T02:30:00-05:00", "2026-03-08T07:30:00"),
    ("the first pass of a repeated hour", "2026-11-01T01:30:00-04:00", "2026-11-01T05:30:00"),
    ("the second pass", "2026-11-01T01:30:00-05:00", "2026-11-01T06:30:00"),
    ("fractions are cut", "2026-01-01T00:00:00.999999999Z", "2026-01-01T00:00:00"),
    ("small letters", "2026-01-01t00:00:00z", "2026-01-01T00:00:00"),
    ("long past: accepted, complete at once", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00"),
    ("a leap day", "2028-02-29T00:00:00Z", "2028-02-29T00:00:00"),
]


@pytest.mark.parametrize(("text", "want"), [row[1:] for row in INSTANTS], ids=[row[0] for row in INSTANTS])
def test_one_shot(text: str, want: str) -> None:
    """R7."""
    assert to_utc(parse_one_shot(text).instant).replace(tzinfo=None).isoformat() == want


@pytest.mark.parametrize(
    "text",
    [
        "2026-09-08T12:00:00",
        "2026-09-08",
        "2026-09-08 12:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-06-30T23:59:60Z",
        "2026-01-01T24:00:00Z",
        "2026-09-08T12:00:00+25:00",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-10:00",
        "2026-09-08T12:00:00Z\n",
        "\u0662026-09-08T12:00:00Z",
        "2026-W37-2T12:00:00Z",
        "tomorrow",
        "",
    ],
    ids=repr,
)
def test_no_instant_is_refused_with_what_to_write(text: str) -> None:
    """R7, R36: never rounded, never guessed."""
    with pytest.raises(
        InvalidTriggerError, match=r"spec\.runOnceTime: .*write (an RFC 3339 time with an offset|a time)"
    ) as caught:
        parse_one_shot(text)
    assert (caught.value.field, caught.value.reason) == ("runOnceTime", "InvalidSchedule")


DAYS = [
    ("the last day", "L", "*", (2028, 2), {29}),
    ("the last day beside another", "15,L", "*", (2027, 2), {15, 28}),
    ("a working day is itself", "15W", "*", (2026, 1), {15}),
    ("Saturday goes back", "W17", "*", (2026, 1), {16}),
    ("Sunday goes forward", "18W", "*", (2026, 1), {19}),
    ("Saturday the first stays in its month", "1W", "*", (2026, 8), {3}),
    ("Sunday the last stays in its month", "31W", "*", (2026, 5), {29}),
    ("a day that the month lacks is its last", "31W", "*", (2026, 2), {27}),
    ("the third Friday", "*", "5#3", (2026, 1), {16}),
    ("a fifth Friday that is none", "*", "5#5", (2026, 2), set()),
    ("the last Sunday, written seven", "*", "L7", (2026, 2), {22}),
    ("either one", "13", "5", (2026, 2), {6, 13, 20, 27}),
    ("either one, full range of days", "1-31", "*/2", (2026, 2), set(range(1, 29))),
    ("either one, last day or first Monday", "L", "1#1", (2026, 2), {2, 28}),
]


@pytest.mark.parametrize(("days", "weekdays", "month", "want"), [row[1:] for row in DAYS], ids=[row[0] for row in DAYS])
def test_matching_days(days: str, weekdays: str, month: tuple[int, int], want: set[int]) -> None:
    """R5."""
    assert matching_days(parse_cron(f"0 0 {days} * {weekdays}", "UTC"), *month) == want


def test_a_month_that_is_not_named_has_no_days() -> None:
    assert not matching_days(parse_cron("0 0 * 3 *", "UTC"), 2026, 2)
