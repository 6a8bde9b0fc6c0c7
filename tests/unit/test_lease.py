"""Who may lead."""

from __future__ import annotations

import pytest

from workflow_schedules.core.lease import LeaseAction, SeenLease, judge_lease, next_epoch

CASES = [
    ("R33: the holder that leads renews", "me", 15, 3, True, LeaseAction.RENEW),
    ("R33: it renews also what it has not seen change", "me", 15, 99, True, LeaseAction.RENEW),
    ("P16: a lease in one's own name is acquired anew", "me", 15, 0, False, LeaseAction.ACQUIRE),
    ("R34: a released lease is free at once", "", 15, 0, False, LeaseAction.ACQUIRE),
    ("R34: released while this process thought it led", "", 15, 0, True, LeaseAction.ACQUIRE),
    ("R34: another's is waited for", "other", 15, 14.9, False, LeaseAction.WAIT),
    ("R34: and taken when it has not changed for its duration", "other", 15, 15, False, LeaseAction.ACQUIRE),
    ("K-060: the duration is the holder's own", "other", 30, 29, False, LeaseAction.WAIT),
    ("R33: lost to another is not renewed", "other", 15, 0, True, LeaseAction.WAIT),
]


@pytest.mark.parametrize(
    ("holder", "duration", "unchanged", "is_leading", "want"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_judge_lease(holder: str, duration: float, unchanged: float, is_leading: bool, want: LeaseAction) -> None:
    """K-059: no clock of another machine is asked."""
    seen = SeenLease(holder=holder, duration_seconds=duration, unchanged_seconds=unchanged)
    assert judge_lease(seen, identity="me", is_leading=is_leading) is want


@pytest.mark.parametrize(("transitions", "known", "want"), [(0, 0, 1), (4, 2, 5), (0, 7, 8), (7, 7, 8)])
def test_every_acquisition_is_above_every_epoch_known(transitions: int, known: int, want: int) -> None:
    """R33, P16: also where the Lease was made anew."""
    assert next_epoch(lease_transitions=transitions, highest_known=known) == want
