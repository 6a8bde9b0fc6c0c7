"""Where other schedulers fire at other instants on the same input, and why: what to expect when moving here.

Facts about documented behaviour, restated: cron(8) and crontab(5) of cronie and Debian (a clock that jumps by less than three
hours; fields that begin with a star), robfig/cron v3, which Kubernetes CronJob uses (wall-clock matching; what a gap hides
is not run), and Quartz, whose manual promises nothing about gaps and folds (a skip or a repeat), so that it has no instants
here, only its syntax. Rows without an explanation are where all agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

import pytest
from cronsim import CronSim

from workflow_schedules.core.due_times import due_times, parse_cron
from workflow_schedules.core.triggers import InvalidTriggerError
from workflow_schedules.core.zones import load_zone

NEW_YORK = "America/New_York"


@dataclass(frozen=True, slots=True)
class Case:
    """The first instants after a start.

    Attributes:
        ours: as many as the longest answer of the others needs.
        others: answers of other schedulers that differ from ours, by their name.
        why: each difference in one sentence; empty where all agree.
    """

    name: str
    expression: str
    zone: str
    after: str
    ours: str
    others: dict[str, str]
    why: str = ""


# fmt: off
CASES = [
    Case("an ordinary day", "0 12 * * *", NEW_YORK, "2026-06-01T00:00", "2026-06-01T16:00 2026-06-02T16:00", {}),
    Case("through a gap beside it", "0 12 * * *", NEW_YORK, "2026-03-07T12:00", "2026-03-07T17:00 2026-03-08T16:00", {}),
    Case("seven is Sunday", "0 0 * * 7", "UTC", "2026-01-01T00:00", "2026-01-04T00:00 2026-01-11T00:00", {}),
    Case("either day field", "0 0 13 * 5", "UTC", "2026-02-01T00:00",
         "2026-02-06T00:00 2026-02-13T00:00 2026-02-20T00:00", {}),
    Case("a wall time in a gap", "30 2 * * *", NEW_YORK, "2026-03-07T12:00", "2026-03-08T07:00 2026-03-09T06:30",
         {"robfig": "2026-03-09T06:30 2026-03-10T06:30"},
         "cronie and we run it at the end of the gap, robfig/cron matches wall-clock times and so leaves that day out, which "
         "skippedTimePolicy Skip gives here."),
    Case("a step of hours over a gap", "30 */2 * * *", NEW_YORK, "2026-03-08T05:31", "2026-03-08T07:00 2026-03-08T08:30",
         {"cronie": "2026-03-08T08:30 2026-03-08T10:30", "robfig": "2026-03-08T08:30 2026-03-08T10:30"},
         "cronie takes an hour field that begins with a star for a wish to follow the clock and makes up nothing, robfig/cron "
         "never does, and we make up for every expression that does not run in each of the 24 hours."),
    Case("every half hour through a gap", "*/30 * * * *", NEW_YORK, "2026-03-08T06:00",
         "2026-03-08T06:30 2026-03-08T07:00", {}),
    Case("a wall time in a fold", "30 1 * * *", NEW_YORK, "2026-11-01T04:00",
         "2026-11-01T05:30 2026-11-01T06:30 2026-11-02T06:30", {"cronie": "2026-11-01T05:30 2026-11-02T06:30"},
         "cronie remembers that it ran a fixed time, while we and robfig/cron run whenever the clock shows it; "
         "repeatedTimePolicy First is cronie's answer."),
    Case("every half hour through a fold", "*/30 * * * *", NEW_YORK, "2026-11-01T05:00",
         "2026-11-01T05:30 2026-11-01T06:00 2026-11-01T06:30 2026-11-01T07:00", {}),
    Case("a list of hours through a fold", "0 0,1,2 * * *", NEW_YORK, "2026-11-01T04:30",
         "2026-11-01T05:00 2026-11-01T06:00 2026-11-01T07:00", {"cronie": "2026-11-01T05:00 2026-11-01T07:00"},
         "cronie runs fixed hours once though the clock shows one of them twice."),
    Case("a missing midnight", "0 0 * * *", "Africa/Cairo", "2026-04-22T23:00", "2026-04-23T22:00 2026-04-24T21:00",
         {"robfig": "2026-04-24T21:00 2026-04-25T21:00"},
         "that day has no midnight: cronie and we run when it begins, at 01:00, and robfig/cron waits for the next midnight."),
    Case("a missing day", "0 12 * * *", "Pacific/Apia", "2011-12-29T20:00",
         "2011-12-29T22:00 2011-12-30T10:00 2011-12-30T22:00",
         {"cronie": "2011-12-29T22:00 2011-12-30T22:00", "robfig": "2011-12-29T22:00 2011-12-30T22:00"},
         "cronie takes a jump of more than three hours for a correction of the clock and makes up nothing, as robfig/cron never "
         "does; we treat it as any other gap."),
    Case("a day field with a step, and a weekday", "0 0 */10 * 1", "UTC", "2026-01-01T00:00",
         "2026-01-05T00:00 2026-01-11T00:00 2026-01-12T00:00",
         {"cronie": "2026-05-11T00:00 2026-06-01T00:00 2026-08-31T00:00"},
         "cronie joins the day fields with AND as soon as one of them begins with a star, a step included; for robfig/cron and "
         "us only a bare star is unrestricted."),
    Case("a full range of weekdays beside a day", "0 0 13 * 0-6", "UTC", "2026-01-01T00:00",
         "2026-01-02T00:00 2026-01-03T00:00", {}),
]
REFUSED_HERE = [
    ("0 0 12 * * *", "quartz", "Quartz reads a field of seconds first; the five fields here begin with minutes.", "0 12 * * *"),
    ("0 0 ? * 1", "quartz robfig", "A question mark says 'no value' to Quartz and a star to robfig/cron.", "0 0 * * 1"),
    ("@hourly  ", "cronie robfig", "Both read macros; here the five fields are written out.", "0 * * * *"),
    ("@every 90m", "robfig", "robfig/cron counts from its own start; here no process matters.", "0 */2 * * *"),
    ("TZ=UTC 0 0 * * *", "robfig", "robfig/cron reads a zone in front; here it is the field timeZone.", "0 0 * * *"),
    ("0 0 LW * *", "quartz", "Quartz has a last working day of the month; here nothing stands for it.", "0 0 L * *"),
    ("0 0 * * 6L", "quartz", "Quartz writes the last Friday as 6L, counting from Sunday as 1.", "0 0 * * L5"),
    ("0 0 31 2 *", "cronie robfig", "cronie and robfig/cron take what never comes.", "0 0 L 2 *"),
]
READ_ONLY_HERE = [
    ("0 22-2 * * *", "2026-01-01T22:00 2026-01-01T23:00", "A range that wraps: cronie and robfig/cron want two ranges."),
    ("0 0 * * 5#3", "2026-01-16T00:00 2026-02-20T00:00", "The third Friday: Quartz counts from Sunday as 1 and writes 6#3."),
    ("0 0 15W * *", "2026-01-15T00:00 2026-02-16T00:00", "The working day near the 15th, as in Quartz: the others have none."),
    ("0 0 L * *", "2026-01-31T00:00 2026-02-28T00:00", "The last day of the month, as in Quartz: the others have none."),
]
# fmt: on


def first(expression: str, zone: str, after: str, count: int) -> str:
    start = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = due_times(parse_cron(expression, zone), after=start, until=datetime.max.replace(tzinfo=UTC))
    return " ".join(f"{instant:%Y-%m-%dT%H:%M}" for instant in islice(found, count))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ours_beside_theirs(case: Case) -> None:
    """R5: our answer is fixed, and every difference is one that is explained."""
    assert first(case.expression, case.zone, case.after, len(case.ours.split())) == case.ours
    assert case.others.keys() <= {"cronie", "robfig"}
    for name, theirs in case.others.items():
        assert not case.ours.startswith(theirs), name
    assert bool(case.others) == bool(case.why)


@pytest.mark.parametrize(("expression", "where", "why", "instead"), REFUSED_HERE, ids=[row[0] for row in REFUSED_HERE])
def test_read_elsewhere_and_refused_here(expression: str, where: str, why: str, instead: str) -> None:
    """R5: with a message, never silently; and what to write instead is read."""
    assert where
    assert why
    with pytest.raises(InvalidTriggerError, match=r"refused: .*(write|put|name) "):
        parse_cron(expression, "UTC")
    assert first(instead, "UTC", "2026-01-01T00:00", 1)


@pytest.mark.parametrize(("expression", "ours", "why"), READ_ONLY_HERE, ids=[row[0] for row in READ_ONLY_HERE])
def test_read_here_and_not_everywhere(expression: str, ours: str, why: str) -> None:
    assert why
    assert first(expression, "UTC", "2026-01-01T03:00", 2) == ours


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cronies_answers_are_what_cronsim_says(case: Case) -> None:
    """cronsim follows Debian's cron, but for jumps of more than three hours, which it treats as any other."""
    theirs = case.others.get("cronie", case.ours).split()
    start = datetime.fromisoformat(case.after).replace(tzinfo=UTC).astimezone(load_zone(case.zone))
    found = [f"{at.astimezone(UTC):%Y-%m-%dT%H:%M}" for at in islice(CronSim(case.expression, start), len(theirs))]
    assert (found == theirs) is (case.zone != "Pacific/Apia")
