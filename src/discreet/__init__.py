"""Differentially private best-arm identification: what is possible, how to plan it, how to run it."""

from discreet.bounding import Bounds, PrivateBounds, bounds
from discreet.engine import MayNotStopWarning, simulate
from discreet.errors import DiscreetError, InvalidInputError, NoConvergenceError, TiedBestArmError
from discreet.instance import Bernoulli, Beta, Discrete, Instance, benchmarks
from discreet.results import Results
from discreet.strategy import (
    CustomBonus,
    CustomGrid,
    CustomThreshold,
    Recommendation,
    Strategy,
    adap_tt,
    adap_tt_star,
    bet_se,
    ctb_tt,
    dp_se,
    gauss_tt,
    recommended,
    ttucb,
    ttucb_batched,
)
from discreet.theory import CharacteristicTime
from discreet.version import __version__

__all__ = [
    "Bernoulli",
    "Beta",
    "Bounds",
    "CharacteristicTime",
    "CustomBonus",
    "CustomGrid",
    "CustomThreshold",
    "DiscreetError",
    "Discrete",
    "Instance",
    "InvalidInputError",
    "MayNotStopWarning",
    "NoConvergenceError",
    "PrivateBounds",
    "Recommendation",
    "Results",
    "Strategy",
    "TiedBestArmError",
    "__version__",
    "adap_tt",
    "adap_tt_star",
    "benchmarks",
    "bet_se",
    "bounds",
    "ctb_tt",
    "dp_se",
    "gauss_tt",
    "recommended",
    "simulate",
    "ttucb",
    "ttucb_batched",
]
