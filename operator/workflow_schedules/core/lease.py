"""Who may lead: judged from what was seen of the Lease and when, on this process's own monotonic clock.

Clocks of other machines are never trusted: a Lease counts as expired when this process has not seen it change for the
duration that the Lease itself names. No I/O may live here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LeaseAction(StrEnum):
    """What a candidate or holder does next."""

    RENEW = "Renew"
    ACQUIRE = "Acquire"
    WAIT = "Wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLease:
    """A Lease as last seen.

    Attributes:
        holder: empty when released.
        duration_seconds: the holder's own.
        unchanged_seconds: how long ago, on the monotonic clock, this process first saw it as it is now.
    """

    holder: str
    duration_seconds: float
    unchanged_seconds: float


def judge_lease(seen: SeenLease, *, identity: str, is_leading: bool) -> LeaseAction:
    """Tell what to do about a Lease.

    A process that does not lead acquires even a Lease that names it: every acquisition raises the epoch (P16).

    Args:
        seen: what was seen of it.
        identity: of this process.
        is_leading: this process acquired it and has not lost it.

    Source: contract R33, R34.
    """
    if is_leading and seen.holder == identity:
        return LeaseAction.RENEW
    if not seen.holder or seen.holder == identity or seen.unchanged_seconds >= seen.duration_seconds:
        return LeaseAction.ACQUIRE
    return LeaseAction.WAIT


def next_epoch(*, lease_transitions: int, highest_known: int) -> int:
    """Return the epoch of an acquisition: above the Lease's own and above every epoch known (a Lease may be made anew)."""
    return max(lease_transitions, highest_known) + 1
