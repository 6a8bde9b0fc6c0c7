"""What answers mean."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson
import pytest

from workflow_schedules.cluster.errors import (
    AlreadyExistsError,
    Cause,
    ClusterError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    ThrottledError,
    UnansweredError,
    UnauthorizedError,
    error_of,
    error_of_status,
)

FENCE = (
    'scheduleoccurrences.workflow-schedules.dev "s-00000000-000000001" is forbidden: ValidatingAdmissionPolicy '
    "'workflow-schedules-fence' with binding 'workflow-schedules-fence-creates' denied request: fence: this write's epoch"
)
OTHER_POLICY = FENCE.replace("'workflow-schedules-fence'", "'workflow-schedules-records'")
QUOTA = 'jobs.batch "j" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: 1, limited: 1'


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    code: int
    want: type[ClusterError]
    reason: str = ""
    message: str = "m"
    headers: dict[str, str] = field(default_factory=dict)
    is_fence: bool = False
    is_quota: bool = False
    retry_after_seconds: float = 0.0


CASES = [
    Case(name="bad request", code=400, want=InvalidError),
    Case(name="unauthorized", code=401, want=UnauthorizedError),
    Case(name="forbidden", code=403, want=ForbiddenError, reason="Forbidden"),
    Case(name="fence says forbidden", code=403, want=ForbiddenError, message=FENCE, is_fence=True),
    Case(name="fence says invalid", code=422, want=ForbiddenError, message=FENCE, is_fence=True),
    Case(name="another policy", code=403, want=ForbiddenError, message=OTHER_POLICY),
    Case(name="a value that quotes the fence", code=422, want=InvalidError, message=f'x "y" is invalid: "{FENCE}"'),
    Case(name="a name that holds the fence", code=403, want=ForbiddenError, message=f'jobs "a-{FENCE[-40:]}" is no'),
    Case(name="quota", code=403, want=ForbiddenError, message=QUOTA, is_quota=True),
    Case(name="not found", code=404, want=NotFoundError),
    Case(name="request time-out", code=408, want=UnansweredError),
    Case(name="exists", code=409, want=AlreadyExistsError, reason="AlreadyExists"),
    Case(name="conflict", code=409, want=ConflictError, reason="Conflict"),
    Case(name="gone", code=410, want=GoneError, reason="Expired"),
    Case(name="too large", code=413, want=InvalidError),
    Case(name="invalid", code=422, want=InvalidError, reason="Invalid"),
    Case(name="throttled", code=429, want=ThrottledError, headers={"retry-after": "7"}, retry_after_seconds=7.0),
    Case(name="throttled, no time", code=429, want=ThrottledError, retry_after_seconds=1.0),
    Case(
        name="throttled until a date",
        code=429,
        want=ThrottledError,
        headers={"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"},
        retry_after_seconds=1.0,
    ),
    Case(
        name="throttled for ever",
        code=429,
        want=ThrottledError,
        headers={"retry-after": "1e9"},
        retry_after_seconds=300,
    ),
    Case(
        name="throttled for nan", code=429, want=ThrottledError, headers={"retry-after": "nan"}, retry_after_seconds=1
    ),
    Case(name="crash", code=500, want=UnansweredError),
    Case(name="unavailable", code=503, want=UnansweredError, headers={"retry-after": "2"}, retry_after_seconds=2.0),
    Case(name="time-out", code=504, want=UnansweredError, reason="Timeout"),
    Case(name="redirect", code=302, want=UnansweredError),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_answer_becomes_one_error(case: Case) -> None:
    status = {"kind": "Status", "code": case.code, "reason": case.reason, "message": case.message}
    body = orjson.dumps({**status, "details": {"name": "x"}})
    error = error_of(case.code, case.headers, body)

    assert type(error) is case.want
    assert (error.reason, error.message) == (case.reason, case.message)
    assert error.retry_after_seconds == case.retry_after_seconds
    if isinstance(error, ForbiddenError):
        assert (error.is_fence, error.is_quota, error.is_terminating) == (case.is_fence, case.is_quota, False)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"details": 3, "message": null}', b"\xff\xfe"])
def test_a_body_that_is_no_status_still_has_a_meaning(body: bytes) -> None:
    assert isinstance(error_of(403, {}, body), ForbiddenError)
    assert isinstance(error_of(404, {}, body), UnansweredError)
    assert isinstance(error_of(502, {}, body), UnansweredError)


def test_a_kind_that_is_not_served_is_not_a_free_name() -> None:
    message = "the server could not find the requested resource"
    error = error_of(404, {}, orjson.dumps({"reason": "NotFound", "message": message, "details": {}}))
    assert type(error) is UnansweredError
    assert error.reason == "NotServed"


def test_causes_are_kept_and_tell_a_terminating_namespace() -> None:
    cause = {"reason": "NamespaceTerminating", "message": "m", "field": "metadata.namespace"}
    body = orjson.dumps({"message": "x", "details": {"causes": [cause, "nonsense"]}})
    error = error_of(403, {}, body)

    assert isinstance(error, ForbiddenError)
    assert error.is_terminating
    assert error.causes == (Cause(reason="NamespaceTerminating", field="metadata.namespace", message="m"),)


def test_a_status_in_a_watch_has_the_same_meaning() -> None:
    assert isinstance(error_of_status({"code": 410, "reason": "Expired"}), GoneError)
    assert isinstance(error_of_status({"message": "no code"}), UnansweredError)
