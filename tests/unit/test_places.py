"""Who holds a place and who gets the next one, as tables of moves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import at
from workflow_schedules.cluster.places import Places

Move = Callable[[Places], None]


def runs(uid: str, *definitions: str | None) -> Move:
    return lambda places: places.set_runs(uid, definitions)


def waits(uid: str, since: str, definition: str | None = None) -> Move:
    return lambda places: places.wait(uid, definition, at(since))


def leaves(uid: str) -> Move:
    return lambda places: places.leave(uid)


def gives_back(uid: str) -> Move:
    return lambda places: places.give_back(uid)


def reserves(uid: str, definition: str | None = None) -> Move:
    return lambda places: places.reserve(uid, definition)


def is_answered(uid: str) -> Move:
    return lambda places: places.unreserve(uid)


def limit(definition: str, limit: int | None) -> Move:
    return lambda places: places.set_limit(definition, limit)


FULL = runs("a", None), runs("b", None)
CASES: list[tuple[str, int, list[Move], list[str], dict[str, int | None]]] = [
    ("no limit", 0, [*FULL], [], {"c": None}),
    ("two of three", 3, [*FULL], [], {"c": 1}),
    ("full", 2, [*FULL], [], {"c": 0}),
    ("more than full, after a limit was lowered", 1, [*FULL], [], {"c": 0}),
    ("several runs of one schedule", 3, [runs("a", None, None, None)], [], {"c": 0, "a": 0}),
    ("an admission on its way holds a place, not against its own retry", 1, [reserves("a")], [], {"c": 0, "a": 1}),
    ("refused, it is free again", 1, [reserves("a"), is_answered("a")], [], {"c": 1}),
    ("answered, its run holds the place", 1, [reserves("a"), runs("a", None), is_answered("a")], [], {"c": 0}),
    ("the end of a run wakes the oldest candidate", 2, [*FULL, waits("y", "10:01"), waits("x", "10:00"), runs("a")], ["x"], {}),
    ("of equals the one that has waited longest", 1, [runs("a", None), waits("y", "10:00"), waits("x", "10:00"), runs("a")],
     ["y"], {}),
    ("one whose candidate was replaced keeps its turn among equals", 1, [runs("a", None), waits("y", "10:00"),
     waits("x", "10:01"), waits("y", "10:01"), runs("a")], ["y"], {}),
    ("what is offered is free to nobody else", 1, [runs("a", None), waits("x", "10:00"), runs("a")], ["x"], {"c": 0, "x": 1}),
    ("not taken, it goes to the next", 1, [runs("a", None), waits("x", "10:00"), waits("y", "10:01"), runs("a"),
     gives_back("x")], ["x", "y"], {"c": 0}),
    ("taken, nobody else is woken", 1, [runs("a", None), waits("x", "10:00"), waits("y", "10:01"), runs("a"), reserves("x"),
     gives_back("x")], ["x"], {"c": 0}),
    ("two places wake two", 2, [*FULL, waits("x", "10:00"), waits("y", "10:01"), waits("z", "10:02"), runs("a"), runs("b")],
     ["x", "y"], {}),
    ("who left is not woken", 1, [runs("a", None), waits("x", "10:00"), waits("y", "10:01"), leaves("x"), runs("a")], ["y"], {}),
    ("a definition's limit is its own", 0, [limit("d", 1), runs("a", "d")], [], {"c": None, "d/b": 0}),
    ("the smaller room counts", 2, [limit("d", 2), runs("a", None), runs("b", "d")], [], {"d/c": 0, "e/c": 0}),
    ("runs of another definition do not count", 0, [limit("d", 1), runs("a", "e")], [], {"d/b": 1}),
    ("its end wakes those of it", 0, [limit("d", 1), limit("e", 1), runs("a", "d"), runs("b", "e"), waits("x", "10:00", "d"),
     waits("y", "09:00", "e"), runs("a")], ["x"], {}),
    ("one whose definition is full steps aside for a younger one", 1, [limit("d", 1), runs("a", "d"), runs("b", None),
     waits("x", "10:00", "d"), waits("y", "10:01"), runs("b"), runs("c", "d")], [], {}),
    ("and is called back when its definition has room", 2, [limit("d", 1), runs("a", "d"), runs("b", None),
     waits("x", "10:00", "d"), waits("y", "10:01"), runs("b"), reserves("y"), runs("a")], ["y", "x"], {}),
    ("one that steps aside and leaves lets the next of its definition come", 0, [limit("d", 1), runs("a", "d"),
     waits("x", "10:00", "d"), waits("y", "10:01", "d"), leaves("x"), runs("a")], ["y"], {}),
    ("a limit raised wakes as many", 0, [limit("d", 1), runs("a", "d"), waits("x", "10:00", "d"), waits("y", "10:01", "d"),
     waits("z", "10:02", "d"), limit("d", 3)], ["x", "y"], {}),
    ("a limit lowered ends nothing and lets nobody in", 0, [limit("d", 2), runs("a", "d"), runs("b", "d"),
     waits("x", "10:00", "d"), limit("d", 1), runs("a")], [], {"d/x": 0}),
    ("a limit removed wakes all", 0, [limit("d", 1), runs("a", "d"), waits("x", "10:00", "d"), waits("y", "10:01", "d"),
     limit("d", None)], ["x", "y"], {"d/z": None}),
    ("a new start forgets everybody", 1, [*FULL, waits("x", "10:00"), Places.clear, runs("a")], [], {"c": 1}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operator_limit", "moves", "woken", "free"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_places(operator_limit: int, moves: list[Move], woken: list[str], free: dict[str, int | None]) -> None:
    """R28."""
    heard: list[str] = []
    places = Places(operator_limit, wake=heard.append)
    for move in moves:
        move(places)
    assert heard == woken
    for who, count in free.items():
        definition, _, uid = who.rpartition("/")
        assert places.free(uid, definition or None) == count, who


class Model:
    """Many schedules of some definitions that want to run, decide when woken, and take a place where there is one."""

    def __init__(self, limit: int, limits: dict[str, int]) -> None:
        self.woken: list[str] = []
        self.places = Places(limit, wake=self.woken.append)
        self.limit = limit
        self.limits = limits
        for definition, each in limits.items():
            self.places.set_limit(definition, each)
        self.running: dict[str, str | None] = {}
        self.wanting: dict[str, tuple[str | None, int]] = {}
        self.decisions = 0

    def decide(self, uid: str) -> None:
        """What reconcile does, in short."""
        self.decisions += 1
        definition, since = self.wanting.get(uid, (None, -1))
        free = self.places.free(uid, definition)
        if since < 0 or uid in self.running:
            self.places.leave(uid)
        elif free == 0:
            self.places.wait(uid, definition, at("10:00") + timedelta(minutes=since))
        else:
            self.places.reserve(uid, definition)
            self.running[uid] = definition
            del self.wanting[uid]
            self.places.set_runs(uid, (definition,))
            self.places.unreserve(uid)
        self.places.give_back(uid)

    def settle(self) -> None:
        while self.woken:
            self.decide(self.woken.pop(0))

    def check(self) -> None:
        """Within every limit, and nobody waits who could run."""
        for definition in {None, *self.limits}:
            taken = sum(definition in {None, each} for each in self.running.values())
            limit = self.limit if definition is None else self.limits[definition]
            assert not limit or taken <= limit
        for uid, (definition, _) in self.wanting.items():
            assert uid in self.running or self.places.free(uid, definition) == 0, f"{uid} waits beside a free place"


EVENTS = st.lists(
    st.tuples(st.sampled_from(["due", "due", "end", "edit"]), st.integers(0, 15), st.integers(0, 30)), max_size=60
)


@given(
    limit=st.integers(0, 4),
    limits=st.fixed_dictionaries({"d": st.integers(1, 3), "e": st.integers(1, 3)}),
    events=EVENTS,
)
def test_no_limit_is_passed_and_nobody_waits_beside_a_free_place(
    limit: int, limits: dict[str, int], events: list[tuple[str, int, int]]
) -> None:
    """R28: a thousand orders of events; each wakes at most those that a place is free for."""
    model = Model(limit, limits)
    for event, number, since in events:
        uid, definition = str(number), (None, "d", "e")[number % 3]
        before = model.decisions
        match event:
            case "due":
                model.wanting.setdefault(uid, (definition, since))
                model.woken.append(uid)
            case "end":
                if uid in model.running:
                    del model.running[uid]
                    model.places.set_runs(uid, ())
                    model.woken.append(uid)
            case "edit":
                model.wanting.pop(uid, None)
                model.woken.append(uid)
        model.settle()
        model.check()
        assert model.decisions - before <= 3


def test_an_end_wakes_one_of_ten_thousand_and_the_line_does_not_grow() -> None:
    """R28: whose candidates are replaced again and again, as under Latest."""
    woken: list[str] = []
    places = Places(1, wake=woken.append)
    places.set_runs("a", (None,))
    for minute in range(5):
        for number in range(10_000):
            places.wait(f"w{number}", None, at("10:00") + timedelta(minutes=minute))
    assert len(places._line) <= 2 * 10_000 + 64
    places.set_runs("a", ())
    assert woken == ["w0"]
