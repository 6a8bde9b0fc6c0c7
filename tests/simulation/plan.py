"""What happens in one simulated world, as a value: a short list of actions that can be printed, pasted and shrunk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Do:
    """One action: `what` is done `at` so many seconds after the start (see actions.py for what there is)."""

    __slots__ = ("args", "at", "what")

    def __init__(self, at: float, what: str, **args: Any) -> None:  # noqa: ANN401 - plain JSON values
        self.at = at
        self.what = what
        self.args = args

    def __repr__(self) -> str:
        return f"Do({', '.join([repr(self.at), repr(self.what), *(f'{k}={v!r}' for k, v in self.args.items())])})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Do) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, slots=True)
class Plan:
    """A world: its operators, and what people and faults do to it.

    Attributes:
        actions: by time; each makes sense, or does nothing, whichever of the others are left out.
        seconds: until everything heals.
        operators: seconds that the clock of each is ahead.
        settings: of the operators.
        seed: of the UIDs, and of how long each Job runs.
    """

    actions: tuple[Do, ...]
    seconds: float = 240.0
    operators: tuple[float, ...] = (0.0, 0.0)
    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    def text(self) -> str:
        """Return it as Python, ready to be pasted into the table of fixed plans."""
        lines = "".join(f"            {each!r},\n" for each in self.actions)
        rest = [f"seconds={self.seconds!r}", f"operators={self.operators!r}", f"seed={self.seed!r}"]
        rest += [f"settings={self.settings!r}"] if self.settings else []
        return f"Plan(\n        (\n{lines}        ),\n        {', '.join(rest)},\n    )"
