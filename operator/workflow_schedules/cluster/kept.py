"""Read of a listed occurrence what retention needs: much cheaper than a whole record, since thousands may be listed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from workflow_schedules.api.occurrence import FINAL_OUTCOMES, Cause, Decision, Outcome
from workflow_schedules.cluster import wire
from workflow_schedules.core.retention import KeptRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEDULE_GONE = "ScheduleDeleted"  # condition of a deleted schedule's newest record: since when it is gone


def kept_record(body: Mapping[str, Any]) -> tuple[str, KeptRecord] | None:
    """Return the UID of the schedule and what is to be known of an occurrence; None for one that makes no sense.

    A request that ended without being resolved is of no schedule but by name, so its UID is empty; one that is still to be
    resolved is nobody's yet: None.
    """
    spec, status = body.get("spec") or {}, body.get("status") or {}
    is_of_log = spec.get("cause") == Cause.SCHEDULED
    uid = (spec.get("scheduleRef") or {}).get("uid") if is_of_log else status.get("scheduleUID")
    try:
        created_at = _time(body["metadata"]["creationTimestamp"])
        outcome = Outcome(status["outcome"]) if status.get("outcome") else None
        record = KeptRecord(
            ref=wire.ref_of(body),
            uid=body["metadata"]["uid"],
            number=int(spec["sequence"]) if is_of_log else None,
            outcome=outcome,
            created_at=created_at,
            finished_at=_finished_at(spec, status, outcome, created_at),
            schedule_name=spec["scheduleRef"]["name"],
            open=tuple(spec.get("open") or ()),
            gone_since=_gone_since(status),
            lease=(spec if is_of_log else status).get("lease"),
        )
    except (KeyError, TypeError, ValueError):
        return None
    if uid is None and not is_of_log and record.finished_at is not None:
        return "", record
    return (uid, record) if isinstance(uid, str) and uid else None


def _finished_at(
    spec: Mapping[str, Any], status: Mapping[str, Any], outcome: Outcome | None, created_at: datetime
) -> datetime | None:
    if spec.get("decision") not in {None, Decision.ADMITTED}:
        return created_at
    if outcome not in FINAL_OUTCOMES:
        return None
    told = [each.get("time") for each in (status.get("transitions") or ())[-1:]] + [status.get("completionTime")]
    return max([created_at, *(_time(text) for text in told if text)])


def _gone_since(status: Mapping[str, Any]) -> datetime | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == SCHEDULE_GONE and condition.get("status") == "True":
            return _time(condition["lastTransitionTime"])
    return None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
