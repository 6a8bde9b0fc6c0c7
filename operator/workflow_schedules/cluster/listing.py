"""List a whole log, readable or not: by a consistent LIST, in order of the numbers. What follows from it is core's business."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workflow_schedules.api import names
from workflow_schedules.api.occurrence import FINAL_OUTCOMES, Cause, Decision
from workflow_schedules.cluster import wire
from workflow_schedules.core import essentials
from workflow_schedules.core.listed import Listed
from workflow_schedules.core.log import FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workflow_schedules.cluster.client import Client
    from workflow_schedules.core.model import Record, Schedule


# what says none of these may have admitted a run
_ADMIT_NOTHING = tuple(decision for decision in Decision if decision is not Decision.ADMITTED)


class NotOfThisLogError(ValueError):
    """The object can't be a record of this log; the message names it and says what is wrong."""


async def list_log(client: Client, schedule: Schedule) -> list[Listed]:
    """List everything that has the schedule's label and a name of its log.

    Raises:
        ClusterError: it could not be read.

    Source: reliability P8.
    """
    prefix = names.record_prefix(schedule.ref.name, schedule.uid)
    pages = client.list_occurrences(
        namespace=schedule.ref.namespace,
        label_selector=f"{names.LABEL_SCHEDULE_UID}={schedule.uid}",
        field_selector=f"spec.cause={Cause.SCHEDULED}",  # requests of users may carry any label
    )
    found = [_listed(schedule, body) async for page in pages for body in page.items if _is_of(prefix, body)]
    return sorted(found, key=lambda each: each.number)


def read_record(schedule: Schedule, body: Mapping[str, Any]) -> Record:
    """Read a record of a schedule's log.

    Raises:
        NotOfThisLogError: it can't be read, is of a newer format, lacks what every record says, or says it is another's.

    Source: contract R31.
    """
    try:
        record = wire.record_of(body)
    except wire.NotARecordError as error:
        raise NotOfThisLogError(str(error)) from error
    problem = _problem(schedule, record)
    if problem is not None:
        raise NotOfThisLogError(f"record {record.ref.name} {problem}")
    return record


def _problem(schedule: Schedule, record: Record) -> str | None:
    spec = record.spec
    if spec.format > FORMAT:
        return f"has format {spec.format}, newer than this operator reads; upgrade it"
    if spec.cause is not Cause.SCHEDULED:
        return f"has the cause {spec.cause}: a request, by a name that is the log's"
    return essentials.problem(spec) or _contradiction(schedule, record)


def _contradiction(schedule: Schedule, record: Record) -> str | None:
    spec = record.spec
    if spec.schedule_ref.uid != schedule.uid:
        return "belongs to another schedule"
    if record.ref.name != names.record_name(schedule.ref.name, schedule.uid, record.number):
        return f"says it is number {record.number}"
    if spec.decision is Decision.ADMITTED and record.number not in spec.open:
        return "admits a run that it does not call open"
    return None


def _is_of(prefix: str, body: Mapping[str, Any]) -> bool:
    name = str(body["metadata"]["name"])
    return name.startswith(prefix) and name[len(prefix) :].isdecimal()


def _listed(schedule: Schedule, body: Mapping[str, Any]) -> Listed:
    metadata, raw, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    record, problem = None, ""
    try:
        record = read_record(schedule, body)
    except NotOfThisLogError as error:
        problem = str(error)
    previous = raw.get("previousUID")
    is_admission = raw.get("decision") not in _ADMIT_NOTHING
    return Listed(
        ref=wire.ref_of(body),
        number=int(metadata["name"][-9:]),
        uid=metadata["uid"],
        resource_version=str(metadata.get("resourceVersion", "")),
        created_at=wire.created_at(body),
        previous_uid=str(previous) if previous else None,
        is_admission=is_admission,
        is_open=is_admission and status.get("outcome") not in FINAL_OUTCOMES,
        record=record,
        problem=problem,
    )
