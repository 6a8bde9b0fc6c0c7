"""What is decided in which situation: rows that a test runs through the core and hack/update writes as docs/decisions.md.

Data only, and how to read it: a row says what is set and what happens, in times of one Friday, on a schedule of every minute
that is there from 10:00 on and whose runs take 30 s; `want` is the log that this leaves, `then` says the same in words.
"""

from __future__ import annotations

from unit.decision_row import (
    ALL,
    ANY,
    ANY_CONCURRENCY,
    ANY_MISFIRE,
    FORBID,
    LATEST,
    ONE,
    REPLACE,
    TWO,
    WAITS,
    Row,
    Situation,
    each,
)

LONG = ({"seconds": 210}, {"seconds": 30})
DOWN, BUSY_DOWN = ("10:00:30", "10:05:20"), ("10:01:30", "10:05:20")
INTERRUPTED = ({"seconds": 10, "outcome": "Interrupted"},)
NEW_HOUR = {"schedule": "30 12 * * *"}
OFF, ON = {"enabled": False}, {"enabled": True}
NEW_YORK, SPREAD = {"timeZone": "America/New_York"}, {"maxJitterSeconds": 25}
GAP: dict[str, str] = {"date": "2026-03-08", "start": "06:10", "until": "07:30"}
FOLD: dict[str, str] = {"date": "2026-11-01", "start": "05:10", "until": "07:50"}
TWO_KEPT = {"maxCatchUpRuns": 2}

FREE = Situation(
    "Due, and nothing in its way",
    "An instant comes while the operator runs and no earlier run of the schedule is unfinished.",
    (
        Row(
            policy="`Forbid`, any `misfirePolicy`",
            then="It starts.",
            alike=ANY_MISFIRE,
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03"),
        ),
        Row(
            policy="`Allow`, any `misfirePolicy`",
            fields=TWO,
            alike=ANY_MISFIRE,
            then="It starts, also beside unfinished runs, up to `maxActiveRuns` (here 2) at once.",
            runs=({"seconds": 90},),
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03"),
        ),
        Row(
            policy="`Replace`, any `misfirePolicy`",
            fields=REPLACE,
            alike=ANY_MISFIRE,
            then="It starts.",
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03"),
        ),
    ),
)

BLOCKED = Situation(
    "Blocked by a run that has not finished",
    "Each line says how long its runs take. Runs that were triggered by hand, and other schedules, never block.",
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
            then="With `maxActiveRuns` (here 2) runs unfinished, the instant is given up.",
            runs=({"outcome": "Running"},),
            want=("Admitted 10:01", "Admitted 10:02", "SkippedOverlap 10:03"),
        ),
        Row(
            policy="`Allow` + `Latest`",
            fields={**TWO, **LATEST},
            then="With `maxActiveRuns` (here 2) runs unfinished the newest one waits for the first run that ends.",
            runs=({"seconds": 150}, {"seconds": 600}),
            until="10:04",
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03 @10:03:30"),
        ),
        Row(
            policy="`Allow` + `All`",
            fields={**TWO, **ALL},
            then="With `maxActiveRuns` (here 2) runs unfinished the newest `maxCatchUpRuns` (unset: 10) wait; the oldest of them "
            "starts when the first run ends.",
            runs=({"seconds": 210}, {"seconds": 600}),
            until="10:04:30",
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03 @10:04:30"),
        ),
        Row(
            policy="`Replace`, any `misfirePolicy`",
            fields=REPLACE,
            alike=ANY_MISFIRE,
            then="The older run is ended (`Cancelled`), and the instant starts once nothing of it is left.",
            runs=({"seconds": 600},),
            outcomes=("Cancelled", "Cancelled", "-"),
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03"),
        ),
        Row(
            policy="`Allow` + `Skip`, `maxActiveRuns` lowered from 3 to 1 at 10:02:30",
            fields={"concurrencyPolicy": "Allow", "maxActiveRuns": 3},
            edits={"10:02:30": {"maxActiveRuns": 1}},
            then="No run is ended; nothing starts until fewer than the new limit are unfinished.",
            runs=({"seconds": 150},),
            until="10:05",
            want=("Admitted 10:01", "Admitted 10:02", "SkippedOverlap 10:03", "SkippedOverlap 10:04", "Admitted 10:05"),
        ),
    ),
)

SUSPENDED = Situation(
    "Blocked by a run that is suspended (`Interrupted`)",
    'Somebody suspends the Job (`kubectl patch job NAME -p \'{"spec": {"suspend": true}}\'`) after it has started.',
    (
        Row(
            policy="`Forbid` + `Skip`",
            then="It keeps its slot until it is resumed and ends: what comes meanwhile is given up.",
            runs=INTERRUPTED,
            want=("Admitted 10:01", "SkippedOverlap 10:02", "SkippedOverlap 10:03"),
        ),
        Row(
            policy="`Forbid` + `Latest`",
            fields=LATEST,
            then="It keeps its slot; the newest one (here 10:03) waits, the older are given up for it.",
            runs=INTERRUPTED,
            want=("Admitted 10:01", "Coalesced 10:02"),
        ),
        Row(
            policy="`Forbid` + `All`",
            fields={**ALL, **TWO_KEPT},
            then="It keeps its slot; the newest `maxCatchUpRuns` (here 2: 10:03 and 10:04) wait.",
            runs=INTERRUPTED,
            until="10:04",
            want=("Admitted 10:01", "Coalesced 10:02"),
        ),
        Row(
            policy="`Allow`, any `misfirePolicy`",
            fields=TWO,
            alike=ANY_MISFIRE,
            then="It keeps one slot of `maxActiveRuns` (here 2); the others are used.",
            runs=(*INTERRUPTED, {"seconds": 30}),
            outcomes=("-", "Completed", "-"),
            want=("Admitted 10:01", "Admitted 10:02", "Admitted 10:03"),
        ),
        Row(
            policy="`Replace`, any `misfirePolicy`",
            fields=REPLACE,
            alike=ANY_MISFIRE,
            then="It is ended (`Cancelled`) like one that runs.",
            runs=INTERRUPTED,
            until="10:02",
            outcomes=("Cancelled", "-"),
            want=("Admitted 10:01", "Admitted 10:02"),
        ),
    ),
)

FAILED = Situation(
    "A run that has failed",
    "",
    (
        Row(
            policy="any policies",
            alike=ANY,
            then="A failed run blocks nothing, and is not run again.",
            runs=({"seconds": 10, "outcome": "Failed"}, {"seconds": 30}),
            until="10:02",
            outcomes=("Failed", "-"),
            want=("Admitted 10:01", "Admitted 10:02"),
        ),
        Row(
            policy="any policies, `pauseAfterFailures` reached",
            alike=ANY,
            fields={"pauseAfterFailures": 2},
            then="The operator pauses the schedule, in its status; an edit or a good manual run resumes it.",
            runs=({"seconds": 10, "outcome": "Failed"},),
            until="10:05",
            want=("Admitted 10:01", "Admitted 10:02"),
        ),
    ),
)

LATE = Situation(
    "Late",
    "No operator ran when the instant came. `startingDeadlineSeconds` says how late a start may be: unset, 60 s under `Skip`, "
    "and any time under `Latest` and `All`.",
    (
        Row(
            policy="`Skip`, any `concurrencyPolicy`, within the deadline",
            alike=ANY_CONCURRENCY,
            then="It starts late.",
            outage=("10:00:30", "10:02"),
            fields={"schedule": "1 * * * *"},
            want=("Admitted 10:01 @10:02",),
        ),
        Row(
            policy="`Latest` and `All`, any `concurrencyPolicy`, no deadline",
            alike=each(ANY_CONCURRENCY, (LATEST, ALL)),
            then="It starts, however late.",
            outage=("10:00:30", "16:00"),
            fields={"schedule": "1 10 * * *"},
            until="16:00",
            want=("Admitted 10:01 @16:00",),
        ),
    ),
)

TOO_LATE = Situation(
    "Too late",
    "No operator ran, or a run was in the way, until the deadline had passed.",
    (
        Row(
            policy="`Skip`, any `concurrencyPolicy`, beyond the deadline",
            alike=ANY_CONCURRENCY,
            then="It is given up.",
            outage=("10:00:30", "10:02:01"),
            fields={"schedule": "1 * * * *"},
            want=("SkippedMisfire 10:01",),
        ),
        Row(
            policy="`Latest` and `All`, any `concurrencyPolicy`, beyond its deadline",
            alike=each(ANY_CONCURRENCY, (LATEST, ALL)),
            then="It is given up.",
            outage=DOWN,
            fields={"schedule": "1 10 * * *", "startingDeadlineSeconds": 120},
            until="10:06",
            want=("SkippedMisfire 10:01",),
        ),
        Row(
            policy="`Forbid` + `All`, several, some beyond the deadline",
            then="Those beyond it are given up, the others run.",
            outage=DOWN,
            fields={**ALL, "startingDeadlineSeconds": 120},
            until="10:05:59",
            want=("SkippedMisfire 10:01..10:03 (3)", "Admitted 10:04 @10:05:20", "Admitted 10:05 @10:05:50"),
        ),
        Row(
            policy="`Forbid` or `Allow`, + `Latest` or `All`, the deadline passes while it waits for a run",
            alike=WAITS,
            then="It is given up.",
            fields={"schedule": "1,2 10 * * *", "startingDeadlineSeconds": 60},
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
            policy="`Skip`, any `concurrencyPolicy`",
            alike=ANY_CONCURRENCY,
            then="The newest one within the deadline (here 60 s) starts, the older are given up.",
            outage=DOWN,
            until="10:05:30",
            want=("SkippedMisfire 10:01..10:04 (4)", "Admitted 10:05 @10:05:20"),
        ),
        Row(
            policy="`Forbid` or `Replace`, + `Skip`, all within the deadline",
            alike=(FORBID, REPLACE),
            then="The same: there is one slot, so one start.",
            outage=DOWN,
            fields={"startingDeadlineSeconds": 3600},
            until="10:05:30",
            want=("SkippedMisfire 10:01..10:04 (4)", "Admitted 10:05 @10:05:20"),
        ),
        Row(
            policy="`Allow` + `Skip`, all within the deadline",
            then="As many of the newest start as there are slots (here 2).",
            outage=DOWN,
            fields={**TWO, "startingDeadlineSeconds": 3600},
            until="10:05:30",
            want=("SkippedMisfire 10:01..10:03 (3)", "Admitted 10:04 @10:05:20", "Admitted 10:05 @10:05:20"),
        ),
        Row(
            policy="`Latest`, any `concurrencyPolicy`",
            alike=ANY_CONCURRENCY,
            then="The newest one starts, once, also where `Allow` has more slots.",
            outage=DOWN,
            fields=LATEST,
            until="10:05:30",
            want=("Coalesced 10:01..10:04 (4)", "Admitted 10:05 @10:05:20"),
        ),
        Row(
            policy="`Forbid` + `All`",
            then="The newest `maxCatchUpRuns` (here 2) run, the oldest first, one after the other.",
            outage=DOWN,
            fields={**ALL, **TWO_KEPT},
            until="10:05:59",
            want=("Coalesced 10:01..10:03 (3)", "Admitted 10:04 @10:05:20", "Admitted 10:05 @10:05:50"),
        ),
        Row(
            policy="`Allow` + `All`",
            then="The newest `maxCatchUpRuns` (here 3) run, as many at once as `maxActiveRuns` (here 2) allows.",
            outage=DOWN,
            fields={**TWO, **ALL, "maxCatchUpRuns": 3},
            until="10:05:59",
            want=(
                "Coalesced 10:01..10:02 (2)",
                "Admitted 10:03 @10:05:20",
                "Admitted 10:04 @10:05:20",
                "Admitted 10:05 @10:05:50",
            ),
        ),
        Row(
            policy="`Replace` + `All`",
            then="The newest one, as under `Latest`: each would end the one before it at once.",
            outage=DOWN,
            fields={**REPLACE, **ALL},
            until="10:05:59",
            want=("Coalesced 10:01..10:04 (4)", "Admitted 10:05 @10:05:20"),
        ),
    ),
)

SEVERAL_BLOCKED = Situation(
    "Several due at once, and a run from before goes on",
    "The run of 10:01 goes on when an operator runs again at 10:05:20; 10:02 to 10:05 are due. `Allow` has one slot "
    "here.",
    (
        Row(
            policy="`Forbid` or `Allow`, + `Skip`",
            then="What is beyond the deadline (here 60 s) is late; what is not is blocked.",
            alike=(FORBID, ONE),
            outage=BUSY_DOWN,
            runs=({"seconds": 600},),
            until="10:05:30",
            want=("Admitted 10:01", "SkippedMisfire 10:02..10:04 (3)", "SkippedOverlap 10:05"),
        ),
        Row(
            policy="`Forbid` or `Allow`, + `Skip`, all within the deadline",
            then="What is late and what is blocked are one record: blocked.",
            alike=(FORBID, ONE),
            fields={"startingDeadlineSeconds": 3600},
            outage=BUSY_DOWN,
            runs=({"seconds": 600},),
            until="10:05:30",
            want=("Admitted 10:01", "SkippedOverlap 10:02..10:05 (4)"),
        ),
        Row(
            policy="`Forbid` or `Allow`, + `Latest`",
            then="The newest one waits for it, the older are given up.",
            alike=(FORBID, ONE),
            fields=LATEST,
            outage=BUSY_DOWN,
            runs=({"seconds": 270},),
            until="10:05:30",
            want=("Admitted 10:01", "Coalesced 10:02..10:04 (3)", "Admitted 10:05 @10:05:30"),
        ),
        Row(
            policy="`Forbid` or `Allow`, + `All`",
            then="The newest `maxCatchUpRuns` (here 2) wait for it.",
            alike=(FORBID, ONE),
            fields={**ALL, **TWO_KEPT},
            outage=BUSY_DOWN,
            runs=({"seconds": 270},),
            until="10:05:30",
            want=("Admitted 10:01", "Coalesced 10:02..10:03 (2)", "Admitted 10:04 @10:05:30"),
        ),
        Row(
            policy="`Replace` + `Skip`",
            fields=REPLACE,
            then="The newest one within the deadline replaces it.",
            outage=BUSY_DOWN,
            runs=({"seconds": 600},),
            until="10:05:30",
            want=("Admitted 10:01", "SkippedMisfire 10:02..10:04 (3)", "Admitted 10:05 @10:05:20"),
        ),
        Row(
            policy="`Replace` + `Latest` or `All`",
            fields=REPLACE,
            alike=(LATEST, ALL),
            then="The newest one replaces it.",
            outage=BUSY_DOWN,
            runs=({"seconds": 600},),
            until="10:05:30",
            want=("Admitted 10:01", "Coalesced 10:02..10:04 (3)", "Admitted 10:05 @10:05:20"),
        ),
    ),
)

WAITING = Situation(
    "Something changes while an instant waits",
    "Under `Latest` and `All`, with `Forbid` or an `Allow` of one slot, the instant of 10:02 waits for the run of 10:01 when "
    "somebody changes the schedule at 10:02:30.",
    (
        Row(
            policy="an edit of the calendar, of a policy, of the template",
            then="It is given up, on record; the new spec counts from the edit on.",
            alike=WAITS,
            edits={"10:02:30": NEW_HOUR},
            runs=({"seconds": 100},),
            want=("Admitted 10:01", "Superseded 10:02"),
        ),
        Row(
            policy="`All`, an edit when several wait",
            fields=ALL,
            alike=(FORBID, ONE),
            edits={"10:04:30": NEW_HOUR},
            then="All of them are given up, on one record.",
            runs=({"seconds": 600},),
            until="10:05",
            want=("Admitted 10:01", "Superseded 10:02..10:04 (3)"),
        ),
        Row(
            policy="an edit of `input` alone",
            then="It is given up, too, since its input would be another; the next instant stays.",
            alike=WAITS,
            edits={"10:02:30": {"input": {"env": "staging"}}},
            runs=({"seconds": 100}, {"seconds": 30}),
            want=("Admitted 10:01", "Superseded 10:02", "Admitted 10:03"),
        ),
        Row(
            policy="`enabled: false`",
            then="It is given up.",
            alike=WAITS,
            edits={"10:02:30": OFF},
            runs=({"seconds": 100},),
            want=("Admitted 10:01", "Superseded 10:02"),
        ),
        Row(
            policy="`pause`",
            then="It is given up.",
            alike=WAITS,
            pause=("10:02:30", "11:00"),
            runs=({"seconds": 100},),
            want=("Admitted 10:01", "Superseded 10:02"),
        ),
        Row(
            policy="the definition is disabled",
            then="It is given up.",
            alike=WAITS,
            parent={"10:00": ON, "10:02:30": OFF},
            runs=({"seconds": 100},),
            want=("Admitted 10:01", "Superseded 10:02"),
        ),
        Row(
            policy="the same manifest again, labels, history limits, `deletionPolicy`",
            then="Nothing changes: it goes on waiting.",
            alike=WAITS,
            edits={"10:02:30": {"deletionPolicy": "Delete", "occurrenceHistoryLimit": 7}},
            runs=({"seconds": 100}, {"seconds": 10}),
            until="10:02:50",
            want=("Admitted 10:01", "Admitted 10:02 @10:02:40"),
        ),
    ),
    {
        ("any", "Skip"): "no instant waits for a run; for its jitter: see there",
        ("Replace", "Latest"): "the older run is ended, so no instant waits for its end; for a pod that can't go: R14",
        ("Replace", "All"): "as under Latest",
    },
)

SWITCHES = Situation(
    "Switched off and on, edited",
    "What comes while a schedule is off is not due, whatever the policies: nothing of it runs later, and nothing is recorded. "
    "Each change is a `Baseline`, from which on nothing older can start.",
    (
        Row(
            policy="`enabled: false` from 10:01:30 until 10:03:30",
            then="The next instant after enabling starts.",
            alike=ANY,
            edits={"10:01:30": OFF, "10:03:30": ON},
            until="10:04",
            want=("Admitted 10:01", "Admitted 10:04"),
        ),
        Row(
            policy="`pause` from 10:01:30 until 10:03:30",
            then="The next instant after resuming starts.",
            alike=ANY,
            pause=("10:01:30", "10:03:30"),
            until="10:04",
            want=("Admitted 10:01", "Admitted 10:04"),
        ),
        Row(
            policy="`Latest`, any `concurrencyPolicy`, `pause`, and an outage after it",
            alike=ANY_CONCURRENCY,
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
            alike=ANY,
            parent={"10:00": ON, "10:01:30": OFF, "10:03:30": ON},
            until="10:04",
            want=("Admitted 10:01", "Admitted 10:04"),
        ),
        Row(
            policy="the definition is disabled from the start",
            then="Nothing runs.",
            alike=ANY,
            parent={"10:00": OFF},
            want=(),
        ),
        Row(
            policy="an edit in the very second of an instant",
            alike=ANY,
            edits={"10:02": {"input": {"env": "staging"}}},
            then="The edit comes first: the instant never runs; the edit's `Baseline` counts it.",
            want=("Admitted 10:01", "Admitted 10:03"),
        ),
        Row(
            policy="an edit at 10:02:30, while no operator runs from 10:01:30 until 10:05:20",
            alike=ANY,
            edits={"10:02:30": {"input": {"env": "staging"}}},
            outage=BUSY_DOWN,
            then="Nothing from before the operator sees the edit ever runs; which instants those were is not on record.",
            until="10:06",
            want=("Admitted 10:01", "Admitted 10:06"),
        ),
        Row(
            policy="an edit to an earlier time of day",
            then="Nothing before the edit ever runs: the next instant of the new calendar starts.",
            fields={"schedule": "0 14 * * *"},
            alike=ANY,
            edits={"13:50": {"schedule": "30 13 * * *"}},
            until="23:59",
            want=(),
        ),
        Row(
            policy="`Forbid` + `Skip`, off while a run goes on",
            then="The run goes on; it still counts for the overlap rule.",
            edits={"10:01:10": OFF, "10:01:40": ON},
            runs=({"seconds": 90}, {"seconds": 30}),
            want=("Admitted 10:01", "SkippedOverlap 10:02", "Admitted 10:03"),
        ),
    ),
)

CALENDAR = Situation(
    "The calendar",
    "`excludeDates` leaves dates out on record; `startTime` and `endTime` say which instants there are at all.",
    (
        Row(
            policy="`excludeDates`",
            alike=ANY,
            then="The instants of that date are given up, each as it comes.",
            fields={"excludeDates": ["2026-03-06"]},
            until="10:02",
            want=("SkippedExcluded 10:01", "SkippedExcluded 10:02"),
        ),
        Row(
            policy="`excludeDates`, after an outage",
            alike=ANY,
            then="They are one record, not a miss, and never caught up with.",
            fields={"excludeDates": ["2026-03-06"]},
            outage=DOWN,
            until="10:05:30",
            want=("SkippedExcluded 10:01..10:05 (5)",),
        ),
        Row(
            policy="`endTime` passed",
            alike=ANY,
            then="Nothing is due any more: `Complete`.",
            fields={"endTime": "2026-03-06T10:02:00Z"},
            until="10:09",
            want=("Admitted 10:01", "Admitted 10:02"),
        ),
        Row(
            policy="`runLimit` used up",
            alike=ANY,
            then="`Complete`: nothing more starts.",
            fields={"runLimit": 2},
            until="10:09",
            want=("Admitted 10:01", "Admitted 10:02"),
        ),
    ),
)

CLOCKS = Situation(
    "Clock changes",
    "New York's clocks go from 02:00 to 03:00 on 8 March 2026, at 07:00 UTC, and from 02:00 back to 01:00 on 1 November, at "
    "06:00 UTC. What is recorded is in UTC.",
    (
        Row(
            policy="02:30 on the day without it",
            alike=ANY,
            fields={**NEW_YORK, "schedule": "30 2 * * *"},
            then="It moves to the first minute after the gap.",
            want=("Admitted 07:00",),
            **GAP,
        ),
        Row(
            policy="the same with `skippedTimePolicy: Skip`",
            alike=ANY,
            fields={**NEW_YORK, "schedule": "30 2 * * *", "skippedTimePolicy": "Skip"},
            then="It is no instant of that day.",
            want=(),
            **GAP,
        ),
        Row(
            policy="every 20 minutes over the gap",
            alike=ANY,
            fields={**NEW_YORK, "schedule": "*/20 * * * *"},
            then="They go on; nothing moves onto another.",
            want=("Admitted 06:20", "Admitted 06:40", "Admitted 07:00", "Admitted 07:20"),
            **GAP,
        ),
        Row(
            policy="01:30 on the day that has it twice",
            alike=ANY,
            fields={**NEW_YORK, "schedule": "30 1 * * *"},
            then="It starts in both passes.",
            want=("Admitted 05:30", "Admitted 06:30"),
            **FOLD,
        ),
        Row(
            policy="the same with `repeatedTimePolicy: First`",
            alike=ANY,
            fields={**NEW_YORK, "schedule": "30 1 * * *", "repeatedTimePolicy": "First"},
            then="It starts in the first pass.",
            want=("Admitted 05:30",),
            **FOLD,
        ),
    ),
)

JITTER = Situation(
    "Jitter",
    "With `maxJitterSeconds` each instant has a delay of its own, the same whenever it is worked out; here 10:01 has "
    "16 s and 10:02 has 19 s.",
    (
        Row(
            policy="any policies",
            alike=ANY,
            fields=SPREAD,
            then="It starts after its delay.",
            runs=({"seconds": 5},),
            until="10:02:30",
            want=("Admitted 10:01 @10:01:16", "Admitted 10:02 @10:02:19"),
        ),
        Row(
            policy="any policies, an edit during the delay",
            alike=ANY,
            fields=SPREAD,
            edits={"10:01:02": NEW_HOUR},
            then="It is given up, on record.",
            want=("Superseded 10:01",),
        ),
        Row(
            policy="`Skip`, any `concurrencyPolicy`, late by less than the delay and the deadline",
            alike=ANY_CONCURRENCY,
            fields={**SPREAD, "schedule": "1 * * * *"},
            outage=("10:00:30", "10:02:05"),
            then="It starts: the deadline counts from the end of the delay.",
            want=("Admitted 10:01 @10:02:05",),
        ),
    ),
)

ONCE = Situation(
    "One instant (`runOnceTime`)",
    "",
    (
        Row(
            policy="in the future",
            alike=ANY,
            then="It runs, once.",
            fields={"runOnceTime": "2026-03-06T11:02:00+01:00"},
            want=("Admitted 10:02",),
        ),
        Row(
            policy="in the past when the schedule is made",
            alike=ANY,
            then="It never runs: `Complete` (`OneShotPast`).",
            fields={"runOnceTime": "2026-03-06T09:59:59Z"},
            want=(),
        ),
        Row(
            policy="`Skip`, any `concurrencyPolicy`, missed",
            alike=ANY_CONCURRENCY,
            then="It is given up, and the schedule is `Complete`.",
            fields={"runOnceTime": "2026-03-06T10:01:00Z"},
            outage=DOWN,
            until="10:06",
            want=("SkippedMisfire 10:01",),
        ),
        Row(
            policy="`Latest` and `All`, any `concurrencyPolicy`, missed",
            alike=each(ANY_CONCURRENCY, (LATEST, ALL)),
            then="It runs late.",
            fields={"runOnceTime": "2026-03-06T10:01:00Z"},
            outage=DOWN,
            until="10:06",
            want=("Admitted 10:01 @10:05:20",),
        ),
        Row(
            policy="an edit that makes it due again",
            alike=ANY,
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
            policy="`Allow` + `Skip`, the definition's limit (its `spec.maxActiveRuns`, here 1) used up",
            fields=TWO,
            parent={"10:00": {"enabled": True, "maxActiveRuns": 1}},
            then="No room counts like a run that blocks (reason `CapacityExceeded`).",
            runs=({"seconds": 90},),
            until="10:02",
            want=("Admitted 10:01", "SkippedOverlap 10:02"),
        ),
        Row(
            policy="`Allow` + `Latest` or `All`, the definition's limit (its `spec.maxActiveRuns`, here 1) used up",
            fields=TWO,
            alike=(LATEST, ALL),
            parent={"10:00": {"enabled": True, "maxActiveRuns": 1}},
            then="What waits, waits for room.",
            runs=({"seconds": 90}, {"seconds": 10}),
            until="10:02:40",
            want=("Admitted 10:01", "Admitted 10:02 @10:02:30"),
        ),
        Row(
            policy="`Skip`, any `concurrencyPolicy`, the operator's limit (`WORKFLOW_SCHEDULES_MAX_CONCURRENT_RUNS`, here 1) "
            "used up by another schedule",
            alike=ANY_CONCURRENCY,
            beside=("10:00:40", "10:01:40"),
            max_concurrent_runs=1,
            then="No room counts like a run that blocks (reason `CapacityExceeded`).",
            runs=({"seconds": 5},),
            until="10:02:30",
            want=("SkippedOverlap 10:01", "Admitted 10:02"),
        ),
        Row(
            policy="`Latest` and `All`, any `concurrencyPolicy`, the operator's limit used up by another schedule",
            alike=each(ANY_CONCURRENCY, (LATEST, ALL)),
            beside=("10:00:40", "10:01:40"),
            max_concurrent_runs=1,
            then="It waits for room.",
            runs=({"seconds": 5},),
            until="10:02:30",
            want=("Admitted 10:01 @10:01:40", "Admitted 10:02"),
        ),
    ),
)

INPUT = Situation(
    "The input does not fit",
    "A schedule whose input can never be right is not `Accepted`. Here `inputFrom` gives each run its `scheduledTime`, and the "
    "definition's `inputSchema` takes any but that of 10:02.",
    (
        Row(
            policy="any policies",
            alike=ANY,
            fields={"inputFrom": [{"name": "at", "occurrenceField": "scheduledTime"}]},
            parent={"10:00": {"enabled": True, "inputSchema": {"properties": {"at": {"not": {"pattern": "T10:02"}}}}}},
            then="That instant is given up, with the path that failed; the next one is tried by itself.",
            want=("Admitted 10:01", "PreflightRejected 10:02", "Admitted 10:03"),
        ),
    ),
)

ASKED = Situation(
    "Asked for by a person",
    "Trigger and backfill are records of their own, beside the log: `Manual` and `Backfill` say when a run was started.",
    (
        Row(
            policy="any policies, trigger while a run goes on",
            alike=ANY,
            asked={"10:01:20": {"cause": "Manual"}},
            then="It starts at once, whatever runs, and neither blocks nor replaces a scheduled run.",
            runs=({"seconds": 50},),
            until="10:02:30",
            want=("Admitted 10:01", "Manual 10:01:20", "Admitted 10:02"),
        ),
        Row(
            policy="any policies, trigger while it is disabled",
            alike=ANY,
            edits={"10:00:30": OFF},
            asked={"10:01:20": {"cause": "Manual"}},
            then="It starts, too; only a missing or disabled definition keeps it from that.",
            want=("Manual 10:01:20",),
            until="10:02:30",
        ),
        Row(
            policy="any policies, backfill of an instant of the past",
            alike=ANY,
            asked={"10:01:20": {"cause": "Backfill", "scheduledTime": "2026-03-05T10:01:00Z"}},
            then="It starts beside the scheduled runs and never blocks one.",
            runs=({"seconds": 50},),
            until="10:02:30",
            want=("Admitted 10:01", "Backfill 10:01:20", "Admitted 10:02"),
        ),
    ),
)

SITUATIONS = (
    *(FREE, BLOCKED, SUSPENDED, FAILED, LATE, TOO_LATE, SEVERAL, SEVERAL_BLOCKED),
    *(WAITING, SWITCHES, CALENDAR, CLOCKS, JITTER, ONCE, LIMITS, INPUT, ASKED),
)
