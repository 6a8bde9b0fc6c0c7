"""Ends the Jobs that no controller manages: some soon, some late, some with a failure, a few never begin."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

from soak_lib.accounts import finished_at

if TYPE_CHECKING:
    from soak_lib.admin import Admin

Json = dict[str, Any]

_AT_ONCE = 6
_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What becomes of a Job; seconds from when it was seen."""

    start_seconds: float | None
    end_seconds: float
    is_failed: bool


class Finisher:
    """Takes each Job through the course that the seed and its name give it."""

    def __init__(self, admin: Admin, seed: int) -> None:
        self._admin = admin
        self._seed = seed
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def see(self, job: Json, *, is_gone: bool = False) -> None:
        """Take a Job as it is, or was when it went."""
        uid = job["metadata"]["uid"]
        if is_gone or "deletionTimestamp" in job["metadata"]:
            if task := self._tasks.pop(uid, None):
                task.cancel()
        elif uid not in self._tasks and finished_at(job) is None:
            self._tasks[uid] = asyncio.create_task(self._run(job["metadata"]))

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _run(self, metadata: Json) -> None:
        course = course_of(Random(f"{self._seed}/{metadata['name']}"))
        began = _now()
        if course.start_seconds is not None:
            await asyncio.sleep(course.start_seconds)
            began = _now()
            await self._write(metadata, {"startTime": began, "active": 1, "ready": 1})
        await asyncio.sleep(course.end_seconds)
        await self._write(metadata, _end(began, is_failed=course.is_failed))

    async def _write(self, metadata: Json, status: Json) -> None:
        """Write it, however long the API server is away; a Job that is gone or has ended needs nothing more."""
        while True:
            async with self._at_once:
                patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
                code = await self._admin.patch(
                    "jobs", metadata["namespace"], metadata["name"], patch, subresource="status"
                )
            if code and code < 500 and code != 429:
                return
            await asyncio.sleep(_RETRY_SECONDS)


def course_of(random: Random) -> Course:
    """Draw what becomes of a Job."""
    kind = random.random()
    is_failed = random.random() < 0.1
    if kind < 0.55:  # too short for anybody to see it begin
        return Course(start_seconds=None, end_seconds=random.uniform(0.5, 10), is_failed=is_failed)
    if kind < 0.82:
        return Course(start_seconds=random.uniform(0.2, 3), end_seconds=random.uniform(3, 25), is_failed=is_failed)
    if kind < 0.96:  # into the next minute, or the one after it
        return Course(start_seconds=1.0, end_seconds=random.uniform(40, 110), is_failed=is_failed)
    return Course(start_seconds=None, end_seconds=150.0, is_failed=True)  # beyond startTimeoutSeconds


def _end(began: str, *, is_failed: bool) -> Json:
    now = _now()
    kinds = ["FailureTarget", "Failed"] if is_failed else ["SuccessCriteriaMet", "Complete"]
    conditions = [
        {"type": kind, "status": "True", "reason": "Soak", "lastProbeTime": now, "lastTransitionTime": now}
        for kind in kinds
    ]
    counts = {"active": 0, "ready": 0, "failed" if is_failed else "succeeded": 1}
    ended = {} if is_failed else {"completionTime": now}
    return {"startTime": began, **counts, **ended, "conditions": conditions}


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
