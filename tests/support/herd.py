"""Schedules that are due at once, and who leads the operators that must start each of them once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from support.cluster_stories import a_manifest, occurrences, until
from support.kind_cluster import NAMESPACE, a_template, apply

Kubectl = Callable[..., Any]

HERD = 20
HERD_NAMES = {f"herd-{n:02d}" for n in range(HERD)}


def ahead(*, seconds: float) -> datetime:
    """A time soon, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=seconds)


def utc(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def a_herd(kubectl: Kubectl, namespace: str, due: datetime) -> None:
    """Schedules that are all due at that time, each with its Baseline on record."""
    once = {"runOnceTime": utc(due), "startingDeadlineSeconds": 600, "jobTemplate": a_template("true")}
    herd = (a_manifest(name, **once) for name in sorted(HERD_NAMES))
    apply(kubectl, namespace, *herd)
    until(lambda: records(kubectl, namespace), lambda found: names_of(found) == HERD_NAMES, seconds=90)


def records(kubectl: Kubectl, namespace: str) -> list[dict[str, Any]]:
    return [occ for occ in occurrences(kubectl, namespace) if occ["spec"]["scheduleRef"]["name"].startswith("herd-")]


def names_of(found: list[dict[str, Any]]) -> set[str]:
    return {occ["spec"]["scheduleRef"]["name"] for occ in found}


def runs(kubectl: Kubectl, namespace: str) -> list[dict[str, Any]]:
    return [occ for occ in records(kubectl, namespace) if occ["spec"]["decision"] == "Admitted"]


def assert_each_ran_once(kubectl: Kubectl, namespace: str) -> list[dict[str, Any]]:
    found = until(
        lambda: runs(kubectl, namespace),
        lambda found: len([occ for occ in found if occ["status"].get("outcome") == "Completed"]) >= HERD,
        seconds=240,
    )
    assert Counter(occ["spec"]["scheduleRef"]["name"] for occ in found) == dict.fromkeys(HERD_NAMES, 1)
    of_the_herd = ("-n", namespace, "-l", "workflow-schedules.dev/schedule!=lost", "-o", "json")
    jobs = json.loads(kubectl("get", "jobs", *of_the_herd).stdout)["items"]
    assert {job["metadata"]["uid"] for job in jobs} == {occ["status"]["jobUID"] for occ in found}
    assert len(jobs) == HERD
    pods = json.loads(kubectl("get", "pods", *of_the_herd).stdout)["items"]
    assert len(pods) == HERD
    return found


def lease(kubectl: Kubectl) -> tuple[str, int]:
    """Holder and epoch of the Lease."""
    spec = json.loads(kubectl("get", "lease", "workflow-schedules", "-n", NAMESPACE, "-o", "json").stdout)["spec"]
    return spec.get("holderIdentity", ""), spec.get("leaseTransitions", 0)


def leader(kubectl: Kubectl) -> str:
    """The name of the Pod that holds the Lease, once that is one which stays: a rollout's old one may lead to its end."""

    def leaders() -> list[str]:
        pods = json.loads(kubectl("get", "pods", "-n", NAMESPACE, "-o", "json").stdout)["items"]
        holder, _ = lease(kubectl)
        return [
            pod["metadata"]["name"]
            for pod in pods
            if holder.startswith(pod["metadata"]["uid"]) and "deletionTimestamp" not in pod["metadata"]
        ]

    return until(leaders, bool, seconds=90)[0]


def wait_ready(kubectl: Kubectl) -> None:
    kubectl("rollout", "status", "deployment/workflow-schedules", "-n", NAMESPACE, "--timeout=180s")
