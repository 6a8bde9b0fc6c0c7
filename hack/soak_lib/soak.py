"""The course of a soak: schedules made, faults, people and Jobs for so long, then calm, then the verdict."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from controlplane_lib.operator_process import OperatorProcess
from faults_lib.proxy import FaultProxy
from soak_lib import population, report
from soak_lib.admin import Admin
from soak_lib.faults import Faults
from soak_lib.finisher import Finisher
from soak_lib.observer import Observer
from soak_lib.people import People
from soak_lib.report import Verdict
from soak_lib.vitals import Vitals
from workflow_schedules.cluster.connection import from_environment
from workflow_schedules.cluster.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controlplane_lib.api import ControlPlane

Json = dict[str, Any]

AUDIT_POLICY = Path(__file__).with_name("audit-policy.yaml")
_CREATORS = 6
_CREATE_ATTEMPTS = 20
_LOOKS, _BETWEEN_LOOKS_SECONDS = 5, 45.0  # a leader with a backlog writes statuses, and so candidates, only behind it
_HERD_IS_OVER, _HERD_IS_NEAR = 25, 50  # seconds of a minute: at its beginning most schedules are due


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked for.

    Attributes:
        minutes: of faults and people; what comes before and after is not counted.
        faults_every_seconds: on average, from the end of one to the next.
        calm_seconds: at the end, without faults and people, before everything due must be decided.
        lease_seconds: how long the Lease lasts, as the environment of the operators says.
        script: names of faults to inflict in turn instead of drawing them, as methods of Faults are called.
    """

    seed: int
    minutes: float
    schedules: int
    operators: int = 3
    faults_every_seconds: float = 30.0
    people_every_seconds: float = 1.0
    calm_seconds: float = 100.0
    sample_seconds: float = 5.0
    lease_seconds: float = 15.0
    environment: Mapping[str, str] = field(default_factory=dict)
    script: tuple[str, ...] = ()


async def soak(plane: ControlPlane, folder: Path, plan: Plan, *, say: Callable[[str], None]) -> Verdict:
    """Run one on a control plane that is up and has everything installed; SIGINT and SIGTERM end it early.

    Args:
        plane: one that may be broken.
        folder: where logs of the operators go.
        plan: what is asked for.
        say: what is told meanwhile, and the tables of the end.
    """
    with FaultProxy(plane.kubeconfig) as proxy:
        made = _Soak(plane, folder, proxy, plan, say=say)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, made.interrupt)
        return await made.run()


class _Soak:
    """The parts of one soak, and its course."""

    def __init__(
        self, plane: ControlPlane, folder: Path, proxy: FaultProxy, plan: Plan, *, say: Callable[[str], None]
    ) -> None:
        self._plane = plane
        self._proxy = proxy
        self._plan = plan
        self._say = say
        self._stop = asyncio.Event()
        self._vitals = Vitals()
        names = [f"op-{letter}" for letter in "abcdefgh"[: plan.operators]]
        self._operators = {
            name: OperatorProcess(
                plane,
                folder,
                name=name,
                environment={**plan.environment, "POD_UID": name, "POD_NAME": name},
                server=proxy.url if name == names[-1] else None,
            )
            for name in names
        }
        random = Random(plan.seed)
        self._admin = Admin(from_environment({"KUBECONFIG": str(plane.kubeconfig)}))
        self._finisher = Finisher(self._admin, plan.seed)
        self._observer = Observer(
            self._admin.transport, plane.audit_log, on_job=lambda job, is_gone: self._finisher.see(job, is_gone=is_gone)
        )
        self._definitions = population.definitions(random)
        self._schedules = population.schedules(random, plan.schedules, now=datetime.now(UTC), minutes=plan.minutes)
        self._people = People(self._admin, Random(f"people {plan.seed}"), self._schedules, self._observer.order)
        self._faults = Faults(
            plane, self._operators, proxy, self._admin, Random(f"faults {plan.seed}"), lease_seconds=plan.lease_seconds
        )

    def interrupt(self) -> None:
        """End it now; what was seen is still judged."""
        self._stop.set()

    async def run(self) -> Verdict:
        """Run it whole and print the tables."""
        try:
            return await self._run()
        finally:
            for process in self._operators.values():
                process.kill()
            await self._finisher.close()
            await self._admin.close()
            await asyncio.sleep(0.25)  # connections that were closed end in the next rounds of the loop

    async def _run(self) -> Verdict:
        self._observer.start()
        for process in self._operators.values():
            process.start()
        for process in self._operators.values():
            await asyncio.to_thread(process.wait_ready, seconds=60)
        helpers = [asyncio.create_task(self._tell())]
        try:
            await self._make_all()
            helpers += [asyncio.create_task(self._sample())]
            await self._disturb()
            await self._faults.heal()
            is_settled = await self._calm()
            return await self._judge(is_settled=is_settled)
        finally:
            await _end(helpers)

    async def _make_all(self) -> None:
        began = time.monotonic()
        for namespace in population.namespaces():
            await self._admin.make_namespace(namespace)
        for body in self._definitions:
            await self._admin.create("workflowdefinitions", body["metadata"]["namespace"], body)
        waiting = list(reversed(self._schedules))
        await asyncio.gather(*(self._make(waiting) for _ in range(_CREATORS)))
        self._say(f"{len(self._schedules)} schedules made in {time.monotonic() - began:.0f} s")

    async def _make(self, waiting: list[Json]) -> None:
        while waiting and not self._stop.is_set():
            body = waiting.pop()
            for _ in range(_CREATE_ATTEMPTS):
                code = await self._admin.create("workflowschedules", body["metadata"]["namespace"], body)
                if code in {201, 409}:
                    break
                assert code == 0 or code >= 429, f"a schedule is refused with {code}: {body}"
                await asyncio.sleep(0.5)

    async def _disturb(self) -> None:
        tasks = [
            asyncio.create_task(self._faults_of_the_plan()),
            asyncio.create_task(self._people.act(every_seconds=self._plan.people_every_seconds)),
        ]
        try:
            await self._wait(self._plan.minutes * 60)
            if self._plan.script and not self._stop.is_set():
                await tasks[0]
        finally:
            await _end(tasks)

    async def _faults_of_the_plan(self) -> None:
        for name in self._plan.script:
            await asyncio.sleep(self._plan.faults_every_seconds)
            await self._faults.inflict(getattr(self._faults, name))
        if not self._plan.script:
            await self._faults.run(every_seconds=self._plan.faults_every_seconds)

    async def _calm(self) -> bool:
        """Wait until everything due is decided; False when there was no time for that."""
        if self._stop.is_set():
            return False
        self._say(f"the faults are over; {self._plan.calm_seconds:.0f} s of calm")
        await self._people.calm()
        end = datetime.now(UTC) + timedelta(seconds=self._plan.calm_seconds)
        if not _HERD_IS_OVER <= end.second <= _HERD_IS_NEAR:
            end += timedelta(seconds=(_HERD_IS_OVER - end.second) % 60)
        await self._wait((end - datetime.now(UTC)).total_seconds())
        return not self._stop.is_set()

    async def _judge(self, *, is_settled: bool) -> Verdict:
        failures = [
            f"{name} ended by itself:\n{process.last_words()}"
            for name, process in self._operators.items()
            if process.has_ended
        ]
        if is_settled and (unjudged := self._vitals.why_unjudged(minutes=self._plan.minutes)):
            failures.append(unjudged)
        try:
            problems = await self._problems(is_settled=is_settled)
        except ClusterError as error:
            problems = self._observer.auditor.violations
            failures.append(f"the API server can't be read at the end: {error}")
        auditor = self._observer.auditor
        verdict = Verdict(problems=problems, growths=self._vitals.growths(), failures=failures)
        deeds, faults = self._people.done, self._faults.done
        told = self._observer.told
        for line in report.tables(auditor, verdict, told=told, deeds=deeds, faults=faults, vitals=self._vitals):
            self._say(line)
        if not is_settled:
            self._say("interrupted: what was due at the end was not waited for")
        return verdict

    async def _problems(self, *, is_settled: bool) -> list[str]:
        """Judge everything; what only time can mend must be there in each of several looks."""
        auditor = self._observer.auditor
        now = await self._observer.look()
        left = auditor.unsettled(now) if is_settled else []
        for _ in range(_LOOKS):
            if not left or self._stop.is_set():
                break
            self._say(f"{len(left)} things are not settled yet, such as: {left[0]}")
            await self._wait(_BETWEEN_LOOKS_SECONDS)
            now = await self._observer.look()
            found = set(auditor.unsettled(now))
            left = [each for each in left if each in found]
        await self._observer.stop()
        return auditor.problems(now, is_settled=False) + left

    async def _wait(self, seconds: float) -> None:
        """Wait, but not once it is to end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()

    async def _tell(self) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(15)
            self._proxy.forget()
            leader = await self._faults.leader()
            line = report.progress(
                self._observer.auditor, self._vitals, latest_fault=self._faults.latest, leader=leader
            )
            seconds = int(time.monotonic() - began)
            self._say(f"{seconds // 60:3}:{seconds % 60:02} {line}")

    async def _sample(self) -> None:
        while True:
            await asyncio.to_thread(self._vitals.sample, list(self._operators.items()))
            await asyncio.sleep(self._plan.sample_seconds)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for their ends; raise what one of them died of."""
    for task in tasks:
        task.cancel()
    for found in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(found, BaseException) and not isinstance(found, asyncio.CancelledError):
            raise found
