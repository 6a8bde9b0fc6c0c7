"""The input of an occurrence: what the schedule gives, and what the occurrence itself fills in.

Whether an input meets its definition's schema is input_schema's business.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from workflow_schedules.api.common import format_utc
from workflow_schedules.api.names import record_name
from workflow_schedules.api.occurrence import Cause
from workflow_schedules.api.schedule import OccurrenceField

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from workflow_schedules.api.schedule import InputBinding
    from workflow_schedules.core.model import Schedule

Input = dict[str, Any]

MAX_INPUT_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrenceFacts:
    """What an input key can be bound to.

    Attributes:
        last_successful_time: None when no run of the schedule has completed yet.
    """

    scheduled_time: datetime | None
    name: str
    schedule_name: str
    revision: int
    cause: Cause
    last_successful_time: datetime | None

    def value(self, field: OccurrenceField) -> str | int | None:
        """Return a field as JSON: instants as RFC 3339 in UTC, null for one that there is none of."""
        match field:
            case OccurrenceField.SCHEDULED_TIME:
                return _time(self.scheduled_time)
            case OccurrenceField.NAME:
                return self.name
            case OccurrenceField.SCHEDULE_NAME:
                return self.schedule_name
            case OccurrenceField.REVISION:
                return self.revision
            case OccurrenceField.CAUSE:
                return str(self.cause)
            case OccurrenceField.LAST_SUCCESSFUL_TIME:
                return _time(self.last_successful_time)
        assert_never(field)


def resolve_input(
    given: Mapping[str, Any] | None, bindings: Iterable[InputBinding], facts: OccurrenceFacts
) -> Input | None:
    """Return the input of one occurrence; None where neither an input nor a binding is set.

    A key that is both given and bound is refused when a schedule is accepted; should one get here, the binding wins.

    Args:
        given: `spec.input`, or that of a request.
        bindings: `spec.inputFrom`.
        facts: of the occurrence.

    Source: contract section 2 (`input`, `inputFrom`), R23.
    """
    bound = {binding.name: facts.value(binding.occurrence_field) for binding in bindings}
    return None if given is None and not bound else {**(given or {}), **bound}


def input_text(resolved: Input) -> str:
    """Return an input as the compact JSON that goes on record, not changed by any rendering after it."""
    return json.dumps(resolved, ensure_ascii=False, separators=(",", ":"))


def size_problem(text: str, *, field: str) -> str | None:
    """Return why an input is too large, or None.

    Args:
        text: compact JSON.
        field: whose name the message gives.

    Source: contract section 2 (`input`), K-096.
    """
    size = len(text.encode(errors="surrogatepass"))
    if size <= MAX_INPUT_BYTES:
        return None
    return f"{field}: {size} bytes of JSON; write at most {MAX_INPUT_BYTES} (32 KiB)"


def sample_facts(schedule: Schedule, *, scheduled_time: datetime) -> tuple[OccurrenceFacts, ...]:
    """Return facts of occurrences as a schedule will have them: a first run, and one after a run has completed.

    An input that only one of the two would have right is a schedule that stops one day, or never starts.

    Source: contract R24.
    """
    first = OccurrenceFacts(
        scheduled_time=scheduled_time,
        name=record_name(schedule.ref.name, schedule.uid, 1),
        schedule_name=schedule.ref.name,
        revision=1,
        cause=Cause.SCHEDULED,
        last_successful_time=None,
    )
    later = OccurrenceFacts(
        scheduled_time=scheduled_time,
        name=record_name(schedule.ref.name, schedule.uid, 2),
        schedule_name=schedule.ref.name,
        revision=2,
        cause=Cause.SCHEDULED,
        last_successful_time=scheduled_time,
    )
    return first, later


def _time(at: datetime | None) -> str | None:
    return None if at is None else format_utc(at)
