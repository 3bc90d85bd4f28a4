"""A simulated run of betting elimination: where its coins, outcomes and noise are
drawn.

Where a reward is rounded at random to a bit, the sum of a batch is binomial, whatever
the law. Drawn in each round, for each active arm in turn: the number of people that the
coins deal it, the sum of their bits, then two geometric variables for the noise (for a
difference: once, at the end); Gaussian noise takes these and a uniform variable, until
it is accepted. Outcomes that are numbers have their sum and closeness drawn
by `discreet.simulation.laws`, and a noise for each of the two. Under a drift, for
each person in turn: the coin and the outcome; then the noise of each arm.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._types import Floats, Ints
from discreet.accrual import EXPONENTIAL, Calendar, Delay
from discreet.instances import STEADY
from discreet.jit import jit
from discreet.simulation.engine import (
    Runner,
    RunResult,
    RunResults,
    make_empty_trace,
    make_single_runner,
)
from discreet.simulation.laws import (
    Generator,
    Laws,
    compute_success_chance,
    draw_gaussian,
    draw_response,
    draw_reward,
    draw_sent_sums,
)
from discreet.strategies.betting.bets import (
    BettingRules,
    BettingSetting,
    make_betting_rules,
    make_bump,
)
from discreet.strategies.betting.book import (
    CLOSENESS,
    COUNT,
    SUM,
    Book,
    Round,
    count_marked,
    find_front_runner,
    find_odds,
    new_book,
)
from discreet.strategies.betting.open_rounds import (
    OpenRound,
    announce_closed,
    choose_size,
    count_participants,
    find_weight,
    open_round,
    renew,
    settle_closed,
    sum_weights,
)
from discreet.strategies.betting.rounds import (
    announce_first,
    release_difference,
    settle_and_announce,
)
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import LEVELS

DRAWS_PER_PARTICIPANT = True
"""Arms may drift, see `engine.select_runner`."""


@jit(inlined=True)
def draw_noise(rng: Generator, now: Round, setting: BettingSetting) -> float:
    """Draw discrete Laplace or Gaussian noise, in units. Return 0 if there is no
    collector who adds it.
    """
    if setting.epsilon == math.inf:
        return 0.0
    if setting.sigma > 0:
        return draw_gaussian(rng, setting.sigma)
    p = -math.expm1(-setting.epsilon / setting.grid if now.fine else -setting.epsilon)
    return float(rng.geometric(p) - rng.geometric(p))


@jit
def draw_round(
    rng: Generator, laws: Laws, now: Round, setting: BettingSetting, pulls: Ints, book: Book
) -> None:
    """Draw the releases of a round into `book.fresh`."""
    participants, weight = now.length * now.weight, now.weight
    for arm in range(pulls.size):
        if book.active[arm]:
            odds = find_odds(arm, now)
            assigned = participants if odds == weight else rng.binomial(participants, odds / weight)
            participants -= assigned
            weight -= odds
            book.fresh[arm, COUNT] = assigned
            pulls[arm] += assigned
            if not now.fine:
                book.fresh[arm, SUM] = rng.binomial(
                    assigned, compute_sent_chance(laws.mean[arm], setting)
                )
            else:
                total, near = draw_sent_sums(rng, laws, arm, assigned, now, setting)
                book.fresh[arm, SUM], book.fresh[arm, CLOSENESS] = total, near
            if not now.difference:
                add_noise(rng, arm, now, setting, book)
    if now.difference:
        release_pair_difference(rng, now, setting, book)


@jit(inlined=True)
def add_noise(rng: Generator, arm: int, now: Round, setting: BettingSetting, book: Book) -> None:
    """Turn an arm's sums, in units, into what is released about it."""
    book.fresh[arm, SUM] += draw_noise(rng, now, setting)
    if now.fine:
        book.fresh[arm, CLOSENESS] += draw_noise(rng, now, setting)
        book.fresh[arm, SUM] /= setting.grid
        book.fresh[arm, CLOSENESS] /= setting.grid


@jit
def release_pair_difference(
    rng: Generator, now: Round, setting: BettingSetting, book: Book
) -> None:
    """Turn the sums of two arms, in units, into the one number, or two, that are
    released.
    """
    noise, near = draw_noise(rng, now, setting), 0.0
    if now.fine:
        for arm in range(book.active.size):
            if book.active[arm]:
                book.fresh[arm, SUM] /= setting.grid
                near += book.fresh[arm, CLOSENESS]
        near = (near + draw_noise(rng, now, setting)) / setting.grid
        noise /= setting.grid
    release_difference(noise, near, now, book)


@jit
def compute_sent_chance(chance: float, setting: BettingSetting) -> float:
    """Return the chance of a bit that a participant sends: it is randomised if nobody
    is trusted.
    """
    return min(max(0.5 + setting.scale * (chance - 0.5), 0.0), 1.0)


@jit
def draw_round_by_participant(
    rng: Generator, laws: Laws, now: Round, setting: BettingSetting, pulls: Ints, book: Book
) -> None:
    """Draw the releases of a round participant by participant, for arms that drift."""
    for a in range(pulls.size):
        book.fresh[a, SUM] = 0.0
        book.fresh[a, COUNT] = 0.0
        book.fresh[a, CLOSENESS] = 0.0
    bump = make_bump(now.centre, setting.grid)
    for person in range(now.samples, now.samples + now.length * now.weight):
        arm = select_arm(rng.random() * now.weight, now, book)
        book.fresh[arm, COUNT] += 1
        pulls[arm] += 1
        if now.fine:
            units, near = draw_response(rng, draw_reward(rng, laws, arm, person), bump, setting)
            book.fresh[arm, SUM] += units
            book.fresh[arm, CLOSENESS] += near
        elif rng.random() < compute_sent_chance(compute_success_chance(laws, arm, person), setting):
            book.fresh[arm, SUM] += 1
    if now.difference:
        release_pair_difference(rng, now, setting, book)
        return
    for a in range(pulls.size):
        if book.active[a]:
            add_noise(rng, a, now, setting, book)


@jit
def select_arm(point: float, now: Round, book: Book) -> int:
    """Return the arm on which a point between 0 and the sum of all odds falls."""
    arm = now.leader
    for a in range(book.active.size):
        if book.active[a]:
            arm = a
            point -= find_odds(a, now)
            if point < 0:
                break
    return arm


@jit
def write_round_row(trace: Floats, rounds: int, samples: int, length: int, book: Book) -> None:
    """Write the state after a round into `trace`, if it has the row: samples, arms not
    eliminated, length, round, then released means.
    """
    if rounds <= trace.shape[0]:
        trace[rounds - 1, 0] = samples
        trace[rounds - 1, 1] = book.eliminated.size - count_marked(book.eliminated)
        trace[rounds - 1, 2] = length
        trace[rounds - 1, 3] = rounds
        for a in range(book.eliminated.size):
            trace[rounds - 1, 4 + a] = book.mean[a]


@jit(allocates=True)
def run_betting(
    rng: Generator, laws: Laws, rules: BettingRules, cap: int, pulls: Ints, trace: Floats
) -> RunResult:
    """Play one run. Write `pulls` and `trace`.

    The last batch before the cap is shortened to fit. A run that the cap ends names its
    front runner.
    """
    book = new_book(pulls.size, rules.bets.tilt.size)
    pulls[:] = 0
    now = announce_first(rules.setting, cap, book)
    while now.winner < 0 and now.length >= 1:
        if laws.drift.kind == STEADY:
            draw_round(rng, laws, now, rules.setting, pulls, book)
        else:
            draw_round_by_participant(rng, laws, now, rules.setting, pulls, book)
        length = now.length
        now, book = settle_and_announce(now, rules.bets, rules.setting, cap, book)
        write_round_row(trace, now.number, now.samples, length, book)
    stopped = now.winner >= 0
    return RunResult(
        now.samples, now.winner if stopped else find_front_runner(book), stopped, now.number
    )


def make_runner(strategy: Strategy, laws: Laws, cap: int, blocks: bool) -> Runner:
    """Make what plays bet-se on these laws."""
    from discreet.simulation.compile import compile_kernel

    arms = laws.mean.size
    rules, run, none = (
        make_betting_rules(strategy, arms),
        compile_kernel(run_betting),
        make_empty_trace(arms),
    )
    return make_single_runner(lambda rng, pulls: run(rng, laws, rules, cap, pulls, none))


ASSIGNED, RECORDED, SUCCESSES = 0, 1, 2
"""Columns of the participants of a round, by arm: all, those with an outcome recorded
in time, and of these the successes if they were drawn one by one.
"""


class DatedResult(NamedTuple):
    """Hold a run with a calendar."""

    result: RunResult
    days: float
    """Days from the start of enrolment to the end."""
    pipeline: int
    """Participants assigned and not released at the end."""


@jit
def is_drawn_per_participant(laws: Laws, delay: Delay) -> bool:
    """Return whether outcomes are drawn participant by participant."""
    return laws.drift.kind != STEADY or delay.failures != delay.days


@jit
def draw_delay(rng: Generator, delay: Delay, hit: bool) -> float:
    """Draw the days until a participant's outcome is recorded; infinite if it is
    missing.
    """
    if delay.never > 0 and rng.random() < delay.never:
        return math.inf
    days = delay.days if hit else delay.failures
    return days * rng.standard_exponential() if delay.kind == EXPONENTIAL else days


@jit
def enrol_participant(
    rng: Generator, laws: Laws, calendar: Calendar, arm: int, person: int, counts: Ints
) -> float:
    """Count a participant who was assigned this arm. Return the days until the outcome
    is known, if only as missing.
    """
    bits, success = is_drawn_per_participant(laws, calendar.delay), True
    if bits:
        success = rng.random() < compute_success_chance(laws, arm, person)
    days = draw_delay(rng, calendar.delay, success)
    counts[arm, ASSIGNED] += 1
    if days <= calendar.deadline:
        counts[arm, RECORDED] += 1
        if bits and success:
            counts[arm, SUCCESSES] += 1
    return calendar.deadline if calendar.clock else min(days, calendar.deadline)


@jit
def draw_known_sums(
    rng: Generator, reward: int, count: int, now: Round, setting: BettingSetting
) -> tuple[int, int]:
    """Draw the sum and the closeness, in units, that so many participants send whose
    reward is 0 or 1.
    """
    if not now.fine:
        return rng.binomial(count, compute_sent_chance(reward, setting)), 0
    if setting.kind != LEVELS:
        return count * reward * setting.grid, 0
    middle = rng.binomial(count, setting.level_error)
    top = (setting.level_error + setting.scale * reward) / (1 - setting.level_error)
    high = rng.binomial(count - middle, min(top, 1.0))
    return middle * round(now.centre * setting.grid) + high * setting.grid, middle * setting.grid


@jit
def draw_arm_sums(
    rng: Generator,
    laws: Laws,
    delay: Delay,
    arm: int,
    counts: Ints,
    now: Round,
    setting: BettingSetting,
    book: Book,
) -> None:
    """Draw what the participants of an arm send into `book.fresh`: outcomes in time,
    and the worst outcome for all others.
    """
    ones = counts[arm, SUCCESSES]
    if is_drawn_per_participant(laws, delay):
        total, near = draw_known_sums(rng, 1, ones, now, setting)
    elif now.fine:
        ones = counts[arm, RECORDED]
        total, near = draw_sent_sums(rng, laws, arm, ones, now, setting)
    else:
        ones = counts[arm, RECORDED]
        total, near = rng.binomial(ones, compute_sent_chance(laws.mean[arm], setting)), 0
    rest, close = draw_known_sums(rng, 0, counts[arm, ASSIGNED] - ones, now, setting)
    book.fresh[arm, COUNT] = counts[arm, ASSIGNED]
    book.fresh[arm, SUM], book.fresh[arm, CLOSENESS] = total + rest, near + close


@jit
def release_round(
    rng: Generator,
    laws: Laws,
    delay: Delay,
    counts: Ints,
    now: Round,
    setting: BettingSetting,
    book: Book,
) -> None:
    """Draw the releases of a round with these participants into `book.fresh`."""
    for a in range(book.active.size):
        if book.active[a]:
            draw_arm_sums(rng, laws, delay, a, counts, now, setting, book)
            if not now.difference:
                add_noise(rng, a, now, setting, book)
    if now.difference:
        release_pair_difference(rng, now, setting, book)


@jit
def fill_round(
    rng: Generator,
    laws: Laws,
    calendar: Calendar,
    clock: float,
    now: Round,
    counts: Ints,
    book: Book,
) -> float:
    """Enrol the participants of a round that opens at this time. Return the time of its
    release.
    """
    for a in range(counts.shape[0]):
        counts[a, ASSIGNED] = counts[a, RECORDED] = counts[a, SUCCESSES] = 0
    known = clock
    for i in range(now.length * now.weight):
        arm = select_arm(rng.random() * now.weight, now, book)
        at = clock + (i + 1) / calendar.accrual
        known = max(
            known, at + enrol_participant(rng, laws, calendar, arm, now.samples + i, counts)
        )
    return known


@jit(allocates=True)
def run_waiting(
    rng: Generator, laws: Laws, rules: BettingRules, calendar: Calendar, cap: int, pulls: Ints
) -> DatedResult:
    """Play one run in which nobody is assigned from the end of a round until its
    release. Write `pulls`.
    """
    book, counts = new_book(pulls.size, rules.bets.tilt.size), np.zeros((pulls.size, 3), np.int64)
    pulls[:] = 0
    clock = 0.0
    now = announce_first(rules.setting, cap, book)
    while now.winner < 0 and now.length >= 1:
        clock = fill_round(rng, laws, calendar, clock, now, counts, book)
        pulls += counts[:, ASSIGNED]
        release_round(rng, laws, calendar.delay, counts, now, rules.setting, book)
        now, book = settle_and_announce(now, rules.bets, rules.setting, cap, book)
    stopped = now.winner >= 0
    best = now.winner if stopped else find_front_runner(book)
    return DatedResult(RunResult(now.samples, best, stopped, now.number), clock, 0)


class PendingRound(NamedTuple):
    """Hold a round that is opened and not released yet, with its participants."""

    opened: OpenRound
    counts: Ints
    """[arm, column]"""
    known_at: Floats
    """[arm]: time at which the last of its outcomes is known."""


class SettledRounds(NamedTuple):
    """Count the rounds that are settled in a run with continuous enrolment."""

    number: int
    n: int
    """Sum of all their lengths."""
    samples: int
    """Their participants."""
    winner: int
    """The arm to stop with; -1 if there is none."""


@jit(allocates=True)
def open_next_round(
    number: int, settled: SettledRounds, setting: BettingSetting, book: Book
) -> PendingRound:
    """Open the next round, numbered `number`, from what is released by now."""
    opened = open_round(number, settled.n, setting, book)
    arms = book.active.size
    return PendingRound(opened, np.zeros((arms, 3), np.int64), np.zeros(arms))


@jit
def select_open_arm(point: float, opened: OpenRound) -> int:
    """Return the arm on which a point between 0 and the sum of all odds of an open
    round falls.
    """
    arm = opened.favoured
    for a in range(opened.playing.size):
        if opened.playing[a]:
            arm = a
            point -= find_weight(a, opened)
            if point < 0:
                break
    return arm


@jit
def enrol_until(
    rng: Generator,
    laws: Laws,
    calendar: Calendar,
    release: float,
    size: int,
    assigned: int,
    pending: PendingRound,
) -> int:
    """Enrol participants in an open round until it has this size or an earlier round is
    released. Return how many are assigned in all.
    """
    opened, participants = pending.opened, count_participants(pending.opened)
    weight = sum_weights(opened)
    while participants < size:
        at = (assigned + 1) / calendar.accrual
        if release <= at:
            break
        arm = select_open_arm(rng.random() * weight, opened)
        opened.assigned[arm] += 1
        known = at + enrol_participant(rng, laws, calendar, arm, assigned, pending.counts)
        pending.known_at[arm] = max(pending.known_at[arm], known)
        assigned += 1
        participants += 1
    return assigned


@jit
def compute_release_time(pending: PendingRound, clock: bool) -> float:
    """Return when a closed round can be released. Outcomes of arms that were taken off
    are not waited for, as nothing is released of them; but a scheduled release waits
    for everybody's deadline.
    """
    last = 0.0
    for a in range(pending.known_at.size):
        if clock or pending.opened.playing[a]:
            last = max(last, pending.known_at[a])
    return last


@jit(allocates=True)
def settle_pending_round(
    rng: Generator,
    laws: Laws,
    rules: BettingRules,
    delay: Delay,
    pending: PendingRound,
    settled: SettledRounds,
    book: Book,
) -> tuple[SettledRounds, Book]:
    """Release a closed round, and settle it."""
    bets, setting, opened = rules.bets, rules.setting, pending.opened
    now = announce_closed(opened, settled.n, settled.samples, True, setting, book)
    release_round(rng, laws, delay, pending.counts, now, setting, book)
    winner, book = settle_closed(now, opened, bets, setting, book)
    n, samples = settled.n + now.length, settled.samples + count_participants(opened)
    return SettledRounds(settled.number + 1, n, samples, winner), book


@jit(allocates=True)
def run_continuous(
    rng: Generator, laws: Laws, rules: BettingRules, calendar: Calendar, cap: int, pulls: Ints
) -> DatedResult:
    """Play one run in which rounds are opened ahead, and everybody who comes is
    assigned. Write `pulls`.

    A release that comes at the moment when somebody does is known before that person is
    dealt. A round is opened for its first person. `closed` has all rounds that were
    closed, from `desk.settled` on those that wait (to take the first one off a list of
    tuples with arrays corrupts memory in Numba).
    """
    book, settled = new_book(pulls.size, rules.bets.tilt.size), SettledRounds(0, 0, 0, -1)
    last, is_open = open_next_round(0, settled, rules.setting, book), True
    closed: list[PendingRound] = []
    assigned, waiting, clock = 0, 0, 0.0
    while True:
        queued = len(closed) > settled.number
        due = (
            max(clock, compute_release_time(closed[settled.number], calendar.clock))
            if queued
            else np.inf
        )
        if is_open:
            size = choose_size(last.opened, waiting, cap - assigned, rules.setting)
            assigned = enrol_until(rng, laws, calendar, due, size, assigned, last)
            if count_participants(last.opened) >= size:
                closed.append(last)
                waiting, is_open = waiting + count_participants(last.opened), False
                continue
        elif assigned < cap and (assigned + 1) / calendar.accrual < due:
            last, is_open = open_next_round(len(closed), settled, rules.setting, book), True
            continue
        if not queued:
            break
        clock, pending = due, closed[settled.number]
        settled, book = settle_pending_round(
            rng, laws, rules, calendar.delay, pending, settled, book
        )
        waiting -= count_participants(pending.opened)
        if settled.winner >= 0:
            break
        if is_open:
            opened = renew(last.opened, settled.n, rules.setting, book)
            last = PendingRound(opened, last.counts, last.known_at)
    if is_open:
        closed.append(last)
    pulls[:] = 0
    for pending in closed:
        pulls += pending.opened.assigned
    stopped = settled.winner >= 0
    best = settled.winner if stopped else find_front_runner(book)
    return DatedResult(
        RunResult(assigned, best, stopped, settled.number), clock, assigned - settled.samples
    )


def make_calendar_runner(strategy: Strategy, laws: Laws, cap: int, calendar: Calendar) -> Runner:
    """Make what plays bet-se on these laws, with this calendar."""
    from discreet.simulation.compile import compile_kernel

    rules = make_betting_rules(strategy, laws.mean.size)
    run = compile_kernel(run_continuous if calendar.continuous else run_waiting)

    def play(rng: Generator, outcomes: RunResults, row: int) -> None:
        result = run(rng, laws, rules, calendar, cap, outcomes.pulls[row])
        outcomes.write(row, result.result)
        outcomes.days[row], outcomes.pipeline[row] = result.days, result.pipeline

    return Runner(1, play)
