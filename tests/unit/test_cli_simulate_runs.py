"""Runs of `kubectl wfs simulate`: what a Job's own fields do to them, what is open at --to, and what is not played."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from workflow_schedules.cli.main import main

DAY = "2026-03-06T"
MINUTES = ("--from", f"{DAY}10:00:00Z", "--to", f"{DAY}10:04:30Z")
POD = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}}
Fields = dict[str, Any]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(
    file: str, fields: Fields, job: Fields | None = None, *, parent: Fields | None = None, labels: Fields | None = None
) -> None:
    """Write a schedule of every minute; its template, or that of its parent, has the fields of `job`."""
    template = {"metadata": {"labels": labels or {}}, "spec": {**POD, **(job or {})}}
    source = {"jobTemplate": template} if parent is None else {"workflowRef": {"name": "report"}}
    bodies = [("WorkflowSchedule", "minutely", {"enabled": True, "schedule": "* * * * *", **source, **fields})]
    if parent is not None:
        bodies.append(("WorkflowDefinition", "report", {"jobTemplate": template, **parent}))
    head = {"apiVersion": "workflow-schedules.dev/v1alpha1"}
    objects = [{**head, "kind": kind, "metadata": {"name": name}, "spec": spec} for kind, name, spec in bodies]
    Path(file).write_text(yaml.safe_dump_all(objects))


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[Fields], list[str], list[str]]:
    """Return the rows, the warnings, and what is told of the end; a table is told the same."""
    assert main(["simulate", "-f", "wfs.yaml", *arguments, "-o", "json"]) == 0
    told = capsys.readouterr()
    assert main(["simulate", "-f", "wfs.yaml", *arguments]) == 0
    assert capsys.readouterr().err == told.err
    lines = told.err.splitlines()
    at_end = [line.removeprefix("at --to: ") for line in lines if line.startswith("at --to: ")]
    return json.loads(told.out), [line for line in lines if line.startswith("warning: ")], at_end


def as_text(rows: list[Fields]) -> list[str]:
    """Say each row: ``10:01 Admitted 10:01:00-10:02:30 Exhausted``."""
    return [
        " ".join(filter(None, (row["scheduledTime"][11:16], row["decision"], _span(row), row["outcome"])))
        for row in rows
    ]


def _span(row: Fields) -> str:
    start, end = ((row[key] or "")[11:19] for key in ("startTime", "completionTime"))
    return f"{start}-{end}" if start or end else ""


SECONDS, FILE = ("--run-seconds", "200"), ("--runs", "runs.yaml")
ENDS_BY_ITS_DEADLINE = ["10:01 Admitted 10:01:00-10:02:30 Exhausted", "10:02 SkippedOverlap",
                        "10:03 Admitted 10:03:00-10:04:30 Exhausted", "10:04 SkippedOverlap"]  # fmt: skip
DEADLINES = [
    ("the schedule's", {"activeDeadlineSeconds": 90}, {}, SECONDS, "", ENDS_BY_ITS_DEADLINE),
    ("the template's", {}, {"activeDeadlineSeconds": 90}, SECONDS, "", ENDS_BY_ITS_DEADLINE),
    ("the schedule's, which is smaller", {"activeDeadlineSeconds": 90}, {"activeDeadlineSeconds": 120}, SECONDS, "",
     ENDS_BY_ITS_DEADLINE),
    ("the template's, which is smaller", {"activeDeadlineSeconds": 120}, {"activeDeadlineSeconds": 90}, SECONDS, "",
     ENDS_BY_ITS_DEADLINE),
    ("of runs from a file", {"activeDeadlineSeconds": 90}, {}, FILE, "- {seconds: 200}", ENDS_BY_ITS_DEADLINE),
    ("of runs that would fail later", {"activeDeadlineSeconds": 90}, {}, FILE, "- {seconds: 91, outcome: Failed}",
     ENDS_BY_ITS_DEADLINE),
    ("of runs that never end", {"activeDeadlineSeconds": 90}, {}, FILE, "- {outcome: Running}", ENDS_BY_ITS_DEADLINE),
    ("of runs that would be interrupted later", {"activeDeadlineSeconds": 90}, {}, FILE,
     "- {seconds: 91, outcome: Interrupted}", ENDS_BY_ITS_DEADLINE),
    ("of runs that need no more", {"activeDeadlineSeconds": 90}, {}, ("--run-seconds", "90"), "",
     [line.replace("Exhausted", "Completed") for line in ENDS_BY_ITS_DEADLINE]),
    ("of runs that fail before", {"activeDeadlineSeconds": 90}, {}, FILE, "- {seconds: 90, outcome: Failed}",
     [line.replace("Exhausted", "Failed") for line in ENDS_BY_ITS_DEADLINE]),
    ("of a run that is interrupted before: then its clock stands still", {"activeDeadlineSeconds": 90}, {}, FILE,
     "- {seconds: 80, outcome: Interrupted}",
     ["10:01 Admitted 10:01:00-", "10:02 SkippedOverlap", "10:03 SkippedOverlap", "10:04 SkippedOverlap"]),
    ("that no calendar has", {"activeDeadlineSeconds": 2**63 - 1}, {}, FILE, "- {outcome: Running}",
     ["10:01 Admitted 10:01:00-", "10:02 SkippedOverlap", "10:03 SkippedOverlap", "10:04 SkippedOverlap"]),
    ("that the API server refuses", {}, {"activeDeadlineSeconds": -1}, ("--run-seconds", "90"), "",
     [line.replace("Exhausted", "Completed") for line in ENDS_BY_ITS_DEADLINE]),
    ("that counts as a failure", {"activeDeadlineSeconds": 30, "pauseAfterFailures": 2}, {}, SECONDS, "",
     ["10:01 Admitted 10:01:00-10:01:30 Exhausted", "10:02 Admitted 10:02:00-10:02:30 Exhausted"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "job", "lengths", "runs", "want"), [row[1:] for row in DEADLINES], ids=[row[0] for row in DEADLINES]
)
@pytest.mark.parametrize("by_parent", [False, True], ids=["inline", "of a definition"])
def test_a_run_ends_by_the_deadline_of_its_job(
    capsys: pytest.CaptureFixture[str],
    fields: Fields,
    job: Fields,
    lengths: tuple[str, ...],
    runs: str,
    want: list[str],
    *,
    by_parent: bool,
) -> None:
    """R25, `activeDeadlineSeconds`: the smaller of both, as it is rendered into the Job; used up is Exhausted."""
    Path("runs.yaml").write_text(runs)
    write("wfs.yaml", fields, job, parent={} if by_parent else None)
    assert as_text(simulated(capsys, *MINUTES, *lengths)[0]) == want


def test_a_deadline_passes_in_an_outage_and_is_that_of_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    """R10, R25: the Job controller keeps it, whoever is down; an edit is for later runs."""
    write("wfs.yaml", {"activeDeadlineSeconds": 90})
    write("edit.yaml", {"activeDeadlineSeconds": 20})
    rows, _, _ = simulated(
        capsys, *MINUTES, *SECONDS, "--outage", f"{DAY}10:01:10Z..{DAY}10:03:30Z", "--edit", f"{DAY}10:01:05Z=edit.yaml"
    )
    assert as_text(rows) == [
        "10:01 Admitted 10:01:00-10:02:30 Exhausted",
        "10:02 SkippedMisfire",
        "10:03 Admitted 10:03:30-10:03:50 Exhausted",
        "10:04 Admitted 10:04:00-10:04:20 Exhausted",
    ]


BORN_SUSPENDED = "is suspended and has not started (spec.suspend of its Job); it keeps its slot and has no outcome"
SUSPENDED = [
    ("Forbid", {}, ["10:01 Admitted", "10:02 SkippedOverlap", "10:03 SkippedOverlap", "10:04 SkippedOverlap"],
     [f"the run of {DAY}10:01:00Z {BORN_SUSPENDED}"]),
    ("a deadline, whose clock never starts", {"activeDeadlineSeconds": 5, "misfirePolicy": "Latest"},
     ["10:01 Admitted", "10:02 Coalesced", "10:03 Coalesced"],
     [f"the run of {DAY}10:01:00Z {BORN_SUSPENDED}", f"{DAY}10:04:00Z still waits to start, so it has no row"]),
    ("Replace", {"concurrencyPolicy": "Replace"},
     ["10:01 Admitted -10:02:00 Cancelled", "10:02 Admitted -10:03:00 Cancelled", "10:03 Admitted -10:04:00 Cancelled",
      "10:04 Admitted"], [f"the run of {DAY}10:04:00Z {BORN_SUSPENDED}"]),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "want", "told"), [row[1:] for row in SUSPENDED], ids=[row[0] for row in SUSPENDED])
def test_a_run_that_is_born_suspended_neither_starts_nor_ends(
    capsys: pytest.CaptureFixture[str], fields: Fields, want: list[str], told: list[str]
) -> None:
    """R12, R14, R25: it stays admitted and keeps its slot; nothing here resumes it, and that is said."""
    write("wfs.yaml", fields, {"suspend": True})
    rows, warnings, at_end = simulated(capsys, *MINUTES)
    assert (as_text(rows), at_end) == (want, told)
    assert any("jobTemplate.spec.suspend is true: nothing resumes its Jobs here" in each for each in warnings)


GOES_ON = "is still in progress; it started at"
OPEN = [
    ("nothing", {}, ("--run-seconds", "10"), []),
    ("a run", {}, (), [f"the run of {DAY}10:04:00Z {GOES_ON} {DAY}10:04:00Z and has no outcome"]),
    ("a run that is interrupted", {}, ("--runs", "runs.yaml"),
     [f"the run of {DAY}10:01:00Z is interrupted and keeps its slot; it started at {DAY}10:01:00Z and has no outcome"]),
    ("runs, and what waits for them", {"concurrencyPolicy": "Allow", "maxActiveRuns": 2, "misfirePolicy": "All"}, SECONDS,
     [f"the run of {DAY}10:02:00Z {GOES_ON} {DAY}10:02:00Z and has no outcome",
      f"the run of {DAY}10:03:00Z {GOES_ON} {DAY}10:04:20Z and has no outcome",
      f"{DAY}10:04:00Z still waits to start, so it has no row"]),
    ("what waits for its jitter", {"maxJitterSeconds": 29, "schedule": "4 * * * *"}, ("--to", f"{DAY}10:04:00Z"),
     [f"{DAY}10:04:00Z still waits to start, so it has no row"]),
    ("an outage", {}, ("--outage", f"{DAY}10:02:30Z..{DAY}10:09:00Z"),
     [f"2 that were due ({DAY}10:03:00Z to {DAY}10:04:00Z) are undecided, so they have no row: no operator runs yet"]),
    ("an outage from the beginning", {}, ("--outage", f"{DAY}10:00:00Z..{DAY}10:04:31Z"),
     [f"4 that were due ({DAY}10:01:00Z to {DAY}10:04:00Z) are undecided, so they have no row: no operator runs yet"]),
    ("an outage that is over", {}, ("--run-seconds", "10", "--outage", f"{DAY}10:02:30Z..{DAY}10:04:10Z"), []),
    ("what waited when the outage began", {"misfirePolicy": "Latest"},
     ("--runs", "long.yaml", "--outage", f"{DAY}10:02:30Z..{DAY}10:09:00Z"),
     [f"the run of {DAY}10:01:00Z {GOES_ON} {DAY}10:01:00Z and has no outcome",
      f"{DAY}10:02:00Z still waits to start, so it has no row",
      f"2 that were due ({DAY}10:03:00Z to {DAY}10:04:00Z) are undecided, so they have no row: no operator runs yet"]),
    ("failures in a row", {"pauseAfterFailures": 2}, ("--runs", "failed.yaml"),
     ["the schedule is paused: 2 runs failed in a row (pauseAfterFailures 2): "
      "an edit of what runs or when, or a good manual run, resumes it"]),
    ("a runLimit", {"runLimit": 2}, ("--run-seconds", "10"), ["the schedule is Complete: its runLimit of 2 is used"]),
    ("a pause", {}, ("--pause", f"{DAY}10:02:30Z..{DAY}10:09:00Z"), []),
    ("a pause that nobody sees begin", {},
     ("--pause", f"{DAY}10:03:30Z..{DAY}10:09:00Z", "--outage", f"{DAY}10:02:30Z..{DAY}10:09:00Z"),
     [f"1 that were due ({DAY}10:03:00Z) are undecided, so they have no row: no operator runs yet"]),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "flags", "want"), [row[1:] for row in OPEN], ids=[row[0] for row in OPEN])
def test_what_is_open_at_the_end_is_told(
    capsys: pytest.CaptureFixture[str], fields: Fields, flags: tuple[str, ...], want: list[str]
) -> None:
    """R29: a held candidate has no record yet, a run in progress has no outcome; nothing is missing silently."""
    Path("runs.yaml").write_text("- {seconds: 5, outcome: Interrupted}")
    Path("long.yaml").write_text("- {seconds: 3600}")
    Path("failed.yaml").write_text("- {seconds: 5, outcome: Failed}")
    write("wfs.yaml", fields)
    rows, _, at_end = simulated(capsys, *MINUTES, *flags)
    assert at_end == want
    unfinished = [row for row in rows if row["startTime"] and not row["outcome"]]
    assert [row["completionTime"] for row in unfinished] == [None] * sum("the run of" in line for line in want)


def test_of_many_runs_and_instants_ten_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    write("wfs.yaml", {"concurrencyPolicy": "Allow", "maxActiveRuns": 30, "misfirePolicy": "All", "maxCatchUpRuns": 40})
    span = ("--from", f"{DAY}10:00:00Z", "--to", f"{DAY}11:10:00Z", "--run-seconds", "9999")
    _, _, at_end = simulated(capsys, *span)
    assert len(at_end) == 22
    assert at_end[10] == "30 runs have not ended, 20 more than are named here"
    assert at_end[21] == "40 instants still wait, 30 more than are named here"


NOT_PLAYED = [
    ("startTimeoutSeconds", {"startTimeoutSeconds": 60}, {}, {}, "spec.startTimeoutSeconds: is not played"),
    ("Replace", {"concurrencyPolicy": "Replace"}, {}, {}, "a run that is replaced is gone at once here"),
    ("the deadline of a Pod", {}, {"template": {"spec": {**POD["template"]["spec"], "activeDeadlineSeconds": 5}}}, {},
     "jobTemplate.spec.template.spec.activeDeadlineSeconds: the deadline of a Pod is not played"),
    ("Kueue", {}, {}, {"kueue.x-k8s.io/queue-name": "team"},
     "jobTemplate.metadata.labels, kueue.x-k8s.io/queue-name: waiting for Kueue is not played"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "job", "labels", "want"), [row[1:] for row in NOT_PLAYED], ids=[row[0] for row in NOT_PLAYED]
)
def test_what_is_not_played_is_said(
    capsys: pytest.CaptureFixture[str], fields: Fields, job: Fields, labels: Fields, want: str
) -> None:
    write("wfs.yaml", fields, job, labels=labels)
    write("edit.yaml", {"input": {}, **fields}, job, labels=labels)
    _, warnings, _ = simulated(capsys, *MINUTES, "--edit", f"{DAY}10:02:30Z=edit.yaml")
    assert [want in each for each in warnings] == [True], "once, however often it is written"


def test_others_of_the_same_parent_are_not_played(capsys: pytest.CaptureFixture[str]) -> None:
    """R28."""
    write("wfs.yaml", {}, parent={"maxActiveRuns": 2})
    _, warnings, _ = simulated(capsys, *MINUTES)
    assert [each for each in warnings if "WorkflowDefinition report, spec.maxActiveRuns: only the runs of" in each]


def test_a_pause_asked_for_holds_though_the_files_own_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    """R19."""
    write("wfs.yaml", {"pause": {"reason": "long ago", "untilTime": f"{DAY}09:00:00Z"}})
    rows, _, _ = simulated(capsys, *MINUTES, "--pause", f"{DAY}10:01:30Z..{DAY}10:03:30Z", "--run-seconds", "9")
    assert as_text(rows) == [
        "10:01 Admitted 10:01:00-10:01:09 Completed",
        "10:04 Admitted 10:04:00-10:04:09 Completed",
    ]
