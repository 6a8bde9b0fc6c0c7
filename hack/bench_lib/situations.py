"""The situations that hack/bench decide asks the core about: each is a Snapshot, a moment, and what has to be decided then.

The ordinary schedule is of 2026, enabled, every quarter of an hour in New York, and its log has been read up to its head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from workflow_schedules.api import names
from workflow_schedules.api.occurrence import (
    Cause,
    Decision,
    ScheduleOccurrenceSpec,
    ScheduleOccurrenceStatus,
    ScheduleRef,
    Totals,
)
from workflow_schedules.api.schedule import State
from workflow_schedules.cluster.wire import definition_of, job_of, schedule_of
from workflow_schedules.core.acceptance import Accepted, accept
from workflow_schedules.core.due_times import count_due_times, latest_due_time, next_due_time
from workflow_schedules.core.input_schema import InputSchema, read_schema
from workflow_schedules.core.model import Definition, ObjectRef, Record, Run, Schedule, Snapshot, Writer

UID = "5c4ed01e-0000-4000-8000-000000000001"
CREATED = datetime(2026, 3, 2, 9, 1, tzinfo=UTC)
CONSUMED = datetime(2026, 3, 7, 12, tzinfo=UTC)  # the watermark: an instant of every trigger in here
DUE = CONSUMED + timedelta(minutes=15, milliseconds=20)  # one instant is due
WRITER = Writer(epoch=3, identity="pod-a", lease="system/scheduler")
TEMPLATE = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}}}
SCHEMA = {
    "type": "object",
    "required": ["region", "at"],
    "additionalProperties": False,
    "properties": {
        "region": {"enum": ["eu", "us"]},
        "depth": {"type": "integer", "minimum": 1},
        "at": {"type": "string", "pattern": "^2"},
        "since": {"type": ["string", "null"]},
    },
}
INPUT = {"region": "eu", "depth": 3}
BINDINGS = [
    {"name": "at", "occurrenceField": "scheduledTime"},
    {"name": "since", "occurrenceField": "lastSuccessfulTime"},
]
MINUTELY = {"schedule": "* * * * *"}
LATEST = {"misfirePolicy": "Latest"}
YEAR = timedelta(days=365)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One question to the core.

    Attributes:
        want: the step that has to come out, and a word of what it says.
        apart: what no decision of this kind can do without and is as long as people make it: the questions to the calendar
            about many days, the check against a schema.
    """

    name: str
    snapshot: Snapshot
    now: datetime
    want: str
    apart: Callable[[], object] | None = None


def schedule(*, generation: int = 1, status: dict[str, Any] | None = None, **fields: object) -> Schedule:
    given = {"schedule": "*/15 * * * *", "timeZone": "America/New_York", "enabled": True, **fields}
    if "workflowRef" not in given:
        given["jobTemplate"] = TEMPLATE
    metadata = {
        "namespace": "team", "name": "report", "uid": UID, "generation": generation, "resourceVersion": "10",
        "creationTimestamp": CREATED.isoformat(),
    }  # fmt: skip
    return schedule_of({"metadata": metadata, "spec": given, "status": status})


def definition(**fields: object) -> Definition:
    metadata = {"namespace": "team", "name": "report", "uid": "def", "generation": 1, "resourceVersion": "5"}
    return definition_of({"metadata": metadata, "spec": {"jobTemplate": TEMPLATE, **fields}})


def record(owner: Schedule, number: int, decision: Decision, **fields: object) -> Record:
    given = {
        "schedule_ref": ScheduleRef(name=owner.ref.name, uid=UID), "sequence": number, "cause": Cause.SCHEDULED,
        "decision": decision, "revision": 1, "spec_hash": owner.spec_hash, "generation": owner.generation,
        "state": State.ACTIVE, "consumed_through_time": CONSUMED, "fencing_epoch": WRITER.epoch, "writer": WRITER.identity,
        "lease": WRITER.lease, "totals": Totals(admitted=number, completed=number - 1, last_successful_time=CREATED), **fields,
    }  # fmt: skip
    return Record(
        ref=ObjectRef(namespace="team", name=names.record_name(owner.ref.name, UID, number)),
        uid=f"record-{number}",
        resource_version=str(number),
        created_at=CONSUMED,
        spec=ScheduleOccurrenceSpec(**given),
        status=ScheduleOccurrenceStatus(),
    )


def admission(owner: Schedule) -> Record:
    return record(owner, 7, Decision.ADMITTED, scheduled_time=CONSUMED, open=(7,), template_hash="hash")


def job(status: dict[str, Any]) -> dict[str, Any]:
    owner = {"controller": True, "uid": "record-7"}
    metadata = {"namespace": "team", "name": "report-7", "uid": "job-7", "ownerReferences": [owner]}
    return {"metadata": metadata | {"creationTimestamp": CONSUMED.isoformat()}, "status": status}


STARTED = {"startTime": CONSUMED.isoformat(), "active": 1, "ready": 1}
COMPLETED = {
    "startTime": CONSUMED.isoformat(),
    "completionTime": (CONSUMED + timedelta(minutes=3)).isoformat(),
    "succeeded": 1,
    "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": DUE.isoformat()}],
}


def idle(owner: Schedule, parent: Definition | None = None, **known: object) -> Snapshot:
    """Return a schedule whose last run ended."""
    head = record(owner, 7, Decision.SKIPPED_OVERLAP)
    if parent is not None:
        head = replace(head, spec=head.spec.model_copy(update={"definition_uid": "def", "definition_generation": 1}))
    given: dict[str, Any] = {"head": head, "runs": (), "is_log_read": True, "held": (), **known}
    return Snapshot(
        uid=UID,
        schedule=owner,
        definition=parent,
        contradiction=None,
        writer=WRITER,
        since_acquired=timedelta(hours=1),
        **given,
    )


def running(owner: Schedule, status: dict[str, Any] | None = STARTED, **known: object) -> Snapshot:
    """Return a schedule whose last run goes on."""
    head = admission(owner)
    said = ScheduleOccurrenceStatus(outcome="Running", job_uid="job-7", start_time=CONSUMED)
    read = replace(head, status=said) if status else head
    return idle(owner, head=head, runs=(Run(record=read, job=job_of(job(status)) if status else None),), **known)


def edited(owner: Schedule, **fields: object) -> Snapshot:
    """Return a schedule that was edited while some instants were due and undecided."""
    return replace(idle(owner), schedule=schedule(generation=2, **fields), before_edit=owner)


def situations() -> Iterator[Situation]:
    yield from _nothing_due()
    yield from _admitted()
    yield from _blocked()
    yield from _missed()
    yield from _changed()
    yield from _runs()


def _nothing_due() -> Iterator[Situation]:
    def one(name: str, snapshot: Snapshot, now: datetime = CONSUMED + timedelta(minutes=7)) -> Situation:
        return Situation(name=f"nothing due, {name}", snapshot=snapshot, now=now, want="None")

    status = {"state": "Active", "observedGeneration": 1, "logHead": 7, "consumedThroughTime": CONSUMED.isoformat()}
    yield one("its log read", idle(schedule()))
    yield one("its log not read", idle(schedule(status=status), head=None, is_log_read=False))
    yield one("a run goes on", running(schedule()))
    yield one("ten expressions", idle(schedule(schedule=None, schedules=[f"0 {hour} * * *" for hour in range(10)])))
    off = schedule(enabled=False)
    yield one("disabled", idle(off, head=record(off, 7, Decision.BASELINE, state=State.DISABLED)), DUE)


def _admitted() -> Iterator[Situation]:
    def one(name: str, snapshot: Snapshot, now: datetime = DUE) -> Situation:
        return Situation(name=f"admitted, {name}", snapshot=snapshot, now=now, want="Append Admitted")

    of_parent: dict[str, Any] = {"workflowRef": {"name": "report"}}
    parent, strict = definition(), definition(inputSchema=SCHEMA)
    yield one("inline template", idle(schedule()))
    yield one("of a definition", idle(schedule(**of_parent), parent))
    yield one("with an input", idle(schedule(input=INPUT)))
    bound = one("inputFrom and schema", idle(schedule(**of_parent, input=INPUT, inputFrom=BINDINGS), strict))
    yield replace(bound, apart=_check_of_input(strict))
    yield one("beside a run (Allow)", running(schedule(concurrencyPolicy="Allow", maxActiveRuns=5)))
    yield one("in place of a run", running(schedule(concurrencyPolicy="Replace")))
    yield one("after its jitter", idle(schedule(maxJitterSeconds=60)), DUE + timedelta(seconds=59))
    yield one("excludeDates set", idle(schedule(excludeDates=["2026-03-03", "2026-04-03"])))
    yield one("50 s late", idle(schedule()), DUE + timedelta(seconds=50))
    yield one("oldest of ten (All)", idle(schedule(**MINUTELY, misfirePolicy="All")), CONSUMED + timedelta(minutes=10))


def _check_of_input(strict: Definition) -> Callable[[], object]:
    read = read_schema(strict.input_schema or "")
    assert isinstance(read, InputSchema)
    return lambda: read.flaws({**INPUT, "at": "2026-03-07T12:15:00Z", "since": None})


def _blocked() -> Iterator[Situation]:
    def one(name: str, want: str, now: datetime = DUE, **fields: object) -> Situation:
        return Situation(name=f"blocked, {name}", snapshot=running(schedule(**fields)), now=now, want=want)

    all_, later = {"misfirePolicy": "All"}, CONSUMED + timedelta(minutes=100)
    yield one("skipped", "Append SkippedOverlap")
    yield one("waits (Latest)", "None waiting 1", **LATEST)
    yield one("ten wait (All)", "None waiting 10", CONSUMED + timedelta(minutes=10), **MINUTELY, **all_)
    yield one("100 wait (All)", "None waiting 100", later, **MINUTELY, **all_, maxCatchUpRuns=100)
    yield one(
        "101st coalesced", "Append Coalesced", later + timedelta(minutes=1), **MINUTELY, **all_, maxCatchUpRuns=100
    )


def _missed() -> Iterator[Situation]:
    def one(name: str, want: str, late: timedelta, **fields: object) -> Situation:
        return Situation(name=f"missed, {name}", snapshot=idle(schedule(**fields)), now=CONSUMED + late, want=want)

    ten = timedelta(minutes=10, seconds=5)
    yield one("one of them", "Append SkippedMisfire", timedelta(minutes=17))
    yield one("ten of them", "Append SkippedMisfire", ten, **MINUTELY)
    yield one("ten of them (Latest)", "Append Coalesced", ten, **MINUTELY, **LATEST)
    yield one("on an excluded date", "Append SkippedExcluded", timedelta(minutes=16), excludeDates=["2026-03-07"])
    for name, want, fields in (
        ("a minutely year", "Append SkippedMisfire", MINUTELY),
        ("a minutely year (Latest)", "Append Coalesced", MINUTELY | LATEST),
    ):
        asked = one(name, want, YEAR, **fields)
        yield replace(asked, apart=_questions(asked))


def _questions(asked: Situation) -> Callable[[], object]:
    """Return what has to be asked of the calendar to find a span: which instant is its first, its last, how many there are."""
    verdict = accept(asked.snapshot.schedule) if asked.snapshot.schedule else None
    assert isinstance(verdict, Accepted)
    trigger, until = verdict.trigger, asked.now

    def ask() -> object:
        first, last = next_due_time(trigger, after=CONSUMED), latest_due_time(trigger, after=CONSUMED, until=until)
        return first, last, count_due_times(trigger, after=CONSUMED, until=until)

    return ask


def _changed() -> Iterator[Situation]:
    def one(name: str, snapshot: Snapshot, now: datetime = CONSUMED + timedelta(minutes=7)) -> Situation:
        return Situation(name=f"Baseline, {name}", snapshot=snapshot, now=now, want="Append Baseline")

    yield one("of a creation", idle(schedule(), head=None))
    yield one("of an edit", edited(schedule(), input=INPUT))
    yield one("of an edit, ten due", edited(schedule(**MINUTELY), input=INPUT), CONSUMED + timedelta(minutes=10))
    yield one("of a pause", edited(schedule(), pause={"reason": "incident"}))


def _runs() -> Iterator[Situation]:
    def one(name: str, want: str, status: dict[str, Any] | None) -> Situation:
        return Situation(name=f"a run, {name}", snapshot=running(schedule(), status), now=DUE, want=want)

    failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "lastTransitionTime": DUE.isoformat()}
    yield replace(one("its Job to be made", "CreateJob", None), now=CONSUMED + timedelta(seconds=1))
    yield one("its Job completed", "WriteOutcome Completed", COMPLETED)
    yield one("its Job failed", "WriteOutcome Exhausted", STARTED | {"conditions": [failed]})
