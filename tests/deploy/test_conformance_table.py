"""The table of the conformance tier names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "integration" / "conformance"


def test_every_named_test_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)::(test_\w+)`", (FOLDER / "README.md").read_text()))
    there = {
        (module.stem, name)
        for module in FOLDER.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", module.read_text(), re.MULTILINE)
    }
    assert len(named) > 20
    assert named <= there


def test_every_test_names_where_it_comes_from() -> None:
    """Its docstring names the origin or the rule (Rn), or a section of the contract."""
    for module in FOLDER.glob("test_*.py"):
        for name, docstring in re.findall(
            r'^def (test_\w+)\([^)]*\) -> None:\n    """(.+?)"""', module.read_text(), re.MULTILINE
        ):
            assert re.search(r"R\d+|section 2|e2e", docstring), f"{module.stem}::{name}"
