"""The schedules and requests of the conformance tier (tests/integration/conformance): what is due, and when.

Everything is due at the same two minutes, or is a run of one instant soon, so that all tests share the same waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from support.cluster_stories import Json
from support.herd import utc
from support.scene import Scene, a_definition, a_request, a_schedule, a_template

ZONE = "Asia/Kolkata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Schedules that are due at two minutes, one after the other."""

    scene: Scene
    first: datetime
    second: datetime

    @property
    def instants(self) -> list[str]:
        return [utc(self.first), utc(self.second)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShots:
    """Schedules of one instant soon, each with a run that ends in its own way."""

    scene: Scene
    at: datetime


def down() -> list[Json]:
    """Schedules whose operator is away when they are due."""
    hour = f"{(datetime.now(UTC) + timedelta(minutes=30)).minute} * * * *"  # none comes due while this is looked at
    return [
        a_schedule("down-skip", schedule="* * * * *"),
        a_schedule("down-latest", schedule="* * * * *", misfirePolicy="Latest"),
        a_schedule("down-all", schedule=hour, misfirePolicy="All", maxCatchUpRuns=3),
        a_schedule("down-deadline", schedule=hour, misfirePolicy="Latest", startingDeadlineSeconds=7200),
        a_schedule("down-too-late", schedule=_hours_ago(2), misfirePolicy="Latest", startingDeadlineSeconds=60),
        a_schedule("down-gone", schedule=hour),
        a_schedule("down-buffered", schedule="* * * * *", misfirePolicy="Latest", is_held=True),
    ]


def _hours_ago(hours: int) -> str:
    return f"0 {(datetime.now(UTC) - timedelta(hours=hours)).hour} * * *"


def definitions() -> list[Json]:
    return [
        a_definition("shared", is_held=True, maxActiveRuns=1),
        a_definition("switched"),
        a_definition("holding", onDisable="HoldSchedules"),
        a_definition("off", enabled=False),
        a_definition(
            "typed",
            inputSchema={"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "maximum": 9}}},
        ),
    ]


def schedules(first: datetime, second: datetime) -> list[Json]:
    both = f"{first.minute},{second.minute} * * * *"
    there = first.astimezone(ZoneInfo(ZONE))

    def due(name: str, **spec: object) -> Json:
        return a_schedule(name, **{"schedule": both, **spec})  # type: ignore[arg-type]

    return [
        due("plain"),
        due("allow", concurrencyPolicy="Allow", maxActiveRuns=2, is_held=True),
        due("forbid", is_held=True),
        due("replace", concurrencyPolicy="Replace", is_held=True),
        due("stuck", startTimeoutSeconds=5, is_held=True),
        due("beside-manual", is_held=True),
        due("disabled", enabled=False),
        due("paused", pause={"reason": "maintenance until noon"}),
        due("resumed", pause={"reason": "for a while"}),
        due("orphan", workflowRef={"name": "not-there"}),
        due("of-disabled", workflowRef={"name": "off"}),
        due("zoned", schedule=f"{there.minute} {there.hour} * * *", timeZone=ZONE),
        due("union", schedule=None, schedules=[f"{first.minute} * * * *", both]),
        due("limited", runLimit=1),
        due("failing", pauseAfterFailures=1, is_held=True),
        due("spread", maxJitterSeconds=8),
        due("excluded", excludeDates=sorted({f"{first:%Y-%m-%d}", f"{second:%Y-%m-%d}"})),
        due("ending", endTime=utc(first + timedelta(seconds=30))),
        due("shared-a", workflowRef={"name": "shared"}),
        due("shared-b", workflowRef={"name": "shared"}),
        due("switched-a", workflowRef={"name": "switched"}),
        due("switched-b", workflowRef={"name": "switched"}),
        due("held", workflowRef={"name": "holding"}),
        due("bad-input", workflowRef={"name": "typed"}, input={"n": 10}),
        due("edited", input={"turn": 1}),
        due("deleted"),
    ]


def kept() -> list[Json]:
    """Schedules without an instant soon, for what people ask for."""
    never = {"schedule": "0 3 1 1 *"}
    exhausted = {"activeDeadlineSeconds": 1, "is_held": True}
    return [
        a_schedule("one-successful", **never, successfulJobsHistoryLimit=1, enabled=False),
        a_schedule("one-failed", **never, **exhausted, failedJobsHistoryLimit=1, enabled=False),  # type: ignore[arg-type]
        a_schedule("blocked", **never),
    ]


def requests() -> list[Json]:
    """Asked for in the same breath as their schedules are made."""
    return [
        a_request("beside", "beside-manual"),
        *(a_request(f"good-{n}", "one-successful") for n in range(2)),
        *(a_request(f"bad-{n}", "one-failed") for n in range(2)),
    ]


def later_requests() -> list[Json]:
    """Asked for after the first minute, so that their Jobs are the newest."""
    return [a_request("good-2", "one-successful"), a_request("bad-2", "one-failed")]


def one_shot_schedules(at: datetime) -> list[Json]:
    """Schedules of one instant, whose runs each end in their own way."""

    def once(name: str, **spec: object) -> Json:
        return a_schedule(name, **{"runOnceTime": utc(at), "startingDeadlineSeconds": 300, **spec})  # type: ignore[arg-type]

    return [
        once("done", input={"city": "Zürich", "n": 3}, inputFrom=[{"name": "at", "occurrenceField": "scheduledTime"}]),
        once("past", runOnceTime="2020-02-29T12:00:00Z"),
        once("exhausted", activeDeadlineSeconds=1, is_held=True),
        once("suspended", jobTemplate=a_template(suspend=True)),
        once("job-deleted", is_held=True),
        once("cancelled", is_held=True),
        once("pinned", is_held=True),
        once("refused", jobTemplate={"spec": {"template": {"spec": {"restartPolicy": "Always", "containers": []}}}}),
        once("unknown-zone", timeZone="Mars/Olympus", runOnceTime=None, schedule="0 0 * * *"),
        once("swept", deletionPolicy="Delete"),
    ]
