"""A phased strategy as tables and codes over the phases of its grid: where words become
numbers.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from discreet._types import Flags, Floats, Ints
from discreet.errors import InvalidInputError
from discreet.jit import jit
from discreet.strategies import units
from discreet.strategies.estimators import CustomBonus, CustomGrid, CustomThreshold, check_table
from discreet.strategies.sampling import (
    CHALLENGER_FILTER,
    SAMPLING_CODES,
    UNITS_PER_SAMPLE,
    compute_ids_share,
    compute_improved_cost,
    compute_priority,
    find_challenger,
    find_least_pulled,
    find_most_owed,
    is_leader_due,
    owe,
)
from discreet.strategies.strategy import Strategy
from discreet.theory import thresholds
from discreet.theory.divergences import (
    GAUSSIAN,
    PRIVATE,
    compute_numerator,
    compute_transport_cost,
    is_gap_large,
)


class Board(NamedTuple):
    """Public counts of a run, one entry per arm, and room to compute in."""

    pulls: Ints
    due: Ints
    """Pulls at which the arm's phase is complete."""
    led: Ints
    led_pulls: Ints
    share: Floats
    """Sum of beta_n over the rounds the arm led (IDS)."""
    inverse: Floats
    """1 / pulls."""
    tops: Floats
    """Numerators of the costs against the present leader."""
    members: Flags
    """Arms that uniform, LUCB and elimination keep level."""
    guess: Ints
    inverse_guess: Floats
    inverse_tops: Floats
    rest: Floats
    """[3, arm]: q_b of the certificate at the two ends of a segment, and where the leap
    begins.
    """
    owed: Ints
    """Samples that Track-and-Stop owes each arm, in `tracking.UNITS`."""
    weights: Floats
    """The allocation that Track-and-Stop tracks until the next release."""


@jit(allocates=True)
def make_board(arms: int) -> Board:
    """Return a board with every arm pulled once."""
    return Board(
        np.ones(arms, np.int64),
        np.ones(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.ones(arms),
        np.zeros(arms),
        np.ones(arms, np.bool_),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.zeros(arms),
        np.zeros((3, arms)),
        np.full(arms, UNITS_PER_SAMPLE, np.int64),
        np.zeros(arms),
    )


@jit
def count_waiting_arms(board: Board) -> int:
    """Count the arms short of their due count."""
    pulls, due = board.pulls, board.due
    waiting = 0
    for arm in range(pulls.size):
        if pulls[arm] < due[arm]:
            waiting += 1
    return waiting


@jit
def find_steady_challenger(leader: int, board: Board) -> tuple[int, float]:
    """Return the challenger, and a bound: while 1/N of it plus 1/N of the leader
    exceeds that, it stays the challenger.

    Until a release every priority only falls, and those of the others are at most the
    second largest now. `CHALLENGER_FILTER` covers what the product with an inverse and the bound
    round; where it cannot tell, arms are compared as there.
    """
    inverse, tops, inverse_tops = board.inverse, board.tops, board.inverse_tops
    inverse_leader = inverse[leader]
    chosen, first, second, skip = -1, -1.0, -1.0, -1.0
    for arm in range(tops.size):
        if (inverse[arm] + inverse_leader) * inverse_tops[arm] < skip or arm == leader:
            continue
        if tops[arm] <= 0.0:
            return arm, -1.0
        value = compute_priority(inverse[arm], inverse_leader, tops[arm])
        if value > first:
            chosen, first, second = arm, value, first
        elif value > second:
            second = value
        skip = second * CHALLENGER_FILTER
    return chosen, second * tops[chosen] / CHALLENGER_FILTER


@jit
def step_fixed(board: Board, leader: int, beta: float, steps: int, whole: bool) -> tuple[int, int]:
    """Sample by Top Two with a fixed share for at most `steps` samples. Return the arm
    whose pull ended the phase or -1, and the samples.

    The path of every sample: what changes is kept in local variables, and a challenger
    is asked for again only when another one may have come up (`find_steady_challenger`).
    """
    pulls, due, inverse = board.pulls, board.due, board.inverse
    for arm in range(pulls.size):
        board.inverse_tops[arm] = 1.0 / board.tops[arm] if board.tops[arm] > 0.0 else np.inf
    led, led_pulls = board.led[leader], board.led_pulls[leader]
    waiting = count_waiting_arms(board) if whole else 1
    rival, bound, ended, done = leader, np.inf, -1, 0
    count = own = pulls[leader]
    inverse_rival = inverse_own = inverse[leader]
    due_rival = due_own = due[leader]
    while done < steps and ended < 0:
        if is_leader_due(led, led_pulls, beta):
            led_pulls += 1
            own += 1
            inverse_own = 1.0 / own
            if own == due_own:
                waiting -= 1
                ended = leader if waiting == 0 else -1
        else:
            if not inverse_rival + inverse_own > bound:
                pulls[rival], inverse[rival] = count, inverse_rival
                inverse[leader] = inverse_own
                rival, bound = find_steady_challenger(leader, board)
                count, due_rival = pulls[rival], due[rival]
            count += 1
            inverse_rival = 1.0 / count
            if count == due_rival:
                waiting -= 1
                ended = rival if waiting == 0 else -1
        led += 1
        done += 1
    pulls[rival], inverse[rival] = count, inverse_rival
    pulls[leader], inverse[leader] = own, inverse_own
    board.led[leader], board.led_pulls[leader] = led, led_pulls
    return ended, done


@jit
def step_ids(board: Board, leader: int, steps: int, whole: bool) -> tuple[int, int]:
    """Sample by Top Two with IDS: the tracked share is the sum of beta_n = N_C / (N_C +
    N_B) over the rounds of this leader.
    """
    pulls, due, inverse = board.pulls, board.due, board.inverse
    waiting = count_waiting_arms(board) if whole else 1
    ended, done = -1, 0
    while done < steps and ended < 0:
        arm = find_challenger(leader, inverse, board.tops)
        board.share[leader] += compute_ids_share(pulls[arm], pulls[leader])
        if board.led_pulls[leader] <= board.share[leader]:
            arm = leader
            board.led_pulls[leader] += 1
        board.led[leader] += 1
        done += 1
        pulls[arm] += 1
        inverse[arm] = 1.0 / pulls[arm]
        if pulls[arm] == due[arm]:
            waiting -= 1
            if waiting == 0:
                ended = arm
    return ended, done


@jit
def step_improved(
    board: Board,
    leader: int,
    beta: float,
    ids: bool,
    two_variance: float,
    steps: int,
    whole: bool,
) -> tuple[int, int]:
    """Sample by Top Two with the TCI challenger, with a fixed share or IDS."""
    pulls, inverse = board.pulls, board.inverse
    waiting = count_waiting_arms(board) if whole else 1
    ended, done = -1, 0
    while done < steps and ended < 0:
        arm = leader
        if ids or not is_leader_due(board.led[leader], board.led_pulls[leader], beta):
            arm = find_improved_challenger(leader, board, two_variance)
        if ids:
            board.share[leader] += compute_ids_share(pulls[arm], pulls[leader])
            if board.led_pulls[leader] <= board.share[leader]:
                arm = leader
        board.led[leader] += 1
        if arm == leader:
            board.led_pulls[leader] += 1
        done += 1
        pulls[arm] += 1
        inverse[arm] = 1.0 / pulls[arm]
        if pulls[arm] == board.due[arm]:
            waiting -= 1
            if waiting == 0:
                ended = arm
    return ended, done


@jit
def find_improved_challenger(leader: int, board: Board, two_variance: float) -> int:
    """Return the TCI challenger: smallest W + log N, ties to the lowest index."""
    inverse = board.inverse
    chosen, least = -1, 0.0
    for arm in range(inverse.size):
        if arm != leader:
            value = compute_improved_cost(
                board.tops[arm], inverse[leader], inverse[arm], two_variance, board.pulls[arm]
            )
            if chosen < 0 or value < least:
                chosen, least = arm, value
    return chosen


@jit
def step_owed(board: Board, best: int, samples: int, steps: int, whole: bool) -> tuple[int, int]:
    """Sample by Track-and-Stop: the allocation stands still until the next release, the
    least share of every arm falls with time.
    """
    pulls, due = board.pulls, board.due
    waiting = count_waiting_arms(board) if whole else 1
    ended, done = -1, 0
    while done < steps and ended < 0:
        owe(best, board.weights, samples + done, board.owed)
        arm = find_most_owed(board.owed, pulls)
        done += 1
        pulls[arm] += 1
        if pulls[arm] == due[arm]:
            waiting -= 1
            if waiting == 0:
                ended = arm
    return ended, done


@jit
def step_level(board: Board, steps: int, whole: bool) -> tuple[int, int]:
    """Pull the least pulled member each time: uniform, elimination and LUCB between two
    releases.
    """
    pulls, due, members = board.pulls, board.due, board.members
    waiting = count_waiting_arms(board) if whole else 1
    ended, done = -1, 0
    while done < steps and ended < 0:
        arm = find_least_pulled(members, pulls)
        done += 1
        pulls[arm] += 1
        if pulls[arm] == due[arm]:
            waiting -= 1
            if waiting == 0:
                ended = arm
    return ended, done


LOW, SPLIT, EITHER = 0, 1, 2
"""Codes of the stopping rules, see `decide.is_beaten`."""
COSTS = {"gaussian": GAUSSIAN, "private": PRIVATE}
MAX_CUSTOM_PHASES = 1024
"""Phases of a grid of your own: its tables hold as many rows."""
DOUBLING_PHASES = 62
"""Doubling reaches 2^61 pulls, far beyond any cap."""


class PhasedRules(NamedTuple):
    """The rules between releases of a phased estimator. Phases count from 1; row and
    column 0 are unused.
    """

    sampling: int
    """A code of `top_two`: every rule but TS_TC."""
    cost: int
    """GAUSSIAN or PRIVATE: the transportation cost of the challenger."""
    stop: int
    """LOW, SPLIT or EITHER."""
    half_epsilon: float
    """epsilon / 2 of W^{G,eps}; infinity without privacy."""
    two_variance: float
    """2 sigma^2 in the costs of the stopping rule."""
    beta: float
    """Share of the leader, in (0, 1). Unused under IDS."""
    ids: bool
    """Information-directed selection instead of a fixed share."""
    bonus: Floats
    """bonus[phase]."""
    low: Floats
    """low[phase of the recommended arm, phase of the other arm]."""
    high: Floats
    """high[...] likewise."""
    bonus_scale: float
    """2 sigma^2 alpha (1 + s) of b^G, which also depends on all counts (DPA); 0 for
    `bonus` by phase.
    """
    forget: bool
    """DAF uses the samples of the last phase only, DPA all samples."""
    grid: Ints
    """grid[k]: pulls of an arm when its phase k is complete; grid[1] = 1. Unused with
    one global episode.
    """
    sigma: float
    """The scale of Gaussian noise on sums; 0 if noise is Laplace noise, or none."""


def make_phased_rules(strategy: Strategy, arms: int) -> PhasedRules:
    """Return the rules of a phased strategy, with tables over the phases of its grid.

    Tables take longer to make than many a run; those without functions of one's own are
    kept.
    """
    data = all(
        isinstance(part, str) for part in (strategy.threshold, strategy.bonus, strategy.grid)
    )
    return _make_kept_rules(strategy, arms) if data else _make_phased_rules(strategy, arms)


@lru_cache(maxsize=32)
def _make_kept_rules(strategy: Strategy, arms: int) -> PhasedRules:
    return _make_phased_rules(strategy, arms)


def _make_phased_rules(strategy: Strategy, arms: int) -> PhasedRules:
    counts = count_by_phase(strategy)
    low, high = make_pair_thresholds(strategy, arms)(counts[:, np.newaxis], counts)
    square = (len(counts), len(counts))
    return PhasedRules(
        sampling=SAMPLING_CODES[strategy.sampling],
        cost=COSTS[strategy.cost],
        stop=_choose_stop_code(strategy),
        half_epsilon=math.inf if strategy.epsilon is None else strategy.epsilon / 2,
        two_variance=units.compute_two_variance(strategy),
        beta=0.5 if strategy.beta == "ids" else float(strategy.beta),
        ids=strategy.beta == "ids",
        bonus=check_table("bonus", make_phase_bonus(strategy)(counts), counts.shape),
        low=check_table("threshold", low, square),
        high=check_table("threshold", high, square),
        bonus_scale=units.compute_bonus_scale(strategy)
        if not strategy.spec.forgets and strategy.bonus == "ucb"
        else 0.0,
        forget=strategy.spec.forgets,
        grid=make_grid(strategy),
        sigma=units.compute_sum_noise(strategy),
    )


def make_grid(strategy: Strategy) -> Ints:
    """Return the pulls of an arm when its phase k is complete, by k; entry 0 is not
    used.
    """
    if isinstance(strategy.grid, str):
        return np.concatenate([[0], 2 ** np.arange(DOUBLING_PHASES, dtype=np.int64)])
    pulls = [0]
    while pulls[-1] < 2**61 and len(pulls) <= MAX_CUSTOM_PHASES:
        try:
            pulls.append(min(int(strategy.grid.function(len(pulls))), 2**62))
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"the grid {strategy.grid.name!r} must give whole numbers: {error}"
            ) from None
        if pulls[-1] <= pulls[-2]:
            raise InvalidInputError(
                f"the grid {strategy.grid.name!r} must grow: phase {len(pulls) - 1} does not"
            )
    if pulls[1] != 1:
        raise InvalidInputError(
            f"the grid {strategy.grid.name!r} must be 1 for phase 1: one sample of each arm first"
        )
    return np.array(pulls, dtype=np.int64)


def count_by_phase(strategy: Strategy) -> Floats:
    """Return the samples behind an arm's mean in each phase of the grid; 1 in the
    unused entry 0.
    """
    pulls = make_grid(strategy).astype(np.float64)
    counts = np.diff(pulls, prepend=0.0) if strategy.spec.forgets else pulls
    return np.maximum(counts, 1.0)


def make_phase_bonus(strategy: Strategy) -> Callable[[Any], Floats]:
    """Return the leader's bonus by an arm's local count. Without privacy it is b^G
    instead, which needs all counts.
    """
    if isinstance(strategy.bonus, CustomBonus):
        custom = strategy.bonus.function
        return lambda count: np.asarray(custom(count), dtype=np.float64)
    epsilon = math.inf if strategy.epsilon is None else strategy.epsilon
    if (sigma := units.compute_sum_noise(strategy)) > 0:
        return lambda count: thresholds.bonus_concentrated(count, sigma)
    return lambda count: thresholds.bonus_private(count, epsilon)


def make_pair_thresholds(
    strategy: Strategy, arms: int
) -> Callable[[Any, Any], tuple[Floats, Floats]]:
    """Return the thresholds (low, high) of a phased strategy, as a function of the two
    counts, see `decide.is_beaten`.
    """
    if isinstance(strategy.threshold, CustomThreshold):
        custom = strategy.threshold.function
        return lambda a, b: _twice(np.asarray(custom(a, b), dtype=np.float64))
    if strategy.threshold == "empirical":
        return _make_empirical_thresholds(strategy.delta, strategy.epsilon, strategy.cost)
    delta, epsilon, sigma = strategy.delta, strategy.epsilon, units.compute_sum_noise(strategy)
    if sigma > 0:
        return lambda a, b: _twice(thresholds.c_concentrated(a, b, arms, delta, sigma))
    if epsilon is None:
        plain = thresholds.c_forgetting if strategy.spec.forgets else thresholds.c_gaussian
        return lambda a, b: _twice(plain(a, b, arms, delta))
    if strategy.cost == "gaussian":
        return lambda a, b: _twice(thresholds.c_private(a, b, arms, delta, epsilon))
    high = thresholds.c_star_sharp if strategy.threshold == "proved" else thresholds.c_star_high
    return lambda a, b: (
        thresholds.c_star_low(a, b, arms, delta, epsilon),
        high(a, b, arms, delta, epsilon),
    )


def _make_empirical_thresholds(
    delta: float, epsilon: float | None, cost: str
) -> Callable[[Any, Any], tuple[Floats, Floats]]:
    """Return the thresholds of the published experiments."""
    if epsilon is None:
        return lambda a, b: _twice(thresholds.empirical_gaussian(a, b, delta))
    if cost == "gaussian":
        return lambda a, b: _twice(thresholds.empirical_private(a, b, delta, epsilon))
    return lambda a, b: thresholds.empirical_star(a, b, delta, epsilon)


def _choose_stop_code(strategy: Strategy) -> int:
    if strategy.cost == "gaussian" or isinstance(strategy.threshold, CustomThreshold):
        return LOW
    return EITHER if strategy.threshold == "proved" else SPLIT


def _twice(values: Floats) -> tuple[Floats, Floats]:
    return values, values


def check_grid(strategy: Strategy, cap: int) -> None:
    """Refuse a grid that ends before the cap, and our thresholds on a grid they do not
    cover.

    Our thresholds pay for phase k only if the count reaches 2^{k−2}.
    """
    if not isinstance(strategy.grid, CustomGrid):
        return
    if make_grid(strategy)[-1] < cap:
        raise InvalidInputError(
            f"the grid {strategy.grid.name!r} has more than {MAX_CUSTOM_PHASES} phases before "
            f"{cap:g} samples: let it grow faster, or give a smaller max_samples"
        )
    unpaid = isinstance(strategy.threshold, CustomThreshold) or strategy.threshold == "empirical"
    if unpaid or not strategy.spec.forgets:
        return
    counts = count_by_phase(strategy)[1:]
    if (counts < np.exp2(np.arange(1, len(counts) + 1) - 2.0)).any():
        raise InvalidInputError(
            f"the grid {strategy.grid.name!r} renews means more often than doubling, which our "
            "thresholds do not pay for: give a CustomThreshold with it, or a grid that at least "
            "doubles"
        )


def measure_phased_evidence(
    strategy: Strategy, rules: PhasedRules, mean: Floats, count: Floats
) -> Floats:
    """Return the transportation cost of each arm, over the threshold of the two counts."""
    pair, best = make_pair_thresholds(strategy, mean.size), int(np.argmax(mean))
    found = np.full(mean.size, math.nan)
    for arm in range(mean.size):
        if arm != best:
            low, high = pair(count[best], count[arm])
            gap = mean[best] - mean[arm]
            found[arm] = _compute_share(rules, gap, count[best], count[arm], low, high)
    return found


def _compute_share(
    rules: PhasedRules, gap: float, best: float, other: float, low: Any, high: Any
) -> float:
    """Return the cost as a share of the threshold that `decide.is_beaten` compares it
    with.
    """
    costs = {
        code: compute_transport_cost(
            compute_numerator(code, gap, rules.half_epsilon),
            1 / best,
            1 / other,
            rules.two_variance,
        )
        for code in (GAUSSIAN, PRIVATE)
    }
    plain, wide = costs[GAUSSIAN] / float(low), costs[PRIVATE] / float(high)
    if rules.stop == LOW or not is_gap_large(gap, 0.0, rules.half_epsilon):
        return float(plain)
    return float(wide if rules.stop == SPLIT else max(plain, wide))
