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
from discreet.strategies.pairs import Lead, Margin, Pair
from discreet.strategies.parts import ORDER, SHUFFLED
from discreet.strategies.scales import noise_scale, sum_noise
from discreet.strategies.strategy import Strategy

UNSEEN = 12.0
"""One over the variance of a uniform law: what is known of a mean nobody has seen."""
Deal = Callable[[list[int]], int]
"""Draws an arm, given the weight of each: its odds, or how many places it has left."""


Spread = Callable[[int, list[int]], Sequence[int]]
"""Draws how many of so many people each arm gets, given the weight of each."""


def in_order(weights: list[int]) -> int:
    """Deals without chance: the first arm that may be dealt."""
    return next(arm for arm, weight in enumerate(weights) if weight > 0)


class Dealing(NamedTuple):
    """How a live run deals people to arms."""

    kind: str
    """Coins, shuffled or order."""
    continuous: bool = False
    """Whether rounds are opened ahead, so that nobody waits for a release."""


class Opening(NamedTuple):
    """A round as it is opened, before anybody is dealt in it."""

    round: int
    """From 1 on."""
    odds: list[list[int]]
    """[arm, weight] of each arm that may be dealt: its odds, or its places."""
    people: int
    """How many it is planned for."""
    middle: float | None = None
    """The middle one of the three levels that its people send, if they do."""


class Totals(NamedTuple):
    """What is summed of the outcomes of a batch, in units."""

    sum: int
    near: int | None = None
    """How close they are to an announced centre, where that is released beside."""


class Place(NamedTuple):
    """Where people are counted: `size` people of one arm in one of its phases (or
    rounds).
    """

    arm: int
    phase: int
    size: int


@dataclass(frozen=True)
class ArmView:
    """What is public about an arm."""

    pulls: int
    count: int
    """Outcomes behind the mean."""
    mean: float | None
    interval: tuple[float, float] | None


class Belief(NamedTuple):
    """What released numbers say of an arm's mean reward, about: for planning only."""

    mean: float
    error: float
    """Its standard error."""


class Run(ABC):
    """A run that has not begun; `load` what `dump` wrote to go on with one.

    The names of what is stored are written out (`fields`, `arrays`): a change there is
    a change of the stored format.
    """

    fields: ClassVar[tuple[str, ...]] = ("samples", "stopped", "recommendation")
    """The attributes that are stored, under their own names."""

    dealing = Dealing(ORDER)
    """How people are dealt; see `dealt`."""

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        self.strategy = strategy
        self.arms = arms
        self.cap = cap
        self.samples = 0
        self.stopped = False
        self.recommendation: int | None = None

    def dealt(self, dealing: Dealing) -> "Run":
        """The run with people dealt so; before anybody is."""
        made = self
        if dealing.kind == SHUFFLED:
            made = import_module("discreet.strategies.shuffled").ShuffledRun(self)
        made.dealing = dealing
        return made

    @abstractmethod
    def take(self, deal: Deal = in_order) -> Place | None:
        """The next person's arm and phase (size 1), or None: a release is due, or
        nobody else is needed. `deal` draws it where the strategy leaves it to chance.
        """

    def take_all(self) -> list[Place]:
        """Take every place up to the next release, or the cap, without chance: of each
        arm how many, and in which phase. Families with long phases have a quick way.
        """
        sizes: dict[tuple[int, int], int] = {}
        while (place := self.take()) is not None:
            key = (place.arm, place.phase)
            sizes[key] = sizes.get(key, 0) + place.size
        return [Place(arm, phase, size) for (arm, phase), size in sorted(sizes.items())]

    def fill(self, spread: Spread) -> None:
        """Fill every place up to the next release, or the cap, at once: for whoever
        plays on what nobody has to be told. `spread` draws where that is left to
        chance.
        """
        self.take_all()

    @property
    def closed(self) -> bool:
        """Whether a round has to be opened before anybody else can be dealt."""
        return False

    def open(self) -> Opening:
        """Open the next round: what is announced before anybody is dealt in it."""
        raise DiscreetError(f"{self.strategy.name} is not dealt in rounds here")

    def maximum(self, people: int) -> None:
        """The manager's new cap."""
        self.cap = people

    def drop(self, arm: int) -> None:
        """The manager takes an arm out of the trial."""
        raise InvalidInputError(
            f"no arm can be dropped from a trial of {self.strategy.name}: the error rate after "
            "that is proved for bet-se only. Stop the trial, and start another"
        )

    def add(self) -> None:
        """The manager adds an arm, the last one from now on."""
        raise InvalidInputError(
            f"no arm can be added to a trial of {self.strategy.name}: the error rate after that "
            "is proved for bet-se only. Stop the trial, and start another"
        )

    def to_deal(self) -> int:
        """How many places are dealt by chance before the next release; none where the
        order is the strategy's.
        """
        return 0

    @abstractmethod
    def due(self) -> list[Place]:
        """The batches to be released before anyone else is assigned; mostly none."""

    def under_way(self, arm: int, phase: int) -> bool:
        """Whether people of an arm in a phase that is not released will be: not if the
        arm was taken off its round.
        """
        return True

    def totals(self, units: Sequence[int]) -> Totals:
        """What is summed of the outcomes of a batch that is due; see `sums_only`."""
        return Totals(sum(units))

    def combine(self, totals: list[Totals]) -> list[Totals | None]:
        """What is released of the sums of what is due, before noise: mostly each of
        them; None for a batch that only enters the numbers of another.
        """
        return list(totals)

    def release(self, sums: list[float], near: list[float] | None = None) -> None:
        """Go on with the numbers that were released of what was due, in that order;
        `near` where closeness is released.
        """
        raise DiscreetError(f"{self.strategy.name} learns from every answer: use answer")

    def answer(self, arm: int, value: float) -> None:
        """Take in one answer of an arm, in the order in which its people were assigned;
        then decide.
        """
        raise DiscreetError(f"{self.strategy.name} learns from released sums: use release")

    @abstractmethod
    def table(self) -> list[ArmView]:
        """What is public about each arm."""

    def means(self) -> list[float | None]:
        """The released mean of each arm."""
        return [arm.mean for arm in self.table()]

    def leads(self) -> list[Lead]:
        """What was released in place of means; mostly nothing."""
        return []

    def evidence(self) -> list[float | None]:
        """The evidence that each arm is not the best, as a share of what puts it out;
        None for the arm that leads, and before anything is known.
        """
        return [None] * self.arms

    def pair(self, one: int, other: int, margins: Sequence[Margin] = ()) -> Pair | None:
        """What was released about the difference between two arms, of which `margins`
        are those between them; None before anything was.
        """
        return None

    def p_values(self) -> list[float | None]:
        """Of "this arm is at least as good as every other for the people of each
        round", valid at any time; None where a strategy has no such evidence.
        """
        return [None] * self.arms

    def beliefs(self) -> list[Belief]:
        """What the last released mean of each arm says about the true one: before it
        was seen, anything between 0 and 1; then as much as its people and its noise
        leave open.
        """
        strategy, found = self.strategy, list[Belief]()
        sigma, scale = sum_noise(strategy), noise_scale(strategy)
        laplace = 0.0 if sigma else 2**0.5 / strategy.trust_model.noise(strategy.epsilon)
        shrink = strategy.trust_model.shrink(strategy.epsilon) if strategy.part.bits else 1.0
        for arm in self.table():
            if arm.mean is None:
                found.append(Belief(0.5, UNSEEN**-0.5))
                continue
            sent = min(max(0.5 + shrink * (arm.mean - 0.5), 0.05), 0.95)
            spread = (sent * (1 - sent) + scale**2) / shrink**2
            seen = 1 / (spread / arm.count + (max(sigma, laplace) / arm.count) ** 2)
            precision = UNSEEN + seen
            found.append(Belief((UNSEEN / 2 + seen * arm.mean) / precision, precision**-0.5))
        return found

    @abstractmethod
    def would_stop(self, delta: float) -> bool:
        """Whether this state would be enough to stop at another δ."""

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """The arrays that are stored, by their stored names."""

    @property
    def sums_only(self) -> bool:
        """Whether outcomes are added up as they are, and nothing else is released."""
        return True

    @property
    def fine(self) -> bool:
        """Whether closeness is released beside sums when the next release comes."""
        return False

    @property
    def centre(self) -> float | None:
        """Of what is due: to what closeness is measured, where it is released."""
        return None

    @property
    def middle(self) -> float | None:
        """The middle one of the three levels that people are to send, if they are."""
        return None

    def middle_of(self, phase: int) -> float | None:
        """The same for those who are in a phase that is not released."""
        return self.middle

    def due_grid(self, grid: int) -> int:
        """The units of what is due, if those of outcomes are `grid`."""
        return grid

    def possible(self, total: Totals, count: int, grid: int) -> bool:
        """Whether so many outcomes can have these sums, where no noise is added."""
        return 0 <= total.sum <= count * grid

    @property
    def learns_always(self) -> bool:
        """Whether every answer is a release of its own, so that nobody waits."""
        return self.strategy.part.each_answer

    @property
    def finished(self) -> bool:
        """Whether nobody else will be assigned: stopped, or at the cap with no release
        to come.
        """
        return self.stopped or (self.samples >= self.cap and not self.due())

    def dump(self) -> dict[str, Any]:
        """The state in plain types; floats are written so that they read back the
        same.
        """
        arrays = {name: np.asarray(array).tolist() for name, array in self.arrays().items()}
        return {**{name: copy(getattr(self, name)) for name in self.fields}, "arrays": arrays}

    def load(self, state: dict[str, Any]) -> None:
        """Go on where the run that wrote this state was; a KeyError names a field that
        should be there.
        """
        for name in self.fields:
            setattr(self, name, copy(state[name]))
        for name, array in self.arrays().items():
            array[...] = np.array(state["arrays"][name], array.dtype)

    def smallest_delta(self) -> float | None:
        """The smallest δ at which this state would be enough to stop, to 1 in 1000;
        None if there is none below 1.
        """
        low, high = math.log(1e-99), 0.0
        if not self.would_stop(math.exp(-1e-9)):
            return None
        while high - low > 1e-3:
            middle = (low + high) / 2
            if self.would_stop(math.exp(middle)):
                high = middle
            else:
                low = middle
        return math.exp(high)


def new_run(
    strategy: Strategy,
    arms: int,
    cap: int,
    delta: float,
    noise: float | None = None,
    dealing: Dealing | None = None,
) -> Run:
    """The run of a strategy; its thresholds are computed with `delta` and the `noise`
    of Gaussian responses.
    """
    family = import_module(f"discreet.strategies.{strategy.part.family}.run")
    made: Run = family.new_run(strategy.with_(delta=delta), arms, cap, noise)
    return made if dealing is None else made.dealt(dealing)
