"""The right to write: an epoch of the Lease, valid until a moment on this process's monotonic clock.

Every write asks it first (P15). Acquiring and renewing is leadership's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.core.model import Writer


class LostLeaseError(Exception):
    """The Lease may be somebody else's by now; nothing may be written any more."""


@dataclass(slots=True)
class Fence:
    """One epoch's right to write.

    Attributes:
        writer: stamped on everything written.
        monotonic: this process's clock, in seconds.
        acquired_at: monotonic second of the acquisition.
        valid_until: monotonic second after which no request may be started.
    """

    writer: Writer
    monotonic: Callable[[], float]
    acquired_at: float
    valid_until: float

    def check(self) -> None:
        """Refuse to go on once the right has run out.

        Raises:
            LostLeaseError: not renewed in time, or revoked.
        """
        if self.monotonic() >= self.valid_until:
            raise LostLeaseError(f"epoch {self.writer.epoch} of {self.writer.lease} was not renewed in time")

    def extend(self, until: float) -> None:
        """Let the right last until a later moment, unless it was revoked."""
        if self.valid_until != float("-inf"):
            self.valid_until = until

    def revoke(self) -> None:
        """End the right at once and for good."""
        self.valid_until = float("-inf")
