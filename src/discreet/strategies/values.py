"""Checks of an option's value alone, whichever strategy it is for."""

import math
from collections.abc import Callable
from typing import Any

from discreet.errors import InvalidInputError
from discreet.scale import NUMBERS, YES_NO
from discreet.validate import check_beta, check_sigma, is_word, quoted

OUTCOMES = (YES_NO, NUMBERS)


def check_share(beta: Any) -> None:
    """The leader's share, or the word for one that adapts."""
    if isinstance(beta, str):
        if beta != "ids":
            raise InvalidInputError(f"beta must be a number in (0, 1) or 'ids'; got {quoted(beta)}")
    else:
        check_beta(beta)


def check_zeta(zeta: Any) -> None:
    """The indifference gap."""
    if isinstance(zeta, bool) or not isinstance(zeta, int | float) or not 0 <= zeta < 1:
        raise InvalidInputError(
            f"zeta must lie in [0, 1), as rewards lie in [0, 1]; got {quoted(zeta)}; with 1 or "
            "more any arm would do"
        )


def check_hint(hint: Any) -> None:
    """The difference one expects to find."""
    number = isinstance(hint, int | float) and not isinstance(hint, bool)
    if not number or not (hint == 0 or 1e-6 <= hint <= 1):
        raise InvalidInputError(
            "hint is the difference between arms that you expect to find, a number from 1e-6 to "
            f"1, or 0 for none; got {quoted(hint)}"
        )


def check_outcomes(outcomes: Any) -> None:
    """What outcomes are expected to be."""
    if not is_word(outcomes, OUTCOMES):
        raise InvalidInputError(
            f"outcomes must be {YES_NO} or {NUMBERS} (any number in [0, 1]); got {quoted(outcomes)}"
        )


def check_known_sigma(sigma: Any) -> None:
    """σ, if rewards have no bounds."""
    if sigma is not None:
        check_sigma(sigma)


def larger_than_one(what: str) -> Callable[[Any], None]:
    """A check that a number is larger than 1."""

    def check(value: Any) -> None:
        if not isinstance(value, int | float) or not 1 < value < math.inf:
            raise InvalidInputError(f"{what} must be a number larger than 1; got {quoted(value)}")

    return check
