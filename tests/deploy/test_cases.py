"""Every rule of the contract is cited by a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
TEXTS = {
    path.relative_to(TESTS): path.read_text()
    for suffix in ("py", "yaml")
    for path in sorted(TESTS.rglob(f"*.{suffix}"))
    if path != Path(__file__).resolve()
}
RULES = [number for number in range(1, 36) if number != 15]  # 15 is not used
CASE = re.compile(r"\bK-\d+")


def test_there_are_tests_to_look_into() -> None:
    assert {path.parts[0] for path in TEXTS} >= {"unit", "timeline", "integration", "deploy"}


@pytest.mark.parametrize("number", RULES, ids=lambda number: f"R{number}")
def test_every_rule_is_cited_where_a_test_can_fail(number: int) -> None:
    """A rule that is mentioned in support code only is held by nobody."""
    cited = re.compile(rf"\bR{number}\b")
    assert [path for path, text in TEXTS.items() if path.name.startswith("test_") and cited.search(text)]


def test_cases_are_cited_by_three_digits() -> None:
    """So that a search for one finds it."""
    odd = {found for text in TEXTS.values() for found in CASE.findall(text) if not re.fullmatch(r"K-\d{3}", found)}
    assert odd == set()
