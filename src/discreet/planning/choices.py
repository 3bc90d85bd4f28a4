"""The strategies that a plan is made for, each as a function of ε."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from discreet.errors import InvalidInputError
from discreet.strategies.presets import expecting, levels_of, preset_of, trusts_of
from discreet.strategies.strategy import Strategy
from discreet.trust import TRUSTS

Choice = Callable[[float], Strategy]
"""A strategy as a function of ε."""


class Design(NamedTuple):
    """What all strategies of a plan are made with, where they take it."""

    delta: float
    trust: str
    hint: float
    outcomes: str
    zeta: float


def strategies_of(strategies: Sequence[str | Strategy] | None, design: Design) -> list[Choice]:
    """The strategies to plan, each as a function of ε; the recommended one if none are
    named.
    """
    wanted = ["bet-se"] if strategies is None else strategies
    if not isinstance(wanted, list | tuple):
        raise InvalidInputError('strategies must be a list, such as ["bet-se", "dp-se"], or None')
    choices = [_choice(each, design) for each in wanted]
    if not choices:
        raise InvalidInputError(
            "give at least one strategy, or leave strategies out for the recommended one"
        )
    return choices


def _choice(each: str | Strategy, design: Design) -> Choice:
    """A strategy as a function of ε; those without privacy do not mind."""
    delta, trust = design.delta, design.trust
    if isinstance(each, Strategy):
        own = each
        if own.rho is not None:
            raise InvalidInputError(
                "a plan compares values of ε: give epsilon and gamma instead of rho, or "
                "simulate the strategy"
            )

        def at(epsilon: float) -> Strategy:
            level = {} if own.epsilon is None else {"epsilon": epsilon}
            return _indifferent(own.with_(delta=delta, **level), design)
    else:
        preset = preset_of(each)
        needed = levels_of(each, trust)
        chosen = {"trust": trust} if len(trusts_of(each)) > 1 else {}
        if "gamma" in needed:
            raise InvalidInputError(
                f"{each} needs a γ of your choice: plan it from Python, with your own "
                f"{preset.__name__}(…)"
            )

        def at(epsilon: float) -> Strategy:
            made = preset(delta=delta, **dict.fromkeys(needed, epsilon), **chosen)
            made = _indifferent(expecting(made, design.outcomes), design)
            return made.with_(hint=design.hint) if "hint" in made.part.options else made

    if TRUSTS[trust].randomised and at(1.0).trust_model.noised:
        raise InvalidInputError(
            f"{at(1.0).name} needs a trusted collector: with trust=local use bet-se or ctb-tt, "
            "or name no strategy"
        )
    return at


def _indifferent(strategy: Strategy, design: Design) -> Strategy:
    """The strategy with the indifference gap of the plan, if there is one; what takes
    none is refused, as it would answer another question.
    """
    if design.zeta == 0 or strategy.zeta > 0:
        return strategy
    if "zeta" not in strategy.part.options:
        raise InvalidInputError(
            f"{strategy.name} takes no zeta, a difference too small to matter: plan bet-se with "
            "it, or leave zeta out"
        )
    return strategy.with_(zeta=design.zeta)
