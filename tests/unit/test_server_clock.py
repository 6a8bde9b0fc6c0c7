"""What the operator believes the API server's clock shows, by answers that may be long on their way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import NamedTuple

import pytest

from workflow_schedules.cluster.server_clock import ServerClock

ZERO = datetime(2026, 3, 2, 10, tzinfo=UTC)


class Heard(NamedTuple):
    """An answer; all in seconds, those of the server's clock since ZERO."""

    date: int
    sent: float
    received: float


class Row(NamedTuple):
    name: str
    heard: list[Heard]
    want: float  # at monotonic second 100


FIRST = Heard(10, 10.0, 10.1)  # 0.1 s slow: what is known from it is 0.1 s behind

ROWS = [
    Row("one answer", [FIRST], 99.9),
    Row("a quick one that knows no better", [FIRST, Heard(50, 50.9, 51.0)], 99.9),
    Row("a quick one that knows better", [Heard(10, 10.9, 11.0), Heard(50, 50.0, 50.0)], 100.0),
    Row("a slow one does not set the clock back", [FIRST, Heard(50, 50.0, 58.0)], 99.9),
    Row("neither does one that the server was long about", [FIRST, Heard(58, 50.0, 58.2)], 99.9),
    Row("a slow one is better than none", [Heard(50, 50.0, 58.0)], 92.0),
    Row("and the next quick one mends it", [Heard(50, 50.0, 58.0), Heard(60, 60.0, 60.0)], 100.0),
    Row("a clock that was set forward is followed", [FIRST, Heard(350, 50.0, 50.0)], 400.0),
    Row("a clock that was set back is followed", [FIRST, Heard(20, 50.0, 50.0)], 70.0),
    Row("also by a slow answer", [FIRST, Heard(20, 50.0, 58.0)], 62.0),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_known_of_the_time(row: Row) -> None:
    """P13: never ahead of the server, and behind it by no more than the best answer was."""
    clock = ServerClock()
    for heard in row.heard:
        date = format_datetime(ZERO + timedelta(seconds=heard.date), usegmt=True)
        clock.read(date, sent_at=heard.sent, received_at=heard.received)
    known = clock.now(100.0)
    assert known is not None
    assert (known - ZERO).total_seconds() == pytest.approx(row.want)


@pytest.mark.parametrize("date", ["", "soon", "Mon, 02 Mar 2026 10:00:00 -0000"])
def test_a_date_that_says_nothing_changes_nothing(date: str) -> None:
    clock = ServerClock()
    clock.read(date, sent_at=1.0, received_at=2.0)
    assert clock.now(3.0) is None
