"""The API server as people and the finisher of Jobs use it: with all rights, and without minding its faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from workflow_schedules.cluster.errors import ClusterError
from workflow_schedules.cluster.transport import AiohttpTransport

if TYPE_CHECKING:
    from workflow_schedules.cluster.connection import Connection

Json = dict[str, Any]

OURS = "/apis/workflow-schedules.dev/v1alpha1"
PATHS = {
    "workflowdefinitions": OURS,
    "workflowschedules": OURS,
    "scheduleoccurrences": OURS,
    "jobs": "/apis/batch/v1",
    "leases": "/apis/coordination.k8s.io/v1",
}
_TIMEOUT_SECONDS = 15.0


class Admin:
    """Requests as administrator; create it inside the running event loop."""

    def __init__(self, connection: Connection) -> None:
        self.transport = AiohttpTransport(connection, pool_connections=8, extra_headers={"User-Agent": "soak"})

    async def close(self) -> None:
        await self.transport.close()

    async def get(self, plural: str, namespace: str, name: str) -> Json | None:
        """Read an object; None when it is not there or the server does not answer."""
        _, body = await self._send("GET", _path(plural, namespace, name))
        return body

    async def create(self, plural: str, namespace: str, body: Json) -> int:
        """Create an object; returns the code of the answer, 0 without one."""
        code, _ = await self._send("POST", _path(plural, namespace), body)
        return code

    async def patch(self, plural: str, namespace: str, name: str, body: Json, *, subresource: str = "") -> int:
        """Merge into an object; returns the code of the answer, 0 without one."""
        path = _path(plural, namespace, name) + (f"/{subresource}" if subresource else "")
        code, _ = await self._send("PATCH", path, body, content_type="application/merge-patch+json")
        return code

    async def delete(self, plural: str, namespace: str, name: str) -> int:
        """Delete an object; returns the code of the answer, 0 without one."""
        code, _ = await self._send("DELETE", _path(plural, namespace, name))
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


def _path(plural: str, namespace: str, name: str = "") -> str:
    return f"{PATHS[plural]}/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")
