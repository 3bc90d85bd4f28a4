"""A live run of bet-se: rounds announced, dealt and settled, arms out by betting.

Here the sizes of a round are announced, length times odds for each arm that plays, and
its places dealt in an order that the caller draws: so were trials dealt before coins
were. With coins, or permuted blocks, it is a `discreet.strategies.betting.opened`. What
each covers stands on the docs page "Betting elimination".
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Floats, Ints
from discreet.errors import DiscreetError
from discreet.strategies.betting.book import (
    COUNT,
    NEAR,
    PULLS,
    SUM,
    Book,
    Round,
    columns,
    front_runner,
    new_book,
    odds_of,
)
from discreet.strategies.betting.interval import (
    Beside,
    interval,
    log_p_value,
    new_beside,
    p_values,
    set_aside,
    shares,
)
from discreet.strategies.betting.near import bump_of, closeness, possible_near
from discreet.strategies.betting.pair import OF_TWO, SKEWS, Known, pair_bets
from discreet.strategies.betting.rounds import (
    TAILS,
    fill_tails,
    first_round,
    next_round,
    set_margin,
)
from discreet.strategies.betting.tilts import betting_rules
from discreet.strategies.pairs import Lead, Margin, Pair
from discreet.strategies.run import (
    REQUIRED,
    ArmView,
    Belief,
    Deal,
    Dealing,
    Place,
    Run,
    Totals,
    in_order,
)
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import BITS, LEVELS

ANNOUNCED: dict[str, type] = {
    "number": int,
    "leader": int,
    "second": int,
    "odds": int,
    "weight": int,
    "length": int,
    "centre": float,
    "dear": bool,
    "margin": bool,
    "n": int,
    "samples": int,
    "winner": int,
}
"""What is stored of the announced round, under these names for ever; of outcomes that
are numbers also whether it is fine.
"""
BOOK = ("wealth", "total", "mean", "precision", "money", "out", "active", "slot", "pair", "met")
"""What is stored of the book, under these names for ever; of outcomes that are numbers
also `close`, and what intervals need beside the book.
"""


KEEN = 1.25
"""Rounds are planned as if means were so much better known than they are, as variances
(see `discreet.strategies.betting.settle.book_releases`).
"""


class BettingRun(Run):
    """A round at a time: announced, filled, settled."""

    fields: ClassVar = {**Run.fields, "margins": REQUIRED}

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        super().__init__(strategy, arms, cap)
        self.margins: list[list[Any]] = []
        """Of each margin: the leader, the others, people of each, what was released."""
        self.bets, self.setting = betting_rules(strategy, arms)
        self.skews = OF_TWO if arms == 2 else SKEWS
        self.book = new_book(arms, self.bets.tilt.size)
        self.beside = new_beside(arms, self.bets)
        self.now = first_round(self.bets, self.setting, cap, self.book)
        self.left = self._sizes()
        """[arm]: places of the round that nobody has yet."""
        self.rows = list(range(arms))
        """The arm of each row of the book."""

    def dealt(self, dealing: Dealing) -> Run:
        """Another run where rounds are opened."""
        from discreet.strategies.betting.opened import OpenedRun

        if not dealing.kind:
            return self
        return OpenedRun(self.strategy, self.arms, self.cap, dealing)

    # --- stored -----------------------------------------------------------------------

    def arrays(self) -> dict[str, Any]:
        """The book, what was announced for each arm, and who is still to come."""
        book = {name: getattr(self.book, name) for name in BOOK}
        plan = {"sigma": self.now.sigma, "pick": self.now.pick, "left": self.left}
        if not self.numbers:
            return {**book, **plan}
        beside = {"aside": self.beside.aside, "lift": self.beside.lift}
        return {**book, **plan, "close": self.book.close, **beside}

    def dump(self) -> dict[str, Any]:
        """The round as it was announced, and the book."""
        state = super().dump()
        names = self._announced
        state["round"] = {name: kind(getattr(self.now, name)) for name, kind in names.items()}
        state["arrays"] = state.pop("arrays")
        return state

    def load(self, state: dict[str, Any]) -> None:
        """The book, and the round as it was announced."""
        if "own" in state["arrays"]:
            raise DiscreetError(
                "this trial began with the first edition of bet-se, which was in no release of "
                "discreet, and cannot be continued: start a new one"
            )
        arrays = self._load_book(state)
        announced = {name: kind(state["round"][name]) for name, kind in self._announced.items()}
        announced.setdefault("fine", False)
        shape = (2, TAILS if announced["dear"] else 0, columns(announced["fine"]))
        per_arm: dict[str, Any] = {
            "heavy": announced["leader"],
            "price": np.zeros((0, 0)),
            "sigma": arrays["sigma"],
            "pick": arrays["pick"],
            "tails": np.zeros(shape),
        }
        self.now = Round(**announced, **per_arm)
        self.left = arrays["left"]
        if self.now.dear:
            fill_tails(self.now, self.setting)

    def _load_book(self, state: dict[str, Any]) -> dict[str, Any]:
        """The book, and the arrays it was made of."""
        tilts = self.bets.tilt.size
        shapes: dict[str, tuple[int, ...]] = {"total": (-1, 4), "aside": (-1, 2, tilts)}
        shapes |= {"wealth": (-1, tilts), "pair": (-1, tilts)}
        flags, whole = {"out", "active"}, {"slot", "pick", "left"}
        arrays: dict[str, Any] = {}
        for name, value in state["arrays"].items():
            kind = np.bool_ if name in flags else np.int64 if name in whole else np.float64
            arrays[name] = np.array(value).astype(kind).reshape(shapes.get(name, (-1,)))
        self.samples, self.stopped = state["samples"], state["stopped"]
        self.recommendation = state["recommendation"]
        self.margins = [list(margin) for margin in state["margins"]]
        rest: dict[str, Any] = {"fresh": np.zeros((arrays["out"].size, 3)), "close": np.zeros(3)}
        if self.numbers:
            self.beside = Beside(arrays["aside"], arrays["lift"])
            rest["close"] = arrays["close"]
        self.book = Book(**{name: arrays[name] for name in BOOK}, **rest)
        return arrays

    @property
    def numbers(self) -> bool:
        """Whether outcomes are taken as numbers."""
        return self.setting.kind != BITS

    @property
    def _announced(self) -> dict[str, type]:
        return {**ANNOUNCED, "fine": bool} if self.numbers else ANNOUNCED

    # --- played -----------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Stopped, or no whole round fits below the cap."""
        return self.stopped or self.now.length < 1

    def _size(self, arm: int) -> int:
        """How many places of the round are an arm's."""
        return int(self.now.length * odds_of(arm, self.now)) if self.book.active[arm] else 0

    def _sizes(self) -> Ints:
        return np.array([self._size(arm) for arm in range(self.arms)])

    def take(self, deal: Deal = in_order) -> Place | None:
        """One of the places of the round that are left."""
        if self.finished or not self.left.any():
            return None
        arm = deal(self.left.tolist())
        if not 0 <= arm < self.arms or self.left[arm] < 1:
            return None
        self.left[arm] -= 1
        self.samples += 1
        return Place(arm, self.now.number + 1, 1)

    def to_deal(self) -> int:
        """The places of the round that nobody has yet."""
        return 0 if self.finished else int(self.left.sum())

    def _playing(self) -> list[int]:
        return [int(arm) for arm in np.flatnonzero(self.book.active)]

    def due(self) -> list[Place]:
        """Every arm that plays, when the round is full."""
        if self.finished or self.left.any():
            return []
        return [Place(arm, self.now.number + 1, self._size(arm)) for arm in self._playing()]

    @property
    def sums_only(self) -> bool:
        """Whether outcomes are yes or no."""
        return not self.numbers

    @property
    def fine(self) -> bool:
        """As announced."""
        return bool(self.now.fine)

    @property
    def centre(self) -> float | None:
        """As announced, in a fine round."""
        return float(self.now.centre) if self.now.fine and self.due() else None

    @property
    def middle(self) -> float | None:
        """The announced centre, where people send levels."""
        return float(self.now.centre) if self.setting.kind == LEVELS else None

    def due_grid(self, grid: int) -> int:
        """Bits in a round that is not fine."""
        return grid if self.now.fine else 1

    def totals(self, units: Sequence[int]) -> Totals:
        """The sum of the outcomes, and in a fine round how close they are."""
        if not self.now.fine:
            return Totals(sum(units))
        if self.setting.kind == LEVELS:
            middle = round(self.now.centre * self.setting.grid)
            return Totals(sum(units), self.setting.grid * sum(one == middle for one in units))
        bump = bump_of(self.now.centre, self.setting.grid)
        return Totals(sum(units), sum(closeness(one, bump) for one in units))

    def possible(self, total: Totals, count: int, grid: int) -> bool:
        """Sums, and closeness beside them."""
        within, near = super().possible(total, count, grid), total.near
        if not within or near is None:
            return within
        return possible_near(total.sum, near, count, grid, self.now.centre, self.setting.kind)

    def combine(self, totals: list[Totals]) -> list[Totals | None]:
        """A sum an arm; or the leader's margin over the best of the others with the
        closeness of all, and of them nothing.
        """
        if not self.now.margin:
            return list(totals)
        by_row = dict(zip(self._playing(), [total.sum for total in totals], strict=True))
        lead = by_row.pop(self.now.leader)
        margin = min(lead - other - self._allowed(row) for row, other in by_row.items())
        near = sum(total.near or 0 for total in totals) if self.now.fine else None
        one = Totals(margin, near)
        return [one if row == self.now.leader else None for row in self._playing()]

    def _allowed(self, row: int) -> int:
        """What a margin allows an arm, in units, for the people that the leader was
        dealt more.
        """
        return 0

    def release(self, sums: list[float], near: list[float] | None = None) -> None:
        """Settle the bets, and announce the next round."""
        for arm, _, count in self.due():
            self.book.fresh[arm, COUNT] = count
        self._take_in(sums, near)
        self.now, self.book = next_round(self.now, self.bets, self.setting, self.cap, self.book)
        self.stopped = bool(self.now.winner >= 0)
        self.left = self._sizes()
        self.recommendation = int(self.now.winner if self.stopped else front_runner(self.book))

    def _take_in(self, sums: list[float], near: list[float] | None) -> None:
        """What was released goes into `book.fresh`, and beside the book."""
        close = near if near is not None else [0.0] * len(sums)
        if self.now.margin:
            (margin,) = sums
            leader = int(self.now.leader)
            others = [self.rows[row] for row in self._playing() if row != leader]
            length = int(self.now.length)
            self.margins.append([self.rows[leader], others, length, float(margin)])
            set_margin(margin, close[0], self.now, self.book)
        else:
            for row, *about in zip(self._playing(), sums, close, strict=True):
                self.book.fresh[row, SUM], self.book.fresh[row, NEAR] = about
        if self.numbers:
            set_aside(self.now, self.bets, self.setting, self.book, self.beside)

    # --- shown ------------------------------------------------------------------------

    def would_stop(self, delta: float) -> bool:
        """Whether at this δ all other arms would be out, with the bets made so far."""
        smallest = self.smallest_delta()
        return smallest is not None and smallest <= delta

    def smallest_delta(self) -> float | None:
        """The largest p-value of "this arm is best" among the other arms."""
        if self.recommendation is None:
            return None
        others = [row for row, arm in enumerate(self.rows) if arm != self.recommendation]
        worst = max(log_p_value(row, self.book) for row in others)
        value = math.exp(worst) * (2 if self.strategy.zeta > 0 else 1)
        return value if value < 1 else None

    def table(self) -> list[ArmView]:
        """Means of every sum released, with anytime-valid intervals of level 1 - δ."""
        return [self._view(arm) for arm in range(self.arms)]

    def leads(self) -> list[Lead]:
        """The margins, a person of the leader."""
        return [
            Lead(arm, tuple(over), people, margin / people / self.setting.scale)
            for arm, over, people, margin in self.margins
        ]

    def evidence(self) -> list[float | None]:
        """The log of the money against an arm, as a share of what puts it out."""
        best = self.recommendation
        found = self._by_arm(shares(self.book, self.setting).tolist(), best is not None)
        return [None if arm == best else share for arm, share in enumerate(found)]

    def beliefs(self) -> list[Belief]:
        """The means that rounds are planned with, from margins too; an arm that was
        dropped plays no more.
        """
        found, book = [Belief(0.0, 0.0)] * self.arms, self.book
        for row, arm in enumerate(self.rows):
            mean = 0.5 + float(book.mean[row] - 0.5) / self.setting.scale
            error = math.sqrt(KEEN / book.precision[row]) / self.setting.scale
            found[arm] = Belief(mean, error)
        return found

    def pair(self, one: int, other: int, margins: Sequence[Margin] = ()) -> Pair | None:
        """Bets against each difference."""
        known = self._released(one), self._released(other)
        return pair_bets(*known, margins, self.bets, self.setting, self.skews)

    def p_values(self) -> list[float | None]:
        """One over the money against an arm; none with an indifference gap."""
        known = self.recommendation is not None and not self.strategy.zeta
        return self._by_arm(p_values(self.book), known)

    def _by_arm(self, values: Sequence[float], known: bool) -> list[float | None]:
        """Of the arms of the trial; one that was dropped is not in the book."""
        found = dict(zip(self.rows, values, strict=True)) if known else {}
        return [found.get(arm) for arm in range(self.arms)]

    def _released(self, arm: int) -> Known:
        """The sums released of an arm, and what its numbers have beside them."""
        return Known(self.book.total[arm], self.beside.of(arm) if self.numbers else None)

    def _under_way(self, arm: int) -> int:
        """People of an arm who are dealt and not released."""
        return self._size(arm) - int(self.left[arm])

    def _view(self, arm: int) -> ArmView:
        total, beside = self._released(arm)
        pulls, count = int(total[PULLS]) + self._under_way(arm), int(total[COUNT])
        about = (self.strategy.delta, self.bets, self.setting)
        within = interval(total, *about, beside=beside) if count else None
        return ArmView(pulls, count, self._mean(total), within)

    def means(self) -> list[float | None]:
        """Of every sum released, without their intervals, which take long."""
        return [self._mean(self._released(arm).total) for arm in range(self.arms)]

    def _mean(self, total: Floats) -> float | None:
        count = float(total[COUNT])
        return 0.5 + (float(total[SUM]) / count - 0.5) / self.setting.scale if count else None


def new_run(strategy: Strategy, arms: int, cap: int, noise: float | None) -> Run:
    """A run that has not begun."""
    return BettingRun(strategy, arms, cap)
