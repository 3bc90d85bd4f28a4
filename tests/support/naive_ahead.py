"""Rounds of bet-se that are opened ahead, slowly, from their definition: sets of arms,
lists of people, exact fractions. Shares no line with the package.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

from tests.support.naive_bets import Announced
from tests.support.naive_betting import NaiveBetting


@dataclass
class Opened:
    """A round that is not released."""

    odds: dict[int, int]
    """At the opening."""
    planned: int
    on: list[int]
    """Arms that are still dealt."""
    people: list[int] = field(default_factory=list)
    """The arm of each."""
    lasted: Fraction = Fraction(0)
    closed: bool = False

    @property
    def weight(self) -> int:
        return sum(self.odds[a] for a in self.on)


class NaiveAhead(NaiveBetting):
    """`open`, `take` and `release`, in the order of a live run."""

    def start(self, cap: int) -> None:
        self.begin()
        self.cap, self.used = cap, 0
        self.queue: list[Opened] = []

    def open(self) -> dict[int, int]:
        """The odds of a new round."""
        now = self.first() if self.n == 0 else self.plan(self.who(), self.n)
        planned = now.length * sum(now.odds.values())
        self.queue.append(Opened(dict(now.odds), planned, list(now.odds)))
        return now.odds

    def take(self, arm: int) -> None:
        """The next person gets this arm."""
        last = self.queue[-1]
        last.people.append(arm)
        last.lasted += Fraction(1, last.weight)
        self.used += 1
        self.look()

    def look(self) -> None:
        """Close the last round if it has its people."""
        if not self.queue or self.queue[-1].closed or not self.queue[-1].people:
            return
        *before, last = self.queue
        waiting = sum(len(one.people) for one in before)
        wanted = max(last.planned, waiting // 4)
        if self.e is not None:
            wanted = max(
                wanted, int(min(4 * waiting, 4 * math.sqrt(waiting * last.weight) / self.e))
            )
        most = len(last.people) + self.cap - self.used
        if most - wanted < last.weight:
            wanted = most
        last.closed = len(last.people) >= wanted

    def due(self) -> dict[int, int] | None:
        """People of the arms that are released next."""
        if not self.queue or not self.queue[0].closed:
            return None
        return {a: self.queue[0].people.count(a) for a in self.queue[0].on}

    def announced(self) -> Announced:
        """The oldest round, as it is settled."""
        one = self.queue[0]
        leader, second = self.ranking(one.on)[:2]
        length = math.floor(one.lasted)
        now = Announced(leader, second, {a: one.odds[a] for a in one.on}, length, 0.5)
        if self.rounds:
            now.centre = self.plan(one.on, self.n).centre
        if length > 0 and 30 * length >= self.n:
            self.choose(now, length)
        if now.odds != dict.fromkeys(one.on, 1) and now.odds[leader] == 1:
            now.by_tails = False
        return now

    def release(self, now: Announced, seen: dict[int, float]) -> int | None:
        """Settle it with these sums; the arm to stop with, if any."""
        one = self.queue.pop(0)
        people = {a: one.people.count(a) for a in one.on}
        self.settle(now, seen, people)
        for a in set(one.odds) - set(one.on):
            self.pulls[a] += one.people.count(a)
        found = self.winner()
        if found is None and self.queue and not self.queue[-1].closed:
            self.renew(self.queue[-1])
            self.look()
        return found

    def renew(self, last: Opened) -> None:
        """The open round after a release."""
        awake = [a for a in last.on if not self.inside() or a not in self.out or self.overslept(a)]
        if len(awake) >= 2:
            last.on = awake
        length = self.plan(last.on, self.n).length
        more = math.ceil((length - last.lasted) * last.weight)
        last.planned = len(last.people) + max(more, 0)
