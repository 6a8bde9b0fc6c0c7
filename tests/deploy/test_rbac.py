"""The operator's roles are the client's method table, and nothing more (R40)."""

from __future__ import annotations

from pathlib import Path

import yaml

from workflow_schedules.cluster.methods import METHODS

MANIFESTS = Path(__file__).parents[2] / "manifests"
OPERATOR_ROLES = {"workflow-schedules-operator", "workflow-schedules-lease"}


def test_roles_grant_exactly_what_the_client_may_ask() -> None:
    granted = {
        (group, resource, verb)
        for role in yaml.safe_load_all((MANIFESTS / "rbac.yaml").read_text())
        if role["metadata"]["name"] in OPERATOR_ROLES and role["kind"] in {"Role", "ClusterRole"}
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted == {(method.group, method.resource, method.verb) for method in METHODS}


def test_no_role_of_ours_has_a_wildcard() -> None:
    for file in MANIFESTS.glob("*.yaml"):
        for body in yaml.safe_load_all(file.read_text()):
            for rule in (body or {}).get("rules", []) if (body or {}).get("kind") in {"Role", "ClusterRole"} else []:
                assert "*" not in [*rule.get("apiGroups", []), *rule["resources"], *rule["verbs"]], body["metadata"]
