"""Real operators on a fake API server and virtual time.

An operator here is what production runs (`app.composition.Operator`); only kopf is replaced, by our own watch that passes
on what kopf would: every listed object with the type None, and no word about what vanished while nobody watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from support.api_hooks import LeaseFence, lease_fence, record_rules
from support.api_kinds import Json, RefusedError
from support.api_requests import Admission, ApiRequest
from support.api_server import FakeApiServer
from support.api_transport import FakeTransport, Fault, FaultHook, LogEntry
from support.auditor import Auditor
from support.job_runner import JobRunner
from support.retention_auditor import RetentionAuditor, identity_of
from support.virtual_loop import VirtualClock, context_of
from workflow_schedules.api.names import record_name
from workflow_schedules.app.composition import Operator
from workflow_schedules.app.settings import Settings, read_settings
from workflow_schedules.cluster.client import Client
from workflow_schedules.cluster.methods import DEFINITIONS, SCHEDULES, Resource
from workflow_schedules.cluster.transport import Answer
from workflow_schedules.cluster.watch import watch
from workflow_schedules.scheduler.lease_times import LeaseTimes

NAMESPACE = "ns"
LATENCY_SECONDS = 0.004
SETTINGS = read_settings({})


@dataclass(slots=True)
class SkewedClock:
    """The clock of one machine: the world's, and how far it is ahead."""

    world: VirtualClock
    ahead: timedelta = timedelta()

    def now(self) -> datetime:
        return self.world.now() + self.ahead

    def monotonic(self) -> float:
        return self.world.monotonic()


class LateTransport:
    """A way to the server on which answers that the test chooses take longer; what they say is not newer for that."""

    def __init__(self, world: World, transport: FakeTransport) -> None:
        self._world = world
        self.connection = transport
        self.close = transport.close
        self.stream = transport.stream

    async def request(self, method: str, path: str, **options: Any) -> Answer:  # noqa: ANN401
        answer = await self.connection.request(method, path, **options)
        if self._world.late:
            await asyncio.sleep(max(late(method, path) for late in self._world.late))
        return answer


class Process:
    """One process of the operator."""

    def __init__(
        self, world: World, name: str, settings: Settings, *, ahead: timedelta, latency_seconds: float
    ) -> None:
        self.name = name
        self.clock = SkewedClock(world.clock, ahead)
        self.transport = LateTransport(world, world.server.transport(name, latency_seconds))
        self.operator = Operator(settings, Client(self.transport), clock=self.clock, identity=identity_of(name))
        self.watching = world.server.transport(name, latency_seconds)
        self._client = Client(self.watching)
        self._stop = asyncio.Event()
        feed = self.operator.feed
        start = partial(asyncio.create_task, context=context_of(name))
        self.run = start(self.operator.run(self._stop), name=f"operator {name}")
        self._watches = [
            start(self._watch(SCHEDULES, feed.schedule), name=f"schedules of {name}"),
            start(self._watch(DEFINITIONS, feed.definition), name=f"definitions of {name}"),
        ]

    async def _watch(self, resource: Resource, take: Callable[[str | None, Json], None]) -> None:
        def listed(items: list[Json], _version: str) -> None:
            for body in items:
                take(None, body)

        await watch(self._client, resource, on_list=listed, on_event=take)

    async def kill(self) -> None:
        """End it like kill -9: nothing more is sent, what is on its way arrives."""
        await self.transport.close()
        await self.watching.close()
        await self._cancel(self.run, *self._watches)

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        self._stop.set()

    async def stop(self) -> None:
        """Send SIGTERM and wait for the end."""
        self.ask_to_stop()
        await self.run
        await self._cancel(*self._watches)

    async def _cancel(self, *tasks: asyncio.Task[Any]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class World:
    """A cluster with people, Jobs and operators in it."""

    def __init__(
        self,
        clock: VirtualClock,
        *,
        seed: int = 0,
        lease_times: LeaseTimes = SETTINGS.lease_times,
        on_its_way: timedelta = timedelta(),
    ) -> None:
        """Take how long a request may be on its way before the auditor calls what it starts late."""
        self.clock = clock
        self._settings = replace(SETTINGS, lease_times=lease_times)
        self.server = FakeApiServer(clock, seed=seed)
        self.server.admission.append(record_rules)
        lease = SETTINGS.lease
        self.fence: LeaseFence = lease_fence(self.server, lease.namespace, lease.name)
        self.jobs = JobRunner(self.server, clock)
        self.auditor = Auditor(self.server, clock, on_its_way=on_its_way)
        self.retention = RetentionAuditor(self.server, clock, self.auditor.violations)
        self.processes: dict[str, Process] = {}
        self.late: list[Callable[[str, str], float]] = []
        self._named = 0

    # operators

    def start(
        self,
        name: str = "",
        *,
        ahead_seconds: float = 0.0,
        latency_seconds: float = LATENCY_SECONDS,
        **settings: Any,  # noqa: ANN401
    ) -> Process:
        """Start a process; settings by name replace the defaults."""
        self._named += 1
        name = name or f"op{self._named}"
        process = Process(
            self,
            name,
            replace(self._settings, **settings),
            ahead=timedelta(seconds=ahead_seconds),
            latency_seconds=latency_seconds,
        )
        self.processes[name] = process
        return process

    async def kill(self, name: str = "") -> None:
        """Kill the named process, or the only one."""
        await self._pop(name).kill()

    async def stop(self, name: str = "") -> None:
        """Stop the named process in order, or the only one."""
        await self._pop(name).stop()

    async def restart(self) -> Process:
        """Kill the only process and start another one."""
        await self.kill()
        return self.start()

    async def until_leading(self, process: Process, *, seconds: float = 60.0) -> None:
        """Wait until it leads."""
        async with asyncio.timeout(seconds):
            while not process.operator.is_leading:  # noqa: ASYNC110 - what it does is watched from outside
                await asyncio.sleep(0.05)

    def _pop(self, name: str) -> Process:
        return self.processes.pop(name or next(iter(self.processes)))

    # people

    def apply(self, body: Json) -> Json:
        """Create an object, or replace the spec of the one of that name, as `kubectl apply` does."""
        plural, metadata = f"{body['kind'].lower()}s", body["metadata"]
        known = self.server.find(plural, metadata["namespace"], metadata["name"])
        if known is None:
            return self.server.create(body)
        return self.server.replace({**known, "spec": body["spec"]})

    def edit(self, name: str, namespace: str = NAMESPACE, **spec: object) -> Json:
        """Merge fields into the spec of a schedule; None removes a field."""
        return self.server.patch("workflowschedules", namespace, name, {"spec": spec})

    def edit_definition(self, name: str = "w", namespace: str = NAMESPACE, **spec: object) -> Json:
        """Merge fields into the spec of a definition."""
        return self.server.patch("workflowdefinitions", namespace, name, {"spec": spec})

    def delete(self, name: str, namespace: str = NAMESPACE, *, plural: str = "workflowschedules") -> None:
        """Delete an object by hand."""
        self.server.delete(plural, namespace, name)

    # what can be seen

    def schedule(self, name: str = "s", namespace: str = NAMESPACE) -> Json:
        """A schedule as it is."""
        return self.server.get("workflowschedules", namespace, name)

    def status(self, name: str = "s", namespace: str = NAMESPACE) -> Json:
        """Its status; empty before the first one."""
        return dict(self.schedule(name, namespace).get("status") or {})

    def condition(self, kind: str, name: str = "s", namespace: str = NAMESPACE) -> Json:
        """One of its conditions."""
        return next(dict(each) for each in self.status(name, namespace)["conditions"] if each["type"] == kind)

    def records(self, name: str = "s", namespace: str = NAMESPACE) -> list[Json]:
        """All records that name this schedule, oldest first, also those of earlier ones of its name."""
        found = self.server.objects("scheduleoccurrences", namespace)
        return [each for each in found if each["spec"]["scheduleRef"]["name"] == name]

    def record(self, number: int, name: str = "s", namespace: str = NAMESPACE) -> Json:
        """One record of the log of the schedule that has this name now."""
        uid = self.schedule(name, namespace)["metadata"]["uid"]
        return self.server.get("scheduleoccurrences", namespace, record_name(name, uid, number))

    def job_names(self, namespace: str = NAMESPACE) -> list[str]:
        """The names of all Jobs."""
        return [each["metadata"]["name"] for each in self.server.objects("jobs", namespace)]

    def job_of(self, record: Json) -> Json | None:
        """The Job of a record, if it exists."""
        return self.server.find("jobs", record["metadata"]["namespace"], record["metadata"]["name"])

    # what goes wrong

    def fault(self, fault: Fault, *, matches: Callable[[ApiRequest], bool], times: int | None = None) -> FaultHook:
        """Disturb the requests that match, so many times or for ever; remove the hook to end it."""
        left = [times]

        def hook(request: ApiRequest) -> Fault | None:
            if left[0] == 0 or not matches(request):
                return None
            if left[0] is not None:
                left[0] -= 1
            return fault

        self.server.faults.append(hook)
        return hook

    def heal(self) -> None:
        """End all faults."""
        self.server.faults.clear()

    def refuse(
        self, code: int, reason: str, message: str, *, plural: str, operation: str = "CREATE"
    ) -> Callable[[], None]:
        """Refuse writes of a kind by admission until the function that is returned is called."""

        def hook(admission: Admission) -> RefusedError | None:
            if (admission.kind.plural, admission.operation) != (plural, operation):
                return None
            return RefusedError(code, reason, message)

        self.server.admission.append(hook)

        def lift() -> None:
            with suppress(ValueError):
                self.server.admission.remove(hook)

        return lift

    def suspend_rules(self) -> Callable[[], None]:
        """Let anything be written, by anyone, until the function that is returned is called."""
        rules = list(self.server.admission)
        self.server.admission.clear()
        return lambda: self.server.admission.extend(rules)

    # time

    async def sleep_until(self, at: datetime) -> None:
        """Let everything happen until the world's wall clock shows `at`."""
        await self.clock.sleep_until(at)

    def writes(self, *, since: int = 0) -> list[LogEntry]:
        """What operators wrote from an entry of the log on: Lease renewals and dry runs left out."""
        return [entry for entry in self.server.log[since:] if _is_write(entry)]


def _is_write(entry: LogEntry) -> bool:
    return not (entry.method in {"GET", "WATCH"} or "/leases" in entry.path or entry.is_dry_run)
