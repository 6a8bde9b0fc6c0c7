"""What leading means: read everything, then reconcile what is due until the Lease is lost or the process stops."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from workflow_schedules.cluster.backoff import pause_seconds
from workflow_schedules.cluster.errors import ClusterError
from workflow_schedules.cluster.fence import LostLeaseError
from workflow_schedules.scheduler.definitions import DefinitionStatuses
from workflow_schedules.scheduler.dry_runs import DryRuns
from workflow_schedules.scheduler.loop import Loop
from workflow_schedules.scheduler.recovery import FenceProof, prove_fence, take_over
from workflow_schedules.scheduler.retention import Retention

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.scheduler.retention import RetentionSettings
    from workflow_schedules.scheduler.sweep import Sweep
    from workflow_schedules.scheduler.wakeups import WakeUps

log = logging.getLogger(__name__)

WAIT_FOR_JOBS_SECONDS = 0.1
FENCE_PROOF_SECONDS = 3600.0
FENCE_MISSING_SECONDS = 60.0  # soon after the policy is installed, that is known
FENCE_REFUSED_SECONDS = 5.0
FENCE_LAG_SECONDS = 10.0  # the admission cache is a moment behind the Lease after a takeover
HELPER_RESTART_SECONDS = 30.0
_FENCE_PROBLEMS: dict[FenceProof | None, str] = {
    FenceProof.IS_MISSING: "the policy workflow-schedules-fence does not refuse old epochs of this account: it is missing "
    "(apply the manifests), or one of its bindings, or this is not the operator's ServiceAccount; the other fences hold "
    "meanwhile",
    FenceProof.REFUSES_THE_HOLDER: "the policy workflow-schedules-fence refuses the holder of the Lease, so nothing can be "
    "written: the policy reads another installation's Lease (remove one of the two), or an API server reads an old one, as it "
    "does after the policy was deleted and made again (restart the API servers, or delete both of its bindings and go on without "
    "this fence until then)",
}
_PROVEN_AGAIN = {FenceProof.HOLDS: FENCE_PROOF_SECONDS, FenceProof.IS_MISSING: FENCE_MISSING_SECONDS}


class Leader:
    """Schedules for as long as a fence lasts.

    Attributes:
        is_leading: everything is read, and what is due is reconciled.
        problem: what keeps it from leading as it should, None when nothing does.
    """

    def __init__(  # noqa: PLR0913 - the composition root hands over each part by name
        self,
        *,
        cluster: Cluster,
        wakeups: WakeUps,
        sweep: Sweep,
        note_epoch: Callable[[int], None],
        has_jobs: Callable[[], bool],
        watch_cancels: Callable[[], Awaitable[None]],
        drain_seconds: float,
        workers: int,
        retention: RetentionSettings,
    ) -> None:
        self._cluster = cluster
        self._wakeups = wakeups
        self._sweep = sweep
        self._note_epoch = note_epoch
        self._has_jobs = has_jobs
        self._watch_cancels = watch_cancels
        self._drain_seconds = drain_seconds
        self._dry_runs = DryRuns(cluster, wake=wakeups.wake)
        self._loop = Loop(cluster=cluster, wakeups=wakeups, workers=workers, on_reconciled=self._note_reconciled)
        self._retention = Retention(
            cluster, retention, is_busy=self._loop.is_busy, is_working_on=self._loop.is_working_on
        )
        self._definitions = DefinitionStatuses(cluster, wake=wakeups.wake)
        self.is_leading = False
        self.problem: str | None = None

    def _note_reconciled(self, uid: str) -> None:
        self._dry_runs.note(uid)
        self._retention.note(uid)

    def is_busy(self) -> bool:
        """Tell whether schedules wait their turn."""
        return self._loop.is_busy()

    async def lead(self, fence: Fence, *, stop: asyncio.Event) -> None:
        """Lead until `stop` is set and everything begun is finished, or until cancelled.

        Raises:
            LostLeaseError: this epoch may not write any more.
        """
        if not await self._take_over(fence, stop):
            return
        self.is_leading = True
        self._dry_runs.forget()
        self._retention.begin(fence, stop=stop)
        helpers = [
            asyncio.ensure_future(_for_ever(helper))
            for helper in (
                lambda: self._prove_fence(fence),
                lambda: self._definitions.run(fence),
                lambda: self._dry_runs.run(fence),
                lambda: self._retention.run(fence, stop=stop),
                lambda: self._retention.sweep(fence, stop=stop),
                self._sweep.run,
                self._watch_cancels,
            )
        ]
        try:
            work = asyncio.ensure_future(self._loop.run(fence, stop=stop))
            await self._until_done(work, stop)
            await self._retention.settle()
        finally:
            self.is_leading = False
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    async def _until_done(self, work: asyncio.Future[None], stop: asyncio.Event) -> None:
        stopping = asyncio.ensure_future(self._drain(stop, work))
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not work.done():
                work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        if not work.cancelled():
            work.result()

    async def _drain(self, stop: asyncio.Event, work: asyncio.Future[None]) -> None:
        """After `stop`, give what was begun its time."""
        await stop.wait()
        self._wakeups.poke()
        await asyncio.wait({work}, timeout=self._drain_seconds)

    async def _take_over(self, fence: Fence, stop: asyncio.Event) -> bool:
        self.problem, failures = None, 0
        while not stop.is_set():
            fence.check()
            if not self._has_jobs():  # without them no decision can be made, so nothing is worth reading yet
                await asyncio.sleep(WAIT_FOR_JOBS_SECONDS)
                continue
            try:
                highest = await take_over(self._cluster, self._wakeups, writer=fence.writer)
            except ClusterError as error:
                self.problem = f"it leads, but what there is can't be read: {error.message}"
                log.warning("could not read everything yet, it is tried again", extra={"error": error.message})
                await _wait_or_stop(stop, pause_seconds(error, failures=failures))
                failures += 1
            else:
                self.problem = None
                self._note_epoch(highest)
                return True
        return False

    async def _prove_fence(self, fence: Fence) -> None:
        """Ask hourly whether the server's fence holds; until it lets this holder write, ask often."""
        namespace = fence.writer.lease.partition("/")[0]
        while True:
            proof: FenceProof | None = None
            pause = FENCE_REFUSED_SECONDS
            try:
                proof = await prove_fence(self._cluster, fence, namespace)
                pause = _PROVEN_AGAIN.get(proof, pause)
            except ClusterError as error:
                log.warning("the fence could not be proven", extra={"error": error.message})
                pause = max(pause, error.retry_after_seconds)
            self._note_proof(proof, fence)
            await asyncio.sleep(pause)

    def _note_proof(self, proof: FenceProof | None, fence: Fence) -> None:
        """Say what is wrong with the fence, each new thing once; it is in the readiness for as long as it lasts."""
        if proof is None:
            return
        lags = self._cluster.monotonic() - fence.acquired_at < FENCE_LAG_SECONDS
        problem = None if lags and proof is FenceProof.REFUSES_THE_HOLDER else _FENCE_PROBLEMS.get(proof)
        if problem != self.problem and problem is not None:
            log.error(problem, extra={"epoch": fence.writer.epoch})
        elif problem is None and self.problem is not None and proof is FenceProof.HOLDS:
            log.info("the fence holds again", extra={"epoch": fence.writer.epoch})
        self.problem = problem


async def _for_ever(helper: Callable[[], Awaitable[None]]) -> None:
    """Run a helper again after a fault of ours: none of them may take the scheduling down, nor be silently gone."""
    while True:
        try:
            await helper()
        except LostLeaseError:
            return  # the loop ends by it, too
        except Exception:
            log.exception("a helper of the leader failed, it is started again")
        await asyncio.sleep(HELPER_RESTART_SECONDS)


async def _wait_or_stop(stop: asyncio.Event, seconds: float) -> None:
    """Wait so long, or until `stop` is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass
