"""The named strategies: a preset is a function of a strategy's name,
`adap_tt_star(epsilon=1, delta=0.05)`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidInputError, RoundedWarning, warn_caller
from discreet.scale import NUMBERS, YES_NO
from discreet.strategies.estimators import ESTIMATORS
from discreet.strategies.strategy import OPTIONS, Strategy
from discreet.strategies.units import is_rounded_to_bits
from discreet.trust import TRUSTS, check_trust
from discreet.validation import is_word, quote
from discreet.wording import PROVED

GAUSSIAN_REASON = (
    "of the strategies with Gaussian noise it took the fewest samples; Laplace noise at the same ε "
    "takes fewer still, see 'Gaussian noise' on the docs page 'Betting elimination'"
)
PAPER = "Differentially Private Best-Arm Identification, JMLR 2026"
PARTS: dict[str, dict[str, Any]] = {
    "ttucb": {"estimator": "mle"},
    "ttucb-batched": {"estimator": "dpa"},
    "ttucb-forgetting": {"estimator": "forget"},
    "ctb-tt": {"estimator": "ctb"},
    "gauss-tt": {"estimator": "gauss"},
    "adap-tt": {"estimator": "daf", "cost": "gaussian"},
    "adap-tt-star": {"estimator": "daf", "cost": "private"},
    "dp-se": {"estimator": "epochs", "sampling": "elimination"},
    "bet-se": {"estimator": "bets", "sampling": "elimination"},
}
"""What makes each preset the strategy it is."""
REFERENCES = {
    "ttucb": "Jourdan & Degenne 2022, Non-asymptotic analysis of a UCB-based Top Two algorithm",
    "ttucb-batched": f"{PAPER}, appendix on rounds of adaptivity, corrected: the count is that "
    "behind the mean, also with the printed threshold",
    "ttucb-forgetting": f"{PAPER}, appendix on the stopping rules: AdaP-TT at ε = ∞",
    "ctb-tt": f"{PAPER}, Section 3.2",
    "gauss-tt": f"{PAPER}, Section 3.2, remark on (ε, γ)-local DP, corrected: noise calibrated "
    "exactly, and its σ in cost and bonus, also with the printed threshold",
    "adap-tt": f"{PAPER}, Section 4.3",
    "adap-tt-star": f"{PAPER}, Section 4.4",
    "dp-se": "Sajed & Sheffet 2019, An optimal private stochastic-MAB algorithm",
    "bet-se": "discreet, docs page 'Betting elimination' (strategy and proofs)",
}
RULES = {
    "eb-tc": "Jourdan et al. 2022, Top Two algorithms revisited",
    "eb-tci": "Jourdan et al. 2022, Top Two algorithms revisited",
    "ts-tc": "Jourdan et al. 2022, Top Two algorithms revisited",
    "track-and-stop": "Garivier & Kaufmann 2016, Optimal best arm identification with fixed "
    "confidence",
}
"""Where sampling rules come from that are not the paper's."""


def ttucb(delta: float, **parts: Any) -> Strategy:
    """Return TTUCB without privacy (Jourdan & Degenne 2022): the mean of all samples, a
    Top Two rule, the threshold c^G.

    With `cost="kl"` it uses the transportation cost of Bernoulli rewards in place of
    the Gaussian one, and c^KL in place of c^G. The guarantee then holds for all rewards
    in [0, 1] too, and it takes fewer samples, most of all where means are near 0 or 1.
    With `sigma` rewards need no bounds: they must be σ-sub-Gaussian, as those of
    `Gaussian` arms are.
    """
    return _make_preset("ttucb", parts, delta=delta)


def ttucb_batched(delta: float, **parts: Any) -> Strategy:
    """Return TTUCB in batches without privacy: DPA, means renewed when an arm's pulls
    have doubled. `sigma` as in `ttucb`.

    Even with `threshold="printed"`, costs and threshold use the number of samples
    behind the mean; the printed algorithm uses a larger number, which no proof covers.
    """
    return _make_preset("ttucb-batched", parts, delta=delta)


def ttucb_forgetting(delta: float, **parts: Any) -> Strategy:
    """Return AdaP-TT at ε = ∞: doubling and forgetting without noise or privacy, with
    the threshold of the paper's own lemma (appendix on the stopping rules), s = 2.
    """
    return _make_preset("ttucb-forgetting", parts, delta=delta)


def ctb_tt(epsilon: float, delta: float, **parts: Any) -> Strategy:
    """Return CTB-TT, ε-local DP: TTUCB on randomised responses (Section 3.2 of the
    paper).

    `cost="kl"` as in `ttucb`; responses are 0 or 1 whatever the rewards.
    """
    return _make_preset("ctb-tt", parts, epsilon=epsilon, delta=delta)


def gauss_tt(epsilon: float, gamma: float, delta: float, **parts: Any) -> Strategy:
    """Return (ε, γ)-local DP: TTUCB on samples with Gaussian noise, calibrated exactly,
    and with the σ that this noise requires.

    This is so with `threshold="printed"` too: with the paper's noise and σ = 1/2
    neither the privacy nor the error rate would hold.
    """
    return _make_preset("gauss-tt", parts, epsilon=epsilon, gamma=gamma, delta=delta)


def adap_tt(
    epsilon: float | None,
    delta: float,
    gamma: float | None = None,
    rho: float | None = None,
    **parts: Any,
) -> Strategy:
    """Return AdaP-TT, ε-global DP: doubling, forgetting, Laplace noise, the threshold
    c^{G,ε} (Section 4.3). With `gamma`, or with `rho` and None for epsilon, it uses
    Gaussian noise and a threshold of its own.
    """
    return _make_preset("adap-tt", parts, epsilon=epsilon, delta=delta, gamma=gamma, rho=rho)


def adap_tt_star(epsilon: float, delta: float, **parts: Any) -> Strategy:
    """Return AdaP-TT*, ε-global DP: AdaP-TT with a transport cost that takes the noise
    into account (Section 4.4).
    """
    return _make_preset("adap-tt-star", parts, epsilon=epsilon, delta=delta)


def dp_se(epsilon: float, delta: float, **parts: Any) -> Strategy:
    """Return DP-SE, ε-global DP: successive elimination in epochs of fresh samples
    (Sajed & Sheffet 2019).
    """
    return _make_preset("dp-se", parts, epsilon=epsilon, delta=delta)


def bet_se(
    delta: float,
    epsilon: float | None = None,
    trust: str = "global",
    indifference_zone: float = 0.0,
    target_difference: float = 0.0,
    outcomes: str = YES_NO,
    gamma: float | None = None,
    rho: float | None = None,
    **parts: Any,
) -> Strategy:
    """Return betting elimination: an arm is eliminated once bets that it is not the best
    have turned a wealth of 1 into 1/δ.

    `trust` is global (noisy sums), local (randomised responses) or none (no privacy,
    and no epsilon). With `indifference_zone` > 0 an arm within ζ of the best is good enough, and
    runs with tied best arms end. `target_difference` is the difference between the best arm and the
    next that you expect or want to find. It determines the sizes of batches and stakes
    and enters no guarantee; if it is wrong, the trial only takes more people.
    `outcomes="numbers"` uses the variance of outcomes that are not just 0 or 1, without
    spending more ε; the guarantees are the same. `gamma` beside epsilon, or `rho` in
    place of both, puts Gaussian noise on sums: (ε, γ)-privacy or ρ-zCDP.
    """
    own = {"epsilon": epsilon, "trust": trust, "indifference_zone": indifference_zone}
    own |= {"gamma": gamma, "rho": rho}
    return _make_preset(
        "bet-se", parts, delta=delta, target_difference=target_difference, outcomes=outcomes, **own
    )


@dataclass(frozen=True)
class Recommendation:
    """A strategy, and why this one."""

    strategy: Strategy
    reason: str


def recommended(
    epsilon: float | None = None,
    delta: float = 0.05,
    trust: str = "global",
    target_difference: float = 0.0,
    outcomes: str = YES_NO,
    gamma: float | None = None,
    rho: float | None = None,
) -> Recommendation:
    """Return the strategy to use, and why: of those that were measured and have a
    proved error rate, the one that needs the fewest samples.

    Without an epsilon nothing is private. `trust` says who may see outcomes: the
    collector (global) or nobody (local). `target_difference` is the difference that you expect to
    find, if you expect one, and `outcomes` says whether outcomes are `yes-no` or
    `numbers`. `gamma` and `rho` ask for (ε, γ)-privacy or ρ-zCDP.
    """
    if epsilon is None and rho is None and check_trust(trust).noised:
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
            "it took fewer samples than ttucb and ttucb-batched, with the paper's costs, on all "
            "six instances measured (δ = 0.01)"
        ),
    }
    proofs = PROVED
    strategy = bet_se(
        delta, epsilon, trust, target_difference=target_difference, gamma=gamma, rho=rho
    )
    strategy = with_outcomes(strategy, outcomes)
    if not strategy.is_pure:
        return Recommendation(strategy, f"{strategy.name}: {GAUSSIAN_REASON}; {proofs}")
    if outcomes == NUMBERS and not is_rounded_to_bits(strategy):
        proofs += "; if outcomes are numbers it uses their variance, without spending more ε"
    return Recommendation(strategy, f"{strategy.name}: {reason[trust]}; {proofs}")


def with_outcomes(strategy: Strategy, outcomes: str) -> Strategy:
    """Return the strategy for such outcomes, if its estimator offers the choice; else
    as it is.
    """
    choice = "outcomes" in strategy.spec.options and strategy.is_pure
    return strategy.with_(outcomes=outcomes) if choice else strategy


def explain_rounding(strategy: Strategy, numbers: bool) -> str:
    """Say that outcomes that are numbers will be rounded to yes or no without need;
    return "" if they are not.
    """
    better = with_outcomes(strategy, NUMBERS)
    if not numbers or better == strategy or is_rounded_to_bits(better):
        return ""
    return (
        "the outcomes are numbers, and this strategy rounds each of them to yes or no, which "
        f"is right but takes more people: say {strategy.name.replace('-', '_')}(…, "
        f'outcomes="{NUMBERS}")'
    )


def warn_if_rounded(strategy: Strategy, numbers: bool) -> None:
    """Warn the caller if outcomes are rounded to yes or no without need."""
    if words := explain_rounding(strategy, numbers):
        warn_caller(words, RoundedWarning)


def with_sigma(strategy: Strategy, sigma: float) -> Strategy:
    """Return the strategy for σ-sub-Gaussian rewards, if it takes a σ; else as it is."""
    return strategy.with_(sigma=sigma) if "sigma" in strategy.spec.options else strategy


PRESETS: dict[str, Callable[..., Strategy]] = {
    "ttucb": ttucb,
    "ttucb-batched": ttucb_batched,
    "ttucb-forgetting": ttucb_forgetting,
    "ctb-tt": ctb_tt,
    "gauss-tt": gauss_tt,
    "adap-tt": adap_tt,
    "adap-tt-star": adap_tt_star,
    "dp-se": dp_se,
    "bet-se": bet_se,
}


def _make_preset(name: str, options: dict[str, Any], **levels: Any) -> Strategy:
    unknown = set(options) - (OPTIONS - set(levels) - set(PARTS[name]))
    if unknown:
        raise InvalidInputError(f"{name} has no option {sorted(unknown)[0]!r}")
    return Strategy(name=name, **PARTS[name], **levels, **options)


def find_preset(name: str) -> Callable[..., Strategy]:
    """Return the preset of that name; the error for an unknown name lists all."""
    if not is_word(name, PRESETS):
        raise InvalidInputError(f"unknown strategy {quote(name)}: use one of {', '.join(PRESETS)}")
    return PRESETS[name]


def list_trusts(name: str) -> tuple[str, ...]:
    """Return the trust models of the preset of that name, the usual one first."""
    return ESTIMATORS[PARTS[name]["estimator"]].trusts


def list_levels(name: str, trust: str | None = None) -> tuple[str, ...]:
    """Return which of epsilon and gamma the preset of that name needs with this trust."""
    models = list_trusts(name)
    if not TRUSTS[trust if trust in models else models[0]].is_private:
        return ()
    return ("epsilon", "gamma") if ESTIMATORS[PARTS[name]["estimator"]].gamma else ("epsilon",)


def list_gaussian_levels(name: str, trust: str | None = None) -> tuple[str, ...]:
    """Return the levels that the preset of that name takes for Gaussian noise on its
    sums with this trust: gamma beside epsilon, or rho in place of it.
    """
    row, models = ESTIMATORS[PARTS[name]["estimator"]], list_trusts(name)
    noised = TRUSTS[trust if trust in models else models[0]].noised
    fits = row.gaussian and PARTS[name].get("cost") != "private"
    return ("gamma", "rho") if fits and noised else ()
