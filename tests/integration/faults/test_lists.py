"""An operator starts while its first lists, of each kind, meet a fault: it comes up by itself and runs what is due."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from support.control_plane import faults, seen
from support.faulty import REQUEST_FAULTS, SLOW, Stage, assert_ran_once, selected, soon

SAMPLE = 1

RESOURCES = ("workflowschedules", "workflowdefinitions", "jobs", "scheduleoccurrences")
TIMES = 3  # of each kind: kopf's list, the watches', the one of a takeover


@dataclass(frozen=True, slots=True)
class Row:
    fault: str

    @property
    def is_slow(self) -> bool:
        """Whether a sample leaves it out."""
        return self.fault in SLOW

    def __str__(self) -> str:
        return f"lists: {self.fault}"


ROWS = [Row(fault) for fault in REQUEST_FAULTS if "commit" not in fault] + [Row("a page with 200, after the commit")]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_operator_whose_first_lists_fail_starts_all_the_same(
    stage: Stage, row: Row, request: pytest.FixtureRequest
) -> None:
    """K-064, P9: what was not read is read again, and nothing is decided before."""
    action = REQUEST_FAULTS[row.fault]
    name = f"l{selected(request, 'row', Row).index(row):02d}"
    stage.operator.stop()
    disturbed = [faults.Fault(f"list {each}", seen.on("list", each), action, times=TIMES) for each in RESOURCES]
    discovery = faults.Fault("discovery", seen.on("get", where=lambda found: not found.resource), action, times=1)
    stage.proxy.add(*disturbed, discovery)
    due = soon(seconds=8)
    stage.apply(due, name)
    stage.operator.start()
    assert_ran_once(stage.settle([name], seconds=120), name, due)
    assert all(each.struck for each in (*disturbed, discovery))
    stage.proxy.clear()
    stage.assert_well()
