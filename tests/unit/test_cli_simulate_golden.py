"""Worked examples of the sources, each in a file of tests/unit/simulate: manifests and a command in, the JSON rows out.

What a row of `want` leaves out is what it usually is: the reason is the decision, the record is about one instant, and what
has no run has no times and no outcome.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from workflow_schedules.cli.main import main

FOLDER = Path(__file__).with_name("simulate")
FIELDS = (
    "scheduledTime", "decision", "reason", "startTime", "completionTime", "outcome", "count", "firstTime", "lastTime",
)  # fmt: skip


def whole(row: dict[str, Any]) -> dict[str, Any]:
    usual = {
        "reason": row["decision"],
        "startTime": None,
        "completionTime": None,
        "outcome": None,
        "count": 1,
        "firstTime": row["scheduledTime"],
        "lastTime": row["scheduledTime"],
    }
    return {**usual, **row}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_rows_of_an_example(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """R1, R5 to R12, R16 to R21, R25, R29."""
    example = yaml.safe_load(path.read_text())
    monkeypatch.chdir(tmp_path)
    for name, text in example["files"].items():
        Path(name).write_text(text)
    assert main(["simulate", "-f", "schedule.yaml", *example["command"].split(), "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [tuple(row) for row in rows] == [FIELDS] * len(rows)
    assert rows == [whole(row) for row in example["want"]]
