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

from discreet import scale
from discreet.errors import InvalidInputError
from discreet.strategies.custom import CustomBonus, CustomGrid, CustomThreshold
from discreet.trust import TRUSTS
from discreet.validate import check_beta, check_epsilon, check_gamma, is_word, quoted

if TYPE_CHECKING:
    from discreet.strategies.strategy import Strategy

SAMPLINGS = ("top-two", "uniform", "lucb", "elimination")
THRESHOLDS = ("printed", "proved", "empirical")
COSTS = ("gaussian", "private")
EPISODES = ("arm", "global")
YES_NO, NUMBERS = scale.YES_NO, scale.NUMBERS
OUTCOMES = (YES_NO, NUMBERS)
CUSTOM = "custom"
"""Stands for a function of your own where values of an option are listed."""


COINS, BLOCKS, SHUFFLED, ORDER = "coins", "blocks", "shuffled", "order"
"""How a live trial deals people to arms; what each means is in `trials.dealing`."""


@dataclass(frozen=True)
class Estimator:
    """One row: what is released, by whom it is decided, and what goes with it."""

    words: str
    """What it releases."""
    family: str
    """The package in `strategies` that decides, and the module in `simulation.loops`
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
    gamma: bool = False
    """Its privacy has a γ."""
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
    dealings: tuple[str, ...] = (SHUFFLED,)
    """How a live trial may deal people to arms, the usual way first: see
    `trials.dealing`.
    """
    own: bool = False
    """Somebody's own code decides, of which nothing is known here; one class for all of
    them, see `simulation.own`.
    """
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Why it does not take an option or a value of it, where there is more to say than
    in `OPTIONS`.
    """


TOP_TWO = frozenset({"beta", "bonus", "s", "alpha"})
PHASED = TOP_TWO | {"episodes", "grid"}
ESTIMATORS = {
    "mle": Estimator(
        "the mean of all samples, after every sample",
        "stream",
        ("none",),
        TOP_TWO,
        each_answer=True,
        dealings=(ORDER,),
    ),
    "dpa": Estimator(
        "the mean of all samples, renewed when an arm's pulls have doubled",
        "phased",
        ("none",),
        PHASED,
        leaps=True,
    ),
    "ctb": Estimator(
        "the mean of randomised responses, after every sample",
        "stream",
        ("local",),
        TOP_TWO,
        each_answer=True,
        dealings=(ORDER,),
        bits=True,
    ),
    "gauss": Estimator(
        "the mean of samples with Gaussian noise, after every sample",
        "stream",
        ("local",),
        TOP_TWO,
        gamma=True,
        each_answer=True,
        dealings=(ORDER,),
    ),
    "daf": Estimator(
        "the mean of the last phase with Laplace noise, renewed when an arm's pulls have doubled",
        "phased",
        ("global",),
        PHASED - {"s", "alpha"},
        costs=COSTS,
        forgets=True,
        leaps=True,
        freezes=True,
    ),
    "epochs": Estimator(
        "the mean of one epoch's fresh samples with Laplace noise",
        "epochs",
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
        "sums of fresh batches: with discrete Laplace noise (global), of randomised responses "
        "(local) or bare",
        "betting",
        ("global", "local", "none"),
        frozenset({"zeta", "hint", "outcomes"}),
        samplings=("elimination", "top-two"),
        thresholds=("proved",),
        bits=True,
        prices_noise=True,
        dealings=(COINS, BLOCKS),
        refusals={
            "threshold": "bet-se has one threshold, 1/δ, and it is proved: leave threshold out",
            "sampling": "bet-se samples by elimination or top-two; got {value}",
            "beta": "bet-se plans its batches itself: it takes no beta and no bonus",
            "bonus": "bet-se plans its batches itself: it takes no beta and no bonus",
        },
    ),
}
OWN = Estimator(
    "whatever your class makes of the rewards it is told",
    "own",
    ("none", "global", "local"),
    frozenset({"zeta"}),
    samplings=("own",),
    thresholds=("own",),
    each_answer=True,
    own=True,
)
"""The row of every strategy of your own."""


class Option(NamedTuple):
    """Something of a strategy that can be chosen freely where its estimator takes
    it.
    """

    usual: Any
    refusal: str
    """What is said where it is not taken."""
    check: Callable[[Any], object] | None = None


def _check_share(beta: Any) -> None:
    if isinstance(beta, str):
        if beta != "ids":
            raise InvalidInputError(f"beta must be a number in (0, 1) or 'ids'; got {quoted(beta)}")
    else:
        check_beta(beta)


def _check_zeta(zeta: Any) -> None:
    if isinstance(zeta, bool) or not isinstance(zeta, int | float) or not 0 <= zeta < 1:
        raise InvalidInputError(
            f"zeta must lie in [0, 1), as rewards lie in [0, 1]; got {quoted(zeta)}; with 1 or "
            "more any arm would do"
        )


def _check_hint(hint: Any) -> None:
    number = isinstance(hint, int | float) and not isinstance(hint, bool)
    if not number or not (hint == 0 or 1e-6 <= hint <= 1):
        raise InvalidInputError(
            "hint is the difference between arms that one expects to find, a number from 1e-6 to "
            f"1, or 0 for none; got {quoted(hint)}"
        )


def _check_outcomes(outcomes: Any) -> None:
    if not is_word(outcomes, OUTCOMES):
        raise InvalidInputError(
            f"outcomes must be {YES_NO} or {NUMBERS} (any number in [0, 1]); got {quoted(outcomes)}"
        )


def _larger_than_one(what: str) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if not isinstance(value, int | float) or not 1 < value < math.inf:
            raise InvalidInputError(f"{what} must be a number larger than 1; got {quoted(value)}")

    return check


OPTIONS = {
    "beta": Option(
        0.5,
        "beta is the leader's share in Top Two sampling; {sampling} has no leader",
        _check_share,
    ),
    "zeta": Option(0.0, "zeta, the indifference gap, is a part of bet-se only", _check_zeta),
    "hint": Option(
        0.0, "hint, the difference one expects to find, is a part of bet-se only", _check_hint
    ),
    "outcomes": Option(
        YES_NO,
        "outcomes, what bet-se expects outcomes to be, is a part of bet-se only: {name} takes any "
        "number in [0, 1] as it is",
        _check_outcomes,
    ),
    "episodes": Option("arm", "episodes and grid are for the phased estimators dpa and daf"),
    "grid": Option("doubling", "episodes and grid are for the phased estimators dpa and daf"),
    "s": Option(
        1.2, "s belongs to the bonus b^G, which {name} does not use", _larger_than_one("s")
    ),
    "alpha": Option(
        1.2, "alpha belongs to the bonus b^G, which {name} does not use", _larger_than_one("alpha")
    ),
    "bonus": Option("ucb", "{sampling} sampling uses no bonus"),
}
"""The options by name, each with its usual value and what is said where it is not
taken.
"""


def check(strategy: "Strategy") -> None:
    """Refuse parts that the estimator does not take, or that do not fit together, with
    the reason.
    """
    _check_privacy(strategy)
    row = strategy.part
    for name, option in OPTIONS.items():
        value = getattr(strategy, name)
        if not _usual(value, option) and name not in row.options:
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


def _usual(value: Any, option: Option) -> bool:
    """Whether nothing was chosen; nothing but a word or a number can be."""
    return isinstance(value, str | int | float) and value == option.usual


def _refuse(strategy: "Strategy", name: str, usual: str, value: Any) -> None:
    words = strategy.part.refusals.get(name, usual)
    raise InvalidInputError(
        words.format(name=strategy.name, sampling=strategy.sampling, value=quoted(value))
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
                f"{what} must be one of {', '.join(allowed)}; got {quoted(value)}"
            )


def usual_trust(estimator: str, name: str, trust: str) -> str:
    """The trust model of a strategy that says `trust` (or nothing), or why there is
    none.
    """
    row = ESTIMATORS[estimator]
    if len(row.trusts) > 1:
        if not is_word(trust, row.trusts):
            raise InvalidInputError(
                f"trust must be one of {', '.join(row.trusts)}; got {quoted(trust)}"
            )
        return trust
    (only,) = row.trusts
    if not is_word(trust, ("", only)):
        raise InvalidInputError(f"{name} has trust={only!r} and no other: only bet-se has a choice")
    return only


def _check_privacy(strategy: "Strategy") -> None:
    row, model = strategy.part, TRUSTS[strategy.trust]
    if not model.private:
        if strategy.epsilon is not None:
            raise InvalidInputError(
                f"{strategy.name} has no privacy: leave epsilon out, or take a private strategy"
            )
    elif strategy.epsilon is None:
        other = ", or trust='none'" if "none" in row.trusts else ""
        raise InvalidInputError(
            f"{strategy.name} is private: say how private, for instance epsilon=1{other}"
        )
    else:
        check_epsilon(strategy.epsilon)
    if row.gamma != (strategy.gamma is not None):
        raise InvalidInputError(
            "gamma belongs to gauss-tt, and gauss-tt needs it, for instance gamma=1e-6"
        )
    if strategy.gamma is not None:
        check_gamma(strategy.gamma)
    if strategy.cost not in row.costs:
        raise InvalidInputError(
            "the private cost W^{G,ε} is for the estimator daf; take cost='gaussian'"
        )


def _check_fit(strategy: "Strategy") -> None:
    """Refuse options that the estimator takes but that do not go together."""
    if strategy.sampling != "top-two" and strategy.beta != 0.5:
        raise InvalidInputError(OPTIONS["beta"].refusal.format(sampling=strategy.sampling))
    if strategy.sampling not in ("top-two", "lucb") and not isinstance(strategy.bonus, str):
        raise InvalidInputError(OPTIONS["bonus"].refusal.format(sampling=strategy.sampling))
    if strategy.episodes == "global" and strategy.sampling in ("elimination", "lucb"):
        raise InvalidInputError(
            f"{strategy.sampling} does not fit one global episode: arms that are not pulled never "
            "double"
        )
    if strategy.episodes == "global" and strategy.grid != "doubling":
        raise InvalidInputError(
            "one global episode ends when all arms have doubled: it takes no grid of your own"
        )
