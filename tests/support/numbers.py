"""Small trials of outcomes that are numbers, and how to take the chance out of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet import Strategy, Trial, bet_se, respond
from discreet.audits.rehearsal import SimulatedNoise
from discreet.trials import mechanisms, release
from discreet.trials.status import AskResult
from tests.support.keys import seeded_keys

FINE = 2**20
Law = Callable[[str], float]
"""Draws an outcome of an arm."""


def numbers(epsilon: float | None = None, trust: str = "global", delta: float = 1e-6) -> Strategy:
    """By default so careful that a wrong arm is found once in a million trials."""
    return bet_se(delta, epsilon, trust=trust, outcomes="numbers")


def start(url: str, strategy: Strategy, people: int = 20_000, **options: Any) -> Trial:
    return Trial.create(url, "sleep", ["a", "b"], strategy, people, **options)


def narrow(seed: int = 1) -> Law:
    """Around 0.7 and 0.3, in quarters of a unit: some are rounded at random."""
    rng = np.random.default_rng(seed)
    return lambda arm: round(rng.beta(70, 30) * 2**22) / 2**22 if arm == "a" else rng.beta(30, 70)


def nearly_bits(seed: int = 1) -> Law:
    """So that in some rounds outcomes are rounded to bits."""
    rng, chances = np.random.default_rng(seed), {"a": [0.38, 0.02, 0.6], "b": [0.6, 0.02, 0.38]}
    return lambda arm: float(rng.choice([0, 0.5, 1], p=chances[arm]))


def tell(trial: Trial, batch: AskResult, law: Law) -> None:
    """Everybody's outcome, randomised where they are if nobody is trusted."""
    told, strategy = {one.id: law(one.arm) for one in batch.assignments}, trial.protocol.strategy
    if strategy.trust != "local":
        trial.tell_many(told)
        return
    epsilon, middle = float(strategy.epsilon or 0), batch.middle_level
    trial.answer_many({id: respond(x, epsilon, middle_level=middle) for id, x in told.items()})


def play(trial: Trial, law: Law, most: int = 400) -> Trial:
    """To the end."""
    while (batch := trial.ask(most)).assignments:
        tell(trial, batch, law)
    return trial


def released(transcript: Any) -> list[dict[str, Any]]:
    return [event for event in transcript["events"] if event["kind"] == "released"]


def without_chance(patch: pytest.MonkeyPatch, seed: int = 7) -> None:
    """Noise, roundings at the release and keys of rounds with a seed."""
    source, rng = SimulatedNoise(seed), np.random.default_rng(seed)
    patch.setattr(mechanisms, "add_laplace_noise", source.add_noise_to_totals)
    patch.setattr(release, "to_units", lambda y, grid: int(rng.random() < y))
    seeded_keys(patch, seed)
