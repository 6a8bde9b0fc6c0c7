"""What the real API server takes and refuses: the schemas, and the policies that the log rests on.

Rows are dry runs where nothing has to be stored. The operator is impersonated together with an all-powerful group, so
that what refuses is the policy under test and never a missing right.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from workflow_schedules.api import names
from workflow_schedules.cli.documents import Document
from workflow_schedules.cli.validate import problems_of

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = "workflow-schedules-system"
OPERATOR = (f"--as=system:serviceaccount:{SYSTEM}:workflow-schedules", "--as-group=system:masters")
COLLECTOR = ("--as=system:serviceaccount:kube-system:generic-garbage-collector", "--as-group=system:masters")
NAMESPACES = ("--as=system:serviceaccount:kube-system:namespace-controller", "--as-group=system:masters")

Kubectl = Callable[..., Any]
Object = dict[str, Any]

TEMPLATE: Object = {
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "busybox"}]}}}
}
CRON: Object = {"workflowRef": {"name": "hello"}, "schedule": "*/5 * * * *"}
UNION: Object = {"workflowRef": {"name": "hello"}}
ONCE: Object = {"jobTemplate": TEMPLATE, "runOnceTime": "2099-01-01T00:00:00Z"}


def an_object(kind: str, name: str, spec: Object, **metadata: object) -> Object:
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def is_valid(body: Object) -> bool:
    """Tell whether `kubectl wfs validate` finds nothing wrong with an object."""
    return not problems_of(Document(body=body, file="f", lines={}))


def without(spec: Object, *fields: str) -> Object:
    return {key: value for key, value in spec.items() if key not in fields}


@pytest.fixture(scope="session")
def ask(kubectl: Kubectl) -> Kubectl:
    """kubectl as administrator; a refusal is an answer."""
    return partial(kubectl, check=False)


class Case(NamedTuple):
    name: str
    spec: Object
    want: tuple[str, ...] = ()
    """Parts of the refusal; none: accepted."""


def check(done: Any, want: tuple[str, ...]) -> None:  # noqa: ANN401 - whatever the fixture's process type is
    if not want:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode != 0, "accepted"
    for part in want:
        assert part in done.stderr


SCHEDULES = [
    Case("cron and a reference", CRON),
    Case("one instant and an inline template", ONCE),
    Case("a cron of 9 characters", CRON | {"schedule": "* * * * *"}),
    Case("a cron of 120 characters", CRON | {"schedule": "* * * * 0" + ",0" * 55 + " "}),
    Case("8 characters", CRON | {"schedule": "* * * * "}, ("spec.schedule", "at least 9 chars")),
    Case("121 characters", CRON | {"schedule": "* * * * 0" + ",0" * 56}, ("spec.schedule", "120")),
    Case("an empty expression (K-071)", CRON | {"schedule": ""}, ("spec.schedule", "exactly five fields")),
    Case("blanks (K-071)", CRON | {"schedule": " " * 9}, ("spec.schedule", "exactly five fields")),
    Case(
        "null is no expression (K-071)",
        CRON | {"schedule": None},
        ("none of schedule, schedules and runOnceTime are set",),
    ),
    Case("a macro", CRON | {"schedule": "@every-minute"}, ("@every-minute", "has not exactly five fields")),
    Case("seconds", CRON | {"schedule": "0 0 * * * *"}, ("spec.schedule", "0 0 * * * *", "five fields", "seconds")),
    Case("a zone inside", CRON | {"schedule": "TZ=UTC 0 0 * * *"}, ("spec.schedule", "use timeZone")),
    Case(
        "no trigger",
        without(CRON, "schedule"),
        ("none of schedule, schedules and runOnceTime are set: give exactly one",),
    ),
    Case(
        "two triggers",
        CRON | ONCE | {"jobTemplate": None},
        ("several of schedule, schedules and runOnceTime are set: give exactly one",),
    ),
    Case("nothing to run", without(CRON, "workflowRef"), ("neither workflowRef nor jobTemplate is set",)),
    Case("two things to run", CRON | {"jobTemplate": TEMPLATE}, ("workflowRef and jobTemplate are both set",)),
    Case("a reference without name", CRON | {"workflowRef": {}}, ("spec.workflowRef.name", "Required value")),
    Case("a reference of an empty name", CRON | {"workflowRef": {"name": ""}}, ("spec.workflowRef.name",)),
    Case("an instant with an offset", ONCE | {"runOnceTime": "2099-01-01T00:00:00.5+08:00"}),
    Case("R7: no offset", ONCE | {"runOnceTime": "2099-01-01T00:00:00"}, ("2099-01-01T00:00:00", "explicit offset")),
    Case("a date", ONCE | {"runOnceTime": "2099-01-01"}, ("spec.runOnceTime", "explicit offset")),
    Case("month 13", ONCE | {"runOnceTime": "2099-13-01T00:00:00Z"}, ("spec.runOnceTime", "explicit offset")),
    Case("an empty instant", ONCE | {"runOnceTime": ""}, ("spec.runOnceTime",)),
    Case("a zone", CRON | {"timeZone": "Asia/Shanghai"}),
    Case("an empty zone", CRON | {"timeZone": ""}, ("spec.timeZone", "at least 1 chars")),
    Case("a zone of 101 characters", CRON | {"timeZone": "a" * 101}, ("spec.timeZone", "100")),
    Case("Allow with a limit", CRON | {"concurrencyPolicy": "Allow", "maxActiveRuns": 100}),
    Case("Allow without one", CRON | {"concurrencyPolicy": "Allow"}, ("spec.maxActiveRuns", "Required", "1 to 100")),
    Case(
        "a limit without Allow",
        CRON | {"maxActiveRuns": 1},
        ("spec.maxActiveRuns: Forbidden", "this is Forbid", "set concurrencyPolicy: Allow"),
    ),
    Case("no slot", CRON | {"concurrencyPolicy": "Allow", "maxActiveRuns": 0}, ("spec.maxActiveRuns", "0")),
    Case("101 slots", CRON | {"concurrencyPolicy": "Allow", "maxActiveRuns": 101}, ("spec.maxActiveRuns", "101")),
    Case("unknown policy", CRON | {"concurrencyPolicy": "Maybe"}, ("Maybe", '"Forbid", "Allow"')),
    Case("unknown misfire policy", CRON | {"misfirePolicy": "Never"}, ("Never", '"Skip", "Latest"')),
    Case("Latest", CRON | {"misfirePolicy": "Latest"}),
    Case("a deadline of 5 s", CRON | {"startingDeadlineSeconds": 5}),
    Case("a deadline of 4 s", CRON | {"startingDeadlineSeconds": 4}, ("spec.startingDeadlineSeconds", "4", "5")),
    Case("a union", UNION | {"schedules": ["0 9 * * mon-fri", "0 12 * * sat"]}),
    Case("ten expressions", UNION | {"schedules": ["* * * * *"] * 10}),
    Case("eleven", UNION | {"schedules": ["* * * * *"] * 11}, ("spec.schedules", "11", "at most 10 items")),
    Case("an empty union", UNION | {"schedules": []}, ("spec.schedules", "schedules is empty: write one to ten")),
    Case(
        "a macro in a union", UNION | {"schedules": ["0 9 * * *", "@every-day"]}, ("spec.schedules[1]", "five fields")
    ),
    Case("too short in a union", UNION | {"schedules": ["* * * *"]}, ("spec.schedules[0]", "9")),
    Case("a union and an expression", CRON | {"schedules": ["* * * * *"]}, ("several of schedule, schedules and",)),
    Case(
        "a union and an instant",
        UNION | ONCE | {"jobTemplate": None, "schedules": ["* * * * *"]},
        ("several of schedule, schedules and",),
    ),
    Case("left out in a gap", CRON | {"skippedTimePolicy": "Skip", "repeatedTimePolicy": "First"}),
    Case("unknown gap policy", CRON | {"skippedTimePolicy": "Both"}, ("spec.skippedTimePolicy", '"NextValid", "Skip"')),
    Case("unknown fold policy", CRON | {"repeatedTimePolicy": "Skip"}, ("spec.repeatedTimePolicy", '"Both", "First"')),
    Case("dates", CRON | {"excludeDates": ["2026-12-25", "2028-02-29"]}),
    Case("400 dates", CRON | {"excludeDates": ["2026-12-25"] * 400}),
    Case("401 dates", CRON | {"excludeDates": ["2026-12-25"] * 401}, ("spec.excludeDates", "at most 400 items")),
    Case("a date and time", CRON | {"excludeDates": ["2026-12-25T00:00:00Z"]}, ("spec.excludeDates[0]", "10")),
    Case(
        "month 13 of a date",
        CRON | {"excludeDates": ["2026-12-25", "2026-13-01"]},
        ("excludeDates[1]", "is no date: write"),
    ),
    Case("validity", CRON | {"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-01-01T08:00:01+08:00"}),
    Case("only an end", CRON | {"endTime": "2026-01-01T00:00:00Z"}),
    Case("a start without offset", CRON | {"startTime": "2026-01-01T00:00:00"}, ("spec.startTime", "date-time")),
    Case(
        "the end before the start",
        CRON | {"startTime": "2026-01-02T00:00:00Z", "endTime": "2026-01-01T00:00:00Z"},
        ("spec.endTime", "endTime is not later than startTime"),
    ),
    Case(
        "the end at the start, in another zone",
        CRON | {"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-01-01T08:00:00+08:00"},
        ("spec.endTime", "endTime is not later than startTime"),
    ),
    Case("no jitter", CRON | {"maxJitterSeconds": 0}),
    Case("a day of jitter", CRON | {"maxJitterSeconds": 86400}),
    Case("more", CRON | {"maxJitterSeconds": 86401}, ("spec.maxJitterSeconds", "86401", "86400")),
    Case(
        "negative jitter",
        CRON | {"maxJitterSeconds": -1},
        ("spec.maxJitterSeconds", "-1", "greater than or equal to 0"),
    ),
    Case("half a second of jitter", CRON | {"maxJitterSeconds": 0.5}, ("spec.maxJitterSeconds", "integer")),
    Case("suspend", CRON | {"suspend": True}, ("spec.suspend: Forbidden: use enabled or pause",)),
    Case("suspend: false", CRON | {"suspend": False}, ("use enabled or pause",)),
    Case("an object as input", CRON | {"input": {"a": [1, None]}}),
    Case("a list as input", CRON | {"input": [1]}, ("spec.input", "object")),
    Case("an unknown field", CRON | {"cron": "x"}, ('unknown field "spec.cron"',)),
    Case(
        "bound keys",
        CRON | {"inputFrom": [{"name": "a", "occurrenceField": "name"}, {"name": "b", "occurrenceField": "cause"}]},
    ),
    Case(
        "a key bound twice",
        CRON | {"inputFrom": [{"name": "a", "occurrenceField": "name"}, {"name": "a", "occurrenceField": "cause"}]},
        ("spec.inputFrom[1]", "Duplicate"),
    ),
    Case(
        "a key bound to nothing known",
        CRON | {"inputFrom": [{"name": "a", "occurrenceField": "uid"}]},
        ("spec.inputFrom[0].occurrenceField", '"scheduledTime"'),
    ),
    Case(
        "33 bindings",
        CRON | {"inputFrom": [{"name": f"k{n}", "occurrenceField": "name"} for n in range(33)]},
        ("spec.inputFrom", "at most 32 items"),
    ),
    Case("a pause", CRON | {"pause": {"reason": "on call", "untilTime": "2099-01-01T08:00:00+08:00"}}),
    Case("a pause without a word", CRON | {"pause": {}}),
    Case("a pause of a switch", CRON | {"pause": True}, ("spec.pause", "object")),
    Case("a long reason", CRON | {"pause": {"reason": "x" * 1025}}, ("spec.pause.reason", "1024")),
    Case("a pause without offset", CRON | {"pause": {"untilTime": "2099-01-01T08:00:00"}}, ("spec.pause.untilTime",)),
    Case("a pause of an unknown field", CRON | {"pause": {"until": "x"}}, ('unknown field "spec.pause.until"',)),
    Case("budgets", CRON | {"activeDeadlineSeconds": 1, "startTimeoutSeconds": 1}),
    Case("no budget", CRON | {"activeDeadlineSeconds": 0}, ("spec.activeDeadlineSeconds", "0")),
    Case("no time to start", CRON | {"startTimeoutSeconds": 0}, ("spec.startTimeoutSeconds", "0")),
    Case("limits", CRON | {"runLimit": 1, "pauseAfterFailures": 1}),
    Case("no run", CRON | {"runLimit": 0}, ("spec.runLimit", "0")),
    Case("no failure", CRON | {"pauseAfterFailures": 0}, ("spec.pauseAfterFailures", "0")),
    Case(
        "no history",
        CRON | {"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0, "occurrenceHistoryLimit": 0},
    ),
    Case("a negative history", CRON | {"failedJobsHistoryLimit": -1}, ("spec.failedJobsHistoryLimit", "-1")),
    Case("a long history", CRON | {"occurrenceHistoryLimit": 10001}, ("spec.occurrenceHistoryLimit", "10000")),
    Case("no catch-up", CRON | {"maxCatchUpRuns": 0}, ("spec.maxCatchUpRuns", "0")),
    Case("deleted with it", CRON | {"deletionPolicy": "Delete"}),
    Case("unknown deletion policy", CRON | {"deletionPolicy": "Orphan"}, ("Orphan", '"Retain", "Delete"')),
]


@pytest.mark.parametrize("case", SCHEDULES, ids=lambda case: case.name)
def test_schedules_at_the_door(ask: Kubectl, namespace: str, case: Case) -> None:
    body = an_object(names.KIND_SCHEDULE, "row", case.spec)
    check(ask("create", "-n", namespace, "--dry-run=server", "-f", "-", input=json.dumps(body)), case.want)
    assert is_valid(body) is not bool(case.want), "what the API server takes, and nothing else"


DEFINITIONS = [
    Case("a template", {"jobTemplate": TEMPLATE, "description": "x" * 1024}),
    Case("no template", {"enabled": True}, ("spec.jobTemplate", "Required")),
    Case("a long description", {"jobTemplate": TEMPLATE, "description": "x" * 1025}, ("spec.description", "1024")),
    Case("suspend", {"jobTemplate": TEMPLATE, "suspend": True}, ("spec.suspend: Forbidden: use enabled",)),
    Case("a schema of inputs", {"jobTemplate": TEMPLATE, "inputSchema": {"type": "object", "$defs": {"a": True}}}),
    Case("a schema that is a list", {"jobTemplate": TEMPLATE, "inputSchema": []}, ("spec.inputSchema", "object")),
    Case("holding", {"jobTemplate": TEMPLATE, "onDisable": "HoldSchedules", "maxActiveRuns": 1}),
    Case(
        "unknown on disable",
        {"jobTemplate": TEMPLATE, "onDisable": "Delete"},
        ("spec.onDisable", '"DisableSchedules", "HoldSchedules"'),
    ),
    Case("no place", {"jobTemplate": TEMPLATE, "maxActiveRuns": 0}, ("spec.maxActiveRuns", "0")),
    Case("an unknown field", {"jobTemplate": TEMPLATE, "schedule": "x"}, ('unknown field "spec.schedule"',)),
]


@pytest.mark.parametrize("case", DEFINITIONS, ids=lambda case: case.name)
def test_definitions_at_the_door(ask: Kubectl, namespace: str, case: Case) -> None:
    body = an_object(names.KIND_DEFINITION, "row", case.spec)
    check(ask("create", "-n", namespace, "--dry-run=server", "-f", "-", input=json.dumps(body)), case.want)
    assert is_valid(body) is not bool(case.want), "what the API server takes, and nothing else"


def test_applying_the_samples_twice_changes_nothing(ask: Kubectl, namespace: str) -> None:
    samples = str(ROOT / "manifests" / "samples")
    first = ask("apply", "-n", namespace, "-f", samples)
    assert first.returncode == 0, first.stderr
    second = ask("apply", "-n", namespace, "-f", samples)
    assert {line.rpartition(" ")[2] for line in second.stdout.splitlines()} == {"unchanged"}
    assert ask("diff", "-n", namespace, "-f", samples).returncode == 0


def test_a_schedule_is_born_disabled(ask: Kubectl, namespace: str) -> None:
    body = an_object(names.KIND_SCHEDULE, "born", CRON)
    made = ask("create", "-n", namespace, "-f", "-", "-o", "json", input=json.dumps(body))
    assert json.loads(made.stdout)["spec"] == CRON | {
        "timeZone": "UTC",
        "enabled": False,
        "concurrencyPolicy": "Forbid",
        "misfirePolicy": "Skip",
        "skippedTimePolicy": "NextValid",
        "repeatedTimePolicy": "Both",
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        "occurrenceHistoryLimit": 100,
        "deletionPolicy": "Retain",
    }


def stored_schedule(ask: Kubectl, namespace: str) -> None:
    body = an_object(names.KIND_SCHEDULE, "row", CRON)
    check(ask("create", "-n", namespace, "-f", "-", input=json.dumps(body)), ())


class Lease(NamedTuple):
    epoch: int
    holder: str


@pytest.fixture(scope="module")
def lease(ask: Kubectl) -> Iterator[Lease]:
    """The Lease that the fence reads, held by this test; free again at the end. No operator runs meanwhile."""
    spec = {"holderIdentity": "test", "leaseTransitions": 7, "leaseDurationSeconds": 15}
    metadata = {"name": "workflow-schedules", "namespace": SYSTEM}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    ask("create", "-f", "-", input=json.dumps(body))
    patch = ("patch", "lease", "-n", SYSTEM, "workflow-schedules", "--type=merge", "-p")
    ask(*patch, json.dumps({"spec": {"holderIdentity": "test"}}))
    found = json.loads(ask("get", "lease", "-n", SYSTEM, "workflow-schedules", "-o", "json").stdout)["spec"]
    current = Lease(found["leaseTransitions"], found["holderIdentity"])
    probe = json.dumps(a_record(current, "default"))
    give_up_at = time.monotonic() + 90
    while ask("create", *OPERATOR, "--dry-run=server", "-f", "-", input=probe).returncode:
        assert time.monotonic() < give_up_at, "the fence never saw the Lease"
    yield current
    ask(*patch, json.dumps({"spec": {"holderIdentity": None}}))


def a_record(lease: Lease, namespace: str, **changes: object) -> Object:
    spec = {
        "scheduleRef": {"name": "row", "uid": "u"},
        "sequence": 1,
        "format": 1,
        "cause": "Scheduled",
        "decision": "Admitted",
        "generation": 1,
        "scheduledTime": "2026-01-01T00:00:00Z",
        "reason": "Due",
        "open": [1],
        "fencingEpoch": lease.epoch,
        "writer": lease.holder,
    }
    name = names.record_name("row", "u", 1)
    labels = {names.LABEL_SCHEDULE_UID: "u"}
    return an_object(names.KIND_OCCURRENCE, name, spec | changes, namespace=namespace, labels=labels)


def a_job(lease: Lease, namespace: str, **metadata: object) -> Object:
    annotations = {names.ANNOTATION_EPOCH: str(lease.epoch), names.ANNOTATION_WRITER: lease.holder}
    about = {
        "name": names.record_name("row", "u", 1),
        "namespace": namespace,
        "labels": {names.LABEL_SCHEDULE_UID: "u"},
        "annotations": annotations,
        **metadata,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": TEMPLATE["spec"]}


def dry_create(ask: Kubectl, body: Object, *who: str) -> Any:  # noqa: ANN401 - whatever the fixture returns
    return ask("create", *who, "--dry-run=server", "-f", "-", input=json.dumps(body))


def stored_record(ask: Kubectl, lease: Lease, namespace: str, **changes: object) -> str:
    body = a_record(lease, namespace, **changes)
    made = ask("create", *OPERATOR, "-f", "-", input=json.dumps(body))
    assert made.returncode == 0, made.stderr
    name: str = body["metadata"]["name"]
    return name


def patch(ask: Kubectl, resource: str, namespace: str, change: Object, *arguments: str) -> Any:  # noqa: ANN401
    return ask("patch", resource, "-n", namespace, "--type=merge", "-p", json.dumps(change), *arguments)


def test_a_create_returns_what_was_sent(ask: Kubectl, namespace: str, lease: Lease) -> None:
    """P18: no default and no pruning touches a record."""
    body = a_record(lease, namespace, totals={"admitted": 1, "lastScheduleTime": "2026-01-01T00:00:00Z"}, waiting=[])
    made = ask("create", *OPERATOR, "-f", "-", "-o", "json", input=json.dumps(body))
    assert json.loads(made.stdout)["spec"] == body["spec"]


@pytest.mark.parametrize(
    ("wrong", "want"),
    [
        ({"fencingEpoch": 0}, "fence: this write has epoch 0 of writer"),
        ({"fencingEpoch": 1_000_000}, "fence: this write has epoch 1000000 of writer"),
        ({"writer": "other"}, "of writer 'other', the Lease has epoch"),
    ],
    ids=str,
)
def test_the_fence_refuses_records(ask: Kubectl, namespace: str, lease: Lease, wrong: Object, want: str) -> None:
    """P14: equality, not order."""
    refused = dry_create(ask, a_record(lease, namespace, **wrong), *OPERATOR)
    check(refused, ("workflow-schedules-fence", "Forbidden", want))


def test_the_fence_refuses_status(ask: Kubectl, namespace: str, lease: Lease) -> None:
    name = stored_record(ask, lease, namespace)
    stored_schedule(ask, namespace)
    own = {"status": {"fencingEpoch": lease.epoch, "writer": lease.holder}}
    for target in (f"scheduleoccurrence/{name}", "workflowschedule/row"):
        for stale in ({"fencingEpoch": lease.epoch - 1}, {"writer": "other"}, {"writer": None}):
            change = {"status": own["status"] | stale}
            refused = patch(ask, target, namespace, change, "--subresource=status", *OPERATOR)
            check(refused, ("workflow-schedules-fence", "fence: this write has epoch"))
        check(patch(ask, target, namespace, own, "--subresource=status", *OPERATOR), ())


def test_the_fence_refuses_jobs(ask: Kubectl, namespace: str, lease: Lease) -> None:
    check(dry_create(ask, a_job(lease, namespace), *OPERATOR), ())
    for stale in (Lease(lease.epoch - 1, lease.holder), Lease(lease.epoch, "other")):
        check(dry_create(ask, a_job(stale, namespace), *OPERATOR), ("workflow-schedules-fence", "fence: this"))
    check(dry_create(ask, a_job(lease, namespace, annotations={}), *OPERATOR), ("epoch none of writer ''",))


def test_the_operator_can_not_slip_past_the_fence(ask: Kubectl, namespace: str, lease: Lease) -> None:
    """The fence selects by label, so the label is not optional."""
    unlabelled = a_record(lease, namespace)
    del unlabelled["metadata"]["labels"]
    check(dry_create(ask, unlabelled, *OPERATOR), ("the fence selects by it",))
    check(dry_create(ask, a_job(lease, namespace, labels={}), *OPERATOR), ("the fence selects by it",))


def test_nobody_else_makes_records_or_their_jobs(ask: Kubectl, namespace: str, lease: Lease) -> None:
    """P17, K-095: not even the administrator."""
    check(dry_create(ask, a_record(lease, namespace)), ("made by the operator only", "spec.cause 'Scheduled'"))
    check(dry_create(ask, a_job(lease, namespace, labels={})), ("metadata.name", "reserved", "choose another"))
    check(dry_create(ask, a_job(lease, namespace, name="mine")), ("schedule-uid 'u'", "remove it"))
    check(dry_create(ask, a_job(lease, namespace, name="mine", labels={}, annotations={})), ())


@pytest.mark.parametrize("user", [(), OPERATOR, COLLECTOR], ids=["admin", "operator", "collector"])
def test_records_are_immutable_for_everyone(ask: Kubectl, namespace: str, lease: Lease, user: tuple[str, ...]) -> None:
    name = stored_record(ask, lease, namespace)
    change = {"spec": {"decision": "SkippedMisfire"}}
    check(patch(ask, f"scheduleoccurrence/{name}", namespace, change, *user), ("immutable",))


def test_labels_and_owners_of_records_are_the_operators(ask: Kubectl, namespace: str, lease: Lease) -> None:
    target = f"scheduleoccurrence/{stored_record(ask, lease, namespace)}"
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
    for change in ({"labels": {"x": "y"}}, {"labels": None}, {"ownerReferences": [owner]}, {"finalizers": ["x/y"]}):
        check(patch(ask, target, namespace, {"metadata": change}), ("written by the operator only",))
    check(patch(ask, target, namespace, {"metadata": {"annotations": {"x": "y"}}}), ())


def test_status_is_the_operators(ask: Kubectl, namespace: str, lease: Lease) -> None:
    """R30."""
    name = stored_record(ask, lease, namespace)
    stored_schedule(ask, namespace)
    change = {"status": {"fencingEpoch": lease.epoch, "writer": lease.holder}}
    for target in (f"scheduleoccurrence/{name}", "workflowschedule/row"):
        refused = patch(ask, target, namespace, change, "--subresource=status")
        check(refused, ("is written by the operator only", "change the WorkflowSchedule's spec instead"))


def test_who_deletes_records(ask: Kubectl, namespace: str, lease: Lease) -> None:
    """P17, R30."""
    target = f"scheduleoccurrence/{stored_record(ask, lease, namespace)}"
    check(
        ask("delete", "-n", namespace, target, "--dry-run=server"),
        ("kubectl annotate occ", "workflow-schedules.dev/cancel=why"),
    )
    for user in (OPERATOR, COLLECTOR, NAMESPACES):
        check(ask("delete", "-n", namespace, target, "--dry-run=server", *user), ())


FINAL_ROWS = [
    ("Running", "Completed", True),
    ("Interrupted", "Running", True),
    ("Completed", "Completed", True),
    ("Completed", "Failed", False),
    ("Failed", "Running", False),
    ("Exhausted", None, False),
    ("Cancelled", "Completed", False),
]


@pytest.mark.parametrize(("before", "after", "accepted"), FINAL_ROWS)
def test_a_final_outcome_never_changes(
    ask: Kubectl, namespace: str, lease: Lease, before: str, after: str | None, accepted: bool
) -> None:
    """I7: a late Running overwrites nothing."""
    target = f"scheduleoccurrence/{stored_record(ask, lease, namespace)}"
    stamp = {"fencingEpoch": lease.epoch, "writer": lease.holder}

    def write(outcome: str | None) -> Any:  # noqa: ANN401 - whatever the fixture returns
        change = {"status": stamp | {"outcome": outcome}}
        return patch(ask, target, namespace, change, "--subresource=status", *OPERATOR)

    check(write(before), ())
    check(write(after), () if accepted else ("status.outcome", f"status.outcome {before} is final and never changes"))


def test_head_and_watermark_never_go_back(ask: Kubectl, namespace: str, lease: Lease) -> None:
    """P7."""
    stored_schedule(ask, namespace)
    stamp = {"fencingEpoch": lease.epoch, "writer": lease.holder}
    noon = {"logHead": 4, "consumedThroughTime": "2026-01-01T12:00:00Z"}

    def write(change: Object) -> Any:  # noqa: ANN401 - whatever the fixture returns
        status = {"status": stamp | change}
        return patch(ask, "workflowschedule/row", namespace, status, "--subresource=status", *OPERATOR)

    check(write(noon), ())
    check(write({"logHead": 3}), ("status.logHead never goes back",))
    check(write({"logHead": None}), ("status.logHead never goes back and never vanishes",))
    check(write({"consumedThroughTime": "2026-01-01T12:00:00+08:00"}), ("status.consumedThroughTime never goes back",))
    check(write({"consumedThroughTime": None}), ("status.consumedThroughTime",))
    check(write({"logHead": 5, "consumedThroughTime": "2026-01-01T12:00:01Z"}), ())


REQUESTS = [
    Case("run now", {"scheduleRef": {"name": "s"}, "cause": "Manual"}),
    Case("backfill", {"scheduleRef": {"name": "s"}, "cause": "Backfill", "scheduledTime": "2026-01-01T00:00:00Z"}),
    Case("backfill of nothing", {"scheduleRef": {"name": "s"}, "cause": "Backfill"}, ("spec.scheduledTime", "needs")),
    Case(
        "run now, then",
        {"scheduleRef": {"name": "s"}, "cause": "Manual", "scheduledTime": "2026-01-01T00:00:00Z"},
        ("spec.scheduledTime: Forbidden",),
    ),
    Case("a decision", {"scheduleRef": {"name": "s"}, "cause": "Manual", "decision": "Admitted"}, ("remove the rest",)),
    Case("a UID", {"scheduleRef": {"name": "s", "uid": "u"}, "cause": "Manual"}, ("remove the rest",)),
    Case("own input", {"scheduleRef": {"name": "s"}, "cause": "Manual", "input": {"a": [1, None]}}),
    Case("a list as input", {"scheduleRef": {"name": "s"}, "cause": "Manual", "input": [1]}, ("spec.input", "object")),
    Case(
        "a resolved input",
        {"scheduleRef": {"name": "s"}, "cause": "Manual", "inputJSON": "{}"},
        ("scheduledTime and input only", "remove the rest"),
    ),
    Case("a template", {"scheduleRef": {"name": "s"}, "cause": "Manual", "templateHash": "x"}, ("remove the rest",)),
    Case("an epoch", {"scheduleRef": {"name": "s"}, "cause": "Manual", "fencingEpoch": 7}, ("remove the rest",)),
    Case("no schedule", {"cause": "Manual"}, ("spec.scheduleRef", "Required")),
    Case("unknown cause", {"scheduleRef": {"name": "s"}, "cause": "Why"}, ("spec.cause", "Why", '"Manual"')),
]


@pytest.mark.parametrize("case", REQUESTS, ids=lambda case: case.name)
def test_requests_are_small(ask: Kubectl, namespace: str, case: Case) -> None:
    """R27."""
    body = an_object(names.KIND_OCCURRENCE, "request", case.spec, namespace=namespace)
    check(dry_create(ask, body), case.want)
    assert is_valid(body) is not bool(case.want), "what the API server takes, and nothing else"


@pytest.mark.parametrize(
    ("name", "want"),
    [("a" * 63, ()), ("a" * 64, ("becomes the name of a Job", "at most 63")), ("a.b", ("becomes the name of a Job",))],
    ids=["63", "64", "a dot"],
)
def test_the_name_of_a_request_is_one_for_a_job(ask: Kubectl, namespace: str, name: str, want: tuple[str, ...]) -> None:
    """R27."""
    body = an_object(
        names.KIND_OCCURRENCE, name, {"scheduleRef": {"name": "s"}, "cause": "Manual"}, namespace=namespace
    )
    check(dry_create(ask, body), want)
    assert is_valid(body) is not bool(want)


def test_the_operator_resolves_requests_and_nobody_else(ask: Kubectl, namespace: str, lease: Lease) -> None:
    """R27, R30, P14: in status, fenced; the spec stays what was asked for, and the asker may take it back."""
    body = an_object(names.KIND_OCCURRENCE, "asked", {"scheduleRef": {"name": "s"}, "cause": "Manual"})
    check(ask("create", "-n", namespace, "-f", "-", input=json.dumps(body)), ())
    target, stamp = "scheduleoccurrence/asked", {"fencingEpoch": lease.epoch, "writer": lease.holder}
    change = {"status": stamp | {"scheduleUID": "u", "revision": 1, "templateHash": "x", "inputJSON": "{}"}}
    check(patch(ask, target, namespace, change, "--subresource=status"), ("is written by the operator only",))
    stale = {"status": change["status"] | {"fencingEpoch": lease.epoch - 1}}
    check(patch(ask, target, namespace, stale, "--subresource=status", *OPERATOR), ("workflow-schedules-fence",))
    check(patch(ask, target, namespace, change, "--subresource=status", *OPERATOR), ())
    check(patch(ask, target, namespace, {"spec": {"input": {"a": 1}}}), ("immutable",))
    check(dry_create(ask, a_job(lease, namespace, name="asked"), *OPERATOR), ())
    check(ask("delete", "-n", namespace, target, "--dry-run=server"), ())


def test_a_record_has_no_input_of_its_own(ask: Kubectl, namespace: str, lease: Lease) -> None:
    check(dry_create(ask, a_record(lease, namespace, input={}), *OPERATOR), ("spec.input: Forbidden", "inputJSON"))


def test_names_of_the_log_are_reserved(ask: Kubectl, namespace: str, lease: Lease) -> None:
    """R27: by the schema even for the operator, and a record must have one."""
    request = {"scheduleRef": {"name": "s"}, "cause": "Manual"}
    labels = {names.LABEL_SCHEDULE_UID: "u"}
    shaped = an_object(names.KIND_OCCURRENCE, "s-0123abcd-000000001", request, namespace=namespace)
    check(dry_create(ask, shaped), ("reserved",))
    unshaped = a_record(lease, namespace)
    unshaped["metadata"] = {"name": "s", "namespace": namespace, "labels": labels}
    check(dry_create(ask, unshaped, *OPERATOR), ("is named by the log",))


def test_columns_and_selectors(ask: Kubectl, namespace: str, lease: Lease) -> None:
    """The reason shown is the run's once there is one, else the decision's."""
    name = stored_record(ask, lease, namespace)
    target = f"scheduleoccurrence/{name}"
    shown = ask("get", "occ", "-n", namespace).stdout.splitlines()
    assert shown[0].split() == ["NAME", "SCHEDULE", "TIME", "CAUSE", "DECISION", "OUTCOME", "REASON", "DURATION", "AGE"]
    assert shown[1].split()[:6] == [name, "row", "2026-01-01T00:00:00Z", "Scheduled", "Admitted", "Due"]
    ended = {"outcome": "Failed", "reason": "JobMissing", "duration": "1m3s"}
    stamp = {"fencingEpoch": lease.epoch, "writer": lease.holder}
    check(patch(ask, target, namespace, {"status": stamp | ended}, "--subresource=status", *OPERATOR), ())
    assert ask("get", "occ", "-n", namespace).stdout.splitlines()[1].split()[5:8] == [
        "Failed",
        "JobMissing",
        "1m3s",
    ]
    for selector in ("status.outcome=Failed,spec.decision=Admitted", "spec.scheduleRef.name=row,spec.cause=Scheduled"):
        found = ask("get", "occ", "-n", namespace, f"--field-selector={selector}", "-o", "name").stdout
        assert found.strip().endswith(name)
    assert name in ask("get", "scheduling", "-n", namespace).stdout


def wide(ask: Kubectl, namespace: str, resource: str) -> tuple[list[str], str]:
    """Return the header and the only row."""
    header, row = ask("get", resource, "-n", namespace, "-o", "wide").stdout.splitlines()
    return header.split(), row


def test_wide_columns_say_why(ask: Kubectl, namespace: str, lease: Lease) -> None:
    """R36: of a schedule the first condition's message that there is; of a record the run's, else the decision's."""
    stored_schedule(ask, namespace)
    stamp = {"fencingEpoch": lease.epoch, "writer": lease.holder}
    assert wide(ask, namespace, "wfs")[0][-3:] == ["LAST-SUCCESS", "LAST-FAILURE", "MESSAGE"]
    messages = {"Accepted": "", "Ready": "", "Paused": "database migration", "Complete": "never"}
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": "Any",
            "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind, message in messages.items()
    ]
    status = {"status": stamp | {"conditions": conditions}}
    check(patch(ask, "workflowschedule/row", namespace, status, "--subresource=status", *OPERATOR), ())
    assert wide(ask, namespace, "wfs")[1].endswith("  database migration")
    span = {"firstTime": "2026-01-01T00:00:00Z", "lastTime": "2026-01-01T02:00:00Z", "count": 3}
    name = stored_record(ask, lease, namespace, span=span, message="three of them")
    header, row = wide(ask, namespace, "occ")
    assert header[-3:] == ["AGE", "COUNT", "MESSAGE"]
    assert row.split()[-4:] == ["3", "three", "of", "them"]
    ended = {"status": stamp | {"outcome": "Failed", "message": "outcome unknown"}}
    check(patch(ask, f"scheduleoccurrence/{name}", namespace, ended, "--subresource=status", *OPERATOR), ())
    assert wide(ask, namespace, "occ")[1].split()[-3:] == ["3", "outcome", "unknown"]
