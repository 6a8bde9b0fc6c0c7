"""What the API server's answers mean, as one tree of errors.

The only place that knows status codes. Nothing here decides what to do about an error.

    ClusterError
    ├── RefusedError             the server answered: nothing was written
    │   ├── InvalidError         400, 413, 422 and every other refusal of the request itself
    │   ├── UnauthorizedError    401
    │   ├── ForbiddenError       403, and a refusal by the Lease fence: is_fence, is_quota, is_terminating
    │   ├── NotFoundError        404
    │   ├── AlreadyExistsError   409 on a create
    │   ├── ConflictError        409 otherwise: resourceVersion or UID differ
    │   ├── GoneError            410: a resourceVersion or continue token too old
    │   └── ThrottledError       429: retry_after_seconds
    └── UnansweredError          time-out, reset, any 5xx, a body that isn't JSON: a write may or may not have happened;
                                 also a 404 that names no object: then the kind isn't served, and nobody knows what is there
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from workflow_schedules.cluster.decoding import decode
from workflow_schedules.cluster.warning_headers import warnings_of

FENCE_POLICY: Final = "workflow-schedules-fence"
RETRY_AFTER_DEFAULT_SECONDS: Final = 1.0
RETRY_AFTER_LIMIT_SECONDS: Final = 300.0

# Anchored: an object's name or a quoted field value can hold any text, and must not pass for the fence.
_FENCE_MESSAGE: Final = re.compile(rf"\S+ \"[^\"]*\" is forbidden: ValidatingAdmissionPolicy '{FENCE_POLICY}[^']*' ")
_QUOTA_MESSAGE: Final = re.compile(r"\S+ \"[^\"]*\" is forbidden: exceeded quota: ")
_MESSAGE_LIMIT: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One entry of ``Status.details.causes``."""

    reason: str
    field: str
    message: str


class ClusterError(Exception):
    """Any way in which a request did not succeed.

    Attributes:
        message: what the server, or the transport, said.
        reason: ``Status.reason``, or a word of the transport; may be empty.
        causes: field by field, if the server told.
        retry_after_seconds: how long the server asked to be left alone; 0 if it did not.
        warnings: what the server said besides; see warning_headers.py.
    """

    def __init__(
        self, message: str, *, reason: str = "", causes: tuple[Cause, ...] = (), retry_after_seconds: float = 0.0
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.causes = causes
        self.retry_after_seconds = retry_after_seconds
        self.warnings: tuple[str, ...] = ()


class RefusedError(ClusterError):
    """The server answered, and nothing was written."""


class InvalidError(RefusedError):
    """The request or the object is wrong; sending it again gives the same."""


class UnauthorizedError(RefusedError):
    """The server doesn't know who asks."""


class ForbiddenError(RefusedError):
    """The one who asks may not do this, or an admission rule refused it."""

    @property
    def is_fence(self) -> bool:
        """Tell whether the Lease fence refused the write.

        Source: reliability P14.
        """
        return _FENCE_MESSAGE.match(self.message) is not None

    @property
    def is_quota(self) -> bool:
        """Tell whether a ResourceQuota is exhausted."""
        return _QUOTA_MESSAGE.match(self.message) is not None

    @property
    def is_terminating(self) -> bool:
        """Tell whether the namespace is being deleted."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.causes)


class NotFoundError(RefusedError):
    """No such object or namespace; never said of a kind that isn't served, which would pass for a free name."""


class AlreadyExistsError(RefusedError):
    """The name is taken."""


class ConflictError(RefusedError):
    """A precondition (resourceVersion or UID) did not hold."""


class GoneError(RefusedError):
    """The resourceVersion or continue token is too old: list again."""


class ThrottledError(RefusedError):
    """The server asks for patience; ``retry_after_seconds`` is never 0."""


class UnansweredError(ClusterError):
    """Nobody knows whether the request was carried out.

    Source: reliability P2: re-read before deciding anew, never a blind retry.
    """


_BY_CODE: Final[Mapping[int, type[ClusterError]]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    408: UnansweredError,
    409: ConflictError,
    410: GoneError,
    429: ThrottledError,
}


def error_of(code: int, headers: Mapping[str, str], body: bytes) -> ClusterError:
    """Translate an answer that is no success.

    Args:
        code: the HTTP status code.
        headers: with lower-case keys.
        body: a ``Status`` object, or whatever a proxy in between wrote.
    """
    try:
        status = decode(body)
    except orjson.JSONDecodeError:
        status = {"message": body[:_MESSAGE_LIMIT].decode(errors="replace")}
    if not isinstance(status, dict):
        status = {}
    error = _error(code, status, _seconds(headers.get("retry-after", "")))
    error.warnings = warnings_of(headers)
    return error


def error_of_status(status: Mapping[str, Any]) -> ClusterError:
    """Translate a ``Status`` object, such as that of an ERROR line in a watch."""
    code = status.get("code")
    return _error(code if isinstance(code, int) else 500, status, 0.0)


def _error(code: int, status: Mapping[str, Any], retry_after_seconds: float) -> ClusterError:
    details = _mapping(status.get("details"))
    message = str(status.get("message") or f"the API server answered {code}")[:_MESSAGE_LIMIT]
    reason = str(status.get("reason") or "")
    kind = _kind(code, reason, message)
    if kind is NotFoundError and not details.get("name"):
        kind, reason = UnansweredError, "NotServed"
    patience = retry_after_seconds or _seconds(details.get("retryAfterSeconds"))
    if kind is ThrottledError and not patience:
        patience = RETRY_AFTER_DEFAULT_SECONDS
    return kind(message, reason=reason, causes=_causes(details), retry_after_seconds=patience)


def _kind(code: int, reason: str, message: str) -> type[ClusterError]:
    if not 400 <= code < 500:
        return UnansweredError
    if code == 409 and reason == "AlreadyExists":
        return AlreadyExistsError
    # A ValidatingAdmissionPolicy refuses with 422 unless its rule names another reason.
    if code == 422 and _FENCE_MESSAGE.match(message):
        return ForbiddenError
    return _BY_CODE.get(code, InvalidError)


def _causes(details: Mapping[str, Any]) -> tuple[Cause, ...]:
    entries = details.get("causes")
    return tuple(
        Cause(
            reason=str(entry.get("reason") or ""),
            field=str(entry.get("field") or ""),
            message=str(entry.get("message") or ""),
        )
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _seconds(value: object) -> float:
    """Read a number of seconds; what is none (an HTTP date, say) counts as not said."""
    try:
        seconds = float(str(value))
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0), RETRY_AFTER_LIMIT_SECONDS) if math.isfinite(seconds) else 0.0
