"""The price of a permuted block is what enumerating every order of its places gives,
and no null passes it.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from discreet.strategies.betting import blocks
from discreet.strategies.betting.bets import slopes
from discreet.strategies.betting.blocks import log_price, log_prices

Block = tuple[int, int, int, float, float]
"""People, places of the arm, places of its rival, centre, stake."""
Pairs = Sequence[tuple[float, float]]
"""What each person would say of the arm, and of its rival."""
SLACK = 1e-9


def stake(tilt: float, centre: float, ratio: float) -> float:
    """What a person of the arm stakes at this tilt, as bets do."""
    return slopes(-math.expm1(-tilt), math.expm1(tilt), centre, ratio).step


def some_blocks(seed: int, number: int, most: int) -> Iterator[Block]:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        people = int(rng.integers(2, most + 1))
        own = int(rng.integers(1, people))
        rival = int(rng.integers(1, people - own + 1))
        centre, tilt = float(rng.uniform(0.01, 0.99)), float(rng.uniform(0.01, 3.0))
        yield people, own, rival, centre, stake(tilt, centre, own / rival)


def log_mean(block: Block, pairs: Pairs) -> float:
    """log E W over every order of the places, for people with these outcomes."""
    people, own, rival, centre, d = block
    e, total, orders = d * own / rival, 0.0, 0
    everybody = range(people)
    for ours in itertools.combinations(everybody, own):
        others = [i for i in everybody if i not in ours]
        first = math.prod(1 - d * (pairs[i][0] - centre) for i in ours)
        for theirs in itertools.combinations(others, rival):
            total += first * math.prod(1 + e * (pairs[i][1] - centre) for i in theirs)
            orders += 1
    return math.log(total / orders)


def dearest(block: Block) -> float:
    """The largest log mean over people whom both arms would do the same."""
    people = block[0]
    return max(
        log_mean(block, [(1, 1)] * ones + [(0, 0)] * (people - ones)) for ones in range(people + 1)
    )


def gaps(price: Callable[..., float]) -> list[float]:
    """How much too high a price is."""
    return [price(*block) - dearest(block) for block in some_blocks(1, 60, 8)]


def test_the_price_is_the_dearest_tie() -> None:
    found = gaps(log_price)
    assert min(found) >= 0
    assert max(found) < SLACK


def without_price(*_: Any) -> float:
    return 0.0


def two_blocks_as_one(people: int, own: int, rival: int, centre: float, d: float) -> float:
    return log_price(2 * people, 2 * own, 2 * rival, centre, d)


def by_coins(people: int, own: int, rival: int, centre: float, d: float) -> float:
    """As if each place were drawn anew: the mean over ties is then at most 1."""
    e = d * own / rival
    share, other = own / people, rival / people
    worst = max(1 - share * d * (r - centre) + other * e * (r - centre) for r in (0, 1))
    return people * math.log(worst)


@pytest.mark.parametrize("price", [without_price, two_blocks_as_one, by_coins])
def test_planted_prices_are_too_low(price: Callable[..., float]) -> None:
    assert min(gaps(price)) < -0.01


def weak_bits(people: int, rng: np.random.Generator) -> Pairs:
    """Bits of the arm and of its rival, of which the rival's are no more in sum."""
    arm, rival = rng.integers(0, 2, (2, people))
    while rival.sum() > arm.sum():
        rival[rng.choice(np.flatnonzero(rival))] = 0
    return list(zip(arm.tolist(), rival.tolist(), strict=True))


def weak_values(people: int, rng: np.random.Generator) -> Pairs:
    """The same with two other values."""
    low, high = sorted(rng.random(2).tolist())
    value = (low, high)
    return [(value[int(a)], value[int(b)]) for a, b in weak_bits(people, rng)]


def sharp_values(people: int, rng: np.random.Generator) -> Pairs:
    """Values in [0, 1], of the rival no larger for anybody."""
    arm = rng.random(people)
    return list(zip(arm.tolist(), (arm * rng.random(people) ** 0.2).tolist(), strict=True))


def reversed_bits(people: int, rng: np.random.Generator) -> Pairs:
    """A mistake: the rival is better by one person."""
    pairs = weak_bits(people, rng)
    return [(r, 1.0) if i == 0 else (r, r) for i, (_, r) in enumerate(pairs)]


def excess(null: Callable[..., Pairs]) -> float:
    """How far people of a null get above the price, at most."""
    rng = np.random.default_rng(2)
    return max(
        log_mean(block, null(block[0], rng)) - log_price(*block) for block in some_blocks(3, 300, 7)
    )


@pytest.mark.parametrize("null", [weak_bits, weak_values, sharp_values])
def test_no_null_passes_the_price(null: Callable[..., Pairs]) -> None:
    assert excess(null) <= 0


def test_a_better_rival_passes_it() -> None:
    assert excess(reversed_bits) > 0.01


def test_values_rounded_at_random_pay_the_same() -> None:
    """The mean over all roundings is the mean of the values: the product is linear in
    each person's bit.
    """
    rng = np.random.default_rng(4)
    for block in some_blocks(5, 10, 4):
        pairs = sharp_values(block[0], rng)
        mean = 0.0
        for bits in itertools.product((0, 1), repeat=2 * block[0]):
            drawn = [(bits[2 * i], bits[2 * i + 1]) for i in range(block[0])]
            chance = math.prod(
                r if bit else 1 - r
                for pair, both in zip(pairs, drawn, strict=True)
                for r, bit in zip(pair, both, strict=True)
            )
            mean += chance * math.exp(log_mean(block, drawn))
        assert math.log(mean) == pytest.approx(log_mean(block, pairs), abs=1e-12)


def test_fewer_people_than_places_pay_no_more() -> None:
    """Nobody in a place is somebody at the centre on both arms."""
    rng = np.random.default_rng(6)
    for block in some_blocks(7, 100, 6):
        here = int(rng.integers(1, block[0] + 1))
        centre = block[3]
        pairs = [*weak_bits(here, rng)] + [(centre, centre)] * (block[0] - here)
        assert log_mean(block, pairs) <= log_price(*block)


def test_a_cut_that_looks_at_arms_is_not_paid_for() -> None:
    """Two people who fail on both arms: whoever stops after one of the arm gains more
    than the price.
    """
    d = 0.1
    block = (2, 1, 1, 0.5, d)
    stopped = ((1 + d / 2) + (1 - d / 2) * (1 + d / 2)) / 2
    assert math.log(stopped) > 5 * log_price(*block)


def exact(people: int, own: int, centre: float, d: float, ones: int) -> float:
    """log q(M)/b(M) of a block without others, from the hypergeometric law by logs."""
    rival = people - own
    e = d * own / rival
    hits = np.arange(max(0, ones - rival), min(own, ones) + 1)
    logs = [
        log_choose(own, int(i)) + log_choose(rival, ones - int(i)) - log_choose(people, ones)
        for i in hits
    ]
    weights = (
        hits * math.log1p(-d * (1 - centre))
        + (own - hits) * math.log1p(d * centre)
        + (ones - hits) * math.log1p(e * (1 - centre))
        + (rival - ones + hits) * math.log1p(-e * centre)
    )
    found = np.array(logs) + weights
    return float(found.max() + np.log(np.exp(found - found.max()).sum()))


def log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@pytest.mark.parametrize("people", [100, 2_000, 100_000])
@pytest.mark.parametrize("centre", [0.01, 0.3, 0.5])
@pytest.mark.parametrize("tilt", [1e-4, 0.03, 0.5, 2.5])
def test_long_blocks(people: int, centre: float, tilt: float) -> None:
    """`exact` itself is good to 1e-8 at a hundred thousand people."""
    own = people // 2
    d = stake(tilt, centre, 1.0)
    middle = round(people * centre)
    around = range(max(middle - 2, 0), middle + 3)
    highest = max(exact(people, own, centre, d, ones) for ones in around)
    assert log_price(people, own, people - own, centre, d) == pytest.approx(highest, abs=2e-8)


def test_a_long_block_pays_what_its_variance_says() -> None:
    for people, own, rival, centre in ((50_000, 10_000, 5_000, 0.4), (90_000, 30_000, 30_000, 0.2)):
        d = stake(0.5, centre, own / rival)
        e = d * own / rival
        rho = centre * (1 - centre) * (own * d * d + rival * e * e) / people
        found = log_price(people, own, rival, centre, d)
        assert found == pytest.approx(-math.log1p(-rho) / 2, rel=0.01)


def test_a_ladder_of_tilts_is_one_transform_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tilts = 3.0 * 0.5 ** (np.arange(90) / 2)
    steps = np.array([stake(float(tilt), 0.3, 2.0) for tilt in tilts])
    back, sizes = np.fft.irfft, list[int]()

    def noted(wave: Any, size: int) -> Any:
        sizes.append(len(wave))
        return back(wave, size)

    with monkeypatch.context() as patch:
        patch.setattr(np.fft, "irfft", noted)
        found = log_prices(100, 40, 20, 0.3, steps)
    assert sizes == [90]
    alone = [log_price(100, 40, 20, 0.3, float(d)) for d in steps]
    np.testing.assert_allclose(found, alone, rtol=0, atol=1e-13)
    assert (np.diff(found) <= 1e-12).all()


def test_what_lies_outside_of_the_search_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searched at the wrong place, the price is too high, never too low."""
    usual = blocks._near

    def far(people: int, centre: float) -> Any:
        ones, mass = usual(people, centre)
        return ones[:4], mass[:4]

    cases = list(some_blocks(8, 40, 60))
    right = [log_price(*block) for block in cases]
    monkeypatch.setattr(blocks, "_near", far)
    wrong = [log_price(*block) for block in cases]
    assert all(high >= low - 1e-12 for high, low in zip(wrong, right, strict=True))
    assert max(wrong) > max(right)
