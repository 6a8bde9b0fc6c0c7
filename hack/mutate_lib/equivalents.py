"""What is known to change nothing, by equivalent.txt; and which of its lines are wrong by now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FILE = Path(__file__).with_name("equivalent.txt")


def of(module: str) -> frozenset[str]:
    """Return the names of the changes of one module that are known to change nothing."""
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    return frozenset(line.removeprefix(f"{module}.") for line in lines if line.startswith(f"{module}."))


def wrong(listed: frozenset[str], tried: Iterable[tuple[str, bool]]) -> Iterator[str]:
    """Yield what is wrong with the lines of a module; several changes may have one name, of which one need survive.

    Args:
        listed: the names.
        tried: every change of the module by its name, with whether a test noticed it.
    """
    noticed: dict[str, bool] = {}
    for name, is_noticed in tried:
        noticed[name] = noticed.get(name, True) and is_noticed
    for name in sorted(listed):
        if name not in noticed:
            yield f"no such change any more: {name}"
        elif noticed[name]:
            yield f"listed and killed: {name}"
