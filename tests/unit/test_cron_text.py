"""The language of cron expressions: what is read, what is refused, and that each refusal says what to write."""

from __future__ import annotations

import re
from itertools import product

import pytest
from croniter import croniter

from workflow_schedules.core.cron_text import CronTextError, read
from workflow_schedules.core.due_times import parse_cron
from workflow_schedules.core.triggers import InvalidTriggerError

REFUSED = [
    ("three fields", "*   *   *", "it has 3 fields, not five: write minute hour"),
    ("a field of seconds", "* * * * * *", "it has 6 fields.*no seconds"),
    ("seconds and years", "0 0 * * * 0 2030", "it has 7 fields.*no seconds, no years"),
    ("prose", "not-a-cron", "it has 1 fields, not five"),
    ("a macro", "@midnight", "macros are not read: write '0 0 \\* \\* \\*'"),
    ("a macro of hours", "  @hourly  ", "macros are not read: write '0 \\* \\* \\* \\*'"),
    ("an unknown macro", "@every 5m ", "macros are not read: write five fields"),
    ("a macro that no calendar can say", "@reboot", "macros are not read: write five fields"),
    ("a zone before it", "TZ=UTC 0 0 * * *", "put the zone's name in spec.timeZone"),
    ("a zone and nothing", "CRON_TZ=UTC", "put the zone's name in spec.timeZone"),
    ("a question mark", "0 0 ? * 1", "'\\?' is not read: write '\\*'"),
    ("hashed", "H * * * *", "minute: 'h' is hashed or random: write a number"),
    ("hashed in a range", "H(0-29)/10 * * * *", "minute: .* is hashed or random"),
    ("random", "R * * * *", "minute: 'r' is hashed or random"),
    ("minute 60", "60 * * * *", "minute: '60' is not read: write a number 0-59"),
    ("hour 24", "0 24 * * *", "hour: '24' is not read: write a number 0-23"),
    ("day 32", "0 0 32 * *", "day-of-month: '32' is not read: write a number 1-31"),
    ("day 0", "0 0 0 * *", "day-of-month: '0' is not read: write a number 1-31"),
    ("month 0", "0 0 * 0 *", "month: '0' is not read: write a number 1-12 or a name such as jan"),
    ("month 0 in a range", "0 0 * 0-0 *", "month: '0' in '0-0' is not read"),
    ("day 0 in a range", "0 0 0-0 * *", "day-of-month: '0' in '0-0' is not read"),
    ("weekday 8", "0 0 * * 8", "day-of-week: '8' is not read: write a number 0-7 or a name such as sun"),
    ("step 0", "*/0 * * * *", "minute: '\\*/0' has step 0: write a step of 1 or more"),
    ("negative", "-5 * * * *", "minute: '' in '-5' is not read"),
    ("a comma at the end", "1, * * * *", "minute: '' is not read: write a number 0-59"),
    ("a fraction", "1.5 * * * *", "minute: '1.5' is not read"),
    ("two dashes", "1-2-3 * * * *", "minute: '1-2-3' is no range: write a-b"),
    ("two steps", "*/5/2 * * * *", "minute: '\\*/5/2' is not read"),
    ("hexadecimal", "0x5 * * * *", "minute: '0x5' is not read"),
    ("a month in full", "0 0 * january *", "month: 'january' is not read: write a number 1-12"),
    ("a weekday in the month", "0 0 * mon *", "month: 'mon' is not read"),
    ("a digit of another script", "\u0663 0 * * *", "only ASCII is read.*digits 0-9"),
    ("a blank that is none", "0 0\u00a0* * *", "only ASCII is read: separate the fields with ordinary blanks"),
    ("a line break", "0 0\n* * *", "only ASCII is read: separate the fields with ordinary blanks"),
    ("a control character", "0 0\x1c* * *", "only ASCII is read"),
    ("NUL", "0 0 * * *\0", "only ASCII is read"),
    ("a range to the last day", "0 0 31-L * *", "day-of-month: 'l' in '31-l' is not read"),
    ("a step from the last day", "0 0 L/2 * *", "day-of-month: 'l' in 'l/2' is not read"),
    ("the last weekday, written behind", "0 0 * * 5L", "day-of-week: '5l' is not read"),
    ("the last working day", "0 0 LW * *", "day-of-month: 'lw' is not read"),
    ("a working day near no day", "0 0 0W * *", "day-of-month: '0w' is not read: write a number 1-31"),
    ("a working day near day 32", "0 0 32W * *", "day-of-month: '32w' is not read"),
    (
        "a list with a working day",
        "0 0 15W,20 * *",
        "'15w,20' lists a nearest working day: write one alone, such as 15W",
    ),
    ("the sixth Monday", "0 0 * * 1#6", "day-of-week: '1#6' is not read"),
    ("days of a month run backwards", "0 0 28-3 * *", "'28-3' runs backwards: write two ranges, 28-31,1-3"),
    ("minutes run backwards", "50-10 * * * *", "'50-10' runs backwards: write two ranges, 50-59,0-10"),
    ("a weekday beside an nth one of it", "0 0 * * 1,1#2", "mixes weekdays with nth ones: write only one kind"),
    ("a weekday beside a last one", "0 0 * * L5,1", "mixes weekdays with nth ones: write only one kind"),
]


@pytest.mark.parametrize(("expression", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_with_what_to_write(expression: str, message: str) -> None:
    """R5, R36: field, value, and what would be accepted; never accepted and silent (K-073, K-075)."""
    with pytest.raises(CronTextError, match=message):
        read(expression)
    if 9 <= len(expression) <= 120:
        with pytest.raises(InvalidTriggerError, match=r"spec\.schedule: .* is refused: .*" + message) as caught:
            parse_cron(expression, "UTC")
        assert (caught.value.field, caught.value.reason) == ("schedule", "InvalidSchedule")


WEEK = range(7)
MEANT = [
    ("a range of one", "5-5 * * * *", "minutes", {5}),
    ("a range of one hour", "0 3-3 * * *", "hours", {3}),
    ("a range of one day", "0 0 1-1 * *", "days", {1}),
    ("a range of one month", "0 0 1 6-6 *", "months", {6}),
    ("a range of Sunday", "0 0 * * 7-7", "weekdays", {0}),
    ("seven is Sunday", "0 0 * * 7", "weekdays", {0}),
    ("the whole week from zero to seven", "0 0 * * 0-7", "weekdays", set(WEEK)),
    ("the whole week from one to seven", "0 0 * * 1-7", "weekdays", set(WEEK)),
    ("to Sunday by name", "0 0 * * fri-sun", "weekdays", {5, 6, 0}),
    ("from Sunday, written seven", "0 0 * * 7-2", "weekdays", {0, 1, 2}),
    ("around the end of the week", "0 0 * * 6-0", "weekdays", {6, 0}),
    ("around it by name", "0 0 * * fri-mon", "weekdays", {5, 6, 0, 1}),
    ("around midnight", "0 22-2 * * *", "hours", {22, 23, 0, 1, 2}),
    ("around midnight with a step", "0 22-4/3 * * *", "hours", {22, 1, 4}),
    ("around New Year", "0 0 1 nov-feb *", "months", {11, 12, 1, 2}),
    ("from a weekday by steps", "0 0 * * 5/2", "weekdays", {5, 0}),
    ("from Sunday by steps", "0 0 * * 7/2", "weekdays", {0}),
    ("from an hour by steps", "0 20/2 * * *", "hours", {20, 22}),
    ("a step beyond the field", "*/100 * * * *", "minutes", {0}),
    ("a step of any size", "*/99999999999 * * * *", "minutes", {0}),
    ("leading zeros", "05 007 * * *", "hours", {7}),
    ("a name in capitals", "0 0 * JAN *", "months", {1}),
    ("a name with a step", "0 0 * jan/6 *", "months", {1, 7}),
    ("a list that overlaps", "1-5,3,4-6 * * * *", "minutes", {1, 2, 3, 4, 5, 6}),
    ("a star in a list", "0 *,5 * * *", "hours", set(range(24))),
]


@pytest.mark.parametrize(("expression", "field", "want"), [row[1:] for row in MEANT], ids=[row[0] for row in MEANT])
def test_read_as_meant(expression: str, field: str, want: set[int]) -> None:
    """R5, K-004."""
    assert set(getattr(parse_cron(expression, "UTC"), field)) == want


@pytest.mark.parametrize(
    ("expression", "nth"),
    [
        ("0 0 * * 5#3", {(5, 3)}),
        ("0 0 * * FRI#3", {(5, 3)}),
        ("0 0 * * 7#1", {(0, 1)}),
        ("0 0 * * L5", {(5, -1)}),
        ("0 0 * * L7", {(0, -1)}),
        ("0 0 * * 1#1,2#2,L3", {(1, 1), (2, 2), (3, -1)}),
    ],
)
def test_nth_weekdays(expression: str, nth: set[tuple[int, int]]) -> None:
    trigger = parse_cron(expression, "UTC")
    assert trigger.nth_weekdays == nth
    assert not trigger.weekdays


@pytest.mark.parametrize(
    ("expression", "days", "weekdays"),
    [
        ("0 0 * * *", False, False),
        ("0 0 */1 * *", True, False),
        ("0 0 1-31 * *", True, False),
        ("0 0 * * 0-7", False, True),
        ("0 0 * * */1", False, True),
        ("0 0 L * L5", True, True),
        ("0 0 *,1 * *", True, False),
    ],
)
def test_only_a_bare_star_is_unrestricted(expression: str, days: bool, weekdays: bool) -> None:
    """R5."""
    text = read(expression)
    assert (text.restricted_days, text.restricted_weekdays) == (days, weekdays)


@pytest.mark.parametrize(
    ("place", "field", "first", "size"), [(1, "hours", 0, 24), (3, "months", 1, 12), (4, "weekdays", 0, 7)]
)
def test_a_range_around_the_end(place: int, field: str, first: int, size: int) -> None:
    """R5: without a step it is croniter's; with one, every step-th value (croniter is off by one: test_croniter.py)."""
    for low, high, step in product(range(first + 1, first + size), range(first, first + size), range(1, 5)):
        if low <= high:
            continue
        fields = ["0", "0", "*", "*", "*"]
        fields[place] = f"{low}-{high}/{step}"
        got = set(getattr(parse_cron(" ".join(fields), "UTC"), field))
        assert got == set([*range(low, first + size), *range(first, high + 1)][::step]), fields[place]
        if step == 1:
            theirs = croniter.expand(" ".join(fields))[0][place]
            assert got == (set(range(first, first + size)) if theirs == ["*"] else set(theirs)), fields[place]


def test_what_croniter_reads_is_rid_of_what_it_misreads() -> None:
    """No range is left for croniter to read."""
    assert not re.search(r"\d-\d|[a-z]-", read("1-5 2-3/2 5-9 feb-mar mon-fri").normalised)
