"""The real control plane of hack/controlplane, for the tiers that run against one."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

REPOSITORY = Path(__file__).resolve().parents[2]
if str(REPOSITORY / "hack") not in sys.path:
    sys.path.insert(0, str(REPOSITORY / "hack"))

from controlplane_lib import binaries, downloads, install, lock, paths, plane, ports, processes  # noqa: E402 - found
from controlplane_lib.api import ControlPlane  # noqa: E402
from controlplane_lib.install import OPERATOR_USER  # noqa: E402
from controlplane_lib.operator_process import OperatorProcess  # noqa: E402
from faults_lib import faults, seen, streams  # noqa: E402
from faults_lib.proxy import FaultProxy  # noqa: E402

__all__ = [
    "OPERATOR_USER",
    "REPOSITORY",
    "AuditTrail",
    "ControlPlane",
    "FaultProxy",
    "OperatorProcess",
    "Request",
    "binaries",
    "downloads",
    "faults",
    "install",
    "lock",
    "paths",
    "plane",
    "ports",
    "processes",
    "seen",
    "streams",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One answered request, as the API server's audit log tells it."""

    verb: str
    resource: str  # "jobs", "workflowschedules/status"
    namespace: str
    name: str
    code: int
    user: str
    query: str
    at: datetime

    @property
    def is_dry_run(self) -> bool:
        """Whether it only asked, as the operator does once for each template."""
        return "dryRun=All" in self.query


class AuditTrail:
    """Counts requests: everything that was answered after this object was made."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._offset = log.stat().st_size
        self._seen: list[Request] = []

    def requests(self, *, user: str = OPERATOR_USER) -> list[Request]:
        """The requests of one user so far, oldest first; a watch appears when it ends."""
        self._read()
        return [request for request in self._seen if request.user == user]

    def settled(
        self, *, namespace: str, user: str = OPERATOR_USER, quiet_seconds: float = 1.0, patience_seconds: float = 60.0
    ) -> list[Request]:
        """As `requests`, those in one namespace, once no new one has come for that long."""
        end = time.monotonic() + patience_seconds
        seen, since = self._in(namespace, user), time.monotonic()
        while time.monotonic() - since < quiet_seconds:
            assert time.monotonic() < end, f"{user} still sends requests about {namespace}: {seen[-5:]}"
            time.sleep(0.2)
            now = self._in(namespace, user)
            if len(now) != len(seen):
                seen, since = now, time.monotonic()
        return seen

    def _in(self, namespace: str, user: str) -> list[Request]:
        return [request for request in self.requests(user=user) if request.namespace == namespace]

    def _read(self) -> None:
        """Take in what was logged since the last look."""
        with self._log.open("rb") as log:
            log.seek(self._offset)
            for line in log:
                if not line.endswith(b"\n"):  # the API server is writing it
                    return
                self._offset += len(line)
                self._seen.append(_request(orjson.loads(line)))


def _request(event: dict[str, Any]) -> Request:
    target = event.get("objectRef", {})
    resource = "/".join(part for part in (target.get("resource", ""), target.get("subresource", "")) if part)
    return Request(
        verb=str(event["verb"]),
        resource=resource,
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=int(event.get("responseStatus", {}).get("code", 0)),
        user=event["user"]["username"],
        query=str(event["requestURI"]).partition("?")[2],
        at=datetime.fromisoformat(str(event["requestReceivedTimestamp"])),
    )
