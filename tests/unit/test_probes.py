"""What the operator answers at its port for probes."""

from __future__ import annotations

import aiohttp
import pytest

from workflow_schedules.handlers.probes import Probes


@pytest.mark.parametrize(("problem", "want"), [(None, (200, "ok")), ("blind", (503, "blind"))])
async def test_each_probe_says_what_is_wrong(problem: str | None, want: tuple[int, str]) -> None:
    for path, checks in {"/healthz": (problem, None), "/readyz": (None, problem)}.items():
        healthy, ready = checks
        probes = Probes(healthy=lambda healthy=healthy: healthy, ready=lambda ready=ready: ready)
        port = await probes.start(0)
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
            assert (answer.status, await answer.text()) == want
        await probes.stop()


async def test_vitals_count_the_tasks() -> None:
    probes = Probes(healthy=lambda: None, ready=lambda: None)
    port = await probes.start(0)
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/vitals") as answer:
        vitals = await answer.json()
        assert vitals.keys() == {"tasks"}
        assert vitals["tasks"] >= 1
    await probes.stop()
