"""Pages of one schedule's history, oldest first: which rows, in which order, and where the next page goes on.

How a page is fetched and printed is the verb's business. The order: what waits to be admitted, by its instant; then the
records of the log by number, with the requests, by when they were made, sorted in between them by creation time.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from heapq import merge, nsmallest
from typing import TYPE_CHECKING

import orjson

from workflow_schedules.api.occurrence import Cause, Decision
from workflow_schedules.core.requests import is_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from workflow_schedules.core.model import Record

MAX_LIMIT = 100
PENDING = "Pending"
_VERSION = 1  # of the cursor: a change of the order or of its fields makes the older ones outdated
_CHECKSUM_LENGTH = 8
_MAX_CURSOR_LENGTH = 2048  # a UID and two names at their longest take less than half of it
_BEGIN_ANEW = "leave it out to begin at the oldest row"

_Key = tuple[int, str]


class HistoryRefusedError(ValueError):
    """This page can't be had.

    Attributes:
        reason: `InvalidLimit`, `InvalidCursor`, `ForeignCursor` or `OutdatedCursor`.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """One line of a history.

    Attributes:
        name: of the record; None of an instant that waits: it has none yet.
        time: nominal instant, of a span its newest; where there is none, when the record was made. Aware UTC.
        decision: of the record, or `Pending`; None of a request, which is no decision of the schedule.
        reason: of the outcome; before there is one, of the decision.
        duration: from start to end, such as 1m3s.
        count: how many instants it stands for; 1 of a request, 0 of a Baseline that gave none up.
    """

    name: str | None
    time: datetime
    decision: str | None
    cause: str
    outcome: str | None = None
    reason: str | None = None
    duration: str | None = None
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """Some rows of a history, oldest first.

    Attributes:
        next_cursor: where the next page goes on; None when nothing is left.
    """

    rows: tuple[HistoryRow, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Position:
    """The last row shown of each kind.

    One place for the log and one for the requests, not one for both: creation times come from the clocks of several API
    servers, so a log sorted by them could leave its own order. Each kind alone has keys that never change, so a record that
    is added or pruned between two pages moves no other across a place.

    Attributes:
        pending: instant, in seconds since 1970.
        in_log: number and name; the names differ where forged records share a number.
        in_requests: creation time in seconds since 1970, and name.
    """

    pending: int | None = None
    in_log: _Key | None = None
    in_requests: _Key | None = None

    @property
    def is_in_records(self) -> bool:
        """Tell whether the rows that come first are through."""
        return self.in_log is not None or self.in_requests is not None


_Item = tuple[HistoryRow, _Position]  # the position says only what the row itself moves


def history_page(
    records: Iterable[Record],
    *,
    uid: str,
    candidates: Iterable[datetime],
    limit: int,
    cursor: str | None = None,
    with_baselines: bool = False,
) -> HistoryPage:
    """Return one page of a schedule's history.

    A row that is there while all pages are read stands on exactly one of them. An instant that waited on the first page
    and was then admitted has a row of its own as a record.

    Args:
        records: all of this schedule, in any order: those of its log and its requests; of a deleted one what is left.
        uid: of the schedule, which may be gone.
        candidates: instants retained but not yet admitted, as its status has them; of a deleted schedule none.
        limit: most rows of a page, 1 to 100; what waits is among them.
        cursor: where the page before ended; None begins.
        with_baselines: Baselines are rows, too.

    Raises:
        HistoryRefusedError: a limit out of bounds; a cursor that is none, of another schedule or version, or taken with
            another `with_baselines`.

    Source: contract R11, R29, R30.
    """
    _check_limit(limit)
    after = _Position() if cursor is None else _read_cursor(cursor, uid, with_baselines=with_baselines)
    given = tuple(records)
    pending = [] if after.is_in_records else _pending(candidates, given, after)
    shown = given if with_baselines else [each for each in given if each.spec.decision is not Decision.BASELINE]
    items = [*pending, *_in_order(shown, after, limit + 1)]
    page = items[:limit]
    is_last = len(items) <= limit
    return HistoryPage(
        rows=tuple(row for row, _ in page),
        next_cursor=None if is_last else _cursor(_moved(after, page), uid, with_baselines=with_baselines),
    )


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise HistoryRefusedError("InvalidLimit", f"limit: {limit}: want 1 to {MAX_LIMIT}")


def _pending(candidates: Iterable[datetime], records: Sequence[Record], after: _Position) -> list[_Item]:
    """Return what waits and is not decided by the log: the status is written late, so it may still show such an instant."""
    log = [record for record in records if not is_request(record)]
    head = max(log, key=_log_key).spec if log else None
    watermark, waiting = (head.consumed_through_time, head.waiting) if head else (None, ())
    instants = sorted(at for at in set(candidates) if watermark is None or at > watermark or at in waiting)
    items = ((_pending_row(at), _Position(pending=_seconds(at))) for at in instants)
    return [item for item in items if after.pending is None or (item[1].pending or 0) > after.pending]


def _in_order(records: Iterable[Record], after: _Position, count: int) -> list[_Item]:
    """Return the next records: by number in the log, requests where their creation time puts them, behind their equals."""
    log, requests = [], []
    for record in records:
        if is_request(record):
            if after.in_requests is None or _request_key(record) > after.in_requests:
                requests.append(record)
        elif after.in_log is None or _log_key(record) > after.in_log:
            log.append(record)
    # merge only ever compares what comes next of either, so the log keeps its order whatever its times say
    both = merge(nsmallest(count, log, key=_log_key), nsmallest(count, requests, key=_request_key), key=_made)
    return [(_row(record), _place(record)) for record in both]


def _moved(after: _Position, page: Iterable[_Item]) -> _Position:
    for _, place in page:
        after = _Position(
            pending=after.pending if place.pending is None else place.pending,
            in_log=place.in_log or after.in_log,
            in_requests=place.in_requests or after.in_requests,
        )
    return after


def _place(record: Record) -> _Position:
    if is_request(record):
        return _Position(in_requests=_request_key(record))
    return _Position(in_log=_log_key(record))


def _log_key(record: Record) -> _Key:
    return (record.number, record.ref.name)


def _request_key(record: Record) -> _Key:
    return (_made(record), record.ref.name)


def _made(record: Record) -> int:
    return _seconds(record.created_at)


def _seconds(at: datetime) -> int:
    return int(at.timestamp())


def _pending_row(at: datetime) -> HistoryRow:
    return HistoryRow(name=None, time=at, decision=PENDING, cause=str(Cause.SCHEDULED))


def _row(record: Record) -> HistoryRow:
    spec, status = record.spec, record.status
    without_span = 0 if spec.decision is Decision.BASELINE else 1
    return HistoryRow(
        name=record.ref.name,
        time=spec.scheduled_time or (spec.span.last_time if spec.span else record.created_at),
        decision=None if spec.decision is None else str(spec.decision),
        cause=str(spec.cause),
        outcome=None if status.outcome is None else str(status.outcome),
        reason=status.reason or spec.reason,
        duration=status.duration,
        count=spec.span.count if spec.span else without_span,
    )


def _cursor(position: _Position, uid: str, *, with_baselines: bool) -> str:
    place = (position.pending, position.in_log, position.in_requests)
    body = orjson.dumps([_VERSION, uid, with_baselines, *place])
    return urlsafe_b64encode(_checksum(body) + body).decode().rstrip("=")


def _checksum(body: bytes) -> bytes:
    """Return what tells a cursor from one cut or mistyped; it keeps nobody from writing one: a position opens nothing."""
    return hashlib.sha256(body).digest()[:_CHECKSUM_LENGTH]


def _read_cursor(cursor: str, uid: str, *, with_baselines: bool) -> _Position:
    version, *fields = _fields(cursor)
    if version != _VERSION:
        raise _refused("OutdatedCursor", cursor, f"it is of version {version}, not {_VERSION}; {_BEGIN_ANEW}")
    try:
        of_uid, of_baselines, pending, in_log, in_requests = fields
        position = _Position(pending=_number(pending), in_log=_key(in_log), in_requests=_key(in_requests))
    except (TypeError, ValueError):
        raise _not_ours(cursor) from None
    if of_uid != uid:
        raise _refused("ForeignCursor", cursor, f"it is of the schedule with UID {of_uid}, not {uid}; {_BEGIN_ANEW}")
    if of_baselines is not with_baselines:
        taken = "with" if of_baselines else "without"
        raise _refused("InvalidCursor", cursor, f"it goes on {taken} Baselines; ask so again, or {_BEGIN_ANEW}")
    return position


def _fields(cursor: str) -> list[object]:
    """Return the fields of a cursor, the version first; the text must be just what was given out."""
    if not cursor.isascii() or len(cursor) > _MAX_CURSOR_LENGTH:
        raise _not_ours(cursor)
    try:
        raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        body = raw[_CHECKSUM_LENGTH:]
        is_ours = raw[:_CHECKSUM_LENGTH] == _checksum(body) and urlsafe_b64encode(raw).decode().rstrip("=") == cursor
        fields = orjson.loads(body) if is_ours else None
    except ValueError:
        fields = None
    if not isinstance(fields, list) or not fields:
        raise _not_ours(cursor)
    return fields


def _number(value: object) -> int | None:
    if value is None or type(value) is int:
        return value
    raise TypeError


def _key(value: object) -> _Key | None:
    if value is None:
        return None
    match value:
        case [int(number), str(name)] if type(number) is int:
            return (number, name)
    raise TypeError


def _not_ours(cursor: str) -> HistoryRefusedError:
    return _refused("InvalidCursor", cursor, f"want the text that ended the page before, whole; or {_BEGIN_ANEW}")


def _refused(reason: str, cursor: str, what: str) -> HistoryRefusedError:
    shown = cursor if len(cursor) <= 40 else f"{cursor[:40]}…"
    return HistoryRefusedError(reason, f"cursor: {shown!r}: {what}")
