"""Outcomes that come late: the compiled loop against a slow queue of events, run for
run and in law; and what is derived where every release waits for the same time.
"""

import heapq
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, ks_2samp

from discreet import (
    Bernoulli,
    Beta,
    Delay,
    Discrete,
    Drift,
    Drifting,
    InvalidInputError,
    Results,
    Strategy,
    adap_tt,
    adap_tt_star,
    bet_se,
    ctb_tt,
    dp_se,
    simulate,
    ttucb,
    ttucb_batched,
)
from discreet.accrual import make_calendar
from discreet.results import COLUMNS
from discreet.simulation import betting
from discreet.simulation.betting import compute_sent_chance as sent_chance
from discreet.simulation.compile import compile_kernel
from discreet.simulation.engine import RunResults, add_days, make_generator, make_run_results
from discreet.simulation.laws import draw_response, make_laws
from discreet.strategies.betting.bets import make_betting_rules, make_bump
from discreet.strategies.betting.book import new_book
from discreet.strategies.betting.rounds import announce_first
from discreet.strategies.run import make_run
from tests.support.naive_calendar import LiveContinuous, NaiveEachPerson, NaiveWaiting

DOSES = (0.35, 0.5, 0.7, 0.55)
ARMS = Bernoulli(DOSES)
DELAYS: dict[str, dict[str, Any]] = {
    "exponential": {"delay": Delay.exponential(40), "deadline": 100.0},
    "no deadline": {"delay": Delay.exponential(40)},
    "some never": {"delay": Delay.fixed(30, never=0.1), "deadline": 90.0},
    "both": {"delay": Delay.exponential(20, never=0.2), "deadline": 50.0},
    "clock": {"delay": Delay.exponential(40), "deadline": 100.0, "release": "scheduled"},
    "late failures": {"delay": Delay.exponential(10, failures=60), "deadline": 80.0},
    "late successes": {"delay": Delay.fixed(70, failures=5), "deadline": 75.0},
}
TRUSTS = [("global", 0.1), ("global", 1.0), ("none", None), ("local", 2.0)]


def slow(kind: type[NaiveWaiting], given: dict[str, Any], *about: Any, **more: Any) -> NaiveWaiting:
    """The slow simulation of a calendar with 2 people a day."""
    delay = given["delay"]
    return kind(
        *about,
        accrual=2.0,
        days=delay.days,
        failures=delay.failures,
        never=delay.never,
        deadline=given.get("deadline", math.inf),
        random=delay.kind == 1,
        clock=given.get("release") == "scheduled",
        **more,
    )


def same(found: Results, row: int, oracle: NaiveWaiting, cap: int) -> bool:
    """Whether a run is the oracle's."""
    expected = oracle.run(make_generator(found.seed, row), cap)
    samples, best, stopped, rounds, pulls = expected
    got = (found.samples[row], found.recommendation[row], found.stopped[row], found.rounds[row])
    assert found.days is not None
    near = math.isclose(found.days[row], oracle.today, rel_tol=1e-9)
    return got == (samples, best, stopped, rounds) and found.pulls[row].tolist() == pulls and near


@pytest.mark.parametrize(("trust", "epsilon"), TRUSTS)
@pytest.mark.parametrize("name", DELAYS)
def test_runs_equal_the_slow_ones(name: str, trust: str, epsilon: float | None) -> None:
    options: list[dict[str, Any]] = [{}, {"target_difference": 0.2}, {"indifference_zone": 0.1}]
    for more in options:
        strategy = bet_se(0.1, epsilon, trust, **more)
        found = simulate(ARMS, strategy, 2, 7, 2000, accrual=2, **DELAYS[name])
        oracle = slow(NaiveWaiting, DELAYS[name], DOSES, epsilon, 0.1, trust=trust, **more)
        assert all(same(found, row, oracle, 2000) for row in range(2))
        assert found.pipeline is not None
        assert not found.pipeline.any()


def late_counts(rng: Any, laws: Any, calendar: Any, arm: int, person: int, people: Any) -> float:
    """A planted mistake: late outcomes count."""
    days = betting.draw_delay(rng, calendar.delay, True)
    people[arm, 0] += 1
    people[arm, 1] += 1
    return float(min(days, calendar.deadline))


def early_release(rng: Any, laws: Any, calendar: Any, arm: int, person: int, people: Any) -> float:
    """A planted mistake: rounds do not wait for those who never answer."""
    days = betting.draw_delay(rng, calendar.delay, True)
    people[arm, 0] += 1
    if days <= calendar.deadline:
        people[arm, 1] += 1
        return days
    return 0.0


@pytest.mark.parametrize("planted", [late_counts, early_release])
def test_planted_mistakes_are_found(planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = DELAYS["both"]
    monkeypatch.setattr(betting, "enrol_participant", planted)
    monkeypatch.setattr("discreet.simulation.compile.compile_kernel", lambda function: function)
    found = simulate(ARMS, bet_se(0.1, 1.0), 2, 7, 3000, accrual=2, **given)
    oracle = slow(NaiveWaiting, given, DOSES, 1.0, 0.1)
    assert not any(same(found, row, oracle, 3000) for row in range(2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["both", "late failures"])
def test_outcomes_drawn_one_by_one_have_the_same_law(name: str) -> None:
    """People and days of 150 runs each; each comparison fails by chance once in
    1000.
    """
    two = (0.2, 0.8)
    strategy = bet_se(0.1, 2.0, "local")
    found = simulate(Bernoulli(two), strategy, 150, 1, 20_000, accrual=2, **DELAYS[name])
    oracle = slow(NaiveEachPerson, DELAYS[name], two, 2.0, 0.1, trust="local")
    rng, people, days = np.random.default_rng(5), [], []
    for _ in range(150):
        people.append(oracle.run(rng, 20_000)[0])
        days.append(oracle.today)
    assert ks_2samp(found.samples, people).pvalue > 1e-3
    assert ks_2samp(found.days, days).pvalue > 1e-3
    fewer = [0.6 * day for day in days]
    assert ks_2samp(found.days, fewer).pvalue < 1e-3, "so many fewer days would not be seen"


# --- continuous enrolment -------------------------------------------------------------


CONTINUOUS = {name: given for name, given in DELAYS.items() if "deadline" in given} | {
    "fixed": {"delay": 40, "deadline": 40.0},
    "long": {"delay": Delay.fixed(400), "deadline": 400.0},
    "longer than the trial": {"delay": Delay.exponential(900), "deadline": 5000.0},
    "at once": {"delay": 0, "deadline": 1.0},
}


def both(name: str, strategy: Strategy, means: tuple[float, ...], rows: int, cap: int) -> bool:
    """Whether compiled runs are the live ones."""
    given = {**CONTINUOUS[name], "delay": Delay.read(CONTINUOUS[name]["delay"])}
    given.pop("release", None)
    arms = Bernoulli(means)
    found = simulate(arms, strategy, rows, 3, cap, accrual=2, enrolment="continuous", **given)
    options = {"trust": strategy.trust}
    lateness = slow(NaiveWaiting, given, means, strategy.epsilon, strategy.delta, **options)
    assert found.days is not None
    assert found.pipeline is not None
    equal = True
    for row in range(rows):
        live_run = LiveContinuous(lateness, strategy)
        *numbers, pulls = live_run.run(make_generator(3, row), cap)
        got = (found.samples[row], found.recommendation[row], found.stopped[row])
        equal = equal and tuple(numbers) == (*got, found.rounds[row])
        equal = equal and found.pulls[row].tolist() == pulls
        equal = equal and math.isclose(found.days[row], live_run.today, rel_tol=1e-9)
        equal = equal and found.pipeline[row] == live_run.flying
    return equal


@pytest.mark.parametrize(("trust", "epsilon"), TRUSTS)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_runs_are_live_ones(name: str, trust: str, epsilon: float | None) -> None:
    """The same people, days, rounds and people in flight, run for run."""
    assert both(name, bet_se(0.1, epsilon, trust), DOSES, 2, 2500)
    assert both(name, bet_se(0.1, epsilon, trust, indifference_zone=0.1), (0.4, 0.6), 1, 2500)


def not_in_order(trip: Any, clock: bool) -> float:
    """A planted mistake: rounds are released as soon as the first outcome is known."""
    return float(min(trip.known_at))


dealt_until = betting.enrol_until


def eager(rng: Any, laws: Any, calendar: Any, *rest: Any) -> int:
    """A planted mistake: people are dealt in an open round past an earlier release."""
    _, size, assigned, trip = rest
    return dealt_until(rng, laws, calendar, math.inf, size, assigned, trip)


@pytest.mark.parametrize(
    ("name", "planted"), [("compute_release_time", not_in_order), ("enrol_until", eager)]
)
def test_planted_mistakes_in_the_queue_are_found(
    name: str, planted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(betting, name, planted)
    monkeypatch.setattr("discreet.simulation.compile.compile_kernel", lambda function: function)
    assert not both("exponential", bet_se(0.1, 1.0), DOSES, 2, 2500)


def test_nobody_is_turned_away() -> None:
    """With continuous enrolment and one delay for all, days are people over accrual and
    those who come while the last outcomes are awaited are in flight.
    """
    given: dict[str, Any] = {"delay": 50, "deadline": 50, "enrolment": "continuous"}
    found = simulate(ARMS, bet_se(0.1, 1.0), 50, 1, accrual=2, **given)
    assert found.days is not None
    assert found.pipeline is not None
    assert (np.abs(found.days * 2 - found.samples) <= 1).all()
    assert set(found.pipeline.tolist()) <= {99, 100}
    waiting = simulate(ARMS, bet_se(0.1, 1.0), 50, 1, accrual=2, delay=50, deadline=50)
    assert waiting.days is not None
    assert waiting.days.mean() > 1.2 * found.days.mean()
    assert waiting.samples.mean() < found.samples.mean()


# --- numbers --------------------------------------------------------------------------


@pytest.mark.parametrize("reward", [0, 1])
@pytest.mark.parametrize(
    "strategy",
    [
        bet_se(0.1, 1.0),
        bet_se(0.1, 1.0, "local"),
        bet_se(0.1, 2.0, "local", outcomes="numbers"),
        bet_se(0.1, 1.0, outcomes="numbers"),
    ],
    ids=["bits", "answers", "levels", "units"],
)
def test_what_sure_rewards_send(reward: int, strategy: Strategy) -> None:
    """Against people who send one by one: means of sum and closeness within five
    standard errors, which fails by chance less than once in a million.
    """
    rules = make_betting_rules(strategy, 2)
    now = announce_first(rules.setting, 1000, new_book(2, rules.bets.tilt.size))
    rng = np.random.default_rng(3)
    bump, setting = make_bump(now.centre, rules.setting.grid), rules.setting
    many = [betting.draw_known_sums(rng, reward, 10, now, setting) for _ in range(2000)]
    each = []
    for _ in range(2000):
        if now.fine:
            sent = [draw_response(rng, float(reward), bump, setting) for _ in range(10)]
        else:
            sent = [(int(rng.random() < sent_chance(reward, setting)), 0) for _ in range(10)]
        each.append(np.sum(sent, axis=0))
    one, other = np.array(many, float), np.array(each, float)
    error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / 2000)
    assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) <= 5 * error).all()


@pytest.mark.parametrize(
    "instance", [Beta([2, 4], [2, 2]), Discrete([0, 0.5, 1], [[0.3, 0.4, 0.3], [0.1, 0.4, 0.5]])]
)
def test_late_numbers_count_as_zero(instance: Any) -> None:
    """Half of the people never answer: an arm's mean is half of what it would be. Both
    simulations take as many people, whatever the law of the sums; KS fails by chance
    once in 1000.
    """
    strategy = bet_se(0.1, 1.0, outcomes="numbers")
    found = simulate(
        instance, strategy, 200, 1, 1e6, accrual=1, delay=Delay.fixed(1, never=0.5), deadline=2
    )
    values = [0.0, *np.linspace(0.005, 0.995, 100).tolist()]
    if isinstance(instance, Discrete):
        halved = Discrete(instance.values, [[0.65, 0.2, 0.15], [0.55, 0.2, 0.25]])
    else:
        edges = np.linspace(0, 1, 101)
        rows = [
            [0.5, *(np.diff(beta.cdf(edges, a, b)) / 2).tolist()]
            for a, b in zip(instance.a, instance.b, strict=True)
        ]
        halved = Discrete(values, rows)
    plain = simulate(halved, strategy, 200, 2)
    assert ks_2samp(found.samples, plain.samples).pvalue > 1e-3
    whole = simulate(instance, strategy, 200, 2)
    assert ks_2samp(found.samples, whole.samples).pvalue < 1e-6


def test_drift_and_delay() -> None:
    """Sites that alternate, half of the outcomes missing: as arms with half the
    chances, which drift half as much.
    """
    moved = Drifting(Bernoulli((0.4, 0.7)), Drift.sites(0.2, block=3))
    halved = Drifting(Bernoulli((0.2, 0.35)), Drift.sites(0.1, block=3))
    given: dict[str, Any] = {"delay": Delay.fixed(1, never=0.5), "deadline": 2}
    found = simulate(moved, bet_se(0.1, 1.0), 300, 1, accrual=1, **given)
    plain = simulate(halved, bet_se(0.1, 1.0), 300, 2)
    assert ks_2samp(found.samples, plain.samples).pvalue > 1e-3


# --- derived --------------------------------------------------------------------------


def live(strategy: Strategy, cap: int, seed: int) -> tuple[RunResults, float, int]:
    """A live run with a queue of events, 4 people a day and outcomes after 11 days:
    what it came to, when it ended, and how many were not released.
    """
    arms, rng = Bernoulli((0.2, 0.9, 0.4)), np.random.default_rng(seed)
    run, found = make_run(strategy, arms.arms, cap, strategy.delta), make_run_results(1, arms.arms)
    events, clock, released = list[tuple[float, int, int]](), 0.0, 0
    known, sums = defaultdict[Any, int](int), defaultdict[Any, float](float)
    while not run.stopped:
        if (place := run.assign_next()) is not None:
            clock += 1 / 4
            heapq.heappush(events, (clock + 11, place.arm, place.phase))
            sums[place.arm, place.phase] += rng.random() < arms.means[place.arm]
            found.pulls[0, place.arm] += 1
            continue
        if not (due := run.list_due()):
            break
        while any(known[arm, phase] < size for arm, phase, size in due):
            day, arm, phase = heapq.heappop(events)
            clock = max(clock, day)
            known[arm, phase] += 1
        run.release([sums[arm, phase] + rng.laplace(0, 0.1) for arm, phase, _ in due])
        found.rounds[0] += len(due) if strategy.is_phased else 1
        released += sum(size for _, _, size in due)
    found.samples[0], found.stopped[0] = run.samples, run.stopped
    return found, clock, run.samples - released


@pytest.mark.parametrize(
    "strategy",
    [adap_tt(10, 0.1), adap_tt_star(10, 0.1), dp_se(10, 0.1), ttucb_batched(0.1)],
    ids=lambda strategy: strategy.name,
)
@pytest.mark.parametrize("cap", [37, 300, 30_000])
def test_each_release_waits_for_the_person_assigned_last(strategy: Strategy, cap: int) -> None:
    """Days and people in flight of a live run are those that samples, releases and
    pulls say.
    """
    calendar, flying = make_calendar(4, 11), 0
    assert calendar is not None
    for seed in range(5):
        found, clock, unreleased = live(strategy, cap, seed)
        add_days(strategy, calendar, found)
        assert found.days[0] == pytest.approx(clock)
        assert found.pipeline[0] == unreleased
        flying += unreleased
    assert flying > 0 or strategy.name == "dp-se"


def test_a_fixed_delay_changes_nothing_but_days() -> None:
    """Nor does a deadline that nobody misses; on the clock every round waits for it."""
    for strategy in (bet_se(0.05, 0.5), dp_se(0.5, 0.05), adap_tt(0.5, 0.05)):
        plain = simulate(ARMS, strategy, 20, 1)
        found = simulate(ARMS, strategy, 20, 1, accrual=3, delay=7, deadline=30)
        clock = simulate(
            ARMS, strategy, 20, 1, accrual=3, delay=7, deadline=30, release="scheduled"
        )
        for name in COLUMNS:
            assert (getattr(plain, name) == getattr(found, name)).all()
        assert plain.days is None
        assert plain.pipeline is None
        assert found.days is not None
        assert clock.days is not None
        releases = plain.rounds - (3 if strategy.is_phased else 0)
        assert found.days.tolist() == pytest.approx((plain.samples / 3 + 7 * releases).tolist())
        assert clock.days.tolist() == pytest.approx((plain.samples / 3 + 30 * releases).tolist())


def test_the_two_ways_to_wait_for_a_fixed_delay_agree() -> None:
    """Derived, and person by person: the same law. KS fails by chance once in 1000."""
    calendar = make_calendar(2, 25)
    assert calendar is not None
    run, days = compile_kernel(betting.run_waiting), []
    rules, laws = make_betting_rules(bet_se(0.1, 1.0), 4), make_laws(ARMS)
    for row in range(300):
        pulls = np.zeros(4, np.int64)
        days.append(run(make_generator(9, row), laws, rules, calendar, 10**6, pulls).days)
    found = simulate(ARMS, bet_se(0.1, 1.0), 300, 1, accrual=2, delay=25)
    assert ks_2samp(found.days, days).pvalue > 1e-3


# --- kept, and refused ----------------------------------------------------------------


def test_files_have_the_columns(tmp_path: Path) -> None:
    found = simulate(ARMS, bet_se(0.1, 1.0), 5, 1, accrual=2, delay=25)
    found.save(tmp_path / "runs.parquet")
    again = Results.load(tmp_path / "runs.parquet")
    assert again.days is not None
    assert found.days is not None
    assert again.days.tolist() == found.days.tolist()
    assert again.spec["calendar"]["delay"] == {"kind": "fixed", "days": 25.0, "never": 0.0}
    assert again.summary()["days_mean"] == pytest.approx(found.days.mean())
    assert again.to_frame().columns[-2:] == ["days", "pipeline"]
    plain = simulate(ARMS, bet_se(0.1, 1.0), 5, 1)
    plain.save(tmp_path / "plain.parquet")
    assert Results.load(tmp_path / "plain.parquet").days is None
    assert "days_mean" not in plain.summary()


def test_more_threads_and_blocks_are_the_same() -> None:
    given: dict[str, Any] = {"accrual": 2, **DELAYS["both"]}
    whole = simulate(ARMS, bet_se(0.1, 1.0), 20, 1, **given)
    part = simulate(ARMS, bet_se(0.1, 1.0), 8, 1, threads=1, first_run=12, **given)
    assert whole.days is not None
    assert part.days is not None
    assert whole.days[12:].tolist() == part.days.tolist()


REFUSED: list[tuple[Any, Any, dict[str, Any], str]] = [
    (ARMS, ttucb(0.1), {"accrual": 1}, "learns from every answer.*use bet-se"),
    (ARMS, ctb_tt(1.0, 0.1), {"accrual": 1, "delay": 3}, "learns from every answer"),
    (ARMS, dp_se(1.0, 0.1), {"accrual": 1, "delay": Delay.exponential(3)}, "late at random.*dp-se"),
    (
        ARMS,
        adap_tt(1.0, 0.1),
        {"accrual": 1, "delay": 3, "deadline": 9, "enrolment": "continuous"},
        "continuous enrolment is for bet-se",
    ),
    (ARMS, adap_tt(1.0, 0.1, episodes="global"), {"accrual": 1}, "global episode"),
    (
        Beta([2, 4], [2, 2]),
        bet_se(0.1, 1.0),
        {"accrual": 1, "delay": Delay.exponential(3, failures=9)},
        "yes or no",
    ),
    (ARMS, bet_se(0.1, 1.0), {"delay": 3}, "also give accrual"),
]


@pytest.mark.parametrize(("instance", "strategy", "given", "words"), REFUSED)
def test_refused(instance: Any, strategy: Strategy, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        simulate(instance, strategy, 2, 1, **given)


def test_caps() -> None:
    """Outcomes that are drawn person by person have the cap of arms that drift."""
    late_ones = simulate(ARMS, bet_se(0.1, 1.0), 2, 1, accrual=1, delay=Delay.exponential(3))
    assert late_ones.spec["max_samples"] == 10**7
    assert simulate(ARMS, bet_se(0.1, 1.0), 2, 1, accrual=1).spec["max_samples"] == 10**12
