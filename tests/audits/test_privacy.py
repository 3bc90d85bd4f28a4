"""The audit of ε finds planted mistakes, and accuses no honest mechanism.

Live noise has no seed: where it is drawn, an honest mechanism would be accused in one
of a million runs of the test.
"""

import json
import math
from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from discreet import (
    CustomThreshold,
    InvalidInputError,
    Strategy,
    adap_tt,
    adap_tt_star,
    audit_privacy,
    bet_se,
    ctb_tt,
    dp_se,
    gauss_tt,
    ttucb,
)
from discreet.audits import rehearsal
from discreet.audits.privacy import (
    RELEASES,
    AuditTarget,
    bound_epsilon,
    count_short_trial,
    extract_features,
    find_critical_tables,
)
from discreet.audits.rehearsal import (
    LiveNoise,
    NoNoise,
    Rehearsal,
    RehearsalTranscript,
    SimulatedNoise,
    make_fixed_keys,
)
from discreet.cli import main
from discreet.numerics import compute_clopper_pearson
from discreet.strategies.phased.run import PhasedRun
from discreet.strategies.run import ArmBatch, ShuffledRun, Totals
from discreet.trials import enrolment, release
from discreet.trials import mechanisms as wall
from discreet.trials.record import Release
from discreet.trials.trial import Trial
from tests.support.audits import SURE, audited, said_in_the_docs

ADAPTIVE = adap_tt(epsilon=1, delta=0.1)
QUICK = adap_tt(
    epsilon=1, delta=0.1, threshold=CustomThreshold("quick", lambda a, b: 3.0 + 0.0 * (a + b))
)


def honest(strategy: Strategy) -> AuditTarget:
    return AuditTarget(strategy, Rehearsal, SimulatedNoise(1), make_fixed_keys(6))


# --- planted mistakes -----------------------------------------------------------------


class TooQuiet(Rehearsal):
    """Noise scaled by 0.8, and responses that tell the truth as if ε were 1/0.8 times
    as large.
    """

    def add_noise(self, total: int) -> int:
        return self.source.add_laplace_noise(total, self.epsilon / 0.8, self.grid)

    def respond(self, outcome: float) -> int:
        if self.strategy.trust == "local":
            return self.source.respond(outcome, self.epsilon / 0.8, self.strategy.gamma)
        return super().respond(outcome)


class Restarting(Rehearsal):
    """After every release the process is restarted from an image, and the generator of
    noise goes back with it.
    """

    image = (0, 0)
    left: Iterator[int]

    def begin(self, *people: Any) -> None:
        draw = self.source.add_laplace_noise
        self.image = (draw(0, self.epsilon, self.grid), draw(0, self.epsilon, self.grid))
        super().begin(*people)

    def release(self, due: list[ArmBatch]) -> list[Release]:
        self.left = iter(self.image)
        return super().release(due)

    def add_noise(self, total: int) -> int:
        return total + next(self.left)


class Remembering(Rehearsal):
    """No forgetting: all samples of an arm in each of its releases, with the noise of
    one.
    """

    def sum_batch(self, arm: int, phase: int) -> int:
        return sum(Rehearsal.sum_batch(self, arm, before) for before in range(1, phase + 1))


class RawStop(Rehearsal):
    """Releases are noisy, but the rule to stop looks at raw means."""

    def begin(self, *people: Any) -> None:
        self.raw = np.zeros(2)
        super().begin(*people)

    def decide(self, released: list[float], raw: list[float]) -> None:
        assert isinstance(self.live, ShuffledRun)
        live = self.live.inner
        assert isinstance(live, PhasedRun)
        for batch, total in zip(live.list_due(), raw, strict=True):
            self.raw[batch.arm] = total / batch.size
        super().decide(released, raw)
        private = live.state.mean.copy()
        live.state.mean[:] = self.raw
        live.stopped = self.live.stopped = live._decide()[1]
        live.state.mean[:] = private


class BareFirst(Rehearsal):
    """Release the first sample of each arm without noise, as the generic meta-algorithm does."""

    first = False

    def release(self, due: list[ArmBatch]) -> list[Release]:
        self.first = due[0].phase == 1
        return super().release(due)

    def add_noise(self, total: int) -> int:
        return total if self.first else super().add_noise(total)


class BareFirstAnswers(Rehearsal):
    """The first answer of each arm is sent as it is."""

    sent = 0

    def begin(self, *people: Any) -> None:
        self.sent = 0
        super().begin(*people)

    def respond(self, outcome: float) -> int:
        self.sent += 1
        return int(outcome) if self.sent <= 2 else super().respond(outcome)


class GoodNewsLate(Rehearsal):
    """Successes take long, and rounds are released as soon as they are complete."""

    def draw_delay(self, number: int, outcome: float) -> float:
        return 500.0 if outcome > 0 else 0.0


class ByTheClock(GoodNewsLate):
    """The same, released by the clock."""

    deadline, by_clock = 600.0, True


class KeyOfOutcomes(Rehearsal):
    """Keys that are made of what was told before."""

    def draw_key(self, round: int) -> bytes:
        return sha256(repr(self.outcomes).encode()).digest()


MISTAKES = {
    "noise scaled by 0.8, a release on bits": (bet_se(0.1, 1.0), TooQuiet, "noise scaled"),
    "noise scaled by 0.8, a release on the fine grid": (ADAPTIVE, TooQuiet, "noise scaled"),
    "noise scaled by 0.8, a response": (ctb_tt(1.0, 0.1), TooQuiet, "responses as if"),
    "noise reused after a restart": (ADAPTIVE, Restarting, "noise reused"),
    "no forgetting with unchanged noise": (ADAPTIVE, Remembering, "no forgetting"),
    "raw means in the stopping rule": (QUICK, RawStop, "raw means"),
    "an unnoised first sample": (ADAPTIVE, BareFirst, "an unnoised first"),
    "an unnoised first answer": (ctb_tt(1.0, 0.1), BareFirstAnswers, "an unnoised first"),
    "good news late": (bet_se(0.1, 1.0), GoodNewsLate, "good news comes late"),
    "good news late, shuffled": (ADAPTIVE, GoodNewsLate, "good news comes late"),
    "a key of outcomes": (bet_se(0.1, 1.0), KeyOfOutcomes, "a key computed from outcomes"),
}
"""Each with the beginning of its row in the docs, where part, runs and the bound that
is found are said.
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_planted_mistakes_are_found(name: str) -> None:
    strategy, mistake, words = MISTAKES[name]
    part, runs, low = said_in_the_docs(words)
    found = audited(strategy, mistake, part, runs)
    assert found.is_violated
    assert found.worst.low > 1.1 > found.epsilon
    assert f"{found.worst.low:.2f}" == low
    assert (
        found.worst.verdict
        == f"violation: at least {found.worst.low:.3f} > 1 at confidence level 0.999999"
    )


@pytest.mark.parametrize(
    ("strategy", "part", "runs"),
    [
        (bet_se(0.1, 1.0), "single", 40_000),
        (ADAPTIVE, "single", 40_000),
        (ctb_tt(1.0, 0.1), "single", 40_000),
        (ADAPTIVE, "first", 400),
        (ADAPTIVE, "later", 400),
        (QUICK, "stop", 4000),
    ],
)
def test_without_the_mistakes_nothing_is_found(strategy: Strategy, part: str, runs: int) -> None:
    honest = audited(strategy, Rehearsal, part, runs)
    assert not honest.is_violated
    assert {leak.verdict for leak in honest.leaks} == {"no violation found"}
    assert honest.worst.low < 1


@pytest.mark.parametrize("strategy", [bet_se(0.1, 1.0), ADAPTIVE], ids=["bet-se", "adap-tt"])
def test_by_the_clock_the_moment_tells_nothing(strategy: Strategy) -> None:
    """What is found, also in so few runs, where a round is released as soon as it is
    complete.
    """
    assert audited(strategy, GoodNewsLate, "first", 300).is_violated
    assert not audited(strategy, ByTheClock, "first", 300).is_violated


class Doubled(Rehearsal):
    """A difference that counts every participant twice, with the noise of one."""

    def add_noise(self, total: int) -> int:
        return super().add_noise(2 * total)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "runs", "leaks"), [(Rehearsal, 400, False), (Doubled, 4000, True)]
)
def test_a_difference_is_audited_too(mechanism: type[Rehearsal], runs: int, leaks: bool) -> None:
    """Two arms at ε = 1/4 release their difference in the first round."""
    strategy = bet_se(0.1, 0.25)
    assert Rehearsal(strategy, 200, NoNoise()).live.current.difference  # type: ignore[attr-defined]
    assert audited(strategy, mechanism, "first", runs).is_violated == leaks


@pytest.mark.slow
def test_raw_means_are_found_with_the_proved_threshold() -> None:
    """257 people, of whom one is enough: on one table the trial stops, on its neighbour
    it never does.
    """
    found = audited(adap_tt(epsilon=1, delta=0.05), RawStop, "stop", 2000)
    (leak,) = found.leaks
    assert (leak.runs, leak.hits, leak.hits_other) == (100, 100, 0)
    assert leak.event.startswith("the number of people is at least 257")
    assert found.is_violated


@pytest.mark.slow
def test_live_noise_scaled_by_eight_tenths_is_found() -> None:
    found = audit_privacy(bet_se(0.1, 1.0), 8000, 0.99, parts=["single"], rehearsal=TooQuiet)
    assert found.is_violated
    assert found.worst.noise == "opendp"


# --- honest mechanisms ----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [
        bet_se(0.1, 1.0),
        bet_se(0.1, 1.0, trust="local"),
        ctb_tt(1.0, 0.1),
        gauss_tt(1.0, 0.01, 0.1),
        ADAPTIVE,
        adap_tt_star(epsilon=0.5, delta=0.1),
        dp_se(1.0, 0.1),
    ],
    ids=lambda strategy: f"{strategy.name} {strategy.trust}",
)
def test_honest_mechanisms_are_not_accused(strategy: Strategy) -> None:
    found = audit_privacy(strategy, 120, SURE)
    assert not found.is_violated
    assert found.leaks[0].name == ("response" if strategy.trust == "local" else "release")
    assert found.leaks[0].noise == "opendp"
    assert {leak.noise for leak in found.leaks[1:]} == {"opendp" if strategy.gamma else "numpy"}
    assert len(found.leaks) + len(found.left_out) == 4


def test_the_bound_comes_close_to_the_promise() -> None:
    """So that an audit says something: of the whole ε = 1 nine tenths are shown."""
    found = audited(bet_se(0.1, 1.0), Rehearsal, "single", 80_000)
    assert 0.9 < found.worst.low <= 1


# --- parts ----------------------------------------------------------------------------


@pytest.mark.real_chance
@pytest.mark.parametrize(("epsilon", "grid"), [(1.0, 1), (0.3, 1), (1.0, 16)])
def test_numpy_draws_the_law_of_live_noise(epsilon: float, grid: int) -> None:
    """Both against the exact law, by chi-squared statistics that are exceeded with
    probability 1e-9.
    """
    draws = 4000
    decay = math.exp(-epsilon / grid)
    edge = math.ceil(2.5 * grid / epsilon)
    values = np.arange(-edge, edge + 1)
    law = (1 - decay) / (1 + decay) * decay ** np.abs(values)
    expected = np.concatenate([law, [1 - law.sum()]]) * draws
    for source in (LiveNoise(), SimulatedNoise(2)):
        drawn = np.array([source.add_laplace_noise(5, epsilon, grid) for _ in range(draws)]) - 5
        seen = np.array(
            [*((drawn == value).sum() for value in values), (np.abs(drawn) > edge).sum()]
        )
        freedom = values.size
        chi = float(((seen - expected) ** 2 / expected).sum())
        assert chi < freedom + 2 * math.sqrt(20.8 * freedom) + 2 * 20.8, (
            source.name
        )  # Laurent & Massart 2000


@pytest.mark.slow
def test_numpy_draws_the_law_of_live_responses() -> None:
    flipped = 1 / (1 + math.e)
    for source in (LiveNoise(), SimulatedNoise(2)):
        for outcome in (0, 1):
            lies = sum(source.respond(outcome, 1.0, None) != outcome for _ in range(4000))
            low, high = compute_clopper_pearson(lies, 4000, SURE)
            assert low < flipped < high


@pytest.mark.parametrize(
    "strategy",
    [
        ADAPTIVE,
        adap_tt_star(1, 0.1),
        dp_se(5.0, 0.5),
        bet_se(0.1, 1.0),
        ttucb(0.1),
        *(bet_se(0.1, epsilon, outcomes="numbers") for epsilon in (0.2, 1.0, 5.0)),
    ],
    ids=lambda strategy: f"{strategy.name} {strategy.outcomes} {strategy.epsilon}",
)
def test_a_rehearsal_is_the_live_trial(
    strategy: Strategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same outcomes and noise lead to the same assignments, releases, stop and
    recommendation.
    """
    keys = make_fixed_keys(6)
    people = count_short_trial(honest(strategy))
    table = np.random.default_rng(3).integers(0, 2, (people, 2)) / 1.0
    if strategy.outcomes == "numbers":
        table[::3] = 0.75
    for room in (release, rehearsal):
        monkeypatch.setattr(room, "to_units", lambda y, grid: round(y))

    class Counted(NoNoise):
        def __init__(self) -> None:
            self.steps = count(1)

        def add_laplace_noise(self, total: int, epsilon: float, grid: int) -> int:
            return total + next(self.steps) * grid // 3

        def add_noise_to_totals(self, total: Totals, epsilon: float, grid: int) -> Totals:
            made = self.add_laplace_noise(total.sum, epsilon, grid)
            near = None if total.near is None else self.add_laplace_noise(total.near, epsilon, grid)
            return Totals(made, near)

    mine = Rehearsal(strategy, people, Counted(), keys=keys).run(table)
    noise = Counted()
    monkeypatch.setattr(wall, "add_laplace_noise", noise.add_noise_to_totals)
    rounds = count(1)
    monkeypatch.setattr(enrolment, "draw_key", lambda: keys(next(rounds)))
    trial = Trial.create(f"sqlite:///{tmp_path}/trial.db", "twin", ["a", "b"], strategy, people)
    arms: list[int] = []
    while batch := trial.ask(1 if strategy.name == "ttucb" else 1000).assignments:
        told = {}
        for place in batch:
            arms.append("ab".index(place.arm))
            told[place.id] = float(table[len(arms) - 1, arms[-1]])
        trial.tell_many(told)
    record = trial.transcript()
    published = [one for event in record["events"] for one in event.get("releases", [])]
    if strategy.name == "ttucb":
        units = [units for event in record["events"] for _, units in event.get("answers", [])]
        assert [release.sum for release in mine.releases] == units
    else:
        parts = ("arm", "phase", "count", "sum", "near")
        assert mine.releases == [tuple(one.get(part) for part in parts) for one in published]
    opened = [event for event in record["events"] if event["kind"] == "opened"]
    said = ("round", "odds", "participants", "commit")
    assert [one[:4] for one in mine.openings] == [tuple(e[name] for name in said) for e in opened]
    revealed = [key for event in record["events"] for key in event.get("keys", [])]
    assert [[*key] for key in mine.keys] == revealed
    assert bool(revealed) == (strategy.name != "ttucb")
    assert mine.arms == arms
    assert mine.recommendation is not None
    assert mine.stopped == record["status"]["conclusive"]
    assert "ab"[mine.recommendation] == record["status"]["recommendation"]


@pytest.mark.parametrize(
    "strategy",
    [
        ADAPTIVE,
        dp_se(5.0, 0.5),
        bet_se(0.1, 1.0),
        ctb_tt(1.0, 0.1),
        bet_se(0.1, 5.0, outcomes="numbers"),
        bet_se(0.1, 2.0, trust="local", outcomes="numbers"),
    ],
)
def test_runs_know_nothing_of_each_other(strategy: Strategy) -> None:
    people, keys = count_short_trial(honest(strategy)), make_fixed_keys(6)
    tables = np.random.default_rng(4).integers(0, 2, (3, people, 2))
    trial = Rehearsal(strategy, people, NoNoise(), keys=keys)
    ends = [trial.run(table) for table in tables]
    others = [Rehearsal(strategy, people, NoNoise(), keys=keys) for _ in tables]
    assert ends == [one.run(table) for one, table in zip(others, tables, strict=True)]


def test_one_person_decides_on_critical_tables() -> None:
    numbers = bet_se(0.1, 1.0, outcomes="numbers")
    for strategy in (QUICK, bet_se(0.1, 1.0), dp_se(1.0, 0.1), numbers):
        tables = find_critical_tables(honest(strategy))
        assert tables is not None
        assert (tables[0] != tables[1]).any(axis=1).sum() == 1
        ends = [honest(strategy).make_silent_trial(tables.shape[1]).run(table) for table in tables]
        assert [(end.stopped, end.recommendation) == (True, 0) for end in ends] == [True, False]
    assert find_critical_tables(honest(adap_tt(epsilon=0.01, delta=0.01))) is None


def test_features() -> None:
    releases = [Release(0, 1, 1, 2), Release(1, 1, 1, -4), Release(0, 2, 1, 6)]
    values = extract_features(RehearsalTranscript([0, 1, 0], releases, True, 1), 2)
    assert values[: len(RELEASES)] == pytest.approx(
        [1, 3, *[math.nan] * 2, -2, *[math.nan] * 3], nan_ok=True
    )
    assert values[len(RELEASES)] == -2
    assert values[-10:] == pytest.approx([3, 3, 1, 2, 1, *[math.nan] * 5], nan_ok=True)
    mixed = [Release(0, 1, 1, 2, 1), Release(1, 1, 1, -4, 0), Release(0, 2, 1, 6)]
    values = extract_features(RehearsalTranscript([0, 1, 0], mixed, True, 1), 2, numbers=True)
    assert values[:2] == [1, 6]  # the last one is a sum of bits
    assert values[4] == -2


def test_bounds_are_bonferroni() -> None:
    found = audit_privacy(ADAPTIVE, 400, SURE, "numpy", 1, parts=("single", "first"))
    tail = (1 - SURE) / 8
    for leak in found.leaks:
        low = compute_clopper_pearson(leak.hits, 200, 1 - 2 * tail)[0]
        high = compute_clopper_pearson(leak.hits_other, 200, 1 - 2 * tail)[1]
        assert leak.low == pytest.approx(max(math.log(max(low, 1e-9) / high), 0))
    assert "2 rows in both directions" in found.rule
    assert "1e-06/8 (Bonferroni)" in found.rule


def test_gamma_is_taken_off() -> None:
    low, high = compute_clopper_pearson(300, 400, 0.9)[0], compute_clopper_pearson(40, 400, 0.9)[1]
    assert bound_epsilon(300, 40, 400, 0.05, 0.1) == pytest.approx(math.log((low - 0.1) / high))
    assert bound_epsilon(10, 0, 400, 0.05, 0.1) == bound_epsilon(10, 300, 400, 0.05) == 0


def test_bounds_hold_as_often_as_they_say() -> None:
    """P = 0.6 and 0.3, so ε = log 2; at a tail of 0.05 for each of two bounds at most a
    tenth may be too high.
    """
    rng = np.random.default_rng(4)
    counts = zip(rng.binomial(200, 0.6, 300), rng.binomial(200, 0.3, 300), strict=True)
    wrong = sum(
        bound_epsilon(int(here), int(there), 200, 0.05) > math.log(2) for here, there in counts
    )
    assert wrong <= 30


# --- the command, and bad input -------------------------------------------------------


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", "privacy", *arguments])


@pytest.mark.slow
def test_command() -> None:
    options = (
        "--strategy",
        "adap-tt",
        "--epsilon",
        "1",
        "--delta",
        "0.5",
        "--runs",
        "40",
        "--noise",
        "numpy",
    )
    result = run(*options, "--seed", "3", "--level", "0.999", "--json")
    assert result.exit_code == 0, result.output
    expected = audit_privacy(adap_tt(epsilon=1, delta=0.5), 40, 0.999, "numpy", 3).to_dict()
    assert json.loads(result.stdout) == json.loads(json.dumps(expected))
    table = run(*options)
    assert table.exit_code == 0
    words = " ".join(table.stdout.split())
    for part in ("transcript, the stop", "Bonferroni", "No violation found; the largest bound"):
        assert part in words
    local = run("--strategy", "gauss-tt", "--epsilon", "1", "--gamma", "0.01", "--runs", "40")
    assert "γ = 0.01 was subtracted" in local.stdout


def test_a_violation_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "discreet.audits.privacy.audit_privacy",
        lambda *_, **__: audited(QUICK, BareFirst, "first", 400),
    )
    words = " ".join(run("--strategy", "adap-tt", "--epsilon", "1").stdout.split())
    assert "VIOLATED: transcript, person 2, ε is at least" in words
    assert "Violation: at least" in words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"level": 1.0}, "level must lie"),
        ({"runs": 10}, "runs must be"),
        ({"noise": "loud"}, "noise must be one of mixed, opendp, numpy"),
        ({"parts": ["double"]}, "parts must be some of single, first, later, stop"),
        ({"parts": []}, "nothing to audit"),
    ],
)
def test_bad_input(change: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        audit_privacy(ADAPTIVE, **change)  # type: ignore[arg-type]


def test_without_privacy_there_is_nothing_to_audit() -> None:
    with pytest.raises(InvalidInputError, match="promises no privacy"):
        audit_privacy(bet_se(0.1, trust="none"))
    result = run("--strategy", "ttucb")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "promises no privacy" in result.stderr


# --- Gaussian noise -------------------------------------------------------------------


class Narrow(Rehearsal):
    """Gaussian noise of a third of the scale."""

    def add_noise(self, total: int) -> int:
        return self.source.add_gaussian_noise(total, self.sigma / 3, 1)


@pytest.mark.parametrize("levels", [{"epsilon": 2.0, "gamma": 1e-3}, {"rho": 0.15}])
def test_gaussian_noise_is_audited_and_too_little_is_caught(levels: dict[str, Any]) -> None:
    """Of a release; the same promise with a third of the noise is found out."""
    strategy = bet_se(0.1, **levels)
    found = audit_privacy(strategy, 4000, noise="numpy", seed=1, parts=["single"])
    assert not found.is_violated
    assert found.gamma == 1e-3
    assert found.epsilon == pytest.approx(2, abs=0.5)
    assert ("rho" in found.to_dict()) == ("rho" in levels)
    planted = audit_privacy(
        strategy, 4000, noise="numpy", seed=1, parts=["single"], rehearsal=Narrow
    )
    assert planted.is_violated


def test_a_whole_trial_with_gaussian_noise_is_audited() -> None:
    strategy = bet_se(0.2, epsilon=4.0, gamma=1e-3)
    found = audit_privacy(strategy, 400, noise="numpy", seed=1, parts=["first", "later"])
    assert not found.is_violated
    assert len(found.leaks) >= 1
