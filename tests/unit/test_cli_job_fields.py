"""`kubectl wfs validate` looks into templates: what it finds is a warning, with its line, and never an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workflow_schedules.cli.job_fields import NOT_INSTALLED
from workflow_schedules.cli.main import main

HEAD = """\
apiVersion: workflow-schedules.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: report}
spec:
  jobTemplate:
"""
POD = """\
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: main
            image: busybox:1.37
"""
FINE = HEAD + POD
IN_POD = "spec.jobTemplate.spec.template.spec"


def warned(capsys: pytest.CaptureFixture[str], folder: Path, content: str, *, status: int = 0) -> list[str]:
    """Return the warnings, after checking that programs get them beside what is answered, and that they are no errors."""
    path = folder / "f"
    path.write_text(content)
    answers = []
    for form in ("table", "json"):
        assert main(["validate", "-f", str(path), "-o", form]) == status
        lines = [line.replace(f"{folder}/", "") for line in capsys.readouterr().err.splitlines()]
        answers.append([line.removeprefix("warning: ") for line in lines if line.startswith("warning: ")])
    assert answers[0] == answers[1]
    return answers[0]


ROWS = [
    ("nothing", "", []),
    ("a misspelt field of a container", "            comand: [a]",
     [f"f:13: {IN_POD}.containers[0].comand: no field of a Job that is known here; did you mean command?"]),
    ("a misspelt field of the Pod", "          restartPolicyy: Never", [f"{IN_POD}.restartPolicyy: no field"]),
    ("a misspelt field of the Job", "      activeDeadlineSecond: 60",
     ["f:13: spec.jobTemplate.spec.activeDeadlineSecond: no field of a Job that is known here; did you mean "
      "activeDeadlineSeconds?"]),
    ("a field of the wrong level", "    backoffLimit: 1", ["f:13: spec.jobTemplate.backoffLimit: no field of a Job"]),
    ("nothing like it", "      xyz: 1",
     ["xyz: no field of a Job that is known here; an API server "
      "that doesn't know it either drops it"]),
    ("of a variable", "            env: [{name: A, valu: b}]", [f"{IN_POD}.containers[0].env[0].valu: no field of a Job"]),
    ("a number as the value of a variable", "            env:\n            - {name: A, value: 8080}",
     [f"f:14: {IN_POD}.containers[0].env[0].value: 8080 is of the wrong type: write text, in quotes if need be"]),
    ("a quantity may be a number",
     "            resources: {requests: {cpu: 1, memory: 1.5}, limits: {cpu: 500m}}\n"
     "          volumes: [{name: v, emptyDir: {sizeLimit: 5}}]",
     []),
    ("a port by number or name", "            livenessProbe: {httpGet: {port: 80}, tcpSocket: {port: web}}", []),
    ("a number as a label", "    metadata: {labels: {a: 1}}",
     ["spec.jobTemplate.metadata.labels.a: 1 is of the wrong type: write text"]),
    ("text as a number", "      backoffLimit: '3'",
     ["spec.jobTemplate.spec.backoffLimit: '3' is of the wrong type: write a whole"]),
    ("a switch as a number", "      backoffLimit: true", ["spec.jobTemplate.spec.backoffLimit: true is of the wrong type"]),
    ("text as a switch", "      suspend: 'true'",
     ["spec.jobTemplate.spec.suspend: 'true' is of the wrong type: write true or false"]),
    ("an object as a list", "          volumes: {a: b}",
     [IN_POD + '.volumes: {"a": "b"} is of the wrong type: write a list']),
    ("a list as an object", "          securityContext: [a]",
     [IN_POD + '.securityContext: ["a"] is of the wrong type: write an object']),
    ("a list as a map", "          nodeSelector: [a]", [IN_POD + '.nodeSelector: ["a"] is of the wrong type: write an object']),
    ("null is left out", "          volumes: null\n            ".rstrip(), []),
    ("what Kueue wants", "      suspend: true\n    metadata: {labels: {kueue.x-k8s.io/queue-name: q}}", []),
    ("a name of its own", "    metadata: {name: x}", ["f:13: spec.jobTemplate.metadata.name: is left out"]),
    ("a Job that was pasted whole", "    kind: Job\n    apiVersion: batch/v1",
     ["f:13: spec.jobTemplate.kind: is left out", "f:14: spec.jobTemplate.apiVersion: is left out"]),
    ("a time that is not followed, once", "      ttlSecondsAfterFinished: '60'",
     ['ttlSecondsAfterFinished: "60" is not followed']),
]  # fmt: skip


@pytest.mark.parametrize(("more", "want"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_warnings(capsys: pytest.CaptureFixture[str], tmp_path: Path, more: str, want: list[str]) -> None:
    """R24, R36: field, value and what would do; exit code 0, since an API server may know better."""
    found = warned(capsys, tmp_path, f"{FINE}{more}\n")
    assert len(found) == len(want), found
    assert all(part in line for part, line in zip(want, found, strict=True)), found


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        (
            "restartPolicy: Always",
            ["f:9: ", "restartPolicy: 'Always' is for Pods that never end: write Never or OnFailure"],
        ),
        ("hostname: a", ["f:8: ", "restartPolicy: is missing: write Never or OnFailure"]),
        ("restartPolicy: OnFailure", []),
        ("restartPolicy: [a]", ['restartPolicy: ["a"] is of the wrong type']),
    ],
)
def test_what_a_job_refuses_most_often(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, policy: str, want: list[str]
) -> None:
    found = warned(capsys, tmp_path, FINE.replace("restartPolicy: Never", policy))
    assert len(found) == bool(want), found
    assert all(part in found[0] for part in want), found


def test_schedules_with_a_template_of_their_own_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    inline = FINE.replace("WorkflowDefinition", "WorkflowSchedule") + "            x: 1\n  schedule: 0 * * * *\n"
    (found,) = warned(capsys, tmp_path, f"{FINE}---\n{inline}")
    assert found.startswith(f"f:26: {IN_POD}.containers[0].x: no field")


def test_errors_hide_no_warning(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """R36: all at once; a template that can't be rendered has an error instead."""
    assert len(warned(capsys, tmp_path, f"{FINE}            x: 1\n  enabld: true\n", status=1)) == 1
    assert warned(capsys, tmp_path, f"{HEAD}    spec: [1]\n", status=1) == []
    assert warned(capsys, tmp_path, "kind: WorkflowDefinition\nspec: 7\n", status=1) == []


def test_without_the_models_it_says_what_is_not_looked_at(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and only where there is a template."""
    monkeypatch.setitem(sys.modules, "kubernetes.client.models", None)
    assert warned(capsys, tmp_path, f"{FINE}            x: 1\n---\n{FINE}") == [NOT_INSTALLED]
    by_reference = HEAD.replace("Definition", "Schedule").replace("jobTemplate:", "workflowRef: {name: a}")
    assert warned(capsys, tmp_path, f"{by_reference}  schedule: 0 * * * *\n") == []


@pytest.mark.parametrize(
    ("module", "is_imported"),
    [("workflow_schedules.cli.main", "False"), ("workflow_schedules.app.composition", "False")],
)
def test_the_models_are_not_imported_before_a_template_is_looked_at(module: str, is_imported: str) -> None:
    """They are half a second and 16 MB."""
    script = f"import sys, {module}; print('kubernetes' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == is_imported
