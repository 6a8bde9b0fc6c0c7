"""Hold the Lease, hand out the fence, and end everything before anybody else may lead.

All deadlines are on the monotonic clock, counted from before the request that earned them; each call has a deadline of its
own; every acquisition raises the epoch (P15, P16, P20). What a leader does is not its business.
"""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from workflow_schedules.cluster.errors import AlreadyExistsError, ClusterError, ConflictError, NotFoundError
from workflow_schedules.cluster.fence import Fence, LostLeaseError
from workflow_schedules.cluster.leases import LeaseRecord, create_lease, read_lease, replace_lease
from workflow_schedules.cluster.watch import is_older
from workflow_schedules.core.lease import SeenLease, may_acquire, next_epoch
from workflow_schedules.core.model import Writer
from workflow_schedules.scheduler.lease_times import TIMER_SECONDS
from workflow_schedules.scheduler.lease_watch import LeaseWatch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workflow_schedules.cluster.client import Client
    from workflow_schedules.core.model import ObjectRef
    from workflow_schedules.scheduler.clock import Clock
    from workflow_schedules.scheduler.lease_times import LeaseTimes

log = logging.getLogger(__name__)


class Elector:
    """Acquires the Lease, keeps it, and calls the leader with a fence for as long as it lasts.

    Attributes:
        fence: of the epoch held, None without one.
        problem: why this process could not lead if it had to, None when it could.
    """

    def __init__(
        self,
        client: Client,
        lease: ObjectRef,
        *,
        identity: str,
        clock: Clock,
        times: LeaseTimes,
        on_history_lost: Callable[[], None] = lambda: None,
    ) -> None:
        """Take who is told when the Lease is older than what was written to it: a backup was restored."""
        self._client = client
        self._on_history_lost = on_history_lost
        self._lease = lease
        self._identity = identity
        self._clock = clock
        self._times = times
        self._record: LeaseRecord | None = None
        self._seen_at = 0.0
        self._judged_version: str | None = None
        self._highest_known = 0
        self._watch = LeaseWatch(
            client,
            lease,
            known_version=lambda: self._record.resource_version if self._record else "",
            on_change=self._hear,
            monotonic=clock.monotonic,
            times=times,
        )
        self.fence: Fence | None = None
        self.problem: str | None = None

    async def run(
        self, lead: Callable[[Fence], Awaitable[None]], *, stop: asyncio.Event, may_release: Callable[[], bool]
    ) -> None:
        """Lead whenever possible until `stop` is set; then let the leader finish, and release the Lease last.

        Args:
            lead: runs with a fence until cancelled, or until it has drained after `stop`.
            stop: no acquisition is begun after it is set.
            may_release: tells whether every write was answered or can't arrive any more (P15).
        """
        while not stop.is_set():
            fence = await self._acquire(stop)
            if fence is None:
                return
            self.fence = fence
            try:
                await self._keep(fence, lead)
            except LostLeaseError as error:
                log.warning("lost the Lease", extra={"error": _told(error)})
            finally:
                is_held = self._clock.monotonic() < fence.valid_until
                fence.revoke()
                self.fence = None
            if stop.is_set() and is_held and may_release():
                await self._release()

    def note_epoch(self, highest: int) -> None:
        """Learn the highest epoch that anybody else has stored anywhere.

        Raises:
            LostLeaseError: it is not below the one held: the Lease was made anew, and is acquired again above it.

        Source: contract R33, P16.
        """
        self._highest_known = max(self._highest_known, highest)
        if self.fence is not None and highest >= self.fence.writer.epoch:
            raise LostLeaseError(
                f"epoch {highest} is on record, not below {self.fence.writer.epoch}: the Lease was made anew"
            )

    def drop_history(self) -> None:
        """Stop leading at once, and take over anew where possible: what is known is of a history that is no more (P9)."""
        if self.fence is not None:
            self.fence.revoke()

    async def _acquire(self, stop: asyncio.Event) -> Fence | None:
        watching = asyncio.ensure_future(self._watch.run())
        try:
            while not stop.is_set():
                fence = await self._look_once()
                if fence is not None:
                    log.info("acquired the Lease", extra={"epoch": fence.writer.epoch, "identity": self._identity})
                    return fence
                await self._watch.rest(stop)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        return None

    async def _look_once(self) -> Fence | None:
        """Look at the Lease, and take it if that may be; note when to look again."""
        try:
            fence = await self._try_acquire()
            pause = self._look_again_seconds()
        except (ClusterError, TimeoutError) as error:
            self.problem = f"the Lease {self._lease} can't be read or written: {_told(error)}"
            log.warning("the Lease can't be read or written", extra={"lease": str(self._lease), "error": _told(error)})
            fence, pause = None, self._pause_seconds(error, at_most=self._times.duration_seconds)
        self._watch.look_at = self._clock.monotonic() + pause
        return fence

    def _hear(self, record: LeaseRecord) -> None:
        """Take in what a watch tells of another's Lease: that it was renewed, or may be free."""
        known = self._record
        is_news = known is None or is_older(known.resource_version, record.resource_version)
        if not is_news or self.problem is not None:  # what can't be read is read again in its time, whatever is heard
            return
        self._note_news(record, is_heard=True)
        self._watch.look_at = self._seen_at + self._look_again_seconds()

    def _note_news(self, record: LeaseRecord, *, is_heard: bool) -> None:
        """Remember a change, as of now: never earlier than it was made, so that nobody's Lease seems expired too early."""
        known = self._record
        is_renewal = (
            known is not None
            and is_older(known.resource_version, record.resource_version)  # not one from a backup
            and (known.holder, known.transitions) == (record.holder, record.transitions)
        )
        self._watch.note_news(is_heard=is_heard, is_renewal=is_renewal)
        self._record, self._seen_at = record, self._clock.monotonic()

    def _look_again_seconds(self) -> float:
        """Return how long to leave another's Lease alone: until it expires, but it may be released before that."""
        record = self._record
        if record is not None and not record.holder and record.resource_version != self._judged_version:
            return 0.0  # a release that was heard, maybe while a request was on its way; judged once, so nothing spins
        until_expired = self._seen_at + self._patience_seconds() - self._clock.monotonic()
        pause = max(self._watch.trusted_seconds(), self._times.look_seconds)
        return min(until_expired, pause) if until_expired > 0 else self._times.look_seconds

    def _patience_seconds(self) -> float:
        """Return how long the Lease lasts unchanged: what its holder says, where it says so."""
        return (self._record.duration_seconds if self._record else 0) or self._times.duration_seconds

    def _pause_seconds(self, error: Exception, *, at_most: float) -> float:
        """Return how long to wait after a failure: as long as the server asks, where that costs no leadership."""
        asked = error.retry_after_seconds if isinstance(error, ClusterError) else 0.0
        return max(self._times.retry_seconds, min(asked, at_most))

    async def _try_acquire(self) -> Fence | None:
        begun_at = self._clock.monotonic()
        record = await self._look()
        self._watch.note_read(begun_at)
        self.problem, self._judged_version = None, record.resource_version
        seen = SeenLease(
            holder=record.holder,
            duration_seconds=self._patience_seconds(),
            unchanged_seconds=self._clock.monotonic() - self._seen_at,
        )
        if not may_acquire(seen, identity=self._identity):
            return None
        epoch = next_epoch(lease_transitions=record.transitions, highest_known=self._highest_known)
        if epoch is None:
            self.problem = (
                f"leaseTransitions of the Lease {self._lease} is {record.transitions}, and there is no higher one: delete "
                "the Lease, it is made anew above every epoch on record"
            )
            log.error(self.problem)
            return None
        return await self._take(record, epoch)

    async def _take(self, record: LeaseRecord, epoch: int) -> Fence | None:
        begun_at, now = self._clock.monotonic(), self._clock.now()
        wanted = replace(
            record,
            holder=self._identity,
            transitions=epoch,
            duration_seconds=math.ceil(self._times.duration_seconds),  # never shorter than this process relies on
            acquire_time=now,
            renew_time=now,
        )
        namespace, name = self._lease.namespace, self._lease.name
        try:
            write = replace_lease if record.resource_version else create_lease
            async with asyncio.timeout(self._times.call_seconds):
                self._record = await write(self._client, namespace, name, wanted)
        except (ConflictError, AlreadyExistsError):
            return None
        self._highest_known = epoch
        writer = Writer(epoch=epoch, identity=self._identity, lease=str(self._lease))
        return Fence(
            writer=writer,
            monotonic=self._clock.monotonic,
            acquired_at=begun_at,
            valid_until=begun_at + self._times.renew_deadline_seconds,
        )

    async def _look(self) -> LeaseRecord:
        """Read the Lease, and note since when it has been as it is."""
        known = self._record
        try:
            async with asyncio.timeout(self._times.call_seconds):
                record = await read_lease(self._client, self._lease.namespace, self._lease.name)
        except NotFoundError:
            record = LeaseRecord(holder="", transitions=0, duration_seconds=0)
        if (
            known is not self._record
            and self._record is not None
            and is_older(record.resource_version, self._record.resource_version)
        ):
            return self._record  # a watch told of more while this was on its way: no backup was restored
        if self._record is None or record.resource_version != self._record.resource_version:
            self._went_back(record)
            self._note_news(record, is_heard=False)  # a watch ought to have told
        return record

    def _went_back(self, record: LeaseRecord) -> bool:
        """Tell whether the Lease is older than what is known of it, and tell whom it concerns: a backup was restored."""
        went_back = self._record is not None and is_older(record.resource_version, self._record.resource_version)
        if went_back:
            self._record, self._seen_at = record, self._clock.monotonic()
            self._on_history_lost()
        return went_back

    async def _keep(self, fence: Fence, lead: Callable[[Fence], Awaitable[None]]) -> None:
        """Renew while the leader works; end it and wait for its end when the Lease is lost, at its deadline at the latest."""
        leader = asyncio.ensure_future(lead(fence))
        try:
            pause = self._times.retry_seconds
            while not leader.done():
                await asyncio.wait({leader}, timeout=min(pause, self._seconds_left(fence) + TIMER_SECONDS))
                if not leader.done():
                    fence.check()
                    pause = await self._renew(fence)
        finally:
            if not leader.done():
                fence.revoke()
                leader.cancel()
            await asyncio.gather(leader, return_exceptions=True)
        if not leader.cancelled():
            leader.result()

    def _seconds_left(self, fence: Fence) -> float:
        return max(0.0, fence.valid_until - self._clock.monotonic())

    def _call_limit(self, fence: Fence) -> asyncio.Timeout:
        return asyncio.timeout(min(self._times.call_seconds, self._seconds_left(fence)))

    async def _renew(self, fence: Fence) -> float:
        """Renew once; return when to do so again."""
        record = self._record
        if record is None:
            raise LostLeaseError("the Lease was never read")
        begun_at = self._clock.monotonic()
        try:
            async with self._call_limit(fence):
                wanted = replace(record, renew_time=self._clock.now())
                self._record = await replace_lease(self._client, self._lease.namespace, self._lease.name, wanted)
        except (ConflictError, NotFoundError):
            await self._check_holder(fence)
            return self._times.look_seconds
        except (ClusterError, TimeoutError) as error:
            log.warning("the Lease was not renewed, it is tried again", extra={"error": _told(error)})
            return self._pause_seconds(error, at_most=self._seconds_left(fence) / 2)
        else:
            fence.extend(begun_at + self._times.renew_deadline_seconds)
        return self._times.retry_seconds

    async def _check_holder(self, fence: Fence) -> None:
        """Find out who wrote the Lease meanwhile: an unanswered renewal of ours, or somebody else."""
        try:
            async with self._call_limit(fence):
                record = await read_lease(self._client, self._lease.namespace, self._lease.name)
        except NotFoundError as error:
            raise LostLeaseError("the Lease was deleted") from error
        except (ClusterError, TimeoutError):
            return
        if self._went_back(record):
            raise LostLeaseError("it is older than what was written to it: a backup was restored")
        if record.holder != self._identity or record.transitions != fence.writer.epoch:
            raise LostLeaseError(f"held by {record.holder or 'nobody'}, epoch {record.transitions}")
        self._record = record

    async def _release(self) -> None:
        if self._record is None:
            return
        try:
            async with asyncio.timeout(self._times.call_seconds):
                wanted = replace(self._record, holder="", renew_time=self._clock.now())
                await replace_lease(self._client, self._lease.namespace, self._lease.name, wanted)
            log.info("released the Lease", extra={"lease": str(self._lease)})
        except (ClusterError, TimeoutError) as error:
            log.warning("the Lease was not released, it expires", extra={"error": _told(error)})


def _told(error: Exception) -> str:
    return str(error) or "no answer in time"
