"""What is due at one minute: who starts, who doesn't, when, and with what.

It needs the first minute only; the second goes by while other modules work (see conftest.py).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from support.herd import utc
from workflow_schedules.api import names
from workflow_schedules.cluster.wire import schedule_of
from workflow_schedules.core.acceptance import Accepted, accept
from workflow_schedules.core.jitter import Jitter

if TYPE_CHECKING:
    from support.conformance_wave import Wave
    from support.scene import View

BUSY = timedelta(seconds=20)  # how late a busy machine may be
ADMITTED = ["plain", "allow", "forbid", "replace", "failing", "limited", "edited", "held", "union", "zoned"]


@pytest.mark.parametrize("name", ADMITTED)
def test_what_is_due_starts_once(first_minute: View, wave: Wave, name: str) -> None:
    """CronJob e2e: the first run of every test; R8: one record and one Job for the instant, soon."""
    assert first_minute.decisions(name) == [(wave.instants[0], "Admitted")]
    (job,) = first_minute.jobs(name)
    assert job["metadata"]["name"] == first_minute.runs(name)[0]["metadata"]["name"]
    created = datetime.fromisoformat(job["metadata"]["creationTimestamp"])
    assert timedelta(0) <= created - wave.first <= BUSY


def test_a_time_zone_moves_the_instant_and_labels_the_job(first_minute: View, wave: Wave) -> None:
    """CronJob e2e: should support timezone; R6, R22: local time in CronJob's own annotation."""
    (job,) = first_minute.jobs("zoned")
    local = wave.first.astimezone(ZoneInfo("Asia/Kolkata"))
    assert job["metadata"]["annotations"][names.CRONJOB_TIMESTAMP_ANNOTATION] == local.isoformat()
    assert job["metadata"]["labels"][names.LABEL_SCHEDULED_AT] == names.compact_utc(wave.first)
    following = datetime.fromisoformat(first_minute.status("zoned").get("nextScheduleTime", utc(wave.first)))
    assert following.astimezone(ZoneInfo("Asia/Kolkata")).timetz().replace(tzinfo=None) == local.time()


def test_several_expressions_fire_once_where_they_meet(first_minute: View, wave: Wave) -> None:
    """CronWorkflow e2e: multiple schedules; section 2, `schedules`: equal instants fire once."""
    assert first_minute.decisions("union") == [(wave.instants[0], "Admitted")]


def test_a_run_is_owned_by_its_record_and_wears_the_labels(first_minute: View) -> None:
    """CronJob e2e: Jobs carry the name and annotation of their CronJob; R22."""
    (run,), (job,) = first_minute.runs("plain"), first_minute.jobs("plain")
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == (
        names.KIND_OCCURRENCE,
        run["metadata"]["uid"],
        True,
    )
    uid = first_minute.schedule("plain")["metadata"]["uid"]
    for one in (run, job, *first_minute.pods("plain")):
        found = one["metadata"]["labels"]
        assert found[names.LABEL_SCHEDULE] == "plain"
        assert found[names.LABEL_SCHEDULE_UID] == uid
        assert found[names.LABEL_CAUSE] == "Scheduled"


def test_an_unfinished_manual_run_blocks_nothing(first_minute: View, wave: Wave) -> None:
    """CronJob e2e: ForbidConcurrent counts only its own; Temporal: trigger immediately; R12, R27."""
    assert first_minute.request("beside")["status"].get("outcome") in {None, "Running"}
    assert first_minute.decisions("beside-manual") == [(wave.instants[0], "Admitted")]
    assert len(first_minute.jobs("beside-manual")) == 2


def test_one_place_for_two_schedules_of_a_definition(first_minute: View) -> None:
    """CronWorkflow: parallelism of a template; R16, R28: the other is skipped on record."""
    found = sorted(what for name in ("shared-a", "shared-b") for _, what in first_minute.decisions(name))
    assert found == ["Admitted", "SkippedOverlap"]
    assert len(first_minute.jobs("shared-a") + first_minute.jobs("shared-b")) == 1


def test_an_excluded_date_is_skipped_on_record(first_minute: View, wave: Wave) -> None:
    """Temporal: excluded calendars; R29: with a reason."""
    assert first_minute.decisions("excluded") == [(wave.instants[0], "SkippedExcluded")]
    assert first_minute.jobs("excluded") == []


def test_an_input_that_does_not_fit_starts_nothing(first_minute: View) -> None:
    """Argo Workflows: a submission with bad parameters; R24: the schedule is not accepted, and says what would do."""
    conditions = {each["type"]: each for each in first_minute.status("bad-input")["conditions"]}
    assert conditions["Accepted"]["status"] == "False"
    assert "input.n" in conditions["Accepted"]["message"]
    assert first_minute.status("bad-input")["state"] == "Blocked"
    assert first_minute.decisions("bad-input") == []
    assert first_minute.jobs("bad-input") == []


def test_jitter_is_the_same_wherever_it_is_asked(wave: Wave, first_minute: View) -> None:
    """Temporal: jitter is stable for a schedule and an instant; section 2, `maxJitterSeconds`."""
    body = first_minute.schedule("spread")
    verdict = accept(schedule_of(body))
    assert isinstance(verdict, Accepted)
    starts = Jitter(uid=body["metadata"]["uid"], max_seconds=8).start_of(wave.first, verdict.trigger)
    view = wave.scene.until(lambda view: bool(view.jobs("spread")), seconds=60, what="a start within the spread")
    assert view.decisions("spread")[0] == (wave.instants[0], "Admitted")  # the identity is the nominal instant
    created = datetime.fromisoformat(view.jobs("spread")[0]["metadata"]["creationTimestamp"])
    assert timedelta(0) <= created - starts <= BUSY
