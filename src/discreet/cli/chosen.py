"""The options that choose a strategy, and how they are read."""

from typing import TYPE_CHECKING, Any

import click

from discreet.cli.options import all_options, delta_option, outcomes_option
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet.strategies.strategy import Strategy


def strategy_options(command: Any) -> Any:
    """A preset with its levels, for `read_strategy`."""
    return all_options(
        command,
        click.option(
            "--strategy",
            "name",
            required=True,
            help="The strategy's name: bet-se, ttucb, ctb-tt, adap-tt, dp-se and others.",
        ),
        level_options,
    )


def level_options(command: Any) -> Any:
    """The levels of a strategy, whichever it is, for `read_strategy`."""
    return all_options(
        command,
        click.option(
            "--threshold",
            default="proved",
            show_default=True,
            help="Which threshold ends a trial: the one printed in the paper (printed), one with a "
            "proof (proved), or one without a proof (empirical).",
        ),
        click.option(
            "--epsilon", type=float, help="How private it is (ε): smaller is more private."
        ),
        click.option(
            "--trust",
            default=None,
            help="Who may see outcomes, for bet-se: a collector (global), nobody (local), or "
            "everybody, without privacy (none).  [default: global]",
        ),
        click.option(
            "--gamma",
            type=float,
            help="For (ε, γ)-privacy, which is weaker: the small probability γ that it leaves out. "
            "For gauss-tt, and for bet-se and adap-tt with Gaussian noise.",
        ),
        click.option(
            "--rho",
            type=float,
            help="How private it is by zero-concentrated differential privacy (the ρ of zCDP), "
            "instead of --epsilon, for bet-se and adap-tt.",
        ),
        delta_option,
    )


def design_options(command: Any) -> Any:
    """What else can be chosen of a strategy, for `read_strategy`."""
    return all_options(
        command,
        click.option(
            "--zeta",
            type=float,
            help="A difference too small to matter (ζ), for bet-se: any arm this close to the best "
            "may be named.  [default: 0]",
        ),
        click.option(
            "--hint",
            type=float,
            help="The difference that you expect to find, for bet-se. If it is wrong, the trial "
            "takes more people; no guarantee depends on it.",
        ),
        outcomes_option,
        click.option(
            "--beta",
            default="0.5",
            show_default=True,
            help="The share of the samples that the leading arm gets (β), or ids to adapt it.",
        ),
        click.option(
            "--s",
            type=float,
            help="A parameter (s) of the exploration bonus b^G of ttucb and similar strategies.  "
            "[default: 1.2]",
        ),
        click.option(
            "--alpha",
            type=float,
            help="Another parameter (α) of the same bonus.  [default: 1.2]",
        ),
        click.option(
            "--sampling",
            default=None,
            help="How the next arm is chosen: top-two, eb-tc, eb-tci, ts-tc, track-and-stop, "
            "uniform, lucb or elimination.  [default: the strategy's own]",
        ),
        click.option(
            "--cost",
            default=None,
            help="The cost function of ttucb and ctb-tt: gaussian, or kl for Bernoulli rewards.  "
            "[default: gaussian]",
        ),
        click.option(
            "--episodes",
            default=None,
            help="Whether each arm of a phased strategy has its own phases (arm), or all arms "
            "share them (global, global-yielding).",
        ),
    )


def read_strategy(name: str, options: dict[str, Any]) -> "Strategy":
    """The preset of that name with those options that were given."""
    from discreet.strategies.presets import gaussian_levels_of, levels_of, preset_of

    preset = preset_of(name)
    given = {key: value for key, value in options.items() if value is not None}
    beta = given.pop("beta", "0.5")
    if beta != "0.5":
        try:
            given["beta"] = beta if beta == "ids" else float(beta)
        except ValueError:
            raise InvalidInputError(
                f"beta must be a number in (0, 1) or ids; got {beta!r}"
            ) from None
    trust = given.get("trust")
    needed, more = levels_of(name, trust), gaussian_levels_of(name, trust)
    for key in ("epsilon", "gamma", "rho"):
        if key in given and key not in (*needed, *more):
            raise InvalidInputError(f"{name} takes no --{key}")
    if "rho" in given:
        given.setdefault("epsilon", None)
    for key in needed:
        if key not in given:
            raise InvalidInputError(f"{name} is private: say how private, with --{key}")
    return preset(**given)
