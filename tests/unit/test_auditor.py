"""The auditor of hack/soak finds what it is there to find: forged audit logs, each with one thing wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import pytest

from soak_lib.auditor import NAMES
from support.forger import Forger, at, begin, judged, stamp


def all_is_well(f: Forger) -> None:
    f.run(2, "10:01:00")
    f.status(logHead=2, consumedThroughTime=stamp("10:01:00"))
    f.run(3, "10:02:00")
    f.status(logHead=3, consumedThroughTime=stamp("10:02:00"))


def one_instant_is_admitted_twice(f: Forger) -> None:
    f.run(2, "10:01:00")
    f.run(3, "10:01:00")


def two_jobs_for_one_record(f: Forger) -> None:
    f.run(2, "10:01:00")
    f.remove("Job", "s-0-2")
    f.job(2, uid="J2b")


def a_job_for_a_record_that_has_ended(f: Forger) -> None:
    f.now = at("10:01:00")
    f.record(2, "Admitted", "10:01:00")
    f.outcome(2, "Failed")
    f.job(2)


def a_job_for_a_skip(f: Forger) -> None:
    f.now = at("10:01:00")
    f.record(2, "SkippedOverlap", "10:01:00")
    f.job(2)


def admitted_beside_an_unfinished_run(f: Forger) -> None:
    f.now = at("10:01:00")
    f.record(2, "Admitted", "10:01:00")
    f.job(2)
    f.run(3, "10:02:00")


def replaces_without_saying_so(f: Forger) -> None:
    f.now = at("10:01:00")
    f.record(2, "Admitted", "10:01:00")
    f.run(3, "10:02:00")


def a_job_while_the_replaced_one_is_there(f: Forger) -> None:
    f.now = at("10:01:00")
    f.record(2, "Admitted", "10:01:00")
    f.job(2)
    f.outcome(2, "Cancelled")
    f.run(3, "10:02:00", replaces=2)


def an_instant_is_left_out(f: Forger) -> None:
    f.run(2, "10:01:00")
    f.run(3, "10:03:00")


def a_number_is_left_out(f: Forger) -> None:
    f.run(2, "10:01:00")
    f.run(4, "10:02:00", previousUID="R2")


def a_fork(f: Forger) -> None:
    f.run(2, "10:01:00")
    f.run(3, "10:02:00", previousUID="elsewhere")


def due_and_undecided(f: Forger) -> None:
    f.run(2, "10:01:00")


def admitted_after_its_deadline(f: Forger) -> None:
    f.now = at("10:02:03")
    f.record(2, "Admitted", "10:01:00")
    f.outcome(2, "Failed")


def admitted_in_time_and_stored_late(f: Forger) -> None:
    f.received_at = at("10:02:01")
    f.now = at("10:02:10")
    f.record(2, "Admitted", "10:01:00")
    f.outcome(2, "Failed")


def a_job_after_its_deadline(f: Forger) -> None:
    f.now = at("10:01:00")
    f.record(2, "Admitted", "10:01:00")
    f.now = at("10:02:03")
    f.job(2)
    f.end(2)
    f.outcome(2)


def a_watermark_in_the_log_goes_back(f: Forger) -> None:
    f.run(2, "10:01:00")
    f.record(3, "Baseline", "10:00:30")


def a_watermark_in_status_goes_back(f: Forger) -> None:
    f.status(consumedThroughTime=stamp("10:01:00"))
    f.status(consumedThroughTime=stamp("10:00:00"))


def admitted_at_the_watermark(f: Forger) -> None:
    f.record(2, "Baseline", "10:01:30")
    f.run(3, "10:01:00", consumedThroughTime=stamp("10:01:30"))


def an_older_epoch_follows(f: Forger) -> None:
    f.run(2, "10:01:00", fencingEpoch=4)
    f.run(3, "10:02:00", fencingEpoch=3)


def admitted_while_paused(f: Forger) -> None:
    f.record(2, "Baseline", state="Paused")
    f.run(3, "10:01:00")


def admitted_beyond_the_limit(f: Forger) -> None:
    f.edit(runLimit=1)
    f.record(2, "Baseline", generation=2)
    f.run(3, "10:01:00", generation=2)
    f.run(4, "10:02:00", generation=2)


def an_outcome_changes(f: Forger) -> None:
    f.run(2, "10:01:00")
    f.outcome(2, "Failed")


def an_end_that_nobody_records(f: Forger) -> None:
    f.now = at("10:01:00")
    f.record(2, "Admitted", "10:01:00")
    f.job(2)
    f.end(2)


def a_run_without_job_that_nobody_ends(f: Forger) -> None:
    f.now = at("10:01:00")
    f.record(2, "Admitted", "10:01:00")


def an_open_record_is_removed(f: Forger) -> None:
    f.now = at("10:01:00")
    f.record(2, "Admitted", "10:01:00")
    f.job(2)
    f.remove("Job", "s-0-2")
    f.remove("ScheduleOccurrence", "s-0-2")


def all_goes_with_its_schedule(f: Forger) -> None:
    f.now = at("10:01:00")
    f.record(2, "Admitted", "10:01:00")
    f.job(2)
    f.remove("WorkflowSchedule", "s")
    f.remove("Job", "s-0-2")
    f.remove("ScheduleOccurrence", "s-0-2")


def what_waited_vanishes(f: Forger) -> None:
    f.run(2, "10:01:00", waiting=[stamp("10:00:30")])
    f.run(3, "10:02:00")


def a_status_with_nothing_due(f: Forger) -> None:
    f.status(state="Active", nextScheduleTime="2027-01-01T00:00:00Z")
    f.now = at("11:00:00")
    f.status(state="Active", lastWord="idle")
    f.now = at("12:00:00")
    f.status(state="Active", lastWord="still idle")


def a_disabled_one_shot_is_over(f: Forger) -> None:
    f.edit(enabled=False, schedule=None, runOnceTime="2026-03-02T11:30:00Z")
    f.status(state="Disabled")
    f.now = at("11:00:00")
    f.status(state="Disabled", lastWord="idle")
    f.now = at("11:31:00")
    f.status(state="Complete")


class Row(NamedTuple):
    forge: Callable[[Forger], None]
    want: list[str]  # the invariants, in the order found
    now: str = "10:02:05"
    spec: Mapping[str, object] = MappingProxyType({})


ROWS = [
    Row(all_is_well, []),
    Row(one_instant_is_admitted_twice, ["I4", "I1", "I1", "I3", "I3"], "10:01:30"),
    Row(two_jobs_for_one_record, ["I1", "I1"], "10:01:30"),
    Row(a_job_for_a_record_that_has_ended, ["I1"], "10:01:30"),
    Row(a_job_for_a_skip, ["I1"], "10:01:30"),
    Row(admitted_beside_an_unfinished_run, ["I2", "I2"]),
    Row(admitted_beside_an_unfinished_run, [], spec={"concurrencyPolicy": "Allow", "maxActiveRuns": 2}),
    Row(replaces_without_saying_so, ["I2"], spec={"concurrencyPolicy": "Replace"}),
    Row(a_job_while_the_replaced_one_is_there, ["I2"], spec={"concurrencyPolicy": "Replace"}),
    Row(an_instant_is_left_out, ["I3", "I3"], "10:03:05"),
    Row(a_number_is_left_out, ["I3"]),
    Row(a_fork, ["I3"]),
    Row(due_and_undecided, ["I3"], "10:02:15"),
    Row(due_and_undecided, [], "10:02:09"),
    Row(admitted_after_its_deadline, ["late"], "10:02:05"),
    Row(admitted_after_its_deadline, [], "10:02:05", {"misfirePolicy": "Latest"}),
    Row(admitted_after_its_deadline, ["late"], "10:02:05", {"misfirePolicy": "All", "startingDeadlineSeconds": 30}),
    Row(admitted_in_time_and_stored_late, [], "10:02:15", {"runLimit": 1}),
    Row(a_job_after_its_deadline, ["late"], "10:02:05"),
    Row(a_watermark_in_the_log_goes_back, ["I4"], "10:01:05"),
    Row(a_watermark_in_status_goes_back, ["I4"], "10:00:30"),
    Row(admitted_at_the_watermark, ["I4", "I3", "I3"], "10:01:35"),
    Row(an_older_epoch_follows, ["I6"]),
    Row(admitted_while_paused, ["I5"], "10:01:30"),
    Row(admitted_beyond_the_limit, ["I5"]),
    Row(an_outcome_changes, ["I7"], "10:01:30"),
    Row(an_end_that_nobody_records, ["I7"], "10:01:30"),
    Row(a_run_without_job_that_nobody_ends, ["I7"], "10:15:00", {"runLimit": 1}),
    Row(a_run_without_job_that_nobody_ends, [], "10:12:00", {"runLimit": 1}),
    Row(an_open_record_is_removed, ["I7"], "10:06:00", {"runLimit": 1}),
    Row(all_goes_with_its_schedule, [], "10:06:00"),
    Row(what_waited_vanishes, ["I3"]),
    Row(a_status_with_nothing_due, ["I8"], "10:00:30"),
    Row(a_disabled_one_shot_is_over, [], "10:00:30"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.forge.__name__} {row.now} {dict(row.spec) or ''}".strip())
def test_what_is_wrong_is_found_and_nothing_else(row: Row) -> None:
    forger = begin(**row.spec)
    row.forge(forger)
    found = judged(forger, now=row.now)
    assert [each.partition(":")[0] for each in found] == row.want, found
    assert {each.partition(":")[0] for each in found} <= NAMES.keys()


def test_every_invariant_of_the_table_is_found_by_some_row() -> None:
    assert {name for row in ROWS for name in row.want} == NAMES.keys()


def test_a_write_of_an_old_epoch_long_after_the_new_one_began_is_found_across_schedules() -> None:
    forger = begin()
    forger.run(2, "10:01:00", fencingEpoch=4)
    forger.now = at("10:02:40")
    forger.schedule("t", "T")
    forger.record(9, "Baseline", "10:02:30", scheduleRef={"name": "t", "uid": "T"}, fencingEpoch=3)
    found = judged(forger, now="10:02:35", is_settled=False)
    assert [each.partition(":")[0] for each in found] == ["I6"], found
