"""What was said to one fake server is answered by another one alike, but for what somebody changes: a replay can fail."""

from __future__ import annotations

from support.api_hooks import lease_fence, record_rules
from support.api_server import FakeApiServer
from support.harness import SETTINGS
from support.replayed_story import tell
from support.request_log import Exchange, Replay, to_fake
from support.story import at
from support.virtual_loop import VirtualClock, run_virtual


async def replayed(clock: VirtualClock, log: list[Exchange], *, has_fence: bool = True) -> Replay:
    server = FakeApiServer(clock, seed=7)  # so that no UID is the same
    server.admission.append(record_rules)
    if has_fence:
        lease_fence(server, SETTINGS.lease.namespace, SETTINGS.lease.name)
    server.store.version += 1000
    replay = Replay(to_fake(server), namespaces={"ns": "another"})
    await replay.run(log)
    return replay


def test_a_log_is_answered_alike_by_a_server_with_other_uids_and_versions() -> None:
    log = tell()
    replay = run_virtual(lambda clock: replayed(clock, log), at("09:59:30"))
    assert replay.differences == []
    assert replay.compared > 200


def test_a_server_without_the_fence_answers_otherwise() -> None:
    log = tell()
    replay = run_virtual(lambda clock: replayed(clock, log, has_fence=False), at("09:59:30"))
    assert any("dryRun" in each or "scheduleoccurrences" in each for each in replay.differences)
