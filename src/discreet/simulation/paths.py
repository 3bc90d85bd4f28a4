"""The way of one run, as data: released means with their intervals, the evidence
against the threshold, the releases.

`run_path` plays run number `run` of `simulate(instance, strategy, seed=seed)` again and
writes down what the outside world saw of it. Everything in a `RunPath` is public:
released means and counts, never raw outcomes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from discreet._types import Flags, Floats
from discreet.errors import InvalidInputError
from discreet.instances import Drifting, Instance
from discreet.past_data import Sampled
from discreet.scale import Scale
from discreet.simulation import betting as betting_loop
from discreet.simulation import dp_se as epochs_loop
from discreet.simulation import engine
from discreet.simulation import phased as phased_loop
from discreet.simulation import stream as stream_loop
from discreet.simulation.betting import run_betting
from discreet.simulation.dp_se import run_epochs
from discreet.simulation.engine import (
    RUNS_PER_GENERATOR,
    RunResult,
    make_empty_trace,
    make_generator,
)
from discreet.simulation.laws import Generator, Laws, make_laws
from discreet.simulation.phased import run_phased
from discreet.simulation.stream import count_single_steps, make_collected_laws, run_stream
from discreet.strategies.betting.bets import make_betting_rules
from discreet.strategies.betting.book import COUNT, SUM, find_front_runner, new_book
from discreet.strategies.betting.inference import (
    add_closeness,
    compute_evidence_shares,
    compute_interval,
    new_closeness_totals,
)
from discreet.strategies.betting.rounds import announce_first, settle_and_announce
from discreet.strategies.dp_se import end_epoch, make_epochs, measure_epochs_evidence
from discreet.strategies.phased.state import (
    PhasedRules,
    make_phase_bonus,
    make_phased_rules,
    measure_phased_evidence,
)
from discreet.strategies.sampling import find_best_arm
from discreet.strategies.strategy import Strategy
from discreet.strategies.stream import (
    StreamRules,
    compute_stream_bonus,
    make_stream_rules,
    measure_stream_evidence,
)
from discreet.strategies.units import BITS, compute_noise_scale, is_rounded_to_bits
from discreet.theory.thresholds import compute_epoch_length

Player = Callable[[Generator], RunResult]
"""Plays one run."""


def make_plain_player(strategy: Strategy, laws: Laws, cap: int) -> Player | None:
    """Make what plays runs of a strategy in plain Python, with the numbers that its
    compiled loop draws from the same Generator. Return None for a family that is not in
    `TRACERS`, and for one global episode.
    """
    if strategy.spec.family not in PLAYERS or strategy.has_global_episode:
        return None
    return PLAYERS[strategy.spec.family](strategy, laws, cap)


def _make_betting_player(strategy: Strategy, laws: Laws, cap: int) -> Player:
    arms = laws.mean.size
    rules, pulls, none = (
        make_betting_rules(strategy, arms),
        np.zeros(arms, np.int64),
        make_empty_trace(arms),
    )
    return lambda rng: run_betting(rng, laws, rules, cap, pulls, none)


def _make_epochs_player(strategy: Strategy, laws: Laws, cap: int) -> Player:
    arms = laws.mean.size
    epsilon, pulls, none = (
        float(strategy.epsilon or 0),
        np.zeros(arms, np.int64),
        make_empty_trace(arms),
    )
    return lambda rng: run_epochs(rng, laws, epsilon, strategy.delta, cap, pulls, none)


def _make_phased_player(strategy: Strategy, laws: Laws, cap: int) -> Player:
    arms = laws.mean.size
    rules, pulls, none = (
        make_phased_rules(strategy, arms),
        np.zeros(arms, np.int64),
        make_empty_trace(arms),
    )
    epsilon = strategy.trust_model.noise(strategy.epsilon)
    return lambda rng: run_phased(rng, laws, epsilon, rules, True, cap, pulls, none)


def _make_stream_player(strategy: Strategy, laws: Laws, cap: int) -> Player:
    arms = laws.mean.size
    rules, pulls, none = (
        make_stream_rules(strategy, arms),
        np.zeros(arms, np.int64),
        make_empty_trace(arms),
    )
    answers, noise = make_collected_laws(strategy, laws), compute_noise_scale(strategy)
    alone = count_single_steps(rules, answers, noise, cap)
    return lambda rng: run_stream(rng, answers, noise, rules, alone, cap, pulls, none)


PLAYERS = {
    "betting": _make_betting_player,
    "dp_se": _make_epochs_player,
    "phased": _make_phased_player,
    "stream": _make_stream_player,
}
"""Who can be played so; a family without an entry is simulated compiled all the
same.
"""


MAX_STREAM_RELEASES = stream_loop.SAMPLES_BEFORE_LEAPS
MAX_SHOWN_RELEASES = 400
"""Points kept of a strategy that releases every sample."""


REWARD_SCALE = Scale()
"""Of outcomes that are rewards themselves."""


@dataclass(frozen=True, eq=False)
class RunPath:
    """Hold one run, a row for each release (a round of releases for elimination)."""

    strategy: str
    threshold: str
    names: tuple[str, ...]
    samples: Floats
    """[row] samples collected by then."""
    means: Floats
    """[row, arm] the released mean, on the scale of rewards also behind randomised
    response.
    """
    low: Floats
    """[row, arm] the lower end of an interval around it (a confidence interval, or what
    the rule adds and takes away), within what means can be; NaN where there is none.
    """
    high: Floats
    """[row, arm] its upper end."""
    evidence: Floats
    """[row, arm] evidence that the arm is not the best, as a share of the threshold (1:
    out); NaN for the leader.
    """
    released: Flags
    """[row, arm] whose mean was released."""
    stopped: bool
    recommendation: int
    interval_words: str
    """What the intervals are, in a sentence."""
    evidence_words: str
    thinned: bool
    """Every sample is a release, and rows between those shown were left out."""
    scale: Scale = REWARD_SCALE
    """In which units outcomes are, if that is known of the data; means are rewards."""

    @property
    def weakest(self) -> Floats:
        """Return for each row the least evidence against any arm but the leader: at 1
        the run stops.
        """
        filled = np.where(np.isnan(self.evidence), math.inf, self.evidence)
        least: Floats = filled.min(axis=1)
        return np.where(np.isinf(least), math.nan, least)


def run_path(
    instance: Instance,
    strategy: Strategy,
    seed: int = 0,
    run: int = 0,
    max_samples: int | None = None,
) -> RunPath:
    """Play one run again and keep what it released.

    Strategies that leap, and dp-se, share random numbers between 64 runs: of those it
    shows the first of each 64.
    """
    cap = engine.check_simulation(instance, strategy, 1, seed, max_samples)
    block = RUNS_PER_GENERATOR if engine.is_in_blocks(instance, strategy) else 1
    if run < 0 or run % block:
        raise InvalidInputError(
            f"run must be the number of a run, 0 or more; for {strategy.name} a multiple of {block}"
        )
    if isinstance(instance, Drifting):
        raise InvalidInputError(
            "the path of a run cannot be drawn for arms that drift: use .instance, which has "
            "the arms without their drift"
        )
    if strategy.spec.own:
        raise InvalidInputError(
            f"the path of a run cannot be drawn for {strategy.name}: only you know what it releases"
        )
    if strategy.has_global_episode:
        raise InvalidInputError(
            "the path of a run cannot be drawn for one global episode: use episodes='arm'"
        )
    if strategy.spec.family not in TRACERS:
        raise InvalidInputError(
            f"the path of a run cannot be drawn for {strategy.name}: its family is not in `TRACERS`"
        )
    path = TRACERS[strategy.spec.family](
        instance, strategy, make_generator(seed, run // block), cap
    )
    scale = instance.scale if isinstance(instance, Sampled) else None
    return path if scale is None else replace(path, scale=scale)


def _trace_phased(
    instance: Instance, strategy: Strategy, rng: np.random.Generator, cap: int
) -> RunPath:
    """Make the path from the loop's trace (samples, arm, its mean and count, every
    arm's pulls).
    """
    from discreet.simulation.compile import compile_kernel

    arms, rules = instance.arms, make_phased_rules(strategy, instance.arms)
    trace = np.zeros((64 * arms, 4 + arms))
    epsilon, pulls = strategy.trust_model.noise(strategy.epsilon), np.zeros(arms, np.int64)
    found = compile_kernel(phased_loop.run_phased)(
        rng, make_laws(instance), epsilon, rules, True, cap, pulls, trace
    )
    trace = trace[: min(found.rounds, len(trace))]
    shown = _select_rows(trace, arms, len(trace))
    bonus, evidence = _judge_phased(strategy, rules, shown)
    return _make_top_two_path(instance, strategy, shown, bonus, evidence, found, thinned=False)


def _trace_stream(
    instance: Instance, strategy: Strategy, rng: np.random.Generator, cap: int
) -> RunPath:
    """Make the path from the loop's trace, thinned: every sample is a release."""
    from discreet.simulation.compile import compile_kernel

    arms, rules = instance.arms, make_stream_rules(strategy, instance.arms)
    trace = np.zeros((min(cap, MAX_STREAM_RELEASES), 4 + arms))
    laws, pulls = (
        stream_loop.make_collected_laws(strategy, make_laws(instance)),
        np.zeros(arms, np.int64),
    )
    run = compile_kernel(stream_loop.run_stream)
    noise = compute_noise_scale(strategy)
    alone = stream_loop.count_single_steps(rules, laws, noise, cap)
    found = run(rng, laws, noise, rules, alone, cap, pulls, trace)
    if found.samples > len(trace):
        raise InvalidInputError(
            f"this run took {found.samples} samples, each of them a release; paths are drawn up "
            f"to {MAX_STREAM_RELEASES}"
        )
    shown = _select_rows(trace[: found.samples], arms, MAX_SHOWN_RELEASES)
    bonus, evidence = _judge_stream(rules, shown)
    return _make_top_two_path(instance, strategy, shown, bonus, evidence, found, thinned=True)


class _TraceRows(NamedTuple):
    """Hold every arm's last released mean and count at each row kept."""

    samples: Floats
    means: Floats
    counts: Floats
    released: Flags


def _make_top_two_path(
    instance: Instance,
    strategy: Strategy,
    shown: _TraceRows,
    bonus: Floats,
    evidence: Floats,
    found: RunResult,
    thinned: bool,
) -> RunPath:
    """Make the path of Top Two and its kin, on the scale of rewards."""
    scale = strategy.trust_model.shrink(strategy.epsilon) if is_rounded_to_bits(strategy) else 1.0
    means = 0.5 + (shown.means - 0.5) / scale
    low, high = _clip_interval(instance, means - bonus / scale, means + bonus / scale)
    return RunPath(
        strategy=strategy.name,
        threshold=_name_threshold(strategy),
        names=instance.names,
        samples=shown.samples,
        means=means,
        low=low,
        high=high,
        evidence=evidence,
        released=shown.released,
        stopped=bool(found.stopped),
        recommendation=int(found.recommendation),
        interval_words="vertical lines: the mean, plus or minus the bonus that chooses the leader",
        evidence_words="transportation cost as a share of the threshold",
        thinned=thinned,
    )


def _clip_interval(instance: Instance, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Clip intervals to what means can be: rewards from 0 to 1, if they are bounded."""
    return (np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)) if instance.is_bounded else (low, high)


def _select_rows(trace: Floats, arms: int, most: int) -> _TraceRows:
    """Return the rows from the K-th on; if they are too many, some evenly spread in log
    time.
    """
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
    return _TraceRows(trace[shown, 0], means[shown], counts[shown], released[shown])


def _judge_phased(
    strategy: Strategy, rules: PhasedRules, shown: _TraceRows
) -> tuple[Floats, Floats]:
    """Return the bonus and the evidence of every arm at every row."""
    means, counts = shown.means, shown.counts
    evidence = np.full(means.shape, math.nan)
    if rules.bonus_scale > 0:
        total = counts.sum(axis=1, keepdims=True)
        bonus = np.sqrt(rules.bonus_scale * np.log(np.maximum(total, 2)) / counts)
    else:
        bonus = make_phase_bonus(strategy)(counts)
    for row, (mean, count) in enumerate(zip(means, counts, strict=True)):
        evidence[row] = measure_phased_evidence(strategy, rules, mean, count)
    return bonus, evidence


def _judge_stream(rules: StreamRules, shown: _TraceRows) -> tuple[Floats, Floats]:
    """Return the bonus and the evidence of every arm at every row."""
    bonus, evidence = np.zeros(shown.means.shape), np.full(shown.means.shape, math.nan)
    for row, (mean, count) in enumerate(zip(shown.means, shown.counts, strict=True)):
        time = int(shown.samples[row])
        for arm in range(mean.size):
            bonus[row, arm] = compute_stream_bonus(
                rules.bonus, rules.bonus_scale, rules.bonus_table, math.log(time), int(count[arm])
            )
        evidence[row] = measure_stream_evidence(rules, mean, count, time)
    return bonus, evidence


def _trace_epochs(
    instance: Instance, strategy: Strategy, rng: np.random.Generator, cap: int
) -> RunPath:
    """Play DP-SE epoch by epoch with the functions that its loop calls, and keep what
    it released.
    """
    arms, epsilon, laws = instance.arms, float(strategy.epsilon or 0), make_laws(instance)
    state, rows = make_epochs(arms), list[_RoundRow]()
    samples, left = 0, arms
    while left > 1:
        epoch = len(rows) + 1
        length = compute_epoch_length(left, epoch, epsilon, strategy.delta)
        if length > (cap - samples) // left:
            break
        played = state.active.copy()
        epochs_loop.draw_epoch(rng, laws, epsilon, length, state)
        samples += left * length
        left = end_epoch(state, left, epoch, length, epsilon, strategy.delta)
        best = find_best_arm(state.mean, state.active)
        share = np.where(played, measure_epochs_evidence(state, best), 1.0)
        radius = np.where(played, state.radius, math.nan)
        ends = _clip_interval(instance, state.mean - radius, state.mean + radius)
        rows.append(_RoundRow(samples, state.mean.copy(), *ends, share, played))
    words = (
        "vertical lines: the mean, plus or minus the radius",
        "gap to the best arm as a share of twice the radius",
    )
    return _make_round_path(
        instance, strategy, rows, left == 1, int(find_best_arm(state.mean, state.active)), words
    )


def _trace_betting(
    instance: Instance, strategy: Strategy, rng: np.random.Generator, cap: int
) -> RunPath:
    """Play bet-se round by round with the functions that its loop calls, and keep what
    it released.
    """
    arms, laws = instance.arms, make_laws(instance)
    bets, setting = make_betting_rules(strategy, arms)
    book, pulls = new_book(arms, bets.tilt.size), np.zeros(arms, np.int64)
    beside = None if setting.kind == BITS else new_closeness_totals(arms, bets)
    ends, rows = np.full((2, arms), math.nan), list[_RoundRow]()
    now = announce_first(setting, cap, book)
    while now.winner < 0 and now.length >= 1:
        played = book.active & (not now.difference)
        betting_loop.draw_round(rng, laws, now, setting, pulls, book)
        if beside is not None:
            add_closeness(now, bets, setting, book, beside)
        now, book = settle_and_announce(now, bets, setting, cap, book)
        known = book.total[:, COUNT] > 0
        means_of_sums = book.total[:, SUM] / np.maximum(book.total[:, COUNT], 1)
        clipped = np.clip(np.where(known, means_of_sums, math.nan), setting.low, setting.high)
        released = 0.5 + (clipped - 0.5) / setting.scale  # back to the scale of rewards
        for arm in np.flatnonzero(played & known):
            more = None if beside is None else beside.select(int(arm))
            within = compute_interval(book.total[arm], strategy.delta, bets, setting, beside=more)
            ends[:, arm] = within
        share = compute_evidence_shares(book, setting)
        leader = (
            now.winner
            if now.winner >= 0
            else int(np.argmax(np.where(book.eliminated, -math.inf, book.mean)))
        )
        share[leader] = math.nan
        rows.append(_RoundRow(now.samples, released, ends[0].copy(), ends[1].copy(), share, played))
    stopped = now.winner >= 0
    words = (
        f"vertical lines: {100 * (1 - strategy.delta):.6g} % confidence intervals, for all looks "
        "together",
        "evidence against each arm: log of what bets won, divided by log(1/δ); at 1 it is out",
    )
    return _make_round_path(
        instance, strategy, rows, stopped, now.winner if stopped else find_front_runner(book), words
    )


class _RoundRow(NamedTuple):
    """Hold what a round of releases showed, by arm."""

    samples: int
    means: Floats
    low: Floats
    high: Floats
    evidence: Floats
    released: Flags


def _make_round_path(
    instance: Instance,
    strategy: Strategy,
    rows: list[_RoundRow],
    stopped: bool,
    named: int,
    words: tuple[str, str],
) -> RunPath:
    """Make the path of a run that releases in rounds; `words` say what intervals and
    evidence are.
    """
    arms = instance.arms
    return RunPath(
        strategy=strategy.name,
        threshold=_name_threshold(strategy),
        names=instance.names,
        samples=np.array([row.samples for row in rows], np.float64),
        means=np.array([row.means for row in rows]).reshape(-1, arms),
        low=np.array([row.low for row in rows]).reshape(-1, arms),
        high=np.array([row.high for row in rows]).reshape(-1, arms),
        evidence=np.array([row.evidence for row in rows]).reshape(-1, arms),
        released=np.array([row.released for row in rows], np.bool_).reshape(-1, arms),
        stopped=stopped,
        recommendation=named,
        interval_words=words[0],
        evidence_words=words[1],
        thinned=False,
    )


TRACERS = {
    "phased": _trace_phased,
    "stream": _trace_stream,
    "dp_se": _trace_epochs,
    "betting": _trace_betting,
}
"""Whose runs can be drawn; a family without an entry is simulated and run live all the
same.
"""


def _name_threshold(strategy: Strategy) -> str:
    return strategy.threshold if isinstance(strategy.threshold, str) else strategy.threshold.name
