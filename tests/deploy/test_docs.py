"""What is written for users is what the tests hold the operator to."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from unit.decision_table import SITUATIONS
from workflow_schedules.api.common import parse_utc
from workflow_schedules.api.definition import WorkflowDefinitionSpec
from workflow_schedules.api.occurrence import Cause, ScheduleOccurrenceSpec
from workflow_schedules.api.schedule import OccurrenceField, WorkflowScheduleSpec
from workflow_schedules.app.settings import PREFIX
from workflow_schedules.cli.main import main
from workflow_schedules.core.due_times import parse_cron
from workflow_schedules.core.inputs import OccurrenceFacts, input_text, resolve_input
from workflow_schedules.core.triggers import InvalidTriggerError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "hack"))

from docs_lib.decisions import page  # noqa: E402 - found by now

README = (ROOT / "README.md").read_text()
DECISIONS = (ROOT / "docs" / "decisions.md").read_text()
GUIDE = (ROOT / "docs" / "guide.md").read_text()
GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text()
CRD = (ROOT / "crds" / "workflowschedules.yaml").read_text()


def test_the_page_of_decisions_is_the_table() -> None:
    assert page(SITUATIONS, CRD) == DECISIONS, "run hack/update"


def test_every_row_that_is_there_is_on_the_page_and_no_other() -> None:
    rows = [row for situation in SITUATIONS for row in situation.rows]
    shown = [line for line in DECISIONS.splitlines() if line.startswith("| ") and line.count(" | ") == 2]
    assert len(shown) == len(rows) + 2 * DECISIONS.count("| case |")


def test_links_of_fields_lead_to_their_lines() -> None:
    links = re.findall(r"\[`(\w+)(?:: \w+)?`\]\(\.\./crds/workflowschedules\.yaml#L(\d+)\)", DECISIONS)
    assert {"misfirePolicy", "maxActiveRuns", "startingDeadlineSeconds", "excludeDates"} <= {name for name, _ in links}
    lines = CRD.splitlines()
    assert all(lines[int(number) - 1].strip() == f"{name}:" for name, number in links)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKS = [
    pytest.param(page, link, id=f"{page.name} {link}")
    for page in PAGES
    for link in sorted(set(re.findall(r"\]\(([^)\s]+)\)", page.read_text())))
    if not link.startswith("http")
]


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_a_link_leads_somewhere(page: Path, link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    assert target.exists()
    assert not anchor or target.suffix != ".md" or anchor in anchors(target)


def test_the_guide_names_every_field_and_every_setting() -> None:
    kinds = (WorkflowScheduleSpec, WorkflowDefinitionSpec)
    fields = {field.alias for kind in kinds for field in kind.model_fields.values()}
    named = set(re.findall(r"`([A-Za-z]+)[`.:]", GUIDE))
    assert fields <= named | {"input"}, fields - named
    settings = (ROOT / "operator" / "workflow_schedules" / "app" / "settings.py").read_text()
    found = re.findall(r'environment, "([A-Z_]+)"|PREFIX\}([A-Z_]+)"', settings)
    variables = {PREFIX + name for pair in found for name in pair if name}
    assert variables
    assert variables <= set(re.findall(r"`(WORKFLOW_SCHEDULES_[A-Z_]+)`", GUIDE))


CITED = [
    (path, name)
    for path, names in re.findall(r"\]\(\.\./(tests/\S+\.py)\)((?:,?\s+`test_\w+`)+)", GUARANTEES)
    for name in re.findall(r"`(test_\w+)`", names)
]


def test_every_guarantee_has_a_limit_a_mechanism_and_a_proof() -> None:
    sections = GUARANTEES.split("\n## ")[1:]
    assert len(sections) >= 10
    for section in sections:
        parts = re.findall(r"^\*\*(Promised|Not promised|How|Shown by)\b", section, re.MULTILINE)
        assert parts == ["Promised", "Not promised", "How", "Shown by"], section.splitlines()[0]
        assert re.search(r"\*\*Shown by\*\*\n\[", section), section.splitlines()[0]
    assert len(CITED) == len(re.findall(r"`test_\w+`", GUARANTEES)), "each in the form that is looked for here"
    assert "guarantees.md" in README
    assert "guarantees.md" in GUIDE


@pytest.mark.parametrize(("path", "name"), CITED, ids=[name for _, name in CITED])
def test_the_proof_of_a_guarantee_exists(path: str, name: str) -> None:
    text = (ROOT / path).read_text()
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{path} has no {name}"


def test_the_manifest_of_the_guide_is_a_request() -> None:
    shown = re.search(r"```yaml\n(apiVersion.*?)```", GUIDE, re.DOTALL)
    assert shown is not None
    body = yaml.safe_load(shown[1])
    spec = ScheduleOccurrenceSpec.model_validate(body["spec"])
    assert (body["kind"], spec.cause, spec.schedule_ref.name) == ("ScheduleOccurrence", "Manual", "nightly-report")


def test_the_input_of_the_guide_is_what_a_run_gets() -> None:
    """The bindings that it shows, what it says they give, and each field that there is."""
    shown = re.search(r"```yaml\n(  input:.*?)```\n\ngives a run `([^`]+)`", GUIDE, re.DOTALL)
    assert shown is not None
    manifest = yaml.safe_load(shown[1])
    gives = json.loads(shown[2])
    spec = WorkflowScheduleSpec.model_validate(manifest)
    facts = OccurrenceFacts(
        scheduled_time=parse_utc(gives["until"]),
        name="nightly-report-00000000-000000002",
        schedule_name="nightly-report",
        revision=1,
        cause=Cause.SCHEDULED,
        last_successful_time=parse_utc(gives["since"]),
    )
    resolved = resolve_input(spec.input, spec.input_from, facts)
    assert resolved is not None
    assert input_text(resolved) == shown[2]
    table = GUIDE.partition("| `occurrenceField` |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(OccurrenceField)


def first_cells(header: str) -> list[str]:
    """Return what is in backquotes in the first column of a table of the guide."""
    table = GUIDE.partition(f"\n| {header} |")[2].partition("\n\n")[0]
    return [text for line in table.splitlines()[2:] for text in re.findall(r"`([^`]+)`", line.split(" | ")[0])]


def is_read(expression: str) -> bool:
    try:
        parse_cron(expression, "UTC")
    except InvalidTriggerError:
        return False
    return True


def test_cron_expressions_are_read_as_the_guide_says() -> None:
    """R5."""
    items, refused = first_cells("item"), first_cells("refused")
    assert len(items) > 8
    assert len(refused) > 10
    for item in items:
        places = [" ".join(item if number == place else "*" for number in range(5)) for place in range(5)]
        assert any(map(is_read, places)), item
    assert [text for text in refused if " " in text or text.startswith("@") if is_read(text)] == []


def test_the_simulation_of_the_readme_is_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first manifest of the README, and the command and output that it shows."""
    monkeypatch.chdir(tmp_path)
    manifest = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    shown = re.search(r"^\$ kubectl wfs (simulate (?:[^\n]*\\\n)*[^\n]*)\n(.*?)```", README, re.DOTALL | re.MULTILINE)
    assert manifest is not None
    assert shown is not None
    Path("nightly-report.yaml").write_text(manifest[1])
    command = shown[1].replace("\\\n", " ")
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == shown[2]
