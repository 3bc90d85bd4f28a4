"""Places dealt in random order, for strategies that learn from released sums.

Between two releases such a strategy learns nothing: how many people each arm gets until
the next one is fixed, only their order is the strategy's. A shuffled run looks ahead to
the release, opens all these places as one round, and lets the caller deal them in any
order. At every release the counts are those of the strategy's own order, and so is what
is decided: for outcomes that are independent, given the order, the proofs stand as they
are.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.errors import DiscreetError, InvalidInputError
from discreet.strategies.pairs import Lead, Margin, Pair
from discreet.strategies.run import (
    ArmView,
    Belief,
    Deal,
    Opening,
    Place,
    Run,
    Spread,
    Totals,
    in_order,
)


class ShuffledRun(Run):
    """A run within a run: `inner` decides, and is ahead of the people who were dealt by
    the places that are left.
    """

    def __init__(self, inner: Run) -> None:
        super().__init__(inner.strategy, inner.arms, inner.cap)
        if inner.learns_always:
            raise InvalidInputError(
                f"{self.strategy.name} learns from every answer, so its places cannot be "
                'shuffled: deal in its own order, dealing="order"'
            )
        self.inner = inner
        self.opened = 0
        """Rounds that were opened."""
        self.left = np.zeros(inner.arms, np.int64)
        """[arm]: places of the open round that nobody has yet."""
        self.phase = np.zeros(inner.arms, np.int64)
        """[arm]: the phase in which they are counted."""

    # --- stored -----------------------------------------------------------------------

    def arrays(self) -> dict[str, Any]:
        """The places that are left."""
        return {"left": self.left, "phase": self.phase}

    def dump(self) -> dict[str, Any]:
        """The run within, and what is left to deal."""
        return {**super().dump(), "opened": self.opened, "inner": self.inner.dump()}

    def load(self, state: dict[str, Any]) -> None:
        """Both of them."""
        super().load(state)
        self.opened = state["opened"]
        self.inner.load(state["inner"])
        self.maximum(self.cap)

    # --- played -----------------------------------------------------------------------

    @property
    def _idle(self) -> bool:
        """Whether everybody is dealt and released whom the run within has placed, but
        for those of a round that the cap has cut.
        """
        return not self._unfilled and not self.inner.due()

    @property
    def _unfilled(self) -> bool:
        """Whether places of the open round are left; asked at every event, and quicker
        than `any` of an array.
        """
        return bool(np.count_nonzero(self.left))

    @property
    def closed(self) -> bool:
        """Whether the next round may be opened."""
        return self._idle and not self.finished

    @property
    def finished(self) -> bool:
        """Stopped, at the cap with no release to come, or no round fits below it."""
        return super().finished or (self._idle and self.inner.finished)

    def open(self) -> Opening:
        """Every place up to the next release, or the cap."""
        if not self.closed:
            raise DiscreetError("the last round has to be dealt and released before the next")
        places = self.inner.take_all()
        if len({place.arm for place in places}) < len(places):
            raise DiscreetError("an arm has places of two phases before the next release")
        for arm, phase, size in places:
            self.left[arm], self.phase[arm] = size, phase
        self.opened += 1
        odds = [[arm, int(self.left[arm])] for arm in np.flatnonzero(self.left).tolist()]
        return Opening(self.opened, odds, int(self.left.sum()), self.middle)

    def maximum(self, people: int) -> None:
        """A lower cap leaves places to nobody, a higher one goes on with them. The run
        within never has one below what it has placed: that is still to be released.
        """
        super().maximum(people)
        self.inner.maximum(max(people, self.inner.samples))

    def take(self, deal: Deal = in_order) -> Place | None:
        """One of the places that are left."""
        left = self.left.tolist()
        if self.stopped or self.samples >= self.cap or not any(left):
            return None
        arm = deal(left)
        if not 0 <= arm < self.arms or left[arm] < 1:
            return None
        self.left[arm] -= 1
        self.samples += 1
        return Place(arm, int(self.phase[arm]), 1)

    def fill(self, spread: Spread) -> None:
        """All places of the round, as far as the cap allows: how many each arm gets is
        fixed, whatever the order.
        """
        if self.closed:
            self.open()
        self.samples += self.to_deal()
        self.left[:] = 0

    def to_deal(self) -> int:
        """The places of the round that nobody has yet, as far as the cap allows."""
        return 0 if self.stopped else max(min(int(self.left.sum()), self.cap - self.samples), 0)

    def due(self) -> list[Place]:
        """What is due within, when everybody is dealt."""
        return [] if self._unfilled else self.inner.due()

    def release(self, sums: list[float], near: list[float] | None = None) -> None:
        """Decided within."""
        if near is None:
            self.inner.release(sums)
        else:
            self.inner.release(sums, near)
        self.stopped, self.recommendation = self.inner.stopped, self.inner.recommendation

    # --- as within --------------------------------------------------------------------

    def table(self) -> list[ArmView]:
        """With the people who were dealt, not those who are to be."""
        return [
            ArmView(view.pulls - int(left), view.count, view.mean, view.interval)
            for view, left in zip(self.inner.table(), self.left, strict=True)
        ]

    def would_stop(self, delta: float) -> bool:
        """By what was released."""
        return self.inner.would_stop(delta)

    def smallest_delta(self) -> float | None:
        """By what was released."""
        return self.inner.smallest_delta()

    def leads(self) -> list[Lead]:
        """What was released in place of means."""
        return self.inner.leads()

    def evidence(self) -> list[float | None]:
        """By what was released."""
        return self.inner.evidence()

    def pair(self, one: int, other: int, margins: Sequence[Margin] = ()) -> Pair | None:
        """By what was released."""
        return self.inner.pair(one, other, margins)

    def beliefs(self) -> list[Belief]:
        """By what was released."""
        return self.inner.beliefs()

    def totals(self, units: Sequence[int]) -> Totals:
        """What is summed of a batch."""
        return self.inner.totals(units)

    def combine(self, totals: list[Totals]) -> list[Totals | None]:
        """What is released of the sums."""
        return self.inner.combine(totals)

    def possible(self, total: Totals, count: int, grid: int) -> bool:
        """Whether so many outcomes can have these sums."""
        return self.inner.possible(total, count, grid)

    def due_grid(self, grid: int) -> int:
        """The units of what is due."""
        return self.inner.due_grid(grid)

    @property
    def sums_only(self) -> bool:
        """Whether nothing but sums is released."""
        return self.inner.sums_only

    @property
    def fine(self) -> bool:
        """Whether closeness is released beside."""
        return self.inner.fine

    @property
    def middle(self) -> float | None:
        """The middle level, if people send levels."""
        return self.inner.middle
