"""`kubectl wfs validate`: everything that is wrong at once, with file, line and field; never a traceback."""

from __future__ import annotations

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from workflow_schedules.cli.main import main

SAMPLES = Path(__file__).resolve().parents[2] / "manifests" / "samples"
GOOD = """\
apiVersion: workflow-schedules.dev/v1alpha1
kind: WorkflowSchedule
metadata: {name: nightly}
spec:
  workflowRef: {name: report}
  schedule: "0 2 * * *"
"""
DEFINITION = """\
apiVersion: workflow-schedules.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: report}
spec:
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}
"""


def told(capsys: pytest.CaptureFixture[str], *files: str) -> list[str]:
    """Return what is wrong, after checking that people and programs are told the same."""
    flags = [flag for file in files for flag in ("-f", file)]
    status = main(["validate", *flags])
    lines = capsys.readouterr().err.splitlines()
    assert main(["validate", *flags, "-o", "json"]) == status == (1 if lines else 0)
    out = capsys.readouterr()
    assert not out.err
    details = [json.loads(line)["detail"] for line in out.out.splitlines()]
    assert [detail["message"] for detail in details] == lines
    assert all(detail.keys() == {"error", "message"} and detail["error"].islower() for detail in details)
    return lines


def check(capsys: pytest.CaptureFixture[str], folder: Path, content: str | bytes, *want: str) -> None:
    path = folder / "f"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    lines = [line.removeprefix(str(folder) + "/") for line in told(capsys, str(path))]
    assert len(lines) == len(want), lines
    for line, part in zip(lines, want, strict=True):
        assert part in line


def test_the_samples_are_valid(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(path) for path in sorted(SAMPLES.glob("*.yaml")) if path.name != "kustomization.yaml"]
    assert files
    assert told(capsys, *files) == []


COUNTS = [
    ("one", GOOD, "1 valid"),
    ("several documents", f"---\n{GOOD}---\n# nothing\n---\n{DEFINITION}", "2 valid"),
    ("with others", f"{GOOD}---\napiVersion: v1\nkind: ConfigMap\ndata: [1]\n", "1 valid, 1 of other kinds left alone"),
    ("only others", "apiVersion: v1\nkind: ConfigMap\n", "0 valid, 1 of other kinds left alone"),
    ("JSON with tabs, pairs and slashes",
     '{\t"apiVersion":\t"v1",\n\t"kind": "\\ud83d\\ude00",\n\t"a": "b\\/c \\\\ud83d"}', "0 valid, 1 of other kinds"),
    ("a List", "apiVersion: v1\nkind: List\nitems:\n- " + GOOD.replace("\n", "\n  "), "1 valid"),
    ("what is null is left out", GOOD + "  timeZone: null\n  schedules: null\n  startTime: null\n", "1 valid"),
    ("dates and times without quotes", GOOD + "  excludeDates: [2026-12-25]\n  endTime: 2026-12-31T00:00:00Z\n", "1 valid"),
    ("metadata that is null is left out",
     GOOD.replace("nightly}", "nightly, uid: null, namespace: null, labels: {a: null}, annotations: null}"), "1 valid"),
    ("an alias", GOOD + "  excludeDates: [&a 2026-12-25, *a]\n", "1 valid"),
    ("a byte order mark", "\ufeff" + GOOD, "1 valid"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "want"), [row[1:] for row in COUNTS], ids=[row[0] for row in COUNTS])
def test_valid(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, want: str) -> None:
    (tmp_path / "f").write_text(content)
    assert main(["validate", "-f", str(tmp_path / "f")]) == 0
    assert capsys.readouterr().out.startswith(want)
    assert main(["validate", "-f", str(tmp_path / "f"), "-o", "json"]) == 0
    assert capsys.readouterr().out == ""


SPECS = [
    ("an unquoted number", "schedule: 5", "f:5: spec.schedule: 5 is of the wrong type: write text, in quotes if need be"),
    ("a bad expression", "schedule: '61 * * * *'", "f:5: spec.schedule: '61 * * * *' is refused: minute: '61' is not read"),
    ("too short", "schedule: '* * *'", "f:5: spec.schedule: '* * *' is refused: it has 3 fields, not five"),
    ("none", "enabled: true", "f:4: spec: exactly one of schedule, schedules and runOnceTime is needed, none is set"),
    ("an empty list", "schedules: []", "f:4: spec: exactly one of"),
    ("two", "schedule: 0 * * * *\n  runOnceTime: 2026-01-01T00:00:00Z", "f:4: spec: exactly one of"),
    ("in a list", "schedules:\n  - 0 * * * *\n  - 0 24 * * *", "f:7: spec.schedules[1]: '0 24 * * *' is refused: hour: '24'"),
    ("of a list, a wrong type", "schedules:\n  - 7", "f:6: spec.schedules[0]: 7 is of the wrong type"),
    ("a one-shot without offset", "runOnceTime: 2026-01-01T00:00:00",
     "f:5: spec.runOnceTime: '2026-01-01T00:00:00' is no instant"),
    ("text for a switch", "schedule: 0 * * * *\n  enabled: 'true'",
     "f:6: spec.enabled: 'true' is of the wrong type: write true or false"),
    ("a switch for a number", "schedule: 0 * * * *\n  maxJitterSeconds: true",
     "f:6: spec.maxJitterSeconds: true is of the wrong type"),
    ("a fraction", "schedule: 0 * * * *\n  maxJitterSeconds: 1.5",
     "f:6: spec.maxJitterSeconds: 1.5 is of the wrong type: write a whole"),
    ("beyond a bound", "schedule: 0 * * * *\n  maxJitterSeconds: 86401",
     "f:6: spec.maxJitterSeconds: 86401 is outside 0 to 86400"),
    ("beyond 64 bits", "schedule: 0 * * * *\n  startingDeadlineSeconds: 9223372036854775808", "is out of bounds: write 5 to 922"),
    ("below a bound", "schedule: 0 * * * *\n  startingDeadlineSeconds: 4", "f:6: spec.startingDeadlineSeconds: 4 is below 5"),
    ("an unknown policy", "schedule: 0 * * * *\n  skippedTimePolicy: Never",
     "f:6: spec.skippedTimePolicy: 'Never' is unknown: write one of NextValid, Skip"),
    ("an unknown policy hides the field that goes with it", "schedule: 0 * * * *\n  maxActiveRuns: 5\n  concurrencyPolicy: Many",
     "f:7: spec.concurrencyPolicy: 'Many' is unknown: write one of"),
    ("a date that is none", "schedule: 0 * * * *\n  excludeDates:\n  - 2026-02-29",
     "f:7: spec.excludeDates[0]: '2026-02-29' is no date"),
    ("a date and time for a date", "schedule: 0 * * * *\n  excludeDates: [2026-01-01T00:00:00Z]", "f:6: spec.excludeDates[0]:"),
    ("a naive start", "schedule: 0 * * * *\n  startTime: 2026-01-01T00:00:00",
     "f:6: spec.startTime: '2026-01-01T00:00:00': want RFC 3339"),
    ("the end first", "schedule: 0 * * * *\n  startTime: 2026-01-02T00:00:00Z\n  endTime: 2026-01-01T00:00:00Z",
     "f:7: spec.endTime:"),
    ("a misspelt field", "schedule: 0 * * * *\n  timezone: UTC", "f:6: spec.timezone: no such field; did you mean timeZone?"),
    ("an unknown field", "schedule: 0 * * * *\n  x: 1", "f:6: spec.x: no such field; there are "),
    ("suspend", "schedule: 0 * * * *\n  suspend: true", "f:6: spec.suspend: no such field; use enabled or pause"),
    ("a list as input", "schedule: 0 * * * *\n  input: [1]", "f:6: spec.input: [1] is of the wrong type: write an object"),
    ("an input too large", f"schedule: 0 * * * *\n  input: {{a: {'x' * 40000}}}", "f:6: spec.input: 40008 bytes of JSON"),
    ("a huge wrong value is cut", f"schedule: 0 * * * *\n  enabled: {'x' * 4000}", f"'{'x' * 99}… is of the wrong type"),
    ("no date", "schedule: 0 * * * *\n  excludeDates:\n  - 2026-12-25\n  - null",
     "f:8: spec.excludeDates[1]: null is of the wrong type: write text, in quotes if need be, or leave it out"),
    ("no binding", "schedule: 0 * * * *\n  inputFrom: [null]",
     "f:6: spec.inputFrom[0]: null is of the wrong type: write an object, or leave it out"),
    ("no expression in the list", "schedules: [null]", "f:5: spec.schedules[0]: null is of the wrong type: write text"),
    ("a zone of no characters", "schedule: 0 * * * *\n  timeZone: ''", "f:6: spec.timeZone: '' is no IANA zone"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "want"), [row[1:] for row in SPECS], ids=[row[0] for row in SPECS])
def test_one_problem_with_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, spec: str, want: str) -> None:
    """R5, R7, R36, K-076: as admission and the operator say it."""
    head = GOOD.partition("  workflowRef")[0]
    check(capsys, tmp_path, f"{head}  {spec}\n  workflowRef: {{name: report}}\n", want)


SCHEMA = "  inputSchema: {properties: {region: {enum: [eu, us]}}, required: [region]}\n"
BESIDE = [
    ("an input that its definition refuses", DEFINITION + SCHEMA + "---\n" + GOOD + "  input:\n    region: mars\n",
     ['f:15: spec.input.region: "mars": write one of "eu", "us"']),
    ("no input", GOOD + "---\n" + DEFINITION + SCHEMA, ['f:4: spec.input: {}: has no "region"']),
    ("an input that is right", DEFINITION + SCHEMA + "---\n" + GOOD + "  input: {region: eu}\n", []),
    ("a definition that is elsewhere", GOOD + "  input: {region: mars}\n", []),
    ("one of that name in another namespace",
     DEFINITION.replace("report}", "report, namespace: other}") + SCHEMA + "---\n" + GOOD, []),
    ("a schema that is none", DEFINITION + "  inputSchema: {items: 7}\n---\n" + GOOD,
     ["f:6: spec.inputSchema.items: 7 is none that items may have"]),
    ("a reference to elsewhere", DEFINITION + "  inputSchema:\n    properties:\n      a: {$ref: 'http://x'}\n",
     ["f:8: spec.inputSchema.properties.a.$ref"]),
    ("a key given and bound", GOOD + "  input: {day: 1}\n  inputFrom:\n  - {name: day, occurrenceField: scheduledTime}\n",
     ["f:9: spec.inputFrom[0].name: 'day' is a key of spec.input, too"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "want"), [row[1:] for row in BESIDE], ids=[row[0] for row in BESIDE])
def test_an_input_is_checked_against_its_definition(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, want: list[str]
) -> None:
    """R24, R36: what would be `Accepted=False`, with the field's line."""
    check(capsys, tmp_path, content, *want)


def test_all_problems_are_said_at_once_by_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """R36: neither a wrong type nor a bad zone hides what else is wrong."""
    content = """\
apiVersion: workflow-schedules.dev/v1
kind: WorkflowSchedule
metadata: {name: Nightly_1, labels: {}}
extra: 1
spec:
  schedules: ["0 0 31 2 *", "@hourly  "]
  timeZone: Mars
  enabled: maybe
  jobTemplate: {spec: {template: {spec: {containers: {a: 1}}}}}
  workflowRef: {name: "", nam: x}
  maxJitterSecond: 5
---
apiVersion: workflow-schedules.dev/v1alpha1
kind: WorkflowDefinition
metadata: {}
spec:
  description: 5
  jobTemplate: {spec: [1]}
"""
    check(
        capsys, tmp_path, content,
        "f:1: apiVersion: 'workflow-schedules.dev/v1' is unknown; write workflow-schedules.dev/v1alpha1",
        "f:3: metadata.name: 'Nightly_1' is no DNS name; write small letters, digits",
        "f:4: extra: no such field",
        "f:5: spec: exactly one of workflowRef and jobTemplate is needed, both are set",
        "f:6: spec.schedules[0]: '0 0 31 2 *' is refused: no such date",
        "f:6: spec.schedules[1]: '@hourly  ' is refused: macros are not read",
        "f:7: spec.timeZone: 'Mars' is no IANA zone",
        "f:8: spec.enabled: 'maybe' is of the wrong type",
        "f:9: spec.jobTemplate.spec.template.spec.containers: write a list",
        "f:10: spec.workflowRef.name: '' has 0 characters: write 1 to 253",
        "f:10: spec.workflowRef.nam: no such field; did you mean name?",
        "f:11: spec.maxJitterSecond: no such field; did you mean maxJitterSeconds?",
        "f:15: metadata.name: is missing",
        "f:17: spec.description: 5 is of the wrong type",
        "f:18: spec.jobTemplate.spec: write an object, as in CronJob",
    )  # fmt: skip


OBJECTS = [
    ("no kind of ours", GOOD.replace("WorkflowSchedule", "WorkflowScedule"),
     "f:2: kind: 'WorkflowScedule' is none of WorkflowSchedule,"),
    ("another group", GOOD.replace("workflow-schedules.dev/", "workflow-schedule.dev/"),
     "f:1: apiVersion: 'workflow-schedule.dev/v1alpha1'"),
    ("no version", GOOD.partition("\n")[2], "f:1: apiVersion: is missing; write workflow-schedules.dev/v1alpha1"),
    ("no kind", GOOD.replace("kind: WorkflowSchedule\n", ""), "f:1: kind: is missing; write one of WorkflowSchedule,"),
    ("neither", "a: 1", 'f:1: {"a": 1} is no Kubernetes object: write apiVersion, kind, metadata and spec'),
    ("a list", "- 1", "f:1: [1] is no Kubernetes object"),
    ("text", "hello", "f:1: 'hello' is no Kubernetes object"),
    ("a number", "42", "f:1: 42 is no Kubernetes object"),
    ("a string in JSON", '"a"', "f:1: 'a' is no Kubernetes object"),
    ("an item that is none, in a List", "kind: List\napiVersion: v1\nitems:\n- 5", "f:4: 5 is no Kubernetes object"),
    ("an item that is null", "kind: List\napiVersion: v1\nitems: [null]", "f:3: null is no Kubernetes object: write apiVersion"),
    ("no items", "kind: List\napiVersion: v1\nitems: null", "f: no object in it"),
    ("items that are an object", "kind: List\napiVersion: v1\nitems: {}", "f:3: items: {} is no list; write one"),
    ("a name that is a number", GOOD.replace("nightly", "5"), "f:3: metadata.name: 5 is no DNS name"),
    ("no spec", GOOD.partition("spec:")[0] + "spec: null\n", "f:4: spec: null is no object; write what is to run, and when"),
    ("none written", GOOD.partition("spec:")[0], "f:1: spec: is missing; write what is to run, and when"),
    ("no spec of a definition", DEFINITION.partition("spec:")[0] + "spec: null\n",
     "f:4: spec: null is no object; write what is to run, as jobTemplate"),
    ("metadata that is null", GOOD.replace("{name: nightly}", "null"), "f:3: metadata: null is no object; write one with a name"),
    ("no metadata", GOOD.replace("metadata: {name: nightly}\n", ""), "f:1: metadata.name: is missing; write a DNS name"),
    ("a name that is null", GOOD.replace("nightly", "null"), "f:3: metadata.name: null is none; write a DNS name such as"),
    ("a name in it that is null", GOOD.replace("name: report", "name: null"),
     "f:5: spec.workflowRef.name: null is of the wrong type: write text"),
    ("no name in it", GOOD.replace("name: report", ""), "f:5: spec.workflowRef.name: is missing: write text"),
    ("no field of a binding", GOOD + "  inputFrom: [{name: a}]\n",
     "f:7: spec.inputFrom[0].occurrenceField: is missing: write one of scheduledTime, name,"),
    ("a template that is null", DEFINITION.partition("  jobTemplate")[0] + "  jobTemplate: null\n",
     "f:5: spec.jobTemplate: null is of the wrong type: write an object"),
    ("a list where a map is expected", GOOD + "  pause: [now]\n",
     'f:7: spec.pause: ["now"] is of the wrong type: write an object'),
    ("a map where a list is expected", GOOD + "  inputFrom: {a: true}\n",
     'f:7: spec.inputFrom: {"a": true} is of the wrong type: write a list'),
    ("a spec that is text", GOOD.partition("spec:")[0] + "spec: x\n",
     "f:4: spec: 'x' is no object; write what is to run, and when"),
    ("a kind that is an object", GOOD.replace("kind: WorkflowSchedule", "kind: {}"),
     "f:2: kind: {} is none of WorkflowSchedule,"),
    ("a kind that is a list", GOOD.replace("kind: WorkflowSchedule", "kind: [WorkflowSchedule]"),
     "f:2: kind: [\"WorkflowSchedule\"] is none of"),
    ("a version that is a list", GOOD.replace("workflow-schedules.dev/v1alpha1", "[a]"),
     'f:1: apiVersion: ["a"] is unknown; write'),
    ("a kind of ten thousand characters is cut", GOOD.replace("kind: WorkflowSchedule", f"kind: {'x' * 10_000}"),
     f"f:2: kind: '{'x' * 99}… is none of"),
    *[(f"metadata that is {given}", GOOD.replace("{name: nightly}", given),
       f"f:3: metadata: {shown} is no object; write one with a name")
      for given, shown in (("3", "3"), ("x", "'x'"), ("[a]", '["a"]'))],
    ("a name that is a list", GOOD.replace("nightly", "[a]"), 'f:3: metadata.name: ["a"] is no DNS name; write small letters'),
    *[(f"{field} that is {given}", GOOD.replace("nightly}", f"nightly,\n  {field}: {given}}}"),
       f"f:4: metadata.{field}: {shown} is of the wrong type: write {wanted}")
      for field, wanted, given, shown in (
          ("uid", "text", "3", "3"), ("uid", "text", "[a]", '["a"]'), ("namespace", "text", "{}", "{}"),
          ("generateName", "text", "5", "5"), ("resourceVersion", "text", "7", "7"),
          ("labels", "an object", "x", "'x'"), ("annotations", "an object", "[a]", '["a"]'),
          ("generation", "a whole number", "x", "'x'"), ("creationTimestamp", "text", "[1]", "[1]"),
          ("finalizers", "a list", "a", "'a'"), ("ownerReferences", "a list", "{}", "{}"))],
    ("a time that is none", GOOD.replace("nightly}", "nightly, creationTimestamp: today}"),
     "f:3: metadata.creationTimestamp: 'today': want RFC 3339"),
    ("an owner that is null", GOOD.replace("nightly}", "nightly, ownerReferences: [null]}"),
     "f:3: metadata.ownerReferences[0]: null is of the wrong type: write an object"),
    ("a label that is a number", GOOD.replace("nightly}", "nightly, labels: {a.b/c: 1}}"),
     "f:3: metadata.labels.a.b/c: 1 is of the wrong type: write text, in quotes if need be"),
    ("no template", DEFINITION.partition("  jobTemplate")[0] + "  enabled: true\n",
     "f:4: spec.jobTemplate: is missing: write an object"),
    ("a long description", DEFINITION + f"  description: {'x' * 1025}\n", "has 1025 characters: write 0 to 1024"),
    ("empty", "", "no object in it"),
    ("comments", "# nothing\n---\n---\n", "no object in it"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "want"), [row[1:] for row in OBJECTS], ids=[row[0] for row in OBJECTS])
def test_objects_that_are_none(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, want: str) -> None:
    check(capsys, tmp_path, content, want)


BOMB = "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
FILES: list[tuple[str, str | bytes, str]] = [
    ("a tab as indentation", "a:\n\tb: 1", "f:2: no YAML: found character that cannot start any token"),
    (
        "a star without quotes",
        GOOD.replace('"0 2 * * *"', "* 2 * * *"),
        "f:6: no YAML: did not find expected alphabetic or numeric "
        "character; write a value that begins with * in quotes",
    ),
    (
        "a step without quotes",
        GOOD.replace('"0 2 * * *"', "*/5 * * * *"),
        "; write a value that begins with * in quotes",
    ),
    ("a key twice", GOOD + "  schedule: 0 3 * * *\n", "f:7: no YAML: the key 'schedule' is written twice"),
    ("a key twice in JSON", '{"a": 1,\n"a": 2}', "f:2: no YAML: the key 'a' is written twice"),
    ("a key that is a list", "? [a]\n: b", "f:1: no YAML: a key has to be text"),
    ("an unknown alias", "a: *b", "f:1: no YAML: found undefined alias"),
    ("an alias inside of itself", "a: &a [*a]", "f: no YAML: an alias is inside of what it stands for"),
    ("a bomb of aliases", BOMB, "f: no YAML: its aliases stand for more than 10000 values"),
    ("deep", "[" * 100_000, "no YAML: exceeded maximum nesting depth"),
    ("deep and closed", '{"a":' * 20_000 + "1" + "}" * 20_000, "f: no YAML: it is nested too deeply"),
    ("half of a document", "a: [1", "no YAML: did not find expected"),
    ("NUL", b"a: \x00", "no YAML: "),
    ("not UTF-8", b"\xff\xfe\x00", "f: is not UTF-8 text: write YAML or JSON"),
    ("a program", b"\x7fELF\x02\x01\x01" + b"\x00" * 99 + b"\xf0", "f: is not UTF-8 text"),
    ("a lone surrogate", '"\\ud800"', "no YAML: found invalid Unicode character escape code"),
    ("not a number", "a: .nan", "f: no YAML: Out of range float values"),
    ("bytes", "a: !!binary aGk=", "f: no YAML: a value does not fit its !!tag, or JSON has none like it"),
    ("a set", "!!set {a, b}", "f: no YAML: a value does not fit its !!tag"),
    ("no bool", "a: !!bool x", "f: no YAML: a value does not fit its !!tag"),
    ("no int", 'a: !!int ""', "f: no YAML: a value does not fit its !!tag"),
    ("no time", "a: !!timestamp x", "f: no YAML: a value does not fit its !!tag"),
    ("an object of Python", "!!python/object/apply:os.system [true]", "no YAML: could not determine a constructor"),
    ("a digit too many", f"a: {'9' * 5000}", "f: no YAML: Exceeds the limit"),
    ("huge", "#" * (2 * 1024 * 1024 + 1), "f: is larger than 2 MiB: split it into several files"),
]


@pytest.mark.parametrize(("content", "want"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_files_that_can_not_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str | bytes, want: str
) -> None:
    """Never a traceback, never a second of thinking."""
    check(capsys, tmp_path, content, want)


def test_paths_that_are_no_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each of them is named, and the others are read all the same."""
    (tmp_path / "good").write_text(GOOD)
    (tmp_path / "bad").write_text("a: 1")
    nowhere, bad, endless = str(tmp_path / "nowhere"), str(tmp_path / "bad"), "/dev/zero"
    assert told(capsys, nowhere, str(tmp_path), str(tmp_path / "good"), endless, bad) == [
        f"{nowhere}: can't be read: No such file or directory",
        f"{tmp_path}: can't be read: Is a directory",
        f"{endless}: is larger than 2 MiB: split it into several files",
        f'{bad}:1: {{"a": 1}} is no Kubernetes object: write apiVersion, kind, metadata and spec',
    ]


def test_one_bad_object_hides_no_other(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """R36."""
    bad = GOOD.replace("WorkflowSchedule", "{}"), GOOD.replace("{name: nightly}", "5"), GOOD.replace("0 2", "0 25")
    check(capsys, tmp_path, "---\n".join(bad), "f:2: kind:", "f:10: metadata:", "f:20: spec.schedule: '0 25 * * *'")


@pytest.mark.parametrize(
    ("encoding", "want"),
    [("ascii", rb"\u00e9 \ud83d\ude00"), ("latin-1", b"\xe9 \\ud83d\\ude00"), ("utf-8", "é 😀".encode())],
)
def test_what_the_encoding_of_the_output_can_not_hold_is_escaped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, encoding: str, want: bytes
) -> None:
    """As JSON has it, so that it means the same."""
    (tmp_path / "f").write_text(GOOD.replace("0 2", "é 😀"), "utf-8")
    shown = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(shown, encoding=encoding))
    assert main(["validate", "-f", str(tmp_path / "f"), "-o", "json"]) == 1
    assert want in shown.getvalue()
    assert "'é 😀 * * *' is refused" in json.loads(shown.getvalue().decode(encoding))["detail"]["message"]


def test_what_no_terminal_should_get_is_escaped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name = str(tmp_path / "a\n\x1b[31m\udcff")
    assert told(capsys, name) == [f"{tmp_path}/a\\n\\x1b[31m\\udcff: can't be read: No such file or directory"]


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(GOOD.replace("0 2", "0 25").encode())))
    assert main(["validate", "-f", "-"]) == 1
    assert capsys.readouterr().err.startswith("-:6: spec.schedule: '0 25 * * *' is refused: hour: '25' is not read")


@pytest.mark.parametrize("arguments", [("validate",), ("validate", "-f"), (), ("validat",), ("validate", "f")], ids=str)
def test_wrong_arguments(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("usage: kubectl wfs")
