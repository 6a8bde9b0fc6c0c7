"""What a row of the decision table says, and the words that rows are written in. No row may live here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Fields = dict[str, Any]

FORBID: Fields = {"concurrencyPolicy": "Forbid"}
TWO: Fields = {"concurrencyPolicy": "Allow", "maxActiveRuns": 2}
ONE: Fields = {"concurrencyPolicy": "Allow", "maxActiveRuns": 1}
REPLACE: Fields = {"concurrencyPolicy": "Replace"}
SKIP: Fields = {"misfirePolicy": "Skip"}
LATEST: Fields = {"misfirePolicy": "Latest"}
ALL: Fields = {"misfirePolicy": "All"}

ANY_CONCURRENCY = (FORBID, TWO, REPLACE)
ANY_MISFIRE = (SKIP, LATEST, ALL)


def each(*choices: tuple[Fields, ...]) -> tuple[Fields, ...]:
    """Return every combination of one of each."""
    return tuple({name: value for fields in chosen for name, value in fields.items()} for chosen in product(*choices))


ANY = each(ANY_CONCURRENCY, ANY_MISFIRE)
WAITS = each((FORBID, ONE), (LATEST, ALL))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One situation.

    Attributes:
        policy: for people; which policies it is about.
        fields: of the spec, beside the schedule of every minute.
        alike: fields of which each leaves the same log; where a row says "any", all that there are.
        outage: no operator runs from A until just before B.
        pause: spec.pause is present from A until B.
        edits: fields that change at a time; None takes one away.
        parent: `enabled` of the WorkflowDefinition from a time on, where the schedule has one.
        runs: how the runs go, as in `kubectl wfs simulate --runs`.
        want: the log, a record a line: ``Admitted 10:01``, ``Coalesced 10:02..10:04 (3)``; what starts late with ``@``.
        outcomes: how the runs ended, a record each; ``-`` where none has. Empty is not compared.
        date: of all times.
        asked: spec of a run that somebody asks for at a time, beside its schedule; its line says its cause.
        beside: a run of another schedule is unfinished from A until B.
        max_concurrent_runs: the setting of the operator.
    """

    policy: str
    then: str
    want: tuple[str, ...]
    fields: Fields = field(default_factory=dict)
    alike: tuple[Fields, ...] = ()
    outage: tuple[str, str] | None = None
    pause: tuple[str, str] | None = None
    edits: dict[str, Fields] = field(default_factory=dict)
    parent: dict[str, Fields] = field(default_factory=dict)
    runs: tuple[Fields, ...] = ({"seconds": 30},)
    start: str = "10:00"
    until: str = "10:03"
    outcomes: tuple[str, ...] = ()
    date: str = "2026-03-06"
    asked: dict[str, Fields] = field(default_factory=dict)
    beside: tuple[str, str] | None = None
    max_concurrent_runs: int = 0

    @property
    def needs_operator(self) -> bool:
        """Tell whether it is about more than one schedule by itself, which is all that the simulation knows."""
        return bool(self.asked or self.beside)

    def plays(self) -> Iterator[tuple[str, Row]]:
        """Yield each combination of policies that it speaks of, by a name, as a row of its own."""
        for fields in self.alike or ({},):
            played = self.fields | fields
            yield "+".join(policies(played)), _with(self, played)


def policies(fields: Fields) -> tuple[str, str]:
    """Return what is in force, unset ones included."""
    return fields.get("concurrencyPolicy", "Forbid"), fields.get("misfirePolicy", "Skip")


def _with(row: Row, fields: Fields) -> Row:
    return replace(row, fields=fields, alike=())


@dataclass(frozen=True, slots=True)
class Situation:
    """Rows that differ by policy, under one heading.

    Attributes:
        excused: combinations of policies that no row is about, and why; "any" stands for each.
    """

    title: str
    text: str
    rows: tuple[Row, ...]
    excused: dict[tuple[str, str], str] = field(default_factory=dict)
