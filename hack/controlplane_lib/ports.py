"""Free ports on this machine, out of the range from which outgoing connections take theirs."""

from __future__ import annotations

import random
import socket

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


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        try:
            attempt.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
