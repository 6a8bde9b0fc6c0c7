"""Runs of schedules of one instant: how each can end, and what the schedule says then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.herd import utc
from support.scene import View

if TYPE_CHECKING:
    from support.conformance_wave import OneShots


ENDS = [
    ("done", "Completed", "JobComplete"),
    ("suspended", "Completed", "JobComplete"),
    ("exhausted", "Exhausted", "DeadlineExceeded"),
    ("cancelled", "Cancelled", "CancelRequested"),
]


@pytest.mark.parametrize(("name", "outcome", "reason"), ENDS)
def test_each_way_to_end(ended: View, one_shots: OneShots, name: str, outcome: str, reason: str) -> None:
    """Argo Workflows e2e: succeeded, deadline, terminated; Kueue: suspended at first; R25, R31."""
    (run,) = ended.runs(name)
    assert run["spec"]["scheduledTime"] == utc(one_shots.at)
    assert (run["status"]["outcome"], run["status"]["reason"]) == (outcome, reason)
    assert ended.condition(name, "Complete") == ("True", "OneShotDone")


def test_a_suspended_job_waits_for_whoever_admits_it(started: View, ended: View) -> None:
    """Kueue: a Job is born suspended and is started by somebody else; R25: the run is admitted and keeps its slot."""
    (job,) = started.jobs("suspended")
    assert job["spec"]["suspend"] is True
    assert started.pods("suspended") == []
    assert ended.outcomes("suspended") == ["Completed"]


def test_containers_get_the_input(started: View) -> None:
    """Argo Workflows e2e: parameters; R23: whole, by reference to an annotation, and its scalars by name."""
    (pod,) = started.pods("done")
    given = json.loads(pod["metadata"]["annotations"]["workflow-schedules.dev/input"])
    assert given == {"city": "Zürich", "n": 3, "at": started.runs("done")[0]["spec"]["scheduledTime"]}
    variables = {each["name"]: each for each in pod["spec"]["containers"][0]["env"]}
    assert variables["WORKFLOW_INPUT"]["valueFrom"]["fieldRef"]["fieldPath"].startswith("metadata.annotations[")
    assert (variables["INPUT_CITY"]["value"], variables["INPUT_N"]["value"]) == ("Zürich", "3")


def test_one_instant_of_the_past_never_runs(ended: View) -> None:
    """R7: it is accepted, says so, and is complete."""
    assert ended.runs("past") == []
    assert ended.condition("past", "Complete") == ("True", "OneShotPast")


@pytest.mark.usefixtures("started")
def test_a_template_that_the_api_server_refuses_starts_nothing(one_shots: OneShots) -> None:
    """CronJob: FailedCreate; R24: the dry run of the template says so before the instant, or the Job is refused at it."""
    view = one_shots.scene.until(lambda view: bool(view.decisions("refused")), seconds=120, what="a decision")
    (decision,) = [what for _, what in view.decisions("refused")]
    if decision == "Admitted":
        view = one_shots.scene.until(lambda view: view.outcomes("refused") == ["Failed"], seconds=90, what="a refusal")
        assert view.runs("refused")[0]["status"]["reason"] == "JobRejected"
    else:
        assert decision == "PreflightRejected"
        assert "restartPolicy" in view.log("refused")[-1]["spec"]["message"]
        view = one_shots.scene.until(
            lambda view: view.condition("refused", "RunsHealthy") == ("False", "TemplateRejected"),
            seconds=60,
            what="the refusal in the status",
        )
    assert view.jobs("refused") == []


def test_an_unknown_zone_is_refused_with_its_name(ended: View) -> None:
    """CronJob e2e: timezone validation and UnknownTimeZone; R36: in `Accepted` where no webhook says it."""
    assert ended.condition("unknown-zone", "Accepted") == ("False", "UnknownTimeZone")
    assert ended.condition("unknown-zone", "Stalled")[0] == "True"
    (message,) = [each["message"] for each in ended.status("unknown-zone")["conditions"] if each["type"] == "Accepted"]
    assert "Mars/Olympus" in message


def test_delete_takes_runs_and_records_along(ended: View, one_shots: OneShots) -> None:
    """CronJob e2e: cascading deletion; R20: `deletionPolicy: Delete`, by the real garbage collector, Pods too."""
    assert ended.log("swept")
    assert ended.jobs("swept")
    one_shots.scene.delete("wfs/swept")
    view = one_shots.scene.until(
        lambda view: not (view.log("swept") or view.jobs("swept") or view.pods("swept")),
        seconds=120,
        what="everything of a deleted schedule gone",
    )
    assert view.schedule("swept") == {"status": {}}
