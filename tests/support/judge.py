"""Holds what is in a namespace of a real cluster to the invariants: the soak's auditor, told of the objects as they are.

What was deleted before is not seen; who may have deleted Jobs counts the creates in the audit log as well.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from soak_lib.auditor import Auditor
from soak_lib.commits import Commit
from support.control_plane import AuditTrail
from workflow_schedules.api import names
from workflow_schedules.api.common import parse_utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.cluster_stories import Json
    from support.scene import View


def problems(view: View) -> list[str]:
    """Return everything that is wrong with a settled namespace."""
    auditor = Auditor()
    for commit in commits(view):
        auditor.see(commit)
    return auditor.problems(datetime.now(UTC))


def commits(view: View) -> Iterator[Commit]:
    """Give the objects in an order in which they can have come: each record open at first, then its Job, then its end."""
    for schedule in view.of_kind(names.KIND_SCHEDULE):
        yield _commit("workflowschedules", schedule)
    jobs = {job["metadata"]["name"]: job for job in view.of_kind("Job")}
    records = [each for each in view.of_kind(names.KIND_OCCURRENCE) if each["spec"]["cause"] == "Scheduled"]
    for record in sorted(records, key=lambda each: str(each["metadata"]["name"])):
        begun = {**record, "status": {}}
        yield _commit("scheduleoccurrences", begun)
        if job := jobs.get(record["metadata"]["name"]):
            yield _commit("jobs", job)
        if record.get("status"):
            yield _commit("scheduleoccurrences", record, before=begun)


def _commit(kind: str, body: Json, *, before: Json | None = None) -> Commit:
    return Commit(kind=kind, before=before, after=body, at=parse_utc(body["metadata"]["creationTimestamp"]))


def jobs_made_twice(audit: AuditTrail, namespace: str) -> list[str]:
    """Return the names under which more than one Job was ever made, by whomever."""
    made = Counter(
        request.name
        for request in audit.requests()
        if (request.namespace, request.verb, request.resource) == (namespace, "create", "jobs")
        and request.code == 201
        and not request.is_dry_run
    )
    return [name for name, count in made.items() if count > 1]
