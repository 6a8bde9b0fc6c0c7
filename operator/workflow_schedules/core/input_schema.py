"""The schema of an input (JSON Schema 2020-12): is it one, and does an input meet it, both at a bounded cost.

People write schemas, and the operator checks them between two runs of others: so a schema is plain data of bounded size
without references to elsewhere, its patterns are matched by RE2 in linear time, and each check has a budget (see metered).
`format` is an annotation, as the standard has it by default.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from workflow_schedules.core.metered import (
    InvalidPatternError,
    MeteredValidator,
    TooCostlyError,
    budget,
    flat_meta_schema,
    regex,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema.exceptions import ValidationError

Schema = dict[str, Any]
Path = tuple[str | int, ...]

MAX_SCHEMA_BYTES = 64 * 1024
MAX_SUBSCHEMAS = 1000
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MAX_FLAWS = 5
_SHOWN = 80
_ONE = frozenset(
    {"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
     "unevaluatedItems", "unevaluatedProperties"}
)  # fmt: skip
_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_TYPES = {
    "array": "a list", "boolean": "true or false", "integer": "a whole number", "null": "null", "number": "a number",
    "object": "an object", "string": "text",
}  # fmt: skip
_INSTEAD = {
    "$dynamicRef": "use $ref",
    "$dynamicAnchor": "use $anchor",
    "$recursiveRef": "use $ref",
    "$recursiveAnchor": "leave it out",
    "dependencies": "use dependentRequired or dependentSchemas",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """One way in which an input departs from its schema.

    Attributes:
        path: the value's place in the input.
        want: what would do, and which keyword of the schema says so; holds nothing of the input's values.
        value: the value itself as JSON, cut; for where people may see the input, never for logs and events (K-096).
    """

    path: Path
    want: str
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaProblem:
    """Why a schema can't be used.

    Attributes:
        path: place below ``spec.inputSchema``.
    """

    message: str
    path: Path = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputSchema:
    """A schema that inputs can be checked against."""

    validator: Any
    subschemas: int

    def flaws(self, given: object) -> tuple[Flaw, ...]:
        """Return the first ways in which an input departs from the schema; nothing when it meets it.

        Source: contract R24.
        """
        try:
            with budget(subschemas=self.subschemas):
                return tuple(map(_flaw, islice(self.validator.iter_errors(given), _MAX_FLAWS)))
        except TooCostlyError:
            return (Flaw(path=(), want="checking it against inputSchema takes too long; make one of the two simpler"),)
        except RecursionError:
            return (Flaw(path=(), want="inputSchema refers to itself without end, or this is nested too deeply"),)


@lru_cache(maxsize=4096)
def read_schema(text: str) -> InputSchema | SchemaProblem:
    """Read a schema; read once for each text.

    Args:
        text: canonical JSON (see identity).

    Source: contract section 1 (`inputSchema`), R24, R36.
    """
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_SCHEMA_BYTES:
        return SchemaProblem(message=f"{_name(())}: {size} bytes of JSON; write at most {MAX_SCHEMA_BYTES} (64 KiB)")
    try:
        return _read(json.loads(text))
    except _ProblemError as error:
        return error.problem
    except TooCostlyError:
        return SchemaProblem(message=f"{_name(())}: takes too long to check; make it simpler")
    except RecursionError:
        return SchemaProblem(message=f"{_name(())}: is nested too deeply; make it simpler")


def shown(value: object) -> str:
    """Return a value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def dotted(root: str, path: Path) -> str:
    """Return the name of a place as people write it: ``input.days[0]``."""
    return root + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


class _ProblemError(Exception):
    def __init__(self, path: Path, why: str) -> None:
        self.problem = SchemaProblem(message=f"{_name(path)}: {why}", path=path)


def _name(path: Path) -> str:
    return dotted("spec.inputSchema", path)


def _read(root: Schema) -> InputSchema:
    if root.pop("$schema", _DIALECT) != _DIALECT:  # left in, it would make the validator change its class
        raise _ProblemError(("$schema",), f"write {_DIALECT}, or leave it out")
    found: dict[int, Schema] = {}
    references: list[tuple[Path, str]] = []
    for path, schema in _walk(root, ()):
        if len(found) >= MAX_SUBSCHEMAS:
            raise _ProblemError((), f"has more than {MAX_SUBSCHEMAS} schemas in it; make it simpler")
        found[id(schema)] = schema
        if "$ref" in schema:
            references.append(((*path, "$ref"), schema["$ref"]))
    _check_combination(found.values())
    _check_references(root, references, found)
    return InputSchema(validator=MeteredValidator(root, registry=Registry()), subschemas=len(found))


def _walk(schema: object, path: Path) -> Iterator[tuple[Path, Schema]]:
    """Yield every schema in a schema, itself first, each only once it is known to have the right shape."""
    if isinstance(schema, bool):
        return
    _check_shape(schema, path)
    if not isinstance(schema, dict):
        return
    _check_keywords(schema, path)
    _check_patterns(schema, path)
    yield path, schema
    for place, each in _inner(schema):
        yield from _walk(each, (*path, *place))


def _inner(schema: Schema) -> Iterator[tuple[Path, object]]:
    for keyword, value in schema.items():
        if keyword in _ONE:
            yield (keyword,), value
        elif keyword in _LIST:
            yield from (((keyword, index), each) for index, each in enumerate(value))
        elif keyword in _NAMED:
            yield from (((keyword, name), each) for name, each in value.items())


def _check_shape(schema: object, path: Path) -> None:
    meta = flat_meta_schema()
    with budget(subschemas=1):
        error = next(meta.iter_errors(schema), None)
    if error is not None:
        flaw = _flaw(error)
        keyword = error.absolute_path[0] if error.absolute_path else "a schema"
        why = f"{flaw.value} is none that {keyword} may have in JSON Schema 2020-12; {flaw.want.partition(' (')[0]}"
        raise _ProblemError((*path, *flaw.path), why)


def _check_keywords(schema: Schema, path: Path) -> None:
    for keyword, instead in _INSTEAD.items():
        if keyword in schema:
            raise _ProblemError((*path, keyword), f"is not supported; {instead}")
    for keyword in ("$id", "$schema"):
        if path and keyword in schema:
            raise _ProblemError((*path, keyword), "is only for the whole schema; leave it out here")
    reference = schema.get("$ref", "#")
    if not reference.startswith("#"):
        why = f"{shown(reference)} is elsewhere, and nothing is fetched; write it under $defs, and refer to it by #/$defs/…"
        raise _ProblemError((*path, "$ref"), why)


def _check_patterns(schema: Schema, path: Path) -> None:
    patterns: list[tuple[Path, str]] = [
        (("patternProperties", name), name) for name in schema.get("patternProperties", ())
    ]
    if "pattern" in schema:
        patterns.append((("pattern",), schema["pattern"]))
    for place, pattern in patterns:
        try:
            regex(pattern)
        except InvalidPatternError as error:
            raise _ProblemError((*path, *place), f"{shown(pattern)} is no pattern of RE2's syntax: {error}") from error


def _check_combination(schemas: Any) -> None:  # noqa: ANN401 - any iterable of schemas
    """Refuse the one pair that would match patterns without RE2."""
    keywords = {keyword for schema in schemas for keyword in schema}
    if {"patternProperties", "unevaluatedProperties"} <= keywords:
        raise _ProblemError((), "has both patternProperties and unevaluatedProperties; use additionalProperties")


def _check_references(root: Schema, references: list[tuple[Path, str]], found: dict[int, Schema]) -> None:
    resource = DRAFT202012.create_resource(root)
    resolver = Registry().with_resource(resource.id() or "", resource).resolver(resource.id() or "")
    for path, reference in references:
        try:
            target = resolver.lookup(reference).contents
        except (Unresolvable, ValueError, TypeError, LookupError):  # a pointer into a list by name, for one
            target = None
        if not isinstance(target, bool) and id(target) not in found:
            raise _ProblemError(path, f"{shown(reference)} is no schema in here; write it under $defs")


def _flaw(error: ValidationError) -> Flaw:
    path = tuple(error.absolute_path)
    where = dotted("inputSchema", tuple(error.absolute_schema_path))
    return Flaw(path=path, want=f"{_want(error)} ({where})", value=shown(error.instance))


def _want(error: ValidationError) -> str:
    value, instance = error.validator_value, error.instance
    want = f"must meet {error.validator} {shown(value)}"
    match error.validator:
        case "type":
            want = "write " + (_TYPES[value] if isinstance(value, str) else " or ".join(_TYPES[each] for each in value))
        case "enum":
            want = f"write one of {_listed(value)}"
        case "const":
            want = f"write {shown(value)}"
        case "required":
            want = f"has no {_listed(key for key in value if key not in instance)}; write it"
        case "additionalProperties" if value is False:
            want = f"knows no {_listed(key for key in instance if key not in error.schema.get('properties', {}))}; leave it out"
        case None:
            want = "has a value that must not be there"
    return want


def _listed(values: Any) -> str:  # noqa: ANN401 - any iterable of JSON values
    found = list(islice(map(shown, values), 11))
    return ", ".join(found[:10]) + (", …" if len(found) > 10 else "")
