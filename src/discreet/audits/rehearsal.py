"""A trial in memory, for audits: the live run, the live mechanisms and the live deal,
on people whose outcomes are known.

It goes through the steps of a live trial without a database, so that a trial can be run
thousands of times. A mechanism of your own, or a mistake, is a subclass.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from discreet._types import Floats, Ints
from discreet.errors import DiscreetError
from discreet.simulation.laws import draw_gaussian
from discreet.strategies.betting.bets import compute_level_error
from discreet.strategies.estimators import FIXED, SIMPLE
from discreet.strategies.run import ArmBatch, Randomisation, Run, Totals, choose_first
from discreet.strategies.strategy import Strategy, check_strategy
from discreet.strategies.units import CENTRE_UNITS, FINE_UNITS, choose_grid, compute_sum_noise
from discreet.trials import mechanisms
from discreet.trials.randomisation import (
    commit_to,
    default_randomisation,
    draw_arm,
    draw_key,
)
from discreet.trials.record import Release, make_release, new_live_run
from discreet.trials.responses import middle_units, to_level, to_units
from discreet.validation import check_arms, check_whole


class NoiseSource(Protocol):
    """Draw the noise of a rehearsal."""

    name: str

    def add_laplace_noise(self, total: int, epsilon: float, grid: int) -> int:
        """Add noise to a sum, in units of 1/grid."""

    def add_noise_to_totals(self, total: Totals, epsilon: float, grid: int) -> Totals:
        """Add noise to a sum and a closeness, in units of 1/grid."""

    def add_gaussian_noise(self, total: int, sigma: float, grid: int) -> int:
        """Add Gaussian noise to a sum, in units of 1/grid."""

    def respond(
        self, outcome: float, epsilon: float, gamma: float | None, middle: float | None = None
    ) -> int:
        """Randomise the response to an outcome: 0 or 1, unless there is a middle level."""


class LiveNoise:
    """Draw the noise of live trials."""

    name = "opendp"

    def __init__(self) -> None:
        mechanisms.load_opendp()  # refused here, and not after the parts that numpy draws

    def add_laplace_noise(self, total: int, epsilon: float, grid: int) -> int:
        """Add noise to a sum as a live trial does."""
        return mechanisms.add_laplace(total, epsilon, grid)[0]

    def add_noise_to_totals(self, total: Totals, epsilon: float, grid: int) -> Totals:
        """Add noise to both as a live trial does."""
        return mechanisms.add_laplace_noise(total, epsilon, grid)

    def add_gaussian_noise(self, total: int, sigma: float, grid: int) -> int:
        """Add Gaussian noise to a sum as a live trial does."""
        return mechanisms.add_gaussian_noise(Totals(total), sigma, grid).sum

    def respond(
        self, outcome: float, epsilon: float, gamma: float | None, middle: float | None = None
    ) -> int:
        """Randomise a response as a participant does."""
        return mechanisms.respond(outcome, epsilon, gamma, middle_level=middle).value


class SimulatedNoise:
    """Draw noise of the same laws with numpy, a hundred times as fast, for audits only;
    not for Gaussian responses.

    Discrete Laplace noise is the difference of two geometric variables with success
    probability 1 - e^(-ε/grid); discrete Gaussian noise is made of it as in
    simulations.
    """

    name = "numpy"
    BLOCK = 4096

    def __init__(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.ready: dict[float, list[int]] = {}

    def add_laplace_noise(self, total: int, epsilon: float, grid: int) -> int:
        """Add discrete Laplace noise to a sum."""
        drawn = self.ready.setdefault(epsilon / grid, [])
        if not drawn:
            two = self.rng.geometric(-math.expm1(-epsilon / grid), (2, self.BLOCK))
            drawn += (two[0] - two[1]).tolist()
        return total + drawn.pop()

    def add_noise_to_totals(self, total: Totals, epsilon: float, grid: int) -> Totals:
        """Add independent noise to both."""
        near = None if total.near is None else self.add_laplace_noise(total.near, epsilon, grid)
        return Totals(self.add_laplace_noise(total.sum, epsilon, grid), near)

    def add_gaussian_noise(self, total: int, sigma: float, grid: int) -> int:
        """Add discrete Gaussian noise to a sum."""
        drawn = self.ready.setdefault(-sigma * grid, [])
        if not drawn:
            drawn += [int(draw_gaussian(self.rng, sigma * grid)) for _ in range(self.BLOCK)]
        return total + drawn.pop()

    def respond(
        self, outcome: float, epsilon: float, gamma: float | None, middle: float | None = None
    ) -> int:
        """Randomise a response."""
        if gamma is not None:
            raise DiscreetError("Gaussian responses are drawn live only")
        if middle is not None:
            level, slip = to_level(float(outcome), middle), compute_level_error(epsilon)
            drawn = self.rng.random()
            turn = (drawn < slip) + (drawn < 2 * slip)  # 1 and 2 as likely as each other
            return (0, middle_units(middle), CENTRE_UNITS)[(level + turn) % 3]
        return int(outcome) ^ int(
            self.rng.random() * (1.0 + math.exp(-epsilon)) < math.exp(-epsilon)
        )


class NoNoise:
    """Add no noise at all: what the raw outcomes would decide, to find tables on which
    a leak would show.
    """

    name = "none"

    def add_laplace_noise(self, total: int, epsilon: float, grid: int) -> int:
        """Return the sum itself."""
        return total

    def add_noise_to_totals(self, total: Totals, epsilon: float, grid: int) -> Totals:
        """Return both themselves."""
        return total

    def add_gaussian_noise(self, total: int, sigma: float, grid: int) -> int:
        """Return the sum itself."""
        return total

    def respond(
        self, outcome: float, epsilon: float, gamma: float | None, middle: float | None = None
    ) -> int:
        """Return the outcome itself, or the level that it is rounded to."""
        if middle is not None:
            return (0, middle_units(middle), CENTRE_UNITS)[to_level(float(outcome), middle)]
        return int(outcome) if gamma is None else int(outcome) * 2**FINE_UNITS


OutcomeTable = Ints | Floats
"""The outcome of each participant (row) on each arm (column): 0 or 1, or a number
between.
"""
KeySource = Callable[[int], bytes]
"""Where the key of a round comes from, given its number."""


def draw_fresh_key(round: int) -> bytes:
    """Draw a key as in a live trial: from the system's randomness, another one in every
    run.
    """
    return draw_key()


def make_fixed_keys(seed: int) -> KeySource:
    """Make keys that are the same in every run: arms are assigned in the same way
    again, whatever the outcomes.
    """
    return lambda round: hashlib.sha256(f"{seed}/{round}".encode()).digest()


class AnnouncedRound(NamedTuple):
    """Hold what is announced before anybody is assigned in a round."""

    round: int
    odds: list[list[int]]
    """[arm, weight] of each arm that may be assigned."""
    people: int
    commit: str
    """The hash of the key."""
    first: int
    """The number of the next participant."""


@dataclass
class RehearsalTranscript:
    """Hold what a trial publishes, so far."""

    arms: list[int] = field(default_factory=list)
    """The arm of each participant."""
    releases: list[Release] = field(default_factory=list)
    stopped: bool = False
    """Whether it stopped by the strategy's rule."""
    recommendation: int | None = None
    openings: list[AnnouncedRound] = field(default_factory=list)
    keys: list[tuple[int, str]] = field(default_factory=list)
    """(round, key) as they were revealed."""
    sites: list[str | None] = field(default_factory=list)
    """Where each participant came from."""
    times: list[float] = field(default_factory=list)
    """When rounds were released: participants come one a unit of time."""


class NextParticipant(Protocol):
    """Return what the next participant's outcome would be on each arm. The arm is drawn
    after that; the record is what staff know when they choose somebody.
    """

    def __call__(
        self, number: int, site: str | None, record: RehearsalTranscript
    ) -> Sequence[float]:
        """Return the outcomes of participant `number`, counted from 1."""


@lru_cache(4096)
def _draw_cached(key: bytes, number: int, *weights: int) -> int:
    """Return what `draw_arm` says, cached: thousands of trials of an audit are assigned
    by one key.
    """
    return draw_arm(key, number, weights)


class Rehearsal:
    """Run a trial in memory, of at most so many participants, again and again: on a
    table of outcomes, or on participants who are made up as they come.

    Arms are assigned as in a live trial of the strategy unless `dealing` says
    otherwise; where rounds have no keys, in the strategy's own order.
    """

    deadline: float | None = None
    """The time within which an outcome counts; later it is 0. None: whenever."""
    by_clock = False
    """Whether rounds are released when the deadline of their last person has passed,
    and not as soon as they are complete.
    """

    def __init__(
        self,
        strategy: Strategy,
        people: int,
        source: NoiseSource,
        arms: int = 2,
        keys: KeySource = draw_fresh_key,
        randomisation: Randomisation | None = None,
    ) -> None:
        check_strategy(strategy)
        arms, people = check_arms(arms), check_whole("people", people, least=0)
        self.strategy, self.source, self.keys = strategy, source, keys
        self.epsilon, self.grid = float(strategy.epsilon or 0), choose_grid(strategy)
        self.sigma = compute_sum_noise(strategy)
        way = (
            Randomisation(default_randomisation(strategy))
            if randomisation is None
            else randomisation
        )
        self.keyed = way.kind != FIXED
        self.live: Run = new_live_run(strategy, arms, people, way)
        self._start = self.live.dump()
        self.learns, self.phased = self.live.releases_each_answer, way.kind == SIMPLE
        self.middle: float | None = None
        """The middle level that people send, where they send levels."""
        self.near: list[float] | None = None
        """The closeness that was released last, where it is."""
        self.begin(np.zeros((0, arms)))

    # --- what a mechanism or a mistake of your own may do otherwise -------------------

    def draw_key(self, round: int) -> bytes:
        """Draw the key of a round when it is opened."""
        return self.keys(round)

    def draw_arm(self, number: int, weights: list[int]) -> int:
        """Draw the arm of a participant by the key of the round that was opened last."""
        return (
            _draw_cached(self.hidden[-1][1], number, *weights)
            if self.keyed
            else choose_first(weights)
        )

    def draw_delay(self, number: int, outcome: float) -> float:
        """Draw how long after a participant came their outcome is known."""
        return 0.0

    def add_noise(self, total: int) -> int:
        """Return what is released for a sum of outcomes (both in units of what is due)."""
        if not self.strategy.trust_model.noised:
            return total
        grid = self.live.scale_grid(self.grid)
        if self.sigma > 0:
            return self.source.add_gaussian_noise(total, self.sigma, grid)
        return self.source.add_laplace_noise(total, self.epsilon, grid)

    def add_noise_to_totals(self, total: Totals) -> Totals:
        """Return what is released for everything that was summed."""
        if total.near is None:
            return Totals(self.add_noise(total.sum))
        noised = self.strategy.trust_model.noised
        return self.source.add_noise_to_totals(total, self.epsilon, self.grid) if noised else total

    def respond(self, outcome: float) -> int:
        """Return what a participant sends, in units of the grid: the outcome, or with
        local trust a randomised response.
        """
        if self.strategy.trust_model.randomised:
            gamma = self.strategy.gamma
            return self.source.respond(outcome, self.epsilon, gamma, self.middle)
        return round(outcome * self.grid)

    def sum_batch(self, arm: int, phase: int) -> int:
        """Add up what the participants of a batch sent."""
        return sum(self.respond(self.outcomes[one]) for one in self.batches.get((arm, phase), []))

    def sum_batch_totals(self, arm: int, phase: int) -> Totals:
        """Add up everything that a batch sent, including closeness if that is released."""
        self.middle = self.live.find_middle_level(phase)
        if self.live.releases_only_sums:
            return Totals(self.sum_batch(arm, phase))
        units = [self.respond(self.outcomes[one]) for one in self.batches.get((arm, phase), [])]
        if self.live.scale_grid(self.grid) != self.grid:
            units = [to_units(one / self.grid, 1) for one in units]
        return self.live.add_up(units)

    def decide(self, released: list[float], raw: list[float]) -> None:
        """Go on with the released sums; the raw ones are only for planted mistakes."""
        self.live.release(released, *([] if self.near is None else [self.near]))

    # --- a trial ----------------------------------------------------------------------

    def run(
        self,
        people: OutcomeTable | NextParticipant,
        site: Callable[[int], str | None] | None = None,
    ) -> RehearsalTranscript:
        """Run one trial on these outcomes; every run draws its own noise. `site` says
        where a person, counted from 1, comes from.
        """
        self.begin(people, site)
        while not self.live.stopped and self.step():
            pass
        return self.end()

    def begin(
        self,
        people: OutcomeTable | NextParticipant,
        site: Callable[[int], str | None] | None = None,
    ) -> None:
        """Begin again, before the first person."""
        self.live.load(self._start)
        self.people, self.site = people if callable(people) else people.tolist(), site
        self.record = RehearsalTranscript()
        self.batches: dict[tuple[int, int], list[int]] = {}
        """The people of each batch, by (arm, phase), counted from 0."""
        self.outcomes: list[float] = []
        """Of each person, as they count."""
        self.known: list[float] = []
        """When they are known."""
        self.last: dict[int, float] = {}
        """When the last person of each round came."""
        self.time = 0.0
        self.hidden: list[tuple[int, bytes]] = []
        """The rounds whose key is not public, and the key."""

    def step(self) -> bool:
        """Make the next release or take the next person; false if there is neither."""
        live = self.live
        if (
            live.randomisation.continuous
            and (due := live.list_due())
            and self._ready(due) <= self.time
        ):
            self._publish(due)
            return True
        place = live.assign_next(self._dealer)
        if place is None and live.samples < live.cap and live.needs_round:
            self._open()
            place = live.assign_next(self._dealer)
        if place is not None:
            self._enter(place)
        elif due := live.list_due():
            self.time = max(self.time, self._ready(due))
            self._publish(due)
        return place is not None or bool(due)

    def _dealer(self, weights: list[int]) -> int:
        """Draw the arm of the next participant."""
        return self.draw_arm(self.live.samples + 1, weights)

    def end(self) -> RehearsalTranscript:
        """Reveal the keys that are still hidden, and return what was published."""
        self._reveal(math.inf)
        self.record.stopped = self.live.stopped
        self.record.recommendation = self.live.recommendation
        return self.record

    def _open(self) -> None:
        """Open a round: draw its key, and commit to it."""
        opening = self.live.open_round()
        key = self.draw_key(opening.round)
        self.hidden.append((opening.round, key))
        said = (opening.round, opening.odds, opening.participants, commit_to(key))
        self.record.openings.append(AnnouncedRound(*said, len(self.outcomes) + 1))

    def _enter(self, place: ArmBatch) -> None:
        """Enter a participant, who was assigned this arm and will have an outcome."""
        person = len(self.outcomes)
        outcome = self._outcome(person, place.arm)
        wait = self.draw_delay(person + 1, outcome)
        if self.deadline is not None and wait > self.deadline:
            outcome, wait = 0.0, self.deadline
        self.outcomes.append(outcome)
        self.known.append(self.time + wait)
        self.last[place.phase if self.phased else 0] = self.time
        self.batches.setdefault((place.arm, place.phase), []).append(person)
        self.record.arms.append(place.arm)
        self.time += 1
        if self.learns:
            value = self.respond(outcome)
            self.live.record_answer(place.arm, value / self.grid)
            self.record.releases.append(Release(*place, value))

    def _outcome(self, person: int, arm: int) -> float:
        """Return the outcome of a participant, who is chosen before the arm is known to
        anybody.
        """
        site = None if self.site is None else self.site(person + 1)
        if callable(self.people):
            outcomes = self.people(person + 1, site, self.record)
        else:
            outcomes = self.people[person]
        self.record.sites.append(site)
        return float(outcomes[arm])

    def _round(self, place: ArmBatch) -> int:
        """Return the round of a batch, if several may be under way."""
        return place.phase if self.phased else 0

    def _ready(self, due: list[ArmBatch]) -> float:
        """Return when what is due may be released."""
        if self.by_clock:
            return self.last[self._round(due[0])] + (self.deadline or 0)
        people = [one for arm, phase, _ in due for one in self.batches.get((arm, phase), [])]
        return max((self.known[one] for one in people), default=self.time)

    def _publish(self, due: list[ArmBatch]) -> None:
        """Publish a release, its time, and the keys that can harm no more."""
        through = self._round(due[0]) or math.inf
        self.record.releases += self.release(due)
        self.record.times.append(self.time)
        self._reveal(through)

    def _reveal(self, through: float) -> None:
        """Publish the keys of all rounds up to one."""
        said = [(round, key.hex()) for round, key in self.hidden if round <= through]
        self.record.keys += said
        self.hidden = [one for one in self.hidden if one[0] > through]

    def release(self, due: list[ArmBatch]) -> list[Release]:
        """Publish what is due, and decide."""
        totals = self.live.combine([self.sum_batch_totals(arm, phase) for arm, phase, _ in due])
        grid = self.live.scale_grid(self.grid)
        raw = [total.sum / grid for total in totals if total is not None]

        def decide(sums: list[float], near: list[float] | None = None) -> None:
            self.near = near
            self.decide(sums, raw)

        return make_release(due, totals, grid, self.add_noise_to_totals, decide)
