"""Who is woken for a verdict that is there before it is known who has that template."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from support.builders import TEMPLATE, UID, a_schedule, a_status
from workflow_schedules.api.common import Condition, ConditionStatus
from workflow_schedules.cluster.cache import Cache
from workflow_schedules.cluster.cluster import Cluster
from workflow_schedules.core.template_fields import TemplateVerdict
from workflow_schedules.scheduler.dry_runs import DryRuns

FINE = TemplateVerdict()
DROPS = TemplateVerdict(unknown_fields=("spec.jobTemplate.spec.a",))
REFUSES = TemplateVerdict(refusal="no")
DROPPED = ("UnknownFields", "spec.jobTemplate.spec.a: no such field")
ROWS = [
    ("no verdict: its answer wakes", None, ("Healthy", ""), False),
    ("nothing is wrong, nothing is told", FINE, ("Healthy", ""), False),
    ("nothing is wrong any more", FINE, DROPPED, True),
    ("something is wrong with a run", FINE, ("NotStarted", "no Pod"), False),
    ("it drops a field", DROPS, ("Healthy", ""), True),
    ("it drops a field, which is told", DROPS, DROPPED, False),
    ("it drops another field", DROPS, ("UnknownFields", "spec.jobTemplate.spec.b: no such field"), True),
    ("it would be refused", REFUSES, DROPPED, True),
    ("it would be refused, which is told in other words", REFUSES, ("TemplateRejected", "no; request 7"), False),
]


@pytest.mark.parametrize(("verdict", "told", "is_woken"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_whose_status_says_otherwise_is_woken_once(
    verdict: TemplateVerdict | None, told: tuple[str, str], *, is_woken: bool
) -> None:
    """R24: an answer wakes those who are known to have the template; a status may be under way at that moment."""
    reason, message = told
    status = ConditionStatus.TRUE if reason == "Healthy" else ConditionStatus.FALSE
    condition = Condition(type="RunsHealthy", status=status, reason=reason, message=message)
    schedule = a_schedule(status=a_status(conditions=(condition,)))
    cache, woken = Cache(), list[str]()
    cache.schedules[UID] = schedule
    if verdict is not None:
        cache.template_verdicts[(schedule.ref.namespace, TEMPLATE.hash)] = verdict

    async def note() -> None:
        unused = cast("Any", None)
        cluster = Cluster(client=unused, cache=cache, templates=unused, wall_clock=unused, monotonic=lambda: 0.0)
        dry_runs = DryRuns(cluster, wake=woken.append)
        for _ in range(3):  # a wake-up ends in the next one
            dry_runs.note(UID)

    asyncio.run(note())
    assert woken == [UID] * is_woken
