"""The real code with one rule of the write protocol broken: each function changes one place, until its test is over.

Which world shows it is the business of mutants.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support import api_hooks
from support.api_hooks import LeaseFence
from support.api_kinds import RefusedError
from support.api_requests import Admission
from workflow_schedules.api import names
from workflow_schedules.api.schedule import State
from workflow_schedules.cluster import apply, history, runs
from workflow_schedules.cluster.fence import Fence
from workflow_schedules.core import baselines, decide, log, retention
from workflow_schedules.core import runs as core_runs
from workflow_schedules.core.acceptance import template_of
from workflow_schedules.core.plan import WriteOutcome
from workflow_schedules.scheduler import leader, leadership
from workflow_schedules.scheduler import retention as pruning
from workflow_schedules.scheduler.removal import Remover

Patch = pytest.MonkeyPatch
LONG = timedelta(days=1)


# names that are freed


def no_k_for_jobs(patch: Patch) -> None:
    real = retention.prune_jobs
    patch.setattr(pruning, "prune_jobs", lambda jobs, limits, times: real(jobs, limits, _without_k(times)))
    patch.setattr(pruning.Retention, "note", _look_at_once)


def no_k_for_records(patch: Patch) -> None:
    real = retention.prune_records

    def prune(prunable: Any, *, surplus: int, times: Any) -> Any:  # noqa: ANN401
        return real(prunable, surplus=surplus, times=_without_k(times))

    patch.setattr(pruning, "prune_records", prune)
    patch.setattr(pruning.Retention, "note", _look_at_once)


def _without_k(times: retention.Times) -> retention.Times:
    return replace(times, name_kept=timedelta(), since_acquired=LONG)


def _look_at_once(self: Any, uid: str) -> None:  # noqa: ANN401
    self._due.wake_at(uid, self._cluster.now() + timedelta(seconds=1))


def k_from_finish(patch: Patch) -> None:
    real = retention.prune_jobs

    def prune(jobs: Any, limits: Any, times: Any) -> Any:  # noqa: ANN401
        known = [replace(job, recorded_at=job.recorded_at and job.ended_at) for job in jobs]
        return real(known, limits, replace(times, since_acquired=LONG))

    patch.setattr(pruning, "prune_jobs", prune)
    patch.setattr(pruning.Retention, "note", _look_at_once)


def blind_retry(patch: Patch) -> None:
    async def nothing_read(_cluster: object, _ref: object) -> bool:
        return False

    patch.setattr(runs, "read_job", nothing_read)


def no_wait_before_pruning(patch: Patch) -> None:
    patch.setattr(Remover, "_may_still_arrive", lambda _self, _uid: False)


def past_the_stored_head(patch: Patch) -> None:
    real = retention.prunable_records
    patch.setattr(pruning, "prunable_records", lambda records, **given: real(records, **{**given, "log_head": 10**9}))


def job_before_outcome(patch: Patch) -> None:
    real = retention.prune_jobs

    def prune(jobs: Any, limits: Any, times: Any) -> Any:  # noqa: ANN401
        return real([replace(job, recorded_at=job.ended_at) for job in jobs], limits, times)

    patch.setattr(pruning, "prune_jobs", prune)


# fences


def only_older_is_refused(patch: Patch) -> None:
    def judge(self: LeaseFence, admission: Admission) -> RefusedError | None:
        written, lease = api_hooks._fenced(admission), self._lease()
        if written is None or lease is None or not self._is_operator(admission.client):
            return None
        return self._refusal(admission, "older") if (written[0] or 0) < lease.get("leaseTransitions", 0) else None

    patch.setattr(LeaseFence, "__call__", judge)


def no_self_fence(patch: Patch) -> None:
    patch.setattr(Fence, "check", lambda _self: None)
    patch.setattr(leadership.Elector, "_seconds_left", lambda self, _fence: self._times.call_seconds)


def no_epoch_check(patch: Patch) -> None:
    patch.setattr(history, "_check_writer", lambda _head, _writer: None)


def slow_renewal(patch: Patch) -> None:
    """Let the holder notice late that it has lost the Lease."""
    real = leadership.Elector._renew

    async def renew(self: Any, fence: Fence) -> float:  # noqa: ANN401
        await asyncio.sleep(3.0)
        return await real(self, fence)

    patch.setattr(leadership.Elector, "_renew", renew)


def epoch_restarts(patch: Patch) -> None:
    patch.setattr(leadership, "next_epoch", lambda *, lease_transitions, **_known: lease_transitions + 1)
    patch.setattr(leadership.Elector, "note_epoch", lambda _self, _highest: None)


def stale_delete(patch: Patch) -> None:
    async def turn(self: Any, schedule_uid: str) -> None:  # noqa: ANN401
        fence, self._fence = self._fence, _AlwaysHeld(self._fence.writer)
        try:
            await real(self, schedule_uid)
        finally:
            self._fence = fence

    real = Remover.turn
    patch.setattr(Remover, "turn", turn)


@dataclass
class _AlwaysHeld:
    writer: object

    def check(self) -> None:
        """Say nothing."""


def standby_cache(patch: Patch) -> None:
    async def take_over(cluster: Any, wakeups: Any, *, writer: Any) -> int:  # noqa: ANN401, ARG001
        cluster.cache.logs.clear()
        wakeups.wake_all(cluster.cache.schedules)
        return 0

    patch.setattr(leader, "take_over", take_over)


# the log


def edits_only_in_status(patch: Patch) -> None:
    real = baselines.change_of_generation
    patch.setattr(
        decide,
        "change_of_generation",
        lambda snapshot, *rest: real(snapshot, *rest) if snapshot.head is None else None,
    )


def no_baseline_on_pause(patch: Patch) -> None:
    real = baselines.change_of_generation

    def change(snapshot: Any, schedule: Any, state: Any, now: Any) -> Any:  # noqa: ANN401
        return None if state is State.PAUSED else real(snapshot, schedule, state, now)

    patch.setattr(decide, "change_of_generation", change)


def contents_not_generations(patch: Patch) -> None:
    real = baselines._baseline_reason

    def reason(snapshot: Any, head: Any, schedule: Any, state: Any) -> Any:  # noqa: ANN401
        was = head.spec.generation or 0
        return real(snapshot, head, replace(schedule, generation=min(schedule.generation, was + 1)), state)

    patch.setattr(baselines, "_baseline_reason", reason)


def below_the_head(patch: Patch) -> None:
    patch.setattr(decide, "_is_behind_log", lambda _snapshot: False)


def head_not_read(patch: Patch) -> None:
    def adopt(log_: Any, head: Any, schedule: Any) -> None:  # noqa: ANN401, ARG001
        log_.head = replace(head, spec=head.spec.model_copy(update={"open": ()}))

    patch.setattr(history, "_adopt", adopt)


def walk_after_wiped_status(patch: Patch) -> None:
    async def walk(client: Any, schedule: Any) -> Any:  # noqa: ANN401
        return await history._walk(client, schedule, None)

    patch.setattr(history, "_newest_by_list", walk)


def no_uid_in_names(patch: Patch) -> None:
    patch.setattr(names, "_hash8", lambda _text: "00000000")


def named_by_instant(patch: Patch) -> None:
    """Number records by their watermark, and find the head by a list, as there is no next name to try."""
    begin = datetime(2026, 3, 2, tzinfo=UTC)

    def numbered(spec: Any, head: Any) -> Any:  # noqa: ANN401
        number = int((spec.consumed_through_time - begin).total_seconds())
        number = (
            number if spec.decision in {"Admitted", "SkippedOverlap", "SkippedMisfire", "Coalesced"} else number * 1 + 0
        )
        taken = head.number if head else 0
        number = number if number > taken else taken + 1
        opened = tuple(number if each == taken + 1 else each for each in spec.open)
        return spec.model_copy(update={"sequence": number, "open": opened})

    def wrap(make: Any) -> Any:  # noqa: ANN401
        return lambda snapshot, **given: numbered(make(snapshot, **given), snapshot.head)

    async def newest(client: Any, schedule: Any) -> Any:  # noqa: ANN401
        listed = await history.list_log(client, schedule)
        return max((each.record for each in listed), key=lambda record: record.number, default=None)

    async def walk(client: Any, schedule: Any, _head: Any) -> Any:  # noqa: ANN401
        return await newest(client, schedule)

    for name in ("baseline", "verdict_record", "superseded"):
        patch.setattr(log, name, wrap(getattr(log, name)))
    patch.setattr(history, "_newest_by_list", newest)
    patch.setattr(history, "_walk", walk)


# runs


def late_running(patch: Patch) -> None:
    async def blindly(cluster: Any, run: Any, known: Any, status: Any) -> Any:  # noqa: ANN401, ARG001
        ref = run.record.ref
        return await cluster.client.patch_occurrence_status(ref.namespace, ref.name, {"status": status})

    patch.setattr(apply, "patch_status", blindly)


def missing_from_cache(patch: Patch) -> None:
    real = core_runs._confirmed

    def confirmed(snapshot: Any, run: Any, status: Any, now: Any) -> Any:  # noqa: ANN401
        if status.reason == "JobMissing":
            return core_runs._write(run, status)
        return real(snapshot, run, status, now)

    patch.setattr(core_runs, "_confirmed", confirmed)


def no_wait_for_late_creates(patch: Patch) -> None:
    patch.setattr(core_runs, "_settles_at", lambda _snapshot, _run, _now: None)


def no_second_read(patch: Patch) -> None:
    real = apply._write_outcome

    async def write(cluster: Any, step: WriteOutcome, *rest: Any) -> None:  # noqa: ANN401
        await real(cluster, replace(step, confirm_absence=False), *rest)

    patch.setattr(apply, "_write_outcome", write)


def adopted(patch: Patch) -> None:
    patch.setattr(
        core_runs,
        "_foreign_job",
        lambda snapshot, run, now: core_runs._decide_with_job(snapshot, run, run.job, now, None),
    )


def current_template(patch: Patch) -> None:
    async def template(cluster: Any, run: Any, snapshot: Any, fence: Any) -> Any:  # noqa: ANN401
        await real(cluster, run, snapshot, fence)  # what had to be read is decided anew
        return template_of(snapshot.schedule, snapshot.definition)

    real = runs._template
    patch.setattr(runs, "_template", template)


def open_from_jobs(patch: Patch) -> None:
    def with_jobs(found: Any) -> Any:  # noqa: ANN401
        return tuple(run for run in real(found) if run.job is not None)

    real = log.open_runs
    patch.setattr(log, "open_runs", with_jobs)


def both(*changes: Callable[[Patch], None]) -> Callable[[Patch], None]:
    def change(patch: Patch) -> None:
        for each in changes:
            each(patch)

    return change
