"""Differentially private best-arm identification: what is possible, how to plan it, how to run it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.version import __version__

if TYPE_CHECKING:
    from discreet.audit import Correctness, audit_correctness, hard_instances
    from discreet.bounding import Bounds, PrivateBounds, bounds
    from discreet.engine import MayNotStopWarning, simulate
    from discreet.errors import (
        DiscreetError,
        InvalidInputError,
        MissingExtraError,
        NoConvergenceError,
        StoreError,
        TamperedError,
        TiedBestArmError,
    )
    from discreet.instance import Bernoulli, Beta, Discrete, Instance, benchmarks
    from discreet.planning import GapScenarios, Plan, gap_scenarios, plan
    from discreet.privacy_audit import PrivacyAudit, audit_privacy
    from discreet.rehearsal import Rehearsal
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
    from discreet.trial import Trial
    from discreet.views import ArmStatus, Assignment, Batch, Status, Verification

__all__ = [
    "ArmStatus",
    "Assignment",
    "Batch",
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
    "PrivacyAudit",
    "PrivateBounds",
    "Recommendation",
    "Rehearsal",
    "Results",
    "Status",
    "StoreError",
    "Strategy",
    "Study",
    "TamperedError",
    "TiedBestArmError",
    "Trial",
    "Verification",
    "__version__",
    "adap_tt",
    "adap_tt_star",
    "audit_correctness",
    "audit_privacy",
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

_HOMES = {
    "audit": (
        "Correctness",
        "audit_correctness",
        "hard_instances",
    ),
    "bounding": (
        "Bounds",
        "PrivateBounds",
        "bounds",
    ),
    "engine": (
        "MayNotStopWarning",
        "simulate",
    ),
    "errors": (
        "DiscreetError",
        "InvalidInputError",
        "MissingExtraError",
        "NoConvergenceError",
        "StoreError",
        "TamperedError",
        "TiedBestArmError",
    ),
    "instance": (
        "Bernoulli",
        "Beta",
        "Discrete",
        "Instance",
        "benchmarks",
    ),
    "planning": (
        "GapScenarios",
        "Plan",
        "gap_scenarios",
        "plan",
    ),
    "privacy_audit": (
        "PrivacyAudit",
        "audit_privacy",
    ),
    "rehearsal": ("Rehearsal",),
    "results": ("Results",),
    "strategy": (
        "CustomBonus",
        "CustomGrid",
        "CustomThreshold",
        "Recommendation",
        "Strategy",
        "adap_tt",
        "adap_tt_star",
        "bet_se",
        "ctb_tt",
        "dp_se",
        "gauss_tt",
        "recommended",
        "ttucb",
        "ttucb_batched",
    ),
    "study": ("Study",),
    "sweep": ("run_study",),
    "theory": ("CharacteristicTime",),
    "trial": ("Trial",),
    "views": (
        "ArmStatus",
        "Assignment",
        "Batch",
        "Status",
        "Verification",
    ),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: most commands need few of them, and start sooner."""
    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = getattr(import_module(f"discreet.{home}"), name)
            return globals()[name]
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
