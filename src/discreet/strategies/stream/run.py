"""A live run of TTUCB, CTB-TT or Gaussian responses: every answer is released, and
counts as soon as it is in.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.strategies.evidence import plain, stream_evidence
from discreet.strategies.pairs import Margin, Pair, Radii
from discreet.strategies.run import ArmView, Deal, Place, Run, in_order
from discreet.strategies.scales import noise_scale
from discreet.strategies.strategy import Strategy
from discreet.strategies.stream.decide import Stream, decide, new_stream
from discreet.strategies.stream.sampling import choose
from discreet.strategies.stream.tables import stream_rules
from discreet.strategies.top_two import TRACK
from discreet.theory.thresholds import c_gaussian, noisy_sigma


class Column(list[Any]):
    """A number of each arm. Leaves take it for an array; where nothing is compiled, the
    numbers of a list are read, and reckoned with, in half the time.
    """

    def __init__(self, numbers: Iterable[Any]) -> None:
        super().__init__(numbers)
        self.size = len(self)


def in_lists(state: Stream) -> Any:
    """A run's state, to be followed a person at a time."""
    return Stream(*(Column(array.tolist()) for array in state))  # type: ignore[arg-type]


class StreamRun(Run):
    """Assigned people count for the challenger (`pulls`), answered ones for means,
    bonus and stopping (`count`).

    If each answer comes before the next person, the two are the same, as in the
    simulator.
    """

    fields: ClassVar = (*Run.fields, "count")

    def __init__(self, strategy: Strategy, arms: int, cap: int, noise: float | None) -> None:
        super().__init__(strategy, arms, cap)
        self.noise = noise
        self.rules = stream_rules(strategy, arms, noise)
        self.count = [0] * arms
        self._begin(new_stream(arms))

    def _begin(self, state: Stream) -> None:
        """From this state on; what is decided from answers sees `count` in place of who
        was assigned.
        """
        self.state = in_lists(state)
        self._answered = self.state._replace(pulls=self.count)
        self._witness = 0

    def arrays(self) -> dict[str, Any]:
        """The public counts, and the answers so far."""
        state = self.state
        tracked = {"owed": state.owed, "weights": state.weights}
        return {
            "mean": state.mean,
            "pulls": state.pulls,
            "inverse": state.inverse,
            "led": state.led,
            "led_pulls": state.led_pulls,
            "share": state.share,
            "active": state.active,
            "sums": state.sums,
            **(tracked if self.rules.sampling == TRACK else {}),
        }

    def load(self, state: dict[str, Any]) -> None:
        """What was stored has the shape and the types of arrays."""
        self.state = new_stream(self.arms)
        super().load(state)
        self._begin(self.state)

    def take(self, deal: Deal = in_order) -> Place | None:
        """The arm that the simulated loop would pull."""
        if self.stopped or self.samples >= self.cap:
            return None
        arm = choose(self.state, self._answered, self.rules)
        pulls = self.state.pulls[arm] + 1
        self.state.pulls[arm], self.state.inverse[arm] = pulls, 1.0 / pulls
        self.samples += 1
        return Place(arm, pulls, 1)

    def due(self) -> list[Place]:
        """Nothing is ever waited for."""
        return []

    def answer(self, arm: int, value: float) -> None:
        """Take in one answer of an arm, in the order in which its people were assigned;
        then decide.
        """
        sums, count = self.state.sums, self.count
        sums[arm] += value
        count[arm] += 1
        self.state.mean[arm] = sums[arm] / count[arm]
        if all(count):
            self.recommendation, self.stopped = self._decide()

    def _decide(self) -> tuple[int, bool]:
        best, witness = decide(self._answered, self.rules, self._witness)
        self._witness = max(witness, 0)
        return best, witness < 0

    def would_stop(self, delta: float) -> bool:
        """The stopping rule at another δ on this state."""
        if self.recommendation is None:
            return False
        other = StreamRun(self.strategy.with_(delta=delta), self.arms, self.cap, self.noise)
        other.load(self.dump())
        return other._decide()[1]

    def evidence(self) -> list[float | None]:
        """By the answers so far."""
        if not all(self.count):
            return super().evidence()
        mean, count = np.array(self.state.mean), np.array(self.count, float)
        return plain(stream_evidence(self.rules, mean, count, sum(self.count)))

    @property
    def _shrink(self) -> float:
        """What randomised response leaves of a difference."""
        trust, bits = self.strategy.trust_model, self.strategy.part.bits
        return trust.shrink(self.strategy.epsilon) if bits else 1.0

    def pair(self, one: int, other: int, margins: Sequence[Margin] = ()) -> Pair | None:
        """By c^G, which holds for all counts of one path at once."""
        counts = self.count[one], self.count[other]
        if not all(counts):
            return None
        scale, shrink = (
            noise_scale(self.strategy) if self.noise is None else self.noise,
            self._shrink,
        )
        spread = 2 * noisy_sigma(scale) ** 2 * (1 / counts[0] + 1 / counts[1])

        def radius(alpha: float) -> float:
            return math.sqrt(spread * float(c_gaussian(*counts, 2, alpha))) / shrink

        return Radii((self.state.mean[one] - self.state.mean[other]) / shrink, radius)

    def table(self) -> list[ArmView]:
        """Means of the answers so far, with the bias of randomised response taken
        out.
        """
        shrink = self._shrink
        return [
            ArmView(pulls, count, 0.5 + (mean - 0.5) / shrink if count else None, None)
            for pulls, count, mean in zip(
                self.state.pulls, self.count, self.state.mean, strict=True
            )
        ]


def new_run(strategy: Strategy, arms: int, cap: int, noise: float | None) -> Run:
    """A run that has not begun."""
    return StreamRun(strategy, arms, cap, noise)
