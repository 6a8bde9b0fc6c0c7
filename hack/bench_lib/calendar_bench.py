"""What one question to the calendar costs: medians of one run, beside croniter and cronsim on the same machine.

The other libraries are asked what they can answer: neither counts, and croniter finds out on use that nothing ever fires.
A CronSim can't be given another start, so that its questions about the next instant include its parsing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, cycle, islice
from pathlib import Path
from typing import NamedTuple

from croniter import croniter
from cronsim import CronSim, CronSimError

from workflow_schedules.core.due_times import count_due_times, latest_due_time, next_due_time, parse_cron
from workflow_schedules.core.triggers import InvalidTriggerError
from workflow_schedules.core.zones import load_zone

START = datetime(2026, 3, 7, 12, tzinfo=UTC)
YEAR = timedelta(days=365)
SECONDS_PER_ROW = 0.4


class Sample(NamedTuple):
    expression: str
    zone: str


SAMPLES = [
    Sample("* * * * *", "UTC"),
    Sample("*/15 * * * *", "America/New_York"),
    Sample("30 2 * * *", "America/New_York"),
    Sample("0 9-17 * * mon-fri", "Europe/Berlin"),
    Sample("0 0 1 * *", "Asia/Tokyo"),
    Sample("15 4 13 * 5", "Australia/Lord_Howe"),
    Sample("0 0 29 2 *", "UTC"),
]
IMPOSSIBLE = ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question.

    Attributes:
        limit: microseconds that are allowed at the median, or None.
        ours, croniter, cronsim: microseconds at the median; None where it can't be asked.
    """

    name: str
    limit: float | None
    ours: float
    croniter: float | None = None
    cronsim: float | None = None


def median(calls: Iterator[Callable[[], object]]) -> float:
    """Return the median time of calls, in microseconds, after some that warm up."""
    for call in islice(calls, 2 * len(SAMPLES)):
        call()
    found: list[float] = []
    give_up_at = time.perf_counter() + SECONDS_PER_ROW
    while len(found) < 2 * len(SAMPLES) or time.perf_counter() < give_up_at:
        call = next(calls)
        started = time.perf_counter()
        call()
        found.append(time.perf_counter() - started)
    return statistics.median(found) * 1e6


def next_rows() -> Iterator[Row]:
    triggers = [parse_cron(*sample) for sample in SAMPLES]
    zones = [load_zone(sample.zone) for sample in SAMPLES]
    parsed = [croniter(sample.expression) for sample in SAMPLES]
    starts = [START + n * timedelta(hours=7) for n in range(97)]

    def calls(ask: Callable[[int, datetime], object]) -> Iterator[Callable[[], object]]:
        for number, start in zip(count(), cycle(starts), strict=False):
            yield lambda number=number, start=start: ask(number % len(SAMPLES), start)

    yield Row(
        name="next instant, parsed",
        limit=50,
        ours=median(calls(lambda n, start: next_due_time(triggers[n], after=start))),
        croniter=median(calls(lambda n, start: parsed[n].get_next(datetime, start_time=start.astimezone(zones[n])))),
        cronsim=median(calls(lambda n, start: next(CronSim(SAMPLES[n].expression, start.astimezone(zones[n]))))),
    )


def year_rows() -> Iterator[Row]:
    """Yield what an outage of a year costs: every call asks about another minute, so that nothing is remembered whole."""
    minutely, hourly = parse_cron("* * * * *", "America/New_York"), parse_cron("0 * * * *", "Europe/Berlin")
    zone = load_zone("America/New_York")
    until = (START + YEAR + timedelta(minutes=n) for n in count())
    yield Row(
        name="newest missed of a year",
        limit=5000,
        ours=median((lambda at=at: latest_due_time(minutely, after=START, until=at)) for at in until),
        croniter=median((lambda at=at: croniter("* * * * *", at.astimezone(zone)).get_prev()) for at in until),
        cronsim=median((lambda at=at: next(CronSim("* * * * *", at.astimezone(zone), reverse=True))) for at in until),
    )
    for name, trigger in {"minutely": minutely, "hourly": hourly}.items():
        yield Row(
            name=f"count of a year, {name}",
            limit=None,
            ours=median((lambda at=at: count_due_times(trigger, after=START, until=at)) for at in until),  # noqa: B023
        )


def parse_rows() -> Iterator[Row]:
    texts = [f"{minute},{minute + 1} {hour} * * mon-fri" for minute in range(59) for hour in range(24)]

    def fresh() -> Iterator[str]:
        while True:
            parse_cron.cache_clear()
            yield from texts

    yield Row(
        name="parse, never seen",
        limit=1000,
        ours=median((lambda text=text: parse_cron(text, "Europe/Berlin")) for text in fresh()),
        croniter=median((lambda text=text: croniter(text, START)) for text in fresh()),
        cronsim=median((lambda text=text: CronSim(text, START)) for text in fresh()),
    )
    yield Row(
        name="parse, seen before",
        limit=1000,
        ours=median((lambda text=text: parse_cron(text, "Europe/Berlin")) for text in cycle(texts[:7])),
    )
    yield Row(
        name="refuse an impossible date",
        limit=10_000,
        ours=median((lambda text=text: refused(text, parse_cron)) for text in cycle(IMPOSSIBLE)),
        croniter=median((lambda text=text: refused(text, first_of_croniter)) for text in cycle(IMPOSSIBLE)),
        cronsim=median((lambda text=text: refused(text, first_of_cronsim)) for text in cycle(IMPOSSIBLE)),
    )


def refused(text: str, ask: Callable[[str, str], object]) -> None:
    try:
        ask(text, "UTC")
    except (InvalidTriggerError, ValueError, StopIteration, CronSimError):
        return
    raise AssertionError(text)


def first_of_croniter(text: str, _zone: str) -> object:
    return croniter(text, START).get_next()


def first_of_cronsim(text: str, _zone: str) -> object:
    return next(CronSim(text, START))


def ratio(theirs: float | None, ours: float) -> str:
    return "-" if theirs is None else f"{theirs:,.1f} ({theirs / ours:.1f}x)"


def main() -> int:
    parser = argparse.ArgumentParser(prog="hack/bench calendar", description=__doc__)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows there, too")
    options = parser.parse_args()
    rows = [*next_rows(), *year_rows(), *parse_rows()]
    print(f"{'microseconds, median of one run':32}{'limit':>8}{'ours':>12}{'croniter':>22}{'cronsim':>22}")
    for row in rows:
        limit = "-" if row.limit is None else f"{row.limit:,.0f}"
        print(
            f"{row.name:32}{limit:>8}{row.ours:>12,.1f}{ratio(row.croniter, row.ours):>22}{ratio(row.cronsim, row.ours):>22}"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    slow = [row.name for row in rows if row.limit is not None and row.ours > row.limit]
    if slow:
        print(f"hack/bench: over the limit: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
