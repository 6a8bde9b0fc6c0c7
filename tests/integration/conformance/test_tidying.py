"""What is left in the end: finished Jobs by their limits, the histories of deleted schedules, and how a block is lifted.

All of it takes a minute and a half after a takeover by design (K, L + R), so it comes last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.scene import Scene, View

SECONDS = 200


def _gone_condition(view: View) -> object:
    conditions = [each for record in view.log("down-gone") for each in record["status"].get("conditions", ())]
    return next((each for each in conditions if each["type"] == "ScheduleDeleted"), None)


@pytest.mark.parametrize(
    ("name", "requests", "outcome"),
    [("one-successful", "good", "Completed"), ("one-failed", "bad", "Exhausted")],
)
def test_finished_jobs_beyond_the_limit_go(tidying: Scene, name: str, requests: str, outcome: str) -> None:
    """CronJob e2e: should delete successful/failed finished jobs with limit of one; R26, K-103: with Pods, not records.

    The newest stays: it was asked for half a minute after the others.
    """
    view = tidying.until(
        lambda view: len(view.jobs(name)) == 1 and len(view.pods(name)) <= 1, seconds=SECONDS, what=f"Jobs of {name}"
    )
    asked = [view.request(f"{requests}-{n}") for n in range(3)]
    assert all(each["status"].get("outcome") == outcome for each in asked)
    (job,) = view.jobs(name)
    assert job["metadata"]["uid"] == asked[-1]["status"]["jobUID"]
    owners = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in view.pods(name)}
    assert owners <= {job["metadata"]["uid"]}


def test_the_history_of_a_deleted_schedule_says_since_when(tidying: Scene) -> None:
    """R20: deleted while no operator ran; its record is kept, and marked."""
    view = tidying.until(lambda view: _gone_condition(view) is not None, seconds=SECONDS, what="ScheduleDeleted")
    assert view.schedule("down-gone") == {"status": {}}


def test_a_deleted_job_leaves_the_active_list(tidying: Scene) -> None:
    """CronJob e2e: should remove from active list jobs that have been deleted; R25, P12: and is not started again."""
    view = tidying.until(
        lambda view: (
            view.outcomes("job-deleted") == ["Failed"]
            and not view.status("job-deleted").get("active")
            and view.condition("job-deleted", "Complete") == ("True", "OneShotDone")
        ),
        seconds=SECONDS,
        what="a deleted Job off the list",
    )
    assert view.runs("job-deleted")[0]["status"]["reason"] == "JobMissing"
    assert "external effects" in view.runs("job-deleted")[0]["status"]["message"]
    assert view.jobs("job-deleted") == []


def test_a_cancelled_run_loses_its_job(tidying: Scene) -> None:
    """Argo Workflows e2e: terminate; R31, R14: the outcome first, then the Job with its Pods."""
    view = tidying.until(
        lambda view: not view.jobs("cancelled") and view.status("cancelled").get("active", []) == [],
        seconds=SECONDS,
        what="the Job of a cancelled run gone",
    )
    assert view.outcomes("cancelled") == ["Cancelled"]
    assert view.pods("cancelled") == []


def test_a_pod_that_can_not_go_is_named(tidying: Scene) -> None:
    """CronJob: a Job that hangs in foreground deletion; R14: its Pod is named in `RunsHealthy`, and it keeps its slot."""
    view = tidying.until(
        lambda view: view.condition("pinned", "RunsHealthy") == ("False", "CannotBeRemoved"),
        seconds=SECONDS,
        what="what keeps a Job told",
    )
    (pod,) = view.pods("pinned")
    conditions = {each["type"]: each["message"] for each in view.status("pinned")["conditions"]}
    assert pod["metadata"]["name"] in conditions["RunsHealthy"]
    assert len(view.status("pinned")["active"]) == 1
    tidying.patch(f"pod/{pod['metadata']['name']}", {"metadata": {"finalizers": None}})
    tidying.until(
        lambda view: not view.jobs("pinned") and view.condition("pinned", "RunsHealthy")[0] == "True",
        seconds=SECONDS,
        what="the Job gone with its Pod",
    )


def test_a_contradicting_record_is_set_aside(tidying: Scene, unblock_asked: str) -> None:
    """R31: blocked with the record's name, unblocked by naming it, a number that was never used goes on."""
    view = tidying.until(
        lambda view: (
            view.log("blocked")[-1]["spec"].get("reason") == "Unblocked" and view.status("blocked")["state"] == "Active"
        ),
        seconds=SECONDS,
        what="the block lifted",
    )
    assert view.log("blocked")[-1]["metadata"]["name"] > unblock_asked
    assert view.condition("blocked", "Stalled")[0] == "False"
