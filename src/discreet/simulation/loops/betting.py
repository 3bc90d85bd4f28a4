"""A simulated run of betting elimination: where its coins, outcomes and noise are
drawn.

Where a reward is rounded at random to a bit, the sum of a batch is binomial, whatever
the law. Drawn in each round, for each active arm in turn: the number of people that the
coins deal it, the sum of their bits, then two geometric variables for the noise (for a
difference: once, at the end); Gaussian noise takes these and a uniform variable, until
it is accepted. Outcomes that are numbers have their sum and closeness drawn
by `discreet.simulation.numbers`, and a noise for each of the two. Under a drift, for
each person in turn: the coin and the outcome; then the noise of each arm.
"""

import math

from discreet.arrays import Floats, Ints
from discreet.drift import STEADY
from discreet.leaf import leaf
from discreet.simulation.laws import Generator, Laws, draw_for, draw_gaussian, success
from discreet.simulation.numbers import draw_sent, send
from discreet.simulation.outcome import Outcome, no_trace
from discreet.simulation.runner import Runner, one_by_one
from discreet.strategies.betting.bets import (
    BettingRules,
    Setting,
    make_betting_rules,
    make_bump,
)
from discreet.strategies.betting.book import (
    COUNT,
    NEAR,
    SUM,
    Book,
    Round,
    count_marked,
    find_front_runner,
    new_book,
    odds_of,
)
from discreet.strategies.betting.rounds import (
    announce_first,
    release_difference,
    settle_and_announce,
)
from discreet.strategies.strategy import Strategy

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
            odds = odds_of(a, now)
            dealt = people if odds == weight else rng.binomial(people, odds / weight)
            people -= dealt
            weight -= odds
            book.fresh[a, COUNT] = dealt
            pulls[a] += dealt
            if not now.fine:
                book.fresh[a, SUM] = rng.binomial(dealt, sent(laws.mean[a], setting))
            else:
                total, near = draw_sent(rng, laws, a, dealt, now, setting)
                book.fresh[a, SUM], book.fresh[a, NEAR] = total, near
            if not now.difference:
                add_noise(rng, a, now, setting, book)
    if now.difference:
        release_one(rng, now, setting, book)


@leaf(inlined=True)
def add_noise(rng: Generator, a: int, now: Round, setting: Setting, book: Book) -> None:
    """What is released about an arm, from the sums in units."""
    book.fresh[a, SUM] += draw_noise(rng, now, setting)
    if now.fine:
        book.fresh[a, NEAR] += draw_noise(rng, now, setting)
        book.fresh[a, SUM] /= setting.grid
        book.fresh[a, NEAR] /= setting.grid


@leaf
def release_one(rng: Generator, now: Round, setting: Setting, book: Book) -> None:
    """One number for both arms, or two, from the sums in units."""
    noise, near = draw_noise(rng, now, setting), 0.0
    if now.fine:
        for a in range(book.active.size):
            if book.active[a]:
                book.fresh[a, SUM] /= setting.grid
                near += book.fresh[a, NEAR]
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
        book.fresh[a, NEAR] = 0.0
    bump = make_bump(now.centre, setting.grid)
    for person in range(now.samples, now.samples + now.length * now.weight):
        arm = flip(rng.random() * now.weight, now, book)
        book.fresh[arm, COUNT] += 1
        pulls[arm] += 1
        if now.fine:
            units, near = send(rng, draw_for(rng, laws, arm, person), bump, setting)
            book.fresh[arm, SUM] += units
            book.fresh[arm, NEAR] += near
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
            coin -= odds_of(a, now)
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
        trace[rounds - 1, 1] = book.out.size - count_marked(book.out)
        trace[rounds - 1, 2] = length
        trace[rounds - 1, 3] = rounds
        for a in range(book.out.size):
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


def runner(strategy: Strategy, laws: Laws, cap: int, blocks: bool) -> Runner:
    """bet-se on these laws."""
    from discreet.simulation.compile import compiled

    arms = laws.mean.size
    rules, run, none = make_betting_rules(strategy, arms), compiled(run_betting), no_trace(arms)
    return one_by_one(lambda rng, pulls: run(rng, laws, rules, cap, pulls, none))
