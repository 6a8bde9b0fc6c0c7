"""Rows of the decision table, played by the simulation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from workflow_schedules.api.occurrence import Outcome
from workflow_schedules.cluster.wire import definition_of, schedule_of
from workflow_schedules.core.scene import Change, Ending, Outage, Scene
from workflow_schedules.core.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unit.decision_row import Row
    from workflow_schedules.core.scene import Row as Simulated

TEMPLATE = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}}}
_DEFAULT_CALENDAR = {"schedule": "* * * * *"}


def at(text: str, row: Row) -> datetime:
    """Return an instant of a row's day."""
    return datetime.fromisoformat(f"{row.date}T{text}").replace(tzinfo=UTC)


def log_of(row: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Play a row; return its log, as the table writes it, and the outcomes."""
    records = list(simulate(scene_of(row)))
    return tuple(map(_line, records)), tuple(record.outcome or "-" for record in records)


def scene_of(row: Row) -> Scene:
    turns: Iterator[Ending] = map(_ending, row.runs)
    last = _ending(row.runs[-1])
    return Scene(
        changes=list(_changes(row)),
        until=at(row.until, row),
        ending=lambda _instant: next(turns, last),
        outages=[Outage(start=at(row.outage[0], row), end=at(row.outage[1], row))] if row.outage else [],
    )


def _ending(run: Mapping[str, Any]) -> Ending:
    return Ending(seconds=run.get("seconds", 0), outcome=Outcome(run.get("outcome", "Completed")))


def _changes(row: Row) -> Iterator[Change]:
    pause = row.pause or ()
    parent: dict[str, Any] = {}
    spec = {**({} if "runOnceTime" in row.fields else _DEFAULT_CALENDAR), "enabled": True, **row.fields}
    spec |= {"workflowRef": {"name": "report"}} if row.parent else {"jobTemplate": TEMPLATE}
    for time in sorted({row.start, *row.edits, *pause, *row.parent}, key=partial(at, row=row)):
        spec |= row.edits.get(time, {})
        parent |= row.parent.get(time, {})
        if time in pause:
            spec["pause"] = {"reason": "table"} if time == pause[0] else None
        body = {
            "metadata": _metadata("hourly", row),
            "spec": {key: value for key, value in spec.items() if value is not None},
        }
        definition = {"metadata": _metadata("report", row), "spec": {"jobTemplate": TEMPLATE, **parent}}
        yield Change(
            at=at(time, row), schedule=schedule_of(body), definition=definition_of(definition) if row.parent else None
        )


def _metadata(name: str, row: Row) -> dict[str, Any]:
    created = at(row.start, row).isoformat()
    return {"namespace": "team", "name": name, "uid": name, "generation": 1, "creationTimestamp": created}


def _line(record: Simulated) -> str:
    """Say a record: ``Coalesced 10:02..10:04 (3)``, and with ``@`` what started after its instant."""
    first = f"{clock(record.first_time)}.." if record.count > 1 else ""
    count = f" ({record.count})" if record.count > 1 else ""
    late = record.start_time is not None and record.start_time > record.scheduled_time + timedelta()
    start = f" @{clock(record.start_time)}" if late and record.start_time else ""
    return f"{record.decision} {first}{clock(record.last_time)}{count}{start}"


def clock(instant: datetime) -> str:
    """Return a time of day as the decision table writes it."""
    return f"{instant:%H:%M:%S}".removesuffix(":00")
