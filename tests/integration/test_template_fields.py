"""What the real API server says about the fields of a template, and what the operator makes of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.api_world import WRITER as LEASE_HOLDER
from support.api_world import World
from support.builders import an_admission
from support.cluster_stories import SCHEDULE, a_manifest, manifests, occurrences, until
from support.control_plane import OPERATOR_USER
from workflow_schedules.cluster.errors import InvalidError
from workflow_schedules.cluster.transport import AiohttpTransport
from workflow_schedules.core.identity import pin
from workflow_schedules.core.job import job_manifest, template_problem
from workflow_schedules.core.model import Writer
from workflow_schedules.core.template_fields import unknown_fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from support.control_plane import AuditTrail
    from workflow_schedules.cluster.connection import Connection

    Kubectl = Callable[..., Any]
    Json = dict[str, Any]

ROOT = "spec.jobTemplate"
AS_OPERATOR = {"Impersonate-User": OPERATOR_USER, "Impersonate-Group": "system:masters"}  # so that no role limits it
POD = f"{ROOT}.spec.template.spec"
VARIABLE = {"name": "A", "value": "1", "valu": "2"}


def a_template(
    pod: Json | None = None, container: Json | None = None, labels: Json | None = None, **job: object
) -> Json:
    """A template that is fine but for what is given; None as a value leaves a field out."""
    main = {"name": "main", "image": "busybox:1.37", **(container or {})}
    fields = {"restartPolicy": "Never", "containers": [main], **(pod or {})}
    given = {key: value for key, value in fields.items() if value is not None}
    return {"spec": {"template": {"metadata": {"labels": labels or {}}, "spec": given}, **job}}


ROWS: list[tuple[str, Json, str | None, list[str]]] = [
    ("fine", a_template(), None, []),
    ("a misspelt field of the Job", a_template(activeDeadlineSecond=60), None, [f"{ROOT}.spec.activeDeadlineSecond"]),
    ("of the Pod", a_template({"restartPolicyy": "Never"}), None, [f"{POD}.restartPolicyy"]),
    ("of a container", a_template(container={"comand": ["a"]}), None, [f"{POD}.containers[0].comand"]),
    ("of an init container's variable",
     a_template({"initContainers": [{"name": "i", "image": "a", "env": [{"name": "B"}, VARIABLE]}]}), None,
     [f"{POD}.initContainers[0].env[1].valu"]),
    ("of a variable", a_template(container={"env": [VARIABLE]}), None, [f"{POD}.containers[0].env[0].valu"]),
    ("several", a_template({"a": 1}, {"b": 1}, c=1), None, [f"{ROOT}.spec.c", f"{POD}.a", f"{POD}.containers[0].b"]),
    ("with quotes, a backslash, a comma, no ASCII: as it is quoted", a_template(**{'a"b\\, é': 1}), None,
     [rf'{ROOT}.spec.a\"b\\, é']),
    ("a field of the wrong level", {**a_template(), "backoffLimit": 1}, None, [f"{ROOT}.backoffLimit"]),
    ("a misspelt policy, which is missing therefore", a_template({"restartPolicy": None, "restartPolicyy": "Never"}),
     "spec.template.spec.restartPolicy: Required value", [f"{POD}.restartPolicyy"]),
    ("no restart policy", a_template({"restartPolicy": None}), "restartPolicy: Required value", []),
    ("a Pod that never ends", a_template({"restartPolicy": "Always"}), "restartPolicy: Required value: valid values", []),
    ("no Pod", {"spec": {}}, "spec.template.spec.containers: Required value", []),
    ("nothing", {}, "spec.template.spec.containers: Required value", []),
    ("the Job controller's own label", a_template(labels={"batch.kubernetes.io/job-name": "x"}), "must be 'hourly-", []),
    ("text as a number", a_template(backoffLimit="3"), "cannot unmarshal", []),
    ("a number as a variable", a_template(container={"env": [{"name": "A", "value": 8080}]}), "cannot unmarshal", []),
    ("a number below 0", a_template(backoffLimit=-1), "spec.backoffLimit: Invalid value: -1", []),
    ("born suspended, as Kueue wants it", a_template(suspend=True), None, []),
    ("what the Job controller makes is said to be its own", a_template(manualSelector=False), None, []),
    ("a time that is the operator's to follow", a_template(ttlSecondsAfterFinished="60"), None, []),
]  # fmt: skip


@pytest.fixture
async def world(real_connection: Connection, namespace: str) -> AsyncIterator[World]:
    """The API server as the holder of the Lease has it."""
    transport = AiohttpTransport(real_connection, extra_headers=AS_OPERATOR)
    try:
        found = World(transport=transport, namespace=namespace, forget_history=lambda: None)
        await found.hold_lease()
        yield found
    finally:
        await transport.close()


def rendered(template: Json, world: World) -> Json:
    assert template_problem(pin(template)) is None
    writer = Writer(epoch=world.epoch, identity=LEASE_HOLDER, lease="tests/lease")
    manifest = job_manifest(an_admission(), pin(template), zone=UTC, last_successful_at=None, writer=writer)
    manifest["metadata"]["namespace"] = world.namespace
    return manifest


@pytest.mark.parametrize(("template", "refusal", "unknown"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
async def test_one_dry_run_tells_both(template: Json, refusal: str | None, unknown: list[str], world: World) -> None:
    """R24, R36: whether it would take the Job, and which fields it does not know; also where it would not take it."""
    manifest = rendered(template, world)
    if refusal is None:
        warnings = await world.client.ask_about_job(world.namespace, manifest)
    else:
        with pytest.raises(InvalidError) as caught:
            await world.client.ask_about_job(world.namespace, manifest)
        warnings = caught.value.warnings
        assert refusal in caught.value.message
    assert sorted(unknown_fields(pin(template), manifest, warnings)) == sorted(unknown)


async def test_other_warnings_are_no_unknown_fields(world: World, kubectl: Kubectl) -> None:
    """R24: what a namespace's Pod security warns of stops nothing, and is no misspelt field."""
    kubectl("label", "namespace", world.namespace, "pod-security.kubernetes.io/warn=restricted")
    template = a_template({"hostNetwork": True})
    manifest = rendered(template, world)
    warnings = await world.client.ask_about_job(world.namespace, manifest)
    assert any("would violate PodSecurity" in each for each in warnings)
    assert unknown_fields(pin(template), manifest, warnings) == ()


@pytest.mark.usefixtures("operator")
def test_a_misspelt_field_is_told_and_stops_nothing(kubectl: Kubectl, namespace: str, audit: AuditTrail) -> None:
    """R24, R36: where `kubectl apply` refuses a CronJob; its runs start, and correcting it is seen within seconds."""
    template = a_template(container={"comand": ["false"]}, activeDeadlineSecond=60)
    cron = {"schedule": "0 0 1 1 *", "jobTemplate": template}
    cronjob = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": cron}
    refused = kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(cronjob), check=False)
    assert f'unknown field "{POD}.containers[0].comand"' in refused.stderr
    definition = {
        **SCHEDULE,
        "kind": "WorkflowDefinition",
        "metadata": {"name": "w"},
        "spec": {"jobTemplate": template},
    }
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=20)
    objects = [
        definition,
        a_manifest("once", jobTemplate=template, runOnceTime=f"{at:%Y-%m-%dT%H:%M:%SZ}"),
        a_manifest("child", workflowRef={"name": "w"}, schedule="0 0 1 1 *"),
    ]
    kubectl("apply", "-n", namespace, "-f", "-", input=manifests(*objects))

    def told() -> dict[str, str]:
        found = json.loads(kubectl("get", "wfs", "-n", namespace, "-o", "json").stdout)["items"]
        healthy = {each["metadata"]["name"]: condition(each, "RunsHealthy") for each in found}
        return {name: f"{each['status']} {each['reason']} {each['message']}" for name, each in healthy.items() if each}

    paths = f"{ROOT}.spec.activeDeadlineSecond, {POD}.containers[0].comand: the API server knows no such field"
    found = until(told, lambda found: len(found) == 2 and all("Unknown" in each for each in found.values()), seconds=15)
    assert found["once"].startswith(f"False UnknownFields {paths}")
    assert found["child"].startswith(f"False UnknownFields WorkflowDefinition w: {paths}")
    asked = [each for each in audit.requests() if each.namespace == namespace and each.is_dry_run]
    assert [(each.verb, each.resource, each.code) for each in asked] == [("create", "jobs", 201)]
    done = until(
        lambda: [each["status"].get("outcome") for each in occurrences(kubectl, namespace) if each["status"]],
        lambda found: "Completed" in found,
        seconds=90,
    )
    assert done == ["Completed"]
    kubectl(
        "apply", "-n", namespace, "-f", "-", input=json.dumps({**definition, "spec": {"jobTemplate": a_template()}})
    )
    found = until(told, lambda found: found["child"].startswith("True"), seconds=15)
    assert found["once"].startswith("False UnknownFields")


def condition(schedule: Json, kind: str) -> Json | None:
    conditions = schedule.get("status", {}).get("conditions", [])
    return next((dict(each) for each in conditions if each["type"] == kind), None)
