"""Checks of the numbers that users give; each returns the number as a float or says
what it must be.
"""

import math
import numbers
import os
import re
from collections.abc import Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet._types import Floats
from discreet.errors import InvalidInputError

MAX_DECIMAL_CHARACTERS = 40
DECIMAL = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
MAX_QUOTED_CHARACTERS = 200
"""Characters of what was given that an error repeats."""
MOST_ARMS = 10**6


def quote(value: object) -> str:
    """Return what was given as an error repeats it: one short line. Never use it for an
    outcome.
    """
    try:
        words = repr(value)
    except Exception:  # of a class of the caller's, or a number of too many digits
        return f"{type(value).__name__} that cannot be shown"
    return join_line(words)


def join_line(words: object) -> str:
    """Return the words of another library or of the system as one short line."""
    text = str(words)
    plain = "".join(
        letter if letter.isprintable() else " " for letter in text[:MAX_QUOTED_CHARACTERS]
    )
    return plain if len(text) <= MAX_QUOTED_CHARACTERS else f"{plain} …"


def name_path(path: object) -> str:
    """Return the path of a file as an error names it: as it is, if that can be shown."""
    words = os.fspath(path) if isinstance(path, os.PathLike) else path
    plain = isinstance(words, str) and words.isprintable() and len(words) <= MAX_QUOTED_CHARACTERS
    return str(words) if plain else quote(words)


def read_whole(text: str, max_digits: int = 9) -> int | None:
    """Read a whole number in decimal digits; None for anything else. The length is
    checked first: Python takes quadratic time, and refuses more than 4,300 digits.
    """
    is_whole = 0 < len(text) <= max_digits and text.isascii() and text.isdigit()
    return int(text) if is_whole else None


def read_decimal(text: str) -> float | None:
    """Read a number in decimal digits, with an optional exponent; None for anything
    else.
    """
    is_decimal = len(text) <= MAX_DECIMAL_CHARACTERS and DECIMAL.fullmatch(text)
    return float(text) if is_decimal else None


def check_path(what: str, path: Any) -> Path:
    """Return the path of a file or folder, or refuse what can be none."""
    try:
        os.fsencode(path)
        possible = not isinstance(path, bytes) and "\0" not in os.fspath(path)
    except (TypeError, UnicodeError):
        possible = False
    if not possible:
        raise InvalidInputError(f"give the path of {what}, as text; got {quote(path)}")
    return Path(path)


def is_word(value: object, words: Container[str]) -> bool:
    """Return whether a value is one of these words."""
    return isinstance(value, str) and value in words


def check_progress(progress: object, name: str = "progress") -> None:
    """Refuse what cannot be called to tell of progress, before the work is done."""
    if progress is not None and not callable(progress):
        raise InvalidInputError(f"{name} must be a function, or None; got {quote(progress)}")


def check_epsilon(epsilon: float) -> float:
    """Return ε, the privacy level, or refuse it."""
    if (
        not 1e-12
        <= _check_between("epsilon", epsilon, 0, math.inf, "must be a positive, finite number")
        <= 1e9
    ):
        raise InvalidInputError(
            f"epsilon must be a positive number between 1e-12 and 1e9; got {quote(epsilon)}"
        )
    return float(epsilon)


def check_levels(epsilons: Any) -> list[float]:
    """Return several privacy levels, or refuse them."""
    if isinstance(epsilons, str | bytes) or not isinstance(epsilons, Sequence | np.ndarray):
        raise InvalidInputError(
            "epsilons must be a list of privacy levels, such as [1.0] for one; got "
            f"{quote(epsilons)}"
        )
    return [check_epsilon(epsilon) for epsilon in np.array(epsilons, dtype=object).ravel()]


def check_sigma(sigma: float) -> float:
    """Return σ, the standard deviation of a Gaussian or sub-Gaussian reward, or refuse
    it.
    """
    return _check_between(
        "sigma", sigma, 1e-100, 1e100, "must be a positive number between 1e-100 and 1e100"
    )


def check_delta(delta: float) -> float:
    """Return δ, the error rate, or refuse it."""
    if check_share("delta", delta) < 1e-100:
        raise InvalidInputError(
            f"delta must lie strictly between 0 and 1, and be at least 1e-100; got {quote(delta)}"
        )
    return float(delta)


def check_gamma(gamma: float) -> float:
    """Return γ, the slack of (ε, γ)-privacy, or refuse it."""
    return check_share("gamma", gamma)


def check_rho(rho: float) -> float:
    """Return ρ, the level of zero-concentrated privacy, or refuse it."""
    return _check_between("rho", rho, 1e-12, 1e6, "must be a number between 1e-12 and 1e6")


def check_beta(beta: float) -> float:
    """Return β, the leader's share of the samples, or refuse it."""
    if not 1e-6 <= check_share("beta", beta) <= 1 - 1e-6:
        raise InvalidInputError(
            "beta must lie strictly between 0 and 1, at least 1e-6 away from both; got "
            f"{quote(beta)}"
        )
    return float(beta)


def check_arms(arms: int) -> int:
    """Return K, the number of arms, or refuse it."""
    whole = isinstance(arms, numbers.Integral) and not isinstance(arms, bool)
    if not whole or not 2 <= arms <= MOST_ARMS:
        raise InvalidInputError(
            f"arms must be a whole number, 2 or more and at most {MOST_ARMS}; got {quote(arms)}"
        )
    return int(arms)


def check_whole(name: str, value: float, least: int, most: int | None = None) -> int:
    """Return a whole number in a range, or refuse it; 1e6 counts as one."""
    if type(value) is int and least <= value and (most is None or value <= most):
        return value
    range_ = f"{least} or more" if most is None else f"from {least} to {most:g}"
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    whole = real and (isinstance(value, int) or math.isfinite(value))
    if not whole or int(value) != value or value < least or (most is not None and value > most):
        got = quote(value)
        raise InvalidInputError(
            f"{name} must be a whole number, {range_}; got {got if len(got) < 40 else 'a long one'}"
        )
    return int(value)


def check_numbers(what: str, values: Any) -> Floats:
    """Return an array of numbers. Refuse what is none, and repeat nothing of it: it may
    be somebody's outcomes.
    """
    with suppress(Exception):  # whatever a class of the caller's raises
        return np.array(values, dtype=np.float64)
    raise InvalidInputError(f"{what} must be numbers, and rows of equal length")


def check_counts(counts: ArrayLike) -> Floats:
    """Return numbers of samples behind a mean, or refuse them."""
    array = check_numbers("counts", counts)
    if not ((array >= 1) & (array < math.inf)).all():
        raise InvalidInputError("counts must be finite numbers, 1 or more")
    return array


def check_unit(name: str, values: ArrayLike) -> Floats:
    """Return probabilities or means, or refuse them."""
    array = check_numbers(name, values)
    if not ((array >= 0) & (array <= 1)).all():
        raise InvalidInputError(f"{name} must lie in [0, 1]")
    return array


def check_share(name: str, value: float) -> float:
    """Return a number strictly between 0 and 1, or refuse it."""
    return _check_between(name, value, 0, 1, "must lie strictly between 0 and 1")


def convert_to_float(value: Any) -> float:
    """Return a number as a float, an infinite one if it is too large; NaN for what is
    none.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        return math.nan
    number: Any = value
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _check_between(name: str, value: float, low: float, high: float, rule: str) -> float:
    number = convert_to_float(value)
    if not low < number < high:
        raise InvalidInputError(f"{name} {rule}; got {quote(value)}")
    return number
