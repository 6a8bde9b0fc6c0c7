"""A JSON Schema validator whose work is bounded: keywords spend from a budget, and patterns are matched by RE2.

A schema of a few hundred bytes can make an ordinary validator work for years: references that double at each step, patterns
that backtrack, lists compared pair by pair. What schemas and inputs mean is input_schema's business.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import re2
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from jsonschema_specifications import REGISTRY
from referencing import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Keyword: TypeAlias = "Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]"

# in microseconds, about, on a busy machine: a check ends within a tenth of a second whatever people write
BUDGET = 60_000
_KEYWORD_COST = 4
_REFERENCE_COST = 8
_BRANCH_COST = 6
_ERROR_COST = 20
_BRANCHES = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SHORT_MESSAGES = frozenset({"$ref", "allOf", "format", "if", "items", "properties"})
_PATTERN_BYTES = 1024
_PATTERN_MEMORY_BYTES = 256 * 1024  # of the compiled pattern: what repeats a thousand times a thousand is refused
_META = "https://json-schema.org/draft/2020-12"
_VOCABULARIES = ("core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "content")


class TooCostlyError(Exception):
    """The budget is used up."""


class InvalidPatternError(ValueError):
    """The pattern is not one of RE2, or too large."""


@dataclass(slots=True)
class _Meter:
    left: int
    subschemas: int


_meter: ContextVar[_Meter] = ContextVar("_meter")


@contextmanager
def budget(*, subschemas: int) -> Iterator[None]:
    """Give what is checked inside of this its budget.

    Args:
        subschemas: how many the schema has, which bounds what keywords cost that look at all of them.

    Raises:
        TooCostlyError: it was used up.
    """
    token = _meter.set(_Meter(left=BUDGET, subschemas=subschemas))
    try:
        yield
    finally:
        _meter.reset(token)


def _spend(cost: int) -> None:
    meter = _meter.get()
    meter.left -= cost
    if meter.left < 0:
        raise TooCostlyError


@lru_cache(maxsize=4096)
def regex(pattern: str) -> Any:  # noqa: ANN401 - re2 has no types
    """Compile a pattern.

    Raises:
        InvalidPatternError: it can't be compiled; the message says why.
    """
    options = re2.Options()
    options.max_mem, options.log_errors = _PATTERN_MEMORY_BYTES, False
    try:
        if len(pattern.encode()) > _PATTERN_BYTES:
            raise InvalidPatternError(f"it is longer than {_PATTERN_BYTES} bytes")
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0] if error.args else error
        raise InvalidPatternError(why.decode(errors="replace") if isinstance(why, bytes) else str(why)) from error
    except UnicodeEncodeError as error:
        raise InvalidPatternError("it is no Unicode text") from error


def _matches(pattern: str, text: str) -> bool:
    compiled = regex(pattern)
    _spend(1 + len(text) * compiled.programsize // 50)
    try:
        return compiled.search(text) is not None
    except UnicodeEncodeError:
        return False  # half a surrogate pair is matched by nothing


def _key(value: object) -> object:
    """Return something hashable that is equal for what JSON Schema calls equal: 1 and 1.0, but not 1 and true."""
    _spend(1)
    match value:
        case bool():
            return ("bool", value)
        case list():
            return ("list", *map(_key, value))
        case dict():
            return frozenset((name, _key(each)) for name, each in value.items())
    return value


def _type(validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if not any(validator.is_type(instance, kind) for kind in ([value] if isinstance(value, str) else value)):
        yield ValidationError("is of another type")


def _enum(_validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    is_one = instance in value if isinstance(instance, str) else _key(instance) in map(_key, value)
    if not is_one:
        yield ValidationError("is none of the enum")


def _const(_validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if _key(instance) != _key(value):
        yield ValidationError("is not the const")


def _unique_items(validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if value and validator.is_type(instance, "array") and len(set(map(_key, instance))) < len(instance):
        yield ValidationError("has equal items")


def _pattern(validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if validator.is_type(instance, "string") and not _matches(value, instance):
        yield ValidationError("does not match")


def _pattern_properties(validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in value.items():
        for name, each in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(each, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if not validator.is_type(instance, "object"):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    others = [name for name in instance if name not in known and not any(_matches(each, name) for each in patterns)]
    if value is False and others:
        yield ValidationError("has unknown keys")
    elif value is not False:
        for name in others:
            yield from validator.descend(instance[name], value, path=name)


def _unevaluated(keyword: Keyword) -> Keyword:
    """Meter a keyword that looks at all schemas for each part of a value."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        _spend(_meter.get().subschemas * (1 + _length(instance)) // 10)
        yield from keyword(validator, value, instance, schema) or ()

    return check


def _metered(name: str, keyword: Keyword) -> Keyword:
    branch = _BRANCH_COST if name in _BRANCHES else 0
    fixed = _KEYWORD_COST + (_REFERENCE_COST if name == "$ref" else 0)

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError] | None:  # noqa: ANN401
        size = _length(value)
        _spend(fixed + branch * size + (size + _length(instance)) // 8)
        return keyword(validator, value, instance, schema)

    def check_wordy(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        for error in check(validator, value, instance, schema) or ():
            _spend(_ERROR_COST + len(error.message) // 20)  # the message repeats the value
            yield error

    return check if name in _OWN or name in _SHORT_MESSAGES else check_wordy


def _dependent_required(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    _spend(sum(map(len, value.values())) // 8)
    yield from Draft202012Validator.VALIDATORS["dependentRequired"](validator, value, instance, schema) or ()


def _length(value: object) -> int:
    return len(value) if isinstance(value, (list, dict)) else 0


_OWN: dict[str, Keyword] = {
    "additionalProperties": _additional_properties,
    "const": _const,
    "dependentRequired": _dependent_required,
    "enum": _enum,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "type": _type,
    "unevaluatedItems": _unevaluated(Draft202012Validator.VALIDATORS["unevaluatedItems"]),
    "unevaluatedProperties": _unevaluated(Draft202012Validator.VALIDATORS["unevaluatedProperties"]),
    "uniqueItems": _unique_items,
}
MeteredValidator = extend(
    Draft202012Validator,
    {name: _metered(name, keyword) for name, keyword in {**Draft202012Validator.VALIDATORS, **_OWN}.items()},
)


@cache
def flat_meta_schema() -> Any:  # noqa: ANN401 - a validator
    """Return the meta-schema for one schema without those inside of it, which is fast enough to ask for each of them."""
    merged: dict[str, Any] = {"type": ["object", "boolean"], "$defs": {}, "properties": {}}
    for uri in (f"{_META}/schema", *(f"{_META}/meta/{name}" for name in _VOCABULARIES)):
        part: Any = REGISTRY.contents(uri)
        for keyword in ("$defs", "properties"):
            merged[keyword] |= part.get(keyword, {})
    text = json.dumps(merged).replace('"$dynamicRef": "#meta"', '"type": ["object", "boolean"]')
    return MeteredValidator(json.loads(text), registry=Registry())
