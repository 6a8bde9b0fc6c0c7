"""An older backup of etcd is restored: with `notBefore` nothing at or before that runs again, and a running operator goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.control_plane import ControlPlane, OperatorProcess
from support.faulty import SETTINGS, Stage, a_one_shot, assert_ran_once, soon
from support.herd import utc


def nothing_that_a_backup_forgot_is_run_again(control_plane: ControlPlane, stage: Stage, tmp_path: Path) -> None:
    """I1, I3: what was due until then is consumed on record; what is due after it runs."""
    operator = stage.operator
    before = soon(seconds=8)
    stage.apply(before, "b-before")
    assert_ran_once(stage.settle(["b-before"], seconds=60), "b-before", before)
    between = soon(seconds=40)  # when the backup has been made
    stage.apply(between, "b-between")
    stage.scene.until(lambda view: view.status("b-between").get("state") == "Active", seconds=30, what="a first status")
    control_plane.backup(tmp_path / "backup")
    assert_ran_once(stage.settle(["b-between"], seconds=90), "b-between", between)
    operator.stop()
    try:
        restore(control_plane, stage, tmp_path, between)
    finally:
        operator.start()
    operator.wait_ready()


def restore(control_plane: ControlPlane, stage: Stage, folder: Path, between: datetime) -> None:
    """Put the backup back, and start an operator that knows when that was."""
    scene = stage.scene
    control_plane.restore(folder / "backup")
    environment = {**SETTINGS, "WORKFLOW_SCHEDULES_NOT_BEFORE": datetime.now(UTC).isoformat()}
    with OperatorProcess(control_plane, folder, environment=environment, server=stage.proxy.url) as restored:
        restored.wait_ready(seconds=60)
        after = soon(seconds=8)
        scene.apply(a_one_shot("b-after", after))
        view = stage.settle(["b-after", "b-before"], seconds=90)
        assert_ran_once(view, "b-after", after)
        scene.until(lambda view: view.status("b-between").get("state") == "Complete", seconds=60, what="the end")
    view = scene.look()
    assert [job["metadata"]["name"] for job in view.jobs("b-before")] == [
        run["metadata"]["name"] for run in view.runs("b-before")
    ]
    assert [view.runs("b-between"), view.jobs("b-between")] == [[], []]
    record = view.log("b-between")[-1]["spec"]
    assert (record["decision"], record["reason"], record["span"]) == (
        "Baseline",
        "Restored",
        {"firstTime": utc(between), "lastTime": utc(between), "count": 1},
    )


def an_operator_that_runs_on_through_a_restore_goes_on_from_the_backup(
    control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> None:
    """P8, P9: what it remembers is of a history that is no more; what is new is seen, by kopf as well."""
    control_plane.backup(tmp_path / "backup")
    due = soon(seconds=8)
    stage.apply(due, "g-forgotten")
    assert_ran_once(stage.settle(["g-forgotten"], seconds=90), "g-forgotten", due)
    pid = stage.operator.pid
    control_plane.restore(tmp_path / "backup")
    assert stage.scene.look().log("g-forgotten") == []
    stage.proxy.wait_for(lambda _: "read anew" in stage.operator.log.read_text(), seconds=60, what="the loss noticed")
    after = soon(seconds=12)
    stage.apply(after, "g-after")
    assert_ran_once(stage.settle(["g-after"], seconds=90), "g-after", after)
    assert (stage.operator.pid, stage.operator.has_ended) == (pid, False)


@dataclass(frozen=True, slots=True)
class Row:
    play: Callable[[ControlPlane, Stage, Path], None]
    is_slow: bool = False

    def __str__(self) -> str:
        return self.play.__name__.replace("_", " ")


ROWS = [
    Row(nothing_that_a_backup_forgot_is_run_again, is_slow=True),
    Row(an_operator_that_runs_on_through_a_restore_goes_on_from_the_backup),
]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_older_backup_is_restored(control_plane: ControlPlane, stage: Stage, row: Row, tmp_path: Path) -> None:
    row.play(control_plane, stage, tmp_path)
