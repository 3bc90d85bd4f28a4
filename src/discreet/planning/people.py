"""How many people simulated trials took."""

import math
from dataclasses import dataclass

import numpy as np

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
    samples = results.samples.astype(np.float64)
    if capped or results.stopped.all():
        quantiles = np.quantile(samples, [0.5, 0.1, 0.9, 1.0]).tolist()
        return People(float(samples.mean()), *quantiles)
    longest = np.where(results.stopped, samples, np.inf)
    found = np.quantile(longest, [0.5, 0.1, 0.9, 1.0], method="inverted_cdf").tolist()
    quantiles = [q if q < math.inf else None for q in found]
    mean = float(samples[results.stopped].mean()) if results.stopped.any() else None
    return People(mean, *quantiles)
