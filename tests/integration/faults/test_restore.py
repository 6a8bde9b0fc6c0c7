"""An older backup of etcd is restored: with `notBefore` nothing at or before the restore is run a second time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.control_plane import ControlPlane, OperatorProcess
from support.faulty import SETTINGS, Stage, a_one_shot, assert_ran_once, soon
from support.herd import utc


@pytest.mark.timeout(400)
def test_nothing_that_a_backup_forgot_is_run_again(control_plane: ControlPlane, stage: Stage, tmp_path: Path) -> None:
    """I1, I3: what was due until then is consumed on record; what is due after it runs."""
    scene, operator = stage.scene, stage.operator
    before, between = soon(seconds=5), soon(seconds=25)
    scene.apply(a_one_shot("b-before", before), a_one_shot("b-between", between))
    assert_ran_once(stage.settle(["b-before"], seconds=60), "b-before", before)
    control_plane.backup(tmp_path / "backup")
    assert_ran_once(stage.settle(["b-between"], seconds=90), "b-between", between)
    operator.stop()
    control_plane.restore(tmp_path / "backup")
    restored_at = datetime.now(UTC)
    environment = {**SETTINGS, "WORKFLOW_SCHEDULES_NOT_BEFORE": restored_at.isoformat()}
    with OperatorProcess(control_plane, tmp_path, environment=environment, server=stage.proxy.url) as restored:
        restored.wait_ready(seconds=60)
        after = soon(seconds=6)
        scene.apply(a_one_shot("b-after", after))
        view = stage.settle(["b-after", "b-before"], seconds=90)
        assert_ran_once(view, "b-after", after)
        assert_ran_once(view, "b-before", before)
        view = scene.until(lambda view: view.status("b-between").get("state") == "Complete", seconds=30, what="the end")
    assert [view.runs("b-between"), view.jobs("b-between")] == [[], []]
    record = view.log("b-between")[-1]["spec"]
    assert (record["decision"], record["reason"], record["span"]) == (
        "Baseline",
        "Restored",
        {"firstTime": utc(between), "lastTime": utc(between), "count": 1},
    )
    operator.start()
    operator.wait_ready()
