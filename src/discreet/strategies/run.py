"""The public course of a live run: who is next, what is due for release, what is decided from it.

A course takes released sums and nothing else from behind the wall. It is made of the same leaf functions that the
simulator compiles (decision.py, board.py, phased.py, stream.py, betting.py), one person at a time, so that the same
outcomes and noise lead to the same assignments, releases, stop and recommendation.

Between two releases the schedule needs no outcomes. `take` hands out the next person's arm until a release is due
(`due`), the cap is reached or the run has stopped; `release` takes the released sums and decides.
"""

import math
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Flags, Floats, Ints
from discreet.errors import DiscreetError
from discreet.strategies import decision, rules
from discreet.strategies.betting import rounds as betting
from discreet.strategies.phased import decide as phased
from discreet.strategies.strategy import Strategy
from discreet.strategies.stream import decide as stream


class Due(NamedTuple):
    """A batch of outcomes: `size` people of one arm in one of its phases (or rounds)."""

    arm: int
    phase: int
    size: int


@dataclass(frozen=True)
class Arm:
    """What is public about an arm."""

    pulls: int
    count: int
    """Outcomes behind the mean."""
    mean: float | None
    interval: tuple[float, float] | None


class Course(ABC):
    """A run that has not begun; `load` what `dump` wrote to go on with one."""

    learns_always = False
    """Whether every answer is a release of its own, so that nobody waits."""

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        self.strategy, self.arms, self.cap = strategy, arms, cap
        self.samples = 0
        self.stopped = False
        self.recommendation: int | None = None

    @abstractmethod
    def take(self) -> Due | None:
        """The next person's arm and phase (size 1), or None: a release is due, or nobody else is needed."""

    @abstractmethod
    def due(self) -> list[Due]:
        """The batches to be released before anyone else is assigned; mostly none."""

    @abstractmethod
    def release(self, sums: list[float]) -> None:
        """Go on with the released sums of what was due, in that order."""

    @abstractmethod
    def table(self) -> list[Arm]:
        """What is public about each arm."""

    @abstractmethod
    def would_stop(self, delta: float) -> bool:
        """Whether this state would be enough to stop at another δ."""

    @abstractmethod
    def _state(self) -> Any:
        """NamedTuples of arrays: what changes but the plain attributes."""

    plain: tuple[str, ...] = ("samples", "stopped", "recommendation")
    scratch: tuple[str, ...] = ()
    """Arrays that are computed anew before they are read: not a part of the state."""

    @property
    def finished(self) -> bool:
        """Whether nobody else will be assigned: stopped, or at the cap with no release to come."""
        return self.stopped or (self.samples >= self.cap and not self.due())

    def dump(self) -> dict[str, Any]:
        """The state in plain types; floats are written so that they read back the same."""
        arrays = {name: np.asarray(array).tolist() for name, array in self._kept()}
        return {**{name: copy(getattr(self, name)) for name in self.plain}, "arrays": arrays}

    def load(self, state: dict[str, Any]) -> None:
        """Go on where the run that wrote this state was."""
        for name in self.plain:
            setattr(self, name, copy(state[name]))
        for name, array in self._kept():
            array[...] = np.array(state["arrays"][name], array.dtype)

    def _kept(self) -> list[tuple[str, Any]]:
        return [(name, array) for name, array in _arrays(self._state()) if name not in self.scratch]

    def smallest_delta(self) -> float | None:
        """The smallest δ at which this state would be enough to stop, to 1 in 1000; None if there is none below 1."""
        low, high = math.log(1e-99), 0.0
        if not self.would_stop(math.exp(-1e-9)):
            return None
        while high - low > 1e-3:
            middle = (low + high) / 2
            if self.would_stop(math.exp(middle)):
                high = middle
            else:
                low = middle
        return math.exp(high)


def new_course(strategy: Strategy, arms: int, cap: int, delta: float, noise: float | None = None) -> Course:
    """The course of a strategy; its thresholds are computed with `delta` and the `noise` of Gaussian responses."""
    exact = strategy.with_(delta=delta)
    if strategy.estimator == "bets":
        return BetsCourse(exact, arms, cap)
    if strategy.estimator == "epochs":
        return EpochsCourse(exact, arms, cap)
    if strategy.phased:
        return PhasedCourse(exact, arms, cap)
    return StreamCourse(exact, arms, cap, noise)


def _arrays(state: Any) -> list[tuple[str, Any]]:
    """The arrays in nested NamedTuples, by dotted names."""
    found = []
    for name, value in state._asdict().items():
        if isinstance(value, np.ndarray):
            found.append((name, value))
        else:
            found += [(f"{name}.{inner}", array) for inner, array in _arrays(value)]
    return found


class PhasedCourse(Course):
    """AdaP-TT, AdaP-TT*, and TTUCB in batches: means renewed when an arm (or every arm) has doubled."""

    plain = (*Course.plain, "ended")
    scratch = (
        *("board.inverse", "board.tops", "board.members", "board.guess", "board.inverse_guess", "board.inverse_tops"),
        "board.rest",
    )

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        super().__init__(strategy, arms, cap)
        self.rules = rules.phased_rules(strategy, arms)
        self.grid = phased.Release(math.inf, strategy.estimator == "daf", rules.grid(strategy))
        self.whole = strategy.episodes == "global"
        self.state = phased.new_state(arms)
        self.ended = -1
        """The arm whose pull ended a phase that is not released yet."""

    def _state(self) -> Any:
        return self.state

    def take(self) -> Due | None:
        """One step of the simulator's way from release to release."""
        if self.stopped or self.ended >= 0 or self.samples >= self.cap:
            return None
        if self.samples < self.arms:
            arm = self.samples
            self.samples += 1
            if self.samples == self.arms:
                self.ended = arm
        else:
            before = self.state.board.pulls.copy()
            args = (self.state, self.rules, False, self.samples, self.samples + 1, self.whole)
            self.ended, self.samples = phased.advance(*args)
            arm = int(np.flatnonzero(self.state.board.pulls != before)[0])
        return Due(arm, int(self.state.phase[arm]) + 1, 1)

    def due(self) -> list[Due]:
        """All arms at first and with one global episode, else the arm that doubled."""
        if self.ended < 0:
            return []
        pulls, begun = self.state.board.pulls, self.state.begun
        everyone = self.whole or self.samples == self.arms
        arms = range(self.arms) if everyone else (self.ended,)
        return [Due(arm, int(self.state.phase[arm]) + 1, int(pulls[arm] - begun[arm])) for arm in arms]

    def release(self, sums: list[float]) -> None:
        """Publish means and counts as `phased.release_arm` does, then decide."""
        for (arm, _, fresh), total in zip(self.due(), sums, strict=True):
            phased.publish(self.state, self.grid.forget, arm, fresh, total)
            if not self.whole:
                phased.set_due(self.state, self.grid, self.rules, arm)
        if self.whole:
            bonus = rules.phase_bonus(self.strategy)
            self.state.bonus[:] = [float(bonus(int(count))) for count in self.state.counts]
            self.state.board.due[:] = 2 * self.state.board.pulls
        self.ended = -1
        best, self.stopped = self._decide(self.rules)
        self.recommendation = int(best)

    def _decide(self, decided_by: decision.PhasedRules) -> tuple[int, bool]:
        if not self.whole:
            best, stopped = phased.decide(self.state, decided_by)
            return int(best), bool(stopped)
        best = int(decision.best_arm(self.state.mean, self.state.active))
        pair = rules.pair_thresholds(self.strategy, self.arms)
        others = [arm for arm in range(self.arms) if arm != best]
        return best, all(phased.passes_with(self.state, decided_by, best, arm, pair) for arm in others)

    def would_stop(self, delta: float) -> bool:
        """The stopping rule at another δ on this state."""
        if self.recommendation is None:
            return False
        other = PhasedCourse(self.strategy.with_(delta=delta), self.arms, self.cap)
        other.load(self.dump())
        return other._decide(other.rules)[1]

    def table(self) -> list[Arm]:
        """Pulls are public from the start, means from the first release on."""
        state = self.state
        assigned = state.board.pulls if self.samples >= self.arms else np.arange(self.arms) < self.samples
        means = [float(mean) if count else None for mean, count in zip(state.mean, state.counts, strict=True)]
        return [Arm(int(assigned[arm]), int(state.counts[arm]), means[arm], None) for arm in range(self.arms)]


class StreamCourse(Course):
    """TTUCB, CTB-TT and Gaussian responses: every answer is released, and counts as soon as it is in.

    Assigned people count for the challenger (`pulls`), answered ones for means, bonus and stopping (`count`); if each
    answer comes before the next person, the two are the same, as in the simulator.
    """

    learns_always = True
    plain = (*Course.plain, "count")
    scratch = ("members", "bonus")

    def __init__(self, strategy: Strategy, arms: int, cap: int, noise: float | None) -> None:
        super().__init__(strategy, arms, cap)
        self.noise = noise
        self.rules = rules.stream_rules(strategy, arms, noise)
        self.state = stream.new_stream(arms)
        self.count = [0] * arms

    def _state(self) -> Any:
        return self.state

    def take(self) -> Due | None:
        """The arm that `stream.stream_loop` would pull."""
        if self.stopped or self.samples >= self.cap:
            return None
        state, counts = self.state, np.array(self.count)
        if not counts.all():
            arm = decision.least_pulled(np.ones(self.arms, np.bool_), state.pulls)
        else:
            arm = self._choose(counts)
        state.pulls[arm] += 1
        state.inverse[arm] = 1.0 / state.pulls[arm]
        self.samples += 1
        return Due(int(arm), int(state.pulls[arm]), 1)

    def _choose(self, counts: Ints) -> int:
        state = self.state
        answered = state._replace(pulls=counts)
        if self.rules.sampling != decision.TOP_TWO:
            best = decision.best_arm(state.mean, state.active)
            if self.rules.sampling == decision.LUCB:
                stream.fill_bonus(answered, self.rules, int(counts.sum()))
                decision.lucb_pair(best, state.mean, state.bonus, state.members)
                return decision.least_pulled(state.members, state.pulls)
            return decision.least_pulled(state.active, state.pulls)
        stream.fill_bonus(answered, self.rules, int(counts.sum()))
        leader = decision.ucb_leader(state.mean, state.bonus)
        arm = leader
        if self.rules.ids or not decision.tracks_leader(state.led[leader], state.led_pulls[leader], self.rules.beta):
            arm = stream.stream_challenger(leader, state.mean, state.inverse, self.rules.cost, self.rules.half_epsilon)
        if self.rules.ids:
            state.share[leader] += decision.ids_share(int(state.pulls[arm]), int(state.pulls[leader]))
            if state.led_pulls[leader] <= state.share[leader]:
                arm = leader
        state.led[leader] += 1
        if arm == leader:
            state.led_pulls[leader] += 1
        return arm

    def due(self) -> list[Due]:
        """Nothing is ever waited for."""
        return []

    def release(self, sums: list[float]) -> None:
        """Not how answers come in here."""
        raise DiscreetError(f"{self.strategy.name} learns from every answer: use answer")

    def answer(self, arm: int, value: float) -> None:
        """Take in one answer of an arm, in the order in which its people were assigned; then decide."""
        state = self.state
        state.sums[arm] += value
        self.count[arm] += 1
        state.mean[arm] = state.sums[arm] / self.count[arm]
        if all(self.count):
            self.recommendation, self.stopped = self._decide(self.rules)

    def _decide(self, decided_by: decision.StreamRules) -> tuple[int, bool]:
        counts = np.array(self.count)
        answered, samples = self.state._replace(pulls=counts), int(counts.sum())
        best = int(decision.best_arm(self.state.mean, self.state.active))
        if decided_by.sampling == decision.ELIMINATION:
            return best, bool(stream.drop_beaten(best, answered, decided_by, samples))
        others = [arm for arm in range(self.arms) if arm != best]
        mean = self.state.mean
        return best, all(decision.stream_passes(best, arm, mean, counts, samples, decided_by) for arm in others)

    def would_stop(self, delta: float) -> bool:
        """The stopping rule at another δ on this state."""
        if self.recommendation is None:
            return False
        other = StreamCourse(self.strategy.with_(delta=delta), self.arms, self.cap, self.noise)
        other.load(self.dump())
        return other._decide(other.rules)[1]

    def table(self) -> list[Arm]:
        """Means of the answers so far, with the bias of randomised response taken out."""
        state = self.state
        shrink = math.tanh(float(self.strategy.epsilon or 0) / 2) if self.strategy.estimator == "ctb" else 1.0
        centred = 0.5 + (state.mean - 0.5) / shrink
        means = [float(mean) if count else None for mean, count in zip(centred, self.count, strict=True)]
        return [Arm(int(state.pulls[arm]), self.count[arm], means[arm], None) for arm in range(self.arms)]


class _Epoch(NamedTuple):
    mean: Floats
    active: Flags
    pulls: Ints
    behind: Ints
    radius: Floats


class EpochsCourse(Course):
    """DP-SE: epochs of fresh samples, round robin over the arms that are left."""

    plain = (*Course.plain, "epoch", "place")

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        super().__init__(strategy, arms, cap)
        counts = np.zeros(arms, np.int64)
        self.state = _Epoch(np.zeros(arms), np.ones(arms, np.bool_), counts, counts.copy(), np.zeros(arms))
        self.epoch, self.place = 1, 0
        """The epoch, from 1 on, and how many people are in it."""

    def _state(self) -> Any:
        return self.state

    def _playing(self) -> list[int]:
        return [int(arm) for arm in np.flatnonzero(self.state.active)]

    def _length(self) -> int:
        left = int(self.state.active.sum())
        return int(decision.epoch_length(left, self.epoch, float(self.strategy.epsilon or 0), self.strategy.delta))

    def take(self) -> Due | None:
        """Round robin; an epoch that would pass the cap is cut off there and releases nothing."""
        playing = self._playing()
        if self.stopped or self.samples >= self.cap or self.place == len(playing) * self._length():
            return None
        arm = playing[self.place % len(playing)]
        self.state.pulls[arm] += 1
        self.samples += 1
        self.place += 1
        return Due(arm, self.epoch, 1)

    def due(self) -> list[Due]:
        """Every arm that is left, when the epoch is full."""
        playing, length = self._playing(), self._length()
        full = not self.stopped and self.place == len(playing) * length
        return [Due(arm, self.epoch, length) for arm in playing] if full else []

    def release(self, sums: list[float]) -> None:
        """Renew the means, drop the arms that are far below the best."""
        state, length, playing = self.state, self._length(), self._playing()
        radius = decision.epoch_radius(
            len(playing), self.epoch, length, float(self.strategy.epsilon or 0), self.strategy.delta
        )
        for arm, total in zip(playing, sums, strict=True):
            state.mean[arm], state.behind[arm], state.radius[arm] = total / length, length, radius / 2
        self.stopped = bool(decision.drop_far(state.mean, state.active, radius) == 1)
        self.recommendation = int(decision.best_arm(state.mean, state.active))
        self.epoch, self.place = self.epoch + 1, 0

    def would_stop(self, delta: float) -> bool:
        """Never: DP-SE plans its epochs with δ, so another δ would have been another trial."""
        return False

    def table(self) -> list[Arm]:
        """Means with the radius within which, with probability 1 - δ, all true means lie at all times."""
        found = []
        state = self.state
        for arm in range(self.arms):
            mean, radius = float(state.mean[arm]), float(state.radius[arm])
            count, pulls = int(state.behind[arm]), int(state.pulls[arm])
            within = (max(mean - radius, 0.0), min(mean + radius, 1.0))
            found.append(Arm(pulls, count, mean if count else None, within if count else None))
        return found


class BetsCourse(Course):
    """bet-se: rounds of batches, the leader pulled more often, arms out by betting."""

    plain = (*Course.plain, "rounds", "n", "length", "place")
    scratch = ("fresh",)

    def __init__(self, strategy: Strategy, arms: int, cap: int) -> None:
        super().__init__(strategy, arms, cap)
        self.bets, self.setting = rules.betting_rules(strategy, arms)
        self.state = betting.new_book(arms)
        self.rounds, self.n, self.place = 0, 0, 0
        self.length = self.setting.first
        self._begin()

    def _state(self) -> Any:
        return self.state

    def load(self, state: dict[str, Any]) -> None:
        """The book, and what was announced from it."""
        super().load(state)
        self.announced = betting.announce(self.rounds, self.state)

    def _begin(self) -> None:
        """Announce the round; the last one before the cap is shortened to fit."""
        self.announced = betting.announce(self.rounds, self.state)
        self.length = min(self.length, (self.cap - self.samples) // self.announced[3])

    def _cycle(self) -> list[int]:
        """The arms of a round in the order of assignment, to be repeated `length` times."""
        leader, _, octave, _ = self.announced
        playing = [int(arm) for arm in np.flatnonzero(self.state.active)]
        return playing + [int(leader)] * (2**octave - 1)

    @property
    def finished(self) -> bool:
        """Stopped, or no whole cycle fits below the cap."""
        return self.stopped or self.length < 1

    def take(self) -> Due | None:
        """The next arm of the round."""
        cycle = self._cycle()
        if self.finished or self.place == len(cycle) * self.length:
            return None
        arm = cycle[self.place % len(cycle)]
        self.place += 1
        self.samples += 1
        return Due(arm, self.rounds + 1, 1)

    def due(self) -> list[Due]:
        """Every arm that plays, when the round is full."""
        leader, _, octave, weight = self.announced
        if self.finished or self.place < weight * self.length:
            return []
        playing = np.flatnonzero(self.state.active)
        factor = [2**octave if arm == leader else 1 for arm in playing]
        return [Due(int(arm), self.rounds + 1, self.length * f) for arm, f in zip(playing, factor, strict=True)]

    def release(self, sums: list[float]) -> None:
        """Settle the bets, and plan the next round."""
        for (arm, _, count), total in zip(self.due(), sums, strict=True):
            self.state.fresh[arm] = (total, count, 1)
        leader, second, octave, _ = self.announced
        self.n += self.length
        best = int(betting.settle(self.rounds, self.n, leader, second, octave, self.bets, self.setting, self.state))
        self.rounds, self.place = self.rounds + 1, 0
        self.stopped = best >= 0
        self.recommendation = best if self.stopped else int(betting.front_runner(self.state))
        if not self.stopped:
            self.length = int(betting.plan(self.n, self.setting, self.state))
            self._begin()

    def would_stop(self, delta: float) -> bool:
        """Whether at this δ all other arms would be out, with the bets made so far."""
        smallest = self.smallest_delta()
        return smallest is not None and smallest <= delta

    def smallest_delta(self) -> float | None:
        """The largest p-value of "this arm is best" among the other arms."""
        if self.recommendation is None:
            return None
        own, rival, others = self.state.own, self.state.rival, set(range(self.arms)) - {self.recommendation}
        logs = [betting.log_p_value(own[arm], rival[arm], self.n, self.bets, self.setting) for arm in others]
        value = math.exp(max(logs)) * (2 if self.strategy.zeta > 0 else 1)
        return value if value < 1 else None

    def table(self) -> list[Arm]:
        """Means of everything released, with anytime-valid intervals of level 1 - δ."""
        weight = self.announced[3]
        cycles, rest = divmod(self.place, weight)
        cycle = self._cycle()
        found = []
        for arm in range(self.arms):
            total = self.state.total[arm]
            count = int(total[betting.PULLS])
            open_ = cycles * cycle.count(arm) + cycle[:rest].count(arm)
            if not count:
                found.append(Arm(open_, 0, None, None))
                continue
            within = betting.interval(total, self.strategy.delta, self.bets, self.setting)
            mean = 0.5 + (float(total[betting.SUM] / count) - 0.5) / self.setting.scale
            found.append(Arm(count + open_, count, mean, within))
        return found
