"""The operator is replaced, or dies, while schedules are due: nothing is lost and nothing runs twice."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from support.cluster_stories import a_manifest, next_minute, occurrences, until
from support.kind_cluster import NAMESPACE, a_template, apply

if TYPE_CHECKING:
    from collections.abc import Callable

    Kubectl = Callable[..., Any]

HERD = 20


def a_herd(kubectl: Kubectl, namespace: str, schedule: str) -> None:
    herd = (
        a_manifest(f"herd-{n:02d}", schedule=schedule, startingDeadlineSeconds=600, jobTemplate=a_template("true"))
        for n in range(HERD)
    )
    apply(kubectl, namespace, *herd)
    until(lambda: occurrences(kubectl, namespace), lambda found: len(found) == HERD, seconds=60)


def runs(kubectl: Kubectl, namespace: str) -> list[dict[str, Any]]:
    return [occ for occ in occurrences(kubectl, namespace) if occ["spec"]["decision"] == "Admitted"]


def assert_each_ran_once(kubectl: Kubectl, namespace: str) -> list[dict[str, Any]]:
    found = until(
        lambda: runs(kubectl, namespace),
        lambda found: len([occ for occ in found if occ["status"].get("outcome") == "Completed"]) >= HERD,
        seconds=240,
    )
    assert Counter(occ["spec"]["scheduleRef"]["name"] for occ in found) == {f"herd-{n:02d}": 1 for n in range(HERD)}
    jobs = json.loads(kubectl("get", "jobs", "-n", namespace, "-o", "json").stdout)["items"]
    assert {job["metadata"]["uid"] for job in jobs} == {occ["status"]["jobUID"] for occ in found}
    assert len(jobs) == HERD
    pods = json.loads(kubectl("get", "pods", "-n", namespace, "-o", "json").stdout)["items"]
    assert len(pods) == HERD
    return found


def lease(kubectl: Kubectl) -> tuple[str, int]:
    """Holder and epoch of the Lease."""
    spec = json.loads(kubectl("get", "lease", "workflow-schedules", "-n", NAMESPACE, "-o", "json").stdout)["spec"]
    return spec.get("holderIdentity", ""), spec.get("leaseTransitions", 0)


def leader(kubectl: Kubectl) -> str:
    """The name of the Pod that holds the Lease."""
    holder, _ = until(lambda: lease(kubectl), lambda found: found[0] != "", seconds=40)
    pods = json.loads(kubectl("get", "pods", "-n", NAMESPACE, "-o", "json").stdout)["items"]
    return next(pod["metadata"]["name"] for pod in pods if holder.startswith(pod["metadata"]["uid"]))


def wait_ready(kubectl: Kubectl) -> None:
    kubectl("rollout", "status", "deployment/workflow-schedules", "-n", NAMESPACE, "--timeout=180s")


def test_a_rollout_in_a_busy_minute_loses_and_doubles_nothing(kubectl: Kubectl, namespace: str) -> None:
    """R8, R34, R35: the herd is due while one Pod after the other is replaced."""
    due = next_minute(ahead_seconds=12)
    a_herd(kubectl, namespace, f"{due.minute} {due.hour} * * *")
    while time.time() < due.timestamp() - 1:
        time.sleep(0.2)
    kubectl("rollout", "restart", "deployment/workflow-schedules", "-n", NAMESPACE)
    wait_ready(kubectl)
    found = assert_each_ran_once(kubectl, namespace)
    assert {occ["spec"]["scheduledTime"] for occ in found} == {f"{due:%Y-%m-%dT%H:%M:%SZ}"}


def test_the_standby_takes_over_when_the_leaders_pod_is_killed(kubectl: Kubectl, namespace: str) -> None:
    """R33: killed without a word, its successor leads within the Lease's duration and starts what is due."""
    wait_ready(kubectl)
    killed = leader(kubectl)
    holder, epoch = lease(kubectl)
    due = next_minute(ahead_seconds=8)
    a_herd(kubectl, namespace, f"{due.minute} {due.hour} * * *")
    while time.time() < due.timestamp() - 0.5:
        time.sleep(0.1)
    kubectl("delete", "pod", killed, "-n", NAMESPACE, "--grace-period=0", "--force")
    began = time.monotonic()
    after = until(lambda: lease(kubectl), lambda found: found[1] > epoch and found[0] != "", seconds=40)
    assert after[0] != holder
    assert time.monotonic() - began < 25
    assert_each_ran_once(kubectl, namespace)
    wait_ready(kubectl)
