"""Who watches the watches, and how they log in: a process that sees nothing must not look healthy."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import cast

import kopf
import pytest

from workflow_schedules.cluster.connection import from_environment
from workflow_schedules.handlers import sessions, watches
from workflow_schedules.handlers.feed import Feed
from workflow_schedules.handlers.watches import FAILURES_TOO_MANY, Watches


class Deaf:
    """A feed to which nobody tells anything."""

    def list_from_thread(self) -> None:
        """Hear of a list."""


class Broken(Watches):
    """Watches that fail at once, as kopf does for a user without a name."""

    def __init__(self) -> None:
        super().__init__(cast("Feed", Deaf()))
        self.tries = 0
        self.is_tried = threading.Event()

    async def _watch(self) -> None:
        self.tries += 1
        if self.tries > FAILURES_TOO_MANY:
            self.is_tried.set()
        raise KeyError("getpwuid(): uid not found: 65532")


def test_watches_that_fail_again_and_again_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-064 K-093: the liveness probe says it, with the reason; a first failure is only tried again."""
    monkeypatch.setattr(watches, "RESTART_SECONDS", 0.01)
    broken = Broken()
    assert broken.problem == "the watches have ended"
    broken.start()
    assert broken.is_tried.wait(10)
    assert broken.problem is not None
    assert "uid not found" in broken.problem
    broken.stop()


class Listing(Watches):
    """Watches that go on until they are to begin anew, as kopf does."""

    def __init__(self) -> None:
        super().__init__(cast("Feed", Deaf()))
        self.begun = threading.Semaphore(0)

    async def _watch(self) -> None:
        self.begun.release()
        while not (self._stop.is_set() or self._anew.is_set()):  # noqa: ASYNC110 - events of another thread
            await asyncio.sleep(0.001)


def test_watches_that_are_to_begin_anew_do_and_that_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restore of etcd a watch from a version that is still to come would be silent."""
    monkeypatch.setattr(watches, "RESTART_SECONDS", 0.01)
    listing = Listing()
    listing.start()
    for _ in range(2 * FAILURES_TOO_MANY):
        assert listing.begun.acquire(timeout=10)
        listing.begin_anew()
    assert listing.begun.acquire(timeout=10)
    assert listing.problem is None
    listing.stop()
    listing._thread.join(10)
    assert listing.problem == "the watches have ended"


class Leaving(Watches):
    """Watches that fail, and leave something behind that does not end at once."""

    def __init__(self) -> None:
        super().__init__(cast("Feed", Deaf()))
        self.begun = threading.Semaphore(0)
        self.left: list[asyncio.Task[None]] = []

    async def _operate(self, sessions: list[kopf.AiohttpSession]) -> None:  # noqa: ARG002 - as it is called
        self.begun.release()
        self.left.append(asyncio.create_task(self._go_on()))
        await asyncio.sleep(0)
        raise OSError("the server is gone")

    async def _go_on(self) -> None:
        for _ in range(2):
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()


def test_what_the_watches_leave_behind_does_not_keep_them_from_beginning_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """I9: a task that swallows its end once would leave the process deaf, and healthy to all who ask."""
    monkeypatch.setattr(watches, "RESTART_SECONDS", 0.01)
    monkeypatch.setattr(watches, "LOOK_SECONDS", 0.01)
    leaving = Leaving()
    leaving.start()
    assert all(leaving.begun.acquire(timeout=10) for _ in range(3))
    leaving.stop()
    leaving._thread.join(10)
    assert all(task.done() for task in leaving.left)


def test_a_pod_logs_in_by_the_address_that_its_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By name it would need the cluster's DNS, which can fail for reasons of its own."""
    for name in ("token", "ca.crt"):
        (tmp_path / name).write_text("x")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(sessions, "from_environment", lambda env: from_environment(env, service_account=tmp_path))
    account = kopf.ConnectionInfo(server="https://kubernetes.default.svc", token="secret")
    monkeypatch.setattr(kopf, "login_with_service_account", lambda **_: account)
    info = sessions.account()
    assert info is not None
    assert (info.server, info.token) == ("https://10.96.0.1:443", "secret")


def test_without_a_service_account_there_is_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(kopf, "login_with_service_account", lambda **_: None)
    assert sessions.account() is None


def test_a_kubeconfig_goes_before_the_pods_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/some/file")
    given = kopf.ConnectionInfo(server="https://127.0.0.1:6443")
    monkeypatch.setattr(kopf, "login_with_kubeconfig", lambda **_: given)
    assert sessions.account() is given
