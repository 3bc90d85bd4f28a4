"""Characteristic times from their definitions, by cutting planes: slow, obvious, and
nothing like theory.py.

The value of sup over ω of inf over alternatives is the limit of linear programs: each
alternative found so far is a cut; the alternative that is worst for the present ω
becomes the next one.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import rel_entr

FloatArray = NDArray[np.float64]
Divergence = Callable[[float, FloatArray], FloatArray]


def kl(p: float, q: FloatArray) -> FloatArray:
    return np.asarray(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def d_epsilon(p: float, q: FloatArray, epsilon: float) -> FloatArray:
    """The infimum over r between p and q, by ever finer grids."""
    low, high = np.full_like(q, p), q.copy()
    for _ in range(12):
        r = low + (high - low) * np.linspace(0, 1, 21)[:, np.newaxis]
        values = epsilon * np.abs(p - r) + rel_entr(r, q) + rel_entr(1 - r, 1 - q)
        at = values.argmin(axis=0)
        columns = np.arange(len(q))
        low, high = r[np.maximum(at - 1, 0), columns], r[np.minimum(at + 1, 20), columns]
    return np.asarray(values.min(axis=0))


def worst_move(
    low: float, high: float, cost: Callable[[FloatArray], FloatArray]
) -> tuple[float, float]:
    """The m in [low, high] of least cost and that cost, by ever finer grids."""
    for _ in range(8):
        m = np.linspace(low, high, 401)
        values = cost(m)
        at = int(np.nanargmin(values))
        low, high = float(m[max(at - 1, 0)]), float(m[min(at + 1, 400)])
    return float(m[at]), float(values[at])


def pair_cost(
    means: list[float], weights: FloatArray, best: int, a: int, d: Divergence
) -> Callable[[FloatArray], FloatArray]:
    return lambda m: weights[best] * d(means[best], m) + weights[a] * d(means[a], m)


def time_by_cuts(
    means: list[float], divergences: list[Divergence], tolerance: float = 2e-7
) -> float:
    """T = 1/value, where an alternative costs the least of Σ_a ω_a d(μ_a, λ_a) over
    these divergences d.
    """
    best = int(np.argmax(means))
    weights, rows, attained, unit = np.full(len(means), 1 / len(means)), [], 0.0, 0.0
    for _ in range(200):
        value = np.inf
        for a in set(range(len(means))) - {best}:
            for d in divergences:
                move, cost = worst_move(
                    means[a], means[best], pair_cost(means, weights, best, a, d)
                )
                value = min(value, cost)
                row = np.zeros(len(means) + 1)
                row[best], row[a] = (-float(d(means[c], np.array([move]))[0]) for c in (best, a))
                row[-1] = 1
                if np.isfinite(row).all():  # leaving a cut out only widens the bracket
                    rows.append(row)
        attained = max(attained, value)
        unit = unit or value  # the solver's tolerances are absolute: let its numbers be about 1
        scaled = np.array(rows)
        scaled[:, :-1] /= unit
        solved = linprog(
            np.r_[np.zeros(len(means)), -1.0],
            A_ub=scaled,
            b_ub=np.zeros(len(rows)),
            A_eq=[np.r_[np.ones(len(means)), 0.0]],
            b_eq=[1.0],
            bounds=[(1e-9, 1)] * len(means) + [(0, None)],
        )
        if -solved.fun * unit - attained <= tolerance * attained:
            return float(1 / attained)
        weights = np.maximum(solved.x[:-1], 1e-12)
    raise AssertionError("the cuts did not close the gap")
