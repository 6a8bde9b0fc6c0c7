"""The CRDs on disk are what the models say, and keep the promises every schema must keep."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from workflow_schedules.api import crd
from workflow_schedules.api.common import Model
from workflow_schedules.api.schema import object_schema

ROOT = Path(__file__).resolve().parents[2]
GENERATED = crd.documents()
CRDS = {kind.kind: crd.document(kind) for kind in crd.KINDS}


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")


def schema_of(document: dict[str, Any]) -> dict[str, Any]:
    root: dict[str, Any] = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return root


NODES = [
    pytest.param(node, id=f"{kind}{path}")
    for kind, document in CRDS.items()
    for path, node in nodes(schema_of(document))
    if path.startswith((".spec", ".status"))
]


def test_the_files_are_the_generated_ones() -> None:
    """A difference means that hack/update has to run."""
    assert {path.name: path.read_text() for path in (ROOT / "crds").iterdir()} == GENERATED


def test_the_chart_carries_the_same_crds() -> None:
    charted = {path.name: path.read_text() for path in (ROOT / "charts/workflow-schedules/crds").iterdir()}
    assert charted == {name: text for name, text in GENERATED.items() if name != "kustomization.yaml"}


@pytest.mark.parametrize("node", NODES)
def test_every_node_is_structural_and_bounded(node: dict[str, Any]) -> None:
    """The API server estimates the cost of CEL from these bounds; a list without a list type can't be merged."""
    match node["type"]:
        case "string":
            assert "maxLength" in node or "enum" in node or node.get("format") == "date-time"
        case "array":
            assert node["maxItems"] > 0
            assert node["x-kubernetes-list-type"] in {"atomic", "map"}
        case "object":
            assert node.get("properties") or node["x-kubernetes-preserve-unknown-fields"]
        case _:
            assert node["type"] in {"integer", "boolean"}


@pytest.mark.parametrize("kind", CRDS)
def test_kubectl_explain_has_something_to_say_on_every_field(kind: str) -> None:
    own = {path: node for path, node in nodes(schema_of(CRDS[kind])) if path.startswith((".spec", ".status"))}
    assert [path for path, node in own.items() if not path.endswith("[]") and not node.get("description")] == []


def test_no_default_depends_on_another_field() -> None:
    """Contract, preamble. Occurrences have none at all: what a create returns must be what was sent (P18)."""
    defaults = {
        f"{kind}{path}": node["default"]
        for kind, document in CRDS.items()
        for path, node in nodes(schema_of(document))
        if "default" in node
    }
    assert defaults == {
        "WorkflowDefinition.spec.enabled": True,
        "WorkflowDefinition.spec.onDisable": "DisableSchedules",
        "WorkflowSchedule.spec.timeZone": "UTC",
        "WorkflowSchedule.spec.enabled": False,
        "WorkflowSchedule.spec.concurrencyPolicy": "Forbid",
        "WorkflowSchedule.spec.misfirePolicy": "Skip",
        "WorkflowSchedule.spec.skippedTimePolicy": "NextValid",
        "WorkflowSchedule.spec.repeatedTimePolicy": "Both",
        "WorkflowSchedule.spec.deletionPolicy": "Retain",
        "WorkflowSchedule.spec.successfulJobsHistoryLimit": 3,
        "WorkflowSchedule.spec.failedJobsHistoryLimit": 1,
        "WorkflowSchedule.spec.occurrenceHistoryLimit": 100,
    }


@pytest.mark.parametrize(
    ("kind", "short"), [("WorkflowDefinition", "wfd"), ("WorkflowSchedule", "wfs"), ("ScheduleOccurrence", "occ")]
)
def test_names_category_and_status(kind: str, short: str) -> None:
    spec = CRDS[kind]["spec"]
    assert (spec["names"]["shortNames"], spec["names"]["categories"]) == ([short], ["scheduling"])
    assert spec["versions"][0]["subresources"] == {"status": {}}
    assert spec["scope"] == "Namespaced"


def columns_of(kind: str) -> list[str]:
    columns = CRDS[kind]["spec"]["versions"][0]["additionalPrinterColumns"]
    return [column["name"].upper() for column in columns if "priority" not in column]


def test_columns() -> None:
    """Contract 2 and Records."""
    assert " ".join(columns_of("WorkflowSchedule")) == "SCHEDULE TIMEZONE STATE ACTIVE LAST LAST-OUTCOME NEXT AGE"
    assert " ".join(columns_of("ScheduleOccurrence")) == ("SCHEDULE TIME CAUSE DECISION OUTCOME REASON DURATION AGE")
    columns = CRDS["WorkflowSchedule"]["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [each["name"] for each in columns if "priority" in each] == [
        "Concurrency",
        "Misfire",
        "Last-Success",
        "Last-Failure",
        "Message",
    ]
    selectable = CRDS["ScheduleOccurrence"]["spec"]["versions"][0]["selectableFields"]
    assert [item["jsonPath"] for item in selectable] == [
        ".spec.scheduleRef.name",
        ".spec.cause",
        ".spec.decision",
        ".status.outcome",
    ]


@pytest.mark.parametrize("kind", crd.KINDS, ids=lambda kind: kind.kind)
def test_every_column_and_selectable_field_exists(kind: crd.Kind) -> None:
    paths = {re.sub(r"\[\]", "", path) for path, _ in nodes(schema_of(CRDS[kind.kind]))}
    shown = [column.path for column in kind.columns if "[" not in column.path and ".metadata." not in column.path]
    assert set(shown) | set(kind.selectable) <= paths


def test_a_type_without_a_place_on_the_wire_is_an_error() -> None:
    class Odd(Model):
        field: float | None = None

    class Either(Model):
        field: int | str

    for model in (Odd, Either):
        with pytest.raises(TypeError, match=r"no place on the wire|one type"):
            object_schema(model)


def test_generated_files_are_yaml_and_say_so() -> None:
    for text in GENERATED.values():
        assert text.startswith("# Generated by hack/update")
        assert yaml.safe_load(text)
