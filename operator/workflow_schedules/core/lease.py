"""Who may lead: judged from what was seen of the Lease and when, on this process's own monotonic clock.

Clocks of other machines are never trusted: a Lease counts as expired when this process has not seen it change for the
duration that the Lease itself names. No I/O may live here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HIGHEST_EPOCH: Final = 2**31 - 1  # `leaseTransitions` is an int32


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


def may_acquire(seen: SeenLease, *, identity: str) -> bool:
    """Tell whether a process that does not lead may take a Lease.

    Also one that names it: every acquisition raises the epoch (P16).

    Source: contract R33, R34.
    """
    return not seen.holder or seen.holder == identity or seen.unchanged_seconds >= seen.duration_seconds


def next_epoch(*, lease_transitions: int, highest_known: int) -> int | None:
    """Return the epoch of an acquisition: above the Lease's own and above every epoch known (a Lease may be made anew).

    None where there is none: no epoch is used twice, so nobody may lead.
    """
    epoch = max(lease_transitions, highest_known) + 1
    return epoch if epoch <= HIGHEST_EPOCH else None
