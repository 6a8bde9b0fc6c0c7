"""How deeply nested a value may be to be hashed, checked and rendered: all of that recurses."""

from __future__ import annotations

from typing import Final

MAX_LEVELS: Final = (
    200  # no template or input of anyone comes near; orjson writes 254, json recurses to the stack's end
)


def depth_problem(value: object, *, field: str) -> str | None:
    """Return why a value is nested too deeply to be worked with, or None.

    Args:
        value: parsed JSON.
        field: whose name the message gives.

    Source: contract R36; invariant I9.
    """
    if not _is_deeper(value, MAX_LEVELS):
        return None
    return f"{field}: is nested deeper than {MAX_LEVELS} levels; make it flatter"


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)
