"""Whose turn it is: so many schedules at a time, and nobody waits long for somebody who waits long for an answer (I9).

Who has waited a moment for one answer steps aside when others want its turn: it keeps its schedule, and goes on when it is
answered. The more are aside, the more begin at a time, so those that hang are passed by in a few moments. How many are on their
way is bounded, of one namespace and of all, since each holds a connection and, in the API server, a seat that other controllers
want, too; and who waited very long the last time, as nobody does but who gets no answer, has its next turn in a lane of its own,
so whoever is well meets the trouble once, if at all. This says who may begin: nothing here begins or awaits anything.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_SECONDS = 0.3  # several times what a request takes in a herd
TIMES_USUAL = 4.0  # more patience where all requests take long: more of them at a time would take longer still
PATIENCE_LIMIT_SECONDS = 0.9
SLOW_SECONDS = 5.0  # a webhook that thinks for a second or two is not slow; what hangs takes until its time-out
MOST = 64  # the usual priority level has 98 seats, and the controllers of the cluster sit there, too
MOST_OF_ONE = 48  # namespace, as most webhooks are


@dataclass(slots=True)
class _Turn:
    namespace: str
    went_on_at: float
    is_of_the_slow: bool
    is_aside: bool = False
    was_slow: bool = False


class Turns:
    """Who waits for a turn, and who has one, by the UID of the schedule or the key of its requests."""

    def __init__(self, workers: int, *, monotonic: Callable[[], float], namespace_of: Callable[[str], str]) -> None:
        """Take how many may work at a time, and as many again of those that were slow."""
        self._workers = workers
        self._most_of_one = max(workers, MOST_OF_ONE)
        self._monotonic = monotonic
        self._namespace_of = namespace_of
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._waiting: dict[
            str, str
        ] = {}  # the namespace, as it was when it began to wait: a schedule may go meanwhile
        self._line: deque[str] = deque()
        self._kept_back: dict[str, deque[str]] = {}  # by namespace, those of which as many as may are on their way
        self._line_of_the_slow: deque[str] = deque()
        self._turns: dict[str, _Turn] = {}
        self._fresh: dict[str, _Turn] = {}  # those that others wait for: whose last answer is the oldest comes first
        self._of_namespace: Counter[str] = Counter()
        self._count_aside = 0
        self._count_of_the_slow = 0
        self._slow: set[str] = set()
        self._usual_seconds = PATIENCE_LIMIT_SECONDS / TIMES_USUAL  # of an answer, those that take long left out

    def __contains__(self, uid: str) -> bool:
        """Tell whether it is its turn."""
        return uid in self._turns

    @property
    def has_line(self) -> bool:
        """Tell whether somebody waits who does so for no fault of its own."""
        return bool(self._line)

    @property
    def is_full(self) -> bool:
        """Tell whether all turns are taken."""
        return len(self._fresh) >= self._most_fresh()

    def line_up(self, uid: str) -> None:
        """Let somebody wait for its turn, once."""
        if uid in self._waiting:
            return
        self._waiting[uid] = self._namespace_of(uid)
        (self._line_of_the_slow if uid in self._slow else self._line).append(uid)

    def begin_next(self) -> str | None:
        """Begin the turn of whoever is next; None where nobody is, or may."""
        self._step_aside()
        while self._line and not self.is_full:
            uid = self._line.popleft()
            namespace = self._waiting[uid]
            if self._of_namespace[namespace] < self._most_of_one:
                return self._begin(uid, is_of_the_slow=False)
            self._kept_back.setdefault(namespace, deque()).append(uid)
        if self._line_of_the_slow and self._count_of_the_slow < self._workers:
            return self._begin(self._line_of_the_slow.popleft(), is_of_the_slow=True)
        return None

    def go_on(self, uid: str) -> None:
        """Note that whoever has its turn was answered, and has more to ask."""
        turn = self._turns[uid]
        waited = self._monotonic() - turn.went_on_at
        if waited < PATIENCE_LIMIT_SECONDS:
            self._usual_seconds += (waited - self._usual_seconds) / 16
        self._note_answer(turn)
        if uid in self._fresh:
            self._fresh[uid] = self._fresh.pop(uid)

    def end(self, uid: str) -> None:
        """End a turn."""
        turn = self._turns.pop(uid)
        self._note_answer(turn)
        (self._slow.add if turn.was_slow else self._slow.discard)(uid)
        self._fresh.pop(uid, None)
        self._count_aside -= turn.is_aside
        if turn.is_of_the_slow:
            self._count_of_the_slow -= 1
        else:
            self._leave(turn.namespace)

    def _leave(self, namespace: str) -> None:
        self._of_namespace[namespace] -= 1
        if not self._of_namespace[namespace]:
            del self._of_namespace[namespace]
        if (kept_back := self._kept_back.get(namespace)) is not None:
            self._line.appendleft(kept_back.popleft())
            if not kept_back:
                del self._kept_back[namespace]

    def seconds_until_aside(self) -> float | None:
        """Return when somebody steps aside for those who wait, if it is not answered before that; None where nobody waits."""
        if not self._line or self._count_aside >= MOST:
            return None
        oldest = next(iter(self._fresh.values()), None)
        return None if oldest is None else max(0.0, oldest.went_on_at + self._patience() - self._monotonic())

    def _patience(self) -> float:
        return min(max(PATIENCE_SECONDS, TIMES_USUAL * self._usual_seconds), PATIENCE_LIMIT_SECONDS)

    def _most_fresh(self) -> int:
        return self._workers + min(self._count_aside, max(MOST - self._count_aside, 0))

    def _begin(self, uid: str, *, is_of_the_slow: bool) -> str:
        namespace = self._waiting.pop(uid)
        turn = self._turns[uid] = _Turn(namespace, self._monotonic(), is_of_the_slow)
        if is_of_the_slow:
            self._count_of_the_slow += 1
        else:
            self._fresh[uid] = turn
            self._of_namespace[namespace] += 1
        return uid

    def _step_aside(self) -> None:
        """Let those who wait for an answer for too long step aside, if anybody waits for their turn."""
        overdue_at = self._monotonic() - self._patience()
        while self._line and self._fresh and self._count_aside < MOST:
            uid, turn = next(iter(self._fresh.items()))
            if turn.went_on_at > overdue_at:
                return
            del self._fresh[uid]
            turn.is_aside = True
            self._count_aside += 1

    def _note_answer(self, turn: _Turn) -> None:
        now = self._monotonic()
        turn.was_slow = turn.was_slow or now - turn.went_on_at >= SLOW_SECONDS
        turn.went_on_at = now
