"""The way of one run, as data: released means with their bonus, the evidence against the threshold, the releases.

`run_path` plays run number `run` of `simulate(instance, strategy, seed=seed)` again and writes down what the outside
world saw of it. Everything in a `RunPath` is public: released means and counts, never raw outcomes.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Flags, Floats, Ints
from discreet.errors import InvalidInputError
from discreet.instance import Instance
from discreet.simulation import engine
from discreet.simulation.loops import betting as play
from discreet.strategies import decision, rules
from discreet.strategies.betting import rounds as betting
from discreet.strategies.strategy import Strategy

LONGEST_STREAM = 2_000_000
SHOWN = 400
"""Points kept of a strategy that releases every sample."""


@dataclass(frozen=True, eq=False)
class RunPath:
    """One run, a row for each release (a round of releases for elimination)."""

    strategy: str
    threshold: str
    names: tuple[str, ...]
    samples: Floats
    """[row] samples collected by then."""
    means: Floats
    """[row, arm] the released mean, on the scale of rewards also behind randomised response."""
    bonus: Floats
    """[row, arm] what the rule adds to it: a bonus, a radius, half a confidence interval; NaN where there is none."""
    evidence: Floats
    """[row, arm] evidence that the arm is not the best, as a share of the threshold (1: out); NaN for the leader."""
    released: Flags
    """[row, arm] whose mean was released."""
    stopped: bool
    recommendation: int
    bonus_words: str
    evidence_words: str
    thinned: bool
    """Every sample is a release, and rows between those shown were left out."""

    @property
    def weakest(self) -> Floats:
        """[row] the least evidence against any arm but the leader: at 1 the run stops."""
        filled = np.where(np.isnan(self.evidence), math.inf, self.evidence)
        least: Floats = filled.min(axis=1)
        return np.where(np.isinf(least), math.nan, least)


def run_path(
    instance: Instance, strategy: Strategy, seed: int = 0, run: int = 0, max_samples: int | None = None
) -> RunPath:
    """Play one run again and keep what it released.

    Strategies that leap, and dp-se, share random numbers between 64 runs: of those it shows the first of each 64.
    """
    cap = engine.check(instance, strategy, 1, seed, max_samples)
    block = engine.BLOCK if engine.in_blocks(instance, strategy) else 1
    if run < 0 or run % block:
        raise InvalidInputError(f"run must be a run's number, 0 or more; for {strategy.name} a multiple of {block}")
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run // block,))))
    if strategy.episodes == "global":
        raise InvalidInputError("the way of a run is not drawn for one global episode: take episodes='arm'")
    if strategy.estimator == "bets":
        return _bets(instance, strategy, rng, cap)
    if strategy.estimator == "epochs":
        return _epochs(instance, strategy, rng, cap)
    return _traced(instance, strategy, rng, cap)


def _traced(instance: Instance, strategy: Strategy, rng: np.random.Generator, cap: int) -> RunPath:
    """Top Two and its kin: from the kernel's trace (samples, arm, its mean and count, every arm's pulls)."""
    from discreet.simulation import kernels as kernel

    arms, laws = instance.arms, engine.laws_of(instance)
    pulls = np.zeros(arms, np.int64)
    if strategy.phased:
        trace = np.zeros((64 * arms, 4 + arms))
        release, phased = kernel.Release(*engine.release_of(strategy)), rules.phased_rules(strategy, arms)
        found = kernel.run_phased(rng, laws, release, phased, True, cap, pulls, trace)
        length = min(found[3], len(trace))
    else:
        trace = np.zeros((min(cap, LONGEST_STREAM), 4 + arms))
        if strategy.estimator == "ctb":
            laws = kernel.responses(laws, float(strategy.epsilon or 0))
        stream = rules.stream_rules(strategy, arms)
        found = kernel.run_stream(rng, laws, rules.noise_scale(strategy), stream, cap, pulls, trace)
        length = min(found[0], len(trace))
        if found[0] > len(trace):
            raise InvalidInputError(
                f"this run took {found[0]} samples, each of them a release; ways are drawn up to {LONGEST_STREAM}"
            )
    trace = trace[:length]
    shown, means, counts, released = _fill(trace, arms, length if strategy.phased else SHOWN)
    judge: Any = _judge_phased if strategy.phased else _judge_stream
    bonus, evidence = judge(strategy, arms, trace[shown, 0], means, counts)
    scale = math.tanh(float(strategy.epsilon or 0) / 2) if strategy.estimator == "ctb" else 1.0
    return RunPath(
        strategy=strategy.name,
        threshold=_threshold_name(strategy),
        names=instance.names,
        samples=trace[shown, 0],
        means=0.5 + (means - 0.5) / scale,
        bonus=bonus / scale,
        evidence=evidence,
        released=released,
        stopped=bool(found[2]),
        recommendation=int(found[1]),
        bonus_words="the bonus that makes the leader",
        evidence_words="transportation cost as a share of the threshold",
        thinned=not strategy.phased,
    )


def _fill(trace: Floats, arms: int, most: int) -> tuple[Ints, Floats, Floats, Any]:
    """Every arm's last released mean and count at each row kept; rows from the K-th on, evenly spread in log time."""
    length = len(trace)
    means, counts = np.full((length, arms), math.nan), np.zeros((length, arms))
    released = np.zeros((length, arms), np.bool_)
    released[np.arange(length), trace[:, 1].astype(np.int64)] = True
    for arm in range(arms):
        last = np.maximum.accumulate(np.where(released[:, arm], np.arange(length), -1))
        known = last >= 0
        means[known, arm], counts[known, arm] = trace[last[known], 2], trace[last[known], 3]
    spread = np.unique(np.geomspace(arms, length, most).astype(np.int64)) - 1
    shown = spread if length > most else np.arange(min(arms, length) - 1, length)
    released[arms - 1] = True
    return shown, means[shown], counts[shown], released[shown]


def _judge_phased(
    strategy: Strategy, arms: int, samples: Floats, means: Floats, counts: Floats
) -> tuple[Floats, Floats]:
    phased = rules.phased_rules(strategy, arms)
    pair, evidence = rules.pair_thresholds(strategy, arms), np.full(means.shape, math.nan)
    if phased.bonus_scale > 0:
        total = counts.sum(axis=1, keepdims=True)
        bonus = np.sqrt(phased.bonus_scale * np.log(np.maximum(total, 2)) / counts)
    else:
        bonus = rules.phase_bonus(strategy)(counts)
    for row, (mean, count) in enumerate(zip(means, counts, strict=True)):
        best = int(np.argmax(mean))
        for arm in range(arms):
            if arm != best:
                low, high = pair(count[best], count[arm])
                evidence[row, arm] = _share(phased, mean[best] - mean[arm], count[best], count[arm], low, high)
    return bonus, evidence


def _share(rule: Any, gap: float, best: float, other: float, low: Any, high: Any) -> float:
    """The cost as a share of the threshold that `decision.passes` compares it with."""
    costs = {
        code: decision.transport_cost(
            decision.numerator(code, gap, rule.half_epsilon), 1 / best, 1 / other, rule.two_variance
        )
        for code in (decision.GAUSSIAN, decision.PRIVATE)
    }
    plain, wide = costs[decision.GAUSSIAN] / float(low), costs[decision.PRIVATE] / float(high)
    if rule.stop == decision.LOW or not decision.gap_is_large(gap, 0.0, rule.half_epsilon):
        return float(plain)
    return float(wide if rule.stop == decision.SPLIT else max(plain, wide))


def _judge_stream(
    strategy: Strategy, arms: int, samples: Floats, means: Floats, counts: Floats
) -> tuple[Floats, Floats]:
    rule = rules.stream_rules(strategy, arms)
    bonus, evidence = np.zeros(means.shape), np.full(means.shape, math.nan)
    for row, (mean, count) in enumerate(zip(means, counts, strict=True)):
        best, time = int(np.argmax(mean)), int(samples[row])
        for arm in range(arms):
            bonus[row, arm] = decision.stream_bonus(
                rule.bonus, rule.bonus_scale, rule.bonus_table, math.log(time), int(count[arm])
            )
            if arm != best:
                level = decision.stream_threshold(
                    rule.threshold, rule.constant, rule.threshold_table, int(count[best]), int(count[arm]), time
                )
                top = decision.numerator(rule.cost, mean[best] - mean[arm], rule.half_epsilon)
                cost = decision.transport_cost(top, 1 / count[best], 1 / count[arm], rule.two_variance)
                evidence[row, arm] = cost / level
    return bonus, evidence


def _epochs(instance: Instance, strategy: Strategy, rng: np.random.Generator, cap: int) -> RunPath:
    """DP-SE: from the kernel's trace (samples, arms left, epoch length, epoch, every arm's mean)."""
    from discreet.simulation import kernels as kernel

    arms, epsilon = instance.arms, float(strategy.epsilon or 0)
    trace = np.zeros((64, 4 + arms))
    pulls = np.zeros(arms, np.int64)
    found = kernel.run_dpse(rng, engine.laws_of(instance), epsilon, strategy.delta, cap, pulls, trace)
    trace = trace[: found[3]]
    means = trace[:, 4:].copy()
    bonus, evidence = np.full(means.shape, math.nan), np.full(means.shape, math.nan)
    active = np.ones(arms, np.bool_)
    released = np.zeros(means.shape, np.bool_)
    for row, (_, _, length, epoch) in enumerate(trace[:, :4]):
        radius = decision.epoch_radius(int(active.sum()), int(epoch), int(length), epsilon, strategy.delta)
        released[row], bonus[row, active] = active, radius / 2
        best = decision.best_arm(means[row], active)
        share = (means[row, best] - means[row]) / radius
        evidence[row] = np.where(active, share, 1.0)
        evidence[row, best] = math.nan
        active = active & ~(share > 1)
    return RunPath(
        strategy=strategy.name,
        threshold=_threshold_name(strategy),
        names=instance.names,
        samples=trace[:, 0],
        means=means,
        bonus=bonus,
        evidence=evidence,
        released=released,
        stopped=bool(found[2]),
        recommendation=int(found[1]),
        bonus_words="the radius",
        evidence_words="gap to the best arm as a share of twice the radius",
        thinned=False,
    )


def _bets(instance: Instance, strategy: Strategy, rng: np.random.Generator, cap: int) -> RunPath:
    """bet-se, round by round with the plain functions the kernel compiles: its trace has no evidence."""
    arms, (bets, setting) = instance.arms, rules.betting_rules(strategy, instance.arms)
    book, best, n, samples, length = betting.new_book(arms), -1, 0, 0, setting.first
    half, rows = np.zeros(arms), list[tuple[float, Floats, Floats, Floats, Any]]()
    while best < 0:
        leader, second, octave, weight = betting.announce(len(rows), book)
        length = min(length, (cap - samples) // weight)
        if length < 1:
            break
        played = book.active.copy()
        for arm in np.flatnonzero(played):
            batch = length * 2**octave if arm == leader else length
            book.fresh[arm] = play.draw_release(rng, batch, instance.means[arm], setting), batch, 1
        samples, n = samples + length * weight, n + length
        best = betting.settle(len(rows), n, leader, second, octave, bets, setting, book)
        means = np.array([betting.mean_of(arm, book.total, setting) for arm in range(arms)])
        means = 0.5 + (means - 0.5) / setting.scale  # behind randomised response: back to the scale of rewards
        for arm in np.flatnonzero(played):
            half[arm] = np.ptp(betting.interval(book.total[arm], strategy.delta, bets, setting)) / 2
        share = np.where(book.out, 1.0, np.clip(book.money / setting.target, 0.0, 0.999))
        share[best if best >= 0 else int(np.argmax(np.where(book.out, -math.inf, means)))] = math.nan
        rows.append((samples, means, half.copy(), share, played))
        if best < 0:
            length = betting.plan(n, setting, book)
    return RunPath(
        strategy=strategy.name,
        threshold=_threshold_name(strategy),
        names=instance.names,
        samples=np.array([row[0] for row in rows], np.float64),
        means=np.array([row[1] for row in rows]),
        bonus=np.array([row[2] for row in rows]),
        evidence=np.array([row[3] for row in rows]),
        released=np.array([row[4] for row in rows], np.bool_),
        stopped=best >= 0,
        recommendation=best if best >= 0 else betting.front_runner(book),
        bonus_words=f"half of the {1 - strategy.delta:.6g} confidence interval",
        evidence_words="log of the gambler's money as a share of log(1/δ)",
        thinned=False,
    )


def _threshold_name(strategy: Strategy) -> str:
    return strategy.threshold if isinstance(strategy.threshold, str) else strategy.threshold.name
