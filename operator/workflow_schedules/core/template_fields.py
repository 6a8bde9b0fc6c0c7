"""Fields of a Job template that no Job gets: what the operator overrules, and what nobody knows.

Whether a Job can be rendered at all is the business of job. Nothing here stops a run: a field that is dropped may be
harmless, and was dropped before somebody noticed; but it may also be a limit whose name is misspelt, so it is told.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from workflow_schedules.api import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from workflow_schedules.core.model import Template

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateVerdict:
    """What the last dry run of a template's Job said.

    Attributes:
        refusal: why the API server would refuse the Job; None where it would not.
        unknown_fields: paths in the template that nobody knows.
    """

    refusal: str | None = None
    unknown_fields: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Tell whether there is nothing to say."""
        return self.refusal is None and not self.unknown_fields

    def is_like(self, other: TemplateVerdict) -> bool:
        """Tell whether both say the same, if a refusal in other words: some name a time, or the request."""
        is_same_refusal = (self.refusal is None) is (other.refusal is None)
        return is_same_refusal and self.unknown_fields == other.unknown_fields


ROOT = "spec.jobTemplate"
_USED = frozenset({"metadata", "spec"})
_OF_A_JOB = frozenset({"apiVersion", "kind", "status"})  # of a Job that was pasted whole: they change nothing
_METADATA_USED = frozenset({"labels", "annotations"})
_METADATA = frozenset(  # ObjectMeta, the same in every version
    {
        "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields",
    }
)  # fmt: skip
_LABELS = frozenset({names.LABEL_SCHEDULE, names.LABEL_SCHEDULE_UID, names.LABEL_CAUSE, names.LABEL_SCHEDULED_AT})
_ANNOTATIONS = frozenset(
    {names.ANNOTATION_EPOCH, names.ANNOTATION_WRITER, names.ANNOTATION_LEASE, names.CRONJOB_TIMESTAMP_ANNOTATION}
)
_OURS: tuple[tuple[tuple[str, ...], frozenset[str]], ...] = (
    (("metadata", "labels"), _LABELS),
    (("metadata", "annotations"), _ANNOTATIONS),
    (("spec", "template", "metadata", "labels"), _LABELS),
    (("spec", "template", "metadata", "annotations"), frozenset({names.ANNOTATION_INPUT})),
)
_UNKNOWN = re.compile(r'unknown field "(.+)"', re.DOTALL)
_VARIABLE = re.compile(r"(spec\.template\.spec\.(initContainers|containers)\[(\d+)\]\.env)\[(\d+)\](.*)", re.DOTALL)
_KEPT = 10
_LONGEST = 200


@lru_cache(maxsize=4096)
def overruled(template: Template) -> tuple[str, ...]:
    """Return a warning for each field of a template that can be rendered and that the operator does not use as it stands.

    Source: contract R22, R36; as in CronJob, which says nothing of them.
    """
    return tuple(_overruled(json.loads(template.body)))


def _overruled(body: Manifest) -> Iterator[str]:
    for key in sorted(_given(body) & _OF_A_JOB):
        yield f"{ROOT}.{key}: is left out; a template has metadata and spec only"
    for key in sorted(_given(body.get("metadata")) & _METADATA):
        yield f"{ROOT}.metadata.{key}: is left out; only labels and annotations of it reach the Job"
    for path, ours in _OURS:
        for key in sorted(_given(found_at(body, path)) & ours):
            yield f"{'.'.join((ROOT, *path))}: {key} is overruled, its value is the operator's to set; leave it out"
    ttl = found_at(body, ("spec", "ttlSecondsAfterFinished"))
    if ttl is not None and not is_ttl(ttl):
        shown = json.dumps(ttl)[:_LONGEST]
        yield f"{ROOT}.spec.ttlSecondsAfterFinished: {shown} is not followed; write a whole number of seconds from 0 on"


def is_ttl(value: object) -> bool:
    """Tell whether it is a time that the operator keeps a finished Job for.

    Source: contract R22.
    """
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def unknown_fields(template: Template, manifest: Manifest, warnings: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of fields that nobody knows, the first ten of them, and whether there are more.

    Args:
        template: that was rendered.
        manifest: its Job, in which variables come before the template's own.
        warnings: the API server's, of a dry run of that Job.

    Source: contract R24, R36.
    """
    body = json.loads(template.body)
    found = [f"{ROOT}.{key}" for key in sorted(_given(body) - _USED - _OF_A_JOB)]
    found += [f"{ROOT}.metadata.{key}" for key in sorted(_given(body.get("metadata")) - _METADATA_USED - _METADATA)]
    found += [
        f"{ROOT}.{_in_template(match[1], body, manifest)}" for match in map(_UNKNOWN.fullmatch, warnings) if match
    ]
    shown = [path if len(path) <= _LONGEST else f"{path[:_LONGEST]}…" for path in found[:_KEPT]]
    return (*shown, *(["and more"] if len(found) > _KEPT else []))


def unknown_problem(fields: tuple[str, ...], definition: str | None) -> str:
    """Return what is to be said about fields that nobody knows.

    Args:
        fields: their paths, at least one.
        definition: name of the definition whose template it is; None where that is inline.
    """
    where = f"WorkflowDefinition {definition}: " if definition is not None else ""
    return (
        f"{where}{', '.join(fields)}: the API server knows no such field of a Job, so runs start without it; "
        "correct its name, or leave it out"
    )


def _in_template(path: str, body: Manifest, manifest: Manifest) -> str:
    """Return the path in the template of what stands at a path in its Job."""
    match = _VARIABLE.fullmatch(path)
    if match is None:
        return path
    env, kind, container, number, rest = match.groups()
    own, rendered = (_environment(each, kind, int(container)) for each in (body, manifest))
    return f"{env}[{int(number) - (len(rendered) - len(own))}]{rest}"


def _environment(job: Manifest, kind: str, number: int) -> list[object]:
    containers = found_at(job, ("spec", "template", "spec", kind))
    if not isinstance(containers, list) or number >= len(containers):
        return []
    return list(containers[number].get("env") or [])


def _given(value: object) -> set[str]:
    """Return the fields of an object that are given: null is what is left out."""
    return {key for key, each in value.items() if each is not None} if isinstance(value, dict) else set()


def found_at(body: object, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON value
    """Return what stands at a path of objects; None where one on the way is missing, or is none."""
    for key in path:
        body = body.get(key) if isinstance(body, dict) else None
    return body
