"""What an estimator is, as data: its family, the trust models and options it has, and
why it refuses the others.

A strategy is put together from parts. Each estimator is one row of `ESTIMATORS`;
`check` compares a strategy with its row and with what no strategy can have, and every
refusal says what to do. Nothing else compares estimators by name.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet import scale
from discreet._types import Floats
from discreet.errors import InvalidInputError
from discreet.scale import NUMBERS, YES_NO
from discreet.trust import TRUSTS
from discreet.validation import (
    check_beta,
    check_epsilon,
    check_gamma,
    check_rho,
    check_sigma,
    is_word,
    quote,
)

if TYPE_CHECKING:
    from discreet.strategies.strategy import Strategy


def check_privacy(strategy: "Strategy") -> None:
    """Refuse levels that the strategy does not have, or that are missing."""
    row, model = strategy.spec, TRUSTS[strategy.trust]
    if not model.is_private:
        if strategy.epsilon is not None:
            private = [f"trust='{word}'" for word in row.trusts if TRUSTS[word].is_private]
            other = f"say {' or '.join(private)}" if private else "use a private strategy"
            raise InvalidInputError(
                f"{strategy.name} has no privacy here (trust='none'): leave epsilon out, or {other}"
            )
    elif strategy.epsilon is None and strategy.rho is None:
        other = ", or trust='none'" if "none" in row.trusts else ""
        raise InvalidInputError(
            f"{strategy.name} is private: say how private, for instance epsilon=1{other}"
        )
    elif strategy.epsilon is not None:
        check_epsilon(strategy.epsilon)
    _check_gaussian(strategy, row.gaussian and model.noised)


def _check_gaussian(strategy: "Strategy", sums: bool) -> None:
    """Refuse γ and ρ, the levels of Gaussian noise, where they do not fit; `sums` may
    have it.
    """
    gamma, rho = strategy.gamma, strategy.rho
    if (strategy.spec.gamma and gamma is None) or (
        gamma is not None and not (sums or strategy.spec.gamma)
    ):
        raise InvalidInputError(
            "gamma belongs to gauss-tt, and gauss-tt needs it, for instance gamma=1e-6; bet-se and "
            "adap-tt take it with a trusted collector"
        )
    if rho is not None and not sums:
        raise InvalidInputError(
            "rho, the level of zero-concentrated privacy, is for bet-se and adap-tt with a trusted "
            "collector"
        )
    if gamma is not None:
        check_gamma(gamma)
    if rho is not None:
        if strategy.epsilon is not None or gamma is not None:
            raise InvalidInputError(
                "give either rho, or epsilon (with gamma if you like), not both"
            )
        check_rho(rho)
    if sums and not strategy.is_pure:
        _check_levels_fit(strategy)


def _check_levels_fit(strategy: "Strategy") -> None:
    """Refuse levels for which there is no Gaussian noise on sums, and what is not
    proved for it.
    """
    from discreet.strategies.units import compute_sum_noise

    compute_sum_noise(strategy)
    if strategy.cost == "private":
        raise InvalidInputError(
            f"the cost of {strategy.name} is that of pure ε: with gamma or rho use adap-tt, "
            "whose cost does not change with Gaussian noise"
        )
    if strategy.threshold in ("printed", "empirical"):
        raise InvalidInputError(
            "with Gaussian noise (gamma or rho) only the proved threshold is available: leave "
            "threshold out"
        )
    if strategy.outcomes == scale.NUMBERS:
        raise InvalidInputError(
            "Gaussian noise (gamma or rho) is for outcomes that are yes or no: leave outcomes out, "
            "or leave gamma or rho out"
        )


OUTCOMES = (YES_NO, NUMBERS)


def check_leader_share(beta: Any) -> None:
    """Refuse what is no share of the leader, nor the word for one that adapts."""
    if isinstance(beta, str):
        if beta != "ids":
            raise InvalidInputError(f"beta must be a number in (0, 1) or 'ids'; got {quote(beta)}")
    else:
        check_beta(beta)


def check_indifference_zone(indifference_zone: Any) -> None:
    """Refuse what is no indifference zone."""
    if (
        isinstance(indifference_zone, bool)
        or not isinstance(indifference_zone, int | float)
        or not 0 <= indifference_zone < 1
    ):
        raise InvalidInputError(
            "indifference_zone must lie in [0, 1), as rewards lie in [0, 1]; got "
            f"{quote(indifference_zone)}; with 1 or more any arm would do"
        )


def check_target_difference(target_difference: Any) -> None:
    """Refuse what is no target difference."""
    number = isinstance(target_difference, int | float) and not isinstance(target_difference, bool)
    if not number or not (target_difference == 0 or 1e-6 <= target_difference <= 1):
        raise InvalidInputError(
            "target_difference is the difference between arms that you expect to find, a number "
            f"from 1e-6 to 1, or 0 for none; got {quote(target_difference)}"
        )


def check_outcomes(outcomes: Any) -> None:
    """Refuse what is no kind of outcomes."""
    if not is_word(outcomes, OUTCOMES):
        raise InvalidInputError(
            f"outcomes must be {YES_NO} or {NUMBERS} (any number in [0, 1]); got {quote(outcomes)}"
        )


def check_known_sigma(sigma: Any) -> None:
    """Refuse what is no σ; None means that rewards are bounded."""
    if sigma is not None:
        check_sigma(sigma)


def make_check_above_one(what: str) -> Callable[[Any], None]:
    """Return a check that a number is larger than 1."""

    def check(value: Any) -> None:
        if not isinstance(value, int | float) or not 1 < value < math.inf:
            raise InvalidInputError(f"{what} must be a number larger than 1; got {quote(value)}")

    return check


@dataclass(frozen=True)
class CustomThreshold:
    """A stopping threshold of your own, to be compared with the transportation cost
    W^G.

    For phased estimators it is `function(count_best, count_other)` on arrays of counts.
    For estimators that release every sample it is `function(count)` of one arm's count,
    nondecreasing; its values for the two arms are added up. discreet guarantees nothing
    for it: whether the error rate holds is for you to prove.
    """

    name: str
    function: Callable[..., Any]

    def __post_init__(self) -> None:
        """Refuse what is not a function."""
        _check_callable(self.name, self.function)


@dataclass(frozen=True)
class CustomBonus:
    """A confidence bonus of your own, by which the leader is chosen: `function(count)`,
    where `count` is an array of an arm's counts.
    """

    name: str
    function: Callable[[Any], Any]

    def __post_init__(self) -> None:
        """Refuse what is not a function."""
        _check_callable(self.name, self.function)


@dataclass(frozen=True)
class CustomGrid:
    """When a phased estimator renews an arm's mean: `function(phase)` is the number of
    the arm's pulls when that phase is complete. It must grow, and be 1 for phase 1.
    """

    name: str
    function: Callable[[int], int]

    def __post_init__(self) -> None:
        """Refuse what is not a function."""
        _check_callable(self.name, self.function)


def check_table(what: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """Return a function's values as the table that a kernel reads. Refuse a wrong shape
    and NaN.
    """
    array = np.asarray(values, dtype=np.float64)
    try:
        table = np.ascontiguousarray(np.broadcast_to(array, shape)).copy()
    except ValueError:
        raise InvalidInputError(
            f"your {what} must give one number for each count: asked for the shape {shape}, got "
            f"{array.shape}"
        ) from None
    if np.isnan(table).any():
        raise InvalidInputError(f"your {what} gives NaN for some counts")
    return table


def _check_callable(name: str, function: object) -> None:
    if not callable(function):
        raise InvalidInputError(f"{quote(name)} needs a function; got {quote(function)}")


SAMPLINGS = (
    "top-two",
    "uniform",
    "lucb",
    "elimination",
    "eb-tc",
    "eb-tci",
    "ts-tc",
    "track-and-stop",
)
"""The sampling rules, in the order of their codes in `sampling`."""
PAIR_RULES = ("top-two", "eb-tc", "eb-tci", "ts-tc")
"""Rules with a leader and a challenger."""
STEP_RULES = ("eb-tci", "track-and-stop")
"""Rules with which no run can leap from release to release."""
NO_DRAWS = (
    "ts-tc is for strategies that learn from every sample: a leader drawn at a release would "
    "stay until the next one, and releases become ever rarer. Use eb-tci or track-and-stop"
)
THRESHOLDS = ("printed", "proved", "empirical")
COSTS = ("gaussian", "private", "kl")
EPISODES = ("arm", "global", "global-yielding")
CUSTOM = "custom"
"""Stands for a function of your own where values of an option are listed."""

SIMPLE, SHUFFLED, FIXED = "simple", "shuffled", "fixed"
"""How a live trial deals people to arms; what each means is in `trials.dealing`."""


@dataclass(frozen=True)
class Estimator:
    """One row: what is released, by whom it is decided, and what goes with it."""

    words: str
    """What it releases."""
    family: str
    """Name of the module in `strategies` that decides, and of the one in `simulation`
    that simulates it.
    """
    trusts: tuple[str, ...]
    """The trust models it has, the usual one first."""
    options: frozenset[str]
    """Which of `OPTIONS` it takes."""
    samplings: tuple[str, ...] = SAMPLINGS
    """Its sampling rules, the usual one first."""
    thresholds: tuple[str, ...] = (*THRESHOLDS, CUSTOM)
    costs: tuple[str, ...] = ("gaussian",)
    """Its transportation costs; a choice where the preset does not say which."""
    gamma: bool = False
    """Its privacy has a γ."""
    gaussian: bool = False
    """Its sums may be noised with Gaussian noise in place of Laplace noise: for (ε, γ)
    with a trusted collector, or for ρ.
    """
    forgets: bool = False
    """A mean is of the last phase only, not of all samples."""
    each_answer: bool = False
    """Every answer is a release of its own, so that nobody waits; it is simulated
    sample by sample.
    """
    bits: bool = False
    """Outcomes are rounded at random to bits: means are all that a law of rewards has
    to say.
    """
    prices_noise: bool = False
    """It pays for discrete noise exactly, not by its tails."""
    short: bool = False
    """A simulated run is so short that runs share a Generator in blocks."""
    leaps: bool = False
    """So is it if it leaps from release to release (one episode an arm, a fixed share,
    no Beta arms).
    """
    freezes: bool = False
    """A first noisy mean far below zero can freeze an arm."""
    randomisations: tuple[str, ...] = (SHUFFLED,)
    """How a live trial may deal people to arms, the usual way first: see
    `trials.dealing`.
    """
    own: bool = False
    """Somebody's own code decides, of which nothing is known here; one class for all of
    them, see `simulation.user_strategies`.
    """
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Why it does not take an option or a value of it, where there is more to say than
    in `OPTIONS`.
    """


TOP_TWO = frozenset({"beta", "bonus", "s", "alpha"})
SIGMA = frozenset({"sigma"})
PHASED = TOP_TWO | {"episodes", "grid"}
ESTIMATORS = {
    "mle": Estimator(
        "the mean of all samples, after every sample",
        "stream",
        ("none",),
        TOP_TWO | SIGMA,
        costs=("gaussian", "kl"),
        each_answer=True,
        randomisations=(FIXED,),
    ),
    "dpa": Estimator(
        "the mean of all samples, renewed when an arm's pulls have doubled",
        "phased",
        ("none",),
        PHASED | SIGMA,
        leaps=True,
    ),
    "forget": Estimator(
        "the mean of the last phase, renewed when an arm's pulls have doubled",
        "phased",
        ("none",),
        PHASED - {"s", "alpha"},
        thresholds=("printed", "proved", CUSTOM),
        forgets=True,
        leaps=True,
    ),
    "ctb": Estimator(
        "the mean of randomised responses, after every sample",
        "stream",
        ("local",),
        TOP_TWO,
        costs=("gaussian", "kl"),
        each_answer=True,
        randomisations=(FIXED,),
        bits=True,
    ),
    "gauss": Estimator(
        "the mean of samples with Gaussian noise, after every sample",
        "stream",
        ("local",),
        TOP_TWO,
        gamma=True,
        each_answer=True,
        randomisations=(FIXED,),
    ),
    "daf": Estimator(
        "the mean of the last phase with Laplace noise (with a gamma or a rho, Gaussian), renewed "
        "when an arm's pulls have doubled",
        "phased",
        ("global",),
        PHASED - {"s", "alpha"},
        costs=("gaussian", "private"),
        gaussian=True,
        forgets=True,
        leaps=True,
        freezes=True,
    ),
    "epochs": Estimator(
        "the mean of one epoch's fresh samples with Laplace noise",
        "dp_se",
        ("global",),
        frozenset(),
        samplings=("elimination",),
        thresholds=("printed", "proved"),
        short=True,
        refusals={
            "threshold": (
                "dp-se has no empirical or custom threshold: its radii are its stopping rule"
            ),
            "beta": "dp-se eliminates in epochs of its own: it takes no beta",
            "sampling": (
                "dp-se eliminates in epochs of its own: it takes no other sampling rule or bonus"
            ),
            "bonus": (
                "dp-se eliminates in epochs of its own: it takes no other sampling rule or bonus"
            ),
        },
    ),
    "bets": Estimator(
        "sums of fresh batches: with discrete Laplace noise (global; with a gamma or a rho, "
        "discrete Gaussian), of randomised responses (local) or bare",
        "betting",
        ("global", "local", "none"),
        frozenset({"indifference_zone", "target_difference", "outcomes"}),
        samplings=("elimination",),
        thresholds=("proved",),
        gaussian=True,
        bits=True,
        prices_noise=True,
        randomisations=(SIMPLE,),
        refusals={
            "threshold": "bet-se has one threshold, 1/δ, and it is proved: leave threshold out",
            "sampling": "bet-se eliminates by betting: it takes no other sampling rule",
            "beta": "bet-se plans its batches itself: it takes no beta and no bonus",
            "bonus": "bet-se plans its batches itself: it takes no beta and no bonus",
        },
    ),
}
OWN = Estimator(
    "whatever your class makes of the rewards it is told",
    "user_strategies",
    ("none", "global", "local"),
    frozenset({"indifference_zone"}),
    samplings=("own",),
    thresholds=("own",),
    each_answer=True,
    own=True,
)
"""The row of every strategy of your own."""


class Option(NamedTuple):
    """An option of a strategy, which can be chosen freely if the estimator takes it."""

    usual: Any
    refusal: str
    """What is said where it is not taken."""
    check: Callable[[Any], object] | None = None


NO_PHASES = (
    "episodes and grid are for strategies in phases (adap-tt, adap-tt-star, ttucb-batched, "
    "ttucb-forgetting): {name} has none"
)
OPTIONS = {
    "beta": Option(
        0.5,
        "beta is the leader's share in Top Two sampling; {sampling} has no leader",
        check_leader_share,
    ),
    "indifference_zone": Option(
        0.0, "indifference_zone is for bet-se only", check_indifference_zone
    ),
    "target_difference": Option(
        0.0,
        "target_difference, the difference that you expect to find, is for bet-se only",
        check_target_difference,
    ),
    "outcomes": Option(
        YES_NO,
        "outcomes, the kind of outcomes to expect, is for bet-se only: {name} takes any number "
        "in [0, 1] as it is",
        check_outcomes,
    ),
    "episodes": Option("arm", NO_PHASES),
    "grid": Option("doubling", NO_PHASES),
    "s": Option(
        1.2, "s belongs to the bonus b^G, which {name} does not use", make_check_above_one("s")
    ),
    "alpha": Option(
        1.2,
        "alpha belongs to the bonus b^G, which {name} does not use",
        make_check_above_one("alpha"),
    ),
    "bonus": Option("ucb", "{sampling} sampling uses no bonus"),
    "sigma": Option(
        None,
        "sigma is for unbounded rewards, which {name} does not take: its rewards lie in [0, 1]. "
        "Choose a range and clip what lies outside it (out_of_range='clip'), or use ttucb or "
        "ttucb-batched, which have no privacy",
        check_known_sigma,
    ),
}
"""The options by name, each with its usual value and what is said where it is not
taken.
"""


def check_parts(strategy: "Strategy") -> None:
    """Refuse parts that the estimator does not take, or that do not fit together, with
    the reason.
    """
    check_privacy(strategy)
    if strategy.cost not in strategy.spec.costs:
        raise InvalidInputError(COST_REFUSALS[strategy.cost])
    row = strategy.spec
    for name, option in OPTIONS.items():
        value = getattr(strategy, name)
        if not _is_usual(value, option) and name not in row.options:
            _refuse(strategy, name, option.refusal, value)
        if option.check is not None:
            option.check(value)
    _check_fit(strategy)
    for name, value, allowed in (
        ("threshold", strategy.threshold, row.thresholds),
        ("sampling", strategy.sampling, row.samplings),
    ):
        if (value if isinstance(value, str) else CUSTOM) not in allowed:
            _refuse(
                strategy,
                name,
                f"{name} must be one of {', '.join(allowed)}; got {{value}}",
                value,
            )


def _is_usual(value: Any, option: Option) -> bool:
    """Return whether nothing was chosen. Only a word or a number can be a choice."""
    return value is option.usual or (isinstance(value, str | int | float) and value == option.usual)


def _refuse(strategy: "Strategy", name: str, usual: str, value: Any) -> None:
    words = strategy.spec.refusals.get(name, usual)
    raise InvalidInputError(
        words.format(name=strategy.name, sampling=strategy.sampling, value=quote(value))
    )


def check_words(strategy: "Strategy") -> None:
    """Refuse what is no estimator, rule, cost or option at all."""
    choices: list[tuple[str, Any, Any, tuple[str, ...]]] = [
        ("estimator", strategy.estimator, (), tuple(ESTIMATORS)),
        ("sampling", strategy.sampling, (), SAMPLINGS),
        ("cost", strategy.cost, (), COSTS),
        ("episodes", strategy.episodes, (), EPISODES),
        ("threshold", strategy.threshold, CustomThreshold, THRESHOLDS),
        ("bonus", strategy.bonus, CustomBonus, ("ucb",)),
        ("grid", strategy.grid, CustomGrid, ("doubling",)),
    ]
    for what, value, custom, allowed in choices:
        if not isinstance(value, custom) and not is_word(value, allowed):
            raise InvalidInputError(
                f"{what} must be one of {', '.join(allowed)}; got {quote(value)}"
            )


def find_trust(estimator: str, name: str, trust: str) -> str:
    """Return the trust model of a strategy that says `trust` (or nothing), or refuse
    it.
    """
    row = ESTIMATORS[estimator]
    if len(row.trusts) > 1:
        if not is_word(trust, row.trusts):
            raise InvalidInputError(
                f"trust must be one of {', '.join(row.trusts)}; got {quote(trust)}"
            )
        return trust
    (only,) = row.trusts
    if not is_word(trust, ("", only)):
        raise InvalidInputError(
            f"{name} has trust={only!r} and no other: only bet-se offers a choice"
        )
    return only


COST_REFUSALS = {
    "private": "the private cost W^{G,ε} is for the estimator daf; take cost='gaussian'",
    "kl": (
        "the Bernoulli cost W^KL is for means of rewards in [0, 1] as they are (ttucb) or of "
        "randomised responses (ctb-tt), renewed with every sample; use cost='gaussian'"
    ),
}
"""What is said where an estimator does not have a cost."""


def _check_fit(strategy: "Strategy") -> None:
    """Refuse options that the estimator takes but that do not go together."""
    if strategy.cost == "kl" and strategy.threshold == "printed":
        raise InvalidInputError(
            "the paper prints no threshold for the Bernoulli cost W^KL: use proved or empirical"
        )
    if strategy.cost == "kl" and strategy.sigma is not None:
        raise InvalidInputError(
            "the Bernoulli cost W^KL is for rewards in [0, 1]: leave sigma out, or use "
            "cost='gaussian'"
        )
    if strategy.sampling not in PAIR_RULES and strategy.beta != 0.5:
        raise InvalidInputError(OPTIONS["beta"].refusal.format(sampling=strategy.sampling))
    if strategy.sampling not in ("top-two", "lucb") and not isinstance(strategy.bonus, str):
        raise InvalidInputError(OPTIONS["bonus"].refusal.format(sampling=strategy.sampling))
    if strategy.sampling not in ("top-two", "lucb") or not isinstance(strategy.bonus, str):
        for name in ("s", "alpha"):
            if getattr(strategy, name) != OPTIONS[name].usual:
                raise InvalidInputError(
                    f"{name} belongs to the bonus b^G, which is not used here: leave it out, or "
                    "use top-two or lucb sampling without a bonus of your own"
                )
    if strategy.is_phased and strategy.sampling == "ts-tc":
        raise InvalidInputError(NO_DRAWS)
    if strategy.has_global_episode and strategy.sampling in ("elimination", "lucb", "eb-tc"):
        raise InvalidInputError(
            f"{strategy.sampling} does not fit one global episode: arms that are not pulled "
            "never double; use eb-tci or track-and-stop, which always end it"
        )
    if strategy.episodes == "global-yielding" and strategy.sampling != "top-two":
        raise InvalidInputError(
            f"global-yielding repairs top-two sampling; with {strategy.sampling} every episode of "
            "episodes='global' ends: use that"
        )
    if strategy.has_global_episode and strategy.grid != "doubling":
        raise InvalidInputError(
            "one global episode ends when all arms have doubled: it takes no grid of your own"
        )
