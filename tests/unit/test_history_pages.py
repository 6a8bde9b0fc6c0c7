"""Pages of a history: oldest first, each row once, whatever happens between two pages (R11, R29, R30)."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import UID, a_record, an_admission, at
from workflow_schedules.api.occurrence import (
    Cause,
    Decision,
    Outcome,
    ScheduleOccurrenceSpec,
    ScheduleOccurrenceStatus,
    ScheduleRef,
    Span,
)
from workflow_schedules.core.history_pages import HistoryPage, HistoryRefusedError, HistoryRow, history_page
from workflow_schedules.core.model import ObjectRef, Record

OTHER_UID = "5c4ed01e-0000-4000-8000-000000000002"


def a_request(
    name: str, asked: str = "10:00", *, backfill: str | None = None, created_at: datetime | None = None
) -> Record:
    """Build a request; a time makes it a backfill."""
    return Record(
        ref=ObjectRef(namespace="team", name=name),
        uid=f"uid-of-{name}",
        resource_version="7",
        created_at=created_at or at(asked),
        spec=ScheduleOccurrenceSpec(
            schedule_ref=ScheduleRef(name="hourly"),
            cause=Cause.BACKFILL if backfill else Cause.MANUAL,
            scheduled_time=at(backfill) if backfill else None,
        ),
        status=ScheduleOccurrenceStatus(),
    )


def a_skip(number: int, scheduled: str, **fields: object) -> Record:
    instant = at(scheduled)
    fields = {"scheduled_time": instant, "consumed": instant, "reason": "SkippedOverlap", **fields}
    return a_record(number, Decision.SKIPPED_OVERLAP, **fields)


def label(row: HistoryRow) -> str:
    """Name a row for a table: the number of a record, the name of a request, `?` and the instant of what waits."""
    if row.name is None:
        return f"?{row.time:%H:%M}"
    return row.name[-9:].lstrip("0") if row.name.startswith("hourly-") else row.name


def page(records: list[Record], cursor: str | None = None, *, limit: int = 10, **asked: object) -> HistoryPage:
    return history_page(records, **{"uid": UID, "candidates": (), "limit": limit, "cursor": cursor, **asked})


def pages(records: list[Record], **asked: object) -> list[str]:
    """Read to the end; return the labels of each page."""
    found, cursor = [], None
    while True:
        assert len(found) < 50, "it never ends"
        got = page(records, cursor, **asked)
        found.append(" ".join(map(label, got.rows)))
        cursor = got.next_cursor
        if cursor is None:
            return found


HISTORY = [a_record(1, created_at=at("09:30")), a_skip(2, "10:00"), a_skip(3, "11:00"), a_skip(4, "12:00")]


@dataclass(frozen=True)
class Case:
    name: str
    want: list[str]
    records: list[Record] = field(default_factory=lambda: HISTORY)
    candidates: tuple[datetime, ...] = ()
    limit: int = 10
    with_baselines: bool = False


CASES = [
    Case("nothing yet is one empty page", [""], []),
    Case("oldest first, whatever order they come in", ["2 3 4"], HISTORY[::-1]),
    Case("Baselines only when asked for (R11)", ["1 2 3 4"], with_baselines=True),
    Case("only a Baseline: an empty page", [""], HISTORY[:1]),
    Case("a full last page has no next one", ["2 3 4"], limit=3),
    Case("one by one", ["2", "3", "4"], limit=1),
    Case("two and the rest", ["2 3", "4"], limit=2),
    Case("records of one second stand by number", ["2", "3"], [a_skip(3, "10:00"), a_skip(2, "10:00")], limit=1),
    Case("requests of one second stand by name", ["a", "b", "c"], [a_request(name) for name in "cab"], limit=1),
    Case(
        "a request stands where its creation puts it, behind a record of that second",
        ["early", "2", "same", "3", "4", "late"],
        [a_request("late", "13:00"), a_request("same", "10:00"), a_request("early", "09:59"), *HISTORY],
        limit=1,
    ),
    Case(
        "a backfill by when it was asked for, not by its instant",
        ["2 3 back 4"],
        [a_request("back", "11:30", backfill="08:00"), *HISTORY],
    ),
    Case(
        "an API server's clock that is behind does not turn the log",
        ["2", "3", "ask", "4"],
        [a_skip(2, "11:00"), a_skip(3, "10:00"), a_skip(4, "12:00"), a_request("ask", "11:30")],
        limit=1,
    ),
    Case("what waits comes first", ["?13:00 2 3 4"], candidates=(at("13:00"),)),
    Case("what waits takes a place within the limit", ["?13:00 2", "3 4"], candidates=(at("13:00"),), limit=2),
    Case(
        "more waits than a page takes", ["?13:00 ?14:00", "?15:00 2", "3 4"],
        candidates=(at("15:00"), at("13:00"), at("14:00")), limit=2,
    ),
    Case("what waits ends with the page", ["?13:00", "2", "3", "4"], candidates=(at("13:00"),), limit=1),
    Case("nothing but what waits", ["?13:00"], [], candidates=(at("13:00"),)),
    Case("its own record replaces it though the status is late", ["2 3 4"], candidates=(at("12:00"),)),
    Case(
        "a backfill of that instant does not replace it",
        ["?13:00 2 3 4 back"],
        [*HISTORY, a_request("back", "13:30", backfill="13:00")],
        candidates=(at("13:00"),),
    ),
    Case(
        "a Baseline that leaves it waiting does not replace it",
        ["?12:00 2"],
        [a_skip(2, "10:00"), a_record(3, consumed=at("12:30"), waiting=(at("12:00"),))],
        candidates=(at("12:00"),),
    ),
    Case(
        "a Baseline that gave it up does",
        ["2"],
        [a_skip(2, "10:00"), a_record(3, consumed=at("12:30"))],
        candidates=(at("12:00"),),
    ),
    Case("what is left of a deleted schedule", ["3", "4"], HISTORY[2:], limit=1),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_pages(case: Case) -> None:
    found = pages(case.records, candidates=case.candidates, limit=case.limit, with_baselines=case.with_baselines)
    assert found == case.want


@dataclass(frozen=True)
class BetweenCase:
    name: str
    want: str
    records: list[Record] = field(default_factory=lambda: HISTORY)
    waits: tuple[datetime, ...] = ()
    records_then: list[Record] = field(default_factory=lambda: HISTORY)
    waits_then: tuple[datetime, ...] = ()
    limit: int = 1


BETWEEN = [
    BetweenCase("nothing happens", "3 4"),
    BetweenCase("the row it ended at is pruned", "3 4", records_then=HISTORY[2:]),
    BetweenCase("the next one is pruned", "4", records_then=HISTORY[3:]),
    BetweenCase("all is pruned", "", records_then=[]),
    BetweenCase("one is added", "3 4 5", records_then=[*HISTORY, a_skip(5, "13:00")]),
    BetweenCase("what waited is admitted: its record is at the end", "2 3 4 5", waits=(at("13:00"),),
                records_then=[*HISTORY, an_admission(5, at("13:00"))]),
    BetweenCase("another begins to wait, too", "?14:00 2 3 4", waits=(at("13:00"),), waits_then=(at("13:00"), at("14:00"))),
    BetweenCase("the first begins to wait when records are being read: not in their midst", "3 4", waits_then=(at("13:00"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", BETWEEN, ids=lambda case: case.name)
def test_what_happens_between_two_pages(case: BetweenCase) -> None:
    first = page(case.records, candidates=case.waits, limit=case.limit)
    rest = page(case.records_then, first.next_cursor, candidates=case.waits_then)
    assert " ".join(map(label, rest.rows)) == case.want


ROWS = [
    (
        "a run",
        an_admission(
            2,
            reason="Admitted",
            status=ScheduleOccurrenceStatus(outcome=Outcome.FAILED, reason="JobMissing", duration="1m3s"),
        ),
        ("10:00", "Admitted", "Scheduled", "Failed", "JobMissing", "1m3s", 1),
    ),
    ("a skip", a_skip(2, "10:00"), ("10:00", "SkippedOverlap", "Scheduled", None, "SkippedOverlap", None, 1)),
    (
        "a span",
        a_skip(2, "10:00", span=Span(first_time=at("07:00"), last_time=at("10:00"), count=4)),
        ("10:00", "SkippedOverlap", "Scheduled", None, "SkippedOverlap", None, 4),
    ),
    (
        "a Baseline",
        a_record(2, reason="Edited", created_at=at("10:07")),
        ("10:07", "Baseline", "Scheduled", None, "Edited", None, 0),
    ),
    (
        "a Baseline that gave instants up",
        a_record(2, reason="Paused", span=Span(first_time=at("08:00"), last_time=at("09:00"), count=2)),
        ("09:00", "Baseline", "Scheduled", None, "Paused", None, 2),
    ),
    ("a manual request", a_request("now", "10:07"), ("10:07", None, "Manual", None, None, None, 1)),
    ("a backfill", a_request("b", backfill="08:00"), ("08:00", None, "Backfill", None, None, None, 1)),
]


@pytest.mark.parametrize(("record", "want"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_row_says_what_its_record_says(record: Record, want: tuple[object, ...]) -> None:
    (row,) = page([record], with_baselines=True).rows
    told = (f"{row.time:%H:%M}", row.decision, row.cause, row.outcome, row.reason, row.duration, row.count)
    assert (row.name, told) == (record.ref.name, want)


def test_what_waits_has_no_name_yet() -> None:
    (row,) = page([], candidates=(at("13:00"),)).rows
    assert row == HistoryRow(name=None, time=at("13:00"), decision="Pending", cause="Scheduled", count=1)


@pytest.mark.parametrize("limit", [-1, 0, 101, 10**9])
def test_a_limit_out_of_bounds_is_refused(limit: int) -> None:
    with pytest.raises(HistoryRefusedError, match=rf"^limit: {limit}: want 1 to 100$") as refused:
        page(HISTORY, limit=limit)
    assert refused.value.reason == "InvalidLimit"


@pytest.mark.parametrize("limit", [1, 100])
def test_the_bounds_themselves_will_do(limit: int) -> None:
    assert len(page(HISTORY, limit=limit).rows) == min(limit, 3)


CURSOR = page(HISTORY, limit=1).next_cursor or ""
BAD = {
    "empty": "",
    "cut": CURSOR[:-1],
    "extended": CURSOR + "A",
    "padded": CURSOR + "=",
    "mistyped": CURSOR[:30] + ("B" if CURSOR[30] == "A" else "A") + CURSOR[31:],
    "with a space": f" {CURSOR}",
    "a number": "2",
    "no ASCII": "é" * 20,
    "a lone surrogate": "\udc80",
    "endless": "A" * 100_000,
}


@pytest.mark.parametrize("cursor", BAD.values(), ids=BAD.keys())
def test_a_bad_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(
        HistoryRefusedError, match=r"^cursor: '.*': want the text that ended the page before"
    ) as refused:
        page(HISTORY, cursor)
    assert refused.value.reason == "InvalidCursor"
    assert len(str(refused.value)) < 300


def test_a_cursor_of_another_schedule_is_refused() -> None:
    """Also of one of the same name that was deleted before."""
    with pytest.raises(HistoryRefusedError, match=f"UID {UID}, not {OTHER_UID}; leave it out") as refused:
        page(HISTORY, CURSOR, uid=OTHER_UID)
    assert refused.value.reason == "ForeignCursor"


def written(*fields: object) -> str:
    """Return a cursor with a good checksum, as another version or a person may write it."""
    body = json.dumps(fields).encode()
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()[:8] + body).decode().rstrip("=")


def test_a_cursor_of_another_version_is_refused() -> None:
    with pytest.raises(HistoryRefusedError, match="of version 2, not 1; leave it out") as refused:
        page(HISTORY, written(2, UID, "whatever"))
    assert refused.value.reason == "OutdatedCursor"


FORGED = {
    "no fields": (1,),
    "a number as text": (1, UID, False, "2", None, None),
    "a number that is a truth value": (1, UID, False, True, None, None),
    "a key without a name": (1, UID, False, None, [2], None),
    "a key that is none": (1, UID, False, None, None, 2),
    "one field more": (1, UID, False, None, [2, "x"], None, None),
}


@pytest.mark.parametrize("fields", FORGED.values(), ids=FORGED.keys())
def test_a_cursor_with_a_good_checksum_is_still_read_strictly(fields: tuple[object, ...]) -> None:
    with pytest.raises(HistoryRefusedError, match="want the text that ended the page before") as refused:
        page(HISTORY, written(*fields))
    assert refused.value.reason == "InvalidCursor"


def test_a_cursor_goes_on_with_the_same_rows() -> None:
    with pytest.raises(HistoryRefusedError, match="it goes on without Baselines; ask so again") as refused:
        page(HISTORY, CURSOR, with_baselines=True)
    assert refused.value.reason == "InvalidCursor"


SECONDS = st.integers(0, 3).map(lambda seconds: at("10:00") + timedelta(seconds=seconds))
LOG_RECORDS = st.builds(
    lambda number, made, is_baseline: (
        a_record(number, created_at=made) if is_baseline else a_skip(number, "09:00", created_at=made)
    ),
    st.integers(1, 30),
    SECONDS,
    st.booleans(),
)
REQUESTS = st.builds(
    lambda made, letter: a_request(f"{letter}-{made:%S}", created_at=made), SECONDS, st.sampled_from("abcdef")
)
WORLD = st.lists(st.one_of(LOG_RECORDS, REQUESTS), max_size=40, unique_by=lambda record: record.ref.name)
WAITING = st.sets(st.integers(11, 20).map(lambda hour: datetime(2026, 1, 1, hour, tzinfo=UTC)), max_size=5)
NAMES_AWAY = st.sets(st.integers(0, 39), max_size=20)


@given(
    world=WORLD,
    waiting=WAITING,
    steps=st.lists(st.tuples(st.integers(1, 7), NAMES_AWAY), min_size=1, max_size=8),
    with_baselines=st.booleans(),
)
def test_each_row_is_visited_once_whatever_is_added_or_pruned(
    world: list[Record], waiting: set[datetime], steps: list[tuple[int, set[int]]], *, with_baselines: bool
) -> None:
    """R30: no row twice, none of those that were there throughout is missed, and the log keeps its order."""
    seen: list[str | datetime] = []
    throughout = {each.ref.name for each in world if with_baselines or each.spec.decision is not Decision.BASELINE}
    cursor, turn = None, 0
    while turn == 0 or cursor is not None:
        assert turn < 100, "it never ends"
        limit, away = steps[turn % len(steps)]
        there = [each for index, each in enumerate(world) if index not in away]
        throughout &= {each.ref.name for each in there}
        got = page(there, cursor, limit=limit, candidates=tuple(waiting), with_baselines=with_baselines)
        assert len(got.rows) == limit or got.next_cursor is None
        seen += [row.name or row.time for row in got.rows]
        cursor, turn = got.next_cursor, turn + 1
    assert len(seen) == len(set(seen))
    assert throughout <= set(seen)
    assert set(seen[: len(waiting)]) == waiting
    of_log = [name for name in seen if str(name).startswith("hourly-")]
    assert of_log == sorted(of_log)
