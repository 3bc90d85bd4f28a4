"""Differentially private best-arm identification: what is possible, how to plan it, how to run it."""

from discreet.bounds import Bounds, PrivateBounds, bounds
from discreet.errors import DiscreetError, InvalidInputError, NoConvergenceError, TiedBestArmError
from discreet.instance import Bernoulli, Beta, Discrete, Instance, benchmarks
from discreet.theory import CharacteristicTime

__version__ = "0.1.0.dev0"

__all__ = [
    "Bernoulli",
    "Beta",
    "Bounds",
    "CharacteristicTime",
    "DiscreetError",
    "Discrete",
    "Instance",
    "InvalidInputError",
    "NoConvergenceError",
    "PrivateBounds",
    "TiedBestArmError",
    "__version__",
    "benchmarks",
    "bounds",
]
