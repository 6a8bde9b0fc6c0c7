"""How simulated runs go, read from a file: how long each lasts, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_schedules.api.common import parse_utc
from workflow_schedules.api.occurrence import Outcome
from workflow_schedules.cli.documents import given
from workflow_schedules.cli.problems import Problem, ProblemsError
from workflow_schedules.cli.structure import short
from workflow_schedules.core.scene import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from workflow_schedules.cli.documents import Document

DEFAULT_SECONDS = 60
LONGEST_SECONDS = 366 * 86_400
_OUTCOMES = (Outcome.COMPLETED, Outcome.FAILED, Outcome.EXHAUSTED, Outcome.INTERRUPTED, Outcome.RUNNING)
_FIELDS = ("seconds", "outcome", "scheduledTime")

HELP = f"""\
FILE of --runs: a YAML or JSON list, an entry for each run, taken in the order of the starts; the last one repeats:
  - {{seconds: 90}}                                 completes after 90 s
  - {{seconds: 5, outcome: Failed}}                 or Exhausted; or Interrupted: suspended, and keeps its slot
  - {{outcome: Running}}                            never ends
  - {{scheduledTime: "2026-03-06T10:00:00Z", seconds: 600}}   the run of that instant; takes no turn in the order
Runs without an entry complete after {DEFAULT_SECONDS} s. What outlasts its Job's activeDeadlineSeconds is Exhausted by then."""


def all_alike(seconds: int) -> Callable[[datetime], Ending]:
    """Return runs that all complete after as many seconds."""
    ending = Ending(seconds=seconds)
    return lambda _instant: ending


def script_of(file: str, documents: Sequence[Document]) -> Callable[[datetime], Ending]:
    """Return runs that go as a file says.

    Args:
        file: its name.
        documents: what it holds.

    Raises:
        ProblemsError: it is no such list; every entry that is wrong is named.
    """
    if len(documents) != 1 or not isinstance(documents[0].body, list) or not documents[0].body:
        found = "several documents" if len(documents) > 1 else short(documents[0].body) if documents else "nothing"
        message = f"runs: {found}, which is no list of runs; write entries such as - {{seconds: 90, outcome: Failed}}"
        raise ProblemsError(_problem(file, message))
    document = documents[0]
    problems = [problem for index, entry in enumerate(document.body) for problem in _problems(document, index, entry)]
    if problems:
        raise ProblemsError(*problems)
    entries = [given(entry) for entry in document.body]
    named = {parse_utc(entry["scheduledTime"]): _ending(entry) for entry in entries if "scheduledTime" in entry}
    ordered = [_ending(entry) for entry in entries if "scheduledTime" not in entry]
    turns = iter(ordered)
    last = ordered[-1] if ordered else Ending(seconds=DEFAULT_SECONDS)
    return lambda instant: named.get(instant) or next(turns, last)


def _ending(entry: dict[str, object]) -> Ending:
    return Ending(
        seconds=int(str(entry.get("seconds", 0))), outcome=Outcome(str(entry.get("outcome", Outcome.COMPLETED)))
    )


def _problems(document: Document, index: int, entry: object) -> Iterator[Problem]:
    for path, message in _flaws(entry):
        name = ".".join((f"runs[{index}]", *path))
        yield _problem(document.place((index, *path)), f"{name}: {message}")


def _flaws(entry: object) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(entry, dict):
        yield (), f"{short(entry)} is no run; write an entry such as {{seconds: 90}}"
        return
    for key in entry:
        if key not in _FIELDS:
            yield (key,), f"no such field; there are {', '.join(_FIELDS)}"
    entry = given(entry)
    outcome, seconds = entry.get("outcome", Outcome.COMPLETED), entry.get("seconds")
    if outcome not in _OUTCOMES:
        yield ("outcome",), f"{short(outcome)} is unknown; write one of {', '.join(_OUTCOMES)}"
    if not _is_length(seconds) and not (seconds is None and outcome == Outcome.RUNNING):
        yield ("seconds",), f"{short(seconds)} is no length of a run; write 0 to {LONGEST_SECONDS}, or outcome: Running"
    if "scheduledTime" in entry:
        try:
            parse_utc(entry["scheduledTime"])
        except ValueError as error:
            yield ("scheduledTime",), str(error)


def _is_length(seconds: object) -> bool:
    return isinstance(seconds, int) and not isinstance(seconds, bool) and 0 <= seconds <= LONGEST_SECONDS


def _problem(place: str, message: str) -> Problem:
    return Problem(error="invalid_runs", message=message, place=place)
