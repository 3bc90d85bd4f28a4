"""Tracking in closed form, and the certificate that lets a phased run leap (docs, "The
leap").

A "round" L is the number of rounds led by the leader so far. N^B_B = floor(beta L) + 1
for L >= 1 (`tracked`), the challengers have taken L - tracked(L) pulls.
"""

import math

from discreet.arrays import Floats, Ints
from discreet.leaf import leaf
from discreet.strategies.phased.counts import Board
from discreet.strategies.top_two import tracked

INFLATE = 1.0 + 1e-14
"""Covers every rounding error in the certificate, which needs an upper bound on M_b."""
FAR = math.inf


@leaf
def rounds_for_leader(beta: float, pulls: int) -> int:
    """The first round after which the leader has `pulls` >= 1 tracked pulls."""
    rounds = max(int((pulls - 1) / beta), 1)
    while rounds > 1 and tracked(beta, rounds - 1) >= pulls:
        rounds -= 1
    while tracked(beta, rounds) < pulls:
        rounds += 1
    return rounds


@leaf
def rounds_for_challengers(beta: float, pulls: int) -> int:
    """The first round after which challengers have taken `pulls` >= 1 pulls."""
    rounds = max(int(pulls / (1.0 - beta)), 1)
    while rounds > 1 and rounds - 1 - tracked(beta, rounds - 1) >= pulls:
        rounds -= 1
    while rounds - tracked(beta, rounds) < pulls:
        rounds += 1
    return rounds


@leaf(inlined=True)
def fill_rest(board: Board, leader: int, x: float, row: int) -> None:
    """q_b(x) = d_b M_b(x) - x (docs, "The leap") into a row of `rest`, never too small:
    p_b(n) <= M_b iff n q_b >= 1.

    Divisions are replaced by the board's inverses; `INFLATE` covers what that rounds.
    """
    tops, rest, inverse_guess, inverse_tops = (
        board.tops,
        board.rest,
        board.inverse_guess,
        board.inverse_tops,
    )
    first, second, top_arm = -1.0, -1.0, -1
    for arm in range(tops.size):
        if arm != leader:
            value = (inverse_guess[arm] + x) * inverse_tops[arm]
            if value > first:
                first, second, top_arm = value, first, arm
            elif value > second:
                second = value
    first, second = first * INFLATE, second * INFLATE
    for arm in range(tops.size):
        rest[row, arm] = tops[arm] * (second if arm == top_arm else first) - x


@leaf(inlined=True)
def misplaced(guess: Ints, pulls: Ints, rest: Floats, leader: int) -> float:
    """D over a segment of steps, from q_b at its two ends: pulls the guess may have
    given to the wrong arm.

    q_b is convex in x, so n_b is at least the smaller of its values at the two ends.
    """
    total = 0.0
    for arm in range(guess.size):
        if arm != leader:
            most = max(rest[0, arm], rest[1, arm])
            needed = math.ceil(1.0 / most) if most > 1e-18 else FAR
            total += max(guess[arm] - max(float(pulls[arm]), needed), 0.0)
    return total


@leaf(inlined=True)
def line_covers(
    board: Board, leader: int, row: int, late: float, early: float, room: float, more: float
) -> bool:
    """D < r on a long segment at once, from q_b at its two ends, where N_B is `late`
    (`row`) and `early` (row 2).

    With u = late - N_B the chord of q_b bounds T_b - n_b by a fraction of two linear
    functions of u: falling, or convex (then below its chord), or concave (then below
    its tangent at u = 0). The sum of these lines is tested against a line below r,
    `room` and then `more` at the two ends; so both ends are enough.
    """
    guess, pulls, rest = board.guess, board.pulls, board.rest
    span = late - early
    near, far, slack = 0.0, 0.0, 0.01 + 1e-13 * more
    for arm in range(guess.size):
        if arm != leader and guess[arm] > pulls[arm]:
            count = float(guess[arm])
            now, then = max(rest[row, arm], 1e-18), max(rest[2, arm], 1e-18)
            slack += 1e-13 * count * (1.0 + count / late)
            value = count - 1.0 / now
            near += max(value, 0.0)
            slope = (then - now) * late * early / span
            if slope > now * late:
                value += span * slope / (now * late * now * late)
            elif slope > 0.0:
                value = count - 1.0 / then
            far += max(value, 0.0)
    return near + slack < room and far * (1.0 + 1e-9) + slack < more


@leaf(spliced=True)
def uncovered(board: Board, leader: int, beta: float, begin: int, end: int) -> int:
    """The certificate (docs, "The leap"): 0 if the greedy's counts at round `end` are
    certainly `board.guess`.

    Otherwise how far before `end` the first step lies that it does not cover. The last
    steps go in short segments, in which rounding to whole pulls matters; then one line
    usually covers the rest. Where it does not, segments go on: D grows about linearly
    going back from `end`, so the next one reaches as far as this promises.
    """
    guess, pulls, rest = board.guess, board.pulls, board.rest
    for arm in range(guess.size):
        if arm != leader:
            board.inverse_guess[arm] = 1.0 / guess[arm]
            board.inverse_tops[arm] = 1.0 / board.tops[arm]
    base = pulls[leader] - tracked(beta, begin)
    taken = end - tracked(beta, end)
    ratio = (1.0 - beta) / beta
    row, lines = 1, 2
    fill_rest(board, leader, 1.0 / (base + tracked(beta, end)), 1 - row)
    high, low = end, max(begin, end - 8)
    for _ in range(200):
        own = tracked(beta, low)
        fill_rest(board, leader, 1.0 / (base + own), row)
        room = taken - (high - tracked(beta, high)) + 1
        wrong = misplaced(guess, pulls, rest, leader)
        if wrong >= room:
            if high - low == 1:
                break
            low = high - max((high - low) // 4, 1)
            continue
        if low == begin:
            return 0
        high, row = low, 1 - row
        room = taken - (high - own) + 1
        if lines > 0 and room > 2 * guess.size:
            lines -= 1
            first = tracked(beta, begin)
            fill_rest(board, leader, 1.0 / pulls[leader], 2)
            late, early = float(base + own), float(pulls[leader])
            if late > early and line_covers(
                board, leader, 1 - row, late, early, taken - ratio * own, taken - ratio * first
            ):
                return 0
        reach = min(0.7 * room * (end - low) / max(wrong, 0.25), 1e15)
        low = max(begin, min(end - int(reach), high - 1 - (end - high) // 8))
    return end - high + 1
