"""A node freezes with the leader and a run on it, and wakes again: the rest of the cluster goes on, and nothing is doubled."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.cluster_stories import a_manifest, occurrences, until
from support.herd import a_herd, ahead, assert_each_ran_once, leader, lease, utc, wait_ready
from support.kind_cluster import NAMESPACE, a_template, apply, docker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.kind_cluster import KindCluster

    Kubectl = Callable[..., Any]

GONE = [
    {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    for why in ("not-ready", "unreachable")
]


@pytest.fixture
def worker(kind_cluster: KindCluster) -> Iterator[str]:
    """The name of a node beside the control plane's; it runs again after the test."""
    if kind_cluster.nodes < 2:
        pytest.skip("this cluster has one node: hack/kind down, then hack/kind up --workers 1")
    name = f"{kind_cluster.name}-worker"
    yield name
    if docker.docker("inspect", "--format", "{{.State.Paused}}", name).strip() == "true":
        docker.docker("unpause", name)
    kind_cluster.kubectl("wait", "--for=condition=Ready", "node", name, "--timeout=120s")


def node_of(kubectl: Kubectl, pod: str) -> str:
    return str(kubectl("get", "pod", pod, "-n", NAMESPACE, "-o", "jsonpath={.spec.nodeName}").stdout)


def move_leader(kubectl: Kubectl, node: str) -> None:
    """Let go of leaders until the one on this node leads, each Pod on a node of its own."""
    for _ in range(4):
        wait_ready(kubectl)
        held_by = leader(kubectl)
        pods = json.loads(kubectl("get", "pods", "-n", NAMESPACE, "-o", "json").stdout)["items"]
        nodes = {pod["spec"]["nodeName"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
        if node_of(kubectl, held_by) == node and len(nodes) > 1:
            return
        kubectl("delete", "pod", held_by, "-n", NAMESPACE)
    pytest.fail(f"no leader on {node} after four tries")


def test_a_node_freezes_with_the_leader_and_a_run(kubectl: Kubectl, namespace: str, worker: str) -> None:
    """R25, R33, R35: the standby leads in time, the lost run fails on record, and the woken leader decides nothing."""
    move_leader(kubectl, worker)
    holder, epoch = lease(kubectl)
    pod = {"nodeSelector": {"kubernetes.io/hostname": worker}, "tolerations": GONE}
    once, of_lost = utc(ahead(seconds=20)), ("-n", namespace, "-l", "workflow-schedules.dev/schedule=lost")
    apply(kubectl, namespace, a_manifest("lost", runOnceTime=once, jobTemplate=a_template("sleep 600", pod=pod)))
    until(
        lambda: kubectl("get", "pods", "-n", namespace, "-o", "jsonpath={.items[*].status.phase}").stdout,
        lambda phases: phases == "Running",
        seconds=150,
    )
    due = ahead(seconds=20)
    a_herd(kubectl, namespace, due)
    docker.docker("pause", worker)
    began = time.monotonic()
    after = until(lambda: lease(kubectl), lambda found: found[1] > epoch and found[0] != "", seconds=60)
    assert time.monotonic() - began < 30
    assert after[0] != holder
    # The Job has failed only when its Pod has ended, and a Pod whose kubelet is silent ends when that speaks again.
    until(
        lambda: kubectl("get", "pods", *of_lost, "-o", "jsonpath={.items[*].metadata.deletionTimestamp}").stdout,
        bool,
        seconds=150,
    )
    docker.docker("unpause", worker)
    until(
        lambda: [occ for occ in occurrences(kubectl, namespace) if occ["spec"]["scheduleRef"]["name"] == "lost"],
        lambda found: any(occ["status"].get("outcome") == "Failed" for occ in found),
        seconds=150,
    )
    assert_each_ran_once(kubectl, namespace)
    wait_ready(kubectl)
