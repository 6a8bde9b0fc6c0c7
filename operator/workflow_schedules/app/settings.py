"""Settings, from the environment alone; the unit is in each name."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from workflow_schedules.core.events import EventLevel
from workflow_schedules.core.model import ObjectRef
from workflow_schedules.core.runs import ADMISSION_LAG, REQUEST_LIFE
from workflow_schedules.scheduler.lease_times import LOOK_SECONDS, LeaseTimes

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "WORKFLOW_SCHEDULES_"
_LEVELS = frozenset({"DEBUG", "INFO", "WARNING", "ERROR"})


_EVENTS = {level.upper(): level for level in EventLevel}


class SettingsError(ValueError):
    """A setting can't be used; the message names the variable, its value and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set.

    Attributes:
        lease: the Lease that names the only scheduler.
        lease_times: how long it lasts.
        name_kept_seconds: K, how long a record's or Job's name is kept after its end.
        retain_deleted_seconds: how long runs and records of a deleted schedule with `deletionPolicy: Retain` are kept, and
            refused requests that name no schedule.
        max_occurrence_records: how many records there may be in the whole cluster; 0 is unlimited.
        events: which Events are written.
        drain_seconds: how long writes in flight may take after SIGTERM.
        probe_port: port of /healthz and /readyz; 0 picks a free one.
        max_concurrent_runs: unfinished scheduled runs of all schedules at once; 0 is unlimited.
        workers: schedules that are worked on at the same time, those that wait long for an answer left out.
        not_before: nothing at or before it is started: a restored backup may have lost the record of it; None without a restore.
        pod_id: first part of this process's identity.
    """

    lease: ObjectRef
    lease_times: LeaseTimes
    name_kept_seconds: float
    retain_deleted_seconds: float
    max_occurrence_records: int
    events: EventLevel
    drain_seconds: float
    probe_port: int
    max_concurrent_runs: int
    workers: int
    not_before: datetime | None
    pod_id: str
    log_level: str
    log_form: Literal["json", "plain"]


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings.

    Raises:
        SettingsError: a value can't be used, or two contradict.

    Source: contract R28, R33, R34; reliability K, L, R, P16.
    """
    retry_seconds = _seconds(environment, "RETRY_SECONDS", 2)
    settings = Settings(
        lease=ObjectRef(
            namespace=environment.get("POD_NAMESPACE") or "workflow-schedules-system",
            name=environment.get(f"{PREFIX}LEASE_NAME") or "workflow-schedules",
        ),
        lease_times=LeaseTimes(
            duration_seconds=_seconds(environment, "LEASE_DURATION_SECONDS", 15),
            renew_deadline_seconds=_seconds(environment, "RENEW_DEADLINE_SECONDS", 10),
            retry_seconds=retry_seconds,
            look_seconds=min(LOOK_SECONDS, retry_seconds),
        ),
        name_kept_seconds=_seconds(environment, "NAME_KEPT_SECONDS", 180),
        retain_deleted_seconds=_number(environment, "RETAIN_DELETED_SECONDS", 30 * 86400, low=0, high=3650 * 86400),
        max_occurrence_records=int(_number(environment, "MAX_OCCURRENCE_RECORDS", 50_000, low=0, high=100_000_000)),
        events=_EVENTS[_choice(environment, "EVENTS", "PROBLEMS", frozenset(_EVENTS))],
        drain_seconds=_seconds(environment, "DRAIN_SECONDS", 30),
        probe_port=int(_number(environment, "PROBE_PORT", 8080, low=0, high=65535)),
        max_concurrent_runs=_whole(environment, "MAX_CONCURRENT_RUNS", 0, low=0, high=1_000_000),
        workers=int(_number(environment, "WORKERS", 16, low=1, high=64)),
        not_before=_moment(environment, "NOT_BEFORE"),
        pod_id=environment.get("POD_UID") or environment.get("POD_NAME") or socket.gethostname(),
        log_level=_choice(environment, "LOG_LEVEL", "INFO", _LEVELS),
        log_form="plain"
        if _choice(environment, "LOG_FORM", "JSON", frozenset({"JSON", "PLAIN"})) == "PLAIN"
        else "json",
    )
    _check_times(settings)
    return settings


def _check_times(settings: Settings) -> None:
    times = settings.lease_times
    if not times.retry_seconds < times.renew_deadline_seconds < times.duration_seconds:
        raise SettingsError(
            f"{PREFIX}RETRY_SECONDS {times.retry_seconds:g} < {PREFIX}RENEW_DEADLINE_SECONDS "
            f"{times.renew_deadline_seconds:g} < {PREFIX}LEASE_DURATION_SECONDS {times.duration_seconds:g} must hold"
        )
    least = ADMISSION_LAG.total_seconds() + REQUEST_LIFE.total_seconds() + times.duration_seconds
    if settings.name_kept_seconds <= least:
        raise SettingsError(
            f"{PREFIX}NAME_KEPT_SECONDS: {settings.name_kept_seconds:g} is not above {least:g} "
            "(admission lag + life of a request + lease duration): a late write could reuse a freed name"
        )


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    return _number(environment, name, default, low=0.1, high=86400)


def _number(environment: Mapping[str, str], name: str, default: float, *, low: float, high: float) -> float:
    text = environment.get(PREFIX + name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise SettingsError(f"{PREFIX}{name}: {text!r} is not a number from {low:g} to {high:g}")
    return value


def _moment(environment: Mapping[str, str], name: str) -> datetime | None:
    text = environment.get(PREFIX + name)
    if not text:
        return None
    try:
        at: datetime | None = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise SettingsError(f"{PREFIX}{name}: {text!r} is no time with an offset, such as 2026-03-01T09:30:00Z")
    return at.astimezone(UTC)


def _whole(environment: Mapping[str, str], name: str, default: int, *, low: int, high: int) -> int:
    value = _number(environment, name, default, low=low, high=high)
    if value != int(value):
        raise SettingsError(f"{PREFIX}{name}: {value:g} is not a whole number from {low} to {high}")
    return int(value)


def _choice(environment: Mapping[str, str], name: str, default: str, choices: frozenset[str]) -> str:
    text = (environment.get(PREFIX + name) or default).upper()
    if text not in choices:
        raise SettingsError(f"{PREFIX}{name}: {text!r} is none of {', '.join(sorted(choices))}")
    return text
