"""Holds a fake API server to the invariants of the design, from what was really stored, in the order it was stored.

It watches every commit and keeps what was ever there, so that deleting objects hides nothing. The calendar comes from
`due_times`, everything else from the objects.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from support.api_kinds import Json, Kind
from support.api_server import Clock, FakeApiServer
from support.api_store import Change
from workflow_schedules.api.common import parse_utc
from workflow_schedules.cluster import wire
from workflow_schedules.core.acceptance import Accepted, accept
from workflow_schedules.core.due_times import due_times, is_excluded

FINAL = frozenset({"Completed", "Failed", "Exhausted", "Cancelled"})
PATIENCE = timedelta(seconds=10)


class ViolationError(AssertionError):
    """An invariant does not hold; the message begins with its name."""


@dataclass(slots=True)
class _Log:
    """Everything ever seen of one schedule."""

    schedule: Json | None = None
    specs: dict[int, Json] = field(default_factory=dict)
    records: list[Json] = field(default_factory=list)
    jobs: dict[str, Json] = field(default_factory=dict)


class Auditor:
    """See the module; what is wrong at a commit is kept and raised by `check`."""

    def __init__(self, server: FakeApiServer, clock: Clock) -> None:
        self._clock = clock
        self._logs: dict[str, _Log] = defaultdict(_Log)
        self._records: dict[str, Json] = {}
        self._started: dict[tuple[str, str], str] = {}
        self.violations: list[str] = []
        server.store.observers.append(self._observe)

    def check(self, *, is_settled: bool = True) -> None:
        """Raise what was found.

        Args:
            is_settled: an operator leads and has had its time: everything due is decided, every end recorded.

        Raises:
            ViolationError: with everything that is wrong.
        """
        found = list(self.violations)
        for log in self._logs.values():
            found += _chain_problems(log.records)
            found += _account_problems(log)
            if is_settled:
                found += self._unsettled(log)
        if found:
            raise ViolationError("\n".join(found))

    def go_back(self, records: list[Json], schedules: list[Json]) -> None:
        """Forget what a restore of etcd forgot: what was decided since then is out of the invariants (I1).

        So are Jobs that run again in the backup: that they had ended is known, and true.
        """
        stored = {each["metadata"]["uid"]: each for each in records}
        there = {each["metadata"]["uid"]: each for each in schedules}
        heads: dict[str, int] = defaultdict(int)
        for each in records:
            uid = each["spec"]["scheduleRef"].get("uid", "")
            heads[uid] = max(heads[uid], each["spec"].get("sequence", 0))
        self._records |= stored
        for uid, log in self._logs.items():
            kept = [each for each in log.records if each["spec"]["sequence"] <= heads[uid]]
            log.records = [stored.get(each["metadata"]["uid"], each) for each in kept]
            log.schedule = there.get(uid)
            log.jobs = {}
            told = {each["spec"].get("scheduledTime") for each in log.records}
            self._started = {key: name for key, name in self._started.items() if key[0] != uid or key[1] in told}

    def jobs_started(self) -> int:
        """How many Jobs of records were ever made."""
        return len(self._started)

    def _observe(self, kind: Kind, change: Change) -> None:
        match kind.plural:
            case "workflowschedules":
                self._see_schedule(change)
            case "scheduleoccurrences":
                self._see_record(change)
            case "jobs":
                self._see_job(change)

    def _wrong(self, invariant: str, what: str) -> None:
        self.violations.append(f"{invariant}: {what} (at {self._clock.now():%H:%M:%S})")

    def _see_schedule(self, change: Change) -> None:
        body = (change.after or change.before).body  # type: ignore[union-attr]
        log = self._logs[body["metadata"]["uid"]]
        log.schedule = body if change.after else None
        if change.after is None:
            return
        log.specs[body["metadata"]["generation"]] = body
        was = (change.before.body.get("status") or {}) if change.before else {}
        now = body.get("status") or {}
        for name in ("logHead", "consumedThroughTime", "revision", "observedGeneration"):
            if name in was and type(now.get(name)) is type(was[name]) and now[name] < was[name]:
                self._wrong("I4", f"status.{name} of {body['metadata']['name']} went back")

    def _see_record(self, change: Change) -> None:
        if change.after is None:
            return
        body = change.after.body
        spec, uid = body["spec"], body["spec"]["scheduleRef"].get("uid", "")
        if spec.get("cause") != "Scheduled":
            return
        name = body["metadata"]["name"]
        if change.before is None:
            self._judge_new(self._logs[uid], body)
            self._logs[uid].records.append(body)
        else:
            was = (change.before.body.get("status") or {}).get("outcome")
            if was in FINAL and body.get("status", {}).get("outcome") != was:
                self._wrong("I7", f"the outcome of {name} changed from {was}")
        self._records[body["metadata"]["uid"]] = body

    def _judge_new(self, log: _Log, body: Json) -> None:
        spec, name = body["spec"], body["metadata"]["name"]
        head = log.records[-1]["spec"] if log.records else {}
        if spec.get("fencingEpoch", 0) < head.get("fencingEpoch", 0):
            self._wrong("I6", f"{name} has an older epoch than the record before it")
        if spec["decision"] != "Admitted":
            return
        if head.get("state") != "Active":
            self._wrong("I5", f"{name} was admitted although the log says {head.get('state')}")
        if spec["scheduledTime"] <= head.get("consumedThroughTime", ""):
            self._wrong("I4", f"{name} was admitted at or before the watermark")
        if any(each["spec"].get("scheduledTime") == spec["scheduledTime"] for each in _admitted(log.records)):
            self._wrong("I1", f"{name} admits {spec['scheduledTime']} a second time")
        if len(_admitted(log.records)) >= self._spec_of(log, spec).get("runLimit", math.inf):
            self._wrong("I5", f"{name} was admitted beyond its runLimit")
        self._judge_overlap(log, spec, name)

    @staticmethod
    def _spec_of(log: _Log, record: Json) -> Json:
        return (log.specs.get(record["generation"]) or {}).get("spec", {})

    def _judge_overlap(self, log: _Log, spec: Json, name: str) -> None:
        rules = self._spec_of(log, spec)
        limit = rules.get("maxActiveRuns") or 1
        unfinished = [each for each in _admitted(log.records) if not self._is_final(each)]
        if rules.get("concurrencyPolicy") == "Replace":
            if unfinished and spec.get("replaces") is None:
                self._wrong("I2", f"{name} was admitted beside {len(unfinished)} unfinished and replaces none")
        elif len(unfinished) >= limit:
            self._wrong("I2", f"{name} was admitted beside {len(unfinished)} unfinished, {limit} allowed")

    def _see_job(self, change: Change) -> None:
        body = (change.after or change.before).body  # type: ignore[union-attr]
        owner = next(
            (each["uid"] for each in body["metadata"].get("ownerReferences", ()) if each.get("controller")), ""
        )
        record = self._records.get(owner)
        if record is None:
            return
        spec, uid = record["spec"], body["metadata"]["uid"]
        log = self._logs[spec["scheduleRef"]["uid"]]
        if change.before is None:
            self._judge_job(log, record, body)
        if change.after is None:
            log.jobs.pop(uid, None)
        else:
            log.jobs[uid] = body

    def _judge_job(self, log: _Log, record: Json, job: Json) -> None:
        spec, name = record["spec"], job["metadata"]["name"]
        key = (spec["scheduleRef"]["uid"], spec["scheduledTime"])
        if key in self._started:
            self._wrong("I1", f"a second Job for {spec['scheduledTime']}: {name} after {self._started[key]}")
        self._started[key] = name
        if spec["decision"] != "Admitted" or self._is_final(record):
            self._wrong("I1", f"Job {name} was made for a record that is not an open admission")
        limit = (log.specs.get(spec["generation"]) or {}).get("spec", {}).get("maxActiveRuns") or 1
        active = [each for each in log.jobs.values() if not _finished_at(each)]
        if len(active) >= limit:
            self._wrong("I2", f"Job {name} was made beside {len(active)} unfinished, {limit} allowed")

    def _is_final(self, record: Json) -> bool:
        now = self._records.get(record["metadata"]["uid"], record)
        return (now.get("status") or {}).get("outcome") in FINAL

    def _unsettled(self, log: _Log) -> list[str]:
        found = []
        for record in _admitted(log.records):
            jobs = [job for job in log.jobs.values() if job["metadata"]["name"] == record["metadata"]["name"]]
            ended = _finished_at(jobs[0]) if jobs else None
            if ended is not None and self._clock.now() - ended > PATIENCE and not self._is_final(record):
                found.append(f"I7: {record['metadata']['name']} has no outcome though its Job ended")
        return found + self._undecided(log)

    def _undecided(self, log: _Log) -> list[str]:
        """What is due, not decided, and not the visible candidate of an active schedule."""
        if log.schedule is None or not log.records or log.records[-1]["spec"].get("state") != "Active":
            return []
        head, generation = log.records[-1]["spec"], log.schedule["metadata"]["generation"]
        is_used_up = len(_admitted(log.records)) >= log.schedule["spec"].get("runLimit", math.inf)
        if is_used_up or "deletionTimestamp" in log.schedule["metadata"]:
            return []
        due = _due(log, generation, parse_utc(head["consumedThroughTime"]), self._clock.now() - PATIENCE)
        candidates = (log.schedule.get("status") or {}).get("candidates", [])
        name = log.schedule["metadata"]["name"]
        blind = _excluded_behind(log.schedule, due) if candidates else set()
        return [
            f"I3: {at} of {name} is due and undecided" for at in due if _text(at) not in candidates and at not in blind
        ]


def _admitted(records: list[Json]) -> list[Json]:
    return [each for each in records if each["spec"]["decision"] == "Admitted"]


def _chain_problems(records: list[Json]) -> list[str]:
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


def _account_problems(log: _Log) -> list[str]:
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


def _due(log: _Log, generation: int, since: datetime, until: datetime) -> list[datetime]:
    body = log.specs.get(generation)
    accepted = accept(wire.schedule_of(body)) if body else None
    if not isinstance(accepted, Accepted):
        return []
    return list(due_times(accepted.trigger, after=since, until=until))


def _excluded_behind(schedule: Json, due: list[datetime]) -> set[datetime]:
    """Give the instants on excluded dates: behind a candidate they are skipped as soon as it is decided."""
    accepted = accept(wire.schedule_of(schedule))
    return {at for at in due if isinstance(accepted, Accepted) and is_excluded(accepted.trigger, at)}


def _finished_at(job: Json) -> datetime | None:
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in {"Complete", "Failed"} and condition["status"] == "True":
            return parse_utc(condition["lastTransitionTime"])
    return None


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
