"""The client: one request each, never a second one, and what each answer leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from support.api_contract import World, a_name
from support.api_jobs import JobController
from support.api_server import FakeApiServer, Fault
from support.virtual_loop import DeadlockError, VirtualClock, run_virtual
from workflow_schedules.cluster.client import METHODS, Client
from workflow_schedules.cluster.errors import ClusterError, ConflictError, InvalidError, ThrottledError, UnansweredError
from workflow_schedules.cluster.methods import JOBS, SCHEDULES, Method, require

START = datetime(2026, 1, 1, tzinfo=UTC)
Story = Callable[[FakeApiServer, World], Awaitable[None]]


def play(story: Story, *faults: Fault) -> FakeApiServer:
    """Run a story whose first requests meet these faults."""
    waiting = list(faults)

    async def with_server(clock: VirtualClock) -> FakeApiServer:
        server = FakeApiServer(clock)
        server.faults.append(lambda _request: waiting.pop(0) if waiting else None)
        await story(server, World(transport=server.transport(), namespace="ns", forget_history=server.compact))
        return server

    return run_virtual(with_server, START)


LOSSES = {
    "reset before": (Fault(is_dropped=True), 0, 0.0),
    "silence before": (Fault(is_dropped=True, is_silent=True), 0, 15.0),
    "reset after": (Fault(is_answer_lost=True), 1, 0.0),
    "silence after": (Fault(is_answer_lost=True, is_silent=True), 1, 15.0),
    "server error": (Fault(status=500), 0, 0.0),
    "gateway time-out": (Fault(status=504), 0, 0.0),
    "late": (Fault(delay_seconds=20), 1, 15.0),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_answer_is_unanswered_and_not_repeated(loss: str) -> None:
    fault, stored, seconds = LOSSES[loss]

    async def story(server: FakeApiServer, world: World) -> None:
        with pytest.raises(UnansweredError):
            await world.client.create_occurrence("ns", world.record())
        assert asyncio.get_running_loop().time() == pytest.approx(seconds, abs=0.01)
        await asyncio.sleep(30)
        assert len(server.objects("scheduleoccurrences")) == stored
        assert len(server.log) == 1

    play(story, fault)


def test_a_request_goes_on_when_its_sender_is_cancelled() -> None:
    async def story(server: FakeApiServer, world: World) -> None:
        client = server.client(latency_seconds=1.0)
        task = asyncio.create_task(client.create_occurrence("ns", world.record()))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert server.objects("scheduleoccurrences") == []
        await asyncio.sleep(1)
        assert len(server.objects("scheduleoccurrences")) == 1

    play(story)


def test_a_throttled_request_says_for_how_long() -> None:
    async def story(_server: FakeApiServer, world: World) -> None:
        with pytest.raises(ThrottledError) as error:
            await world.client.get_job("ns", "j")
        assert error.value.retry_after_seconds == 3

    play(story, Fault(status=429, retry_after_seconds=3))


def test_a_server_that_is_down_answers_nothing() -> None:
    async def story(server: FakeApiServer, world: World) -> None:
        server.go_down()
        with pytest.raises(UnansweredError):
            await world.client.get_job("ns", "j")
        server.come_up()
        with pytest.raises(ClusterError, match="not found"):
            await world.client.get_job("ns", "j")

    play(story)


def test_every_write_carries_a_time_limit_for_the_server() -> None:
    seen: list[tuple[str, str | None]] = []

    async def story(server: FakeApiServer, world: World) -> None:
        server.faults.append(lambda request: seen.append((request.method, request.query.get("timeout"))))
        record = await world.client.create_occurrence("ns", world.record())
        await world.set_outcome("Running")
        await world.client.delete_occurrence("ns", a_name(), uid=record["metadata"]["uid"])

    play(story)
    assert seen == [("POST", "10s"), ("PATCH", "10s"), ("DELETE", "10s")]


def test_a_delete_is_of_one_object_and_not_of_a_name() -> None:
    """P19: of another one of its name nothing is removed; on the server, whoever asks."""

    async def story(server: FakeApiServer, world: World) -> None:
        bodies: list[dict[str, object]] = []
        await world.client.create_occurrence("ns", world.record())
        await world.client.create_job("ns", world.job())
        server.faults.append(lambda request: bodies.append(request.json))
        for delete, name in ((world.client.delete_occurrence, a_name()), (world.client.delete_job, "j")):
            with pytest.raises(ConflictError):
                await delete("ns", name, uid="another")
        assert [body["preconditions"] for body in bodies] == [{"uid": "another"}] * 2
        assert len(server.objects("scheduleoccurrences")) == len(server.objects("jobs")) == 1

    play(story)


def test_the_time_of_the_server_is_never_ahead_and_survives_its_jumps() -> None:
    async def story(clock: VirtualClock) -> None:
        server = FakeApiServer(clock)
        client = server.client()
        await asyncio.sleep(0.9)
        for jump in (timedelta(), timedelta(minutes=5), timedelta(minutes=-7)):
            clock.jump(jump)
            await client.list_all(SCHEDULES)
            await asyncio.sleep(1.3)
            now = client.server_now(clock.monotonic())
            assert now is not None
            assert timedelta() <= clock.now() - now <= timedelta(seconds=1)

    run_virtual(story, START)


def test_what_is_not_in_the_table_is_not_sent() -> None:
    with pytest.raises(NotImplementedError, match="patch jobs is not in METHODS"):
        require("patch", JOBS)
    assert Method("batch", "jobs", "create") in METHODS
    assert Method("workflow-schedules.dev", "scheduleoccurrences/status", "patch") in METHODS
    assert len(set(METHODS)) == len(METHODS)
    assert not [method for method in METHODS if "*" in (method.group, method.resource, method.verb)]


def test_the_lease_has_its_own_way() -> None:
    async def story(server: FakeApiServer, _world: World) -> None:
        client = Client(server.transport("work"), lease_transport=server.transport("lease"))
        await client.create_lease("ns", {"metadata": {"name": "l"}, "spec": {}})
        await client.list_all(SCHEDULES)
        assert [(entry.client, entry.method) for entry in server.log] == [("lease", "POST"), ("work", "GET")]

    play(story)


def test_garbage_goes_with_its_last_owner() -> None:
    async def story(server: FakeApiServer, world: World) -> None:
        record = await world.client.create_occurrence("ns", world.record())
        job = world.job()
        job["metadata"]["ownerReferences"] = [{"kind": "ScheduleOccurrence", "uid": record["metadata"]["uid"]}]
        await world.client.create_job("ns", job)
        assert server.run_gc() == 0
        await world.client.delete_occurrence("ns", a_name(), uid=record["metadata"]["uid"])
        assert len(server.objects("jobs")) == 1
        assert server.run_gc() == 1
        assert server.objects("jobs") == []

    play(story)


def test_the_job_controller_ends_jobs_as_the_real_one_does() -> None:
    async def story(clock: VirtualClock) -> None:
        server = FakeApiServer(clock)
        world = World(transport=server.transport(), namespace="ns", forget_history=server.compact)
        controller = JobController(server, clock)
        await world.client.create_job("ns", world.job("good"))
        await world.client.create_job("ns", world.job("bad"))
        await asyncio.sleep(5)
        controller.start_job("ns", "good")
        controller.suspend_job("ns", "good")
        controller.resume_job("ns", "good")
        await asyncio.sleep(5)
        good = controller.finish_job("ns", "good")["status"]
        bad = controller.finish_job("ns", "bad", outcome="Failed", reason="DeadlineExceeded")["status"]

        assert [(each["type"], each["status"]) for each in good["conditions"]] == [
            ("Suspended", "False"),
            ("SuccessCriteriaMet", "True"),
            ("Complete", "True"),
        ]
        assert (good["startTime"], good["completionTime"]) == ("2026-01-01T00:00:05Z", "2026-01-01T00:00:10Z")
        assert [each["reason"] for each in bad["conditions"]] == ["DeadlineExceeded", "DeadlineExceeded"]
        assert "completionTime" not in bad

    run_virtual(story, START)


def test_virtual_time_passes_at_once_and_a_deadlock_is_an_error() -> None:
    async def story(clock: VirtualClock) -> None:
        await clock.sleep_until(START + timedelta(days=400))
        assert clock.now() == START + timedelta(days=400)
        await asyncio.get_running_loop().create_future()

    with pytest.raises(DeadlockError, match=r"nothing is scheduled.*story"):
        run_virtual(story, START)


def test_an_unknown_continue_or_selector_is_refused() -> None:
    async def story(_server: FakeApiServer, world: World) -> None:
        with pytest.raises(InvalidError):
            await world.client.list_all(JOBS, label_selector="a in (")

    play(story)
