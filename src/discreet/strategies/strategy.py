"""Strategy = estimator × sampling × cost × stopping × design: frozen, checked, equal by
value, JSON both ways.

Make one with a preset (`discreet.strategies.presets`). Parts that do not fit together
are refused with the reason, and every strategy can say in words what it guarantees.
"""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import Field, asdict, dataclass, field, fields, replace
from typing import Any

from discreet.errors import InvalidInputError
from discreet.scale import YES_NO
from discreet.strategies import estimators
from discreet.strategies.estimators import STEP_RULES, CustomBonus, CustomGrid, CustomThreshold
from discreet.trust import TRUSTS, Trust
from discreet.validation import check_delta, convert_to_float
from discreet.wording import NO_GUARANTEE

OPTIONS = {"sampling", "threshold", "cost", *estimators.OPTIONS}
"""What a preset lets one choose beside its levels."""
LEVELS = {"delta", "epsilon", "gamma", "rho", "trust"}
CUSTOM = (CustomThreshold, CustomBonus, CustomGrid)


def option(
    default: Any,
    label: str,
    help: str,
    choices: Sequence[str] = (),
    unit: str = "",
    usual: str | None = None,
) -> Any:
    """Return a field that the command line, study files and plans offer as an option.

    `help` ends in a full stop; `usual` says what holds without the option, if that is not
    the default itself. What the option does not fit is in `estimators`.
    """
    usual = str(default) if usual is None else usual
    about = {"label": label, "help": help, "choices": choices, "unit": unit, "usual": usual}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Strategy:
    """A rule for whom to sample, what to release and when to stop. Make one with a
    preset, vary it with `with_`.
    """

    name: str
    estimator: str
    delta: float
    epsilon: float | None = None
    gamma: float | None = None
    sampling: str = option(
        "top-two",
        "sampling rule",
        f"How the next arm is chosen: {', '.join(estimators.SAMPLINGS)}.",
        estimators.SAMPLINGS,
        usual="the strategy's own",
    )
    """Whom to sample next. The paper's Top Two rule, others of that family (`eb-tc`,
    `eb-tci`, `ts-tc`), `track-and-stop`, `uniform`, `lucb` or `elimination`: the error
    rate is the threshold's, whatever the rule.
    """
    cost: str = option(
        "gaussian",
        "transportation cost",
        "The cost function of ttucb and ctb-tt: gaussian, or kl for Bernoulli rewards.",
        estimators.COSTS,
    )
    threshold: str | CustomThreshold = "proved"
    beta: float | str = option(
        0.5,
        "share of the leader",
        "The share of the samples that the leading arm gets (β), or ids to adapt it.",
    )
    episodes: str = option(
        "arm",
        "episodes",
        "Whether each arm of a phased strategy has its own phases (arm), or all arms share them "
        "(global, global-yielding).",
        estimators.EPISODES,
    )
    bonus: str | CustomBonus = "ucb"
    grid: str | CustomGrid = "doubling"
    s: float = option(
        1.2,
        "parameter s of the bonus",
        "A parameter (s) of the exploration bonus b^G of ttucb and similar strategies.",
    )
    alpha: float = option(
        1.2, "parameter α of the bonus", "Another parameter (α) of the same bonus."
    )
    trust: str = ""
    """Who must be trusted with raw outcomes: `none` (no privacy), `local` (nobody) or
    `global` (the collector).

    A choice for the estimator bets; it follows from the estimator otherwise, and may be
    left out.
    """
    indifference_zone: float = option(
        0.0,
        "indifference zone",
        "A difference too small to matter (ζ), for bet-se: any arm this close to the best is a "
        "right answer, and arms may tie.",
        unit="reward",
        usual="0",
    )
    """ζ: an arm at most so far below the best may be named."""
    target_difference: float = option(
        0.0,
        "target difference",
        "The difference that bet-se plans for. If it is wrong, the trial takes more participants; "
        "no guarantee depends on it.",
        unit="reward",
        usual="none",
    )
    """0: no difference is expected."""
    outcomes: str = option(
        YES_NO,
        "kind of outcomes",
        "Which outcomes bet-se should expect: yes-no or numbers.",
        estimators.OUTCOMES,
        usual="as the arms or --range say",
    )
    """What the estimator bets expects outcomes to be: `yes-no`, or `numbers`, of which
    it uses the variance. Both are right for any outcomes in [0, 1].
    """
    rho: float | None = None
    """ρ of zero-concentrated privacy (zCDP), in place of epsilon: sums with Gaussian
    noise.
    """
    sigma: float | None = None
    """Of strategies without privacy: rewards are σ-sub-Gaussian, and have no bounds.
    None: they lie in [0, 1], and σ = 1/2.
    """

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together, with the reason."""
        check_delta(self.delta)
        for name in NUMBERS:
            value = getattr(self, name)
            if not math.isnan(number := convert_to_float(value)):
                object.__setattr__(
                    self, name, number + 0.0
                )  # 1 and 1.0 are the same ε, also when written down, and so are 0 and -0
        self._check_parts()

    def _check_parts(self) -> None:
        estimators.check_words(self)
        object.__setattr__(
            self, "trust", estimators.find_trust(self.estimator, self.name, self.trust)
        )
        estimators.check_parts(self)

    def with_(self, **changes: Any) -> "Strategy":
        """Return the same strategy with other levels or options; the parts that define
        it stay.
        """
        from discreet.strategies.presets import PARTS

        own = set(PARTS.get(self.name, {})) - set(self.spec.refusals)
        fixed = set(changes) - (OPTIONS - own) - LEVELS
        if fixed:
            raise InvalidInputError(
                f"{sorted(fixed)[0]!r} is not an option of {self.name}: make another preset"
            )
        return replace(self, **changes)

    def without_privacy(self) -> "Strategy | None":
        """Return the same strategy without privacy, if its estimator can do without;
        else None.
        """
        bare = {"trust": "none", "epsilon": None, "gamma": None, "rho": None}
        return self.with_(**bare) if "none" in self.spec.trusts else None

    @property
    def spec(self) -> estimators.Estimator:
        """What the estimator is: its family, what it takes, what it releases."""
        return estimators.ESTIMATORS[self.estimator]

    @property
    def trust_model(self) -> Trust:
        """Who sees outcomes, and where the noise is added."""
        return TRUSTS[self.trust]

    @property
    def is_pure(self) -> bool:
        """Return whether its privacy, if any, is stated by ε alone."""
        return self.gamma is None and self.rho is None

    @property
    def level(self) -> tuple[str, float | None]:
        """The number that says how private it is, and its name, as each release states
        them.
        """
        return ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)

    @property
    def is_phased(self) -> bool:
        """Return whether means are renewed at the ends of phases, between which nothing
        new is learned.
        """
        return self.spec.family == "phased"

    @property
    def has_global_episode(self) -> bool:
        """Return whether all arms renew their means at once: one global episode."""
        return self.episodes != "arm"

    @property
    def needs_each_sample(self) -> bool:
        """Return whether a run must be followed person by person, and cannot leap from
        release to release.
        """
        return self.spec.each_answer or self.beta == "ids" or self.sampling in STEP_RULES

    @property
    def reference(self) -> str:
        """Where the strategy comes from."""
        from discreet.strategies.presets import REFERENCES, RULES

        source = REFERENCES.get(self.name, "composed from the parts of the paper's strategies")
        if self.sampling == self.spec.samplings[0]:
            return source
        rule = f" ({RULES[self.sampling]})" if self.sampling in RULES else ""
        return f"{source}; with {self.sampling} sampling{rule}"

    @property
    def privacy(self) -> str:
        """The privacy guarantee in words."""
        model = self.trust_model
        if not model.is_private:
            return f"none: {model.where}"
        if self.rho is not None:
            return f"{self.rho:.15g}-{model.name} zCDP: {model.where}"
        level = (
            f"{self.epsilon:.15g}"
            if self.gamma is None
            else f"({self.epsilon:.15g}, {self.gamma:.15g})"
        )
        return f"{level}-{model.name} DP: {model.where}"

    @property
    def correctness(self) -> str:
        """What is known about the error rate, in words."""
        if isinstance(self.threshold, CustomThreshold):
            return f"{NO_GUARANTEE}: the threshold {self.threshold.name!r} is your own"
        if self.threshold == "empirical":
            return "no guarantee: the threshold of the published experiments has no proof"
        if isinstance(self.grid, CustomGrid):
            return (
                f"{NO_GUARANTEE}: the thresholds are proved for doubling, not for "
                f"{self.grid.name!r}"
            )
        if self.indifference_zone > 0:
            return (
                f"more than {self.indifference_zone:g} below the best with probability at most "
                f"{self.delta:g} (rewards in [0, 1])"
            )
        rewards = "rewards in [0, 1]"
        if self.sigma is not None:
            rewards = f"σ-sub-Gaussian rewards with σ = {self.sigma:g}"
        return f"wrong with probability at most {self.delta:g}, for {rewards} and a unique best arm"

    @property
    def is_proved(self) -> bool:
        """Return whether the error rate is guaranteed."""
        return self.threshold in ("printed", "proved") and isinstance(self.grid, str)

    @property
    def shown_outcomes(self) -> str | None:
        """What it expects outcomes to be; None where there is no such choice."""
        return self.outcomes if "outcomes" in self.spec.options else None

    @property
    def shown(self) -> str:
        """The name for people, with what must be said wherever it is shown."""
        return self.name

    @property
    def label(self) -> dict[str, str]:
        """What a table row says beside its numbers: nothing for a strategy of ours,
        since its threshold says it.
        """
        return {}

    @property
    def extra(self) -> dict[str, Any]:
        """What is chosen beside the parts, by name; nothing in a strategy of ours."""
        return {}

    @property
    def identity(self) -> dict[str, Any]:
        """What identifies it in a study's folder."""
        return self.to_dict()

    def describe(self) -> dict[str, Any]:
        """Describe the strategy in plain types; parts that are Python functions by
        their names.
        """
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            name: f"custom: {part.name}" if isinstance(part, CUSTOM) else part
            for name, part in fields.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain types from which `from_dict` makes an equal strategy. Refuse
        parts that are Python functions.
        """
        for part in (self.threshold, self.bonus, self.grid):
            if not isinstance(part, str):
                raise InvalidInputError(
                    f"{part.name!r} is a Python function and cannot be saved as data, which "
                    "studies and trials need: simulate and plan take it, and a study takes an "
                    "UserStrategy"
                )
        return asdict(self)

    @staticmethod
    def from_dict(description: dict[str, Any]) -> "Strategy":
        """Make the strategy that `to_dict` described."""
        try:
            return Strategy(**description)
        except TypeError as error:
            raise InvalidInputError(f"not the description of a strategy: {error}") from None

    def to_json(self) -> str:
        """Return `to_dict` as a JSON document."""
        return json.dumps(self.to_dict())

    @staticmethod
    def from_json(document: str) -> "Strategy":
        """Make the strategy that `to_json` wrote."""
        try:
            description = json.loads(document)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"not a JSON document: {error}") from None
        if not isinstance(description, dict):
            raise InvalidInputError("not the description of a strategy: a JSON object is needed")
        return Strategy.from_dict(description)


NUMBERS = tuple(
    each.name for each in fields(Strategy) if each.type in (float, float | None, float | str)
)
"""The fields that are numbers: 1 and 1.0 are the same, also when written down."""


def list_options(names: Collection[str] = OPTIONS) -> dict[str, Field[Any]]:
    """Return those of the named fields that are declared by `option`, by name."""
    return {each.name: each for each in fields(Strategy) if each.name in names and each.metadata}


def check_strategy(strategy: Any) -> Strategy:
    """Refuse what is not a strategy."""
    if not isinstance(strategy, Strategy):
        raise InvalidInputError("strategy must be a Strategy, such as bet_se(0.05, epsilon=1)")
    return strategy
