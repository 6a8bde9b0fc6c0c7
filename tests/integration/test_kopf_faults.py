"""kopf's watches through every fault of the API server, on loopback: nothing ends them, and what is written is seen in time.

Needs no control plane. What our own watches do is told in tests/timeline/test_watch.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import kopf
import pytest

from support.kopf_server import KopfServer, Listener, Refusal, status, watched
from workflow_schedules.handlers import hearing, sessions, watches

Fault = Callable[[KopfServer], None]


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same steps in less time."""
    monkeypatch.setattr(watches, "BACKOFFS", (0.1, 0.2, 0.4))
    monkeypatch.setattr(watches, "RESTART_SECONDS", 0.3)
    monkeypatch.setattr(watches, "LOOK_SECONDS", 0.1)


def error_line(code: int) -> bytes:
    return b'{"type":"ERROR","object":{"kind":"Status","code":%d,"message":"injected"}}' % code


def once(refusal: Refusal, *, of_watch: bool) -> Callable[[KopfServer], None]:
    """Refuse the next list or watch."""

    def fault(server: KopfServer) -> None:
        left = [refusal]
        server.refuse = lambda is_watch: left.pop() if left and is_watch is of_watch else None
        server.cut()

    return fault


FAULTS: dict[str, Fault] = {
    "an error in the stream": lambda server: server.say(error_line(500)),
    "an error in the stream that asks for patience": lambda server: server.say(error_line(429)),
    "the history is gone, in the stream": lambda server: server.say(error_line(410)),
    "the history is gone, at once": once(status(410, "too old"), of_watch=True),
    "nonsense in the stream": lambda server: server.say(b"nonsense"),
    "nothing in the stream": lambda server: server.say(b"{}"),
    "an event of no known kind": lambda server: server.say(b'{"type":"NEWS","object":{}}'),
    "the connection ends": lambda server: server.cut(),
    "a server error": once(status(500, "injected"), of_watch=True),
    "unavailable": once(status(503, "injected"), of_watch=True),
    "throttled": once(status(429, "injected", **{"Retry-After": "1"}), of_watch=True),
    "throttled, until a date": once(
        status(429, "x", **{"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), of_watch=True
    ),
    "a bad request": once(status(400, "injected"), of_watch=True),
    "not JSON": once((500, {}, b"<html>"), of_watch=True),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
async def test_no_fault_ends_the_watches(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """K-064: what is written after it is seen within moments, and no new process is asked for."""
    server = KopfServer()
    server.write("before")
    async with watched(server, monkeypatch) as (listener, watching):
        await listener.until_seen("before 11")
        await listener.until_seen(server.write("streamed"))
        fault(server)
        await asyncio.sleep(0.2)
        await listener.until_seen(server.write("after"))
        await listener.until_seen(server.write("before"))
        assert (watching.problem, watching.unready_reason) == (None, None)


async def until_watched(server: KopfServer, listener: Listener) -> None:
    """Wait until `a` was listed, and the watch that follows has begun."""
    await listener.until_seen("a 11")
    async with asyncio.timeout(30):
        while not server.asked("watch"):  # noqa: ASYNC110 - kopf asks from another thread
            await asyncio.sleep(0.02)


async def test_what_was_missed_is_listed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """410: the newest state is told once more, as listed, so that deletions are looked for."""
    server = KopfServer()
    server.write("a")
    async with watched(server, monkeypatch) as (listener, _):
        await until_watched(server, listener)
        left = [status(410, "too old")]
        server.refuse = lambda is_watch: left.pop() if left and is_watch else None
        server.cut()
        server.write("a")
        newest = server.write("a")
        server.compact()
        listener.kinds.clear()
        await listener.until_seen(newest)
        assert None in listener.kinds


async def test_a_list_of_nothing_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: the last one of a kind was deleted in a gap: kopf tells no event of an empty list, and deletions are looked for."""
    server = KopfServer()
    server.write("a")
    async with watched(server, monkeypatch) as (listener, _):
        await until_watched(server, listener)
        lists, asked = listener.lists, server.asked("list")
        left = [status(410, "too old")]
        server.refuse = lambda is_watch: left.pop() if left and is_watch else None
        server.cut()
        server.delete("a")
        server.compact()
        async with asyncio.timeout(30):
            while server.asked("list") == asked or listener.lists == lists:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
        assert listener.seen == ["a 11"]


async def test_silence_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-067: no event and no error; within half a minute the connection is another one (here two seconds)."""
    assert watches.STALL_SECONDS == 30
    monkeypatch.setattr(watches, "STALL_SECONDS", 2)
    monkeypatch.setattr(watches, "STALL_MARGIN_SECONDS", 1)
    server = KopfServer()
    async with watched(server, monkeypatch) as (listener, _):
        await listener.until_seen(server.write("a"))
        server.is_silent = True
        server.cut()
        began = len(server.requests)
        while not server.asked("watch", since=began):  # noqa: ASYNC110 - kopf asks from another thread
            await asyncio.sleep(0.02)
        server.is_silent = False  # for whoever asks anew
        lists = server.asked("list")
        assert await listener.until_seen(server.write("a")) < 20
        assert server.asked("list") == lists, "it goes on where it was"


async def test_retry_after_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-069."""
    server = KopfServer()
    left = [status(429, "busy", **{"Retry-After": "2"})]
    server.refuse = lambda _is_watch: left.pop() if left else None
    server.write("a")
    async with watched(server, monkeypatch) as (listener, _):
        async with asyncio.timeout(30):
            while not server.asked("list"):  # noqa: ASYNC110 - kopf asks from another thread
                await asyncio.sleep(0.02)
        assert await listener.until_seen("a 11") > 1.8
        assert server.asked("list") == 2


async def test_a_first_list_that_fails_for_long_is_made_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-064: past all of kopf's own tries, twice, so that the watches begin anew; then all is seen, by the same process."""
    server = KopfServer()
    server.refuse = lambda is_watch: None if is_watch else status(500, "injected")
    server.write("before")
    async with watched(server, monkeypatch) as (listener, watching):
        async with asyncio.timeout(60):
            while server.asked("list") <= 2 * (1 + len(watches.BACKOFFS)):  # noqa: ASYNC110 - kopf asks from another thread
                await asyncio.sleep(0.02)
        assert (watching.problem, server.asked("watch"), listener.seen) == (None, 0, [])
        server.refuse = lambda _is_watch: None
        await listener.until_seen("before 11")
        server.cut()
        await listener.until_seen(server.write("after"))
        assert watching.problem is None


async def test_a_rotated_token_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one is refused from some moment on; nothing is missed, twice in a row."""
    server, tokens = KopfServer(), ["first"]
    server.token = "first"
    async with watched(server, monkeypatch, lambda: tokens[-1]) as (listener, watching):
        await listener.until_seen(server.write("a"))
        for token in ("second", "third"):
            tokens.append(token)
            server.token = token
            server.cut()
            await listener.until_seen(server.write("a"))
        assert watching.problem is None


@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_a_right_that_is_missing_is_named(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """K-093: not ready, the verb said, tried again now and then, no restart asked for, and back when it is granted."""
    server = KopfServer()
    message = (
        f'workflowschedules.workflow-schedules.dev is forbidden: User "x" cannot {verb} resource "workflowschedules"'
    )
    server.refuse = lambda is_watch: status(403, message) if is_watch is (verb == "watch") else None
    async with watched(server, monkeypatch) as (listener, watching):
        async with asyncio.timeout(30):
            while watching.unready_reason is None:  # noqa: ASYNC110 - kopf is told in another thread
                await asyncio.sleep(0.02)
        assert f"cannot {verb} resource" in str(watching.unready_reason)
        began = len(server.requests)
        await asyncio.sleep(8)
        assert 1 <= server.asked(verb, since=began) <= 20
        assert watching.problem is None
        assert f"cannot {verb} resource" in str(watching.unready_reason)
        server.refuse = lambda _is_watch: None
        await listener.until_seen(server.write("a"))
        async with asyncio.timeout(30):
            while watching.unready_reason is not None:  # noqa: ASYNC110 - a list may tell of it before the watch is open
                await asyncio.sleep(0.02)


async def test_watches_that_are_ended_in_a_hurry_leave_no_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine kopf is cancelled again before it has closed its session."""
    monkeypatch.setattr(watches, "LOOK_SECONDS", 0.001)
    opened: list[kopf.AiohttpSession] = []

    def session_of(found: kopf.ConnectionInfo, hears: hearing.Hearing) -> kopf.AiohttpSession:
        opened.append(sessions.session_of(found, hears))
        return opened[-1]

    monkeypatch.setattr(watches, "session_of", session_of)
    server = KopfServer()
    server.write("a")
    async with watched(server, monkeypatch) as (listener, _):
        await listener.until_seen("a 11")
    assert [each.aiohttp_session.closed for each in opened] == [True]


async def test_rights_to_other_kinds_are_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-093: without any on customresourcedefinitions and namespaces it serves its own kinds, and does not even ask."""
    server = KopfServer()
    async with watched(server, monkeypatch) as (listener, watching):
        await listener.until_seen(server.write("a"))
        assert watching.unready_reason is None
    assert not [each for each in server.requests if "customresourcedefinitions" in each or each.endswith("/namespaces")]


async def test_kinds_that_come_after_the_operator_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """kopf looks for them once and then lives on deaf; that is noticed (within half a minute, here in four seconds)."""
    assert hearing.FIRST_SECONDS == 30
    monkeypatch.setattr(hearing, "FIRST_SECONDS", 4.0)
    server = KopfServer()
    server.is_served = False
    server.write("a")
    async with watched(server, monkeypatch) as (listener, watching):
        await asyncio.sleep(6)
        assert listener.seen == []
        server.is_served = True
        await listener.until_seen("a 11")
        assert watching.problem is None
