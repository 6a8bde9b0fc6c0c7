"""Ask the API server, once for each template and namespace, whether it would take the Job: before the first run is due.

In the background and slowly, never on the path of a run: what is not known yet is admitted. What is refused for good is
known to every decision from then on (preflight), and asked again, so that a mended webhook or policy lets runs start.
A field that the server does not know stops nothing, since it may be harmless: the same answer names it, and it is told.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from workflow_schedules.cluster.errors import AlreadyExistsError, ClusterError, ForbiddenError, RefusedError
from workflow_schedules.cluster.runs import is_for_good
from workflow_schedules.core.acceptance import Accepted, accept, definition_problem, template_of
from workflow_schedules.core.ending import says_unhealthy
from workflow_schedules.core.job import job_manifest
from workflow_schedules.core.preflight import sample_record
from workflow_schedules.core.template_fields import TemplateVerdict, unknown_fields
from workflow_schedules.core.template_told import tells
from workflow_schedules.core.zones import load_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.core.job import Manifest
    from workflow_schedules.core.model import Definition, Schedule, Template

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0  # between two questions
REFUSED_AGAIN_SECONDS = 600.0
UNANSWERED_AGAIN_SECONDS = 30.0
_NO_DRY_RUN = "does not support dry run"  # of a webhook with side effects: nothing was judged
_KEPT = 20_000
_REFUSES = "the API server would refuse the Jobs of a template"
_DROPS = "nobody knows some fields of a template"

Key: TypeAlias = tuple[str, str]
Generations: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class _Asked:
    """What is known of one template in one namespace.

    Attributes:
        seen: generations of schedule and definition, by the schedule's UID, that were seen with it.
        again_at: monotonic second of the next question; None for never.
    """

    uid: str
    seen: dict[str, Generations] = field(default_factory=dict)
    again_at: float | None = None


class DryRuns:
    """Asks about templates: first, newest first, about those that it never asked about, then again, longest waiting first."""

    def __init__(self, cluster: Cluster, *, wake: Callable[[str], None]) -> None:
        """Create it inside the running event loop; `wake` is told of schedules that have something new to say."""
        self._cluster = cluster
        self._wake = wake
        self._asked: dict[Key, _Asked] = {}
        self._waiting: dict[Key, None] = {}
        self._waiting_again: dict[Key, None] = {}
        self._is_wanted = asyncio.Event()

    def forget(self) -> None:
        """Begin anew, as a new leader does."""
        self._cluster.cache.template_verdicts.clear()
        self._asked.clear()
        self._waiting.clear()
        self._waiting_again.clear()

    def note(self, uid: str) -> None:
        """Learn that a schedule was looked at: its template is asked about unless it was.

        Source: contract R24.
        """
        found = self._template(uid)
        if found is None:
            return
        schedule, definition, template = found
        key = (schedule.ref.namespace, template.hash)
        asked = self._asked.get(key)
        if asked is None:
            if len(self._asked) >= _KEPT:
                self.forget()  # most are of templates that were edited since
            asked = self._asked[key] = _Asked(uid=uid)
            self._waiting[key] = None
            self._is_wanted.set()
        self._cluster.cache.log(uid).note_template(template.hash, schedule.generation)
        verdict = self._cluster.cache.template_verdicts.get(key)
        if verdict is not None and uid not in asked.seen and not tells(schedule.status, verdict):
            self._wake(uid)  # the answer came after its status was begun, and went to those known by then
        generations = (schedule.generation, definition.generation if definition else 0)
        if verdict is not None and verdict.refusal is not None and asked.seen.get(uid, generations) != generations:
            self._waiting_again[key] = None
            self._is_wanted.set()
        asked.seen[uid] = generations

    async def run(self, fence: Fence) -> None:
        """Ask one after the other until cancelled.

        Raises:
            LostLeaseError: this epoch may not ask any more.
        """
        while True:
            self._is_wanted.clear()
            self._want_again()
            key = self._next()
            if key is None:
                await self._wait()
                continue
            await self._ask(key, fence)
            await asyncio.sleep(PAUSE_SECONDS)

    def _next(self) -> Key | None:
        """Take out whom to ask about: templates that hang again and again keep no other one from its first answer."""
        if self._waiting:
            return self._waiting.popitem()[0]
        key = next(iter(self._waiting_again), None)
        if key is not None:
            del self._waiting_again[key]
        return key

    def _want_again(self) -> None:
        now = self._cluster.monotonic()
        due = ((asked.again_at, key) for key, asked in self._asked.items() if asked.again_at is not None)
        for _, key in sorted(each for each in due if each[0] <= now):
            self._asked[key].again_at = None
            self._waiting_again[key] = None

    async def _wait(self) -> None:
        times = [asked.again_at for asked in self._asked.values() if asked.again_at is not None]
        seconds = max(min(times) - self._cluster.monotonic(), 0.0) if times else None
        try:
            async with asyncio.timeout(seconds):
                await self._is_wanted.wait()
        except TimeoutError:
            pass

    async def _ask(self, key: Key, fence: Fence) -> None:
        found = self._user_of(key)
        if found is None:
            self._forget(key)
            return
        schedule, _, template = found
        asked = self._asked[key]
        manifest = self._sample_job(schedule, template, fence)
        fence.check()
        refusal: str | None = None
        try:
            warnings = await self._cluster.client.ask_about_job(schedule.ref.namespace, manifest)
        except ClusterError as error:
            if not self._is_answer(asked, error):
                return
            warnings, refusal = error.warnings, None if _is_no_objection(error) else error.message
        verdict = TemplateVerdict(refusal=refusal, unknown_fields=unknown_fields(template, manifest, warnings))
        self._learn(key, verdict, asked.seen)

    def _sample_job(self, schedule: Schedule, template: Template, fence: Fence) -> Manifest:
        now = self._cluster.now()
        return job_manifest(
            sample_record(schedule, scheduled_time=now),
            template,
            zone=load_zone(schedule.spec.time_zone if schedule.spec else "UTC"),
            last_successful_at=now,
            writer=fence.writer,
        )

    def _is_answer(self, asked: _Asked, error: ClusterError) -> bool:
        """Tell whether the server has judged; arrange for the next question where it would refuse, or has not."""
        if _is_no_objection(error):
            return True
        is_verdict = _is_verdict(error)
        pause = REFUSED_AGAIN_SECONDS if is_verdict else max(UNANSWERED_AGAIN_SECONDS, error.retry_after_seconds)
        asked.again_at = self._cluster.monotonic() + pause
        return is_verdict

    def _learn(self, key: Key, verdict: TemplateVerdict, concerned: Iterable[str]) -> None:
        """Keep what was said, and have the schedules that it concerns say so where it is new, not only in other words."""
        cache = self._cluster.cache
        before, cache.template_verdicts[key] = cache.template_verdicts.get(key), verdict
        if before is not None and before.is_like(verdict):
            return
        if not verdict.is_fine:
            facts = {"namespace": key[0], "hash": key[1], "fields": verdict.unknown_fields}
            log.warning(_DROPS if verdict.refusal is None else _REFUSES, extra=facts)
        for uid in tuple(concerned):
            schedule = cache.schedules.get(uid)
            if schedule is not None and not (verdict.is_fine and not says_unhealthy(schedule.status)):
                self._wake(uid)

    def _user_of(self, key: Key) -> tuple[Schedule, Definition | None, Template] | None:
        """Return a schedule that still has this template in force; None when no one needs the answer any more."""
        asked = self._asked[key]
        for uid in (asked.uid, *asked.seen):
            found = self._template(uid)
            if found is not None and (found[0].ref.namespace, found[2].hash) == key:
                return found
        return None

    def _forget(self, key: Key) -> None:
        del self._asked[key]
        self._cluster.cache.template_verdicts.pop(key, None)

    def _template(self, uid: str) -> tuple[Schedule, Definition | None, Template] | None:
        """Return an accepted schedule with its parent and the template in force."""
        schedule = self._cluster.cache.schedules.get(uid)
        if schedule is None or schedule.is_deleting:
            return None
        definition = self._cluster.cache.desired.parent_of(schedule)
        if definition is not None and definition_problem(definition) is not None:
            return None
        template = template_of(schedule, definition)
        if template is None or not isinstance(accept(schedule, definition), Accepted):
            return None
        return schedule, definition, template


def _is_no_objection(error: ClusterError) -> bool:
    """Tell whether the template itself was not refused: quotas and names come last, and may be free when a run is due."""
    if isinstance(error, AlreadyExistsError) or _NO_DRY_RUN in error.message:
        return True
    return isinstance(error, ForbiddenError) and error.is_quota


def _is_verdict(error: ClusterError) -> bool:
    """Tell whether the server has judged: not where it was busy, or the Lease fence lags."""
    if isinstance(error, ForbiddenError) and error.is_fence:
        return False
    return isinstance(error, RefusedError) and is_for_good(error)
