"""JSON nested as deeply as the API server stores it: cut where nothing can use it, and nothing else of it is changed."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.deep import nested_text
from workflow_schedules.cluster.decoding import KEPT_LEVELS, cut, decode, decode_shallow
from workflow_schedules.cluster.wire import definition_of, record_of, schedule_of
from workflow_schedules.core.depth import MAX_LEVELS

MORE = KEPT_LEVELS + 1
LEVELS = [1_025, 1_100, 9_000]


def levels_of(value: Any) -> int:  # noqa: ANN401 - JSON
    levels = 0
    while isinstance(value, (dict, list)):
        levels += 1
        value = next(iter(value.values() if isinstance(value, dict) else value), None)
    return levels


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    text: bytes
    want: bytes


CASES = [
    Case("flat", b'{"a":[1,{"b":"[[["}]}', b'{"a":[1,{"b":"[[["}]}'),
    Case("as deep as is kept", b"[" * KEPT_LEVELS + b"]" * KEPT_LEVELS, b"[" * KEPT_LEVELS + b"]" * KEPT_LEVELS),
    Case("one level more", b"[" * MORE + b"7" + b"]" * MORE, b"[" * KEPT_LEVELS + b"null" + b"]" * KEPT_LEVELS),
    Case("many brackets side by side", b"[" + b"[]," * 999 + b"{}]", b"[" + b"[]," * 999 + b"{}]"),
    Case("brackets in a string are none", b'["' + b"[{" * 999 + b'"]', b'["' + b"[{" * 999 + b'"]'),
    Case("nor behind a quote in a string", b'["a\\"' + b"[" * 999 + b'\\\\"]', b'["a\\"' + b"[" * 999 + b'\\\\"]'),
    Case("what stands after it stays", b"[" * MORE + b'"]"' + b"]" * MORE + b"  ",
         b"[" * KEPT_LEVELS + b"null" + b"]" * KEPT_LEVELS + b"  "),
    Case("twice", b'{"a":' + nested_text(300) + b',"b":' + nested_text(300) + b',"c":1}',
         b'{"a":' + b'{"a":' * 249 + b"null" + b"}" * 249 + b',"b":' + b'{"a":' * 249 + b"null" + b"}" * 249 + b',"c":1}'),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_cut(case: Case) -> None:
    """I9."""
    assert cut(case.text) == case.want
    assert (cut(case.text) is case.text) is (case.text == case.want)


@pytest.mark.parametrize("levels", LEVELS)
def test_one_deep_object_among_others_is_read(levels: int) -> None:
    """I9: neither orjson nor json would read any of them."""
    others = [{"metadata": {"name": f"o{number}"}} for number in range(3)]
    rest = b",".join(map(orjson.dumps, others))
    text = b'{"items":[' + rest + b',{"spec":{"input":' + nested_text(levels) + b'}}],"metadata":{}}'
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(text)
    read = decode(text)
    assert read["items"][:3] == others
    assert MAX_LEVELS < levels_of(read["items"][3]["spec"]["input"]) < KEPT_LEVELS
    assert read["metadata"] == {}


@pytest.mark.parametrize("levels", [100, 300, 1_000, *LEVELS])
def test_who_copies_values_gets_them_shallow(levels: int) -> None:
    """kopf does, which takes two calls a level."""
    text = b'{"items":[{"spec":' + nested_text(levels) + b"}]}"
    copied = copy.deepcopy(decode_shallow(text))
    assert levels_of(copied) == min(levels + 3, KEPT_LEVELS)


@pytest.mark.parametrize("levels", [100, 300, 1_000, *LEVELS])
def test_every_field_may_be_deep(levels: int) -> None:
    """I9 R36: it is a problem of that object, or nothing that matters."""
    objects = {
        "spec": b'{"cause":"Manual","scheduleRef":{"name":"s"},"%s":' + nested_text(levels) + b"}",
        "status": b'{"%s":' + nested_text(levels) + b"}",
    }
    names = b"input jobTemplate inputSchema schedule schedules pause workflowRef inputFrom conditions counts".split()
    for part, text in objects.items():
        for name in names:
            body = decode(b'{"metadata":{"name":"a","uid":"u"},"%s":%s}' % (part.encode(), text % name))
            schedule, definition = schedule_of(body), definition_of(body)
            if part == "spec" and levels > MAX_LEVELS:
                assert schedule.problem or name not in {b"input", b"jobTemplate"}
                assert definition.problem or name not in {b"inputSchema", b"jobTemplate"}
    request = decode(b'{"metadata":{"name":"a","uid":"u"},"spec":%s}' % (objects["spec"] % b"input"))
    assert record_of(request).spec.input is not None


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 3000, b'{"a":"' + b'\\"' * 200_000, b"]" * 999 + b"[" * 999])
def test_what_is_no_json_is_an_error_at_once(text: bytes) -> None:
    began_at = time.process_time()
    with pytest.raises(orjson.JSONDecodeError):
        decode(text)
    assert time.process_time() - began_at < 1


VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(alphabet='a[]{}"\\', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='[{"\\', max_size=3), inner, max_size=3)
    ),
)


@given(VALUES, st.integers(0, 2 * KEPT_LEVELS))
def test_cut_is_what_a_walk_over_the_values_gives(value: object, around: int) -> None:
    def walked(value: object, level: int) -> object:
        if not isinstance(value, (dict, list)):
            return value
        if level > KEPT_LEVELS:
            return None
        if isinstance(value, dict):
            return {key: walked(each, level + 1) for key, each in value.items()}
        return [walked(each, level + 1) for each in value]

    text = b"[" * around + orjson.dumps(value) + b"]" * around
    assert orjson.loads(cut(text)) == walked(orjson.loads(text), 1)
