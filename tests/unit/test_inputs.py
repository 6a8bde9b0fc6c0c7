"""What an occurrence's input is, and that no input breaks the Job that it is rendered into."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import UID, WRITER, a_schedule, an_admission, at
from workflow_schedules.api.names import record_name
from workflow_schedules.api.occurrence import Cause
from workflow_schedules.api.schedule import InputBinding, OccurrenceField
from workflow_schedules.core.identity import pin
from workflow_schedules.core.inputs import Input, OccurrenceFacts, input_text, resolve_input, sample_facts, size_problem
from workflow_schedules.core.job import job_manifest, left_out
from workflow_schedules.core.zones import load_zone

FACTS = OccurrenceFacts(
    scheduled_time=at("10:00"),
    name="hourly-0-2",
    schedule_name="hourly",
    revision=3,
    cause=Cause.SCHEDULED,
    last_successful_time=at("09:00:07"),
)
FIRST = replace(FACTS, last_successful_time=None)
ALL = tuple(InputBinding(name=field.value, occurrence_field=field) for field in OccurrenceField)
DAY = InputBinding(name="day", occurrence_field=OccurrenceField.SCHEDULED_TIME)

CASES: list[tuple[str, Input | None, tuple[InputBinding, ...], OccurrenceFacts, Input | None]] = [
    ("neither input nor bindings", None, (), FACTS, None),
    ("an empty input is one", {}, (), FACTS, {}),
    ("an input alone", {"a": [1, {"b": None}]}, (), FACTS, {"a": [1, {"b": None}]}),
    ("a binding alone", None, (DAY,), FACTS, {"day": "2026-01-01T10:00:00Z"}),
    ("both", {"a": 1}, (DAY,), FACTS, {"a": 1, "day": "2026-01-01T10:00:00Z"}),
    ("the binding wins where acceptance was passed by", {"day": 1}, (DAY,), FACTS, {"day": "2026-01-01T10:00:00Z"}),
    ("every field", None, ALL, FACTS,
     {"scheduledTime": "2026-01-01T10:00:00Z", "name": "hourly-0-2", "scheduleName": "hourly", "revision": 3,
      "cause": "Scheduled", "lastSuccessfulTime": "2026-01-01T09:00:07Z"}),
    ("no success yet is null", None, ALL[-1:], FIRST, {"lastSuccessfulTime": None}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given_input", "bindings", "facts", "want"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_resolve_input(
    given_input: Input | None, bindings: tuple[InputBinding, ...], facts: OccurrenceFacts, want: Input | None
) -> None:
    """R23, `input`, `inputFrom`."""
    assert resolve_input(given_input, bindings, facts) == want


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ('{"a":"' + "x" * 32760 + '"}', None),
        ('{"a":"' + "x" * 32761 + '"}', 32769),
        ('{"a":"' + "é" * 16381 + '"}', 32770),
    ],
)
def test_size_is_that_of_compact_utf8(text: str, size: int | None) -> None:
    """K-096: 32 KiB, with field, size and limit."""
    problem = size_problem(text, field="spec.input")
    assert (problem is None) == (size is None)
    assert problem is None or problem == f"spec.input: {size} bytes of JSON; write at most 32768 (32 KiB)"


def test_samples_are_of_a_first_run_and_of_a_later_one() -> None:
    """R24: an input that only one of the two would have right is a schedule that stops one day, or never starts."""
    first = OccurrenceFacts(
        scheduled_time=at("10:00"),
        name=record_name("hourly", UID, 1),
        schedule_name="hourly",
        revision=1,
        cause=Cause.SCHEDULED,
        last_successful_time=None,
    )
    later = replace(first, name=record_name("hourly", UID, 2), revision=2, last_successful_time=at("10:00"))
    assert sample_facts(a_schedule(), scheduled_time=at("10:00")) == (first, later)


WARNINGS = [
    ("all keys have one", {"a": 1, "b": [1], "c": None}, []),
    ("no name can be made", {"café": 1}, ['"café": no name']),
    ("nor by capitals of other scripts", {"straße": 1, "\u017f": 2}, ['"straße", "\u017f": no name']),
    ("two keys, one name", {"a-b": 1, "a_b": 2}, ['"a-b", "a_b": all would be INPUT_A_B']),
    ("a list takes no name", {"a-b": 1, "a_b": []}, []),
    ("what no variable can hold", {"a": "x\0y"}, ['"a": no variable can hold']),
]


@pytest.mark.parametrize(("given_input", "want"), [row[1:] for row in WARNINGS], ids=[row[0] for row in WARNINGS])
def test_left_out_keys_are_told(given_input: Input, want: list[str]) -> None:
    """R23: with a warning."""
    warnings = left_out(given_input)
    assert len(warnings) == len(want)
    for warning, part in zip(warnings, want, strict=True):
        assert part in warning


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.text() | st.sampled_from(["a", "A", "a-b", "a_b", "$(PATH)", "scheduledTime", "workflowInput"])
TEMPLATE = pin(
    {
        "spec": {
            "template": {
                "spec": {
                    "initContainers": [{"name": "sidecar", "restartPolicy": "Always"}],
                    "containers": [{"name": "main", "env": [{"name": "INPUT_A", "value": "mine"}]}],
                }
            }
        }
    }
)


@given(given_input=st.dictionaries(KEYS, JSON, max_size=8), bindings=st.sets(st.sampled_from(ALL)))
def test_no_input_breaks_a_job_or_is_expanded(given_input: Input, bindings: set[InputBinding]) -> None:
    """R23, K-096: what is resolved is what arrives, each name once, and nothing for kubelet to expand."""
    resolved = resolve_input(given_input, tuple(bindings), FACTS)
    assert resolved is not None
    text = input_text(resolved)
    record = an_admission(input_json=text)
    manifest = job_manifest(record, TEMPLATE, zone=load_zone("UTC"), last_successful_at=None, writer=WRITER)
    pod = manifest["spec"]["template"]
    arrived = pod["metadata"]["annotations"]["workflow-schedules.dev/input"]
    assert (arrived, json.loads(arrived)) == (text, json.loads(text))
    for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
        names = [variable["name"] for variable in container["env"]]
        assert len(set(names)) == len(names)
        assert all(name.isascii() and name.replace("_", "a").isalnum() for name in names)
        for variable in container["env"]:
            assert "$(" not in variable.get("value", "").replace("$$", "")
            assert "\0" not in variable.get("value", "")
    by_name = {variable["name"]: variable.get("value") for variable in pod["spec"]["initContainers"][0]["env"]}
    for key, value in resolved.items():
        if isinstance(value, str) and (kept := by_name.get(f"INPUT_{key}")) is not None:
            assert kept.replace("$$", "$") == value
