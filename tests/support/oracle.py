"""Every preset with its options, and the oracle that plays them: naive.py's steps with
the theory's thresholds.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet import Discrete, Gaussian, Instance, Strategy
from discreet.strategies.presets import PRESETS
from discreet.theory import thresholds as threshold
from tests.support import naive

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *[
        (name, {"threshold": mode})
        for name in PRESETS
        for mode in ("printed", "proved", "empirical")
        if name != "bet-se"  # it has an oracle of its own
    ],
    *[
        (name, {"sampling": rule})
        for name in ("adap-tt", "adap-tt-star")
        for rule in ("uniform", "lucb", "elimination")
    ],
    *[
        (name, {"sampling": rule})
        for name in ("ttucb", "ctb-tt")
        for rule in ("uniform", "lucb", "elimination")
    ],
    *[
        (name, {"sampling": rule})
        for name in ("ttucb", "ctb-tt", "gauss-tt", "ttucb-batched", "adap-tt", "adap-tt-star")
        for rule in ("eb-tc", "eb-tci", "ts-tc", "track-and-stop")
        if rule != "ts-tc" or name in ("ttucb", "ctb-tt", "gauss-tt")
    ],
    *[
        ("adap-tt", {"sampling": rule, "episodes": "global"})
        for rule in ("eb-tci", "track-and-stop")
    ],
    *[(name, {"sampling": "eb-tci", "beta": "ids"}) for name in ("ttucb", "adap-tt")],
    ("ttucb", {"sampling": "eb-tci", "beta": "ids", "cost": "kl"}),
    *[
        (name, {"beta": share})
        for name in ("adap-tt", "adap-tt-star", "ttucb")
        for share in ("ids", 0.3)
    ],
    *[
        (name, {"cost": "kl", **more})
        for name in ("ttucb", "ctb-tt")
        for more in (
            *({}, {"threshold": "empirical"}, {"beta": "ids"}),
            *({"sampling": rule} for rule in ("elimination", "eb-tci", "ts-tc")),
        )
    ],
    *[
        (name, {"episodes": episodes})
        for name in ("adap-tt", "adap-tt-star", "ttucb-batched")
        for episodes in ("global", "global-yielding")
    ],
]


def make(name: str, options: dict[str, Any]) -> Strategy | None:
    arguments: dict[str, Any] = {"delta": 0.2, **options}
    if name not in ("ttucb", "ttucb-batched", "ttucb-forgetting"):
        arguments["epsilon"] = 1.0
    if name == "gauss-tt":
        arguments |= {"gamma": 0.05, "epsilon": 4.0}
    return (
        None
        if name in ("dp-se", "ttucb-forgetting") and options.get("threshold") == "empirical"
        else PRESETS[name](**arguments)
    )


def source_of(instance: Instance, strategy: Strategy, rng: np.random.Generator) -> naive.Source:
    """The rewards of an instance; for CTB the responses, which are Bernoulli whatever
    the rewards.
    """
    if strategy.estimator == "ctb":
        decay = math.exp(-float(strategy.epsilon or 0))
        return naive.Source(
            rng,
            "bernoulli",
            [(mean * (1 - decay) + decay) / (1 + decay) for mean in instance.means],
        )
    if isinstance(instance, Discrete):
        return naive.Source(
            rng, "discrete", [(instance.values, list(row)) for row in instance.probabilities]
        )
    if isinstance(instance, Gaussian):
        return naive.Source(rng, "gaussian", [(mean, instance.sigma) for mean in instance.means])
    return naive.Source(rng, "bernoulli", list(instance.means))


@functools.cache
def known(formula: Callable[..., Any], *arguments: float) -> Any:
    """The value of a formula, computed once: a phased run asks for the same few
    thresholds at each of its releases.
    """
    return formula(*arguments)


def phased_thresholds(strategy: Strategy, arms: int, a: int, b: int) -> tuple[float, float]:
    """(low, high) of a phased strategy at these counts."""
    delta, epsilon = strategy.delta, strategy.epsilon or math.inf
    empirical = strategy.threshold == "empirical"
    if strategy.estimator == "forget":
        value = known(threshold.c_forgetting, a, b, arms, delta)
    elif strategy.estimator != "daf":
        value = (
            known(threshold.empirical_gaussian, a, b, delta)
            if empirical
            else known(threshold.c_gaussian, a, b, arms, delta)
        )
    elif strategy.cost == "gaussian":
        value = (
            known(threshold.empirical_private, a, b, delta, epsilon)
            if empirical
            else known(threshold.c_private, a, b, arms, delta, epsilon)
        )
    elif empirical:
        low, high = known(threshold.empirical_star, a, b, delta, epsilon)
        return float(low), float(high)
    else:
        second = threshold.c_star_sharp if strategy.threshold == "proved" else threshold.c_star_high
        low = known(threshold.c_star_low, a, b, arms, delta, epsilon)
        return float(low), float(known(second, a, b, arms, delta, epsilon))
    return float(value), float(value)


def oracle(
    strategy: Strategy, instance: Instance, rng: np.random.Generator, cap: int
) -> naive.Outcome:
    """The strategy from the paper: its thresholds and bonuses from `threshold`, its
    steps from naive.py.
    """
    epsilon = strategy.epsilon or math.inf
    cost = naive.d_private if strategy.cost == "private" else naive.d_gauss
    ids = strategy.beta == "ids"
    rule = {"top-two": "top two"}.get(strategy.sampling, strategy.sampling)
    share = 0.5 if ids else float(strategy.beta)
    more = {"kl": strategy.cost == "kl", "yields": strategy.episodes == "global-yielding"}
    sampler = naive.Sampler(rule, cost, epsilon / 2, share, ids, instance.arms, **more)
    source = source_of(instance, strategy, rng)
    if strategy.estimator == "epochs":
        return naive.run_dpse(source, instance.arms, epsilon, strategy.delta, cap)
    if strategy.is_phased:
        return phased_oracle(strategy, source, sampler, cap)
    return stream_oracle(strategy, source, sampler, cap)


def stream_oracle(
    strategy: Strategy, source: naive.Source, sampler: naive.Sampler, cap: int
) -> naive.Outcome:
    """A strategy that releases every sample."""
    delta, arms = strategy.delta, sampler.arms
    noise = (
        threshold.gaussian_scale(strategy.epsilon or math.inf, strategy.gamma)
        if strategy.gamma
        else 0.0
    )
    sigma = math.hypot(strategy.sigma or 0.5, noise)
    constant = 2 * float(threshold.c_g(math.log((arms - 1) / delta) / 2))
    empirical = strategy.threshold == "empirical"

    def bar(a: int, b: int, n: int) -> float:
        if empirical:
            return math.log(1 / delta) + math.log(1 + math.log(n))
        if sampler.kl:
            return math.log(4 * (arms - 1) / delta) + 0.5 * math.log(a) + 0.5 * math.log(b)
        return constant + 2 * math.log(4 + math.log(a)) + 2 * math.log(4 + math.log(b))

    def bonus(count: int, n: int) -> float:
        return math.sqrt(scale * math.log(n) / count)

    scale = 2 * sigma**2 * strategy.alpha * (1 + strategy.s)
    variance = 2 * (2 * sigma) ** 2 if empirical else 2 * sigma**2
    sampler.two_variance = variance
    return naive.run_stream(source, arms, sampler, noise, bar, bonus, variance, cap)


def phased_oracle(
    strategy: Strategy, source: naive.Source, sampler: naive.Sampler, cap: int
) -> naive.Outcome:
    """A strategy that releases the mean of a phase at its end."""
    arms, epsilon = sampler.arms, strategy.epsilon or math.inf
    private = strategy.estimator in ("daf", "forget")
    stop = (
        "low"
        if strategy.cost == "gaussian"
        else "either"
        if strategy.threshold == "proved"
        else "split"
    )

    def pair(_i: int, _j: int, a: int, b: int) -> tuple[float, float]:
        return phased_thresholds(strategy, arms, a, b)

    def bonus(_phase: int, count: int, total: int) -> float:
        if private:
            return float(known(threshold.bonus_private, count, epsilon))
        scale = 2 * sigma**2 * strategy.alpha * (1 + strategy.s)
        return math.sqrt(scale * math.log(total) / count)

    sigma = strategy.sigma or 0.5
    doubled = strategy.threshold == "empirical" and strategy.cost == "gaussian"
    variance = 2 * (2 * sigma) ** 2 if doubled else 2 * sigma**2
    sampler.two_variance = variance
    whole = strategy.has_global_episode
    return naive.run_phased(
        source, arms, sampler, epsilon, private, whole, pair, bonus, stop, variance, cap
    )
