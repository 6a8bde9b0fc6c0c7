"""An operator that dies at the worst moments, and its successors: no run is doubled, none is lost."""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from support.cluster_stories import a_manifest, manifests, next_minute, occurrences, until
from support.control_plane import OperatorProcess
from support.herd import ahead, utc

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.control_plane import AuditTrail, ControlPlane, Request

    Kubectl = Callable[..., Any]

HERD = 50
ACQUIRED = "acquired the Lease"
SHORT_LEASE = {
    "WORKFLOW_SCHEDULES_LEASE_DURATION_SECONDS": "2",
    "WORKFLOW_SCHEDULES_RENEW_DEADLINE_SECONDS": "1.5",
    "WORKFLOW_SCHEDULES_RETRY_SECONDS": "0.3",
}


@pytest.mark.timeout(900)
def test_killed_at_ten_points_of_a_herd(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str, audit: AuditTrail, tmp_path: Path
) -> None:
    """R8, R35, I1, I3, I7: kill -9 after every ninth write of a herd of 50; each run is started once and recorded."""
    operator = OperatorProcess(control_plane, tmp_path, environment=SHORT_LEASE)
    with operator:
        operator.wait_ready()
        due = next_minute(ahead_seconds=25)  # until they are all applied
        a_herd(kubectl, namespace, f"{due.minute} {due.hour} * * *")
        sent = lambda: [  # noqa: E731
            r
            for r in audit.requests()
            if r.namespace == namespace and r.verb == "create" and r.at >= due and not r.is_dry_run
        ]
        for kill in range(10):
            wait_for_writes(sent, 2 + 9 * kill)
            operator.kill()
            operator.start()
        records = until(
            lambda: [occ for occ in occurrences(kubectl, namespace) if occ["spec"]["decision"] == "Admitted"],
            lambda found: len([occ for occ in found if occ["status"].get("outcome") == "Completed"]) >= HERD,
            seconds=300,
        )
    assert Counter(occ["spec"]["scheduleRef"]["name"] for occ in records) == {f"herd-{n:02d}": 1 for n in range(HERD)}
    assert {occ["spec"]["scheduledTime"] for occ in records} == {f"{due:%Y-%m-%dT%H:%M:%SZ}"}
    # a create whose client died in the middle of it may be logged with any code, so existing Jobs are counted, too
    assert max(Counter(r.name for r in sent() if r.resource == "jobs" and r.code == 201).values()) == 1
    jobs = json.loads(kubectl("get", "jobs", "-n", namespace, "-o", "json").stdout)["items"]
    assert {job["metadata"]["uid"] for job in jobs} == {occ["status"]["jobUID"] for occ in records}
    assert len(jobs) == HERD


@pytest.mark.timeout(600)
def test_a_standby_takes_over_after_a_crash_and_at_once_after_a_clean_stop(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    """R33, R34: each takeover raises the epoch; a clean stop hands over within a second or two."""
    first = OperatorProcess(control_plane, tmp_path, name="first")
    second = OperatorProcess(control_plane, tmp_path, name="second")
    with first, second:
        for process in (first, second):
            process.wait_ready()
        until(lambda: says(first, ACQUIRED) or says(second, ACQUIRED), bool, seconds=60)
        leader, standby = (first, second) if says(first, ACQUIRED) else (second, first)
        before = until(partial(lease, kubectl), lambda found: bool(found[0]), seconds=60)
        leader.stop()
        began = time.monotonic()
        after = until(partial(lease, kubectl), lambda found: found[1] > before[1] and bool(found[0]), seconds=60)
        assert time.monotonic() - began < 10, "the Lease was left to expire, which takes 15 s"
        until(lambda: says(standby, ACQUIRED), bool, seconds=30)
        leader.start()
        leader.wait_ready()
        a_one_shot(kubectl, namespace, seconds=20)  # due when the killed one's Lease has run out, or soon before
        standby.kill()
        began = time.monotonic()
        until(partial(lease, kubectl), lambda found: found[1] > after[1] and bool(found[0]), seconds=60)
        assert time.monotonic() - began < 25
        done = until(
            lambda: [occ for occ in occurrences(kubectl, namespace) if occ["status"].get("outcome")], bool, seconds=150
        )
        assert after[1] <= done[0]["spec"]["fencingEpoch"] <= lease(kubectl)[1]


def a_herd(kubectl: Kubectl, namespace: str, schedule: str) -> None:
    """Fifty schedules due at once, each with its Baseline on record."""
    # a long deadline: what is shown is once and not lost, whatever ten restarts take on a busy machine
    herd = (a_manifest(f"herd-{n:02d}", schedule=schedule, startingDeadlineSeconds=600) for n in range(HERD))
    kubectl("apply", "-n", namespace, "-f", "-", input=manifests(*herd))
    until(
        lambda: {occ["spec"]["scheduleRef"]["name"] for occ in occurrences(kubectl, namespace)},
        lambda found: len(found) == HERD,
        seconds=180,
    )


def a_one_shot(kubectl: Kubectl, namespace: str, *, seconds: float) -> None:
    """A schedule that is due so soon, its Baseline on record."""
    once = a_manifest("once", runOnceTime=utc(ahead(seconds=seconds)), startingDeadlineSeconds=600)
    kubectl("apply", "-n", namespace, "-f", "-", input=manifests(once))
    until(partial(occurrences, kubectl, namespace), bool, seconds=60)


def wait_for_writes(sent: Callable[[], list[Request]], count: int) -> None:
    """Wait until so many objects of the herd are made, in small steps: the kill should hit the middle.

    One whose client died while it was made may be logged with any code of a server's error, and counts once.
    """
    end = time.monotonic() + 200
    while len(made := {(r.resource, r.name) for r in sent() if not 400 <= r.code < 500}) < count:
        assert time.monotonic() < end, f"only {len(made)} of {count} objects at {datetime.now(UTC)}"
        time.sleep(0.005)


def lease(kubectl: Kubectl) -> tuple[str, int]:
    """Holder and epoch of the Lease; nobody and 0 when there is none."""
    path = "jsonpath={.spec.holderIdentity}|{.spec.leaseTransitions}"
    found = kubectl(
        "get", "lease", "workflow-schedules", "-n", "workflow-schedules-system", "-o", path, check=False
    ).stdout
    holder, _, epoch = found.partition("|")
    return holder, int(epoch or 0)


def says(process: OperatorProcess, words: str) -> bool:
    return words in process.log.read_text()


@pytest.mark.timeout(600)
def test_a_fence_that_refuses_the_holder_is_said_and_not_hammered(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str, audit: AuditTrail, tmp_path: Path
) -> None:
    """P14: an API server whose fence reads an old Lease (its policy was deleted and made again) stalls no one in silence."""
    policy = ("validatingadmissionpolicy", "workflow-schedules-fence")
    operator = OperatorProcess(control_plane, tmp_path, environment=SHORT_LEASE)
    with operator:
        operator.wait_ready()
        a_one_shot(kubectl, namespace, seconds=25)
        stored = json.loads(kubectl("get", *policy, "-o", "json").stdout)
        # the same refusal, made for certain: a fence that wants an epoch nobody has
        broken = json.loads(json.dumps(stored))
        broken["spec"]["validations"][0]["expression"] = "variables.epoch == 'none of this world'"
        for body in (stored, broken):
            body["metadata"] = {key: value for key, value in body["metadata"].items() if key in {"name", "labels"}}
        try:
            kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(broken))
            operator.kill()
            operator.start()
            until(lambda: says(operator, "refuses the holder of the Lease"), bool, seconds=120)
            began = len(audit.requests())
            time.sleep(10)  # that nothing is hammered shows only over time
            assert len([r for r in audit.requests()[began:] if r.code == 403]) <= 20
        finally:  # or no test after this one could write
            kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(stored))
        until(
            lambda: [occ for occ in occurrences(kubectl, namespace) if occ["status"].get("outcome") == "Completed"],
            bool,
            seconds=150,
        )
