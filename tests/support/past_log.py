"""The log of a schedule as an operator would have left it days ago, on a real cluster whose clock can't be set back.

`creationTimestamp` is the API server's, and nobody but the holder of the Lease writes records: so this holds the Lease, lets
the operator's own core decide what it would have decided then, and writes that as the operator. No operator may run meanwhile.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from support.cluster_stories import Json
from support.control_plane import OPERATOR_USER
from workflow_schedules.api import names
from workflow_schedules.cluster.wire import schedule_of
from workflow_schedules.core.decide import decide
from workflow_schedules.core.job import labels
from workflow_schedules.core.model import Schedule, Snapshot, Writer
from workflow_schedules.core.plan import Append

Kubectl = Callable[..., Any]

LEASE, SYSTEM = "workflow-schedules", "workflow-schedules-system"
AS_OPERATOR = (f"--as={OPERATOR_USER}", "--as-group=system:masters")
HOLDER = "operator-of-the-past"


@contextmanager
def held_lease(kubectl: Kubectl) -> Iterator[Writer]:
    """Hold the Lease under a new epoch; it is free again at the end, for the operator that starts then."""
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE, "namespace": SYSTEM}}
    kubectl("create", "-f", "-", input=json.dumps({**body, "spec": {"leaseTransitions": 0}}), check=False)
    found = json.loads(kubectl("get", "lease", LEASE, "-n", SYSTEM, "-o", "json").stdout)["spec"]
    writer = Writer(epoch=found.get("leaseTransitions", 0) + 1, identity=HOLDER, lease=f"{SYSTEM}/{LEASE}")
    _patch_lease(kubectl, leaseTransitions=writer.epoch, holderIdentity=HOLDER, leaseDurationSeconds=15)
    try:
        yield writer
    finally:
        _patch_lease(kubectl, holderIdentity=None)


def _patch_lease(kubectl: Kubectl, **spec: object) -> None:
    kubectl("patch", "lease", LEASE, "-n", SYSTEM, "--type=merge", "-p", json.dumps({"spec": spec}))


def begin_log(kubectl: Kubectl, body: Json, writer: Writer, *, at: datetime) -> None:
    """Write the Baseline of a schedule that exists, as if it had been created and first seen at that time."""
    schedule = replace(schedule_of(body), created_at=at)
    step = decide(_first_look(schedule, writer), now=at).step
    assert isinstance(step, Append), f"{schedule.ref}: an operator would have begun with {step}"
    write_record(kubectl, record_body(schedule, step.spec.wire()))


def record_body(schedule: Schedule, spec: Json) -> Json:
    """The record with this spec, named and labelled as the operator does."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND_OCCURRENCE,
        "metadata": {
            "name": names.record_name(schedule.ref.name, schedule.uid, spec["sequence"]),
            "namespace": schedule.ref.namespace,
            "labels": labels(schedule.ref.name, schedule.uid, spec["cause"], None),
        },
        "spec": spec,
    }


def write_record(kubectl: Kubectl, body: Json) -> None:
    """Write a record as the operator; the fence may need a moment to see a Lease that was just taken."""
    until = time.monotonic() + 30
    while (done := kubectl("create", *AS_OPERATOR, "-f", "-", input=json.dumps(body), check=False)).returncode:
        assert "fence: " in done.stderr, done.stderr
        assert time.monotonic() < until, f"the fence never saw the Lease: {done.stderr}"


def _first_look(schedule: Schedule, writer: Writer) -> Snapshot:
    return Snapshot(
        uid=schedule.uid,
        schedule=schedule,
        definition=None,
        is_log_read=True,
        head=None,
        runs=(),
        held=(),
        contradiction=None,
        writer=writer,
        since_acquired=timedelta(hours=1),
    )
