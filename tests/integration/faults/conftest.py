"""The stage of these tests, and which rows are played: a seeded sample, or every one with `--all`.

A file says in SAMPLE how many of its rows are in a sample; without that all of them are. What has no rows always runs.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from support.control_plane import AuditTrail, FaultProxy, OperatorProcess
from support.faulty import SETTINGS, Stage
from support.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from support.control_plane import ControlPlane

    Kubectl = Callable[..., Any]

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the sample leaves out; a row that is named on the command line is played."""
    if config.getoption("--all", default=False) or any("::" in argument for argument in config.args):
        return
    rows: dict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.path.is_relative_to(HERE) and hasattr(item, "callspec"):
            rows[item.path].append(item)
    random = Random(config.getoption("--seed", default=1))
    left_out: set[pytest.Item] = set()
    for _, found in sorted(rows.items()):
        quick = [item for item in found if not _is_slow(item)]
        size = min(getattr(found[0].module, "SAMPLE", len(quick)), len(quick))  # type: ignore[attr-defined]
        left_out.update(set(found) - set(random.sample(quick, size)))
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _is_slow(item: pytest.Item) -> bool:
    """Tell whether a row takes too long for a sample: it says so itself."""
    return any(getattr(value, "is_slow", False) for value in item.callspec.params.values())  # type: ignore[attr-defined]


@pytest.fixture(scope="package")
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of these tests' own."""
    name = f"faults-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    kubectl("wait", "--for=create", "--timeout=30s", "serviceaccount/default", "-n", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false", check=False)


@pytest.fixture(scope="package")
def whole_stage(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """One operator behind a proxy, for all rows; a row that kills it has it started again."""
    audit = AuditTrail(control_plane.audit_log) if control_plane.audit_log else None
    folder = tmp_path_factory.mktemp("operator")
    with (
        FaultProxy(control_plane.kubeconfig) as proxy,
        OperatorProcess(control_plane, folder, environment=SETTINGS, server=proxy.url) as operator,
    ):
        operator.wait_ready()
        yield Stage(scene=Scene(kubectl, namespace), proxy=proxy, operator=operator, audit=audit)


@pytest.fixture(scope="module")
def stage(whole_stage: Stage) -> Iterator[Stage]:
    """The same, without the faults that another file left."""
    yield whole_stage
    whole_stage.proxy.clear()
