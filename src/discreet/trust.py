"""Who must be trusted with outcomes, and what follows from it. Everything that depends
on trust asks here.
"""

import math
from dataclasses import dataclass

from discreet.errors import InvalidInputError
from discreet.validation import is_word, quote


@dataclass(frozen=True)
class Trust:
    """A trust model: who sees raw outcomes, and where the noise is added."""

    name: str
    noised: bool
    """Sums are noised when they are released: whoever collects outcomes sees them
    (global DP).
    """
    randomised: bool
    """Every answer is randomised where the person is, before it is sent (local DP)."""
    who: str
    """Who is trusted, in words."""
    where: str
    """Where the noise is added, in words."""

    @property
    def is_private(self) -> bool:
        """Return whether anything is private."""
        return self.noised or self.randomised

    def shrink(self, epsilon: float | None) -> float:
        """Return what is left of a difference of means in what is collected: tanh(ε/2)
        behind randomised response, else 1.
        """
        return math.tanh(float(epsilon or 0) / 2) if self.randomised else 1.0

    def noise(self, epsilon: float | None) -> float:
        """Return the ε of the noise in a released sum; infinity if none is added."""
        return float(epsilon or 0) if self.noised else math.inf


TRUSTS = {
    "global": Trust(
        "global", True, False, "a trusted collector", "noise is added to every release"
    ),
    "local": Trust(
        "local", False, True, "nobody trusted", "every answer is randomised before it is sent"
    ),
    "none": Trust("none", False, False, "no privacy", "decisions are made from raw outcomes"),
}


def check_trust(name: str, among: tuple[str, ...] = tuple(TRUSTS)) -> Trust:
    """Return the trust model of that name. Refuse others: taken for another one it
    would leave the noise unpaid.
    """
    if not is_word(name, among):
        raise InvalidInputError(f"trust must be one of {', '.join(among)}; got {quote(name)}")
    return TRUSTS[name]
