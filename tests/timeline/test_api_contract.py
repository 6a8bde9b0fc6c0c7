"""The fake API server keeps the contract that the real one is held to in the integration tier."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from support.api_contract import CONTRACT, LEASE_NAME, LEASE_NAMESPACE, Check, World
from support.api_hooks import lease_fence, record_rules
from support.api_server import FakeApiServer
from support.virtual_loop import VirtualClock, run_virtual

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_the_fake_api_server_keeps_the_contract(check: Check) -> None:
    async def story(clock: VirtualClock) -> None:
        server = FakeApiServer(clock, auto_namespaces=False)
        server.admission.append(record_rules)
        lease_fence(server, LEASE_NAMESPACE, LEASE_NAME, lag_seconds=0.2)
        for name in ("ns", LEASE_NAMESPACE):
            server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        transport = server.transport(latency_seconds=0.01)
        world = World(transport=transport, namespace="ns", forget_history=server.compact)
        await world.hold_lease()
        await check(world)

    run_virtual(story, START)
