"""The same outcomes and noise lead a live run and the simulator to the same
assignments, releases, stop and arm.

Live runs are played first, on random bits and noise; then the oracle of the simulator
(equal to the engine by test_exactness.py) plays again with those bits and that noise as
its draws.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet import Bernoulli, Strategy, bet_se
from discreet.strategies.betting.run import BettingRun
from discreet.strategies.run import Run, Totals, make_run
from discreet.strategies.stream import StreamRun
from discreet.strategies.units import choose_grid
from discreet.theory import thresholds as threshold
from discreet.trials import mechanisms
from tests.support.oracle import OPTIONS, make, oracle
from tests.support.tape import Tape

MEANS = [0.9, 0.4, 0.3, 0.2]
CAP = 4000
BETS = [
    bet_se(0.1, epsilon=1.0),
    bet_se(0.1, epsilon=1.0, indifference_zone=0.1),
    bet_se(0.1, epsilon=0.1),
    bet_se(0.1, epsilon=0.1, target_difference=0.5),
    bet_se(0.1, epsilon=1.0, trust="local"),
    bet_se(0.1, trust="none"),
]


def quick(name: str, options: dict[str, Any]) -> Strategy | None:
    """A strategy with so little privacy that it stops below the cap."""
    strategy = make(name, options)
    return (
        strategy.with_(epsilon=10.0)
        if strategy is not None and strategy.trust == "global"
        else strategy
    )


def played(
    strategy: Strategy, seed: int, noise: float | None = None
) -> tuple[Run, list[int], Tape]:
    """A live run on random bits, the arms in the order of assignment, and the tape of
    it.
    """
    rng, tape, grid = np.random.default_rng(seed), Tape(), choose_grid(strategy)
    live = make_run(strategy, len(MEANS), CAP, strategy.delta, noise)
    arms: list[int] = []
    bits: dict[tuple[int, int], list[int]] = {}
    while True:
        if live.needs_round:
            live.open_round()
        place = live.assign_next(
            lambda left: int(rng.choice(len(left), p=np.array(left) / sum(left)))
        )
        if place is not None:
            arms.append(place.arm)
            bit = int(rng.random() < MEANS[place.arm])
            bits.setdefault((place.arm, place.phase), []).append(bit)
            if isinstance(live, StreamRun):
                answer(live, place.arm, bit, noise, rng, tape)
        elif live.list_due():
            release(live, strategy, grid, bits, rng, tape)
        else:
            return live, arms, tape


def answer(live: StreamRun, arm: int, bit: int, noise: float | None, rng: Any, tape: Tape) -> None:
    tape.bits.append(bit)
    value = float(bit)
    if noise is not None:
        tape.noise.append(float(rng.standard_normal()))
        value += noise * tape.noise[-1]
    live.record_answer(arm, value)


def release(live: Run, strategy: Strategy, grid: int, bits: Any, rng: Any, tape: Tape) -> None:
    if isinstance(live, BettingRun):
        release_round(live, bits, rng, tape)
        return
    sums = []
    for arm, phase, size in live.list_due():
        drawn = bits.pop((arm, phase))
        assert len(drawn) == size
        units = 0
        if strategy.trust == "global":
            p = -math.expm1(-float(strategy.epsilon or 0) / grid)
            up, down = int(rng.geometric(p)), int(rng.geometric(p))
            units = up - down
            tape.jumps += [up, down]
        tape.sums.append((size, float(sum(drawn))))
        tape.noise.append(units / (grid * size))
        sums.append((sum(drawn) * grid + units) / grid)
    live.release(sums)


def release_round(live: BettingRun, bits: Any, rng: Any, tape: Tape) -> None:
    totals = [live.add_up(bits[arm, phase]) for arm, phase, _ in live.list_due()]
    sizes = [len(bits.pop((arm, phase))) for arm, phase, _ in live.list_due()]
    tape.dealt(sizes, [total.sum for total in totals])
    sums = []
    for total in live.combine(totals):
        if total is not None:
            noise = 0
            if live.strategy.trust == "global":
                p = -math.expm1(-float(live.strategy.epsilon or 0))
                up, down = int(rng.geometric(p)), int(rng.geometric(p))
                tape.jumps += [up, down]
                noise = up - down
            sums.append(float(total.sum + noise))
    live.release(sums)


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_same_decisions_as_the_simulator(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy = quick(name, options)
    if strategy is None:
        return
    noise, stops = None, False
    if strategy.gamma is not None:
        noise = mechanisms.find_noise_scale(float(strategy.epsilon or 0), strategy.gamma)
        monkeypatch.setattr(threshold, "gaussian_scale", lambda *_: noise)
    for seed in range(2):
        live, arms, tape = played(strategy, seed, noise)
        expected = oracle(strategy, Bernoulli(MEANS), tape, CAP)  # type: ignore[arg-type]
        assert live.samples == expected.samples == len(arms)
        assert live.stopped == expected.stopped
        stops = stops or live.stopped
        if live.recommendation is not None:
            assert live.recommendation == expected.recommendation
        assert [arms.count(arm) for arm in range(len(MEANS))] == list(expected.pulls)
        assert not tape.sums
        assert not tape.bits
    assert stops or options.get("sampling") == "lucb" or options.get("episodes") == "global"


def differs(strategy: Strategy, seed: int) -> bool:
    """Whether a live run and the simulator disagree: on the samples, or already on what
    is drawn when.
    """
    live, _, tape = played(strategy, seed)
    try:
        return live.samples != oracle(strategy, Bernoulli(MEANS), tape, CAP).samples  # type: ignore[arg-type]
    except (IndexError, AssertionError):
        return True


def test_a_planted_mistake_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = quick("adap-tt-star", {"threshold": "proved"})
    assert strategy is not None
    assert not any(differs(strategy, seed) for seed in range(2))
    made: Callable[..., Run] = make_run

    def wrong(strategy: Strategy, arms: int, cap: int, delta: float, noise: float | None) -> Run:
        return made(strategy, arms, cap, 1.3 * delta, noise)

    monkeypatch.setattr(f"{__name__}.make_run", wrong)
    assert any(differs(strategy, seed) for seed in range(8))


NAMES = ("ttucb", "ttucb-batched", "ctb-tt", "adap-tt-star", "dp-se")


@pytest.mark.parametrize(
    "strategy", [*(make(name, {"threshold": "proved"}) for name in NAMES), *BETS]
)
def test_a_run_goes_on_from_what_it_wrote(strategy: Strategy) -> None:
    one = make_run(strategy, 3, 500, strategy.delta)
    rng = np.random.default_rng(5)
    for _ in range(40):
        two = make_run(strategy, 3, 500, strategy.delta)
        two.load(one.dump())
        assert two.dump() == one.dump()
        if one.needs_round:
            assert one.open_round() == two.open_round()
        place = one.assign_next()
        assert two.assign_next() == place
        if place is None:
            due = one.list_due()
            assert due == two.list_due()
            if not due:
                break
            drawn = [Totals(int(rng.integers(0, batch.size + 1))) for batch in due]
            sums = [float(total.sum) for total in one.combine(drawn) if total is not None]
            one.release(sums)
            two.release(sums)
        elif isinstance(one, StreamRun) and isinstance(two, StreamRun):
            value = float(rng.random() < 0.5)
            one.record_answer(place.arm, value)
            two.record_answer(place.arm, value)
        assert two.dump() == one.dump()


@pytest.mark.slow
def test_smallest_delta_is_where_stopping_begins() -> None:
    for name in ("ttucb", "adap-tt", "adap-tt-star", "ttucb-batched"):
        strategy = make(name, {"threshold": "proved"})
        assert strategy is not None
        live, _, _ = played(strategy.with_(delta=1e-6), 3)
        smallest = live.find_smallest_delta()
        if smallest is not None:
            assert live.can_stop(smallest * 1.002)
            assert not live.can_stop(smallest * 0.998)
            assert live.stopped == (smallest <= 1e-6)
    assert make_run(BETS[0], 3, 100, 0.1).find_smallest_delta() is None


def test_the_gamblers_smallest_delta_is_where_stopping_begins() -> None:
    live, _, _ = played(bet_se(1e-60, epsilon=0.1), 1)
    smallest = live.find_smallest_delta()
    assert not live.stopped
    assert smallest is not None
    assert 1e-60 < smallest < 1
