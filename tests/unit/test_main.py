"""What app/main puts together: the Lease has a way to the API server of its own, and both ways are closed at the end (P20)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

import pytest

from workflow_schedules.app import main
from workflow_schedules.app.settings import Settings, read_settings
from workflow_schedules.cluster.client import Client
from workflow_schedules.cluster.connection import Connection
from workflow_schedules.cluster.transport import POOL_CONNECTIONS, Answer

SETTINGS = read_settings({})
LEASE_PATH = "/leases/"


class Pool:
    """A transport with so many connections; all but the Lease's requests hold theirs until they are cancelled."""

    made: list[Pool]

    def __init__(self, _connection: Connection, *, pool_connections: int = POOL_CONNECTIONS) -> None:
        self.free = asyncio.Semaphore(pool_connections)
        self.is_closed = False
        self.made.append(self)

    async def request(self, _method: str, path: str, **_: object) -> Answer:
        async with self.free:
            if LEASE_PATH not in path:
                await asyncio.Event().wait()
            return Answer(200, {}, b'{"metadata": {"name": "l"}}')

    def stream(
        self, path: str, *, query: Mapping[str, str], idle_timeout_seconds: float
    ) -> AsyncGenerator[bytes, None]:
        raise NotImplementedError(path, query, idle_timeout_seconds)

    async def close(self) -> None:
        self.is_closed = True


async def renew_while_all_wait(client: Client, _settings: Settings, _stop: asyncio.Event) -> None:
    """Stand for the operator: a herd has taken every connection, and more wait for one."""
    herd = [asyncio.create_task(client.get_schedule("ns", f"s{number}")) for number in range(2 * POOL_CONNECTIONS)]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(1):
            await client.get_lease("ns", "l")
    finally:
        for each in herd:
            each.cancel()
        await asyncio.gather(*herd, return_exceptions=True)


async def test_the_lease_does_not_wait_behind_a_herd(monkeypatch: pytest.MonkeyPatch) -> None:
    def operator(_settings: Settings, client: Client, **_: object) -> Client:
        return client

    monkeypatch.setattr(Pool, "made", [], raising=False)
    monkeypatch.setattr(main, "AiohttpTransport", Pool)
    monkeypatch.setattr(main, "Operator", operator)
    monkeypatch.setattr(main, "_serve", renew_while_all_wait)
    await main.run(SETTINGS, Connection(server="https://nowhere.invalid"))
    assert [pool.is_closed for pool in Pool.made] == [True, True]
