"""Which part of a log counts, and the first thing that is wrong there."""

from __future__ import annotations

import pytest

from support.builders import a_record, an_admission, listed
from workflow_schedules.core.listed import Listed, first_problem, in_force


def name(number: int) -> str:
    return a_record(number).ref.name


FIRST, BAD = listed(a_record(1)), listed(a_record(2), is_readable=False)
FORGED, BEGIN = listed(a_record(2), previous="x"), listed(a_record(3, reason="Unblocked"))
READ, BREAK = f"record {name(2)} can't be read", f"record {name(2)} does not follow {name(1)}"
PROBLEMS = [
    ("nothing is listed", [], None),
    ("each follows the one before", [FIRST, listed(a_record(2))], None),
    ("one can't be read", [FIRST, BAD, listed(a_record(3))], (name(2), READ)),
    ("one does not follow", [FIRST, FORGED], (name(2), BREAK)),
    ("what lies between was pruned", [FIRST, listed(a_record(5), previous="x")], None),
    ("P8 what a Baseline set aside is no problem any more", [FIRST, BAD, BEGIN], None),
    ("nor however it is listed", [BEGIN, BAD, FIRST], None),
]


@pytest.mark.parametrize(("log", "want"), [row[1:] for row in PROBLEMS], ids=[row[0] for row in PROBLEMS])
def test_the_first_problem_in_force(log: list[Listed], want: tuple[str, str] | None) -> None:
    """R31 P8."""
    assert first_problem(log) == want


AGAIN = listed(a_record(5, reason="Unblocked"))
IN_FORCE = [
    ("nothing", [], []),
    ("all, oldest first", [BAD, FIRST], [FIRST, BAD]),
    ("from the Baseline on that began anew", [FIRST, BAD, BEGIN], [BEGIN]),
    ("from the newest of two", [FIRST, BEGIN, AGAIN], [AGAIN]),
    ("no other record begins anew, whatever its reason", [FIRST, listed(an_admission(2, reason="Unblocked"))],
     [FIRST, listed(an_admission(2, reason="Unblocked"))]),
    ("nor a Baseline of another reason", [FIRST, listed(a_record(2, reason="Edited"))],
     [FIRST, listed(a_record(2, reason="Edited"))]),
]  # fmt: skip


@pytest.mark.parametrize(("log", "want"), [row[1:] for row in IN_FORCE], ids=[row[0] for row in IN_FORCE])
def test_the_part_in_force(log: list[Listed], want: list[Listed]) -> None:
    """R31 P8: what is wrong below the newest Baseline that begins anew was set aside."""
    assert in_force(log) == want
