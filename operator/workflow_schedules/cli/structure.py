"""Does a value have the shape that the CRD's schema says: fields, types, bounds. What fields mean is acceptance's business."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from workflow_schedules.api.common import parse_utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workflow_schedules.cli.documents import FieldPath

Schema = dict[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "boolean": (bool,),
}  # fmt: skip
_WANTED = {
    "object": "write an object",
    "array": "write a list",
    "string": "write text, in quotes if need be",
    "integer": "write a whole number",
    "boolean": "write true or false",
}
_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """One way in which a value departs from its schema.

    Attributes:
        error: code for programs.
        is_usable: only a bound is broken, so that the value can still be judged for what it means.
    """

    path: FieldPath
    error: str
    message: str
    is_usable: bool = False


def flaws(schema: Schema, value: object, path: FieldPath) -> Iterator[Flaw]:
    """Yield every way in which a value departs from a schema; null is what is left out, but no item of a list."""
    if value is None:
        return
    kind = schema["type"]
    if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
        yield _flaw(path, f"{short(value)} is of the wrong type: {_WANTED[kind]}")
        return
    match value:
        case dict():
            yield from _in_object(schema, value, path)
        case list():
            yield from _in_list(schema, value, path)
        case str():
            yield from _in_text(schema, value, path)
        case int():
            yield from _in_bounds(schema, value, path)


def _in_object(schema: Schema, value: dict[str, object], path: FieldPath) -> Iterator[Flaw]:
    known = schema.get("properties")
    if known is None:
        if (alike := schema.get("additionalProperties")) is not None:
            yield from chain.from_iterable(flaws(alike, inner, (*path, key)) for key, inner in value.items())
        return
    for key in schema.get("required", ()):
        if value.get(key) is None:
            found = "null is of the wrong type" if key in value else "is missing"
            yield _flaw((*path, key), f"{found}: {_wanted(known[key])}")
    for key, inner in value.items():
        if key in known:
            yield from flaws(known[key], inner, (*path, key))
        else:
            yield unknown_field((*path, key), known)


def _wanted(schema: Schema) -> str:
    return f"write one of {', '.join(schema['enum'])}" if "enum" in schema else _WANTED[schema["type"]]


def _in_list(schema: Schema, value: list[object], path: FieldPath) -> Iterator[Flaw]:
    if len(value) > schema["maxItems"]:
        yield _flaw(path, f"{len(value)} items: write at most {schema['maxItems']}", is_usable=True)
    for index, item in enumerate(value):
        if item is None:
            yield _flaw(
                (*path, index), f"null is of the wrong type: {_WANTED[schema['items']['type']]}, or leave it out"
            )
        yield from flaws(schema["items"], item, (*path, index))


def _in_bounds(schema: Schema, value: int, path: FieldPath) -> Iterator[Flaw]:
    low, high = schema.get("minimum", -(2**63)), schema.get("maximum", 2**63 - 1)
    if not low <= value <= high:
        yield _flaw(path, f"{short(value)} is out of bounds: write {low} to {high}", is_usable=True)


def _in_text(schema: Schema, value: str, path: FieldPath) -> Iterator[Flaw]:
    low, high = schema.get("minLength", 0), schema.get("maxLength")
    if len(value) < low or (high is not None and len(value) > high):
        wanted = f"{low} to {high}" if high is not None else f"at least {low}"
        yield _flaw(path, f"{short(value)} has {len(value)} characters: write {wanted}", is_usable=True)
    if "enum" in schema and value not in schema["enum"]:
        yield _flaw(path, f"{short(value)} is unknown: write one of {', '.join(schema['enum'])}")
    if schema.get("format") == "date-time":
        try:
            parse_utc(value)
        except ValueError as error:
            yield _flaw(path, str(error))


def unknown_field(path: FieldPath, known: Schema | frozenset[str]) -> Flaw:
    """Return the flaw of a field that the schema does not have, with what may have been meant."""
    near = difflib.get_close_matches(str(path[-1]), known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
    if path == ("spec", "suspend"):
        hint = "use enabled or pause"
    return Flaw(path=path, error="unknown_field", message=f"{dotted(path)}: no such field; {hint}", is_usable=True)


def dotted(path: FieldPath) -> str:
    """Return a path as people write it: ``spec.schedules[1]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _flaw(path: FieldPath, why: str, *, is_usable: bool = False) -> Flaw:
    return Flaw(path=path, error="invalid_spec", message=f"{dotted(path)}: {why}", is_usable=is_usable)


def short(value: object) -> str:
    """Return a value for a message as JSON has it, text in single quotes; cut where it is long."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
