"""Rounds opened ahead keep the error rate when delays depend on outcomes; settling them
in another order, or leaving some out, does not.
"""

import numpy as np
import pytest
from scipy.stats import binom

from discreet import bet_se
from tests.support.coins import AHEAD, Clinic, opened

DELTA, RUNS = 0.1, 120
MOST = int(binom.isf(1e-6, RUNS, DELTA))
"""More wrong runs than this has a chance of one in a million if the rate is at most δ;
the seeds are fixed, so that a test either always fails or never.
"""


class Withholding(Clinic):
    """Two arms alike; a round in which the first did better is told 200 days later
    than the others, all at once.
    """

    def __init__(self, seed: int, options: dict[str, float | str], mistake: str = "") -> None:
        live = opened(bet_se(DELTA, **options), 2, 400, AHEAD)  # type: ignore[arg-type]
        super().__init__(live, [0.5, 0.5], lambda *_: 0, seed)
        self.closed: dict[int, int] = {}
        self.mistake = mistake

    def late(self, phase: int) -> bool:
        """Whether the second arm did no better."""
        ones = [arm for arm, bit, _ in self.told[phase] if bit]
        return ones.count(1) <= ones.count(0)

    def complete(self, phase: int) -> bool:
        self.closed.setdefault(phase, self.today)
        return self.today >= self.closed[phase] + (200 if self.late(phase) else 2)

    def day(self) -> None:
        if self.mistake:
            self._mistaken()
        super().day()
        for flight in self.live.queue:
            if flight.closed:
                self.closed.setdefault(flight.number + 1, self.today)

    def _mistaken(self) -> None:
        """What came first is settled first, or what came late not at all."""
        queue = self.live.queue
        for place, flight in enumerate(queue):
            phase = flight.number + 1
            if self.mistake == "order" and flight.closed and self.complete(phase):
                queue.insert(0, queue.pop(place))
                break
            if self.mistake == "left out" and flight.closed and self.late(phase):
                queue.pop(place)
                break
        self.live._prepare()

    def loses_an_arm(self) -> bool:
        """Whether the first arm is ever out."""
        while not self.live.is_finished:
            self.day()
            if self.live.book.eliminated[0]:
                return True
        return False


def too_many(options: dict[str, float | str], mistake: str = "") -> bool:
    """Whether more runs are wrong than δ explains; the rest is not played once they
    are.
    """
    wrong = 0
    for seed in range(RUNS):
        wrong += Withholding(seed, options, mistake).loses_an_arm()
        if wrong > MOST:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"trust": "none"}, {"epsilon": 2.0}], ids=["open", "ε = 2"])
def test_delays_that_tell_do_no_harm(options: dict[str, float | str]) -> None:
    """False alarm: 1e-6 for each."""
    assert not too_many(options)


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ["order", "left out"])
def test_rounds_settled_by_what_they_say_are_seen(mistake: str) -> None:
    assert too_many({"trust": "none"}, mistake)


def test_somebody_waits() -> None:
    """With that much delay rounds are under way all the time, and nobody is refused."""
    clinic = Withholding(1, {"trust": "none"})
    waiting = []
    while clinic.live.samples < 400 and not clinic.live.stopped:
        clinic.day()
        waiting.append(len(clinic.live.queue))
        assert clinic.live.samples == clinic.today
    assert np.mean(waiting) > 3
