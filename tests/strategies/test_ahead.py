"""Rounds opened ahead: nobody waits for a release, rounds are settled in the order of
opening, and an oracle that knows nothing of the package agrees step by step.
"""

from typing import Any

import numpy as np
import pytest

from discreet import bet_se
from discreet.strategies.betting import open_rounds as ahead
from discreet.strategies.betting import run as room
from tests.support.coins import AHEAD, Clinic, opened
from tests.support.naive_ahead import NaiveAhead

MEANS = {
    "four": (0.35, 0.5, 0.7, 0.55),
    "two": (0.6, 0.5),
    "eight": (0.9, 0.85, 0.2, 0.3, 0.4, 0.1, 0.6, 0.5),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "ε = 1": {"epsilon": 1.0},
    "ε = 0.2": {"epsilon": 0.2},
    "target_difference": {"epsilon": 0.1, "target_difference": 0.2},
    "open": {"trust": "none"},
    "local": {"epsilon": 2.0, "trust": "local"},
    "ζ": {"epsilon": 2.0, "indifference_zone": 0.1},
}
CAP = 3000


def by_outcome(rng: np.random.Generator, arm: int, bit: int) -> int:
    """Failures take longer, and more so on one arm."""
    return int(rng.integers(0, 40)) + (200 if bit == 0 and arm == 0 else 0)


class Compared(Clinic):
    """A live run and the oracle side by side."""

    def __init__(self, means: tuple[float, ...], options: dict[str, Any], seed: int) -> None:
        live = opened(bet_se(0.1, **options), len(means), CAP, AHEAD)
        super().__init__(live, means, by_outcome, seed)
        options = {**options, "epsilon": options.get("epsilon")}
        self.naive, self.waited = NaiveAhead(means, delta=0.1, **options), 0
        self.naive.start(CAP)
        self.seen: set[str] = set()

    def day(self) -> None:
        before = self.live.samples
        super().day()
        assert self.live.samples == before + 1 or self.live.samples == CAP or self.live.stopped
        self.waited += len(self.live.queue) > 1

    def deal(self, weights: list[int]) -> int:
        if not self.naive.queue or self.naive.queue[-1].closed:
            self.naive.open()
        last = self.naive.queue[-1]
        odds = {a: last.odds[a] for a in last.on}
        assert weights == [odds.get(a, 0) for a in range(len(weights))]
        if len(last.on) < len(last.odds):
            self.seen.add("taken off")
        arm = super().deal(weights)
        self.naive.take(arm)
        return arm

    def release(self) -> None:
        live, due = self.live, self.live.list_due()
        assert {batch.arm: batch.size for batch in due} == self.naive.due()
        now, mine = self.naive.announced(), live.current
        assert (now.leader, now.second, now.length) == (mine.leader, mine.runner_up, mine.length)
        assert (now.by_tails, now.single) == (mine.by_tails, mine.difference)
        assert now.centre == pytest.approx(mine.centre, abs=1e-12)
        self.seen |= {"third"} if mine.favoured != mine.leader else set()
        self.seen |= {"tails"} if mine.by_tails else set()
        self.seen |= {"difference"} if mine.difference else set()
        people = self.told[due[0].phase]
        sums = {a: sum(bit for who, bit, _ in people if who == a) for a, _, _ in due}
        noise = self._given()
        super().release()
        seen = {a: float(sums[a]) for a in sums}
        if now.single:
            counts = {a: size for a, _, size in due}
            allowed = {a: (counts[now.leader] - counts[a]) // 2 for a in counts}
            others = [a for a in counts if a != now.leader]
            lead = min(sums[now.leader] - sums[a] - allowed[a] for a in others) + noise[0]
            seen = {a: float(lead if a == now.leader else -allowed[a]) for a in counts}
        else:
            seen = {a: seen[a] + more for a, more in zip(seen, noise, strict=False)}
        found = self.naive.release(now, seen)
        assert (found is not None) == live.stopped
        assert live.book.log_wealth == pytest.approx(list(self.naive.money.values()), abs=1e-9)
        assert live.book.mean == pytest.approx(list(self.naive.mean.values()), abs=1e-12)
        assert set(np.flatnonzero(live.book.eliminated)) == self.naive.out

    def pulls(self) -> list[int]:
        """What the oracle knows of everybody dealt."""
        under_way = [a for one in self.naive.queue for a in one.people]
        return [pulls + under_way.count(a) for a, pulls in self.naive.pulls.items()]

    def _given(self) -> list[int]:
        """The noise that will be drawn."""
        drawn: list[int] = [super(Compared, self).noise() for _ in self.live.list_due()]
        self.jumps = list(drawn)
        return drawn

    def noise(self) -> int:
        return self.jumps.pop(0)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("means", MEANS)
def test_the_oracle_agrees(means: str, setting: str) -> None:
    waited = 0
    for seed in range(3):
        pair = Compared(MEANS[means], SETTINGS[setting], seed)
        pair.play()
        waited += pair.waited
        assert pair.live.stopped or pair.live.samples == CAP
        assert [view.pulls for view in pair.live.view_arms()] == pair.pulls()
    assert waited > 100


def test_all_kinds_of_rounds_are_compared() -> None:
    """Arms taken off, rounds whose heavy arm no longer leads, tails, differences."""
    seen = set[str]()
    cases = [
        ("four", "open"),
        ("eight", "ε = 1"),
        ("four", "target_difference"),
        ("two", "ε = 0.2"),
    ]
    for means, setting in cases:
        for seed in range(2):
            pair = Compared(MEANS[means], SETTINGS[setting], seed)
            pair.play()
            seen |= pair.seen
            assert [view.pulls for view in pair.live.view_arms()] == pair.pulls()
    assert seen == {"taken off", "third", "tails", "difference"}


def wrong_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arm with the larger odds is taken for the leader."""
    honest = ahead.announce_closed

    def wrong(*about: Any) -> Any:
        now = honest(*about)
        return now._replace(favoured=now.leader)

    monkeypatch.setattr(room, "announce_closed", wrong)


def wrong_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arms that went out stay in the open round."""
    honest = ahead.renew

    def wrong(flight: Any, *about: Any) -> Any:
        return honest(flight, *about)._replace(playing=flight.playing)

    monkeypatch.setattr(room, "renew", wrong)


def wrong_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds close as planned, however many wait."""
    monkeypatch.setattr(room, "choose_size", lambda f, _, *rest: ahead.choose_size(f, 0, *rest))


@pytest.mark.parametrize("mistake", [wrong_scores, wrong_renewal, wrong_size])
def test_the_oracle_sees_a_mistake(mistake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake(monkeypatch)
    with pytest.raises(AssertionError):
        play_some()


def play_some() -> None:
    for setting in ("open", "ε = 1"):
        for seed in range(6):
            Compared(MEANS["eight"], SETTINGS[setting], seed).play()
