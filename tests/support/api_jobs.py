"""What the Job controller would write into Jobs, on demand."""

from __future__ import annotations

from typing import Literal

from support.api_hooks import JOB_CONTROLLER
from support.api_kinds import Json
from support.api_server import Clock, FakeApiServer
from support.api_store import api_time

_PATH = "/apis/batch/v1/namespaces/{}/jobs/{}/status"


class JobController:
    """Starts, suspends and finishes Jobs of a fake API server, at once and without faults."""

    def __init__(self, server: FakeApiServer, clock: Clock) -> None:
        self._server = server
        self._clock = clock

    def start_job(self, namespace: str, name: str, *, ready: int = 1) -> Json:
        """One pod runs, or waits to be ready."""
        status: Json = {"active": 1, "ready": ready, "terminating": 0, "uncountedTerminatedPods": {}}
        if "startTime" not in self._job(namespace, name).get("status", {}):
            status["startTime"] = self._now()
        return self._write(namespace, name, status, self._condition("Suspended", "False", "JobResumed"))

    def suspend_job(self, namespace: str, name: str) -> Json:
        """Set ``spec.suspend`` as a user would, and then do what the controller does."""
        self._server.patch("jobs", namespace, name, {"spec": {"suspend": True}})
        status: Json = {"active": 0, "ready": 0, "startTime": None}
        return self._write(namespace, name, status, self._condition("Suspended", "True", "JobSuspended"))

    def resume_job(self, namespace: str, name: str, *, ready: int = 1) -> Json:
        self._server.patch("jobs", namespace, name, {"spec": {"suspend": False}})
        return self.start_job(namespace, name, ready=ready)

    def finish_job(
        self,
        namespace: str,
        name: str,
        outcome: Literal["Complete", "Failed"] = "Complete",
        reason: str | None = None,
        message: str = "",
    ) -> Json:
        """End the Job; a real one passes through ``SuccessCriteriaMet`` or ``FailureTarget`` in a write of its own."""
        if "startTime" not in self._job(namespace, name).get("status", {}):
            self.start_job(namespace, name)
        is_complete = outcome == "Complete"
        why = reason or ("CompletionsReached" if is_complete else "BackoffLimitExceeded")
        before = "SuccessCriteriaMet" if is_complete else "FailureTarget"
        self._write(namespace, name, {"active": 0, "ready": 0}, self._condition(before, "True", why, message))
        status: Json = {"succeeded": 1, "completionTime": self._now()} if is_complete else {"failed": 1}
        return self._write(namespace, name, status, self._condition(outcome, "True", why, message))

    def _job(self, namespace: str, name: str) -> Json:
        return self._server.get("jobs", namespace, name)

    def _write(self, namespace: str, name: str, status: Json, condition: Json) -> Json:
        conditions = self._job(namespace, name).get("status", {}).get("conditions", [])
        others = [each for each in conditions if each["type"] != condition["type"]]
        if condition["status"] == "True" or len(others) < len(conditions):
            status = {**status, "conditions": [*others, condition]}
        return self._server.patch(
            "jobs", namespace, name, {"status": status}, subresource="status", client=JOB_CONTROLLER
        )

    def _condition(self, kind: str, status: str, reason: str, message: str = "") -> Json:
        now = self._now()
        return {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastProbeTime": now,
            "lastTransitionTime": now,
        }

    def _now(self) -> str:
        return api_time(self._clock.now())
