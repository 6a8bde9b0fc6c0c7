"""What every record of format 1 says, whatever was decided: the next decision stands on it (P3).

A record that lacks any of it was not written by an operator, or was cut down since. Nothing is made up in its place: a
watermark that is missing would be now at every look, and counts would begin anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_schedules.api.common import wire_name
from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import Counts
from workflow_schedules.core.listed import UNBLOCKED
from workflow_schedules.core.log import FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from workflow_schedules.api.common import Model
    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec

_ALWAYS = (
    "sequence",
    "format",
    "decision",
    "revision",
    "spec_hash",
    "generation",
    "state",
    "consumed_through_time",
    "open",
    "waiting",
    "totals",
    "fencing_epoch",
    "writer",
    "lease",
)
_COUNTS = (*Counts.model_fields, "consecutive_failures")  # countedFailures came later (K-108)
_DEFINITION = ("definition_uid", "definition_generation")


def problem(spec: ScheduleOccurrenceSpec) -> str | None:
    """Return what a record of this format or an older one lacks, naming the fields, or None.

    Source: contract R29, R31; P3.
    """
    found = lacking(spec) if spec.format <= FORMAT else ()
    return f"lacks {', '.join(f'spec.{path}' for path in found)}, which every such record has" if found else None


def lacking(spec: ScheduleOccurrenceSpec) -> tuple[str, ...]:
    """Return the fields that a record should have and hasn't, as they are spelled on the wire."""
    fields = [*_missing(spec, _ALWAYS), *_missing(spec, _by_decision(spec))]
    if len(of_definition := tuple(_missing(spec, _DEFINITION))) < len(_DEFINITION):
        fields += of_definition  # one of both says nothing
    fields += [f"scheduleRef.{name}" for name in _missing(spec.schedule_ref, ("uid",))]
    if spec.totals is not None:
        fields += [f"totals.{name}" for name in _missing(spec.totals, _COUNTS)]
    return tuple(fields)


def _by_decision(spec: ScheduleOccurrenceSpec) -> Iterator[str]:
    if spec.decision is not Decision.BASELINE:
        yield "scheduled_time"
    if spec.decision is Decision.ADMITTED:
        yield "template_hash"
    begins_anew = spec.decision is Decision.BASELINE and spec.reason == UNBLOCKED  # there may be nothing left before it
    if (spec.sequence or 0) > 1 and not begins_anew:
        yield "previous_uid"


def _missing(model: Model, names: Iterable[str]) -> Iterator[str]:
    """Yield what a stored object doesn't say, though the model has a default for it."""
    return (wire_name(name) for name in names if name not in model.model_fields_set or getattr(model, name) is None)
