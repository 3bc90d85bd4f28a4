"""The public counts of a phased run, and stepping from one release to the next.

Leaf functions like decision.py's, compiled by kernel.py. `whole` is false when an arm's own doubling ends the phase
(one episode per arm), true when all arms must have reached their due count (one global episode).
"""

from typing import NamedTuple

import numpy as np

from discreet.decision import Flags, Floats, Ints, challenger, ids_share, least_pulled, tracks_leader


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
    """[3, arm]: q_b of the certificate at the two ends of a segment, and where the leap begins."""


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
    )


def waiting_arms(board: Board) -> int:
    """Arms short of their due count."""
    pulls, due = board.pulls, board.due
    waiting = 0
    for arm in range(pulls.size):
        if pulls[arm] < due[arm]:
            waiting += 1
    return waiting


def step_fixed(board: Board, leader: int, beta: float, steps: int, whole: bool) -> tuple[int, int]:
    """Top Two with a fixed share for at most `steps` samples: (arm whose pull ended the phase or -1, samples)."""
    pulls, due, inverse, tops = board.pulls, board.due, board.inverse, board.tops
    led, led_pulls = board.led[leader], board.led_pulls[leader]
    waiting = waiting_arms(board) if whole else 1
    ended, done = -1, 0
    while done < steps and ended < 0:
        if tracks_leader(led, led_pulls, beta):
            arm = leader
            led_pulls += 1
        else:
            arm = challenger(leader, inverse, tops)
        led += 1
        done += 1
        count = pulls[arm] + 1
        pulls[arm] = count
        inverse[arm] = 1.0 / count
        if count == due[arm]:
            waiting -= 1
            if waiting == 0:
                ended = arm
    board.led[leader] = led
    board.led_pulls[leader] = led_pulls
    return ended, done


def step_ids(board: Board, leader: int, steps: int, whole: bool) -> tuple[int, int]:
    """Top Two with IDS: the tracked share is the sum of beta_n = N_C / (N_C + N_B) over the rounds of this leader."""
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


def step_level(board: Board, steps: int, whole: bool) -> tuple[int, int]:
    """Always pull the least pulled member: uniform, elimination and LUCB between two releases."""
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
