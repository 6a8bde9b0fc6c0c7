"""A proxy between one operator and a real API server, in a thread of its own: it numbers requests and does as faults say.

    with FaultProxy(kubeconfig) as proxy, OperatorProcess(plane, folder, server=proxy.url) as operator:
        proxy.add(Fault("lost", on("create", "jobs"), lose_answer()))

Plain HTTP towards the operator, whose bearer token is passed on; TLS towards the API server. What the operator sent and gave
up is carried out all the same, as a real server does.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from faults_lib.faults import HANG_UP, Fault, Reply
from faults_lib.seen import Seen, seen
from faults_lib.streams import EndError, StreamFault, read_event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "upgrade", "te", "trailer"}
_BODY_LIMIT = 64 * 1024 * 1024
_ANSWER_SECONDS = 60.0
_LOOK_SECONDS = 0.2


class FaultProxy:
    """Serves from entry to exit; faults may be added and taken away at any moment, from any thread.

    Args:
        kubeconfig: names the API server and its authority; whose it is does not matter.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._server, self._tls = _upstream(kubeconfig)
        self._faults: list[Fault] = []
        self._stream_faults: list[StreamFault] = []
        self._seen: list[Seen] = []
        self._writes = 0
        self._lock = threading.Condition()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)
        self._failure: BaseException | None = None
        self._port = 0

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        self._ready.wait()
        if self._failure:
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    @property
    def url(self) -> str:
        """Where the operator is to believe the API server is."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def seen(self) -> list[Seen]:
        """Every request so far, in the order of their coming."""
        with self._lock:
            return list(self._seen)

    def wait_for(self, is_reached: Callable[[list[Seen]], bool], *, seconds: float = 60.0, what: str = "") -> None:
        """Wait until what was seen, or struck, is as wanted.

        Raises:
            AssertionError: it is not in that time; with the requests seen last.
        """
        with self._lock:
            if not self._lock.wait_for(lambda: is_reached(self._seen), seconds):
                last = "\n".join(map(str, self._seen[-30:]))
                raise AssertionError(f"{what or 'what was waited for'}: not within {seconds:.0f} s; seen last:\n{last}")

    def wait_struck(self, *faults: Fault | StreamFault, seconds: float = 60.0) -> None:
        """Wait until each of these faults has met something."""
        names = ", ".join(fault.name for fault in faults)
        self.wait_for(lambda _: all(fault.struck for fault in faults), seconds=seconds, what=f"{names} to strike")

    def add(self, *faults: Fault) -> None:
        with self._lock:
            self._faults = [*self._faults, *faults]

    def add_stream(self, *faults: StreamFault) -> None:
        with self._lock:
            self._stream_faults = [*self._stream_faults, *faults]

    def remove(self, *faults: Fault | StreamFault) -> None:
        """Take faults away; a line or request that one keeps back stays where it is."""
        with self._lock:
            self._faults = [each for each in self._faults if each not in faults]
            self._stream_faults = [each for each in self._stream_faults if each not in faults]

    def clear(self) -> None:
        """Take all faults away."""
        with self._lock:
            self._faults, self._stream_faults = [], []

    def forget(self) -> None:
        """Drop what was seen so far, bodies and all: in a run of hours it would fill the memory."""
        with self._lock:
            self._seen.clear()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # told to whoever waits for it
            self._failure = error
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        app = web.Application(client_max_size=_BODY_LIMIT)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls or True)
        async with aiohttp.ClientSession(
            connector=connector, auto_decompress=False, middlewares=(_send_once,)
        ) as self._session:
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                self._port = runner.addresses[0][1]
                self._ready.set()
                await self._stop.wait()
            finally:
                await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        known = seen(request.method, request.path, request.query, body)
        fault = self._note(known)
        exchange = _Exchange(self._session, self._server, request, known)
        if known.verb == "watch" and fault is None:
            return await self._follow(request, exchange)
        try:
            reply = await (fault.action(exchange) if fault else exchange.forward())
        except (aiohttp.ClientError, TimeoutError, OSError):
            reply = HANG_UP
        with self._lock:
            known.status = reply.status
            self._lock.notify_all()
        return await _send(request, reply)

    def _note(self, known: Seen) -> Fault | None:
        """Number a request, remember it, and find what is to happen to it."""
        with self._lock:
            if known.is_numbered:
                self._writes += 1
                known.number = self._writes
            self._seen.append(known)
            met = next((fault for fault in self._faults if fault.meets(known)), None)
            if met:
                known.faults.append(met.name)
            self._lock.notify_all()
            return met

    async def _follow(self, request: web.Request, exchange: _Exchange) -> web.StreamResponse:
        """Pass a watch on line by line, until either side ends it."""
        response = web.StreamResponse()
        copying = asyncio.ensure_future(self._copy(request, response, exchange))
        try:
            while not copying.done():
                await asyncio.wait({copying}, timeout=_LOOK_SECONDS)
                if _is_gone(request):
                    break
        finally:
            copying.cancel()
            await asyncio.gather(copying, return_exceptions=True)
        if copying.cancelled() or copying.exception():
            _abort(request)
        return response if response.prepared else web.Response()

    async def _copy(self, request: web.Request, response: web.StreamResponse, exchange: _Exchange) -> None:
        async with exchange.open() as answer:
            exchange.seen.status = answer.status
            response.set_status(answer.status)
            response.headers.update(_headers(answer.headers))
            await response.prepare(request)
            if answer.status != 200:
                await response.write(await answer.read())
            with suppress(EndError):
                async with aclosing(_lines(answer.content)) as lines:
                    async for line in lines:
                        for each in await self._told_instead(exchange.seen, line):
                            await response.write(each + b"\n")
            await response.write_eof()

    async def _told_instead(self, watch: Seen, line: bytes) -> list[bytes]:
        faults = [fault for fault in self._stream_faults if fault.match(watch)]
        if not faults:
            return [line]
        event = read_event(line)
        with self._lock:
            met = next((fault for fault in faults if fault.meets(event)), None)
            if met:
                watch.faults.append(f"{met.name}: {event.kind} {event.name}")
            self._lock.notify_all()
        return await met.action(event) if met else [line]


class _Exchange:
    """One request on its way; see `faults.Exchange`."""

    def __init__(self, session: aiohttp.ClientSession, server: str, request: web.Request, known: Seen) -> None:
        self._session = session
        self._request = request
        self._url = URL(server + request.raw_path, encoded=True)
        self.seen = known

    async def forward(self) -> Reply:
        async with self.open(aiohttp.ClientTimeout(total=_ANSWER_SECONDS)) as answer:
            body = await answer.read()
            self.seen.is_committed = self.seen.is_write and answer.status < 300
            return Reply(answer.status, body, _headers(answer.headers))

    def open(self, timeout: aiohttp.ClientTimeout | None = None) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Send it; the answer's body is still to be read."""
        return self._session.request(
            self._request.method,
            self._url,
            data=self.seen.body or None,
            headers=_headers(self._request.headers),
            timeout=timeout or aiohttp.ClientTimeout(total=None),
            allow_redirects=False,
        )


async def _send_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating a request whose connection broke: it may have been carried out."""
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise OSError(str(error)) from error


async def _send(request: web.Request, reply: Reply) -> web.StreamResponse:
    if reply.status is None:
        _abort(request)
        return web.Response()
    if reply.length is None or reply.length == len(reply.body):
        return web.Response(status=reply.status, body=reply.body, headers=reply.headers)
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    response.content_length = reply.length
    await response.prepare(request)
    await response.write(reply.body)
    await asyncio.sleep(0.05)  # what was written leaves before the connection breaks
    _abort(request)
    return response


async def _lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes, None]:
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key.lower() not in _HOP_BY_HOP}


def _upstream(kubeconfig: Path) -> tuple[str, ssl.SSLContext | None]:
    cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    server = str(cluster["server"]).rstrip("/")
    if not server.startswith("https://"):
        return server, None
    if data := cluster.get("certificate-authority-data"):
        return server, ssl.create_default_context(cadata=base64.b64decode(data).decode())
    return server, ssl.create_default_context(cafile=cluster.get("certificate-authority"))
