"""Which tests may run beside each other (`pytest -n 2 --dist loadscope --no-loadscope-reorder`), and the option for seeds.

Each tier that has a cluster of its own stays in one process and begins first, since it mostly waits; the others go file by
file to whoever is free, and give way: what they take is no more than what the clusters leave.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parent
CLUSTERS = {"kind": ("deploy/test_kind.py", "e2e/"), "control plane": ("integration/",)}
LAST_PRIORITY = 19


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed",
        type=int,
        help="simulation: play this seed alone, and say what becomes of it; faults: draw another sample",
    )


class Lanes(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """What belongs together runs in one process, in the order in which it was collected."""

    def _split_scope(self, nodeid: str) -> str:
        return lane_of(nodeid.removeprefix("tests/").partition("::")[0])


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Lanes:
    return Lanes(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the lanes of the clusters begin first."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _order(item.path.relative_to(TESTS).as_posix()))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let what needs no cluster, and waits for nobody, give way to a tier that has one beside it and waits for its clock."""
    if hasattr(item.config, "workerinput") and lane_of(item.path.relative_to(TESTS).as_posix()) not in CLUSTERS:
        os.setpriority(os.PRIO_PROCESS, 0, LAST_PRIORITY)


def _order(path: str) -> int:
    lane, clusters = lane_of(path), list(CLUSTERS)
    return clusters.index(lane) if lane in clusters else len(clusters)


def lane_of(path: str) -> str:
    """Return what runs in one process with the tests of a file, by its path below tests/."""
    return next((name for name, places in CLUSTERS.items() if path.startswith(places)), path)
