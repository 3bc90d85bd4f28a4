"""The transportation costs of the paper's Top Two strategies.

W^G is eq. TTUCB_Gaussian, W^{G,ε} eq. TTUCB_global_v2, W^KL the cost of Bernoulli
rewards, which the paper's conclusion asks for.

A Gaussian cost is W = d / (2σ² (1/n + 1/m)) with a numerator d of the gap. It is
written once, here: two algebraically equal forms break ties differently, so stepping,
leaping, the live run and the tests' oracle all use these forms.
"""

import math

from discreet.leaf import leaf

GAUSSIAN, PRIVATE, KL = 0, 1, 2
"""Codes of W^G, W^{G,ε} and W^KL."""
MEAN_ULPS = 4 * 2.0**-52
"""Rounding error that a difference of two means may carry, relative to the larger of
them.
"""


@leaf
def gap_is_large(mean_best: float, mean_other: float, half_epsilon: float) -> bool:
    """Whether the gap is at least epsilon / 2, the second case of c~^{G,eps}.

    Equality is the second case, and floats misjudge it (0.95 - 0.9 < 0.05), so a gap
    short of epsilon / 2 by no more than the rounding error of the means counts as
    equal.
    """
    size = max(abs(mean_best), abs(mean_other))
    return mean_best - mean_other >= half_epsilon - MEAN_ULPS * size


@leaf
def numerator(cost: int, gap: float, half_epsilon: float) -> float:
    """d of a cost W = d / (2 sigma^2 (1/n + 1/m)): gap^2, or gap min(epsilon/2, gap);
    zero for a gap <= 0.
    """
    if gap <= 0.0:
        return 0.0
    if cost == PRIVATE:
        return gap * min(half_epsilon, gap)
    return gap * gap


@leaf
def transport_cost(
    top: float, inverse_best: float, inverse_other: float, two_variance: float
) -> float:
    """W of the pair from its numerator and the inverse counts."""
    return top / (two_variance * (inverse_best + inverse_other))


@leaf
def kl_beside(mean: float, off: float) -> float:
    """kl(mean, mean + off), with full precision for a small `off`; 0 log 0 = 0."""
    total = 0.0
    if mean > 0.0:
        total -= mean * math.log1p(off / mean)
    if mean < 1.0:
        total -= (1.0 - mean) * math.log1p(-off / (1.0 - mean))
    return total


@leaf
def kl_part(mean: float, other: float, count: int, count_other: int) -> float:
    """What an arm adds to W^KL: its count times kl from its mean to that of both arms
    together.
    """
    return count * kl_beside(mean, (other - mean) * (count_other / (count + count_other)))


@leaf
def kl_cost(mean_best: float, mean_other: float, count_best: int, count_other: int) -> float:
    """W^KL, the least n kl(mean, x) + m kl(other mean, x) over x; zero for a gap <=
    0.
    """
    if mean_best <= mean_other:
        return 0.0
    return kl_part(mean_best, mean_other, count_best, count_other) + kl_part(
        mean_other, mean_best, count_other, count_best
    )
