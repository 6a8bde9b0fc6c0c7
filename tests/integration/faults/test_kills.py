"""The operator is killed at each write of a schedule's life, before the API server sees it and after it has carried it out.

What kills it starts it again at once, as a kubelet does, through the same proxy.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from support.control_plane import faults, seen
from support.faulty import WRITES, Kubelet, Played, Row, Stage, a_one_shot, assert_ran_once, selected, soon

SAMPLE = 2

SPACE_SECONDS = 8.0  # between two rows: a start, a takeover, a run
BEFORE, AFTER = "killed before it is sent", "killed after the commit"
LEASE = "Lease"
ROWS = [Row(write=write, fault=fault) for write in (*WRITES, LEASE) for fault in (BEFORE, AFTER)]


@pytest.fixture(scope="module")
def wave(stage: Stage, request: pytest.FixtureRequest) -> dict[Row, Played]:
    """Every row that was asked for, each due a while after the one before."""
    rows = selected(request, "row", Row)
    first, kubelet = soon(seconds=10), Kubelet(stage.operator)
    played: dict[Row, Played] = {}
    for number, row in enumerate(rows):
        name = f"k{number:02d}"
        strike = faults.call_before if row.fault == BEFORE else faults.call_after
        match = seen.on("update", "leases") if row.write == LEASE else WRITES[row.write](name)
        fault = faults.Fault(str(row), match, strike(kubelet.restart), nth=1 + 40 * (row.write == LEASE))
        stage.proxy.add(fault)
        played[row] = Played(name=name, due=first + timedelta(seconds=SPACE_SECONDS * number), fault=fault)
    stage.scene.apply(*(a_one_shot(each.name, each.due) for each in played.values()))
    return played


@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_schedule_whose_operator_is_killed_at_a_write_runs_once(
    wave: dict[Row, Played], row: Row, stage: Stage
) -> None:
    """R8, R35, P11, P16; I1, I3, I7."""
    met = wave[row]
    stage.proxy.wait_struck(met.fault, seconds=240)
    assert_ran_once(stage.settle([met.name], seconds=120), met.name, met.due)


def test_nothing_else_has_suffered(wave: dict[Row, Played], stage: Stage) -> None:
    stage.settle([each.name for each in wave.values()], seconds=60)
    stage.assert_well()
