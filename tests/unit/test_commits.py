"""What the auditor of hack/soak is told: commits in their order, from lines that come late, twice, or in halves."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from soak_lib.audit_log import AuditLog, told_by
from soak_lib.commits import CommitOrder
from support.forger import begin, judged


def test_lines_that_tell_of_no_commit_change_nothing() -> None:
    forger = begin()
    forger.run(2, "10:01:00")
    twice = forger.objects["ScheduleOccurrence", "s-0-2"]
    again = {**twice, "metadata": {**twice["metadata"], "uid": "other", "name": "s-0-3"}}
    forger.log("create", "ScheduleOccurrence", "s-0-3", again, query="?dryRun=All")
    forger.log("create", "ScheduleOccurrence", "s-0-3", again, code=409)
    forger.log("get", "ScheduleOccurrence", "s-0-3", again)
    forger.log("patch", "ScheduleOccurrence", "s-0-2", twice)  # changed nothing: the version that is known
    assert judged(forger, now="10:01:30") == []


def test_the_order_is_that_of_the_versions_not_that_of_the_lines() -> None:
    forger = begin()
    forger.run(2, "10:01:00")
    forger.run(3, "10:02:00")
    forger.lines.reverse()
    assert judged(forger, now="10:02:05") == []


def test_when_a_request_arrived_is_known_whoever_told_of_it_first() -> None:
    forger, order = begin(), CommitOrder()
    by_log = told_by(forger.lines[0], 0)
    order.add(replace(by_log, received_at=None))  # a watch
    order.add(by_log)
    assert [commit.received_at for commit in order.given(everything=True)] == [by_log.at]


def test_what_is_told_again_holds_up_nothing_that_is_old_enough() -> None:
    forger, order = begin(), CommitOrder()
    told = [told_by(line, 0) for line in forger.lines]
    for each in told:
        order.add(each)
    later = told[0].at + timedelta(seconds=70)
    order.add(replace(told[0], at=later))
    order.add(replace(told[1], version=999, at=later))
    assert [commit.kind for commit in order.given()] == ["workflowschedules", "scheduleoccurrences"]
    order.add(replace(told[0], at=later))
    order.add(replace(told[1], version=1000, at=later + timedelta(seconds=70)))
    assert len(list(order.given())) == 1


def test_a_log_is_read_as_it_grows_through_rotation_and_a_killed_writer(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(path)
    assert list(log.lines()) == []
    path.write_bytes(b"one\ntw")
    assert list(log.lines()) == [b"one"]
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    path.rename(tmp_path / "audit-2026-03-02T10-00-00.000.log")
    path.write_bytes(b"four\n")
    assert list(log.lines()) == [b"two", b"three", b"four"]
    assert [each.name for each in tmp_path.iterdir()] == ["audit.log"]
    log.close()
    forger = begin()
    forger.lines[1] = forger.lines[0][:70] + forger.lines[1]
    assert told_by(forger.lines[1], 0) is not None
    assert told_by(forger.lines[0][:70], 0) is None
