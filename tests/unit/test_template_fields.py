"""Fields of a template that no Job gets: which are told, and as what."""

from __future__ import annotations

import json
import re

import pytest
from kubernetes.client.models import V1ObjectMeta

from support.builders import WRITER, a_definition, a_schedule, an_admission, at
from workflow_schedules.core.acceptance import Accepted, accept, definition_warnings
from workflow_schedules.core.identity import pin
from workflow_schedules.core.job import Manifest, job_manifest
from workflow_schedules.core.template_fields import is_ttl, overruled, unknown_fields, unknown_problem
from workflow_schedules.core.zones import load_zone

GROUP = "workflow-schedules.dev"
POD: Manifest = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1.37"}]}
FINE: Manifest = {"spec": {"template": {"spec": POD}}}


def rendered(template: Manifest, **fields: object) -> Manifest:
    zone = load_zone("UTC")
    return job_manifest(an_admission(**fields), pin(template), zone=zone, last_successful_at=at("09:00"), writer=WRITER)


def with_spec(**fields: object) -> Manifest:
    return {"spec": {**FINE["spec"], **fields}}


def with_pod_metadata(**fields: object) -> Manifest:
    return {"spec": {"template": {"metadata": fields, "spec": POD}}}


OVERRULED = [
    ("nothing", FINE, []),
    ("labels and annotations of one's own",
     {**FINE, "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}, "annotations": {"a": "b"}}}, []),
    ("null is left out", {**FINE, "status": None, "metadata": {"creationTimestamp": None}}, []),
    ("a Job that was pasted whole", {**FINE, "apiVersion": "batch/v1", "kind": "Job", "status": {}},
     [r"spec\.jobTemplate\.apiVersion: is left out", r"spec\.jobTemplate\.kind: ", r"spec\.jobTemplate\.status: "]),
    ("a name of its own", {**FINE, "metadata": {"name": "x"}},
     [r"spec\.jobTemplate\.metadata\.name: is left out; only labels"]),
    ("a generated name", {**FINE, "metadata": {"generateName": "x-"}}, [r"metadata\.generateName: is left out"]),
    ("another namespace", {**FINE, "metadata": {"namespace": "kube-system"}}, [r"metadata\.namespace: is left out"]),
    ("an owner and a finalizer", {**FINE, "metadata": {"ownerReferences": [{"uid": "y"}], "finalizers": ["z/z"]}},
     [r"metadata\.finalizers: is left out", r"metadata\.ownerReferences: is left out"]),
    ("a label of ours", {**FINE, "metadata": {"labels": {f"{GROUP}/cause": "Forged", "a": "b"}}},
     [rf"spec\.jobTemplate\.metadata\.labels: {GROUP}/cause is overruled"]),
    ("a label of ours on the Pod", with_pod_metadata(labels={f"{GROUP}/schedule": "other"}),
     [rf"spec\.jobTemplate\.spec\.template\.metadata\.labels: {GROUP}/schedule is overruled"]),
    ("the input", with_pod_metadata(annotations={f"{GROUP}/input": "{}"}), [rf"annotations: {GROUP}/input is overruled"]),
    ("an epoch", {**FINE, "metadata": {"annotations": {f"{GROUP}/fencing-epoch": "9"}}},
     [rf"{GROUP}/fencing-epoch is overruled"]),
    ("CronJob's time", {**FINE, "metadata": {"annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": "x"}}},
     [r"cronjob-scheduled-timestamp is overruled"]),
    ("a time to keep the Job", with_spec(ttlSecondsAfterFinished=0), []),
    ("a time as text", with_spec(ttlSecondsAfterFinished="60"),
     [r'ttlSecondsAfterFinished: "60" is not followed; write a whole']),
    ("a time below 0", with_spec(ttlSecondsAfterFinished=-1), [r"ttlSecondsAfterFinished: -1 is not followed"]),
    ("a switch as a time", with_spec(ttlSecondsAfterFinished=True), [r"ttlSecondsAfterFinished: true is not followed"]),
    ("what the API server judges", with_spec(suspend=True, manualSelector=False, activeDeadlineSeconds="soon"), []),
]  # fmt: skip


@pytest.mark.parametrize(("template", "want"), [row[1:] for row in OVERRULED], ids=[row[0] for row in OVERRULED])
def test_what_the_operator_overrules_is_told(template: Manifest, want: list[str]) -> None:
    """R22, R36: in `Accepted`, of the schedule or of the definition, which stays True."""
    told = overruled(pin(template))
    assert len(told) == len(want), told
    assert all(re.search(part, message) for part, message in zip(want, told, strict=True)), told
    verdict = accept(a_schedule(template=pin(template)))
    assert isinstance(verdict, Accepted)
    assert verdict.warnings == told
    assert definition_warnings(a_definition(template=pin(template))) == told


def test_what_is_overruled_does_not_reach_the_job() -> None:
    """R22: what is told is so."""
    forged = dict.fromkeys(
        (f"{GROUP}/schedule", f"{GROUP}/schedule-uid", f"{GROUP}/cause", f"{GROUP}/scheduled-at"), "Forged"
    )
    notes = {f"{GROUP}/{key}": "Forged" for key in ("fencing-epoch", "writer", "lease", "input")}
    notes["batch.kubernetes.io/cronjob-scheduled-timestamp"] = "Forged"
    template = {
        "apiVersion": "batch/v1",
        "kind": "Other",
        "status": {"succeeded": "Forged"},
        "metadata": {"labels": forged, "annotations": {k: v for k, v in notes.items() if not k.endswith("/input")}},
        "spec": {
            "ttlSecondsAfterFinished": "Forged",
            "template": {"metadata": {"labels": forged, "annotations": {f"{GROUP}/input": "Forged"}}, "spec": POD},
        },
    }  # fmt: skip
    manifest = rendered(template)
    assert "Forged" not in str(manifest)
    assert manifest["kind"] == "Job"
    assert len(overruled(pin(template))) == 3 + 4 + 4 + 4 + 1 + 1


@pytest.mark.parametrize(
    ("value", "want"), [(0, True), (60, True), (-1, False), (True, False), (1.5, False), ("60", False), (None, False)]
)
def test_times_that_are_followed(value: object, want: bool) -> None:
    """R22: what is no time is not put on the Job either."""
    assert is_ttl(value) is want
    annotations = rendered(with_spec(ttlSecondsAfterFinished=value))["metadata"]["annotations"]
    assert (f"{GROUP}/ttl-seconds-after-finished" in annotations) is want


def test_metadata_is_known_whole() -> None:
    """R24: of metadata the operator is the only judge, since it hands on nothing else of it."""
    known = dict.fromkeys(V1ObjectMeta.attribute_map.values(), "x") | {"labels": {"a": "b"}, "annotations": {"a": "b"}}
    template = pin({**FINE, "metadata": known})
    assert unknown_fields(template, rendered(json.loads(template.body)), []) == ()
    assert len(overruled(template)) == len(known) - 2


VARIABLES = [{"name": "A", "valu": "1"}, {"name": "B", "value": "2"}]
CONTAINERS: Manifest = {
    "containers": [{"name": "a"}, {"name": "b", "env": VARIABLES}],
    "initContainers": [{"env": VARIABLES}],
}
UNKNOWN = [
    ("nothing", FINE, [], []),
    ("other warnings are others' business", FINE,
     ['would violate PodSecurity "restricted:latest": unknown field "x"', "duplicate"], []),
    ("of the Job", FINE, ['unknown field "spec.activeDeadlineSecond"'], ["spec.jobTemplate.spec.activeDeadlineSecond"]),
    ("of a container", FINE, ['unknown field "spec.template.spec.containers[0].comand"'],
     ["spec.jobTemplate.spec.template.spec.containers[0].comand"]),
    ("two", FINE, ['unknown field "spec.a"', 'unknown field "spec.b"'], ["spec.jobTemplate.spec.a", "spec.jobTemplate.spec.b"]),
    ("a name with quotes and line breaks", FINE, ['unknown field "spec.a"\n"b"'], ['spec.jobTemplate.spec.a"\n"b']),
    ("beside spec", {**FINE, "activeDeadlineSeconds": 60, "template": {}}, [],
     ["spec.jobTemplate.activeDeadlineSeconds", "spec.jobTemplate.template"]),
    ("in metadata", {**FINE, "metadata": {"label": {"a": "b"}, "name": "x"}}, [], ["spec.jobTemplate.metadata.label"]),
    ("null is left out", {**FINE, "template": None, "metadata": {"label": None}}, [], []),
    ("what a Job has is overruled, not unknown", {**FINE, "apiVersion": "v1", "kind": "Job", "status": {"x": 1}}, [], []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("template", "warnings", "want"), [row[1:] for row in UNKNOWN], ids=[row[0] for row in UNKNOWN]
)
def test_what_nobody_knows(template: Manifest, warnings: list[str], want: list[str]) -> None:
    """R24, R36: by its path in the template, not in the Job."""
    assert list(unknown_fields(pin(template), rendered(template), warnings)) == want


@pytest.mark.parametrize(
    ("kind", "container", "number"), [("containers", 1, 0), ("containers", 1, 1), ("initContainers", 0, 0)]
)
def test_a_variable_is_named_by_its_place_in_the_template(kind: str, container: int, number: int) -> None:
    """R23, R36: the operator's own come before it, more of them where there is an input."""
    template = {"spec": {"template": {"spec": CONTAINERS}}}
    for fields in ({}, {"input_json": '{"a":1,"c":2}'}):
        manifest = rendered(template, **fields)
        env = manifest["spec"]["template"]["spec"][kind][container]["env"]
        index = env.index(VARIABLES[number])
        assert index > number
        warning = f'unknown field "spec.template.spec.{kind}[{container}].env[{index}].valu"'
        (path,) = unknown_fields(pin(template), manifest, [warning])
        assert path == f"spec.jobTemplate.spec.template.spec.{kind}[{container}].env[{number}].valu"


@pytest.mark.parametrize(
    "place", ["containers[7].env[0].a", "containers[0].env[0].a", "containers[99999999999].env[9].a"]
)
def test_a_place_that_the_template_does_not_have_is_no_crash(place: str) -> None:
    """I9: what a server says is not trusted."""
    warning = f'unknown field "spec.template.spec.{place}"'
    assert len(unknown_fields(pin(FINE), rendered(FINE), [warning])) == 1


def test_no_more_is_kept_than_can_be_read() -> None:
    """I9: a template may hold thousands."""
    template = {**FINE, **{f"x{number}{'y' * 1000}": 1 for number in range(1000)}}
    found = unknown_fields(pin(template), rendered(template), ['unknown field "spec.z"'] * 1000)
    assert (len(found), found[-1]) == (11, "and more")
    assert max(map(len, found)) == 201
    ten = unknown_fields(pin(FINE), rendered(FINE), [f'unknown field "spec.a{number}"' for number in range(10)])
    assert len(ten) == 10
    assert "and more" not in ten


def test_what_is_said_names_the_fields_the_consequence_and_the_remedy() -> None:
    """R36."""
    said = unknown_problem(("spec.jobTemplate.spec.a", "spec.jobTemplate.spec.b"), None)
    assert said.startswith(
        "spec.jobTemplate.spec.a, spec.jobTemplate.spec.b: the API server knows no such field of a Job"
    )
    assert "runs start without it; correct its name, or leave it out" in said
    assert unknown_problem(("spec.jobTemplate.spec.a",), "w").startswith(
        "WorkflowDefinition w: spec.jobTemplate.spec.a: "
    )
