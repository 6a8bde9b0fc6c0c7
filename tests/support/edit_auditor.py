"""Holds what the operator writes to what people wrote: generations, switches, templates, epochs (I5, I6; P4, P5, P11, P15).

It watches every commit and every request as it leaves its process. The log itself is the Auditor's business.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from support.api_hooks import JOB_CONTROLLER
from support.api_kinds import KIND_OF, Json, Kind
from support.api_requests import USER, ApiRequest
from support.api_server import Clock, FakeApiServer
from support.api_store import Change
from support.retention_auditor import identity_of
from workflow_schedules.api.common import parse_utc
from workflow_schedules.api.names import ANNOTATION_EPOCH
from workflow_schedules.cluster.templates import revision_name
from workflow_schedules.cluster.wire import schedule_of

_NO_JOB = frozenset({"JobMissing", "NotStarted", "StartUnknown", "JobRejected"})
TOLERANCE = timedelta(seconds=1)  # whole seconds in objects


@dataclass(frozen=True, slots=True)
class _Version:
    """One generation of a schedule or definition, and when it was stored."""

    body: Json
    at: datetime
    is_break: bool  # nothing from before it may run after it


@dataclass(slots=True)
class _Seen:
    versions: dict[int, _Version] = field(default_factory=dict)
    head: Json = field(default_factory=dict)
    acknowledged: int = 0


class EditAuditor:
    """See the module; what is wrong goes to `violations`.

    Attributes:
        is_clock_trusted: no clock of an operator was set back: what it saw happened when it says.
        is_fenced: the server refuses other epochs than the Lease's, one server at one instant: no write comes late (P14).
    """

    def __init__(self, server: FakeApiServer, clock: Clock, violations: list[str], *, renew_seconds: float) -> None:
        self.is_clock_trusted = True
        self.is_fenced = True
        self._server = server
        self._clock = clock
        self._violations = violations
        self._renew_seconds = renew_seconds
        self._schedules: dict[str, _Seen] = defaultdict(_Seen)
        self._definitions: dict[str, _Seen] = defaultdict(_Seen)
        self._newest_epoch = 0
        self._asked: dict[str, float] = {}
        self._renewed: dict[str, float] = {}
        server.store.observers.append(self._observe)
        server.faults.append(self._see_request)

    def _wrong(self, rule: str, what: str) -> None:
        self._violations.append(f"{rule}: {what} (at {self._clock.now():%H:%M:%S})")

    def go_back(self, records: list[Json], schedules: list[Json]) -> None:
        """Forget what a restore of etcd forgot."""
        self._newest_epoch = 0
        there = {each["metadata"]["uid"]: each for each in schedules}
        for uid, seen in self._schedules.items():
            own = [each["spec"] for each in records if each["spec"]["scheduleRef"].get("uid") == uid]
            log = [each for each in own if each.get("cause") == "Scheduled"]
            seen.head = max(log, key=lambda spec: int(spec["sequence"]), default={})
            body = there.get(uid, {"metadata": {"generation": 0}})
            last = body["metadata"]["generation"]
            seen.versions = {number: version for number, version in seen.versions.items() if number <= last}
            seen.acknowledged = (body.get("status") or {}).get("observedGeneration", 0)

    # requests as they leave

    def _see_request(self, request: ApiRequest) -> None:
        now, is_write = asyncio.get_running_loop().time(), request.method not in {"GET", "WATCH"}
        if request.client in {USER, JOB_CONTROLLER} or not is_write or request.query.get("dryRun"):
            return
        if "/leases" in request.path:
            self._asked[identity_of(request.client)] = now
        elif "/events" not in request.path:
            renewed = self._renewed.get(identity_of(request.client))
            if renewed is None or now - renewed > self._renew_seconds:
                self._wrong("P15", f"{request.method} {request.path} left {request.client} without a Lease")

    # commits

    def _observe(self, kind: Kind, change: Change) -> None:
        if change.after is None:
            return
        body, before = change.after.body, change.before.body if change.before else {}
        match kind.plural:
            case "leases":
                holder = body["spec"].get("holderIdentity", "")
                if holder in self._asked:
                    self._renewed[holder] = self._asked[holder]
            case "workflowschedules":
                self._see_versions(self._schedules[body["metadata"]["uid"]], body, change)
                self._see_status(self._schedules[body["metadata"]["uid"]], body, before)
            case "workflowdefinitions":
                self._see_versions(self._definitions[body["metadata"]["uid"]], body, change)
            case "scheduleoccurrences":
                self._see_record(body, before)
            case "jobs" if change.before is None:
                self._see_job(body)

    def _see_versions(self, seen: _Seen, body: Json, change: Change) -> None:
        before = change.before.body if change.before else None
        if before is None or before["metadata"]["generation"] != body["metadata"]["generation"]:
            is_break = before is None or _is_break(before, body, self._clock.now())
            seen.versions[body["metadata"]["generation"]] = _Version(body, self._clock.now(), is_break)

    def _see_status(self, seen: _Seen, body: Json, before: Json) -> None:
        status = body.get("status") or {}
        if status != (before.get("status") or {}):
            self._see_epoch(status.get("fencingEpoch"), f"status of {body['metadata']['name']}")
        shown = status.get("observedGeneration", 0)
        if shown <= seen.acknowledged:
            return
        seen.acknowledged = shown
        decided = seen.head.get("generation", 0)
        breaks = [g for g, version in seen.versions.items() if decided < g <= shown and version.is_break]
        if breaks and seen.head.get("state") in {"Active", "Paused"}:
            self._wrong("R11", f"generation {shown} of {body['metadata']['name']} is acknowledged without a Baseline")

    def _see_record(self, body: Json, before: Json) -> None:
        spec, name = body["spec"], body["metadata"]["name"]
        status = body.get("status") or {}
        if before and status != (before.get("status") or {}):
            self._see_epoch(status.get("fencingEpoch"), f"outcome of {name}")
            self._judge_outcome(body, status)
        if before or spec.get("cause") != "Scheduled":
            return
        self._see_epoch(spec.get("fencingEpoch"), name)
        seen = self._schedules[spec["scheduleRef"].get("uid", "")]
        self._judge_generations(seen, spec, name)
        if spec["decision"] == "Admitted":
            self._judge_admission(seen, spec, name)
        seen.head = spec

    def _judge_outcome(self, record: Json, status: Json) -> None:
        metadata = record["metadata"]
        job = self._server.find("jobs", metadata["namespace"], metadata["name"])
        if job is None:
            return
        is_own = any(each["uid"] == metadata["uid"] for each in job["metadata"].get("ownerReferences", ()))
        if status.get("reason") in _NO_JOB and is_own:
            self._wrong("P12", f"{metadata['name']} is {status['reason']} though its Job is there")
        if status.get("jobUID") == job["metadata"]["uid"] and not is_own:
            self._wrong("P10", f"{metadata['name']} took the outcome of a Job that is not its own")

    def _judge_generations(self, seen: _Seen, spec: Json, name: str) -> None:
        head = seen.head
        if spec["generation"] < head.get("generation", 0):
            self._wrong("P5", f"{name} stands on generation {spec['generation']}, below {head['generation']}")
        same = head.get("definitionUID") == spec.get("definitionUID")
        if same and spec.get("definitionGeneration", 0) < head.get("definitionGeneration", 0):
            self._wrong("P5", f"{name} stands on an older generation of its definition")

    def _judge_admission(self, seen: _Seen, spec: Json, name: str) -> None:
        generation = spec["generation"]
        if seen.acknowledged > generation and any(
            version.is_break for g, version in seen.versions.items() if generation < g <= seen.acknowledged
        ):
            self._wrong("I5", f"{name} is admitted on {generation} though {seen.acknowledged} is acknowledged")
        version = seen.versions.get(generation)
        if version is not None and not version.body["spec"].get("enabled"):
            self._wrong("I5", f"{name} is admitted on a generation that is disabled")
        if self.is_clock_trusted:
            self._judge_watermark(seen, spec, name)

    def _judge_watermark(self, seen: _Seen, spec: Json, name: str) -> None:
        """Nothing of before the last edit or switch is run after it (R9, R18, R19)."""
        instant = parse_utc(spec["scheduledTime"])
        breaks = [v.at for g, v in seen.versions.items() if 1 < g <= spec["generation"] and v.is_break]
        if breaks and instant <= max(breaks) - TOLERANCE:
            self._wrong("R19", f"{name} is admitted for {instant:%H:%M:%S}, before the edit at {max(breaks):%H:%M:%S}")
        definition = self._definitions.get(spec.get("definitionUID") or "")
        if definition is None or not seen.head.get("definitionUID"):
            return
        since = seen.head.get("definitionGeneration") or 0
        flips = [
            v.at for g, v in definition.versions.items() if since < g <= spec["definitionGeneration"] and v.is_break
        ]
        if flips and instant <= max(flips) - TOLERANCE:
            self._wrong("R18", f"{name} is admitted for {instant:%H:%M:%S}, when its definition was off")

    def _see_job(self, job: Json) -> None:
        metadata = job["metadata"]
        epoch = (metadata.get("annotations") or {}).get(ANNOTATION_EPOCH, "")
        if not epoch.isdecimal():
            return
        self._see_epoch(int(epoch), f"Job {metadata['name']}")
        record = self._server.find("scheduleoccurrences", metadata["namespace"], metadata["name"])
        pinned = (record or {}).get("spec", {}).get("templateHash")
        revision = pinned and self._server.store.of(KIND_OF["controllerrevisions"]).get(
            (metadata["namespace"], revision_name(pinned))
        )
        if revision and _image(revision.body["data"]) != _image(job):
            self._wrong("P11", f"Job {metadata['name']} is of another template than its record pins")

    def _see_epoch(self, epoch: int | None, what: str) -> None:
        if epoch is None:
            return
        if self.is_fenced and epoch < self._newest_epoch:
            self._wrong("I6", f"{what} was written under epoch {epoch} after {self._newest_epoch} had begun")
        self._newest_epoch = max(self._newest_epoch, epoch)


def _is_break(before: Json, after: Json, now: datetime) -> bool:
    """Tell whether an edit is one from which on nothing older may run: not a lone change of what is irrelevant (R10)."""
    if before["kind"] == "WorkflowDefinition":
        return before["spec"].get("enabled", True) != after["spec"].get("enabled", True)
    if _switches(before, now) != _switches(after, now):
        return True
    return schedule_of(before).spec_hash != schedule_of(after).spec_hash


def _switches(schedule: Json, now: datetime) -> tuple[object, object]:
    """Return what enables and pauses a schedule; a pause that is over is none."""
    pause = schedule["spec"].get("pause")
    until = (pause or {}).get("untilTime")
    return schedule["spec"].get("enabled", False), None if until and parse_utc(until) <= now else pause


def _image(templated: Json) -> object:
    containers = templated["spec"]["template"]["spec"]["containers"]
    return [each.get("image") for each in containers]
