"""Lets the auditor of hack/soak judge a fake API server, commit by commit."""

from __future__ import annotations

from datetime import timedelta

from soak_lib import auditor
from soak_lib.accounts import FINAL
from soak_lib.commits import Commit
from support.api_kinds import Json, Kind
from support.api_server import Clock, FakeApiServer
from support.api_store import Change

__all__ = ["FINAL", "Auditor", "ViolationError"]


class ViolationError(AssertionError):
    """An invariant does not hold; the message begins with its name."""


class Auditor:
    """See soak_lib.auditor; what is wrong at a commit is kept and raised by `check`."""

    def __init__(self, server: FakeApiServer, clock: Clock, *, on_its_way: timedelta = timedelta()) -> None:
        self._clock = clock
        self._auditor = auditor.Auditor(is_guarded=False, on_its_way=on_its_way)  # tests remove records by hand, too
        self.violations = self._auditor.violations
        self.jobs_started = self._auditor.jobs_started
        server.store.observers.append(self._observe)

    def check(self, *, is_settled: bool = True) -> None:
        """Raise what was found.

        Args:
            is_settled: an operator leads and has had its time: everything due is decided, every end recorded.

        Raises:
            ViolationError: with everything that is wrong.
        """
        if found := self._auditor.problems(self._clock.now(), is_settled=is_settled):
            raise ViolationError("\n".join(found))

    def excuse(self, lateness: timedelta) -> None:
        """Call nothing late for that much: the clock of an operator is behind."""
        self._auditor.on_its_way += lateness

    def go_back(self, records: list[Json], schedules: list[Json]) -> None:
        """Forget what a restore of etcd forgot."""
        self._auditor.go_back(records, schedules)

    def _observe(self, kind: Kind, change: Change) -> None:
        before, after = (stored and stored.body for stored in (change.before, change.after))
        self._auditor.see(Commit(kind=kind.plural, before=before, after=after, at=self._clock.now()))
