"""The clock of the operator's machine is set forward and back (libfaketime): nothing runs early, twice or never.

Its monotonic clock goes on, as it does on a real machine.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.control_plane import ControlPlane, OperatorProcess
from support.faulty import SETTINGS, Stage, a_one_shot, assert_ran_once, lateness, selected, soon

SAMPLE = 2

HOUR = 3600
HERD = 10
EARLY = -2  # seconds: as far as the API server's clock is trusted not to be behind (P13)


class Clock:
    """The wall clock of one process: so many seconds ahead of the machine's."""

    def __init__(self, folder: Path, library: Path) -> None:
        self._file = folder / "clock"
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        self.set(0)

    def set(self, ahead_seconds: int) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{ahead_seconds:+d}")
        fresh.rename(self._file)


@pytest.fixture(scope="module")
def library() -> Path:
    """Debian's libfaketime, installed where CI may."""
    if not (found := _found()) and os.environ.get("CI") and os.geteuid() == 0:
        subprocess.run(["apt-get", "-qq", "update"], check=True)
        subprocess.run(["apt-get", "-qq", "install", "--yes", "--no-install-recommends", "libfaketime"], check=True)
        found = _found()
    if not found:
        pytest.skip("libfaketime is not installed; next: apt-get install libfaketime")
    return found[0]


def _found() -> list[Path]:
    return sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


@pytest.fixture(scope="module")
def clock(
    control_plane: ControlPlane, stage: Stage, library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clock]:
    """That of an operator which takes the place of the stage's."""
    folder = tmp_path_factory.mktemp("clock")
    clock = Clock(folder, library)
    environment = {**SETTINGS, **clock.environment}
    stage.operator.stop()
    with OperatorProcess(control_plane, folder, environment=environment, server=stage.proxy.url) as operator:
        operator.wait_ready()
        yield clock
        assert not operator.has_ended, operator.last_words()
        assert "reconciling failed" not in operator.log.read_text()
    stage.operator.start()
    stage.operator.wait_ready()


def forward(clock: Clock, stage: Stage, name: str) -> None:
    """P13: the API server's clock holds it back."""
    later, due = soon(seconds=1200), soon(seconds=8)
    stage.scene.apply(a_one_shot(f"{name}-later", later), a_one_shot(name, due))
    clock.set(HOUR)
    view = stage.settle([name], seconds=120)
    assert_ran_once(view, name, due)
    assert EARLY <= lateness(view, name) < 15
    assert view.runs(f"{name}-later") == []
    stage.scene.delete(f"wfs/{name}-later")
    clock.set(0)


def back_and_set_right(clock: Clock, stage: Stage, name: str) -> None:
    """What is due meanwhile waits in sight, and is not lost."""
    due = soon(seconds=8)
    stage.apply(due, name)
    clock.set(-HOUR)
    time.sleep((due - datetime.now(UTC)).total_seconds() + 3)  # well after it is due
    assert stage.scene.look().runs(name) == []
    clock.set(0)
    assert_ran_once(stage.settle([name], seconds=120), name, due)


def forward_and_right_again_while_it_runs(clock: Clock, stage: Stage, name: str) -> None:
    due = soon(seconds=8)
    stage.apply(due, name)
    stage.scene.until(lambda view: bool(view.jobs(name)), seconds=90, what="a Job")
    clock.set(HOUR)
    view = stage.settle([name], seconds=120)
    clock.set(0)
    assert_ran_once(view, name, due)


def to_and_fro_in_a_herd(clock: Clock, stage: Stage, name: str) -> None:
    due = soon(seconds=8)
    herd = [f"{name}-{number}" for number in range(HERD)]
    stage.apply(due, *herd)
    for seconds in (HOUR, -HOUR, 90, -90, 10 * HOUR, 0) * 3:
        clock.set(seconds)
        time.sleep(0.7)  # a clock that is set again and again
    view = stage.settle(herd, seconds=120)
    for each in herd:
        assert_ran_once(view, each, due)
        assert lateness(view, each) >= EARLY


def the_lease_does_not_mind(clock: Clock, stage: Stage, name: str) -> None:
    """P15: its deadlines are on the monotonic clock. A busy machine may lose it for reasons of its own, but not each time."""
    held: list[tuple[object, ...]] = []
    for _ in range(3):
        held = [_held(stage)]
        for seconds in (HOUR, -HOUR, 0):
            clock.set(seconds)
            time.sleep(2)  # several renewals
        held.append(_held(stage))
        if held[0] == held[1]:
            return
    pytest.fail(f"{name}: the Lease was lost by each of three settings, the last time from {held[0]} to {held[1]}")


def _held(stage: Stage) -> tuple[object, ...]:
    lease = stage.lease()
    return lease["holderIdentity"], lease["leaseTransitions"]


@dataclass(frozen=True, slots=True)
class Row:
    play: Callable[[Clock, Stage, str], None]

    def __str__(self) -> str:
        return self.play.__name__.replace("_", " ")


ROWS = [
    Row(forward),
    Row(back_and_set_right),
    Row(forward_and_right_again_while_it_runs),
    Row(to_and_fro_in_a_herd),
    Row(the_lease_does_not_mind),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_clock_that_is_set(clock: Clock, stage: Stage, row: Row, request: pytest.FixtureRequest) -> None:
    """R8; I1, I3."""
    row.play(clock, stage, f"f{selected(request, 'row', Row).index(row)}")
