"""An operator behind a proxy that misbehaves, schedules that each meet one fault, and what must be so in the end.

Each schedule runs once at a time of its own, so that a fault can be for the n-th write of one schedule and no other, and many
can be played at once: what one of them meets must not be seen by the others.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from support import judge
from support.control_plane import FaultProxy, OperatorProcess, faults, seen, streams
from support.herd import ahead, utc
from support.scene import Scene, View, a_schedule, has_ended

if TYPE_CHECKING:
    import pytest

    from support.cluster_stories import Json
    from support.control_plane import AuditTrail

T = TypeVar("T")

LEASE_SECONDS = 4.0
SETTINGS = {
    "WORKFLOW_SCHEDULES_LEASE_DURATION_SECONDS": f"{LEASE_SECONDS:g}",
    "WORKFLOW_SCHEDULES_RENEW_DEADLINE_SECONDS": "3",
    "WORKFLOW_SCHEDULES_RETRY_SECONDS": "0.5",
    "POD_UID": "first",  # how the Lease names it
    "WORKFLOW_SCHEDULES_NAME_KEPT_SECONDS": "95",  # the least that such a Lease allows
}
COUNTS = {"admitted": 1, "completed": 1, "failed": 0, "skipped": 0, "coalesced": 0, "superseded": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A namespace, and the operator that acts on it through a proxy."""

    scene: Scene
    proxy: FaultProxy
    operator: OperatorProcess
    audit: AuditTrail | None

    def apply(self, due: datetime, *schedules: str) -> None:
        """Create schedules that run once at that time."""
        self.scene.apply(*(a_one_shot(name, due) for name in schedules))

    def settle(self, names: Iterable[str], *, seconds: float) -> View:
        """Look until each of these schedules has come to its end, or for so long; each test judges its own then."""
        wanted, end = list(names), time.monotonic() + seconds
        while True:
            view = self.scene.look()
            if all(is_settled(view, name) for name in wanted) or time.monotonic() > end:
                return view
            time.sleep(0.5)

    def assert_well(self) -> None:
        """Hold what is there to the invariants, and the operator to going on by itself."""
        assert judge.problems(self.scene.look()) == []
        if self.audit is not None:
            assert judge.jobs_made_twice(self.audit, self.scene.namespace) == []
        assert not self.operator.has_ended, self.operator.last_words()
        log = self.operator.log.read_text(errors="replace")
        assert "reconciling failed" not in log
        assert "a helper of the leader failed" not in log

    def lease(self) -> Json:
        found = self.scene.kubectl(
            "get", "lease", "workflow-schedules", "-n", "workflow-schedules-system", "-o", "json"
        )
        return dict(json.loads(found.stdout)["spec"])


class Kubelet:
    """Kills an operator and starts it again at once; of two who want that at the same time one does it."""

    def __init__(self, operator: OperatorProcess) -> None:
        self._operator = operator
        self._lock = threading.Lock()

    def restart(self) -> None:
        pid = self._operator.pid
        with self._lock:
            if self._operator.pid == pid:
                self._operator.kill()
                self._operator.start()


def a_one_shot(name: str, due: datetime, **spec: object) -> Json:
    """A schedule with a template of its own, whatever happens not given up for an hour."""
    body = a_schedule(name, runOnceTime=utc(due), startingDeadlineSeconds=3600, **spec)
    if template := body["spec"].get("jobTemplate"):
        template["spec"]["template"]["spec"]["containers"][0]["command"] = ["true", name]
    return body


def is_settled(view: View, name: str) -> bool:
    """Tell whether a one-shot has ended, and its status says so."""
    status = view.status(name)
    runs = view.runs(name)
    return (
        bool(runs) and all(map(has_ended, runs)) and status.get("state") == "Complete" and not status.get("activeCount")
    )


def assert_ran_once(view: View, name: str, due: datetime, *, want: str = "Completed") -> None:
    """Its instant was admitted once, ended once as wanted, and log, Job and status agree on that."""
    runs = view.runs(name)
    assert [run["spec"]["scheduledTime"] for run in runs] == [utc(due)], view.count()
    [run] = runs
    outcome, _, reason = want.partition("/")
    status, jobs = run["status"], view.jobs(name)
    assert status.get("outcome") == outcome, status
    assert not reason or status["reason"] == reason
    assert [job["metadata"]["uid"] for job in jobs] == ([status["jobUID"]] if outcome == "Completed" else []), jobs
    told = view.status(name)
    assert told["state"] == "Complete", told
    is_good = outcome == "Completed"
    assert told["counts"] == {**COUNTS, "completed": int(is_good), "failed": int(not is_good)}


def of(name: str) -> seen.Match:
    """Match what is about one schedule: itself, its records, its Jobs, its pinned template."""
    word = name.encode()

    def matches(request: seen.Seen) -> bool:
        if request.resource == "controllerrevisions":
            return word in request.body
        return request.name == name or request.name.startswith(f"{name}-")

    return matches


def _decided(decision: str) -> seen.Match:
    return lambda request: request.sent.get("spec", {}).get("decision") == decision


def _has_ended(request: seen.Seen) -> bool:
    return request.sent.get("status", {}).get("outcome") == "Completed"


def _is_complete(request: seen.Seen) -> bool:
    return request.sent.get("status", {}).get("state") == "Complete"


# Every write of the life of a one-shot, in the order in which the operator sends them.
WRITES: dict[str, Callable[[str], seen.Match]] = {
    "Baseline": lambda name: _on("create", "scheduleoccurrences", name, _decided("Baseline")),
    "first status": lambda name: _on("patch", "workflowschedules/status", name),
    "template": lambda name: _on("create", "controllerrevisions", name),
    "record": lambda name: _on("create", "scheduleoccurrences", name, _decided("Admitted")),
    "Job": lambda name: _on("create", "jobs", name),
    "outcome": lambda name: _on("patch", "scheduleoccurrences/status", name, _has_ended),
    "last status": lambda name: _on("patch", "workflowschedules/status", name, _is_complete),
}


def _on(verb: str, resource: str, name: str, also: seen.Match = lambda _: True) -> seen.Match:
    is_of = of(name)
    return seen.on(verb, resource, where=lambda request: is_of(request) and also(request))


def about(name: str) -> streams.Chooses:
    """Choose the lines of watches that are about one schedule."""
    is_of = of(name)

    def chooses(event: streams.Event) -> bool:
        return is_of(
            seen.Seen(verb="watch", resource="", namespace=event.namespace, name=event.name, query={}, body=b"")
        )

    return chooses


REQUEST_FAULTS: dict[str, faults.Action] = {
    "409": faults.refuse(409),
    "410": faults.refuse(410),
    "429": faults.refuse(429, retry_after_seconds=2),
    "500": faults.refuse(500),
    "503": faults.refuse(503, retry_after_seconds=1),
    "504 after the commit": faults.fail_after_commit(504),
    "500 after the commit": faults.fail_after_commit(500),
    "a page of a load balancer": faults.html(),
    "a page with 200, after the commit": faults.html_as_success(),
    "lost on the way": faults.lose_request(),
    "answer lost": faults.lose_answer(),
    "half of the JSON": faults.cut_json(),
    "half of the bytes": faults.cut_body(),
    "answered after 20 s": faults.delay(20.0, is_committed=True),
    "arrives after 20 s": faults.delay(20.0),
}


SLOW = {"answered after 20 s", "arrives after 20 s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One fault for one write of one schedule."""

    write: str
    fault: str
    want: str = "Completed"

    @property
    def is_slow(self) -> bool:
        """Whether a sample leaves it out."""
        return self.fault in SLOW

    def __str__(self) -> str:
        return f"{self.write}: {self.fault}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A row that was played: under which name, and what it met."""

    name: str
    due: datetime
    fault: faults.Fault


def selected(request: pytest.FixtureRequest, parameter: str, kind: type[T]) -> list[T]:
    """The rows of this test's file that were asked for, so that no others are played."""
    found = [
        item.callspec.params[parameter]
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec") and parameter in item.callspec.params
    ]
    return [each for each in dict.fromkeys(found) if isinstance(each, kind)]


def soon(*, seconds: float) -> datetime:
    return ahead(seconds=seconds)


def lateness(view: View, name: str) -> float:
    """How long after its time the Job of a schedule was made, by the API server's stamp."""
    [job], [run] = view.jobs(name), view.runs(name)
    made, due = (_time(job["metadata"]["creationTimestamp"]), _time(run["spec"]["scheduledTime"]))
    return (made - due).total_seconds()


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
