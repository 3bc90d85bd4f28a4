"""Arms that drift: simulated person by person, and equal to slow loops written from the
paper.

The slow versions are naive.py's, fed by a source that draws each person's reward when
the person comes, with a drift written here once more. They draw from the same
Generator, so equality is asked for.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

import discreet
from discreet import Bernoulli, Drift, Drifting, InvalidInputError, Strategy, UserStrategy
from discreet.simulation.compile import compile_kernel
from discreet.simulation.dp_se import run_epochs
from discreet.simulation.engine import simulate_quietly
from discreet.simulation.laws import compute_success_chance, make_laws, make_response_laws
from discreet.simulation.paths import run_path
from discreet.simulation.per_participant import run_by_participant
from tests.support import naive
from tests.support.oracle import OPTIONS, make, phased_oracle, stream_oracle

MEANS = [0.8, 0.55, 0.5, 0.3]
WAYS: dict[Drift, Callable[[int], float]] = {
    Drift.sites(0.3, block=7): lambda i: (0.3, -0.3)[i // 7 % 2],
    Drift.step(-0.4, at=60): lambda i: -0.4 * (i >= 60),
    Drift.season(0.5, period=90): lambda i: 0.5 * math.sin(2 * math.pi * i / 90),
    Drift.trend(0.45, over=200): lambda i: 0.45 * min(i / 200, 1),
}


class Enrolled(naive.Source):
    """A source that knows the person's number, and holds back rewards until a sum is
    asked for.
    """

    def __init__(
        self, rng: np.random.Generator, strategy: Strategy, moved: Callable[[int], float]
    ) -> None:
        super().__init__(rng, "bernoulli", MEANS)
        self.moved, self.people, self.held = moved, 0, [0.0] * len(MEANS)
        self.truth = 1.0
        if strategy.estimator == "ctb":
            self.truth = 1 / (1 + math.exp(-float(strategy.epsilon or 0)))

    def one(self, arm: int) -> float:
        """The reward (or response) of the next person."""
        p = min(1.0, max(0.0, self.arms[arm] + self.moved(self.people)))
        self.people += 1
        return float(self.rng.random() < p * self.truth + (1 - p) * (1 - self.truth))

    def enrol(self, arm: int) -> None:
        """A person whose reward waits for a release."""
        self.held[arm] += self.one(arm)

    def total(self, arm: int, count: int) -> float:
        """What the arm's people since the last sum were worth."""
        total, self.held[arm] = self.held[arm], 0.0
        return total


class Desk(naive.Sampler):
    """A sampler that enrols whom it samples."""

    source: Enrolled

    def arm(self, *state: Any) -> int:
        chosen = super().arm(*state)
        self.source.enrol(chosen)
        return chosen


def slow(
    strategy: Strategy, moved: Callable[[int], float], rng: np.random.Generator, cap: int
) -> naive.Outcome:
    """One run, from the paper's pseudocode."""
    source = Enrolled(rng, strategy, moved)
    ids = strategy.beta == "ids"
    rule = {"top-two": "top two"}.get(strategy.sampling, strategy.sampling)
    cost = naive.d_private if strategy.cost == "private" else naive.d_gauss
    parts: Any = (
        rule,
        cost,
        (strategy.epsilon or math.inf) / 2,
        0.5 if ids else float(strategy.beta),
        ids,
        len(MEANS),
        strategy.cost == "kl",
    )
    if not strategy.is_phased:
        return stream_oracle(strategy, source, naive.Sampler(*parts), cap)
    desk = Desk(*parts)
    desk.source, desk.yields = source, strategy.episodes == "global-yielding"
    for arm in range(len(MEANS)):
        source.enrol(arm)
    return phased_oracle(strategy, source, desk, cap)


def generator(seed: int, run: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run,))))


CASES = [
    case for case in OPTIONS if case[0] != "dp-se" and (made := make(*case)) and made.is_phased
] + [case for case in OPTIONS if case[0] in ("ttucb", "ctb-tt", "gauss-tt")]


@pytest.mark.parametrize("place", range(len(CASES)), ids=lambda place: str(CASES[place]))
def test_every_run_equals_the_slow_one(place: int) -> None:
    strategy = make(*CASES[place])
    assert strategy is not None
    drift, moved = list(WAYS.items())[place % len(WAYS)]
    found = simulate_quietly(Drifting(Bernoulli(MEANS), drift), strategy, 3, 7, 1500)
    for run in range(3):
        outcome = slow(strategy, moved, generator(7, run), 1500)
        assert (found.samples[run], found.recommendation[run], found.stopped[run]) == (
            outcome.samples,
            outcome.recommendation,
            outcome.stopped,
        )
        assert found.rounds[run] == outcome.rounds
        assert found.pulls[run].tolist() == outcome.pulls


@pytest.mark.parametrize("drift", WAYS)
def test_dp_se_equals_a_slow_loop(drift: Drift) -> None:
    """Two arms in turn; each epoch's people come before its noise."""
    moved, epsilon, delta = WAYS[drift], 1.0, 0.3

    class Turns(naive.Source):
        people, held = 0, 0.0

        def total(self, arm: int, count: int) -> float:
            if arm == 1:
                return self.held
            sums = [0.0, 0.0]
            for _ in range(count):
                for turn, mean in enumerate((0.55, 0.5)):
                    p = min(1.0, max(0.0, mean + moved(self.people)))
                    sums[turn] += self.rng.random() < p
                    self.people += 1
            self.held = sums[1]
            return sums[0]

    drifting, cap = Drifting(Bernoulli([0.55, 0.5]), drift), 60_000
    found = simulate_quietly(drifting, discreet.dp_se(epsilon, delta), 2, 3, cap)
    for run in range(2):
        outcome = naive.run_dpse(Turns(generator(3, run), "", []), 2, epsilon, delta, cap)
        assert found.samples[run] == outcome.samples
        assert found.recommendation[run] == outcome.recommendation
        assert found.rounds[run] == outcome.rounds > 1
        assert found.pulls[run].tolist() == outcome.pulls
        trace, pulls = np.zeros((outcome.rounds, 6)), np.zeros(2, np.int64)
        again, laws = generator(3, run), make_laws(drifting)
        compile_kernel(run_epochs)(again, laws, epsilon, delta, cap, pulls, trace)
        assert trace == pytest.approx(np.array(outcome.trace), abs=1e-12)


@pytest.mark.parametrize(
    "strategy",
    [
        discreet.adap_tt_star(2, 0.1),
        discreet.ttucb(0.1),
        discreet.ctb_tt(2, 0.1),
        discreet.gauss_tt(4, 0.05, 0.1),
        discreet.dp_se(2, 0.1),
    ],
    ids=lambda strategy: strategy.name,
)
def test_the_steps_of_a_live_run_are_those_of_the_loop(strategy: Strategy) -> None:
    """Compiled loops that draw by person, and live runs: the same draws, the same
    numbers.
    """
    drifting = Drifting(Bernoulli((0.35, 0.75)), Drift.season(0.4, period=50))
    found = simulate_quietly(drifting, strategy, 2, 5, 3000)
    for run in range(2):
        pulls = np.zeros(2, np.int64)
        outcome = run_by_participant(strategy, generator(5, run), make_laws(drifting), 3000, pulls)
        assert found.pulls[run].tolist() == pulls.tolist()
        assert (found.samples[run], found.recommendation[run]) == outcome[:2]
        assert (found.stopped[run], found.rounds[run]) == outcome[2:]


STILL = Drift.season(0.0, period=9)


@pytest.mark.parametrize("strategy", [discreet.ttucb(0.1), discreet.gauss_tt(4, 0.05, 0.1)])
def test_a_drift_of_nothing_changes_no_number(strategy: Strategy) -> None:
    plain = simulate_quietly(Bernoulli(MEANS), strategy, 5, 2, 3000)
    still = simulate_quietly(Drifting(Bernoulli(MEANS), STILL), strategy, 5, 2, 3000)
    assert plain.pulls.tolist() == still.pulls.tolist()


@pytest.mark.parametrize(
    "strategy",
    [
        discreet.adap_tt(5, 0.2),
        discreet.ttucb_batched(0.2, threshold="empirical"),
        discreet.bet_se(0.2, 3),
        discreet.bet_se(0.2, 3, trust="local"),
    ],
    ids=lambda strategy: f"{strategy.name} {strategy.trust}",
)
def test_a_drift_of_nothing_changes_no_law(strategy: Strategy) -> None:
    """Sums of many people drawn at once, or person by person (false-alarm rate 1e-6
    each); a drift is seen.
    """
    arms = Bernoulli((0.2, 0.8))

    def firsts(instance: discreet.Instance, runs: int, seed: int) -> Any:
        return simulate_quietly(instance, strategy, runs, seed, 3000).pulls[:, 0]

    plain = firsts(arms, 200, 2)
    assert ks_2samp(plain, firsts(Drifting(arms, STILL), 200, 3)).pvalue > 1e-6
    assert ks_2samp(plain, firsts(Drifting(arms, Drift.step(-0.6, at=1)), 30, 4)).pvalue < 1e-6


class Tells:
    """Pulls arm 1 until the cap, and notes what it was told."""

    recommendation = 1
    told: list[float]

    def __init__(self, arms: int, delta: float, rng: Any) -> None:
        Tells.told = []

    def ask(self) -> int:
        """Arm 1."""
        return 1

    def tell(self, arm: int, reward: float) -> None:
        """Note it."""
        Tells.told.append(reward)


def test_a_strategy_of_your_own_is_told_of_the_drift() -> None:
    """Chances are 1 and 0 in turn, so that every reward is known."""
    own = UserStrategy("tells", Tells, delta=0.1)
    arms = Drifting(Bernoulli((0.4, 0.5)), Drift.sites(0.5, block=3))
    simulate_quietly(arms, own, 1, 0, 9, threads=1)
    assert Tells.told == [1, 1, 1, 0, 0, 0, 1, 1, 1]


def test_responses_to_rewards_that_drift() -> None:
    """Kept within [0, 1] first, then randomised."""
    laws = make_laws(Drifting(Bernoulli((0.4, 0.9)), Drift.step(0.3, at=1)))
    sent = make_response_laws(laws, 1.5)
    truth = math.exp(1.5) / (1 + math.exp(1.5))
    for person in range(2):
        for arm in range(2):
            p = compute_success_chance(laws, arm, person)
            answer = p * truth + (1 - p) * (1 - truth)
            assert compute_success_chance(sent, arm, person) == pytest.approx(answer, abs=1e-12)
    assert compute_success_chance(laws, 1, 1) == 1.0


class TestUses:
    """Studies, audits, and what is refused."""

    def test_runs_extend_fewer_and_the_spec_says_the_drift(self) -> None:
        arms, strategy = Drifting(Bernoulli((0.2, 0.8)), Drift.sites(0.1)), discreet.dp_se(2, 0.1)
        whole = discreet.simulate(arms, strategy, 5, seed=4)
        part = discreet.simulate(arms, strategy, 2, seed=4, first_run=3)
        assert whole.pulls[3:].tolist() == part.pulls.tolist()
        assert whole.spec["instance"]["drift"] == {"kind": "sites", "size": 0.1, "block": 1}
        assert whole.spec["max_samples"] == 10**7

    def test_a_cap_is_kept(self) -> None:
        arms = Drifting(Bernoulli((0.5, 0.51)), Drift.sites(0.1))
        for strategy in (discreet.adap_tt(1, 0.1), discreet.dp_se(1, 0.1), discreet.ttucb(0.1)):
            found = discreet.simulate(arms, strategy, 2, max_samples=50)
            assert found.pulls.sum(axis=1).tolist() == found.samples.tolist() == [50, 50]

    def test_an_audit_finds_assignment_in_turn(self) -> None:
        """Two sites enrol in turn, DP-SE assigns in turn: one arm has all people of the
        better site, and the wrong one wins.
        """
        even = {"sites": Drifting(Bernoulli((0.4, 0.6)), Drift.sites(0.3))}
        found = discreet.audit_correctness(discreet.dp_se(1, 0.1), 40, instances=even)
        assert found.is_violated
        assert found.max_samples == 200_000
        odd = {"sites": Drifting(Bernoulli((0.4, 0.6)), Drift.sites(-0.3))}
        assert (
            discreet.audit_correctness(discreet.dp_se(1, 0.1), 40, instances=odd).worst.errors == 0
        )

    def test_a_study_has_no_lower_bound_for_it(self, tmp_path: Any) -> None:
        arms = Drifting(Bernoulli((0.2, 0.8)), Drift.trend(0.1, over=100))
        study = discreet.Study({"a": arms, "b": arms.instance}, [discreet.ttucb(0.1)], runs=3)
        drifting, plain = discreet.run_study(study, tmp_path / "study").to_dicts()
        assert drifting["lower_bound"] is None
        assert plain["lower_bound"] > 0
        assert discreet.Study.from_dict(study.to_dict()) == study

    def test_the_way_of_a_run_is_refused(self) -> None:
        arms = Drifting(Bernoulli((0.2, 0.8)), Drift.trend(0.1, over=100))
        with pytest.raises(InvalidInputError, match=r"arms that drift: use \.instance"):
            run_path(arms, discreet.ttucb(0.1))
