"""The deletion of a finished Job by its history limit meets each fault of a request: the Job goes once, and its record stays."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from support.control_plane import faults, seen
from support.faulty import REQUEST_FAULTS, Stage, a_one_shot, of, selected, soon
from support.scene import View, has_ended

KEPT_SECONDS = 95  # K: no name is free before
AGAIN_SECONDS = 60  # whatever was not answered is waited for (R), then tried again


@dataclass(frozen=True, slots=True)
class Row:
    fault: str
    is_slow: bool = True

    def __str__(self) -> str:
        return f"delete: {self.fault}"


# a 409 says that the UID is another's, so that this Job is gone: nothing is tried again
ROWS = [Row(fault) for fault in REQUEST_FAULTS if fault != "409"]


@pytest.fixture(scope="module")
def wave(stage: Stage, request: pytest.FixtureRequest) -> tuple[dict[Row, tuple[str, faults.Fault]], View]:
    """Every row that was asked for, and the namespace when no Job is left, or long after there should be one."""
    rows: dict[Row, tuple[str, faults.Fault]] = {}
    for number, row in enumerate(selected(request, "row", Row)):
        name = f"d{number:02d}"
        fault = faults.Fault(str(row), seen.on("delete", "jobs", where=of(name)), REQUEST_FAULTS[row.fault])
        stage.proxy.add(fault)
        rows[row] = (name, fault)
    due = soon(seconds=8 + 0.15 * len(rows))
    names = [name for name, _ in rows.values()]
    stage.scene.apply(*(a_one_shot(name, due, successfulJobsHistoryLimit=0) for name in names))
    stage.settle(names, seconds=90)
    end = time.monotonic() + KEPT_SECONDS + AGAIN_SECONDS
    while any(stage.scene.look().jobs(name) for name in names) and time.monotonic() < end:
        time.sleep(2)
    return rows, stage.scene.look()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_job_whose_deletion_is_disturbed_goes_once(
    wave: tuple[dict[Row, tuple[str, faults.Fault]], View], row: Row, stage: Stage
) -> None:
    """R26, P1, P2, P19."""
    rows, view = wave
    name, fault = rows[row]
    assert fault.struck == 1
    assert view.jobs(name) == []
    [run] = view.runs(name)
    assert has_ended(run)
    assert run["status"]["outcome"] == "Completed"
    assert view.status(name)["counts"]["admitted"] == 1
    is_of = of(name)
    made = [each for each in stage.proxy.seen if (each.verb, each.resource) == ("create", "jobs") and is_of(each)]
    assert sum(each.is_committed for each in made if not each.is_dry_run) == 1
