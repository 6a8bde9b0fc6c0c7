"""Inputs over time: schemas that come and change, templates that the API server would refuse, and what the runs get."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial

import pytest

from support.api_kinds import Json, RefusedError
from support.api_requests import Admission
from support.harness import World
from support.objects import a_definition, a_schedule, a_template
from support.story import At, Crash, Outage, Step, admitted, completed, play
from workflow_schedules.api.names import ANNOTATION_INPUT

FIVE = {"schedule": "*/5 * * * *"}
EU = {"required": ["region"], "properties": {"region": {"enum": ["eu", "us"]}}}
ANY = {"properties": {"region": {"type": "string"}}}
OF_W = a_schedule(workflow="w", **FIVE)
INVALID = 'Job.batch "x" is invalid: spec.template.spec.containers[0].image: Required value'


def rejected(time: str) -> str:
    return f"PreflightRejected {time}"


def of_w(region: str) -> Json:
    return a_schedule(workflow="w", input={"region": region}, **FIVE)


def says(world: World, kind: str, status: str, reason: str, *, part: str = "", name: str = "s") -> None:
    condition = world.condition(kind, name)
    assert (condition["status"], condition["reason"]) == (status, reason)
    assert part in condition["message"], condition


def definition_says(world: World, status: str, part: str = "") -> None:
    found = world.server.get("workflowdefinitions", "ns", "w")["status"]["conditions"]
    accepted = next(each for each in found if each["type"] == "Accepted")
    assert (accepted["status"], part in accepted["message"]) == (status, True), accepted


def dry_runs(world: World) -> int:
    return sum(entry.is_dry_run and entry.path.endswith("/jobs") for entry in world.server.log)


def expect(world: World, *, asked: int) -> None:
    assert dry_runs(world) == asked


class Refusal:
    """Refuses Jobs that have an image, from one step of a story to another, dry runs included."""

    def __init__(self, image: str = "busybox:1.37", *, code: int = 422, message: str = INVALID) -> None:
        self._image, self._how = image, (code, "Invalid" if code == 422 else "Forbidden", message)

    def __call__(self, admission: Admission) -> RefusedError | None:
        if (admission.kind.plural, admission.operation) != ("jobs", "CREATE"):
            return None
        image = admission.new["spec"]["template"]["spec"]["containers"][0]["image"]
        return RefusedError(*self._how) if image == self._image else None

    def begin(self, world: World) -> None:
        world.server.admission.append(self)

    def end(self, world: World) -> None:
        world.server.admission.remove(self)


def _story(steps: Iterable[Step], *objects: Json) -> tuple[list[Step], tuple[Json, ...]]:
    return list(steps), objects


webhook, quota = Refusal(), Refusal(code=403, message='jobs.batch "x" is forbidden: exceeded quota: q, used: 1')

STORIES = {
    "R24: an input that the schema refuses blocks the schedule, with the path; an edit releases it": _story(
        [
            At("09:59", status={"state": "Blocked", "nextScheduleTime": None},
               check=partial(says, kind="Accepted", status="False", reason="InputRejected", part="spec.input.region")),
            At("10:00", want=[]),
            At("10:01", do=lambda world: world.edit("s", input={"region": "us"}), status={"state": "Active"}),
            At("10:05", want=[admitted("10:05")]),
        ],
        a_definition(inputSchema=EU), of_w("mars"),
    ),
    "R4: without its definition the schedule is held, not blocked; whatever comes first": _story(
        [
            At("09:59", status={"state": "Held"}, check=partial(says, kind="Accepted", status="True", reason="Valid")),
            At("10:01", do=lambda world: world.apply(a_definition(inputSchema=EU)), status={"state": "Blocked"}),
            At("10:02", do=lambda world: world.delete("w", plural="workflowdefinitions"), status={"state": "Held"}),
            At("10:03", do=lambda world: world.apply(a_definition(inputSchema=ANY)), status={"state": "Active"}),
            At("10:05", want=[admitted("10:05")]),
        ],
        of_w("mars"),
    ),
    "R24: a schema that changes judges its schedules anew, once": _story(
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:01", do=lambda world: world.apply(a_definition(inputSchema=EU)), status={"state": "Blocked"}),
            At("10:05", want=[]),
            At("10:06", do=lambda world: world.apply(a_definition(inputSchema=ANY)), status={"state": "Active"}),
            At("10:10", want=[admitted("10:10")]),
        ],
        a_definition(inputSchema=ANY), of_w("mars"),
    ),
    "R24: a schema that changed unseen is noticed by the next holder": _story(
        [
            At("10:00", want=[admitted("10:00")]),
            Outage("10:01", "10:02", do=lambda world: world.apply(a_definition(inputSchema=EU))),
            At("10:03", want=[], status={"state": "Blocked"}),
            At("10:05", want=[]),
            Outage("10:06", "10:07", do=lambda world: world.apply(a_definition(inputSchema=ANY))),
            At("10:08", status={"state": "Active"}),
            At("10:10", want=[admitted("10:10")]),
        ],
        a_definition(inputSchema=ANY), of_w("mars"),
    ),
    "Section 1: a schema that is none is the definition's fault; its schedules are held": _story(
        [
            At("09:59", status={"state": "Held"}, settle_seconds=8,
               check=partial(definition_says, status="False", part="spec.inputSchema.items: 7")),
            At("10:00", want=[],
               check=partial(says, kind="ParentEnabled", status="False", reason="WorkflowInvalid", part="inputSchema.items")),
            At("10:01", do=lambda world: world.edit_definition(inputSchema=None), status={"state": "Active"}),
            At("10:05", want=[admitted("10:05")], settle_seconds=8, check=partial(definition_says, status="True")),
        ],
        a_definition(inputSchema={"items": 7}), OF_W,
    ),
    "Section 1: a template that can't be rendered is said at the definition, too": _story(
        [
            At("09:59", settle_seconds=8, status={"state": "Held"},
               check=partial(definition_says, status="False", part="spec.jobTemplate.spec: write an object")),
        ],
        a_definition(jobTemplate={"spec": 7}), OF_W,
    ),
    "R24: a template that would be refused rejects instants, until the webhook is mended": _story(
        [
            At("09:58:05", check=partial(expect, asked=1)),
            At("10:00", want=[rejected("10:00")], ends=[],
               check=partial(says, kind="RunsHealthy", status="False", reason="TemplateRejected", part="Required value")),
            At("10:04", do=webhook.end),
            At("10:05", want=[rejected("10:05")]),
            At("10:09", check=partial(expect, asked=2)),
            At("10:10", want=[admitted("10:10")], ends=[completed("10:10")], settle_seconds=8,
               check=partial(says, kind="RunsHealthy", status="True", reason="Healthy")),
        ],
        a_schedule(**FIVE),
    ),
    "R24: an edit of a refused schedule has its template asked about at once": _story(
        [
            At("10:00", want=[rejected("10:00")]),
            At("10:01", do=lambda world: (webhook.end(world), world.edit("s", startTime="2026-01-01T00:00:00Z"))),
            At("10:05", want=[admitted("10:05")]),
        ],
        a_schedule(**FIVE),
    ),
    "R24: another template is another question": _story(
        [
            At("10:00", want=[rejected("10:00")]),
            At("10:01", do=lambda world: world.edit("s", jobTemplate=a_template("other:1"))),
            At("10:05", want=[admitted("10:05")], ends=[completed("10:05")], check=partial(expect, asked=2)),
            At("10:06", do=webhook.end),
        ],
        a_schedule(**FIVE),
    ),
}  # fmt: skip
BEGUN_WITH = {name: webhook for name in STORIES if "refused" in name or "another template" in name}


@pytest.mark.parametrize("name", STORIES)
def test_stories(name: str) -> None:
    steps, objects = STORIES[name]
    refusal = BEGUN_WITH.get(name)

    def begin(world: World) -> None:
        if refusal is not None:
            refusal.begin(world)
        for body in objects:
            world.apply(body)

    play([At("09:58", do=begin), *steps], start="09:57:50")


NO_VERDICTS = {
    "a quota that is used up": Refusal(code=403, message='jobs.batch "x" is forbidden: exceeded quota: q, used: 1'),
    "a webhook that has side effects": Refusal(code=400, message='admission webhook "a.b" does not support dry run'),
    "a busy server": Refusal(code=500, message="etcdserver: request timed out"),
}


@pytest.mark.parametrize("name", NO_VERDICTS)
def test_what_is_no_verdict_admits(name: str) -> None:
    """R24: only a refusal for good is one; what is not known is admitted."""
    refusal = NO_VERDICTS[name]
    play(
        [
            At("09:58", do=lambda world: (refusal.begin(world), world.apply(a_schedule(**FIVE)))),
            At("09:59", check=lambda world: _asked(world, at_least=1)),
            At("09:59:50", do=refusal.end),
            At("10:00", want=[admitted("10:00")], ends=[completed("10:00")]),
        ],
        start="09:57:50",
    )


def _asked(world: World, *, at_least: int) -> None:
    assert dry_runs(world) >= at_least


def test_one_question_for_each_template_and_namespace() -> None:
    """R24: not for each schedule, and again only for a new leader."""
    templates = [
        a_schedule("t1", jobTemplate=a_template("other:1"), **FIVE),
        a_schedule("n1", namespace="elsewhere", **FIVE),
    ]
    play(
        [
            At("09:59:55", check=partial(expect, asked=3)),
            At("10:20", check=partial(expect, asked=3)),
            Crash("10:20:10"),
            At("10:21", check=partial(expect, asked=6)),
        ],
        *(a_schedule(f"s{number}", **FIVE) for number in range(20)),
        *templates,
        a_definition(),
        a_schedule("d1", workflow="w", **FIVE),
    )


def test_a_run_gets_what_its_record_says() -> None:
    """R23: bindings are resolved when an instant is admitted; a successor that makes the Job resolves nothing."""
    bindings = [
        {"name": "day", "occurrenceField": "scheduledTime"},
        {"name": "since", "occurrenceField": "lastSuccessfulTime"},
        {"name": "me", "occurrenceField": "name"},
    ]
    seen: list[Json] = []

    def compare(world: World) -> None:
        for record in world.records()[1:]:
            job = world.job_of(record)
            assert job is not None
            given = job["spec"]["template"]["metadata"]["annotations"][ANNOTATION_INPUT]
            assert given == record["spec"]["inputJSON"]
            seen.append(json.loads(given))

    play(
        [
            At("10:00", want=[admitted("10:00")], ends=[completed("10:00")]),
            At("10:04", do=quota.begin),
            At("10:05", want=[admitted("10:05")], settle_seconds=1),
            Crash("10:05:02"),
            At("10:05:06", do=quota.end, settle_seconds=0.1),
            At("10:05:45", ends=[completed("10:05")], settle_seconds=8, check=compare),
        ],
        a_schedule(**FIVE, input={"a": "$(X)"}, inputFrom=bindings),
        start="09:58",
    )
    assert [each["day"] for each in seen] == ["2026-03-02T10:00:00Z", "2026-03-02T10:05:00Z"]
    assert seen[0]["since"] is None
    assert seen[1]["since"].startswith("2026-03-02T10:00:0")
    assert all(each["me"].endswith(f"{number:09d}") for number, each in enumerate(seen, start=2))


def test_inputs_are_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    """K-096: nor put into the message of a record, which events repeat."""
    caplog.set_level("DEBUG")
    secret = "s3cr3t-value"
    world = play(
        [
            At("10:00", want=[admitted("10:00")]),
            At("10:01", do=lambda world: world.apply(a_definition(inputSchema=EU)), status={"state": "Blocked"}),
        ],
        a_definition(inputSchema=ANY),
        of_w(secret),
        start="09:58",
    )
    assert secret not in caplog.text
    assert all(secret not in json.dumps(record.__dict__, default=str) for record in caplog.records)
    assert all(secret not in (record["spec"].get("message") or "") for record in world.records())
