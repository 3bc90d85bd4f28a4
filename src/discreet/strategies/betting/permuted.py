"""Rounds dealt in permuted blocks: how long the blocks are, which places are left, and
what every bet pays for them (`discreet.strategies.betting.blocks`).
"""

import math
from functools import lru_cache

import numpy as np

from discreet.arrays import Floats
from discreet.strategies.betting.ahead import Flight, people_of, weight_in, weight_of
from discreet.strategies.betting.bets import slopes
from discreet.strategies.betting.blocks import log_prices
from discreet.strategies.betting.book import (
    COST,
    FOLLOWER,
    LEADER,
    STEP,
    Round,
    bet_centre,
    ratio_of,
    sides_of,
)
from discreet.strategies.betting.tilts import Bets, Setting


def shortest(block: int, weight: int) -> int:
    """The length of a block of at least so many people."""
    return max(1, math.ceil(block / weight))


def blocks_of(length: int, least: int) -> list[int]:
    """The lengths of a round's blocks; the last one takes the rest."""
    full = max(length // least, 1)
    return [least] * (full - 1) + [length - least * (full - 1)]


def begun(flight: Flight, block: int) -> list[int]:
    """The lengths of the blocks in which somebody was dealt, or would be next."""
    weight, people = weight_of(flight), people_of(flight)
    found, before = [], 0
    for length in blocks_of(flight.planned // weight, shortest(block, weight)):
        if before * weight < max(people, 1):
            found.append(length)
        before += length
    return found


def places(flight: Flight, block: int) -> list[int]:
    """[row]: places of the block that nobody has yet, in which the next person is
    dealt.
    """
    weight, people = weight_of(flight), people_of(flight)
    length, least = flight.planned // weight, shortest(block, weight)
    before = people // (least * weight)
    end = least * (before + 1) if before + 1 < length // least else length
    rows = range(flight.dealt.size)
    return [end * weight_in(row, flight) - int(flight.dealt[row]) for row in rows]


def priced(now: Round, lengths: list[int], bets: Bets, setting: Setting) -> Round:
    """The round with the price of its blocks in every bet. One that was cut pays for
    the whole block.
    """
    centre, price = bet_centre(now, setting), np.zeros((sides_of(now), bets.tilt.size))
    for side in range(price.shape[0]):
        if side == LEADER and now.odds == 1:
            price[LEADER] = price[FOLLOWER]
            now.tails[LEADER] = now.tails[FOLLOWER]
            break
        own, rival = (now.odds, 1) if side == LEADER else (1, now.odds)
        ratio = ratio_of(side, now)
        steps = _steps(tuple(bets.fall.tolist()), tuple(bets.rise.tolist()), centre, ratio)
        for length in set(lengths):
            block = length * now.weight, length * own, length * rival, centre
            price[side] += lengths.count(length) * _log_prices(*block, steps.tobytes())
            if now.dear:
                tails = _log_prices(*block, now.tails[side, :, STEP].tobytes())
                now.tails[side, :, COST] += lengths.count(length) * tails
    return now._replace(price=price)


@lru_cache(maxsize=256)
def _steps(
    falls: tuple[float, ...], rises: tuple[float, ...], centre: float, ratio: float
) -> Floats:
    """What a person of the arm stakes, for each tilt."""
    pairs = zip(falls, rises, strict=True)
    return np.array([slopes(fall, rise, centre, ratio).step for fall, rise in pairs])


@lru_cache(maxsize=256)
def _log_prices(people: int, own: int, rival: int, centre: float, stakes: bytes) -> Floats:
    """What `log_prices` says, kept: rounds of a trial mostly have the same blocks."""
    return log_prices(people, own, rival, centre, np.frombuffer(stakes))
