"""What every record of the log says, whatever was decided, and what is said of one that doesn't."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from support.builders import (
    a_definition,
    a_job,
    a_record,
    a_run,
    a_schedule,
    a_snapshot,
    an_admission,
    at,
    listed,
    of_definition,
)
from workflow_schedules.api.occurrence import Outcome, ScheduleOccurrenceSpec, ScheduleOccurrenceStatus, Totals
from workflow_schedules.api.schedule import MisfirePolicy, Pause, State
from workflow_schedules.core import essentials
from workflow_schedules.core.decide import decide
from workflow_schedules.core.model import Snapshot
from workflow_schedules.core.plan import Append, Unblock
from workflow_schedules.core.unblock import set_aside

Json = dict[str, Any]
PLAIN = a_schedule()
OFF = a_schedule(enabled=False)
PAUSED = a_schedule(generation=2, pause=Pause(reason="x"))
BROKEN = a_schedule(generation=2, problem="spec.schedule: no")
LATEST = a_schedule(misfire_policy=MisfirePolicy.LATEST)
LIMITED = a_schedule(run_limit=1)
NAMED = a_schedule(**of_definition())
FIVE = a_schedule(schedule="*/5 * * * *", misfire_policy=MisfirePolicy.LATEST)
USED_UP = an_admission(2, schedule=LIMITED, totals=Totals(admitted=1), created_at=at("11:10"))
STARTED = ScheduleOccurrenceStatus(outcome=Outcome.RUNNING, job_uid="job-2", start_time=at("10:00:01"))
RUNS = a_run(record=an_admission(status=STARTED), job=a_job())


def read(spec: Json) -> ScheduleOccurrenceSpec:
    return ScheduleOccurrenceSpec.model_validate(spec)


def decided(snapshot: Snapshot, now: str) -> ScheduleOccurrenceSpec:
    step = decide(snapshot, now=at(now)).step
    assert isinstance(step, Append)
    return step.spec


def set_aside_all(*log: int) -> ScheduleOccurrenceSpec:
    step = Unblock(record=a_record(5).ref.name, state=State.ACTIVE)
    found = [listed(a_record(number)) for number in log]
    return set_aside(a_snapshot(), PLAIN, found, lambda _ref: None, step=step, now=at("10:20")).spec


OWN = [
    ("the first one", a_snapshot(PLAIN, head=None), "09:40", "Baseline Created"),
    ("the first one of a schedule that is off, where one may still arrive",
     a_snapshot(OFF, head=None, is_append_unanswered=True), "09:40", "Baseline Created"),
    ("an admission", a_snapshot(PLAIN), "10:00", "Admitted Admitted"),
    ("an admission by a definition", a_snapshot(NAMED, definition=a_definition()), "10:00", "Admitted Admitted"),
    ("a skip", a_snapshot(PLAIN, runs=(RUNS,), head=an_admission()), "11:00", "SkippedOverlap SkippedOverlap"),
    ("several that are too late", a_snapshot(PLAIN), "12:30", "SkippedMisfire SkippedMisfire"),
    ("coalesced", a_snapshot(FIVE), "12:30", "Coalesced Coalesced"),
    ("a pause", a_snapshot(PAUSED, head=a_record(schedule=PLAIN)), "09:40", "Baseline Paused"),
    ("a spec that can't be read any more", a_snapshot(BROKEN, head=a_record(schedule=PLAIN)), "09:40", "Baseline Edited"),
    ("what a Baseline left waiting", a_snapshot(LATEST, head=a_record(2, schedule=LATEST, waiting=(at("09:00"),))), "09:40",
     "Superseded Superseded"),
    ("what was due behind the last run of a limit", a_snapshot(LIMITED, head=USED_UP, runs=(RUNS,)), "11:30",
     "Superseded RunLimitReached"),
    ("what a restore made the log forget", replace(a_snapshot(FIVE), not_before=at("10:00")), "10:20", "Baseline Restored"),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "now", "want"), [row[1:] for row in OWN], ids=[row[0] for row in OWN])
def test_an_own_record_lacks_nothing(snapshot: Snapshot, now: str, want: str) -> None:
    """R29 R31 P3."""
    spec = decided(snapshot, now)
    assert f"{spec.decision} {spec.reason}" == want
    assert essentials.problem(read(spec.wire())) is None


@pytest.mark.parametrize("log", [(), (1,), (1, 2, 3, 4, 5)], ids=["nothing is left", "a hole", "all are there"])
def test_nor_does_the_baseline_that_begins_anew(log: tuple[int, ...]) -> None:
    """R31: with nothing left before it, there is nothing that it could follow."""
    spec = set_aside_all(*log)
    assert (spec.sequence, spec.previous_uid is None) == (6, not log)
    assert essentials.problem(read(spec.wire())) is None


ADMISSION = decided(a_snapshot(NAMED, definition=a_definition()), "10:00").wire()
BASELINE = decided(a_snapshot(PLAIN, head=None), "09:40").wire()
SKIP = decided(a_snapshot(PLAIN), "12:30").wire()
BEGINS = set_aside_all()
EVERY = """
    sequence format decision revision specHash generation state consumedThroughTime open waiting totals
    fencingEpoch writer lease scheduleRef.uid
""".split()  # noqa: SIM905 - a table
COUNTS = "admitted completed failed skipped coalesced superseded consecutiveFailures".split()  # noqa: SIM905
LACKING = [
    *((f"R31 an admission without {path}", ADMISSION, (path,), (path,)) for path in EVERY),
    *((f"R31 a Baseline without {path}", BASELINE, (path,), (path,)) for path in EVERY if path != "decision"),
    *((f"R31 counts without {name}", BASELINE, (f"totals.{name}",), (f"totals.{name}",)) for name in COUNTS),
    ("K-108 countedFailures came later", BASELINE, ("totals.countedFailures",), ()),
    ("none of the times in the counts need be there", ADMISSION, ("totals.lastScheduleTime",), ()),
    ("an admission has its instant", ADMISSION, ("scheduledTime",), ("scheduledTime",)),
    ("a skip, too", SKIP, ("scheduledTime",), ("scheduledTime",)),
    ("a Baseline has none", BASELINE, ("scheduledTime",), ()),
    ("an admission has its template", ADMISSION, ("templateHash",), ("templateHash",)),
    ("nothing else has", SKIP, ("templateHash",), ()),
    ("P8 an admission follows another record", ADMISSION, ("previousUID",), ("previousUID",)),
    ("P8 a skip, too", SKIP, ("previousUID",), ("previousUID",)),
    ("the first one follows none", BASELINE, ("previousUID",), ()),
    ("a definition is one by UID and generation", ADMISSION, ("definitionGeneration",), ("definitionGeneration",)),
    ("by neither alone", ADMISSION, ("definitionUID",), ("definitionUID",)),
    ("who names none has neither", ADMISSION, ("definitionUID", "definitionGeneration"), ()),
    ("no input is one", ADMISSION, ("inputJSON", "message", "reason", "span", "replaces"), ()),
    ("all that is missing is named", ADMISSION, ("writer", "state"), ("state", "writer")),
]  # fmt: skip


def without(spec: Json, *paths: str) -> Json:
    """Leave out what is at these paths, or set it to null where that is the same."""
    left = {**spec}
    for path in paths:
        first, _, then = path.partition(".")
        left[first] = without(left[first], then) if then else None
    return {key: value for key, value in left.items() if value is not None}


@pytest.mark.parametrize(("spec", "left_out", "want"), [row[1:] for row in LACKING], ids=[row[0] for row in LACKING])
def test_what_a_record_lacks(spec: Json, left_out: tuple[str, ...], want: tuple[str, ...]) -> None:
    """R31 P3 K-095."""
    cut_down = read(without(spec, *left_out))
    assert essentials.lacking(cut_down) == want
    message = f"lacks {', '.join(f'spec.{path}' for path in want)}, which every such record has" if want else None
    assert essentials.problem(cut_down) == message


FOLLOWS = [
    ("P8 of the next number", {"sequence": 2}, ("previousUID",)),
    ("another decision of that reason", {**SKIP, "previousUID": None, "reason": "Unblocked"}, ("previousUID",)),
    ("a Baseline that begins anew may have nothing before it", {"sequence": 2, "reason": "Unblocked"}, ()),
]


@pytest.mark.parametrize(("spec", "want"), [row[1:] for row in FOLLOWS], ids=[row[0] for row in FOLLOWS])
def test_who_follows_another_record(spec: Json, want: tuple[str, ...]) -> None:
    """R31 P8."""
    assert essentials.lacking(read({**BASELINE, **spec})) == want


def test_what_a_newer_format_lacks_is_for_others_to_judge() -> None:
    """R31: that it is newer says enough."""
    older, newer = ({**BASELINE, "format": number, "state": None} for number in (1, 2))
    assert essentials.problem(read(older)) == "lacks spec.state, which every such record has"
    assert essentials.problem(read(newer)) is None
