"""Read the log of one schedule: from the head that its status names, forward until a name is free.

Anything that contradicts blocks that schedule and no other (R31). What follows from the log is core's business.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workflow_schedules.api import names
from workflow_schedules.cluster.errors import NotFoundError
from workflow_schedules.cluster.fence import LostLeaseError
from workflow_schedules.cluster.listing import NotOfThisLogError, list_log, read_record
from workflow_schedules.cluster.memory import RunMemory, is_final
from workflow_schedules.core.listed import first_problem, in_force
from workflow_schedules.core.requests import CAUSES

if TYPE_CHECKING:
    from workflow_schedules.cluster import wire
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
    if schedule is not None:
        try:
            await _read_in_order(client, log, schedule, snapshot.writer)
        except _ContradictionError as error:
            await _read_behind(client, log, schedule, snapshot.writer, error)
    elif log.head is not None:
        await _read_last(client, cache, log.head, snapshot.writer)
    log.is_read = True


async def _read_last(client: Client, cache: Cache, head: Record, writer: Writer) -> None:
    """Take in the run that was begun while its schedule was deleted, where its record did not get an answer (P2, R20)."""
    ref = head.spec.schedule_ref
    try:
        body = await client.get_occurrence(
            head.ref.namespace, names.record_name(ref.name, ref.uid or "", head.number + 1)
        )
    except NotFoundError:
        return
    cache.remember_stray(body, writer.lease)


async def check_first_name(client: Client, cache: Cache, snapshot: Snapshot) -> None:
    """Block a schedule whose first name is taken though its log is empty: another's record has it (P8, P18).

    Raises:
        ClusterError: the API server could not be read.
        LostLeaseError: a newer epoch has written.
    """
    log, schedule = cache.log(snapshot.uid), cache.schedules.get(snapshot.uid)
    if schedule is None or log.head is not None:
        return
    try:
        if (head := await _walk(client, schedule, None)) is not None:
            await _take(client, log, schedule, head, snapshot.writer)  # it came between the list and now
    except _ContradictionError as error:
        log.block(error.record_name, str(error))


class _ContradictionError(Exception):
    """The log says two things at once; the message names the record."""

    def __init__(self, record_name: str, message: str) -> None:
        super().__init__(message)
        self.record_name = record_name


async def _read_in_order(client: Client, log: ScheduleLog, schedule: Schedule, writer: Writer) -> None:
    if log.suspect is not None:
        raise _ContradictionError(*log.suspect)
    head = await _read_head(client, log, schedule)
    if head is not None:
        await _take(client, log, schedule, head, writer)
    elif log.runs:
        number = min(log.runs)
        raise _ContradictionError(_name(schedule, number), f"record {_name(schedule, number)} is not of an empty log")
    log.unblock()


async def _read_behind(
    client: Client, log: ScheduleLog, schedule: Schedule, writer: Writer, error: _ContradictionError
) -> None:
    """Block the schedule, unless what contradicts was set aside: a later Baseline says so (R31)."""
    begins = in_force(await list_log(client, schedule))[:1]
    beginning = begins[0].record if begins and begins[0].is_beginning else None
    if beginning is None or beginning.number <= int(error.record_name[-9:]):
        log.block(error.record_name, str(error))
        log.is_anothers = isinstance(error, _AnothersError)
        return
    try:
        head = await _walk(client, schedule, beginning) or beginning
        still_open = {*head.spec.open, head.number}
        log.runs = {number: run for number, run in log.runs.items() if number in still_open}
        await _take(client, log, schedule, head, writer)
        log.unblock()
    except _ContradictionError as later:
        log.block(later.record_name, str(later))
        log.is_anothers = isinstance(later, _AnothersError)


async def _take(client: Client, log: ScheduleLog, schedule: Schedule, head: Record, writer: Writer) -> None:
    _check_writer(head, writer)
    await _read_open(client, log, head, schedule)
    await _check_strays(client, log, head, schedule)
    _adopt(log, head, schedule)


class _AnothersError(_ContradictionError):
    """Another installation writes this log."""


def _check_writer(head: Record, writer: Writer) -> None:
    """Stop leading when a newer epoch wrote the head; block the schedule when another Lease did (R33, P5)."""
    if head.spec.lease not in {None, writer.lease}:
        raise _AnothersError(
            head.ref.name,
            f"record {head.ref.name} was written under the Lease {head.spec.lease}, not {writer.lease}: "
            "another installation schedules here; remove one of them",
        )
    epoch, author = head.spec.fencing_epoch or 0, head.spec.writer
    if epoch > writer.epoch or (epoch == writer.epoch and author != writer.identity):
        raise LostLeaseError(f"record {head.ref.name} has epoch {head.spec.fencing_epoch}, not below {writer.epoch}")


async def _check_strays(client: Client, log: ScheduleLog, head: Record, schedule: Schedule) -> None:
    """Refuse an unfinished run that the head does not call open: it was forged, or lies beyond a hole in the numbers."""
    known = {*head.spec.open, head.number}
    for number in sorted(
        number for number, run in log.runs.items() if number not in known and not is_final(run.record)
    ):
        found = await _get(client, schedule, number)
        name = _name(schedule, number)
        if found is not None and is_final(found):
            log.runs[number].record = found  # another holder has closed it
        elif found is not None and number > head.number:
            raise _ContradictionError(
                name, f"record {name} stands beyond a hole in the log, which ends at {head.number}"
            )
        else:
            raise _ContradictionError(name, f"record {name} is unfinished though {head.ref.name} does not call it open")


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
        name = _name(schedule, stored)
        raise _ContradictionError(name, f"record {name} is gone although the status names it as the head")
    return await _walk(client, schedule, head)


async def _walk(client: Client, schedule: Schedule, head: Record | None) -> Record | None:
    """Go forward from a record until a name is free, checking each link."""
    while True:
        following = await _get(client, schedule, 1 if head is None else head.number + 1)
        if following is None:
            return head
        if head is not None and following.spec.previous_uid != head.uid:
            name = following.ref.name
            raise _ContradictionError(name, f"record {name} does not follow {head.ref.name}")
        head = following


async def _newest_by_list(client: Client, schedule: Schedule) -> Record | None:
    """Find the head without a status: by a consistent LIST, since records below it may be gone (P8)."""
    listed = await list_log(client, schedule)
    problem = first_problem(listed)
    if problem is not None:
        raise _ContradictionError(*problem)
    return listed[-1].record if listed else None


async def _read_open(client: Client, log: ScheduleLog, head: Record, schedule: Schedule) -> None:
    """Read every run that the head calls open (P3)."""
    missing = [number for number in head.spec.open if number not in log.runs and number != head.number]
    found = await asyncio.gather(*(_get(client, schedule, number) for number in missing))
    for number, record in zip(missing, found, strict=True):
        if record is None:
            name = _name(schedule, number)
            raise _ContradictionError(name, f"record {name} is gone although its run was unfinished")
        log.runs[number] = RunMemory(record=record)


def _adopt(log: ScheduleLog, head: Record, schedule: Schedule) -> None:
    if log.head is None and not log.recent and schedule.status is not None:
        log.recent = [line for line in schedule.status.recent if line.decision not in CAUSES]
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
        return read_record(schedule, body)
    except NotOfThisLogError as error:
        raise _ContradictionError(str(body["metadata"]["name"]), str(error)) from error


def _name(schedule: Schedule, number: int) -> str:
    return names.record_name(schedule.ref.name, schedule.uid, number)
