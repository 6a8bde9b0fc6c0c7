"""The main job on a real control plane: from `kubectl apply` to finished Jobs, and what it costs."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from support.cluster_stories import SCHEDULE, a_manifest, manifests, next_minute, occurrences, until
from support.control_plane import OperatorProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.control_plane import AuditTrail, ControlPlane

    Kubectl = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("operator")


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """One for all of these: each has a namespace of its own."""
    with OperatorProcess(control_plane, tmp_path_factory.mktemp("operator")) as process:
        process.wait_ready()
        yield process


DEFINITION = {
    "apiVersion": "workflow-schedules.dev/v1alpha1",
    "kind": "WorkflowDefinition",
    "metadata": {"name": "hello"},
    "spec": {"jobTemplate": SCHEDULE["spec"]["jobTemplate"]},
}


def test_cron_and_one_shot_run_and_are_recorded(kubectl: Kubectl, namespace: str) -> None:
    """R7, R8, R22, R25, R29: each admitted instant has one record and one finished Job, owned by it."""
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=20)  # kubectl may take seconds on a busy machine
    kubectl(
        "apply",
        "-n",
        namespace,
        "-f",
        "-",
        input=manifests(
            DEFINITION,
            a_manifest("minutely", workflowRef={"name": "hello"}, schedule="* * * * *"),
            a_manifest("once", jobTemplate=SCHEDULE["spec"]["jobTemplate"], runOnceTime=f"{at:%Y-%m-%dT%H:%M:%SZ}"),
        ),
    )
    done = until(
        lambda: [occ for occ in occurrences(kubectl, namespace) if occ["status"].get("outcome") == "Completed"],
        lambda found: {occ["spec"]["scheduleRef"]["name"] for occ in found} == {"minutely", "once"},
        seconds=150,
    )
    for occ in done:
        job = json.loads(kubectl("get", "job", occ["metadata"]["name"], "-n", namespace, "-o", "json").stdout)
        assert job["metadata"]["ownerReferences"][0]["uid"] == occ["metadata"]["uid"]
        assert job["metadata"]["uid"] == occ["status"]["jobUID"]
        assert job["metadata"]["labels"]["workflow-schedules.dev/schedule"] == occ["spec"]["scheduleRef"]["name"]
    once = next(occ for occ in done if occ["spec"]["scheduleRef"]["name"] == "once")
    assert once["spec"]["scheduledTime"] == f"{at:%Y-%m-%dT%H:%M:%SZ}"
    assert 0 <= once["status"]["startLatenessSeconds"] <= 15, "on a busy machine"
    state = until(
        lambda: kubectl("get", "wfs", "once", "-n", namespace, "-o", "jsonpath={.status.state}").stdout,
        lambda found: found == "Complete",
        seconds=60,
    )
    assert state == "Complete"


def test_applying_twice_writes_nothing(kubectl: Kubectl, namespace: str, audit: AuditTrail) -> None:
    """R10: a no-op apply is no edit: no new generation, no record, no write of the operator."""
    text = manifests(a_manifest("yearly", schedule="0 0 1 1 *"))
    kubectl("apply", "-n", namespace, "-f", "-", input=text)
    read = lambda: json.loads(kubectl("get", "wfs", "yearly", "-n", namespace, "-o", "json").stdout)  # noqa: E731
    until(read, lambda wfs: wfs.get("status", {}).get("observedGeneration") == 1, seconds=60)
    settled = len(audit.settled(namespace=namespace, quiet_seconds=3))
    before = read()
    assert "unchanged" in kubectl("apply", "-n", namespace, "-f", "-", input=text).stdout
    kubectl("label", "wfs", "yearly", "-n", namespace, "colour=blue")
    after = audit.settled(namespace=namespace, quiet_seconds=4)[settled:]
    writes = [r for r in after if r.verb not in {"get", "list", "watch"} and not r.is_dry_run]
    assert [(r.verb, r.resource) for r in writes] == []
    assert read()["status"] == before["status"]
    assert [occ["spec"]["reason"] for occ in occurrences(kubectl, namespace)] == ["Created"]


def test_a_run_costs_four_requests_and_idling_none(kubectl: Kubectl, namespace: str, audit: AuditTrail) -> None:
    """Two requests before a run's Job exists, at most four in its whole life, one per skip, none when idle."""
    herd = 20
    due = next_minute(ahead_seconds=25)
    names = [f"herd-{n:02d}" for n in range(herd)]
    kubectl(
        "apply",
        "-n",
        namespace,
        "-f",
        "-",
        input=manifests(*(a_manifest(name, schedule=f"{due.minute} {due.hour} * * *") for name in names)),
    )
    until(partial(statuses, kubectl, namespace), lambda found: len(list(filter(None, found))) == herd, seconds=60)
    audit.settled(namespace=namespace)
    assert datetime.now(UTC) < due, "this machine is too slow for what comes before the minute"
    until(
        partial(statuses, kubectl, namespace),
        lambda found: all(status["counts"]["completed"] == 1 for status in found),
        seconds=180,
    )
    runs = [occ for occ in occurrences(kubectl, namespace) if occ["status"].get("outcome") == "Completed"]
    assert len(runs) == herd
    mine = audit.settled(namespace=namespace, quiet_seconds=5)
    instant = [r for r in mine if r.at >= due and not r.is_dry_run]  # one for the template, whenever it is answered
    counted = Counter((r.verb, r.resource) for r in instant if r.code < 400)
    assert counted["create", "scheduleoccurrences"] == herd
    assert counted["create", "jobs"] == herd
    # on a busy machine a run may take longer than the ten seconds in which its statuses are merged
    long = [run for run in runs if len(run["status"]["transitions"]) > 1 or took_seconds(run) > 8]
    assert counted["patch", "scheduleoccurrences/status"] <= herd + len(long)
    assert counted["create", "controllerrevisions"] == 1  # the template, pinned once for all of them
    assert len(instant) <= 4 * herd + 1 + 2 * len(long), counted
    assert audit.settled(namespace=namespace, quiet_seconds=5)[len(mine) :] == []


def statuses(kubectl: Kubectl, namespace: str) -> list[dict[str, Any]]:
    """The status of each schedule; empty before its first."""
    found = json.loads(kubectl("get", "wfs", "-n", namespace, "-o", "json").stdout)["items"]
    return [each.get("status", {}) for each in found]


def took_seconds(run: dict[str, Any]) -> float:
    """Return how long a run took from its instant to the record of its end."""
    end = datetime.fromisoformat(run["status"]["transitions"][-1]["time"])
    return (end - datetime.fromisoformat(run["spec"]["scheduledTime"])).total_seconds()
