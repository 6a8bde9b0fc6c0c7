"""A ScheduleOccurrence that people write: a request to run. What the CRD's rules and the policies say of one (R27), by field.

Records of the log, with cause Scheduled, are the operator's: nobody else can make one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from workflow_schedules.api import names
from workflow_schedules.api.common import wire_name
from workflow_schedules.api.occurrence import REQUEST_FIELDS, Cause, ScheduleOccurrenceSpec
from workflow_schedules.api.schema import object_schema
from workflow_schedules.cli.structure import Flaw, dotted, short
from workflow_schedules.core.depth import depth_problem
from workflow_schedules.core.inputs import input_text, size_problem
from workflow_schedules.core.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workflow_schedules.cli.documents import FieldPath
    from workflow_schedules.cli.structure import Schema

_RECORD_FIELDS = frozenset(map(wire_name, ScheduleOccurrenceSpec.model_fields)).difference(REQUEST_FIELDS)
_JOB_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_GENERATED_NAME = re.compile(r"[a-z0-9][-a-z0-9]*", re.ASCII)  # a server cuts it, and adds five letters or digits
_JOB_NAME_MAX = 63


def is_record(spec: object) -> bool:
    """Tell whether it means to be a record of the log."""
    return isinstance(spec, dict) and spec.get("cause") == Cause.SCHEDULED


@cache
def request_schema() -> Schema:
    """Return the schema of a request: what is for records is no field of it."""
    schema = object_schema(ScheduleOccurrenceSpec)
    fields = {name: schema["properties"][name] for name in REQUEST_FIELDS}
    schedule = fields["scheduleRef"]
    fields["scheduleRef"] = {**schedule, "properties": {"name": schedule["properties"]["name"]}}
    fields["cause"] = {**fields["cause"], "enum": [Cause.MANUAL.value, Cause.BACKFILL.value]}
    return {**schema, "properties": fields}


def without_nulls_of_records(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a spec without the fields of records that are null, which is to say left out."""
    return {key: value for key, value in spec.items() if value is not None or key not in _RECORD_FIELDS}


def request_refusals(spec: dict[str, Any]) -> Iterator[Refusal]:
    """Yield what the API server and the operator refuse of the fields that can be read.

    Source: contract R27, R36.
    """
    cause, at, given = spec.get("cause"), spec.get("scheduledTime"), spec.get("input")
    if is_record(spec):
        yield _refusal(
            ("cause",), f"{short(cause)} is for records, which only the operator makes; to run now, write Manual"
        )
        return
    for path, value in _of_records(spec):
        yield _refusal(path, f"{short(value)} is for records, leave it out: {_written()}")
    if cause == Cause.BACKFILL and at is None:
        yield _refusal(("scheduledTime",), "is missing; write the past instant that cause Backfill is to run")
    if cause == Cause.MANUAL and at is not None:
        yield _refusal(
            ("scheduledTime",), f"{short(at)}: cause Manual runs now; leave it out, or write cause: Backfill"
        )
    if given is not None and (problem := _input_problem(given)):
        yield Refusal(reason="InvalidSpec", message=problem, path=("input",))


def _written() -> str:
    """Say what a request consists of."""
    return "a request has scheduleRef.name, cause, scheduledTime and input only"


def _of_records(spec: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], object]]:
    uid = spec.get("scheduleRef", {}).get("uid")
    if uid is not None:
        yield ("scheduleRef", "uid"), uid
    yield from (((key,), value) for key, value in spec.items() if key in _RECORD_FIELDS)


def _input_problem(given: dict[str, Any]) -> str | None:
    return depth_problem(given, field="spec.input") or size_problem(input_text(given), field="spec.input")


def name_flaw(metadata: dict[str, Any], spec: object) -> Flaw | None:
    """Return what is wrong with the name of a request, which its Job gets, too; None where it has none, or a good one."""
    if is_record(spec):
        return None
    name, generated = metadata.get("name"), metadata.get("generateName")
    wanted = (
        f"it becomes the name of a Job; write at most {_JOB_NAME_MAX} small letters, digits and '-', such as again-1"
    )
    if isinstance(name, str):
        if len(name) > _JOB_NAME_MAX or not _JOB_NAME.fullmatch(name):
            return _flaw("name", f"{short(name)}: {wanted}")
        if re.search(names.RESERVED_NAME_PATTERN, name):
            return _flaw(
                "name", f"{short(name)}: '-', 8 hex digits, '-', 9 digits end the names of records; choose another"
            )
    elif isinstance(generated, str) and generated and not _GENERATED_NAME.fullmatch(generated):
        return _flaw("generateName", f"{short(generated)}: {wanted}")
    return None


def _refusal(path: FieldPath, why: str) -> Refusal:
    return Refusal(reason="InvalidSpec", message=f"{dotted(('spec', *path))}: {why}", path=path)


def _flaw(field: str, why: str) -> Flaw:
    return Flaw(path=("metadata", field), error="invalid_spec", message=f"metadata.{field}: {why}")
