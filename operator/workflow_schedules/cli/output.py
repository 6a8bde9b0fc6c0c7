"""What is answered goes to stdout, in whatever encoding that has: what it can't hold is escaped, never an error."""

from __future__ import annotations

import codecs
import json
import sys


def say(text: str) -> None:
    """Print text for people."""
    _print(text, "backslashreplace")


def say_json(text: str) -> None:
    """Print JSON, which has escapes of its own."""
    _print(text, _JSON_ESCAPES)


def _print(text: str, escapes: str) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, escapes).decode(encoding))


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


_JSON_ESCAPES = "workflow-schedules-json"
codecs.register_error(_JSON_ESCAPES, _escaped)
