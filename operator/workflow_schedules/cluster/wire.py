"""From the API server's JSON to the values of the core, whatever others wrote into the objects.

Nothing that is read here may raise for one bad object: what can't be understood becomes a `problem` of that object.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ValidationError

from workflow_schedules.api import names
from workflow_schedules.api.definition import OnDisable, WorkflowDefinitionSpec, WorkflowDefinitionStatus
from workflow_schedules.api.occurrence import Cause, ScheduleOccurrenceSpec, ScheduleOccurrenceStatus
from workflow_schedules.api.schedule import WorkflowScheduleSpec, WorkflowScheduleStatus
from workflow_schedules.core.depth import depth_problem
from workflow_schedules.core.identity import canonical, pin, spec_hash
from workflow_schedules.core.model import Definition, Job, JobPhase, ObjectRef, Record, Schedule, Template
from workflow_schedules.core.requests import resolved_spec

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]

_TTL_DIGITS = 10  # an int32 in the template
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class NotARecordError(ValueError):
    """The object can't be read as a record of the log; the message names it and says what is wrong."""


def ref_of(body: Mapping[str, Any]) -> ObjectRef:
    """Return namespace and name of an object."""
    metadata = body["metadata"]
    return ObjectRef(namespace=metadata.get("namespace", ""), name=metadata["name"])


def created_at(body: Mapping[str, Any]) -> datetime:
    """Return when an object was created; long ago where it doesn't say."""
    return _time(body["metadata"].get("creationTimestamp")) or _BEGINNING


def version_of(body: Mapping[str, Any]) -> int:
    """Return the resourceVersion as the number it is (comparable within one kind since Kubernetes 1.35)."""
    return number_of(str(body["metadata"].get("resourceVersion", "0")))


def number_of(resource_version: str) -> int:
    """Return a resourceVersion as the number it is, 0 where it is none."""
    return int(resource_version) if resource_version.isdecimal() else 0


def schedule_of(body: Mapping[str, Any]) -> Schedule:
    """Read a WorkflowSchedule."""
    metadata = body["metadata"]
    raw = dict(body.get("spec") or {})
    too_deep = _pop_too_deep(raw, "jobTemplate", "input")
    template = _template(raw.pop("jobTemplate", None))
    spec, problem = _schedule_spec(raw) if too_deep is None else (None, too_deep)
    return Schedule(
        ref=ref_of(body),
        uid=metadata["uid"],
        generation=int(metadata.get("generation", 0)),
        resource_version=str(metadata.get("resourceVersion", "")),
        created_at=_time(metadata.get("creationTimestamp")) or _BEGINNING,
        is_deleting="deletionTimestamp" in metadata,
        spec=spec,
        spec_hash=spec_hash(spec, template) if spec is not None else "",
        template=template,
        problem=problem,
        status=_schedule_status(body.get("status")),
        unblock=(metadata.get("annotations") or {}).get(names.ANNOTATION_UNBLOCK) or None,
    )


def definition_of(body: Mapping[str, Any]) -> Definition:
    """Read a WorkflowDefinition."""
    metadata = body["metadata"]
    raw = dict(body.get("spec") or {})
    problem = _pop_too_deep(raw, "jobTemplate", "inputSchema")
    template = _template(raw.get("jobTemplate"))
    spec = None
    try:
        spec = WorkflowDefinitionSpec.model_validate(raw) if problem is None else None
    except ValidationError as error:
        problem = _problem(error)
    return Definition(
        ref=ref_of(body),
        uid=metadata["uid"],
        generation=int(metadata.get("generation", 0)),
        resource_version=str(metadata.get("resourceVersion", "")),
        is_enabled=spec is not None and spec.enabled,
        template=template if problem is None else None,
        problem=problem,
        status=_definition_status(body.get("status")),
        input_schema=canonical(spec.input_schema) if spec and spec.input_schema is not None else None,
        max_active_runs=spec.max_active_runs if spec else None,
        on_disable=spec.on_disable if spec else OnDisable.DISABLE_SCHEDULES,
    )


def record_of(body: Mapping[str, Any]) -> Record:
    """Read a ScheduleOccurrence.

    Raises:
        NotARecordError: it can't be read as one.
    """
    metadata = body["metadata"]
    try:
        spec = ScheduleOccurrenceSpec.model_validate(body.get("spec") or {})
        status = ScheduleOccurrenceStatus.model_validate(body.get("status") or {})
    except ValidationError as error:
        raise NotARecordError(f"record {metadata.get('name')} can't be read: {_problem(error)}") from error
    return Record(
        ref=ref_of(body),
        uid=metadata["uid"],
        resource_version=str(metadata.get("resourceVersion", "")),
        created_at=_time(metadata.get("creationTimestamp")) or _BEGINNING,
        spec=spec if spec.cause is Cause.SCHEDULED else resolved_spec(spec, status),
        status=status,
        cancel_request=(metadata.get("annotations") or {}).get(names.ANNOTATION_CANCEL),
        owner_uids=frozenset(str(owner.get("uid", "")) for owner in metadata.get("ownerReferences") or ()),
    )


def job_of(body: Mapping[str, Any], *, is_gone: bool = False) -> Job:
    """Read what matters of a Job."""
    metadata, status = body["metadata"], body.get("status") or {}
    finished = _condition(status, {"Complete", "Failed"}, is_true=True)
    suspension = _condition(status, {"Suspended"})
    started_at = _time(status.get("startTime"))
    return Job(
        ref=ref_of(body),
        uid=metadata["uid"],
        owner_uid=_controller_uid(metadata),
        schedule_uid=(metadata.get("labels") or {}).get(names.LABEL_SCHEDULE_UID, ""),
        phase=_phase(body, status, finished, suspension),
        created_at=_time(metadata.get("creationTimestamp")) or _BEGINNING,
        started_at=started_at,
        finished_at=_time(status.get("completionTime")) or _time(finished.get("lastTransitionTime")),
        reason=str(finished.get("reason") or ""),
        message=str(finished.get("message") or ""),
        was_started=started_at is not None,
        was_ready=_had_pod(status),
        suspension_changed_at=_time(suspension.get("lastTransitionTime")),
        is_deleting="deletionTimestamp" in metadata,
        deleting_since=_time(metadata.get("deletionTimestamp")),
        is_gone=is_gone,
        ttl=_ttl(metadata),
    )


def _ttl(metadata: Mapping[str, Any]) -> timedelta | None:
    text = (metadata.get("annotations") or {}).get(names.ANNOTATION_TTL, "")
    return timedelta(seconds=int(text)) if text.isdecimal() and len(text) <= _TTL_DIGITS else None


def _phase(
    body: Mapping[str, Any], status: Mapping[str, Any], finished: Mapping[str, Any], suspension: Mapping[str, Any]
) -> JobPhase:
    match finished.get("type"):
        case "Complete":
            return JobPhase.COMPLETED
        case "Failed":
            return JobPhase.FAILED
    # resumed, it stays suspended until its controller has seen that, which turns the condition and starts the clock
    if (body.get("spec") or {}).get("suspend") or suspension.get("status") == "True":
        return JobPhase.SUSPENDED
    return JobPhase.ACTIVE if status.get("startTime") else JobPhase.WAITING


def _condition(status: Mapping[str, Any], kinds: set[str], *, is_true: bool = False) -> Mapping[str, Any]:
    for condition in status.get("conditions") or ():
        if condition.get("type") in kinds and (not is_true or condition.get("status") == "True"):
            return dict(condition)
    return {}


def _had_pod(status: Mapping[str, Any]) -> bool:
    """Tell whether a Pod is ready or has finished; those that the controller has yet to count included."""
    if status.get("ready") or status.get("succeeded") or status.get("failed"):
        return True
    uncounted = status.get("uncountedTerminatedPods") or {}
    return bool(uncounted.get("succeeded") or uncounted.get("failed"))


def _controller_uid(metadata: Mapping[str, Any]) -> str:
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("uid", ""))
    return ""


def _pop_too_deep(raw: Json, *keys: str) -> str | None:
    """Take out what is nested too deeply to be worked with; return the first problem that this is, or None."""
    found = {key: problem for key in keys if (problem := depth_problem(raw.get(key), field=f"spec.{key}"))}
    for key in found:
        del raw[key]
    return next(iter(found.values()), None)


def _template(job_template: object) -> Template | None:
    return None if job_template is None else pin(job_template)


def _schedule_spec(raw: Json) -> tuple[WorkflowScheduleSpec | None, str | None]:
    try:
        return WorkflowScheduleSpec.model_validate(raw), None
    except ValidationError as error:
        return None, _problem(error)


def _schedule_status(raw: object) -> WorkflowScheduleStatus | None:
    if not raw:
        return None
    try:
        return WorkflowScheduleStatus.model_validate(raw)
    except ValidationError:
        return None  # rebuilt from the log, like one that was never written


def _definition_status(raw: object) -> WorkflowDefinitionStatus | None:
    try:
        return WorkflowDefinitionStatus.model_validate(raw) if raw else None
    except ValidationError:
        return None


def _problem(error: ValidationError) -> str:
    found = []
    for entry in error.errors(include_url=False)[:5]:
        path = ".".join(["spec", *(str(part) for part in entry["loc"])])
        found.append(f"{path}: {_shown(entry.get('input'))}: {entry['msg']}")
    return "; ".join(found)


def _shown(value: object) -> str:
    try:
        text = orjson.dumps(value, default=str).decode()
    except orjson.JSONEncodeError:  # too deep for orjson
        return "(nested too deeply to be shown)"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _time(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
