"""A live run of bet-se: rounds opened, assigned, and settled in the order of opening,
arms eliminated by betting.

Each participant's arm is drawn with the announced odds, and how many participants an
arm gets is what the draws gave. Waiting enrolment has one round at a time, played
exactly as the simulator plays it. With continuous enrolment rounds are opened ahead
(`discreet.strategies.betting.open_rounds`).
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from discreet._types import Floats
from discreet.errors import DiscreetError, InvalidInputError
from discreet.strategies.betting.bets import (
    is_possible_closeness,
    make_betting_rules,
    make_bump,
    measure_closeness,
)
from discreet.strategies.betting.book import (
    ASSIGNED,
    CLOSENESS,
    COUNT,
    SUM,
    Book,
    find_front_runner,
    new_book,
)
from discreet.strategies.betting.inference import (
    TILT_SKEWS,
    TILT_SKEWS_OF_TWO,
    ArmReleases,
    ClosenessTotals,
    add_closeness,
    compute_evidence_shares,
    compute_interval,
    compute_log_p_value,
    make_pair_bets,
    new_closeness_totals,
    p_values,
)
from discreet.strategies.betting.open_rounds import (
    OpenRound,
    announce_closed,
    choose_size,
    close_round,
    count_participants,
    find_weight,
    load_open_round,
    open_round,
    renew,
    settle_closed,
    sum_weights,
)
from discreet.strategies.betting.rounds import announce_first, count_handicap, write_difference
from discreet.strategies.run import (
    ArmBatch,
    ArmView,
    Belief,
    DrawArm,
    DrawCounts,
    Lead,
    Margin,
    Pair,
    RoundOpening,
    Run,
    Totals,
    choose_first,
)
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import BITS, LEVELS

STORED_TOTALS: dict[str, type] = {"arms": int, "opened": int, "lengths": int, "settled": int}
"""Names and types of the stored totals of the rounds so far: arms of the trial, rounds
opened, lengths and participants of those settled. ClosenessTotals them `rows`, and `dropped`
arms.
"""
STORED_BOOK = (
    "wealth",
    "total",
    "mean",
    "precision",
    "log_wealth",
    "eliminated",
    "pair_slot",
    "pair_wealth",
)
"""Names of the stored fields of the book; if outcomes are numbers, there are also
`closeness_totals`, and what intervals need beside the book.
"""
PLANNING_VARIANCE_RATIO = 1.25
"""Rounds are planned as if means were so much better known than they are, as variances
(see `discreet.strategies.betting.rounds.book_releases`).
"""


class Dropped(NamedTuple):
    """Totals of an arm that a manager dropped."""

    arm: int
    total: list[float]
    """A row of `Book.total`."""
    fixed: list[list[float]]
    shift: float
    """See `ClosenessTotals`."""


class BettingRun(Run):
    """Rounds opened, assigned, and settled in the order of opening."""

    fields: ClassVar = (*Run.fields, "margins")

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        super().__init__(strategy, arms, cap)
        self.margins: list[list[Any]] = []
        """Released differences, for each the leader, the runner-up, the length, what was
        released.
        """
        self.bets, self.setting = make_betting_rules(strategy, arms)
        self.skews = TILT_SKEWS_OF_TWO if arms == 2 else TILT_SKEWS
        self.book = new_book(arms, self.bets.tilt.size)
        self.beside = new_closeness_totals(arms, self.bets)
        self.current = announce_first(self.setting, cap, self.book)
        self.rows = list(range(arms))
        """The arm of each row of the book."""
        self.queue: list[OpenRound] = []
        """Rounds that are not released, in the order of opening; only the last may
        take participants.
        """
        self.opened, self.lengths, self.settled = 0, 0, 0
        self.dropped: list[Dropped] = []
        self._weighed: tuple[OpenRound | None, list[int]] = (None, [])

    # --- stored -----------------------------------------------------------------------

    def list_arrays(self) -> dict[str, Any]:
        """Return the book; which arms play is the rounds' own."""
        book = {name: getattr(self.book, name) for name in STORED_BOOK}
        if not self.numbers:
            return book
        beside = {"fixed": self.beside.fixed, "shift": self.beside.shift}
        return {**book, "closeness_totals": self.book.closeness_totals, **beside}

    def dump(self) -> dict[str, Any]:
        """Return the book, and the rounds so far and under way."""
        state = super().dump()
        arrays = state.pop("arrays")
        rounds: dict[str, Any] = {
            name: kind(getattr(self, name)) for name, kind in STORED_TOTALS.items()
        }
        rounds["rows"] = list(self.rows)
        rounds["dropped"] = [dropped._asdict() for dropped in self.dropped]
        queue = [pending.dump() for pending in self.queue]
        return {**state, "rounds": rounds, "queue": queue, "arrays": arrays}

    def load(self, state: dict[str, Any]) -> None:
        """Go on where the run that wrote this state was."""
        rounds = state["rounds"]
        for name, kind in STORED_TOTALS.items():
            setattr(self, name, kind(rounds[name]))
        self.rows = list(rounds["rows"])
        self.dropped = [Dropped(**dropped) for dropped in rounds["dropped"]]
        self.samples, self.stopped = state["samples"], state["stopped"]
        self.recommendation = state["recommendation"]
        self.margins = [list(margin) for margin in state["margins"]]
        self._load_book(state["arrays"])
        self.queue = [load_open_round(pending) for pending in state["queue"]]
        self._prepare()

    def _load_book(self, stored: dict[str, Any]) -> None:
        tilts, arms = self.bets.tilt.size, len(self.rows)
        shapes: dict[str, tuple[int, ...]] = {"total": (-1, 4), "fixed": (-1, 2, tilts)}
        shapes |= {"wealth": (-1, tilts), "pair_wealth": (-1, tilts)}
        kinds: dict[str, type] = {"eliminated": np.bool_, "pair_slot": np.int64}
        arrays: dict[str, Any] = {
            name: np.array(value).astype(kinds.get(name, np.float64)).reshape(shapes.get(name, -1))
            for name, value in stored.items()
        }
        self.beside = new_closeness_totals(arms, self.bets)
        closeness = np.zeros(3)
        if self.numbers:
            self.beside = ClosenessTotals(arrays["fixed"], arrays["shift"])
            closeness = arrays["closeness_totals"]
        self.book = Book(
            **{name: arrays[name] for name in STORED_BOOK},
            active=np.ones(arms, np.bool_),
            fresh=np.zeros((arms, 3)),
            closeness_totals=closeness,
        )

    @property
    def numbers(self) -> bool:
        """Return whether outcomes are taken as numbers."""
        return self.setting.kind != BITS

    # --- opened -----------------------------------------------------------------------

    @property
    def is_finished(self) -> bool:
        """Return whether it has stopped, or nobody is waited for and no round fits
        below the cap.
        """
        return self.stopped or not (
            any(count_participants(pending) for pending in self.queue)
            or self.needs_round
            or self._find_open() is not None
        )

    def _room(self) -> int:
        return max(self.cap - self.samples, 0)

    def _find_open(self) -> OpenRound | None:
        """Return the round that takes participants."""
        if self.stopped or not self.queue or self.queue[-1].closed or self.samples >= self.cap:
            return None
        return self.queue[-1]

    @property
    def needs_round(self) -> bool:
        """Return whether a round can be opened, and has to be before anybody is
        assigned.
        """
        return self._may_open() and (
            self.randomisation.continuous or self._plan_round().planned > 0
        )

    def _may_open(self) -> bool:
        """Return whether nobody has to be waited for before a round is opened."""
        if self.stopped or not self._room():
            return False
        return self.queue[-1].closed and self.randomisation.continuous if self.queue else True

    def _plan_round(self) -> OpenRound:
        """Return the round to open; unless rounds are opened ahead it fits below the
        cap, or has nobody in it.
        """
        pending = open_round(self.opened, self.lengths, self.setting, self.book)
        if self.randomisation.continuous:
            return pending
        weight = sum_weights(pending)
        return pending._replace(planned=min(pending.plan.length, self._room() // weight) * weight)

    def open_round(self) -> RoundOpening:
        """Open the next round."""
        pending = self._plan_round() if self._may_open() else None
        if pending is None or not (self.randomisation.continuous or pending.planned):
            raise DiscreetError("no round can be opened now: ask `closed` first")
        self.queue.append(pending)
        self.opened += 1
        odds = [
            [arm, find_weight(row, pending)]
            for row, arm in enumerate(self.rows)
            if pending.playing[row]
        ]
        return RoundOpening(
            pending.number + 1, odds, min(pending.planned, self._room()), self.middle_level
        )

    # --- played -----------------------------------------------------------------------

    def assign_next(self, deal: DrawArm = choose_first) -> ArmBatch | None:
        """Assign a participant of the open round to the arm that is drawn."""
        pending = self._find_open()
        if pending is None:
            return None
        weights = self._weights(pending)
        arm = deal(weights)
        if not 0 <= arm < self.arms or weights[arm] < 1:
            return None
        pending.assigned[self._find_row(arm)] += 1
        self.samples += 1
        self._close_if_full()
        return ArmBatch(arm, pending.number + 1, 1)

    def assign_random(self, spread: DrawCounts) -> None:
        """Open the next round if that has to be, and assign everybody of it."""
        if self.needs_round:
            self.open_round()
        pending = self._find_open()
        while pending is not None and (participants := self.count_unassigned()) > 0:
            assigned = np.array(spread(participants, self._weights(pending)), np.int64)
            pending.assigned[:] += assigned[self.rows]
            self.samples += participants
            self._close_if_full()
            pending = self._find_open()

    def _weights(self, pending: OpenRound) -> list[int]:
        """Return [arm]: its odds. They stay as long as the round is the same object."""
        if self._weighed[0] is not pending:
            weights = np.zeros(self.arms, np.int64)
            weights[self.rows] = pending.playing
            weights[self.rows[pending.favoured]] *= pending.plan.odds
            self._weighed = pending, weights.tolist()
        return self._weighed[1]

    def _closing_size(self, pending: OpenRound, participants: int) -> int:
        """Return at how many participants the open round, which has so many, closes."""
        if self.randomisation.continuous:
            waiting = sum(count_participants(before) for before in self.queue[:-1])
            return int(choose_size(pending, waiting, self._room(), self.setting))
        return min(pending.planned, participants + self._room())

    def _close_if_full(self) -> None:
        """Close the open round when it is full; if none is before it, it is due."""
        if self.queue and not self.queue[-1].closed:
            pending = self.queue[-1]
            participants = int(np.add.reduce(pending.assigned))
            if participants < pending.planned and self.samples < self.cap:
                return
            if 0 < participants >= self._closing_size(pending, participants):
                self.queue[-1] = close_round(pending, False)
                if len(self.queue) == 1:
                    self._prepare()

    def count_unassigned(self) -> int:
        """Return how many participants of the open round are still to come, as it is
        planned now.
        """
        pending = self._find_open()
        if pending is None:
            return 0
        participants = int(count_participants(pending))
        return self._closing_size(pending, participants) - participants

    def _prepare(self) -> None:
        """Announce the round that is due, as it is settled, if there is one."""
        if (pending := self._find_due()) is not None:
            about = self.lengths, self.settled, self.randomisation.continuous
            self.current = announce_closed(pending, *about, self.setting, self.book)

    def _find_due(self) -> OpenRound | None:
        if self.stopped or not self.queue or not self.queue[0].closed:
            return None
        return self.queue[0]

    def _list_active(self) -> list[int]:
        pending = self._find_due()
        return [] if pending is None else [int(row) for row in np.flatnonzero(pending.playing)]

    def list_due(self) -> list[ArmBatch]:
        """Return every arm that plays the oldest round, when it is closed."""
        pending = self._find_due()
        if pending is None:
            return []
        return [
            ArmBatch(self.rows[row], pending.number + 1, int(pending.assigned[row]))
            for row in self._list_active()
        ]

    def is_pending(self, arm: int, phase: int) -> bool:
        """Return whether the arm plays a round that is not released."""
        row = self._find_row(arm)
        return row >= 0 and any(
            pending.number + 1 == phase and pending.playing[row] for pending in self.queue
        )

    # --- released ---------------------------------------------------------------------

    @property
    def releases_only_sums(self) -> bool:
        """Return whether outcomes are yes or no."""
        return not self.numbers

    @property
    def releases_closeness(self) -> bool:
        """Return whether closeness is released, as announced."""
        return bool(self.current.fine)

    @property
    def centre(self) -> float | None:
        """Return the announced centre of a fine round that is due."""
        return float(self.current.centre) if self.current.fine and self.list_due() else None

    @property
    def middle_level(self) -> float | None:
        """Return the middle level of the round opened last, where participants send
        levels.
        """
        return self.find_middle_level(self.queue[-1].number + 1) if self.queue else None

    def find_middle_level(self, phase: int) -> float | None:
        """Return the middle level of a round under way, where participants send
        levels.
        """
        centres = [pending.plan.centre for pending in self.queue if pending.number + 1 == phase]
        return float(centres[0]) if centres and self.setting.kind == LEVELS else None

    def scale_grid(self, grid: int) -> int:
        """Return the units of what is due: bits in a round that is not fine."""
        return grid if self.current.fine else 1

    def add_up(self, units: Sequence[int]) -> Totals:
        """Return the sum of the outcomes, and in a fine round how close they are."""
        if not self.current.fine:
            return Totals(sum(units))
        if self.setting.kind == LEVELS:
            middle = round(self.current.centre * self.setting.grid)
            return Totals(sum(units), self.setting.grid * sum(unit == middle for unit in units))
        bump = make_bump(self.current.centre, self.setting.grid)
        return Totals(sum(units), sum(measure_closeness(unit, bump) for unit in units))

    def is_possible(self, total: Totals, count: int, grid: int) -> bool:
        """Return whether so many outcomes can have these sums, and this closeness."""
        within, near = super().is_possible(total, count, grid), total.near
        if not within or near is None:
            return within
        kind = self.setting.kind
        return is_possible_closeness(total.sum, near, count, grid, self.current.centre, kind)

    def combine(self, totals: list[Totals]) -> list[Totals | None]:
        """Return a sum an arm; or the leader's difference to the runner-up with the
        closeness of both, and of the runner-up nothing.
        """
        if not self.current.difference:
            return list(totals)
        by_row = dict(zip(self._list_active(), totals, strict=True))
        leader, second = self.current.leader, self.current.runner_up
        allowed = count_handicap(self.current, self.book) * self.scale_grid(self.setting.grid)
        lead = by_row[leader].sum - by_row[second].sum - allowed
        near = sum(total.near or 0 for total in totals) if self.current.fine else None
        return [Totals(lead, near) if row == leader else None for row in by_row]

    def release(self, sums: list[float], near: list[float] | None = None) -> None:
        """Settle the bets of the oldest round; arms that are eliminated are no longer
        assigned in the open one.
        """
        pending = self.queue[0]
        self.book.active[:] = pending.playing
        self.book.fresh[:, COUNT] = pending.assigned
        self._book_fresh(sums, near)
        winner, self.book = settle_closed(self.current, pending, self.bets, self.setting, self.book)
        self.lengths += self.current.length
        self.settled += int(count_participants(pending))
        self.queue.pop(0)
        self.stopped = bool(winner >= 0)
        self.recommendation = self.rows[winner if self.stopped else find_front_runner(self.book)]
        if self.queue and not self.queue[-1].closed:
            self.queue[-1] = renew(self.queue[-1], self.lengths, self.setting, self.book)
        self._close_if_full()
        self._prepare()

    def _book_fresh(self, sums: list[float], near: list[float] | None) -> None:
        """Write what was released into `book.fresh`, and beside the book."""
        closeness = near if near is not None else [0.0] * len(sums)
        if self.current.difference:
            leader, second = self.rows[self.current.leader], self.rows[self.current.runner_up]
            self.margins.append([leader, [second], int(self.current.length), float(sums[0])])
            write_difference(sums[0], closeness[0], self.current, self.book)
        else:
            for row, *about in zip(self._list_active(), sums, closeness, strict=True):
                self.book.fresh[row, SUM], self.book.fresh[row, CLOSENESS] = about
        if self.numbers:
            add_closeness(self.current, self.bets, self.setting, self.book, self.beside)

    # --- the manager ------------------------------------------------------------------

    def set_cap(self, people: int) -> None:
        """Set the new cap; an open round that reaches it is cut before its next
        draw.
        """
        self.cap = people
        self._close_if_full()

    def drop_arm(self, arm: int) -> None:
        """Take an arm out: nobody bets on what is under way, everybody else is in again
        and bets begin anew.
        """
        self._refuse_if_stopped("dropped from")
        row = self._find_row(arm)
        if row < 0:
            raise InvalidInputError(f"arm {arm} is not in the trial: it cannot be dropped")
        if len(self.rows) < 3:
            raise InvalidInputError("two arms must be left: stop the trial instead")
        total, (fixed, shift) = self.book.total[row].copy(), self.beside.select(row)
        total[ASSIGNED] += sum(int(pending.assigned[row]) for pending in self.queue)
        kept_fixed = fixed.tolist() if self.numbers else []
        self.dropped.append(Dropped(arm, total.tolist(), kept_fixed, float(shift)))
        left = [_void_without(row, pending) for pending in self.queue]
        self.queue = [
            pending for pending in left if count_participants(pending) and pending.playing.any()
        ]
        fresh = new_book(len(self.rows) - 1, self.bets.tilt.size)
        kept = {
            name: np.delete(getattr(self.book, name), row, 0)
            for name in ("total", "mean", "precision")
        }
        self.book = fresh._replace(**kept, closeness_totals=self.book.closeness_totals)
        self.beside = ClosenessTotals(*(np.delete(part, row, 0) for part in self.beside))
        self.rows.remove(arm)
        if self.recommendation is not None:
            self.recommendation = self.rows[find_front_runner(self.book)]
        self._prepare()

    def add_arm(self) -> None:
        """Add an arm, the last one, which plays from the next round on."""
        self._refuse_if_stopped("added to")
        if self.setting.indifference_zone > 0:
            raise InvalidInputError(
                "no arm can be added to a trial with an indifference zone: what it takes to "
                "stop there depends on the number of arms. Stop the trial, and begin another"
            )
        added = new_book(1, self.bets.tilt.size)
        by_arm = set(Book._fields) - {"closeness_totals", "pair_wealth"}
        self.book = self.book._replace(
            **{
                name: np.concatenate([getattr(self.book, name), getattr(added, name)])
                for name in by_arm
            }
        )
        more = new_closeness_totals(1, self.bets)
        self.beside = ClosenessTotals(
            *(np.concatenate(two) for two in zip(self.beside, more, strict=True))
        )
        self.queue = [
            under._replace(
                playing=np.append(under.playing, False), assigned=np.append(under.assigned, 0)
            )
            for under in self.queue
        ]
        self.rows.append(self.arms)
        self.arms += 1
        self._prepare()

    def _refuse_if_stopped(self, action: str) -> None:
        if self.stopped:
            raise InvalidInputError(f"the trial has stopped: no arm can be {action} it")

    # --- shown ------------------------------------------------------------------------

    def can_stop(self, delta: float) -> bool:
        """Return whether at this δ all other arms would be eliminated, with the bets
        made so far.
        """
        smallest = self.find_smallest_delta()
        return smallest is not None and smallest <= delta

    def find_smallest_delta(self) -> float | None:
        """Return the largest p-value of "this arm is best" among the other arms."""
        if self.recommendation is None:
            return None
        others = [row for row, arm in enumerate(self.rows) if arm != self.recommendation]
        worst = max(compute_log_p_value(row, self.book) for row in others)
        value = math.exp(worst) * (2 if self.strategy.indifference_zone > 0 else 1)
        return value if value < 1 else None

    def view_arms(self) -> list[ArmView]:
        """Return means of every sum released, with anytime-valid intervals of level
        1 - δ.
        """
        return [self._view(arm) for arm in range(self.arms)]

    def list_leads(self) -> list[Lead]:
        """Return the differences, a participant of the leader."""
        return [
            Lead(arm, tuple(over), people, lead / people / self.setting.scale)
            for arm, over, people, lead in self.margins
            if people
        ]

    def measure_evidence(self) -> list[float | None]:
        """Return the log of the wealth against each arm, as a share of what eliminates
        it.
        """
        best = self.recommendation
        shares = self._by_arm(
            compute_evidence_shares(self.book, self.setting).tolist(), best is not None
        )
        return [None if arm == best else share for arm, share in enumerate(shares)]

    def estimate_means(self) -> list[Belief]:
        """Return the means that rounds are planned with, from differences too; an arm
        that was dropped plays no more.
        """
        beliefs, book = [Belief(0.0, 0.0)] * self.arms, self.book
        for row, arm in enumerate(self.rows):
            mean = 0.5 + float(book.mean[row] - 0.5) / self.setting.scale
            error = math.sqrt(PLANNING_VARIANCE_RATIO / book.precision[row]) / self.setting.scale
            beliefs[arm] = Belief(mean, error)
        return beliefs

    def compare(self, one: int, other: int, margins: Sequence[Margin] = ()) -> Pair | None:
        """Return bets against each difference of two arms."""
        known = self._released(one), self._released(other)
        return make_pair_bets(*known, margins, self.bets, self.setting, self.skews)

    def compute_p_values(self) -> list[float | None]:
        """Return one over the wealth against each arm; none with an indifference
        zone.
        """
        known = self.recommendation is not None and not self.strategy.indifference_zone
        return self._by_arm(p_values(self.book), known)

    def list_means(self) -> list[float | None]:
        """Return means of every sum released, without their intervals, which take
        long.
        """
        return [self._mean(self._released(arm).total) for arm in range(self.arms)]

    def _by_arm(self, values: Sequence[float], known: bool) -> list[float | None]:
        """Return values of rows of the book for the arms of the trial; none of one that
        was dropped.
        """
        by_arm = dict(zip(self.rows, values, strict=True)) if known else {}
        return [by_arm.get(arm) for arm in range(self.arms)]

    def _released(self, arm: int) -> ArmReleases:
        """Return the sums released of an arm, and what its numbers have beside them."""
        for dropped in self.dropped:
            if dropped.arm == arm:
                beside = (
                    ClosenessTotals(np.array(dropped.fixed), np.array(dropped.shift))
                    if self.numbers
                    else None
                )
                return ArmReleases(np.array(dropped.total), beside)
        row = self._find_row(arm)
        return ArmReleases(self.book.total[row], self.beside.select(row) if self.numbers else None)

    def _view(self, arm: int) -> ArmView:
        total, beside = self._released(arm)
        row, count = self._find_row(arm), int(total[COUNT])
        under_way = 0 if row < 0 else sum(int(pending.assigned[row]) for pending in self.queue)
        about = (self.strategy.delta, self.bets, self.setting)
        within = compute_interval(total, *about, beside=beside) if count else None
        return ArmView(int(total[ASSIGNED]) + under_way, count, self._mean(total), within)

    def _mean(self, total: Floats) -> float | None:
        count = float(total[COUNT])
        return 0.5 + (float(total[SUM]) / count - 0.5) / self.setting.scale if count else None

    def _find_row(self, arm: int) -> int:
        """Return the row of an arm, or -1 if it was dropped. Rows are in the order of
        arms: a search of the whole list for each arm would be quadratic.
        """
        row = bisect_left(self.rows, arm)
        return row if row < len(self.rows) and self.rows[row] == arm else -1


def _void_without(row: int, pending: OpenRound) -> OpenRound:
    """Return a round that was under way when an arm was dropped: closed, and nobody
    bets on it, since whoever dropped the arm may have known of it.
    """
    return close_round(pending, True)._replace(
        favoured=max(pending.favoured - (pending.favoured >= row), 0),
        playing=np.delete(pending.playing, row),
        assigned=np.delete(pending.assigned, row),
    )


def make_run(strategy: Strategy, arms: int, cap: int, noise: float | None) -> Run:
    """Return a run that has not begun."""
    return BettingRun(strategy, arms, cap)
