"""A leader is stopped (SIGSTOP) with a write on its way for longer than its Lease lasts; another one takes over and goes on.

The write arrives when the other has long decided the same, before the first one wakes or after it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from support.cluster_stories import until
from support.control_plane import OperatorProcess, faults
from support.faulty import SETTINGS, WRITES, Stage, assert_ran_once, selected, soon

if TYPE_CHECKING:
    from support.control_plane import ControlPlane

SAMPLE = 1

ASLEEP, AWAKE = "arrives while its sender sleeps", "arrives after its sender woke"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    write: str
    arrives: str

    def __str__(self) -> str:
        return f"{self.write} {self.arrives}"


ROWS = [Row(write=write, arrives=arrives) for write in WRITES for arrives in (ASLEEP, AWAKE)]


@pytest.fixture(scope="module")
def second(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """Not started yet."""
    folder = tmp_path_factory.mktemp("second")
    operator = OperatorProcess(control_plane, folder, name="second", environment={**SETTINGS, "POD_UID": "second"})
    yield operator
    operator.stop()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_write_of_a_leader_that_was_stalled_is_harmless(
    stage: Stage, second: OperatorProcess, row: Row, request: pytest.FixtureRequest
) -> None:
    """P1, P5, P14, P15; I1, I6."""
    name = f"t{selected(request, 'row', Row).index(row):02d}"
    until(stage.lease, lambda found: is_of(found, "first"), seconds=60)
    second.start()
    second.wait_ready()
    release, due = threading.Event(), soon(seconds=8)
    held = faults.Fault(str(row), WRITES[row.write](name), faults.hold(release))
    stage.proxy.add(held)
    stage.apply(due, name)
    stage.proxy.wait_struck(held)
    late = next(each for each in stage.proxy.seen if str(row) in each.faults)
    losses = times_lost(stage.operator)
    stage.operator.signal(signal.SIGSTOP)
    try:
        until(stage.lease, lambda found: is_of(found, "second"), seconds=60)
        view = stage.settle([name], seconds=120)
        assert_ran_once(view, name, due)
        if row.arrives == ASLEEP:
            release.set()
            stage.proxy.wait_for(lambda _: late.status is not None, what="the late write to be answered")
    finally:
        stage.operator.signal(signal.SIGCONT)
    until(lambda: times_lost(stage.operator), lambda found: found > losses, seconds=60)
    release.set()
    stage.proxy.wait_for(lambda _: late.status is not None, what="the late write to be answered")
    assert not late.is_committed, f"{late} was carried out"
    assert stage.scene.look().count()[name] == view.count()[name]
    assert_ran_once(stage.scene.look(), name, due)
    second.stop()
    stage.assert_well()


def times_lost(operator: OperatorProcess) -> int:
    """How often it has lost the Lease: in rows before this one, too."""
    return operator.log.read_text(errors="replace").count("lost the Lease")


def is_of(lease: dict[str, object], pod: str) -> bool:
    return str(lease.get("holderIdentity", "")).startswith(f"{pod}_")
