"""Holds an API server to the invariants of the design, from what was really stored, in the order it was stored.

It is told every commit and keeps what was ever there, so that deleting objects hides nothing. The calendar comes from
`due_times`, everything else from the objects. Who tells the commits is the caller's choice: a fake API server (the
timeline tests), or the audit log and the watches of a real one (hack/soak).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from soak_lib.accounts import (
    FINAL,
    PATIENCE,
    Json,
    Log,
    account_problems,
    admitted,
    chain_problems,
    finished_at,
    first_start,
    last_start,
    read_time,
    undecided,
)
from soak_lib.idle_writes import IdleWrites

if TYPE_CHECKING:
    from soak_lib.commits import Commit

# What each invariant is called in a table of counts.
NAMES = {
    "I1": "duplicates",
    "I2": "overlaps",
    "I3": "gaps",
    "late": "late admissions",
    "I4": "watermark regressions",
    "I5": "admissions that the log forbids",
    "I6": "epoch regressions",
    "I7": "outcomes changed or missing",
    "I8": "writes with nothing due",
}
CLOCKS = timedelta(seconds=2)  # how far an operator's clock may be off, and whole seconds in objects (P13)
STALE = timedelta(seconds=90)  # L + R: after that no write of an old epoch may arrive (I6)
# By then a leader has said what became of a run without a Job: the ten minutes of R35, then the wait of P12.
MISSING = timedelta(minutes=13)


class Auditor:
    """See the module; `violations` holds what was wrong at a commit, each with its invariant in front.

    Args:
        is_guarded: nobody but the operator can remove a record, as the policies have it (R30).
        patience: how long a leader may take to decide on an instant and to record an end.
        status_lag: how much later than the log the status of a schedule may tell its candidates.
        on_its_way: how long a request may take to arrive where it is not known when it did.
    """

    def __init__(
        self,
        *,
        is_guarded: bool = True,
        patience: timedelta = PATIENCE,
        status_lag: timedelta = timedelta(),
        on_its_way: timedelta = timedelta(),
    ) -> None:
        self.on_its_way = on_its_way
        self._status_lag = status_lag
        self._is_guarded = is_guarded
        self._patience = patience
        self._logs: dict[str, Log] = defaultdict(Log)
        self._records: dict[str, Json] = {}
        self._removed: set[str] = set()  # records, by UID
        self._touched: dict[str, datetime] = {}  # when a record or its Job last changed, by the record's UID
        self._started: dict[tuple[str, str], str] = {}
        self._epochs: dict[str, tuple[int, datetime]] = {}
        self._idle_writes = IdleWrites()
        self.violations: list[str] = []
        self.lateness: list[float] = []  # of the Jobs: seconds from when each could start to when it was made
        self.commits = 0

    def see(self, commit: Commit) -> None:
        """Take the next commit."""
        self.commits += 1
        match commit.kind:
            case "workflowschedules":
                self._see_schedule(commit)
            case "scheduleoccurrences":
                self._see_record(commit)
            case "jobs":
                self._see_job(commit)
        self.violations += self._idle_writes.see(commit)

    def problems(self, now: datetime, *, is_settled: bool = True) -> list[str]:
        """Return everything that is wrong.

        Args:
            now: when the last commit had been seen.
            is_settled: an operator leads and has had its time: everything due is decided, every end recorded.
        """
        found = list(self.violations)
        for log in self._logs.values():
            found += chain_problems(log.records)
            found += account_problems(log)
        return found + (self.unsettled(now) if is_settled else [])

    def unsettled(self, now: datetime) -> list[str]:
        """Return what a leader that has had its time would have decided, or recorded, or told."""
        found = []
        for log in self._logs.values():
            found += self._unrecorded(log, now)
            if now - log.touched_at > self._status_lag:
                found += undecided(log, now - self._patience)
        return found

    def go_back(self, records: list[Json], schedules: list[Json]) -> None:
        """Forget what a restore of etcd forgot: what was decided since then is out of the invariants (I1).

        So are Jobs that run again in the backup: that they had ended is known, and true.

        Args:
            records: all there are now.
            schedules: likewise.
        """
        self._epochs.clear()
        stored = {each["metadata"]["uid"]: each for each in records}
        there = {each["metadata"]["uid"]: each for each in schedules}
        heads: dict[str, int] = defaultdict(int)
        for each in records:
            uid = each["spec"]["scheduleRef"].get("uid", "")
            heads[uid] = max(heads[uid], each["spec"].get("sequence", 0))
        self._records |= stored
        for uid, log in self._logs.items():
            kept = [each for each in log.records if each["spec"]["sequence"] <= heads[uid]]
            log.records = [stored.get(each["metadata"]["uid"], each) for each in kept]
            log.schedule = there.get(uid)
            log.jobs = {}
            told = {each["spec"].get("scheduledTime") for each in log.records}
            self._started = {key: name for key, name in self._started.items() if key[0] != uid or key[1] in told}

    def jobs_started(self) -> int:
        """How many Jobs of records were ever made."""
        return len(self._started)

    def decisions(self) -> Counter[str]:
        """How many records of each decision there ever were."""
        return Counter(each["spec"]["decision"] for log in self._logs.values() for each in log.records)

    def outcomes(self) -> Counter[str]:
        """What became of the admitted runs so far."""
        runs = [each for log in self._logs.values() for each in admitted(log.records)]
        return Counter(self._outcome(each) or "none yet" for each in runs)

    def _wrong(self, invariant: str, what: str, at: datetime) -> None:
        self.violations.append(f"{invariant}: {what} (at {at:%H:%M:%S})")

    def _see_schedule(self, commit: Commit) -> None:
        body = commit.body
        log = self._logs[body["metadata"]["uid"]]
        log.schedule = commit.after
        if commit.after is None:
            return
        log.specs[body["metadata"]["generation"]] = body
        was = ((commit.before or {}).get("status")) or {}
        now = body.get("status") or {}
        for name in ("logHead", "consumedThroughTime", "revision", "observedGeneration"):
            if name in was and type(now.get(name)) is type(was[name]) and now[name] < was[name]:
                self._wrong("I4", f"status.{name} of {body['metadata']['name']} went back", commit.at)

    def _see_record(self, commit: Commit) -> None:
        body = commit.body
        spec, uid = body["spec"], body["spec"]["scheduleRef"].get("uid", "")
        if spec.get("cause") != "Scheduled":
            return
        if commit.after is None:
            self._judge_removal(self._logs[uid], body, commit.at)
            return
        name, known = body["metadata"]["name"], self._records.get(body["metadata"]["uid"])
        if known is None:
            self._judge_new(self._logs[uid], body, commit)
            self._logs[uid].records.append(body)
        else:
            was = (known.get("status") or {}).get("outcome")
            if was in FINAL and body.get("status", {}).get("outcome") != was:
                self._wrong("I7", f"the outcome of {name} changed from {was}", commit.at)
        self._records[body["metadata"]["uid"]] = body
        self._touched[body["metadata"]["uid"]] = self._logs[uid].touched_at = commit.at

    def _judge_removal(self, log: Log, body: Json, at: datetime) -> None:
        self._removed.add(body["metadata"]["uid"])
        is_wanted = log.schedule is not None and "deletionTimestamp" not in log.schedule["metadata"]
        if self._is_guarded and is_wanted and body["spec"]["decision"] == "Admitted" and not self._is_final(body):
            self._wrong("I7", f"{body['metadata']['name']} was removed without an outcome", at)

    def _judge_new(self, log: Log, body: Json, commit: Commit) -> None:
        spec, name, at = body["spec"], body["metadata"]["name"], commit.at
        head = log.records[-1]["spec"] if log.records else {}
        self._judge_epoch(spec, head, name, at)
        if spec["decision"] != "Admitted":
            return
        if head.get("state") != "Active":
            self._wrong("I5", f"{name} was admitted although the log says {head.get('state')}", at)
        if spec["scheduledTime"] <= head.get("consumedThroughTime", ""):
            self._wrong("I4", f"{name} was admitted at or before the watermark", at)
        if any(each["spec"].get("scheduledTime") == spec["scheduledTime"] for each in admitted(log.records)):
            self._wrong("I1", f"{name} admits {spec['scheduledTime']} a second time", at)
        if len(admitted(log.records)) >= log.spec_of(spec).get("runLimit", math.inf):
            self._wrong("I5", f"{name} was admitted beyond its runLimit", at)
        self._judge_overlap(log, spec, name, at)
        self._judge_start(log, spec, commit, "was admitted")

    def _judge_epoch(self, spec: Json, head: Json, name: str, at: datetime) -> None:
        epoch, lease = spec.get("fencingEpoch", 0), spec.get("lease", "")
        if epoch < head.get("fencingEpoch", 0):
            self._wrong("I6", f"{name} has an older epoch than the record before it", at)
        newest, since = self._epochs.get(lease, (-1, at))
        if epoch > newest:
            self._epochs[lease] = (epoch, at)
        elif epoch < newest and at - since > STALE:
            self._wrong("I6", f"{name} is of epoch {epoch}, long after the first record of {newest}", at)

    def _judge_start(self, log: Log, spec: Json, commit: Commit, what: str) -> None:
        """Judge by when the request arrived, since nobody can call it back after that; else by the API server's own stamp."""
        latest, name = last_start(log, spec), commit.body["metadata"]["name"]
        made = read_time(commit.body["metadata"].get("creationTimestamp"))
        arrived = commit.received_at or (made and made - self.on_its_way)
        if latest is not None and arrived is not None and arrived > latest + CLOCKS:
            self._wrong("late", f"{name} {what} at {arrived:%H:%M:%S}, its deadline was {latest:%H:%M:%S}", commit.at)

    def _judge_overlap(self, log: Log, spec: Json, name: str, at: datetime) -> None:
        rules = log.spec_of(spec)
        limit = rules.get("maxActiveRuns") or 1
        unfinished = [each for each in admitted(log.records) if not self._is_final(each)]
        if rules.get("concurrencyPolicy") == "Replace":
            if unfinished and spec.get("replaces") is None:
                self._wrong("I2", f"{name} was admitted beside {len(unfinished)} unfinished and replaces none", at)
        elif len(unfinished) >= limit:
            self._wrong("I2", f"{name} was admitted beside {len(unfinished)} unfinished, {limit} allowed", at)

    def _see_job(self, commit: Commit) -> None:
        body = commit.body
        owners = body["metadata"].get("ownerReferences", ())
        owner = next((each["uid"] for each in owners if each.get("controller")), "")
        record = self._records.get(owner)
        if record is None or record["spec"].get("cause") != "Scheduled":
            return
        spec, uid = record["spec"], body["metadata"]["uid"]
        log = self._logs[spec["scheduleRef"]["uid"]]
        if commit.before is None:
            self._judge_job(log, record, commit)
        self._touched[owner] = log.touched_at = commit.at
        if commit.after is None:
            log.jobs.pop(uid, None)
        else:
            log.jobs[uid] = body

    def _judge_job(self, log: Log, record: Json, commit: Commit) -> None:
        spec, name, at = record["spec"], commit.body["metadata"]["name"], commit.at
        key = (spec["scheduleRef"]["uid"], spec["scheduledTime"])
        if key in self._started:
            self._wrong("I1", f"a second Job for {spec['scheduledTime']}: {name} after {self._started[key]}", at)
        self._started[key] = name
        if spec["decision"] != "Admitted" or self._is_final(record):
            self._wrong("I1", f"Job {name} was made for a record that is not an open admission", at)
        limit = log.spec_of(spec).get("maxActiveRuns") or 1
        active = [each for each in log.jobs.values() if not finished_at(each)]
        if len(active) >= limit:
            self._wrong("I2", f"Job {name} was made beside {len(active)} unfinished, {limit} allowed", at)
        self._judge_start(log, spec, commit, "was made as a Job")
        if first := first_start(log, spec):
            self.lateness.append((at - first).total_seconds())

    def _outcome(self, record: Json) -> str | None:
        now = self._records.get(record["metadata"]["uid"], record)
        outcome: str | None = (now.get("status") or {}).get("outcome")
        return outcome

    def _is_final(self, record: Json) -> bool:
        return self._outcome(record) in FINAL

    def _unrecorded(self, log: Log, now: datetime) -> list[str]:
        """Runs that have ended, or can't be any more, and have no outcome."""
        found = []
        jobs = {job["metadata"]["name"]: job for job in log.jobs.values()}
        for record in admitted(log.records):
            if self._is_final(record) or record["metadata"]["uid"] in self._removed:
                continue
            name = record["metadata"]["name"]
            job = jobs.get(name)
            waited = now - self._touched[record["metadata"]["uid"]]
            if job is not None and finished_at(job) is not None and waited > self._patience:
                found.append(f"I7: {name} has no outcome though its Job ended")
            elif job is None and waited > MISSING:
                found.append(f"I7: {name} has no outcome though it has no Job")
        return found
