"""The price of a permuted block: what a bet pays for arms that were dealt from places
in random order, not by coins. The docs page "Betting elimination" has the proof.
"""

import math

import numpy as np

from discreet.arrays import Floats, Ints

TAIL = 45.0
"""Binomials are cut where less than 2 exp(-TAIL) is left of them."""
NEAR = 1e-3
"""The dearest number of ones is looked for where chances are so much of the largest."""
MARGIN = 2e-10
"""Added to a log price; the errors of rounding are below."""


def log_price(people: int, own: int, rival: int, centre: float, d: float) -> float:
    """log C of a block with `own` places of the arm and `rival` of its rival, the same
    for one bet; see `log_prices`.
    """
    return float(log_prices(people, own, rival, centre, np.array([d]))[0])


def log_prices(people: int, own: int, rival: int, centre: float, d: Floats) -> Floats:
    """log C for each stake d of a person of the arm; one of the rival stakes d own /
    rival. At most 1e-9 too high, never too low.

    C is the largest q(M) / b(M) over the number M of ones in the block: b(M) is
    binomial, q(M) a sum of three binomials. The ratio is log-concave in M (Newton's
    inequalities), so that what is found near the middle bounds the rest.
    """
    rest = people - own - rival
    e = d * (own / rival)
    parts = [
        _binomial(own, centre * (1 - d * (1 - centre))),
        _binomial(rival, centre * (1 + e * (1 - centre))),
        _binomial(rest, np.full(d.size, centre)),
    ]
    begin = np.sum([low for low, _ in parts], axis=0)
    length = sum(mass.shape[1] for _, mass in parts)
    size = 1 << (length - 1).bit_length()
    wave = np.prod([np.fft.rfft(mass, size) for _, mass in parts], axis=0)
    law = np.fft.irfft(wave, size)
    ones, usual = _near(people, centre)
    at = ones[None, :] - begin[:, None]
    inside = np.where((at >= 0) & (at < length), np.take_along_axis(law, at % size, 1), 0.0)
    ratio = np.log(np.maximum(inside, 1e-300)) - np.log(usual)
    return _highest(ratio, int(ones[0]), people - int(ones[-1])) + MARGIN


def _highest(ratio: Floats, below: int, above: int) -> Floats:
    """The most that concave rows can reach, `below` steps before their first value and
    `above` after their last included.
    """
    last = ratio.shape[1] - 1
    half = (last + 1) // 2
    left = (ratio[:, 0] - ratio[:, half]) / half
    right = (ratio[:, last] - ratio[:, last - half]) / half
    beyond = np.maximum(
        ratio[:, 0] + below * np.maximum(left, 0), ratio[:, last] + above * np.maximum(right, 0)
    )
    highest: Floats = np.maximum(ratio.max(axis=1), beyond)
    return highest


def _near(people: int, centre: float) -> tuple[Ints, Floats]:
    """Numbers of ones around the mean of a binomial, and their chances."""
    (low,), (mass,) = _binomial(people, np.array([centre]))
    likely = np.flatnonzero(mass > NEAR * mass.max())
    first, last = max(likely[0] - 1, 0), min(likely[-1] + 1, mass.size - 1)
    return np.arange(low + first, low + last + 1), mass[first : last + 1]


def _binomial(number: int, chance: Floats) -> tuple[Ints, Floats]:
    """Binomial chances, a row for each `chance`: where the row begins, and the row.

    Ratios of neighbours are added up from the mode outwards, so that errors are small
    where chances are large.
    """
    spread = number * float((chance * (1 - chance)).max())
    reach = math.ceil(TAIL / 3 + math.sqrt(TAIL * TAIL / 9 + 2 * TAIL * spread)) + 1
    mode = np.minimum(np.floor((number + 1) * chance), number).astype(np.int64)
    low = np.maximum(mode - reach, 0)
    width = min(2 * reach + 1, number + 1)
    low = np.minimum(low, number + 1 - width)
    ones = low[:, None] + np.arange(width - 1)
    step = np.log((number - ones) / (ones + 1)) + np.log(chance / (1 - chance))[:, None]
    up = np.cumsum(np.where(ones >= mode[:, None], step, 0.0), axis=1)
    down = np.cumsum(np.where(ones < mode[:, None], step, 0.0)[:, ::-1], axis=1)[:, ::-1]
    mass = np.zeros((chance.size, width))
    mass[:, 1:] = up
    mass[:, :-1] -= down
    mass = np.exp(mass)
    return low, mass / mass.sum(axis=1, keepdims=True)
