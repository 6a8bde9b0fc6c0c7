"""From an admitted record and its pinned template to the Job manifest. Nothing about when to make it may live here."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeGuard

from workflow_schedules.api import names
from workflow_schedules.api.common import format_utc
from workflow_schedules.core.template_fields import found_at, is_ttl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, tzinfo

    from workflow_schedules.core.model import Record, Template, Writer

Manifest = dict[str, Any]

_POD = ("spec", "template")
_OBJECTS = (
    (), ("metadata",), ("metadata", "labels"), ("metadata", "annotations"), ("spec",), _POD, (*_POD, "metadata"),
    (*_POD, "metadata", "labels"), (*_POD, "metadata", "annotations"), (*_POD, "spec"),
)  # fmt: skip
_POD_INPUT_PATH = f"metadata.annotations['{names.ANNOTATION_INPUT}']"


def job_manifest(
    record: Record, template: Template, *, zone: tzinfo, last_successful_at: datetime | None, writer: Writer
) -> Manifest:
    """Render the Job of an admitted record.

    Args:
        record: the admission; name, owner and input come from it.
        template: the template that the record pins.
        zone: for CronJob's annotation, which is local time there too.
        last_successful_at: given to the run as WORKFLOW_LAST_SUCCESSFUL_TIME.
        writer: stamped on the Job for the fence.

    Source: contract R22, R23, `activeDeadlineSeconds`.
    """
    job_template: Manifest = json.loads(template.body)
    metadata = job_template.get("metadata") or {}
    spec: Manifest = job_template.get("spec") or {}
    ttl = spec.pop("ttlSecondsAfterFinished", None)  # the operator removes the Job, after its outcome is on record
    _limit(spec, record.spec.active_deadline_seconds)
    ours = record_labels(record)
    _prepare_pod(spec, record, ours, last_successful_at)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": record.ref.name,
            "namespace": record.ref.namespace,
            "labels": {**(metadata.get("labels") or {}), **ours},
            "annotations": {**(metadata.get("annotations") or {}), **_annotations(record, zone, writer, ttl)},
            "ownerReferences": [
                {
                    "apiVersion": names.API_VERSION,
                    "kind": names.KIND_OCCURRENCE,
                    "name": record.ref.name,
                    "uid": record.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": spec,
    }


def _limit(spec: Manifest, seconds: int | None) -> None:
    """Give the Job the smaller budget: the template's or that of the record; what is no number the API server refuses."""
    own = spec.get("activeDeadlineSeconds")
    if seconds is not None and (own is None or (isinstance(own, int) and seconds < own)):
        spec["activeDeadlineSeconds"] = seconds


@lru_cache(maxsize=4096)
def deadline_seconds(template: Template, budget: int | None) -> int | None:
    """Return how long the Job of a template may run, by the `activeDeadlineSeconds` that is rendered into it.

    Args:
        template: of the run.
        budget: of the record.

    Source: contract `activeDeadlineSeconds`, R25 (`Exhausted`).
    """
    spec = _job_spec(template)
    _limit(spec, budget)
    found = spec.get("activeDeadlineSeconds")
    return found if isinstance(found, int) and found >= 0 else None


@lru_cache(maxsize=4096)
def is_born_suspended(template: Template) -> bool:
    """Tell whether the Jobs of a template wait until something resumes them.

    Source: contract R25 (Kueue).
    """
    return _job_spec(template).get("suspend") is True


def _job_spec(template: Template) -> Manifest:
    spec = found_at(json.loads(template.body), ("spec",))
    return spec if isinstance(spec, dict) else {}


@lru_cache(maxsize=4096)
def template_problem(template: Template) -> str | None:
    """Return what keeps a Job from being rendered from a template, or None; the API server judges everything else.

    Source: contract R24, R36.
    """
    body = json.loads(template.body)
    for path in _OBJECTS:
        if not isinstance(found_at(body, path), dict | None):
            return f"spec.{'.'.join(('jobTemplate', *path))}: write an object, as in CronJob"
    for key in ("selector", "manualSelector"):  # as in CronJob: a Job that selects the pods of others would adopt them
        if found_at(body, ("spec", key)):
            return f"spec.jobTemplate.spec.{key}: is made by the Job controller; leave it out, as in CronJob"
    for key in ("initContainers", "containers"):
        if not _are_containers(found_at(body, (*_POD, "spec", key)) or []):
            return f"spec.jobTemplate.spec.template.spec.{key}: write a list of containers, each with an env of named variables"
    return None


def _are_containers(value: object) -> bool:
    return _is_list_of_objects(value) and all(_are_variables(one.get("env") or []) for one in value)


def _are_variables(value: object) -> bool:
    return _is_list_of_objects(value) and all(isinstance(one.get("name"), str) for one in value)


def _is_list_of_objects(value: object) -> TypeGuard[list[Manifest]]:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def record_labels(record: Record) -> dict[str, str]:
    """Return the labels that a record, its Job and its pods share; the schedule's own labels are never copied.

    Source: contract R22.
    """
    spec = record.spec
    return labels(spec.schedule_ref.name, spec.schedule_ref.uid or "", str(spec.cause), spec.scheduled_time)


def labels(schedule_name: str, schedule_uid: str, cause: str, scheduled_at: datetime | None) -> dict[str, str]:
    """Return our labels for one occurrence; a record without an instant has no `scheduled-at`."""
    found = {
        names.LABEL_SCHEDULE: names.label_value(schedule_name),
        names.LABEL_SCHEDULE_UID: schedule_uid,
        names.LABEL_CAUSE: cause,
    }
    if scheduled_at is not None:
        found[names.LABEL_SCHEDULED_AT] = names.compact_utc(scheduled_at)
    return found


def _annotations(record: Record, zone: tzinfo, writer: Writer, ttl: object) -> dict[str, str]:
    found = {
        names.ANNOTATION_EPOCH: str(writer.epoch),
        names.ANNOTATION_WRITER: writer.identity,
        names.ANNOTATION_LEASE: writer.lease,
    }
    if is_ttl(ttl):
        found[names.ANNOTATION_TTL] = str(ttl)
    if record.spec.scheduled_time is not None:
        found[names.CRONJOB_TIMESTAMP_ANNOTATION] = record.spec.scheduled_time.astimezone(zone).isoformat()
    return found


def _prepare_pod(spec: Manifest, record: Record, ours: dict[str, str], last_successful_at: datetime | None) -> None:
    pod = spec["template"] = spec.get("template") or {}
    metadata = pod["metadata"] = pod.get("metadata") or {}
    metadata["labels"] = {**(metadata.get("labels") or {}), **ours}
    metadata["annotations"] = {
        **(metadata.get("annotations") or {}),
        names.ANNOTATION_INPUT: record.spec.input_json or "{}",
    }
    pod_spec = pod["spec"] = pod.get("spec") or {}
    variables = _environment(record, last_successful_at)
    for container in [*(pod_spec.get("initContainers") or []), *(pod_spec.get("containers") or [])]:
        own = container.get("env") or []
        taken = {variable.get("name") for variable in own}
        container["env"] = [variable for variable in variables if variable["name"] not in taken] + own


def _environment(record: Record, last_successful_at: datetime | None) -> list[Manifest]:
    """Return the variables every container gets; the input comes by reference, so that nothing in it is expanded."""
    spec = record.spec
    fixed = {
        "WORKFLOW_SCHEDULED_TIME": format_utc(spec.scheduled_time) if spec.scheduled_time else "",
        "WORKFLOW_SCHEDULE": spec.schedule_ref.name,
        "WORKFLOW_OCCURRENCE": record.ref.name,
        "WORKFLOW_CAUSE": str(spec.cause),
        "WORKFLOW_LAST_SUCCESSFUL_TIME": format_utc(last_successful_at) if last_successful_at else "",
    }
    by_reference = {"name": "WORKFLOW_INPUT", "valueFrom": {"fieldRef": {"fieldPath": _POD_INPUT_PATH}}}
    scalars = input_variables(json.loads(spec.input_json)) if spec.input_json else {}
    return [
        by_reference,
        *({"name": name, "value": value} for name, value in fixed.items()),
        *({"name": name, "value": value} for name, value in scalars.items()),
    ]


def input_variables(given: Manifest) -> dict[str, str]:
    """Return the scalar top-level input keys as ``INPUT_<UPPER_SNAKE>``; impossible and colliding names are left out.

    Source: contract R23.
    """
    variables: dict[str, str] = {}
    for name, keys in _keys_by_variable(given).items():
        text = _plain_text(given[keys[0]])
        if name is not None and len(keys) == 1 and "\0" not in text:
            variables[name] = text.replace("$", "$$")  # kubelet expands $(NAME); a doubled dollar is a plain one
    return variables


def left_out(given: Manifest) -> tuple[str, ...]:
    """Return a warning for each scalar top-level input key that gets no variable of its own.

    Source: contract R23.
    """
    return tuple(_left_out(given))


def _left_out(given: Manifest) -> Iterator[str]:
    for name, keys in _keys_by_variable(given).items():
        listed = ", ".join(json.dumps(key, ensure_ascii=False) for key in keys)
        if name is None:
            yield f"spec.input: {listed}: no name of a variable can be made of it; read it from WORKFLOW_INPUT"
        elif len(keys) > 1:
            yield f"spec.input: {listed}: all would be {name}, so none is; read them from WORKFLOW_INPUT"
        elif "\0" in _plain_text(given[keys[0]]):
            yield f"spec.input: {listed}: no variable can hold U+0000; read it from WORKFLOW_INPUT"


def _keys_by_variable(given: Manifest) -> dict[str | None, list[str]]:
    """Return the scalar keys by the variable that each would be; None is for those that none can be made of."""
    found: dict[str | None, list[str]] = {}
    for key, value in given.items():
        if not isinstance(value, (dict, list)) and value is not None:
            found.setdefault(variable_name(key), []).append(key)
    return found


def _plain_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def variable_name(key: str) -> str | None:
    """Return the environment variable of an input key, or None where none can be made."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)
    snake = re.sub(r"[-. ]", "_", snake)
    return f"INPUT_{snake.upper()}" if re.fullmatch(r"[A-Za-z0-9_]+", snake) else None
