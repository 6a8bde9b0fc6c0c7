"""`kubectl wfs validate`: every problem of a file at once, without a cluster.

Says what admission and the operator would say, by their own code, and besides what neither can: the line, and misspelt fields.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

from workflow_schedules.api import names
from workflow_schedules.api.definition import WorkflowDefinitionSpec
from workflow_schedules.api.schedule import WorkflowScheduleSpec
from workflow_schedules.cli.problems import Problem, code_of
from workflow_schedules.cluster.wire import schedule_of
from workflow_schedules.core.acceptance import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workflow_schedules.cli.documents import Document, FieldPath

_SPECS: dict[str, type[BaseModel]] = {
    names.KIND_SCHEDULE: WorkflowScheduleSpec,
    names.KIND_DEFINITION: WorkflowDefinitionSpec,
}
_ROOT_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_UNSAID = {"metadata": {"uid": "unsaid", "namespace": "default", "name": "unsaid"}}


def problems_of(document: Document) -> list[Problem]:
    """Return everything that is wrong with one object; kinds of others are left alone.

    Source: contract R5 to R7, R36.
    """
    body = document.body
    if not isinstance(body, dict):
        return [
            _problem(
                document, (), "invalid_object", "is no Kubernetes object: write apiVersion, kind, metadata and spec"
            )
        ]
    if not str(body.get("apiVersion", "")).startswith(f"{names.GROUP}/"):
        return []
    found = list(_root_problems(document, body))
    kind = body.get("kind")
    spec = body.get("spec")
    if kind not in _SPECS or not isinstance(spec, dict):
        return found
    found += _unknown_fields(document, _SPECS[kind], spec, ("spec",))
    typed = list(_type_problems(document, _SPECS[kind], spec))
    found += typed
    if kind == names.KIND_SCHEDULE and not typed:
        schedule = schedule_of({**body, "metadata": _UNSAID["metadata"], "spec": spec})
        found += [
            _problem(document, ("spec", *refusal.path), code_of(refusal.reason), refusal.message)
            for refusal in refusals(schedule)
        ]
    return sorted(found, key=lambda problem: int(problem.place.rpartition(":")[2]))


def _root_problems(document: Document, body: dict[str, Any]) -> Iterator[Problem]:
    kind, version = body.get("kind"), body.get("apiVersion")
    kinds = (*_SPECS, names.KIND_OCCURRENCE)
    if kind not in kinds:
        yield _problem(document, ("kind",), "unknown_kind", f"kind: {kind!r} is none of {', '.join(kinds)}")
    if version != names.API_VERSION:
        yield _problem(
            document, ("apiVersion",), "unknown_version", f"apiVersion: {version!r} is not {names.API_VERSION}"
        )
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        yield _problem(document, ("metadata",), "invalid_spec", "metadata.name: is missing; write a DNS name")
    if kind in _SPECS and not isinstance(body.get("spec"), dict):
        yield _problem(document, ("spec",), "invalid_spec", "spec: is missing; write what is to run, and when")
    for key in body.keys() - _ROOT_FIELDS:
        yield _unknown(document, (key,), _ROOT_FIELDS)


def _unknown_fields(
    document: Document, model: type[BaseModel], given: dict[str, Any], path: FieldPath
) -> Iterator[Problem]:
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    for key, value in given.items():
        field = known.get(key)
        if field is None:
            yield _unknown(document, (*path, key), frozenset(known))
        elif (inner := _model_in(field.annotation)) is not None and isinstance(value, dict):
            yield from _unknown_fields(document, inner, value, (*path, key))


def _model_in(annotation: object) -> type[BaseModel] | None:
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


def _unknown(document: Document, path: FieldPath, known: frozenset[str]) -> Problem:
    key = str(path[-1])
    if path == ("spec", "suspend"):
        return _problem(document, path, "unknown_field", "spec.suspend: does not exist here; use enabled or pause")
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
    return _problem(document, path, "unknown_field", f"{_dotted(path)}: no such field; {hint}")


def _type_problems(document: Document, model: type[BaseModel], spec: dict[str, Any]) -> Iterator[Problem]:
    try:
        model.model_validate(spec)
    except ValidationError as error:
        for entry in error.errors(include_url=False):
            path = ("spec", *entry["loc"])
            shown = "" if entry["type"] == "missing" else f"{entry.get('input')!r}: "
            yield _problem(document, path, "invalid_spec", f"{_dotted(path)}: {shown}{entry['msg']}")


def _problem(document: Document, path: FieldPath, error: str, message: str) -> Problem:
    return Problem(error=error, message=message, place=document.place(path))


def _dotted(path: FieldPath) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
