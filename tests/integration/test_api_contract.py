"""The contract that the fake API server must keep is what the real one does."""

from __future__ import annotations

import pytest

from support.api_contract import CONTRACT, Check, World
from support.control_plane import OPERATOR_USER
from workflow_schedules.cluster.connection import Connection
from workflow_schedules.cluster.transport import AiohttpTransport

# The policies take it for the operator, and no role limits it: the checks also do what users and administrators do.
AS_OPERATOR = {"Impersonate-User": OPERATOR_USER, "Impersonate-Group": "system:masters"}


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
async def test_the_real_api_server_keeps_the_contract(
    check: Check, real_connection: Connection, namespace: str
) -> None:
    transport = AiohttpTransport(real_connection, extra_headers=AS_OPERATOR)
    try:
        # Its history begins long after version 1, so there is nothing to make it forget.
        world = World(transport=transport, namespace=namespace, forget_history=lambda: None)
        await world.hold_lease()
        await check(world)
    finally:
        await transport.close()
