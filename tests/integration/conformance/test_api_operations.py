"""The API itself, as CronJob's conformance test and generic clients use it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.scene import Scene, a_request, a_schedule
from workflow_schedules.api import names

if TYPE_CHECKING:
    from support.control_plane import OperatorProcess

PATH = f"/apis/{names.API_VERSION}"
YEARLY = {"schedule": "0 0 1 1 *", "enabled": False}

pytestmark = pytest.mark.usefixtures("wave")  # which waits for its first minute meanwhile


def raw(scene: Scene, path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(scene.kubectl("get", "--raw", path).stdout)
    return found


def test_discovery_names_what_there_is(scene: Scene) -> None:
    """CronJob e2e: should support CronJob API operations (discovery)."""
    assert names.GROUP in {group["name"] for group in raw(scene, "/apis")["groups"]}
    assert names.VERSION in {each["version"] for each in raw(scene, f"/apis/{names.GROUP}")["versions"]}
    resources = {each["name"]: each for each in raw(scene, PATH)["resources"]}
    for plural in (names.PLURAL_SCHEDULE, names.PLURAL_DEFINITION, names.PLURAL_OCCURRENCE):
        assert set(resources) >= {plural, f"{plural}/status"}
        assert {"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"} <= set(
            resources[plural]["verbs"]
        )
        assert names.CATEGORY in resources[plural]["categories"]


def test_create_get_list_watch_update_patch_and_delete(scene: Scene) -> None:
    """CronJob e2e: should support CronJob API operations (create … deletecollection); R18, R20."""
    kubectl, namespace = scene.kubectl, scene.namespace
    path = f"{PATH}/namespaces/{namespace}/{names.PLURAL_SCHEDULE}"
    begun = raw(scene, path)["metadata"]["resourceVersion"]
    body = a_schedule("api-0", **YEARLY)
    body["metadata"]["labels"] = {"special": "api"}
    made = json.loads(kubectl("create", "-n", namespace, "-f", "-", "-o", "json", input=json.dumps(body)).stdout)
    refused = kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(body), check=False)
    assert "AlreadyExists" in refused.stderr
    assert raw(scene, f"{path}/api-0")["metadata"]["uid"] == made["metadata"]["uid"]
    for listed in (
        f"{path}?labelSelector=special%3Dapi",
        f"{PATH}/{names.PLURAL_SCHEDULE}?labelSelector=special%3Dapi",
    ):
        assert [each["metadata"]["name"] for each in raw(scene, listed)["items"]] == ["api-0"]
    found = raw(scene, f"{path}?fieldSelector=metadata.name%3Dapi-0")
    assert [each["metadata"]["name"] for each in found["items"]] == ["api-0"]

    scene.patch("wfs/api-0", {"metadata": {"annotations": {"patched": "true"}}})
    patched = raw(scene, f"{path}/api-0")
    assert patched["metadata"]["annotations"]["patched"] == "true"
    assert patched["metadata"]["generation"] == 1  # what is no spec is no edit (R10)
    patched["metadata"]["annotations"]["updated"] = "true"
    patched["spec"]["schedule"] = "0 0 2 1 *"
    kubectl("replace", "-n", namespace, "-f", "-", input=json.dumps(patched))
    assert raw(scene, f"{path}/api-0")["metadata"]["generation"] == 2
    stale = kubectl("replace", "-n", namespace, "-f", "-", input=json.dumps(patched), check=False)
    assert "Conflict" in stale.stderr

    kubectl("delete", "wfs", "api-0", "-n", namespace, "--timeout=60s")
    for n in (1, 2):
        other = a_schedule(f"api-{n}", **YEARLY)
        other["metadata"]["labels"] = {"special": "api"}
        scene.apply(other)
    kubectl("delete", "wfs", "-l", "special=api", "-n", namespace, "--timeout=60s")
    assert raw(scene, f"{path}?labelSelector=special%3Dapi")["items"] == []

    seen = kubectl(
        "get", "--raw", f"{path}?watch=true&resourceVersion={begun}&timeoutSeconds=3&labelSelector=special%3Dapi"
    ).stdout
    events = [json.loads(line) for line in seen.splitlines()]
    mine = [event["type"] for event in events if event["object"]["metadata"]["name"] == "api-0"]
    assert mine[0] == "ADDED"
    assert mine[-1] == "DELETED"
    assert "MODIFIED" in mine


def test_status_is_a_subresource_of_its_own(scene: Scene) -> None:
    """CronJob e2e: should support CronJob API operations (status); R30: but people can't write it."""
    scene.apply(a_schedule("api-status", **YEARLY))
    view = scene.until(lambda view: "state" in view.status("api-status"), seconds=60, what="a status")
    status = view.status("api-status")
    assert status["state"] == "Disabled"
    assert {each["type"] for each in status["conditions"]} == {
        "Accepted",
        "Ready",
        "Stalled",
        "RunsHealthy",
        "Paused",
        "ParentEnabled",
        "Complete",
    }
    path = f"{PATH}/namespaces/{scene.namespace}/{names.PLURAL_SCHEDULE}/api-status/status"
    assert raw(scene, path)["status"]["state"] == "Disabled"
    scene.patch("wfs/api-status", {"status": {"state": "Active"}})  # through the spec's door it is dropped
    assert raw(scene, path)["status"]["state"] == "Disabled"
    change = ("--type=merge", "-p", '{"status": {"state": "Active"}}', "--subresource=status")
    refused = scene.kubectl("patch", "wfs/api-status", "-n", scene.namespace, *change, check=False)
    assert "is written by the operator only" in refused.stderr


def test_records_and_requests_are_immutable_and_selectable(scene: Scene) -> None:
    """CronJob e2e: API operations (field selectors), and what is immutable here: R27, R30."""
    scene.apply(a_schedule("api-log", **YEARLY), a_request("api-asked", "api-log"))
    scene.until(
        lambda view: view.request("api-asked")["status"].get("outcome") == "Completed", seconds=90, what="a manual run"
    )
    change = ("--type=merge", "-p", '{"spec": {"cause": "Backfill"}}')
    refused = scene.kubectl("patch", "occ/api-asked", "-n", scene.namespace, *change, check=False)
    assert "immutable" in refused.stderr
    for selector in ("spec.scheduleRef.name=api-log", "spec.cause=Manual,status.outcome=Completed"):
        found = scene.kubectl("get", "occ", "-n", scene.namespace, f"--field-selector={selector}", "-o", "name").stdout
        assert "api-asked" in found


def test_people_see_times_and_states_in_columns(scene: Scene, operator: OperatorProcess) -> None:
    """Temporal schedules: describe and list show what is next; contract section 2, columns."""
    shown = scene.kubectl("get", "wfs", "-n", scene.namespace).stdout.splitlines()
    assert shown[0].split() == [
        "NAME",
        "SCHEDULE",
        "TIMEZONE",
        "STATE",
        "ACTIVE",
        "LAST",
        "LAST-OUTCOME",
        "NEXT",
        "AGE",
    ]
    assert "<invalid>" not in "\n".join(shown)
    assert not operator.has_ended
