"""A short soak of a seed: what hack/soak does for hours, on a control plane of its own, since it breaks and steals things."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from soak_lib.soak import AUDIT_POLICY, Plan, soak
from support.control_plane import ControlPlane, binaries

if TYPE_CHECKING:
    from pathlib import Path

SHORT_LEASE = {
    "WORKFLOW_SCHEDULES_LEASE_DURATION_SECONDS": "6",
    "WORKFLOW_SCHEDULES_RENEW_DEADLINE_SECONDS": "4",
    "WORKFLOW_SCHEDULES_RETRY_SECONDS": "1",
}
PLAN = Plan(
    seed=7,
    minutes=0.75,
    schedules=150,
    operators=2,
    faults_every_seconds=5.0,
    people_every_seconds=0.5,
    calm_seconds=20.0,
    lease_seconds=6.0,
    environment=SHORT_LEASE,
    script=("kill_leader", "stall_leader", "disturb_requests", "steal_lease"),
)


@pytest.mark.timeout(600)
def test_many_schedules_a_kill_a_stall_and_a_bad_network_leave_nothing_wrong(tmp_path: Path) -> None:
    """I1-I4, I6-I8, R33-R35: no duplicate, gap, overlap, late admission or step back, whatever happens meanwhile."""
    plane = ControlPlane(f"soak-{os.getpid()}", audit=AUDIT_POLICY)
    if plane.asks_existing:
        pytest.skip("an existing cluster is not ours to break")
    if not binaries.are_ready():
        pytest.skip("the control plane's programs are not there yet; next: hack/controlplane binaries")
    said: list[str] = []
    with plane:
        plane.install()
        verdict = asyncio.run(soak(plane, tmp_path, PLAN, say=said.append))
    assert verdict.is_good, "\n".join(said)
