"""Options of the simulation: which seeds are played, and how many."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

SEEDS = 5000
BLOCK = 250


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simulation")
    group.addoption(
        "--seeds", type=int, default=None, help=f"play so many seeds (default {SEEDS}, or SIMULATION_SEEDS)"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" not in metafunc.fixturenames:
        return
    one, many = (metafunc.config.getoption(name, None) for name in ("--seed", "--seeds"))
    if one is not None:
        blocks = [range(one, one + 1)]
    else:
        count = many or int(os.environ.get("SIMULATION_SEEDS") or SEEDS)
        blocks = [range(first, min(first + BLOCK, count)) for first in range(0, count, BLOCK)]
    metafunc.parametrize("seeds", blocks, ids=[f"{block[0]}-{block[-1]}" for block in blocks])


@pytest.fixture(scope="session")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Give a process for each core; not by a fork of this one, which may have threads, and would hand their locks on."""
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("forkserver")) as executor:
        yield executor
