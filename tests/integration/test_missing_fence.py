"""An installation without the policy that fences its writes, or without its binding: said clearly, and hindering nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.cluster_stories import until
from support.control_plane import OperatorProcess
from support.herd import ahead, utc
from support.scene import Scene, a_schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.control_plane import ControlPlane
    from workflow_schedules.cluster.connection import Connection

    Kubectl = Callable[..., Any]

SHORT_LEASE = {
    "WORKFLOW_SCHEDULES_LEASE_DURATION_SECONDS": "2",
    "WORKFLOW_SCHEDULES_RENEW_DEADLINE_SECONDS": "1.5",
    "WORKFLOW_SCHEDULES_RETRY_SECONDS": "0.3",
}
SAID = "the policy workflow-schedules-fence does not refuse old epochs of this account: it is missing (apply the manifests)"
PARTS = {
    "the policy": ("validatingadmissionpolicy", "workflow-schedules-fence"),
    "the binding of creates": ("validatingadmissionpolicybinding", "workflow-schedules-fence-creates"),
    "the binding of statuses": ("validatingadmissionpolicybinding", "workflow-schedules-fence"),
}


@pytest.fixture(params=PARTS.values(), ids=list(PARTS))
def _without(request: pytest.FixtureRequest, control_plane: ControlPlane, kubectl: Kubectl) -> Iterator[None]:
    """The part is gone; in the end it is there again, also for the API server, which must be restarted for that (P14)."""
    if control_plane.is_existing:
        pytest.skip("the API server of an existing cluster is not ours to restart")
    kubectl("delete", *request.param)
    yield
    control_plane.install()
    control_plane.stop("kube-apiserver")
    control_plane.start("kube-apiserver")


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("_without")
def test_a_fence_that_is_missing_is_said_and_hinders_nothing(
    control_plane: ControlPlane, kubectl: Kubectl, real_connection: Connection, namespace: str, tmp_path: Path
) -> None:
    """P14: in the log and the readiness, with what to do; runs start, once, by what else holds."""
    with OperatorProcess(control_plane, tmp_path, environment=SHORT_LEASE) as operator:
        assert_runs_once(Scene(kubectl, real_connection, namespace))
        operator.kill()
        operator.start()  # whether statuses are refused is seen where there is one
        until(operator.readiness, lambda said: SAID in said, seconds=120)
        assert not operator.has_ended
    said = [line for line in operator.log.read_text().splitlines() if SAID in line]
    epochs = [line.rpartition("epoch=")[2] for line in said]
    assert len(set(epochs)) == len(epochs), "once for each leadership, not with each look"
    assert all(" error " in line for line in said)


@pytest.mark.timeout(300)
def test_a_fence_that_is_installed_again_holds(
    control_plane: ControlPlane, kubectl: Kubectl, real_connection: Connection, namespace: str, tmp_path: Path
) -> None:
    """P14: its holder may write, and nothing is missing."""
    with OperatorProcess(control_plane, tmp_path, environment=SHORT_LEASE) as operator:
        assert_runs_once(Scene(kubectl, real_connection, namespace))
        operator.wait_ready(seconds=60)
    assert "the policy workflow-schedules-fence" not in operator.log.read_text()


def assert_runs_once(scene: Scene) -> None:
    """Make a schedule of one instant, and see its run to the end."""
    at = utc(ahead(seconds=8))
    scene.apply(a_schedule("once", runOnceTime=at, startingDeadlineSeconds=300))
    view = scene.until(lambda view: view.outcomes("once") == ["Completed"], seconds=90, what="a run to its end")
    assert view.decisions("once") == [(at, "Admitted")]
    assert len(view.jobs("once")) == 1
