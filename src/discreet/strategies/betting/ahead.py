"""Rounds that are opened before earlier ones are released.

What is fixed when a round is opened is who plays it, and with which odds; how many
people it gets is fixed while it is open, from public counts and releases of earlier
rounds. Everything else (leader, rivals, centre, kind, stakes) is taken from the book
when all earlier rounds are settled. Rounds are settled in the order of opening.

A run, live or simulated, keeps a queue of flights, of which only the last may be open,
the book, and of the rounds settled so far the sum of lengths `n`, the people `samples`
in them, and whether the last one was a margin, `again`. With `waiting` the people in
closed flights and `room` how many are left below the cap:

- Nobody is open: `flight = open_flight(number, n, again, setting, book)`; number += 1.
- A person comes: the arm is drawn with the odds `weight_in(arm, flight)`, which add up
  to `weight_of(flight)`, and `flight.dealt[arm]` += 1. Then, as after `renew`, if
  `people_of(flight) >= size_of(flight, waiting, room, setting)`, it is
  `close(flight, False)`.
- The first flight of the queue is closed, and its outcomes are in: it leaves the queue;
  `now = round_of(flight, n, samples, again, True, bets, setting, book)`. The sums of
  the arms in `book.active`, with noise, go into `book.fresh`; or one margin
  (`release_margin`), if `now` says so. Then
  `found, book = settle_flight(now, flight, bets, setting, book)`, n += now.length,
  samples += people_of(flight), again = now.margin. If found >= 0 that is the arm to
  stop with. Otherwise the open one is `renew(flight, n, again, setting, book)`.

`book.active` belongs to whoever wrote it last: `round_of` sets it for `settle_flight`.
Compiled code keeps the queue in arrays, a row a flight, and makes a `Flight` of a row
when it needs one: lists of named tuples with arrays in them, from which something is
popped, corrupt memory under Numba 0.68.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet.arrays import Flags, Ints
from discreet.leaf import leaf
from discreet.strategies.betting.book import COUNT, PULLS, Book, Round, count, leaders
from discreet.strategies.betting.plan import Plan, first_plan, kind_of, next_plan
from discreet.strategies.betting.rounds import announce, plan_next
from discreet.strategies.betting.settle import settle, winner
from discreet.strategies.betting.tilts import Bets, Setting
from discreet.strategies.betting.who import everyone_out, overslept
from discreet.strategies.units import LEVELS

SHARE = 4
"""A round stays open until it has a SHARE-th of the people in closed rounds that are
not released.
"""
MERGE, CALM = 4, 4.0
"""Each release costs noise, and many small ones would cost more: where noise counts, a
round stays open until it has CALM / epsilon times the square root of the people who
wait times the sum of its odds (there what noise costs and what waiting for the end of
the round costs are about the same), but at most MERGE times the people who wait.
"""
WHOLE = 1e-9
"""Lengths that are whole numbers up to floating point count as whole."""


class Flight(NamedTuple):
    """A round that has been opened and is not released yet."""

    number: int
    """Rounds opened before."""
    heavy: int
    """The arm with the larger odds."""
    plan: Plan
    """As it was when the round was opened: the odds stay; the rest only where rounds
    are not opened ahead, but for the centre if people send three levels.
    """
    planned: int
    """People, by the latest plan."""
    lasted: float
    """People over the sum of odds, up to the last time that an arm was taken off."""
    since: int
    """People up to then."""
    closed: bool
    void: bool
    """Whether nobody bets on it: an arm was dropped by hand while it was under way."""
    playing: Flags
    """[arm]: who plays, and is released."""
    dealt: Ints
    """[arm]: people, also of arms that were taken off."""


# --- opened ---------------------------------------------------------------------------


@leaf(allocates=True)
def open_flight(number: int, n: int, again: bool, setting: Setting, book: Book) -> Flight:
    """The next round, from what is released by now; nobody is in it yet."""
    if n == 0:
        for a in range(book.active.size):
            book.active[a] = True
        plan = first_plan(book.active.size, setting, book)
    else:
        plan = plan_next(n, again, setting, book)
    leader, _ = leaders(book.active, True, book)
    planned = plan.length * (count(book.active) - 1 + plan.odds)
    none = np.zeros(book.active.size, np.int64)
    return Flight(number, leader, plan, planned, 0.0, 0, False, False, np.copy(book.active), none)


@leaf
def weight_in(a: int, flight: Flight) -> int:
    """The odds of an arm in the coins of a round; 0 if it does not play."""
    if not flight.playing[a]:
        return 0
    return flight.plan.odds if a == flight.heavy else 1


@leaf
def weight_of(flight: Flight) -> int:
    """The sum of all odds."""
    weight = 0
    for a in range(flight.playing.size):
        weight += weight_in(a, flight)
    return weight


@leaf
def people_of(flight: Flight) -> int:
    """Everybody dealt in a round."""
    people = 0
    for a in range(flight.dealt.size):
        people += flight.dealt[a]
    return people


# --- how long it stays open -----------------------------------------------------------


@leaf
def size_of(flight: Flight, waiting: int, room: int, setting: Setting) -> int:
    """At how many people an open round closes, with so many `waiting` in closed ones
    and `room` for more below the cap; it takes what would be less than one of each.
    """
    calm = CALM * math.sqrt(waiting * weight_of(flight)) / setting.epsilon
    quiet = min(float(MERGE * waiting), calm)
    size, most = max(flight.planned, waiting // SHARE, int(quiet)), people_of(flight) + room
    return size if most - size >= weight_of(flight) else most


@leaf(allocates=True)
def close(flight: Flight, void: bool) -> Flight:
    """Nobody else is dealt in it; `void` if nobody may bet on it either."""
    return Flight(
        flight.number,
        flight.heavy,
        flight.plan,
        flight.planned,
        flight.lasted,
        flight.since,
        True,
        flight.void or void,
        flight.playing,
        flight.dealt,
    )


@leaf(allocates=True)
def renew(flight: Flight, n: int, again: bool, setting: Setting, book: Book) -> Flight:
    """An open round after a release: arms that are out, and not awake again, are taken
    off, and its size is planned anew.
    """
    if n == 0:
        return flight
    playing, lasted, since = np.copy(flight.playing), flight.lasted, flight.since
    everyone, weight, people = everyone_out(book), weight_of(flight), people_of(flight)
    for a in range(playing.size):
        if not everyone and book.out[a] and not overslept(a, n, setting, book):
            playing[a] = False
    if count(playing) < 2:
        playing = flight.playing
    elif count(playing) < count(flight.playing):
        lasted, since = lasted + (people - since) / weight, people
    for a in range(playing.size):
        book.active[a] = playing[a]
    leader, second = leaders(playing, True, book)
    pulls = max(int(book.total[second, PULLS]), 1) if setting.top_two else n
    odd = again or flight.plan.odds > 1
    plan = next_plan(leader, second, count(playing), pulls, odd, setting, book)
    weight = count(playing)
    if playing[flight.heavy]:
        weight += flight.plan.odds - 1
    lack = math.ceil((plan.length - lasted) * weight - (people - since) - WHOLE)
    return Flight(
        flight.number,
        flight.heavy,
        flight.plan,
        people + max(lack, 0),
        lasted,
        since,
        flight.closed,
        flight.void,
        playing,
        flight.dealt,
    )


@leaf
def length_of(flight: Flight) -> int:
    """People over the sum of odds at their coins, whole: what a round was for each 1 of
    the odds. None of a void one.
    """
    if flight.void:
        return 0
    more = (people_of(flight) - flight.since) / weight_of(flight)
    return math.floor(flight.lasted + more + WHOLE)


# --- settled --------------------------------------------------------------------------


@leaf(allocates=True)
def round_of(
    flight: Flight,
    n: int,
    samples: int,
    again: bool,
    ahead: bool,
    bets: Bets,
    setting: Setting,
    book: Book,
) -> Round:
    """A closed round as it is settled, all before it being settled, with lengths n and
    so many `samples`; unless it was opened `ahead` it is as it was planned. Who plays
    and how many were dealt what goes into the book.
    """
    length, playing = length_of(flight), count(flight.playing)
    for a in range(book.active.size):
        book.active[a] = flight.playing[a]
        book.fresh[a, COUNT] = flight.dealt[a]
    plan, odds = flight.plan, flight.plan.odds if flight.playing[flight.heavy] else 1
    leader, second = leaders(book.active, True, book)
    number, levels = flight.number, setting.kind == LEVELS
    centre, dear, margin, fine = plan.centre, plan.dear, plan.margin, plan.fine
    if ahead and length > 0:
        kind = kind_of(length, odds, leader, second, playing, number, n, again, setting, book)
        dear, margin, fine = kind.dear, kind.margin, kind.fine
        centre = plan.centre if levels else kind.centre
    elif length < 1:
        dear, margin, fine = False, False, levels
    new = Plan(odds, length, centre, dear, margin, fine)
    heavy = flight.heavy if odds > 1 else -1
    cap = samples + length * (playing - 1 + odds)
    return announce(number, n, samples, new, heavy, -1, bets, setting, cap, book)


@leaf(allocates=True)
def settle_flight(
    now: Round, flight: Flight, bets: Bets, setting: Setting, book: Book
) -> tuple[int, Book]:
    """Settle a round with the releases in `book.fresh`: the arm to stop with, or -1,
    and the book, which may have grown.
    """
    book = settle(now, bets, setting, book)
    for a in range(flight.dealt.size):
        if not flight.playing[a]:
            book.total[a, PULLS] += flight.dealt[a]
    return winner(bets, setting, book), book
