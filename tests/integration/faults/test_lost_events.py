"""A pair of events is lost in a gap: an object comes and goes, and the list after the gap knows nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from support.control_plane import seen, streams
from support.faulty import Stage, a_one_shot, about, assert_ran_once, soon
from support.scene import a_definition, has_ended

SAMPLE = 1


def lose(stage: Stage, resource: str, name: str, *, kinds: set[str]) -> streams.StreamFault:
    """Lose the lines about a schedule of these kinds; where its DELETED would be told, the gap ends with 410."""
    is_about, watch = about(name), seen.on("watch", resource)
    stage.proxy.add_stream(
        streams.StreamFault("lost", watch, streams.swallow(), lambda event: event.kind in kinds and is_about(event)),
        ended := streams.StreamFault(
            "gap", watch, streams.expire(), lambda event: event.kind == "DELETED" and is_about(event), times=1
        ),
    )
    return ended


def a_schedule_that_comes_and_goes_unseen_runs_nothing(stage: Stage) -> None:
    due = soon(seconds=10)
    gap = lose(stage, "workflowschedules", "passing", kinds={"ADDED", "MODIFIED"})
    stage.apply(due, "passing", "staying")
    stage.scene.delete("wfs/passing")
    stage.proxy.wait_struck(gap)
    view = stage.settle(["staying"], seconds=120)
    assert_ran_once(view, "staying", due)
    assert [*view.log("passing"), *view.jobs("passing")] == []


def a_schedule_that_goes_unseen_runs_nothing_more(stage: Stage) -> None:
    """The list that kopf makes after the gap says nothing of what is gone; the leader's own look does."""
    due = soon(seconds=35)  # when that it is gone has long been noticed
    gap = lose(stage, "workflowschedules", "going", kinds=set())
    stage.apply(due, "going", "beside")
    stage.scene.until(lambda view: bool(view.status("going")), seconds=30, what="a first status")
    stage.scene.delete("wfs/going")
    stage.proxy.wait_struck(gap)
    view = stage.settle(["beside"], seconds=120)
    assert_ran_once(view, "beside", due)
    assert [view.runs("going"), view.jobs("going")] == [[], []]


def a_definition_that_goes_unseen_holds_its_schedules(stage: Stage) -> None:
    """R1: no orphan ever fires."""
    due = soon(seconds=300)  # never, here
    gap = lose(stage, "workflowdefinitions", "parent", kinds=set())
    stage.scene.apply(a_definition("parent"), a_one_shot("orphan", due, workflowRef={"name": "parent"}))
    stage.scene.until(lambda view: view.status("orphan").get("state") == "Active", seconds=60, what="a first status")
    stage.scene.delete("wfd/parent")
    stage.proxy.wait_struck(gap)
    stage.scene.until(lambda view: view.status("orphan").get("state") == "Held", seconds=60, what="an orphan held")


def a_job_that_comes_and_goes_unseen_is_missed_and_not_made_again(stage: Stage) -> None:
    """P12: the operator knows the UID that its create was answered with, and asks the server itself before it says so."""
    due = soon(seconds=8)
    gap = lose(stage, "jobs", "unseen", kinds={"ADDED", "MODIFIED"})
    stage.scene.apply(a_one_shot("unseen", due, is_held=True))
    view = stage.scene.until(lambda view: bool(view.jobs("unseen")), seconds=60, what="a Job")
    stage.scene.delete(f"job/{view.jobs('unseen')[0]['metadata']['name']}")
    stage.proxy.wait_struck(gap)
    view = stage.scene.until(
        lambda view: all(map(has_ended, view.runs("unseen"))), seconds=180, what="a run whose Job is missing"
    )
    [run] = view.runs("unseen")
    assert (run["status"]["outcome"], run["status"]["reason"]) == ("Failed", "JobMissing")
    assert view.jobs("unseen") == []


@dataclass(frozen=True, slots=True)
class Row:
    play: Callable[[Stage], None]
    is_slow: bool = False

    def __str__(self) -> str:
        return self.play.__name__.replace("_", " ")


ROWS = [
    Row(a_schedule_that_comes_and_goes_unseen_runs_nothing),
    Row(a_schedule_that_goes_unseen_runs_nothing_more),
    Row(a_definition_that_goes_unseen_holds_its_schedules),
    Row(a_job_that_comes_and_goes_unseen_is_missed_and_not_made_again, is_slow=True),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_an_event_that_is_lost(stage: Stage, row: Row) -> None:
    row.play(stage)
    stage.assert_well()
