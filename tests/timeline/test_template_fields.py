"""Fields of a template that the API server drops: told early and once, whatever becomes of leaders, and nothing stops for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.api_kinds import Json
from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import World
from support.objects import TEMPLATE, a_definition, a_schedule, a_template
from support.story import At, Crash, Outage, Step, admitted, completed, play

DAILY = {"schedule": "0 12 * * *"}
MISSPELT = {"spec": {**TEMPLATE["spec"], "activeDeadlineSecond": 60}}
OTHER = {"jobTemplate": a_template("other:1")}
PATH = "spec.jobTemplate.spec.activeDeadlineSecond"


def unknown_field(request: ApiRequest) -> str:
    """As the API server has it where it is asked to warn."""
    is_unknown = "activeDeadlineSecond" in request.json.get("spec", {}) and request.path.endswith("/jobs")
    return (
        'unknown field "spec.activeDeadlineSecond"'
        if is_unknown and request.query.get("fieldValidation") == "Warn"
        else ""
    )


def warns(world: World) -> None:
    world.server.warnings.append(unknown_field)


def says(world: World, reason: str, *parts: str) -> None:
    condition = world.condition("RunsHealthy")
    assert (condition["reason"], condition["status"]) == (reason, "True" if reason == "Healthy" else "False")
    assert all(part in condition["message"] for part in parts), condition


def told(reason: str, *parts: str) -> Callable[[World], None]:
    return lambda world: says(world, reason, *parts)


def asked(world: World, times: int) -> None:
    assert sum(entry.is_dry_run and entry.path.endswith("/jobs") for entry in world.server.log) == times


class Webhook:
    """Refuses the Jobs of one image."""

    def __init__(self, image: str) -> None:
        self._image = image
        self.asked = 0

    def __call__(self, request: ApiRequest) -> Fault | None:
        is_job = request.method == "POST" and request.path.endswith("/jobs")
        if not is_job or request.json["spec"]["template"]["spec"]["containers"][0]["image"] != self._image:
            return None
        self.asked += 1
        return Fault(status=422, reason="Invalid", message=f"image: not allowed; request {self.asked}")


def begin(*objects: Json, refused_image: str | None = None) -> Step:
    def do(world: World) -> None:
        warns(world)
        if refused_image is not None:
            world.server.faults.append(Webhook(refused_image))
        for body in objects:
            world.apply(body)

    return At("09:58", do=do)


STORIES: dict[str, list[Step]] = {
    "R24: an unknown field is told within seconds, and its runs start": [
        begin(a_schedule(jobTemplate=MISSPELT, schedule="0 10 * * *")),
        At("09:58:05", check=told("UnknownFields", PATH, "runs start without it"), status={"state": "Active"}),
        At("10:00", want=[admitted("10:00")], ends=[completed("10:00")], settle_seconds=8,
           check=lambda world: (says(world, "UnknownFields", PATH), asked(world, 1))),
    ],
    "R24: an edit that corrects it is told within seconds, too": [
        begin(a_schedule(jobTemplate=MISSPELT, **DAILY)),
        At("09:59", check=told("UnknownFields")),
        At("10:01", do=lambda world: world.edit("s", jobTemplate={"spec": {"activeDeadlineSecond": None}})),
        At("10:01:05", check=lambda world: (says(world, "Healthy"), asked(world, 2))),
    ],
    "R36: of a definition, which is named": [
        begin(a_definition(jobTemplate=MISSPELT), a_schedule(workflow="w", **DAILY)),
        At("09:59", check=told("UnknownFields", f"WorkflowDefinition w: {PATH}")),
    ],
    "R24: a template that would be refused says what nobody knows besides": [
        begin(a_schedule(jobTemplate=MISSPELT, **DAILY), refused_image="busybox:1.37"),
        At("09:58:05", check=told("TemplateRejected", "image: not allowed; ", PATH)),
    ],
    "R24: a template that would be refused says so within seconds; once it is not, within ten minutes": [
        begin(a_schedule(jobTemplate=a_template("other:1"), **DAILY), refused_image="other:1"),
        At("09:58:05", check=told("TemplateRejected", "image: not allowed")),
        At("09:59", do=lambda world: world.server.faults.clear()),
        At("10:08:30", check=told("Healthy")),
    ],
    "Section 1: what the operator overrules is told by the definition": [
        begin(a_definition(jobTemplate={**TEMPLATE, "metadata": {"name": "x"}})),
        At("09:58:30", check=lambda world: definition_says(world, "spec.jobTemplate.metadata.name: is left out")),
    ],
}  # fmt: skip


def misspelt(image: str) -> Json:
    return {"spec": {**a_template(image)["spec"], "activeDeadlineSecond": 60}}


def hangs(image: str) -> Callable[[ApiRequest], Fault | None]:
    """No answer to dry runs of the Jobs of an image."""

    def fault(request: ApiRequest) -> Fault | None:
        is_meant = request.query.get("fieldValidation") and image in image_of(request)
        return Fault(delay_seconds=3600) if is_meant else None

    return fault


def image_of(request: ApiRequest) -> str:
    return str(request.json["spec"]["template"]["spec"]["containers"][0]["image"])


def definition_says(world: World, part: str) -> None:
    found = world.server.get("workflowdefinitions", "ns", "w")["status"]["conditions"]
    accepted = next(each for each in found if each["type"] == "Accepted")
    assert (accepted["status"], accepted["reason"]) == ("True", "Valid")
    assert part in accepted["message"]


@pytest.mark.parametrize("name", STORIES)
def test_stories(name: str) -> None:
    play(STORIES[name], start="09:57:50")


def test_a_refusal_in_other_words_is_not_told_anew() -> None:
    """I8: it is asked again every ten minutes, and what names its request would be another one each time."""
    webhook, seen = Webhook("other:1"), list[int]()
    play(
        [
            At("09:58", do=lambda world: (world.server.faults.append(webhook), world.apply(a_schedule(**OTHER, **DAILY)))),
            At("09:59", check=lambda world: (says(world, "TemplateRejected", "request 1"), seen.append(len(world.server.log)))),
            At("11:00", check=lambda world: none_written(world, since=seen[0])),
            At("12:00", want=["PreflightRejected 12:00"], settle_seconds=8,
               check=lambda world: says(world, "TemplateRejected", f"request {webhook.asked}")),
        ],
        start="09:57:50",
    )  # fmt: skip
    assert webhook.asked > 10


def none_written(world: World, *, since: int) -> None:
    assert world.writes(since=since) == []


@pytest.mark.parametrize("is_mended", [False, True])
def test_what_was_told_stands_until_the_next_leader_has_an_answer(*, is_mended: bool) -> None:
    """I8: a takeover writes nothing about a template whose verdict is the same, and what is new, once."""
    seen: list[int] = []

    def late(request: ApiRequest) -> Fault | None:
        return Fault(delay_seconds=5) if request.query.get("fieldValidation") else None

    def note(world: World) -> None:
        seen.append(len(world.server.log))
        world.server.faults.append(late)
        if is_mended:
            world.server.warnings.clear()

    def check(world: World) -> None:
        says(world, "Healthy" if is_mended else "UnknownFields")
        statuses = [each for each in world.writes(since=seen[0]) if each.path.endswith("/status")]
        assert len(statuses) == is_mended
        asked(world, 2)

    play(
        [
            begin(a_schedule(jobTemplate=MISSPELT, **DAILY)),
            At("09:59", check=told("UnknownFields")),
            At("10:00:05", do=note),
            Crash("10:00:10"),
            At("10:02", check=check),
        ],
        start="09:57:50",
    )


MENDED = {"jobTemplate": {"spec": {"activeDeadlineSecond": None}}}
PAUSED = {"pause": {"reason": "holidays"}}
UNANSWERED: dict[str, tuple[list[Json], list[Step], str]] = {
    "a template that was mended": (
        [a_schedule(jobTemplate=MISSPELT, **DAILY)],
        [At("10:01", do=lambda world: world.edit("s", **MENDED))], "Healthy"),
    "a definition's that was mended": (
        [a_definition(jobTemplate=MISSPELT), a_schedule(workflow="w", **DAILY)],
        [At("10:01", do=lambda world: world.edit_definition(**MENDED))], "Healthy"),
    "mended while nobody led": (
        [a_schedule(jobTemplate=MISSPELT, **DAILY)],
        [Outage("10:01", "10:02", do=lambda world: world.edit("s", **MENDED))], "Healthy"),
    "the same under another leader": (
        [a_schedule(jobTemplate=MISSPELT, **DAILY)],
        [Crash("10:01")], "UnknownFields"),
    "the same under another leader, and something else was edited": (
        [a_schedule(jobTemplate=MISSPELT, **DAILY)],
        [Crash("10:01"), At("10:03", do=lambda world: world.edit("s", **PAUSED))], "UnknownFields"),
    "another was told of meanwhile, under another leader": (
        [a_schedule(jobTemplate=MISSPELT, **DAILY)],
        [Crash("10:01"), At("10:03", do=lambda world: world.edit("s", jobTemplate=misspelt("other:1"))),
         At("10:05", check=told("UnknownFields")), At("10:06", do=lambda world: world.edit("s", jobTemplate=MISSPELT))],
        "Healthy"),
    "a definition's that was mended under another leader": (
        [a_definition(jobTemplate=MISSPELT), a_schedule(workflow="w", **DAILY)],
        [Crash("10:01"), At("10:03", do=lambda world: world.edit_definition(**MENDED))], "Healthy"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNANSWERED)
def test_what_was_told_is_of_the_template_in_force(name: str) -> None:
    """R24: where no dry run is answered any more, what was told is repeated only of the template that it was told of."""
    objects, steps, want = UNANSWERED[name]

    def check(world: World) -> None:
        says(world, want)
        generation = world.schedule()["metadata"]["generation"]
        assert world.condition("RunsHealthy")["observedGeneration"] == generation

    play(
        [
            begin(*objects),
            At("09:59", check=told("UnknownFields")),
            At("10:00", do=lambda world: world.server.faults.append(hangs("busybox"))),
            *steps,
            At("10:30", check=check),
        ],
        start="09:57:50",
    )


def test_templates_that_hang_keep_no_new_one_from_its_answer() -> None:
    """R24: each of them takes as long as a request may, and is asked about again after half a minute."""
    questions: list[str] = []

    def note(request: ApiRequest) -> None:
        if request.query.get("fieldValidation"):
            questions.append(image_of(request))

    def add(kind: str, count: int) -> Callable[[World], None]:
        def do(world: World) -> None:
            for number in range(count):
                world.apply(a_schedule(f"{kind}-{number}", jobTemplate=a_template(f"{kind}:{number}"), **DAILY))

        return do

    play(
        [
            At("09:58", do=lambda world: world.server.faults.extend((note, hangs("slow")))),
            At("09:58:10", do=add("slow", 6)),
            At("10:05", do=add("new", 3)),
            At("10:05:30", check=lambda _: asked_once(questions, "new", 3)),
            At("10:20"),
        ],
        start="09:57:50",
    )
    times = [questions.count(f"slow:{number}") for number in range(6)]
    assert max(times) - min(times) <= 1, times


def asked_once(questions: list[str], kind: str, count: int) -> None:
    assert sorted(each for each in questions if each.startswith(kind)) == [
        f"{kind}:{number}" for number in range(count)
    ]
