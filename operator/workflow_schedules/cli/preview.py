"""`kubectl wfs preview`: the instants of a trigger, by the function that decides what really runs (R6)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from workflow_schedules.api import names
from workflow_schedules.cli.problems import Problem, ProblemsError, code_of
from workflow_schedules.cli.structure import short
from workflow_schedules.cli.validate import given_spec, problems_of
from workflow_schedules.cluster.wire import schedule_of
from workflow_schedules.core.acceptance import trigger_of
from workflow_schedules.core.due_times import due_times, newest_due_times
from workflow_schedules.core.explain import explain, local_text
from workflow_schedules.core.refusals import refusals
from workflow_schedules.core.triggers import OneShotTrigger
from workflow_schedules.core.zones import FIRST_SECOND, LAST_SECOND, to_utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from workflow_schedules.cli.documents import Document
    from workflow_schedules.core.triggers import Trigger

_BEGINNING, _END = to_utc(FIRST_SECOND), to_utc(LAST_SECOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is previewed.

    Attributes:
        notes: what the manifest says beside its trigger that matters for what runs.
    """

    trigger: Trigger
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which instants are asked for.

    Attributes:
        after: list the first ones after it.
        before: list the newest ones at or before it, newest first; with `after` too, those between, oldest first.
        count: at most so many.
        now: for what is past.
    """

    after: datetime | None
    before: datetime | None
    count: int
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Instants and what may surprise about them."""

    trigger: Trigger
    times: tuple[datetime, ...]
    warnings: tuple[str, ...]

    def table(self) -> Iterator[str]:
        """Yield lines for people: UTC and local time."""
        if not self.times:
            yield "no instants"
            return
        yield f"{'UTC':22}LOCAL"
        for at in self.times:
            yield f"{at:%Y-%m-%dT%H:%M:%SZ}  {local_text(self.trigger, at)}"


def trigger_of_expressions(expressions: Sequence[str], *, time_zone: str) -> Asked:
    """Read expressions given as arguments.

    Raises:
        ProblemsError: one of them can't be used.
    """
    spec = {"schedules": list(expressions)} if len(expressions) > 1 else {"schedule": expressions[0]}
    return _of_spec({**spec, "timeZone": time_zone})


def trigger_of_one_shot(time: str, *, time_zone: str) -> Asked:
    """Read an instant given as an argument.

    Raises:
        ProblemsError: it can't be used.
    """
    return _of_spec({"runOnceTime": time, "timeZone": time_zone})


def trigger_of_file(documents: Sequence[Document], *, name: str | None, time_zone: str | None) -> Asked:
    """Read the WorkflowSchedule of a file.

    Raises:
        ProblemsError: there is none, or more than one, or it can't be used.
    """
    called = schedule_document(documents, name=name)
    problems = problems_of(called)
    if problems:
        raise ProblemsError(*problems)
    spec = given_spec(called)
    notes = () if spec.get("enabled") else ("enabled is not true: nothing runs until it is",)
    if jitter := spec.get("maxJitterSeconds"):
        notes = (*notes, f"maxJitterSeconds {jitter}: each start is late by a stable part of it")
    asked = _of_spec({**spec, "timeZone": spec.get("timeZone", "UTC") if time_zone is None else time_zone})
    return Asked(trigger=asked.trigger, notes=notes)


def schedule_document(documents: Sequence[Document], *, name: str | None) -> Document:
    """Return the one WorkflowSchedule of a file that is meant.

    Raises:
        ProblemsError: there is none, or more than one.
    """
    found = [(document, name_of(document)) for document in documents if is_of_kind(document, names.KIND_SCHEDULE)]
    called = [document for document, known in found if name is None or name == known]
    if len(called) != 1:
        known = ", ".join(known if isinstance(known, str) else short(known) for _, known in found) or "none"
        message = f"one WorkflowSchedule is wanted; the file has: {known}; name one of them by --name"
        raise ProblemsError(Problem(error="ambiguous_schedule", message=message))
    return called[0]


def is_of_kind(document: Document, kind: str) -> bool:
    """Tell whether a document says that it is of a kind, whatever else it holds."""
    return isinstance(document.body, dict) and document.body.get("kind") == kind


def name_of(document: Document) -> object:
    """Return what an object gives as its name: anything."""
    metadata = document.body.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None


def answer(asked: Asked, question: Question) -> Answer:
    """List instants, and explain the surprising ones among them.

    Source: contract R5 to R7.
    """
    trigger = asked.trigger
    after, before = question.after or _BEGINNING, question.before or _END
    listed = newest_due_times if question.after is None else due_times
    times = tuple(islice(listed(trigger, after=after, until=before), question.count))
    warnings = [*asked.notes]
    if isinstance(trigger, OneShotTrigger) and to_utc(trigger.instant) <= question.now:
        warnings.append("runOnceTime is in the past: such a schedule is Complete (OneShotPast) and never runs")
    low, high = _shown(times, question)
    warnings += explain(trigger, after=low, until=high)
    return Answer(trigger=trigger, times=times, warnings=tuple(dict.fromkeys(warnings)))


def _shown(times: Sequence[datetime], question: Question) -> tuple[datetime, datetime]:
    """Return the span that the answer speaks of: to the last instant listed, or all of it where there are no more."""
    after, before = question.after or _BEGINNING, question.before or _END
    if len(times) == question.count:
        if question.after is None:
            after = times[-1]
        else:
            before = times[-1]
    return max(after, _BEGINNING), min(before, _END)


def _of_spec(spec: dict[str, object]) -> Asked:
    body = {
        "metadata": {"uid": "unsaid", "namespace": "default", "name": "unsaid"},
        "spec": {
            "workflowRef": {"name": "unsaid"},
            **{key: value for key, value in spec.items() if key not in {"jobTemplate", "workflowRef"}},
        },
    }
    schedule = schedule_of(body)
    found = refusals(schedule)
    if schedule.spec is None or found:
        raise ProblemsError(*(Problem(error=code_of(refusal.reason), message=refusal.message) for refusal in found))
    return Asked(trigger=trigger_of(schedule.spec))
