"""What may be wrong inside a `jobTemplate`, told without a cluster: warnings, since an API server may know more fields.

Names and shapes are those of the Job in the Kubernetes client's models, which are imported when the first template is
looked at (half a second), and by nothing else: the operator asks the API server.
"""

from __future__ import annotations

import difflib
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from workflow_schedules.api import names
from workflow_schedules.cli.problems import Problem
from workflow_schedules.cli.structure import Flaw, dotted, short
from workflow_schedules.core.identity import pin
from workflow_schedules.core.job import template_problem
from workflow_schedules.core.template_fields import overruled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from workflow_schedules.cli.documents import Document, FieldPath

NOT_INSTALLED: Final = (
    "what stands inside a jobTemplate is not looked at: that needs pip install 'workflow-schedules[kubeconfig]'"
)
_KINDS = (names.KIND_SCHEDULE, names.KIND_DEFINITION)
_TEMPLATE: FieldPath = ("spec", "jobTemplate")
_RESTART: FieldPath = (*_TEMPLATE, "spec", "template", "spec", "restartPolicy")
_MODEL: Final = "V1JobTemplateSpec"
_COLLECTION = re.compile(r"(List\[|Dict\[str, )(\w+)\]")
_SCALARS: dict[str, tuple[type, ...]] = {
    "str": (str,), "datetime": (str,), "int": (int,), "float": (int, float), "bool": (bool,),
}  # fmt: skip
_WANTED = {"str": "text, in quotes if need be", "datetime": "a time", "int": "a whole number", "bool": "true or false"}
_QUANTITIES = frozenset({"limits", "requests", "overhead", "divisor", "sizeLimit"})  # text that may be a number


def template_warnings(documents: Iterable[Document]) -> list[Problem]:
    """Return what may be wrong in the templates of objects, by line; those that can't be rendered have problems instead.

    Source: contract R24, R36.
    """
    found: list[Problem] = []
    for document in documents:
        template = _template(document)
        if template is None:
            continue
        if _fields(_MODEL) is None:
            return [Problem(error="not_looked_at", message=NOT_INSTALLED)]
        by_path = {flaw.path: flaw for flaw in reversed([*_overruled(template), *_flaws(template)])}
        told = [
            Problem(error=each.error, message=each.message, place=document.place(each.path))
            for each in by_path.values()
        ]
        found += sorted(told, key=lambda problem: int(problem.place.rpartition(":")[2]))
    return found


def _template(document: Document) -> dict[str, Any] | None:
    body = document.body
    if not isinstance(body, dict) or body.get("kind") not in _KINDS or not isinstance(body.get("spec"), dict):
        return None
    template = body["spec"].get("jobTemplate")
    return template if isinstance(template, dict) and template_problem(pin(template)) is None else None


def _overruled(template: dict[str, Any]) -> Iterator[Flaw]:
    for message in overruled(pin(template)):
        yield Flaw(path=tuple(message.partition(": ")[0].split(".")), error="not_used", message=message)


def _flaws(template: dict[str, Any]) -> Iterator[Flaw]:
    yield from _in_model(_MODEL, template, _TEMPLATE)
    policy: object = {"jobTemplate": template}
    for key in _RESTART[1:]:
        policy = policy.get(key) if isinstance(policy, dict) else None
    if policy in (None, "Always"):
        why = "is missing" if policy is None else "'Always' is for Pods that never end"
        yield _flaw(_RESTART, f"{why}: write Never or OnFailure")


def _in_model(model: str, value: object, path: FieldPath) -> Iterator[Flaw]:
    fields = _fields(model)
    if fields is None:
        return
    if not isinstance(value, dict):
        yield _of_wrong_type(path, value, "an object")
        return
    for key, inner in value.items():
        if key not in fields:
            yield _unknown((*path, key), fields)
        elif inner is not None:
            yield from _in_field(fields[key], inner, (*path, key))


def _in_field(kind: str, value: object, path: FieldPath) -> Iterator[Flaw]:
    """Yield what is wrong with a value, by its type as the models name it: `List[V1Container]`."""
    collection = _COLLECTION.fullmatch(kind)
    if collection is not None:
        yield from _in_collection(collection[2], value, path, is_list=collection[1] == "List[")
    elif kind in _SCALARS:
        yield from _in_scalar(kind, value, path)
    else:
        yield from _in_model(kind, value, path)


def _in_collection(kind: str, value: object, path: FieldPath, *, is_list: bool) -> Iterator[Flaw]:
    if not isinstance(value, list if is_list else dict):
        yield _of_wrong_type(path, value, "a list" if is_list else "an object")
        return
    for key, inner in enumerate(value) if isinstance(value, list) else value.items():
        yield from _in_field(kind, inner, (*path, key))


def _in_scalar(kind: str, value: object, path: FieldPath) -> Iterator[Flaw]:
    allowed = (str, int, float) if _QUANTITIES & set(path[-2:]) else _SCALARS[kind]
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind != "bool"):
        yield _of_wrong_type(path, value, _WANTED.get(kind, "a number"))


def _fields(model: str) -> dict[str, str] | None:
    """Return the type of each field of a model, by its name on the wire; None where there is no such model."""
    try:
        found = getattr(import_module("kubernetes.client.models"), model, None)
    except ImportError:
        return None
    if found is None:
        return None
    return {found.attribute_map[key]: kind for key, kind in found.openapi_types.items()}


def _unknown(path: FieldPath, fields: dict[str, str]) -> Flaw:
    near = difflib.get_close_matches(str(path[-1]), fields, n=1)
    hint = f"did you mean {near[0]}?" if near else "an API server that doesn't know it either drops it"
    return Flaw(
        path=path, error="unknown_field", message=f"{dotted(path)}: no field of a Job that is known here; {hint}"
    )


def _of_wrong_type(path: FieldPath, value: object, wanted: str) -> Flaw:
    return _flaw(path, f"{short(value)} is of the wrong type: write {wanted}")


def _flaw(path: FieldPath, why: str) -> Flaw:
    return Flaw(path=path, error="invalid_spec", message=f"{dotted(path)}: {why}")
