"""σ of what is collected, and what follows from it: the variance in costs, the scale of
b^G, Gaussian noise.
"""

from discreet.strategies.strategy import Strategy
from discreet.theory import concentrated, thresholds


def noise_scale(strategy: Strategy) -> float:
    """The standard deviation of the Gaussian noise on each sample; 0 for every other
    estimator.
    """
    if strategy.epsilon is None or strategy.gamma is None or not strategy.part.gamma:
        return 0.0
    return thresholds.gaussian_scale(strategy.epsilon, strategy.gamma)


def sum_noise(strategy: Strategy) -> float:
    """The standard deviation of the Gaussian noise on each released sum of rewards; 0
    where that is Laplace noise, or none.
    """
    if strategy.pure or not strategy.trust_model.noised:
        return 0.0
    if strategy.rho is not None:
        return concentrated.sum_scale(strategy.rho)
    levels = float(strategy.epsilon or 0), float(strategy.gamma or 0)
    return concentrated.sum_scale(concentrated.zcdp_rho(*levels))


def two_variance(strategy: Strategy, noise: float | None = None) -> float:
    """2σ² in the stopping rule's cost; the published experiments take a σ twice as
    large (1 for rewards in [0, 1]).
    """
    sigma = _sigma(strategy, noise)
    doubled = strategy.threshold == "empirical" and strategy.cost == "gaussian"
    return 2 * (2 * sigma) ** 2 if doubled else 2 * sigma**2


def bonus_scale(strategy: Strategy, noise: float | None = None) -> float:
    """2σ² α (1 + s) of b^G."""
    return 2 * _sigma(strategy, noise) ** 2 * strategy.alpha * (1 + strategy.s)


def _sigma(strategy: Strategy, noise: float | None) -> float:
    own = thresholds.SIGMA if strategy.sigma is None else strategy.sigma
    return thresholds.noisy_sigma(noise_scale(strategy) if noise is None else noise, own)
