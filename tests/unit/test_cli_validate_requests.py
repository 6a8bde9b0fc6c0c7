"""`kubectl wfs validate` of a ScheduleOccurrence: what the API server would refuse of a request to run, by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workflow_schedules.api.crd import OCCURRENCE, document
from workflow_schedules.cli.main import main
from workflow_schedules.cli.request import request_schema

AT = "2026-01-01T00:00:00Z"
FORM = "a request has scheduleRef.name, cause, scheduledTime and input only"


def a_request(**fields: object) -> dict[str, Any]:
    return {"scheduleRef": {"name": "nightly"}, "cause": "Manual", **fields}


def told(capsys: pytest.CaptureFixture[str], folder: Path, spec: object, metadata: object = None) -> list[str]:
    body = {
        "apiVersion": "workflow-schedules.dev/v1alpha1",
        "kind": "ScheduleOccurrence",
        "metadata": {"name": "again"} if metadata is None else metadata,
        "spec": spec,
    }
    (folder / "f").write_text(json.dumps(body))
    status = main(["validate", "-f", str(folder / "f")])
    lines = [line.partition("f:1: ")[2] for line in capsys.readouterr().err.splitlines()]
    assert status == (1 if lines else 0)
    return lines


SPECS: list[tuple[str, object, list[str]]] = [
    ("run now", a_request(), []),
    ("run now, with an input of its own", a_request(input={"a": [1, None]}), []),
    ("what is null is left out", a_request(input=None, scheduledTime=None, decision=None), []),
    ("run again", a_request(cause="Backfill", scheduledTime=AT), []),
    ("run again, with an input of its own", a_request(cause="Backfill", scheduledTime=AT, input={}), []),
    ("run again, but what", a_request(cause="Backfill"),
     ["spec.scheduledTime: is missing; write the past instant that cause Backfill is to run"]),
    ("run now, then", a_request(scheduledTime=AT),
     [f"spec.scheduledTime: '{AT}': cause Manual runs now; leave it out, or write cause: Backfill"]),
    ("an instant that is none", a_request(cause="Backfill", scheduledTime="today"),
     ["spec.scheduledTime: 'today': want RFC 3339 with an explicit offset, such as 2026-08-27T18:00:00Z"]),
    ("a record", a_request(cause="Scheduled", sequence=1, decision="Admitted", wat=1),
     ["spec.cause: 'Scheduled' is for records, which only the operator makes; to run now, write Manual"]),
    ("a cause that is none", a_request(cause="Why"), ["spec.cause: 'Why' is unknown: write one of Manual, Backfill"]),
    ("no cause", {"scheduleRef": {"name": "s"}}, ["spec.cause: is missing: write one of Manual, Backfill"]),
    ("a cause that is null", a_request(cause=None),
     ["spec.cause: null is of the wrong type: write one of Manual, Backfill"]),
    ("no schedule", {"cause": "Manual"}, ["spec.scheduleRef: is missing: write an object"]),
    ("a schedule by name alone", a_request(scheduleRef="nightly"),
     ["spec.scheduleRef: 'nightly' is of the wrong type: write an object"]),
    ("a schedule without a name", a_request(scheduleRef={}),
     ["spec.scheduleRef.name: is missing: write text, in quotes if need be"]),
    ("a name of no characters", a_request(scheduleRef={"name": ""}),
     ["spec.scheduleRef.name: '' has 0 characters: write 1 to 253"]),
    ("a UID", a_request(scheduleRef={"name": "s", "uid": "u"}),
     [f"spec.scheduleRef.uid: 'u' is for records, leave it out: {FORM}"]),
    ("a decision", a_request(decision="Admitted"), [f"spec.decision: 'Admitted' is for records, leave it out: {FORM}"]),
    ("what is for records, and of the wrong type", a_request(open="x"),
     [f"spec.open: 'x' is for records, leave it out: {FORM}"]),
    ("a resolved input", a_request(inputJSON="{}"), [f"spec.inputJSON: '{{}}' is for records, leave it out: {FORM}"]),
    ("a misspelt field", a_request(sheduledTime=AT), ["spec.sheduledTime: no such field; did you mean scheduledTime?"]),
    ("a field that is none", a_request(wat=1),
     ["spec.wat: no such field; there are cause, input, scheduleRef, scheduledTime"]),
    ("a list as input", a_request(input=[1]), ["spec.input: [1] is of the wrong type: write an object"]),
    ("an input too large", a_request(input={"a": "x" * 40_000}),
     ["spec.input: 40008 bytes of JSON; write at most 32768 (32 KiB)"]),
    ("no spec", None,
     ["spec: null is no object; write scheduleRef, with the name of a WorkflowSchedule, and cause: Manual or Backfill"]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "want"), [row[1:] for row in SPECS], ids=[row[0] for row in SPECS])
def test_the_spec_of_a_request(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, spec: object, want: list[str]
) -> None:
    """R27, R36."""
    assert told(capsys, tmp_path, spec) == want


JOB_NAME = "it becomes the name of a Job; write at most 63 small letters, digits and '-', such as again-1"
RESERVED = "'-', 8 hex digits, '-', 9 digits end the names of records; choose another"
NAMES: list[tuple[str, object, list[str]]] = [
    ("as long as a Job's", {"name": "a" * 63}, []),
    ("longer", {"name": "a" * 64}, [f"metadata.name: '{'a' * 64}': {JOB_NAME}"]),
    ("with a dot", {"name": "a.b"}, [f"metadata.name: 'a.b': {JOB_NAME}"]),
    ("with capitals", {"name": "Again"}, [f"metadata.name: 'Again': {JOB_NAME}"]),
    ("of the log", {"name": "s-0123abcd-000000001"}, [f"metadata.name: 's-0123abcd-000000001': {RESERVED}"]),
    ("nearly of the log", {"name": "s-0123abcg-000000001"}, []),
    ("of the log, and more", {"name": "s-0123abcd-000000001-again"}, []),
    ("to be generated", {"generateName": "again-"}, []),
    ("to be generated, with a dot", {"generateName": "again."}, [f"metadata.generateName: 'again.': {JOB_NAME}"]),
    ("null, to be generated", {"name": None, "generateName": "again-"}, []),
    ("none", {}, ["metadata.name: is missing; write a DNS name such as nightly-report"]),
    ("a list", {"name": ["a"]},
     ['metadata.name: ["a"] is no DNS name; write small letters, digits, \'-\' and \'.\', such as nightly-report']),
    ("of no metadata", [], ["metadata: [] is no object; write one with a name, such as {name: nightly-report}"]),
]  # fmt: skip


@pytest.mark.parametrize(("metadata", "want"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_the_name_of_a_request(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, metadata: object, want: list[str]
) -> None:
    """R27: it is that of its Job, and none of the log's."""
    assert told(capsys, tmp_path, a_request(), metadata) == want


def test_only_the_operator_names_records(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = told(capsys, tmp_path, a_request(cause="Scheduled"), {"name": "s-0123abcd-000000001"})
    assert lines == ["spec.cause: 'Scheduled' is for records, which only the operator makes; to run now, write Manual"]


def test_a_request_has_the_fields_that_the_crd_leaves_it() -> None:
    """R27: what the CRD's rule forbids is no field of a request, and nothing else."""
    schema = document(OCCURRENCE)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rule = next(each["rule"] for each in schema["x-kubernetes-validations"] if "scheduleRef.uid) ||" in each["rule"])
    left = {name for name in schema["properties"] if f"has(self.{name})" not in rule}
    assert left == set(request_schema()["properties"])
    assert all(
        request_schema()["properties"][name] == schema["properties"][name] for name in ("scheduledTime", "input")
    )
