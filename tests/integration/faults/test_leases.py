"""The Lease is refused, stolen, deleted or set back: leadership is kept or taken anew, and each run is still one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from support.cluster_stories import Json, until
from support.control_plane import faults, seen
from support.faulty import LEASE_SECONDS, REQUEST_FAULTS, SLOW, Stage, assert_ran_once, selected, soon

SAMPLE = 2

LEASE = ("lease", "workflow-schedules", "-n", "workflow-schedules-system")
RENEWAL = seen.on("update", "leases")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is done to the Lease, and whether it stays with its holder."""

    name: str
    do: Callable[[Stage], object]
    is_kept: bool

    def __str__(self) -> str:
        return self.name


def patch(**spec: object) -> Callable[[Stage], object]:
    def do(stage: Stage) -> None:
        body = {"spec": {key: value() if callable(value) else value for key, value in spec.items()}}
        stage.scene.kubectl("patch", *LEASE, "--type=merge", "-p", json.dumps(body))

    return do


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def disturb(fault: str, times: int) -> Callable[[Stage], object]:
    def do(stage: Stage) -> None:
        met = faults.Fault(f"renewal: {fault}", RENEWAL, REQUEST_FAULTS[fault], times=times)
        stage.proxy.add(met)
        stage.proxy.wait_for(lambda _: met.struck >= times, seconds=60, what=f"{times} renewals met")
        stage.proxy.remove(met)

    return do


QUICK = [fault for fault in REQUEST_FAULTS if fault not in SLOW]
THIEF = {"holderIdentity": "thief", "leaseDurationSeconds": 2, "renewTime": now, "acquireTime": now}
ROWS = [
    *(Row(name=f"a renewal: {fault}", do=disturb(fault, 1), is_kept=True) for fault in QUICK),
    Row(name="every renewal is lost for longer than it lasts", do=disturb("lost on the way", 14), is_kept=False),
    Row(name="it is stolen", do=patch(**THIEF, leaseTransitions=1_000), is_kept=False),
    Row(name="it is stolen under the same epoch", do=patch(**THIEF), is_kept=False),
    Row(name="it is set back", do=patch(leaseTransitions=1), is_kept=False),
    Row(name="it is emptied", do=patch(holderIdentity=None, leaseTransitions=None, renewTime=None), is_kept=False),
    Row(name="it is deleted", do=lambda stage: stage.scene.kubectl("delete", *LEASE), is_kept=False),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_lease_that_is_tampered_with(stage: Stage, row: Row, request: pytest.FixtureRequest) -> None:
    """R33, P15, P16: the epoch never goes back; what was due meanwhile runs once."""
    name = f"e{selected(request, 'row', Row).index(row):02d}"
    before = held(stage)
    due = soon(seconds=8)
    stage.apply(due, name)
    row.do(stage)
    view = stage.settle([name], seconds=90)
    assert_ran_once(view, name, due)
    after = until(stage.lease, lambda found: found.get("holderIdentity") == before["holderIdentity"], seconds=60)
    written = [each["spec"]["fencingEpoch"] for each in view.log(name)]
    assert written == sorted(written)
    if row.is_kept:
        assert is_kept(stage, row, before, after), f"kept though {LEASE_SECONDS:g} s are soon over"
    else:
        assert after["leaseTransitions"] > before["leaseTransitions"]
    assert_fenced(stage, after)


def is_kept(stage: Stage, row: Row, before: Json, after: Json) -> bool:
    """Tell whether the holder kept it; a busy machine may lose it for reasons of its own, but not three times in a row."""
    for _ in range(2):
        if after["leaseTransitions"] == before["leaseTransitions"]:
            return True
        before = held(stage)
        row.do(stage)
        after = held(stage)
    return bool(after["leaseTransitions"] == before["leaseTransitions"])


def held(stage: Stage) -> Json:
    """Return the Lease once its holder has renewed it: one that another file killed does not."""
    seen = [stage.lease()]

    def is_renewed(found: Json) -> bool:
        seen.append(found)
        holders, times = ({each.get(field) for each in seen[-2:]} for field in ("holderIdentity", "renewTime"))
        return len(holders) == 1 and len(times) == 2 and holders.isdisjoint({None, "", "thief"})

    return until(stage.lease, is_renewed, seconds=60)


def assert_fenced(stage: Stage, lease: Json) -> None:
    """Who holds the Lease has the highest epoch on record."""
    view = stage.scene.look()
    records = [each["spec"] for name in view.count() for each in view.log(name)]
    assert max(each["fencingEpoch"] for each in records) <= lease["leaseTransitions"]


def test_the_operator_is_well(stage: Stage) -> None:
    stage.assert_well()
