"""Each watch of the operator meets each fault of a stream, at a line about a schedule of its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from support.control_plane import seen, streams
from support.faulty import Stage, a_one_shot, about, assert_ran_once, lateness, selected, soon
from support.scene import View, a_definition

SAMPLE = 5

WATCHED = {
    "schedules": "workflowschedules",
    "definitions": "workflowdefinitions",
    "Jobs": "jobs",
    "unfinished runs": "scheduleoccurrences",
}
FAULTS: dict[str, streams.StreamAction] = {
    "breaks": streams.break_off(),
    "ends early": streams.end(),
    "is cut in the middle of a line": streams.cut_line(),
    "tells a line twice": streams.twice(),
    "is 3 s behind": streams.lag(3.0),
    "says 410": streams.expire(),
    "falls silent": streams.stall(),
}
UNDISTURBED = "undisturbed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    watched: str
    fault: str

    @property
    def is_slow(self) -> bool:
        """Whether a sample leaves it out."""
        return self.fault == "falls silent"

    def __str__(self) -> str:
        return f"the watch of {self.watched} {self.fault}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    rows: dict[Row, tuple[str, streams.StreamFault]]
    dues: dict[str, datetime]
    view: View


ROWS = [Row(watched=watched, fault=fault) for watched in WATCHED for fault in FAULTS]


@pytest.fixture(scope="module")
def wave(stage: Stage, request: pytest.FixtureRequest) -> Wave:
    """Every row that was asked for, and the namespace when they have all come to their end."""
    rows: dict[Row, tuple[str, streams.StreamFault]] = {}
    for number, row in enumerate(selected(request, "row", Row)):
        name = f"w{number:02d}"
        fault = streams.StreamFault(
            str(row),
            seen.on("watch", WATCHED[row.watched]),
            FAULTS[row.fault],
            chooses=about(name),
            times=0 if row.fault == "is 3 s behind" else 1,
        )
        stage.proxy.add_stream(fault)
        rows[row] = (name, fault)
    due = soon(seconds=8 + 0.15 * len(rows))
    # one fault after the other: a watch that waits before it goes on after one would hear nothing that another can meet
    kinds = list(dict.fromkeys(row.fault for row in rows))
    dues = {name: due + timedelta(seconds=3 * kinds.index(row.fault)) for row, (name, _) in rows.items()}
    stage.scene.apply(*(a_definition(name) for name in dues))
    stage.scene.apply(
        *(a_one_shot(name, at, workflowRef={"name": name}) for name, at in dues.items()), a_one_shot(UNDISTURBED, due)
    )
    return Wave(rows=rows, dues=dues, view=stage.settle([*dues, UNDISTURBED], seconds=120))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_schedule_whose_watch_is_disturbed_runs_once(wave: Wave, row: Row) -> None:
    """I1, I3, I7: watches only wake and teach; what they don't tell is found out."""
    name, fault = wave.rows[row]
    assert fault.struck
    assert_ran_once(wave.view, name, wave.dues[name])


def test_the_others_are_on_time(wave: Wave, stage: Stage) -> None:
    """I9: what is due needs no watch."""
    assert lateness(wave.view, UNDISTURBED) < 40, "seconds: a silent watch of schedules is noticed after 30"
    stage.assert_well()
