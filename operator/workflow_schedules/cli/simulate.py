"""`kubectl wfs simulate`: what would be decided from one instant to another, by the code that decides what really runs.

Puts a scene together from files and arguments; what happens in it is core/simulation's business.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson

from workflow_schedules.api import names
from workflow_schedules.api.common import format_utc
from workflow_schedules.cli.not_played import not_played
from workflow_schedules.cli.preview import is_of_kind, name_of, schedule_document
from workflow_schedules.cli.problems import Problem, ProblemsError
from workflow_schedules.cli.validate import as_created, given_spec, problems_of
from workflow_schedules.cluster.wire import definition_of, schedule_of
from workflow_schedules.core.acceptance import Accepted, accept
from workflow_schedules.core.due_times import calendar_of, count_due_times
from workflow_schedules.core.explain import explain
from workflow_schedules.core.scene import Change, Outage, Scene
from workflow_schedules.core.triggers import OneShotTrigger
from workflow_schedules.core.zones import moved, to_utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from workflow_schedules.cli.documents import Document
    from workflow_schedules.core.model import Definition
    from workflow_schedules.core.scene import Ending, Row
    from workflow_schedules.core.triggers import Trigger

Span = tuple["datetime", "datetime"]

INSTANTS_LIMIT = 1_000_000
_DAY = timedelta(days=1)
_COUNTED = 50 * 365 * _DAY  # what lies behind them is taken to be like them: ten thousand years take 20 s to count
_EXAMPLE_UID = "00000000-0000-4000-8000-000000000000"
_HEADER = ("SCHEDULED", "DECISION", "COUNT", "FIRST", "STARTED", "COMPLETED", "OUTCOME")
_LAYOUT = "{:20}  {:17}  {:>6}  {:20}  {:20}  {:20}  {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is simulated.

    Attributes:
        start: the schedule exists and is enabled from here on; instants after it count.
        until: the last instant that counts.
        manifest: the file's documents.
        edits: what the spec becomes, and when.
        outages: when no operator runs.
        pauses: when `spec.pause` is present.
        name: which schedule of the files, where there are several.
    """

    start: datetime
    until: datetime
    manifest: Sequence[Document]
    ending: Callable[[datetime], Ending]
    edits: Sequence[tuple[datetime, Sequence[Document]]] = ()
    outages: Sequence[Span] = ()
    pauses: Sequence[Span] = ()
    name: str | None = None


def scene_of(asked: Asked) -> tuple[Scene, tuple[str, ...]]:
    """Return the scene, and warnings about how the files were read.

    Raises:
        ProblemsError: a manifest can't be used, or the times don't fit together.
    """
    _check_times(asked)
    warnings: list[str] = []
    written = list(_written(asked, warnings))
    changes = [_change(asked, at, written) for at in _moments(asked)]
    outages = _merged(asked.outages)
    _check_size(changes, outages, asked.until)
    for change, until in _lasting(changes, asked.until):
        warnings += not_played(change.schedule, change.definition)
        warnings += _surprises(_trigger(change), change.at, until)
    scene = Scene(changes=changes, until=asked.until, ending=asked.ending, outages=outages)
    return scene, tuple(dict.fromkeys(warnings))


def as_json(row: Row) -> bytes:
    """Return a row for programs; an instant that is not there is null."""
    fields = {
        "scheduledTime": row.scheduled_time,
        "decision": row.decision,
        "reason": row.reason,
        "startTime": row.start_time,
        "completionTime": row.completion_time,
        "outcome": row.outcome,
        "count": row.count,
        "firstTime": row.first_time,
        "lastTime": row.last_time,
    }
    return orjson.dumps(fields, option=orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS)


def json_list(rows: Iterator[Row]) -> Iterator[str]:
    """Yield the pieces of a JSON list, a row a line, each as soon as it is known."""
    separator = "["
    for row in rows:
        yield f"{separator}\n{as_json(row).decode()}"
        separator = ","
    yield "[]\n" if separator == "[" else "\n]\n"


def table(rows: Iterator[Row]) -> Iterator[str]:
    """Yield lines for people, each as soon as it is known."""
    yield _LAYOUT.format(*_HEADER)
    for row in rows:
        first = row.first_time if row.count > 1 else None
        times = (_cell(at) for at in (first, row.start_time, row.completion_time))
        yield _LAYOUT.format(_cell(row.scheduled_time), row.decision, row.count, *times, row.outcome or "").rstrip()


def _cell(at: datetime | None) -> str:
    return "" if at is None else format_utc(at)


def _check_times(asked: Asked) -> None:
    start = format_utc(asked.start)
    if asked.until < asked.start:
        raise _problem(f"--to: {format_utc(asked.until)} is before --from {start}; write a later time")
    for at, _ in asked.edits:
        if not asked.start < at <= asked.until:
            raise _problem(f"--edit: {format_utc(at)} is not after --from {start} and up to --to; write a time between")
    if len({at for at, _ in asked.edits}) < len(asked.edits):
        raise _problem("--edit: two edits at one time; write them at different seconds")
    for name, spans in (("--outage", asked.outages), ("--pause", asked.pauses)):
        for low, high in spans:
            if high <= low:
                raise _problem(
                    f"{name}: {format_utc(low)}..{format_utc(high)} does not end after it starts; write A..B"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    body: dict[str, Any]
    definition: Definition | None


def _written(asked: Asked, warnings: list[str]) -> Iterator[tuple[datetime, _Manifest]]:
    """Yield what is written and when; a definition that a file does not repeat stays as it was."""
    known: list[Document] = []
    for at, documents in [(asked.start, asked.manifest), *sorted(asked.edits, key=_first)]:
        known = [*documents, *known]
        yield at, _manifest(asked, documents, known, warnings)


def _manifest(asked: Asked, documents: Sequence[Document], known: Sequence[Document], warnings: list[str]) -> _Manifest:
    schedule = schedule_document(documents, name=asked.name)
    if found := problems_of(schedule):
        raise ProblemsError(*found)
    is_edit = len(known) > len(documents)
    spec = given_spec(schedule)
    if spec.get("enabled") is not True and not (is_edit and spec.get("enabled") is False):
        warnings.append(f"{schedule.place(('spec', 'enabled'))}: spec.enabled is not true; taken as true")
        spec["enabled"] = True
    if spec.get("maxJitterSeconds") and not schedule.body["metadata"].get("uid"):
        warnings.append("spec.maxJitterSeconds: delays hang on the UID of the schedule; these are those of an example")
    body = {**as_created(schedule, uid=_EXAMPLE_UID), "spec": spec}
    return _Manifest(body=body, definition=_definition(spec, known, warnings))


def _definition(spec: dict[str, Any], documents: Sequence[Document], warnings: list[str]) -> Definition | None:
    if not spec.get("workflowRef"):
        return None
    name = spec["workflowRef"]["name"]
    metadata = {"uid": f"uid-of-{name}", "namespace": "default", "name": name}
    for document in documents:
        if not _may_be_definition(document, name):
            continue
        if found := problems_of(document):
            raise ProblemsError(*found)
        given = given_spec(document)
        if given.get("enabled") is False:
            place = document.place(("spec", "enabled"))
            warnings.append(f"{place}: WorkflowDefinition {name} has enabled: false; it holds the schedule")
        return definition_of({"metadata": metadata, "spec": given})
    warnings.append(f"spec.workflowRef.name: WorkflowDefinition {name} is not in the file; taken as there and enabled")
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "unsaid"}]}}}}
    return definition_of({"metadata": metadata, "spec": {"jobTemplate": template}})


def _may_be_definition(document: Document, name: str) -> bool:
    """Tell whether a document is the definition of that name, or is one whose name can't be read."""
    if not is_of_kind(document, names.KIND_DEFINITION):
        return False
    called = name_of(document)
    return called == name or (not isinstance(called, str) and bool(problems_of(document)))


def _moments(asked: Asked) -> list[datetime]:
    """Return when anything is written, oldest first."""
    times = {asked.start, *(at for at, _ in asked.edits), *(at for span in asked.pauses for at in span)}
    return sorted(at for at in times if asked.start <= at <= asked.until)


def _change(asked: Asked, at: datetime, written: Sequence[tuple[datetime, _Manifest]]) -> Change:
    manifest = next(manifest for since, manifest in reversed(written) if since <= at)
    spec = dict(manifest.body["spec"])
    if any(low <= at < high for low, high in asked.pauses):
        spec["pause"] = {"reason": "--pause"}  # whatever the file's own is: it may end earlier
    metadata = {**manifest.body["metadata"], "generation": 1, "creationTimestamp": format_utc(asked.start)}
    return Change(at=at, schedule=schedule_of({"metadata": metadata, "spec": spec}), definition=manifest.definition)


def _merged(spans: Sequence[Span]) -> list[Outage]:
    """Return spans as outages that are apart from one another."""
    outages: list[Outage] = []
    for low, high in sorted(spans):
        if outages and low <= outages[-1].end:
            outages[-1] = replace(outages[-1], end=max(outages[-1].end, high))
        else:
            outages.append(Outage(start=low, end=high))
    return outages


def _lasting(changes: Sequence[Change], until: datetime) -> Iterator[tuple[Change, datetime]]:
    """Yield each change with the time until which it holds."""
    for index, change in enumerate(changes):
        yield change, changes[index + 1].at if index + 1 < len(changes) else until


def _check_size(changes: Sequence[Change], outages: Sequence[Outage], until: datetime) -> None:
    """Refuse what would take minutes; an outage is one decision however long it is."""
    sizes = [_size(_trigger(change), low, high) for change, low, high in _watched(changes, outages, until)]
    count, is_estimate = sum(count for count, _ in sizes), any(is_estimate for _, is_estimate in sizes)
    if count > INSTANTS_LIMIT:
        about = "about " if is_estimate else ""
        raise _problem(
            f"--to: {about}{count} instants until {format_utc(until)}; write a time with at most {INSTANTS_LIMIT}"
        )


def _watched(
    changes: Sequence[Change], outages: Sequence[Outage], until: datetime
) -> Iterator[tuple[Change, datetime, datetime]]:
    """Yield the stretches in which an operator runs, each with what is written there."""
    for change, end in _lasting(changes, until):
        low = change.at
        for outage in outages:
            yield change, low, max(low, min(outage.start, end))
            low = min(max(low, outage.end), end)
        yield change, low, end


def _size(trigger: Trigger, low: datetime, high: datetime) -> tuple[int, bool]:
    """Return how many instants there are in ``(low, high]``, and whether that is an estimate, by its first years."""
    if not isinstance(trigger, OneShotTrigger):
        calendar = calendar_of(trigger)
        low, high = max(low, to_utc(calendar.first - 1)), min(high, to_utc(calendar.last))
    known = min(high, moved(low, _COUNTED) or high)
    count = count_due_times(trigger, after=low, until=known)
    return (count, False) if known >= high else (count * ((high - low) // _DAY) // ((known - low) // _DAY), True)


def _surprises(trigger: Trigger, after: datetime, until: datetime) -> Iterator[str]:
    if isinstance(trigger, OneShotTrigger) and to_utc(trigger.instant) <= after:
        yield f"spec.runOnceTime is not after {format_utc(after)}: it is Complete (OneShotPast) and never runs"
    yield from explain(trigger, after=after, until=until)


def _trigger(change: Change) -> Trigger:
    verdict = accept(change.schedule, change.definition)
    if not isinstance(verdict, Accepted):
        raise _problem(verdict.message)
    return verdict.trigger


def _first(pair: tuple[datetime, object]) -> datetime:
    return pair[0]


def _problem(message: str) -> ProblemsError:
    return ProblemsError(Problem(error="invalid_argument", message=message))
