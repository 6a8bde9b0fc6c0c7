"""What the command line says when something can't be used: one shape for people and one for programs."""

from __future__ import annotations

import re
from dataclasses import dataclass

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        error: code for programs, snake_case.
        message: names the field, the value and what would do.
        place: file and line, where there are any.
    """

    error: str
    message: str
    place: str = ""

    def as_json(self) -> str:
        """Return the error as R36 words it."""
        return orjson.dumps({"detail": {"error": self.error, "message": self.as_text()}}).decode()

    def as_text(self) -> str:
        """Return one line for people; what no terminal should get is written as an escape."""
        text = f"{self.place}: {self.message}" if self.place else self.message
        return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


class ProblemsError(Exception):
    """The command can't go on; it says all that is wrong at once."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems


def code_of(reason: str) -> str:
    """Return the snake_case code of a CamelCase reason."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", reason).lower()
