"""Live noise: the only place that makes it. Every release and every response
states its ε, or its ρ.

Noise is whole, like the sums of outcomes in units of the grid, drawn exactly by OpenDP
from the system's randomness. Nothing here takes a seed. The scale of each mechanism is
the smallest whose own privacy map keeps the promised ε. The docs page "Proofs for live trials" has
the proofs.
"""

import math
from functools import lru_cache
from typing import Any

from discreet.errors import DiscreetError, InvalidInputError, MissingExtraError
from discreet.scale import REFUSE, Scale, check_out_of_range, check_range
from discreet.strategies.run import Totals
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import CENTRE_UNITS, FINE_UNITS, choose_grid, compute_sum_noise
from discreet.trials.responses import Response, middle_units, to_level, to_units
from discreet.validation import check_epsilon, check_gamma


def respond(
    outcome: float,
    epsilon: float,
    gamma: float | None = None,
    range: tuple[float, float] = (0.0, 1.0),
    direction: str = "max",
    out_of_range: str = REFUSE,
    middle_level: float | None = None,
) -> Response:
    """Randomise one outcome before it leaves the person: ε-DP, or (ε, γ)-DP with
    Gaussian noise if gamma is given.

    An outcome in [0, 1] becomes a bit that is 1 with that probability, then the bit is
    flipped with probability 1/(1 + e^ε). With the `middle_level` that a trial of
    numbers announces, it becomes one of the levels 0, middle and 1 in place of a bit,
    then one of the others with probability 1/(2 + e^ε) each. Call it once for each
    outcome, and send only what it returns. With `out_of_range="clip"` an outcome outside the
    range counts as the nearer end, and the response does not say so.
    """
    scale = Scale(*check_range(range), direction)
    reward = scale.convert_to_reward(outcome, check_out_of_range(out_of_range))
    check_epsilon(epsilon)
    if middle_level is not None:
        if gamma is not None:
            raise InvalidInputError("give a middle level or a gamma, not both")
        return _respond_level(reward, float(epsilon), middle_level, scale)
    if gamma is None:
        bit = _answerer(float(epsilon))(bool(to_units(reward, 1)))
        return Response("rr", float(epsilon), None, int(bit), scale)
    check_gamma(gamma)
    noise = _gaussian(float(epsilon), float(gamma))
    value = int(noise(to_units(reward, 2**FINE_UNITS)))
    return Response("gauss", float(epsilon), float(gamma), value, scale)


def _respond_level(reward: float, epsilon: float, middle_level: float, scale: Scale) -> Response:
    units = (0, middle_units(middle_level), CENTRE_UNITS)
    sent = _level_answerer(epsilon)(to_level(reward, middle_level))
    return Response("levels", epsilon, None, units[int(sent)], scale, float(middle_level))


def check_available(strategy: Strategy) -> None:
    """Refuse before anyone is asked if there could be no noise, or none that keeps the
    promise.
    """
    _opendp()
    sigma, (name, promised) = compute_sum_noise(strategy), strategy.level
    cost = compute_gaussian_cost(sigma, choose_grid(strategy), strategy.gamma) if sigma > 0 else 0.0
    if sigma > 0 and cost > float(promised or 0):
        raise DiscreetError(f"this OpenDP finds Gaussian noise of scale {sigma!r} above its {name}")


def add_laplace(total: int, epsilon: float, grid: int) -> tuple[int, float]:
    """(total + discrete Laplace noise, the ε it costs): one person adds 0 to `grid`
    units to the sum.
    """
    mechanism, spent = _laplace(epsilon, grid)
    return int(mechanism(total)), spent


def add_laplace_noise(total: Totals, epsilon: float, grid: int) -> Totals:
    """A noisy sum; and where closeness is released beside it, both from one mechanism:
    one person moves the two by `grid` units together at most.
    """
    if total.near is None:
        return Totals(add_laplace(total.sum, epsilon, grid)[0])
    mechanism, _ = _laplace_pair(epsilon, grid)
    noisy, near = mechanism([total.sum, total.near])
    return Totals(int(noisy), int(near))


def compute_sum_epsilon(epsilon: float, grid: int, pairs: bool = False) -> float:
    """The ε that one noisy sum, alone or with closeness, costs by its mechanism's own
    map.
    """
    return (_laplace_pair if pairs else _laplace)(epsilon, grid)[1]


def add_gaussian_noise(total: Totals, sigma: float, grid: int) -> Totals:
    """A sum with discrete Gaussian noise, whose scale is `sigma` outcomes; one person
    adds 0 to `grid` units to it.
    """
    return Totals(int(_gaussian_sum(sigma, grid)(total.sum)))


def compute_gaussian_cost(sigma: float, grid: int, gamma: float | None) -> float:
    """What such a sum costs by its mechanism's own map: the ρ, or with a gamma the ε
    that OpenDP makes of it.
    """
    if gamma is None:
        return float(_gaussian_sum(sigma, grid).map(grid))
    return _approximate(_gaussian_sum(sigma, grid), grid, gamma)


def find_noise_scale(epsilon: float, gamma: float) -> float:
    """The standard deviation, in rewards, of the noise in a Gaussian response."""
    return float(_gaussian_scale(epsilon, gamma) / 2**FINE_UNITS)


def compute_response_epsilon(
    epsilon: float, gamma: float | None = None, middle: float | None = None
) -> float:
    """The ε that one response costs by its mechanism's own map."""
    if middle is not None:
        return float(_level_answerer(epsilon).map(1))
    if gamma is None:
        return float(_answerer(epsilon).map(1))
    return _gaussian_cost(_gaussian_scale(epsilon, gamma), gamma)


# --- OpenDP ---------------------------------------------------------------------------


def load_opendp() -> None:
    """Load now what draws noise: whoever serves many does not let them all wait for it
    at the first release.
    """
    _opendp()


@lru_cache(maxsize=1)
def _opendp() -> Any:
    """OpenDP with its vetted mechanisms on: global state of that library, touched here
    only.
    """
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtraError('live noise needs OpenDP: pip install "discreet[live]"') from None
    dp.enable_features("contrib")
    return dp


def _integers() -> tuple[Any, Any]:
    dp = _opendp()
    return dp.atom_domain(T=dp.i64), dp.absolute_distance(T=dp.i64)


def _pairs() -> tuple[Any, Any]:
    dp = _opendp()
    return dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)


@lru_cache(maxsize=64)
def _laplace(epsilon: float, grid: int) -> tuple[Any, float]:
    return _calibrated(_integers(), epsilon, grid)


@lru_cache(maxsize=64)
def _laplace_pair(epsilon: float, grid: int) -> tuple[Any, float]:
    return _calibrated(_pairs(), epsilon, grid)


def _calibrated(space: tuple[Any, Any], epsilon: float, grid: int) -> tuple[Any, float]:
    scale = grid / epsilon
    while True:
        mechanism = _opendp().m.make_laplace(*space, scale=scale)
        spent = float(mechanism.map(grid))
        if spent <= epsilon:
            return mechanism, spent
        scale = math.nextafter(scale, math.inf)


@lru_cache(maxsize=64)
def _answerer(epsilon: float) -> Any:
    """Randomised response: the truth with the largest probability its map allows,
    e^ε/(1 + e^ε) nearly.
    """
    truth = min(1.0 / (1.0 + math.exp(-epsilon)), math.nextafter(1.0, 0.0))
    while True:
        mechanism = _opendp().m.make_randomized_response_bool(prob=truth)
        if float(mechanism.map(1)) <= epsilon:
            return mechanism
        truth = math.nextafter(truth, 0.0)


@lru_cache(maxsize=64)
def _level_answerer(epsilon: float) -> Any:
    """Randomised response on three levels: the truth with the largest probability its
    map allows, e^ε/(2 + e^ε) nearly.
    """
    truth = min(1.0 / (1.0 + 2.0 * math.exp(-epsilon)), math.nextafter(1.0, 0.0))
    while True:
        mechanism = _opendp().m.make_randomized_response([0, 1, 2], prob=truth)
        if float(mechanism.map(1)) <= epsilon:
            return mechanism
        truth = math.nextafter(truth, 0.0)


@lru_cache(maxsize=64)
def _gaussian_sum(sigma: float, grid: int) -> Any:
    return _opendp().m.make_gaussian(*_integers(), scale=sigma * grid)


@lru_cache(maxsize=64)
def _gaussian(epsilon: float, gamma: float) -> Any:
    return _opendp().m.make_gaussian(*_integers(), scale=_gaussian_scale(epsilon, gamma))


@lru_cache(maxsize=64)
def _gaussian_scale(epsilon: float, gamma: float) -> float:
    """The smallest scale, to 1 in 10^9, at which OpenDP's map gives at most ε at this
    γ.
    """
    if not 1e-6 <= epsilon <= 1e4:
        raise InvalidInputError("live Gaussian responses need an epsilon between 1e-6 and 1e4")
    high = 2.0**FINE_UNITS
    while _gaussian_cost(high, gamma) > epsilon:
        high *= 2.0
    low = high / 2.0
    while _gaussian_cost(low, gamma) <= epsilon:
        high = low
        low = high / 2.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        if _gaussian_cost(middle, gamma) <= epsilon:
            high = middle
        else:
            low = middle
    return high


def _gaussian_cost(scale: float, gamma: float) -> float:
    noise = _opendp().m.make_gaussian(*_integers(), scale=scale)
    return _approximate(noise, 2**FINE_UNITS, gamma)


def _approximate(noise: Any, units: int, gamma: float) -> float:
    """The ε at this γ of Gaussian noise where one person moves a sum by so many
    units.
    """
    return float(_opendp().c.make_zCDP_to_approxDP(noise).map(units).epsilon(gamma))
