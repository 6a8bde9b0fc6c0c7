"""Deletion on a real control plane: what goes, what stays, and that nothing waits for an operator."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from support.cluster_stories import a_manifest, manifests, occurrences, until
from support.control_plane import OperatorProcess
from support.herd import ahead, utc
from support.scene import Scene, a_schedule

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.control_plane import ControlPlane
    from workflow_schedules.cluster.connection import Connection

    Kubectl = Callable[..., Any]


def apply(kubectl: Kubectl, namespace: str, name: str, **spec: object) -> None:
    kubectl("apply", "-n", namespace, "-f", "-", input=manifests(a_manifest(name, **spec)))


def schedules_on_record(kubectl: Kubectl, namespace: str) -> list[str]:
    return sorted(occ["spec"]["scheduleRef"]["name"] for occ in occurrences(kubectl, namespace))


@pytest.mark.usefixtures("operator")
def test_records_stay_or_go_with_their_schedule(kubectl: Kubectl, namespace: str) -> None:
    """R20: the garbage collector takes what the schedule owns, and only that: others' are there when it has done so."""
    apply(kubectl, namespace, "kept", schedule="0 0 1 1 *", deletionPolicy="Retain")
    apply(kubectl, namespace, "swept", schedule="0 0 1 1 *", deletionPolicy="Delete")
    read = partial(schedules_on_record, kubectl, namespace)
    until(read, lambda found: found == ["kept", "swept"], seconds=60)
    kubectl("delete", "wfs", "kept", "swept", "-n", namespace, "--timeout=60s")
    assert until(read, lambda found: "swept" not in found, seconds=90) == ["kept"]


@pytest.mark.usefixtures("operator")
def test_a_schedule_deleted_at_once_is_gone_at_once(kubectl: Kubectl, namespace: str) -> None:
    """K-099: no finalizer is ever put on it."""
    apply(kubectl, namespace, "brief", schedule="* * * * *")
    kubectl("delete", "wfs", "brief", "-n", namespace, "--timeout=60s")
    assert json.loads(kubectl("get", "wfs", "-n", namespace, "-o", "json").stdout)["items"] == []


def test_a_namespace_goes_away_when_the_operator_is_uninstalled_first(
    control_plane: ControlPlane, kubectl: Kubectl, real_connection: Connection, namespace: str, tmp_path: Path
) -> None:
    """K-097: ten schedules, half of them with a run that goes on, and nobody there any more who could clear a finalizer."""
    scene = Scene(kubectl, real_connection, namespace)
    with OperatorProcess(control_plane, tmp_path) as operator:
        operator.wait_ready()
        names, at = [f"s{number}" for number in range(10)], utc(ahead(seconds=20))
        scene.apply(
            *(
                a_schedule(name, runOnceTime=at, startingDeadlineSeconds=300, is_held=number % 2 == 0)
                for number, name in enumerate(names)
            )
        )
        scene.until(
            lambda view: (
                all(view.jobs(name) and view.runs(name) for name in names)
                and all(view.outcomes(name) == ["Completed"] for name in names[1::2])
            ),
            seconds=90,
            what="ten runs, of which five have ended",
        )
    ours = json.loads(kubectl("get", "wfs,occ,controllerrevisions", "-n", namespace, "-o", "json").stdout)["items"]
    assert {item["kind"] for item in ours} == {"WorkflowSchedule", "ScheduleOccurrence", "ControllerRevision"}
    assert [item["metadata"]["name"] for item in ours if item["metadata"].get("finalizers")] == []
    kubectl("delete", "namespace", namespace, "--timeout=120s")
    assert kubectl("get", "namespace", namespace, check=False).returncode != 0
