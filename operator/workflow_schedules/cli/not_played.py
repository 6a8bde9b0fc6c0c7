"""What a schedule says that the virtual world does not play: told, so that nobody takes its rows for more than they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from workflow_schedules.api.schedule import ConcurrencyPolicy
from workflow_schedules.core.acceptance import template_of
from workflow_schedules.core.job import is_born_suspended
from workflow_schedules.core.template_fields import found_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workflow_schedules.core.model import Definition, Schedule, Template

_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def not_played(schedule: Schedule, definition: Definition | None) -> Iterator[str]:
    """Yield a warning for each field that matters for what really runs and is not played.

    Source: contract R14, R22, R25, R28, `startTimeoutSeconds`.
    """
    spec = schedule.spec
    if spec is not None and spec.start_timeout_seconds is not None:
        yield "spec.startTimeoutSeconds: is not played: here the Pod of every run is ready at once"
    if spec is not None and spec.concurrency_policy is ConcurrencyPolicy.REPLACE:
        yield "spec.concurrencyPolicy Replace: a run that is replaced is gone at once here; a real one when its Pods are"
    if definition is not None and definition.max_active_runs is not None:
        yield (
            f"WorkflowDefinition {definition.ref.name}, spec.maxActiveRuns: only the runs of this schedule count here, "
            "not those of others with the same parent"
        )
    template = template_of(schedule, definition)
    if template is not None:
        yield from _of_template(template)


def _of_template(template: Template) -> Iterator[str]:
    if is_born_suspended(template):
        yield (
            "jobTemplate.spec.suspend is true: nothing resumes its Jobs here (Kueue would), so no run starts or ends, "
            "and each keeps its slot"
        )
    body = json.loads(template.body)
    if _QUEUE_LABEL in (found_at(body, ("metadata", "labels")) or {}):
        yield f"jobTemplate.metadata.labels, {_QUEUE_LABEL}: waiting for Kueue is not played"
    if found_at(body, ("spec", "template", "spec", "activeDeadlineSeconds")) is not None:
        yield (
            "jobTemplate.spec.template.spec.activeDeadlineSeconds: the deadline of a Pod is not played, "
            "only that of the Job (spec.activeDeadlineSeconds, jobTemplate.spec.activeDeadlineSeconds)"
        )
