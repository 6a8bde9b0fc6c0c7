"""`kubectl wfs simulate`, as its users call it: what it refuses and warns of, the files it reads, how fast it answers."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from workflow_schedules.api.common import wire_name
from workflow_schedules.api.definition import WorkflowDefinitionSpec
from workflow_schedules.api.schedule import WorkflowScheduleSpec
from workflow_schedules.cli.main import main

TEMPLATE = {
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}}
}
FROM, TO = ("--from", "2026-03-06T10:00:00Z"), ("--to", "2026-03-06T10:02:00Z")
SPAN = (*FROM, *TO)
AT_THE_END = "at --to: "  # what is open then is told in test_cli_simulate_runs


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("wfs.yaml", a_manifest())
    Path("failed.yaml").write_text("- {seconds: 5, outcome: Failed}")


def a_manifest(name: str = "nightly", **fields: object) -> dict[str, Any]:
    spec = {
        "schedule": "* * * * *",
        "enabled": True,
        **({} if "workflowRef" in fields else {"jobTemplate": TEMPLATE}),
        **fields,
    }
    return {
        "apiVersion": "workflow-schedules.dev/v1alpha1",
        "kind": "WorkflowSchedule",
        "metadata": {"name": name},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def a_definition(**fields: object) -> dict[str, Any]:
    return {**a_manifest("report"), "kind": "WorkflowDefinition", "spec": {"jobTemplate": TEMPLATE, **fields}}


def write(name: str, *objects: dict[str, Any]) -> None:
    Path(name).write_text("\n---\n".join(json.dumps(one) for one in objects))


def run(
    capsys: pytest.CaptureFixture[str], *arguments: str, file: str = "wfs.yaml"
) -> tuple[list[dict[str, Any]], str]:
    assert main(["simulate", "-f", file, *arguments, "-o", "json"]) == 0
    told = capsys.readouterr()
    return json.loads(told.out), "".join(
        line for line in told.err.splitlines(keepends=True) if not line.startswith(AT_THE_END)
    )


def decisions(rows: list[dict[str, Any]]) -> list[str]:
    return [f"{row['decision']} {row['scheduledTime'][11:16]}" for row in rows]


REFUSED = [
    ("an end before the beginning", (*TO, "--from", "2026-03-06T10:03:00Z"), 1, "--to: 2026-03-06T10:02:00Z is before --from"),
    ("an outage that ends before it starts", (*SPAN, "--outage", "2026-03-06T10:02:00Z..2026-03-06T10:01:00Z"), 1,
     "--outage: 2026-03-06T10:02:00Z..2026-03-06T10:01:00Z does not end after it starts"),
    ("an edit before the beginning", (*SPAN, "--edit", "2026-03-06T10:00:00Z=wfs.yaml"), 1,
     "--edit: 2026-03-06T10:00:00Z is not after --from"),
    ("two edits at one time", (*SPAN, *(2 * ("--edit", "2026-03-06T10:01:00Z=wfs.yaml"))), 1, "two edits at one time"),
    ("an edit of a file that is not there", (*SPAN, "--edit", "2026-03-06T10:01:00Z=no.yaml"), 1, "no.yaml: can't be read"),
    ("more than it answers in time", (*FROM, "--to", "2036-03-06T10:00:00Z"), 1, "5260320 instants until 2036"),
    ("runs of a file without a name", (*SPAN, "--runs", ""), 1, "'' is no name of a file; write a path"),
    ("no span", (*SPAN, "--outage", "2026-03-06T10:01:00Z"), 2, "write A..B"),
    ("a time without an offset", (*SPAN, "--pause", "2026-03-06T10:01:00..2026-03-06T10:02:00Z"), 2, "explicit offset"),
    ("no edit", (*SPAN, "--edit", "2026-03-06T10:01:00Z"), 2, "write T=FILE"),
    ("runs of less than no time", (*SPAN, "--run-seconds", "-1"), 2, "--run-seconds"),
    ("two ways to say how long runs take", (*SPAN, "--run-seconds", "1", "--runs", "x"), 2, "not allowed with"),
    ("no beginning", TO, 2, "--from"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "status", "want"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_arguments_that_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], status: int, want: str
) -> None:
    """R36: for people and for programs, and never a part of an answer."""
    assert main(["simulate", "-f", "wfs.yaml", *arguments]) == status
    told = capsys.readouterr()
    assert (told.out, want in told.err) == ("", True), told.err
    assert main(["simulate", "-f", "wfs.yaml", *arguments, "-o", "json"]) == status
    detail = json.loads(capsys.readouterr().out)["detail"]
    assert set(detail) == {"error", "message"}
    assert want in detail["message"]


BAD_RUNS = [
    ("no list", "seconds: 5", 'runs.yaml: runs: {"seconds": 5}, which is no list of runs; write entries such as'),
    ("empty", "", "runs.yaml: runs: nothing, which is no list of runs"),
    ("null", "null", "runs.yaml: runs: nothing, which is no list of runs"),
    ("a list without entries", "[]", "runs.yaml: runs: [], which is no list of runs"),
    (
        "two lists",
        "- {seconds: 5}\n---\n- {seconds: 6}",
        "runs.yaml: runs: several documents, which is no list of runs",
    ),
    ("no entry", "- 5", "runs[0]: 5 is no run"),
    ("no length", "- {outcome: Failed}", "runs[0].seconds: null is no length of a run; write 0 to"),
    (
        "a length that is null",
        "- {seconds: null, outcome: Failed}",
        "runs[0].seconds: null is no length of a run; write 0 to",
    ),
    (
        "an outcome that is a list",
        "- {seconds: 1, outcome: [Failed]}",
        'runs[0].outcome: ["Failed"] is unknown; write one of',
    ),
    ("an entry that is null", "- null", "runs[0]: null is no run; write an entry such as"),
    ("a length of text", "- {seconds: 5}\n- {seconds: long}", "runs.yaml:2: runs[1].seconds: 'long'"),
    (
        "an outcome that nothing has",
        "- {seconds: 5, outcome: Lost}",
        "runs[0].outcome: 'Lost' is unknown; write one of Completed",
    ),
    ("a time that is none", "- {seconds: 5, scheduledTime: today}", "runs[0].scheduledTime: 'today'"),
    (
        "a field that is none",
        "- {second: 5}",
        "runs[0].second: no such field; there are seconds, outcome, scheduledTime",
    ),
]


@pytest.mark.parametrize(("text", "want"), [row[1:] for row in BAD_RUNS], ids=[row[0] for row in BAD_RUNS])
def test_runs_that_are_refused(capsys: pytest.CaptureFixture[str], text: str, want: str) -> None:
    """R36: file, line, field, value, and what would do."""
    Path("runs.yaml").write_text(text)
    assert main(["simulate", "-f", "wfs.yaml", *SPAN, "--runs", "runs.yaml"]) == 1
    told = capsys.readouterr()
    assert (told.out, want in told.err) == ("", True), told.err


def test_a_run_by_its_instant_takes_no_turn(capsys: pytest.CaptureFixture[str]) -> None:
    runs = '- {seconds: 10}\n- {scheduledTime: "2026-03-06T11:01:00+01:00", seconds: 70}\n- {seconds: 20, outcome: Failed}\n'
    Path("runs.yaml").write_text(runs)
    rows, _ = run(capsys, *FROM, "--to", "2026-03-06T10:06:30Z", "--runs", "runs.yaml")
    ends = [
        (row["scheduledTime"][11:16], row["completionTime"][11:19], row["outcome"]) for row in rows if row["outcome"]
    ]
    assert ends == [
        ("10:01", "10:02:10", "Completed"),
        ("10:03", "10:03:10", "Completed"),
        ("10:04", "10:04:20", "Failed"),
        ("10:05", "10:05:20", "Failed"),
        ("10:06", "10:06:20", "Failed"),
    ]


@pytest.mark.parametrize("entry", ["{outcome: Running}", "{seconds: null, scheduledTime: null, outcome: Running}"])
def test_a_run_that_never_ends(capsys: pytest.CaptureFixture[str], entry: str) -> None:
    """What is null is left out."""
    Path("runs.yaml").write_text(f"- {{seconds: 5, outcome: null}}\n- {entry}\n")
    rows, _ = run(capsys, *FROM, "--to", "2026-03-06T10:02:30Z", "--runs", "runs.yaml")
    assert [(row["outcome"], row["completionTime"]) for row in rows] == [
        ("Completed", "2026-03-06T10:01:05Z"),
        (None, None),
    ]


WARNED = [
    ("born disabled", [a_manifest(enabled=None)], "spec.enabled is not true; taken as true"),
    ("disabled", [a_manifest(enabled=False)], "spec.enabled is not true; taken as true"),
    ("a parent elsewhere", [a_manifest(workflowRef={"name": "report"})],
     "spec.workflowRef.name: WorkflowDefinition report is not in the file; taken as there and enabled"),
    ("jitter", [a_manifest(maxJitterSeconds=1)], "spec.maxJitterSeconds"),
    ("both day fields", [a_manifest(schedules=["* * * * *", "0 0 13 * 5"], schedule=None)], "restricts both"),
]  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), [row[1:] for row in WARNED], ids=[row[0] for row in WARNED])
def test_what_is_warned_of(capsys: pytest.CaptureFixture[str], objects: list[dict[str, Any]], want: str) -> None:
    """Warnings go to stderr, also with -o json, and keep nothing from being answered."""
    write("other.yaml", *objects)
    rows, told = run(capsys, *FROM, "--to", "2026-03-06T10:02:30Z", file="other.yaml")
    assert decisions(rows) == ["Admitted 10:01", "Admitted 10:02"]
    assert told.startswith("warning: ")
    assert want in told


def test_a_parent_in_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """R1, R4: held while it is off; an edit that does not repeat it leaves it as it was."""
    child = a_manifest(workflowRef={"name": "report"})
    write("both.yaml", a_definition(), child)
    assert decisions(run(capsys, *SPAN, file="both.yaml")[0]) == ["Admitted 10:01", "Admitted 10:02"]
    write("off.yaml", child, a_definition(enabled=False))
    rows, told = run(capsys, *SPAN, file="off.yaml")
    assert (rows, "WorkflowDefinition report has enabled: false; it holds the schedule" in told) == ([], True)
    write("child.yaml", a_manifest(workflowRef={"name": "report"}, input={"env": "staging"}))
    rows, told = run(capsys, *SPAN, "--edit", "2026-03-06T10:01:30Z=child.yaml", file="off.yaml")
    assert (rows, "is not in the file" in told) == ([], False)


def test_a_parent_that_is_left_and_taken_again(capsys: pytest.CaptureFixture[str]) -> None:
    """P5: its generation goes on counting, as an API server's does."""
    child = a_manifest(workflowRef={"name": "report"})
    write("both.yaml", a_definition(), child)
    write("changed.yaml", a_definition(description="longer"), child)
    edits = {"10:01:30": "changed.yaml", "10:02:30": "wfs.yaml", "10:03:30": "changed.yaml"}
    flags = [flag for at, file in edits.items() for flag in ("--edit", f"2026-03-06T{at}Z={file}")]
    rows, _ = run(capsys, *FROM, "--to", "2026-03-06T10:04:00Z", "--run-seconds", "5", *flags, file="both.yaml")
    assert decisions(rows) == ["Admitted 10:01", "Admitted 10:02", "Admitted 10:03", "Admitted 10:04"]


DOWN = ("--outage", "2026-03-06T10:01:30Z..2026-03-06T10:05:20Z")
STAGING, OFF = a_manifest(input={"env": "staging"}), a_manifest(enabled=False)
ALL_BUT_02 = [f"Admitted 10:0{minute}" for minute in (1, 3, 4, 5, 6)]
UNSEEN = "are on no record, since no operator ran when this was written"
GIVEN_UP = [
    ("an edit in the very second of an instant", (), [("10:02:00", STAGING)], ALL_BUT_02,
     "Edited at generation 2; instants after 2026-03-06T10:01:00Z through 2026-03-06T10:02:00Z are consumed, "
     "1 of which were due and undecided"),
    ("an edit in an outage", DOWN, [("10:02:30", STAGING)], ["Admitted 10:01", "Admitted 10:06"],
     f"through 2026-03-06T10:05:20Z are consumed; 4 that were due (2026-03-06T10:02:00Z to 2026-03-06T10:05:00Z) {UNSEEN}"),
    ("an edit as the operator comes back", DOWN, [("10:05:20", STAGING)], ["Admitted 10:01", "Admitted 10:06"],
     f"; 4 that were due (2026-03-06T10:02:00Z to 2026-03-06T10:05:00Z) {UNSEEN}"),
    ("an edit after an outage that nothing was due in", ("--outage", "2026-03-06T10:01:30Z..2026-03-06T10:01:50Z"),
     [("10:02:00", STAGING)], ALL_BUT_02, "consumed, 1 of which were due and undecided"),
    ("two edits in an outage, each calendar for its time", DOWN,
     [("10:02:30", a_manifest(schedule="0 14 * * *")), ("10:04:30", STAGING)], ["Admitted 10:01", "Admitted 10:06"],
     f"; 2 that were due (2026-03-06T10:02:00Z to 2026-03-06T10:05:00Z) {UNSEEN}"),
    ("one instant of the new calendar", DOWN, [("10:01:10", a_manifest(schedule="0 14 * * *")), ("10:04:30", STAGING)],
     ["Admitted 10:01", "Admitted 10:06"], f"; 1 that were due (2026-03-06T10:05:00Z) {UNSEEN}"),
    ("an edit before there ever was an operator", ("--outage", "2026-03-06T10:00:00Z..2026-03-06T10:05:20Z"),
     [("10:02:30", STAGING)], ["Admitted 10:06"],
     f"Created at generation 2; 5 that were due (2026-03-06T10:01:00Z to 2026-03-06T10:05:00Z) {UNSEEN}"),
    ("disabled in an outage", DOWN, [("10:02:30", OFF)], ["Admitted 10:01"],
     "Disabled at generation 2; instants after 2026-03-06T10:01:00Z through 2026-03-06T10:05:20Z are consumed, "
     "4 of which were due and undecided"),
    ("enabled in an outage", DOWN, [("10:01:10", OFF), ("10:03:30", STAGING)], ["Admitted 10:01", "Admitted 10:06"],
     f"; 2 that were due (2026-03-06T10:04:00Z to 2026-03-06T10:05:00Z) {UNSEEN}"),
    ("resumed in an outage", (*DOWN, "--pause", "2026-03-06T10:01:10Z..2026-03-06T10:03:30Z"), [],
     ["Admitted 10:01", "Admitted 10:06"],
     f"; 2 that were due (2026-03-06T10:04:00Z to 2026-03-06T10:05:00Z) {UNSEEN}"),
    ("edited in an outage, after it was paused for its failures", (*DOWN, "--runs", "failed.yaml"),
     [("10:00:10", a_manifest(pauseAfterFailures=1)), ("10:03:30", STAGING)], ["Admitted 10:01", "Admitted 10:06"],
     f"; 2 that were due (2026-03-06T10:04:00Z to 2026-03-06T10:05:00Z) {UNSEEN}"),
    ("a definition enabled in an outage", DOWN,
     [("10:01:10", a_manifest(workflowRef={"name": "report"}), a_definition(enabled=False)),
      ("10:03:30", a_manifest(workflowRef={"name": "report"}), a_definition())], ["Admitted 10:01", "Admitted 10:06"],
     f"; 2 that were due (2026-03-06T10:04:00Z to 2026-03-06T10:05:00Z) {UNSEEN}"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "edits", "rows", "want"), [row[1:] for row in GIVEN_UP], ids=[row[0] for row in GIVEN_UP]
)
def test_instants_that_only_a_baseline_gave_up_are_told(
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    edits: list[tuple[Any, ...]],
    rows: list[str],
    want: str,
) -> None:
    """R9, R29: a Baseline is no row, but nothing is lost silently."""
    got, told = run(capsys, *FROM, "--to", "2026-03-06T10:06:00Z", *flags, *written(edits))
    assert decisions(got) == rows
    assert want in told
    assert told.count(" at generation ") == 1, "once"


SILENT = [
    ("an edit between two instants", (), [("10:01:30", STAGING)]),
    ("an edit after a live pause", ("--pause", "2026-03-06T10:01:30Z..2026-03-06T10:03:30Z"), [("10:03:40", STAGING)]),
    ("an edit while it is off", (), [("10:01:30", OFF), ("10:03:00", a_manifest(enabled=False, input={}))]),
    ("an edit in an outage in which nothing was due", ("--outage", "2026-03-06T10:01:10Z..2026-03-06T10:01:50Z"),
     [("10:01:30", STAGING)]),
    ("an edit in an outage of what was off before it", DOWN,
     [("10:01:10", OFF), ("10:03:00", a_manifest(enabled=False, input={}))]),
    ("an edit of what has no run left, in an outage", DOWN,
     [("10:00:30", a_manifest(runLimit=1)), ("10:03:00", a_manifest(runLimit=1, input={}))]),
    ("what waited is a row", (), [("10:00:30", a_manifest(misfirePolicy="Latest")), ("10:02:30", STAGING)]),
]  # fmt: skip


@pytest.mark.parametrize(("flags", "edits"), [row[1:] for row in SILENT], ids=[row[0] for row in SILENT])
def test_what_gives_no_instant_up_is_not_told(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], edits: list[tuple[Any, ...]]
) -> None:
    assert run(capsys, *FROM, "--to", "2026-03-06T10:05:30Z", "--run-seconds", "100", *flags, *written(edits))[1] == ""


def written(edits: list[tuple[Any, ...]]) -> list[str]:
    flags: list[str] = []
    for number, (at, *objects) in enumerate(edits):
        write(f"edit{number}.yaml", *objects)
        flags += ["--edit", f"2026-03-06T{at}Z=edit{number}.yaml"]
    return flags


def test_a_one_shot_of_the_past(capsys: pytest.CaptureFixture[str]) -> None:
    """R7."""
    write("once.yaml", a_manifest(schedule=None, runOnceTime="2026-03-06T09:00:00Z", misfirePolicy="Latest"))
    rows, told = run(capsys, *SPAN, file="once.yaml")
    assert (rows, "it is Complete (OneShotPast) and never runs" in told) == ([], True)


def test_which_schedule_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    write("two.yaml", a_manifest("one"), a_manifest("two", schedule="2 * * * *"))
    assert decisions(run(capsys, *SPAN, "--name", "two", file="two.yaml")[0]) == ["Admitted 10:02"]
    assert main(["simulate", "-f", "two.yaml", *SPAN]) == 1
    assert (
        "one WorkflowSchedule is wanted; the file has: one, two; name one of them by --name" in capsys.readouterr().err
    )


METADATA: list[tuple[str, object, str]] = [
    ("a name that is a list", {"name": ["a"]}, "metadata.name: [\"a\"] is no DNS name"),
    ("a name that is an object", {"name": {}}, "metadata.name: {} is no DNS name"),
    *[(f"uid {uid}", {"name": "s", "uid": uid}, f"metadata.uid: {json.dumps(uid)} is of the wrong type: write text")
      for uid in (3, ["a"], {"a": 1}, True)],
    *[(f"annotations {given}", {"name": "s", "annotations": given}, f"metadata.annotations: {shown} is of the wrong type")
      for given, shown in (("x", "'x'"), (3, "3"), (["a"], '["a"]'))],
    ("a number", 3, "metadata: 3 is no object; write one with a name"),
]  # fmt: skip


@pytest.mark.parametrize(("metadata", "want"), [row[1:] for row in METADATA], ids=[row[0] for row in METADATA])
@pytest.mark.parametrize("kind", ["WorkflowSchedule", "WorkflowDefinition"])
def test_metadata_that_is_refused(
    capsys: pytest.CaptureFixture[str], kind: str, metadata: dict[str, Any], want: str
) -> None:
    """R36: of the schedule, and of a definition that may be the one it names."""
    schedule, definition = a_manifest(workflowRef={"name": "s"}, maxJitterSeconds=5), a_definition()
    bad = schedule if kind == "WorkflowSchedule" else definition
    bad["metadata"] = metadata
    write("bad.yaml", definition, schedule)
    assert main(["simulate", "-f", "bad.yaml", *SPAN]) == 1
    told = capsys.readouterr()
    assert (told.out, want in told.err) == ("", True), told.err


KEPT: list[tuple[str, dict[str, Any]]] = [
    ("nulls", {"name": "s", **dict.fromkeys(("uid", "namespace", "annotations", "labels", "generation", "deletionTimestamp"))}),
    ("a generated name", {"generateName": "s-"}),
    ("what a server wrote",
     {"name": "s", "uid": "u", "generation": 7, "resourceVersion": "9", "creationTimestamp": "2026-03-06T10:01:30Z",
      "deletionTimestamp": "2026-03-06T10:01:30Z", "annotations": {"workflow-schedules.dev/unblock": "1"}}),
    ("empty text", {"name": "s", "uid": "", "namespace": "", "resourceVersion": ""}),
]  # fmt: skip


@pytest.mark.parametrize("metadata", [row[1] for row in KEPT], ids=[row[0] for row in KEPT])
def test_nothing_of_metadata_but_the_identity_matters(
    capsys: pytest.CaptureFixture[str], metadata: dict[str, Any]
) -> None:
    write("other.yaml", {**a_manifest(maxJitterSeconds=5), "metadata": metadata})
    rows, _ = run(capsys, *FROM, "--to", "2026-03-06T10:02:30Z", "--run-seconds", "1", file="other.yaml")
    assert decisions(rows) == ["Admitted 10:01", "Admitted 10:02"]


def test_what_is_null_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """As the API server, validate and preview have it."""
    child, parent = a_manifest(workflowRef={"name": "report"}), a_definition()
    want = run(capsys, *SPAN, file="wfs.yaml")[0]
    for body, model in ((child, WorkflowScheduleSpec), (parent, WorkflowDefinitionSpec)):
        body["spec"] = {**dict.fromkeys(map(wire_name, model.model_fields)), **body["spec"]}
    write("nulls.yaml", parent, child)
    rows, told = run(capsys, *SPAN, file="nulls.yaml")
    assert (rows, told, len(rows)) == (want, "", 2)


def test_a_manifest_that_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """R36."""
    write("bad.yaml", a_manifest(schedule="61 * * * *", concurrencyPolicy="Allow"))
    assert main(["simulate", "-f", "bad.yaml", *SPAN, "-o", "json"]) == 1
    errors = [json.loads(line)["detail"]["error"] for line in capsys.readouterr().out.splitlines()]
    assert errors == ["invalid_schedule", "invalid_spec"]


def test_outages_may_overlap_and_outlast_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is decided in any of them; what runs goes on to its end, also where none is left to see it."""
    outages = [("10:01:10", "10:03:00"), ("10:02:00", "10:04:30"), ("10:05:30", "11:00:00")]
    flags = [flag for low, high in outages for flag in ("--outage", f"2026-03-06T{low}Z..2026-03-06T{high}Z")]
    rows, _ = run(capsys, *FROM, "--to", "2026-03-06T10:30:00Z", *flags)
    assert decisions(rows) == ["Admitted 10:01", "SkippedMisfire 10:03", "Admitted 10:04", "SkippedOverlap 10:05"]
    assert rows[2]["startTime"] == "2026-03-06T10:04:30Z"
    assert rows[2]["completionTime"] == "2026-03-06T10:05:30Z"


LONG = 3_153_600_000  # a hundred years
END = "9999-12-31T23:59:59Z"
ENDS = [
    ("a run that outlasts the calendar", {}, ("9999-12-01T00:00:00Z", "9999-12-03T12:00:00Z", "--run-seconds", "31622400"),
     ["Admitted 9999-12-02T00:00:00Z -> None", "SkippedOverlap 9999-12-03T00:00:00Z -> None"]),
    ("a deadline from before the calendar", {"startingDeadlineSeconds": LONG}, ("0050-01-01T00:00:00Z", "0050-01-03T12:00:00Z"),
     ["Admitted 0050-01-02T00:00:00Z -> 0050-01-02T00:01:00Z", "Admitted 0050-01-03T00:00:00Z -> 0050-01-03T00:01:00Z"]),
    ("a deadline behind the calendar", {"startingDeadlineSeconds": LONG}, ("9999-12-28T00:00:00Z", END),
     ["Admitted 9999-12-29T00:00:00Z -> 9999-12-29T00:01:00Z", "Admitted 9999-12-30T00:00:00Z -> 9999-12-30T00:01:00Z"]),
    ("one that may wait until then", {"startingDeadlineSeconds": LONG, "misfirePolicy": "Latest"},
     ("9999-12-28T00:00:00Z", END, "--run-seconds", "100000"),
     ["Admitted 9999-12-29T00:00:00Z -> 9999-12-30T03:46:40Z", "Admitted 9999-12-30T00:00:00Z -> 9999-12-31T07:33:20Z"]),
    ("a start in the last seconds", {"misfirePolicy": "Latest"},
     ("9999-12-29T00:00:00Z", END, "--outage", "9999-12-29T12:00:00Z..9999-12-31T23:59:55Z"),
     ["Admitted 9999-12-30T00:00:00Z -> None"]),
    ("a decision in the last second", {"startingDeadlineSeconds": 5},
     ("9999-12-29T00:00:00Z", END, "--outage", f"9999-12-29T12:00:00Z..{END}"), ["SkippedMisfire 9999-12-30T00:00:00Z -> None"]),
    ("the first day", {"startingDeadlineSeconds": 90_000}, ("0001-01-01T00:00:00Z", "0001-01-02T12:00:00Z"),
     ["Admitted 0001-01-02T00:00:00Z -> 0001-01-02T00:01:00Z"]),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "span", "want"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_the_ends_of_the_calendar(
    capsys: pytest.CaptureFixture[str], fields: dict[str, Any], span: tuple[str, ...], want: list[str]
) -> None:
    """What would come after its last second never comes."""
    write("days.yaml", a_manifest(schedule="0 0 * * *", **fields))
    rows, _ = run(capsys, "--from", span[0], "--to", span[1], *span[2:], file="days.yaml")
    assert [f"{row['decision']} {row['scheduledTime']} -> {row['completionTime']}" for row in rows] == want


def test_nothing_to_decide(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *FROM, "--to", FROM[1]) == ([], "")


def test_a_month_of_minutes_takes_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    """43,200 rows in a second of a machine's own time (three here, for one that others use, too), a row a line."""
    began = time.process_time()
    assert main(["simulate", "-f", "wfs.yaml", *FROM, "--to", "2026-04-05T10:00:00Z", "-o", "json"]) == 0
    assert time.process_time() - began < 3
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 43_202
    assert len(json.loads(out)) == 43_200


@pytest.mark.parametrize("calendar", ["* * * * *", "0 0 * * *"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_ten_thousand_years_are_refused_at_once(capsys: pytest.CaptureFixture[str], calendar: str, zone: str) -> None:
    """They are estimated: counting them takes 20 s."""
    write("long.yaml", a_manifest(schedule=calendar, timeZone=zone))
    began = time.process_time()
    assert main(["simulate", "-f", "long.yaml", "--from", "0001-01-01T00:00:00Z", "--to", END]) == 1
    assert time.process_time() - began < 2, "half a second on a machine of its own"
    found = re.search(r"--to: about (\d+) instants until 9999-12-31T23:59:59Z", capsys.readouterr().err)
    days = 9999 * 365.2425 * (1440 if calendar == "* * * * *" else 1)
    assert found
    assert int(found[1]) == pytest.approx(days, rel=0.001)


BOUNDED = [
    ("what ends long before --to", {"schedule": "* * * * *", "endTime": "0001-01-05T00:00:00Z"}, 5_000),
    ("what starts shortly before it", {"schedule": "* * * * *", "startTime": "9999-12-30T00:00:00Z"}, 1_441),
    ("one instant", {"schedule": None, "runOnceTime": "5000-01-01T00:00:00Z"}, 1),
    ("leap days", {"schedule": "0 0 29 2 *"}, 2_425),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "most"), [row[1:] for row in BOUNDED], ids=[row[0] for row in BOUNDED])
def test_ten_thousand_years_of_few_instants_are_played(
    capsys: pytest.CaptureFixture[str], fields: dict[str, Any], most: int
) -> None:
    write("long.yaml", a_manifest(**fields))
    rows, _ = run(capsys, "--from", "0001-01-01T00:00:00Z", "--to", END, "--run-seconds", "1", file="long.yaml")
    assert 0.85 * most <= len(rows) <= most
