"""How far the difference of two released means may lie from the true one, for all
phases at once. The docs page "Differences between arms" has the proof.
"""

import math

from discreet.strategies.scales import sum_noise
from discreet.strategies.strategy import Strategy
from discreet.theory.thresholds import c_gaussian, phase_number

PHASES = math.pi**2 / 6
"""At least the sum of one over the squares of all phase numbers."""


def phased_radius(strategy: Strategy, forget: bool, one: int, other: int, alpha: float) -> float:
    """Passed at any time with a probability of at most alpha, by means of so many
    outcomes each. Where means keep all outcomes, no noise is added to them.
    """
    if not forget:
        return math.sqrt((1 / one + 1 / other) / 2 * float(c_gaussian(one, other, 2, alpha)))
    numbers = [float(phase_number(count)) for count in (one, other)]
    sigma = sum_noise(strategy)
    variance = sum(1 / (4 * count) + (sigma / count) ** 2 for count in (one, other))
    laplace = strategy.trust_model.noised and not sigma
    share = alpha / 2 if laplace else alpha
    spent = math.log(2 / share) + 2 * sum(math.log(PHASES**0.5 * number) for number in numbers)
    radius = math.sqrt(2 * variance * spent)
    if laplace:
        epsilon = float(strategy.epsilon or 0)
        for count, number in zip((one, other), numbers, strict=True):
            radius += math.log(4 * PHASES * number**2 / alpha) / (epsilon * count)
    return radius
