"""How long a Lease lasts, how often it is renewed and looked at. Values only: who waits for them is the elector's business."""

from __future__ import annotations

from dataclasses import dataclass

TIMER_SECONDS = 0.0001  # a timer may fire a little early: nobody must spin until its time is reached
LOOK_SECONDS = 0.45  # not a part of the pause between renewals: else each look may meet one just before the watch does


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """How long a Lease lasts, in seconds.

    Attributes:
        duration_seconds: others wait this long after they last saw it change.
        renew_deadline_seconds: its holder stops writing this long after its last renewal.
        retry_seconds: pause between two renewals, and after a try that failed.
        look_seconds: pause between two looks at another's Lease where no watch tells of it: a standby sees a release this soon.
    """

    duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0
    look_seconds: float = LOOK_SECONDS

    @property
    def hush_seconds(self) -> float:
        """Return how long a watch of another's Lease may say nothing before it is looked at: its holder has renewed it since."""
        return self.retry_seconds + self.look_seconds

    @property
    def call_seconds(self) -> float:
        """Return the limit of one call: two that hang fit into the renew deadline, and so does a slow API server."""
        return self.renew_deadline_seconds / 2
