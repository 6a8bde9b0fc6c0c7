"""`Warning` headers of the API server, as it writes them."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from workflow_schedules.cluster.errors import InvalidError, error_of
from workflow_schedules.cluster.transport import lower
from workflow_schedules.cluster.warning_headers import warnings_of

UNKNOWN = 'unknown field "spec.a"'
AS_SENT = r'299 - "unknown field \"spec.a\""'
ROWS = [
    ("none", {}, ()),
    ("one", {"warning": AS_SENT}, (UNKNOWN,)),
    ("two of one name, joined", {"warning": f'{AS_SENT}, 299 - "b, \\"299 - c\\""'}, (UNKNOWN, 'b, "299 - c"')),
    ("an agent, and a backslash", {"warning": r'299 kube "a\\b"'}, (r"a\b",)),
    ("no text", {"warning": '299 - ""'}, ("",)),
    ("other codes are not the API server's", {"warning": '110 - "stale"'}, ()),
    ("nonsense", {"warning": 'x, 299 - "never ends'}, ()),
]


@pytest.mark.parametrize(("headers", "want"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_is_read(headers: dict[str, str], want: tuple[str, ...]) -> None:
    assert warnings_of(headers) == want


def test_a_refusal_keeps_them() -> None:
    """R24: a template may be refused and have a field that nobody knows."""
    error = error_of(422, {"warning": AS_SENT}, b'{"message": "no", "reason": "Invalid"}')
    assert isinstance(error, InvalidError)
    assert error.warnings == (UNKNOWN,)


REPEATED = [
    ("warnings are all kept", "Warning", ['299 - "a"', '299 - "b"', '299 - "c"'], '299 - "a", 299 - "b", 299 - "c"'),
    ("one pause", "Retry-After", ["1", "2"], "2"),
    ("one time (P13)", "Date", ["Mon, 02 Mar 2026 10:00:00 GMT"] * 2, "Mon, 02 Mar 2026 10:00:00 GMT"),
]


@pytest.mark.parametrize(("name", "values", "want"), [row[1:] for row in REPEATED], ids=[row[0] for row in REPEATED])
def test_what_a_header_that_comes_several_times_says(name: str, values: list[str], want: str) -> None:
    """A proxy before the API server may repeat them: a pause and a time stay one that can be read."""
    assert lower(CIMultiDict((name, value) for value in values)) == {name.lower(): want}
