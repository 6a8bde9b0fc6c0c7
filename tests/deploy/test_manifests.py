"""What is installed: complete, the same by kustomize and by chart, with the fewest rights."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from workflow_schedules.api import names
from workflow_schedules.api.common import Model
from workflow_schedules.api.definition import WorkflowDefinitionSpec
from workflow_schedules.api.schedule import WorkflowScheduleSpec
from workflow_schedules.app.settings import read_settings
from workflow_schedules.cluster.methods import METHODS

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "manifests"
CHART = ROOT / "charts" / "workflow-schedules"
NAMESPACE = "workflow-schedules-system"
OPERATOR = f"system:serviceaccount:{NAMESPACE}:workflow-schedules"

Object = dict[str, Any]


def objects(text: str) -> list[Object]:
    return [item for item in yaml.safe_load_all(text) if item]


def kustomized(folder: Path) -> list[Object]:
    """Do what kustomize does with plain resources."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    found: list[Object] = []
    for resource in kustomization["resources"]:
        path = folder / resource
        found += kustomized(path) if path.is_dir() else objects(path.read_text())
    return found


RANGE = re.compile(
    r"^ *\{\{- range \$name, \$value := \.Values\.settings \}\}\n(.*?)^ *\{\{- end \}\}\n", re.DOTALL | re.MULTILINE
)


def charted(namespace: str, settings: dict[str, object] | None = None) -> list[Object]:
    """Do what Helm does with the few expressions that hack/update writes; any other is an error."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    known = {
        ".Release.Namespace": namespace,
        ".Values.replicas": values["replicas"],
        ".Values.image.repository": values["image"]["repository"],
        ".Values.image.tag | default .Chart.AppVersion": values["image"]["tag"] or chart["appVersion"],
        ".Values.terminationGracePeriodSeconds": values["terminationGracePeriodSeconds"],
        "- toYaml .Values.resources | nindent 10": yaml.safe_dump(values["resources"], default_flow_style=True).strip(),
    }
    found: list[Object] = []
    for path in sorted((CHART / "templates").iterdir()):
        text = RANGE.sub(lambda match: _repeated(match[1], settings or values["settings"]), path.read_text())
        rendered = re.sub(r"\{\{(.*?)\}\}", lambda match: str(known[match[1].strip()]), text)
        found += objects(rendered)
    for path in sorted((CHART / "crds").iterdir()):
        found += objects(path.read_text())
    return found


def _repeated(lines: str, settings: dict[str, object]) -> str:
    return "".join(
        lines.replace("{{ $name }}", name).replace("{{ $value | quote }}", f'"{value}"')
        for name, value in sorted(settings.items())
    )


def by_name(found: list[Object]) -> dict[tuple[str, str], Object]:
    keyed = {(item["kind"], item["metadata"]["name"]): item for item in found}
    assert len(keyed) == len(found), "no object twice"
    return keyed


INSTALLED = by_name(kustomized(MANIFESTS))


def test_every_manifest_is_installed() -> None:
    listed = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["resources"]
    assert {path.name for path in MANIFESTS.glob("*.yaml")} - {"kustomization.yaml"} == set(listed) - {"../crds"}


def test_the_chart_installs_the_same_objects() -> None:
    """The namespace is the release's, which Helm makes."""
    want = {key: item for key, item in INSTALLED.items() if item["kind"] != "Namespace"}
    assert by_name(charted(NAMESPACE)) == want


def test_the_chart_works_in_any_namespace() -> None:
    assert NAMESPACE not in yaml.safe_dump_all(charted("elsewhere"))


def test_the_chart_and_the_package_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    package = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert package is not None
    assert {chart["version"], chart["appVersion"]} == {package[1]}


def test_the_chart_sets_what_the_guide_lists() -> None:
    """Each setting that may be chosen reaches the operator as it is given; Helm writes large numbers in its own way."""
    chosen: dict[str, object] = {
        "MAX_CONCURRENT_RUNS": 50,
        "MAX_OCCURRENCE_RECORDS": "2.5e+06",
        "RETAIN_DELETED_SECONDS": 3600,
        "EVENTS": "All",
        "LEASE_DURATION_SECONDS": 30,
        "RENEW_DEADLINE_SECONDS": 20,
        "RETRY_SECONDS": 4,
        "NAME_KEPT_SECONDS": 300,
        "DRAIN_SECONDS": 20,
        "WORKERS": 8,
        "LOG_LEVEL": "DEBUG",
        "LOG_FORM": "PLAIN",
        "NOT_BEFORE": "2026-03-01T09:30:00Z",
    }
    deployment = by_name(charted(NAMESPACE, chosen))["Deployment", "workflow-schedules"]
    pod = deployment["spec"]["template"]["spec"]
    env = {each["name"]: each["value"] for each in pod["containers"][0]["env"] if "value" in each}
    settings = read_settings(env)
    assert (settings.max_concurrent_runs, settings.max_occurrence_records, settings.events) == (50, 2_500_000, "All")
    assert (settings.lease_times.duration_seconds, settings.drain_seconds, settings.log_form) == (30, 20, "plain")
    assert settings.not_before == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    listed = set(re.findall(r"`WORKFLOW_SCHEDULES_([A-Z_]+)`", (ROOT / "docs" / "guide.md").read_text()))
    assert listed == {*chosen, "LEASE_NAME", "PROBE_PORT"}
    assert read_settings({}).drain_seconds < pod["terminationGracePeriodSeconds"]


def rules_of_the_operator() -> list[Object]:
    cluster = INSTALLED["ClusterRole", "workflow-schedules-operator"]["rules"]
    own = INSTALLED["Role", "workflow-schedules-lease"]["rules"]
    return [*cluster, *own]


def test_the_operator_has_no_wildcard_and_no_right_that_leads_to_others() -> None:
    """R40."""
    for rule in rules_of_the_operator():
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert "pods" not in rule["resources"] or rule["verbs"] == ["list"]  # to say which one keeps a Job from going
        assert not {"secrets", "pods/exec", "roles", "clusterroles", "rolebindings"} & {*rule["resources"]}
        assert not {"impersonate", "bind", "escalate", "deletecollection"} & {*rule["verbs"]}


def test_the_operator_may_write_the_spec_of_schedules_and_no_other() -> None:
    """Contract, preamble: what it writes there is `enabled: false` (R2); of occurrences the spec is immutable for it, too."""
    writable = {
        resource
        for rule in rules_of_the_operator()
        if names.GROUP in rule["apiGroups"] and {"update", "patch"} & {*rule["verbs"]}
        for resource in rule["resources"]
        if not resource.endswith("/status")
    }
    assert writable == {"workflowschedules", "scheduleoccurrences"}
    policy = INSTALLED["ValidatingAdmissionPolicy", "workflow-schedules-records"]["spec"]
    assert "variables.operation != 'UPDATE' || dyn(object).spec == dyn(oldObject).spec" in [
        each["expression"] for each in policy["validations"]
    ]


def test_nobody_gets_the_right_to_write_records_or_status() -> None:
    """R30."""
    for role in ("workflow-schedules-view", "workflow-schedules-edit"):
        for rule in INSTALLED["ClusterRole", role]["rules"]:
            if {*rule["verbs"]} - {"get", "list", "watch"}:
                assert {*rule["resources"]} == {names.PLURAL_DEFINITION, names.PLURAL_SCHEDULE}


def test_every_policy_denies_and_fails_closed() -> None:
    policies = {name for kind, name in INSTALLED if kind == "ValidatingAdmissionPolicy"}
    bindings = [item for (kind, _), item in INSTALLED.items() if kind == "ValidatingAdmissionPolicyBinding"]
    assert {item["spec"]["policyName"] for item in bindings} == policies
    assert all(item["spec"]["validationActions"] == ["Deny"] for item in bindings)
    for name in policies:
        spec = INSTALLED["ValidatingAdmissionPolicy", name]["spec"]
        assert spec["failurePolicy"] == "Fail"
        assert all(rule["message"] for rule in spec["validations"])
        assert OPERATOR in yaml.safe_dump(spec, width=10_000)


def test_policies_spell_names_as_the_code_does() -> None:
    text = (MANIFESTS / "policies.yaml").read_text()
    assert text.count(f"matches('{names.RESERVED_NAME_PATTERN}')") == 2
    for name in (names.ANNOTATION_EPOCH, names.ANNOTATION_WRITER, names.LABEL_SCHEDULE_UID):
        assert name in text
    assert set(re.findall(r"workflow-schedules\.dev/[a-z-]+", text)) == {
        names.ANNOTATION_CANCEL,
        names.ANNOTATION_EPOCH,
        names.ANNOTATION_WRITER,
        names.LABEL_SCHEDULE_UID,
    }


def test_every_fence_binding_denies_without_a_lease() -> None:
    """P14; and Jobs are selected by label, for a missing Lease must not stop other people's Jobs."""
    fences = [
        item["spec"]
        for (kind, _), item in INSTALLED.items()
        if kind == "ValidatingAdmissionPolicyBinding" and item["spec"]["policyName"] == "workflow-schedules-fence"
    ]
    for spec in fences:
        assert spec["paramRef"] == {
            "name": "workflow-schedules",
            "namespace": NAMESPACE,
            "parameterNotFoundAction": "Deny",
        }
        creates = any("CREATE" in rule["operations"] for rule in spec["matchResources"]["resourceRules"])
        selects = spec["matchResources"].get("objectSelector")
        assert (selects is not None) == creates

    fenced = {
        (operation, resource)
        for spec in fences
        for rule in spec["matchResources"]["resourceRules"]
        for operation in rule["operations"]
        for resource in rule["resources"]
    }
    policy = INSTALLED["ValidatingAdmissionPolicy", "workflow-schedules-fence"]["spec"]
    assert fenced == {
        (operation, resource)
        for rule in policy["matchConstraints"]["resourceRules"]
        for operation in rule["operations"]
        for resource in rule["resources"]
    }


def test_the_lease_never_waits_behind_anything_of_ours() -> None:
    """P20: a FlowSchema of its own, looked at before that of the writes, at the level that leader elections have."""
    schemas = {name: item["spec"] for (kind, name), item in INSTALLED.items() if kind == "FlowSchema"}
    lease, writes = schemas["workflow-schedules-lease"], schemas["workflow-schedules-writes"]
    assert lease["priorityLevelConfiguration"]["name"] == "leader-election"
    assert lease["matchingPrecedence"] < writes["matchingPrecedence"]
    (rule,) = lease["rules"]
    asked = {method.verb for method in METHODS if method.resource == "leases"}
    assert rule["resourceRules"] == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": sorted(asked, key=["get", "watch", "create", "update"].index),
            "namespaces": [NAMESPACE],
        }
    ]
    for schema in schemas.values():
        for each in schema["rules"]:
            (subject,) = each["subjects"]
            account = subject["serviceAccount"]
            assert f"system:serviceaccount:{account['namespace']}:{account['name']}" == OPERATOR


def test_the_pod_meets_the_restricted_standard() -> None:
    pod = INSTALLED["Deployment", "workflow-schedules"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["terminationGracePeriodSeconds"] == 45


SAMPLES = [item for path in sorted((MANIFESTS / "samples").iterdir()) for item in objects(path.read_text())]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["metadata"]["name"])
def test_samples_parse_and_use_known_fields_only(sample: Object) -> None:
    models: dict[str, type[Model]] = {
        names.KIND_DEFINITION: WorkflowDefinitionSpec,
        names.KIND_SCHEDULE: WorkflowScheduleSpec,
    }
    assert sample["apiVersion"] == names.API_VERSION
    spec = models[sample["kind"]].model_validate(sample["spec"]).wire()
    assert {key: spec.get(key) for key in sample["spec"]} == sample["spec"]


def test_samples_cover_cron_one_shot_reference_and_inline_template() -> None:
    fields = {key for sample in SAMPLES if sample["kind"] == "WorkflowSchedule" for key in sample["spec"]}
    assert {"schedule", "runOnceTime", "workflowRef", "jobTemplate"} <= fields
