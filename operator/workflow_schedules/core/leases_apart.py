"""Whose a schedule is, where two installations with a Lease each see the same cluster: the other's is left to it.

Epochs say nothing across Leases, so nothing that the other one decided can be judged, finished or cleared away (R33). Who
leads under one Lease is core/lease's business.
"""

from __future__ import annotations


def is_other_lease(written: str | None, own: str) -> bool:
    """Tell whether something was written under another Lease; what doesn't say was written by an older version.

    Source: contract R33.
    """
    return written is not None and written != own
