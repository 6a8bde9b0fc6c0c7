"""What a test on a real cluster sees of a namespace is of one moment: every list but the first is of the version of the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from support import moment
from support.cluster_stories import Json
from workflow_schedules.cluster.connection import Connection
from workflow_schedules.cluster.errors import RefusedError, UnansweredError

NOBODY = cast("Connection", None)
OF_THAT_VERSION = "?resourceVersion=417&resourceVersionMatch=Exact"


def answers(monkeypatch: pytest.MonkeyPatch, *errors: Exception) -> list[str]:
    """Let the first requests fail so, and give the paths of all."""
    asked: list[str] = []
    left = list(errors)

    def ask(_method: str, path: str, _body: Json | None = None) -> Json:
        asked.append(path)
        if left:
            raise left.pop(0)
        kind = path.partition("?")[0].rpartition("/")[2]
        return {"kind": f"{kind}List", "metadata": {"resourceVersion": "417"}, "items": [{"metadata": {"name": "a"}}]}

    @contextmanager
    def asking(_connection: Connection) -> Iterator[Callable[..., Json]]:
        yield ask

    monkeypatch.setattr(moment, "asking", asking)
    monkeypatch.setattr(moment.time, "sleep", lambda _seconds: None)
    return asked


def test_every_list_but_the_first_is_of_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(monkeypatch)
    found = moment.objects_of_now(NOBODY, "team")
    assert [each["kind"] for each in found] == [
        "workflowschedules",
        "workflowdefinitions",
        "scheduleoccurrences",
        "jobs",
        "pods",
        "events",
    ]
    first, *others = asked
    assert first.endswith("/namespaces/team/workflowschedules")
    assert len(others) == len(moment.OTHERS)
    assert all(path.endswith(OF_THAT_VERSION) for path in others)


def test_a_server_that_does_not_answer_for_a_moment_is_asked_again_from_the_first_list_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = answers(monkeypatch, UnansweredError("gone"))
    assert len(moment.objects_of_now(NOBODY, "team")) == 1 + len(moment.OTHERS)
    assert asked[0] == asked[1]


def test_what_is_refused_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, RefusedError("no"))
    with pytest.raises(RefusedError):
        moment.objects_of_now(NOBODY, "team")
