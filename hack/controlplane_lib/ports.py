"""Free ports on this machine, out of the range from which outgoing connections take theirs."""

from __future__ import annotations

import random
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOWEST, _HIGHEST = 20_000, 30_000  # Linux hands out 32768 and up, macOS and Windows 49152 and up
_ATTEMPTS = 200


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at this moment; whoever uses them must still cope with losing one.

    Raises:
        OSError: hardly any port is free.
    """
    found: list[int] = []
    for _ in range(_ATTEMPTS * count):
        port = random.randrange(_LOWEST, _HIGHEST)
        if port not in found and _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"no {count} free ports between {_LOWEST} and {_HIGHEST}")


def wait_free(numbers: Iterable[int], *, seconds: float = 10.0) -> None:
    """Wait until nobody listens on these ports, or that long; whoever listens then is told of by who wants one."""
    until = time.monotonic() + seconds
    while not all(_is_free(port, again=True) for port in numbers) and time.monotonic() < until:
        time.sleep(0.05)


def _is_free(port: int, *, again: bool = False) -> bool:
    """Tell whether a port can be listened on; `again` by one who does not mind old connections on it, as Go does."""
    with socket.socket() as attempt:
        if again:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
