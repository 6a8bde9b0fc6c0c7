"""Finds writes of a schedule's status that nothing called for (I8)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from soak_lib.accounts import read_time

if TYPE_CHECKING:
    from soak_lib.commits import Commit, Json

# A status is written late, and without what happened while its write was on its way: the next write may tell that.
OVERLAP = timedelta(seconds=60)
_EARLIEST = datetime.fromisoformat("0001-01-01T00:00:00+00:00")


@dataclass(slots=True)
class _Seen:
    """When something happened to a schedule, and when its status was written."""

    caused_at: datetime = _EARLIEST
    written_at: datetime | None = None


class IdleWrites:
    """Is told every commit; a status write needs a cause since shortly before the one before it.

    A cause is: an edit of the schedule or of its definition, a record or a Job of it that changed, a run or a candidate
    that waits, an instant that came. Renewals of the Lease are no commit that is looked at.
    """

    def __init__(self) -> None:
        self._schedules: dict[str, _Seen] = {}
        self._uids: dict[tuple[str, str], str] = {}
        self._definitions: dict[tuple[str, str], datetime] = {}
        self._latest = _EARLIEST

    def see(self, commit: Commit) -> list[str]:
        """Take the next commit; return what is wrong with it."""
        metadata = commit.body["metadata"]
        match commit.kind:
            case "workflowschedules":
                return self._see_schedule(commit)
            case "workflowdefinitions":
                if commit.before is None or commit.before["metadata"]["generation"] != metadata["generation"]:
                    self._definitions[metadata["namespace"], metadata["name"]] = commit.at
            case "scheduleoccurrences":
                reference = commit.body["spec"]["scheduleRef"]
                known = self._uids.get((metadata["namespace"], reference["name"]), "")
                self._cause(reference.get("uid") or known, commit.at)
            case "jobs":
                self._cause((metadata.get("labels") or {}).get("workflow-schedules.dev/schedule-uid", ""), commit.at)
        return []

    def _cause(self, uid: str, at: datetime) -> None:
        if uid:
            self._schedules.setdefault(uid, _Seen()).caused_at = at

    def _see_schedule(self, commit: Commit) -> list[str]:
        metadata = commit.body["metadata"]
        self._uids[metadata["namespace"], metadata["name"]] = metadata["uid"]
        seen = self._schedules.setdefault(metadata["uid"], _Seen())
        if commit.before is None or commit.after is None or not _is_status_only(commit.before, commit.after):
            seen.caused_at = commit.at
            return []
        written_before, seen.written_at = seen.written_at, commit.at
        if written_before is not None and commit.at < self._latest:
            seen.caused_at = self._latest  # a clock that is set back moves what is next
        self._latest = max(self._latest, commit.at)
        if written_before is None or self._is_called_for(seen, commit, written_before - OVERLAP):
            return []
        return [f"I8: the status of {metadata['name']} was written with nothing due (at {commit.at:%H:%M:%S})"]

    def _is_called_for(self, seen: _Seen, commit: Commit, since: datetime) -> bool:
        before = commit.before or {}
        spec, status = before["spec"], before.get("status") or {}
        parent = (before["metadata"]["namespace"], (spec.get("workflowRef") or {}).get("name", ""))
        instants = [
            status.get("nextScheduleTime"),
            spec.get("endTime"),
            spec.get("runOnceTime"),  # of one that is disabled, too: it is over then (R21)
            (spec.get("pause") or {}).get("untilTime"),
        ]
        return (
            seen.caused_at > since
            or self._definitions.get(parent, _EARLIEST) > since
            or bool(status.get("activeCount") or status.get("candidates"))
            or any(since < at <= commit.at + timedelta(seconds=2) for at in map(read_time, instants) if at)
        )


def _is_status_only(before: Json, after: Json) -> bool:
    return before["metadata"]["generation"] == after["metadata"]["generation"] and (
        before.get("status") != after.get("status")
    )
