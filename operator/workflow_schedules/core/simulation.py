"""The virtual world: one schedule on a virtual clock, decided by `decide` alone, its runs going as they are told to.

Holds what the cluster would hold (the log, the Jobs, the status) and carries out each step at once and without a fault.
No rule of the contract may live here, and no files, text or clock.
"""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from heapq import heappop, heappush
from typing import TYPE_CHECKING, assert_never

from workflow_schedules.api.occurrence import Decision, Outcome
from workflow_schedules.core.acceptance import Accepted, accept, template_of
from workflow_schedules.core.decide import decide
from workflow_schedules.core.job import deadline_seconds, is_born_suspended
from workflow_schedules.core.ledger import Ledger
from workflow_schedules.core.misfire import Verdict
from workflow_schedules.core.plan import (
    Append,
    Claim,
    CreateJob,
    DeleteJob,
    FindJob,
    LookAgain,
    ReadLog,
    ReadPods,
    Unblock,
    WriteOutcome,
)
from workflow_schedules.core.repetition import Repetition, is_plain
from workflow_schedules.core.scene import Row
from workflow_schedules.core.status import project
from workflow_schedules.core.unfinished import unfinished
from workflow_schedules.core.unrecorded import told, unrecorded
from workflow_schedules.core.zones import moved

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec
    from workflow_schedules.core.model import Snapshot
    from workflow_schedules.core.plan import Plan, Step
    from workflow_schedules.core.repetition import Answer, Situation
    from workflow_schedules.core.scene import Scene


def simulate(scene: Scene, *, by_repetition: bool = True) -> Iterator[Row]:
    """Yield a row for each record that is written, in the order of the log, each as soon as its run has ended.

    Args:
        scene: what happens.
        by_repetition: answer a situation that was decided before with what was decided then.

    Source: contract R5 to R21, R29.
    """
    return _World(scene, by_repetition=by_repetition).rows()


class _World:
    def __init__(self, scene: Scene, *, by_repetition: bool) -> None:
        self._scene = scene
        self._by_repetition = by_repetition
        self._coming = deque(scene.changes)
        self._outages = deque(scene.outages)
        self._ledger = Ledger(scene.changes[0].schedule)
        self._ends: list[tuple[datetime, int, Outcome]] = []
        self._rows: deque[Row] = deque()
        self._unfinished: dict[int, Row] = {}
        self._repetition: Repetition | None = None
        self._back_at: datetime | None = None

    def rows(self) -> Iterator[Row]:
        """Play the scene."""
        now: datetime | None = self._awake_at(self._scene.changes[0].at)
        while now is not None and now <= self._scene.until:
            self._happen(now)
            wake_at = self._settle(now)
            while self._rows and self._rows[0].is_settled:
                yield self._rows.popleft()
            now = self._next_moment(wake_at)
        self._happen(self._scene.until)  # what ends in an outage that is still on
        yield from self._rows
        self._tell_the_end()

    def _tell_the_end(self) -> None:
        if self._scene.at_end is not None:
            for line in unfinished(self._scene, self._ledger, self._unfinished):
                self._scene.at_end(line)

    def _next_moment(self, wake_at: datetime | None) -> datetime | None:
        change_at = self._coming[0].at if self._coming else None
        end_at = self._ends[0][0] if self._ends else None
        moment = min((at for at in (wake_at, change_at, end_at) if at is not None), default=None)
        return None if moment is None else self._awake_at(moment)

    def _awake_at(self, moment: datetime) -> datetime:
        """Return the first second from a moment on that is in no outage."""
        while self._outages and self._outages[0].end <= moment:
            self._back_at = self._outages.popleft().end
        if not self._outages or self._outages[0].start > moment:
            return moment
        self._back_at = self._outages[0].end
        return self._back_at

    def _happen(self, now: datetime) -> None:
        """Let happen what comes from outside: runs end, people write."""
        while self._ends and self._ends[0][0] <= now:
            at, number, outcome = heappop(self._ends)
            if self._ledger.end(number, at, outcome) and outcome.is_final:
                self._finish(number, at, outcome)
        while self._coming and self._coming[0].at <= now:
            change = self._coming.popleft()
            self._ledger.write(change.schedule, change.definition, is_seen=now != self._back_at)
            self._repetition = None

    def _settle(self, now: datetime) -> datetime | None:
        """Do all that is to be done now; return when to look again."""
        while True:
            situation, answer = self._look_back(now)
            if answer is None:
                plan = self._decide(situation, now)
                if plan.step is None:
                    return plan.next_wake_at
            elif answer.spec is None:
                self._ledger.held = tuple(now + offset for offset in answer.candidates)
                return None if answer.wake_after is None else moved(now, answer.wake_after)
            else:
                self._repeat(answer, answer.spec, now)

    def _look_back(self, now: datetime) -> tuple[Situation | None, Answer | None]:
        """Return the situation, where it is one that can come again, and what was decided in it before."""
        consumed = self._ledger.consumed
        if self._repetition is None or consumed is None or self._ledger.is_starting:
            return None, None
        situation = self._repetition.situation(now, consumed=consumed, open_runs=self._ledger.open_runs)
        return situation, None if situation is None else self._repetition.answer(situation)

    def _repeat(self, answer: Answer, spec: ScheduleOccurrenceSpec, now: datetime) -> None:
        if self._repetition is None or spec.decision is None:
            return
        first, last = self._repetition.consume(answer.count)
        verdict = Verdict(decision=spec.decision, first=first, last=last, count=answer.count)
        number = self._ledger.append_alike(spec, verdict, now)
        self._add(number, verdict, spec.reason)
        if verdict.decision is Decision.ADMITTED:
            self._start(number, spec, last, now)

    def _decide(self, situation: Situation | None, now: datetime) -> Plan:
        snapshot = self._ledger.snapshot()
        plan = decide(snapshot, now=now)
        step = plan.step
        if step is None:
            self._ledger.held = plan.candidates
            self._keep_status(snapshot, plan, now)
        else:
            self._tell(snapshot, step)
            self._carry_out(step, now)
        if situation is not None and self._repetition is not None and isinstance(step, Append | None):
            self._repetition.learn(situation, plan, step.spec if step else None, now)
        if step is None:
            self._begin_to_learn(snapshot)
        return plan

    def _begin_to_learn(self, snapshot: Snapshot) -> None:
        """From here on, nothing of an edit being left to do, situations of this spec can come again."""
        schedule = snapshot.schedule
        if not self._by_repetition or self._repetition is not None or schedule is None or snapshot.head is None:
            return
        verdict = accept(schedule, snapshot.definition)
        if isinstance(verdict, Accepted) and is_plain(schedule, snapshot.definition):
            self._repetition = Repetition(verdict.trigger)

    def _keep_status(self, snapshot: Snapshot, plan: Plan, now: datetime) -> None:
        """Write the status where a later decision reads what the log does not say."""
        schedule = snapshot.schedule
        if schedule is None or schedule.spec is None:
            return
        if snapshot.head is None or schedule.spec.pause_after_failures is not None:
            self._ledger.keep_status(project(snapshot, schedule, recent=(), candidates=plan.candidates, now=now))

    def _tell(self, snapshot: Snapshot, step: Step) -> None:
        """Tell of instants that a Baseline gives up: it is no row (R29)."""
        if self._scene.note is None or not isinstance(step, Append) or step.spec.decision is not Decision.BASELINE:
            return
        if step.spec.span is not None:
            self._scene.note(step.spec.message or "")
        elif (lost := unrecorded(snapshot, step.spec, self._scene.changes)) is not None:
            self._scene.note(f"{step.spec.message}; {told(lost)}")

    def _carry_out(self, step: Step, now: datetime) -> None:
        match step:
            case Append():
                self._append(step.spec, now)
            case CreateJob():
                spec = step.run.record.spec
                self._start(step.run.record.number, spec, spec.scheduled_time or now, now)
            case WriteOutcome():
                self._ledger.record_outcome(step.run.record.number, step.status)
                if step.status.outcome is not None and step.status.outcome.is_final:
                    self._finish(step.run.record.number, step.status.completion_time or now, step.status.outcome)
            case DeleteJob():
                self._ledger.remove_job(step.run.record.number)
            case ReadLog() | LookAgain() | Claim() | FindJob() | ReadPods() | Unblock():
                raise AssertionError(f"{type(step).__name__}: nothing is kept back from the world's only holder")
            case _:
                assert_never(step)

    def _append(self, spec: ScheduleOccurrenceSpec, now: datetime) -> None:
        self._ledger.append(spec, now)
        if spec.decision in {None, Decision.BASELINE} or spec.scheduled_time is None:
            return
        span, at = spec.span, spec.scheduled_time
        first, last, count = (span.first_time, span.last_time, span.count) if span else (at, at, 1)
        verdict = Verdict(decision=spec.decision, first=first, last=last, count=count)
        self._add(spec.sequence or 0, verdict, spec.reason)

    def _add(self, number: int, verdict: Verdict, reason: str | None) -> None:
        row = Row(
            scheduled_time=verdict.last,
            decision=verdict.decision,
            reason=reason or "",
            count=verdict.count,
            first_time=verdict.first,
            last_time=verdict.last,
        )
        self._rows.append(row)
        if verdict.decision is Decision.ADMITTED:
            self._unfinished[number] = row

    def _start(self, number: int, spec: ScheduleOccurrenceSpec, instant: datetime, now: datetime) -> None:
        template = template_of(self._ledger.schedule, self._ledger.definition)
        is_suspended = template is not None and is_born_suspended(template)
        self._ledger.start(number, now, is_suspended=is_suspended)
        if template is None or is_suspended:
            return
        self._unfinished[number].start_time = now
        ending = self._scene.ending(instant).within(deadline_seconds(template, spec.active_deadline_seconds))
        if ending.outcome is not Outcome.RUNNING and (end := moved(now, timedelta(seconds=ending.seconds))) is not None:
            heappush(self._ends, (end, number, ending.outcome))

    def _finish(self, number: int, at: datetime, outcome: Outcome) -> None:
        row = self._unfinished.pop(number)
        row.completion_time, row.outcome = at, outcome
