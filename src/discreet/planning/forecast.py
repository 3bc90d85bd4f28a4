"""How a trial that is under way may go on: simulated from what is public about it, and
a promise of nothing.

Each continuation draws true means of its own, from what the releases so far say about
them, and is played on from there by the run itself, in plain Python, from release to
release. So the band is wide while little is known, and nobody's outcome is in it beyond
what was released.
"""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._types import Floats
from discreet.simulation.betting import compute_sent_chance, draw_noise
from discreet.simulation.engine import make_generator
from discreet.simulation.laws import (
    Generator,
    Laws,
    draw_sent_sums,
    draw_steady_reward,
    make_bernoulli_laws,
    make_discrete_laws,
    make_response_laws,
)
from discreet.simulation.per_participant import make_noise_drawer
from discreet.strategies.betting.open_rounds import count_participants
from discreet.strategies.betting.run import BettingRun
from discreet.strategies.betting.schedule import measure_closeness_share
from discreet.strategies.run import ArmBatch, Belief, Run, Totals
from discreet.strategies.units import choose_grid, compute_noise_scale, is_rounded_to_bits

MAX_CONTINUATIONS, MIN_CONTINUATIONS = 200, 40
"""Most continuations, and as many as a band needs."""
MAX_SECONDS = 2.0
"""Seconds after which no other continuation is begun."""
PARTICIPANTS_BETWEEN_CLOCK_CHECKS = 256
"""Number of participants between two looks at the clock, if each of them is played."""


@dataclass(frozen=True)
class Forecast:
    """Summarise simulated continuations of a trial."""

    runs: int
    now: int
    """Participants in the trial when they began."""
    low: int
    """Total of participants that a tenth of the continuations stay below."""
    median: int
    """Total of participants that half of them stay below."""
    high: int
    """Total of participants that nine tenths stay below."""
    inconclusive: float
    """Share of the continuations that reached the maximum without a result."""


class _TimeIsUpError(Exception):
    """Stop the continuation under way, unfinished."""


def forecast(run: Run, seed: int, seconds: float = MAX_SECONDS) -> Forecast | None:
    """Play a run on from where it is, again and again, for so many seconds; None if
    that is not enough for a band.

    The run is used up. The continuation that the time cuts off does not count: one of
    at least 40, it makes the rest no shorter than that.
    """
    state, beliefs, ends = run.dump(), run.estimate_means(), list[tuple[int, bool]]()
    now, until = run.samples, time.monotonic() + seconds
    try:
        for number in range(MAX_CONTINUATIONS):
            rng = make_generator(seed, number)
            run.load(state)
            ends.append(Continuation(run, rng, until).play(draw_means(beliefs, rng)))
    except _TimeIsUpError:
        if len(ends) < MIN_CONTINUATIONS:
            return None
    counts = sorted(participants for participants, _ in ends)
    low, middle, high = (counts[int(share * (len(counts) - 1))] for share in (0.1, 0.5, 0.9))
    inconclusive = sum(not stopped for _, stopped in ends) / len(ends)
    return Forecast(len(ends), now, low, middle, high, inconclusive)


def draw_means(beliefs: list[Belief], rng: Generator) -> Floats:
    """Draw true means that fit what was released: normal, and between 0 and 1."""
    means = np.zeros(len(beliefs))
    for arm, (mean, error) in enumerate(beliefs):
        value = rng.normal(mean, error)
        for _ in range(100):
            if 0 <= value <= 1:
                break
            value = rng.normal(mean, error)
        means[arm] = min(max(value, 0.0), 1.0)
    return means


class Continuation:
    """Play a run on in one possible way."""

    def __init__(self, run: Run, rng: Generator, until: float = math.inf) -> None:
        self.run, self.rng, self.until = run, rng, until
        self.strategy = run.strategy
        self.grid = choose_grid(self.strategy)
        self.noise = make_noise_drawer(self.strategy, rng)
        self.ahead = _count_pending(run)
        """People under way, where enrolment does not wait: as many as now are taken to
        be from here on.
        """

    def play(self, means: Floats) -> tuple[int, bool]:
        """Play to the end on these true means. Return the participants in all, and
        whether it stopped.
        """
        with np.errstate(all="ignore"):
            if self.run.releases_each_answer:
                self._play_answers(make_bernoulli_laws(means))
            else:
                self._play_rounds(means)
        return self.run.samples, self.run.stopped

    def _play_rounds(self, means: Floats) -> None:
        run, laws = self.run, self._make_laws(means)
        while not run.stopped:
            self._check_time()
            samples_before = run.samples
            run.assign_random(self._split_participants)
            due, more = run.list_due(), run.samples > samples_before
            if not due and not more:
                return
            if due and not (more and _count_pending(run) < self.ahead):
                self._release_due(due, laws)

    def _release_due(self, due: list[ArmBatch], laws: Laws) -> None:
        run = self.run
        grid = run.scale_grid(self.grid)
        totals = run.combine([self._draw_totals(place, laws) for place in due])
        released = [total for total in totals if total is not None]
        noise = [
            (self._draw_noise(), self._draw_noise() if run.releases_closeness else 0.0)
            for _ in released
        ]
        sums = [total.sum / grid + one for total, (one, _) in zip(released, noise, strict=True)]
        near = [
            (total.near or 0) / grid + one for total, (_, one) in zip(released, noise, strict=True)
        ]
        run.release(sums, near if run.releases_closeness else None)

    def _draw_totals(self, place: ArmBatch, laws: Laws) -> Totals:
        """Draw what the participants of a batch add up to, in units of what is due."""
        run, count = self.run, place.size
        if run.releases_closeness and isinstance(run, BettingRun):
            return Totals(
                *draw_sent_sums(self.rng, laws, place.arm, count, run.current, run.setting)
            )
        chance = laws.mean[place.arm]
        if isinstance(run, BettingRun):
            chance = compute_sent_chance(chance, run.setting)
        return Totals(int(self.rng.binomial(count, chance)) * run.scale_grid(self.grid))

    def _draw_noise(self) -> float:
        """Draw the noise of one released number, on the scale of rewards."""
        run = self.run
        if isinstance(run, BettingRun):
            return draw_noise(self.rng, run.current, run.setting) / run.scale_grid(self.grid)
        return self.noise()

    def _make_laws(self, means: Floats) -> Laws:
        """Return laws of yes or no. Numbers lie at their mean as often as released
        closeness says, and else at the ends.
        """
        run = self.run
        if not isinstance(run, BettingRun) or not run.numbers:
            return make_bernoulli_laws(means)
        near = measure_closeness_share(run.book)
        values = np.stack([np.zeros_like(means), means, np.ones_like(means)], axis=1)
        chances = np.stack(
            [(1 - near) * (1 - means), np.full_like(means, near), (1 - near) * means]
        )
        return make_discrete_laws(values, chances.T)

    def _split_participants(self, count: int, weights: list[int]) -> list[int]:
        odds = np.array(weights, float)
        counts: list[int] = self.rng.multinomial(count, odds / odds.sum()).tolist()
        return counts

    def _play_answers(self, laws: Laws) -> None:
        """Play a strategy for which every answer counts at once: participants who are
        enrolled answer first.
        """
        run: Any = self.run
        bits = is_rounded_to_bits(self.strategy) and self.strategy.trust_model.randomised
        answers = make_response_laws(laws, float(self.strategy.epsilon or 0)) if bits else laws
        noise = compute_noise_scale(self.strategy)

        def answer(arm: int) -> None:
            value = draw_steady_reward(self.rng, answers, arm)
            run.record_answer(arm, value + noise * self.rng.standard_normal() if noise else value)

        for arm, view in enumerate(run.view_arms()):
            for _ in range(view.pulls - view.count):
                if not run.stopped:
                    answer(arm)
        while not run.stopped and (place := run.assign_next()) is not None:
            answer(place.arm)
            if not run.samples % PARTICIPANTS_BETWEEN_CLOCK_CHECKS:
                self._check_time()

    def _check_time(self) -> None:
        if time.monotonic() > self.until:
            raise _TimeIsUpError


def _count_pending(run: Run) -> int:
    """Count the participants who are not released, if rounds are opened ahead."""
    if not isinstance(run, BettingRun) or not run.randomisation.continuous:
        return 0
    return sum(map(count_participants, run.queue))
