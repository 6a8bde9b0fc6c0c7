"""How runs that people ask for are summed up and shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from support.builders import a_record, a_schedule, a_snapshot, a_status, at
from support.request_builders import a_request, resolved
from workflow_schedules.api.occurrence import Outcome, ScheduleOccurrenceSpec, ScheduleOccurrenceStatus, Totals
from workflow_schedules.api.schedule import RecentOccurrence
from workflow_schedules.core.model import Record, Requested, Run
from workflow_schedules.core.requests import counts_from, has_news, last_successful_time, merge_recent, summarise


@pytest.mark.parametrize("given", ["absent", None])
def test_input_null_is_no_input_of_its_own(given: object) -> None:
    """R27: a client that sets null, and one that leaves it out, mean the same."""
    spec = {"scheduleRef": {"name": "s"}, "cause": "Manual"} | ({} if given == "absent" else {"input": given})
    assert ScheduleOccurrenceSpec.model_validate(spec).input is None


def ended(name: str, outcome: Outcome, completed: str, asked: str = "10:00") -> Record:
    return a_request(name, asked=asked, status=resolved(outcome=outcome, completion_time=at(completed))).record


def test_summary() -> None:
    """R27: a refusal and what was cancelled are in the history, but no run has failed; what has no outcome yet is in neither."""
    refused = a_request(
        "no", status=ScheduleOccurrenceStatus(outcome=Outcome.FAILED, completion_time=at("12:00"))
    ).record
    found = summarise(
        [
            ended("a", Outcome.COMPLETED, "10:10", "10:02"),
            ended("b", Outcome.COMPLETED, "10:05", "10:01"),
            ended("c", Outcome.EXHAUSTED, "10:20", "10:03"),
            ended("d", Outcome.CANCELLED, "10:30", "10:02:30"),
            a_request("e", status=resolved()).record,
            refused,
        ]
    )
    assert (found.last_successful_time, found.last_failure_time) == (at("10:10"), at("10:20"))
    assert [line.name for line in found.recent] == ["c", "d", "a", "b", "no"]


def test_the_line_of_a_request() -> None:
    """R27, R29: a manual run stands at when it was asked for, a backfill at its instant."""
    status = resolved(outcome=Outcome.FAILED, reason="JobFailed", completion_time=at("10:30"))
    found = summarise(
        [a_request("now", asked="10:02", status=status).record, a_request("back", "09:00", status=status).record]
    )
    assert found.recent == (
        RecentOccurrence(name="now", time=at("10:02"), decision="Manual", outcome="Failed", reason="JobFailed"),
        RecentOccurrence(name="back", time=at("09:00"), decision="Backfill", outcome="Failed", reason="JobFailed"),
    )


GOOD = [
    ("the newest good manual run", (("a", None, Outcome.COMPLETED, "10:10"), ("b", None, Outcome.COMPLETED, "10:20")), "10:20"),
    ("no failed one", (("a", None, Outcome.COMPLETED, "10:10"), ("b", None, Outcome.FAILED, "10:20")), "10:10"),
    ("no backfill", (("a", None, Outcome.COMPLETED, "10:10"), ("b", "09:00", Outcome.COMPLETED, "10:20")), "10:10"),
    ("none", (), None),
]  # fmt: skip


@pytest.mark.parametrize(("runs", "want"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD])
def test_which_run_clears_a_pause_after_failures(
    runs: tuple[tuple[str, str | None, Outcome, str], ...], want: str | None
) -> None:
    """`pauseAfterFailures`: a good manual run."""
    records = [
        a_request(name, backfill, status=resolved(outcome=outcome, completion_time=at(ended))).record
        for name, backfill, outcome, ended in runs
    ]
    assert summarise(records).last_good_manual_time == (at(want) if want else None)


SUCCESSES = [
    ("none yet", None, None, None, None),
    ("of the log", "10:01", None, None, "10:01"),
    ("of a request", None, "10:02", None, "10:02"),
    ("as the status knew it", None, None, "10:03", "10:03"),
    ("the newest is of the log", "10:09", "10:02", "10:03", "10:09"),
    ("the newest is of a request", "10:01", "10:09", "10:03", "10:09"),
    ("the newest is in the status: that request was deleted since", "10:01", "10:02", "10:09", "10:09"),
]


@pytest.mark.parametrize(
    ("log", "request_", "status", "want"), [row[1:] for row in SUCCESSES], ids=[row[0] for row in SUCCESSES]
)
def test_the_last_success(log: str | None, request_: str | None, status: str | None, want: str | None) -> None:
    """R23, R27: whoever asked for it."""
    logged, asked, stored = (at(text) if text else None for text in (log, request_, status))
    schedule = a_schedule(status=a_status(last_successful_time=stored))
    head = a_record(totals=Totals(last_successful_time=logged))
    snapshot = replace(a_snapshot(schedule, head=head), requested=Requested(last_successful_time=asked))
    assert last_successful_time(snapshot) == (at(want) if want else None)
    if status is None:
        without_status = replace(snapshot, schedule=a_schedule())
        assert last_successful_time(without_status) == last_successful_time(replace(snapshot, schedule=None))
        assert last_successful_time(without_status) == (at(want) if want else None)


COUNTS_FROM = [
    ("a manual run: when it was asked for", a_request(asked="10:00", status=resolved(at_time="10:05")), "10:00"),
    ("a backfill: when its turn came", a_request(backfill="09:00", asked="10:00", status=resolved(at_time="10:05")), "10:05"),
    ("one whose condition someone removed: when it was asked for",
     a_request(backfill="09:00", asked="10:00", status=resolved(conditions=())), "10:00"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "want"), [row[1:] for row in COUNTS_FROM], ids=[row[0] for row in COUNTS_FROM])
def test_from_when_a_request_must_get_its_job(run: Run, want: str) -> None:
    """R35."""
    assert counts_from(run.record) == at(want)


def line(name: str, time: str, decision: str = "Admitted", outcome: str = "Completed") -> RecentOccurrence:
    return RecentOccurrence(name=name, time=at(time), decision=decision, outcome=outcome)


def test_histories_are_merged_by_time_and_requests_replaced() -> None:
    """R27."""
    log = [line("s-2", "10:15"), line("old", "10:10", "Manual", "Running"), line("s-1", "10:00")]
    requested = Requested(recent=(line("new", "10:05", "Manual"),))
    assert [each.name for each in merge_recent(log, requested)] == ["s-2", "new", "s-1"]
    assert [each.name for each in merge_recent(log, Requested())] == ["s-2", "s-1"]
    many = [line(f"s-{number}", "10:00") for number in range(10)]
    assert len(merge_recent(many, requested)) == 10
    backfilled = line("old", "10:10", "Backfill", "Running")
    assert merge_recent([backfilled], Requested()) == (), "it is shown as the request says now, or not at all"
    timeless = line("unknown", "10:00").model_copy(update={"time": None})
    assert [each.name for each in merge_recent([timeless], requested)] == ["new", "unknown"], (
        "what has no time is oldest"
    )


NEWS: list[tuple[str, Requested, dict[str, datetime | tuple[RecentOccurrence, ...]], bool]] = [
    ("nothing", Requested(), {}, False),
    ("a success", Requested(last_successful_time=at("10:00")), {}, True),
    ("a known success", Requested(last_successful_time=at("10:00")), {"last_successful_time": at("10:00")}, False),
    ("an older one", Requested(last_successful_time=at("10:00")), {"last_successful_time": at("10:01")}, False),
    ("a failure", Requested(last_failure_time=at("10:02")), {"last_failure_time": at("10:01")}, True),
    ("a line", Requested(recent=(line("a", "10:00", "Manual"),)), {}, True),
    ("a known line", Requested(recent=(line("a", "10:00", "Manual"),)), {"recent": (line("a", "10:00", "Manual"),)}, False),
    ("one that is gone", Requested(), {"recent": (line("a", "10:00", "Manual"),)}, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "requested", "status", "want"), NEWS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_has_news(name: str, requested: Requested, status: dict[str, object], want: bool) -> None:
    """R27 I8: only then the schedule's status is written."""
    assert has_news(requested, a_status(**status)) is want, name
