"""Which rows a sample plays, drawn by a seed; and a seed that is another one for each commit."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Generic, TypeVar

Row = TypeVar("Row")

WITHOUT_COMMIT = 1
_DIGITS = 6  # of the commit's name: short enough to be typed again


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer(Generic[Row]):
    """What one file has for a sample: rows, and how many of them it gives."""

    rows: Sequence[Row]
    size: int


def draw(offers: Mapping[str, Offer[Row]], *, always: Collection[str], files: int, seed: int) -> dict[str, list[Row]]:
    """Draw rows of the files that always give some, and of so many of the others; who has none to give is not drawn."""
    random = Random(seed)
    able = sorted(name for name, offer in offers.items() if offer.rows and offer.size > 0)
    sometimes = [name for name in able if name not in always]
    drawn = {*always, *random.sample(sometimes, min(files, len(sometimes)))}
    return {name: random.sample(offers[name].rows, offers[name].size) for name in able if name in drawn}


@cache
def seed_of_commit(folder: Path) -> int:
    """Return a seed that stays the same for a commit, so that its CI can be run again; 1 where there is no commit to ask."""
    try:
        asked = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return WITHOUT_COMMIT
    return int(asked.stdout[:_DIGITS], 16) if asked.returncode == 0 else WITHOUT_COMMIT
