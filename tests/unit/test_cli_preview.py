"""`kubectl wfs preview`, as its users call it: what it lists, what it warns of, what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from workflow_schedules.api.common import wire_name
from workflow_schedules.api.schedule import WorkflowScheduleSpec
from workflow_schedules.cli.main import main

COMMAND = Path(sys.executable).with_name("kubectl-wfs")
DAILY = ("--schedule", "30 2 * * *", "--time-zone", "America/New_York")


def preview(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], list[str]]:
    assert main(["preview", *arguments, "-o", "json"]) == 0
    told = capsys.readouterr()
    assert not told.err
    answer = json.loads(told.out)
    assert list(answer) == ["times", "warnings"]
    return answer["times"], answer["warnings"]


LISTED = [
    ("after: the first N strictly after it", (*DAILY, "--after", "2026-01-01T07:30:00Z", "--count", "2"),
     ["2026-01-02T07:30:00Z", "2026-01-03T07:30:00Z"]),
    ("after: with an offset", (*DAILY, "--after", "2026-01-01T02:29:59-05:00", "--count", "1"), ["2026-01-01T07:30:00Z"]),
    ("before: the newest N at or before it, newest first", (*DAILY, "--before", "2026-01-03T07:30:00Z", "--count", "2"),
     ["2026-01-03T07:30:00Z", "2026-01-02T07:30:00Z"]),
    ("before: a second too early", (*DAILY, "--before", "2026-01-03T07:29:59Z", "--count", "1"), ["2026-01-02T07:30:00Z"]),
    ("both: what lies between, oldest first",
     (*DAILY, "--after", "2026-01-01T07:30:00Z", "--before", "2026-01-03T07:30:00Z"),
     ["2026-01-02T07:30:00Z", "2026-01-03T07:30:00Z"]),
    ("five, unless told otherwise", ("--schedule", "0 0 1 1 *", "--after", "2026-01-01T00:00:00Z"),
     [f"{year}-01-01T00:00:00Z" for year in range(2027, 2032)]),
    ("a union", ("--schedule", "0 0 1 1 *", "0 0 1 * *", "--after", "2025-12-31T00:00:00Z", "--count", "2"),
     ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"]),
    ("a one-shot", ("--run-once", "2099-01-01T02:00:00+02:00"), ["2099-01-01T00:00:00Z"]),
    ("a one-shot, from behind", ("--run-once", "2099-01-01T02:00:00+02:00", "--before", "2099-01-01T00:00:00Z"),
     ["2099-01-01T00:00:00Z"]),
    ("the end of the calendar", ("--schedule", "0 0 1 1 *", "--after", "9998-06-01T00:00:00Z"), ["9999-01-01T00:00:00Z"]),
    ("behind it", ("--schedule", "0 0 1 1 *", "--after", "9999-12-31T23:59:59Z"), []),
    ("before its beginning", ("--schedule", "* * * * *", "--before", "0001-01-01T00:00:00Z"), []),
    ("the seed documents' example is right here (K-018)",
     ("--schedule", "0 2 * * *", "--time-zone", "Asia/Shanghai", "--after", "2026-08-27T10:00:00Z", "--count", "2"),
     ["2026-08-27T18:00:00Z", "2026-08-28T18:00:00Z"]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "want"), [row[1:] for row in LISTED], ids=[row[0] for row in LISTED])
def test_what_is_listed(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], want: list[str]) -> None:
    """R6."""
    assert preview(capsys, *arguments)[0] == want


def test_without_a_bound_it_is_from_now_on(capsys: pytest.CaptureFixture[str]) -> None:
    times, _ = preview(capsys, "--schedule", "* * * * *", "--count", "1000")
    assert len(times) == 1000
    assert times == sorted(times)


WARNED = [
    ("nothing surprising", (*DAILY, "--after", "2026-01-01T00:00:00Z"), []),
    ("a gap inside", (*DAILY, "--after", "2026-03-07T12:00:00Z", "--count", "1"),
     ["2026-03-08 02:30 does not exist and is moved to 2026-03-08 03:00 local time, 2026-03-08T07:00:00Z"]),
    ("a gap behind what is listed", (*DAILY, "--after", "2026-03-05T12:00:00Z", "--count", "1"), []),
    ("a gap, from behind", (*DAILY, "--before", "2026-03-08T12:00:00Z", "--count", "1"), ["does not exist"]),
    ("a gap before what is listed, from behind", (*DAILY, "--before", "2026-03-10T12:00:00Z", "--count", "1"), []),
    ("a fold", ("--schedule", "30 1 * * *", "--time-zone", "America/New_York", "--after", "2026-11-01T00:00:00Z", "--count", "2"),
     ["runs both times, 2026-11-01T05:30:00Z and 2026-11-01T06:30:00Z"]),
    ("either day field", ("--schedule", "0 0 13 * 5", "--after", "2026-02-01T00:00:00Z"), ["2026-02-06, 2026-02-13, 2026-02-20"]),
    ("a one-shot of the past", ("--run-once", "2020-01-01T00:00:00Z"), ["is Complete (OneShotPast) and never runs"]),
    ("a one-shot of the future", ("--run-once", "2099-01-01T00:00:00Z"), []),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "want"), [row[1:] for row in WARNED], ids=[row[0] for row in WARNED])
def test_what_it_warns_of(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], want: list[str]) -> None:
    """R5, R7."""
    warnings = preview(capsys, *arguments)[1]
    assert len(warnings) == len(want), warnings
    for warning, part in zip(warnings, want, strict=True):
        assert part in warning


def test_a_table_shows_utc_and_local_time_and_warns_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preview", *DAILY, "--after", "2026-03-07T12:00:00Z", "--count", "2"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "UTC                   LOCAL",
        "2026-03-08T07:00:00Z  Sun 2026-03-08 03:00:00-04:00 America/New_York",
        "2026-03-09T06:30:00Z  Mon 2026-03-09 02:30:00-04:00 America/New_York",
    ]
    assert told.err.startswith("warning: in America/New_York the clock goes from 2026-03-08 02:00")


def test_nothing_to_list_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preview", *DAILY, "--after", "2026-01-01T08:00:00Z", "--before", "2026-01-01T09:00:00Z"]) == 0
    assert capsys.readouterr().out == "no instants\n"


REFUSED = [
    ("a bad expression", ("--schedule", "61 * * * *"), "invalid_schedule",
     "spec.schedule: '61 * * * *' is refused: minute: '61'"),
    ("seconds", ("--schedule", "0 0 * * * *"), "invalid_schedule", "it has 6 fields, not five: write minute hour"),
    ("a macro", ("--schedule", "@midnight"), "invalid_schedule", "macros are not read: write '0 0 * * *'"),
    ("a zone inside", ("--schedule", "TZ=UTC 0 0 * * *"), "invalid_schedule", "put the zone's name in spec.timeZone"),
    ("empty", ("--schedule", ""), "invalid_schedule", "it has 0 fields, not five"),
    ("never", ("--schedule", "0 0 31 2 *"), "never_matches", "no such date exists in any year: name a day"),
    ("the second of two", ("--schedule", "0 0 * * *", "0 0 32 * *"), "invalid_schedule", "spec.schedules[1]: '0 0 32 * *'"),
    ("a zone that is none", ("--schedule", "0 0 * * *", "--time-zone", "GMT+5"), "unknown_time_zone",
     "spec.timeZone: 'GMT+5' is no IANA zone of tzdata 2026f; write a name such as Europe/Zurich or UTC"),
    *[(f"the zone {zone}", ("--schedule", "0 0 * * *", "--time-zone", zone), "unknown_time_zone", f"{zone!r} is no IANA zone")
      for zone in ("America", "Factory", "localtime", "posixrules", "/etc/localtime", "../UTC", "america/new_york", "UTC ")],
    ("a one-shot of no characters", ("--run-once", ""), "invalid_schedule", "spec.runOnceTime: '' is no instant; write"),
    ("a one-shot without offset", ("--run-once", "2026-01-01T00:00:00"), "invalid_schedule",
     "spec.runOnceTime: '2026-01-01T00:00:00' is no instant; write an RFC 3339 time with an offset"),
    ("a day that is none", ("--run-once", "2026-02-29T00:00:00Z"), "invalid_schedule", "does not exist"),
    ("a one-shot in a zone that is none", ("--run-once", "2026-02-28T00:00:00Z", "--time-zone", "X"), "unknown_time_zone", "'X'"),
    ("a file without a name", ("-f", ""), "unreadable_file", "'' is no name of a file; write a path, or - for standard input"),
    ("a file that is none", ("-f", "/nowhere.yaml"), "unreadable_file", "/nowhere.yaml: can't be read: No such file"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "error", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_can_not_be_used_is_refused_with_field_and_remedy(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], error: str, message: str
) -> None:
    """R5, R7, R36, K-020, K-073, K-075: for people and for programs."""
    assert main(["preview", *arguments]) == 1
    told = capsys.readouterr()
    assert not told.out
    assert message in told.err
    assert main(["preview", *arguments, "-o", "json"]) == 1
    told = capsys.readouterr()
    assert not told.err
    (detail,) = json.loads(told.out).values()
    assert detail["error"] == error
    assert message in detail["message"]


CRON = ("--schedule", "0 0 * * *")
MISUSED = [
    *[(f"count {count}", (*CRON, "--count", count), f"argument --count: {count!r} is not a number from 1 to 1000")
      for count in ("0", "1001", "x", "-1", "1.5", "", "\u0663", "1_0")],
    *[(f"{flag} {time}", (*CRON, flag, time), f"argument {flag}: {time!r}: want RFC 3339 with an explicit offset, such as")
      for flag in ("--after", "--before") for time in ("2026-01-01T00:00:00", "2026-01-01", "now", "")],
    ("a time that does not exist", (*CRON, "--after", "2026-02-30T00:00:00Z"), "no such instant"),
    ("a time beyond the calendar", (*CRON, "--after", "0001-01-01T00:00:00+10:00"), "no such instant"),
    ("nothing to preview", (), "one of the arguments -f/--filename --schedule --run-once is required"),
    ("two things", (*CRON, "--run-once", "2026-01-01T00:00:00Z"), "not allowed with argument --schedule"),
    ("no expression", ("--schedule",), "expected at least one argument"),
    ("an unknown flag", (*CRON, "--counts", "5"), "unrecognized arguments: --counts 5"),
    ("an abbreviation", (*CRON, "--coun", "5"), "unrecognized arguments"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), [row[1:] for row in MISUSED], ids=[row[0] for row in MISUSED])
def test_wrong_arguments_end_with_2_and_say_why(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    """R36."""
    assert main(["preview", *arguments]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("usage: kubectl wfs")
    assert message in told.err
    for spelled in (("-o", "json"), ("-ojson",), ("--output", "json"), ("--output=json",)):
        assert main(["preview", *spelled, *arguments]) == 2
        told = capsys.readouterr()
        assert not told.err
        detail = json.loads(told.out)["detail"]
        assert detail["error"] == "invalid_argument"
        assert message in detail["message"]


MANIFEST: dict[str, Any] = {
    "apiVersion": "workflow-schedules.dev/v1alpha1",
    "kind": "WorkflowSchedule",
    "metadata": {"name": "nightly"},
    "spec": {"workflowRef": {"name": "w"}, "schedules": ["0 2 * * *", "0 3 * * *"], "timeZone": "Asia/Tokyo", "enabled": True},
}  # fmt: skip


def written(folder: Path, *bodies: object) -> str:
    path = folder / "file.yaml"
    path.write_text("\n---\n".join(json.dumps(body) for body in bodies))
    return str(path)


def changed(name: object = "nightly", **spec: object) -> dict[str, Any]:
    return {**MANIFEST, "metadata": {"name": name}, "spec": {**MANIFEST["spec"], **spec}}


AFTER = ("--after", "2026-03-07T12:00:00Z", "--count", "2")
NULLABLE = {
    name
    for field in WorkflowScheduleSpec.model_fields
    if (name := wire_name(field)) not in {"workflowRef", "schedules"}
}
FILES = [
    ("its own zone", changed(), (), ["2026-03-07T17:00:00Z", "2026-03-07T18:00:00Z"], []),
    ("another zone for once", changed(), ("--time-zone", "America/New_York"), ["2026-03-08T07:00:00Z", "2026-03-09T06:00:00Z"],
     ["2026-03-08 02:00 does not exist"]),
    ("disabled", changed(enabled=None), (), ["2026-03-07T17:00:00Z", "2026-03-07T18:00:00Z"], ["enabled is not true"]),
    ("spread", changed(maxJitterSeconds=60), (), ["2026-03-07T17:00:00Z", "2026-03-07T18:00:00Z"], ["maxJitterSeconds 60"]),
    ("validity", changed(startTime="2026-03-07T17:00:01Z", endTime="2026-03-07T18:00:00Z"), (), ["2026-03-07T18:00:00Z"], []),
    ("left out", changed(excludeDates=["2026-03-08"], timeZone=None), (), ["2026-03-08T02:00:00Z", "2026-03-08T03:00:00Z"],
     ["2026-03-08 is in excludeDates: 2 instants on it will be skipped"]),
    ("a policy", changed(skippedTimePolicy="Skip", timeZone="America/New_York"), ("--before", "2026-03-08T07:00:00Z"),
     ["2026-03-08T07:00:00Z"], ["2026-03-08 02:00 does not exist and is left out"]),
    ("a policy that leaves nothing", changed(skippedTimePolicy="Skip", timeZone="America/New_York", schedules=["30 2 * * *"]),
     ("--before", "2026-03-08T12:00:00Z"), [], ["2026-03-08 02:30 does not exist and is left out"]),
    ("what is null is left out", changed(**dict.fromkeys(NULLABLE)), (),
     ["2026-03-08T02:00:00Z", "2026-03-08T03:00:00Z"], ["enabled is not true"]),
    ("an inline template", changed(workflowRef=None, jobTemplate={"spec": {}}), (),
     ["2026-03-07T17:00:00Z", "2026-03-07T18:00:00Z"], []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "arguments", "times", "warnings"), [row[1:] for row in FILES], ids=[row[0] for row in FILES]
)
def test_a_manifest(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    body: object,
    arguments: tuple[str, ...],
    times: list[str],
    warnings: list[str],
) -> None:
    """R6: all that the manifest says about instants counts."""
    got, told = preview(
        capsys, "-f", written(tmp_path, {"apiVersion": "v1", "kind": "ConfigMap"}, body), *AFTER, *arguments
    )
    assert got == times
    assert len(told) == len(warnings), told
    assert all(part in warning for part, warning in zip(warnings, told, strict=True))


UNUSABLE = [
    ("none in it", [{"apiVersion": "v1", "kind": "ConfigMap"}], (), "the file has: none"),
    ("two in it", [changed("a"), changed("b")], (), "the file has: a, b; name one of them by --name"),
    ("not the one that is named", [changed("a"), changed("b")], ("--name", "c"), "the file has: a, b"),
    ("all that is wrong", [changed(timeZone="Mars")], (), "file.yaml:1: spec.timeZone: 'Mars' is no IANA zone"),
    ("no spec", [{**MANIFEST, "spec": None}], (), "spec: null is no object"),
    (
        "metadata of a wrong type",
        [{**MANIFEST, "metadata": [1]}],
        (),
        "metadata: [1] is no object; write one with a name",
    ),
    ("a name of a wrong type", [changed(["a"])], (), 'metadata.name: ["a"] is no DNS name'),
    ("a name of a wrong type, asked for another", [changed(["a"])], ("--name", "a"), 'the file has: ["a"]; name one'),
    ("a name of a wrong type among others", [changed({"a": 1}), changed("b")], (), 'the file has: {"a": 1}, b; name'),
    ("no date", [changed(excludeDates=[None])], (), "spec.excludeDates[0]: null is of the wrong type: write text"),
    (
        "a binding that is null",
        [changed(inputFrom=[None])],
        (),
        "spec.inputFrom[0]: null is of the wrong type: write an object",
    ),
    ("no version", [{"kind": "WorkflowSchedule"}], (), "apiVersion: is missing; write"),
]


@pytest.mark.parametrize(
    ("bodies", "arguments", "message"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE]
)
def test_a_file_that_is_no_one_schedule(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, bodies: list[object], arguments: tuple[str, ...], message: str
) -> None:
    assert main(["preview", "-f", written(tmp_path, *bodies), *arguments]) == 1
    assert message in capsys.readouterr().err


def test_one_of_several_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [changed("a"), changed("b", schedules=["0 0 1 1 *"])]}
    times, _ = preview(capsys, "-f", written(tmp_path, listed), "--name", "b", *AFTER)
    assert times == ["2026-12-31T15:00:00Z", "2027-12-31T15:00:00Z"]


def test_neither_cluster_nor_host_has_a_say(tmp_path: Path) -> None:
    """R6, K-014: installed as `kubectl-wfs`; no kubeconfig, no TZ, no system zone files."""
    hostile = {
        "TZ": "America/Los_Angeles",
        "PYTHONTZPATH": str(tmp_path),
        "KUBECONFIG": "/nowhere",
        "HOME": str(tmp_path),
    }
    environments = [
        {"TZ": "UTC"},
        hostile,
        {"TZ": "Nowhere/At-All", "PYTHONTZPATH": "/usr/share/zoneinfo", "LC_ALL": "C"},
    ]
    arguments = (COMMAND, "preview", *DAILY, "--after", "2026-03-07T12:00:00Z", "-o", "json")
    answers = [
        subprocess.run(arguments, env=environment, cwd=tmp_path, capture_output=True, check=True).stdout
        for environment in environments
    ]
    assert json.loads(answers[0])["times"][0] == "2026-03-08T07:00:00Z"
    assert len(set(answers)) == 1


def test_a_reader_that_leaves_early_is_no_failure_to_talk_about() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = (COMMAND, "preview", "--schedule", "* * * * *", "--count", "1000")
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")
