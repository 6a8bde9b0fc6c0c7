"""Which rows a sample plays, drawn by a seed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

Row = TypeVar("Row")

DEFAULT_SEED = 1  # one that changed by itself would have each commit answer for rows that it has nothing to do with


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
