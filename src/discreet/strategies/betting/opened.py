"""A live run of bet-se whose rounds are opened: each person's arm is drawn with the
announced odds, by a coin or from permuted blocks, and how many people an arm gets is
what they gave.

Waiting enrolment has one round at a time, played exactly as the simulator plays it.
With continuous enrolment rounds are opened ahead (`discreet.strategies.betting.ahead`).
"""

from bisect import bisect_left
from typing import Any

import numpy as np

from discreet.errors import DiscreetError, InvalidInputError
from discreet.strategies.betting.ahead import (
    Flight,
    close,
    open_flight,
    renew,
    round_of,
    settle_flight,
    size_of,
    weight_in,
    weight_of,
)
from discreet.strategies.betting.book import COUNT, PULLS, Round, front_runner
from discreet.strategies.betting.flights import dumped, loaded, people_in
from discreet.strategies.betting.interval import Beside, new_beside
from discreet.strategies.betting.pair import Known
from discreet.strategies.betting.permuted import begun, places, priced, shortest
from discreet.strategies.betting.reshape import (
    Dropped,
    beside_with_one_more,
    beside_without,
    flight_with_one_more,
    flight_without,
    with_one_more,
    without,
)
from discreet.strategies.betting.rounds import handicap
from discreet.strategies.betting.run import BettingRun
from discreet.strategies.run import Deal, Dealing, Opening, Place, Run, Spread, in_order
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import LEVELS

SO_FAR: dict[str, type] = {
    "arms": int,
    "opened": int,
    "lengths": int,
    "settled": int,
    "again": bool,
}
"""What is stored of the rounds so far, under these names for ever: arms of the trial,
rounds opened, lengths and people of those settled, whether the last of them was a
margin. Beside them `rows`, and `dropped` arms.
"""


class OpenedRun(BettingRun):
    """Rounds opened, dealt, and settled in the order of opening."""

    def __init__(self, strategy: Strategy, arms: int, cap: int, dealing: Dealing) -> None:
        super().__init__(strategy, arms, cap)
        if dealing.block and (dealing.continuous or self.setting.zeta > 0):
            raise InvalidInputError(
                "permuted blocks are for rounds that are not opened ahead, and without an "
                "indifference gap zeta: the price of a block is proved only for these. Use coins"
            )
        self.dealing = dealing
        self.flights: list[Flight] = []
        """Rounds that are not released, in the order of opening; only the last may be
        open.
        """
        self.opened, self.lengths, self.settled, self.again = 0, 0, 0, False
        self.dropped: list[Dropped] = []
        self._weighed: tuple[Flight | None, list[int]] = (None, [])

    # --- stored -----------------------------------------------------------------------

    def arrays(self) -> dict[str, Any]:
        """The book; who plays is the rounds' own."""
        unsaid = {"active", "sigma", "pick", "left"}
        return {name: array for name, array in super().arrays().items() if name not in unsaid}

    def dump(self) -> dict[str, Any]:
        """The book, and the rounds so far and under way."""
        state = Run.dump(self)
        arrays = state.pop("arrays")
        rounds: dict[str, Any] = {name: kind(getattr(self, name)) for name, kind in SO_FAR.items()}
        rounds["rows"] = list(self.rows)
        rounds["dropped"] = [one._asdict() for one in self.dropped]
        flights = [dumped(flight) for flight in self.flights]
        return {**state, "rounds": rounds, "flights": flights, "arrays": arrays}

    def load(self, state: dict[str, Any]) -> None:
        """Go on where the run that wrote this state was."""
        rounds, arrays = state["rounds"], state["arrays"]
        for name, kind in SO_FAR.items():
            setattr(self, name, kind(rounds[name]))
        self.rows = list(rounds["rows"])
        self.dropped = [Dropped(**one) for one in rounds["dropped"]]
        self._load_book({**state, "arrays": {**arrays, "active": np.ones(len(self.rows))}})
        self.flights = [loaded(flight) for flight in state["flights"]]
        if not self.numbers:
            self.beside = new_beside(len(self.rows), self.bets)
        self._prepare()

    # --- opened -----------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Stopped, or nobody is waited for and no round fits below the cap."""
        return self.stopped or not (
            any(people_in(flight) for flight in self.flights)
            or self.closed
            or self._open() is not None
        )

    def _room(self) -> int:
        return max(self.cap - self.samples, 0)

    def _open(self) -> Flight | None:
        """The round in which people are dealt."""
        if self.stopped or not self.flights or self.flights[-1].closed or self.samples >= self.cap:
            return None
        return self.flights[-1]

    @property
    def closed(self) -> bool:
        """Whether a round can be opened, and has to be before anybody is dealt."""
        if self.dealing.continuous:
            return self._may_open()
        return self._may_open() and self._next().planned > 0

    def _may_open(self) -> bool:
        """Whether nobody has to be waited for before a round is opened."""
        if self.stopped or not self._room():
            return False
        return self.flights[-1].closed and self.dealing.continuous if self.flights else True

    def _next(self) -> Flight:
        """The round to open; unless rounds are opened ahead it fits below the cap, or
        has nobody in it.
        """
        flight = open_flight(self.opened, self.lengths, self.again, self.setting, self.book)
        if self.dealing.continuous:
            return flight
        weight = weight_of(flight)
        least, most = shortest(self.dealing.block, weight), self._room() // weight
        length = min(max(flight.plan.length, least), most) if most >= least else 0
        return flight._replace(planned=length * weight)

    def open(self) -> Opening:
        """Open the next round."""
        flight = self._next() if self._may_open() else None
        if flight is None or not (self.dealing.continuous or flight.planned):
            raise DiscreetError("no round can be opened now: ask `closed` first")
        self.flights.append(flight)
        self.opened += 1
        odds = [
            [arm, weight_in(row, flight)]
            for row, arm in enumerate(self.rows)
            if flight.playing[row]
        ]
        people = min(flight.planned, self._room())
        return Opening(flight.number + 1, odds, people, self.middle)

    # --- played -----------------------------------------------------------------------

    def take(self, deal: Deal = in_order) -> Place | None:
        """A person of the open round, on the arm that is drawn."""
        flight = self._open()
        if flight is None:
            return None
        weights = self._weights(flight)
        arm = deal(weights)
        if not 0 <= arm < self.arms or weights[arm] < 1:
            return None
        flight.dealt[self._find_row(arm)] += 1
        self.samples += 1
        self._close_if_full()
        return Place(arm, flight.number + 1, 1)

    def fill(self, spread: Spread) -> None:
        """The next round is opened if it has to be, and everybody of it dealt."""
        if self.closed:
            self.open()
        flight = self._open()
        while flight is not None and (people := self.to_deal()) > 0:
            at_once = 1 if self.dealing.block else people  # a block's places change
            dealt = np.array(spread(at_once, self._weights(flight)), np.int64)
            flight.dealt[:] += dealt[self.rows]
            self.samples += at_once
            self._close_if_full()
            flight = self._open()

    def _weights(self, flight: Flight) -> list[int]:
        """[arm]: its odds, or its places in the block. Odds stay as long as the flight
        is the same.
        """
        if self._weighed[0] is flight:
            return self._weighed[1]
        weights = np.zeros(self.arms, np.int64)
        if self.dealing.block:
            weights[self.rows] = places(flight, self.dealing.block)
            return weights.tolist()
        weights[self.rows] = flight.playing
        weights[self.rows[flight.heavy]] *= flight.plan.odds
        self._weighed = flight, weights.tolist()
        return self._weighed[1]

    def _closes_at(self, flight: Flight, people: int) -> int:
        """At how many people the open round, which has so many, closes."""
        if self.dealing.continuous:
            waiting = sum(people_in(before) for before in self.flights[:-1])
            return size_of(flight, waiting, self._room(), self.setting)
        return min(flight.planned, people + self._room())

    def _close_if_full(self) -> None:
        """Close the open round when it is; if none is before it, it is due."""
        if self.flights and not self.flights[-1].closed:
            flight = self.flights[-1]
            people = people_in(flight)
            if people < flight.planned and self.samples < self.cap:
                return  # however people are dealt
            if 0 < people >= self._closes_at(flight, people):
                self.flights[-1] = close(flight, False)
                if len(self.flights) == 1:
                    self._prepare()

    def to_deal(self) -> int:
        """People of the open round who are still to come, as it is planned now."""
        flight = self._open()
        if flight is None:
            return 0
        people = people_in(flight)
        return self._closes_at(flight, people) - people

    def _prepare(self) -> None:
        """The round that is due, as it is settled, if there is one."""
        if self._due() is not None:
            self.now = self._round(self.flights[0])

    def _round(self, flight: Flight) -> Round:
        about = self.lengths, self.settled, self.again, self.dealing.continuous
        now = round_of(flight, *about, self.bets, self.setting, self.book)
        if self.dealing.block and now.length > 0:
            return priced(now, begun(flight, self.dealing.block), self.bets, self.setting)
        return now

    def _due(self) -> Flight | None:
        if self.stopped or not self.flights or not self.flights[0].closed:
            return None
        return self.flights[0]

    def _playing(self) -> list[int]:
        flight = self._due()
        return [] if flight is None else [int(row) for row in np.flatnonzero(flight.playing)]

    def due(self) -> list[Place]:
        """Every arm that plays the oldest round, when it is closed."""
        flight = self._due()
        if flight is None:
            return []
        number = flight.number + 1
        return [Place(self.rows[row], number, int(flight.dealt[row])) for row in self._playing()]

    def under_way(self, arm: int, phase: int) -> bool:
        """Return whether the arm plays a round that is not released."""
        row = self._find_row(arm)
        return row >= 0 and any(
            one.number + 1 == phase and one.playing[row] for one in self.flights
        )

    @property
    def middle(self) -> float | None:
        """That of the round opened last."""
        return self.middle_of(self.flights[-1].number + 1) if self.flights else None

    def middle_of(self, phase: int) -> float | None:
        """That of a round under way, where people send levels."""
        centres = [one.plan.centre for one in self.flights if one.number + 1 == phase]
        return float(centres[0]) if centres and self.setting.kind == LEVELS else None

    def _allowed(self, row: int) -> int:
        return handicap(row, self.now, self.book) * self.due_grid(self.setting.grid)

    def release(self, sums: list[float], near: list[float] | None = None) -> None:
        """Settle the bets of the oldest round; arms that went out are no longer dealt
        in the open one.
        """
        flight = self.flights[0]
        self.book.active[:] = flight.playing
        self.book.fresh[:, COUNT] = flight.dealt
        self._take_in(sums, near)
        found, self.book = settle_flight(self.now, flight, self.bets, self.setting, self.book)
        self.lengths += self.now.length
        self.settled += people_in(flight)
        self.again = bool(self.now.margin)
        self.flights.pop(0)
        self.stopped = found >= 0
        self.recommendation = self.rows[found if self.stopped else front_runner(self.book)]
        if self.flights and not self.flights[-1].closed:
            about = self.lengths, self.again, self.setting, self.book
            self.flights[-1] = renew(self.flights[-1], *about)
        self._close_if_full()
        self._prepare()

    # --- the operator -----------------------------------------------------------------

    def maximum(self, people: int) -> None:
        """The new cap; an open round that reaches it is cut before its next coin."""
        self.cap = people
        self._close_if_full()

    def drop(self, arm: int) -> None:
        """Take an arm out: nobody bets on what is under way, everybody else is in again
        and bets begin anew.
        """
        self._refuse_if_stopped("dropped from")
        row = self._find_row(arm)
        if row < 0:
            raise InvalidInputError(f"arm {arm} is not in the trial: it cannot be dropped")
        if len(self.rows) < 3:
            raise InvalidInputError("two arms must be left: stop the trial instead")
        total, (aside, lift) = self.book.total[row].copy(), self.beside.of(row)
        total[PULLS] += sum(int(flight.dealt[row]) for flight in self.flights)
        beside = aside.tolist() if self.numbers else []
        self.dropped.append(Dropped(arm, total.tolist(), beside, float(lift)))
        left = [flight_without(row, flight) for flight in self.flights]
        self.flights = [flight for flight in left if people_in(flight) and flight.playing.any()]
        self.book = without(row, self.book)
        self.beside = beside_without(row, self.beside)
        self.rows.remove(arm)
        if self.recommendation is not None:
            self.recommendation = self.rows[front_runner(self.book)]
        self._prepare()

    def add(self) -> None:
        """A new arm, the last one, which plays from the next round on."""
        self._refuse_if_stopped("added to")
        if self.setting.zeta > 0:
            raise InvalidInputError(
                "no arm can be added to a trial with an indifference gap zeta: what it takes to "
                "stop there depends on the number of arms. Stop the trial, and begin another"
            )
        self.book = with_one_more(self.book)
        self.beside = beside_with_one_more(self.beside)
        self.flights = [flight_with_one_more(flight) for flight in self.flights]
        self.rows.append(self.arms)
        self.arms += 1
        self._prepare()

    def _refuse_if_stopped(self, action: str) -> None:
        if self.stopped:
            raise InvalidInputError(f"the trial has stopped: no arm can be {action} it")

    # --- shown ------------------------------------------------------------------------

    def _released(self, arm: int) -> Known:
        for one in self.dropped:
            if one.arm == arm:
                beside = Beside(np.array(one.aside), np.array(one.lift)) if self.numbers else None
                return Known(np.array(one.total), beside)
        return super()._released(self._find_row(arm))

    def _under_way(self, arm: int) -> int:
        row = self._find_row(arm)
        return 0 if row < 0 else sum(int(flight.dealt[row]) for flight in self.flights)

    def _find_row(self, arm: int) -> int:
        """Return the row of an arm, or -1 if it was dropped. Rows are in the order of
        arms: a search of the whole list for each arm would be quadratic.
        """
        row = bisect_left(self.rows, arm)
        return row if row < len(self.rows) and self.rows[row] == arm else -1
