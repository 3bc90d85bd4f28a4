"""Strategy = estimator × sampling × cost × stopping × design: frozen, checked, equal by value, JSON both ways.

A preset is a function of a strategy's name: `adap_tt_star(epsilon=1, delta=0.05)`. Parts that do not fit together are
refused with the reason, and every strategy can say in words what it guarantees.
"""

import json
import math
import numbers
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from discreet.errors import InvalidInputError
from discreet.validate import check_beta, check_delta, check_epsilon, check_gamma

ESTIMATORS = {
    "mle": "the mean of all samples, after every sample",
    "dpa": "the mean of all samples, renewed when an arm's pulls have doubled",
    "ctb": "the mean of randomised responses, after every sample",
    "gauss": "the mean of samples with Gaussian noise, after every sample",
    "daf": "the mean of the last phase with Laplace noise, renewed when an arm's pulls have doubled",
    "epochs": "the mean of one epoch's fresh samples with Laplace noise",
    "bets": "sums of fresh batches: with discrete Laplace noise (global), of randomised responses (local) or bare",
}
PHASED = ("dpa", "daf")
TRUSTS = {"mle": "none", "dpa": "none", "ctb": "local", "gauss": "local", "daf": "global", "epochs": "global"}
SAMPLINGS = ("top-two", "uniform", "lucb", "elimination")
THRESHOLDS = ("printed", "proved", "empirical")


@dataclass(frozen=True)
class CustomThreshold:
    """A stopping threshold of your own, to be compared with W^G.

    Phased estimators: `function(count_best, count_other)` on arrays of counts. Estimators that release every sample:
    `function(count)` of one arm, nondecreasing, added up for the two arms. There is no guarantee but yours.
    """

    name: str
    function: Callable[..., Any]

    def __post_init__(self) -> None:
        """Refuse what is not a function."""
        _check_callable(self.name, self.function)


@dataclass(frozen=True)
class CustomBonus:
    """A confidence bonus of your own for the leader: `function(count)` of the arm's count, on arrays."""

    name: str
    function: Callable[[Any], Any]

    def __post_init__(self) -> None:
        """Refuse what is not a function."""
        _check_callable(self.name, self.function)


@dataclass(frozen=True)
class CustomGrid:
    """When a phased estimator renews an arm's mean: `function(phase)` pulls, growing, 1 for phase 1."""

    name: str
    function: Callable[[int], int]

    def __post_init__(self) -> None:
        """Refuse what is not a function."""
        _check_callable(self.name, self.function)


@dataclass(frozen=True)
class Strategy:
    """What to sample, what to release, when to stop. Make one with a preset, vary it with `with_`."""

    name: str
    estimator: str
    delta: float
    epsilon: float | None = None
    gamma: float | None = None
    sampling: str = "top-two"
    cost: str = "gaussian"
    threshold: str | CustomThreshold = "proved"
    beta: float | str = 0.5
    episodes: str = "arm"
    bonus: str | CustomBonus = "ucb"
    grid: str | CustomGrid = "doubling"
    s: float = 1.2
    alpha: float = 1.2
    trust: str = ""
    """Who must be trusted with raw outcomes: `none` (no privacy), `local` (nobody) or `global` (the collector).

    A choice for the estimator bets; it follows from the estimator otherwise, and may be left out.
    """
    zeta: float = 0.0
    """Indifference gap of the estimator bets: an arm at most ζ below the best is good enough."""

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together, with the reason."""
        check_delta(self.delta)
        for name in ("delta", "epsilon", "gamma", "beta", "zeta", "s", "alpha"):
            value = getattr(self, name)
            if isinstance(value, numbers.Real) and not isinstance(value, bool):
                object.__setattr__(self, name, float(value))  # 1 and 1.0 are the same ε, also when written down
        _check_choices(self)
        _check_trust(self)
        _check_privacy(self)
        _check_design(self)
        _check_bonus(self)
        if self.estimator == "epochs":
            _check_epochs(self)
        if self.estimator == "bets":
            _check_bets(self)

    def with_(self, **changes: Any) -> "Strategy":
        """The same strategy with other levels or options; what makes it the strategy it is stays."""
        fixed = set(changes) - OPTIONS - {"delta", "epsilon", "gamma", "trust", "zeta"}
        if fixed:
            raise InvalidInputError(f"{sorted(fixed)[0]!r} is not an option of {self.name}: make another preset")
        return replace(self, **changes)

    @property
    def phased(self) -> bool:
        """Whether means are renewed at the ends of phases, between which nothing new is learned."""
        return self.estimator in PHASED

    @property
    def reference(self) -> str:
        """Where the strategy comes from."""
        source = REFERENCES.get(self.name, "composed from the parts of the paper's strategies")
        usual = "elimination" if self.estimator in ("epochs", "bets") else "top-two"
        return source if self.sampling == usual else f"{source}; with {self.sampling} sampling"

    @property
    def privacy(self) -> str:
        """The privacy guarantee in words."""
        if self.estimator == "gauss":
            return f"({self.epsilon:.15g}, {self.gamma:.15g})-local DP: every answer is randomised before it is sent"
        if self.trust == "none":
            return "none: decisions are made from raw outcomes"
        where = "every answer is randomised before it is sent" if self.trust == "local" else "every release is noised"
        return f"{self.epsilon:.15g}-{self.trust} DP: {where}"

    @property
    def correctness(self) -> str:
        """What is known about the error rate, in words."""
        if isinstance(self.threshold, CustomThreshold):
            return f"no guarantee of ours: the threshold {self.threshold.name!r} is your own"
        if self.threshold == "empirical":
            return "no guarantee: the threshold of the published experiments has no proof"
        if isinstance(self.grid, CustomGrid):
            return f"no guarantee of ours: the thresholds are proved for doubling, not for {self.grid.name!r}"
        if self.zeta > 0:
            return f"more than {self.zeta:g} below the best with probability at most {self.delta:g} (rewards in [0, 1])"
        return f"wrong with probability at most {self.delta:g}, for rewards in [0, 1] and a unique best arm"

    @property
    def proved(self) -> bool:
        """Whether the error rate is guaranteed."""
        return self.threshold in ("printed", "proved") and isinstance(self.grid, str)

    def to_dict(self) -> dict[str, Any]:
        """Plain types from which `from_dict` makes an equal strategy; refuses parts that are Python functions."""
        for part in (self.threshold, self.bonus, self.grid):
            if not isinstance(part, str):
                raise InvalidInputError(f"{part.name!r} is a Python function and cannot be written down as data")
        return asdict(self)

    @staticmethod
    def from_dict(description: dict[str, Any]) -> "Strategy":
        """The strategy that `to_dict` described."""
        try:
            return Strategy(**description)
        except TypeError as error:
            raise InvalidInputError(f"not the description of a strategy: {error}") from None

    def to_json(self) -> str:
        """`to_dict` as a JSON document."""
        return json.dumps(self.to_dict())

    @staticmethod
    def from_json(document: str) -> "Strategy":
        """The strategy that `to_json` wrote."""
        try:
            description = json.loads(document)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"not a JSON document: {error}") from None
        if not isinstance(description, dict):
            raise InvalidInputError("not the description of a strategy: a JSON object is needed")
        return Strategy.from_dict(description)


def ttucb(delta: float, **parts: Any) -> Strategy:
    """TTUCB without privacy (Jourdan & Degenne 2022): the mean of all samples, a Top Two rule, c^G."""
    return _preset("ttucb", parts, estimator="mle", delta=delta)


def ttucb_batched(delta: float, **parts: Any) -> Strategy:
    """TTUCB in batches without privacy: DPA, means renewed when an arm's pulls have doubled."""
    return _preset("ttucb-batched", parts, estimator="dpa", delta=delta)


def ctb_tt(epsilon: float, delta: float, **parts: Any) -> Strategy:
    """CTB-TT, ε-local DP: TTUCB on randomised responses (Section 3.2 of the paper)."""
    return _preset("ctb-tt", parts, estimator="ctb", epsilon=epsilon, delta=delta)


def gauss_tt(epsilon: float, gamma: float, delta: float, **parts: Any) -> Strategy:
    """(ε, γ)-local DP: TTUCB on samples with Gaussian noise, calibrated exactly, and with the σ that noise asks for."""
    return _preset("gauss-tt", parts, estimator="gauss", epsilon=epsilon, gamma=gamma, delta=delta)


def adap_tt(epsilon: float, delta: float, **parts: Any) -> Strategy:
    """AdaP-TT, ε-global DP: doubling, forgetting, Laplace noise, the threshold c^{G,ε} (Section 4.3)."""
    return _preset("adap-tt", parts, estimator="daf", epsilon=epsilon, delta=delta)


def adap_tt_star(epsilon: float, delta: float, **parts: Any) -> Strategy:
    """AdaP-TT*, ε-global DP: AdaP-TT with the transport cost that knows of the noise (Section 4.4)."""
    return _preset("adap-tt-star", parts, estimator="daf", cost="private", epsilon=epsilon, delta=delta)


def dp_se(epsilon: float, delta: float, **parts: Any) -> Strategy:
    """DP-SE, ε-global DP: successive elimination in epochs of fresh samples (Sajed & Sheffet 2019)."""
    return _preset("dp-se", parts, estimator="epochs", sampling="elimination", epsilon=epsilon, delta=delta)


def bet_se(
    delta: float,
    epsilon: float | None = None,
    trust: str = "global",
    zeta: float = 0.0,
    sampling: str = "elimination",
    **parts: Any,
) -> Strategy:
    """Betting elimination: an arm is out once a gambler has turned 1 into 1/δ by betting that it is not the best.

    `trust` is global (noisy sums), local (randomised responses) or none (no privacy, and no epsilon). With `zeta` > 0
    an arm within ζ of the best is good enough, and ties end. `sampling="top-two"` spends each round on the leader and
    one challenger instead of all arms in question; the stopping rule is the same.
    """
    own = {"epsilon": epsilon, "trust": trust, "zeta": zeta, "sampling": sampling}
    return _preset("bet-se", parts, estimator="bets", delta=delta, **own)


@dataclass(frozen=True)
class Recommendation:
    """A strategy, and why this one."""

    strategy: Strategy
    reason: str


def recommended(epsilon: float | None = None, delta: float = 0.05, trust: str = "global") -> Recommendation:
    """The strategy to take, and why: the one with a proved error rate that needs the fewest samples.

    Without an epsilon nothing is private. `trust` says who may see outcomes: the collector (global) or nobody (local).
    """
    if epsilon is None and trust == "global":
        trust = "none"
    reason = {
        "global": "it took fewer samples than dp-se, adap-tt and adap-tt-star in all 54 cells measured (six instances, "
        "nine ε, δ = 0.01)",
        "local": "it took fewer samples than ctb-tt in all 42 cells measured (six instances, ε from 0.01 to 10, "
        "δ = 0.01)",
        "none": "it took fewer samples than ttucb and ttucb-batched on all six instances measured (δ = 0.01)",
    }
    proofs = "its error rate is proved, and that it stops whenever the best arm is unique"
    strategy = bet_se(delta=delta, epsilon=epsilon, trust=trust)
    return Recommendation(strategy, f"{strategy.name}: {reason[trust]}; {proofs}")


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
REFERENCES = {
    "ttucb": "Jourdan & Degenne 2022, Non-asymptotic analysis of a UCB-based Top Two algorithm",
    "ttucb-batched": "Differentially Private Best-Arm Identification, JMLR 2026, appendix on rounds of adaptivity",
    "ctb-tt": "Differentially Private Best-Arm Identification, JMLR 2026, Section 3.2",
    "gauss-tt": "Differentially Private Best-Arm Identification, JMLR 2026, Section 3.2, remark on (ε, γ)-local DP",
    "adap-tt": "Differentially Private Best-Arm Identification, JMLR 2026, Section 4.3",
    "adap-tt-star": "Differentially Private Best-Arm Identification, JMLR 2026, Section 4.4",
    "dp-se": "Sajed & Sheffet 2019, An optimal private stochastic-MAB algorithm",
    "bet-se": "discreet, docs page 'Betting elimination' (strategy and proofs)",
}
OPTIONS = {"sampling", "threshold", "beta", "episodes", "bonus", "grid", "s", "alpha"}


def _preset(name: str, options: dict[str, Any], **parts: Any) -> Strategy:
    unknown = set(options) - (OPTIONS - set(parts))
    if unknown:
        raise InvalidInputError(f"{name} has no option {sorted(unknown)[0]!r}")
    return Strategy(name=name, **parts, **options)


def _check_callable(name: str, function: object) -> None:
    if not callable(function):
        raise InvalidInputError(f"{name!r} needs a function; got {function!r}")


def _check_choices(strategy: Strategy) -> None:
    choices: list[tuple[str, Any, tuple[str, ...]]] = [
        ("estimator", strategy.estimator, tuple(ESTIMATORS)),
        ("sampling", strategy.sampling, SAMPLINGS),
        ("cost", strategy.cost, ("gaussian", "private")),
        ("episodes", strategy.episodes, ("arm", "global")),
    ]
    parts: list[tuple[str, Any, Any, tuple[str, ...]]] = [
        ("threshold", strategy.threshold, CustomThreshold, THRESHOLDS),
        ("bonus", strategy.bonus, CustomBonus, ("ucb",)),
        ("grid", strategy.grid, CustomGrid, ("doubling",)),
    ]
    choices += [(what, value, allowed) for what, value, kind, allowed in parts if not isinstance(value, kind)]
    for what, value, allowed in choices:
        if value not in allowed:
            raise InvalidInputError(f"{what} must be one of {', '.join(allowed)}; got {value!r}")


def _check_trust(strategy: Strategy) -> None:
    """Fill in the trust model that follows from the estimator, or refuse another one."""
    implied = TRUSTS.get(strategy.estimator, strategy.trust)
    if strategy.trust not in (("global", "local", "none") if strategy.estimator == "bets" else ("", implied)):
        if strategy.estimator == "bets":
            raise InvalidInputError(f"trust must be one of global, local, none; got {strategy.trust!r}")
        raise InvalidInputError(f"{strategy.name} has trust={implied!r} and no other: only bet-se has a choice")
    object.__setattr__(strategy, "trust", implied)


def _check_privacy(strategy: Strategy) -> None:
    if strategy.trust == "none":
        if strategy.epsilon is not None:
            raise InvalidInputError(f"{strategy.name} has no privacy: leave epsilon out, or take a private strategy")
    elif strategy.epsilon is None:
        other = ", or trust='none'" if strategy.estimator == "bets" else ""
        raise InvalidInputError(f"{strategy.name} is private: say how private, for instance epsilon=1{other}")
    else:
        check_epsilon(strategy.epsilon)
    if (strategy.estimator == "gauss") != (strategy.gamma is not None):
        raise InvalidInputError("gamma belongs to gauss-tt, and gauss-tt needs it, for instance gamma=1e-6")
    if strategy.gamma is not None:
        check_gamma(strategy.gamma)
    if strategy.cost == "private" and strategy.estimator != "daf":
        raise InvalidInputError("the private cost W^{G,ε} is for the estimator daf; take cost='gaussian'")


def _check_bonus(strategy: Strategy) -> None:
    for what, value in (("s", strategy.s), ("alpha", strategy.alpha)):
        if not isinstance(value, int | float) or not 1 < value < math.inf:
            raise InvalidInputError(f"{what} must be a number larger than 1; got {value!r}")
        if value != 1.2 and strategy.estimator in ("daf", "epochs", "bets"):
            raise InvalidInputError(f"{what} belongs to the bonus b^G, which {strategy.name} does not use")
    if not isinstance(strategy.bonus, str) and strategy.sampling not in ("top-two", "lucb"):
        raise InvalidInputError(f"{strategy.sampling} sampling uses no bonus")


def _check_design(strategy: Strategy) -> None:
    if isinstance(strategy.beta, str):
        if strategy.beta != "ids":
            raise InvalidInputError(f"beta must be a number in (0, 1) or 'ids'; got {strategy.beta!r}")
    else:
        check_beta(strategy.beta)
    if strategy.sampling != "top-two" and strategy.beta != 0.5:
        raise InvalidInputError(f"beta is the leader's share in Top Two sampling; {strategy.sampling} has no leader")
    if strategy.zeta != 0 and strategy.estimator != "bets":
        raise InvalidInputError("zeta, the indifference gap, is a part of bet-se only")
    if not strategy.phased and (strategy.episodes != "arm" or strategy.grid != "doubling"):
        raise InvalidInputError(f"episodes and grid are for the phased estimators {' and '.join(PHASED)}")
    if strategy.episodes == "global" and strategy.sampling in ("elimination", "lucb"):
        raise InvalidInputError(
            f"{strategy.sampling} does not fit one global episode: arms that are not pulled never double"
        )
    if strategy.episodes == "global" and strategy.grid != "doubling":
        raise InvalidInputError("one global episode ends when all arms have doubled: it takes no grid of your own")


def _check_epochs(strategy: Strategy) -> None:
    if strategy.threshold not in ("printed", "proved"):
        raise InvalidInputError("dp-se has no empirical or custom threshold: its radii are its stopping rule")
    if strategy.sampling != "elimination" or strategy.bonus != "ucb":
        raise InvalidInputError("dp-se eliminates in epochs of its own: it takes no other sampling rule or bonus")


def _check_bets(strategy: Strategy) -> None:
    if strategy.threshold != "proved":
        raise InvalidInputError("bet-se has one threshold, 1/δ, and it is proved: leave threshold out")
    if strategy.sampling not in ("elimination", "top-two"):
        raise InvalidInputError(f"bet-se samples by elimination or top-two; got {strategy.sampling!r}")
    if strategy.beta != 0.5 or strategy.bonus != "ucb":
        raise InvalidInputError("bet-se plans its batches itself: it takes no beta and no bonus")
    number = isinstance(strategy.zeta, int | float) and not isinstance(strategy.zeta, bool)
    if not number or not 0 <= strategy.zeta < 1:
        raise InvalidInputError(
            f"zeta must lie in [0, 1), as rewards lie in [0, 1]; got {strategy.zeta!r}; with 1 or more any arm would do"
        )
