"""Admission rules for the fake API server that say what the installed policies and CEL rules say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from support.api_kinds import KIND_OF, Json, Kind, RefusedError
from support.api_requests import USER, Admission
from support.api_server import FakeApiServer
from support.api_store import Change, Key
from workflow_schedules.api.names import ANNOTATION_EPOCH, ANNOTATION_WRITER, PLURAL_OCCURRENCE, PLURAL_SCHEDULE
from workflow_schedules.cluster.errors import FENCE_POLICY

FINAL_OUTCOMES = ("Completed", "Failed", "Exhausted", "Cancelled")
JOB_CONTROLLER = "job-controller"
_NO_OPERATORS = (USER, JOB_CONTROLLER)


class LeaseFence:
    """A ValidatingAdmissionPolicy with the Lease as parameter; call it as an admission hook.

    Attributes:
        lag_seconds: how old the Lease is that admission sees; may be changed at any moment.

    Source: reliability P14.
    """

    def __init__(
        self, server: FakeApiServer, namespace: str, name: str, is_operator: Callable[[str], bool], lag_seconds: float
    ) -> None:
        self.lag_seconds = lag_seconds
        self._key: Key = (namespace, name)
        self._is_operator = is_operator
        self._seen: list[tuple[float, Mapping[str, Any] | None]] = []
        stored = server.store.of(KIND_OF["leases"]).get(self._key)
        self._first = None if stored is None else stored.body["spec"]
        server.store.observers.append(self._observe)

    def _observe(self, kind: Kind, change: Change) -> None:
        if kind.plural == "leases" and change.key == self._key:
            after = None if change.after is None else change.after.body["spec"]
            self._seen.append((_time(), after))

    def _lease(self) -> Mapping[str, Any] | None:
        visible = [spec for time, spec in self._seen if time <= _time() - self.lag_seconds]
        return visible[-1] if visible else self._first

    def __call__(self, admission: Admission) -> RefusedError | None:
        written = _fenced(admission)
        if written is None or not self._is_operator(admission.client):
            return None
        lease = self._lease()
        if lease is None:
            why = "failed to configure binding: no params found for policy binding with `Deny`"
            return self._refusal(admission, why, code=422, reason="Invalid")
        if written != (lease.get("leaseTransitions", 0), lease.get("holderIdentity", "")):
            return self._refusal(admission, f"written by {written}, the Lease says otherwise")
        return None

    def _refusal(self, admission: Admission, why: str, *, code: int = 403, reason: str = "Forbidden") -> RefusedError:
        subject = f'{admission.kind.qualified} "{admission.name}"'
        policy = f"ValidatingAdmissionPolicy '{FENCE_POLICY}' with binding '{FENCE_POLICY}'"
        return RefusedError(code, reason, f"{subject} is forbidden: {policy} denied request: {why}")


def lease_fence(
    server: FakeApiServer,
    namespace: str,
    name: str,
    *,
    is_operator: Callable[[str], bool] = lambda client: client not in _NO_OPERATORS,
    lag_seconds: float = 0.0,
) -> LeaseFence:
    """Install the Lease fence: equality of epoch and writer with the Lease for every write of an operator."""
    fence = LeaseFence(server, namespace, name, is_operator, lag_seconds)
    server.admission.append(fence)
    return fence


def record_rules(admission: Admission) -> RefusedError | None:
    """Refuse what the CRDs' transition rules refuse: a changed record or final outcome, a schedule's log going back."""
    if admission.operation != "UPDATE":
        return None
    new, old = admission.new, admission.old
    was, status = old.get("status") or {}, new.get("status") or {}
    if admission.kind.plural == PLURAL_OCCURRENCE:
        if new.get("spec") != old.get("spec"):
            return _invalid(admission, "spec", "a record never changes")
        if was.get("outcome") in FINAL_OUTCOMES and status.get("outcome") != was["outcome"]:
            return _invalid(admission, "status.outcome", "a final outcome never changes")
    if admission.kind.plural == PLURAL_SCHEDULE:
        for field in ("logHead", "consumedThroughTime"):
            if field in was and (field not in status or status[field] < was[field]):
                return _invalid(admission, f"status.{field}", "never goes back")
    return None


def _fenced(admission: Admission) -> tuple[Any, Any] | None:
    """Give epoch and writer of a write that the fence is about."""
    match admission.operation, admission.kind.plural, admission.subresource:
        case "CREATE", "scheduleoccurrences", "":
            spec: Json = admission.new.get("spec") or {}
            return spec.get("fencingEpoch"), spec.get("writer")
        case "CREATE", "jobs", "":
            annotations = admission.new["metadata"].get("annotations") or {}
            epoch = annotations.get(ANNOTATION_EPOCH, "")
            return int(epoch) if epoch.isdecimal() else None, annotations.get(ANNOTATION_WRITER)
        case "UPDATE", "scheduleoccurrences" | "workflowschedules", "status":
            status = admission.new.get("status") or {}
            return status.get("fencingEpoch"), status.get("writer")
    return None


def _invalid(admission: Admission, field: str, message: str) -> RefusedError:
    cause = {"reason": "FieldValueInvalid", "field": field, "message": message}
    text = f'{admission.kind.kind}.{admission.kind.group} "{admission.name}" is invalid: {field}: {message}'
    return RefusedError(422, "Invalid", text, causes=(cause,))


def _time() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0
