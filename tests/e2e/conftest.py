"""One kind cluster for the session, with this clone's operator installed in it as its users install it.

A cluster of this clone that is up already is used and left up; one that is made here is taken down again.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from support.cluster_stories import own_namespace
from support.kind_cluster import NAMESPACE, KindCluster, cluster, daemon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Kubectl = Callable[..., Any]

WORKERS = 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/e2e/" in item.path.as_posix():
            item.add_marker(pytest.mark.timeout(900))  # the first test's time includes making the cluster


@pytest.fixture(scope="session")
def kind_cluster() -> Iterator[KindCluster]:
    """The cluster, the operator ready in it."""
    reason = daemon.hindrance(may_start=daemon.is_asked_for())
    if reason:
        pytest.skip(f"no test ran on real nodes: {reason}")
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    name = cluster.default_name()
    was_up = cluster.find(name) is not None
    try:
        found = cluster.up(name, workers=WORKERS, may_start_docker=daemon.is_asked_for())
        cluster.load(found)
        cluster.install(found)
        yield found
    finally:
        if not was_up:
            cluster.down(name)
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.fixture(scope="session")
def kubectl(kind_cluster: KindCluster) -> Kubectl:
    """kubectl as administrator: `kubectl("get", "wfs", input=…, check=False)`."""
    return kind_cluster.kubectl


@pytest.fixture
def namespace(kubectl: Kubectl, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of this test's own; what happened in it is told when the test failed."""
    with own_namespace(kubectl, "test") as name:
        failed = request.session.testsfailed
        yield name
        if request.session.testsfailed > failed:
            _tell(kubectl, name)


def _tell(kubectl: Kubectl, namespace: str) -> None:
    for arguments in (
        ("get", "wfs,occ,jobs,pods", "-n", namespace, "-o", "wide"),
        ("get", "pods", "-n", NAMESPACE, "-o", "wide"),
        ("logs", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=workflow-schedules", "--tail=20", "--prefix"),
    ):
        lines = kubectl(*arguments, check=False).stdout.splitlines()
        sys.stdout.write("\n".join([f"$ kubectl {' '.join(arguments)}", *(line[:400] for line in lines), ""]))
