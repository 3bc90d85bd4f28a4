"""Differentially private best-arm identification: what is possible, how to plan it, how to run it."""

from discreet.audit import Correctness, audit_correctness, hard_instances
from discreet.bounding import Bounds, PrivateBounds, bounds
from discreet.engine import MayNotStopWarning, simulate
from discreet.errors import DiscreetError, InvalidInputError, MissingExtraError, NoConvergenceError, TiedBestArmError
from discreet.instance import Bernoulli, Beta, Discrete, Instance, benchmarks
from discreet.plan import GapScenarios, Plan, gap_scenarios, plan
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
from discreet.study import Study
from discreet.sweep import run_study
from discreet.theory import CharacteristicTime
from discreet.version import __version__

__all__ = [
    "Bernoulli",
    "Beta",
    "Bounds",
    "CharacteristicTime",
    "Correctness",
    "CustomBonus",
    "CustomGrid",
    "CustomThreshold",
    "DiscreetError",
    "Discrete",
    "GapScenarios",
    "Instance",
    "InvalidInputError",
    "MayNotStopWarning",
    "MissingExtraError",
    "NoConvergenceError",
    "Plan",
    "PrivateBounds",
    "Recommendation",
    "Results",
    "Strategy",
    "Study",
    "TiedBestArmError",
    "__version__",
    "adap_tt",
    "adap_tt_star",
    "audit_correctness",
    "benchmarks",
    "bet_se",
    "bounds",
    "ctb_tt",
    "dp_se",
    "gap_scenarios",
    "gauss_tt",
    "hard_instances",
    "plan",
    "recommended",
    "run_study",
    "simulate",
    "ttucb",
    "ttucb_batched",
]
