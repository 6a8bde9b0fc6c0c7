"""Runs the Jobs of a fake API server on virtual time: starts each, and ends it when the test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from support.api_jobs import JobController
from support.api_kinds import KIND_OF, Json, Kind, RefusedError
from support.api_server import Clock, FakeApiServer
from support.api_store import Change, Stored

RETRY_SECONDS = 0.5
GC_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What becomes of a Job.

    Attributes:
        run_seconds: from its start to its end; None for never.
        start_seconds: from its creation to its start; None for never.
        is_failed: it fails, for `reason`.
        is_ready: its Pod gets ready; else it starts and waits for one for ever.
    """

    run_seconds: float | None = 2.0
    start_seconds: float | None = 0.2
    is_failed: bool = False
    reason: str | None = None
    is_ready: bool = True


NEVER_ENDS = Course(run_seconds=None)


class JobRunner:
    """Takes every Job of the server through its course; `course` may be exchanged at any time.

    A Job that is deleted in the foreground goes a moment later, unless `add_stuck_pod` gave it one that can't.
    """

    def __init__(self, server: FakeApiServer, clock: Clock) -> None:
        self.controller = JobController(server, clock)
        self.course: Callable[[Json], Course] = lambda _job: Course()
        self._server = server
        server.store.observers.append(self._observe)

    def run_for(self, seconds: float | None) -> None:
        """Let every Job made from now on run that long; None is for ever."""
        self.course = lambda _job: Course(run_seconds=seconds)

    def finish(self, namespace: str, name: str, *, is_failed: bool = False, reason: str | None = None) -> None:
        """End a Job now."""
        self.controller.finish_job(namespace, name, "Failed" if is_failed else "Complete", reason)

    def add_stuck_pod(self, namespace: str, job_name: str, node: str) -> None:
        """Give a Job a Pod on a node that does not answer: it stays until `let_pod_go`."""
        uid = self._server.get("jobs", namespace, job_name)["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job_name, "uid": uid, "controller": True}
        metadata = {
            "name": f"{job_name}-x",
            "namespace": namespace,
            "labels": {"batch.kubernetes.io/job-name": job_name},
            "finalizers": ["test/kubelet"],
            "ownerReferences": [owner],
        }
        self._server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}})

    def let_pod_go(self, namespace: str, job_name: str) -> None:
        """Let the node of a stuck Pod answer."""
        self._server.patch("pods", namespace, f"{job_name}-x", {"metadata": {"finalizers": None}})

    def take_up(self, jobs: list[Json]) -> None:
        """Go on with Jobs that came back with a backup: nothing is on its way for them."""
        for job in jobs:
            self._start(job, self.course(job))

    def _observe(self, kind: Kind, change: Change) -> None:
        self._collect_garbage(kind, change)
        if kind is not KIND_OF["jobs"] or change.before is not None or change.after is None:
            return
        job = change.after.body
        course = self.course(job)
        if course.start_seconds is not None:
            asyncio.get_running_loop().call_later(course.start_seconds, self._start, job, course)

    def _collect_garbage(self, kind: Kind, change: Change) -> None:
        is_gone_pod = kind is KIND_OF["pods"] and change.after is None
        is_leaving_job = kind is KIND_OF["jobs"] and _is_leaving(change.after) and not _is_leaving(change.before)
        if is_gone_pod or is_leaving_job:
            asyncio.get_running_loop().call_later(GC_SECONDS, self._server.run_gc)

    def _start(self, job: Json, course: Course) -> None:
        start = partial(self.controller.start_job, ready=int(course.is_ready))
        if not self._try(job, start, lambda: self._start(job, course)):
            return
        if course.run_seconds is not None and course.is_ready:
            asyncio.get_running_loop().call_later(course.run_seconds, self._end, job, course)

    def _end(self, job: Json, course: Course) -> None:
        outcome = partial(
            self.controller.finish_job, outcome="Failed" if course.is_failed else "Complete", reason=course.reason
        )
        self._try(job, outcome, lambda: self._end(job, course))

    def _try(self, job: Json, act: Callable[[str, str], object], again: Callable[[], None]) -> bool:
        """Act on a Job that still exists; the controller, too, waits for a server that is down."""
        if not self._server.is_up:
            asyncio.get_running_loop().call_later(RETRY_SECONDS, again)
            return False
        metadata = job["metadata"]
        stored = self._server.find("jobs", metadata["namespace"], metadata["name"])
        if stored is None or stored["metadata"]["uid"] != metadata["uid"]:
            return False
        if "deletionTimestamp" in stored["metadata"]:
            return False
        if any(each["type"] in {"Complete", "Failed"} for each in stored.get("status", {}).get("conditions", ())):
            return False
        try:
            act(metadata["namespace"], metadata["name"])
        except RefusedError:
            return False
        return True


def _is_leaving(stored: Stored | None) -> bool:
    return stored is not None and "deletionTimestamp" in stored.body["metadata"]
