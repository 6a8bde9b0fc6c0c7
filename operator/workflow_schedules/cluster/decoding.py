"""From JSON text to values, however deeply somebody nested it.

The API server stores objects nested up to ten thousand levels; orjson reads 1024, Python's json as many as the stack of the
moment allows. One such object must not make the list or the watch that it is in unreadable (I9), so what lies deeper than
anything can be used for is cut out of the text. That it was too deep is still seen: `core/depth` allows less than is left.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from workflow_schedules.core.depth import MAX_LEVELS

KEPT_LEVELS: Final = MAX_LEVELS + 50  # an item of a list has its fields a few levels down; orjson writes 254
_CUT: Final = b"null"
_QUOTE: Final = b'"'[0]
_OPENING: Final = b"[{"
# a string, to its end or to that of the text, or a bracket; possessive, so that no text takes more than linear time
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[][{}]', re.DOTALL)


def decode(text: bytes) -> Any:  # noqa: ANN401 - JSON may be anything
    """Read JSON; what is nested too deeply to be read becomes null from `KEPT_LEVELS` on.

    Raises:
        orjson.JSONDecodeError: it is not JSON.

    Source: invariant I9.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        shallow = cut(text)
        if shallow is text:
            raise
    return orjson.loads(shallow)


def decode_shallow(text: bytes) -> Any:  # noqa: ANN401
    """Read JSON; all that is nested deeper than `KEPT_LEVELS` becomes null, for who copies it level by level.

    Raises:
        orjson.JSONDecodeError: it is not JSON.
    """
    value = decode(text)
    try:
        orjson.dumps(value)  # the cheapest way to ask: it refuses more than 254 levels
    except orjson.JSONEncodeError:
        return orjson.loads(cut(text))
    return value


def cut(text: bytes) -> bytes:
    """Return JSON text with null for all that is nested deeper than `KEPT_LEVELS`; the very same text where nothing is.

    Two counts tell that of almost every object; of the rest one pass over its brackets and strings.
    """
    if text.count(b"{") + text.count(b"[") <= KEPT_LEVELS:
        return text
    kept: list[bytes] = []
    level = start = 0
    for token in _TOKEN.finditer(text):
        at = token.start()
        if text[at] == _QUOTE:
            continue
        if text[at] in _OPENING:
            level += 1
            if level == KEPT_LEVELS + 1:
                kept += (text[start:at], _CUT)
        else:
            level -= 1
            if level == KEPT_LEVELS:
                start = at + 1
    return b"".join((*kept, text[start:])) if kept else text
