"""What a test sees of a namespace is of one moment, whatever is written while it looks."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from support.moment import asking
from support.scene import Scene, a_schedule, a_template
from workflow_schedules.api import names
from workflow_schedules.cluster.methods import JOBS, SCHEDULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from workflow_schedules.cluster.connection import Connection

    Kubectl = Callable[..., Any]

LOOKS = 20


@pytest.fixture
def _pairs(real_connection: Connection, namespace: str) -> Iterator[None]:
    """A schedule, then a Job of its name, then the next pair, for as long as the test lasts."""
    is_over = threading.Event()

    def write() -> None:
        with asking(real_connection) as ask:
            for number in range(2000):
                if is_over.is_set():
                    break
                name = f"p{number:04d}"
                job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, **a_template(suspend=True)}
                ask("POST", SCHEDULES.path(namespace), a_schedule(name, enabled=False, schedule="0 0 1 1 *"))
                ask("POST", JOBS.path(namespace), job)

    writing = threading.Thread(target=write)
    writing.start()
    yield
    is_over.set()
    writing.join()


@pytest.mark.usefixtures("_pairs")
def test_no_job_is_seen_without_what_was_written_before_it(
    kubectl: Kubectl, real_connection: Connection, namespace: str
) -> None:
    scene = Scene(kubectl, real_connection, namespace)
    counts: set[int] = set()
    while len(counts) < LOOKS:  # so that there was a write between any two of them
        view = scene.look()
        schedules, jobs = (
            {each["metadata"]["name"] for each in view.of_kind(kind)} for kind in (names.KIND_SCHEDULE, "Job")
        )
        assert len(schedules) - len(jobs) in {0, 1}, schedules ^ jobs
        counts.add(len(jobs))
