"""Differentially private best-arm identification: what is possible, how to plan it, how
to run it.

The public names are those imported below, `discreet.theory` with
`discreet.theory.thresholds` and `discreet.theory.divergences`, and
`discreet.reports.charts`. Everything else may change without notice.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet._lazy import find_homes, list_available
from discreet.version import __version__

if (
    TYPE_CHECKING
):  # the one list of public names; at run time each is imported when it is first asked for
    from discreet.accrual import Delay as Delay
    from discreet.audits.correctness import CorrectnessAudit as CorrectnessAudit
    from discreet.audits.correctness import audit_correctness as audit_correctness
    from discreet.audits.correctness import make_hard_instances as make_hard_instances
    from discreet.audits.privacy import PrivacyAudit as PrivacyAudit
    from discreet.audits.privacy import audit_privacy as audit_privacy
    from discreet.audits.rehearsal import Rehearsal as Rehearsal
    from discreet.client.trial import RemoteTrial as RemoteTrial
    from discreet.errors import DiscreetError as DiscreetError
    from discreet.errors import ErasingWarning as ErasingWarning
    from discreet.errors import InvalidInputError as InvalidInputError
    from discreet.errors import LoggedOutcomesWarning as LoggedOutcomesWarning
    from discreet.errors import MissingExtraError as MissingExtraError
    from discreet.errors import NoConvergenceError as NoConvergenceError
    from discreet.errors import ReadableFileWarning as ReadableFileWarning
    from discreet.errors import RefusedError as RefusedError
    from discreet.errors import RoundedWarning as RoundedWarning
    from discreet.errors import StoreError as StoreError
    from discreet.errors import TamperedError as TamperedError
    from discreet.errors import TiedBestArmError as TiedBestArmError
    from discreet.instances import Bernoulli as Bernoulli
    from discreet.instances import Beta as Beta
    from discreet.instances import Discrete as Discrete
    from discreet.instances import Drift as Drift
    from discreet.instances import Drifting as Drifting
    from discreet.instances import Gaussian as Gaussian
    from discreet.instances import Instance as Instance
    from discreet.instances import benchmarks as benchmarks
    from discreet.past_data import Sampled as Sampled
    from discreet.planning.plan import Plan as Plan
    from discreet.planning.plan import plan as plan
    from discreet.planning.power import OutOfReach as OutOfReach
    from discreet.planning.power import check_reach as check_reach
    from discreet.planning.scenarios import GapScenarios as GapScenarios
    from discreet.planning.scenarios import RangeCost as RangeCost
    from discreet.planning.scenarios import make_gap_scenarios as make_gap_scenarios
    from discreet.planning.scenarios import plan_ranges as plan_ranges
    from discreet.reports.trial import trial_page as trial_page
    from discreet.results import Results as Results
    from discreet.scale import suggest_range as suggest_range
    from discreet.simulation.engine import MayNotStopWarning as MayNotStopWarning
    from discreet.simulation.engine import simulate as simulate
    from discreet.simulation.user_strategies import UserStrategy as UserStrategy
    from discreet.strategies.estimators import CustomBonus as CustomBonus
    from discreet.strategies.estimators import CustomGrid as CustomGrid
    from discreet.strategies.estimators import CustomThreshold as CustomThreshold
    from discreet.strategies.presets import Recommendation as Recommendation
    from discreet.strategies.presets import adap_tt as adap_tt
    from discreet.strategies.presets import adap_tt_star as adap_tt_star
    from discreet.strategies.presets import bet_se as bet_se
    from discreet.strategies.presets import ctb_tt as ctb_tt
    from discreet.strategies.presets import dp_se as dp_se
    from discreet.strategies.presets import gauss_tt as gauss_tt
    from discreet.strategies.presets import recommended as recommended
    from discreet.strategies.presets import ttucb as ttucb
    from discreet.strategies.presets import ttucb_batched as ttucb_batched
    from discreet.strategies.presets import ttucb_forgetting as ttucb_forgetting
    from discreet.strategies.strategy import Strategy as Strategy
    from discreet.studies.run import run_study as run_study
    from discreet.studies.study import Study as Study
    from discreet.tabular import notebook_bar as notebook_bar
    from discreet.theory.bounds import Bounds as Bounds
    from discreet.theory.bounds import PrivateBounds as PrivateBounds
    from discreet.theory.bounds import bounds as bounds
    from discreet.theory.times import CharacteristicTime as CharacteristicTime
    from discreet.trials.backup import BackedUp as BackedUp
    from discreet.trials.backup import Restored as Restored
    from discreet.trials.backup import backup_trials as backup_trials
    from discreet.trials.backup import restore_trials as restore_trials
    from discreet.trials.listing import list_trials as list_trials
    from discreet.trials.mechanisms import respond as respond
    from discreet.trials.responses import Response as Response
    from discreet.trials.status import ArmStatus as ArmStatus
    from discreet.trials.status import AskResult as AskResult
    from discreet.trials.status import Assignment as Assignment
    from discreet.trials.status import Status as Status
    from discreet.trials.status import TellResult as TellResult
    from discreet.trials.status import Verification as Verification
    from discreet.trials.transcript import transcript_frame as transcript_frame
    from discreet.trials.transcript import verify_transcript as verify_transcript
    from discreet.trials.trial import Trial as Trial

_HOMES = find_homes(__spec__)
__all__ = ["__version__", *list_available(_HOMES)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: most commands need few of them,
    and start sooner.
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(["__version__", *_HOMES])
