"""Each write of a schedule's life meets each fault of a request once; all schedules are due at the same time."""

from __future__ import annotations

import pytest

from support.control_plane import faults
from support.faulty import (
    REQUEST_FAULTS,
    WRITES,
    Played,
    Row,
    Stage,
    assert_ran_once,
    lateness,
    selected,
    soon,
)
from support.scene import View

SAMPLE = 12

REFUSED = Row(write="Job", fault="422", want="Failed/JobRejected")
ROWS = [Row(write=write, fault=fault) for write in WRITES for fault in REQUEST_FAULTS] + [REFUSED]
ACTIONS = {**REQUEST_FAULTS, "422": faults.refuse(422)}
UNDISTURBED = [f"undisturbed-{n}" for n in range(3)]


@pytest.fixture(scope="module")
def wave(stage: Stage, request: pytest.FixtureRequest) -> tuple[dict[Row, Played], View]:
    """Every row that was asked for, and the namespace when they have all come to their end."""
    rows = selected(request, "row", Row)
    due = soon(seconds=8 + 0.15 * len(rows))  # until they are all applied
    played: dict[Row, Played] = {}
    for number, row in enumerate(rows):
        name = f"r{number:03d}"
        fault = faults.Fault(str(row), WRITES[row.write](name), ACTIONS[row.fault])
        stage.proxy.add(fault)
        played[row] = Played(name=name, due=due, fault=fault)
    stage.apply(due, *(each.name for each in played.values()), *UNDISTURBED)
    return played, stage.settle([*(each.name for each in played.values()), *UNDISTURBED], seconds=120)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_schedule_whose_write_is_disturbed_runs_once(wave: tuple[dict[Row, Played], View], row: Row) -> None:
    """P2, P10, P11, P18; I1, I3, I7."""
    played, view = wave
    met = played[row]
    assert_ran_once(view, met.name, met.due, want=row.want)
    assert met.fault.struck == 1


def test_the_others_are_on_time(wave: tuple[dict[Row, Played], View], stage: Stage) -> None:
    """I9: what the rows meet delays no other schedule, and the operator goes on by itself."""
    _, view = wave
    assert max(lateness(view, name) for name in UNDISTURBED) < 15, "seconds, on a busy machine"
    stage.assert_well()
