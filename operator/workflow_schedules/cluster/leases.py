"""The Lease as a record, and the four requests on it. Who may lead, and when, is decided elsewhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from workflow_schedules.cluster.client import Client, Json
from workflow_schedules.cluster.methods import LEASES
from workflow_schedules.cluster.watch import event_of

API_VERSION: Final = "coordination.k8s.io/v1"
KIND: Final = "Lease"
WATCH_SECONDS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """What a Lease says; missing fields are read as empty, zero or None, never as an error.

    Attributes:
        holder: identity of the holder; empty when released.
        transitions: the epoch: raised by every acquisition (P16).
        duration_seconds: how long after ``renew_time`` nobody else may take it.
        acquire_time: when the holder took it, by the holder's clock.
        renew_time: when the holder last renewed it, by the holder's clock.
        resource_version: for the compare-and-set; empty for a Lease to create.
        uid: with the former; without it, a replace of a Lease that was deleted would create it anew (measured).
    """

    holder: str
    transitions: int
    duration_seconds: int
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    resource_version: str = ""
    uid: str = ""


async def read_lease(client: Client, namespace: str, name: str) -> LeaseRecord:
    """Read the Lease.

    Raises:
        NotFoundError: there is none.
        ClusterError: any other failure.
    """
    return lease_of(await client.get_lease(namespace, name))


async def create_lease(client: Client, namespace: str, name: str, record: LeaseRecord) -> LeaseRecord:
    """Create the Lease.

    Raises:
        AlreadyExistsError: somebody was faster.
        ClusterError: any other failure.
    """
    return lease_of(await client.create_lease(namespace, lease_body(namespace, name, record)))


async def replace_lease(client: Client, namespace: str, name: str, record: LeaseRecord) -> LeaseRecord:
    """Replace the Lease as it was at ``record.resource_version``.

    Raises:
        ConflictError: somebody wrote or deleted it since.
        ClusterError: any other failure.
    """
    return lease_of(await client.replace_lease(namespace, name, lease_body(namespace, name, record)))


async def follow_lease(
    client: Client, namespace: str, name: str, *, resource_version: str, silence_seconds: float
) -> AsyncGenerator[LeaseRecord, None]:
    """Yield the Lease whenever it changes after a version, until the server ends the watch; one that is gone has no holder.

    Raises:
        UnansweredError: the connection broke, was silent for so long, or said something that makes no sense.
        ClusterError: any other failure.
    """
    query = {
        "fieldSelector": f"metadata.name={name}",
        "resourceVersion": resource_version,
        "timeoutSeconds": str(WATCH_SECONDS),
    }
    async with aclosing(
        client.watch_lines(LEASES, namespace=namespace, query=query, idle_timeout_seconds=silence_seconds)
    ) as lines:
        async for line in lines:
            kind, record = event_of(line, lease_of)
            yield replace(record, holder="") if kind == "DELETED" else record


def lease_of(body: Json) -> LeaseRecord:
    """Read a Lease object, whatever others wrote into it."""
    spec, metadata = _mapping(body.get("spec")), _mapping(body.get("metadata"))
    return LeaseRecord(
        holder=str(spec.get("holderIdentity") or ""),
        transitions=_number(spec.get("leaseTransitions")),
        duration_seconds=_number(spec.get("leaseDurationSeconds")),
        acquire_time=parse_micro_time(spec.get("acquireTime")),
        renew_time=parse_micro_time(spec.get("renewTime")),
        resource_version=str(metadata.get("resourceVersion") or ""),
        uid=str(metadata.get("uid") or ""),
    )


def lease_body(namespace: str, name: str, record: LeaseRecord) -> Json:
    """Write a Lease object; only ``create`` and ``update`` are used, so it is always whole."""
    metadata = {"namespace": namespace, "name": name}
    if record.resource_version:
        metadata["resourceVersion"] = record.resource_version
    if record.uid:
        metadata["uid"] = record.uid
    spec: Json = {"leaseTransitions": record.transitions, "leaseDurationSeconds": record.duration_seconds}
    if record.holder:
        spec["holderIdentity"] = record.holder
    if record.acquire_time is not None:
        spec["acquireTime"] = micro_time(record.acquire_time)
    if record.renew_time is not None:
        spec["renewTime"] = micro_time(record.renew_time)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def micro_time(at: datetime) -> str:
    """Write a ``MicroTime``: ``2026-11-30T08:00:00.000000Z``."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_micro_time(text: object) -> datetime | None:
    """Read a ``MicroTime``; None for what is none."""
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo is not None else None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
