"""What the watching framework must not do on a real API server: store anything, or listen to peers of other operators."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from support.cluster_stories import a_manifest, manifests, occurrences, until
from support.control_plane import OperatorProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.control_plane import ControlPlane

    Kubectl = Callable[..., Any]

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "clusterkopfpeerings.kopf.dev"},
    "spec": {
        "group": "kopf.dev",
        "scope": "Cluster",
        "names": {"kind": "ClusterKopfPeering", "plural": "clusterkopfpeerings", "singular": "clusterkopfpeering"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


@pytest.fixture
def peering(kubectl: Kubectl) -> Iterator[dict[str, Any]]:
    """The object by which another operator of this framework claims to go first."""
    kubectl("apply", "-f", "-", input=json.dumps(CRD))
    kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/clusterkopfpeerings.kopf.dev")
    claim = {"priority": 1_000_000, "lastseen": datetime.now(UTC).isoformat(), "lifetime": 3600}
    body = {
        "apiVersion": "kopf.dev/v1",
        "kind": "ClusterKopfPeering",
        "metadata": {"name": "default"},
        "status": {"unrelated": claim},
    }
    # it may be established a moment before discovery tells of it
    until(
        lambda: kubectl("apply", "-f", "-", input=json.dumps(body), check=False).returncode,
        lambda code: code == 0,
        seconds=30,
    )
    yield read(kubectl, "clusterkopfpeerings", "default")
    kubectl("delete", "crd", "clusterkopfpeerings.kopf.dev", "--timeout=90s")


def read(kubectl: Kubectl, *what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubectl("get", *what, "-o", "json").stdout)
    return found


def test_nothing_is_stored_for_the_framework_and_no_peer_is_heeded(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str, peering: dict[str, Any], tmp_path: Path
) -> None:
    """K-062 K-079: exclusion is the Lease's alone, effects happen once, and the schedule's metadata is its owner's."""
    with OperatorProcess(control_plane, tmp_path) as operator:
        operator.wait_ready()
        kubectl("apply", "-n", namespace, "-f", "-", input=manifests(a_manifest("yearly", schedule="0 0 1 1 *")))
        until(lambda: occurrences(kubectl, namespace), lambda found: len(found) == 1, seconds=60)
        schedule = until(
            lambda: read(kubectl, "wfs", "yearly", "-n", namespace),
            lambda found: found.get("status", {}).get("observedGeneration") == 1,
            seconds=60,
        )
        said = operator.log.read_text()
    assert schedule["metadata"].get("finalizers") is None
    assert set(schedule["metadata"]["annotations"]) == {"kubectl.kubernetes.io/last-applied-configuration"}
    assert not {key for key in schedule["status"] if "kopf" in key or "progress" in key}
    assert len(occurrences(kubectl, namespace)) == 1
    assert read(kubectl, "clusterkopfpeerings", "default")["status"] == peering["status"]
    assert "nconsistenc" not in said
    assert "eering" not in said
