"""Runs that people ask for: now, and of the past."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from support.herd import utc
from support.scene import Scene, View, a_request, a_schedule, has_ended

if TYPE_CHECKING:
    from support.conformance_wave import OneShots

HOUR = (datetime.now(UTC) + timedelta(hours=12)).hour  # so that nothing comes due by itself
DAILY = {"schedule": f"0 {HOUR} * * *"}
ASKED = ("ask", "ask-disabled", "ask-paused", "ask-off", "ask-typed")


def days_ago(days: int) -> str:
    at = datetime.now(UTC).replace(hour=HOUR, minute=0, second=0, microsecond=0)
    return utc(at - timedelta(days=days))


@pytest.fixture(scope="package")
def asked(one_shots: OneShots, scene: Scene) -> View:  # noqa: ARG001 - they come due meanwhile
    """The namespace when everything that was asked for has ended; the one-shots come due meanwhile."""
    scene.apply(
        a_schedule("ask", **DAILY, input={"who": "schedule"}, successfulJobsHistoryLimit=10),
        a_schedule("ask-disabled", **DAILY, enabled=False),
        a_schedule("ask-paused", **DAILY, pause={"reason": "on call"}),
        a_schedule("ask-off", **DAILY, workflowRef={"name": "off"}),
        a_schedule("ask-typed", **DAILY, workflowRef={"name": "typed"}, input={"n": 1}),
    )
    scene.until(
        lambda view: all("state" in view.status(name) for name in ASKED), seconds=60, what="schedules to ask for"
    )
    requests = [
        a_request("now", "ask"),
        a_request("with-input", "ask", input={"who": "me"}),
        a_request("disabled", "ask-disabled"),
        a_request("paused", "ask-paused"),
        *(
            a_request(f"day-{n}", "ask", cause="Backfill", scheduledTime=days_ago(n)) for n in (4, 2, 3)
        ),  # whoever is seen first has the place
        a_request("future", "ask", cause="Backfill", scheduledTime=days_ago(-2)),
        a_request("no-instant", "ask", cause="Backfill", scheduledTime=days_ago(2).replace(":00Z", ":30Z")),
        a_request("off", "ask-off"),
        a_request("nowhere", "not-there"),
        a_request("typed-bad", "ask-typed", input={"n": 10}),
    ]
    scene.apply(*requests)
    names = [each["metadata"]["name"] for each in requests]
    return scene.until(
        lambda view: (
            all(has_ended(view.request(name)) for name in names)
            and view.status("ask").get("lastSuccessfulTime") is not None
            and {"now", "with-input"} <= {line["name"] for line in view.status("ask").get("recent", ())}
        ),
        seconds=150,
        what="what people asked for",
    )


RAN = ["now", "with-input", "disabled", "paused", "day-2", "day-3", "day-4"]


@pytest.mark.parametrize("name", RAN)
def test_what_is_asked_for_runs(asked: View, name: str) -> None:
    """Temporal: trigger immediately and backfill, also while paused; CronWorkflow e2e: backfill; R27."""
    request = asked.request(name)
    assert request["status"]["outcome"] == "Completed"
    schedule = asked.schedule(request["spec"]["scheduleRef"]["name"])
    assert request["status"]["scheduleUID"] == schedule["metadata"]["uid"]
    (job,) = [job for job in asked.jobs(schedule["metadata"]["name"]) if job["metadata"]["name"] == name]
    assert job["metadata"]["ownerReferences"][0]["uid"] == request["metadata"]["uid"]


REFUSED = [
    ("future", "InstantInFuture"),
    ("no-instant", "NotAnInstant"),
    ("off", "WorkflowDisabled"),
    ("nowhere", "ScheduleNotFound"),
    ("typed-bad", "InputRejected"),
]


@pytest.mark.parametrize(("name", "reason"), REFUSED)
def test_what_can_not_be_run_is_answered(asked: View, name: str, reason: str) -> None:
    """Temporal: a backfill of the future; R24, R27, R36: an outcome with a reason, and no Job."""
    status = asked.request(name)["status"]
    assert (status["outcome"], status["reason"]) == ("Failed", reason)
    assert name not in {
        job["metadata"]["name"] for job in asked.jobs(asked.request(name)["spec"]["scheduleRef"]["name"])
    }


def test_the_input_of_a_request_takes_the_place_of_the_schedules(asked: View) -> None:
    """Argo Workflows e2e: submit with parameters; R27."""
    given = {name: json.loads(asked.request(name)["status"]["inputJSON"]) for name in ("now", "with-input")}
    assert given == {"now": {"who": "schedule"}, "with-input": {"who": "me"}}


def test_a_backfill_runs_oldest_first_and_one_at_a_time(asked: View) -> None:
    """CronWorkflow e2e: backfill; Temporal: backfill honours overlap; R27."""
    runs = [asked.request(name)["status"] for name in ("day-4", "day-3", "day-2")]
    assert all(before["completionTime"] <= after["startTime"] for before, after in pairwise(runs))


def test_requests_are_history_and_no_decision(asked: View) -> None:
    """Temporal: describe shows manual actions; R27: in history and last success, never in the log."""
    assert asked.decisions("ask") == []
    status = asked.status("ask")
    assert "lastSuccessfulTime" in status
    assert {"now", "with-input"} <= {line["name"] for line in status["recent"]}
