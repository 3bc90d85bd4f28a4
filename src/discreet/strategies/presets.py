"""The named strategies: a preset is a function of a strategy's name,
`adap_tt_star(epsilon=1, delta=0.05)`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidInputError
from discreet.strategies.parts import ESTIMATORS, NUMBERS, YES_NO
from discreet.strategies.strategy import OPTIONS, Strategy
from discreet.strategies.units import to_bits
from discreet.trust import TRUSTS, check_trust
from discreet.validate import is_word, quoted

PAPER = "Differentially Private Best-Arm Identification, JMLR 2026"
PARTS: dict[str, dict[str, Any]] = {
    "ttucb": {"estimator": "mle"},
    "ttucb-batched": {"estimator": "dpa"},
    "ctb-tt": {"estimator": "ctb"},
    "gauss-tt": {"estimator": "gauss"},
    "adap-tt": {"estimator": "daf"},
    "adap-tt-star": {"estimator": "daf", "cost": "private"},
    "dp-se": {"estimator": "epochs", "sampling": "elimination"},
    "bet-se": {"estimator": "bets"},
}
"""What makes each preset the strategy it is."""
REFERENCES = {
    "ttucb": "Jourdan & Degenne 2022, Non-asymptotic analysis of a UCB-based Top Two algorithm",
    "ttucb-batched": f"{PAPER}, appendix on rounds of adaptivity",
    "ctb-tt": f"{PAPER}, Section 3.2",
    "gauss-tt": f"{PAPER}, Section 3.2, remark on (ε, γ)-local DP",
    "adap-tt": f"{PAPER}, Section 4.3",
    "adap-tt-star": f"{PAPER}, Section 4.4",
    "dp-se": "Sajed & Sheffet 2019, An optimal private stochastic-MAB algorithm",
    "bet-se": "discreet, docs page 'Betting elimination' (strategy and proofs)",
}


def ttucb(delta: float, **parts: Any) -> Strategy:
    """TTUCB without privacy (Jourdan & Degenne 2022): the mean of all samples, a Top
    Two rule, c^G.
    """
    return _preset("ttucb", parts, delta=delta)


def ttucb_batched(delta: float, **parts: Any) -> Strategy:
    """TTUCB in batches without privacy: DPA, means renewed when an arm's pulls have
    doubled.
    """
    return _preset("ttucb-batched", parts, delta=delta)


def ctb_tt(epsilon: float, delta: float, **parts: Any) -> Strategy:
    """CTB-TT, ε-local DP: TTUCB on randomised responses (Section 3.2 of the paper)."""
    return _preset("ctb-tt", parts, epsilon=epsilon, delta=delta)


def gauss_tt(epsilon: float, gamma: float, delta: float, **parts: Any) -> Strategy:
    """(ε, γ)-local DP: TTUCB on samples with Gaussian noise, calibrated exactly, and
    with the σ that noise asks for.
    """
    return _preset("gauss-tt", parts, epsilon=epsilon, gamma=gamma, delta=delta)


def adap_tt(epsilon: float, delta: float, **parts: Any) -> Strategy:
    """AdaP-TT, ε-global DP: doubling, forgetting, Laplace noise, the threshold c^{G,ε}
    (Section 4.3).
    """
    return _preset("adap-tt", parts, epsilon=epsilon, delta=delta)


def adap_tt_star(epsilon: float, delta: float, **parts: Any) -> Strategy:
    """AdaP-TT*, ε-global DP: AdaP-TT with the transport cost that knows of the noise
    (Section 4.4).
    """
    return _preset("adap-tt-star", parts, epsilon=epsilon, delta=delta)


def dp_se(epsilon: float, delta: float, **parts: Any) -> Strategy:
    """DP-SE, ε-global DP: successive elimination in epochs of fresh samples (Sajed &
    Sheffet 2019).
    """
    return _preset("dp-se", parts, epsilon=epsilon, delta=delta)


def bet_se(
    delta: float,
    epsilon: float | None = None,
    trust: str = "global",
    zeta: float = 0.0,
    sampling: str = "elimination",
    hint: float = 0.0,
    outcomes: str = YES_NO,
    **parts: Any,
) -> Strategy:
    """Betting elimination: an arm is out once a gambler has turned 1 into 1/δ by
    betting that it is not the best.

    `trust` is global (noisy sums), local (randomised responses) or none (no privacy,
    and no epsilon). With `zeta` > 0 an arm within ζ of the best is good enough, and
    ties end. `sampling="top-two"` spends each round on the leader and one challenger
    instead of all arms in question; the stopping rule is the same. `hint` is the
    difference between the best arm and the next that you expect or want to find: it
    sizes batches and stakes, enters no guarantee, and a wrong one only costs people.
    `outcomes="numbers"` uses the variance of outcomes that are not just 0 or 1, at no
    further ε; the guarantees are the same.
    """
    own = {"epsilon": epsilon, "trust": trust, "zeta": zeta, "sampling": sampling}
    return _preset("bet-se", parts, delta=delta, hint=hint, outcomes=outcomes, **own)


@dataclass(frozen=True)
class Recommendation:
    """A strategy, and why this one."""

    strategy: Strategy
    reason: str


def recommended(
    epsilon: float | None = None,
    delta: float = 0.05,
    trust: str = "global",
    hint: float = 0.0,
    outcomes: str = YES_NO,
) -> Recommendation:
    """The strategy to take, and why: the one with a proved error rate that needs the
    fewest samples.

    Without an epsilon nothing is private. `trust` says who may see outcomes: the
    collector (global) or nobody (local). `hint` is the difference you expect to find,
    if you do, and `outcomes` whether outcomes are `yes-no` or `numbers`.
    """
    if epsilon is None and check_trust(trust).noised:
        trust = "none"
    reason = {
        "global": (
            "it took fewer samples than dp-se, adap-tt and adap-tt-star in all 54 cells measured "
            "(six instances, "
            "nine ε, δ = 0.01)"
        ),
        "local": (
            "it took fewer samples than ctb-tt in all 42 cells measured (six instances, ε from "
            "0.01 to 10, "
            "δ = 0.01)"
        ),
        "none": (
            "it took fewer samples than ttucb and ttucb-batched on all six instances measured (δ "
            "= 0.01)"
        ),
    }
    proofs = "its error rate is proved, and that it stops whenever the best arm is unique"
    strategy = bet_se(delta=delta, epsilon=epsilon, trust=trust, hint=hint, outcomes=outcomes)
    if outcomes == NUMBERS and not to_bits(strategy):
        proofs += "; of outcomes that are numbers it uses the variance, at no further ε"
    return Recommendation(strategy, f"{strategy.name}: {reason[trust]}; {proofs}")


def expecting(strategy: Strategy, outcomes: str) -> Strategy:
    """The strategy for such outcomes, where that is a choice; else as it is."""
    return strategy.with_(outcomes=outcomes) if "outcomes" in strategy.part.options else strategy


PRESETS: dict[str, Callable[..., Strategy]] = {
    "ttucb": ttucb,
    "ttucb-batched": ttucb_batched,
    "ctb-tt": ctb_tt,
    "gauss-tt": gauss_tt,
    "adap-tt": adap_tt,
    "adap-tt-star": adap_tt_star,
    "dp-se": dp_se,
    "bet-se": bet_se,
}


def _preset(name: str, options: dict[str, Any], **levels: Any) -> Strategy:
    unknown = set(options) - (OPTIONS - set(levels) - set(PARTS[name]))
    if unknown:
        raise InvalidInputError(f"{name} has no option {sorted(unknown)[0]!r}")
    return Strategy(name=name, **PARTS[name], **levels, **options)


def preset_of(name: str) -> Callable[..., Strategy]:
    """The preset of that name, or which there are."""
    if not is_word(name, PRESETS):
        raise InvalidInputError(f"unknown strategy {quoted(name)}: use one of {', '.join(PRESETS)}")
    return PRESETS[name]


def trusts_of(name: str) -> tuple[str, ...]:
    """The trust models of the preset of that name, the usual one first."""
    return ESTIMATORS[PARTS[name]["estimator"]].trusts


def levels_of(name: str, trust: str | None = None) -> tuple[str, ...]:
    """Which of epsilon and gamma the preset of that name needs, with this trust where
    it has a choice.
    """
    models = trusts_of(name)
    if not TRUSTS[trust if trust in models else models[0]].private:
        return ()
    return ("epsilon", "gamma") if ESTIMATORS[PARTS[name]["estimator"]].gamma else ("epsilon",)
