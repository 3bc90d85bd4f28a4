"""Differences between two arms: intervals and p-values that hold at all looks, in every
family of strategies, and red if they do not. Fixed seeds; each test of coverage gives a
false alarm with a probability below 1e-6.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from scipy.stats import binom

from discreet import Strategy, adap_tt, adap_tt_star, bet_se, ctb_tt, dp_se, ttucb, ttucb_batched
from discreet.planning.forecast import Continuation
from discreet.strategies.betting import inference as pair_module
from discreet.strategies.betting.inference import PairBets
from discreet.strategies.run import ArmBatch, Margin, Pair, Radii, Randomisation, Run
from discreet.trials.randomisation import default_randomisation
from discreet.trials.record import new_live_run

MEANS = (0.35, 0.6)
GAP = MEANS[1] - MEANS[0]
RUNS = 40
ALPHA = 0.1


def alarm(found: int, of: int, rate: float) -> bool:
    return bool(binom.sf(found - 1, of, rate) < 1e-6)


class Watched(Continuation):
    """A run that is played, with looks."""

    def __init__(self, run: Run, rng: Generator, look: Callable[[Pair], None]) -> None:
        super().__init__(run, rng)
        self.look, self.margins, self.looks = look, list[Margin](), 0

    def _release_due(self, due: list[ArmBatch], laws: Any) -> None:
        run: Any = self.run
        before, centre = len(getattr(run, "margins", ())), run.centre
        near: float | None = None
        release = run.release

        def released(sums: list[float], close: list[float] | None = None) -> None:
            nonlocal near
            near = None if close is None else close[0]
            release(sums, close)

        run.release = released
        super()._release_due(due, laws)
        run.release = release
        if len(getattr(run, "margins", ())) > before and len(due) == 2:
            leader, (other,), _, margin = run.margins[-1]
            people = {place.arm: place.size for place in due}
            pair = people[leader], people[other]
            lead = margin + (pair[0] - pair[1]) // 2
            self.margins.append(Margin(leader, other, pair, lead, near, centre))
        self.seen()

    def _play_answers(self, laws: Any) -> None:
        run: Any = self.run
        answer = run.record_answer

        def answered(arm: int, value: float) -> None:
            answer(arm, value)
            self.seen()

        run.record_answer = answered
        super()._play_answers(laws)

    def seen(self) -> None:
        """Every look at first, then those whose number is a power of two."""
        self.looks += 1
        if self.looks > 8 and self.looks & (self.looks - 1):
            return
        between = [one if one.one == 1 else one.reverse() for one in self.margins]
        if found := self.run.compare(1, 0, between):
            self.look(found)


def played(strategy: Strategy, runs: int = RUNS, people: int = 4000) -> Iterator[list[Pair]]:
    """The pair at each look, of so many runs."""
    rng = np.random.default_rng(11)
    for _ in range(runs):
        run = new_live_run(strategy, 2, people, Randomisation(default_randomisation(strategy)))
        looks = list[Pair]()
        played = Watched(run, rng, looks.append)
        played.play(np.array(MEANS))
        played.looks = 0
        played.seen()
        yield looks


def misses(pair: Pair) -> bool:
    """Whether the interval at 1 - ALPHA leaves out the true difference."""
    if isinstance(pair, PairBets):
        return pair.test_difference(GAP * pair.setting.scale)[0] >= math.log(1 / ALPHA)
    low, high = pair.interval(ALPHA)
    return not low <= GAP <= high


def missed(strategy: Strategy, runs: int = RUNS, people: int = 4000) -> int:
    """In how many runs the interval misses at some look."""
    return sum(any(map(misses, looks)) for looks in played(strategy, runs, people))


STRATEGIES = {
    "sums": bet_se(0.01, epsilon=1.0),
    "margins": bet_se(0.01, epsilon=0.05),
    "local": bet_se(0.01, epsilon=1.0, trust="local"),
    "none": bet_se(0.01, trust="none"),
    "numbers": bet_se(0.01, epsilon=1.0, outcomes="numbers"),
    "fine margins": bet_se(0.01, epsilon=0.05, outcomes="numbers"),
    "levels": bet_se(0.01, epsilon=2.0, trust="local", outcomes="numbers"),
    "gaussian": bet_se(0.01, epsilon=1.0, gamma=1e-6),
    "adap-tt": adap_tt(delta=0.01, epsilon=1.0),
    "adap-tt, gaussian": adap_tt(delta=0.01, epsilon=1.0, gamma=1e-6),
    "adap-tt-star": adap_tt_star(delta=0.01, epsilon=1.0),
    "ttucb-batched": ttucb_batched(0.01),
    "dp-se": dp_se(delta=0.01, epsilon=1.0),
    "ttucb": ttucb(0.01),
    "ctb-tt": ctb_tt(delta=0.01, epsilon=1.0),
}
PEOPLE = {"local": 100, "none": 60, "levels": 100, "ttucb": 300, "ctb-tt": 300}
"""Where there are many releases."""
BETS = [name for name, strategy in STRATEGIES.items() if strategy.name == "bet-se"]


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_differences_cover_at_all_looks(name: str) -> None:
    runs = 15 if name in ("local", "none", "levels") else RUNS
    assert not alarm(missed(STRATEGIES[name], runs, PEOPLE.get(name, 4000)), runs, ALPHA)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sums", "margins", "numbers"])
def test_too_much_money_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = pair_module.make_pair_bets

    def richer(*about: Any) -> PairBets | None:
        found = real(*about)
        if found is not None:
            found.start[:] += math.log(40)
        return found

    monkeypatch.setattr("discreet.strategies.betting.run.make_pair_bets", richer)
    assert alarm(missed(STRATEGIES[name]), RUNS, ALPHA)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adap-tt", "dp-se", "ttucb"])
def test_radii_that_are_too_short_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Radii.interval

    def shorter(self: Radii, alpha: float) -> tuple[float, float]:
        low, high = real(self, alpha)
        return self.difference - (high - low) / 20, self.difference + (high - low) / 20

    monkeypatch.setattr(Radii, "interval", shorter)
    assert alarm(missed(STRATEGIES[name], people=PEOPLE.get(name, 4000)), RUNS, ALPHA)


def test_noise_of_a_margin_that_is_not_paid_for_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many small margins, all noise, of two arms that are alike."""
    run: Any = new_live_run(bet_se(0.01, epsilon=0.1), 2, 10_000, Randomisation("simple"))

    def found() -> int:
        rng, count, p = np.random.default_rng(3), 0, -math.expm1(-0.1)
        for _ in range(RUNS):
            margins = list[Margin]()
            for _ in range(60):
                lead = float(rng.geometric(p) - rng.geometric(p))
                margins.append(Margin(1, 0, (1, 1), lead))
            pair = run.compare(1, 0, margins)
            count += pair.p_value() <= ALPHA
        return count

    assert not alarm(found(), RUNS, ALPHA)
    monkeypatch.setattr(pair_module, "price_noise", lambda slope, epsilon, sigma: 0.0)
    assert alarm(found(), RUNS, ALPHA)


@pytest.mark.parametrize("name", ["margins", "local", "fine margins", "adap-tt", "ttucb-batched"])
def test_interval_and_p_value_say_the_same(name: str) -> None:
    """The interval of a level leaves out 0 just if the p-value is below; of bets its
    ends are what is doubted by 1/alpha.
    """
    (*_, pair), *_ = played(STRATEGIES[name], 1, 1500)
    p = pair.p_value()
    assert 1e-6 < p < 1
    assert pair.interval(p * 0.99)[0] <= 0 < pair.interval(p * 1.01)[0]
    low, high = pair.interval(0.05)
    assert -1 <= low <= pair.difference <= high <= 1
    if isinstance(pair, PairBets):
        for end in (low, high):
            doubt = pair.test_difference(end * pair.setting.scale)[0]
            assert abs(end) == 1 or doubt == pytest.approx(math.log(20), abs=1e-4)


def test_least_doubt_against_the_formula() -> None:
    """Bets of two arms by hand, the level on a grid; seen from the other arm the
    interval is turned.
    """
    (*_, pair), *_ = played(STRATEGIES["sums"], 1)
    assert isinstance(pair, PairBets)

    (one,), (other,) = pair.one, pair.other

    def money(x: float, y: float) -> float:
        each = [
            start
            - one.participants * math.log1p(x * up)
            - other.participants * math.log1p(y * down)
            for start, up, down in zip(pair.start, one.rise, other.rise, strict=True)
        ]
        return float(np.logaddexp.reduce(each))

    for difference in (-0.5, 0.0, 0.2):
        levels = np.linspace(max(0, -difference), min(1, 1 - difference), 2001)
        least = min(money(level + difference, level) for level in levels)
        found, slope = pair.test_difference(difference)
        assert found == pytest.approx(least, abs=1e-3)
        assert slope == pytest.approx(
            (pair.test_difference(difference + 1e-5)[0] - found) / 1e-5, rel=0.01
        )


def test_a_pair_seen_from_the_other_arm_is_turned() -> None:
    run: Any = new_live_run(STRATEGIES["margins"], 2, 4000, Randomisation("simple"))
    margins = [Margin(1, 0, (40, 50), 20.0), Margin(0, 1, (30, 30), 3.0)]
    there = run.compare(1, 0, [margins[0], margins[1].reverse()])
    back = run.compare(0, 1, [margins[0].reverse(), margins[1]])
    assert back.difference == pytest.approx(-there.difference)
    assert back.p_value() == pytest.approx(there.p_value())
    assert [-end for end in back.interval(0.1)[::-1]] == pytest.approx(there.interval(0.1))
    assert run.compare(0, 1) is None
