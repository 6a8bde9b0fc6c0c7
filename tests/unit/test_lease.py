"""Who may lead."""

from __future__ import annotations

import pytest

from workflow_schedules.app.main import fresh_identity
from workflow_schedules.app.settings import SettingsError, read_settings
from workflow_schedules.core.lease import SeenLease, may_acquire, next_epoch

CASES = [
    ("P16: a lease in one's own name is acquired anew", "me", 15, 0, True),
    ("R34: a released lease is free at once", "", 15, 0, True),
    ("R34: another's is waited for", "other", 15, 14.9, False),
    ("R34: and taken when it has not changed for its duration", "other", 15, 15, True),
    ("K-060: the duration is the holder's own", "other", 30, 29, False),
]


@pytest.mark.parametrize(
    ("holder", "duration", "unchanged", "want"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_who_may_acquire(holder: str, duration: float, unchanged: float, want: bool) -> None:
    """K-059: no clock of another machine is asked."""
    seen = SeenLease(holder=holder, duration_seconds=duration, unchanged_seconds=unchanged)
    assert may_acquire(seen, identity="me") is want


EPOCHS = [
    (0, 0, 1),
    (4, 2, 5),
    (0, 7, 8),
    (7, 7, 8),
    (2**31 - 2, 0, 2**31 - 1),
    (2**31 - 1, 0, None),
    (0, 2**31 - 1, None),
]


@pytest.mark.parametrize(("transitions", "known", "want"), EPOCHS)
def test_every_acquisition_is_above_every_epoch_known(transitions: int, known: int, want: int | None) -> None:
    """R33, P16: also where the Lease was made anew; none where the API server could not store a higher one."""
    assert next_epoch(lease_transitions=transitions, highest_known=known) == want


def test_an_identity_is_fresh_per_process() -> None:
    """P16: a container that is restarted in the same Pod is another writer."""
    settings = read_settings({"POD_UID": "pod"})
    one, other = fresh_identity(settings), fresh_identity(settings)
    assert one.startswith("pod_")
    assert other.startswith("pod_")
    assert one != other


TIMES = [
    ("P1: a name is not freed while a late write may use it", {"NAME_KEPT_SECONDS": "105"}, "NAME_KEPT_SECONDS"),
    ("P1: nor with a longer lease", {"LEASE_DURATION_SECONDS": "90"}, "NAME_KEPT_SECONDS"),
    ("R34: nobody writes when another may lead", {"RENEW_DEADLINE_SECONDS": "15"}, "RENEW_DEADLINE_SECONDS"),
    ("R34: there is time for a second try", {"RETRY_SECONDS": "10"}, "RETRY_SECONDS"),
]


@pytest.mark.parametrize(("values", "named"), [row[1:] for row in TIMES], ids=[row[0] for row in TIMES])
def test_times_that_would_break_a_guarantee_are_refused(values: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=f"WORKFLOW_SCHEDULES_{named}"):
        read_settings({f"WORKFLOW_SCHEDULES_{name}": value for name, value in values.items()})
