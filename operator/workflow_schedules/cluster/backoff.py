"""How long to leave something alone after a failure. Who waits, and for what, is the caller's business."""

from __future__ import annotations

from workflow_schedules.cluster.errors import ClusterError, ForbiddenError, RefusedError, ThrottledError

FENCE_FIRST_SECONDS = 0.25
FENCE_LAG_TRIES = 4  # nothing to speak of: the admission cache is a moment behind the Lease
BACKOFF_FIRST_SECONDS = 1.0
BACKOFF_LIMIT_SECONDS = 10.0  # well below the usual deadline: what becomes possible in time happens in time
REFUSED_LIMIT_SECONDS = 60.0
TERMINATING_SECONDS = 600.0  # a namespace that is being deleted never takes anything again


def pause_seconds(error: ClusterError, *, failures: int) -> float:
    """Return how long to leave something alone after a failure.

    Args:
        error: the failure.
        failures: how many came before it in a row.
    """
    if isinstance(error, ForbiddenError) and error.is_terminating:
        return TERMINATING_SECONDS
    if isinstance(error, ForbiddenError) and error.is_fence:
        return min(FENCE_FIRST_SECONDS * 2.0 ** min(max(failures - FENCE_LAG_TRIES, 0), 16), BACKOFF_LIMIT_SECONDS)
    is_refused = isinstance(error, RefusedError) and not isinstance(error, ThrottledError)
    limit = REFUSED_LIMIT_SECONDS if is_refused else BACKOFF_LIMIT_SECONDS
    return max(min(BACKOFF_FIRST_SECONDS * 2.0 ** min(failures, 16), limit), error.retry_after_seconds)
