"""How far thresholds are from their δ, as the docs say it: python -m
evidence.thresholds [measure]

Measures into thresholds.json beside this file when asked to (some minutes), and prints
it: error rates under the `empirical` thresholds; how much quicker AdaP-TT* is than
AdaP-TT under them at ε = 1000; error rates of Gaussian responses with the σ that does
not belong there; SHARP against the printed threshold; AdaP-TT with a quarter of its
own.
"""

import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from discreet import (
    Bernoulli,
    CustomThreshold,
    Instance,
    Strategy,
    adap_tt,
    adap_tt_star,
    audit_correctness,
    benchmarks,
    ctb_tt,
    gauss_tt,
    make_hard_instances,
    simulate,
    ttucb,
    ttucb_batched,
)
from discreet.theory import thresholds

DATA = Path(__file__).parent / "thresholds.json"
SEED = 1
TWO = Bernoulli((0.52, 0.5))
TEN = Bernoulli((0.55, *(0.5,) * 9))


def errors(instance: Instance, strategy: Strategy, runs: int) -> dict[str, Any]:
    """Wrong answers, with an exact interval for their share."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = simulate(instance, strategy, runs, SEED)
    return {
        "strategy": strategy.name,
        "epsilon": strategy.epsilon,
        "arms": instance.arms,
        "runs": runs,
        "errors": found.errors,
        "interval": [float(f"{bound:.4g}") for bound in found.error_interval()],
    }


def empirical_errors() -> list[dict[str, Any]]:
    """Error rates at δ = 0.1 where the empirical threshold promises nothing."""
    delta = 0.1
    private = [
        preset(epsilon, delta, threshold="empirical")
        for preset in (adap_tt, adap_tt_star)
        for epsilon in (0.1, 1.0)
    ]
    free = [ttucb(delta, threshold="empirical"), ttucb_batched(delta, threshold="empirical")]
    local = ctb_tt(1.0, delta, threshold="empirical")
    found = [errors(TWO, strategy, 2000) for strategy in (*private, *free, local)]
    return found + [errors(TEN, strategy, 2000) for strategy in (private[1], *free, local)]


def at_low_privacy() -> list[dict[str, Any]]:
    """Means of AdaP-TT and AdaP-TT* at ε = 1000, where both have the same transport
    cost.
    """
    found = []
    for name in benchmarks:
        row: dict[str, Any] = {"instance": name}
        for preset in (adap_tt, adap_tt_star):
            strategy = preset(1000.0, 0.01, threshold="empirical")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                summary = simulate(benchmarks[name], strategy, 1000, SEED).summary()
            row[strategy.name] = float(f"{summary['mean']:.6g}")
        found.append(row)
    return found


def gaussian_sigma() -> list[dict[str, Any]]:
    """Errors of gauss-tt with σ = 1/2 in place of the noisy reward's, by the noise's
    scale.
    """
    epsilon, gamma, delta = 0.9, 0.05, 0.01
    classical = math.sqrt(2 * math.log(1.25 / gamma)) / epsilon
    found = []
    for which, scale in (
        ("classical", classical),
        ("exact", thresholds.gaussian_scale(epsilon, gamma)),
    ):
        honest = gauss_tt(epsilon, gamma_of(epsilon, scale), delta)
        shrunk = CustomThreshold("σ = 1/2", shrunk_threshold(delta, scale))
        row = errors(Bernoulli((0.9, 0.1)), honest.with_(threshold=shrunk), 2000)
        found.append({"calibration": which, "scale": round(scale, 4), **row})
    return found


def shrunk_threshold(delta: float, scale: float) -> Any:
    """c^G for two arms, divided by as much as the evidence is overstated."""
    constant = float(thresholds.c_g(math.log(1 / delta) / 2))
    factor = (0.5 / thresholds.noisy_sigma(scale)) ** 2
    return lambda count: (constant + 2 * math.log(4 + math.log(count))) * factor


def gamma_of(epsilon: float, scale: float) -> float:
    """The γ for which noise of this scale is just enough."""
    low, high = 1e-12, 1.0
    for _ in range(200):
        middle = math.sqrt(low * high)
        if thresholds.gaussian_scale(epsilon, middle) > scale:
            low = middle
        else:
            high = middle
    return high


def sharp(cases: int) -> dict[str, Any]:
    """The largest ratio of SHARP to the printed second case of AdaP-TT*, over random
    cases.
    """
    rng = np.random.default_rng(SEED)
    largest = 0.0
    for _ in range(cases):
        a, b = 2.0 ** rng.integers(0, 41, 2)
        arms = round(10 ** rng.uniform(math.log10(2), 5))
        delta = 10 ** rng.uniform(-8, -0.5)
        epsilon = 10 ** rng.uniform(-6, 3)
        printed = float(thresholds.c_star_high(a, b, arms, delta, epsilon))
        largest = max(largest, float(thresholds.c_star_sharp(a, b, arms, delta, epsilon)) / printed)
    return {"cases": cases, "largest ratio": float(f"{largest:.6g}")}


def quarter() -> list[dict[str, Any]]:
    """AdaP-TT with a quarter of its threshold, on near ties of two arms at δ =
    0.001.
    """
    delta, epsilon, runs = 0.001, 1.0, 2000
    part = CustomThreshold("c/4", lambda a, b: thresholds.c_private(a, b, 2, delta, epsilon) / 4)
    ties = {
        name: arms
        for name, arms in make_hard_instances().items()
        if arms.arms == 2 and "tie" in name
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = audit_correctness(
            adap_tt(epsilon, delta, threshold=part), runs, SEED, instances=ties
        )
    return [
        {
            "instance": case.name,
            "runs": case.runs,
            "unstopped": case.unstopped,
            "errors": case.errors,
        }
        for case in found.cases
    ]


def measure() -> dict[str, Any]:
    """Everything."""
    return {
        "empirical": empirical_errors(),
        "at ε = 1000": at_low_privacy(),
        "gaussian σ": gaussian_sigma(),
        "sharp": sharp(100_000),
        "quarter": quarter(),
    }


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        DATA.write_text(json.dumps(measure(), ensure_ascii=False, indent=1) + "\n")
    print(DATA.read_text())
