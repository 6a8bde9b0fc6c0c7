"""The operator's account on a real API server: its Lease is on a way of its own, and a right that it lacks is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.cluster_stories import a_manifest, manifests, occurrences, until
from support.control_plane import OperatorProcess
from workflow_schedules.cluster.connection import from_environment
from workflow_schedules.cluster.methods import LEASES, SCHEDULES
from workflow_schedules.cluster.transport import AiohttpTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.control_plane import ControlPlane

    Kubectl = Callable[..., Any]

ROLE = ("clusterrole", "workflow-schedules-operator")
NAMESPACE = "workflow-schedules-system"


async def test_the_api_server_gives_the_lease_a_queue_of_its_own(operator_kubeconfig: Path, kubectl: Kubectl) -> None:
    """P20: it says with each answer which FlowSchema was in force."""
    schemas = json.loads(kubectl("get", "flowschemas", "-o", "json").stdout)["items"]
    uid_of = {each["metadata"]["name"]: each["metadata"]["uid"] for each in schemas}
    connection = from_environment({"KUBECONFIG": str(operator_kubeconfig)})
    transport = AiohttpTransport(connection)
    try:
        lease = await transport.request("GET", LEASES.path(NAMESPACE, "workflow-schedules"), timeout_seconds=10)
        other = await transport.request("GET", SCHEDULES.path(), timeout_seconds=10)
    finally:
        await transport.close()
    header = "x-kubernetes-pf-flowschema-uid"
    assert lease.headers[header] == uid_of["workflow-schedules-lease"]
    assert other.headers[header] != lease.headers[header]


@pytest.fixture
def role(kubectl: Kubectl) -> Iterator[dict[str, Any]]:
    """The operator's role, as it is again afterwards."""
    body = json.loads(kubectl("get", *ROLE, "-o", "json").stdout)
    body["metadata"] = {key: body["metadata"][key] for key in ("name", "labels")}
    yield json.loads(json.dumps(body))
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(body))


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("plural", "verb", "named"),
    [("scheduleoccurrences", "watch", "scheduleoccurrences"), ("workflowschedules", "list", "workflow")],
)
def test_a_right_that_is_missing_is_named(
    plural: str,
    verb: str,
    named: str,
    control_plane: ControlPlane,
    kubectl: Kubectl,
    namespace: str,
    role: dict[str, Any],
    tmp_path: Path,
) -> None:
    """K-093, by real authorization: not ready, the verb in /readyz; at work within moments of the right being granted."""
    assert not [each for rule in role["rules"] for each in rule["resources"] if "customresourcedefinitions" in each]
    whole = json.dumps(role)
    for rule in role["rules"]:
        if plural in rule["resources"]:
            rule["verbs"] = [each for each in rule["verbs"] if each != verb]
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(role))
    kubectl("apply", "-n", namespace, "-f", "-", input=manifests(a_manifest("minutely", schedule="* * * * *")))
    with OperatorProcess(control_plane, tmp_path) as operator:
        said = until(operator.readiness, lambda text: f'cannot {verb} resource "{named}' in text, seconds=60)
        assert not operator.has_ended, said
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=whole)
        operator.wait_ready(seconds=60)
        until(
            lambda: [each for each in occurrences(kubectl, namespace) if each["spec"]["decision"] == "Admitted"],
            bool,
            seconds=150,
        )
