"""An event loop whose time is virtual: waiting costs nothing, and the same program runs the same way each time.

When nothing is ready, time jumps to the next timer. When there is no timer either, the program would wait for ever:
that is an error that names who waits. No threads and no sockets: nobody would wake the loop for them.
"""

from __future__ import annotations

import asyncio
import contextvars
import selectors
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from types import CoroutineType
from typing import Any, TypeVar

T = TypeVar("T")


class DeadlockError(RuntimeError):
    """Every task waits for something that nothing scheduled will bring about."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """``time()`` starts at 0 and moves only while everybody waits; ``turns`` counts how often it looked who is ready.

    A program that is not over at ``end_seconds`` is taken for one that never ends.
    """

    def __init__(self, end_seconds: float = float("inf")) -> None:
        self._virtual_selector = _JumpingSelector(end_seconds)
        super().__init__(self._virtual_selector)
        self._clock_resolution = 1e-6  # above the rounding of a float that counts years in seconds

    def time(self) -> float:
        return self._virtual_selector.now_seconds

    @property
    def turns(self) -> int:
        return self._virtual_selector.turns

    def run_forever(self) -> None:
        try:
            super().run_forever()
        except DeadlockError as error:
            tasks = [task for task in asyncio.all_tasks(self) if not task.done()]
            raise DeadlockError(f"{error}; waiting: {sorted(map(_place, tasks))}") from None


PROCESS: contextvars.ContextVar[str] = contextvars.ContextVar("process", default="")


class FreezingLoop(VirtualTimeLoop):
    """A virtual loop on which single processes can be stopped and go on, as SIGSTOP and SIGCONT do it.

    What runs in a context with the name of a process (see `context_of`) belongs to it. While that is frozen none of it runs;
    timers that end meanwhile are all over when it goes on.
    """

    def __init__(self, end_seconds: float = float("inf")) -> None:
        super().__init__(end_seconds)
        self._ready = _Ready()

    def freeze(self, process: str) -> None:
        self._ready.held.setdefault(process, [])

    def thaw(self, process: str) -> None:
        self._ready.extend(self._ready.held.pop(process, ()))

    def thaw_all(self) -> None:
        for process in [*self._ready.held]:
            self.thaw(process)


class _Ready(deque[asyncio.Handle]):
    """What is to be run next; handles of frozen processes are put aside."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, list[asyncio.Handle]] = {}

    def popleft(self) -> asyncio.Handle:
        handle = super().popleft()
        if not self.held or (process := handle._context.get(PROCESS, "")) not in self.held:  # type: ignore[attr-defined]
            return handle
        self.held[process].append(handle)
        return _NOTHING


class _Nothing:
    """Looks cancelled to the loop."""

    _cancelled = True


_NOTHING: Any = _Nothing()


def context_of(process: str) -> contextvars.Context:
    """Return a context in which everything belongs to a process."""
    context = contextvars.Context()
    context.run(PROCESS.set, process)
    return context


def outside() -> contextvars.Context:
    """Return a context in which nothing belongs to any process: the network's, and the world's."""
    return contextvars.Context()


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self, end_seconds: float) -> None:
        super().__init__()
        self.now_seconds = 0.0
        self.turns = 0
        self._end_seconds = end_seconds

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.turns += 1
        if timeout is None:
            events = super().select(0)
            if not events:
                raise DeadlockError("nothing is scheduled")
            return events
        if self.now_seconds > self._end_seconds:
            raise DeadlockError(f"it goes on for ever, at least for {self._end_seconds:g} s")
        if timeout > 0:
            self.now_seconds += timeout
        return []


class VirtualClock:
    """The wall clock and the monotonic clock of the running virtual loop; the wall clock can be made to jump."""

    def __init__(self, start: datetime) -> None:
        self._start = start.astimezone(UTC)
        self.offset = timedelta()
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic()) + self.offset

    def monotonic(self) -> float:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop.time()

    def jump(self, by: timedelta) -> None:
        """Step the wall clock, as an administrator or NTP would; the monotonic clock stays."""
        self.offset += by

    async def sleep_until(self, at: datetime) -> None:
        """Sleep for as long as the wall clock needs to show ``at`` if nobody makes it jump."""
        await asyncio.sleep(max(0.0, (at - self.now()).total_seconds()))


def run_virtual(
    main: Coroutine[Any, Any, T] | Callable[[VirtualClock], Awaitable[T]],
    start: datetime,
    *,
    loop: Callable[[], VirtualTimeLoop] = VirtualTimeLoop,
) -> T:
    """Run to the end on a fresh virtual loop: a coroutine, or a function that is given the clock.

    Tasks left over are cancelled, as ``asyncio.run`` does.
    """

    async def with_clock(function: Callable[[VirtualClock], Awaitable[T]]) -> T:
        return await function(VirtualClock(start))

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main if asyncio.iscoroutine(main) else with_clock(main))


def _place(task: asyncio.Task[Any]) -> str:
    """Say where the innermost coroutine of a task waits."""
    place = ""
    coroutine: object = task.get_coro()
    while isinstance(coroutine, CoroutineType) and coroutine.cr_frame is not None:
        place = f"{coroutine.__qualname__} line {coroutine.cr_frame.f_lineno}"
        coroutine = coroutine.cr_await
    return f"{task.get_name()} in {place}"
