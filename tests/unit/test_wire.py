"""What is read of a Job, whatever its controller has written so far."""

from __future__ import annotations

from typing import Any

import pytest

from support.builders import at
from workflow_schedules.cluster.wire import job_of
from workflow_schedules.core.model import JobPhase

STARTED = "2026-01-01T10:00:01Z"
SUSPENDED = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-01-01T10:05:00Z"}
RESUMED = {**SUSPENDED, "status": "False"}


def a_body(*, suspend: bool = False, deleted: bool = False, **status: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    metadata = {"name": "j", "namespace": "team", "uid": "u", "creationTimestamp": "2026-01-01T10:00:00Z"}
    if deleted:
        metadata["deletionTimestamp"] = STARTED
    return {"metadata": metadata, "spec": {"suspend": suspend}, "status": status}


PHASES = [
    ("R25 nothing yet", a_body(), JobPhase.WAITING),
    ("R25 begun", a_body(startTime=STARTED), JobPhase.ACTIVE),
    ("R25 suspended, its pods may still be there", a_body(suspend=True, startTime=STARTED), JobPhase.SUSPENDED),
    ("R25 suspended", a_body(suspend=True, conditions=[SUSPENDED]), JobPhase.SUSPENDED),
    ("R25 resumed, and its controller has not seen it", a_body(conditions=[SUSPENDED]), JobPhase.SUSPENDED),
    ("R25 resumed", a_body(startTime=STARTED, conditions=[RESUMED]), JobPhase.ACTIVE),
    ("R25 ended", a_body(conditions=[RESUMED, {"type": "Complete", "status": "True"}]), JobPhase.COMPLETED),
    (
        "R25 not ended after all",
        a_body(startTime=STARTED, conditions=[{"type": "Failed", "status": "False"}]),
        JobPhase.ACTIVE,
    ),
]
PODS = [
    ("none", a_body(active=1, ready=0), False),
    ("a ready one", a_body(active=1, ready=1), True),
    ("one that succeeded", a_body(succeeded=1), True),
    ("one that failed", a_body(failed=1), True),
    ("one that is not counted yet", a_body(uncountedTerminatedPods={"failed": ["p"]}), True),
    ("nothing uncounted", a_body(uncountedTerminatedPods={}), False),
]


@pytest.mark.parametrize(("body", "want"), [row[1:] for row in PHASES], ids=[row[0] for row in PHASES])
def test_phase(body: dict[str, Any], want: JobPhase) -> None:
    assert job_of(body).phase is want


@pytest.mark.parametrize(("body", "want"), [row[1:] for row in PODS], ids=[row[0] for row in PODS])
def test_was_ready(body: dict[str, Any], want: bool) -> None:
    """startTimeoutSeconds."""
    assert job_of(body).was_ready is want


def test_suspension_and_deletion() -> None:
    assert job_of(a_body(conditions=[RESUMED])).suspension_changed_at == at("10:05")
    assert job_of(a_body()).suspension_changed_at is None
    assert job_of(a_body(deleted=True)).is_deleting
    assert not job_of(a_body()).is_deleting
