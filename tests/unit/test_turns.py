"""Whose turn it is, told as rows of what happens: who begins, who steps aside, and for whom."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from workflow_schedules.scheduler.turns import (
    MOST,
    MOST_OF_ONE,
    PATIENCE_LIMIT_SECONDS,
    PATIENCE_SECONDS,
    SLOW_SECONDS,
    Turns,
)

WORKERS = 2


@dataclass(slots=True)
class Scene:
    """Turns of two workers, by a clock that is set by hand; who is named `a1` is of the namespace `a`."""

    seconds: float = 0.0
    turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self.turns = Turns(WORKERS, monotonic=lambda: self.seconds, namespace_of=lambda uid: uid[0])

    def knows(self, seconds: float) -> None:
        """Let a hundred answers take so long."""
        self.begins("known")
        for _ in range(100):
            self.seconds += seconds
            self.turns.go_on("known")
        self.turns.end("known")

    def begins(self, *due: str) -> list[str]:
        """Let these wait, and return who begins."""
        for uid in due:
            self.turns.line_up(uid)
        begun = []
        while (uid := self.turns.begin_next()) is not None:
            begun.append(uid)
        return begun

    def after(self, seconds: float, *due: str) -> list[str]:
        self.seconds += seconds + 1e-6
        return self.begins(*due)


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.knows(0.01)
    return scene


def test_so_many_begin_in_their_order_and_the_next_when_one_has_ended(scene: Scene) -> None:
    assert scene.begins("a1", "a2", "b1", "a1", "a3") == ["a1", "a2"]
    assert scene.turns.is_full
    assert scene.turns.has_line
    scene.turns.end("a2")
    assert "a2" not in scene.turns
    assert scene.begins() == ["b1"]
    assert scene.begins() == []


def test_who_waits_twice_has_one_turn(scene: Scene) -> None:
    assert scene.begins("a1", "a2", "a3", "a3") == ["a1", "a2"]
    for uid in ("a1", "a2"):
        scene.turns.end(uid)
    assert scene.begins() == ["a3"]


def test_who_waits_for_an_answer_steps_aside_for_others_and_only_for_them(scene: Scene) -> None:
    assert scene.begins("a1", "a2") == ["a1", "a2"]
    assert scene.turns.seconds_until_aside() is None
    assert scene.after(5 * PATIENCE_SECONDS) == []
    assert scene.turns.is_full, "nobody wants their turns"
    assert scene.begins("b1") == ["b1"]
    assert not scene.turns.is_full
    assert "a1" in scene.turns, "it goes on, and nobody else has its schedule"


def test_each_answer_is_a_new_beginning(scene: Scene) -> None:
    scene.begins("a1", "a2")
    scene.after(0.75 * PATIENCE_SECONDS)
    scene.turns.go_on("a1")
    assert scene.after(0.5 * PATIENCE_SECONDS, "b1", "b2", "b3", "b4") == ["b1", "b2"], (
        "a2 is aside, and makes room for two"
    )
    assert scene.turns.seconds_until_aside() == pytest.approx(0.5 * PATIENCE_SECONDS, abs=1e-3)
    assert scene.after(0.5 * PATIENCE_SECONDS) == ["b3", "b4"]


@pytest.mark.parametrize(
    ("usual", "patience"),
    [
        (0.01, PATIENCE_SECONDS),
        (0.5 * PATIENCE_SECONDS, 2 * PATIENCE_SECONDS),
        (0.99 * PATIENCE_LIMIT_SECONDS, PATIENCE_LIMIT_SECONDS),
    ],
)
def test_where_all_answers_take_long_it_takes_longer_until_somebody_steps_aside(usual: float, patience: float) -> None:
    scene = Scene()
    scene.knows(usual)
    scene.begins("a1", "a2")
    assert scene.after(0.9 * patience, "b1") == []
    assert scene.after(0.2 * patience) == ["b1"]


def test_as_long_as_nothing_is_known_the_patience_is_the_longest() -> None:
    scene = Scene()
    scene.begins("a1", "a2")
    assert scene.after(0.9 * PATIENCE_LIMIT_SECONDS, "b1") == []
    assert scene.after(0.2 * PATIENCE_LIMIT_SECONDS) == ["b1"]


def test_what_hangs_is_not_usual_however_often_it_is_seen(scene: Scene) -> None:
    scene.knows(2 * PATIENCE_LIMIT_SECONDS)
    scene.begins("a1", "a2")
    assert scene.after(1.1 * PATIENCE_SECONDS, "b1") == ["b1"]


def test_a_herd_that_hangs_is_passed_through_in_moments_that_double(scene: Scene) -> None:
    herd = [f"{chr(256 + number)}{number}" for number in range(100)]  # each of a namespace of its own
    begun = [len(scene.begins(*herd, "well"))] + [len(scene.after(PATIENCE_SECONDS)) for _ in range(5)]
    assert begun == [2, 4, 8, 16, 32, 4], "all that may be on their way"


def test_of_one_namespace_so_many_are_on_their_way_and_others_pass_by(scene: Scene) -> None:
    scene.begins(*(f"a{number}" for number in range(MOST_OF_ONE + 3)), "b1")
    begun = [uid for _ in range(10) for uid in scene.after(PATIENCE_SECONDS)]
    assert begun[-1] == "b1"
    assert len(begun) == MOST_OF_ONE - WORKERS + 1
    assert not scene.turns.has_line, "they wait for their own"
    scene.turns.end("a0")
    assert scene.begins() == [f"a{MOST_OF_ONE}"]


def test_altogether_so_many_are_on_their_way(scene: Scene) -> None:
    herd = [f"{chr(256 + number)}{number}" for number in range(2 * MOST)]
    begun = scene.begins(*herd) + [uid for _ in range(20) for uid in scene.after(PATIENCE_SECONDS)]
    assert len(begun) == MOST + WORKERS
    assert scene.turns.seconds_until_aside() is None
    scene.turns.end(begun[0])
    assert len(scene.begins()) == 1


def test_who_waits_for_their_own_begin_though_those_before_them_are_deleted_meanwhile() -> None:
    """Or they would wait for ever: no wake-up counts for who waits already."""
    known = set()
    scene = Scene()
    scene.turns = Turns(
        WORKERS, monotonic=lambda: scene.seconds, namespace_of=lambda uid: uid[0] if uid in known else ""
    )
    herd = [f"a{number}" for number in range(3 * MOST_OF_ONE)]
    known.update(herd)
    begun = scene.begins(*herd)
    while more := scene.after(PATIENCE_LIMIT_SECONDS):
        begun += more
    known.difference_update(herd[: 2 * MOST_OF_ONE])
    for uid in begun:  # grows
        scene.turns.end(uid)
        begun += scene.begins()
    assert sorted(begun) == sorted(herd)


def test_who_waits_for_seconds_each_time_is_among_the_quick(scene: Scene) -> None:
    """A webhook that thinks for a second is none that hangs: its schedules wait for nobody's time-out."""
    for uid in ("a1", "a2"):
        scene.begins(uid)
        scene.seconds += 0.9 * SLOW_SECONDS
        scene.turns.end(uid)
    assert scene.begins("b1", "a1", "a2") == ["b1", "a1"]


def test_who_was_slow_waits_for_its_like_until_it_is_quick_again(scene: Scene) -> None:
    slow = ["a1", "a2", "a3"]
    for uid in slow:
        scene.begins(uid)
        scene.seconds += 1.01 * SLOW_SECONDS
        scene.turns.end(uid)
    assert scene.begins(*slow, "b1", "b2") == ["b1", "b2", "a1", "a2"]
    assert scene.after(1.01 * SLOW_SECONDS, "b3", "b4") == ["b3", "b4"]
    assert scene.begins() == [], "a3 waits for a1 or a2"
    scene.turns.end("a1")
    assert scene.begins() == ["a3"]
    scene.turns.end("a3")
    assert scene.begins("a1", "a3") == ["a3", "a1"], "a1 was slow again; a3 was quick, and is among the first"
