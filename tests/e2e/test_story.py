"""What users see on a cluster with real containers: from `kubectl apply` to each way in which a run can end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.cluster_stories import a_manifest, manifests, occurrences, until
from support.herd import ahead, utc
from support.kind_cluster import INSTALL, NAMESPACE, a_template, apply

if TYPE_CHECKING:
    from collections.abc import Callable

    Kubectl = Callable[..., Any]
    Json = dict[str, Any]


def a_run(name: str, script: str, *, input: Json | None = None, **job: object) -> Json:  # noqa: A002 - the field's name
    """A schedule that runs once, soon."""
    more = {} if input is None else {"input": input}
    return a_manifest(name, runOnceTime=utc(ahead(seconds=20)), jobTemplate=a_template(script, **job), **more)


def the_run(kubectl: Kubectl, namespace: str, schedule: str) -> Json:
    """The record of a schedule's only run, or an empty one."""
    mine = [occ for occ in occurrences(kubectl, namespace) if occ["spec"]["scheduleRef"]["name"] == schedule]
    admitted = [occ for occ in mine if occ["spec"]["decision"] == "Admitted"]
    assert len(admitted) <= 1, f"{schedule} ran twice"
    return admitted[0] if admitted else {"metadata": {}, "status": {}}


def ended(kubectl: Kubectl, namespace: str, schedule: str, *, seconds: float = 120) -> tuple[str, str]:
    """Outcome and reason of a schedule's only run, once it has ended."""
    final = {"Completed", "Failed", "Exhausted", "Cancelled"}
    occ = until(
        lambda: the_run(kubectl, namespace, schedule),
        lambda found: found["status"].get("outcome") in final,
        seconds=seconds,
    )
    return occ["status"]["outcome"], occ["status"]["reason"]


def test_each_way_in_which_a_run_can_end(kubectl: Kubectl, namespace: str) -> None:
    """R22, R23, R25: it reads its input, fails, takes too long, is deleted by hand: each is told by outcome and reason."""
    apply(
        kubectl,
        namespace,
        a_run("reads", 'echo "$WORKFLOW_INPUT" "$WORKFLOW_SCHEDULE"', input={"city": "Zürich", "n": [1, 2]}),
        a_run("fails", "exit 3"),
        a_run("late", "sleep 300", activeDeadlineSeconds=3),
        a_run("deleted", "sleep 300"),
    )
    job = until(
        lambda: the_run(kubectl, namespace, "deleted")["metadata"].get("name", ""),
        lambda name: name != "" and kubectl("get", "job", name, "-n", namespace, check=False).returncode == 0,
        seconds=90,
    )
    kubectl("delete", "job", job, "-n", namespace)
    # that a Job is missing is told only when nothing of an earlier leader can arrive any more: 90 s after the takeover
    assert {name: ended(kubectl, namespace, name, seconds=200) for name in ("reads", "fails", "late", "deleted")} == {
        "reads": ("Completed", "JobComplete"),
        "fails": ("Failed", "BackoffLimitExceeded"),
        "late": ("Exhausted", "DeadlineExceeded"),
        "deleted": ("Failed", "JobMissing"),
    }
    said = kubectl("logs", "-n", namespace, "-l", "workflow-schedules.dev/schedule=reads").stdout
    given, _, schedule = said.strip().rpartition(" ")
    assert json.loads(given) == {"city": "Zürich", "n": [1, 2]}
    assert schedule == "reads"


def test_history_is_found_by_label_and_by_field(kubectl: Kubectl, namespace: str) -> None:
    """R29: what ran, what failed and why, with kubectl alone."""
    apply(kubectl, namespace, a_run("well", "true"), a_run("badly", "false"))
    for name in ("well", "badly"):
        ended(kubectl, namespace, name)

    def names(*selector: str) -> set[str]:
        path = "jsonpath={.items[*].spec.scheduleRef.name}"
        return {*kubectl("get", "occ", "-n", namespace, *selector, "-o", path).stdout.split()}

    assert names("-l", "workflow-schedules.dev/schedule=well") == {"well"}
    assert names("--field-selector", "status.outcome=Failed") == {"badly"}
    assert names("--field-selector", "spec.decision=Admitted,status.outcome=Completed") == {"well"}
    assert names("--field-selector", "spec.scheduleRef.name=badly,spec.cause=Scheduled") == {"badly"}
    table = kubectl("get", "occ", "-n", namespace, "--field-selector", "status.outcome=Failed").stdout
    assert "BackoffLimitExceeded" in table


def test_a_suspended_run_is_interrupted_and_goes_on(kubectl: Kubectl, namespace: str) -> None:
    """R26: suspending a started Job interrupts its run; resumed it runs to its end, as the same run."""
    apply(kubectl, namespace, a_run("paused", "sleep 15"))
    running = until(
        lambda: the_run(kubectl, namespace, "paused")["metadata"].get("name", ""),
        lambda name: (
            name != ""
            and kubectl("get", "job", name, "-n", namespace, "-o", "jsonpath={.status.active}", check=False).stdout
            == "1"
        ),
        seconds=90,
    )
    kubectl("patch", "job", running, "-n", namespace, "-p", '{"spec":{"suspend":true}}')
    until(
        lambda: the_run(kubectl, namespace, "paused")["status"].get("outcome", ""),
        lambda outcome: outcome == "Interrupted",
        seconds=90,
    )
    kubectl("patch", "job", running, "-n", namespace, "-p", '{"spec":{"suspend":false}}')
    assert ended(kubectl, namespace, "paused") == ("Completed", "JobComplete")
    transitions = [each["outcome"] for each in the_run(kubectl, namespace, "paused")["status"]["transitions"]]
    # on a busy machine it may have run for long enough to be told that it runs
    told = [each for each in transitions if each != "Running"]
    assert (told[0], told[-1]) == ("Interrupted", "Completed")


def test_applying_again_by_client_and_by_server_changes_nothing(kubectl: Kubectl, namespace: str) -> None:
    """R10: what GitOps does all day: no diff, no new generation, no record; for schedules and for the installation."""
    text = manifests(
        a_manifest("yearly", schedule="0 0 1 1 *", timeZone="Europe/Zurich", jobTemplate=a_template("true")),
        {
            "apiVersion": "workflow-schedules.dev/v1alpha1",
            "kind": "WorkflowDefinition",
            "metadata": {"name": "shared"},
            "spec": {"jobTemplate": a_template("true")},
        },
        a_manifest("by-reference", schedule="0 0 1 1 *", workflowRef={"name": "shared"}),
    )
    where = ("-n", namespace, "-f", "-")

    def state() -> list[tuple[str, int]]:
        items = json.loads(kubectl("get", "wfs,wfd,occ", "-n", namespace, "-o", "json").stdout)["items"]
        return sorted((item["metadata"]["name"], item["metadata"]["generation"]) for item in items)

    kubectl("apply", *where, input=text)
    before = until(state, lambda found: len(found) == 5, seconds=90)
    again = kubectl("apply", *where, input=text).stdout.splitlines()
    assert all(line.endswith(" unchanged") for line in again), again
    assert kubectl("diff", *where, input=text, check=False).returncode == 0
    for _ in range(2):
        kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=gitops", *where, input=text)
    assert (
        kubectl("diff", "--server-side", "--force-conflicts", "--field-manager=gitops", *where, input=text).stdout == ""
    )
    assert state() == before
    installed = kubectl("diff", "-k", str(INSTALL), check=False)
    assert installed.returncode == 0, installed.stdout + installed.stderr


def test_the_operator_is_confined(kubectl: Kubectl) -> None:
    """Its Pods meet the restricted standard that their namespace enforces, and can't write to their own file system."""
    pods = json.loads(kubectl("get", "pods", "-n", NAMESPACE, "-o", "json").stdout)["items"]
    pod = next(
        pod["metadata"]["name"]
        for pod in pods
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    )
    script = "import os; print(os.getuid()); open('/tmp/x', 'w')"
    python = "/opt/workflow-schedules/bin/python3"
    tried = kubectl("exec", "-n", NAMESPACE, pod, "--", python, "-c", script, check=False)
    assert tried.stdout.strip() == "65532"
    assert "Read-only file system" in tried.stderr
