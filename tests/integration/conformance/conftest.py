"""One operator and one wave of schedules for the whole tier: everything that needs two minutes waits for the same two.

`downtime` is made before the operator starts, `wave` right after; `first_minute` and `second_minute` are the namespace once
what was due then is decided. What must happen in between (an edit, a failing Pod, a deletion) happens in `first_minute`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from support.cluster_stories import next_minute, own_namespace
from support.conformance_wave import (
    OneShots,
    Wave,
    definitions,
    down,
    kept,
    later_requests,
    one_shot_schedules,
    requests,
    schedules,
)
from support.control_plane import OperatorProcess
from support.herd import ahead
from support.past_log import AS_OPERATOR, begin_log, held_lease
from support.scene import Scene, View, has_ended
from workflow_schedules.api import names

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from support.control_plane import ControlPlane
    from workflow_schedules.cluster.connection import Connection

    Kubectl = Callable[..., Any]

KEPT_SECONDS = 97  # the least that a Lease of six seconds allows; a shorter one would be lost on a busy machine
SETTINGS = {
    "WORKFLOW_SCHEDULES_LEASE_DURATION_SECONDS": "6",
    "WORKFLOW_SCHEDULES_RENEW_DEADLINE_SECONDS": "4.5",
    "WORKFLOW_SCHEDULES_RETRY_SECONDS": "0.5",
    "WORKFLOW_SCHEDULES_NAME_KEPT_SECONDS": str(KEPT_SECONDS),
    "WORKFLOW_SCHEDULES_EVENTS": "ALL",  # so that the API server sees a body of each kind
}
QUICK_SECONDS = 2.0  # for one apply; a machine that takes longer gets more time before each of the two minutes
DOWN_FOR = timedelta(days=3)
PIN = "conformance.example.com/pin"  # keeps a Pod that is deleted
TRACKED = "batch.kubernetes.io/job-tracking"


@pytest.fixture(scope="package")
def scene(kubectl: Kubectl, real_connection: Connection) -> Iterator[Scene]:
    """The namespace of this tier."""
    with own_namespace(kubectl, "conformance") as namespace:
        yield Scene(kubectl, real_connection, namespace)


@pytest.fixture(scope="package")
def downtime(scene: Scene) -> datetime:
    """Schedules whose operator has been down for three days, and one that was deleted meanwhile; since when."""
    since = datetime.now(UTC).replace(second=0, microsecond=0) - DOWN_FOR
    bodies = down()
    scene.apply(*bodies)
    with held_lease(scene.kubectl) as writer:
        view = scene.look()
        for body in bodies:
            begin_log(scene.kubectl, view.schedule(body["metadata"]["name"]), writer, at=since)
        scene.delete("wfs/down-gone")
    return since


@pytest.fixture(scope="package")
def operator(
    control_plane: ControlPlane,
    downtime: datetime,  # noqa: ARG001 - it is over when this starts
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OperatorProcess]:
    """The only operator of this tier."""
    with OperatorProcess(control_plane, tmp_path_factory.mktemp("conformance"), environment=SETTINGS) as process:
        process.wait_ready()
        yield process


@pytest.fixture(scope="package")
def wave(operator: OperatorProcess, scene: Scene) -> Wave:  # noqa: ARG001 - it runs
    """All schedules that are due at the two minutes, and the requests for runs now."""
    began = time.monotonic()
    scene.apply(*definitions())
    is_slow = time.monotonic() - began > QUICK_SECONDS
    first = next_minute(ahead_seconds=40 if is_slow else 15)  # until every Baseline is there
    second = first + timedelta(minutes=2 if is_slow else 1)
    wave = Wave(scene=scene, first=first, second=second)
    scene.apply(*schedules(first, second), *kept(), *requests())
    names_of = [each["metadata"]["name"] for each in schedules(first, second)]
    scene.until(
        lambda view: all(view.status(name).get("observedGeneration") for name in names_of),
        seconds=(first - datetime.now(UTC)).total_seconds(),
        what="every schedule of the wave observed before it is due",
    )
    return wave


ADMITS = (
    "plain",
    "allow",
    "forbid",
    "replace",
    "failing",
    "union",
    "zoned",
    "edited",
    "deleted",
    "limited",
    "ending",
    "held",
    "switched-a",
    "switched-b",
)


def _is_first_minute_decided(view: View) -> bool:
    return (
        all(view.jobs(name) for name in ADMITS)
        and len(view.jobs("beside-manual")) == 2
        and all(has_ended(view.runs(name)[0]) for name in ("plain", "edited", "held"))
        and all(view.decisions(name) for name in ("excluded", "shared-a", "shared-b"))
        and bool(view.jobs("shared-a") + view.jobs("shared-b"))
    )


@pytest.fixture(scope="package")
def first_minute(wave: Wave) -> View:
    """The namespace when the first minute is decided; what must happen before the second has happened then."""
    scene = wave.scene
    view = scene.until(
        _is_first_minute_decided, seconds=_seconds_until(wave.second) - 20, what="the first minute's runs"
    )
    scene.apply(*later_requests())
    scene.end_pods("failing", "Failed")
    scene.patch("wfs/edited", {"spec": {"input": {"turn": 2}}})
    scene.patch("wfs/resumed", {"spec": {"pause": None}})
    scene.patch("wfd/switched", {"spec": {"enabled": False}})
    scene.patch("wfd/holding", {"spec": {"enabled": False}})
    scene.delete("wfs/deleted")
    scene.until(
        lambda view: (
            all(_is_observed(view, name) for name in ("edited", "resumed", "switched-a", "switched-b"))
            and view.condition("failing", "Paused")[0] == view.condition("paused", "Paused")[0] == "True"
            and view.status("held").get("state") == "Held"
        ),
        seconds=_seconds_until(wave.second),
        what="what happens between the two minutes",
    )
    assert datetime.now(UTC) < wave.second, "this machine is too slow for what happens between the two minutes"
    return view


def _is_observed(view: View, name: str) -> bool:
    schedule = view.schedule(name)
    generation = schedule["metadata"]["generation"]
    return bool(generation > 1 and schedule["status"].get("observedGeneration") == generation)


def _seconds_until(at: datetime) -> float:
    return max(1.0, (at - datetime.now(UTC)).total_seconds())


@pytest.fixture(scope="package")
def second_minute(wave: Wave, first_minute: View) -> View:  # noqa: ARG001 - it comes first
    """The namespace when the second minute is decided, replaced runs are gone, and stuck ones have timed out."""
    return wave.scene.until(
        lambda view: _is_second_minute_decided(view) and _is_second_minute_told(view),
        seconds=_seconds_until(wave.second) + 120,
        what="what was due at the second minute",
    )


def _is_second_minute_decided(view: View) -> bool:
    """Tell whether records and Jobs are what they come to."""
    return (
        all(len(view.runs(name)) == 2 for name in ("plain", "allow", "replace", "stuck", "edited"))
        and len(view.runs("resumed")) == 1
        and all(has_ended(run) for name in ("plain", "edited", "resumed", "deleted") for run in view.runs(name))
        and has_ended(view.runs("stuck")[0])
        and len([job for job in view.jobs("allow") if job["status"].get("active")]) == 2
        and "SkippedOverlap" in {what for _, what in view.decisions("forbid")}
    )


def _is_second_minute_told(view: View) -> bool:
    """Tell whether the schedules' statuses, which are written last and merged, say all of that."""
    return (
        _is_replaced(view, "replace")
        and len(view.status("allow").get("active", ())) == 2
        and len(view.status("forbid").get("active", ())) == 1
        and view.status("plain").get("counts", {}).get("completed") == 2
        and all(view.status(name).get("state") == "Complete" for name in ("limited", "ending"))
    )


def _is_replaced(view: View, name: str) -> bool:
    """Tell whether the newest run is the only one that is left, and its schedule says so."""
    newest = [view.runs(name)[-1]["metadata"]["name"]]
    return [job["metadata"]["name"] for job in view.jobs(name)] == newest == view.status(name).get("active")


@pytest.fixture(scope="package")
def one_shots(first_minute: View, scene: Scene) -> OneShots:  # noqa: ARG001 - it comes first
    """Applied and due while the wave waits for its second minute."""
    at = ahead(seconds=20)  # until they are all applied: what is past by then never runs (R7)

    scene.apply(*one_shot_schedules(at))
    return OneShots(scene=scene, at=at)


@pytest.fixture(scope="package")
def started(one_shots: OneShots) -> View:
    """The namespace when each has its Job, or is not to have one; what people do about their Jobs is done then."""
    scene = one_shots.scene
    runs = ("done", "exhausted", "suspended", "job-deleted", "cancelled", "swept")
    view = scene.until(
        lambda view: all(view.jobs(name) for name in runs) and all(view.pods(name) for name in ("done", "pinned")),
        seconds=120,
        what="Jobs of one-shots",
    )
    scene.patch(f"pod/{view.pods('pinned')[0]['metadata']['name']}", {"metadata": {"finalizers": [PIN, TRACKED]}})
    scene.patch(f"job/{view.jobs('suspended')[0]['metadata']['name']}", {"spec": {"suspend": False}})
    scene.delete(f"job/{view.jobs('job-deleted')[0]['metadata']['name']}")
    for name in ("cancelled", "pinned"):
        run = view.runs(name)[0]["metadata"]["name"]
        scene.patch(f"occ/{run}", {"metadata": {"annotations": {names.ANNOTATION_CANCEL: "not needed"}}})
    return view


@pytest.fixture(scope="package")
def ended(started: View, one_shots: OneShots) -> View:  # noqa: ARG001 - it comes first
    """The namespace when each has ended and its schedule says so."""
    runs = ("done", "exhausted", "suspended", "cancelled", "swept")
    return one_shots.scene.until(
        lambda view: (
            all(has_ended(view.runs(name)[0]) for name in runs)
            and all(view.status(name).get("state") == "Complete" for name in runs)
            and all(view.status(name).get("activeCount") == 0 for name in runs if name != "cancelled")
            and view.condition("past", "Complete")[0] == "True"
            and view.condition("unknown-zone", "Stalled")[0] == "True"
        ),
        seconds=120,
        what="the ends of one-shots",
    )


@pytest.fixture(scope="package")
def contradiction(wave: Wave) -> str:
    """The name of a record that does not follow the one before, in the log of `blocked`; an edit makes the operator see it."""
    scene = wave.scene
    head = scene.until(lambda view: bool(view.log("blocked")), seconds=60, what="a Baseline").log("blocked")[-1]
    spec = head["spec"] | {"sequence": head["spec"]["sequence"] + 1, "previousUID": "of-somewhere-else"}
    name = head["metadata"]["name"][:-9] + f"{spec['sequence']:09d}"
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND_OCCURRENCE,
        "metadata": {"name": name, "labels": head["metadata"]["labels"]},
        "spec": spec,
    }
    scene.kubectl("create", *AS_OPERATOR, "-n", scene.namespace, "-f", "-", input=json.dumps(body))
    scene.patch("wfs/blocked", {"spec": {"input": {"edited": True}}})
    return name


@pytest.fixture(scope="package")
def unblock_asked(contradiction: str, scene: Scene) -> str:
    """The same record once the operator has refused to go on and a person has named it."""
    scene.until(
        lambda view: view.status("blocked").get("state") == "Blocked", seconds=90, what="a contradicting log blocked"
    )
    scene.patch("wfs/blocked", {"metadata": {"annotations": {names.ANNOTATION_UNBLOCK: contradiction}}})
    return contradiction


@pytest.fixture(scope="package")
def tidying(second_minute: View, ended: View, unblock_asked: str, scene: Scene) -> Scene:  # noqa: ARG001 - they come first
    """The namespace, when all that is to be tidied up in it is there."""
    return scene
