"""Leaps of a run that releases every sample are equal in law to taking the samples one
by one.

The law after a few samples is computed exactly, by going through all that can be
answered; leaps are drawn and held against it. Mistakes planted in what draws them are
found by the same test.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, ks_2samp

from discreet import Bernoulli, ctb_tt, ttucb
from discreet.simulation import laws, stream
from discreet.simulation.compile import compile_kernel
from discreet.simulation.engine import make_empty_trace
from discreet.strategies import stream_bounds
from discreet.strategies.sampling import find_ucb_leader, is_leader_due
from discreet.strategies.stream import (
    StreamRules,
    StreamState,
    decide,
    fill_bonus,
    find_stream_challenger,
    make_stream,
    make_stream_rules,
)

CHANCES = (0.55, 0.5, 0.45)
"""Of a 1, by arm, in the runs of a few samples."""
MORE = 16
"""Samples whose law is computed exactly."""

State = tuple[tuple[int, ...], ...]
"""Pulls, sums, rounds led and the leader's pulls in them, by arm."""


def made(state: State) -> StreamState:
    """A run with these counts."""
    empty = make_stream(len(state[0]))
    pulls, sums, led, led_pulls = (np.array(part) for part in state)
    return empty._replace(
        pulls=pulls,
        sums=sums.astype(float),
        mean=sums / pulls,
        inverse=1.0 / pulls,
        led=led,
        led_pulls=led_pulls,
    )


def told(run: StreamState) -> State:
    """The counts of a run."""
    parts = (run.pulls, run.sums, run.led, run.led_pulls)
    return tuple(tuple(int(value) for value in part) for part in parts)


def one_sample(state: State, rules: StreamRules) -> tuple[int, State] | None:
    """The arm that is sampled next, and who led noted; None if the run stops here."""
    run = made(state)
    if decide(run, rules, 0)[1] < 0:
        return None
    fill_bonus(run, rules, int(run.pulls.sum()))
    leader = arm = int(find_ucb_leader(run.mean, run.bonus))
    if not is_leader_due(run.led[leader], run.led_pulls[leader], rules.beta):
        arm = int(find_stream_challenger(leader, run.mean, run.inverse))
    run.led[leader] += 1
    run.led_pulls[leader] += arm == leader
    run.pulls[arm] += 1
    return arm, told(run)


def exact_law(state: State, rules: StreamRules, more: int) -> dict[State, float]:
    """The law of the counts after so many more samples, or where the run stops."""
    law, ended = {state: 1.0}, defaultdict[State, float](float)
    for _ in range(more):
        after = defaultdict[State, float](float)
        for now, chance in law.items():
            step = one_sample(now, rules)
            if step is None:
                ended[now] += chance
                continue
            arm, (pulls, sums, *rest) = step
            for one, share in ((1, CHANCES[arm]), (0, 1 - CHANCES[arm])):
                raised = tuple(total + one * (arm == at) for at, total in enumerate(sums))
                after[(pulls, raised, *rest)] += chance * share
        law = after
    return {**law, **ended}


BEGINNINGS: dict[str, tuple[float, State]] = {
    "two arms": (3.0, ((40, 40), (24, 21), (39, 39), (20, 20))),
    "the best leads": (3.0, ((60, 30, 30), (36, 15, 12), (60, 29, 28), (31, 15, 15))),
    "another leads": (3.0, ((90, 20, 30), (54, 14, 8), (80, 29, 28), (41, 15, 15))),
    "may stop": (-1.0, ((60, 40, 40), (42, 14, 12), (60, 39, 38), (31, 20, 20))),
}
"""A threshold and counts from which leaps are certain, and a change of roles or a stop
is not far.
"""


def rules_of(arms: int, stop: float) -> StreamRules:
    """CTB-TT with a threshold of this size."""
    return make_stream_rules(ctb_tt(1.0, 0.1), arms)._replace(constant=stop, bonus_scale=0.05)


def leap_from(state: State, rules: StreamRules, rng: Any, more: int) -> State:
    """The counts after so many more samples, by leaps."""
    run, arms = made(state), len(state[0])
    answers = laws.make_bernoulli_laws(np.array(CHANCES[:arms]))
    samples = int(run.pulls.sum())
    stream.step_and_leap(
        rng,
        answers,
        0.0,
        rules,
        samples,
        samples + more,
        run,
        stream_bounds.make_bounds(arms),
        make_empty_trace(arms),
    )
    return told(run)


def chi_square(found: Counter[State], law: dict[State, float]) -> float:
    """The p-value of what was found, 0 if it cannot be; cells of less than five
    expected are taken together.
    """
    if not set(found) <= set(law):
        return 0.0
    runs = found.total()
    large = [state for state, chance in law.items() if runs * chance >= 5]
    cells = [(found[state], runs * law[state]) for state in large]
    rest = (runs - sum(cell[0] for cell in cells), runs - sum(cell[1] for cell in cells))
    if rest[1] >= 5:
        cells.append(rest)
    distance = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    return float(chi2.sf(distance, len(cells) - 1))


@pytest.fixture
def short_leaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaps of four rounds and more, in bands that are left every other time."""
    monkeypatch.setattr(stream, "MIN_LEAP_ROUNDS", 4)
    monkeypatch.setattr(stream, "SAMPLES_BETWEEN_LEAPS", 8)
    monkeypatch.setattr(stream, "BAND_WIDTH_FACTOR", 0.0)


def p_value(name: str, runs: int = 2500) -> float:
    """Of the counts after `MORE` samples by leaps, against the exact law."""
    stop, state = BEGINNINGS[name]
    rules, rng = rules_of(len(state[0]), stop), np.random.default_rng(5)
    found = Counter(leap_from(state, rules, rng, MORE) for _ in range(runs))
    return chi_square(found, exact_law(state, rules, MORE))


@pytest.mark.parametrize("name", BEGINNINGS)
def test_leaps_have_the_exact_law(
    name: str, short_leaps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """False alarm 1e-4 each; and a good part of the samples is leapt."""
    leapt, leap = list[int](), stream.take_leap

    def counted(*arguments: Any) -> tuple[int, int]:
        taken, rounds = leap(*arguments)
        leapt.append(taken)
        return taken, rounds

    monkeypatch.setattr(stream, "take_leap", counted)
    assert p_value(name) > 1e-4
    assert sum(leapt) > 0.15 * 2500 * MORE


def mirrored_nowhere(_band: Any, ones: int, _up: bool, _down: bool) -> int:
    return ones


def any_level(walk_out: Callable[..., int]) -> Callable[..., int]:
    def taken(rng: Any, plan: Any, _side: int, *rest: Any) -> int:
        return walk_out(rng, plan, stream.ANY_SIDE, *rest)

    return taken


def half_as_often(reach: Callable[..., float]) -> Callable[..., float]:
    return lambda *walk: 0.5 * reach(*walk)


MISTAKES: dict[str, Callable[[], Any]] = {
    "mirror_end": lambda: mirrored_nowhere,
    "walk_to_edge": lambda: any_level(stream.walk_to_edge),
    "compute_reach_chance": lambda: half_as_often(stream.compute_reach_chance),
    "draw_side": lambda: lambda *_: stream.NO_SIDE,
}
PLAN = stream.Leap(12, 0, 1, stream.Band(6, 2, 3), stream.Band(6, 3, 2))
BEFORE: State = ((40, 40), (24, 21), (39, 39), (20, 20))


def landings() -> dict[State, float]:
    """Where a leap by `PLAN` lands, by all that its twelve people may answer: at the
    first level that a walk is at, or at the end.
    """
    law = defaultdict[State, float](float)
    for answers in itertools.product((1, 0), repeat=PLAN.rounds):
        run, at, chance = made(BEFORE), [0, 0], 1.0
        bands = (PLAN.leader_band, PLAN.rival_band)
        for one in answers:
            arm = int(not is_leader_due(run.led[0], run.led_pulls[0], 0.5))
            run.led[0] += 1
            run.led_pulls[0] += arm == 0
            run.pulls[arm] += 1
            run.sums[arm] += one
            at[arm] += 2 * one - 1
            chance *= CHANCES[arm] if one else 1 - CHANCES[arm]
            if at[arm] in (bands[arm].up, -bands[arm].down):
                break
        spent = int(run.pulls.sum() - sum(BEFORE[0]))
        law[told(run)] += chance * 0.5 ** (PLAN.rounds - spent)
    return law


def landed(monkeypatch: pytest.MonkeyPatch) -> float:
    """The p-value of where 4000 leaps by `PLAN` land."""
    monkeypatch.setattr(stream, "plan_leap", lambda *_: PLAN)
    answers, rules = laws.make_bernoulli_laws(np.array(CHANCES[:2])), rules_of(2, 3.0)
    rng, bounds, found = np.random.default_rng(3), stream_bounds.make_bounds(2), Counter[State]()
    for _ in range(4000):
        run = made(BEFORE)
        stream.take_leap(rng, answers, rules, PLAN.rounds, 80, run, bounds)
        found[told(run)] += 1
    return chi_square(found, landings())


def test_a_leap_lands_where_its_people_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """False alarm 1e-4."""
    assert landed(monkeypatch) > 1e-4


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_drawing_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, mistake, MISTAKES[mistake]())
    assert landed(monkeypatch) < 1e-6


def test_a_leap_that_is_not_certain_is_found(
    short_leaps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "is_unchanged", lambda *_: True)
    assert p_value("two arms") < 1e-6


def test_reach_is_exact() -> None:
    """Of all walks of up to nine steps; and the quick bound is one."""
    for steps in range(1, 10):
        walks = [np.cumsum(walk) for walk in itertools.product((-1, 1), repeat=steps)]
        for end in range(-steps, steps + 1, 2):
            highest = [int(max(0, walk.max())) for walk in walks if walk[-1] == end]
            for height in range(max(end, 0), steps + 2):
                share = np.mean([top >= height for top in highest])
                assert stream.compute_reach_chance(steps, end, height) == pytest.approx(
                    share, rel=1e-12
                )
                assert stream.bound_reach_chance(steps, end, height) >= share * (1 - 1e-12)


def test_a_certificate_holds_wherever_the_means_go() -> None:
    """At thousands of points within the bounds of leaps that are certain, and beside
    them some where something does change.
    """
    rng, certain, changed = np.random.default_rng(2), 0, 0
    while certain < 300:
        arms = int(rng.integers(2, 5))
        pulls = rng.integers(20, 2000, arms)
        sums = rng.binomial(pulls, rng.uniform(0.4, 0.6, arms))
        state = tuple(tuple(int(x) for x in part) for part in (pulls, sums, pulls, pulls // 2 + 1))
        run, rules = made(state), rules_of(arms, float(rng.uniform(-9, 5)))
        rules = rules._replace(bonus_scale=float(rng.choice([0.02, 0.3, 1.32])))
        samples, bounds = int(pulls.sum()), stream_bounds.make_bounds(arms)
        plan = stream.plan_leap(int(rng.integers(32, 300)), samples, run, rules, bounds)
        if plan.rounds == 0:
            continue
        certain += 1
        for wide in (False, False, False, True):
            changed += wide and changes_at(rng, run, rules, bounds, plan, 6.0)
            assert wide or not changes_at(rng, run, rules, bounds, plan, 1.0)
    assert changed > 30


def changes_at(
    rng: Any, run: StreamState, rules: StreamRules, bounds: Any, plan: Any, wide: float
) -> bool:
    """Whether anything changes at a point at random, mostly a corner, of bounds made so
    many times wider.
    """
    low = run.mean + wide * (bounds.low - run.mean)
    high = run.mean + wide * (bounds.high - run.mean)
    shares = rng.choice([0.0, 1.0, rng.random()], run.mean.size)
    grown = rng.choice([0.0, 1.0, rng.random()])
    pulls = run.pulls + np.floor(grown * (bounds.pulls - run.pulls)).astype(np.int64)
    there = run._replace(
        mean=low + shares * (high - low), pulls=pulls, inverse=1.0 / pulls, bonus=run.bonus.copy()
    )
    fill_bonus(there, rules, int(pulls.sum()))
    leader = find_ucb_leader(there.mean, there.bonus)
    return bool(
        leader != plan.leader
        or find_stream_challenger(leader, there.mean, there.inverse) != plan.rival
        or decide(there, rules, 0)[1] < 0
    )


@pytest.mark.parametrize(
    ("means", "strategy"),
    [
        ((0.7, 0.5), ctb_tt(0.5, 0.05)),
        ((0.8, 0.6, 0.6, 0.5), ctb_tt(0.4, 0.1, threshold="empirical")),
        ((0.6, 0.55, 0.45), ttucb(0.1, beta=0.3)),
    ],
    ids=["two arms", "tied arms", "a share of 0.3"],
)
def test_whole_runs_agree_in_law(means: tuple[float, ...], strategy: Any) -> None:
    """Samples, and the share of each arm in them, of 400 runs by leaps against 400
    without; false alarm 1e-3 a comparison.
    """
    arms, rules = len(means), make_stream_rules(strategy, len(means))
    answers = stream.make_collected_laws(strategy, laws.make_laws(Bernoulli(means)))
    run, cap = compile_kernel(stream.run_stream), 10**9
    found = []
    for alone in (50, cap):
        rows = []
        for seed in range(400):
            pulls, rng = np.zeros(arms, np.int64), np.random.default_rng([alone, seed])
            outcome = run(rng, answers, 0.0, rules, alone, cap, pulls, make_empty_trace(arms))
            assert outcome.stopped
            assert outcome.samples == pulls.sum() == outcome.rounds
            rows.append([outcome.samples, *(pulls / outcome.samples)])
        found.append(np.array(rows))
    for column in range(1 + arms):
        assert ks_2samp(found[0][:, column], found[1][:, column]).pvalue > 1e-3


def test_long_runs_leap() -> None:
    """A billion samples of a strategy that never stops, and exactly as many of each arm
    as its turns say; the numbers of a seed are those of stepping until `ALONE`.
    """
    rules = make_stream_rules(ctb_tt(0.1, 0.01), 2)._replace(constant=1e12)
    answers, run = (
        laws.make_bernoulli_laws(np.array([0.53, 0.5])),
        compile_kernel(stream.run_stream),
    )
    assert stream.count_single_steps(rules, answers, 0.0, 10**12) == stream.SAMPLES_BEFORE_LEAPS
    pulls = np.zeros(2, np.int64)
    found = run(
        np.random.default_rng(1), answers, 0.0, rules, 1000, 10**9, pulls, make_empty_trace(2)
    )
    assert (found.samples, found.recommendation, found.stopped) == (10**9, 0, False)
    assert math.isclose(pulls[0] / 10**9, 0.5, rel_tol=1e-4)


@pytest.mark.parametrize(
    ("rules", "answers", "noise"),
    [
        (make_stream_rules(ttucb(0.1, beta="ids"), 2), laws.make_bernoulli_laws(np.ones(2)), 0.0),
        (make_stream_rules(ttucb(0.1, cost="kl"), 2), laws.make_bernoulli_laws(np.ones(2)), 0.0),
        (
            make_stream_rules(ttucb(0.1, sampling="lucb"), 2),
            laws.make_bernoulli_laws(np.ones(2)),
            0.0,
        ),
        (make_stream_rules(ttucb(0.1), 2), laws.make_bernoulli_laws(np.ones(2)), 1.0),
        (make_stream_rules(ttucb(0.1), 2), laws.make_beta_laws(np.ones((2, 2))), 0.0),
    ],
    ids=["ids", "kl", "lucb", "noise", "beta"],
)
def test_what_never_leaps(rules: StreamRules, answers: laws.Laws, noise: float) -> None:
    assert stream.count_single_steps(rules, answers, noise, 10**9) == 10**9
