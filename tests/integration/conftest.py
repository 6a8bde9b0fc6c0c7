"""One real control plane for the session, with the CRDs, roles and policies of manifests/ in it; no operator."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

import pytest

from support.cluster_stories import own_namespace
from support.control_plane import AuditTrail, ControlPlane, OperatorProcess, binaries
from support.sampling import DEFAULT_SEED
from workflow_schedules.cluster.connection import Connection, from_environment

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator


class Kubectl(Protocol):
    def __call__(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
        kubeconfig: Path | None = None,
    ) -> subprocess.CompletedProcess[str]: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the fault tests: hack/test faults."""
    group = parser.getgroup("faults")
    group.addoption("--all", action="store_true", help="every row of the fault tests, not a sample")


def pytest_report_header(config: pytest.Config) -> str:
    if config.getoption("--all"):
        return "faults: every row"
    asked: int | None = config.getoption("--seed")
    return f"faults: a sample, --seed {DEFAULT_SEED if asked is None else asked}"


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """The control plane; kill, freeze and start its components, but leave them running."""
    plane = ControlPlane(audit=True)
    if not plane.asks_existing and not binaries.are_ready():
        pytest.exit("the control plane's programs are not there yet; next: hack/test, or hack/controlplane binaries", 3)
    # So that it is taken down then, too; SIGINT since a shell starts background jobs with it ignored.
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with plane:
            plane.install()
            yield plane
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.fixture(scope="session")
def kubectl(control_plane: ControlPlane) -> Kubectl:
    """kubectl as administrator: `kubectl("get", "wfs", input=…, check=False)`."""
    return control_plane.kubectl


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of this test's own."""
    with own_namespace(kubectl, "test") as name:
        yield name


@pytest.fixture(scope="session")
def real_connection(control_plane: ControlPlane) -> Connection:
    """How the operator's client reaches the API server as administrator."""
    return from_environment({"KUBECONFIG": str(control_plane.kubeconfig)})


@pytest.fixture(scope="session")
def operator_kubeconfig(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig file with the rights of the operator's ServiceAccount, and no others."""
    return control_plane.operator_kubeconfig(tmp_path_factory.mktemp("operator") / "kubeconfig")


@pytest.fixture
def operator(control_plane: ControlPlane, tmp_path: Path) -> Iterator[OperatorProcess]:
    """A running operator, ready, ended when the test ends."""
    with OperatorProcess(control_plane, tmp_path) as process:
        process.wait_ready()
        yield process


@pytest.fixture
def audit(control_plane: ControlPlane) -> AuditTrail:
    """The requests since the test began: `audit.settled(namespace=…)`."""
    if control_plane.audit_log is None:
        pytest.skip("an existing cluster's audit log is not ours to read")
    return AuditTrail(control_plane.audit_log)


LEFT = r"Exception ignored in. <(socket\.socket|function (_SelectorTransport|StreamWriter))"
LATE = f"ignore:{LEFT}:pytest.PytestUnraisableExceptionWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let no test answer for a connection that one before it left to the garbage collector (seen twice on a busy machine)."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings(LATE))
