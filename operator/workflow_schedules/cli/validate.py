"""`kubectl wfs validate`: every problem of a file at once, without a cluster.

Says what admission and the operator would say, by their own schema and code, and besides what neither can: the line.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from workflow_schedules.api import names
from workflow_schedules.api.definition import WorkflowDefinitionSpec
from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec
from workflow_schedules.api.schedule import WorkflowScheduleSpec
from workflow_schedules.api.schema import object_schema
from workflow_schedules.cli.documents import given
from workflow_schedules.cli.problems import Problem, code_of
from workflow_schedules.cli.request import (
    is_record,
    name_flaw,
    request_refusals,
    request_schema,
    without_nulls_of_records,
)
from workflow_schedules.cli.structure import Flaw, flaws, short, unknown_field
from workflow_schedules.cluster.wire import definition_of, schedule_of
from workflow_schedules.core.acceptance import accept
from workflow_schedules.core.input_schema import SchemaProblem, read_schema
from workflow_schedules.core.job import template_problem
from workflow_schedules.core.refusals import Refusal, refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from workflow_schedules.api.common import Model
    from workflow_schedules.cli.documents import Document, FieldPath
    from workflow_schedules.core.model import Definition, ObjectRef

_SPECS: dict[str, type[Model]] = {
    names.KIND_SCHEDULE: WorkflowScheduleSpec,
    names.KIND_DEFINITION: WorkflowDefinitionSpec,
    names.KIND_OCCURRENCE: ScheduleOccurrenceSpec,
}
_KINDS = (*_SPECS,)
_SPEC_WANTED = {
    names.KIND_SCHEDULE: "write what is to run, and when",
    names.KIND_DEFINITION: "write what is to run, as jobTemplate",
    names.KIND_OCCURRENCE: "write scheduleRef, with the name of a WorkflowSchedule, and cause: Manual or Backfill",
}
_ROOT_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_UNSAID = {"uid": "unsaid", "namespace": "default", "name": "unsaid"}
_TEXT = {"type": "string"}
_TIME = {"type": "string", "format": "date-time"}
_NUMBER = {"type": "integer"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_OBJECTS = {"type": "array", "items": {"type": "object"}, "maxItems": 10_000}  # an API server has no bound of its own
_METADATA: dict[str, dict[str, Any]] = {  # of ObjectMeta, the name aside: what an API server refuses to decode
    "generateName": _TEXT, "namespace": _TEXT, "uid": _TEXT, "resourceVersion": _TEXT, "selfLink": _TEXT,
    "generation": _NUMBER, "deletionGracePeriodSeconds": _NUMBER, "creationTimestamp": _TIME, "deletionTimestamp": _TIME,
    "labels": _TEXTS, "annotations": _TEXTS, "ownerReferences": _OBJECTS, "managedFields": _OBJECTS,
    "finalizers": {**_OBJECTS, "items": _TEXT},
}  # fmt: skip
_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
# refusals about several fields say nothing new where one of these can't be read
_TOGETHER: dict[FieldPath, frozenset[str]] = {
    (): frozenset({"schedule", "schedules", "runOnceTime", "workflowRef", "jobTemplate"}),
    ("maxActiveRuns",): frozenset({"concurrencyPolicy"}),
}


def is_ours(document: Document) -> bool:
    """Tell whether an object is of this project, or means to be."""
    body = document.body
    if not isinstance(body, dict):
        return False
    return body.get("kind") in _KINDS or str(body.get("apiVersion")).partition("/")[0] == names.GROUP


def problems_of(document: Document) -> list[Problem]:
    """Return everything that is wrong with one object, by line; kinds of others are left alone.

    Source: contract R5 to R7, R36.
    """
    body = document.body
    if not isinstance(body, dict) or not (is_ours(document) or (body.get("apiVersion") and body.get("kind"))):
        message = f"{short(body)} is no Kubernetes object: write apiVersion, kind, metadata and spec"
        return [_problem(document, (), "invalid_object", message)]
    if not is_ours(document):
        return list(_list_problems(document, body))
    found = list(_root_problems(document, body))
    kind = _kind_with_spec(body)
    if kind is not None and isinstance(body.get("spec"), dict):
        found += _spec_problems(document, kind, body["spec"])
    return sorted(found, key=lambda problem: int(problem.place.rpartition(":")[2]))


def problems_between(documents: Iterable[Document]) -> list[Problem]:
    """Return what is wrong with schedules beside the definitions that are in the same files: their input.

    Objects with problems of their own are left out; a definition that is elsewhere is not asked.

    Source: contract R24, R36.
    """
    fine = [document for document in documents if is_ours(document) and not problems_of(document)]
    definitions: dict[ObjectRef, Definition] = {}
    for document in fine:
        if document.body["kind"] == names.KIND_DEFINITION:
            definition = definition_of(as_created(document))
            definitions[definition.ref] = definition
    schedules = [document for document in fine if document.body["kind"] == names.KIND_SCHEDULE]
    return [problem for document in schedules for problem in _input_problems(document, definitions)]


def _input_problems(document: Document, definitions: Mapping[ObjectRef, Definition]) -> Iterator[Problem]:
    schedule = schedule_of(as_created(document))
    parent = schedule.spec.workflow_ref if schedule.spec else None
    definition = definitions.get(replace(schedule.ref, name=parent.name)) if parent else None
    verdict = accept(schedule, definition)
    if isinstance(verdict, Refusal):
        yield _problem(document, ("spec", *verdict.path), code_of(verdict.reason), verdict.message)


def as_created(document: Document, *, uid: str = _UNSAID["uid"]) -> dict[str, Any]:
    """Return an object without problems as if it had just been created, with what only a server would say of it.

    Args:
        document: nothing of its metadata is kept but its identity.
        uid: where it has none.
    """
    metadata = document.body["metadata"]
    said = {key: value for key in _UNSAID if (value := metadata.get(key))}
    return {"metadata": {**_UNSAID, "uid": uid, **said}, "spec": given_spec(document)}


def given_spec(document: Document) -> dict[str, Any]:
    """Return the fields of a spec that are given."""
    return given(document.body["spec"])


def _kind_with_spec(body: dict[str, Any]) -> str | None:
    kind = body.get("kind")
    return kind if isinstance(kind, str) and kind in _SPECS else None


def _list_problems(document: Document, body: dict[str, Any]) -> Iterator[Problem]:
    if body["kind"] == "List":  # one that has a list of items was taken apart
        yield _problem(
            document, ("items",), "invalid_object", f"items: {short(body.get('items'))} is no list; write one"
        )


def _root_problems(document: Document, body: dict[str, Any]) -> Iterator[Problem]:
    kind, version = body.get("kind"), body.get("apiVersion")
    if kind not in _KINDS:
        found = f"{short(kind)} is none of" if "kind" in body else "is missing; write one of"
        yield _problem(document, ("kind",), "unknown_kind", f"kind: {found} {', '.join(_KINDS)}")
    if version != names.API_VERSION:
        found = f"{short(version)} is unknown" if "apiVersion" in body else "is missing"
        message = f"apiVersion: {found}; write {names.API_VERSION}"
        yield _problem(document, ("apiVersion",), "unknown_version", message)
    yield from _metadata_problems(document, body)
    if (named := _kind_with_spec(body)) is not None and not isinstance(body.get("spec"), dict):
        yield _no_spec(document, named, body)
    for key in body:
        if key not in _ROOT_FIELDS:
            yield _of_flaw(document, unknown_field((key,), _ROOT_FIELDS))


def _no_spec(document: Document, kind: str, body: dict[str, Any]) -> Problem:
    why = f"{short(body['spec'])} is no object" if "spec" in body else "is missing"
    return _problem(document, ("spec",), "invalid_spec", f"spec: {why}; {_SPEC_WANTED[kind]}")


def _metadata_problems(document: Document, body: dict[str, Any]) -> Iterator[Problem]:
    metadata = body.get("metadata", {})
    if not isinstance(metadata, dict):
        message = f"metadata: {short(metadata)} is no object; write one with a name, such as {{name: nightly-report}}"
        yield _problem(document, ("metadata",), "invalid_spec", message)
        return
    for key, schema in _METADATA.items():
        for flaw in flaws(schema, metadata.get(key), ("metadata", key)):
            yield _of_flaw(document, flaw)
    if body.get("kind") == names.KIND_OCCURRENCE and (found := name_flaw(metadata, body.get("spec"))):
        yield _of_flaw(document, found)
    else:
        yield from _name_problems(document, metadata)


def _name_problems(document: Document, metadata: dict[str, Any]) -> Iterator[Problem]:
    name, path = metadata.get("name"), ("metadata", "name")
    if name is None:
        if not metadata.get("generateName"):
            found = "null is none" if "name" in metadata else "is missing"
            message = f"metadata.name: {found}; write a DNS name such as nightly-report"
            yield _problem(document, path, "invalid_spec", message)
    elif not (isinstance(name, str) and len(name) <= 253 and _DNS_NAME.fullmatch(name)):
        message = f"metadata.name: {short(name)} is no DNS name; write small letters, digits, '-' and '.', such as nightly-report"
        yield _problem(document, path, "invalid_spec", message)


def _spec_problems(document: Document, kind: str, spec: dict[str, Any]) -> Iterator[Problem]:
    """Yield what the schema says, then what the operator says about the fields that can be read."""
    found = list(_flaws(kind, spec))
    broken = {flaw.path[1] for flaw in found if not flaw.is_usable}
    usable = {key: value for key, value in given(spec).items() if key not in broken}
    refused = [
        refusal
        for refusal in _refusals(kind, usable)
        if refusal.path[:1] not in {(name,) for name in broken}
        and not broken & _TOGETHER.get(refusal.path, frozenset())
    ]
    said = {("spec", *refusal.path) for refusal in refused}
    yield from (_of_flaw(document, flaw) for flaw in found if flaw.path not in said)
    for refusal in refused:
        yield _problem(document, ("spec", *refusal.path), code_of(refusal.reason), refusal.message)


def _flaws(kind: str, spec: dict[str, Any]) -> Iterator[Flaw]:
    if kind != names.KIND_OCCURRENCE:
        yield from flaws(_schema(kind), spec, ("spec",))
    elif not is_record(spec):
        yield from flaws(request_schema(), without_nulls_of_records(spec), ("spec",))


@cache
def _schema(kind: str) -> dict[str, Any]:
    return object_schema(_SPECS[kind])


def _refusals(kind: str, spec: dict[str, Any]) -> list[Refusal]:
    body = {"metadata": _UNSAID, "spec": spec}
    if kind == names.KIND_OCCURRENCE:
        return list(request_refusals(spec))
    if kind == names.KIND_SCHEDULE:
        return refusals(schedule_of(body))
    return list(_definition_refusals(definition_of(body)))


def _definition_refusals(definition: Definition) -> Iterator[Refusal]:
    template_says = template_problem(definition.template) if definition.template else None
    if template_says is not None:
        yield Refusal(reason="InvalidSpec", message=template_says, path=("jobTemplate",))
    schema = read_schema(definition.input_schema) if definition.input_schema is not None else None
    if isinstance(schema, SchemaProblem):
        yield Refusal(reason="InvalidSpec", message=schema.message, path=("inputSchema", *schema.path))


def _of_flaw(document: Document, flaw: Flaw) -> Problem:
    return _problem(document, flaw.path, flaw.error, flaw.message)


def _problem(document: Document, path: FieldPath, error: str, message: str) -> Problem:
    return Problem(error=error, message=message, place=document.place(path))
