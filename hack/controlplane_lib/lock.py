"""One at a time, across processes: a lock file that is released when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from controlplane_lib.console import say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class BusyError(Exception):
    """Another process holds the lock and the caller did not want to wait."""


@contextmanager
def hold(path: Path, *, purpose: str, wait: bool = True) -> Iterator[None]:
    """Hold the lock; say whom it waits for, once.

    Raises:
        BusyError: it is held and `wait` is false.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _acquire(path, purpose=purpose, wait=wait)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path, *, purpose: str, wait: bool) -> int:
    told = False
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not wait:
                    raise BusyError(path) from None
                if not told:
                    say(f"waiting for process {_holder(descriptor)} to finish: {purpose}")
                    told = True
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_still(path, descriptor):
                return descriptor
            # The holder unlinked the file when it was done: what was locked is no longer the lock.
            os.close(descriptor)
        except BaseException:
            os.close(descriptor)
            raise


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "?"
