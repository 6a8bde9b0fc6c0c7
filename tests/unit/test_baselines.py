"""What a Baseline says of the instants that were due and undecided when the schedule changed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from support.builders import a_definition, a_record, a_schedule, a_snapshot, a_status, at, of_definition
from workflow_schedules.api.occurrence import Totals
from workflow_schedules.api.schedule import MisfirePolicy, Pause, State
from workflow_schedules.cluster.memory import ScheduleLog
from workflow_schedules.core.decide import decide
from workflow_schedules.core.model import Definition, Record, Schedule
from workflow_schedules.core.plan import Append

HOURLY = a_schedule()
QUARTERLY = a_schedule(generation=2, schedule="*/15 * * * *")
DAILY = a_schedule(generation=3, schedule="0 3 * * *")
BROKEN = a_schedule(generation=2, problem="spec.schedule: no")
OFF = a_schedule(generation=2, schedule="*/15 * * * *", enabled=False)
LATEST = a_schedule(misfire_policy=MisfirePolicy.LATEST)
ONCE = a_schedule(run_limit=1)
USED_UP = Totals(admitted=1)


@dataclass(frozen=True, slots=True)
class Case:
    """What is given up at 12:30, of a log that went as far as 09:30."""

    name: str
    schedule: Schedule
    before_edit: Schedule | None
    want: str
    head: Record | None = None
    held: tuple[str, ...] = ()


CASES = [
    Case("by the calendar before the edit", QUARTERLY, HOURLY, "Edited Active: 3 from 10:00 to 12:00"),
    Case("after a takeover it is unknown", QUARTERLY, None, "Edited Active"),
    Case("of another version it is unknown, too", DAILY, QUARTERLY, "Edited Active"),
    Case("it can be acted on no more", BROKEN, HOURLY, "Edited Blocked: 3 from 10:00 to 12:00"),
    Case("edited and switched off in one go", OFF, HOURLY, "Disabled Disabled: 3 from 10:00 to 12:00"),
    Case("it was off", QUARTERLY, HOURLY, "Enabled Active", head=a_record(state=State.DISABLED)),
    Case("the calendar before it had nothing due", QUARTERLY, DAILY, "Edited Active",
         head=a_record(schedule=DAILY, generation=1)),
    Case("nor had a schedule that was used up", QUARTERLY, ONCE, "Edited Active",
         head=a_record(schedule=ONCE, totals=USED_UP)),
    Case("what waited in sight is named by itself", QUARTERLY, LATEST, "Edited Active: 2 from 10:00 to 11:00 waiting 12:00",
         head=a_record(schedule=LATEST), held=("12:00",)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_an_edit_gives_up(case: Case) -> None:
    """R10 R29 I3: named and counted, as for a switch."""
    head = case.head or a_record(schedule=HOURLY)
    snapshot = replace(
        a_snapshot(case.schedule, head=head, held=tuple(map(at, case.held))), before_edit=case.before_edit
    )
    step = decide(snapshot, now=at("12:30")).step
    assert isinstance(step, Append)
    spec = step.spec
    span = f": {spec.span.count} from {spec.span.first_time:%H:%M} to {spec.span.last_time:%H:%M}" if spec.span else ""
    waiting = f" waiting {', '.join(f'{each:%H:%M}' for each in spec.waiting)}" if spec.waiting else ""
    assert f"{spec.reason} {spec.state}{span}{waiting}" == case.want
    totals = spec.totals
    assert totals is not None
    assert totals.superseded == (spec.span.count if spec.span else 0)
    assert "instants after" in (spec.message or "")
    assert (f"{totals.superseded} of which were due and undecided" in (spec.message or "")) is (spec.span is not None)


EDITS = [
    ("nothing of the log is known: the first edit counts", None, [HOURLY, QUARTERLY], HOURLY),
    ("the head is of the first", HOURLY, [HOURLY, QUARTERLY], HOURLY),
    ("the head is of the second", QUARTERLY, [HOURLY, QUARTERLY], QUARTERLY),
    ("a decision on the edited one ends it", HOURLY, [HOURLY, a_record(schedule=QUARTERLY)], None),
    ("one on the old one does not", HOURLY, [HOURLY, a_record(2, schedule=HOURLY)], HOURLY),
]


@pytest.mark.parametrize(("head", "happened", "want"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
def test_what_is_remembered_of_edits(
    head: Schedule | None, happened: list[Schedule | Record], want: Schedule | None
) -> None:
    log = ScheduleLog(head=None if head is None else a_record(schedule=head))
    for each in happened:
        if isinstance(each, Record):
            log.add(each)
        else:
            log.note_edit(each)
    assert log.before_edit is want


PLAIN_OFF = a_schedule(enabled=False)
HELD = a_schedule(**of_definition())
PAUSE = Pause(until_time=at("11:00"))


def off(generation: int, **fields: object) -> Schedule:
    return a_schedule(generation=generation, enabled=False, **fields)


def left(state: State, **fields: object) -> Record:
    """The head of a log that went as far as 09:30 and said that state."""
    return a_record(state=state, generation=1, **fields)


@dataclass(frozen=True, slots=True)
class Word:
    """The Baseline that a change leaves: as a rule, and while an append may still arrive."""

    name: str
    schedule: Schedule
    head: Record | None
    want: str
    unanswered: str
    definition: Definition | None = None


WORDS = [
    Word("R18 born disabled", PLAIN_OFF, None, "", "Created Disabled"),
    Word("R18 disabled before its first record", off(2, status=a_status(log_head=0)), None, "", "Disabled Disabled"),
    Word("R4 born without its definition", HELD, None, "", "Created Held"),
    Word("R31 born so that it can't be read", a_schedule(problem="spec.schedule: no"), None, "", "Created Blocked"),
    Word("R9 born enabled", HOURLY, None, "Created Active", "Created Active"),
    Word("R9 born paused", a_schedule(pause=Pause()), None, "Created Paused", "Created Paused"),
    Word("R18 disabled and unchanged", PLAIN_OFF, left(State.DISABLED), "", ""),
    Word("R10 disabled and edited", OFF, left(State.DISABLED), "", "Edited Disabled"),
    Word("P4 disabled, with a jump in which it may have been enabled", off(3), left(State.DISABLED), "", "Edited Disabled"),
    Word("P4 disabled, with one step that changes nothing of that", off(2), left(State.DISABLED), "", ""),
    Word("R19 disabled, and its pause has an end now", off(2, pause=PAUSE), left(State.DISABLED), "", ""),
    Word("R4 held, and its pause has an end now", a_schedule(generation=2, **of_definition(pause=PAUSE)),
         left(State.HELD, schedule=HELD), "", ""),
    Word("R4 from disabled to held", a_schedule(generation=2, **of_definition()), left(State.DISABLED, schedule=HELD), "",
         "Held Held"),
    Word("R18 from held to disabled", off(2, **of_definition()), left(State.HELD, schedule=HELD), "", "Disabled Disabled"),
    Word("R31 from held to blocked", BROKEN, left(State.HELD), "", "Edited Blocked"),
    Word("R31 from blocked to disabled", OFF, left(State.BLOCKED), "", "Disabled Disabled"),
    Word("R4 held, with a jump in which its definition may have been on", HELD, left(
        State.HELD, schedule=HELD, definition_uid=a_definition().uid, definition_generation=1), "", "Released Held",
         definition=a_definition(is_enabled=False, generation=3)),
    Word("R21 used up and unchanged", ONCE, left(State.ACTIVE, schedule=ONCE, totals=USED_UP), "", ""),
    Word("R11 it admitted until now", off(2), left(State.ACTIVE), "Disabled Disabled", "Disabled Disabled"),
    Word("R11 it would have by itself", off(2), left(State.PAUSED), "Disabled Disabled", "Disabled Disabled"),
    Word("R11 from now on it does", a_schedule(generation=2), left(State.DISABLED), "Enabled Active", "Enabled Active"),
]  # fmt: skip


@pytest.mark.parametrize("is_append_unanswered", [False, True], ids=["nothing else", "an append may still arrive"])
@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.name)
def test_what_a_schedule_that_admits_nothing_leaves_on_record(word: Word, is_append_unanswered: bool) -> None:
    """R11 P2: nothing, unless a record may still arrive that says it does: that must not be the last word."""
    snapshot = a_snapshot(
        word.schedule, head=word.head, definition=word.definition, is_append_unanswered=is_append_unanswered
    )
    step = decide(snapshot, now=at("09:45")).step
    found = "" if step is None else f"{step.spec.reason} {step.spec.state}" if isinstance(step, Append) else repr(step)
    assert found == (word.unanswered if is_append_unanswered else word.want)
