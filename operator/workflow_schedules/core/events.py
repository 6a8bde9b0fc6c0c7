"""Which happenings deserve an Event, and what it says: CronJob's reasons, one per occurrence at most.

Inputs and the API server's own words, which may quote an input, are never in an Event (K-096); the record has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from workflow_schedules.api import names
from workflow_schedules.api.occurrence import Cause, Decision, Outcome

if TYPE_CHECKING:
    from workflow_schedules.api.common import Condition
    from workflow_schedules.core.model import ObjectRef, Record, Schedule


class EventLevel(StrEnum):
    """Which Events are written."""

    NONE = "None"
    PROBLEMS = "Problems"
    ALL = "All"


class Happening(StrEnum):
    """What became of an occurrence."""

    DECIDED = "Decided"
    STARTED = "Started"
    ENDED = "Ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventText:
    """One Event about a schedule.

    Attributes:
        name: of the Event: the same happening has the same name, so that it is never there twice.
        about: what it says the same of as others: told once while it goes on; empty for what is always news.
        action: what was tried, CamelCase.
        note: for people.
    """

    schedule: ObjectRef
    schedule_uid: str
    name: str
    reason: str
    action: str
    note: str
    is_warning: bool = True
    about: str = ""


_START_FAILURES = frozenset({"JobRejected", "NotStarted", "StartUnknown", "StartTimeout"})
_REASONS_OF_SPECS = {"UnknownTimeZone": "UnknownTimeZone"}


def event_of(happening: Happening, record: Record, *, level: EventLevel) -> EventText | None:
    """Return the Event that an occurrence deserves, or None.

    Source: contract R32.
    """
    if level is EventLevel.NONE:
        return None
    found = _found(happening, record)
    if found is None or (level is EventLevel.PROBLEMS and not found[3]):
        return None
    reason, action, note, _, is_warning = found
    uid = record.spec.schedule_ref.uid or record.status.schedule_uid or ""
    is_blocked = reason == "JobAlreadyActive"
    return EventText(
        schedule=type(record.ref)(namespace=record.ref.namespace, name=record.spec.schedule_ref.name),
        schedule_uid=uid,
        name=f"{record.ref.name}.{reason.lower()}",
        reason=reason,
        action=action,
        note=note,
        is_warning=is_warning,
        about=f"{uid}/{reason}/{record.spec.open}" if is_blocked else "",
    )


def event_of_refusal(schedule: Schedule, accepted: Condition) -> EventText:
    """Return the Event of a spec that can't be used, one per generation.

    Source: contract R32, R36.
    """
    reason = _REASONS_OF_SPECS.get(accepted.reason, "InvalidSchedule")
    prefix = names.record_prefix(schedule.ref.name, schedule.uid)
    return EventText(
        schedule=schedule.ref,
        schedule_uid=schedule.uid,
        name=f"{prefix}generation-{schedule.generation}.{reason.lower()}",
        reason=reason,
        action="Accept",
        note=f"generation {schedule.generation} is not accepted ({accepted.reason}): see the condition Accepted",
    )


_Row = tuple[str, str, str, bool, bool]  # reason, action, note, is a problem, is a warning


def _found(happening: Happening, record: Record) -> _Row | None:
    match happening:
        case Happening.DECIDED:
            return _decided(record)
        case Happening.STARTED:
            return ("SuccessfulCreate", "CreateJob", f"created Job {record.ref.name}", False, False)
        case Happening.ENDED:
            return _ended(record)


def _decided(record: Record) -> _Row | None:
    name, what = record.ref.name, _instants(record)
    match record.spec.decision:
        case Decision.SKIPPED_MISFIRE:
            return ("MissSchedule", "Skip", f"missed {what}: see ScheduleOccurrence {name}", True, True)
        case Decision.SKIPPED_OVERLAP:
            note = f"not started {what}: an earlier run had not finished; later ones it blocks are on record only"
            return ("JobAlreadyActive", "Skip", note, False, False)
        case Decision.PREFLIGHT_REJECTED:
            return ("FailedCreate", "Check", f"not started {what}: see ScheduleOccurrence {name}", True, True)
        case _:
            return None


def _ended(record: Record) -> _Row | None:
    name, outcome, reason = record.ref.name, record.status.outcome, record.status.reason or ""
    if outcome is None or not outcome.is_final:
        return None
    if reason in _START_FAILURES:
        return ("FailedCreate", "CreateJob", f"Job {name} was not started ({reason}): see its record", True, True)
    if reason == "NameTaken":
        return ("UnexpectedJob", "CreateJob", f"Job {name} belongs to somebody else; nothing was started", True, True)
    if reason == "JobMissing":
        return ("MissingJob", "Watch", f"Job {name} went missing before its end was seen", True, True)
    is_problem = outcome not in {Outcome.COMPLETED, Outcome.CANCELLED}  # cancelled or replaced is as somebody wanted it
    return ("SawCompletedJob", "Watch", f"saw Job {name} end: {outcome}", is_problem, is_problem)


def _instants(record: Record) -> str:
    span, at = record.spec.span, record.spec.scheduled_time
    if span is not None:
        return f"{span.count} instants from {span.first_time:%Y-%m-%dT%H:%M:%SZ} to {span.last_time:%Y-%m-%dT%H:%M:%SZ}"
    manual = "a manual run" if record.spec.cause is Cause.MANUAL else "a run"
    return f"{at:%Y-%m-%dT%H:%M:%SZ}" if at else manual
