"""Forges what an API server's audit log would say of a schedule, its records and its Jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from soak_lib.audit_log import told_by
from soak_lib.auditor import Auditor
from soak_lib.commits import CommitOrder
from support.objects import a_schedule

Json = dict[str, Any]
PLURAL = {"WorkflowSchedule": "workflowschedules", "ScheduleOccurrence": "scheduleoccurrences", "Job": "jobs"}


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-02T{text}").replace(tzinfo=UTC)


def stamp(text: str) -> str:
    return f"{at(text):%Y-%m-%dT%H:%M:%SZ}"


class Forger:
    """Writes an audit log; each write is one line, a second after the one before unless `now` is set."""

    def __init__(self) -> None:
        self.now = at("10:00:00")
        self.lines: list[bytes] = []
        self.objects: dict[tuple[str, str], Json] = {}
        self.version = 100
        self.received_at: datetime | None = None  # of the requests from now on, where that is not when they were stored

    def write(self, verb: str, body: Json) -> None:
        self.version += 1
        self.now += timedelta(seconds=1)
        metadata = {"namespace": "ns", "creationTimestamp": f"{self.now:%Y-%m-%dT%H:%M:%SZ}", **body["metadata"]}
        body = {**body, "metadata": {**metadata, "resourceVersion": str(self.version)}}
        self.objects[body["kind"], metadata["name"]] = body
        self.log(verb, body["kind"], metadata["name"], body)

    def log(self, verb: str, kind: str, name: str, answer: Json, *, query: str = "", code: int = 200) -> None:
        event = {
            "kind": "Event",
            "verb": verb,
            "requestURI": f"/apis/somewhere{query}",
            "objectRef": {"resource": PLURAL[kind], "namespace": "ns", "name": name},
            "responseStatus": {"code": code},
            "responseObject": answer,
            "requestReceivedTimestamp": (self.received_at or self.now).isoformat(),
            "stageTimestamp": self.now.isoformat(),
        }
        self.lines.append(orjson.dumps(event))

    def schedule(self, name: str = "s", uid: str = "S", **spec: object) -> None:
        body = a_schedule(name, schedule="* * * * *", **spec)
        self.write("create", {**body, "metadata": {**body["metadata"], "uid": uid, "generation": 1}})

    def edit(self, **spec: object) -> None:
        body = self.objects["WorkflowSchedule", "s"]
        metadata = {**body["metadata"], "generation": body["metadata"]["generation"] + 1}
        self.write("patch", {**body, "metadata": metadata, "spec": {**body["spec"], **spec}})

    def status(self, **fields: object) -> None:
        body = self.objects["WorkflowSchedule", "s"]
        self.write("patch", {**body, "status": {**body.get("status", {}), **fields}})

    def record(self, number: int, decision: str, time: str = "", **spec: object) -> None:
        """Append a record about one instant; its watermark is that instant unless told otherwise."""
        fields = {
            "scheduleRef": {"name": "s", "uid": "S"},
            "cause": "Scheduled",
            "sequence": number,
            "decision": decision,
            "state": "Active",
            "generation": 1,
            "fencingEpoch": 3,
            "lease": "system/lease",
            "previousUID": f"R{number - 1}",
            "consumedThroughTime": stamp(time or "10:00:00"),
            **({"scheduledTime": stamp(time)} if time else {}),
            **spec,
        }
        metadata = {"name": f"s-0-{number}", "uid": f"R{number}"}
        self.write("create", {"kind": "ScheduleOccurrence", "metadata": metadata, "spec": fields})

    def job(self, number: int, name: str = "", uid: str = "") -> None:
        owner = {"kind": "ScheduleOccurrence", "uid": f"R{number}", "controller": True}
        labels = {"workflow-schedules.dev/schedule-uid": "S"}
        metadata = {
            "name": name or f"s-0-{number}",
            "uid": uid or f"J{number}",
            "ownerReferences": [owner],
            "labels": labels,
        }
        self.write("create", {"kind": "Job", "metadata": metadata})

    def end(self, number: int) -> None:
        body = self.objects["Job", f"s-0-{number}"]
        ended = {"type": "Complete", "status": "True", "lastTransitionTime": f"{self.now:%Y-%m-%dT%H:%M:%SZ}"}
        self.write("patch", {**body, "status": {"conditions": [ended]}})

    def remove(self, kind: str, name: str) -> None:
        """Delete, answered as the API server does: without the object."""
        uid = self.objects[kind, name]["metadata"]["uid"]
        self.now += timedelta(seconds=1)
        self.log("delete", kind, name, {"kind": "Status", "status": "Success", "details": {"uid": uid}})

    def outcome(self, number: int, outcome: str = "Completed") -> None:
        body = self.objects["ScheduleOccurrence", f"s-0-{number}"]
        self.write("patch", {**body, "status": {"outcome": outcome}})

    def run(self, number: int, time: str, **spec: object) -> None:
        """A run as it should be."""
        self.now = max(self.now, at(time))
        self.record(number, "Admitted", time, **spec)
        self.job(number)
        self.end(number)
        self.outcome(number)


def begin(**spec: object) -> Forger:
    forger = Forger()
    forger.schedule(**spec)
    forger.record(1, "Baseline")
    return forger


def judged(forger: Forger, *, now: str, is_settled: bool = True) -> list[str]:
    """Put the lines through all that hack/soak does."""
    order, auditor = CommitOrder(), Auditor()
    for line in forger.lines:
        found = told_by(line, order.newest_version)
        if found is not None:
            order.add(found)
        for commit in order.given():
            auditor.see(commit)
    for commit in order.given(everything=True):
        auditor.see(commit)
    return auditor.problems(at(now), is_settled=is_settled)
