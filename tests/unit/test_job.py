"""From a record and its template to the Job."""

from __future__ import annotations

import json
import re

import pytest

from support.builders import TEMPLATE, UID, WRITER, an_admission, at
from workflow_schedules.core.identity import pin
from workflow_schedules.core.job import Manifest, input_variables, job_manifest, template_problem, variable_name
from workflow_schedules.core.zones import load_zone

GROUP = "workflow-schedules.dev"


def render(template: object, zone: str = "UTC", **fields: object) -> Manifest:
    record = an_admission(**fields)
    return job_manifest(record, pin(template), zone=load_zone(zone), last_successful_at=at("09:00:05"), writer=WRITER)


def a_template(pod: Manifest | None = None, **spec: object) -> Manifest:
    return {"spec": {**spec, "template": pod or {"spec": {"containers": [{"name": "main"}]}}}}


def environment(manifest: Manifest, kind: str = "containers", number: int = 0) -> dict[str, object]:
    variables = manifest["spec"]["template"]["spec"][kind][number]["env"]
    assert len({variable["name"] for variable in variables}) == len(variables)
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in variables}


def test_the_whole_job() -> None:
    """R22, R23: named as its record, owned by it, labelled, annotated as CronJob does."""
    labels = {
        f"{GROUP}/schedule": "hourly",
        f"{GROUP}/schedule-uid": UID,
        f"{GROUP}/cause": "Scheduled",
        f"{GROUP}/scheduled-at": "20260101T100000Z",
    }
    record = an_admission()
    manifest = job_manifest(record, TEMPLATE, zone=load_zone("Asia/Tokyo"), last_successful_at=None, writer=WRITER)
    assert manifest["metadata"] == {
        "name": record.ref.name,
        "namespace": "team",
        "labels": labels,
        "annotations": {
            f"{GROUP}/fencing-epoch": "3",
            f"{GROUP}/writer": "pod-a",
            f"{GROUP}/lease": "system/scheduler",
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T19:00:00+09:00",
        },
        "ownerReferences": [
            {
                "apiVersion": f"{GROUP}/v1alpha1",
                "kind": "ScheduleOccurrence",
                "name": record.ref.name,
                "uid": "record-2",
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
    }
    assert manifest["spec"]["template"]["metadata"] == {"labels": labels, "annotations": {f"{GROUP}/input": "{}"}}
    assert environment(manifest) == {
        "WORKFLOW_INPUT": {"fieldRef": {"fieldPath": f"metadata.annotations['{GROUP}/input']"}},
        "WORKFLOW_SCHEDULED_TIME": "2026-01-01T10:00:00Z",
        "WORKFLOW_SCHEDULE": "hourly",
        "WORKFLOW_OCCURRENCE": record.ref.name,
        "WORKFLOW_CAUSE": "Scheduled",
        "WORKFLOW_LAST_SUCCESSFUL_TIME": "",
    }


def test_the_templates_own_labels_stay_and_ours_win() -> None:
    """R22: Kueue's queue name works."""
    template = a_template() | {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q", f"{GROUP}/cause": "Forged"}}}
    labels = render(template)["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "q"
    assert labels[f"{GROUP}/cause"] == "Scheduled"


def test_the_operator_removes_the_job_not_its_ttl() -> None:
    """R22, R26: only after the outcome is on record."""
    assert "ttlSecondsAfterFinished" not in render(a_template(ttlSecondsAfterFinished=0))["spec"]
    assert render(a_template(backoffLimit=2))["spec"]["backoffLimit"] == 2


@pytest.mark.parametrize(
    ("own", "pinned", "want"),
    [(None, None, None), (None, 60, 60), (90, None, 90), (90, 60, 60), (30, 60, 30), ("soon", 60, "soon")],
)
def test_the_smaller_budget_wins(own: object, pinned: int | None, want: object) -> None:
    """activeDeadlineSeconds; what is no number the API server refuses."""
    template = a_template(**({} if own is None else {"activeDeadlineSeconds": own}))
    manifest = render(template, active_deadline_seconds=pinned)
    assert manifest["spec"].get("activeDeadlineSeconds") == want


def test_every_container_gets_the_input_and_the_templates_names_win() -> None:
    """R23: init and sidecar containers too."""
    own = [{"name": "WORKFLOW_CAUSE", "value": "mine"}, {"name": "INPUT_A", "value": "mine"}]
    pod = {
        "spec": {
            "initContainers": [{"name": "i"}],
            "containers": [{"name": "a", "env": own}, {"name": "b", "env": None}],
        }
    }
    manifest = render(a_template(pod), input_json='{"a":"theirs"}')
    assert environment(manifest)["WORKFLOW_CAUSE"] == "mine"
    assert environment(manifest)["INPUT_A"] == "mine"
    assert environment(manifest, number=1)["INPUT_A"] == "theirs"
    assert environment(manifest, "initContainers")["INPUT_A"] == "theirs"
    assert environment(manifest)["WORKFLOW_LAST_SUCCESSFUL_TIME"] == "2026-01-01T09:00:05Z"


def test_the_input_is_data() -> None:
    """K-096: nothing in it is expanded."""
    text = json.dumps({"a": "$(HOSTNAME) `id`\n"})
    manifest = render(a_template(), input_json=text)
    assert manifest["spec"]["template"]["metadata"]["annotations"][f"{GROUP}/input"] == text
    assert environment(manifest)["INPUT_A"] == "$$(HOSTNAME) `id`\n"


def test_a_template_is_not_changed_by_its_rendering() -> None:
    template = pin(a_template(ttlSecondsAfterFinished=5))
    first, second = (
        job_manifest(an_admission(), template, zone=load_zone("UTC"), last_successful_at=None, writer=WRITER)
        for _ in range(2)
    )
    assert first == second
    first["spec"]["template"]["spec"]["containers"].clear()
    assert second["spec"]["template"]["spec"]["containers"]


VARIABLES = [
    ({"region": "eu"}, {"INPUT_REGION": "eu"}),
    (
        {"maxItems": 5, "dry-run": True, "a.b c": 1.5},
        {"INPUT_MAX_ITEMS": "5", "INPUT_DRY_RUN": "true", "INPUT_A_B_C": "1.5"},
    ),
    ({"list": [1], "object": {}, "nothing": None}, {}),
    ({"a-b": 1, "a_b": 2, "c": 3}, {"INPUT_C": "3"}),
    ({"caf\u00e9": 1, "": 2, "a=b": 3}, {}),
    ({"price": "5$"}, {"INPUT_PRICE": "5$$"}),
    ({"a": "x\0"}, {}),
    ({"stra\u00dfe": 1}, {}),
    ({"a-b": [1], "a_b": 2}, {"INPUT_A_B": "2"}),
]


@pytest.mark.parametrize(("given", "want"), VARIABLES, ids=str)
def test_input_variables(given: Manifest, want: dict[str, str]) -> None:
    """R23: scalars only; colliding and impossible names are left out."""
    assert input_variables(given) == want


@pytest.mark.parametrize(
    ("key", "want"),
    [
        ("a", "INPUT_A"),
        ("someKey", "INPUT_SOME_KEY"),
        ("HTTPPort", "INPUT_HTTPPORT"),
        ("9", "INPUT_9"),
        ("\u00e9", None),
    ],
)
def test_variable_name(key: str, want: str | None) -> None:
    assert variable_name(key) == want


BROKEN = [
    ("a list", [], r"spec\.jobTemplate: write an object"),
    ("text as metadata", {"metadata": "x"}, r"spec\.jobTemplate\.metadata: write an object"),
    ("a list of labels", {"metadata": {"labels": ["a"]}}, r"spec\.jobTemplate\.metadata\.labels: "),
    ("text as spec", {"spec": "x"}, r"spec\.jobTemplate\.spec: "),
    ("a number as pod", a_template({"spec": 7}), r"spec\.jobTemplate\.spec\.template\.spec: "),
    ("annotations of the pod", a_template({"metadata": {"annotations": 7}}), r"template\.metadata\.annotations: "),
    ("a selector of its own", a_template(selector={"matchLabels": {"a": "b"}}), r"spec\.jobTemplate\.spec\.selector: "),
    ("a manual selector", a_template(manualSelector=True), r"spec\.jobTemplate\.spec\.manualSelector: "),
    ("an object of containers", a_template({"spec": {"containers": {"a": {}}}}), r"spec\.containers: write a list"),
    ("a list of texts", a_template({"spec": {"initContainers": ["a"]}}), r"spec\.initContainers: write a list"),
    (
        "text as env",
        a_template({"spec": {"containers": [{"env": "A=b"}]}}),
        r"spec\.containers: .*env of named variables",
    ),
    (
        "texts in env",
        a_template({"spec": {"containers": [{"env": ["A=b"]}]}}),
        r"spec\.containers: .*env of named variables",
    ),
    (
        "no text as a name in env",
        a_template({"spec": {"containers": [{"env": [{"name": ["x"]}]}]}}),
        r"spec\.containers: .*env of named variables",
    ),
]


@pytest.mark.parametrize(("template", "want"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_template_that_can_not_be_rendered_is_known_beforehand(template: object, want: str) -> None:
    """R24, R36: no template makes the operator crash."""
    problem = template_problem(pin(template))
    assert problem is not None
    assert re.search(want, problem), problem


@pytest.mark.parametrize(
    "template",
    [{}, {"metadata": None, "spec": None}, {"spec": {"template": None}}, a_template({"metadata": None, "spec": None})],
)
def test_an_empty_template_renders_and_the_api_server_refuses_it(template: object) -> None:
    assert template_problem(pin(template)) is None
    assert render(template)["kind"] == "Job"


def test_a_template_can_not_lead_elsewhere() -> None:
    """K-091: name, namespace, owners and finalizers of a Job are never the template's."""
    elsewhere = {"name": "x", "namespace": "kube-system", "ownerReferences": [{"uid": "y"}], "finalizers": ["z/z"]}
    metadata = render(a_template() | {"metadata": elsewhere})["metadata"]
    assert (metadata["name"], metadata["namespace"]) == (an_admission().ref.name, "team")
    assert [owner["uid"] for owner in metadata["ownerReferences"]] == ["record-2"]
    assert set(metadata) == {"name", "namespace", "labels", "annotations", "ownerReferences"}
