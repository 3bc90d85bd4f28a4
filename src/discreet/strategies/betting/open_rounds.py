"""Rounds that are opened before earlier ones are released.

What is fixed when a round is opened is which arms play it, and with which odds; how
many participants it gets is fixed while it is open, from public counts and releases of
earlier rounds. Everything else (leader, rivals, centre, kind, stakes) is taken from the
book when all earlier rounds are settled. Rounds are settled in the order of opening.

A run, live or simulated, keeps a queue of open rounds, of which only the last may still
take participants, the book, and of the rounds settled so far the sum of lengths `n` and
the participants `samples` in them. With `waiting` the participants in closed rounds and
`room` how many are left below the cap:

- No round takes participants: `open_round(number, n, setting, book)`; number += 1.
- A participant comes: the arm is drawn with the odds `find_weight(arm, pending)`, which add
  up to `sum_weights(pending)`, and `pending.assigned[arm]` += 1. Then, as after `renew`, if
  `count_participants(pending) >= choose_size(pending, waiting, room, setting)`, it is
  `close_round(pending, False)`.
- The first round of the queue is closed, and its outcomes are in: it leaves the queue;
  `current = announce_closed(pending, n, samples, True, setting, book)`. The sums of the arms in
  `book.active`, with noise, go into `book.fresh`; or pending difference, if `now` says so.
  Then `winner, book = settle_closed(current, pending, bets, setting, book)`, n += current.length,
  samples += count_participants(one). If winner >= 0 that is the arm to stop with.
  Otherwise the last one, if open, is `renew(pending, n, setting, book)`.

`book.active` belongs to whoever wrote it last: `announce_closed` sets it for
`settle_closed`. Compiled code keeps the queue in arrays, a row a round, and makes an
`OpenRound` of a row when it needs one: lists of named tuples with arrays in them, from
which something is popped, corrupt memory under Numba 0.68.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from discreet._types import Flags, Ints
from discreet.jit import jit
from discreet.strategies.betting.bets import Bets, BettingSetting
from discreet.strategies.betting.book import (
    ASSIGNED,
    COUNT,
    Book,
    Round,
    count_marked,
    find_leaders,
)
from discreet.strategies.betting.rounds import announce, find_winner, plan_active, settle
from discreet.strategies.betting.schedule import (
    RoundPlan,
    choose_centre,
    choose_kind,
    plan_first,
    plan_next,
    stays_active,
)
from discreet.strategies.units import LEVELS

OPEN_SHARE = 4
"""A round stays open until it has this part of the participants in closed rounds that
are not released.
"""
MERGED_ROUNDS, NOISE_LENGTHS = 4, 4.0
"""Each release costs noise, and many small ones would cost more: where noise counts, a
round stays open until it has NOISE_LENGTHS / epsilon times the square root of the
participants who wait times the sum of its odds (there what noise costs and what waiting
for the end of the round costs are about the same), but at most MERGED_ROUNDS times the
participants who wait.
"""
WHOLE_MARGIN = 1e-9
"""Lengths that are whole numbers up to floating point count as whole."""
STORED_PLAN: dict[str, type] = {
    "odds": int,
    "length": int,
    "centre": float,
    "by_tails": bool,
    "difference": bool,
    "fine": bool,
}
STORED_ROUND: dict[str, type] = {
    "number": int,
    "favoured": int,
    "planned": int,
    "played_length": float,
    "played_participants": int,
    "closed": bool,
    "void": bool,
}
"""Names and types of the stored fields of an open round; beside them which arms are
`playing`, and how many participants each arm has (`assigned`).
"""


class OpenRound(NamedTuple):
    """A round that has been opened and is not released yet."""

    number: int
    """Rounds opened before."""
    favoured: int
    """The arm with the larger odds."""
    plan: RoundPlan
    """As it was when the round was opened: the odds stay; the rest only where rounds
    are not opened ahead, but for the centre if participants send three levels.
    """
    planned: int
    """Participants, by the latest plan."""
    played_length: float
    """Participants over the sum of odds, up to the last time that an arm was taken
    off.
    """
    played_participants: int
    """Participants up to then."""
    closed: bool
    void: bool
    """True if nobody bets on it: an arm was dropped by hand while it was under way."""
    playing: Flags
    """[arm]: whether it plays, and is released."""
    assigned: Ints
    """[arm]: participants, also of arms that were taken off."""

    def dump(self) -> dict[str, Any]:
        """Return it in plain types."""
        state = {name: kind(getattr(self, name)) for name, kind in STORED_ROUND.items()}
        state |= {name: kind(getattr(self.plan, name)) for name, kind in STORED_PLAN.items()}
        return {**state, "playing": self.playing.tolist(), "assigned": self.assigned.tolist()}


def load_open_round(state: dict[str, Any]) -> OpenRound:
    """Return what `OpenRound.dump` wrote."""
    plan = RoundPlan(**{name: kind(state[name]) for name, kind in STORED_PLAN.items()})
    about: dict[str, Any] = {name: kind(state[name]) for name, kind in STORED_ROUND.items()}
    playing, assigned = np.array(state["playing"], np.bool_), np.array(state["assigned"], np.int64)
    return OpenRound(**about, plan=plan, playing=playing, assigned=assigned)


# --- opened ---------------------------------------------------------------------------


@jit(allocates=True)
def open_round(number: int, n: int, setting: BettingSetting, book: Book) -> OpenRound:
    """Open the next round, from what is released by now; nobody is in it yet."""
    if n == 0:
        for a in range(book.active.size):
            book.active[a] = True
        plan = plan_first(book.active.size, setting, book)
    else:
        plan = plan_active(n, setting, book)
    leader, _ = find_leaders(book.active, True, book)
    planned = plan.length * (count_marked(book.active) - 1 + plan.odds)
    none = np.zeros(book.active.size, np.int64)
    return OpenRound(
        number, leader, plan, planned, 0.0, 0, False, False, np.copy(book.active), none
    )


@jit
def find_weight(a: int, pending: OpenRound) -> int:
    """Return the odds of an arm in a round; 0 if it does not play."""
    if not pending.playing[a]:
        return 0
    return pending.plan.odds if a == pending.favoured else 1


@jit
def sum_weights(pending: OpenRound) -> int:
    """Return the sum of all odds."""
    weight = 0
    for a in range(pending.playing.size):
        weight += find_weight(a, pending)
    return weight


@jit
def count_participants(pending: OpenRound) -> int:
    """Return how many participants a round has."""
    participants = 0
    for a in range(pending.assigned.size):
        participants += pending.assigned[a]
    return participants


# --- how long it stays open -----------------------------------------------------------


@jit
def choose_size(pending: OpenRound, waiting: int, room: int, setting: BettingSetting) -> int:
    """Return at how many participants an open round closes, with so many `waiting` in
    closed ones and `room` for more below the cap; it takes what would be less than one
    of each.
    """
    calm = NOISE_LENGTHS * math.sqrt(waiting * sum_weights(pending)) / setting.epsilon
    merged = min(float(MERGED_ROUNDS * waiting), calm)
    size = max(pending.planned, waiting // OPEN_SHARE, int(merged))
    most = count_participants(pending) + room
    return size if most - size >= sum_weights(pending) else most


@jit(allocates=True)
def close_round(pending: OpenRound, void: bool) -> OpenRound:
    """Close a round: nobody else is assigned in it; `void` if nobody may bet on it
    either.
    """
    return OpenRound(
        pending.number,
        pending.favoured,
        pending.plan,
        pending.planned,
        pending.played_length,
        pending.played_participants,
        True,
        pending.void or void,
        pending.playing,
        pending.assigned,
    )


@jit(allocates=True)
def renew(pending: OpenRound, n: int, setting: BettingSetting, book: Book) -> OpenRound:
    """Plan an open round anew after a release: arms that are eliminated, and not awake
    again, are taken off.
    """
    if n == 0:
        return pending
    playing, played_length = np.copy(pending.playing), pending.played_length
    before = pending.played_participants
    weight, participants = sum_weights(pending), count_participants(pending)
    for a in range(playing.size):
        if not stays_active(a, n, setting, book):
            playing[a] = False
    if count_marked(playing) < 2:
        playing = pending.playing
    elif count_marked(playing) < count_marked(pending.playing):
        played_length += (participants - before) / weight
        before = participants
    for a in range(playing.size):
        book.active[a] = playing[a]
    leader, second = find_leaders(playing, True, book)
    plan = plan_next(leader, second, n, setting, book)
    weight = count_marked(playing)
    if playing[pending.favoured]:
        weight += pending.plan.odds - 1
    lack = math.ceil(
        (plan.length - played_length) * weight - (participants - before) - WHOLE_MARGIN
    )
    planned = participants + max(lack, 0)
    return OpenRound(
        pending.number,
        pending.favoured,
        pending.plan,
        planned,
        played_length,
        before,
        pending.closed,
        pending.void,
        playing,
        pending.assigned,
    )


@jit
def measure_length(pending: OpenRound) -> int:
    """Return participants over the sum of odds, whole: what a round was for each 1 of
    the odds. None of a void one.
    """
    if pending.void:
        return 0
    more = (count_participants(pending) - pending.played_participants) / sum_weights(pending)
    return math.floor(pending.played_length + more + WHOLE_MARGIN)


# --- settled --------------------------------------------------------------------------


@jit
def announce_closed(
    pending: OpenRound, n: int, samples: int, ahead: bool, setting: BettingSetting, book: Book
) -> Round:
    """Announce a closed round as it is settled, all before it being settled, with
    lengths n and so many `samples`; unless it was opened `ahead` it is as it was
    planned: kind and stakes do not follow a cut. Write which arms play and how many
    participants each has into the book.
    """
    length, playing = measure_length(pending), count_marked(pending.playing)
    announced = length if ahead or pending.void else pending.planned // sum_weights(pending)
    for a in range(book.active.size):
        book.active[a] = pending.playing[a]
        book.fresh[a, COUNT] = pending.assigned[a]
    odds = pending.plan.odds if pending.playing[pending.favoured] else 1
    leader, second = find_leaders(book.active, True, book)
    kind, levels = pending.plan, setting.kind == LEVELS
    if announced < 1:
        kind = RoundPlan(odds, announced, kind.centre, False, False, levels)
    elif ahead:
        centre = kind.centre
        if pending.number > 0 and not levels:
            centre = choose_centre(leader, second, setting, book)
        kind = choose_kind(length, length, odds, centre, leader, second, playing, n, setting, book)
    heavy = pending.favoured if odds > 1 else -1
    by_tails = kind.by_tails and (odds == 1 or pending.favoured == leader)
    plan = RoundPlan(odds, announced, kind.centre, by_tails, kind.difference, kind.fine)
    cap, cut = samples + announced * (playing - 1 + odds), announced - length
    return announce(pending.number, n, samples, plan, heavy, -1, cap, cut, book)


@jit(allocates=True)
def settle_closed(
    current: Round, pending: OpenRound, bets: Bets, setting: BettingSetting, book: Book
) -> tuple[int, Book]:
    """Settle a round with the releases in `book.fresh`; return the arm to stop with, or
    -1, and the book, which may have grown.
    """
    book = settle(current, bets, setting, book)
    for a in range(pending.assigned.size):
        if not pending.playing[a]:
            book.total[a, ASSIGNED] += pending.assigned[a]
    return find_winner(bets, setting, book), book
