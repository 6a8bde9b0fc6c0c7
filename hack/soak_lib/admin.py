"""The API server as people and the finisher of Jobs use it: with all rights, and without minding its faults."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from workflow_schedules.cluster.errors import ClusterError
from workflow_schedules.cluster.methods import DEFINITIONS, JOBS, LEASES, OCCURRENCES, SCHEDULES
from workflow_schedules.cluster.transport import AiohttpTransport

if TYPE_CHECKING:
    from workflow_schedules.cluster.connection import Connection

Json = dict[str, Any]

RESOURCES = {each.plural: each for each in (DEFINITIONS, SCHEDULES, OCCURRENCES, JOBS, LEASES)}
_TIMEOUT_SECONDS = 15.0


class Admin:
    """Requests as administrator; create it inside the running event loop."""

    def __init__(self, connection: Connection) -> None:
        self.transport = AiohttpTransport(connection, pool_connections=8, extra_headers={"User-Agent": "soak"})

    async def close(self) -> None:
        await self.transport.close()

    async def get(self, plural: str, namespace: str, name: str) -> Json | None:
        """Read an object; None when it is not there or the server does not answer."""
        _, body = await self._send("GET", RESOURCES[plural].path(namespace, name))
        return body

    async def create(self, plural: str, namespace: str, body: Json) -> int:
        """Create an object; returns the code of the answer, 0 without one."""
        code, _ = await self._send("POST", RESOURCES[plural].path(namespace), body)
        return code

    async def patch(self, plural: str, namespace: str, name: str, body: Json, *, subresource: str = "") -> int:
        """Merge into an object; returns the code of the answer, 0 without one."""
        path = replace(RESOURCES[plural], subresource=subresource).path(namespace, name)
        code, _ = await self._send("PATCH", path, body, content_type="application/merge-patch+json")
        return code

    async def delete(self, plural: str, namespace: str, name: str) -> int:
        """Delete an object; returns the code of the answer, 0 without one."""
        code, _ = await self._send("DELETE", RESOURCES[plural].path(namespace, name))
        return code

    async def make_namespace(self, name: str) -> int:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        code, _ = await self._send("POST", "/api/v1/namespaces", body)
        return code

    async def _send(
        self, method: str, path: str, body: Json | None = None, *, content_type: str = "application/json"
    ) -> tuple[int, Json | None]:
        try:
            answer = await self.transport.request(
                method,
                path,
                body=None if body is None else orjson.dumps(body),
                content_type=None if body is None else content_type,
                timeout_seconds=_TIMEOUT_SECONDS,
            )
        except ClusterError:
            return 0, None
        return answer.status, orjson.loads(answer.body) if 200 <= answer.status < 300 else None
