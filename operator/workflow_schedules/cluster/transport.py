"""One HTTP connection pool to the API server, behind a protocol that tests implement too.

Bytes in, bytes out: no kinds, no meaning of status codes, no retries of what may have been carried out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from workflow_schedules.cluster.connection import Connection, NoConnectionError
from workflow_schedules.cluster.errors import UnansweredError, error_of

# More than are ever asked for at a time (scheduler/turns): one that hangs holds its connection, and nobody waits for it.
POOL_CONNECTIONS: Final = 256
CONNECT_TIMEOUT_SECONDS: Final = 5.0
CLOSING_TURNS: Final = 8
KEEP_ALIVE_SECONDS: Final = 60.0
TOKEN_MAX_AGE_SECONDS: Final = 60.0
_TRANSPORT_ERRORS: Final = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete HTTP response; ``headers`` have lower-case keys."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """What the client needs of a way to the API server."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str | None = None,
        timeout_seconds: float,
    ) -> Answer:
        """Send one request and read the whole answer, whatever its status.

        Raises:
            UnansweredError: no complete answer within ``timeout_seconds``.
        """
        ...

    def stream(
        self, path: str, *, query: Mapping[str, str], idle_timeout_seconds: float
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a watch until the server ends it.

        Raises:
            ClusterError: the server refused the watch.
            UnansweredError: the connection broke, or was silent for ``idle_timeout_seconds``.
        """
        ...

    async def close(self) -> None:
        """Close all connections; requests in flight end as unanswered."""
        ...


class AiohttpTransport:
    """Keep-alive connections to one API server: as many as requests are sent at a time, and one per watch beside them.

    Create it inside the running event loop.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        pool_connections: int = POOL_CONNECTIONS,
        extra_headers: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare connections without opening one; ``extra_headers`` go with every request.

        Raises:
            NoConnectionError: the connection's certificates can't be loaded.
        """
        self._connection = connection
        self._base = connection.server.rstrip("/")
        self._tls = connection.ssl_context()
        self._token = _Token(connection)
        # Not gzip: compressing pages of a list would be paid from the API server's CPU, which is the wall.
        self._fixed_headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "workflow-schedules",
            **(extra_headers or {}),
        }
        self._requests = self._session(pool_connections)
        self._watches = self._session(0)

    def _session(self, limit: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=limit, ssl=self._tls or True, keepalive_timeout=KEEP_ALIVE_SECONDS, ttl_dns_cache=60
        )
        return aiohttp.ClientSession(
            connector=connector,
            middlewares=(_send_writes_once,),
            headers=self._fixed_headers,
            auto_decompress=False,
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str | None = None,
        timeout_seconds: float,
    ) -> Answer:
        """See ``Transport.request``; a 401 is tried once more if the token has changed meanwhile."""
        url = self._url(path, query)
        limits = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=CONNECT_TIMEOUT_SECONDS)
        token = self._token.read()
        answer = await self._once(method, url, body, _headers(token, content_type), limits)
        if answer.status == 401:
            # Refused before anything was done, so it is safe to send it again.
            renewed = self._token.renew()
            if renewed != token:
                answer = await self._once(method, url, body, _headers(renewed, content_type), limits)
        return answer

    async def _once(
        self, method: str, url: URL, body: bytes | None, headers: Mapping[str, str], limits: aiohttp.ClientTimeout
    ) -> Answer:
        try:
            async with self._requests.request(
                method,
                url,
                data=body,
                headers=headers,
                timeout=limits,
                allow_redirects=False,
                server_hostname=self._connection.tls_server_name,
            ) as response:
                return Answer(response.status, lower(response.headers), await response.read())
        except _TRANSPORT_ERRORS as error:
            raise _unanswered(error) from error

    async def stream(
        self, path: str, *, query: Mapping[str, str], idle_timeout_seconds: float
    ) -> AsyncGenerator[bytes, None]:
        """See ``Transport.stream``."""
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=idle_timeout_seconds
        )
        try:
            async with self._watches.get(
                self._url(path, query),
                headers=_headers(self._token.read(), None),
                timeout=timeout,
                allow_redirects=False,
                server_hostname=self._connection.tls_server_name,
            ) as response:
                if response.status != 200:
                    if response.status == 401:
                        self._token.renew()
                    raise error_of(response.status, lower(response.headers), await response.read())
                try:
                    async for line in lines(response.content):
                        yield line
                finally:
                    _abort(response)
        except _TRANSPORT_ERRORS as error:
            raise _unanswered(error) from error

    async def close(self) -> None:
        """See ``Transport.close``."""
        await self._requests.close()
        await self._watches.close()
        for _ in range(CLOSING_TURNS):  # lets aborted connections end, those with TLS too, before the loop does
            await asyncio.sleep(0)

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        return URL(f"{self._base}{path}?{_encoded(tuple(query.items()))}" if query else self._base + path, encoded=True)


@lru_cache(maxsize=64)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)


class _Token:
    """The bearer token, re-read when it is a minute old or was refused."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._token: str | None = None
        self._read_at: float | None = None

    def read(self) -> str | None:
        now = time.monotonic()
        if self._read_at is None or now - self._read_at >= TOKEN_MAX_AGE_SECONDS:
            self._keep(self._connection.current_token, now)
        return self._token

    def renew(self) -> str | None:
        self._keep(self._connection.renewed_token, time.monotonic())
        return self._token

    def _keep(self, read: Callable[[], str | None], now: float) -> None:
        try:
            self._token = read()
        except (OSError, NoConnectionError) as error:
            if self._token is None:
                message = f"cannot read the token: {error}"
                raise UnansweredError(message, reason="Token") from error
        self._read_at = now


async def _send_writes_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating a PUT or DELETE whose connection broke: it may have been carried out (P2)."""
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if request.method == "GET":
            raise
        raise _unanswered(error) from error


async def lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes, None]:
    """Split into lines of any length; aiohttp's own reader refuses long ones. A last line without end is dropped."""
    rest: list[bytes] = []
    async for chunk in content.iter_any():
        first, *others = chunk.split(b"\n")
        rest.append(first)
        for start in others:
            line = b"".join(rest)
            rest = [start]
            if line:
                yield line


def _abort(response: aiohttp.ClientResponse) -> None:
    """Drop the connection of a watch that is left early; a polite TLS shutdown would linger after ``close``."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def _headers(token: str | None, content_type: str | None) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if content_type:
        headers["Content-Type"] = content_type
    return headers


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers by lower-case names: of `Warning` all values as one list, of others the last, as one value reads."""
    lowered: dict[str, str] = {}
    for key, value in headers.items():
        name = key.lower()
        lowered[name] = f"{lowered[name]}, {value}" if name == "warning" and name in lowered else value
    return lowered


def _unanswered(error: BaseException) -> UnansweredError:
    text = str(error) or "no answer in time"
    return UnansweredError(text, reason=type(error).__name__)
