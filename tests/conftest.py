"""Which tests may run beside each other when `hack/test` runs everything in several processes, and the option for seeds.

Each tier that has a cluster of its own stays in one process and begins first, since it mostly waits; the others go file by
file to whoever is free.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLUSTERS = {"kind": ("deploy/test_kind.py", "e2e/"), "control plane": ("integration/",)}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed",
        type=int,
        help="simulation: play this seed alone, and say what becomes of it; faults: draw another sample",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not getattr(config.option, "loadgroup", False):  # what pytest-xdist tells its processes of --dist=loadgroup
        return
    for item in items:
        if not any(item.iter_markers("xdist_group")):
            item.add_marker(pytest.mark.xdist_group(_group(item)))
    first = list(CLUSTERS)
    items.sort(key=lambda item: first.index(_group(item)) if _group(item) in CLUSTERS else len(first))


def _group(item: pytest.Item) -> str:
    path = item.path.relative_to(TESTS).as_posix()
    return next((name for name, places in CLUSTERS.items() if path.startswith(places)), path)
