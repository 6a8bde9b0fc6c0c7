"""The HTTP transport against a small server on loopback that misbehaves; needs no control plane."""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from workflow_schedules.cluster.connection import Connection, NoConnectionError, from_environment
from workflow_schedules.cluster.errors import UnansweredError, UnauthorizedError
from workflow_schedules.cluster.transport import AiohttpTransport
from workflow_schedules.scheduler.turns import MOST

Talk = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]


@asynccontextmanager
async def serving(talk: Talk) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve HTTP by hand: ``talk`` gets each request's head; its connection closes when that gives False."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                heads.append(head)
                length = [
                    line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
                ]
                await reader.readexactly(int(length[0]) if length else 0)
                if not await talk(head, reader, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
    finally:
        server.close()


@asynccontextmanager
async def connected(connection: Connection) -> AsyncIterator[AiohttpTransport]:
    transport = AiohttpTransport(connection)
    try:
        yield transport
    finally:
        await transport.close()


def answer(status: str, body: bytes = b"{}") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_on_a_connection_that_breaks_is_sent_once(method: str) -> None:
    async def first_good_then_gone(head: bytes, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if head.startswith(b"GET"):
            writer.write(answer("200 OK"))
            return True
        return False

    async with serving(first_good_then_gone) as (url, heads), connected(Connection(server=url)) as transport:
        await transport.request("GET", "/a", timeout_seconds=5)
        with pytest.raises(UnansweredError):
            await transport.request(method, "/b", body=b"{}", content_type="application/json", timeout_seconds=5)
        await asyncio.sleep(0.1)
        assert sum(head.startswith(method.encode()) for head in heads) == 1


async def test_hundreds_that_get_no_answer_hold_up_nobody() -> None:
    """I9: as many as the operator may have on their way (scheduler/turns)."""

    async def never_a_write(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if head.startswith(b"POST"):
            await reader.read()
            return False
        writer.write(answer("200 OK"))
        return True

    async with serving(never_a_write) as (url, heads), connected(Connection(server=url)) as transport:
        hanging = [
            asyncio.create_task(transport.request("POST", "/a", body=b"{}", timeout_seconds=60))
            for _ in range(MOST + 64)
        ]
        async with asyncio.timeout(30):
            while len(heads) < MOST + 64:  # noqa: ASYNC110 - what arrives is counted from outside
                await asyncio.sleep(0.01)
            assert (await transport.request("GET", "/b", timeout_seconds=20)).status == 200
        for each in hanging:
            each.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)


async def test_no_answer_in_time_is_no_answer() -> None:
    async def never(_head: bytes, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> bool:
        await reader.read()
        return False

    async with serving(never) as (url, _), connected(Connection(server=url)) as transport:
        with pytest.raises(UnansweredError):
            await transport.request("GET", "/a", timeout_seconds=0.2)
        with pytest.raises(UnansweredError):
            async with aclosing(transport.stream("/a", query={}, idle_timeout_seconds=0.2)) as lines:
                await anext(lines)


async def test_nobody_there_is_no_answer() -> None:
    async with connected(Connection(server="http://127.0.0.1:1")) as transport:
        with pytest.raises(UnansweredError):
            await transport.request("GET", "/a", timeout_seconds=5)


async def test_a_body_cut_short_is_no_answer() -> None:
    async def half(_head: bytes, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{")
        return False

    async with serving(half) as (url, _), connected(Connection(server=url)) as transport:
        with pytest.raises(UnansweredError):
            await transport.request("POST", "/a", body=b"{}", timeout_seconds=5)


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")

    async def only_new(head: bytes, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer("200 OK" if b"Bearer new\r\n" in head else "401 Unauthorized"))
        return True

    async with serving(only_new) as (url, heads), connected(Connection(server=url, token_file=token)) as transport:
        assert (await transport.request("GET", "/a", timeout_seconds=5)).status == 401
        assert len(heads) == 1, "the same token is not tried twice"
        token.write_text("new\n")
        assert (await transport.request("POST", "/a", body=b"{}", timeout_seconds=5)).status == 200
        assert len(heads) == 3


async def test_a_watch_with_a_refused_token_reads_it_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async def refuse(_head: bytes, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(answer("401 Unauthorized"))
        return True

    async with serving(refuse) as (url, heads), connected(Connection(server=url, token_file=token)) as transport:
        for text in ("new", "newer"):
            token.write_text(text)
            with pytest.raises(UnauthorizedError):
                async with aclosing(transport.stream("/a", query={}, idle_timeout_seconds=5)) as lines:
                    await anext(lines)
        assert b"Bearer newer" not in heads[0] + heads[1]


async def test_lines_of_any_length_and_cut_are_put_together() -> None:
    wanted = [b"x" * 3_000_000, b"y", b"z" * 70_000]

    async def slowly(_head: bytes, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        data = b"\n".join([*wanted, b"cut"])
        for start in range(0, len(data), 50_000):
            chunk = data[start : start + 50_000]
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        return True

    async with (
        serving(slowly) as (url, _),
        connected(Connection(server=url)) as transport,
        aclosing(transport.stream("/a", query={}, idle_timeout_seconds=5)) as lines,
    ):
        assert [line async for line in lines] == wanted


def test_without_a_pod_or_a_kubeconfig_it_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(NoConnectionError, match="set KUBECONFIG"):
        from_environment({})
    with pytest.raises(NoConnectionError, match="automountServiceAccountToken"):
        from_environment({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, service_account=tmp_path)
    with pytest.raises(NoConnectionError, match="missing"):
        from_environment({"KUBECONFIG": str(tmp_path / "missing")})


def test_without_the_package_that_reads_kubeconfigs_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "kubernetes"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(NoConnectionError, match=r"pip install 'workflow-schedules\[kubeconfig\]'"):
        from_environment({"KUBECONFIG": "anything"})


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, text in (("token", "secret\n"), ("ca.crt", "ca"), ("namespace", "here")):
        (tmp_path / name).write_text(text)
    found = from_environment(
        {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}, service_account=tmp_path
    )
    assert (found.server, found.namespace) == ("https://[fd00::1]:6443", "here")
    assert found.current_token() == "secret"
    with pytest.raises(NoConnectionError, match="certificates"):
        found.ssl_context()


def test_a_kubeconfig_is_read_with_its_namespace_and_token(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    ca = base64.b64encode(b"pem").decode()
    path.write_text(f"""
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1/", certificate-authority-data: {ca}}}}}]
users: [{{name: u, user: {{token: one}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u, namespace: there}}}}]
""")
    found = from_environment({"KUBECONFIG": str(path)})
    assert (found.server, found.namespace, found.current_token()) == ("https://127.0.0.1:1", "there", "one")
    assert found.ca_file is not None
    assert Path(found.ca_file).read_text() == "pem"
    path.write_text(path.read_text().replace("one", "two"))
    assert found.renewed_token() == "two"
