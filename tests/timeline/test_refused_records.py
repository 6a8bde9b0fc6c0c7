"""A record that the API server refuses: said in the status, tried again without a hurry, and made good when it can be."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from support.api_kinds import Json, RefusedError
from support.api_requests import Admission
from support.harness import World
from support.objects import a_schedule
from support.story import At, Crash, Jump, Outage, Step, admitted, completed, play, skipped_misfire

FIVE = {"schedule": "*/5 * * * *"}
QUOTA = 'scheduleoccurrences.workflow-schedules.dev "x" is forbidden: exceeded quota: records, used: 9, limited: 9'
WEBHOOK = 'admission webhook "records.example.com" denied the request: no records on Mondays'
UNREACHABLE = 'Internal error occurred: failed calling webhook "records.example.com": no endpoints available'


class Refusal:
    """The API server takes no records from one step of a story to another."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        self._how = (code, reason, message)
        self.since = 0

    def begin(self, world: World) -> None:
        self.since = len(world.server.log)
        self._lift = world.refuse(*self._how, plural="scheduleoccurrences")

    def end(self, _world: World) -> None:
        self._lift()

    def cost(self, world: World, *, attempts: int, statuses: int) -> None:
        """Compare what was asked for the schedule `s` since it began: at most so many records, exactly so many statuses."""
        assert 1 <= len(answers(world, "POST", "/scheduleoccurrences", since=self.since)) <= attempts
        assert answers(world, "PATCH", "/workflowschedules/s/status", since=self.since) == [200] * statuses


def a_quota() -> Refusal:
    return Refusal(403, "Forbidden", QUOTA)


def answers(world: World, method: str, part: str, *, since: int = 0) -> list[int]:
    return [
        entry.status
        for entry in world.server.log[since:]
        if entry.method == method and part in entry.path and not entry.is_dry_run
    ]


def says_refused(world: World, *, words: str) -> None:
    condition = world.condition("RunsHealthy")
    assert (condition["status"], condition["reason"]) == ("False", "RecordNotCreated")
    assert words in condition["message"]


def says_healthy(world: World, name: str = "s", namespace: str = "ns") -> None:
    condition = world.condition("RunsHealthy", name, namespace)
    assert (condition["status"], condition["reason"]) == ("True", "Healthy")


def checks(*every: object) -> object:
    def check(world: World) -> None:
        for one in every:
            one(world)  # type: ignore[operator]

    return check


short, long, once, edited, born = a_quota(), a_quota(), a_quota(), a_quota(), a_quota()
back, waiting = a_quota(), a_quota()
webhook, unreachable, inherited = Refusal(400, "", WEBHOOK), Refusal(500, "InternalError", UNREACHABLE), a_quota()

STORIES: dict[str, tuple[list[Step], Json]] = {
    "K-035: a quota that is raised within the deadline: the run starts after all": (
        [
            At("09:59", do=short.begin),
            At("10:00", want=[], check=partial(says_refused, words=QUOTA)),
            At("10:00:10", do=short.end, check=partial(short.cost, attempts=4, statuses=1)),
            At("10:00:40", want=[admitted("10:00")], ends=[completed("10:00")], check=says_healthy),
        ],
        FIVE,
    ),
    "K-035: one that is raised later: what was missed is on record, and the next one runs": (
        [
            At("09:59", do=long.begin),
            At("10:03:30", want=[], do=long.end, check=checks(
                partial(says_refused, words="raised"), partial(long.cost, attempts=10, statuses=1))),
            At("10:04:40", want=[skipped_misfire("10:00")], check=says_healthy),
            At("10:05", want=[admitted("10:05")], ends=[completed("10:05")], check=says_healthy),
        ],
        FIVE,
    ),
    "a webhook that refuses records": (
        [
            At("09:59", do=webhook.begin),
            At("10:00", want=[], check=partial(says_refused, words=WEBHOOK)),
            At("10:02", do=webhook.end, check=partial(webhook.cost, attempts=8, statuses=1)),
            At("10:03:10", want=[skipped_misfire("10:00")], check=says_healthy),
        ],
        FIVE,
    ),
    "K-106: one that can't be called": (
        [
            At("09:59", do=unreachable.begin),
            At("10:00", want=[], check=partial(says_refused, words=UNREACHABLE)),
            At("10:02", do=unreachable.end, check=partial(unreachable.cost, attempts=15, statuses=1)),
            At("10:03:10", want=[skipped_misfire("10:00")], check=says_healthy),
        ],
        FIVE,
    ),
    "I8: a refusal that has passed by the next attempt costs no write": (
        [
            At("09:59:59.5", do=once.begin, settle_seconds=0.6),
            At("10:00:00.5", do=once.end, settle_seconds=0, check=partial(once.cost, attempts=1, statuses=0)),
            At("10:00:10", want=[admitted("10:00")], ends=[completed("10:00")],
               check=partial(once.cost, attempts=2, statuses=1)),
        ],
        FIVE,
    ),
    "a leader that comes later says the same, and writes nothing for that": (
        [
            At("09:59", do=inherited.begin),
            At("10:00:05", check=partial(says_refused, words=QUOTA)),
            Crash("10:00:10"),
            At("10:02", want=[], check=checks(
                partial(says_refused, words=QUOTA), partial(inherited.cost, attempts=16, statuses=1))),
            At("10:02:10", do=inherited.end),
            At("10:04:10", want=[skipped_misfire("10:00")], check=says_healthy),
        ],
        FIVE,
    ),
    "nothing is refused where nothing is to be recorded any more: the clock is set back": (
        [
            At("09:59", do=back.begin),
            At("10:00:05", check=partial(says_refused, words=QUOTA)),
            Jump("10:00:10", by=timedelta(minutes=-2)),
            At("09:59", do=lambda world: world.edit("s", successfulJobsHistoryLimit=5), want=[], check=says_healthy),
            At("09:59:30", do=back.end),
            At("10:00:10", want=[admitted("10:00")], ends=[completed("10:00")], check=says_healthy),
        ],
        FIVE,
    ),
    "I3: what waited stays in sight while it can't be admitted": (
        [
            At("10:00:05", want=[admitted("10:00")], ends=[]),
            At("10:06:30", want=[], status={"candidates": ["2026-03-02T10:05:00Z"]}, do=waiting.begin),
            Outage("10:07", "10:08", do=lambda world: world.jobs.finish("ns", world.job_names()[0])),
            At("10:08:30", want=[], ends=[completed("10:00")], status={"candidates": ["2026-03-02T10:05:00Z"], "activeCount": 0},
               check=partial(says_refused, words=QUOTA)),
            At("10:08:40", do=waiting.end),
            At("10:09:50", want=[admitted("10:05")], status={"candidates": []}, check=says_healthy),
        ],
        {**FIVE, "misfirePolicy": "Latest", "startingDeadlineSeconds": 900},
    ),
    "R11: an edit whose Baseline is refused shows only when that is on record": (
        [
            At("10:01", want=[admitted("10:00")], baselines=["Created"]),
            At("10:02", do=lambda world: (edited.begin(world), world.edit("s", schedule="*/7 * * * *")),
               status={"observedGeneration": 1, "revision": 1, "scheduleText": "*/5 * * * *", "logHead": 2},
               check=partial(says_refused, words=QUOTA)),
            Crash("10:03"),
            At("10:08", want=[], status={"observedGeneration": 1, "revision": 1}, check=checks(
                partial(says_refused, words=QUOTA), partial(edited.cost, attempts=24, statuses=1), edited.end)),
            At("10:09:10", want=[], baselines=["Edited"], status={"observedGeneration": 2, "revision": 2},
               check=says_healthy),
            At("10:14", want=[admitted("10:14")]),
        ],
        FIVE,
    ),
    "R9: a schedule that is born while nothing is taken begins at its creation": (
        [
            At("09:59", do=lambda world: (born.begin(world), world.apply(a_schedule("late", **FIVE)))),
            At("10:02:50", of="late", want=[], check=lambda world: says_unseen(world.status("late"))),
            At("10:03", do=born.end),
            At("10:04:10", of="late", want=[skipped_misfire("10:00")], baselines=["Created"],
               check=partial(says_healthy, name="late")),
        ],
        FIVE,
    ),
}  # fmt: skip


def says_unseen(status: Json) -> None:
    assert {name for name, value in status.items() if value} == {"conditions", "fencingEpoch", "writer", "lease"}
    assert [(one["type"], one["reason"]) for one in status["conditions"]] == [("RunsHealthy", "RecordNotCreated")]


@pytest.mark.parametrize("name", STORIES)
def test_refused_records(name: str) -> None:
    steps, spec = STORIES[name]
    play(steps, a_schedule(**spec), start="09:58", run_seconds=None if "in sight" in name else 2.0)


@pytest.mark.parametrize("is_status_refused", [False, True])
def test_in_a_namespace_that_ends_one_attempt_is_made_and_the_status_says_so(is_status_refused: bool) -> None:
    """K-102: nothing spins, also where the status is refused, and the other namespace goes on."""
    since = []

    def terminate(world: World) -> None:
        since.append(len(world.server.log))
        world.server.requests.terminating.add("ns")
        if is_status_refused:
            world.refuse(403, "Forbidden", "no", plural="workflowschedules", operation="UPDATE")

    def asked_once(world: World) -> None:
        assert answers(world, "POST", "/namespaces/ns/", since=since[0]) == [403]
        statuses = answers(world, "PATCH", "/workflowschedules/s/status", since=since[0])
        assert statuses == ([403] if is_status_refused else [200])
        if not is_status_refused:
            says_refused(world, words="because it is being terminated; nothing can be created in a namespace")
            says_healthy(world, "other", "elsewhere")

    play(
        [
            At("09:59:30", do=terminate),
            At("10:00", want=[], check=asked_once),
            At("10:00:10", want=[admitted("10:00")], ends=[completed("10:00")], of="elsewhere/other"),
            At("10:09:50", want=[], check=asked_once),
            At("10:09:55", want=[admitted("10:05")], of="elsewhere/other"),
        ],
        a_schedule(**FIVE),
        a_schedule("other", namespace="elsewhere", **FIVE),
        start="09:58",
        is_settled=False,
    )


def test_where_the_status_is_refused_too_edits_bring_no_more_requests_for_it_than_its_back_off_allows() -> None:
    def refuse_status(admission: Admission) -> RefusedError | None:
        is_status = admission.kind.plural == "workflowschedules" and admission.subresource == "status"
        return RefusedError(403, "Forbidden", "no") if is_status else None

    def edit_often(world: World) -> None:
        quota.begin(world)
        world.server.admission.append(refuse_status)

    quota = a_quota()
    edits = [
        At(f"10:00:{second}", do=lambda world, n=second: world.edit("s", description=str(n)), settle_seconds=0)  # type: ignore[misc]
        for second in range(20, 50)
    ]

    def few(world: World) -> None:
        assert len(answers(world, "PATCH", "/workflowschedules/s/status", since=quota.since)) <= 8

    play(
        [At("09:59", do=edit_often), At("10:00", want=[]), *edits, At("10:00:50", check=few)],
        a_schedule(**FIVE),
        start="09:58",
        is_settled=False,
    )
