"""What watches tell while everything is read anew: the lists don't have it, and no watch tells it twice."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Meanwhile:
    """Keeps what is told during a re-read, to be told again after it; whoever is told knows old from new by its version.

    Source: reliability P9.
    """

    def __init__(self) -> None:
        self._told: list[Callable[[], None]] | None = None

    @contextmanager
    def is_kept(self) -> Iterator[None]:
        """Keep what is told inside."""
        self._told = []
        try:
            yield
        finally:
            self._told = None

    def note(self, tell: Callable[[], None]) -> None:
        """Note how to tell it again, where it is to be kept."""
        if self._told is not None:
            self._told.append(tell)

    def tell_again(self) -> None:
        """Tell everything again, in its order; nothing more is kept."""
        told, self._told = self._told or [], None
        for tell in told:
            tell()
