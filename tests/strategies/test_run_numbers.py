"""Outcomes that are numbers: the same outcomes and noise lead a live run of bet-se and
the simulator to the same rounds, releases, stop and arm.

As in test_run.py a live run is played first, person by person; then the simulator plays
again with the counts of those people and that noise as its draws. Some values lie
between two units, so that rounding is drawn too.
"""

import math
from typing import Any

import numpy as np
import pytest

from discreet import Discrete, Strategy, bet_se
from discreet.arrays import Floats
from discreet.simulation.laws import laws_of
from discreet.simulation.loops import betting as play
from discreet.strategies.betting import near
from discreet.strategies.betting import run as room
from discreet.strategies.betting.near import Bump
from discreet.strategies.betting.run import BettingRun
from discreet.strategies.betting.tilts import betting_rules
from discreet.strategies.run import Totals
from discreet.strategies.units import LEVELS
from tests.support.tape import Tape

VALUES = [0.0, 0.25, 0.3, 0.5, 0.7, 1.0]
NARROW = Discrete(
    VALUES,
    [
        [0, 0.02, 0.08, 0.3, 0.55, 0.05],
        [0.05, 0.2, 0.3, 0.4, 0.04, 0.01],
        [0.1, 0.3, 0.4, 0.2, 0, 0],
    ],
)
"""Most outcomes are near each other."""
NEARLY_BITS = Discrete(
    VALUES, [[0.45, 0, 0.05, 0, 0, 0.5], [0.6, 0, 0.05, 0, 0, 0.35], [0.7, 0, 0, 0.05, 0, 0.25]]
)
"""So that rounds are announced in which outcomes are rounded to bits."""
CAP = 4000


def numbers(epsilon: float | None, **options: Any) -> Strategy:
    return bet_se(0.1, epsilon, outcomes="numbers", **options)


CASES = [
    (numbers(1.0), NARROW, {"fine"}),
    (numbers(2.0), NEARLY_BITS, {"fine", "bits"}),
    (numbers(5.0), NEARLY_BITS, {"fine", "bits"}),
    (numbers(0.1), NARROW, {"fine", "dear"}),
    (numbers(0.1, hint=0.2), NARROW, {"fine", "dear", "difference"}),
    (numbers(0.3, sampling="top-two"), NARROW, {"fine", "difference"}),
    (numbers(1.0, zeta=0.1), NEARLY_BITS, {"fine"}),
    (numbers(2.0, trust="local"), NARROW, {"fine"}),
    (numbers(4.0, trust="local"), NEARLY_BITS, {"fine"}),
    (numbers(None, trust="none"), NARROW, {"fine"}),
    (numbers(None, trust="none"), NEARLY_BITS, {"fine"}),
]
"""With the kinds of rounds that must have been played."""


class Player:
    """A live run on people drawn from an instance, and the tape of it."""

    def __init__(self, strategy: Strategy, instance: Discrete, seed: int) -> None:
        self.live = BettingRun(strategy, instance.arms, CAP)
        self.chances = np.array(instance.probabilities)
        self.rng, self.tape = np.random.default_rng(seed), Tape()
        self.kinds: set[str] = set()
        self.rounds: list[list[float]] = []
        """Of each round what `loops.betting.note` says."""

    def play(self) -> None:
        while self.live.take(self._deal) is not None or self.live.due():
            if self.live.due():
                self._release()

    def _deal(self, left: list[int]) -> int:
        return int(self.rng.choice(len(left), p=np.array(left) / sum(left)))

    def _release(self) -> None:
        live, now = self.live, self.live.now
        marks = {"fine": now.fine, "bits": not now.fine, "dear": now.dear, "difference": now.margin}
        self.kinds |= {name for name, mark in marks.items() if mark}
        left = sum(batch.size for batch in live.due())
        totals, jumps = [], list[int]()
        for arm, _, size in live.due():
            if size < left:
                self.tape.sums.append((left, size))
            left -= size
            totals.append(live.totals(self._people(arm, size)))
        shown = [total for total in live.combine(totals) if total is not None]
        grid = live.due_grid(live.setting.grid)
        noisy = [self._noisy(total, grid, jumps) for total in shown]
        self.tape.jumps += jumps
        close = [total.near / grid for total in noisy if total.near is not None]
        live.release([total.sum / grid for total in noisy], close if now.fine else None)
        self._note(now.length)

    def _note(self, length: int) -> None:
        book, now = self.live.book, self.live.now
        public = [now.samples, book.out.size - book.out.sum(), length, now.number]
        self.rounds.append([*public, *book.mean])

    def _people(self, arm: int, size: int) -> list[int]:
        """What the people of a batch come to, in units of what is due."""
        values = self.rng.choice(len(VALUES), size, p=self.chances[arm]).tolist()
        if self.live.setting.kind == LEVELS:
            return self._levels([VALUES[one] for one in values])
        if not self.live.now.fine:
            bits = [int(self.rng.random() < VALUES[one]) for one in values]
            self.tape.sums.append((size, sum(bits)))
            return bits
        units, left = list[int](), size
        for index, value in enumerate(VALUES):
            hits = values.count(index)
            if left > 0:
                self.tape.sums.append((left, hits))
            left -= hits
            exact = value * self.live.setting.grid
            ups = [int(self.rng.random() < exact - math.floor(exact)) for _ in range(hits)]
            if hits:
                self.tape.sums.append((hits, sum(ups)))
            units += [math.floor(exact) + up for up in ups]
        return units

    def _levels(self, values: list[float]) -> list[int]:
        """One of three levels, then with some chance another."""
        middle, slip = self.live.middle, self.live.setting.slip
        assert middle is not None
        levels = (0, round(middle * self.live.setting.grid), self.live.setting.grid)
        sent = []
        for value in values:
            share = value / middle if value < middle else (value - middle) / (1 - middle)
            level = int(value >= middle) + int(self.rng.random() < share)
            turn = int(self.rng.choice(3, p=[1 - 2 * slip, slip, slip]))
            sent.append((level + turn) % 3)
        self.tape.sums.append((len(sent), sent.count(1)))
        if sent.count(1) < len(sent):
            self.tape.sums.append((len(sent) - sent.count(1), sent.count(2)))
        return [levels[one] for one in sent]

    def _noisy(self, total: Totals, grid: int, jumps: list[int]) -> Totals:
        strategy = self.live.strategy
        if strategy.trust != "global":
            return total
        p = -math.expm1(-float(strategy.epsilon or 0) / grid)
        noise = []
        for _ in range(1 if total.near is None else 2):
            up, down = int(self.rng.geometric(p)), int(self.rng.geometric(p))
            jumps += [up, down]
            noise.append(up - down)
        close = None if total.near is None else total.near + noise[1]
        return Totals(total.sum + noise[0], close)


def simulated(player: Player, instance: Discrete) -> tuple[Any, Floats, list[int]]:
    """The run of the simulator with these draws, its rounds, and how many were dealt to
    each arm.
    """
    rules, pulls = betting_rules(player.live.strategy, instance.arms), np.zeros(3, np.int64)
    trace = np.zeros((200, 4 + instance.arms))
    tape: Any = player.tape
    outcome = play.run_betting(tape, laws_of(instance), rules, CAP, pulls, trace)
    return outcome, trace[: outcome.rounds], pulls.tolist()


@pytest.mark.parametrize(
    ("strategy", "instance", "kinds"), CASES, ids=[f"{c[0].trust} {c[0].epsilon}" for c in CASES]
)
def test_same_decisions_as_the_simulator(
    strategy: Strategy, instance: Discrete, kinds: set[str]
) -> None:
    seen, stops = set[str](), 0
    for seed in range(4):
        player = Player(strategy, instance, seed)
        player.play()
        live, seen = player.live, seen | player.kinds
        outcome, rounds, pulls = simulated(player, instance)
        assert (live.samples, live.stopped) == (outcome.samples, outcome.stopped)
        assert live.recommendation == outcome.recommendation
        assert rounds.tolist() == player.rounds
        assert [arm.pulls for arm in live.table()] == pulls
        assert not player.tape.sums + player.tape.jumps
        stops += live.stopped
    assert kinds <= seen
    assert stops > 0


def differs(player: Player, instance: Discrete) -> bool:
    """Whether the simulator plays other rounds, or asks for other draws."""
    try:
        return bool(simulated(player, instance)[1].tolist() != player.rounds)
    except (IndexError, AssertionError):
        return True


@pytest.mark.parametrize("case", [0, 4, 7], ids=["sums", "differences", "levels"])
def test_another_closeness_is_seen(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two units of a million more for each person, in the live run only; of levels a
    quarter less.
    """
    strategy, instance, _ = CASES[case]
    player = Player(strategy, instance, 0)
    player.play()
    assert not differs(player, instance)

    def more(units: int, bump: Bump) -> int:
        return near.closeness(units, bump) + 2

    monkeypatch.setattr(room, "closeness", more)
    honest = BettingRun.totals

    def less(run: BettingRun, units: Any) -> Totals:
        total = honest(run, units)
        return total._replace(near=(total.near or 0) * 3 // 4)

    if case == 7:
        monkeypatch.setattr(BettingRun, "totals", less)
    player = Player(strategy, instance, 0)
    player.play()
    assert differs(player, instance)


@pytest.mark.parametrize(
    ("strategy", "instance"), [case[:2] for case in CASES], ids=[str(i) for i in range(len(CASES))]
)
def test_a_run_goes_on_from_what_it_wrote(strategy: Strategy, instance: Discrete) -> None:
    """Stopped and begun again at every seventh person, it comes to the same end."""
    whole, broken = Player(strategy, instance, 3), Player(strategy, instance, 3)
    whole.play()
    while broken.live.take(broken._deal) is not None or broken.live.due():
        if broken.live.due():
            broken._release()
        state = broken.live.dump()
        if broken.live.samples % 7 == 0:
            broken.live = BettingRun(strategy, instance.arms, CAP)
            broken.live.load(state)
        assert broken.live.dump() == state
    assert broken.live.dump() == whole.live.dump()
    assert broken.live.table() == whole.live.table()
