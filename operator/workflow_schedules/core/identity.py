"""What counts as the same: the hash of a spec's relevant fields, and the hash that names a pinned template."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from workflow_schedules.core.model import Template

if TYPE_CHECKING:
    from workflow_schedules.api.schedule import WorkflowScheduleSpec

_IRRELEVANT = frozenset(  # R10: switches, and what concerns only what is kept; `access` joins with its work
    {
        "enabled",
        "pause",
        "deletion_policy",
        "successful_jobs_history_limit",
        "failed_jobs_history_limit",
        "occurrence_history_limit",
    }
)


def spec_hash(spec: WorkflowScheduleSpec, template: Template | None) -> str:
    """Hash the relevant fields that differ from their defaults.

    A default that a later version adds, or a field set to its default, changes nothing: that is no edit.

    Args:
        spec: without its template.
        template: the inline template, if any.

    Source: contract R10.
    """
    fields = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=set(_IRRELEVANT))
    if template is not None:
        fields["jobTemplate"] = template.hash
    return _hash(fields)


def pin(job_template: object) -> Template:
    """Return a Job template as canonical JSON with its hash.

    Source: contract R22.
    """
    body = canonical(job_template).encode()
    return Template(hash=hashlib.sha256(body).hexdigest()[:32], body=body)


def canonical(value: object) -> str:
    """Return a value as canonical JSON text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _hash(value: object) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:32]
