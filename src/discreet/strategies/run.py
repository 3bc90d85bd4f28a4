"""One live run, as far as it is public: who is next, what is due for release, what is
decided from it.

A run takes released sums and nothing else from behind the wall. Each family's `Run` is
made of the same functions that its simulated loop calls, one person at a time, so that
the same outcomes and noise lead to the same assignments, releases, stop and
recommendation.

Between two releases the schedule needs no outcomes. `take` hands out the next person's
place until a release is due (`due`), the cap is reached or the run has stopped;
`release` takes the released sums and decides.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np

from discreet.errors import DiscreetError, InvalidInputError
from discreet.strategies.estimators import FIXED, SHUFFLED
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import compute_noise_scale, compute_sum_noise

MIN_P_VALUE = 1e-99
"""No p-value is said to be smaller."""


class Lead(NamedTuple):
    """A number that is released in place of means: how much better an arm did than the
    best of others, per participant.
    """

    arm: int
    over: tuple[int, ...]
    participants: int
    """Of the arm, and as many of each other."""
    value: float


class Margin(NamedTuple):
    """A released difference: how much more the participants of one arm had in all than
    those of another, in rewards.
    """

    one: int
    other: int
    people: tuple[int, int]
    """Of the one, and of the other."""
    lead: float
    """Sum of the one less sum of the other."""
    near: float | None = None
    """Where outcomes are numbers: how close all of them are to the centre, as it was
    released beside.
    """
    centre: float | None = None
    """That centre, if it is known."""

    def reverse(self) -> "Margin":
        """Return the same difference seen from the other arm."""
        return self._replace(
            one=self.other, other=self.one, people=self.people[::-1], lead=-self.lead
        )


@dataclass(frozen=True, eq=False)
class Pair(ABC):
    """The released knowledge about the difference between the means of two arms."""

    difference: float
    """As it was released: private, hence noisy."""

    @abstractmethod
    def interval(self, alpha: float) -> tuple[float, float]:
        """Return an interval that contains the true difference at all times with
        probability 1 - alpha.
        """

    @abstractmethod
    def p_value(self) -> float:
        """Return the p-value of "the two means are equal", valid at any time; 1 if
        nothing speaks against it.
        """


@dataclass(frozen=True, eq=False)
class Radii(Pair):
    """A difference that lies within a radius of the true one."""

    radius: Callable[[float], float]
    """Of alpha: passed at any time with a probability of at most that."""

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the interval within the radius, as far as differences can be."""
        radius = self.radius(alpha)
        return max(self.difference - radius, -1.0), min(self.difference + radius, 1.0)

    def p_value(self) -> float:
        """Return the smallest alpha whose interval leaves out 0, rounded up by a
        thousandth at most.
        """
        low, high = math.log(MIN_P_VALUE), 0.0
        if self.radius(math.exp(low)) < abs(self.difference):
            return MIN_P_VALUE
        while high - low > 1e-3:
            middle = (low + high) / 2
            if self.radius(math.exp(middle)) < abs(self.difference):
                high = middle
            else:
                low = middle
        return math.exp(high)


PRIOR_PRECISION = 12.0
"""One over the variance of a uniform law: what is known of a mean nobody has seen."""
DrawArm = Callable[[list[int]], int]
"""Draws an arm, given the weight of each: its odds, or how many places it has left."""


DrawCounts = Callable[[int, list[int]], Sequence[int]]
"""Draws how many of so many people each arm gets, given the weight of each."""


def choose_first(weights: list[int]) -> int:
    """Choose without chance the first arm that may be assigned."""
    return next(arm for arm, weight in enumerate(weights) if weight > 0)


class Randomisation(NamedTuple):
    """How a live run assigns participants to arms."""

    kind: str
    """Coins, shuffled or order."""
    continuous: bool = False
    """Whether rounds are opened ahead, so that nobody waits for a release."""


class RoundOpening(NamedTuple):
    """A round as it is opened, before anybody is assigned in it."""

    round: int
    """From 1 on."""
    odds: list[list[int]]
    """[arm, weight] of each arm that may be dealt: its odds, or its places."""
    participants: int
    """How many it is planned for."""
    middle_level: float | None = None
    """The middle one of the three levels that its people send, if they do."""


class Totals(NamedTuple):
    """The sums of the outcomes of a batch, in units."""

    sum: int
    near: int | None = None
    """How close they are to an announced centre, where that is released beside."""


class ArmBatch(NamedTuple):
    """A batch of participants: `size` of one arm in one of its phases (or rounds)."""

    arm: int
    phase: int
    size: int


@dataclass(frozen=True)
class ArmView:
    """The public numbers of an arm."""

    pulls: int
    count: int
    """Outcomes behind the mean."""
    mean: float | None
    interval: tuple[float, float] | None


class Belief(NamedTuple):
    """An estimate of an arm's mean reward from released numbers: for planning only."""

    mean: float
    error: float
    """Its standard error."""


class Run(ABC):
    """A live run of a strategy that has not begun; `load` what `dump` wrote to go on
    with one.

    The names of what is stored are written out (`fields`, `arrays`): a change there is
    a change of the stored format.
    """

    fields: ClassVar[tuple[str, ...]] = ("samples", "stopped", "recommendation")
    """The attributes that are stored, under their own names."""

    randomisation = Randomisation(FIXED)
    """How people are dealt; see `dealt`."""

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        self.strategy = strategy
        self.arms = arms
        self.cap = cap
        self.samples = 0
        self.stopped = False
        self.recommendation: int | None = None

    def with_randomisation(self, randomisation: Randomisation) -> "Run":
        """Return the run with participants randomised in this way, before anybody is
        assigned.
        """
        made = self
        if randomisation.kind == SHUFFLED:
            made = ShuffledRun(self)
        made.randomisation = randomisation
        return made

    @abstractmethod
    def assign_next(self, deal: DrawArm = choose_first) -> ArmBatch | None:
        """Return the next participant's arm and phase (size 1), or None: a release is
        due, or nobody else is needed. `draw_arm` draws it if the strategy leaves it to
        chance.
        """

    def assign_all(self) -> list[ArmBatch]:
        """Assign every place up to the next release, or the cap, without chance. Return
        how many of each arm, and in which phase. Families with long phases have a quick
        way.
        """
        sizes: dict[tuple[int, int], int] = {}
        while (place := self.assign_next()) is not None:
            key = (place.arm, place.phase)
            sizes[key] = sizes.get(key, 0) + place.size
        return [ArmBatch(arm, phase, size) for (arm, phase), size in sorted(sizes.items())]

    def assign_random(self, spread: DrawCounts) -> None:
        """Assign every place up to the next release, or the cap, at once, when no
        participant has to be told an arm. `draw_counts` draws what is left to chance.
        """
        self.assign_all()

    @property
    def needs_round(self) -> bool:
        """Whether a round has to be opened before anybody else can be assigned."""
        return False

    def open_round(self) -> RoundOpening:
        """Open the next round. Return what is announced before anybody is assigned in
        it.
        """
        raise DiscreetError(f"{self.strategy.name} is not dealt in rounds here")

    def set_cap(self, people: int) -> None:
        """Set the manager's new maximum of participants."""
        self.cap = people

    def drop_arm(self, arm: int) -> None:
        """Take an arm out of the trial, for a manager."""
        raise InvalidInputError(
            f"no arm can be dropped from a trial of {self.strategy.name}: the error rate after "
            "that is proved for bet-se only. Stop the trial, and start another"
        )

    def add_arm(self) -> None:
        """Add an arm, the last one from now on, for a manager."""
        raise InvalidInputError(
            f"no arm can be added to a trial of {self.strategy.name}: the error rate after that "
            "is proved for bet-se only. Stop the trial, and start another"
        )

    def count_unassigned(self) -> int:
        """Return how many places are assigned by chance before the next release; 0 if
        the order is the strategy's.
        """
        return 0

    @abstractmethod
    def list_due(self) -> list[ArmBatch]:
        """Return the batches to be released before anyone else is assigned; mostly
        none.
        """

    def is_pending(self, arm: int, phase: int) -> bool:
        """Return whether participants of an arm in a phase that is not released will
        be: not if the arm was taken off its round.
        """
        return True

    def add_up(self, units: Sequence[int]) -> Totals:
        """Add up the outcomes of a batch that is due; see `releases_only_sums`."""
        return Totals(sum(units))

    def combine(self, totals: list[Totals]) -> list[Totals | None]:
        """Return what is released of the sums of what is due, before noise: mostly each
        of them; None for a batch that only enters the numbers of another.
        """
        return list(totals)

    def release(self, sums: list[float], near: list[float] | None = None) -> None:
        """Go on with the numbers that were released of what was due, in that order;
        `near` if closeness is released.
        """
        raise DiscreetError(f"{self.strategy.name} learns from every answer: use answer")

    def record_answer(self, arm: int, value: float) -> None:
        """Record one answer of an arm, in the order in which its participants were
        assigned; then decide.
        """
        raise DiscreetError(f"{self.strategy.name} learns from released sums: use release")

    @abstractmethod
    def view_arms(self) -> list[ArmView]:
        """Return the public numbers of each arm."""

    def list_means(self) -> list[float | None]:
        """Return the released mean of each arm."""
        return [arm.mean for arm in self.view_arms()]

    def list_leads(self) -> list[Lead]:
        """Return what was released in place of means; mostly nothing."""
        return []

    def measure_evidence(self) -> list[float | None]:
        """Return the evidence that each arm is not the best, as a share of what
        eliminates it; None for the arm that leads, and before anything is known.
        """
        return [None] * self.arms

    def compare(self, one: int, other: int, margins: Sequence[Margin] = ()) -> Pair | None:
        """Return what was released about the difference between two arms, of which
        `margins` are those between them; None before anything was.
        """
        return None

    def compute_p_values(self) -> list[float | None]:
        """Return the p-value of "this arm is at least as good as every other for the
        participants of each round", valid at any time; None if a strategy has no such
        evidence.
        """
        return [None] * self.arms

    def estimate_means(self) -> list[Belief]:
        """Estimate each true mean from the last released one: before it was seen,
        anything between 0 and 1; then as precisely as its participants and its noise
        allow.
        """
        strategy, found = self.strategy, list[Belief]()
        sigma, scale = compute_sum_noise(strategy), compute_noise_scale(strategy)
        laplace = 0.0 if sigma else 2**0.5 / strategy.trust_model.noise(strategy.epsilon)
        shrink = strategy.trust_model.shrink(strategy.epsilon) if strategy.spec.bits else 1.0
        for arm in self.view_arms():
            if arm.mean is None:
                found.append(Belief(0.5, PRIOR_PRECISION**-0.5))
                continue
            sent = min(max(0.5 + shrink * (arm.mean - 0.5), 0.05), 0.95)
            spread = (sent * (1 - sent) + scale**2) / shrink**2
            seen = 1 / (spread / arm.count + (max(sigma, laplace) / arm.count) ** 2)
            precision = PRIOR_PRECISION + seen
            found.append(
                Belief((PRIOR_PRECISION / 2 + seen * arm.mean) / precision, precision**-0.5)
            )
        return found

    @abstractmethod
    def can_stop(self, delta: float) -> bool:
        """Return whether this state would be enough to stop at another δ."""

    @abstractmethod
    def list_arrays(self) -> dict[str, Any]:
        """Return the arrays that are stored, by their stored names."""

    @property
    def releases_only_sums(self) -> bool:
        """Whether outcomes are added up as they are, and nothing else is released."""
        return True

    @property
    def releases_closeness(self) -> bool:
        """Return whether closeness is released beside sums when the next release comes."""
        return False

    @property
    def centre(self) -> float | None:
        """Of what is due: to what closeness is measured, where it is released."""
        return None

    @property
    def middle_level(self) -> float | None:
        """The middle one of the three levels that people are to send, if they are."""
        return None

    def find_middle_level(self, phase: int) -> float | None:
        """Return the middle level for those who are in a phase that is not released."""
        return self.middle_level

    def scale_grid(self, grid: int) -> int:
        """Return the units of what is due, if those of outcomes are `grid`."""
        return grid

    def is_possible(self, total: Totals, count: int, grid: int) -> bool:
        """Return whether so many outcomes can have these sums if no noise is added."""
        return 0 <= total.sum <= count * grid

    @property
    def releases_each_answer(self) -> bool:
        """Return whether every answer is a release of its own, so that nobody waits."""
        return self.strategy.spec.each_answer

    @property
    def is_finished(self) -> bool:
        """Return whether nobody else will be assigned: stopped, or at the cap with no
        release to come.
        """
        return self.stopped or (self.samples >= self.cap and not self.list_due())

    def dump(self) -> dict[str, Any]:
        """Return the state in plain types; floats read back the same."""
        arrays = {name: np.asarray(array).tolist() for name, array in self.list_arrays().items()}
        return {**{name: copy(getattr(self, name)) for name in self.fields}, "arrays": arrays}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a state that `dump` wrote; a KeyError names a field that is
        missing.
        """
        for name in self.fields:
            setattr(self, name, copy(state[name]))
        for name, array in self.list_arrays().items():
            array[...] = np.array(state["arrays"][name], array.dtype)

    def find_smallest_delta(self) -> float | None:
        """Return the smallest δ at which this state would be enough to stop, to 1 in
        1000; None if there is none below 1.
        """
        low, high = math.log(1e-99), 0.0
        if not self.can_stop(math.exp(-1e-9)):
            return None
        while high - low > 1e-3:
            middle = (low + high) / 2
            if self.can_stop(math.exp(middle)):
                high = middle
            else:
                low = middle
        return math.exp(high)


RUN_MODULES = {"betting": "betting.run", "phased": "phased.run"}
"""Module of the live run of each family that is a package."""


def make_run(
    strategy: Strategy,
    arms: int,
    cap: int,
    delta: float,
    noise: float | None = None,
    randomisation: Randomisation | None = None,
) -> Run:
    """Return the run of a strategy; its thresholds are computed with `delta` and the
    `noise` of Gaussian responses.
    """
    family = strategy.spec.family
    module = import_module(f"discreet.strategies.{RUN_MODULES.get(family, family)}")
    made: Run = module.make_run(strategy.with_(delta=delta), arms, cap, noise)
    return made if randomisation is None else made.with_randomisation(randomisation)


class ShuffledRun(Run):
    """A run within a run: `inner` decides, and is ahead of the assigned participants by
    the places that are left.
    """

    def __init__(self, inner: Run) -> None:
        super().__init__(inner.strategy, inner.arms, inner.cap)
        if inner.releases_each_answer:
            raise InvalidInputError(
                f"{self.strategy.name} learns from every answer, so its places cannot be "
                'shuffled: deal in its own order, randomisation="fixed"'
            )
        self.inner = inner
        self.opened = 0
        """Rounds that were opened."""
        self.left = np.zeros(inner.arms, np.int64)
        """[arm]: places of the open round that nobody has yet."""
        self.phase = np.zeros(inner.arms, np.int64)
        """[arm]: the phase in which they are counted."""

    # --- stored -----------------------------------------------------------------------

    def list_arrays(self) -> dict[str, Any]:
        """Return the places that are left."""
        return {"left": self.left, "phase": self.phase}

    def dump(self) -> dict[str, Any]:
        """Return the state of the run within, and the places that are left."""
        return {**super().dump(), "opened": self.opened, "inner": self.inner.dump()}

    def load(self, state: dict[str, Any]) -> None:
        """Load the state of both runs."""
        super().load(state)
        self.opened = state["opened"]
        self.inner.load(state["inner"])
        self.set_cap(self.cap)

    # --- played -----------------------------------------------------------------------

    @property
    def _is_idle(self) -> bool:
        """Return whether everybody is dealt and released whom the run within has
        placed, but for those of a round that the cap has cut.
        """
        return not self._has_places and not self.inner.list_due()

    @property
    def _has_places(self) -> bool:
        """Return whether places of the open round are left; asked at every event, and
        quicker than `any` of an array.
        """
        return bool(np.count_nonzero(self.left))

    @property
    def needs_round(self) -> bool:
        """Return whether the next round may be opened."""
        return self._is_idle and not self.is_finished

    @property
    def is_finished(self) -> bool:
        """Stopped, at the cap with no release to come, or no round fits below it."""
        return super().is_finished or (self._is_idle and self.inner.is_finished)

    def open_round(self) -> RoundOpening:
        """Open every place up to the next release, or the cap."""
        if not self.needs_round:
            raise DiscreetError("the last round has to be dealt and released before the next")
        places = self.inner.assign_all()
        if len({place.arm for place in places}) < len(places):
            raise DiscreetError("an arm has places of two phases before the next release")
        for arm, phase, size in places:
            self.left[arm], self.phase[arm] = size, phase
        self.opened += 1
        odds = [[arm, int(self.left[arm])] for arm in np.flatnonzero(self.left).tolist()]
        return RoundOpening(self.opened, odds, int(self.left.sum()), self.middle_level)

    def set_cap(self, people: int) -> None:
        """Set the cap: a lower one leaves places to nobody, a higher one goes on with
        them. The run within never has a cap below what it has placed: that is still to
        be released.
        """
        super().set_cap(people)
        self.inner.set_cap(max(people, self.inner.samples))

    def assign_next(self, deal: DrawArm = choose_first) -> ArmBatch | None:
        """Draw one of the places that are left."""
        left = self.left.tolist()
        if self.stopped or self.samples >= self.cap or not any(left):
            return None
        arm = deal(left)
        if not 0 <= arm < self.arms or left[arm] < 1:
            return None
        self.left[arm] -= 1
        self.samples += 1
        return ArmBatch(arm, int(self.phase[arm]), 1)

    def assign_random(self, spread: DrawCounts) -> None:
        """Assign all places of the round, as far as the cap allows: how many each arm
        gets is fixed, whatever the order.
        """
        if self.needs_round:
            self.open_round()
        self.samples += self.count_unassigned()
        self.left[:] = 0

    def count_unassigned(self) -> int:
        """Return how many places of the round nobody has yet, as far as the cap allows."""
        return 0 if self.stopped else max(min(int(self.left.sum()), self.cap - self.samples), 0)

    def list_due(self) -> list[ArmBatch]:
        """Return what is due within, when everybody is assigned."""
        return [] if self._has_places else self.inner.list_due()

    def release(self, sums: list[float], near: list[float] | None = None) -> None:
        """Let the run within decide."""
        if near is None:
            self.inner.release(sums)
        else:
            self.inner.release(sums, near)
        self.stopped, self.recommendation = self.inner.stopped, self.inner.recommendation

    # --- as within --------------------------------------------------------------------

    def view_arms(self) -> list[ArmView]:
        """Return the arms with the participants who were assigned, not those who are to
        be.
        """
        return [
            ArmView(view.pulls - int(left), view.count, view.mean, view.interval)
            for view, left in zip(self.inner.view_arms(), self.left, strict=True)
        ]

    def can_stop(self, delta: float) -> bool:
        """Return what the run within says."""
        return self.inner.can_stop(delta)

    def find_smallest_delta(self) -> float | None:
        """Return what the run within says."""
        return self.inner.find_smallest_delta()

    def list_leads(self) -> list[Lead]:
        """Return what the run within says."""
        return self.inner.list_leads()

    def measure_evidence(self) -> list[float | None]:
        """Return what the run within says."""
        return self.inner.measure_evidence()

    def compare(self, one: int, other: int, margins: Sequence[Margin] = ()) -> Pair | None:
        """Return what the run within says."""
        return self.inner.compare(one, other, margins)

    def estimate_means(self) -> list[Belief]:
        """Return what the run within says."""
        return self.inner.estimate_means()

    def add_up(self, units: Sequence[int]) -> Totals:
        """Add up the outcomes of a batch as the run within does."""
        return self.inner.add_up(units)

    def combine(self, totals: list[Totals]) -> list[Totals | None]:
        """Return what the run within releases of the sums."""
        return self.inner.combine(totals)

    def is_possible(self, total: Totals, count: int, grid: int) -> bool:
        """Return whether so many outcomes can have these sums."""
        return self.inner.is_possible(total, count, grid)

    def scale_grid(self, grid: int) -> int:
        """Return the units of what is due."""
        return self.inner.scale_grid(grid)

    @property
    def releases_only_sums(self) -> bool:
        """Return whether nothing but sums is released."""
        return self.inner.releases_only_sums

    @property
    def releases_closeness(self) -> bool:
        """Return whether closeness is released beside."""
        return self.inner.releases_closeness

    @property
    def middle_level(self) -> float | None:
        """The middle level, if people send levels."""
        return self.inner.middle_level
