"""Zones come from the bundled tzdata alone, and their stretches tile time."""

from __future__ import annotations

import importlib.resources
import struct
import zoneinfo
from itertools import pairwise

import pytest

from workflow_schedules.core import zones
from workflow_schedules.core.zones import UnknownTimeZoneError, load_zone, offset_at, stretches, zone_names


@pytest.mark.parametrize(
    "name",
    [
        "Mars/Olympus", "GMT+5", "", "America/New_York\n", "America/New_York ", " UTC", "/etc/localtime", "UTC\0",
        "leapseconds", "zone.tab", "america/new_york", "posixrules", "localtime", "Factory", "posix/America/New_York",
        "America", "America/", "../UTC", "America/../UTC", "__init__.py",
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_zone_of_the_bundled_data_is_refused(name: str) -> None:
    """R6, K-012, K-020."""
    with pytest.raises(UnknownTimeZoneError):
        load_zone(name)


@pytest.mark.parametrize(
    ("name", "offset"),
    [("CET", 3600), ("Asia/Calcutta", 19800), ("Etc/GMT-1", 3600), ("UTC", 0), ("US/Eastern", -18000)],
)
def test_links_and_inverted_signs_are_read(name: str, offset: int) -> None:
    """K-015: in Etc names the sign is inverted."""
    assert offset_at(load_zone(name), 1_767_225_600) == offset  # 2026-01-01


def test_every_zone_of_the_bundled_data_loads() -> None:
    """K-012."""
    assert len(zone_names()) > 500
    for name in zone_names():
        assert load_zone(name).key == name


def test_neither_tz_nor_system_files_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """R6, K-014."""
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    zoneinfo.reset_tzpath(to=[])
    try:
        load_zone.cache_clear()
        assert offset_at(load_zone("America/Vancouver"), 1_795_910_400) == -7 * 3600  # 2026-11-29: stays on summer time
    finally:
        zoneinfo.reset_tzpath()


def test_no_two_changes_lie_within_one_probe() -> None:
    """zones._PROBE_SECONDS: a change and its undoing inside one probe would be overlooked. Read from the data's own tables."""
    closest = min(
        later - earlier
        for name in zone_names()
        for earlier, later in pairwise(changes_in_table(name))
        if later > -(2**31)
    )
    assert closest > zones._PROBE_SECONDS


@pytest.mark.parametrize(
    "name", ["America/New_York", "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Gaza"]
)
def test_stretches_tile_time_and_know_every_change_of_the_table(name: str) -> None:
    zone = load_zone(name)
    found = [
        stretch
        for year in range(1990, 2038)
        for month in range(1, 13)
        for stretch in stretches(zone, year=year, month=month)
    ]
    assert all(before.end == after.begin for before, after in pairwise(found))
    for stretch in found:
        assert offset_at(zone, stretch.begin) == offset_at(zone, stretch.end - 1) == stretch.offset
    changes = {after.begin for before, after in pairwise(found) if before.offset != after.offset}
    table = changes_in_table(name)
    assert {at for at in changes if at <= table[-1]} == {at for at in table if found[0].end <= at < found[-1].end}


def test_a_month_is_cut_where_its_offset_changes() -> None:
    """Almaty left its offset with the end of February 2024, in local time."""
    before, after = stretches(load_zone("Asia/Almaty"), year=2024, month=2)
    assert (before.offset, after.offset, after.previous_offset) == (6 * 3600, 5 * 3600, 6 * 3600)
    assert before.end == after.begin == 1709229600
    (utc,) = stretches(load_zone("UTC"), year=2024, month=2)
    assert (utc.begin, utc.end, utc.offset, utc.previous_offset) == (1706745600, 1709251200, 0, 0)


def changes_in_table(name: str) -> list[int]:
    """Return the UTC seconds in which the zone's offset changes, from the 64-bit table of its TZif file."""
    data = importlib.resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).read_bytes()
    isut, isstd, leap, count, types, chars = struct.unpack(">6l", data[20:44])
    start = 44 + count * 5 + types * 6 + chars + leap * 8 + isstd + isut
    count, types = struct.unpack(">2l", data[start + 32 : start + 40])
    start += 44
    times = struct.unpack(f">{count}q", data[start : start + 8 * count])
    kinds = data[start + 8 * count : start + 9 * count]
    offsets = [
        struct.unpack(">l", data[at : at + 4])[0] for at in range(start + 9 * count, start + 9 * count + 6 * types, 6)
    ]
    before, found = offsets[0], []
    for at, kind in zip(times, kinds, strict=True):
        if offsets[kind] != before:
            found.append(at)
            before = offsets[kind]
    return found
