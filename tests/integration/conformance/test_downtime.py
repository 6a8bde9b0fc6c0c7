"""What an operator does that was down for three days: schedules with a log that ends then, on a cluster of now."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

import pytest

from support.cluster_stories import Json
from support.scene import Scene, View

if TYPE_CHECKING:
    from support.control_plane import OperatorProcess

MINUTES = 3 * 24 * 60
BUSY_SECONDS = 15  # how late a busy machine may be
CAUGHT_UP = ("down-skip", "down-latest", "down-all", "down-deadline")


@pytest.fixture(scope="package")
def caught_up(operator: OperatorProcess, scene: Scene) -> View:  # noqa: ARG001 - it runs
    """The namespace once what was missed is decided; the minutely ones are gone then, so that they cost no more."""
    view = scene.until(
        lambda view: (
            all(view.runs(name) for name in CAUGHT_UP)
            and len(view.runs("down-all")) == 3
            and all(view.status(name).get("lastScheduleTime") for name in CAUGHT_UP)
            and bool(view.decisions("down-too-late"))
        ),
        seconds=120,
        what="what was missed in three days",
    )
    scene.delete("wfs/down-skip", "wfs/down-latest")
    return view


def span(record: Json) -> tuple[int, datetime, datetime]:
    """Count, first and last instant of what one record covers."""
    at = record["spec"].get("scheduledTime")
    found = record["spec"].get("span", {"count": 1, "firstTime": at, "lastTime": at})
    return found["count"], datetime.fromisoformat(found["firstTime"]), datetime.fromisoformat(found["lastTime"])


@pytest.mark.parametrize(("name", "decision"), [("down-skip", "SkippedMisfire"), ("down-latest", "Coalesced")])
def test_more_than_a_hundred_missed_instants(caught_up: View, downtime: datetime, name: str, decision: str) -> None:
    """CronJob e2e: should be able to schedule after more than 100 missed schedule; R16, R17: and one record says so."""
    run = caught_up.runs(name)[0]
    missed = [
        each
        for each in caught_up.log(name)
        if each["spec"]["decision"] != "Baseline" and each["spec"]["sequence"] < run["spec"]["sequence"]
    ]
    assert {each["spec"]["decision"] for each in missed} == {decision}
    assert len(missed) <= 2, "a second one only for a minute that began while the first was written"
    spans = [span(each) for each in missed]
    assert (spans[0][1] - downtime).total_seconds() == 60
    assert all((later[1] - before[2]).total_seconds() == 60 for before, later in pairwise(spans))
    assert all(count == (last - first).total_seconds() / 60 + 1 for count, first, last in spans)
    assert sum(count for count, _, _ in spans) >= MINUTES - 2
    at = datetime.fromisoformat(run["spec"]["scheduledTime"])
    assert (at - spans[-1][2]).total_seconds() == 60
    decided = datetime.fromisoformat(run["metadata"]["creationTimestamp"])
    assert (decided - at).total_seconds() <= 60 + BUSY_SECONDS  # the last that was missed is still within its deadline


def test_all_runs_the_newest_few_oldest_first(caught_up: View, downtime: datetime) -> None:
    """Airflow and Temporal catch-up; R16: `All` runs `maxCatchUpRuns` of 72 missed hours, one after the other."""
    (coalesced,) = [each for each in caught_up.log("down-all") if each["spec"]["decision"] == "Coalesced"]
    hours = [datetime.fromisoformat(run["spec"]["scheduledTime"]) for run in caught_up.runs("down-all")]
    assert {after - before for before, after in pairwise(hours)} == {timedelta(hours=1)}
    missed = ceil((hours[-1] - downtime) / timedelta(hours=1))
    assert (span(coalesced)[0], len(hours)) == (missed - 3, 3)
    ended = [run["status"]["completionTime"] for run in caught_up.runs("down-all")[:2]]
    assert ended == sorted(ended)


def test_the_newest_is_started_late_within_its_deadline(caught_up: View) -> None:
    """CronWorkflow e2e: startingDeadlineSeconds runs what was missed while the controller was down; R16."""
    (run,) = caught_up.runs("down-deadline")
    missed = [
        each for each in caught_up.log("down-deadline") if each["spec"]["decision"] not in {"Baseline", "Admitted"}
    ]
    late = datetime.fromisoformat(run["metadata"]["creationTimestamp"]) - datetime.fromisoformat(
        run["spec"]["scheduledTime"]
    )
    assert 0 <= late.total_seconds() <= 3600 + 60
    assert {each["spec"]["decision"] for each in missed} <= {"SkippedMisfire", "Coalesced"}
    assert sum(span(each)[0] for each in missed) >= 70


def test_what_exceeds_its_deadline_is_skipped_on_record(caught_up: View) -> None:
    """CronWorkflow e2e: startingDeadlineSeconds passed, nothing is started; R16: under every policy, with a record."""
    assert caught_up.runs("down-too-late") == []
    assert {what for _, what in caught_up.decisions("down-too-late")} == {"SkippedMisfire"}


@pytest.mark.usefixtures("caught_up")
def test_missed_instants_are_told_by_an_event(scene: Scene) -> None:
    """CronJob: `MissSchedule`; R32."""
    view = scene.until(
        lambda view: "MissSchedule" in {each["reason"] for each in view.events("down-too-late")},
        seconds=90,
        what="an Event MissSchedule",
    )
    (event,) = [each for each in view.events("down-too-late") if each["reason"] == "MissSchedule"]
    assert event["type"] == "Warning"
