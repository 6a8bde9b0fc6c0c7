"""docs/reference.md lists every word that the operator writes for people, and no other one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from workflow_schedules.api.occurrence import Cause, Decision, Outcome
from workflow_schedules.api.schedule import State
from workflow_schedules.core import events, status

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "operator" / "workflow_schedules"
PAGE = (ROOT / "docs" / "reference.md").read_text()
WORD = re.compile(r"(?:[A-Z][a-z]+)+")

WRITERS = [
    *(path for path in sorted((SOURCE / "core").glob("*.py")) if path.stem != "history_pages"),  # no verb shows it yet
    SOURCE / "cluster" / "kept.py",
    SOURCE / "scheduler" / "definitions.py",
    SOURCE / "scheduler" / "history_sweep.py",
]
NO_REASONS = {
    *("Accept", "Check", "CreateJob", "Skip", "Watch"),  # actions of Events
    *("Factory", "Job", "True"),  # a zone of tzdata, a kind, a condition's status
}
COLUMNS = {"state", "condition", "reason", "cause", "decision", "outcome"}

Row = dict[str, str]


def tables(section: str) -> Iterator[Row]:
    """Yield the rows of a section's tables, by header."""
    header: list[str] = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            header = []
        elif not header:
            header = cells
        elif not line.startswith("| ---"):
            assert len(cells) == len(header), line
            yield dict(zip(header, cells, strict=True))


SECTIONS = {text.partition("\n")[0]: list(tables(text)) for text in PAGE.split("\n## ")[1:]}
ROWS = [row for rows in SECTIONS.values() for row in rows]


def words(cell: str) -> list[str]:
    return [word for word in re.findall(r"`([^`]+)`", cell) if WORD.fullmatch(word)]


def literals(path: Path) -> Iterator[str]:
    """Yield the words in a file, but for the members of its own enums."""

    class Visitor(ast.NodeVisitor):
        def __init__(self) -> None:
            self.found: list[str] = []

        def visit_ClassDef(self, node: ast.ClassDef) -> None:
            if not any(isinstance(base, ast.Name) and base.id == "StrEnum" for base in node.bases):
                self.generic_visit(node)

        def visit_Constant(self, node: ast.Constant) -> None:
            if isinstance(node.value, str) and WORD.fullmatch(node.value):
                self.found.append(node.value)

    visitor = Visitor()
    visitor.visit(ast.parse(path.read_text()))
    return iter(visitor.found)


def test_every_word_is_on_the_page_and_no_other() -> None:
    """R29, R32, R36: what people read in a status has a place where its meaning stands."""
    written = {word for path in WRITERS for word in literals(path)}
    assert written >= NO_REASONS, "an exception that is none"
    known = written - NO_REASONS | {str(one) for kind in (State, Cause, Decision, Outcome) for one in kind}
    shown = {word for row in ROWS for name in COLUMNS & row.keys() for word in words(row[name])}
    assert shown == known


@pytest.mark.parametrize(
    ("section", "column", "kind"),
    [
        ("States of a schedule", "state", State),
        ("Causes of a record", "cause", Cause),
        ("Decisions", "decision", Decision),
        ("Outcomes of a run", "outcome", Outcome),
    ],
)
def test_a_table_has_each_of_its_kind(
    section: str, column: str, kind: type[State | Cause | Decision | Outcome]
) -> None:
    assert {word for row in SECTIONS[section] for word in words(row[column])} == set(map(str, kind))


def test_finals_are_the_last_four_outcomes() -> None:
    shown = [Outcome(words(row["outcome"])[0]) for row in SECTIONS["Outcomes of a run"]]
    assert [one.is_final for one in shown] == [False, False, True, True, True, True]


def constants(module: object, *names: str) -> Iterator[list[object]]:
    """Yield what the tuples in functions of a module say, as far as it stands there; None for what doesn't."""
    tree = ast.parse(Path(str(getattr(module, "__file__", ""))).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and (not names or node.name in names)]
    for node in (each for function in functions for each in ast.walk(function) if isinstance(each, ast.Tuple)):
        yield [_value(element, module) for element in node.elts]


def _value(node: ast.expr, module: object) -> object:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return getattr(module, name, None)
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return getattr(getattr(module, owner, None), name, None)
        case _:
            return None


def test_conditions_of_a_schedule_have_the_reasons_and_the_status_that_they_have() -> None:
    found = {
        (kind, str(is_true), reason)
        for kind, is_true, reason, *_ in (row for row in constants(status) if len(row) == 4)
        if isinstance(kind, str) and isinstance(is_true, bool) and isinstance(reason, str)
    }
    assert len(found) >= 10
    shown = {
        (kind, row["status"], reason)
        for row in SECTIONS["Conditions of a schedule"]
        for kind in words(row["condition"])
        for reason in words(row["reason"])
    }
    assert found <= shown
    for kind, usual in {"Accepted": "True", "RunsHealthy": "True", "Paused": "False", "Complete": "False"}.items():
        assert {row for row in shown if row[:2] == (kind, usual)} == {row for row in found if row[:2] == (kind, usual)}


def test_events_have_the_type_and_the_level_that_they_have() -> None:
    found = {
        (reason, "Warning" if is_warning else "Normal", "Problems" if is_problem else "All")
        for reason, _, _, is_problem, is_warning in (row for row in constants(events) if len(row) == 5)
        if isinstance(reason, str) and isinstance(is_problem, bool) and isinstance(is_warning, bool)
    }
    assert len(found) >= 5
    rows = SECTIONS["Events"]
    assert found <= {(reason, row["type"], words(row["with"])[0]) for row in rows for reason in words(row["reason"])}
