"""Tells the auditor what the API server stores: from its audit log, from watches, and from a list at the end."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from soak_lib.audit_log import AuditLog, told, told_by
from soak_lib.auditor import Auditor
from soak_lib.commits import CommitOrder, Told
from workflow_schedules.cluster.client import Client
from workflow_schedules.cluster.errors import ClusterError
from workflow_schedules.cluster.methods import DEFINITIONS, JOBS, OCCURRENCES, SCHEDULES, Resource
from workflow_schedules.cluster.watch import watch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from workflow_schedules.cluster.transport import Transport

Json = dict[str, Any]

RESOURCES = {resource.plural: resource for resource in (DEFINITIONS, SCHEDULES, OCCURRENCES, JOBS)}
PATIENCE = timedelta(seconds=45)  # for the decision on an instant, and the record of an end, on a machine that is busy
_EVERY_SECONDS = 1.0


class Observer:
    """Watches from entry on; `auditor` has what is old enough to be in order.

    Args:
        transport: of an administrator.
        audit_log: None where the API server writes none.
        on_job: is told each Job, and whether it is gone.
    """

    def __init__(self, transport: Transport, audit_log: Path | None, *, on_job: Callable[[Json, bool], None]) -> None:
        self.auditor = Auditor(patience=PATIENCE, status_lag=PATIENCE)
        self.order = CommitOrder()
        self._client = Client(transport)
        self._log = AuditLog(audit_log) if audit_log else None
        self._on_job = on_job
        self._tasks: list[asyncio.Task[None]] = []
        self.told: Counter[str] = Counter()  # how much each source told

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._watch(kind, resource)) for kind, resource in RESOURCES.items()]
        self._tasks.append(asyncio.create_task(self._follow_log()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._log:
            self._log.close()

    async def look(self) -> datetime:
        """Take what was left out from a list of all that is there, and judge everything so far.

        Returns:
            As of when.

        Raises:
            ClusterError: the API server can't be read.
        """
        now = datetime.now(UTC)
        lists = {kind: await self._client.list_all(resource) for kind, resource in RESOURCES.items()}
        self._read_log()
        for kind, (items, _) in lists.items():
            self._take_all(kind, items)
        self._judge(everything=True)
        for kind, (items, version) in lists.items():
            self._take_missing(kind, items, version)
        self._judge(everything=True)
        return now

    async def _watch(self, kind: str, resource: Resource) -> None:
        await watch(self._client, resource, on_list=partial(self._listed, kind), on_event=partial(self._changed, kind))

    def _listed(self, kind: str, items: list[Json], version: str) -> None:
        self._take_all(kind, items)
        self._take_missing(kind, items, version)
        if kind == "jobs":
            for job in items:
                self._on_job(job, False)

    def _changed(self, kind: str, event: str, body: Json) -> None:
        is_gone = event == "DELETED"
        self.told["versions told by watches"] += 1
        self.order.add(told(kind, body, datetime.now(UTC), is_removed=is_gone))
        if kind == "jobs":
            self._on_job(body, is_gone)

    def _take_all(self, kind: str, items: list[Json]) -> None:
        now = datetime.now(UTC)
        self.told["versions told by lists"] += len(items)
        for body in items:
            self.order.add(told(kind, body, now))

    def _take_missing(self, kind: str, items: list[Json], version: str) -> None:
        """Note as removed what was there and is not in a list."""
        now = datetime.now(UTC)
        there = {body["metadata"]["uid"] for body in items}
        for key, body in self.order.present(kind).items():
            uid = body["metadata"]["uid"]
            if uid not in there and int(body["metadata"]["resourceVersion"]) <= int(version):
                self.order.add(
                    Told(version=int(version), kind=kind, key=key, body=None, is_removed=True, at=now, uid=uid)
                )

    async def _follow_log(self) -> None:
        while True:
            self._read_log()
            self._judge()
            await asyncio.sleep(_EVERY_SECONDS)

    def _read_log(self) -> None:
        if self._log:
            for line in self._log.lines():
                if found := told_by(line, self.order.newest_version):
                    self.told["versions told by the audit log"] += 1
                    self.order.add(found)

    def _judge(self, *, everything: bool = False) -> None:
        for commit in self.order.given(everything=everything):
            self.auditor.see(commit)


async def leader_of(client: Client, lease_namespace: str) -> str:
    """Return who holds the Lease, or nothing."""
    with suppress(ClusterError):
        lease = await client.get_lease(lease_namespace, "workflow-schedules")
        return str(lease["spec"].get("holderIdentity") or "")
    return ""
