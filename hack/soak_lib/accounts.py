"""What a log of decisions must add up to, judged from everything that was ever in it; no I/O and no clock."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from workflow_schedules.api.common import parse_utc
from workflow_schedules.cluster import wire
from workflow_schedules.core.acceptance import Accepted, accept
from workflow_schedules.core.due_times import due_times, is_excluded
from workflow_schedules.core.jitter import Jitter
from workflow_schedules.core.misfire import Misfire

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

FINAL = frozenset({"Completed", "Failed", "Exhausted", "Cancelled"})
PATIENCE = timedelta(seconds=10)
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Log:
    """Everything ever seen of one schedule; `touched_at` is when a record or a Job of it changed last."""

    schedule: Json | None = None
    specs: dict[int, Json] = field(default_factory=dict)
    records: list[Json] = field(default_factory=list)
    jobs: dict[str, Json] = field(default_factory=dict)
    touched_at: datetime = _EARLIEST

    def spec_of(self, record_spec: Json) -> Json:
        """The spec of the schedule that a record was decided on."""
        found: Json = (self.specs.get(record_spec["generation"]) or {}).get("spec", {})
        return found


def admitted(records: Iterable[Json]) -> list[Json]:
    return [each for each in records if each["spec"]["decision"] == "Admitted"]


def chain_problems(records: list[Json]) -> list[str]:
    """Compare each record with the one before it."""
    found = []
    for before, after in itertools.pairwise(records):
        name = after["metadata"]["name"]
        if after["spec"]["sequence"] != before["spec"]["sequence"] + 1:
            found.append(f"I3: {name} does not have the next number")
        if after["spec"].get("previousUID") != before["metadata"]["uid"]:
            found.append(f"I3: {name} does not name the record before it")
        if after["spec"]["consumedThroughTime"] < before["spec"]["consumedThroughTime"]:
            found.append(f"I4: the watermark of {name} is older than that of the record before it")
    return found


def account_problems(log: Log) -> list[str]:
    """Compare each record with the calendar between its watermark and the one before."""
    found = []
    for before, after in itertools.pairwise(log.records):
        spec, name = after["spec"], after["metadata"]["name"]
        if spec["decision"] in {"Baseline", "Superseded"}:
            continue
        since, until = (parse_utc(each["spec"]["consumedThroughTime"]) for each in (before, after))
        due = _due(log, spec["generation"], since, until)
        span = spec.get("span") or {"firstTime": spec["scheduledTime"], "lastTime": spec["scheduledTime"], "count": 1}
        told = [span["firstTime"], span["lastTime"], span["count"]]
        wanted = [_text(due[0]), _text(due[-1]), len(due)] if due else []
        if told != wanted:
            found.append(f"I3: {name} tells of {told}, the calendar of {wanted}")
        if spec["decision"] == "Admitted" and len(due) != 1:
            found.append(f"I3: {name} admits one of {len(due)}")
    waiting: tuple[str, ...] = ()
    for record in log.records:
        spec = record["spec"]
        if waiting and spec["decision"] != "Superseded":
            found.append(f"I3: {waiting} waited before {record['metadata']['name']} and nothing became of it")
        waiting = tuple(spec.get("waiting") or ())
    return found


def undecided(log: Log, until: datetime) -> list[str]:
    """What was due by then, is not decided, and not the visible candidate of an active schedule."""
    if log.schedule is None or not log.records or log.records[-1]["spec"].get("state") != "Active":
        return []
    head, generation = log.records[-1]["spec"], log.schedule["metadata"]["generation"]
    is_used_up = len(admitted(log.records)) >= log.schedule["spec"].get("runLimit", math.inf)
    if is_used_up or "deletionTimestamp" in log.schedule["metadata"]:
        return []
    due = _due(log, generation, parse_utc(head["consumedThroughTime"]), until)
    candidates = (log.schedule.get("status") or {}).get("candidates", [])
    name = log.schedule["metadata"]["name"]
    blind = _excluded_behind(log.schedule, due) if candidates else set()
    return [f"I3: {at} of {name} is due and undecided" for at in due if _text(at) not in candidates and at not in blind]


def first_start(log: Log, record_spec: Json) -> datetime | None:
    """Return when the run of a record may start: instant + jitter; None if nobody can read its instant."""
    instant = read_time(record_spec["scheduledTime"])
    accepted = _accepted(log, record_spec["generation"])
    if instant is None or accepted is None:
        return instant
    return Jitter.of(record_spec["scheduleRef"]["uid"], accepted.spec).start_of(instant, accepted.trigger)


def last_start(log: Log, record_spec: Json) -> datetime | None:
    """Return until when the run of a record may start: deadline after it could; None is unbounded (contract 2)."""
    first, accepted = first_start(log, record_spec), _accepted(log, record_spec["generation"])
    deadline = Misfire.of(accepted.spec).deadline if accepted else None
    return None if first is None or deadline is None else first + deadline


def read_time(text: object) -> datetime | None:
    """Read a time that anybody may have written."""
    try:
        return parse_utc(text) if isinstance(text, str) else None
    except ValueError:
        return None


def finished_at(job: Json) -> datetime | None:
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in {"Complete", "Failed"} and condition["status"] == "True":
            return parse_utc(condition["lastTransitionTime"])
    return None


def _due(log: Log, generation: int, since: datetime, until: datetime) -> list[datetime]:
    accepted = _accepted(log, generation)
    return [] if accepted is None else list(due_times(accepted.trigger, after=since, until=until))


def _accepted(log: Log, generation: int) -> Accepted | None:
    body = log.specs.get(generation)
    accepted = accept(wire.schedule_of(body)) if body else None
    return accepted if isinstance(accepted, Accepted) else None


def _excluded_behind(schedule: Json, due: list[datetime]) -> set[datetime]:
    """Give the instants on excluded dates: behind a candidate they are skipped as soon as it is decided."""
    accepted = accept(wire.schedule_of(schedule))
    return {at for at in due if isinstance(accepted, Accepted) and is_excluded(accepted.trigger, at)}


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
