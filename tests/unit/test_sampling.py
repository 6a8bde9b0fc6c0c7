"""The sample of the fault tests: the same for a seed, another one for another, and no draw is spent on a file without rows."""

from __future__ import annotations

from support.sampling import Offer, draw

OFFERS = {
    "always": Offer(rows=list(range(100, 150)), size=12),
    "slow rows only": Offer(rows=[], size=0),
    **{f"file {number}": Offer(rows=list(range(10 * number, 10 * number + 9)), size=2) for number in range(6)},
}
SEEDS = range(50)


def sample(seed: int) -> dict[str, list[int]]:
    return draw(OFFERS, always={"always"}, files=4, seed=seed)


def test_a_seed_says_what_is_played() -> None:
    assert sample(7) == sample(7)
    assert len({str(sample(seed)) for seed in SEEDS}) == len(SEEDS)


def test_every_draw_gives_rows_and_every_row_has_its_turn() -> None:
    for seed in SEEDS:
        assert [len(rows) for name, rows in sample(seed).items() if name != "always"] == [2, 2, 2, 2]
        assert len(set(sample(seed)["always"])) == 12
    played = {row for seed in SEEDS for rows in sample(seed).values() for row in rows}
    assert played == {row for offer in OFFERS.values() for row in offer.rows}
