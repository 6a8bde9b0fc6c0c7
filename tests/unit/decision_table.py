"""What is decided in which situation: rows that a test runs through the core and hack/update writes as docs/decisions.md.

Data only, and how to read it: a row says what is set and what happens, in times of one Friday, on a schedule of every minute
that is there from 10:00 on and whose runs take 30 s; `want` is the log that this leaves, `then` says the same in words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One situation.

    Attributes:
        policy: for people; which policies it is about.
        fields: of the spec, beside the schedule of every minute.
        outage: no operator runs from A until just before B.
        pause: spec.pause is present from A until B.
        edits: fields that change at a time; None takes one away.
        parent: `enabled` of the WorkflowDefinition from a time on, where the schedule has one.
        runs: how the runs go, as in `kubectl wfs simulate --runs`.
        want: the log, a record a line: ``Admitted 10:01``, ``Coalesced 10:02..10:04 (3)``; what starts late with ``@``.
    """

    policy: str
    then: str
    want: tuple[str, ...]
    fields: dict[str, Any] = field(default_factory=dict)
    outage: tuple[str, str] | None = None
    pause: tuple[str, str] | None = None
    edits: dict[str, dict[str, Any]] = field(default_factory=dict)
    parent: dict[str, dict[str, Any]] = field(default_factory=dict)
    runs: tuple[dict[str, Any], ...] = ({"seconds": 30},)
    start: str = "10:00"
    until: str = "10:03"


@dataclass(frozen=True, slots=True)
class Situation:
    """Rows that differ by policy, under one heading."""

    title: str
    text: str
    rows: tuple[Row, ...]


LATEST = {"misfirePolicy": "Latest"}
ALL = {"misfirePolicy": "All"}
TWO = {"concurrencyPolicy": "Allow", "maxActiveRuns": 2}
REPLACE = {"concurrencyPolicy": "Replace"}
LONG = ({"seconds": 210}, {"seconds": 30})
DOWN = ("10:00:30", "10:05:20")
NEW_HOUR = {"schedule": "30 12 * * *"}
OFF, ON = {"enabled": False}, {"enabled": True}

FREE = Situation(
    "Due, and nothing in its way",
    "An instant comes while the operator runs and no earlier run of the schedule is unfinished.",
    (
        Row(
            policy="`Forbid`, any `misfirePolicy`",
            then="It starts.",
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03"),
        ),
        Row(
            policy="`Allow`",
            fields=TWO,
            then="It starts, also beside unfinished runs, up to `maxActiveRuns`.",
            runs=({"seconds": 90},),
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03"),
        ),
        Row(
            policy="`Replace`",
            fields=REPLACE,
            then="It starts.",
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03"),
        ),
    ),
)

BLOCKED = Situation(
    "Blocked by a run that has not finished",
    "Here the run of 10:01 takes three and a half minutes. Runs that were triggered by hand, and other schedules, never block.",
    (
        Row(
            policy="`Forbid` + `Skip`",
            then="Each blocked instant is given up as it comes; the first one after the run's end starts.",
            runs=LONG,
            until="10:05",
            want=(
                "Admitted 10:01",
                "SkippedOverlap 10:02",
                "SkippedOverlap 10:03",
                "SkippedOverlap 10:04",
                "Admitted 10:05",
            ),
        ),
        Row(
            policy="`Forbid` + `Latest`",
            fields=LATEST,
            then="The newest one waits, the older are given up for it; it starts the second the run ends.",
            runs=LONG,
            until="10:05",
            want=(
                "Admitted 10:01",
                "Coalesced 10:02",
                "Coalesced 10:03",
                "Admitted 10:04 @10:04:30",
                "Admitted 10:05",
            ),
        ),
        Row(
            policy="`Forbid` + `All`",
            fields={**ALL, "maxCatchUpRuns": 2},
            then="The newest `maxCatchUpRuns` (here 2) wait and start one after the other, the oldest first; "
            "what they leave no room for is given up.",
            runs=LONG,
            until="10:05:29",
            want=(
                "Admitted 10:01",
                "Coalesced 10:02",
                "Admitted 10:03 @10:04:30",
                "Admitted 10:04 @10:05",
            ),
        ),
        Row(
            policy="`Allow` + `Skip`",
            fields=TWO,
            then="With `maxActiveRuns` (here 2) unfinished, the instant is given up.",
            runs=({"outcome": "Running"},),
            want=("Admitted 10:01", "Admitted 10:02", "SkippedOverlap 10:03"),
        ),
        Row(
            policy="`Allow` + `Latest`",
            fields={**TWO, **LATEST},
            then="With `maxActiveRuns` unfinished the newest one waits for the first run that ends.",
            runs=({"seconds": 150}, {"seconds": 600}),
            until="10:04",
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03 @10:03:30"),
        ),
        Row(
            policy="`Replace`",
            fields=REPLACE,
            then="The older run is ended (`Cancelled`), and the instant starts once nothing of it is left.",
            runs=({"seconds": 600},),
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03"),
        ),
        Row(
            policy="any, the run is suspended (`Interrupted`)",
            then="It keeps its slot until it is resumed and ends.",
            runs=({"seconds": 10, "outcome": "Interrupted"},),
            want=("Admitted 10:01", "SkippedOverlap 10:02", "SkippedOverlap 10:03"),
        ),
        Row(
            policy="any, the run has failed",
            then="A failed run blocks nothing, and is not run again.",
            runs=({"seconds": 10, "outcome": "Failed"}, {"seconds": 30}),
            until="10:02",
            want=("Admitted 10:01", "Admitted 10:02"),
        ),
        Row(
            policy="`Allow`, `maxActiveRuns` lowered meanwhile",
            fields={"concurrencyPolicy": "Allow", "maxActiveRuns": 3},
            edits={"10:02:30": {"maxActiveRuns": 1}},
            then="No run is ended; nothing starts until fewer than the new limit are unfinished.",
            runs=({"seconds": 150},),
            until="10:05",
            want=("Admitted 10:01", "Admitted 10:02", "SkippedOverlap 10:03", "SkippedOverlap 10:04", "Admitted 10:05"),
        ),
    ),
)

LATE = Situation(
    "Late",
    "No operator ran when the instant came. `startingDeadlineSeconds` says how late a start may be: unset, 60 s under `Skip`, "
    "and any time under `Latest` and `All`.",
    (
        Row(
            policy="`Skip`, within the deadline",
            then="It starts late.",
            outage=("10:00:30", "10:02"),
            fields={"schedule": "1 * * * *"},
            want=("Admitted 10:01 @10:02",),
        ),
        Row(
            policy="`Skip`, beyond the deadline",
            then="It is given up.",
            outage=("10:00:30", "10:02:01"),
            fields={"schedule": "1 * * * *"},
            want=("SkippedMisfire 10:01",),
        ),
        Row(
            policy="`Latest`, no deadline",
            then="It starts, however late.",
            outage=("10:00:30", "16:00"),
            fields={**LATEST, "schedule": "1 10 * * *"},
            until="16:00",
            want=("Admitted 10:01 @16:00",),
        ),
        Row(
            policy="`Latest`, beyond its deadline",
            then="It is given up.",
            outage=DOWN,
            fields={**LATEST, "schedule": "1 10 * * *", "startingDeadlineSeconds": 120},
            until="10:06",
            want=("SkippedMisfire 10:01",),
        ),
        Row(
            policy="`All`, beyond its deadline",
            then="Those beyond it are given up, the others run.",
            outage=DOWN,
            fields={**ALL, "startingDeadlineSeconds": 120},
            until="10:05:59",
            want=("SkippedMisfire 10:01..10:03 (3)", "Admitted 10:04 @10:05:20", "Admitted 10:05 @10:05:50"),
        ),
        Row(
            policy="`Latest`, the deadline passes while it waits for a run",
            then="It is given up.",
            fields={**LATEST, "schedule": "1,2 10 * * *", "startingDeadlineSeconds": 60},
            runs=({"seconds": 600},),
            until="10:05",
            want=("Admitted 10:01", "SkippedMisfire 10:02"),
        ),
    ),
)

SEVERAL = Situation(
    "Several due at once",
    "No operator ran from 10:00:30 until 10:05:20, over the instants of 10:01 to 10:05. Adjacent instants that are given up "
    "are one record with a count.",
    (
        Row(
            policy="`Skip`",
            then="The newest one within the deadline starts, the older are given up.",
            outage=DOWN,
            until="10:05:30",
            want=("SkippedMisfire 10:01..10:04 (4)", "Admitted 10:05 @10:05:20"),
        ),
        Row(
            policy="`Skip`, all within the deadline",
            then="The same: there is one slot, so one start.",
            outage=DOWN,
            fields={"startingDeadlineSeconds": 3600},
            until="10:05:30",
            want=("SkippedMisfire 10:01..10:04 (4)", "Admitted 10:05 @10:05:20"),
        ),
        Row(
            policy="`Allow` + `Skip`, all within the deadline",
            then="As many of the newest start as there are slots.",
            outage=DOWN,
            fields={**TWO, "startingDeadlineSeconds": 3600},
            until="10:05:30",
            want=("SkippedMisfire 10:01..10:03 (3)", "Admitted 10:04 @10:05:20", "Admitted 10:05 @10:05:20"),
        ),
        Row(
            policy="`Latest`",
            then="The newest one starts, once, also where `Allow` has more slots.",
            outage=DOWN,
            fields={**LATEST, **TWO},
            until="10:05:30",
            want=("Coalesced 10:01..10:04 (4)", "Admitted 10:05 @10:05:20"),
        ),
        Row(
            policy="`All`",
            then="The newest `maxCatchUpRuns` (here 2) run, the oldest first, never more at once than the overlap rule allows.",
            outage=DOWN,
            fields={**ALL, "maxCatchUpRuns": 2},
            until="10:05:59",
            want=("Coalesced 10:01..10:03 (3)", "Admitted 10:04 @10:05:20", "Admitted 10:05 @10:05:50"),
        ),
        Row(
            policy="`Skip`, a run from before goes on",
            then="What is late and what is blocked are one record: blocked.",
            fields={"startingDeadlineSeconds": 3600},
            outage=("10:01:30", "10:05:20"),
            runs=({"seconds": 600},),
            until="10:05:30",
            want=("Admitted 10:01", "SkippedOverlap 10:02..10:05 (4)"),
        ),
    ),
)

WAITING = Situation(
    "Something changes while an instant waits",
    "Under `Latest` the instant of 10:02 waits for the run of 10:01 when somebody changes the schedule at 10:02:30.",
    (
        Row(
            policy="an edit of the calendar, of a policy, of the template",
            then="It is given up, on record; the new spec counts from the edit on.",
            fields=LATEST,
            edits={"10:02:30": NEW_HOUR},
            runs=({"seconds": 100},),
            want=("Admitted 10:01", "Superseded 10:02"),
        ),
        Row(
            policy="an edit of `input` alone",
            then="It is given up, too, since its input would be another; the next instant stays.",
            fields=LATEST,
            edits={"10:02:30": {"input": {"env": "staging"}}},
            runs=({"seconds": 100}, {"seconds": 30}),
            want=("Admitted 10:01", "Superseded 10:02", "Admitted 10:03"),
        ),
        Row(
            policy="`enabled: false`",
            then="It is given up.",
            fields=LATEST,
            edits={"10:02:30": OFF},
            runs=({"seconds": 100},),
            want=("Admitted 10:01", "Superseded 10:02"),
        ),
        Row(
            policy="`pause`",
            then="It is given up.",
            fields=LATEST,
            pause=("10:02:30", "11:00"),
            runs=({"seconds": 100},),
            want=("Admitted 10:01", "Superseded 10:02"),
        ),
        Row(
            policy="the definition is disabled",
            then="It is given up.",
            fields=LATEST,
            parent={"10:00": ON, "10:02:30": OFF},
            runs=({"seconds": 100},),
            want=("Admitted 10:01", "Superseded 10:02"),
        ),
        Row(
            policy="the same manifest again, labels, history limits, `deletionPolicy`",
            then="Nothing changes: it goes on waiting.",
            fields=LATEST,
            edits={"10:02:30": {"deletionPolicy": "Delete", "occurrenceHistoryLimit": 7}},
            runs=({"seconds": 100}, {"seconds": 10}),
            until="10:02:50",
            want=("Admitted 10:01", "Admitted 10:02 @10:02:40"),
        ),
    ),
)

SWITCHES = Situation(
    "Switched off and on",
    "What comes while a schedule is off is not due, whatever the policies: nothing of it runs later, and nothing is recorded.",
    (
        Row(
            policy="`enabled: false` from 10:01:30 until 10:03:30",
            then="The next instant after enabling starts.",
            fields=LATEST,
            edits={"10:01:30": OFF, "10:03:30": ON},
            until="10:04",
            want=("Admitted 10:01", "Admitted 10:04"),
        ),
        Row(
            policy="`pause` from 10:01:30 until 10:03:30",
            then="The next instant after resuming starts.",
            fields=LATEST,
            pause=("10:01:30", "10:03:30"),
            until="10:04",
            want=("Admitted 10:01", "Admitted 10:04"),
        ),
        Row(
            policy="`pause`, and an outage after it",
            then="Only what came after resuming is caught up with.",
            fields={**LATEST, "schedule": "*/10 * * * *"},
            pause=("10:05", "10:35"),
            outage=("10:38", "10:59"),
            until="11:00",
            want=("Coalesced 10:40", "Admitted 10:50 @10:59", "Admitted 11:00"),
        ),
        Row(
            policy="the definition disabled from 10:01:30 until 10:03:30",
            then="The next instant after it is enabled starts (with `onDisable: HoldSchedules`; by default the operator disables "
            "its schedules, too).",
            fields=LATEST,
            parent={"10:00": ON, "10:01:30": OFF, "10:03:30": ON},
            until="10:04",
            want=("Admitted 10:01", "Admitted 10:04"),
        ),
        Row(
            policy="the definition is disabled from the start",
            then="Nothing runs.",
            fields=LATEST,
            parent={"10:00": OFF},
            want=(),
        ),
        Row(
            policy="an edit to an earlier time of day",
            then="Nothing before the edit ever runs: the next instant of the new calendar starts.",
            fields={**LATEST, "schedule": "0 14 * * *"},
            edits={"13:50": {"schedule": "30 13 * * *"}},
            until="23:59",
            want=(),
        ),
        Row(
            policy="off while a run goes on",
            then="The run goes on; it still counts for the overlap rule.",
            edits={"10:01:10": OFF, "10:01:40": ON},
            runs=({"seconds": 90}, {"seconds": 30}),
            want=("Admitted 10:01", "SkippedOverlap 10:02", "Admitted 10:03"),
        ),
    ),
)

CALENDAR = Situation(
    "The calendar",
    "`excludeDates` leaves dates out on record; `startTime`, `endTime` and the policies for clock changes say which instants "
    "there are at all.",
    (
        Row(
            policy="`excludeDates`",
            then="The instants of that date are given up, each as it comes.",
            fields={"excludeDates": ["2026-03-06"]},
            until="10:02",
            want=("SkippedExcluded 10:01", "SkippedExcluded 10:02"),
        ),
        Row(
            policy="`excludeDates`, after an outage",
            then="They are one record, not a miss, and never caught up with.",
            fields={**LATEST, "excludeDates": ["2026-03-06"]},
            outage=DOWN,
            until="10:05:30",
            want=("SkippedExcluded 10:01..10:05 (5)",),
        ),
        Row(
            policy="`endTime` passed",
            then="Nothing is due any more: `Complete`.",
            fields={"endTime": "2026-03-06T10:02:00Z"},
            until="10:09",
            want=("Admitted 10:01", "Admitted 10:02"),
        ),
        Row(
            policy="`runLimit` used up",
            then="`Complete`: nothing more starts.",
            fields={"runLimit": 2},
            until="10:09",
            want=("Admitted 10:01", "Admitted 10:02"),
        ),
    ),
)

ONCE = Situation(
    "One instant (`runOnceTime`)",
    "",
    (
        Row(
            policy="in the future",
            then="It runs, once.",
            fields={"runOnceTime": "2026-03-06T11:02:00+01:00"},
            want=("Admitted 10:02",),
        ),
        Row(
            policy="in the past when the schedule is made",
            then="It never runs: `Complete` (`OneShotPast`).",
            fields={**LATEST, "runOnceTime": "2026-03-06T09:59:59Z"},
            want=(),
        ),
        Row(
            policy="`Skip`, missed",
            then="It is given up, and the schedule is `Complete`.",
            fields={"runOnceTime": "2026-03-06T10:01:00Z"},
            outage=DOWN,
            until="10:06",
            want=("SkippedMisfire 10:01",),
        ),
        Row(
            policy="`Latest`, missed",
            then="It runs late.",
            fields={**LATEST, "runOnceTime": "2026-03-06T10:01:00Z"},
            outage=DOWN,
            until="10:06",
            want=("Admitted 10:01 @10:05:20",),
        ),
        Row(
            policy="an edit that makes it due again",
            then="It runs again: that is another occurrence.",
            fields={"runOnceTime": "2026-03-06T10:01:00Z"},
            edits={"10:01:30": {"runOnceTime": "2026-03-06T10:03:00Z"}},
            want=("Admitted 10:01", "Admitted 10:03"),
        ),
    ),
)

LIMITS = Situation(
    "Limits beside the schedule's own",
    "",
    (
        Row(
            policy="`maxActiveRuns` of the definition + `Skip`",
            fields=TWO,
            parent={"10:00": {"enabled": True, "maxActiveRuns": 1}},
            then="No room counts like a run that blocks.",
            runs=({"seconds": 90},),
            until="10:02",
            want=("Admitted 10:01", "SkippedOverlap 10:02"),
        ),
        Row(
            policy="`maxActiveRuns` of the definition + `Latest`",
            fields={**TWO, **LATEST},
            parent={"10:00": {"enabled": True, "maxActiveRuns": 1}},
            then="The newest one waits for room.",
            runs=({"seconds": 90}, {"seconds": 10}),
            until="10:02:40",
            want=("Admitted 10:01", "Admitted 10:02 @10:02:30"),
        ),
        Row(
            policy="`pauseAfterFailures` reached",
            fields={"pauseAfterFailures": 2},
            then="The operator pauses the schedule, in its status; an edit or a good manual run resumes it.",
            runs=({"seconds": 10, "outcome": "Failed"},),
            until="10:05",
            want=("Admitted 10:01", "Admitted 10:02"),
        ),
    ),
)

SITUATIONS = (FREE, BLOCKED, LATE, SEVERAL, WAITING, SWITCHES, CALENDAR, ONCE, LIMITS)
