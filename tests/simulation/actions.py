"""Everything that an action of a plan can do to a world: what people do, what Jobs do, and what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from simulation.world import SimulatedWorld
from support.api_hooks import record_rules
from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.api_store import api_time
from support.api_transport import Fault
from support.harness import NAMESPACE
from support.objects import a_definition, a_schedule, a_template
from workflow_schedules.api import names

Action = Callable[..., object]
ACTIONS: dict[str, Action] = {}


def action(function: Action) -> Action:
    ACTIONS[function.__name__.rstrip("_")] = function
    return function


def perform(world: SimulatedWorld, what: str, args: dict[str, Any]) -> None:
    """Do an action now; what takes its time goes on beside everything else."""
    result = ACTIONS[what](world, **args)
    if asyncio.iscoroutine(result):
        world.spawn(result)


# people


@action
def schedule(world: SimulatedWorld, name: str, image: str = "", **spec: object) -> None:
    fields = {**spec, **({"jobTemplate": a_template(image)} if image else {})}
    world.quietly(lambda: world.server.create(a_schedule(name, **_timed(world, fields))))


@action
def definition(world: SimulatedWorld, **spec: object) -> None:
    world.quietly(lambda: world.server.create(a_definition("w", **spec)))


@action
def edit(world: SimulatedWorld, name: str, image: str = "", **spec: object) -> None:
    fields = {**spec, **({"jobTemplate": a_template(image)} if image else {})}
    world.quietly(lambda: world.edit(name, **_timed(world, fields)))


@action
def edit_definition(world: SimulatedWorld, image: str = "", **spec: object) -> None:
    fields = {**spec, **({"jobTemplate": a_template(image)} if image else {})}
    world.quietly(lambda: world.edit_definition("w", **fields))


@action
def delete(world: SimulatedWorld, name: str) -> None:
    world.quietly(lambda: world.delete(name))


@action
def recreate(world: SimulatedWorld, name: str) -> None:
    """Delete a schedule and create it again under its name."""
    found = world.server.find("workflowschedules", NAMESPACE, name)
    if found is not None:
        world.delete(name)
        again = a_schedule(name, **{"jobTemplate": None, "schedule": None, **found["spec"]})
        world.quietly(lambda: world.server.create(again))


@action
def delete_definition(world: SimulatedWorld) -> None:
    world.quietly(lambda: world.delete("w", plural="workflowdefinitions"))


@action
def request(world: SimulatedWorld, name: str, of: str, ago: float | None = None) -> None:
    """Ask for a run now, or for a backfill of the minute so many seconds ago."""
    spec: Json = {"scheduleRef": {"name": of}, "cause": "Manual"}
    if ago is not None:
        instant = (world.clock.now() - timedelta(seconds=ago)).replace(second=0)
        spec |= {"cause": "Backfill", "scheduledTime": api_time(instant)}
    body = {"apiVersion": names.API_VERSION, "kind": names.KIND_OCCURRENCE, "spec": spec}
    world.quietly(lambda: world.server.create({**body, "metadata": {"name": name, "namespace": NAMESPACE}}))


@action
def cancel(world: SimulatedWorld, newest: int = 0) -> None:
    """Cancel an unfinished run, counted from the newest."""
    if (name := _nth(world.unfinished(), newest)) is not None:
        patch = {"metadata": {"annotations": {names.ANNOTATION_CANCEL: "by a person"}}}
        world.quietly(lambda: world.server.patch("scheduleoccurrences", NAMESPACE, name, patch))


@action
def delete_job(world: SimulatedWorld, newest: int = 0) -> None:
    """Delete the Job of an unfinished run by hand; it is out of I1 from then on."""
    name = _nth([each for each in world.job_names() if each in set(world.unfinished())], newest)
    if name is not None:
        world.excused.add(name)
        world.delete(name, plural="jobs")


@action
def gc(world: SimulatedWorld) -> None:
    world.server.run_gc()


# Jobs


@action
def jobs(world: SimulatedWorld, run: list[float | None], failed: float = 0.0, unready: float = 0.0) -> None:
    world.set_courses(run=run, failed=failed, unready=unready)


@action
def suspend(world: SimulatedWorld, newest: int = 0) -> None:
    if (name := _nth(_running(world), newest)) is not None:
        world.jobs.controller.suspend_job(NAMESPACE, name)


@action
def resume_jobs(world: SimulatedWorld) -> None:
    for name in _running(world):
        if world.server.get("jobs", NAMESPACE, name)["spec"].get("suspend"):
            world.jobs.controller.resume_job(NAMESPACE, name)


@action
def stuck_pod(world: SimulatedWorld, newest: int = 0) -> None:
    if (name := _nth(_running(world), newest)) is not None:
        world.quietly(lambda: world.jobs.add_stuck_pod(NAMESPACE, name, "node-1"))


@action
def free_pods(world: SimulatedWorld) -> None:
    for pod in world.server.objects("pods"):
        world.quietly(lambda name=pod["metadata"]["name"]: world.jobs.let_pod_go(NAMESPACE, name.removesuffix("-x")))


@action
def forge_job(world: SimulatedWorld, of: str, ahead: int = 1) -> None:
    """Take the name of a coming run."""
    found = world.server.find("workflowschedules", NAMESPACE, of)
    if found is not None:
        numbers = [each["spec"]["sequence"] for each in world.records(of) if "sequence" in each["spec"]]
        name = names.record_name(of, found["metadata"]["uid"], max(numbers, default=0) + ahead)
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {}}
        labels = {names.LABEL_SCHEDULE_UID: found["metadata"]["uid"]}
        body["metadata"] |= {"labels": labels}
        world.quietly(lambda: world.server.create({**body, "spec": a_template("forged")["spec"]}))


@action
def strip_fields(world: SimulatedWorld, of: str, fields: list[str], number: int | None = None) -> None:
    """Take fields away from a record, as nobody but a cluster admin can who has lifted the policies."""
    world.tampering.strip(of, number, fields)


@action
def forge_record(world: SimulatedWorld, of: str, without: list[str], **spec: object) -> None:
    """Take the log's next name with a record of the right shape, as only a cluster admin can."""
    world.tampering.forge(of, without, spec)


# processes


@action
async def kill(world: SimulatedWorld, slot: int, down: float = 0.0) -> None:
    await world.kill_slot(slot % len(world.slots), down)


@action
async def stop(world: SimulatedWorld, slot: int, down: float = 0.0) -> None:
    await world.stop_slot(slot % len(world.slots), down)


@action
async def freeze(world: SimulatedWorld, slot: int, seconds: float) -> None:
    await world.freeze(slot, seconds)


@action
def crash_at(
    world: SimulatedWorld, on: str, skip: int = 0, after: bool = False, down: float = 0.0, of: int | None = None
) -> None:
    """Kill whoever sends the request, before it arrives or before its answer does."""

    def act(request: ApiRequest) -> Fault:
        slot = world.slot_of(request.client)
        if slot is not None:
            world.spawn(world.kill_slot(slot, down))
        return Fault(is_answer_lost=True) if after else Fault(is_dropped=True)

    world.trap(act, on=on, skip=skip, of=of)


@action
def freeze_at(
    world: SimulatedWorld, on: str, seconds: float, skip: int = 0, held: bool = False, of: int | None = None
) -> None:
    """Freeze whoever sends the request: `held` with the request still inside, else with the answer to come."""

    def act(request: ApiRequest) -> Fault | None:
        slot = world.slot_of(request.client)
        if slot is not None:
            world.stop_clock(request.client)
            world.spawn(world.freeze(slot, seconds))
        return Fault(is_held=held)

    world.trap(act, on=on, skip=skip, of=of)


@action
def step_clock(world: SimulatedWorld, slot: int, seconds: float) -> None:
    process = world.process(slot)
    world.edits.is_clock_trusted = False
    world.auditor.excuse(timedelta(seconds=max(0.0, -seconds)))
    if process is not None:
        process.clock.ahead += timedelta(seconds=seconds)


# the API server and the way to it


@action
def fault(
    world: SimulatedWorld,
    on: str,
    skip: int = 0,
    times: int = 1,
    of: int | None = None,
    seconds: float | None = None,
    **what: Any,  # noqa: ANN401 - of Fault
) -> None:
    world.trap(lambda _request: Fault(**what), on=on, skip=skip, times=times, of=of, seconds=seconds)


@action
async def down(world: SimulatedWorld, seconds: float) -> None:
    world.server.go_down()
    await asyncio.sleep(seconds)
    world.server.come_up()


@action
async def slow(world: SimulatedWorld, seconds: float, latency: float = 2.0) -> None:
    world.set_latency(latency)
    await asyncio.sleep(seconds)
    world.set_latency(0.004)


@action
async def lag(world: SimulatedWorld, slot: int, seconds: float, by: float) -> None:
    """Let everything that the watches of a slot tell come late."""
    process = world.process(slot)
    if process is not None:
        process.watching.watch_lag_seconds = process.transport.watch_lag_seconds = by
        await asyncio.sleep(seconds)
        process.watching.watch_lag_seconds = process.transport.watch_lag_seconds = 0.0


@action
def deaf(world: SimulatedWorld, slot: int, seconds: float) -> None:
    """Break all watches; those of a slot are silent for so long."""
    world.trap(lambda _r: Fault(is_dropped=True, is_silent=True), on="watch", times=10**6, of=slot, seconds=seconds)
    world.server.break_watches()


@action
def break_watches(world: SimulatedWorld) -> None:
    world.server.break_watches()


@action
def compact(world: SimulatedWorld) -> None:
    world.server.compact()


@action
def backup(world: SimulatedWorld) -> None:
    world.backup = world.server.backup()


@action
async def restore(world: SimulatedWorld, down: float = 5.0) -> None:
    """Take etcd back to the backup, with the API server down meanwhile."""
    world.server.go_down()
    await asyncio.sleep(down)
    world.restore()
    world.server.come_up()


@action
def fence_lag(world: SimulatedWorld, seconds: float) -> None:
    world.fence.lag_seconds = seconds


@action
def no_fence(world: SimulatedWorld) -> None:
    """Take the policy away that refuses old epochs (P14)."""
    world.server.admission.remove(world.fence)
    world.edits.is_fenced = False


@action
def no_rules(world: SimulatedWorld) -> None:
    """Take the transition rules of the CRDs away."""
    world.server.admission.remove(record_rules)


@action
def wipe_status(world: SimulatedWorld, name: str) -> None:
    """Take a schedule's status away, as a restore by a tool may."""
    lift = world.suspend_rules()
    found = world.server.find("workflowschedules", NAMESPACE, name)
    if found is not None:
        nothing = dict.fromkeys(found.get("status") or {})
        world.server.patch("workflowschedules", NAMESPACE, name, {"status": nothing}, subresource="status")
    lift()


@action
def steal_lease(world: SimulatedWorld, transitions: int = 1) -> None:
    body = world.lease_body()
    if body is not None:
        body["spec"] |= {
            "holderIdentity": "thief",
            "leaseTransitions": body["spec"].get("leaseTransitions", 0) + transitions,
        }
        world.server.replace(body)


@action
def delete_lease(world: SimulatedWorld) -> None:
    body = world.lease_body()
    if body is not None:
        world.server.delete("leases", body["metadata"]["namespace"], body["metadata"]["name"])


@action
async def terminate_namespace(world: SimulatedWorld, seconds: float) -> None:
    """Delete the namespace: it takes nothing from now on, and what is in it goes later."""
    world.server.requests.terminating.add(NAMESPACE)
    await asyncio.sleep(seconds)
    world.purge_namespace()


@action
async def refuse_jobs(world: SimulatedWorld, seconds: float, code: int = 403, message: str = "") -> None:
    text = message or 'jobs.batch "x" is forbidden: exceeded quota: q, requested: count/jobs.batch=1'
    lift = world.refuse(code, "Forbidden" if code == 403 else "Invalid", text, plural="jobs")
    await asyncio.sleep(seconds)
    lift()


def _timed(world: SimulatedWorld, fields: dict[str, Any]) -> dict[str, Any]:
    """Turn seconds from now into the times that a spec wants."""
    fields = dict(fields)
    if (run_once := fields.pop("onceIn", None)) is not None:
        fields["runOnceTime"] = api_time(world.clock.now() + timedelta(seconds=run_once))
    if (ends := fields.pop("endsIn", None)) is not None:
        fields["endTime"] = api_time(world.clock.now() + timedelta(seconds=ends))
    if (paused := fields.pop("pausedFor", None)) is not None:
        until = api_time(world.clock.now() + timedelta(seconds=paused))
        fields["pause"] = {"reason": "simulated", "untilTime": until}
    return fields


def _nth(found: list[str], newest: int) -> str | None:
    return found[-1 - newest % len(found)] if found else None


def _running(world: SimulatedWorld) -> list[str]:
    unfinished = set(world.unfinished())
    found = []
    for job in world.server.objects("jobs", NAMESPACE):
        conditions = (job.get("status") or {}).get("conditions", ())
        is_finished = any(each["type"] in {"Complete", "Failed"} for each in conditions)
        if job["metadata"]["name"] in unfinished and not is_finished and "deletionTimestamp" not in job["metadata"]:
            found.append(job["metadata"]["name"])
    return found
