"""Which failures of an append people are told of."""

from __future__ import annotations

import pytest

from workflow_schedules.cluster.appending import refusal_of
from workflow_schedules.cluster.errors import FENCE_POLICY, ClusterError, UnansweredError, error_of_status
from workflow_schedules.core.model import RecordRefusal, RefusedBy

KIND = 'scheduleoccurrences.workflow-schedules.dev "s-1"'
TERMINATING = {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace", "message": "m"}]}


def status(code: int, reason: str, message: str, **details: object) -> ClusterError:
    return error_of_status({"code": code, "reason": reason, "message": message, "details": details})


CASES = [
    ("a namespace that ends", status(403, "Forbidden", f"{KIND} is forbidden: no", **TERMINATING), RefusedBy.NAMESPACE_END),
    ("a quota", status(403, "Forbidden", f"{KIND} is forbidden: exceeded quota: q"), RefusedBy.QUOTA),
    ("a webhook", status(400, "", "admission webhook \"w\" denied the request: no"), RefusedBy.OTHER),
    ("a right that is missing", status(403, "Forbidden", f"{KIND} is forbidden: User can't create"), RefusedBy.OTHER),
    ("the schema", status(422, "Invalid", "spec.x: no"), RefusedBy.OTHER),
    ("the namespace is gone", status(404, "NotFound", "namespaces \"ns\" not found", name="ns"), RefusedBy.OTHER),
    ("a webhook that can't be called", status(500, "InternalError", "failed calling webhook"), RefusedBy.OTHER),
    ("P14 the fence: another leads, or admission lags",
     status(422, "Invalid", f"{KIND} is forbidden: ValidatingAdmissionPolicy '{FENCE_POLICY}' with binding"), None),
    ("patience", status(429, "TooManyRequests", "later"), None),
    ("a token that has expired", status(401, "Unauthorized", "who?"), None),
    ("P2 the name is taken", status(409, "AlreadyExists", "there"), None),
    ("no answer", UnansweredError("timed out", reason="Timeout"), None),
    ("an API server that stops", status(503, "ServiceUnavailable", "later"), None),
]  # fmt: skip


@pytest.mark.parametrize(("error", "by"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_refusals(error: ClusterError, by: RefusedBy | None) -> None:
    """K-035, K-102."""
    assert refusal_of(error) == (by and RecordRefusal(by=by, words=error.message))
