"""Read the log of one schedule: from the head that its status names, forward until a name is free.

Anything that contradicts blocks that schedule and no other (R31). What follows from the log is core's business.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workflow_schedules.api import names
from workflow_schedules.api.occurrence import Cause
from workflow_schedules.cluster import wire
from workflow_schedules.cluster.errors import NotFoundError
from workflow_schedules.cluster.fence import LostLeaseError
from workflow_schedules.cluster.memory import RunMemory
from workflow_schedules.core.log import FORMAT

if TYPE_CHECKING:
    from workflow_schedules.cluster.cache import Cache
    from workflow_schedules.cluster.client import Client
    from workflow_schedules.cluster.memory import ScheduleLog
    from workflow_schedules.core.model import Record, Schedule, Snapshot, Writer


async def read_log(client: Client, cache: Cache, snapshot: Snapshot) -> None:
    """Read what is needed of a log, so that the next decision stands on its head record.

    Raises:
        ClusterError: the API server could not be read; the log stays unread.
        LostLeaseError: a newer epoch has written.

    Source: reliability P3, P8; contract R31.
    """
    log, schedule = cache.log(snapshot.uid), cache.schedules.get(snapshot.uid)
    try:
        if schedule is not None:
            head = await _read_head(client, log, schedule)
            if head is not None:
                _check_writer(head, snapshot.writer)
                await _read_open(client, log, head, schedule)
                _adopt(log, head, schedule)
    except _ContradictionError as error:
        log.contradiction = str(error)
    log.is_read = True


def _check_writer(head: Record, writer: Writer) -> None:
    """Stop leading when a newer epoch wrote the head; block the schedule when another Lease did (R33, P5)."""
    if head.spec.lease not in {None, writer.lease}:
        raise _ContradictionError(
            f"record {head.ref.name} was written under the Lease {head.spec.lease}, not {writer.lease}: "
            "another installation schedules here; remove one of them"
        )
    epoch, author = head.spec.fencing_epoch or 0, head.spec.writer
    if epoch > writer.epoch or (epoch == writer.epoch and author != writer.identity):
        raise LostLeaseError(f"record {head.ref.name} has epoch {head.spec.fencing_epoch}, not below {writer.epoch}")


class _ContradictionError(Exception):
    """The log says two things at once; the message names the record."""


async def _read_head(client: Client, log: ScheduleLog, schedule: Schedule) -> Record | None:
    if log.head is not None:
        return await _walk(client, schedule, log.head)
    stored = schedule.status.log_head if schedule.status else None
    if stored is None:
        return await _newest_by_list(client, schedule)
    if stored == 0:
        return await _walk(client, schedule, None)
    head = await _get(client, schedule, stored)
    if head is None:
        raise _ContradictionError(f"record {_name(schedule, stored)} is gone although the status names it as the head")
    return await _walk(client, schedule, head)


async def _walk(client: Client, schedule: Schedule, head: Record | None) -> Record | None:
    """Go forward from a record until a name is free, checking each link."""
    while True:
        following = await _get(client, schedule, 1 if head is None else head.number + 1)
        if following is None:
            return head
        if head is not None and following.spec.previous_uid != head.uid:
            raise _ContradictionError(f"record {following.ref.name} does not follow {head.ref.name}")
        head = following


async def _newest_by_list(client: Client, schedule: Schedule) -> Record | None:
    """Find the head without a status: by a consistent LIST, since records below it may be gone (P8)."""
    newest: Record | None = None
    pages = client.list_occurrences(
        namespace=schedule.ref.namespace,
        label_selector=f"{names.LABEL_SCHEDULE_UID}={schedule.uid}",
        field_selector=f"spec.cause={Cause.SCHEDULED}",  # requests of users may carry any label
    )
    async for page in pages:
        for item in page.items:
            record = _read(schedule, item)
            if newest is None or record.number > newest.number:
                newest = record
    return newest


async def _read_open(client: Client, log: ScheduleLog, head: Record, schedule: Schedule) -> None:
    """Read every run that the head calls open (P3)."""
    missing = [number for number in head.spec.open if number not in log.runs and number != head.number]
    found = await asyncio.gather(*(_get(client, schedule, number) for number in missing))
    for number, record in zip(missing, found, strict=True):
        if record is None:
            raise _ContradictionError(f"record {_name(schedule, number)} is gone although its run was unfinished")
        log.runs[number] = RunMemory(record=record)


def _adopt(log: ScheduleLog, head: Record, schedule: Schedule) -> None:
    if log.head is None and not log.recent and schedule.status is not None:
        log.recent = list(schedule.status.recent)
    if log.head is None or log.head.uid != head.uid:
        log.add(head)


async def _get(client: Client, schedule: Schedule, number: int) -> Record | None:
    try:
        body = await client.get_occurrence(schedule.ref.namespace, _name(schedule, number))
    except NotFoundError:
        return None
    return _read(schedule, body)


def _read(schedule: Schedule, body: wire.Json) -> Record:
    try:
        return _checked(schedule, wire.record_of(body))
    except wire.NotARecordError as error:
        raise _ContradictionError(str(error)) from error


def _checked(schedule: Schedule, record: Record) -> Record:
    spec = record.spec
    if spec.schedule_ref.uid != schedule.uid or spec.sequence is None:
        raise _ContradictionError(f"record {record.ref.name} belongs to another schedule")
    if spec.format > FORMAT:
        raise _ContradictionError(
            f"record {record.ref.name} has format {spec.format}, newer than this operator reads; upgrade it"
        )
    if record.ref.name != _name(schedule, spec.sequence):
        raise _ContradictionError(f"record {record.ref.name} says it is number {spec.sequence}")
    return record


def _name(schedule: Schedule, number: int) -> str:
    return names.record_name(schedule.ref.name, schedule.uid, number)
