"""Every name the operator puts on the wire: group, kinds, labels, annotations, record names. No I/O, no models."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

GROUP = "workflow-schedules.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
CATEGORY = "scheduling"

KIND_DEFINITION = "WorkflowDefinition"
KIND_SCHEDULE = "WorkflowSchedule"
KIND_OCCURRENCE = "ScheduleOccurrence"
PLURAL_DEFINITION = "workflowdefinitions"
PLURAL_SCHEDULE = "workflowschedules"
PLURAL_OCCURRENCE = "scheduleoccurrences"
SHORT_DEFINITION = "wfd"
SHORT_SCHEDULE = "wfs"
SHORT_OCCURRENCE = "occ"

LABEL_SCHEDULE = f"{GROUP}/schedule"
LABEL_SCHEDULE_UID = f"{GROUP}/schedule-uid"
LABEL_CAUSE = f"{GROUP}/cause"
LABEL_SCHEDULED_AT = f"{GROUP}/scheduled-at"

ANNOTATION_EPOCH = f"{GROUP}/fencing-epoch"
ANNOTATION_WRITER = f"{GROUP}/writer"
ANNOTATION_LEASE = f"{GROUP}/lease"
ANNOTATION_CANCEL = f"{GROUP}/cancel"
ANNOTATION_INPUT = f"{GROUP}/input"
ANNOTATION_UNBLOCK = f"{GROUP}/unblock"
ANNOTATION_TTL = f"{GROUP}/ttl-seconds-after-finished"
CRONJOB_TIMESTAMP_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp"

RESERVED_NAME_PATTERN = r"-[0-9a-f]{8}-[0-9]{9}$"
RECORD_NAME_MAX = 52
RECORD_STEM_MAX = 33
SEQUENCE_MAX = 999_999_999
LABEL_VALUE_MAX = 63


def record_prefix(schedule_name: str, uid: str) -> str:
    """Return what the names of all records of one schedule start with, the dash before the number included.

    Dots become dashes, so that the name is a DNS label whatever the schedule is called; the hash keeps apart what the
    cut or the dashes made equal.

    Source: P18. Never to be changed for an existing schedule: the name is the compare-and-set of the log.
    """
    stem = schedule_name.replace(".", "-")[:RECORD_STEM_MAX].rstrip("-")
    return f"{stem}-{_hash8(uid)}-"


def record_name(schedule_name: str, uid: str, sequence: int) -> str:
    """Return the name of record ``sequence`` of a schedule, at most 52 characters, sorting by number.

    Args:
        schedule_name: metadata.name of the schedule.
        uid: metadata.uid of the schedule.
        sequence: number in the log, 0 to 999,999,999.

    Raises:
        ValueError: the number doesn't fit nine digits; wrapping would reuse a name.

    Source: P18, contract R8.
    """
    if not 0 <= sequence <= SEQUENCE_MAX:
        raise ValueError(f"sequence {sequence} of {schedule_name!r}: want 0 to {SEQUENCE_MAX}")
    return f"{record_prefix(schedule_name, uid)}{sequence:09d}"


def is_record_name_of(name: str, uid: str) -> bool:
    """Tell whether a name is one of the log of the schedule with this UID, as far as that can be seen without its name."""
    return name[-19:-9] == f"-{_hash8(uid)}-" and name[-9:].isdecimal()


def label_value(name: str) -> str:
    """Return an object's name as a label value: unchanged up to 63 characters, else cut and told apart by a hash.

    Source: contract R22.
    """
    if len(name) <= LABEL_VALUE_MAX:
        return name
    return f"{name[: LABEL_VALUE_MAX - 9].rstrip('-.')}-{_hash8(name)}"


def compact_utc(at: datetime) -> str:
    """Return an aware instant as a label value, ``20260101T000000Z``; fractions of a second are cut."""
    utc = at.astimezone(UTC)
    return f"{utc.year:04d}{utc.month:02d}{utc.day:02d}T{utc.hour:02d}{utc.minute:02d}{utc.second:02d}Z"


def _hash8(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
