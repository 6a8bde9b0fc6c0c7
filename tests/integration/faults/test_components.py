"""etcd and the API server are killed, or stand still, in the middle of a herd: each run of it is made once, by itself."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from support.control_plane import ControlPlane, seen
from support.faulty import Stage, assert_ran_once, selected, soon

SAMPLE = 1

HERD = 20
DOWN_SECONDS = 3.0
KILLED, FROZEN = "killed", "standing still"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    components: tuple[str, ...]
    how: str

    def __str__(self) -> str:
        return f"{' and '.join(self.components)} {self.how}"


ROWS = [
    Row(components=components, how=how)
    for components in (("etcd",), ("kube-apiserver",), ("etcd", "kube-apiserver"))
    for how in (KILLED, FROZEN)
]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_herd_whose_control_plane_fails_is_run_once(
    control_plane: ControlPlane, stage: Stage, row: Row, request: pytest.FixtureRequest
) -> None:
    """I1, I3, I7; R34: what can't be asked is waited for, and nobody starts the operator again."""
    herd = [f"c{selected(request, 'row', Row).index(row)}-{number:02d}" for number in range(HERD)]
    is_job = seen.on("create", "jobs", where=lambda found: found.name.rpartition("-")[0].rpartition("-")[0] in herd)
    due, pid = soon(seconds=14), stage.operator.pid
    stage.apply(due, *herd)
    stage.proxy.wait_for(
        lambda found: sum(1 for each in found if is_job(each) and each.is_committed) >= HERD // 4,
        what="a quarter of the herd",
    )
    for component in row.components:
        (control_plane.stop if row.how == KILLED else control_plane.pause)(component)
    time.sleep(DOWN_SECONDS)  # what is awaited is that nothing answers for so long
    for component in row.components:
        (control_plane.start if row.how == KILLED else control_plane.resume)(component)
    control_plane.wait_ready()
    view = stage.settle(herd, seconds=180)
    for name in herd:
        assert_ran_once(view, name, due)
    assert stage.operator.pid == pid
    stage.assert_well()
