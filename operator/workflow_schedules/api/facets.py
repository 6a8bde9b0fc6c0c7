"""What the wire schema says about a field beyond its type. Read by the CRD generator only: pydantic ignores it.

The bounds are deliberately not enforced by the models: the API server refuses a wrong value at the door, and a value
that came in before its bound existed must still parse, so that the operator can report it instead of crashing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One CEL rule of the object it stands on.

    Attributes:
        rule: the expression; true means accepted.
        message: what is wrong and what would be accepted.
        message_expression: CEL string that names the offending value as well; ``message`` is its fallback.
        field_path: the field to blame, relative to the object, ``.suspend``.
        reason: ``FieldValueInvalid``, ``FieldValueForbidden``, ``FieldValueRequired`` or ``FieldValueDuplicate``.
    """

    rule: str
    message: str
    message_expression: str | None = None
    field_path: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Wire:
    """Facets of one field of the wire schema.

    Attributes:
        doc: what ``kubectl explain`` says.
        min_length: characters, of a string.
        max_length: characters, of a string; every string has one, or the API server refuses to estimate CEL costs.
        minimum: of an integer.
        maximum: of an integer.
        max_items: of a list; every list has one.
        map_key: the list is a map by this key of its items.
        required: present in every valid object, though the model can do without.
        has_default: the model's default is a default of the schema, written into every object.
        rules: CEL rules of this field; ``self`` is its value.
    """

    doc: str = ""
    min_length: int | None = None
    max_length: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    max_items: int | None = None
    map_key: str | None = None
    required: bool = False
    has_default: bool = False
    rules: tuple[Rule, ...] = ()
