"""Thousands of schedules of every kind, from a seed; no I/O."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

Json = dict[str, Any]

API_VERSION = "workflow-schedules.dev/v1alpha1"
MANAGER = "workflow-schedules.dev/soak"  # of the Jobs: nobody, so no pods are made and the finisher ends them
NAMESPACES = 8
DEFINITIONS = 4  # in each namespace
MINUTELY = 150  # this many of a run's schedules, at most four in ten
_ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe"]


def namespaces() -> list[str]:
    return [f"soak-{number}" for number in range(NAMESPACES)]


def definitions(random: Random) -> list[Json]:
    """Definitions, half of them with a cap on their runs; one in each namespace holds its schedules while it is off."""
    found = []
    for namespace in namespaces():
        for number in range(DEFINITIONS):
            spec: Json = {"jobTemplate": _template(random)}
            if number % 2:
                spec["maxActiveRuns"] = random.randint(2, 10)
            if number == 0:
                spec["onDisable"] = "HoldSchedules"
            found.append(_object("WorkflowDefinition", namespace, f"d-{number}", spec))
    return found


def schedules(random: Random, count: int, *, now: datetime, minutes: float) -> list[Json]:
    """So many schedules: most are due within the run, some once, some never."""
    return [a_schedule(random, f"s-{number:05d}", count, now=now, minutes=minutes) for number in range(count)]


def a_schedule(random: Random, name: str, count: int, *, now: datetime, minutes: float) -> Json:
    """One schedule, with all of its policies by chance."""
    spec: Json = {"enabled": random.random() > 0.03, **_when(random, count, now=now, minutes=minutes)}
    namespace = random.choice(namespaces())
    if random.random() < 0.3:
        spec["workflowRef"] = {"name": f"d-{random.randrange(DEFINITIONS)}"}
    else:
        spec["jobTemplate"] = _template(random)
    return _object("WorkflowSchedule", namespace, name, {**spec, **policies(random), **_extras(random)})


def policies(random: Random) -> Json:
    """What happens when runs meet, or can't start in time."""
    overlap = random.choice(["Forbid", "Forbid", "Allow", "Replace"])
    misfire = random.choice(["Skip", "Latest", "All"])
    deadline = random.choice([None, None, 20, 45, 120])
    return {
        "concurrencyPolicy": overlap,
        "maxActiveRuns": random.randint(1, 3) if overlap == "Allow" else None,
        "misfirePolicy": misfire,
        "maxCatchUpRuns": random.randint(1, 5) if misfire == "All" else None,
        "startingDeadlineSeconds": deadline,
    }


def _when(random: Random, count: int, *, now: datetime, minutes: float) -> Json:
    kind = random.random()
    if kind < min(0.4, MINUTELY / count):
        return {"schedule": random.choice(["* * * * *", "*/1 * * * *", "0-59 * * * *"])}
    if kind < 0.44:
        at = now + timedelta(seconds=random.randint(20, max(21, int(minutes * 60))))
        return {"runOnceTime": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
    zone = {"timeZone": random.choice(_ZONES)}
    if kind < 0.7:
        return {"schedule": f"{random.randrange(5)}-59/5 * * * *", **zone}
    if kind < 0.9:
        return {"schedules": [f"{random.randrange(60)} * * * *", f"{random.randrange(60)} */2 * * *"], **zone}
    return {"schedule": "0 0 1 1 *", **zone}


def _extras(random: Random) -> Json:
    """Fields that a few schedules have."""
    chances: list[tuple[float, str, object]] = [
        (0.15, "maxJitterSeconds", random.randint(2, 25)),
        (0.05, "runLimit", random.randint(1, 5)),
        (0.05, "pauseAfterFailures", random.randint(1, 3)),
        (0.1, "startTimeoutSeconds", 30),
        (0.2, "occurrenceHistoryLimit", random.randint(1, 10)),
        (0.2, "successfulJobsHistoryLimit", random.randint(0, 2)),
        (0.2, "deletionPolicy", "Delete"),
        (0.3, "input", {"number": random.randrange(1000)}),
    ]
    return {name: value for chance, name, value in chances if random.random() < chance}


def _template(random: Random) -> Json:
    container = {"name": "main", "image": f"example.invalid/soak:{random.randrange(20)}"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {"spec": {"managedBy": MANAGER, "backoffLimit": 0, "template": {"spec": pod}}}


def _object(kind: str, namespace: str, name: str, spec: Json) -> Json:
    fields = {key: value for key, value in spec.items() if value is not None}
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name},
        "spec": fields,
    }
