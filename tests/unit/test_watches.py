"""Who watches the watches: a process that sees nothing must not look healthy."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from workflow_schedules.handlers import watches
from workflow_schedules.handlers.feed import Feed
from workflow_schedules.handlers.watches import FAILURES_TOO_MANY, Watches


class Broken(Watches):
    """Watches that fail at once, as kopf does for a user without a name."""

    def __init__(self) -> None:
        super().__init__(cast("Feed", None))
        self.tries = 0
        self.is_tried = threading.Event()

    async def _watch(self) -> None:
        self.tries += 1
        if self.tries > FAILURES_TOO_MANY:
            self.is_tried.set()
        raise KeyError("getpwuid(): uid not found: 65532")


def test_watches_that_fail_again_and_again_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-064 K-093: the liveness probe says it, with the reason; a first failure is only tried again."""
    monkeypatch.setattr(watches, "RESTART_SECONDS", 0.01)
    broken = Broken()
    assert broken.problem == "the watches have ended"
    broken.start()
    assert broken.is_tried.wait(10)
    assert broken.problem is not None
    assert "uid not found" in broken.problem
    broken.stop()
