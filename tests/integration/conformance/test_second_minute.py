"""What is due a minute later: overlap, what stops a schedule in between, and what was edited."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from support.scene import View

if TYPE_CHECKING:
    from support.conformance_wave import Wave


def test_allow_runs_both_at_once(second_minute: View, wave: Wave) -> None:
    """CronJob e2e: should schedule multiple jobs concurrently; R13."""
    assert second_minute.decisions("allow") == [(at, "Admitted") for at in wave.instants]
    assert len([job for job in second_minute.jobs("allow") if job["status"].get("active")]) == 2
    status = second_minute.status("allow")
    assert status["active"] == [run["metadata"]["name"] for run in second_minute.runs("allow")]
    assert status["activeCount"] == 2


def test_forbid_starts_nothing_beside_a_stuck_run(second_minute: View, wave: Wave) -> None:
    """CronJob e2e: should not schedule new jobs when ForbidConcurrent; CronWorkflow e2e: Forbid; R12, R16."""
    assert second_minute.decisions("forbid") == [(wave.instants[0], "Admitted"), (wave.instants[1], "SkippedOverlap")]
    assert len(second_minute.jobs("forbid")) == 1
    assert len(second_minute.status("forbid")["active"]) == 1


@pytest.mark.usefixtures("second_minute")
def test_a_blocked_instant_is_told_by_an_event(wave: Wave) -> None:
    """CronJob e2e: Forbid emits JobAlreadyActive, and no warning; R32."""
    view = wave.scene.until(
        lambda view: "JobAlreadyActive" in {each["reason"] for each in view.events("forbid")},
        seconds=90,
        what="an Event JobAlreadyActive",
    )
    assert [each["type"] for each in view.events("forbid") if each["reason"] == "JobAlreadyActive"] == ["Normal"]


@pytest.mark.usefixtures("second_minute")
def test_one_instant_waits_for_the_run_that_goes_on(wave: Wave) -> None:
    """Temporal: overlap policy buffer one; R16: under `Latest` the newest waits, the older are `Coalesced`, none is lost."""

    def is_blocked(view: View) -> bool:
        waits = [datetime.fromisoformat(at) for at in view.status("down-buffered").get("candidates", ())]
        return len(waits) == 1 and waits[0] >= wave.second and view.decisions("down-buffered")[-1][1] == "Coalesced"

    view = wave.scene.until(is_blocked, seconds=90, what="one instant that waits, and older ones given up for it")
    assert (len(view.runs("down-buffered")), len(view.jobs("down-buffered"))) == (1, 1)
    wave.scene.end_pods("down-buffered", "Succeeded")
    view = wave.scene.until(
        lambda view: len(view.jobs("down-buffered")) == 2, seconds=90, what="what waited started when the run had ended"
    )
    wave.scene.delete("wfs/down-buffered")
    first, second = view.runs("down-buffered")
    assert (first["status"]["outcome"], second["spec"]["open"]) == ("Completed", [second["spec"]["sequence"]])
    log = [each for each in view.log("down-buffered") if each["spec"]["sequence"] > first["spec"]["sequence"]]
    between = [each for each in log if each["spec"]["sequence"] < second["spec"]["sequence"]]
    assert {each["spec"]["decision"] for each in between} == {"Coalesced"}
    instants = [datetime.fromisoformat(each["spec"]["scheduledTime"]) for each in (first, second)]
    given_up = sum(each["spec"].get("span", {"count": 1})["count"] for each in between)
    assert (instants[1] - instants[0]).total_seconds() == 60 * (given_up + 1)


def test_replace_ends_the_old_run_first(second_minute: View, wave: Wave) -> None:
    """CronJob e2e: should replace jobs when ReplaceConcurrent; CronWorkflow e2e: Replace; R14."""
    assert second_minute.decisions("replace") == [(at, "Admitted") for at in wave.instants]
    old, new = second_minute.runs("replace")
    assert (old["status"]["outcome"], old["status"]["reason"]) == ("Cancelled", "Replaced")
    (job,) = second_minute.jobs("replace")
    assert job["metadata"]["name"] == new["metadata"]["name"]
    pods = [pod for pod in second_minute.pods("replace") if "deletionTimestamp" not in pod["metadata"]]
    assert {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods} <= {job["metadata"]["uid"]}
    assert second_minute.status("replace")["active"] == [new["metadata"]["name"]]


def test_a_run_that_never_gets_ready_makes_room(second_minute: View, wave: Wave) -> None:
    """CronWorkflow issue: Forbid with a stuck run freezes the schedule; section 2, `startTimeoutSeconds`."""
    stuck, following = second_minute.runs("stuck")
    assert (stuck["status"]["outcome"], stuck["status"]["reason"]) == ("Failed", "StartTimeout")
    assert following["spec"]["scheduledTime"] == wave.instants[1]


@pytest.mark.parametrize(
    ("name", "state"),
    [("disabled", "Disabled"), ("paused", "Paused"), ("orphan", "Held"), ("of-disabled", "Held")],
)
def test_what_is_switched_off_starts_nothing(second_minute: View, name: str, state: str) -> None:
    """CronJob e2e: should not schedule jobs when suspended; CronWorkflow e2e: suspend; R1, R4, R18, R19."""
    assert second_minute.decisions(name) == []
    assert second_minute.jobs(name) == []
    status = second_minute.status(name)
    assert status["state"] == state
    assert status["activeCount"] == 0
    assert second_minute.condition(name, "Ready")[0] == "True"


def test_who_paused_and_why_is_told(second_minute: View) -> None:
    """Temporal: pause with a note; R19."""
    conditions = {each["type"]: each for each in second_minute.status("paused")["conditions"]}
    assert "maintenance until noon" in conditions["Paused"]["message"]


def test_a_missing_and_a_disabled_definition_are_told_apart(second_minute: View) -> None:
    """CronWorkflow: a workflowTemplateRef that is not there; R4."""
    assert second_minute.condition("orphan", "ParentEnabled") == ("False", "WorkflowNotFound")
    assert second_minute.condition("of-disabled", "ParentEnabled") == ("False", "WorkflowDisabled")


def test_what_is_resumed_takes_the_next_instant_only(second_minute: View, wave: Wave) -> None:
    """Temporal: unpause; CronWorkflow e2e: resume; R19: the paused instant is consumed."""
    assert second_minute.decisions("resumed") == [(wave.instants[1], "Admitted")]
    assert [each["spec"]["reason"] for each in second_minute.log("resumed")][:2] == ["Created", "Resumed"]


def test_an_edit_runs_nothing_again(second_minute: View, wave: Wave) -> None:
    """Temporal: an update does not rerun the past; R9, R10, R11: it is on record, and only the future has it."""
    assert second_minute.decisions("edited") == [(at, "Admitted") for at in wave.instants]
    old, new = second_minute.runs("edited")
    assert (old["spec"]["revision"], new["spec"]["revision"]) == (1, 2)
    assert (old["spec"]["inputJSON"], new["spec"]["inputJSON"]) == ('{"turn":1}', '{"turn":2}')
    assert second_minute.status("edited")["revision"] == 2


def test_a_used_up_limit_completes_the_schedule(second_minute: View, wave: Wave) -> None:
    """Temporal: limited actions; CronWorkflow e2e: stopStrategy; R21."""
    assert second_minute.decisions("limited") == [(wave.instants[0], "Admitted")]
    assert second_minute.condition("limited", "Complete") == ("True", "RunLimitReached")
    assert second_minute.status("limited")["state"] == "Complete"


def test_a_passed_end_completes_the_schedule(second_minute: View, wave: Wave) -> None:
    """Temporal: end time; R21."""
    assert second_minute.decisions("ending") == [(wave.instants[0], "Admitted")]
    assert second_minute.condition("ending", "Complete") == ("True", "EndTimePassed")


def test_failures_in_a_row_pause_the_schedule(second_minute: View, wave: Wave) -> None:
    """CronWorkflow e2e: stopStrategy after failures; Temporal: pause on failure; section 2, `pauseAfterFailures`."""
    assert second_minute.decisions("failing") == [(wave.instants[0], "Admitted")]
    assert second_minute.outcomes("failing") == ["Failed"]
    assert second_minute.condition("failing", "Paused") == ("True", "TooManyFailures")
    status = second_minute.status("failing")
    assert (status["state"], status["consecutiveFailures"]) == ("Paused", 1)


@pytest.mark.parametrize("name", ["switched-a", "switched-b"])
def test_a_definition_switched_off_disables_its_schedules(second_minute: View, name: str) -> None:
    """R2: `DisableSchedules` is written into each spec, with the operator's rights and no others; and on record."""
    schedule = second_minute.schedule(name)
    assert schedule["spec"]["enabled"] is False
    assert len(second_minute.runs(name)) == 1
    managers = {each["manager"] for each in schedule["metadata"].get("managedFields", ())}
    assert managers <= {"kubectl-client-side-apply", "workflow-schedules"}
    assert second_minute.log(name)[-1]["spec"]["reason"] in {"Held", "Disabled"}


def test_a_definition_that_holds_leaves_specs_alone(second_minute: View) -> None:
    """R3."""
    assert second_minute.schedule("held")["spec"]["enabled"] is True
    assert len(second_minute.runs("held")) == 1
    assert second_minute.definition("holding")["status"]["schedules"] == 1


def test_a_deleted_schedule_starts_no_more_and_its_runs_stay(second_minute: View, wave: Wave) -> None:
    """CronJob e2e: deletion; R20: with `Retain`, what ran and its history stay."""
    assert second_minute.schedule("deleted") == {"status": {}}
    assert second_minute.decisions("deleted") == [(wave.instants[0], "Admitted")]
    assert second_minute.outcomes("deleted") == ["Completed"]
    assert len(second_minute.jobs("deleted")) == 1


def test_the_status_tells_last_recent_and_next(second_minute: View, wave: Wave) -> None:
    """CronJob e2e: lastScheduleTime and lastSuccessfulTime; Temporal: describe shows recent and next."""
    status = second_minute.status("plain")
    assert status["lastScheduleTime"] == wave.instants[1]
    assert datetime.fromisoformat(status["lastSuccessfulTime"]) >= wave.second
    assert status["lastOccurrence"]["outcome"] == "Completed"
    assert [line["time"] for line in status["recent"]] == wave.instants[::-1]
    assert status["counts"]["admitted"] == status["counts"]["completed"] == 2
    assert len(status["nextScheduleTimes"]) == 5
    assert status["nextScheduleTimes"][0] == status["nextScheduleTime"]


@pytest.mark.usefixtures("second_minute")
def test_good_runs_emit_no_warning(wave: Wave) -> None:
    """CronJob e2e: should not emit unexpected warnings; R32: CronJob's reasons, accepted by the API server."""
    view = wave.scene.until(
        lambda view: {"SuccessfulCreate", "SawCompletedJob"} <= {each["reason"] for each in view.events("plain")},
        seconds=90,
        what="Events of good runs",
    )
    assert {each["type"] for each in view.events("plain")} == {"Normal"}
    assert not {"MissingJob", "UnexpectedJob"} & {each["reason"] for each in view.events("plain")}
