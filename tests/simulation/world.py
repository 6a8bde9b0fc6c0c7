"""A world with several operators that faults are done to, and that heals at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any, cast

from simulation.plan import Plan
from simulation.tampering import Tampering
from support.api_hooks import JOB_CONTROLLER
from support.api_kinds import Json, RefusedError
from support.api_requests import USER, ApiRequest
from support.api_server import Snapshot
from support.api_transport import Fault
from support.auditor import FINAL
from support.edit_auditor import EditAuditor
from support.harness import LATENCY_SECONDS, NAMESPACE, SETTINGS, Process, World
from support.job_runner import Course
from support.story import LEASE_TIMES
from support.virtual_loop import FreezingLoop, VirtualClock, outside

LONGEST_LIFE = timedelta(seconds=30)  # R of the design: what was sent in time may arrive so much later
_WRITES = {"POST", "PATCH", "PUT", "DELETE"}
MATCHES: dict[str, Callable[[ApiRequest], bool]] = {
    "any": lambda r: "/leases" not in r.path and r.method != "WATCH",
    "call": lambda r: r.method != "WATCH",
    "write": lambda r: r.method in _WRITES and "/leases" not in r.path and not r.query.get("dryRun"),
    "read": lambda r: r.method == "GET" and "/leases" not in r.path,
    "watch": lambda r: r.method == "WATCH",
    "lease": lambda r: "/leases" in r.path,
    "renewal": lambda r: "/leases" in r.path and r.method == "PUT",
    "record": lambda r: r.method == "POST" and r.path.endswith("/scheduleoccurrences") and not r.query.get("dryRun"),
    "job": lambda r: r.method == "POST" and r.path.endswith("/jobs") and not r.query.get("dryRun"),
    "outcome": lambda r: r.method == "PATCH" and "/scheduleoccurrences/" in r.path,
    "status": lambda r: r.method == "PATCH" and "/workflowschedules/" in r.path,
    "delete": lambda r: r.method == "DELETE",
}


class SimulatedWorld(World):
    """A world whose operators have slots: in each one process comes after the other.

    Attributes:
        excused: names of runs that the invariants leave out: somebody deleted their Jobs by hand (I1).
        tampering: with records, which is left out, too, and judged by itself.
        faults_of_ours: what operators logged with a traceback.
    """

    def __init__(self, clock: VirtualClock, plan: Plan) -> None:
        behind = -min(0.0, *plan.operators)  # who is late by its own clock is late (docs/guarantees.md)
        super().__init__(
            clock, seed=plan.seed, lease_times=LEASE_TIMES, on_its_way=LONGEST_LIFE + timedelta(seconds=behind)
        )
        self.plan = plan
        self.edits = EditAuditor(
            self.server, clock, self.auditor.violations, renew_seconds=LEASE_TIMES.renew_deadline_seconds
        )
        self.edits.is_clock_trusted = not any(plan.operators)
        if (kept := plan.settings.get("name_kept_seconds")) is not None:
            self.retention.kept = timedelta(seconds=kept - 3)
        self.excused: set[str] = set()
        self.tampering = Tampering(self)
        self.backup: Snapshot | None = None
        self.slots: list[Process | None] = [None] * len(plan.operators)
        self._tasks: list[asyncio.Task[Any]] = []
        self._latency = LATENCY_SECONDS
        self._started = 0
        self.set_courses(run=[2.0], failed=0.0)

    # processes

    def fill(self, slot: int) -> None:
        """Start a process in a slot, unless one is there."""
        if self.slots[slot] is None:
            self._started += 1
            name = f"{'abcdef'[slot]}{self._started}"
            self.slots[slot] = self.start(
                name,
                ahead_seconds=self.plan.operators[slot],
                latency_seconds=self._latency,
                **self.plan.settings,
            )

    def process(self, slot: int) -> Process | None:
        return self.slots[slot % len(self.slots)]

    async def kill_slot(self, slot: int, down_seconds: float) -> None:
        """Kill the process of a slot, and start another one later."""
        process, self.slots[slot] = self.slots[slot], None
        if process is not None:
            self.processes.pop(process.name, None)
            await self._end(process.name, process.kill())
            await asyncio.sleep(down_seconds)
            self.fill(slot)

    async def stop_slot(self, slot: int, down_seconds: float) -> None:
        """Stop the process of a slot in order, and start another one later."""
        process, self.slots[slot] = self.slots[slot], None
        if process is not None:
            self.processes.pop(process.name, None)
            await process.stop()
            await asyncio.sleep(down_seconds)
            self.fill(slot)

    async def _end(self, name: str, killing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(killing, context=outside())
        await asyncio.sleep(0)  # nothing more is sent from here on
        self._loop.thaw(name)
        await task

    async def freeze(self, slot: int, seconds: float) -> None:
        """Let the process of a slot stand still, as SIGSTOP does."""
        process = self.process(slot)
        if process is not None:
            self.stop_clock(process.name)
            await asyncio.sleep(seconds)
            self._loop.thaw(process.name)

    def stop_clock(self, process: str) -> None:
        self._loop.freeze(process)

    @property
    def _loop(self) -> FreezingLoop:
        return cast("FreezingLoop", asyncio.get_running_loop())

    def slot_of(self, client: str) -> int | None:
        """Return the slot of the living process that a request came from."""
        return next((i for i, each in enumerate(self.slots) if each is not None and each.name == client), None)

    def spawn(self, doing: Coroutine[Any, Any, object]) -> None:
        """Let something go on beside everything else."""
        self._tasks.append(asyncio.create_task(doing, context=outside()))

    # faults

    def trap(
        self,
        act: Callable[[ApiRequest], Fault | None],
        *,
        on: str,
        skip: int = 0,
        times: int = 1,
        of: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """Do something to the requests of operators that match: after `skip` of them, to so many."""
        left = [skip, times]

        def hook(request: ApiRequest) -> Fault | None:
            if request.client in {USER, JOB_CONTROLLER} or not MATCHES[on](request):
                return None
            if of is not None and self.slot_of(request.client) != of % len(self.slots):
                return None
            if left[0] > 0:
                left[0] -= 1
                return None
            if left[1] <= 0:
                return None
            left[1] -= 1
            return act(request)

        self.server.faults.append(hook)
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, lambda: self._drop(hook), context=outside())

    def _drop(self, hook: Callable[[ApiRequest], Fault | None]) -> None:
        if hook in self.server.faults:
            self.server.faults.remove(hook)

    def set_latency(self, seconds: float) -> None:
        self._latency = seconds
        for process in filter(None, self.slots):
            process.transport.latency_seconds = process.watching.latency_seconds = seconds

    def set_courses(self, *, run: list[float | None], failed: float, unready: float = 0.0) -> None:
        """Let each Job from now on run for one of these times; which one, and whether it fails, its name tells."""

        def course(job: Json) -> Course:
            random = Random(f"{self.plan.seed} {job['metadata']['name']}")
            return Course(
                run_seconds=random.choice(run),
                is_failed=random.random() < failed,
                is_ready=random.random() >= unready,
            )

        self.jobs.course = course

    def restore(self) -> None:
        """Take etcd back to the backup; what was decided since then is out of the invariants, and runs again may be (I1)."""
        if self.backup is None:
            return
        self.server.restore(self.backup)
        records, schedules = self.server.objects("scheduleoccurrences"), self.server.objects("workflowschedules")
        jobs = self.server.objects("jobs")
        self.auditor.go_back([each for each in records if each["spec"].get("cause") == "Scheduled"], schedules)
        self.edits.go_back(records, schedules)
        self.jobs.take_up(jobs)

    # the end

    async def recover(self) -> None:
        """End all faults, and give every slot a process."""
        del self.server.faults[1:]  # the first one is the auditor's
        for task in self._tasks:
            task.cancel()
        self._loop.thaw_all()  # a process that is to stop can't while it is frozen
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self.server.come_up()
        if self.server.requests.terminating:
            self.purge_namespace()
        self.fence.lag_seconds = 0.0
        self.set_latency(LATENCY_SECONDS)
        for slot, process in enumerate(self.slots):
            if process is None:
                self.fill(slot)
        for process in filter(None, self.slots):
            process.clock.ahead = timedelta()
            process.watching.watch_lag_seconds = process.transport.watch_lag_seconds = 0.0

    def purge_namespace(self) -> None:
        """Do what the namespace controller does."""
        for plural in ("workflowschedules", "workflowdefinitions", "scheduleoccurrences", "jobs"):
            for each in self.server.objects(plural, NAMESPACE):
                self.delete(each["metadata"]["name"], plural=plural)

    def end_jobs(self) -> None:
        """Let every Job end soon, and every one that is there now end at once."""
        self.set_courses(run=[2.0], failed=0.0)
        for pod in self.server.objects("pods"):
            self.server.patch(
                "pods", pod["metadata"]["namespace"], pod["metadata"]["name"], {"metadata": {"finalizers": None}}
            )
        for job in self.server.objects("jobs"):
            metadata, status = job["metadata"], job.get("status") or {}
            is_finished = any(each["type"] in {"Complete", "Failed"} for each in status.get("conditions", ()))
            if is_finished or "deletionTimestamp" in metadata:
                continue
            if job["spec"].get("suspend"):
                self.jobs.controller.resume_job(metadata["namespace"], metadata["name"])
            self.jobs.finish(metadata["namespace"], metadata["name"])

    def unfinished(self) -> list[str]:
        """Return the runs that have no final outcome."""
        return [
            each["metadata"]["name"]
            for each in self.server.objects("scheduleoccurrences")
            if each["spec"].get("decision", "Admitted") == "Admitted"
            and (each.get("status") or {}).get("outcome") not in FINAL
            and not self.tampering.leaves_out(each["metadata"]["name"])
        ]

    def unacknowledged(self) -> list[str]:
        """Return the schedules whose status is not of their generation."""
        return [
            each["metadata"]["name"]
            for each in self.server.objects("workflowschedules")
            if (each.get("status") or {}).get("observedGeneration") != each["metadata"]["generation"]
            and not self.tampering.leaves_out(each["metadata"]["name"])
        ]

    def lease_body(self) -> Json | None:
        return self.server.find("leases", SETTINGS.lease.namespace, SETTINGS.lease.name)

    def quietly(self, act: Callable[[], object]) -> None:
        """Do what a person does; what can't be done is not done."""
        with suppress(RefusedError):
            act()
