"""Schedules and definitions as people write them, for the fake API server."""

from __future__ import annotations

from support.api_kinds import Json
from workflow_schedules.api.names import API_VERSION, KIND_DEFINITION, KIND_SCHEDULE

TEMPLATE: Json = {
    "spec": {
        "backoffLimit": 0,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1.37"}]}},
    }
}


def a_template(image: str) -> Json:
    """A Job template that differs from others by its image."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]}
    return {"spec": {"backoffLimit": 0, "template": {"spec": pod}}}


def a_schedule(name: str = "s", *, namespace: str = "ns", **spec: object) -> Json:
    """An enabled schedule: every 15 minutes unless told otherwise, with an inline template unless it has a parent.

    A keyword `workflow="w"` names the parent; None leaves a field out.
    """
    fields: Json = {"enabled": True, **spec}
    if parent := fields.pop("workflow", None):
        fields["workflowRef"] = {"name": parent}
    else:
        fields.setdefault("jobTemplate", TEMPLATE)
    if "runOnceTime" not in fields:
        fields.setdefault("schedule", "*/15 * * * *")
    return {
        "apiVersion": API_VERSION,
        "kind": KIND_SCHEDULE,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def a_definition(name: str = "w", *, namespace: str = "ns", **spec: object) -> Json:
    """An enabled definition."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND_DEFINITION,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"enabled": True, "jobTemplate": TEMPLATE, **spec},
    }
