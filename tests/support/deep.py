"""Objects nested as deeply as the API server stores them, which Python can neither read nor write at once.

In the fake server's store such a value is a marker; what operators are sent has the real text in its place.
"""

from __future__ import annotations

import re

_MARKER = re.compile(rb'"@nested (\d+)@"')


def nested(levels: int) -> str:
    """A value of an object in the fake server: one mapping in the other, so many levels deep."""
    return f"@nested {levels}@"


def unfolded(data: bytes) -> bytes:
    """JSON text as the server sends it."""
    return _MARKER.sub(lambda found: nested_text(int(found[1])), data) if b"@nested " in data else data


def nested_text(levels: int) -> bytes:
    """The JSON text of such a value."""
    return b'{"a":' * levels + b"1" + b"}" * levels
