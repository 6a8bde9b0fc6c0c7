"""Turns a wire model into a structural OpenAPI v3 schema. Knows types and facets, nothing about the three kinds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from workflow_schedules.api.common import Model
from workflow_schedules.api.facets import Rule, Wire

_SCALARS = {bool: {"type": "boolean"}, int: {"type": "integer", "format": "int64"}, str: {"type": "string"}}

_FACETS = {
    "min_length": "minLength",
    "max_length": "maxLength",
    "minimum": "minimum",
    "maximum": "maximum",
    "max_items": "maxItems",
}


def object_schema(model: type[Model]) -> dict[str, Any]:
    """Return the schema of a model: described, bounded, with its CEL rules.

    Raises:
        TypeError: a field has a type that has no place on the wire.
    """
    properties = {_alias(name, field): _field_schema(field) for name, field in model.model_fields.items()}
    required = [_alias(name, field) for name, field in model.model_fields.items() if _is_required(field)]
    return {
        "description": (model.__doc__ or "").strip(),
        "type": "object",
        **({"required": required} if required else {}),
        "properties": properties,
        **validations(model.RULES),
    }


def validations(rules: Iterable[Rule]) -> dict[str, Any]:
    """Return CEL rules as the schema keyword that holds them; nothing without rules."""
    listed = [_rule(rule) for rule in rules]
    return {"x-kubernetes-validations": listed} if listed else {}


def _rule(rule: Rule) -> dict[str, str]:
    entries = {
        "rule": rule.rule,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "fieldPath": rule.field_path,
        "reason": rule.reason,
    }
    return {key: value for key, value in entries.items() if value is not None}


def _alias(name: str, field: FieldInfo) -> str:
    return field.alias or name


def _wire(metadata: Iterable[object]) -> Wire:
    return next((item for item in metadata if isinstance(item, Wire)), Wire())


def _is_required(field: FieldInfo) -> bool:
    return field.is_required() or _wire(field.metadata).required


def _field_schema(field: FieldInfo) -> dict[str, Any]:
    wire = _wire(field.metadata)
    schema = _with_facets(_type_schema(field.annotation), wire)
    if wire.has_default:
        schema["default"] = field.default.value if isinstance(field.default, StrEnum) else field.default
    return {"description": wire.doc, **schema} if wire.doc else schema


def _with_facets(schema: dict[str, Any], wire: Wire) -> dict[str, Any]:
    facets = {key: getattr(wire, name) for name, key in _FACETS.items() if getattr(wire, name) is not None}
    merged = {**schema, **facets, **validations((*wire.rules,))}
    if wire.map_key:
        merged |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [wire.map_key]}
    return merged


def _type_schema(annotation: Any) -> dict[str, Any]:  # noqa: ANN401 - a type expression has no narrower type
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        return _with_facets(_type_schema(inner), _wire(metadata))
    if origin in {Union, UnionType}:
        return _type_schema(_without_none(annotation))
    if origin is tuple:
        return {"type": "array", "items": _type_schema(get_args(annotation)[0]), "x-kubernetes-list-type": "atomic"}
    if origin is dict:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return _class_schema(annotation)


def _without_none(union: Any) -> Any:  # noqa: ANN401 - a type expression has no narrower type
    kept = [part for part in get_args(union) if part is not NoneType]
    if len(kept) != 1:
        raise TypeError(f"{union}: a wire field has one type, or that type and None")
    return kept[0]


def _class_schema(cls: type) -> dict[str, Any]:
    if cls in _SCALARS:
        return dict(_SCALARS[cls])
    if issubclass(cls, StrEnum):
        return {"type": "string", "enum": [member.value for member in cls]}
    if issubclass(cls, datetime):
        return {"type": "string", "format": "date-time"}
    if issubclass(cls, Model):
        return object_schema(cls)
    raise TypeError(f"{cls}: no place on the wire")
