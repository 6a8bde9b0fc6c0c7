"""What a person sees: progress on stderr, and failures that name the next command to run."""

from __future__ import annotations

import sys

_speaker = "controlplane"


class RemedyError(Exception):
    """Something that a person has to act on; `remedy` is the next command to run or the next thing to do."""

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def speak_as(name: str) -> None:
    """Put the name of another verb before what is said from here on."""
    global _speaker  # noqa: PLW0603 - one process is one verb
    _speaker = name


def say(message: str) -> None:
    print(f"{_speaker}: {message}", file=sys.stderr, flush=True)


def tail(text: str, *, lines: int = 15) -> str:
    """The last lines of a log, indented for a message."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-lines:])
