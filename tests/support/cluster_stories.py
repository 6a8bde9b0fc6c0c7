"""What the tests on a real cluster share: manifests, waiting for a condition, reading the log."""

from __future__ import annotations

import json
import time
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")
Json = dict[str, Any]

SCHEDULE: Json = {
    "apiVersion": "workflow-schedules.dev/v1alpha1",
    "kind": "WorkflowSchedule",
    "spec": {
        "enabled": True,
        "jobTemplate": {
            "spec": {
                "backoffLimit": 0,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "main", "image": "busybox:1.37", "command": ["true"]}],
                    }
                },
            }
        },
    },
}


@contextmanager
def own_namespace(kubectl: Callable[..., Any], prefix: str) -> Iterator[str]:
    """A new namespace in which Pods can be made; it is deleted afterwards, which nobody waits for."""
    name = f"{prefix}-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    # Admission refuses Pods until their ServiceAccount is there.
    kubectl("wait", "--for=create", "--timeout=120s", "serviceaccount/default", "-n", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false", check=False)


def a_manifest(name: str, **spec: object) -> Json:
    """An enabled schedule with an inline template, unless `spec` names a definition."""
    base = {key: value for key, value in SCHEDULE["spec"].items() if key != "jobTemplate" or "workflowRef" not in spec}
    return {**SCHEDULE, "metadata": {"name": name}, "spec": {**base, **spec}}


def manifests(*bodies: Json) -> str:
    """Several objects as one text for `kubectl apply -f -`."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(bodies)})


def next_minute(*, ahead_seconds: float) -> datetime:
    """The first whole minute at least that far ahead."""
    at = datetime.now(UTC) + timedelta(seconds=ahead_seconds + 60)
    return at.replace(second=0, microsecond=0)


def until(read: Callable[[], T], is_reached: Callable[[T], bool], *, seconds: float) -> T:
    """Read until the condition holds; fail with what was read last."""
    end = time.monotonic() + seconds
    while True:
        found = read()
        if is_reached(found):
            return found
        assert time.monotonic() < end, f"not reached in {seconds:.0f} s: {json.dumps(found, default=str)[:4000]}"
        time.sleep(0.25)


def occurrences(kubectl: Callable[..., Any], namespace: str) -> list[Json]:
    """All records of a namespace, in the order of their names; each has a `status`."""
    found = json.loads(kubectl("get", "occ", "-n", namespace, "-o", "json").stdout)["items"]
    return [{"status": {}, **item} for item in found]
