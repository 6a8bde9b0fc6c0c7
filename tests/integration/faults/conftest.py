"""The stage of these tests, and which rows are played: a seeded sample, or every one with `--all`.

A sample is of some files that have quick rows, and of so many of each as it says in SAMPLE; what has no rows goes with its
file.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.cluster_stories import own_namespace
from support.control_plane import AuditTrail, FaultProxy, OperatorProcess
from support.faulty import SETTINGS, Stage
from support.sampling import DEFAULT_SEED, Offer, draw
from support.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from support.control_plane import ControlPlane
    from workflow_schedules.cluster.connection import Connection

    Kubectl = Callable[..., Any]

HERE = Path(__file__).parent
ALWAYS = {"test_requests.py", "test_kills.py"}
FILES = 4  # of the others, so that a sample takes two minutes


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the sample leaves out; a row that is named on the command line is played."""
    if config.getoption("--all", default=False) or any("::" in argument for argument in config.args):
        return
    files: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.path.is_relative_to(HERE):
            files[item.path.name].append(item)
    asked: int | None = config.getoption("--seed")
    offers = {name: _offer(found) for name, found in files.items()}
    sample = draw(offers, always=ALWAYS, files=FILES, seed=DEFAULT_SEED if asked is None else asked)
    kept = {item for rows in sample.values() for item in rows}
    kept |= {item for name in sample for item in files[name] if not hasattr(item, "callspec")}
    left_out = [item for found in files.values() for item in found if item not in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.path.is_relative_to(HERE) or item in kept]


def _offer(found: list[pytest.Item]) -> Offer[pytest.Item]:
    """Return a file's quick rows, and how many of them it says are enough."""
    quick = [item for item in found if hasattr(item, "callspec") and not _is_slow(item)]
    return Offer(rows=quick, size=min(getattr(found[0].module, "SAMPLE", len(quick)), len(quick)))  # type: ignore[attr-defined]


def _is_slow(item: pytest.Item) -> bool:
    """Tell whether a row takes too long for a sample: it says so itself."""
    return any(getattr(value, "is_slow", False) for value in item.callspec.params.values())  # type: ignore[attr-defined]


@pytest.fixture(scope="package")
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of these tests' own."""
    with own_namespace(kubectl, "faults") as name:
        yield name


@pytest.fixture(scope="package")
def whole_stage(
    control_plane: ControlPlane,
    kubectl: Kubectl,
    real_connection: Connection,
    namespace: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    """One operator behind a proxy, for all rows; a row that kills it has it started again."""
    audit = AuditTrail(control_plane.audit_log) if control_plane.audit_log else None
    folder = tmp_path_factory.mktemp("operator")
    with (
        FaultProxy(control_plane.kubeconfig) as proxy,
        OperatorProcess(control_plane, folder, environment=SETTINGS, server=proxy.url) as operator,
    ):
        operator.wait_ready()
        scene = Scene(kubectl, real_connection, namespace)
        yield Stage(scene=scene, proxy=proxy, operator=operator, audit=audit)


@pytest.fixture(scope="module")
def stage(whole_stage: Stage) -> Iterator[Stage]:
    """The same, without the faults that another file left."""
    yield whole_stage
    whole_stage.proxy.clear()
