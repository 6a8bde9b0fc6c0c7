"""What the kubelet asks: /healthz (restart me if this fails) and /readyz (I know what there is to know).

Beside them /vitals, for whoever measures: what no one can see of a process from outside.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Probes:
    """A small HTTP server for the two probes."""

    def __init__(self, *, healthy: Callable[[], str | None], ready: Callable[[], str | None]) -> None:
        """Take the two checks; each returns None when all is well, else what is wrong."""
        app = web.Application()
        app.router.add_get("/healthz", _answering(healthy))
        app.router.add_get("/readyz", _answering(ready))
        app.router.add_get("/vitals", _vitals)
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self, port: int) -> int:
        """Listen on all addresses.

        Returns:
            The port; for 0 one that the system chose, of IPv4 where there is that: each address has its own then.
        """
        await self._runner.setup()
        site = web.TCPSite(self._runner, port=port)
        await site.start()
        # they come in any order, and one of IPv6 has two parts more
        return int(min(self._runner.addresses, key=len)[1])

    async def stop(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()


async def _vitals(_request: web.Request) -> web.StreamResponse:
    return web.json_response({"tasks": len(asyncio.all_tasks())})


def _answering(check: Callable[[], str | None]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_request: web.Request) -> web.StreamResponse:
        problem = check()
        return web.Response(text=problem or "ok", status=503 if problem else 200)

    return answer
