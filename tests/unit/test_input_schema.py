"""Schemas of inputs: which are refused, what inputs depart from them, and that no schema keeps the operator busy."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_schedules.core.identity import canonical
from workflow_schedules.core.input_schema import Flaw, InputSchema, SchemaProblem, dotted, read_schema
from workflow_schedules.core.metered import BUDGET, budget

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TYPICAL = {
    "$schema": DIALECT,
    "type": "object",
    "required": ["region"],
    "additionalProperties": False,
    "properties": {
        "region": {"enum": ["eu", "us"]},
        "count": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 10}},
        "day": {"type": ["string", "null"], "pattern": "^[0-9]{4}-"},
    },
}


def read(schema: object) -> InputSchema:
    found = read_schema(canonical(schema))
    assert isinstance(found, InputSchema), found
    return found


def flaws(schema: object, value: object) -> tuple[Flaw, ...]:
    return read(schema).flaws(value)


def doubling(levels: int) -> dict[str, Any]:
    """A schema whose check doubles at each level."""
    found: dict[str, Any] = {"a0": {"type": "object"}}
    for level in range(1, levels):
        found[f"a{level}"] = {"allOf": [{"$ref": f"#/$defs/a{level - 1}"}] * 2}
    return {"$defs": found, "$ref": f"#/$defs/a{levels - 1}"}


REFUSED = [
    ("an unknown type", {"type": "strin"}, 'inputSchema.type: "strin" is none that type may have'),
    ("a list of properties", {"properties": []}, r"inputSchema.properties: \[\] is none .*write an object"),
    ("a number as a schema", {"properties": {"a": 7}}, "inputSchema.properties.a: 7 "),
    ("a fault below", {"allOf": [{"items": {"minimum": "x"}}]}, r"inputSchema.allOf\[0\].items.minimum: \"x\" .*write a number"),
    ("a negative length", {"minLength": -1}, "inputSchema.minLength: -1 .*must meet minimum 0"),
    ("a required key twice", {"required": ["a", "a"]}, "inputSchema.required"),
    ("a reference to elsewhere", {"$ref": "https://example.com/a"}, "inputSchema.*ref: .*nothing is fetched"),
    ("a file", {"items": {"$ref": "other.json#/a"}}, "inputSchema.items.*ref: .*nothing is fetched"),
    ("its own dialect, by name", {"$ref": DIALECT}, "nothing is fetched"),
    ("a reference to nothing", {"$ref": "#/$defs/a"}, "is no schema in here; write it under"),
    ("an anchor that is not there", {"$ref": "#a"}, "is no schema in here"),
    ("a reference into data", {"$ref": "#/enum/0", "enum": [{"pattern": "(a+)+$"}]}, "is no schema in here"),
    ("a reference into a list by name", {"$ref": "#/allOf/x", "allOf": [{}]}, "is no schema in here"),
    ("a dynamic reference", {"$dynamicRef": "#a"}, "dynamicRef: is not supported; use .ref"),
    ("another dialect", {"$schema": "http://json-schema.org/draft-07/schema#"}, "schema: write https://json-schema.org/draft/2020-12"),
    ("another dialect within", {"items": {"$schema": DIALECT}}, "items.*schema: is only for the whole schema"),
    ("an identity within", {"items": {"$id": "https://example.com/a"}}, "items.*id: is only for the whole schema"),
    ("a look-ahead", {"pattern": "(?=a)b"}, "inputSchema.pattern: .*no pattern of RE2's syntax"),
    ("a pattern of a key", {"patternProperties": {"[": {}}}, r"inputSchema.patternProperties.\[: "),
    ("a pattern that is too large", {"pattern": "((a{0,100}){0,100})"}, "inputSchema.pattern: "),
    ("a pattern that is too long", {"pattern": "a" * 1025}, "longer than 1024 bytes"),
    ("patterns beside unevaluatedProperties", {"patternProperties": {"a": {}}, "unevaluatedProperties": False}, "has both"),
    ("more than 1000 schemas", {"allOf": [{}] * 1000}, "inputSchema: has more than 1000 schemas"),
    ("more than 64 KiB", {"description": "x" * 65536}, "inputSchema: 65554 bytes of JSON; write at most 65536"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "want"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_schemas(schema: object, want: str) -> None:
    """Section 1 (`inputSchema`), R36: the path and what would do; nothing is ever fetched."""
    found = read_schema(canonical(schema))
    assert isinstance(found, SchemaProblem)
    assert found.message.startswith("spec.inputSchema")
    assert re.search(want, found.message), found.message
    assert len(found.message) < 700
    assert found.message.startswith(dotted("spec.inputSchema", found.path))


MET = [
    ("a typical one", TYPICAL, {"region": "eu", "count": 3, "tags": ["a"], "day": None}),
    ("a boolean subschema", {"properties": {"a": True}}, {"a": 1}),
    ("1.0 is a whole number", {"properties": {"a": {"type": "integer"}}}, {"a": 1.0}),
    ("1 is 1.0 of an enum", {"properties": {"a": {"enum": [1.0, True]}}}, {"a": 1}),
    ("keywords as names and data", {"properties": {"$ref": {"enum": [{"$ref": "http://x"}]}}}, {"$ref": {"$ref": "http://x"}}),
    ("an anchor", {"$ref": "#a", "$defs": {"x": {"$anchor": "a", "type": "object"}}}, {}),
    ("with an identity", {"$id": "https://example.com/s", "$ref": "#/$defs/x", "$defs": {"x": {}}}, {}),
    ("definitions of older drafts", {"$ref": "#/definitions/x", "definitions": {"x": {}}}, {}),
    ("unknown keywords are annotations", {"x-order": 1, "format": "date-time"}, {}),
    ("format is an annotation", {"properties": {"a": {"format": "date"}}}, {"a": "no date"}),
    ("patterns are searched for", {"properties": {"a": {"pattern": "b+"}}}, {"a": "abbc"}),
    ("equal but for truth", {"properties": {"a": {"uniqueItems": True}}}, {"a": [1, True, 0, False, [1], [True], {"a": 1}]}),
    ("unevaluatedProperties", {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1}),
    ("dependentRequired", {"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), [row[1:] for row in MET], ids=[row[0] for row in MET])
def test_met(schema: object, value: object) -> None:
    """R24."""
    assert flaws(schema, value) == ()


MISSED = [
    ("a type", TYPICAL, {"region": "eu", "count": "x"}, "input.count",
     'write a whole number (inputSchema.properties.count.type)', '"x"'),
    ("two types", TYPICAL, {"region": "eu", "day": 7}, "input.day", "write text or null", "7"),
    ("an enum", TYPICAL, {"region": "mars"}, "input.region", 'write one of "eu", "us"', '"mars"'),
    ("a missing key", TYPICAL, {}, "input", 'has no "region"; write it', "{}"),
    ("an unknown key", TYPICAL, {"region": "eu", "zone": 1}, "input", 'knows no "zone"; leave it out', "{"),
    ("an item", TYPICAL, {"region": "eu", "tags": ["a", 7]}, "input.tags[1]", "write text", "7"),
    ("a bound", TYPICAL, {"region": "eu", "count": 0}, "input.count", "must meet minimum 1", "0"),
    ("a pattern", TYPICAL, {"region": "eu", "day": "x"}, "input.day", 'must meet pattern "^[0-9]{4}-"', '"x"'),
    ("a const", {"properties": {"a": {"const": [1]}}}, {"a": [True]}, "input.a", "write [1]", "[true]"),
    ("false", {"properties": {"a": False}}, {"a": 1}, "input", "a value that must not be there", "1"),
    ("true is no 1 of an enum", {"properties": {"a": {"enum": [1]}}}, {"a": True}, "input.a", "write one of 1", "true"),
    ("equal items", {"properties": {"a": {"uniqueItems": True}}}, {"a": [1, 1.0]}, "input.a", "must meet uniqueItems", "["),
    ("a key's pattern", {"patternProperties": {"^x": {"type": "null"}}}, {"xa": 1}, "input.xa", "write null", "1"),
    ("beside patterns", {"patternProperties": {"^x": {}}, "additionalProperties": False}, {"xa": 1, "b": 2}, "input",
     'knows no', "{"),
    ("others by schema", {"additionalProperties": {"type": "null"}}, {"a": 1}, "input.a", "write null", "1"),
    ("unevaluated", {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"b": 1}, "input",
     "unevaluatedProperties", "{"),
    ("by reference", {"$ref": "#/$defs/x", "$defs": {"x": {"required": ["a"]}}}, {}, "input", 'has no "a"', "{}"),
    ("dependentRequired", {"dependentRequired": {"a": ["b"]}}, {"a": 1}, "input", "must meet dependentRequired", "{"),
    ("half a surrogate pair", {"properties": {"a": {"pattern": "."}}}, {"a": "\ud800"}, "input.a", "must meet pattern", '"'),
    ("without end", {"$ref": "#"}, {}, "input", "refers to itself without end", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "value", "place", "want", "shown"), [row[1:] for row in MISSED], ids=[row[0] for row in MISSED]
)
def test_missed(schema: object, value: object, place: str, want: str, shown: str) -> None:
    """R24, R36: the path, the value, and what would do; the value apart from the rest (K-096)."""
    found = flaws(schema, value)
    assert found
    assert dotted("input", found[0].path) == place
    assert want in found[0].want
    assert found[0].value.startswith(shown)


COSTLY: list[tuple[str, object, object]] = [
    ("references that double", doubling(40), {}),
    ("references that double, looked through for keys", {**doubling(40), "unevaluatedProperties": False}, {"a": 1}),
    ("many branches of many items", {"items": {"allOf": [{"type": "string"}] * 900}}, ["a"] * 8000),
    ("many branches that all fail on something long", {"anyOf": [{"minItems": 9}] * 900}, [[1] * 16000]),
    ("long lists of long lists", {"items": {"enum": [[1] * 100 + [i] for i in range(200)]}}, [[1] * 160] * 100),
    ("objects to be told apart", {"uniqueItems": True}, [{"a": number} for number in range(3600)]),
    ("many required keys", {"items": {"required": [f"k{i}" for i in range(5000)]}}, [{}] * 10000),
    ("many dependent keys", {"items": {"dependentRequired": {"a": [f"k{i}" for i in range(5000)]}}}, [{"a": 1}] * 4000),
    ("a pattern that backtracks", {"pattern": "^(a+)+$"}, "a" * 32000 + "!"),
    ("a pattern of many states", {"pattern": "(a?){200}a{200}$"}, "a" * 32000),
    ("the costliest pattern there may be", {"pattern": "(.*a){20}b"}, "a" * 32000),
]


@pytest.mark.parametrize(("schema", "value"), [row[1:] for row in COSTLY], ids=[row[0] for row in COSTLY])
def test_no_schema_keeps_the_operator_busy(schema: object, value: object) -> None:
    """R24, reliability (fuzzing): a check ends within its budget, of which a tenth of a second is the measure."""
    checked = read(schema)
    best = min(_seconds(checked, value) for _ in range(3))
    assert best < 0.5, "five times what it may take, for a busy machine"


def _seconds(schema: InputSchema, value: object) -> float:
    begun = time.process_time()
    schema.flaws(value)
    return time.process_time() - begun


def test_a_schema_is_read_once_for_each_text() -> None:
    """Performance: nothing is compiled on the path of a run."""
    text = canonical(TYPICAL)
    assert read_schema(text) is read_schema(str(json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))))


def test_a_budget_does_not_outlive_its_check() -> None:
    with budget(subschemas=1):
        flaws(TYPICAL, {"region": "eu"})
    assert all(flaws(TYPICAL, {"region": "eu", "count": 3}) == () for _ in range(BUDGET // 1000))


SCHEMAS = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=5) | st.none() | st.sampled_from(["#", "#/$defs/a", "object", "^a", "("]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["$ref", "$defs", "a", "type", "properties", "items", "allOf", "not", "enum", "pattern", "required",
             "patternProperties", "unevaluatedProperties", "additionalProperties", "$id", "$anchor", "$schema", "minimum",
             "uniqueItems", "multipleOf", "dependentSchemas", "contains", "$dynamicRef"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=15,
)  # fmt: skip


@given(
    schema=st.dictionaries(st.sampled_from(["$ref", "$defs", "properties", "allOf", "enum", "type"]), SCHEMAS),
    value=SCHEMAS,
)
def test_whatever_is_written_is_read_or_refused(schema: dict[str, object], value: object) -> None:
    """Reliability (fuzzing): no schema and no input makes the operator crash."""
    found = read_schema(canonical(schema))
    if isinstance(found, InputSchema):
        found.flaws(value)
    else:
        assert found.message.startswith("spec.inputSchema")
