"""bet-se with a calendar, slowly: a queue of events, people who come and outcomes that
become known, and the decisions of naive_betting.py; with continuous enrolment those of
a live run.
"""

import heapq
import math
from typing import Any

import numpy as np

from discreet import Strategy
from discreet.strategies.run import Randomisation, Run, Totals, make_run
from tests.support.naive_bets import Announced
from tests.support.naive_betting import NaiveBetting

COMES, KNOWN = 1, 0
"""Kinds of events; what becomes known at the moment when somebody comes is known to
that person.
"""


class NaiveWaiting(NaiveBetting):
    """Nobody is assigned until the round is released.

    `random` says whether delays are exponential; `bits` whether outcomes are drawn one
    by one.
    """

    def __init__(self, means: tuple[float, ...], epsilon: float | None, delta: float, **more: Any):
        self.accrual, self.days, self.failures = map(more.pop, ("accrual", "days", "failures"))
        self.never, self.deadline = map(more.pop, ("never", "deadline"))
        self.random, self.clock = map(more.pop, ("random", "clock"))
        super().__init__(means, epsilon, delta, **more)
        self.bits = self.failures != self.days
        self.today = 0.0

    def run(self, rng: np.random.Generator, cap: int = 10**12) -> Any:
        self.today = 0.0
        return super().run(rng, cap)

    def lateness(self, rng: np.random.Generator, hit: bool) -> float:
        if self.never and rng.random() < self.never:
            return math.inf
        days = self.days if hit else self.failures
        return float(days * rng.standard_exponential() if self.random else days)

    def coin(self, now: Announced, rng: np.random.Generator) -> int:
        point, weight = rng.random() * sum(now.odds.values()), 0
        for a, odds in now.odds.items():
            weight += odds
            if point < weight:
                return a
        raise AssertionError("a coin beyond all odds")

    def draw(
        self, now: Announced, rng: np.random.Generator
    ) -> tuple[dict[int, float], dict[int, int]]:
        """One day after the other, until the round may be released."""
        size, opened = now.length * sum(now.odds.values()), self.today
        people, told, hits = ({a: 0 for a in now.odds} for _ in range(3))
        events = [(opened + 1 / self.accrual, COMES)]
        came = known = 0
        while known < size:
            self.today, what = heapq.heappop(events)
            if what == KNOWN:
                known += 1
                continue
            came += 1
            if came < size:
                heapq.heappush(events, (opened + (came + 1) / self.accrual, COMES))
            a = self.coin(now, rng)
            hit = bool(rng.random() < self.means[a]) if self.bits else True
            late = self.lateness(rng, hit)
            people[a] += 1
            told[a] += late <= self.deadline
            hits[a] += self.bits and hit and late <= self.deadline
            wait = self.deadline if self.clock else min(late, self.deadline)
            heapq.heappush(events, (self.today + wait, KNOWN))
        seen = {}
        for a in now.odds:
            seen[a] = self.sent(a, people[a], told[a], hits[a], rng)
            if not now.single:
                seen[a] += self.noise(rng)
        return (self.noised(now, seen, people, rng) if now.single else seen), people

    def sent(self, a: int, people: int, told: int, hits: int, rng: np.random.Generator) -> float:
        """The sum of what people send: of those in time their bit, of others 0, each
        randomised where nobody is trusted.
        """
        low, high = 0.5 - self.shrink / 2, 0.5 + self.shrink / 2
        if self.bits:
            return int(rng.binomial(hits, high)) + int(rng.binomial(people - hits, low))
        usual = int(rng.binomial(told, low + (high - low) * self.means[a]))
        return usual + int(rng.binomial(people - told, low))


class NaiveEachPerson(NaiveWaiting):
    """The same, each person's outcome drawn by itself: equal in law."""

    def sent(self, a: int, people: int, told: int, hits: int, rng: np.random.Generator) -> float:
        rewards = [rng.random() < self.means[a] for _ in range(told)] + [False] * (people - told)
        if self.bits:
            rewards = [True] * hits + [False] * (people - hits)
        low, high = 0.5 - self.shrink / 2, 0.5 + self.shrink / 2
        return sum(rng.random() < (high if one else low) for one in rewards)


class LiveContinuous:
    """A live run with continuous enrolment: people come, outcomes become known, and the
    oldest round is released when it is full and all its outcomes are known.
    """

    def __init__(self, lateness: NaiveWaiting, strategy: Strategy) -> None:
        self.late, self.strategy = lateness, strategy

    def run(self, rng: np.random.Generator, cap: int) -> tuple[int, int, bool, int, list[int]]:
        """Samples, recommendation, stopped, rounds, pulls."""
        late, arms = self.late, len(self.late.means)
        randomisation = Randomisation("simple", continuous=True)
        run = make_run(self.strategy, arms, cap, self.strategy.delta, randomisation=randomisation)
        self.people: dict[tuple[int, int], list[int]] = {}
        self.today, self.pulls, self.settled, self.flying = 0.0, [0] * arms, 0, 0
        events: list[tuple[float, int, tuple[int, int]]] = [(1 / late.accrual, COMES, (0, 0))]
        while events and not run.stopped:
            self.today, what, batch = heapq.heappop(events)
            if what == KNOWN:
                self.people[batch][3] += 1
            elif (place := self.deal(run, rng)) is not None:
                self.pulls[place] += 1
                next_one = sum(self.pulls) + 1
                if next_one <= cap:
                    heapq.heappush(events, (next_one / late.accrual, COMES, (0, 0)))
                wait = self.enrol(run, place, rng)
                heapq.heappush(events, (self.today + wait, KNOWN, (place, self.round)))
            while not run.stopped and self.release(run, rng):
                pass
        best = run.recommendation if run.recommendation is not None else 0
        self.flying = sum(self.pulls) - self.flying
        return sum(self.pulls), best, run.stopped, self.settled, self.pulls

    def deal(self, run: Run, rng: np.random.Generator) -> int | None:
        """The next person's arm; opens a round if that has to be."""
        if run.needs_round and not run.is_finished:
            run.open_round()
        place = run.assign_next(lambda weights: coin(weights, rng))
        self.round = 0 if place is None else place.phase
        return None if place is None else place.arm

    def enrol(self, run: Run, arm: int, rng: np.random.Generator) -> float:
        """Count a person; days until the outcome is known."""
        late, count = self.late, self.people.setdefault((arm, self.round), [0, 0, 0, 0])
        hit = bool(rng.random() < late.means[arm]) if late.bits else True
        days = late.lateness(rng, hit)
        count[0] += 1
        count[1] += days <= late.deadline
        count[2] += late.bits and hit and days <= late.deadline
        return float(min(days, late.deadline))

    def release(self, run: Run, rng: np.random.Generator) -> bool:
        """Release what is due, if all of it is known."""
        due = run.list_due()
        batches = [self.people.get((place.arm, place.phase), [0, 0, 0, 0]) for place in due]
        if not due or any(batch[3] < batch[0] for batch in batches):
            return False
        assert [place.size for place in due] == [batch[0] for batch in batches]
        margin, sums = None in run.combine([Totals(0)] * len(due)), []
        for place, batch in zip(due, batches, strict=True):
            people, told, hits, _ = batch
            sums.append(int(self.late.sent(place.arm, people, told, hits, rng)))
            if not margin:
                sums[-1] += self.late.noise(rng)
        released = run.combine([Totals(total) for total in sums])
        noise = self.late.noise(rng) if margin else 0
        run.release([float(one.sum + noise) for one in released if one is not None])
        self.settled += 1
        self.flying += sum(n[0] for (_, phase), n in self.people.items() if phase == due[0].phase)
        return True


def coin(weights: list[int], rng: np.random.Generator) -> int:
    """The arm on which a coin falls."""
    point = rng.random() * sum(weights)
    for arm, weight in enumerate(weights):
        point -= weight
        if point < 0:
            return arm
    raise AssertionError("a coin beyond all odds")
