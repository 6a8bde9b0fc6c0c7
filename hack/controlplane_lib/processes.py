"""Start children that a Ctrl-C of ours takes down whole, and find and end what a control plane left running."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_PROC = Path("/proc")


def run_group(
    command: Sequence[str],
    *,
    log: Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    every_seconds: float = 15.0,
    tick: Callable[[float], None] = lambda _: None,
) -> int:
    """Run a command in a session of its own and return its exit code.

    Its output goes to `log`; `tick` is called with the seconds so far every `every_seconds`, and whatever it raises,
    like an interrupt, ends the command and all its children first.
    """
    started = time.monotonic()
    with log.open("ab") as output:
        child = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return child.wait(every_seconds)
                tick(time.monotonic() - started)
        except BaseException:
            with uninterrupted():
                _end_group(child)
            raise


def _end_group(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):  # an interrupted go removes its work folder
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(3)
    until = time.monotonic() + 5
    while time.monotonic() < until:  # killed is not yet gone: grandchildren are reaped by somebody else
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(0.02)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let a clean-up finish: further Ctrl-C and SIGTERM are ignored meanwhile (in the main thread)."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    try:
        before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    except ValueError:  # not the main thread: it gets no signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not, but while other threads of it are ending, it still has its ports."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _state(pid) not in {"Z", "X"} or _threads(pid) > 1


def _threads(pid: int) -> int:
    try:
        return sum(1 for _ in (_PROC / str(pid) / "task").iterdir())
    except OSError:
        return 0


def started_at(pid: int) -> str:
    """Something that differs between two processes that were given the same id one after the other."""
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else ""


def _state(pid: int) -> str:
    return (_stat(pid) or ["?"])[0]


def _stat(pid: int) -> list[str]:
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def command_of(pid: int) -> list[str]:
    """The arguments a process was started with; empty where the system does not tell."""
    try:
        return [part.decode() for part in (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")[:-1]]
    except OSError:
        return []


def processes_in(folder: Path) -> list[int]:
    """Every process that works inside a folder or was given a path in it."""
    if not (_PROC / "self").exists():
        listing = subprocess.run(["ps", "-axo", "pid=,args="], capture_output=True, text=True, check=False).stdout
        pids = [int(line.split(None, 1)[0]) for line in listing.splitlines() if f"{folder}/" in line]
        return [pid for pid in pids if pid != os.getpid()]
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if f"{entry.joinpath('cwd').readlink()}/".startswith(f"{folder}/"):
                    found.append(int(entry.name))
    return found


def kill(pids: Sequence[int], *, patience_seconds: float = 5.0) -> None:
    """End processes at once and wait until they are gone."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + patience_seconds
    while any(is_alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.02)
