"""From one release of a phased estimator to the next: stepping, and leaping with
exactly the same counts.

Between two releases means and local counts stand still, so the leader stands still and
the rest is a deterministic path in public counts. Nothing here knows rewards.

`whole` is false when an arm's own doubling ends the phase (one episode per
arm), true when all arms must have reached their due count (one global episode).
"""

import math

from discreet._types import Floats, Ints
from discreet.jit import jit
from discreet.strategies.phased.state import (
    Board,
    count_waiting_arms,
    step_fixed,
    step_ids,
    step_level,
)
from discreet.strategies.sampling import (
    MIN_LEAP_SHARE,
    compute_priority,
    count_tracked,
    find_least_pulled,
)

ROUNDING_FACTOR = 1.0 + 1e-14
"""Covers every rounding error in the certificate, which needs an upper bound on M_b."""
FAR = math.inf


@jit
def find_leader_round(beta: float, pulls: int) -> int:
    """Return the first round after which the leader has `pulls` >= 1 tracked pulls."""
    rounds = max(int((pulls - 1) / beta), 1)
    while rounds > 1 and count_tracked(beta, rounds - 1) >= pulls:
        rounds -= 1
    while count_tracked(beta, rounds) < pulls:
        rounds += 1
    return rounds


@jit
def find_challengers_round(beta: float, pulls: int) -> int:
    """Return the first round after which challengers have taken `pulls` >= 1 pulls."""
    rounds = max(int(pulls / (1.0 - beta)), 1)
    while rounds > 1 and rounds - 1 - count_tracked(beta, rounds - 1) >= pulls:
        rounds -= 1
    while rounds - count_tracked(beta, rounds) < pulls:
        rounds += 1
    return rounds


@jit(inlined=True)
def fill_rest(board: Board, leader: int, x: float, row: int) -> None:
    """Write q_b(x) = d_b M_b(x) - x (docs, "The leap") into a row of `rest`, never too
    small: p_b(n) <= M_b iff n q_b >= 1.

    Divisions are replaced by the board's inverses; `ROUNDING_FACTOR` covers what that rounds.
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
    first, second = first * ROUNDING_FACTOR, second * ROUNDING_FACTOR
    for arm in range(tops.size):
        rest[row, arm] = tops[arm] * (second if arm == top_arm else first) - x


@jit(inlined=True)
def bound_misplaced(guess: Ints, pulls: Ints, rest: Floats, leader: int) -> float:
    """Bound D over a segment of steps, from q_b at its two ends: pulls the guess may
    have given to the wrong arm.

    q_b is convex in x, so n_b is at least the smaller of its values at the two ends.
    """
    total = 0.0
    for arm in range(guess.size):
        if arm != leader:
            most = max(rest[0, arm], rest[1, arm])
            needed = math.ceil(1.0 / most) if most > 1e-18 else FAR
            total += max(guess[arm] - max(float(pulls[arm]), needed), 0.0)
    return total


@jit(inlined=True)
def is_covered_by_line(
    board: Board, leader: int, row: int, late: float, early: float, room: float, more: float
) -> bool:
    """Return whether D < r on a long segment at once, from q_b at its two ends, where
    N_B is `late` (`row`) and `early` (row 2).

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


@jit(spliced=True)
def find_uncovered(board: Board, leader: int, beta: float, begin: int, end: int) -> int:
    """Check the certificate (docs, "The leap"). Return 0 if the greedy's counts at
    round `end` are certainly `board.guess`, else how far before `end` the first step
    lies that it does not cover.

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
    base = pulls[leader] - count_tracked(beta, begin)
    taken = end - count_tracked(beta, end)
    ratio = (1.0 - beta) / beta
    row, lines = 1, 2
    fill_rest(board, leader, 1.0 / (base + count_tracked(beta, end)), 1 - row)
    high, low = end, max(begin, end - 8)
    for _ in range(200):
        own = count_tracked(beta, low)
        fill_rest(board, leader, 1.0 / (base + own), row)
        room = taken - (high - count_tracked(beta, high)) + 1
        wrong = bound_misplaced(guess, pulls, rest, leader)
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
            first = count_tracked(beta, begin)
            fill_rest(board, leader, 1.0 / pulls[leader], 2)
            late, early = float(base + own), float(pulls[leader])
            if late > early and is_covered_by_line(
                board, leader, 1 - row, late, early, taken - ratio * own, taken - ratio * first
            ):
                return 0
        reach = min(0.7 * room * (end - low) / max(wrong, 0.25), 1e15)
        low = max(begin, min(end - int(reach), high - 1 - (end - high) // 8))
    return end - high + 1


MIN_LEAP_SAMPLES = 150
"""Samples: a phase end closer than this is stepped to."""
# --- the guess ------------------------------------------------------------------------


@jit
def find_sole_challenger(leader: int, tops: Floats) -> int:
    """Return the arm that takes every challenger pull: the lowest with numerator 0, or
    the only one of two arms; else -1.
    """
    for arm in range(tops.size):
        if arm != leader and (tops[arm] <= 0.0 or tops.size == 2):
            return arm
    return -1


@jit(inlined=True)
def count_pulls_to_end(board: Board, leader: int, x: float, whole: bool) -> float:
    """Count the challenger pulls until the first (`whole`: the last) challenger is due,
    on the static level set at 1/N_B = x.

    That is when the level falls to the arm's priority one pull before.
    """
    pulls, due, tops = board.pulls, board.due, board.tops
    level = FAR if whole else -1.0
    for arm in range(due.size):
        if arm != leader and pulls[arm] < due[arm]:
            value = compute_priority(1.0 / (due[arm] - 1), x, tops[arm])
            level = min(level, value) if whole else max(level, value)
    if level == FAR:
        return 0.0
    total = 0.0
    for arm in range(due.size):
        if arm != leader:
            rest = level * tops[arm] - x
            if rest <= 0.0:
                return FAR
            total += max(1.0 / rest - pulls[arm], 0.0)
    return total


@jit(inlined=True)
def expect_end(board: Board, leader: int, beta: float, begin: int, limit: int, whole: bool) -> int:
    """Return the round, at most `limit`, at which challengers are expected to end the
    phase: a guess, `limit` if none sooner.
    """
    low, high = float(begin), float(limit)
    rounds, slope = high, 1.0 - beta
    last_rounds, last_lack = low, FAR
    for _ in range(64):
        x = 1.0 / (board.pulls[leader] + beta * (rounds - begin))
        lack = count_pulls_to_end(board, leader, x, whole) - (1.0 - beta) * (rounds - begin)
        if lack > 0.0:
            low = rounds
        else:
            high = rounds
        if abs(lack) < 0.5 or high - low < 1.0:
            break
        if lack < FAR and last_lack < FAR and (lack < last_lack) == (rounds > last_rounds):
            slope = abs(last_lack - lack) / max(abs(rounds - last_rounds), 1e-9)
        last_rounds, last_lack = rounds, lack
        rounds = rounds + lack / slope if slope > 0.0 and lack < FAR else low
        if not low < rounds < high:
            rounds = 0.5 * (low + high)
    return min(int(rounds), limit)


@jit(inlined=True)
def fill_guess(board: Board, leader: int, beta: float, begin: int, end: int) -> bool:
    """Write the static level set at round `end` into `board.guess`: Newton on the
    level, then unit repairs.
    """
    pulls, tops, guess = board.pulls, board.tops, board.guess
    leader_pulls = count_tracked(beta, end) - count_tracked(beta, begin)
    x = 1.0 / (pulls[leader] + leader_pulls)
    goal = end - begin - leader_pulls
    level = solve_level(board, leader, x, goal)
    total = 0
    for arm in range(guess.size):
        guess[arm] = pulls[arm]
        if arm != leader:
            guess[arm] = max(pulls[arm], math.ceil(1.0 / (level * tops[arm] - x)))
            total += guess[arm] - pulls[arm]
    for _ in range(4 * guess.size + 16):
        if total == goal:
            return True
        if total < goal:
            add_pull(board, leader, x)
            total += 1
        else:
            remove_pull(board, leader, x)
            total -= 1
    return False


@jit(inlined=True)
def solve_level(board: Board, leader: int, x: float, goal: int) -> float:
    """Return the priority level whose level set holds about `goal` new pulls, rounding
    up counted as half a pull an arm.

    The number of pulls is convex and falls with the level; starting where it is too
    large, Newton never overshoots.
    """
    pulls, tops = board.pulls, board.tops
    level = 0.0
    for arm in range(pulls.size):
        if arm != leader:
            level = max(level, compute_priority(1.0 / (pulls[arm] + goal), x, tops[arm]))
    for _ in range(40):
        total, slope = 0.0, 0.0
        for arm in range(pulls.size):
            if arm != leader:
                count = 1.0 / (level * tops[arm] - x)
                if count > pulls[arm]:
                    total += count - pulls[arm] + 0.5
                    slope += tops[arm] * count * count
        if total - goal < 0.5 or slope == 0.0:
            break
        level += (total - goal) / slope
    return level


@jit
def add_pull(board: Board, leader: int, x: float) -> None:
    """Add one challenger pull to the guess: to the largest priority, ties to the lowest
    index.
    """
    guess, tops = board.guess, board.tops
    chosen, most = -1, -1.0
    for arm in range(guess.size):
        if arm != leader:
            value = compute_priority(1.0 / guess[arm], x, tops[arm])
            if value > most:
                chosen, most = arm, value
    guess[chosen] += 1


@jit
def remove_pull(board: Board, leader: int, x: float) -> None:
    """Remove the challenger pull of the guess that came last."""
    guess, pulls, tops = board.guess, board.pulls, board.tops
    chosen, least = -1, FAR
    for arm in range(guess.size):
        if arm != leader and guess[arm] > pulls[arm]:
            value = compute_priority(1.0 / (guess[arm] - 1), x, tops[arm])
            if value <= least:
                chosen, least = arm, value
    guess[chosen] -= 1


@jit(inlined=True)
def has_guess_ended(board: Board, leader: int, leader_pulls: int, whole: bool) -> bool:
    """Return whether the phase would have ended at or before the guess."""
    guess, due = board.guess, board.due
    waiting = 0
    for arm in range(guess.size):
        count = leader_pulls if arm == leader else guess[arm]
        if count < due[arm]:
            waiting += 1
        elif not whole:
            return True
    return waiting == 0


# --- leaping --------------------------------------------------------------------------


@jit(inlined=True)
def take_guess(board: Board, leader: int, beta: float, end: int) -> int:
    """Take the guess over as the counts at round `end`. Return the samples passed."""
    guess, pulls, inverse = board.guess, board.pulls, board.inverse
    begin = int(board.led[leader])
    guess[leader] = pulls[leader] + count_tracked(beta, end) - count_tracked(beta, begin)
    for arm in range(guess.size):
        pulls[arm] = guess[arm]
        inverse[arm] = 1.0 / pulls[arm]
    board.led[leader] = end
    board.led_pulls[leader] = count_tracked(beta, end)
    return end - begin


@jit
def leap_single(
    board: Board, leader: int, arm: int, beta: float, remaining: int, whole: bool
) -> int:
    """Leap when one arm takes every challenger pull: closed form, to the last sample
    before the phase end.
    """
    begin = int(board.led[leader])
    limit = begin + remaining
    own = find_leader_end(board, leader, beta, begin, remaining)
    taken = begin - count_tracked(beta, begin)
    lack = min(board.due[arm] - board.pulls[arm], remaining + 1)
    other = find_challengers_round(beta, taken + lack) if lack > 0 else begin
    end = min(own, other)
    if whole:
        idle = count_waiting_arms(board) - int(own > begin) - int(other > begin)
        end = limit + 1 if idle > 0 else max(own, other)
    end = min(end - 1, limit)
    for other in range(board.pulls.size):
        board.guess[other] = board.pulls[other]
    board.guess[arm] += end - count_tracked(beta, end) - taken
    return take_guess(board, leader, beta, end)


@jit
def find_leader_end(board: Board, leader: int, beta: float, begin: int, remaining: int) -> int:
    """Return the round at which the leader's own due count is reached; past the cap if
    that comes first.
    """
    lack = min(board.due[leader] - board.pulls[leader], remaining + 1)
    if lack <= 0:
        return begin
    return find_leader_round(beta, count_tracked(beta, begin) + lack)


@jit(spliced=True)
def leap_fixed(board: Board, leader: int, beta: float, remaining: int, whole: bool) -> int:
    """Leap towards the phase end without passing it. Return the samples passed, 0 if
    the end is near or nothing is certified.
    """
    if not MIN_LEAP_SHARE <= beta <= 1.0 - MIN_LEAP_SHARE:
        return 0
    single = find_sole_challenger(leader, board.tops)
    if single >= 0:
        return leap_single(board, leader, single, beta, remaining, whole)
    begin = int(board.led[leader])
    limit = begin + remaining
    own = find_leader_end(board, leader, beta, begin, remaining)
    if not whole:
        limit = min(limit, own)
    if limit - begin < MIN_LEAP_SAMPLES:
        return 0
    end = expect_end(board, leader, beta, begin, limit, whole)
    if whole:
        end = min(max(end, own), limit)
    margin = int((0.5 * board.pulls.size + 2.0) / (1.0 - beta)) + 1
    if end in (limit, own):
        end -= 1
    else:
        end -= margin
    for _ in range(8):
        if end - begin < MIN_LEAP_SAMPLES // 2:
            return 0
        if fill_guess(board, leader, beta, begin, end):
            moved = try_landing(board, leader, beta, begin, end, limit, whole)
            if moved > 0:
                return moved
            if moved < 0:
                end -= margin
                margin *= 4
                continue
        end = begin + (end - begin) // 2
    return 0


@jit(spliced=True)
def try_landing(
    board: Board, leader: int, beta: float, begin: int, end: int, limit: int, whole: bool
) -> int:
    """Certify the guess and land, moving it on by single challenger pulls while only
    its last steps are uncovered.

    Samples passed; -1 if the guess lies beyond the phase end or the cap, 0 if it is not
    certified.
    """
    arms = board.guess.size
    base = board.pulls[leader] - count_tracked(beta, begin)
    for _ in range(arms + 2):
        if end > limit or has_guess_ended(board, leader, base + count_tracked(beta, end), whole):
            return -1
        gap = find_uncovered(board, leader, beta, begin, end)
        if gap == 0:
            return take_guess(board, leader, beta, end)
        if gap * (1.0 - beta) > 4 * arms + 16:
            return 0
        end = find_challengers_round(beta, end - count_tracked(beta, end) + 1)
        add_pull(board, leader, 1.0 / (base + count_tracked(beta, end - 1)))
    return 0


@jit
def leap_level(board: Board, remaining: int, whole: bool) -> int:
    """Leap for uniform, elimination and LUCB: the water level rises to one pull before
    the phase end, or the cap.
    """
    pulls, due, members = board.pulls, board.due, board.members
    last = -1
    for arm in range(pulls.size):
        if pulls[arm] < due[arm]:
            if not members[arm]:
                if whole:
                    last = -1
                    break  # an arm nobody pulls: the phase never ends
            elif last < 0 or (due[arm] >= due[last] if whole else due[arm] < due[last]):
                last = arm
    if last >= 0:
        steps = -1
        for arm in range(pulls.size):
            if members[arm]:
                level = due[last] - (1 if arm > last else 0)
                steps += max(level - pulls[arm], 0)
        if steps <= remaining:
            for arm in range(pulls.size):
                if members[arm]:
                    level = due[last] - (1 if arm >= last else 0)
                    pulls[arm] = max(pulls[arm], level)
            return steps
    raise_level(board, remaining)
    return remaining


@jit
def raise_level(board: Board, steps: int) -> None:
    """Give `steps` pulls to the members, always to the least pulled."""
    pulls, members = board.pulls, board.members
    low = int(pulls[find_least_pulled(members, pulls)])
    high = low + steps + 1
    while high - low > 1:
        level = (low + high) // 2
        total = 0
        for arm in range(pulls.size):
            if members[arm]:
                total += max(level - pulls[arm], 0)
        if total <= steps:
            low = level
        else:
            high = level
    left = steps
    for arm in range(pulls.size):
        if members[arm] and pulls[arm] < low:
            left -= low - pulls[arm]
            pulls[arm] = low
    for arm in range(pulls.size):
        if left > 0 and members[arm] and pulls[arm] == low:
            pulls[arm] += 1
            left -= 1


# --- from one release to the next -----------------------------------------------------


@jit(spliced=True)
def travel(
    board: Board, leader: int, beta: float, ids: bool, leaping: bool, limit: int, whole: bool
) -> tuple[int, int]:
    """Sample until a phase ends or `limit` samples are taken. Return the arm whose pull
    ended it or -1, and the samples.

    `leader` is -1 for the rules that keep `board.members` level. Leaping changes the
    time it takes and nothing else; IDS has no closed-form tracking and always steps.
    """
    ended, done = -1, 0
    while ended < 0 and done < limit:
        steps = limit - done
        if leaping and not ids:
            if leader >= 0:
                done += leap_fixed(board, leader, beta, steps, whole)
            else:
                done += leap_level(board, steps, whole)
            steps = min(limit - done, MIN_LEAP_SAMPLES)
        if leader < 0:
            ended, stepped = step_level(board, steps, whole)
        elif ids:
            ended, stepped = step_ids(board, leader, steps, whole)
        else:
            ended, stepped = step_fixed(board, leader, beta, steps, whole)
        done += stepped
    return ended, done
