"""Names on the wire. The tables pin values: the naming function never changes for an existing schedule (P18)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_schedules.api import names

UID = "3f0c1d2e-0000-4000-8000-000000000001"
HASH = "1a6d4e10"
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
DNS_SUBDOMAIN = st.from_regex(r"\A[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?){0,9}\Z")

RECORD_NAMES = [
    ("short", "hello", 1, f"hello-{HASH}-000000001"),
    ("dots become dashes", "a.b.c", 12, f"a-b-c-{HASH}-000000012"),
    ("a digit first", "0day", 0, f"0day-{HASH}-000000000"),
    ("cut at 33", "x" * 40, 999_999_999, f"{'x' * 33}-{HASH}-999999999"),
    ("no dash left at the cut", "y" * 30 + "---z", 7, f"{'y' * 30}-{HASH}-000000007"),
    ("no dot left at the cut", "y" * 31 + "..z", 7, f"{'y' * 31}-{HASH}-000000007"),
]


@pytest.mark.parametrize(("schedule", "sequence", "want"), [row[1:] for row in RECORD_NAMES], ids=lambda v: str(v)[:20])
def test_record_name_is_pinned(schedule: str, sequence: int, want: str) -> None:
    assert names.record_name(schedule, UID, sequence) == want


@given(schedule=DNS_SUBDOMAIN, uid=st.uuids(), sequence=st.integers(0, names.SEQUENCE_MAX))
def test_record_name_is_a_dns_label_of_reserved_shape(schedule: str, uid: object, sequence: int) -> None:
    name = names.record_name(schedule, str(uid), sequence)
    assert len(name) <= 52
    assert DNS_LABEL.fullmatch(name)
    assert re.search(names.RESERVED_NAME_PATTERN, name)
    assert name.startswith(names.record_prefix(schedule, str(uid)))


@given(low=st.integers(0, names.SEQUENCE_MAX - 1))
def test_records_list_oldest_first(low: int) -> None:
    """R8: names end in a fixed-width number."""
    assert names.record_name("s", UID, low) < names.record_name("s", UID, low + 1)


def test_a_new_uid_never_meets_the_old_names() -> None:
    """R20: a new schedule of the same name is a new identity."""
    assert names.record_name("s", UID, 1) != names.record_name("s", UID[:-1] + "2", 1)


@pytest.mark.parametrize("sequence", [-1, names.SEQUENCE_MAX + 1])
def test_a_number_that_does_not_fit_is_an_error(sequence: int) -> None:
    with pytest.raises(ValueError, match="want 0 to 999999999"):
        names.record_name("s", UID, sequence)


@pytest.mark.parametrize(
    ("name", "shaped"),
    [
        ("hello-0123abcd-000000001", True),
        ("-0123abcd-000000001", True),
        ("hello-0123abcd-00000001", False),
        ("hello-0123abcd-0000000001", False),
        ("hello-0123abcg-000000001", False),
        ("hello-0123ABCD-000000001", False),
        ("hello-0123abcd-000000001-x", False),
        ("cronjob-29384756", False),
    ],
)
def test_reserved_shape(name: str, shaped: bool) -> None:
    assert bool(re.search(names.RESERVED_NAME_PATTERN, name)) is shaped


def test_label_value_is_the_name_up_to_63_characters() -> None:
    """R22."""
    assert names.label_value("a" * 63) == "a" * 63
    assert names.label_value("a" * 64) == "a" * 54 + "-ffe054fe"
    assert names.label_value("a" * 53 + "." + "b" * 20) == "a" * 53 + "-faf921a0"


@given(name=DNS_SUBDOMAIN)
def test_label_value_is_always_valid(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", names.label_value(name))


def test_compact_utc() -> None:
    assert names.compact_utc(datetime(2026, 1, 1, tzinfo=UTC)) == "20260101T000000Z"
    assert names.compact_utc(datetime(2026, 1, 1, 2, 3, 4, 999_999, timezone(timedelta(hours=8)))) == "20251231T180304Z"
    assert names.compact_utc(datetime(7, 1, 1, tzinfo=UTC)) == "00070101T000000Z"
