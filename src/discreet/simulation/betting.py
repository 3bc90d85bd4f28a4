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
from discreet.jit import leaf
from discreet.simulation.engine import Outcome, Outcomes, Runner, no_trace, one_by_one
from discreet.simulation.laws import (
    Generator,
    Laws,
    draw_for,
    draw_gaussian,
    draw_sent,
    send,
    success,
)
from discreet.strategies.betting.bets import (
    BettingRules,
    Setting,
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

BY_PERSON = True
"""Arms may drift, see `engine.runner_of`."""


@leaf(inlined=True)
def draw_noise(rng: Generator, now: Round, setting: Setting) -> float:
    """Discrete Laplace or Gaussian noise in units; none without a collector who adds
    it.
    """
    if setting.epsilon == math.inf:
        return 0.0
    if setting.sigma > 0:
        return draw_gaussian(rng, setting.sigma)
    p = -math.expm1(-setting.epsilon / setting.grid if now.fine else -setting.epsilon)
    return float(rng.geometric(p) - rng.geometric(p))


@leaf
def draw_round(
    rng: Generator, laws: Laws, now: Round, setting: Setting, pulls: Ints, book: Book
) -> None:
    """The releases of a round into `book.fresh`."""
    people, weight = now.length * now.weight, now.weight
    for a in range(pulls.size):
        if book.active[a]:
            odds = find_odds(a, now)
            dealt = people if odds == weight else rng.binomial(people, odds / weight)
            people -= dealt
            weight -= odds
            book.fresh[a, COUNT] = dealt
            pulls[a] += dealt
            if not now.fine:
                book.fresh[a, SUM] = rng.binomial(dealt, sent(laws.mean[a], setting))
            else:
                total, near = draw_sent(rng, laws, a, dealt, now, setting)
                book.fresh[a, SUM], book.fresh[a, CLOSENESS] = total, near
            if not now.difference:
                add_noise(rng, a, now, setting, book)
    if now.difference:
        release_one(rng, now, setting, book)


@leaf(inlined=True)
def add_noise(rng: Generator, a: int, now: Round, setting: Setting, book: Book) -> None:
    """What is released about an arm, from the sums in units."""
    book.fresh[a, SUM] += draw_noise(rng, now, setting)
    if now.fine:
        book.fresh[a, CLOSENESS] += draw_noise(rng, now, setting)
        book.fresh[a, SUM] /= setting.grid
        book.fresh[a, CLOSENESS] /= setting.grid


@leaf
def release_one(rng: Generator, now: Round, setting: Setting, book: Book) -> None:
    """One number for both arms, or two, from the sums in units."""
    noise, near = draw_noise(rng, now, setting), 0.0
    if now.fine:
        for a in range(book.active.size):
            if book.active[a]:
                book.fresh[a, SUM] /= setting.grid
                near += book.fresh[a, CLOSENESS]
        near = (near + draw_noise(rng, now, setting)) / setting.grid
        noise /= setting.grid
    release_difference(noise, near, now, book)


@leaf
def sent(chance: float, setting: Setting) -> float:
    """The chance of a bit that a person sends: randomised where nobody is trusted."""
    return min(max(0.5 + setting.scale * (chance - 0.5), 0.0), 1.0)


@leaf
def draw_people(
    rng: Generator, laws: Laws, now: Round, setting: Setting, pulls: Ints, book: Book
) -> None:
    """The same person by person, for arms that drift."""
    for a in range(pulls.size):
        book.fresh[a, SUM] = 0.0
        book.fresh[a, COUNT] = 0.0
        book.fresh[a, CLOSENESS] = 0.0
    bump = make_bump(now.centre, setting.grid)
    for person in range(now.samples, now.samples + now.length * now.weight):
        arm = flip(rng.random() * now.weight, now, book)
        book.fresh[arm, COUNT] += 1
        pulls[arm] += 1
        if now.fine:
            units, near = send(rng, draw_for(rng, laws, arm, person), bump, setting)
            book.fresh[arm, SUM] += units
            book.fresh[arm, CLOSENESS] += near
        elif rng.random() < sent(success(laws, arm, person), setting):
            book.fresh[arm, SUM] += 1
    if now.difference:
        release_one(rng, now, setting, book)
        return
    for a in range(pulls.size):
        if book.active[a]:
            add_noise(rng, a, now, setting, book)


@leaf
def flip(coin: float, now: Round, book: Book) -> int:
    """The arm on which a coin between 0 and the sum of all odds falls."""
    arm = now.leader
    for a in range(book.active.size):
        if book.active[a]:
            arm = a
            coin -= find_odds(a, now)
            if coin < 0:
                break
    return arm


@leaf
def note(trace: Floats, rounds: int, samples: int, length: int, book: Book) -> None:
    """State after a round, as far as `trace` has rows: samples, arms not out, batch,
    rounds, then released means.
    """
    if rounds <= trace.shape[0]:
        trace[rounds - 1, 0] = samples
        trace[rounds - 1, 1] = book.eliminated.size - count_marked(book.eliminated)
        trace[rounds - 1, 2] = length
        trace[rounds - 1, 3] = rounds
        for a in range(book.eliminated.size):
            trace[rounds - 1, 4 + a] = book.mean[a]


@leaf(allocates=True)
def run_betting(
    rng: Generator, laws: Laws, rules: BettingRules, cap: int, pulls: Ints, trace: Floats
) -> Outcome:
    """One run; writes `pulls` and `trace`.

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
            draw_people(rng, laws, now, rules.setting, pulls, book)
        length = now.length
        now, book = settle_and_announce(now, rules.bets, rules.setting, cap, book)
        note(trace, now.number, now.samples, length, book)
    stopped = now.winner >= 0
    return Outcome(
        now.samples, now.winner if stopped else find_front_runner(book), stopped, now.number
    )


def make_runner(strategy: Strategy, laws: Laws, cap: int, blocks: bool) -> Runner:
    """bet-se on these laws."""
    from discreet.simulation.compile import compiled

    arms = laws.mean.size
    rules, run, none = make_betting_rules(strategy, arms), compiled(run_betting), no_trace(arms)
    return one_by_one(lambda rng, pulls: run(rng, laws, rules, cap, pulls, none))


DEALT, TOLD, HITS = 0, 1, 2
"""Columns of the people of a round, by arm: all, those told in time, and of these the
successes if they were drawn one by one.
"""


class Late(NamedTuple):
    """What a run with a calendar came to."""

    found: Outcome
    days: float
    """From the first day of enrolment to the end."""
    in_flight: int
    """People assigned and not released then."""


@leaf
def draws_bits(laws: Laws, delay: Delay) -> bool:
    """Whether outcomes are drawn person by person."""
    return laws.drift.kind != STEADY or delay.failures != delay.days


@leaf
def draw_delay(rng: Generator, delay: Delay, hit: bool) -> float:
    """Days until a person's outcome is told; infinite if it never is."""
    if delay.never > 0 and rng.random() < delay.never:
        return math.inf
    days = delay.days if hit else delay.failures
    return days * rng.standard_exponential() if delay.kind == EXPONENTIAL else days


@leaf
def enrol(
    rng: Generator, laws: Laws, calendar: Calendar, arm: int, person: int, people: Ints
) -> float:
    """Count a person who was dealt this arm; days until the outcome is known, if only
    as missing.
    """
    bits, hit = draws_bits(laws, calendar.delay), True
    if bits:
        hit = rng.random() < success(laws, arm, person)
    days = draw_delay(rng, calendar.delay, hit)
    people[arm, DEALT] += 1
    if days <= calendar.deadline:
        people[arm, TOLD] += 1
        if bits and hit:
            people[arm, HITS] += 1
    return calendar.deadline if calendar.clock else min(days, calendar.deadline)


@leaf
def draw_sure(
    rng: Generator, reward: int, count: int, now: Round, setting: Setting
) -> tuple[int, int]:
    """(sum, closeness), in units, of what so many people send whose reward is 0 or
    1.
    """
    if not now.fine:
        return rng.binomial(count, sent(reward, setting)), 0
    if setting.kind != LEVELS:
        return count * reward * setting.grid, 0
    middle = rng.binomial(count, setting.level_error)
    top = (setting.level_error + setting.scale * reward) / (1 - setting.level_error)
    high = rng.binomial(count - middle, min(top, 1.0))
    return middle * round(now.centre * setting.grid) + high * setting.grid, middle * setting.grid


@leaf
def draw_arm(
    rng: Generator,
    laws: Laws,
    delay: Delay,
    arm: int,
    people: Ints,
    now: Round,
    setting: Setting,
    book: Book,
) -> None:
    """What the people of an arm send, into `book.fresh`: outcomes in time, and the
    worst one for all others.
    """
    ones = people[arm, HITS]
    if draws_bits(laws, delay):
        total, near = draw_sure(rng, 1, ones, now, setting)
    elif now.fine:
        ones = people[arm, TOLD]
        total, near = draw_sent(rng, laws, arm, ones, now, setting)
    else:
        ones = people[arm, TOLD]
        total, near = rng.binomial(ones, sent(laws.mean[arm], setting)), 0
    rest, close = draw_sure(rng, 0, people[arm, DEALT] - ones, now, setting)
    book.fresh[arm, COUNT] = people[arm, DEALT]
    book.fresh[arm, SUM], book.fresh[arm, CLOSENESS] = total + rest, near + close


@leaf
def release_people(
    rng: Generator, laws: Laws, delay: Delay, people: Ints, now: Round, setting: Setting, book: Book
) -> None:
    """The releases of a round with these people into `book.fresh`."""
    for a in range(book.active.size):
        if book.active[a]:
            draw_arm(rng, laws, delay, a, people, now, setting, book)
            if not now.difference:
                add_noise(rng, a, now, setting, book)
    if now.difference:
        release_one(rng, now, setting, book)


@leaf
def fill_round(
    rng: Generator,
    laws: Laws,
    calendar: Calendar,
    clock: float,
    now: Round,
    people: Ints,
    book: Book,
) -> float:
    """Deal a round that opens at this time; the time of its release."""
    for a in range(people.shape[0]):
        people[a, DEALT] = people[a, TOLD] = people[a, HITS] = 0
    known = clock
    for i in range(now.length * now.weight):
        arm = flip(rng.random() * now.weight, now, book)
        at = clock + (i + 1) / calendar.accrual
        known = max(known, at + enrol(rng, laws, calendar, arm, now.samples + i, people))
    return known


@leaf(allocates=True)
def run_waiting(
    rng: Generator, laws: Laws, rules: BettingRules, calendar: Calendar, cap: int, pulls: Ints
) -> Late:
    """One run in which nobody is assigned until a round is released; writes `pulls`."""
    book, people = new_book(pulls.size, rules.bets.tilt.size), np.zeros((pulls.size, 3), np.int64)
    pulls[:] = 0
    clock = 0.0
    now = announce_first(rules.setting, cap, book)
    while now.winner < 0 and now.length >= 1:
        clock = fill_round(rng, laws, calendar, clock, now, people, book)
        pulls += people[:, DEALT]
        release_people(rng, laws, calendar.delay, people, now, rules.setting, book)
        now, book = settle_and_announce(now, rules.bets, rules.setting, cap, book)
    stopped = now.winner >= 0
    best = now.winner if stopped else find_front_runner(book)
    return Late(Outcome(now.samples, best, stopped, now.number), clock, 0)


class Trip(NamedTuple):
    """A round that is opened and not released yet, with its people."""

    opened: OpenRound
    people: Ints
    """[arm, column]"""
    known: Floats
    """[arm]: when the last of their outcomes is known."""


class Desk(NamedTuple):
    """Where a run with continuous enrolment stands: the rounds that are settled."""

    settled: int
    n: int
    """Sum of all their lengths."""
    samples: int
    """Their people."""
    winner: int
    """The arm to stop with; -1 if there is none."""


@leaf(allocates=True)
def new_trip(number: int, desk: Desk, setting: Setting, book: Book) -> Trip:
    """The next round, opened from what is released by now, after so many others."""
    opened = open_round(number, desk.n, setting, book)
    arms = book.active.size
    return Trip(opened, np.zeros((arms, 3), np.int64), np.zeros(arms))


@leaf
def deal(coin: float, opened: OpenRound) -> int:
    """The arm on which a coin between 0 and the sum of all odds falls."""
    arm = opened.favoured
    for a in range(opened.playing.size):
        if opened.playing[a]:
            arm = a
            coin -= find_weight(a, opened)
            if coin < 0:
                break
    return arm


@leaf
def enrol_until(
    rng: Generator,
    laws: Laws,
    calendar: Calendar,
    release: float,
    size: int,
    assigned: int,
    trip: Trip,
) -> int:
    """Deal people in an open round until it has this size or an earlier one is
    released; how many are assigned then.
    """
    opened, people = trip.opened, count_participants(trip.opened)
    weight = sum_weights(opened)
    while people < size:
        at = (assigned + 1) / calendar.accrual
        if release <= at:
            break
        arm = deal(rng.random() * weight, opened)
        opened.assigned[arm] += 1
        known = at + enrol(rng, laws, calendar, arm, assigned, trip.people)
        trip.known[arm] = max(trip.known[arm], known)
        assigned += 1
        people += 1
    return assigned


@leaf
def ready(trip: Trip, clock: bool) -> float:
    """When a closed round can be released: nothing is released of arms that were taken
    off, so their outcomes are not waited for; but the clock is everybody's.
    """
    last = 0.0
    for a in range(trip.known.size):
        if clock or trip.opened.playing[a]:
            last = max(last, trip.known[a])
    return last


@leaf(allocates=True)
def settle_trip(
    rng: Generator,
    laws: Laws,
    rules: BettingRules,
    delay: Delay,
    trip: Trip,
    desk: Desk,
    book: Book,
) -> tuple[Desk, Book]:
    """Release a closed round, and settle it."""
    bets, setting, opened = rules.bets, rules.setting, trip.opened
    now = announce_closed(opened, desk.n, desk.samples, True, setting, book)
    release_people(rng, laws, delay, trip.people, now, setting, book)
    winner, book = settle_closed(now, opened, bets, setting, book)
    n, samples = desk.n + now.length, desk.samples + count_participants(opened)
    return Desk(desk.settled + 1, n, samples, winner), book


@leaf(allocates=True)
def run_continuous(
    rng: Generator, laws: Laws, rules: BettingRules, calendar: Calendar, cap: int, pulls: Ints
) -> Late:
    """One run in which rounds are opened ahead, and everybody who comes is assigned;
    writes `pulls`.

    A release that comes at the moment when somebody does is known before that person is
    dealt. A round is opened for its first person. `closed` has all rounds that were
    closed, from `desk.settled` on those that wait (to take the first one off a list of
    tuples with arrays corrupts memory in Numba).
    """
    book, desk = new_book(pulls.size, rules.bets.tilt.size), Desk(0, 0, 0, -1)
    last, is_open = new_trip(0, desk, rules.setting, book), True
    closed: list[Trip] = []
    assigned, waiting, clock = 0, 0, 0.0
    while True:
        queued = len(closed) > desk.settled
        due = max(clock, ready(closed[desk.settled], calendar.clock)) if queued else np.inf
        if is_open:
            size = choose_size(last.opened, waiting, cap - assigned, rules.setting)
            assigned = enrol_until(rng, laws, calendar, due, size, assigned, last)
            if count_participants(last.opened) >= size:
                closed.append(last)
                waiting, is_open = waiting + count_participants(last.opened), False
                continue
        elif assigned < cap and (assigned + 1) / calendar.accrual < due:
            last, is_open = new_trip(len(closed), desk, rules.setting, book), True
            continue
        if not queued:
            break
        clock, trip = due, closed[desk.settled]
        desk, book = settle_trip(rng, laws, rules, calendar.delay, trip, desk, book)
        waiting -= count_participants(trip.opened)
        if desk.winner >= 0:
            break
        if is_open:
            opened = renew(last.opened, desk.n, rules.setting, book)
            last = Trip(opened, last.people, last.known)
    if is_open:
        closed.append(last)
    pulls[:] = 0
    for trip in closed:
        pulls += trip.opened.assigned
    stopped = desk.winner >= 0
    best = desk.winner if stopped else find_front_runner(book)
    return Late(Outcome(assigned, best, stopped, desk.settled), clock, assigned - desk.samples)


def make_late_runner(strategy: Strategy, laws: Laws, cap: int, calendar: Calendar) -> Runner:
    """bet-se on these laws, with this calendar."""
    from discreet.simulation.compile import compiled

    rules = make_betting_rules(strategy, laws.mean.size)
    run = compiled(run_continuous if calendar.continuous else run_waiting)

    def play(rng: Generator, outcomes: Outcomes, row: int) -> None:
        late = run(rng, laws, rules, calendar, cap, outcomes.pulls[row])
        outcomes.write(row, late.found)
        outcomes.days[row], outcomes.in_flight[row] = late.days, late.in_flight

    return Runner(1, play)
