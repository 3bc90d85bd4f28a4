"""Exactness of the engine core: compiled = uncompiled = naive, and leap = step."""

import functools
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
import pytest

from discreet._types import Floats, Ints
from discreet.jit import jit
from discreet.simulation import dp_se, phased, stream
from discreet.simulation import laws as laws_module
from discreet.simulation.compile import (
    Compiler,
    _compile_with_numba,
    compile_kernel,
    leave_uncompiled,
)
from discreet.simulation.engine import RunResult, make_run_results
from discreet.simulation.laws import Laws
from discreet.strategies import sampling as sampling_rules
from discreet.strategies.phased import leap
from discreet.strategies.phased import state as board_module
from discreet.strategies.phased.decide import WholeRules
from discreet.strategies.phased.state import Board, PhasedRules
from discreet.strategies.stream import StreamRules, make_count_table
from discreet.theory.divergences import GAUSSIAN, KL, is_gap_large
from tests.support import naive

F = TypeVar("F", bound=Callable[..., Any])
Rng = np.random.Generator
Way = Callable[[F], F]
Arguments = tuple[Laws, str, list[Any]]
Case = tuple[
    int,
    Arguments,
    float,
    PhasedRules,
    bool,
    Callable[[int, int], tuple[float, float]],
    Callable[[int], float],
    int,
    naive.Sampler,
]
StreamCase = tuple[
    int,
    Arguments,
    float,
    StreamRules,
    int,
    naive.Sampler,
    Callable[[int, int, int], float],
    Callable[[int, int], float],
    float,
]
PHASES = 60
SAMPLING = ("top two", "uniform", "lucb", "elimination")
STOPS = ("low", "split", "either")
COSTS = (naive.d_gauss, naive.d_private)


def njit(function: F) -> F:
    """Compiled like a kernel and kept beside the kernels, in a folder named after their
    sources.
    """
    return cast(F, _compile_with_numba(cast(FunctionType, function), True))


new_board = compile_kernel(board_module.make_board)
travel_compiled = compile_kernel(leap.travel)
tracked = compile_kernel(sampling_rules.count_tracked)


def k_of(count: float) -> float:
    """k(x) of the paper."""
    return math.log2(count) + 2.0


def daf_thresholds(
    count_a: int, count_b: int, arms: int, epsilon: float, delta: float, shrink: float
) -> tuple[float, float]:
    """A stand-in with the shapes of c^{G,eps} and SHARP, scaled so that small tests
    stop.
    """
    ka, kb = k_of(count_a), k_of(count_b)
    low = 2.0 * math.log(arms / delta * ka * ka * kb * kb) + 2.0 * math.log(4.0 + math.log(count_a))
    high = 2.0 * math.log(arms / delta)
    for count, k in ((count_a, ka), (count_b, kb)):
        if epsilon < math.inf:
            low += 4.0 / (epsilon * epsilon * count) * math.log(arms * k * k / delta) ** 2
            high += 0.3 * epsilon * math.sqrt(count * math.log(k / delta))
    return shrink * low, shrink * high


def phase_count(phase: int, forget: bool) -> int:
    """Samples behind an estimate at a phase, one episode per arm."""
    return 1 if phase == 1 else 1 << (phase - 2 if forget else phase - 1)


def doubling() -> Ints:
    """grid[k] = 2^(k-1)."""
    return np.array([0] + [2**power for power in range(PHASES)], np.int64)


def random_laws(rng: Rng, arms: int) -> Arguments:
    """(kernel laws, naive law, naive arms) with ties, zeros and ones."""
    kind = str(rng.choice(["bernoulli", "bernoulli", "discrete", "beta"]))
    if kind == "bernoulli":
        means = np.round(rng.random(arms), 1) if rng.random() < 0.5 else rng.random(arms)
        return laws_module.make_bernoulli_laws(means), kind, means.tolist()
    if kind == "beta":
        shapes = rng.choice([0.5, 1.0, 2.0, 5.0], (arms, 2))
        return laws_module.make_beta_laws(shapes), kind, shapes.tolist()
    values = np.sort(rng.random((arms, 4)), axis=1)
    chances = rng.random((arms, 4)) * (rng.random((arms, 4)) < 0.8)
    chances[:, 1] += 0.1
    chances /= chances.sum(axis=1, keepdims=True)
    laws = laws_module.make_discrete_laws(values, chances)
    return laws, kind, [(list(v), list(c)) for v, c in zip(values, chances, strict=True)]


def check(outcome: naive.Outcome, results: RunResult, pulls: Ints, trace: Floats) -> None:
    """Equality of everything."""
    expected = (outcome.samples, outcome.recommendation, outcome.stopped, outcome.rounds)
    assert tuple(results) == expected
    assert pulls.tolist() == list(outcome.pulls)
    rows = np.array(outcome.trace).reshape(-1, trace.shape[1])[: len(trace)]
    np.testing.assert_array_equal(trace[: len(rows)], rows)
    assert not trace[len(rows) :].any()


def phased_case(seed: int) -> Case:
    """A random setting of a phased strategy: everything needed to run it in three
    ways.
    """
    rng = np.random.default_rng(seed)
    arms = int(rng.integers(2, 7))
    forget = bool(rng.random() < 0.7)
    epsilon = float(rng.choice([0.2, 1.0, 2.0, 5.0])) if forget else math.inf
    sampling = int(rng.choice([0, 0, 0, 1, 2, 3]))
    whole = bool(rng.random() < 0.25) and sampling != sampling_rules.ELIMINATION
    cost, stop = int(rng.integers(2)), int(rng.integers(3))
    if not forget:
        cost, stop = 0, 0
    beta = float(rng.choice([0.5, 0.5, 0.3, 0.9, rng.uniform(0.05, 0.95)]))
    ids = bool(rng.random() < 0.2) and sampling == 0
    shrink, delta = float(rng.choice([0.05, 0.3])), 0.2
    cap = int(rng.choice([arms, arms + 3, 700, 5000]))

    def pair(a: int, b: int) -> tuple[float, float]:
        return daf_thresholds(a, b, arms, epsilon, delta, shrink)

    def bonus(count: int) -> float:
        return math.sqrt(k_of(count) / count) + k_of(count) / (epsilon * count)

    counts = [1] + [phase_count(phase, forget) for phase in range(1, PHASES + 1)]
    reached = sum(count <= cap for count in counts)
    tables = np.full(
        (PHASES + 1, PHASES + 1, 2), np.nan
    )  # a run does not get to the rest, and would differ if it did
    tables[:reached, :reached] = [[pair(a, b) for b in counts[:reached]] for a in counts[:reached]]
    rules = PhasedRules(
        sampling,
        cost,
        stop,
        epsilon / 2,
        0.5,
        beta,
        ids,
        np.array([bonus(count) for count in counts]),
        np.ascontiguousarray(tables[:, :, 0]),
        np.ascontiguousarray(tables[:, :, 1]),
        0.0 if forget else 0.5,
        forget,
        doubling(),
        0.0,
    )
    yields = whole and sampling == sampling_rules.TOP_TWO and seed % 2 == 0
    sampler = naive.Sampler(
        SAMPLING[sampling], COSTS[cost], epsilon / 2, beta, ids, arms, yields=yields
    )
    return arms, random_laws(rng, arms), epsilon, rules, whole, pair, bonus, cap, sampler


def run_engine(way: Any, case: Case, seed: int, leaping: bool) -> tuple[RunResult, Ints, Floats]:
    """The case compiled, or as plain Python."""
    arms, (laws, _, _), epsilon, rules, whole, pair, bonus, cap, sampler = case
    pulls, trace = np.zeros(arms, np.int64), np.zeros((200, 4 + arms))
    rng = np.random.default_rng(seed)
    if whole:
        at_ends = WholeRules(rules, pair, bonus, sampler.yields)
        result = phased.run_global_episode(
            rng, laws, epsilon, at_ends, leaping, cap, pulls, trace, way
        )
    else:
        result = way(phased.run_phased)(rng, laws, epsilon, rules, leaping, cap, pulls, trace)
    return result, pulls, trace


def run_naive(case: Case, seed: int) -> naive.Outcome:
    """The case on the oracle."""
    arms, (_, law, parameters), epsilon, rules, whole, pair, bonus, cap, sampler = case
    source = naive.Source(np.random.default_rng(seed), law, parameters)
    return naive.run_phased(
        source,
        arms,
        sampler,
        epsilon,
        rules.forget,
        whole,
        lambda i, j, a, b: pair(a, b),
        lambda phase, count, total: (
            bonus(count) if rules.forget else math.sqrt(rules.bonus_scale * math.log(total) / count)
        ),
        STOPS[rules.stop],
        rules.two_variance,
        cap,
    )


@pytest.mark.parametrize("block", range(10))
def test_phased_runs_equal_naive(block: int) -> None:
    for seed in range(100 * block, 100 * block + 60):
        case = phased_case(seed)
        outcome = run_naive(case, seed)
        for leaping in (False, True):
            check(outcome, *run_engine(compile_kernel, case, seed, leaping))
        if seed % 5 == 0:
            check(outcome, *run_engine(leave_uncompiled, case, seed, seed % 10 == 0))


def stream_case(seed: int) -> StreamCase:
    """A random setting of an unphased strategy."""
    rng = np.random.default_rng(seed)
    arms = int(rng.integers(2, 7))
    sampling = int(rng.choice([0, 0, 0, 1, 2, 3]))
    threshold, bonus_kind = int(rng.integers(3)), int(rng.integers(2))
    constant = float(rng.choice([0.0, 2.0]))
    noise = float(rng.choice([0.0, 0.0, 0.7]))
    beta = float(rng.choice([0.5, 0.5, 0.3, 0.9, rng.uniform(0.05, 0.95)]))
    ids = bool(rng.random() < 0.2) and sampling == 0
    table = make_count_table(lambda n: math.log(1.0 + math.log(n)))
    bonuses = make_count_table(lambda n: 1.0 / math.sqrt(n))
    scale, two_variance = 0.5 * 1.2 * 2.2, float(rng.choice([0.5, 2.0]))
    kl = noise == 0.0 and seed % 3 == 0
    threshold = 3 if seed % 6 == 0 else threshold
    rules = StreamRules(
        sampling,
        two_variance,
        beta,
        ids,
        bonus_kind,
        scale,
        bonuses,
        threshold,
        constant,
        table,
        KL if kl else GAUSSIAN,
    )

    def cell(n: int) -> int:
        while n >= 128:
            return 64 + cell(n // 2)
        return n

    def bar(a: int, b: int, n: int) -> float:
        if threshold == 0:
            return constant + 2.0 * math.log(4.0 + math.log(a)) + 2.0 * math.log(4.0 + math.log(b))
        if threshold == 1:
            return constant + math.log(1.0 + math.log(n))
        if threshold == 3:
            return constant + 0.5 * math.log(a) + 0.5 * math.log(b)
        return float(constant + table[cell(a)] + table[cell(b)])

    def bonus(a: int, n: int) -> float:
        return math.sqrt(scale * math.log(n) / a) if bonus_kind == 0 else float(bonuses[cell(a)])

    sampler = naive.Sampler(SAMPLING[sampling], naive.d_gauss, math.inf, beta, ids, arms, kl)
    cap = int(rng.choice([arms, 60, 1500]))
    return arms, random_laws(rng, arms), noise, rules, cap, sampler, bar, bonus, two_variance


@pytest.mark.parametrize("block", range(8))
def test_stream_runs_equal_naive(block: int) -> None:
    for seed in range(100 * block, 100 * block + 40):
        arms, (laws, law, parameters), noise, rules, cap, sampler, bar, bonus, variance = (
            stream_case(seed)
        )
        source = naive.Source(np.random.default_rng(seed), law, parameters)
        outcome = naive.run_stream(source, arms, sampler, noise, bar, bonus, variance, cap)
        for way in (compile_kernel, leave_uncompiled) if seed % 5 == 0 else (compile_kernel,):
            pulls, trace = np.zeros(arms, np.int64), np.zeros((2000, 4 + arms))
            rng = np.random.default_rng(seed)
            result = way(stream.run_stream)(rng, laws, noise, rules, cap, cap, pulls, trace)
            check(outcome, result, pulls, trace)


def test_dpse_runs_equal_naive() -> None:
    for seed in range(300):
        rng = np.random.default_rng(seed)
        arms = int(rng.integers(2, 8))
        laws, law, parameters = random_laws(rng, arms)
        if law == "beta":
            laws, law, parameters = (
                laws_module.make_bernoulli_laws(laws.mean),
                "bernoulli",
                laws.mean.tolist(),
            )
        epsilon, delta = float(rng.choice([0.05, 1.0, 10.0])), float(rng.choice([0.01, 0.2]))
        cap = int(rng.choice([arms, 1000, 10**5]))
        source = naive.Source(np.random.default_rng(seed), law, parameters)
        outcome = naive.run_dpse(source, arms, epsilon, delta, cap)
        for way in (compile_kernel, leave_uncompiled):
            pulls, trace = np.zeros(arms, np.int64), np.zeros((40, 4 + arms))
            result = way(dp_se.run_epochs)(
                np.random.default_rng(seed), laws, epsilon, delta, cap, pulls, trace
            )
            check(outcome, result, pulls, trace)


def test_a_dpse_block_is_its_runs_one_after_the_other() -> None:
    runs, arms = 20, 4
    laws = laws_module.make_bernoulli_laws(np.array([0.9, 0.5, 0.4, 0.85]))
    for way in (compile_kernel, leave_uncompiled):
        block = make_run_results(runs, arms)
        rng, same_rng = np.random.default_rng(3), np.random.default_rng(3)
        way(dp_se.run_epochs_block)(rng, laws, 1.0, 0.1, 60_000, block)
        for run in range(runs):
            row, trace = np.zeros(arms, np.int64), np.zeros((0, 4 + arms))
            result = compile_kernel(dp_se.run_epochs)(same_rng, laws, 1.0, 0.1, 60_000, row, trace)
            assert result == (
                block.samples[run],
                block.recommendation[run],
                block.stopped[run],
                block.rounds[run],
            )
            assert row.tolist() == block.pulls[run].tolist()


# --- leap = step ----------------------------------------------------------------------


@njit
def fill_random(rng: Rng, board: Board, reach: float) -> tuple[int, float, int, bool]:
    """A random advance: ties, zeros, starts far from equilibrium, any share; (leader,
    beta, limit, whole).
    """
    arms = board.pulls.size
    scale = 10.0 ** (4.0 * rng.random())
    tied, zeros = rng.random() < 0.3, rng.random() < 0.05
    far = rng.random() < 0.5
    for arm in range(arms):
        board.pulls[arm] = 1 + int(scale * (rng.random() if far else 1.0 + 0.1 * rng.random()))
        if far and rng.random() < 0.3:
            board.pulls[arm] = 1 + int(4 * rng.random())
        board.due[arm] = board.pulls[arm] + 1 + int(reach * rng.random())
        gap = (1 + int(3 * rng.random())) / 8 if tied else 0.01 + rng.random()
        board.tops[arm] = gap * gap
        if zeros and rng.random() < 0.3:
            board.tops[arm] = 0.0
        board.inverse[arm] = 1.0 / board.pulls[arm]
        board.members[arm] = rng.random() < 0.7
        board.led[arm] = 0
        board.led_pulls[arm] = 0
    leader = int(rng.random() * arms)
    board.tops[leader] = 0.0
    board.members[leader] = True
    beta = 0.5 if rng.random() < 0.4 else 0.02 + 0.96 * rng.random()
    led = int(2 * scale * rng.random() ** 2)
    board.led[leader] = led
    board.led_pulls[leader] = tracked(beta, led)
    limit = 1 + int(4 * reach * rng.random()) if rng.random() < 0.2 else 20 * int(reach)
    return leader, beta, limit, rng.random() < 0.25


@njit
def copy_board(board: Board, other: Board) -> None:
    """Make `other` equal to `board`, in a loop: slices take longer to compile."""
    for arm in range(board.pulls.size):
        other.pulls[arm] = board.pulls[arm]
        other.due[arm] = board.due[arm]
        other.led[arm] = board.led[arm]
        other.led_pulls[arm] = board.led_pulls[arm]
        other.inverse[arm] = board.inverse[arm]
        other.tops[arm] = board.tops[arm]
        other.members[arm] = board.members[arm]


@njit
def same(board: Board, other: Board) -> bool:
    """Equal public counts."""
    for arm in range(board.pulls.size):
        if (
            board.pulls[arm] != other.pulls[arm]
            or board.led[arm] != other.led[arm]
            or board.led_pulls[arm] != other.led_pulls[arm]
        ):
            return False
    return True


NO, YES = np.array([False]), np.array([True])
"""Numba would compile `travel` once more for each literal."""


@njit
def compare(rng: Rng, arms: int, cases: int, reach: float, level: bool) -> tuple[int, int]:
    """Mismatches between leaping and stepping over random advances, and samples
    passed.
    """
    board, other = new_board(arms), new_board(arms)
    wrong, total = 0, 0
    for _ in range(cases):
        leader, beta, limit, whole = fill_random(rng, board, reach)
        copy_board(board, other)
        who = -1 if level else leader
        ended, done = travel_compiled(board, who, beta, NO[0], NO[0], limit, whole)
        leapt, moved = travel_compiled(other, who, beta, NO[0], YES[0], limit, whole)
        total += done
        if ended != leapt or done != moved or not same(board, other):
            wrong += 1
    return wrong, total


@pytest.mark.slow
@pytest.mark.parametrize("arms", [2, 3, 4, 5, 8, 20])
def test_leap_equals_step_on_random_advances(arms: int) -> None:
    rng = np.random.default_rng(arms)
    for reach, cases in ((300.0, 12_000), (3000.0, 10_000), (30_000.0, 300)):
        wrong, _ = compare(rng, arms, cases if arms < 20 else cases // 8, reach, False)
        assert wrong == 0
    wrong, _ = compare(rng, arms, 3000, 500.0, True)
    assert wrong == 0


ask_challenger = compile_kernel(sampling_rules.find_challenger)
tracks_leader = compile_kernel(sampling_rules.is_leader_due)


@njit
def step_plainly(
    board: Board, leader: int, beta: float, steps: int, whole: bool
) -> tuple[int, int]:
    """Top Two, asking for the challenger before each of its pulls."""
    for done in range(steps):
        arm = leader
        if tracks_leader(board.led[leader], board.led_pulls[leader], beta):
            board.led_pulls[leader] += 1
        else:
            arm = ask_challenger(leader, board.inverse, board.tops)
        board.led[leader] += 1
        board.pulls[arm] += 1
        board.inverse[arm] = 1.0 / board.pulls[arm]
        if board.pulls[arm] == board.due[arm] and (not whole or (board.pulls >= board.due).all()):
            return arm, done + 1
    return -1, steps


@njit
def compare_steps(rng: Rng, arms: int, cases: int, reach: float) -> int:
    """Random advances on which stepping differs from plain stepping."""
    board, other = new_board(arms), new_board(arms)
    wrong = 0
    for _ in range(cases):
        leader, beta, limit, whole = fill_random(rng, board, reach)
        copy_board(board, other)
        found = travel_compiled(board, leader, beta, NO[0], NO[0], limit, whole)
        if found != step_plainly(other, leader, beta, limit, whole) or not same(board, other):
            wrong += 1
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("arms", [2, 3, 5, 8, 20])
def test_stepping_asks_for_challengers_often_enough(arms: int) -> None:
    rng = np.random.default_rng(arms)
    assert compare_steps(rng, arms, 10_000, 300.0) == 0
    assert compare_steps(rng, arms, 300, 10_000.0) == 0


def too_steady() -> Any:
    """A challenger that stays a little longer than it may."""
    honest = variant()[1]["find_steady_challenger"]

    def planted(leader: int, board: Board) -> tuple[int, float]:
        chosen, bound = honest(leader, board)
        return chosen, 0.99 * bound

    return planted


@pytest.mark.slow
def test_a_challenger_that_stays_too_long_is_caught() -> None:
    travel, _ = variant(find_steady_challenger=too_steady())
    assert mismatch(travel, 200, 2000.0)


def variant(**replaced: Any) -> tuple[Callable[..., tuple[int, int]], dict[str, Any]]:
    """The leaps as plain Python with some of their parts replaced."""
    space: dict[str, Any] = {
        **vars(sampling_rules),
        **vars(board_module),
        **vars(leap),
    }
    for name, part in list(space.items()):
        if isinstance(part, FunctionType):
            space[name] = FunctionType(part.__code__, space, name, part.__defaults__)
    assert set(replaced) <= set(space)
    space.update(replaced)
    return space["travel"], space


def mismatch(
    travel: Callable[..., tuple[int, int]], cases: int, reach: float = 400.0, seed: int = 5
) -> bool:
    """Whether this variant's leaps differ from compiled stepping on one of so many
    random advances.
    """
    rng = np.random.default_rng(seed)
    for case in range(cases):
        arms = 3 + case % 4
        board, other = board_module.make_board(arms), board_module.make_board(arms)
        leader, beta, limit, whole = fill_random(rng, board, reach)
        copy_board(board, other)
        expected = travel_compiled(board, leader, beta, False, False, limit, whole)
        found = travel(other, leader, beta, False, True, limit, whole)
        if tuple(expected) != tuple(found) or not same(board, other):
            return True
    return False


@pytest.mark.slow
def test_leaps_are_exact_where_almost_everything_leaps() -> None:
    travel, _ = variant(MIN_LEAP_SAMPLES=6)
    assert not mismatch(travel, 4000, 400.0)
    assert not mismatch(travel, 2000, 2000.0)


def off_by_one() -> Any:
    """D <= r instead of D < r."""
    space = variant()[1]
    honest = space["bound_misplaced"]
    space["bound_misplaced"] = lambda *arguments: honest(*arguments) - 1.0
    return space["find_uncovered"]


def last_window_only() -> Any:
    """Only the segment next to the end is looked at."""
    space = variant()[1]
    honest = space["find_uncovered"]

    def planted(board: Board, leader: int, beta: float, begin: int, end: int) -> int:
        near = Board(*board)
        start = max(begin, end - 16)
        base = board.pulls[leader]
        board.pulls[leader] += sampling_rules.count_tracked(
            beta, start
        ) - sampling_rules.count_tracked(beta, begin)
        gap = honest(near, leader, beta, start, end)
        board.pulls[leader] = base
        return int(gap)

    return planted


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted",
    [lambda: lambda *_: 0, off_by_one, last_window_only],
    ids=["accept all", "off by one", "last window"],
)
def test_planted_mistakes_in_the_certificate_are_caught(planted: Callable[[], Any]) -> None:
    travel, _ = variant(MIN_LEAP_SAMPLES=6, find_uncovered=planted())
    assert mismatch(travel, 3000, 2000.0)


@pytest.mark.slow
def test_a_line_that_covers_everything_is_caught() -> None:
    travel, _ = variant(MIN_LEAP_SAMPLES=6, is_covered_by_line=lambda *_: True)
    assert mismatch(travel, 1500, 2000.0)


@functools.cache
def tables_for(arms: int, epsilon: float) -> Floats:
    """Thresholds over phases."""
    counts = [1] + [phase_count(phase, True) for phase in range(1, PHASES + 1)]
    return np.array(
        [[daf_thresholds(a, b, arms, epsilon, 0.01, 1.0) for b in counts] for a in counts]
    )


def whole_run(
    seed: int, leaping: bool, arms: int, gap: float, epsilon: float, cap: int, rows: int = 0
) -> tuple[RunResult, Ints, Floats]:
    """One AdaP-TT-like run."""
    counts = [1] + [phase_count(phase, True) for phase in range(1, PHASES + 1)]
    tables = tables_for(arms, epsilon)
    bonus = np.array([math.sqrt(k_of(n) / n) + k_of(n) / (epsilon * n) for n in counts])
    low, high = np.ascontiguousarray(tables[:, :, 0]), np.ascontiguousarray(tables[:, :, 1])
    rules = PhasedRules(
        0,
        seed % 2,
        2 * (seed % 2),
        epsilon / 2,
        0.5,
        0.5,
        False,
        bonus,
        low,
        high,
        0.0,
        True,
        doubling(),
        0.0,
    )
    laws = laws_module.make_bernoulli_laws(0.6 - gap * np.arange(arms, dtype=np.float64))
    pulls, trace = np.zeros(arms, np.int64), np.zeros((rows, 4 + arms))
    result = compile_kernel(phased.run_phased)(
        np.random.default_rng(seed), laws, epsilon, rules, leaping, cap, pulls, trace
    )
    return result, pulls, trace


def assert_same_run(seed: int, arms: int, gap: float, epsilon: float, cap: int) -> int:
    """Leaping = stepping, with the state at every release."""
    left = whole_run(seed, False, arms, gap, epsilon, cap, 600)
    right = whole_run(seed, True, arms, gap, epsilon, cap, 600)
    assert left[0] == right[0]
    np.testing.assert_array_equal(left[1], right[1])
    np.testing.assert_array_equal(left[2], right[2])
    return left[0][0]


@pytest.mark.parametrize("arms", [2, 3, 5, 10])
def test_thousands_of_whole_runs(arms: int) -> None:
    for seed in range(600):
        assert_same_run(seed, arms, 0.5 / arms, float([0.3, 1.0, 3.0][seed % 3]), 150_000)


def test_runs_of_1e8_samples() -> None:
    total = max(assert_same_run(seed, 4, 0.0005, 0.01, 10**8) for seed in range(3))
    assert total > 5 * 10**7


def test_counts_stay_exact_up_to_the_cap() -> None:
    for seed in range(20):
        result, pulls, _ = whole_run(seed, True, 5, 1e-6, 1e-3, 10**12)
        assert result[0] == pulls.sum()
        assert result[0] <= 10**12


def test_gap_of_half_epsilon_counts_as_large() -> None:
    for high, low, half in (
        (0.75, 0.7, 0.05),
        (0.95, 0.9, 0.05),
        (0.9, 0.8, 0.1),
        (0.3, 0.2, 0.1),
        (1.0, 0.9, 0.1),
    ):
        assert is_gap_large(high, low, half)
        assert not is_gap_large(high, low, half * (1 + 1e-12))


# --- compiling ------------------------------------------------------------------------


@jit
def all_to_the_leader(beta: float, rounds: int) -> int:
    """Planted in the place of `count_tracked`."""
    return rounds


def test_leaves_are_found_by_identity() -> None:
    """What stands in the place of a leaf is called by the leaves that call it, and by
    nobody else.
    """
    planted = Compiler({sampling_rules.count_tracked: all_to_the_leader})
    assert planted.compile(leap.find_leader_round)(0.5, 10) == 10
    assert compile_kernel(leap.find_leader_round)(0.5, 10) == leap.find_leader_round(0.5, 10) == 18
