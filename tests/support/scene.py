"""A namespace of a real cluster as a test reads it: schedules, records, Jobs, Pods and Events, by the name of the schedule."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.cluster_stories import Json, manifests, until
from support.moment import objects_of_now
from workflow_schedules.api import names
from workflow_schedules.cluster.connection import Connection

Kubectl = Callable[..., Any]

NOWHERE = {"conformance": "no-such-node"}
FINAL = {"Completed", "Failed", "Exhausted", "Cancelled"}


def a_template(*, is_held: bool = False, **job: object) -> Json:
    """A Job template whose Pod completes at once; held, its Pod stays pending, so that the run is unfinished."""
    pod: Json = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1.37"}]}
    if is_held:
        pod["nodeSelector"] = NOWHERE
    return {"spec": {"backoffLimit": 0, "template": {"spec": pod}, **job}}


def a_schedule(name: str, *, is_held: bool = False, **spec: object) -> Json:
    """An enabled schedule; it has an inline template unless `spec` says what to run. None leaves a field out."""
    fields: Json = {"enabled": True, **spec}
    if "workflowRef" not in fields:
        fields.setdefault("jobTemplate", a_template(is_held=is_held))
    given = {key: value for key, value in fields.items() if value is not None}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND_SCHEDULE,
        "metadata": {"name": name},
        "spec": given,
    }


def a_definition(name: str, *, is_held: bool = False, **spec: object) -> Json:
    """A definition; enabled unless `spec` says otherwise."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND_DEFINITION,
        "metadata": {"name": name},
        "spec": {"jobTemplate": a_template(is_held=is_held), **spec},
    }


def a_request(name: str, schedule: str, *, cause: str = "Manual", **spec: object) -> Json:
    """A request to run a schedule."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND_OCCURRENCE,
        "metadata": {"name": name},
        "spec": {"scheduleRef": {"name": schedule}, "cause": cause, **spec},
    }


class View:
    """Everything in the namespace at one moment."""

    def __init__(self, items: list[Json]) -> None:
        self._items = items

    def of_kind(self, kind: str) -> list[Json]:
        """All objects of a kind, in no order."""
        return [item for item in self._items if item["kind"] == kind]

    def _labelled(self, kind: str, schedule: str) -> list[Json]:
        return [
            item
            for item in self.of_kind(kind)
            if item["metadata"].get("labels", {}).get(names.LABEL_SCHEDULE) == schedule
        ]

    def schedule(self, name: str) -> Json:
        """A schedule; its status is empty before the first write, and all of it when there is none of that name."""
        found = [item for item in self.of_kind(names.KIND_SCHEDULE) if item["metadata"]["name"] == name]
        return {"status": {}, **found[0]} if found else {"status": {}}

    def status(self, name: str) -> Json:
        return dict(self.schedule(name)["status"])

    def definition(self, name: str) -> Json:
        return next(item for item in self.of_kind(names.KIND_DEFINITION) if item["metadata"]["name"] == name)

    def condition(self, schedule: str, kind: str) -> tuple[str, str]:
        """Status and reason of a condition."""
        found = [each for each in self.status(schedule).get("conditions", ()) if each["type"] == kind]
        return (found[0]["status"], found[0]["reason"]) if found else ("", "")

    def log(self, schedule: str) -> list[Json]:
        """The records of its log, oldest first, the Baselines too."""
        return [each for each in self._occurrences(schedule) if each["spec"]["cause"] == "Scheduled"]

    def decisions(self, schedule: str) -> list[tuple[str, str]]:
        """Instant and decision of each record but the Baselines, oldest first."""
        return [
            (each["spec"].get("scheduledTime", ""), each["spec"]["decision"])
            for each in self.log(schedule)
            if each["spec"]["decision"] != "Baseline"
        ]

    def runs(self, schedule: str) -> list[Json]:
        """Its scheduled runs, oldest first."""
        return [each for each in self.log(schedule) if each["spec"]["decision"] == "Admitted"]

    def requests(self, schedule: str) -> list[Json]:
        """What people asked for, by name."""
        return [each for each in self._occurrences(schedule) if each["spec"]["cause"] != "Scheduled"]

    def request(self, name: str) -> Json:
        found = [each for each in self.of_kind(names.KIND_OCCURRENCE) if each["metadata"]["name"] == name]
        return {"status": {}, **found[0]} if found else {"status": {}}

    def outcomes(self, schedule: str) -> list[str]:
        return [each["status"].get("outcome", "") for each in self.runs(schedule)]

    def _occurrences(self, schedule: str) -> list[Json]:
        found = [
            {"status": {}, **item}
            for item in self.of_kind(names.KIND_OCCURRENCE)
            if item["spec"]["scheduleRef"]["name"] == schedule
        ]
        return sorted(found, key=lambda each: str(each["metadata"]["name"]))

    def jobs(self, schedule: str) -> list[Json]:
        """Its Jobs, oldest first by name; those that are being deleted too."""
        return sorted(self._labelled("Job", schedule), key=lambda each: str(each["metadata"]["name"]))

    def pods(self, schedule: str) -> list[Json]:
        return self._labelled("Pod", schedule)

    def events(self, schedule: str) -> list[Json]:
        return [item for item in self.of_kind("Event") if item["involvedObject"].get("name") == schedule]

    def count(self) -> dict[str, list[str]]:
        """Decisions, outcomes and Jobs of all schedules, for a failure's message."""
        of = sorted({each["spec"]["scheduleRef"]["name"] for each in self.of_kind(names.KIND_OCCURRENCE)})
        return {name: self._line(name) for name in of}

    def _line(self, name: str) -> list[str]:
        jobs = [f"Job {job['metadata']['name']} {sorted(job['status'])}" for job in self.jobs(name)]
        return [f"{at} {what}" for at, what in self.decisions(name)] + self.outcomes(name) + jobs


@dataclass(frozen=True, slots=True)
class Scene:
    """A namespace: apply to it, look at it."""

    kubectl: Kubectl
    connection: Connection
    namespace: str

    def apply(self, *bodies: Json) -> None:
        self.kubectl("apply", "-n", self.namespace, "-f", "-", input=manifests(*bodies))

    def patch(self, target: str, change: Json, *arguments: str) -> None:
        self.kubectl("patch", target, "-n", self.namespace, "--type=merge", "-p", json.dumps(change), *arguments)

    def delete(self, *targets: str) -> None:
        self.kubectl("delete", "-n", self.namespace, "--wait=false", *targets)

    def look(self) -> View:
        return View(objects_of_now(self.connection, self.namespace))

    def until(self, is_reached: Callable[[View], bool], *, seconds: float, what: str) -> View:
        """Look until something is so; fail with what it was to be and what is there."""
        try:
            return until(self.look, is_reached, seconds=seconds)
        except AssertionError as error:
            message = f"{what}: not within {seconds:.0f} s; {json.dumps(self.look().count(), indent=1)}"
            raise AssertionError(message) from error

    def end_pods(self, schedule: str, phase: str) -> None:
        """Say for the kubelet how the unfinished Pods of a schedule ended, once there are any: they come after their Job."""

        def unfinished(view: View) -> list[Json]:
            return [pod for pod in view.pods(schedule) if pod["status"].get("phase") not in {"Succeeded", "Failed"}]

        view = self.until(lambda view: bool(unfinished(view)), seconds=60, what=f"a Pod of {schedule}")
        for pod in unfinished(view):
            self.patch(f"pod/{pod['metadata']['name']}", {"status": {"phase": phase}}, "--subresource=status")


def has_ended(occurrence: Json) -> bool:
    return occurrence["status"].get("outcome") in FINAL
