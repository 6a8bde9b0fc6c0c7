"""The operator's account on a real API server: a right that it lacks is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.cluster_stories import a_manifest, manifests, occurrences, until
from support.control_plane import OperatorProcess
from support.herd import ahead, utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.control_plane import ControlPlane

    Kubectl = Callable[..., Any]

ROLE = ("clusterrole", "workflow-schedules-operator")


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
    once = a_manifest("once", runOnceTime=utc(ahead(seconds=15)), startingDeadlineSeconds=600)
    kubectl("apply", "-n", namespace, "-f", "-", input=manifests(once))
    with OperatorProcess(control_plane, tmp_path) as operator:
        said = until(operator.readiness, lambda text: f'cannot {verb} resource "{named}' in text, seconds=120)
        assert not operator.has_ended, said
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=whole)
        operator.wait_ready(seconds=60)
        until(
            lambda: [each for each in occurrences(kubectl, namespace) if each["spec"]["decision"] == "Admitted"],
            bool,
            seconds=150,
        )
