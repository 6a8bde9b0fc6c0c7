"""What the three kinds share: the base of all models, instants, conditions. No rules of any kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator

from workflow_schedules.api.facets import Rule, Wire

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_ACRONYMS = {"uid": "UID", "json": "JSON"}

MAX_MESSAGE_LENGTH = 4096
MAX_CONDITION_MESSAGE_LENGTH = 32768
MAX_REASON_LENGTH = 64


def wire_name(field: str) -> str:
    """Return the wire spelling of a model field: ``previous_uid`` → ``previousUID``."""
    first, *rest = field.split("_")
    return first + "".join(_ACRONYMS.get(part, part.capitalize()) for part in rest)


class Model(BaseModel):
    """Base of every wire model: frozen, camelCase on the wire, snake_case in code.

    Unknown fields are ignored, because an operator meets objects that a newer one wrote.
    """

    model_config = ConfigDict(
        frozen=True,
        alias_generator=wire_name,
        validate_by_name=True,
        validate_by_alias=True,
        extra="ignore",
    )

    RULES: ClassVar[tuple[Rule, ...]] = ()

    def wire(self) -> dict[str, Any]:
        """Return the JSON object the API server knows: wire names, no absent fields, instants as text."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def parse_utc(value: object) -> datetime:
    """Return an instant in UTC, cut to whole seconds.

    Args:
        value: RFC 3339 text with an explicit offset, or an aware datetime.

    Raises:
        ValueError: anything else; a time without an offset is never guessed.

    Source: contract, preamble (everything stored is UTC, whole seconds).
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()}: naive time, give it an offset")
        return value.astimezone(UTC).replace(microsecond=0)
    if not isinstance(value, str) or (match := _RFC3339.fullmatch(value)) is None:
        raise ValueError(f"{value!r}: want RFC 3339 with an explicit offset, such as 2026-08-27T18:00:00Z")
    date, clock, offset = match.groups()
    try:
        if offset in {"Z", "z"}:
            return datetime.fromisoformat(f"{date}T{clock}+00:00")
        return datetime.fromisoformat(f"{date}T{clock}{offset}").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{value!r}: no such instant ({error})") from error


def format_utc(at: datetime) -> str:
    """Return an aware instant as ``2026-01-01T00:00:00Z``; fractions of a second are cut."""
    return at.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


UtcTime = Annotated[datetime, PlainValidator(parse_utc), PlainSerializer(format_utc, return_type=str)]


class ConditionStatus(StrEnum):
    """Status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Model):
    """metav1.Condition."""

    type: Annotated[str, Wire("Name of the condition, CamelCase.", min_length=1, max_length=316)]
    status: Annotated[ConditionStatus, Wire("True, False or Unknown.")]
    reason: Annotated[str, Wire("Machine-readable cause of the last transition.", min_length=1, max_length=1024)]
    message: Annotated[
        str, Wire("For people: details of the transition.", max_length=MAX_CONDITION_MESSAGE_LENGTH, required=True)
    ] = ""
    last_transition_time: Annotated[
        UtcTime | None, Wire("When the status last changed from one value to another.", required=True)
    ] = None
    observed_generation: Annotated[
        int | None, Wire("metadata.generation that this condition was derived from.", minimum=0)
    ] = None


def set_condition(conditions: Iterable[Condition], new: Condition, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions with ``new`` in the place of the one of its type, or at the end.

    ``lastTransitionTime`` of ``new`` is ignored: it stays what it was while the status stays, else it becomes ``now``.

    Args:
        conditions: as they stand.
        new: what is true now.
        now: aware instant of this observation.
    """
    before = tuple(conditions)
    old = next((condition for condition in before if condition.type == new.type), None)
    changed_at = now if old is None or old.status != new.status else old.last_transition_time
    stamped = new.model_copy(update={"last_transition_time": parse_utc(changed_at or now)})
    if old is None:
        return (*before, stamped)
    return tuple(stamped if condition.type == new.type else condition for condition in before)
