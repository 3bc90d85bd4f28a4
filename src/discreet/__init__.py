"""Differentially private best-arm identification: what is possible, how to plan it, how to run it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.version import __version__

if TYPE_CHECKING:
    from discreet.audits.correctness import Correctness, audit_correctness, hard_instances
    from discreet.audits.privacy import PrivacyAudit, audit_privacy
    from discreet.audits.rehearsal import Rehearsal
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
    from discreet.planning.plan import GapScenarios, Plan, gap_scenarios, plan
    from discreet.reports.trial import trial_page
    from discreet.results import Results
    from discreet.simulation.engine import MayNotStopWarning, simulate
    from discreet.strategies.strategy import (
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
    from discreet.studies.run import run_study
    from discreet.studies.study import Study
    from discreet.theory.bounds import Bounds, PrivateBounds, bounds
    from discreet.theory.times import CharacteristicTime
    from discreet.trials.mechanisms import respond
    from discreet.trials.outcomes import Response
    from discreet.trials.status import ArmStatus, Assignment, Batch, Status, Verification
    from discreet.trials.trial import Trial
    from discreet.trials.verify import verify_transcript

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
    "Response",
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
    "respond",
    "run_study",
    "simulate",
    "trial_page",
    "ttucb",
    "ttucb_batched",
    "verify_transcript",
]

_HOMES = {
    "audits.correctness": (
        "Correctness",
        "audit_correctness",
        "hard_instances",
    ),
    "theory.bounds": (
        "Bounds",
        "PrivateBounds",
        "bounds",
    ),
    "simulation.engine": (
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
    "planning.plan": (
        "GapScenarios",
        "Plan",
        "gap_scenarios",
        "plan",
    ),
    "audits.privacy": (
        "PrivacyAudit",
        "audit_privacy",
    ),
    "audits.rehearsal": ("Rehearsal",),
    "results": ("Results",),
    "strategies.strategy": (
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
    "studies.study": ("Study",),
    "studies.run": ("run_study",),
    "theory.times": ("CharacteristicTime",),
    "reports.trial": ("trial_page",),
    "trials.mechanisms": ("respond",),
    "trials.outcomes": ("Response",),
    "trials.trial": ("Trial",),
    "trials.verify": ("verify_transcript",),
    "trials.status": (
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
