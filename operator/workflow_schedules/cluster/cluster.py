"""What everything that reads or writes the cluster is given: client, cache, pinned templates and the clocks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from workflow_schedules.core.runs import REQUEST_LIFE

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.api.common import Condition
    from workflow_schedules.cluster.cache import Cache
    from workflow_schedules.cluster.client import Client
    from workflow_schedules.cluster.templates import Templates
    from workflow_schedules.core.events import Happening
    from workflow_schedules.core.model import Record, Schedule

CLOCK_TOLERANCE = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a step is carried out with.

    Attributes:
        wall_clock: this machine's, aware UTC.
        monotonic: seconds, never stepping back.
        tell: is told what became of an occurrence, once that is on record.
        tell_refused: is told of a schedule whose spec can't be used, once its status says so.
    """

    client: Client
    cache: Cache
    templates: Templates
    wall_clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    tell: Callable[[Happening, Record], None] = lambda _happening, _record: None
    tell_refused: Callable[[Schedule, Condition], None] = lambda _schedule, _accepted: None

    def now(self) -> datetime:
        """Return the time to decide on: the wall clock, held back where it runs ahead of the API server's.

        A watermark is never ahead of the server's clock (P13): without this, one that is to be "now" would wait for ever.
        """
        local, server = self.wall_clock(), self.client.server_now(self.monotonic())
        return local if server is None else min(local, server + CLOCK_TOLERANCE)

    def answered_before(self) -> float:
        """Return the monotonic second before which whatever was given up can't arrive any more."""
        return self.monotonic() - REQUEST_LIFE.total_seconds()

    def is_everything_answered(self) -> bool:
        """Tell whether no write of ours can still arrive: the Lease may be released then (P15)."""
        given_up_at = self.client.last_unanswered_write_at
        return given_up_at is None or self.monotonic() - given_up_at > REQUEST_LIFE.total_seconds()
