"""The operator is replaced, or dies, while schedules are due: nothing is lost and nothing runs twice."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from support.cluster_stories import until
from support.herd import a_herd, ahead, assert_each_ran_once, leader, lease, utc, wait_ready
from support.kind_cluster import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    Kubectl = Callable[..., Any]


def test_a_rollout_in_a_busy_minute_loses_and_doubles_nothing(kubectl: Kubectl, namespace: str) -> None:
    """R8, R34, R35: the herd is due while one Pod after the other is replaced."""
    due = ahead(seconds=20)
    a_herd(kubectl, namespace, due)
    while time.time() < due.timestamp() - 1:
        time.sleep(0.2)
    kubectl("rollout", "restart", "deployment/workflow-schedules", "-n", NAMESPACE)
    wait_ready(kubectl)
    found = assert_each_ran_once(kubectl, namespace)
    assert {occ["spec"]["scheduledTime"] for occ in found} == {utc(due)}


def test_the_standby_takes_over_when_the_leaders_pod_is_killed(kubectl: Kubectl, namespace: str) -> None:
    """R33: killed without a word, its successor leads within the Lease's duration and starts what is due."""
    wait_ready(kubectl)
    killed = leader(kubectl)
    holder, epoch = lease(kubectl)
    due = ahead(seconds=20)
    a_herd(kubectl, namespace, due)
    while time.time() < due.timestamp() - 0.5:
        time.sleep(0.1)
    kubectl("delete", "pod", killed, "-n", NAMESPACE, "--grace-period=0", "--force")
    began = time.monotonic()
    after = until(lambda: lease(kubectl), lambda found: found[1] > epoch and found[0] != "", seconds=60)
    assert after[0] != holder
    assert time.monotonic() - began < 30
    assert_each_ran_once(kubectl, namespace)
    wait_ready(kubectl)
