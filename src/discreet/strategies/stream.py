"""What is decided after every sample where each is released (MLE, CTB, Gaussian noise).

Everything here stands before the wall: means of what was released, and public counts.
`Stream.sums` are sums of released answers. The live run calls `choose` and `decide`;
the simulator's hot loop (`simulation.loops.stream`) has them written out, with
shortcuts that change no result (tests/strategies/test_run.py holds the two together).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from discreet._types import Flags, Floats, Ints
from discreet.errors import InvalidInputError
from discreet.jit import jit
from discreet.strategies import units
from discreet.strategies.estimators import CustomBonus, CustomThreshold, check_table
from discreet.strategies.run import (
    ArmBatch,
    ArmView,
    DrawArm,
    Margin,
    Pair,
    Radii,
    Run,
    choose_first,
)
from discreet.strategies.sampling import (
    CHALLENGER_FILTER,
    EB_TC,
    EB_TCI,
    ELIMINATION,
    LUCB,
    SAMPLING_CODES,
    TOP_TWO,
    TRACK,
    TS_TC,
    UNITS_PER_SAMPLE,
    compute_ids_share,
    compute_priority,
    count_tied,
    draw_ts_leader,
    fill_allocation,
    fill_kl_allocation,
    fill_numerators,
    find_best_arm,
    find_least_pulled,
    find_most_owed,
    find_ucb_leader,
    is_leader_due,
    mark_lucb_pair,
    owe,
)
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import compute_noise_scale, replace_nan
from discreet.theory import thresholds
from discreet.theory.divergences import (
    GAUSSIAN,
    KL,
    compute_kl_cost,
    compute_kl_part,
    compute_numerator,
    compute_transport_cost,
)
from discreet.theory.thresholds import c_gaussian, noisy_sigma

ITERATED, CLOCK, TABLE, MIXTURE = 0, 1, 2, 3
"""Codes of the thresholds, see `decide.compute_stream_threshold`."""
UCB, BONUS_TABLE = 0, 1
"""Codes of the bonuses, see `decide.compute_stream_bonus`."""
CELLS = 64
"""Cells per octave of a table over counts, see `find_cell`."""
COSTS = {"gaussian": GAUSSIAN, "kl": KL}
OCTAVES = 48
"""Tables over counts reach 64 * 2**48 samples, far beyond any cap."""


class StreamRules(NamedTuple):
    """The rules of a strategy that releases every sample (MLE, CTB, Gaussian noise)."""

    sampling: int
    two_variance: float
    """2 sigma^2 in W^G of the stopping rule (sigma = 1 for `empirical`)."""
    beta: float
    ids: bool
    bonus: int
    """UCB or BONUS_TABLE."""
    bonus_scale: float
    """2 sigma^2 alpha (1 + s) of b^G."""
    bonus_table: Floats
    """Over `find_cell` of the arm's count, for BONUS_TABLE."""
    threshold: int
    """ITERATED, CLOCK, TABLE or MIXTURE."""
    constant: float
    """The part of the threshold that does not depend on counts."""
    threshold_table: Floats
    """Over `find_cell`, nondecreasing, for TABLE; the threshold adds the entries of
    both arms.
    """
    cost: int = GAUSSIAN
    """GAUSSIAN or KL: the transportation cost of challenger and stopping rule."""


def make_stream_rules(strategy: Strategy, arms: int, noise: float | None = None) -> StreamRules:
    """Return the rules of a strategy that releases every sample; `noise` is the
    Gaussian noise if not as in simulations.
    """
    kind, constant, table = ITERATED, 0.0, np.zeros(1)
    if isinstance(strategy.threshold, CustomThreshold):
        kind, table = TABLE, _make_count_table("threshold", strategy.threshold.function)
        if (np.diff(table[1:]) < 0).any():
            raise InvalidInputError(
                f"the threshold {strategy.threshold.name!r} must not fall as the count grows"
            )
    elif strategy.threshold == "empirical":
        kind, constant = CLOCK, math.log(1 / strategy.delta)
    elif strategy.cost == "kl":
        kind, constant = MIXTURE, thresholds.kl_constant(arms, strategy.delta)
    else:
        constant = 2 * float(thresholds.c_g(math.log((arms - 1) / strategy.delta) / 2))
    bonus, bonus_table = UCB, np.zeros(1)
    if isinstance(strategy.bonus, CustomBonus):
        bonus, bonus_table = BONUS_TABLE, _make_count_table("bonus", strategy.bonus.function)
    return StreamRules(
        sampling=SAMPLING_CODES[strategy.sampling],
        two_variance=units.compute_two_variance(strategy, noise),
        beta=0.5 if strategy.beta == "ids" else float(strategy.beta),
        ids=strategy.beta == "ids",
        bonus=bonus,
        bonus_scale=units.compute_bonus_scale(strategy, noise),
        bonus_table=bonus_table,
        threshold=kind,
        constant=constant,
        threshold_table=table,
        cost=COSTS[strategy.cost],
    )


@jit
def find_cell(count: int) -> int:
    """Return index of a count in a table: exact up to 127, then 64 cells per octave."""
    shift = 0
    rest = count
    while rest >= 2 * CELLS:
        rest >>= 1
        shift += 1
    return CELLS * shift + rest


def make_count_table(function: Callable[[float], float]) -> Floats:
    """Return a function of a count as a table over `find_cell`, for TABLE and
    BONUS_TABLE.

    Exact up to 127 samples; beyond, a cell takes the largest value at its two ends, so
    that a monotone function is never understated, and by less than its change over 1/64
    of an octave.
    """
    table = np.zeros(CELLS * (OCTAVES + 2))
    for cell in range(1, table.size):
        shift = max(cell // CELLS - 1, 0)
        first = (cell - CELLS * shift) << shift
        table[cell] = max(function(float(first)), function(float(first + (1 << shift) - 1)))
    return table


def _make_count_table(what: str, function: Callable[..., Any]) -> Floats:
    try:
        table = make_count_table(lambda count: float(function(count)))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"your {what} must give a number for each count: {error}") from None
    return check_table(what, table, table.shape)


class StreamState(NamedTuple):
    """The state of a run whose every sample is released."""

    mean: Floats
    pulls: Ints
    inverse: Floats
    led: Ints
    led_pulls: Ints
    share: Floats
    active: Flags
    members: Flags
    bonus: Floats
    sums: Floats
    owed: Ints
    """Samples that Track-and-Stop owes each arm, in `tracking.UNITS`."""
    tops: Floats
    weights: Floats


@jit(allocates=True)
def make_stream(arms: int) -> StreamState:
    """Return the state before anything was pulled."""
    return StreamState(
        np.zeros(arms),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.ones(arms, np.bool_),
        np.ones(arms, np.bool_),
        np.zeros(arms),
        np.zeros(arms),
        np.full(arms, UNITS_PER_SAMPLE, np.int64),
        np.zeros(arms),
        np.zeros(arms),
    )


@jit
def compute_stream_threshold(
    kind: int, constant: float, table: Floats, best: int, other: int, samples: int
) -> float:
    """Return the threshold from the two arms' counts and all samples; nondecreasing in
    each, which the kernels rely on.

    ITERATED: c^G, constant + 2 log(4 + log n) + 2 log(4 + log m) with constant = 2
    C_G(log((K-1)/delta)/2). CLOCK: the authors' log((1 + log t)/delta) with constant =
    log(1/delta). TABLE: constant + table entries. MIXTURE: c^KL, constant + (log n +
    log m)/2 with constant = log(4 (K-1)/delta).
    """
    if kind == ITERATED:
        return (
            constant + 2.0 * math.log(4.0 + math.log(best)) + 2.0 * math.log(4.0 + math.log(other))
        )
    if kind == CLOCK:
        return constant + math.log(1.0 + math.log(samples))
    if kind == MIXTURE:
        return constant + 0.5 * math.log(best) + 0.5 * math.log(other)
    return float(constant + table[find_cell(best)] + table[find_cell(other)])


@jit
def compute_stream_bonus(
    kind: int, scale: float, table: Floats, log_samples: float, count: int
) -> float:
    """Return the bonus of an arm: b^G = sqrt(2 sigma^2 alpha (1+s) log n / N_a), or a
    table over the arm's count.
    """
    if kind == UCB:
        return math.sqrt(scale * log_samples / count)
    return float(table[find_cell(count)])


@jit
def compute_stream_cost(
    cost: int, best: int, arm: int, mean: Floats, pulls: Ints, two_variance: float
) -> float:
    """Return W of the pair, all samples behind every mean."""
    if cost == KL:
        return compute_kl_cost(mean[best], mean[arm], pulls[best], pulls[arm])
    top = compute_numerator(GAUSSIAN, mean[best] - mean[arm], math.inf)
    return compute_transport_cost(top, 1.0 / pulls[best], 1.0 / pulls[arm], two_variance)


@jit
def is_beaten(
    best: int, arm: int, mean: Floats, pulls: Ints, samples: int, rules: StreamRules
) -> bool:
    """Return whether the recommended arm beats the other one, all samples behind every
    mean.
    """
    bar = compute_stream_threshold(
        rules.threshold, rules.constant, rules.threshold_table, pulls[best], pulls[arm], samples
    )
    return compute_stream_cost(rules.cost, best, arm, mean, pulls, rules.two_variance) >= bar


@jit
def fill_bonus(stream: StreamState, rules: StreamRules, samples: int) -> None:
    """Write every arm's bonus after so many samples."""
    log_samples, bonus, pulls = math.log(samples), stream.bonus, stream.pulls
    kind, scale, table = rules.bonus, rules.bonus_scale, rules.bonus_table
    for arm in range(stream.mean.size):
        bonus[arm] = compute_stream_bonus(kind, scale, table, log_samples, pulls[arm])


@jit
def find_failing_arm(
    best: int, witness: int, stream: StreamState, rules: StreamRules, samples: int
) -> tuple[int, float]:
    """Return an arm that the recommended one does not beat, `witness` asked first, and
    the threshold it failed; -1 to stop.
    """
    mean, pulls = stream.mean, stream.pulls
    bar = 0.0
    for turn in range(mean.size + 1):
        arm = turn - 1 if turn > 0 else witness
        if arm != best:
            bar = compute_stream_threshold(
                rules.threshold,
                rules.constant,
                rules.threshold_table,
                pulls[best],
                pulls[arm],
                samples,
            )
            if compute_stream_cost(rules.cost, best, arm, mean, pulls, rules.two_variance) < bar:
                return arm, bar
    return -1, bar


@jit
def drop_beaten(best: int, stream: StreamState, rules: StreamRules, samples: int) -> bool:
    """Eliminate beaten arms successively, every sample released. Return whether the
    best active arm stands alone.
    """
    alone = True
    for arm in range(stream.mean.size):
        if arm != best and stream.active[arm]:
            if is_beaten(best, arm, stream.mean, stream.pulls, samples, rules):
                stream.active[arm] = False
            else:
                alone = False
    return alone


@jit
def renew_leader(
    stream: StreamState, rules: StreamRules, samples: int
) -> tuple[int, float, float, float, int]:
    """Return the UCB leader now, and for how long it is certain: (leader, floor, rival,
    slope, horizon).

    Until `horizon` samples `stream.bonus` bounds the leader's bonus from below, if
    `slope` is taken off at each of its pulls (1/sqrt(N) is convex; an ulp is for
    rounding), and that of every other arm from above: b^G grows with time and falls
    with the arm's count. Entries from a table are exact, as the caller renews them with
    the count. `floor` and `rival` are the leader's upper bound and the largest of the
    others' by these bonuses.
    """
    horizon = samples + samples // 128 + 8
    fill_bonus(stream, rules, samples)
    mean, bonus = stream.mean, stream.bonus
    leader, slope = find_ucb_leader(mean, bonus), 0.0
    if rules.bonus == UCB:
        growth = math.sqrt(math.log(horizon) / math.log(samples)) * (1.0 + 1e-12)
        slope = bonus[leader] * (0.5 / stream.pulls[leader] + 2.0**-52)
        for arm in range(bonus.size):
            if arm != leader:
                bonus[arm] *= growth
    rival = -np.inf
    for arm in range(mean.size):
        if arm != leader:
            rival = max(rival, mean[arm] + bonus[arm])
    return leader, mean[leader] + bonus[leader], rival, slope, horizon


@jit
def find_second_mean(best: int, mean: Floats, active: Flags) -> float:
    """Return the largest mean of the other active arms."""
    second = -np.inf
    for arm in range(mean.size):
        if arm != best and active[arm]:
            second = max(second, mean[arm])
    return second


@jit
def find_stream_challenger(leader: int, mean: Floats, inverse: Floats) -> int:
    """Find the challenger as `find_challenger` does, with the numerators computed on
    the way.
    """
    chosen, most, skip = -1, -1.0, -1.0
    mean_leader, inverse_leader = mean[leader], inverse[leader]
    for arm in range(mean.size):
        if arm != leader:
            top = compute_numerator(GAUSSIAN, mean_leader - mean[arm], math.inf)
            if inverse[arm] + inverse_leader < skip * top:
                continue
            if top <= 0.0:
                return arm
            value = compute_priority(inverse[arm], inverse_leader, top)
            if value > most:
                most = value
                skip = value * CHALLENGER_FILTER
                chosen = arm
    return chosen


@jit
def find_kl_challenger(leader: int, mean: Floats, pulls: Ints, ids: bool, share: Floats) -> int:
    """Return the TC challenger with W^KL: the smallest cost against the leader, ties to
    the lowest index.

    With IDS (You et al. 2023) the leader's part of that cost is added to its `share`;
    where the cost is 0, as much as for W^G.
    """
    chosen, least, own = -1, math.inf, 0.0
    for arm in range(mean.size):
        if arm != leader:
            cost, part = 0.0, 0.0
            if mean[leader] > mean[arm]:
                part = compute_kl_part(mean[leader], mean[arm], pulls[leader], pulls[arm])
                cost = part + compute_kl_part(mean[arm], mean[leader], pulls[arm], pulls[leader])
            if cost < least:
                chosen, least, own = arm, cost, part
    if ids:
        share[leader] += (
            own / least if least > 0.0 else compute_ids_share(pulls[chosen], pulls[leader])
        )
    return chosen


def decide(answered: StreamState, rules: StreamRules, witness: int) -> tuple[int, int]:
    """Return the recommendation, and an arm that it does not beat by the answers, or -1
    to stop; `witness` is asked first, as the one of last time is mostly that of this
    time.
    """
    mean, counts = answered.mean, answered.pulls
    samples = sum(counts)
    best = int(find_best_arm(mean, answered.active))
    if rules.sampling == ELIMINATION:
        return best, -1 if drop_beaten(best, answered, rules, samples) else 0
    for arm in (witness, *range(len(counts))):
        if arm != best and not is_beaten(best, arm, mean, counts, samples, rules):
            return best, arm
    return best, -1


Counts = Any
"""Of answers, by arm, in a live run: a list, which serves as an array where nothing is
compiled. To make an array of it takes longer than what is computed from it.
"""


@jit
def choose_arm_by_rule(
    best: int, stream: StreamState, counts: Ints, rules: StreamRules, samples: int
) -> int:
    """Return the arm that any rule but Top Two with the UCB leader pulls; `counts` are
    the answers behind the means.
    """
    if rules.sampling == TRACK:
        return choose_owed_arm(best, stream, rules.cost, samples)
    if rules.sampling >= EB_TC:
        leader = best
        if rules.sampling == TS_TC:
            leader = draw_ts_leader(
                stream.mean, counts, stream.pulls, stream.sums, rules.two_variance
            )
        return choose_from_pair(leader, stream, rules)
    if rules.sampling == LUCB:
        fill_bonus(stream, rules, samples)
        mark_lucb_pair(best, stream.mean, stream.bonus, stream.members)
        return find_least_pulled(stream.members, stream.pulls)
    return find_least_pulled(stream.active, stream.pulls)


@jit
def choose_owed_arm(best: int, stream: StreamState, cost: int, samples: int) -> int:
    """Choose an arm by C-tracking: solve for the present means, owe everyone a share of
    this sample, and pull the arm that is furthest behind.
    """
    fill_numerators(best, stream.mean, GAUSSIAN, math.inf, stream.tops)
    if cost == KL and count_tied(best, stream.tops) == 0:
        fill_kl_allocation(best, stream.mean, stream.weights)
    else:
        fill_allocation(best, stream.tops, stream.weights)
    owe(best, stream.weights, samples, stream.owed)
    return find_most_owed(stream.owed, stream.pulls)


@jit
def choose_from_pair(leader: int, stream: StreamState, rules: StreamRules) -> int:
    """Choose the leader or its challenger by tracking, and note who led."""
    arm = leader
    if rules.ids or not is_leader_due(stream.led[leader], stream.led_pulls[leader], rules.beta):
        if rules.sampling == EB_TCI:
            arm = find_improved_challenger(leader, stream, rules)
        elif rules.cost == KL:
            arm = find_kl_challenger(leader, stream.mean, stream.pulls, rules.ids, stream.share)
        else:
            arm = find_stream_challenger(leader, stream.mean, stream.inverse)
    if rules.ids:
        if rules.sampling == EB_TCI or rules.cost != KL:
            stream.share[leader] += compute_leader_share(
                rules.cost, leader, arm, stream.mean, stream.pulls
            )
        if stream.led_pulls[leader] <= stream.share[leader]:
            arm = leader
    stream.led[leader] += 1
    if arm == leader:
        stream.led_pulls[leader] += 1
    return arm


@jit
def compute_leader_share(cost: int, leader: int, arm: int, mean: Floats, pulls: Ints) -> float:
    """Return the leader's part of the cost against its challenger (IDS, You et al.
    2023); for W^G, and if W^KL is 0, N_C / (N_C + N_B).
    """
    if cost == KL and mean[leader] > mean[arm]:
        own = compute_kl_part(mean[leader], mean[arm], pulls[leader], pulls[arm])
        return own / (own + compute_kl_part(mean[arm], mean[leader], pulls[arm], pulls[leader]))
    return compute_ids_share(pulls[arm], pulls[leader])


@jit
def find_improved_challenger(leader: int, stream: StreamState, rules: StreamRules) -> int:
    """Return the TCI challenger: smallest W + log N, ties to the lowest index."""
    mean, pulls = stream.mean, stream.pulls
    chosen, least = -1, 0.0
    for arm in range(mean.size):
        if arm != leader:
            value = compute_stream_cost(rules.cost, leader, arm, mean, pulls, rules.two_variance)
            value += math.log(pulls[arm])
            if chosen < 0 or value < least:
                chosen, least = arm, value
    return chosen


def choose(stream: StreamState, answered: StreamState, rules: StreamRules) -> int:
    """Choose the next arm to sample: `answered` is the same run with the answers that
    are behind the means as its `pulls`, which else count those still to come too. Until
    every arm has an answer, choose the least pulled arm.

    Until every arm has an answer, the least pulled arm.
    """
    counts: Counts = answered.pulls
    if not all(counts):
        return int(find_least_pulled(np.ones(len(counts), np.bool_), stream.pulls))
    samples = sum(counts)
    if rules.sampling >= EB_TC:
        best, assigned = find_best_arm(stream.mean, stream.active), sum(stream.pulls)
        return int(choose_arm_by_rule(best, stream, counts, rules, assigned))
    if rules.sampling != TOP_TWO:
        if rules.sampling != LUCB:
            return int(find_least_pulled(stream.active, stream.pulls))
        fill_bonus(answered, rules, samples)
        mark_lucb_pair(
            find_best_arm(stream.mean, stream.active), stream.mean, stream.bonus, stream.members
        )
        return int(find_least_pulled(stream.members, stream.pulls))
    fill_bonus(answered, rules, samples)
    return int(choose_from_pair(int(find_ucb_leader(stream.mean, stream.bonus)), stream, rules))


def measure_stream_evidence(rules: StreamRules, mean: Floats, count: Floats, time: int) -> Floats:
    """Return the evidence against each arm if every answer counts, after so many of
    them.
    """
    best, found = int(np.argmax(mean)), np.full(mean.size, math.nan)
    whole = count.astype(np.int64)
    for arm in range(mean.size):
        if arm != best:
            level = compute_stream_threshold(
                rules.threshold,
                rules.constant,
                rules.threshold_table,
                int(whole[best]),
                int(whole[arm]),
                time,
            )
            cost = compute_stream_cost(rules.cost, best, arm, mean, whole, rules.two_variance)
            found[arm] = cost / level
    return found


class Column(list[Any]):
    """A number of each arm. Leaves take it for an array; where nothing is compiled, the
    numbers of a list are read, and reckoned with, in half the time.
    """

    def __init__(self, numbers: Iterable[Any]) -> None:
        super().__init__(numbers)
        self.size = len(self)


def convert_to_lists(state: StreamState) -> Any:
    """Return a run's state for following it one participant at a time."""
    return StreamState(*(Column(array.tolist()) for array in state))  # type: ignore[arg-type]


class StreamRun(Run):
    """A live run in which every answer is a release.

    If each answer comes before the next person, the two are the same, as in the
    simulator.
    """

    fields: ClassVar = (*Run.fields, "count")

    def __init__(self, strategy: Strategy, arms: int, cap: int, noise: float | None) -> None:
        super().__init__(strategy, arms, cap)
        self.noise = noise
        self.rules = make_stream_rules(strategy, arms, noise)
        self.count = [0] * arms
        self._begin(make_stream(arms))

    def _begin(self, state: StreamState) -> None:
        """Begin from this state; what is decided from answers sees `count` in place of
        who was assigned.
        """
        self.state = convert_to_lists(state)
        self._answered = self.state._replace(pulls=self.count)
        self._witness = 0

    def list_arrays(self) -> dict[str, Any]:
        """Return the public counts, and the answers so far."""
        state = self.state
        tracked = {"owed": state.owed, "weights": state.weights}
        return {
            "mean": state.mean,
            "pulls": state.pulls,
            "inverse": state.inverse,
            "led": state.led,
            "led_pulls": state.led_pulls,
            "share": state.share,
            "active": state.active,
            "sums": state.sums,
            **(tracked if self.rules.sampling == TRACK else {}),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Load a state; what was stored has the shape and the types of arrays."""
        self.state = make_stream(self.arms)
        super().load(state)
        self._begin(self.state)

    def assign_next(self, deal: DrawArm = choose_first) -> ArmBatch | None:
        """Assign the arm that the simulated loop would pull."""
        if self.stopped or self.samples >= self.cap:
            return None
        arm = choose(self.state, self._answered, self.rules)
        pulls = self.state.pulls[arm] + 1
        self.state.pulls[arm], self.state.inverse[arm] = pulls, 1.0 / pulls
        self.samples += 1
        return ArmBatch(arm, pulls, 1)

    def list_due(self) -> list[ArmBatch]:
        """Return nothing: no release is ever waited for."""
        return []

    def record_answer(self, arm: int, value: float) -> None:
        """Take in one answer of an arm, in the order in which its people were assigned;
        then decide.
        """
        sums, count = self.state.sums, self.count
        sums[arm] += value
        count[arm] += 1
        self.state.mean[arm] = sums[arm] / count[arm]
        if all(count):
            self.recommendation, self.stopped = self._decide()

    def _decide(self) -> tuple[int, bool]:
        best, witness = decide(self._answered, self.rules, self._witness)
        self._witness = max(witness, 0)
        return best, witness < 0

    def can_stop(self, delta: float) -> bool:
        """Return whether the stopping rule holds at another δ on this state."""
        if self.recommendation is None:
            return False
        other = StreamRun(self.strategy.with_(delta=delta), self.arms, self.cap, self.noise)
        other.load(self.dump())
        return other._decide()[1]

    def measure_evidence(self) -> list[float | None]:
        """Return the evidence by the answers so far."""
        if not all(self.count):
            return super().measure_evidence()
        mean, count = np.array(self.state.mean), np.array(self.count, float)
        return replace_nan(measure_stream_evidence(self.rules, mean, count, sum(self.count)))

    @property
    def _shrink(self) -> float:
        """What randomised response leaves of a difference."""
        trust, bits = self.strategy.trust_model, self.strategy.spec.bits
        return trust.shrink(self.strategy.epsilon) if bits else 1.0

    def compare(self, one: int, other: int, margins: Sequence[Margin] = ()) -> Pair | None:
        """Bound the difference by c^G, which holds for all counts of one path at once."""
        counts = self.count[one], self.count[other]
        if not all(counts):
            return None
        scale, shrink = (
            compute_noise_scale(self.strategy) if self.noise is None else self.noise,
            self._shrink,
        )
        spread = 2 * noisy_sigma(scale) ** 2 * (1 / counts[0] + 1 / counts[1])

        def radius(alpha: float) -> float:
            return math.sqrt(spread * float(c_gaussian(*counts, 2, alpha))) / shrink

        return Radii((self.state.mean[one] - self.state.mean[other]) / shrink, radius)

    def view_arms(self) -> list[ArmView]:
        """Return the means of the answers so far, with the bias of randomised response
        taken out.
        """
        shrink = self._shrink
        return [
            ArmView(pulls, count, 0.5 + (mean - 0.5) / shrink if count else None, None)
            for pulls, count, mean in zip(
                self.state.pulls, self.count, self.state.mean, strict=True
            )
        ]


def make_run(strategy: Strategy, arms: int, cap: int, noise: float | None) -> Run:
    """Return a run that has not begun."""
    return StreamRun(strategy, arms, cap, noise)
