"""A floor under the samples of every strategy that is right for all laws on [0, 1].

The characteristic times are for arms known to be Bernoulli. Where outcomes are numbers,
a strategy that uses their variance may need fewer samples than these times ask for, but
never fewer than the floor. It depends on the means alone. Proofs: docs, "Theory and
proofs".
"""

import math

import numpy as np

from discreet.arrays import Floats
from discreet.instance import Instance, check_bounded
from discreet.scale import YES_NO
from discreet.theory.divergences import kl_up
from discreet.theory.times import lower_bound, tightest
from discreet.trust import check_trust
from discreet.validate import check_delta, check_epsilon


def least_samples(
    instance: Instance, delta: float, epsilon: float | None = None, trust: str = "global"
) -> float:
    """The largest lower bound known for all strategies with that privacy: by the
    tightest time for Bernoulli arms and for Gaussian ones, the floor for others.
    """
    if instance.bounded and instance.outcomes != YES_NO:
        return floor_bound(instance, delta, epsilon, trust)
    arms = instance.as_bernoulli() if instance.bounded else instance
    return lower_bound(tightest(arms, epsilon, trust), delta)


def floor_bound(
    instance: Instance, delta: float, epsilon: float | None = None, trust: str = "global"
) -> float:
    """No strategy that is δ-correct for all laws on [0, 1], and ε-private with this
    trust, takes fewer samples on average; 0 for δ ≥ 1/2.

    Without an ε it is the floor of strategies without privacy.
    """
    return float(floor_by_arm(instance, delta, epsilon, trust).sum())


def floor_by_arm(
    instance: Instance, delta: float, epsilon: float | None = None, trust: str = "global"
) -> Floats:
    """The floor under the expected samples of each arm, of which `floor_bound` is the
    sum.
    """
    odds = max(0.0, math.log1p(-check_delta(delta)) - math.log(delta))
    share = _share(instance)
    model = check_trust(trust)
    if epsilon is None or not model.private:
        return (1 - delta) * odds / _cost(share, math.inf)
    found = (1 - delta) * odds / _cost(share, check_epsilon(epsilon))
    if model.randomised:
        found = np.maximum(found, (1 - 2 * delta) * odds / _response_cost(share, epsilon))
    return found


def _share(instance: Instance) -> Floats:
    """Which share of an arm's rewards must become 1, for the best arm 0, to change who
    is best.
    """
    check_bounded(instance)
    room = 1 - np.array(instance.means)
    room[instance.best] = instance.means[instance.best]
    return np.asarray(np.minimum(instance.gaps / room, 1.0))


def _cost(share: Floats, epsilon: float) -> Floats:
    """−log(1 − q(1 − e^−ε)), what a sample tells at most about such a change; q =
    `share`.
    """
    with np.errstate(divide="ignore"):
        told = -np.log1p(share * math.expm1(-epsilon))
    return np.asarray(np.minimum(told, epsilon))


def _response_cost(share: Floats, epsilon: float) -> Floats:
    """What an ε-private message tells at most: the kl of two randomised responses, to 0
    and to a bit that is 1 with probability q = `share`.
    """
    decay = math.exp(-min(epsilon, 600.0))
    low, high = np.full_like(share, decay / (1 + decay)), np.full_like(share, 1 / (1 + decay))
    off = share * math.tanh(epsilon / 2)
    return kl_up(low, high, off, low + off, high * ((1 - share) + share * decay))
