"""What an answer of the API server says besides: its `Warning` headers, as texts. What they mean is not decided here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_WARNING = re.compile(r'\b299 \S+ "((?:[^"\\]|\\.)*)"')


def warnings_of(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the texts of an answer's warnings (RFC 9111 once, `299 - "text"`), as far as they can be read.

    Args:
        headers: with lower-case keys, several of one name joined by commas.
    """
    told = headers.get("warning")
    return tuple(re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(told)) if told else ()
