"""What goes wrong, drawn from a seed: operators killed, stalled and stopped, the Lease lost, the control plane restarted,
requests and watches disturbed on their way."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane_lib.console import RemedyError
from controlplane_lib.install import OPERATOR_NAMESPACE
from faults_lib import faults as requests
from faults_lib import streams
from faults_lib.seen import on

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from random import Random

    from controlplane_lib.api import ControlPlane
    from controlplane_lib.operator_process import OperatorProcess
    from faults_lib.proxy import FaultProxy
    from faults_lib.seen import Seen
    from soak_lib.admin import Admin

LEASE = "workflow-schedules"
_API = "kube-apiserver"
# A create that waits on its way is later than its decision, which no deadline can forbid: those wait for less than is
# forgiven, everything else longer.
_BRIEFLY_SECONDS = 1.5

BAD_REQUESTS: dict[str, requests.Action] = {
    "requests lost": requests.lose_request(),
    "answers lost": requests.lose_answer(),
    "500": requests.refuse(500),
    "429": requests.refuse(429, retry_after_seconds=2),
    "504 after the commit": requests.fail_after_commit(504),
    "pages of a load balancer": requests.html(),
    "answers cut": requests.cut_body(),
    "answers late": requests.delay(14.0, is_committed=True),
    "requests late": requests.delay(_BRIEFLY_SECONDS),
}
BAD_WATCHES: dict[str, streams.StreamAction] = {
    "watches silent": streams.stall(),
    "watches late": streams.lag(2.0),
    "watches broken": streams.break_off(),
    "watches that tell twice": streams.twice(),
    "watches expired": streams.expire(),
    "lines cut": streams.cut_line(),
}


class Faults:
    """One fault after the other, each whole: what was stopped is started again before the next.

    Args:
        operators: by name; the first is never killed, so that there is one whose memory can be followed.
        proxy: in front of the last of them.
        lease_seconds: how long the Lease lasts; a stall may be longer.
    """

    def __init__(
        self,
        plane: ControlPlane,
        operators: Mapping[str, OperatorProcess],
        proxy: FaultProxy,
        admin: Admin,
        random: Random,
        *,
        lease_seconds: float,
    ) -> None:
        self._plane = plane
        self._operators = operators
        self._proxy = proxy
        self._admin = admin
        self._random = random
        self._lease_seconds = lease_seconds
        self.done: Counter[str] = Counter()
        self.latest = "none yet"
        self.kinds: list[tuple[int, Callable[[], Awaitable[str]]]] = [
            (5, self.kill_leader),
            (3, self.stop_leader),
            (5, self.stall_leader),
            (2, self.delete_lease),
            (2, self.steal_lease),
            (2, self.restart_api_server),
            (2, self.restart_etcd),
            (2, self.freeze_api_server),
            (1, self.freeze_etcd),
            (4, self.disturb_requests),
            (3, self.disturb_watches),
        ]

    async def run(self, *, every_seconds: float) -> None:
        """Go on until cancelled; so long between two, on average."""
        weights = [weight for weight, _ in self.kinds]
        while True:
            await asyncio.sleep(self._random.uniform(0.5, 1.5) * every_seconds)
            _, fault = self._random.choices(self.kinds, weights)[0]
            await self.inflict(fault)

    async def inflict(self, fault: Callable[[], Awaitable[str]]) -> None:
        """Let one happen, and see to its end even if this is cancelled."""
        task = asyncio.ensure_future(fault())
        try:
            said = await asyncio.shield(task)
        except asyncio.CancelledError:
            await task
            raise
        self.latest = said
        self.done[said.split(",")[0]] += 1

    async def heal(self) -> None:
        """Let everything run that should."""
        self._proxy.clear()
        for component in ("etcd", _API):
            self._plane.resume(component)
            await asyncio.to_thread(self._plane.start, component)
        for process in self._operators.values():
            process.signal(signal.SIGCONT)
            if process.has_ended:
                process.start()

    async def leader(self) -> str | None:
        """The name of the operator that holds the Lease."""
        lease = await self._admin.get("leases", OPERATOR_NAMESPACE, LEASE)
        holder = ((lease or {}).get("spec") or {}).get("holderIdentity") or ""
        name = holder.partition("_")[0]
        return name if name in self._operators else None

    async def _victim(self, *, is_spared: bool) -> str | None:
        """The leader, if it may be hit."""
        leader = await self.leader()
        return None if leader is None or (is_spared and leader == next(iter(self._operators))) else leader

    async def kill_leader(self) -> str:
        victim = await self._victim(is_spared=True)
        if victim is None:
            return await self.stall_leader()
        self._operators[victim].kill()
        await self._later(victim)
        return f"leader killed, {victim}"

    async def stop_leader(self) -> str:
        victim = await self._victim(is_spared=True)
        if victim is None:
            return await self.stall_leader()
        await asyncio.to_thread(self._operators[victim].stop)
        await self._later(victim)
        return f"leader stopped in order, {victim}"

    async def _later(self, victim: str) -> None:
        await asyncio.sleep(self._random.uniform(0, self._lease_seconds))
        self._operators[victim].start()

    async def stall_leader(self) -> str:
        victim = await self._victim(is_spared=False)
        if victim is None:
            return "no leader to hit"
        seconds = self._random.uniform(0.3, 3.0) * self._lease_seconds
        self._operators[victim].signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self._operators[victim].signal(signal.SIGCONT)
        return f"leader stalled, {victim} for {seconds:.0f} s"

    async def delete_lease(self) -> str:
        await self._admin.delete("leases", OPERATOR_NAMESPACE, LEASE)
        return "Lease deleted"

    async def steal_lease(self) -> str:
        """Take the Lease as another process would, and never renew it."""
        lease = await self._admin.get("leases", OPERATOR_NAMESPACE, LEASE)
        if lease is None:
            return "no Lease to steal"
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        spec = {
            "holderIdentity": "thief",
            "leaseTransitions": lease["spec"].get("leaseTransitions", 0) + 1,
            "acquireTime": now,
            "renewTime": now,
        }
        await self._admin.patch("leases", OPERATOR_NAMESPACE, LEASE, {"spec": spec})
        return "Lease stolen"

    async def restart_api_server(self) -> str:
        return await self._restart(_API)

    async def restart_etcd(self) -> str:
        return await self._restart("etcd")

    async def _restart(self, component: str) -> str:
        await asyncio.to_thread(self._plane.stop, component)
        seconds = self._random.uniform(0, 6)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self._plane.start, component)
        if component == "etcd":
            with suppress(RemedyError):
                await asyncio.to_thread(self._plane.wait_ready)
        return f"{component} killed and started, after {seconds:.0f} s"

    async def freeze_api_server(self) -> str:
        return await self._freeze(_API)

    async def freeze_etcd(self) -> str:
        return await self._freeze("etcd")

    async def _freeze(self, component: str) -> str:
        seconds = self._random.uniform(2, 12)
        self._plane.pause(component)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._plane.resume(component)
        return f"{component} frozen, for {seconds:.0f} s"

    async def disturb_requests(self) -> str:
        name = self._random.choice(list(BAD_REQUESTS))
        share, seconds = self._random.uniform(0.05, 0.6), self._random.uniform(3, 25)

        def is_hit(seen: Seen) -> bool:
            return seen.verb != "watch" and self._random.random() < share

        self._proxy.add(requests.Fault(name, on(where=is_hit, is_dry_run=None), BAD_REQUESTS[name], times=0))
        await asyncio.sleep(seconds)
        self._proxy.clear()
        return f"{name}, {share:.0%} for {seconds:.0f} s"

    async def disturb_watches(self) -> str:
        name = self._random.choice(list(BAD_WATCHES))
        share, seconds = self._random.uniform(0.02, 0.5), self._random.uniform(3, 25)
        self._proxy.add_stream(
            streams.StreamFault(
                name, on("watch"), BAD_WATCHES[name], chooses=lambda _event: self._random.random() < share
            )
        )
        await asyncio.sleep(seconds)
        self._proxy.clear()
        return f"{name}, {share:.0%} for {seconds:.0f} s"
