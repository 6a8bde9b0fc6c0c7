"""Between a decision and its write something may have to be asked first; a start that is too late by then is none (R16, R35)."""

from __future__ import annotations

from support.api_requests import ApiRequest
from support.api_transport import Fault
from support.harness import World
from support.objects import a_schedule
from support.story import At, Outage, admitted, completed, failed, play, skipped_misfire

SLOW_SECONDS = 8.0


def slow_templates(world: World) -> None:
    """Let whatever is asked about pinned templates be answered late."""
    world.late.append(lambda _method, path: SLOW_SECONDS if "controllerrevisions" in path else 0.0)


def test_an_instant_whose_deadline_passes_while_its_template_is_pinned_is_not_admitted() -> None:
    """R16: the first run of a template waits for its pin; the next one has it."""
    play(
        [
            At("09:55", do=slow_templates),
            At("10:00", want=[skipped_misfire("10:00")], settle_seconds=15),
            At("10:15", want=[admitted("10:15")]),
        ],
        a_schedule(startingDeadlineSeconds=5),
    )


def test_an_instant_whose_template_is_pinned_in_time_is_admitted() -> None:
    play(
        [
            At("09:55", do=slow_templates),
            At("10:00", want=[admitted("10:00")], ends=[completed("10:00")], settle_seconds=15),
        ],
        a_schedule(startingDeadlineSeconds=10),
    )


def test_a_job_whose_deadline_passes_while_its_template_is_read_is_not_made() -> None:
    """R35: a new leader has to read what the record pins."""

    def is_job(request: ApiRequest) -> bool:
        return request.method == "POST" and request.path.endswith("/jobs")

    world = play(
        [
            At("09:55", do=lambda world: world.fault(Fault(status=500, reason="InternalError"), matches=is_job)),
            At("10:00", want=[admitted("10:00")], ends=[]),
            Outage("10:00:08", "10:00:10", do=lambda world: (world.heal(), slow_templates(world))),
            At("10:04", ends=[failed("10:00", "StartUnknown")]),
        ],
        a_schedule(startingDeadlineSeconds=30),
    )
    assert world.job_names() == []
