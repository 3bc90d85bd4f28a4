"""The public counts of a phased run, and stepping from one release to the next.

`whole` is false when an arm's own doubling ends the phase (one episode per arm), true
when all arms must have reached their due count (one global episode).
"""

from typing import NamedTuple

import numpy as np

from discreet.arrays import Flags, Floats, Ints
from discreet.leaf import leaf
from discreet.strategies.top_two import (
    FILTER,
    challenger,
    ids_share,
    improved_cost,
    least_pulled,
    priority,
    tracks_leader,
)
from discreet.strategies.tracking import UNITS, most_owed, owe


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


@leaf(allocates=True)
def new_board(arms: int) -> Board:
    """A board with every arm pulled once."""
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
        np.full(arms, UNITS, np.int64),
        np.zeros(arms),
    )


@leaf
def waiting_arms(board: Board) -> int:
    """Arms short of their due count."""
    pulls, due = board.pulls, board.due
    waiting = 0
    for arm in range(pulls.size):
        if pulls[arm] < due[arm]:
            waiting += 1
    return waiting


@leaf
def steady_challenger(leader: int, board: Board) -> tuple[int, float]:
    """`challenger`, and a bound: while 1/N of it plus 1/N of the leader exceeds that,
    it stays the challenger.

    Until a release every priority only falls, and those of the others are at most the
    second largest now. `FILTER` covers what the product with an inverse and the bound
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
        value = priority(inverse[arm], inverse_leader, tops[arm])
        if value > first:
            chosen, first, second = arm, value, first
        elif value > second:
            second = value
        skip = second * FILTER
    return chosen, second * tops[chosen] / FILTER


@leaf
def step_fixed(board: Board, leader: int, beta: float, steps: int, whole: bool) -> tuple[int, int]:
    """Top Two with a fixed share for at most `steps` samples: (arm whose pull ended the
    phase or -1, samples).

    The path of every sample: what changes is kept in local variables, and a challenger
    is asked for again only when another one may have come up (`steady_challenger`).
    """
    pulls, due, inverse = board.pulls, board.due, board.inverse
    for arm in range(pulls.size):
        board.inverse_tops[arm] = 1.0 / board.tops[arm] if board.tops[arm] > 0.0 else np.inf
    led, led_pulls = board.led[leader], board.led_pulls[leader]
    waiting = waiting_arms(board) if whole else 1
    rival, bound, ended, done = leader, np.inf, -1, 0
    count = own = pulls[leader]
    inverse_rival = inverse_own = inverse[leader]
    due_rival = due_own = due[leader]
    while done < steps and ended < 0:
        if tracks_leader(led, led_pulls, beta):
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
                rival, bound = steady_challenger(leader, board)
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


@leaf
def step_ids(board: Board, leader: int, steps: int, whole: bool) -> tuple[int, int]:
    """Top Two with IDS: the tracked share is the sum of beta_n = N_C / (N_C + N_B) over
    the rounds of this leader.
    """
    pulls, due, inverse = board.pulls, board.due, board.inverse
    waiting = waiting_arms(board) if whole else 1
    ended, done = -1, 0
    while done < steps and ended < 0:
        arm = challenger(leader, inverse, board.tops)
        board.share[leader] += ids_share(pulls[arm], pulls[leader])
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


@leaf
def step_improved(
    board: Board,
    leader: int,
    beta: float,
    ids: bool,
    two_variance: float,
    steps: int,
    whole: bool,
) -> tuple[int, int]:
    """Top Two with the TCI challenger, with a fixed share or IDS."""
    pulls, inverse = board.pulls, board.inverse
    waiting = waiting_arms(board) if whole else 1
    ended, done = -1, 0
    while done < steps and ended < 0:
        arm = leader
        if ids or not tracks_leader(board.led[leader], board.led_pulls[leader], beta):
            arm = improved_challenger(leader, board, two_variance)
        if ids:
            board.share[leader] += ids_share(pulls[arm], pulls[leader])
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


@leaf
def improved_challenger(leader: int, board: Board, two_variance: float) -> int:
    """TCI challenger: smallest W + log N, ties to the lowest index."""
    inverse = board.inverse
    chosen, least = -1, 0.0
    for arm in range(inverse.size):
        if arm != leader:
            value = improved_cost(
                board.tops[arm], inverse[leader], inverse[arm], two_variance, board.pulls[arm]
            )
            if chosen < 0 or value < least:
                chosen, least = arm, value
    return chosen


@leaf
def step_owed(board: Board, best: int, samples: int, steps: int, whole: bool) -> tuple[int, int]:
    """Track-and-Stop: the allocation stands still until the next release, the least
    share of every arm falls with time.
    """
    pulls, due = board.pulls, board.due
    waiting = waiting_arms(board) if whole else 1
    ended, done = -1, 0
    while done < steps and ended < 0:
        owe(best, board.weights, samples + done, board.owed)
        arm = most_owed(board.owed, pulls)
        done += 1
        pulls[arm] += 1
        if pulls[arm] == due[arm]:
            waiting -= 1
            if waiting == 0:
                ended = arm
    return ended, done


@leaf
def step_level(board: Board, steps: int, whole: bool) -> tuple[int, int]:
    """Always pull the least pulled member: uniform, elimination and LUCB between two
    releases.
    """
    pulls, due, members = board.pulls, board.due, board.members
    waiting = waiting_arms(board) if whole else 1
    ended, done = -1, 0
    while done < steps and ended < 0:
        arm = least_pulled(members, pulls)
        done += 1
        pulls[arm] += 1
        if pulls[arm] == due[arm]:
            waiting -= 1
            if waiting == 0:
                ended = arm
    return ended, done
