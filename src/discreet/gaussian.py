"""Gaussian: arms whose rewards have no bounds; for theory and strategies without
privacy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from discreet.errors import InvalidInputError
from discreet.instance import Bernoulli, Instance, arm_names, freeze, vector
from discreet.scale import NUMBERS
from discreet.validate import check_sigma

NO_BITS = (
    "Gaussian rewards do not lie in [0, 1], so they cannot be rounded to bits; their "
    "characteristic times are t_kl and t_gaussian"
)


@dataclass(frozen=True, init=False)
class Gaussian(Instance):
    """Arms with normal rewards of these means and one standard deviation, `sigma`.

    Means may be any numbers, as rewards have no bounds. Strategies without privacy
    that are told a sigma take them; private ones do not, as no noise can hide a reward
    that may be arbitrarily large.
    """

    means: tuple[float, ...]
    sigma: float
    names: tuple[str, ...]
    bounded = False

    def __init__(self, means: ArrayLike, sigma: float, names: Sequence[str] | None = None) -> None:
        """Two or more means, and the standard deviation of all arms' rewards."""
        values = vector("means", means)
        freeze(self, means=tuple(values.tolist()), sigma=float(check_sigma(sigma)))
        freeze(self, names=arm_names(names, len(values)))

    @property
    def outcomes(self) -> str:
        """`numbers`."""
        return NUMBERS

    def to_dict(self) -> dict[str, Any]:
        """See `Instance.to_dict`."""
        described = {"law": "gaussian", "means": list(self.means), "sigma": self.sigma}
        return {**described, "names": list(self.names)}

    def as_bernoulli(self) -> Bernoulli:
        """Refused: there is nothing to round to a bit."""
        raise InvalidInputError(NO_BITS)
