"""The same chance in every run: the keys of rounds, coins and noise that a test draws
in its own process come from a seed, which is the name of the test.

What fails fails again, and nothing fails by bad luck. What only has to be unique (ids,
tokens, names of files) stays as it is, and so do processes that a test starts, but for
its forks. `@pytest.mark.real_chance` is for tests of the system's randomness itself.
"""

import hashlib
import math
import os
import random
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from discreet.audits import privacy as audit
from discreet.audits.rehearsal import SimulatedNoise
from discreet.simulation.laws import draw_gaussian
from discreet.strategies.run import Totals
from discreet.trials import enrolment, mechanisms, outcomes, randomisation, responses

SEEDED = (audit, randomisation, enrolment, outcomes, responses)
"""The modules in which `secrets` decides what is dealt, rounded or found."""


class Chance:
    """What these modules have in place of `secrets`, and what draws noise."""

    token_hex = staticmethod(secrets.token_hex)

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, seed: str | None) -> None:
        """All is drawn from this seed now; None: from the system's randomness."""
        self.seed, self.forks = seed, 0
        start = None if seed is None else hashlib.sha256(seed.encode()).digest()
        self.coins = secrets.SystemRandom() if start is None else random.Random(start)
        self.noise = np.random.default_rng(None if start is None else [*start])

    @contextmanager
    def within(self, seed: str) -> Iterator[None]:
        """From this seed for a while, then on from where it was."""
        before = self.__dict__.copy()
        self.begin(seed)
        try:
            yield
        finally:
            self.__dict__.update(before)

    def forking(self) -> None:
        """Each child has chance of its own, as a worker has."""
        self.forks += 1

    def forked(self) -> None:
        """In the child."""
        self.begin(None if self.seed is None else f"{self.seed} fork {self.forks}")

    def token_bytes(self, size: int) -> bytes:
        return self.coins.randbytes(size)

    def randbits(self, bits: int) -> int:
        return self.coins.getrandbits(bits)

    def randbelow(self, below: int) -> int:
        return self.coins.randrange(below)

    def laplace(self, spent: float, grid: int) -> int:
        """Discrete Laplace noise of this ε on a grid."""
        p = -math.expm1(-spent / grid)
        return int(self.noise.geometric(p)) - int(self.noise.geometric(p))

    def gaussian(self, scale: float) -> int:
        """Discrete Gaussian noise."""
        return int(draw_gaussian(self.noise, scale))

    def answer(self, truth: int, levels: int, epsilon: float) -> int:
        """One of so many levels by randomised response."""
        others = (levels - 1) * math.exp(-epsilon)
        told = self.coins.random() * (1 + others) >= others
        return truth if told else (truth + 1 + self.randbelow(levels - 1)) % levels


chance = Chance()


class Mechanism:
    """One of OpenDP's, with its own map; what it draws is of the same law."""

    def __init__(self, real: Any, law: Callable[[Any], Any]) -> None:
        self.real, self.law, self.map = real, law, real.map

    def __call__(self, value: Any) -> Any:
        return self.real(value) if chance.seed is None else self.law(value)


def install() -> None:
    """For as long as this process lives."""
    os.register_at_fork(before=chance.forking, after_in_child=chance.forked)
    for room in SEEDED:
        vars(room)["secrets"] = chance
    vars(audit)["SimulatedNoise"] = lambda seed: SimulatedNoise(
        chance.randbits(64) if seed is None else seed
    )
    pairs, levels = _laplace_pair, _level_answerer
    for made in (_laplace, pairs, _answerer, levels, _gaussian, add_gaussian_noise):
        vars(mechanisms)[made.__name__] = partial(made, vars(mechanisms)[made.__name__])


def _laplace(real: Any, epsilon: float, grid: int) -> tuple[Any, float]:
    made, spent = real(epsilon, grid)
    return Mechanism(made, lambda total: total + chance.laplace(spent, grid)), spent


def _laplace_pair(real: Any, epsilon: float, grid: int) -> tuple[Any, float]:
    made, spent = real(epsilon, grid)
    return Mechanism(made, lambda pair: [one + chance.laplace(spent, grid) for one in pair]), spent


def _answerer(real: Any, epsilon: float) -> Any:
    return Mechanism(real(epsilon), lambda bit: bool(chance.answer(bit, 2, epsilon)))


def _level_answerer(real: Any, epsilon: float) -> Any:
    return Mechanism(real(epsilon), lambda level: chance.answer(level, 3, epsilon))


def _gaussian(real: Any, epsilon: float, gamma: float) -> Any:
    scale = mechanisms._gaussian_scale(epsilon, gamma)
    return Mechanism(real(epsilon, gamma), lambda units: units + chance.gaussian(scale))


def add_gaussian_noise(real: Any, total: Totals, sigma: float, grid: int) -> Totals:
    if chance.seed is None:
        return Totals(real(total, sigma, grid).sum)
    return Totals(total.sum + chance.gaussian(sigma * grid))
