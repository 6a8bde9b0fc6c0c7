"""How kopf reaches the API server: with whose account, and by a session that reads what was nested too deeply.

kopf reads lists and watches with Python's json and copies each object, and both give up at some depth; then its watch ends,
is begun anew, and meets the same object again (I9). So it gets a session of ours, whose answers are cut where nothing can
use them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import aiohttp
import kopf
import orjson

from workflow_schedules.cluster.connection import from_environment
from workflow_schedules.cluster.decoding import cut, decode_shallow
from workflow_schedules.cluster.transport import lines

if TYPE_CHECKING:
    from aiohttp.connector import Connection

    from workflow_schedules.handlers.hearing import Hearing

NONSENSE_PAUSE_SECONDS = 1.0
_GONE = 410


def account(**kwargs: Any) -> kopf.ConnectionInfo | None:  # noqa: ANN401 - what kopf gives a login handler
    """Use KUBECONFIG, or the Pod's service account; by address, for the names of a cluster are one more thing to fail."""
    if os.environ.get("KUBECONFIG"):
        return kopf.login_with_kubeconfig(**kwargs)
    found = kopf.login_with_service_account(**kwargs)
    return replace(found, server=from_environment(os.environ).server) if found else None


def session_of(found: kopf.ConnectionInfo, hearing: Hearing) -> kopf.AiohttpSession:
    """Open the session that kopf would have opened, but for its answers; for others to close. Needs the running event loop."""
    return _Session(
        server=found.server,
        priority=found.priority,
        default_namespace=found.default_namespace,
        expiration=found.expiration,
        found=found,
        aiohttp_session=aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=found.as_ssl_context()),
            headers=found.as_http_headers(),
            proxy=found.proxy_url,
            trust_env=found.trust_env,
            response_class=_Answer,
            middlewares=(hearing.listen,),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _Session(kopf.AiohttpSession):
    """The same account is the same session, so that kopf knows one that was refused and does not log in for ever."""

    aiohttp_session: aiohttp.ClientSession = field(compare=False)
    found: kopf.ConnectionInfo


class _Answer(aiohttp.ClientResponse):
    """An answer that says null for what is nested too deeply."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Read the head; the body comes line by line if kopf wants it so."""
        await super().start(connection)
        self.content = _Lines(self.content)  # type: ignore[assignment]  # it stands for all that kopf and aiohttp use
        return self

    async def json(self, **_: Any) -> Any:  # noqa: ANN401
        """Read the whole body; what is no JSON counts as a broken connection, which kopf gets over."""
        try:
            return decode_shallow(await self.read())
        except orjson.JSONDecodeError as error:
            raise aiohttp.ClientPayloadError("the answer is not JSON") from error


class _Lines:
    """The body of an answer, whose lines are each a JSON text."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._content, name)

    async def iter_chunked(self, _bytes: int) -> AsyncGenerator[bytes, None]:
        """Yield whole lines, whatever was asked for; one that makes no sense counts as a broken connection.

        kopf itself would end all its watches by it, and by an error of the server that is told in a line.
        """
        async for line in lines(self._content):
            shallow = cut(line)
            if not _makes_sense(shallow):
                await asyncio.sleep(NONSENSE_PAUSE_SECONDS)  # it connects anew at once
                raise aiohttp.ClientPayloadError("a line of the watch makes no sense")
            yield shallow + b"\n"


def _makes_sense(line: bytes) -> bool:
    try:
        event = orjson.loads(line)
        return bool(event["type"] != "ERROR" or event["object"]["code"] == _GONE)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False
