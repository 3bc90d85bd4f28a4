"""How many people simulated trials took."""

import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Flags, Floats
from discreet.results import Results


@dataclass(frozen=True)
class People:
    """How many people a trial takes; None where too many runs did not stop to say."""

    mean: float | None
    median: float | None
    q10: float | None
    q90: float | None
    longest: float | None
    """The longest of the simulated trials, which now and then is far beyond the
    others.
    """


def people_of(results: Results, capped: bool) -> People:
    """People of these trials; `capped` if they end at a maximum, as real ones would."""
    return spread_of(results.samples.astype(np.float64), results.stopped, capped)


def days_of(results: Results, capped: bool) -> People:
    """Days of these trials, counted as people are."""
    return spread_of(np.asarray(results.days), results.stopped, capped)


def spread_of(values: Floats, stopped: Flags, capped: bool) -> People:
    """How a number of each trial is spread; trials that do not end have the largest."""
    if capped or stopped.all():
        quantiles = np.quantile(values, [0.5, 0.1, 0.9, 1.0]).tolist()
        return People(float(values.mean()), *quantiles)
    longest = np.where(stopped, values, np.inf)
    found = np.quantile(longest, [0.5, 0.1, 0.9, 1.0], method="inverted_cdf").tolist()
    mean = float(values[stopped].mean()) if stopped.any() else None
    return People(mean, *[q if q < math.inf else None for q in found])
