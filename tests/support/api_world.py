"""One API server, real or fake, as the contract checks see it: what they write there, and the table that they enter."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import orjson
import pytest

from workflow_schedules.api.names import (
    ANNOTATION_EPOCH,
    ANNOTATION_WRITER,
    API_VERSION,
    KIND_OCCURRENCE,
    KIND_SCHEDULE,
    LABEL_SCHEDULE_UID,
)
from workflow_schedules.cluster.client import Client, Json
from workflow_schedules.cluster.errors import (
    ForbiddenError,
    NotFoundError,
    error_of,
)
from workflow_schedules.cluster.leases import LeaseRecord, create_lease, read_lease, replace_lease
from workflow_schedules.cluster.methods import Resource
from workflow_schedules.cluster.transport import Transport

LEASE_NAMESPACE = "workflow-schedules-system"
LEASE_NAME = "workflow-schedules"
WRITER = "contract-test"
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class World:
    """One API server, real or not, and a namespace of one's own in it."""

    transport: Transport
    namespace: str
    forget_history: Callable[[], None]
    epoch: int = 0

    @property
    def client(self) -> Client:
        return Client(self.transport)

    async def send(
        self, method: str, resource: Resource, name: str | None = None, body: Json | None = None, **query: str
    ) -> Json:
        answer = await self.transport.request(
            method,
            resource.path(self.namespace, name),
            query=query,
            body=None if body is None else orjson.dumps(body),
            content_type="application/merge-patch+json" if method == "PATCH" else "application/json",
            timeout_seconds=15,
        )
        if answer.status >= 300:
            raise error_of(answer.status, answer.headers, answer.body)
        return dict(orjson.loads(answer.body))

    async def watched(self, resource: Resource, version: str, *, count: int, **query: str) -> list[tuple[str, Json]]:
        """Watch from a version until ``count`` lines other than bookmarks came, or the watch ended."""
        found: list[tuple[str, Json]] = []
        query |= {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
        query.setdefault("timeoutSeconds", "10")
        stream = self.transport.stream(resource.path(self.namespace), query=query, idle_timeout_seconds=20)
        async with aclosing(stream) as lines:
            async for line in lines:
                event = orjson.loads(line)
                if event["type"] != "BOOKMARK":
                    found.append((event["type"], event["object"]))
                if len(found) == count:
                    break
        return found

    def record(
        self,
        number: int = 1,
        *,
        labels: Mapping[str, str] | None = None,
        decision: str = "Admitted",
        schedule: str = "s",
    ) -> Json:
        """A record as the holder of the Lease writes it."""
        spec = {
            "scheduleRef": {"name": schedule, "uid": "u-1"},
            "sequence": number,
            "format": 1,
            "cause": "Scheduled",
            "decision": decision,
            "generation": 1,
            "scheduledTime": "2026-01-01T00:00:00Z",
            "fencingEpoch": self.epoch,
            "writer": WRITER,
        }
        metadata = {"name": a_name(number), "labels": {LABEL_SCHEDULE_UID: "u-1", **(labels or {})}}
        return {"apiVersion": API_VERSION, "kind": KIND_OCCURRENCE, "metadata": metadata, "spec": spec}

    def job(self, name: str = "j") -> Json:
        """A Job as the holder of the Lease writes it."""
        pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        annotations = {ANNOTATION_EPOCH: str(self.epoch), ANNOTATION_WRITER: WRITER}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "labels": {LABEL_SCHEDULE_UID: "u-1"}, "annotations": annotations},
            "spec": {"template": {"spec": pod}},
            "status": {"active": 3},
        }

    def status(self, **fields: object) -> Json:
        """A patch of a status as the holder of the Lease writes it."""
        return {"status": {**fields, "fencingEpoch": self.epoch, "writer": WRITER}}

    async def set_outcome(self, outcome: str | None, number: int = 1) -> Json:
        return await self.client.patch_occurrence_status(self.namespace, a_name(number), self.status(outcome=outcome))

    async def hold_lease(self) -> None:
        """Be the holder of the Lease under an epoch of its own, and wait until the fence knows it."""
        try:
            now = await read_lease(self.client, LEASE_NAMESPACE, LEASE_NAME)
            taken = replace(now, holder=WRITER, transitions=now.transitions + 1, renew_time=LONG_AGO)
            held = await replace_lease(self.client, LEASE_NAMESPACE, LEASE_NAME, taken)
        except NotFoundError:
            record = LeaseRecord(holder=WRITER, transitions=1, duration_seconds=1, renew_time=LONG_AGO)
            held = await create_lease(self.client, LEASE_NAMESPACE, LEASE_NAME, record)
        self.epoch = held.transitions
        await eventually(lambda: self.is_fenced(self.record()), False)

    async def is_fenced(self, record: Json) -> bool:
        """Ask whether the fence refuses this record."""
        try:
            await self.client.create_occurrence(self.namespace, record, dry_run=True)
        except ForbiddenError as error:
            return error.is_fence
        return False


async def eventually(ask: Callable[[], Awaitable[bool]], wanted: bool) -> None:
    """Ask until the answer is the wanted one, as admission sees the Lease a moment later."""
    for _ in range(200):
        if await ask() is wanted:
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"{ask} is not {wanted} after 10 s")


Check = Callable[[World], Awaitable[None]]
CONTRACT: list[Check] = []


def contract(check: Check) -> Check:
    CONTRACT.append(check)
    return check


def a_name(number: int = 1) -> str:
    return f"s-00000000-{number:09}"


def a_schedule(name: str = "s") -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    spec = {"enabled": True, "schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    return {"apiVersion": API_VERSION, "kind": KIND_SCHEDULE, "metadata": {"name": name}, "spec": spec}


def version(body: Json) -> str:
    return str(body["metadata"]["resourceVersion"])
