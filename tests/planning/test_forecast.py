"""How a trial may go on: against a naive continuation, person by person."""

import math
from collections import defaultdict

import numpy as np
import pytest

from discreet import adap_tt, adap_tt_star, bet_se, ctb_tt, dp_se
from discreet.planning import forecast as module
from discreet.planning.forecast import Continuation, draw_means, forecast
from discreet.simulation.engine import make_generator
from discreet.simulation.laws import make_bernoulli_laws
from discreet.simulation.per_participant import make_noise_drawer, make_sender
from discreet.strategies.run import Belief, Randomisation, Run, Totals, make_run
from discreet.strategies.strategy import Strategy
from discreet.strategies.units import compute_sum_noise
from discreet.trials.randomisation import default_randomisation

MEANS = np.array([0.15, 0.85, 0.5])
RUNS = 30


def spread(people: int, weights: list[int]) -> list[int]:
    """People as their odds say, but for chance."""
    odds = np.array(weights) / sum(weights)
    found: list[int] = np.random.default_rng(people).multinomial(people, odds).tolist()
    return found


def begun(strategy: Strategy, rounds: int, cap: int = 6000, **randomisation: object) -> Run:
    """A run after some releases, all of them just at their means."""
    way = Randomisation(default_randomisation(strategy), **randomisation)  # type: ignore[arg-type]
    run = make_run(strategy, 3, cap, strategy.delta, randomisation=way)
    for _ in range(rounds):
        run.assign_random(spread)
        run.release([MEANS[place.arm] * place.size for place in run.list_due()])
    return run


def naive(run: Run, number: int) -> tuple[int, bool]:
    """Everybody comes, is dealt and answers, one after the other."""
    rng = make_generator(5, number)
    noise, send = (
        make_noise_drawer(run.strategy, rng),
        make_sender(run.strategy, rng, make_bernoulli_laws(MEANS)),
    )
    waiting = defaultdict[tuple[int, int], float](float)

    def deal(weights: list[int]) -> int:
        return int(np.searchsorted(np.cumsum(weights), rng.random() * sum(weights), "right"))

    while not run.stopped:
        if run.needs_round:
            run.open_round()
        if (place := run.assign_next(deal)) is not None:
            value = send(place.arm, 0)
            if run.releases_each_answer:
                run.record_answer(place.arm, value)
            waiting[place.arm, place.phase] += value
        elif due := run.list_due():
            totals = run.combine([Totals(int(waiting[arm, phase])) for arm, phase, _ in due])
            run.release([total.sum + noise() for total in totals if total is not None])
        else:
            break
    return run.samples, run.stopped


@pytest.mark.parametrize(
    ("strategy", "rounds"),
    [
        (bet_se(0.1, 0.2), 0),
        (bet_se(0.1, 1.0, target_difference=0.3), 1),
        (bet_se(0.1, 1.0, trust="local"), 0),
        (adap_tt_star(2.0, 0.1), 2),
        (dp_se(1.0, 0.1), 0),
    ],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_continuations_are_those_of_people_one_by_one(strategy: Strategy, rounds: int) -> None:
    """The means of log people differ by less than five standard errors: a false alarm
    in a million.
    """
    run = begun(strategy, rounds)
    state, logs = run.dump(), list[list[float]]()
    for play in (
        naive,
        lambda run, number: Continuation(run, make_generator(6, number)).play(MEANS),
    ):
        ends = list[float]()
        for number in range(RUNS):
            run.load(state)
            ends.append(math.log(play(run, number)[0]))
        logs.append(ends)
    error = math.hypot(*(np.std(ends) / math.sqrt(RUNS) for ends in logs))
    assert abs(np.mean(logs[0]) - np.mean(logs[1])) < 5 * error + 1e-9


@pytest.mark.parametrize(
    ("strategy", "sent", "noise"),
    [
        (bet_se(0.1, 0.2), 1.0, 2 / 0.2**2),
        (bet_se(0.1, trust="none"), 1.0, 0.0),
        (bet_se(0.1, 1.0, trust="local"), math.tanh(0.5), 0.0),
        (bet_se(0.1, 1.0, outcomes="numbers"), 1.0, 2.0),
        (bet_se(0.1, rho=0.005), 1.0, compute_sum_noise(bet_se(0.1, rho=0.005)) ** 2),
        (dp_se(0.1, 0.1), 1.0, 2 / 0.1**2),
    ],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_what_is_released_has_the_spread_of_outcomes_and_noise(
    strategy: Strategy, sent: float, noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2000 sums of a round: the mean within five standard errors, the variance within
    25 in 100, as eight of its own.
    """
    run, sums = begun(strategy, 0), list[list[float]]()
    run.assign_random(spread)
    monkeypatch.setattr(run, "release", lambda found, near=None: sums.append(found))
    playing, due = Continuation(run, make_generator(4, 0)), run.list_due()
    for _ in range(2000):
        playing._release_due(due, playing._make_laws(MEANS))
    seen = np.array(sums)
    chance = 0.5 + sent * (MEANS - 0.5)
    size = np.array([place.size for place in due])
    variance = size * chance * (1 - chance) + noise
    assert np.all(np.abs(seen.mean(0) - size * chance) < 5 * np.sqrt(variance / 2000))
    assert np.all(np.abs(seen.var(0) / variance - 1) < 0.25)


def test_people_are_dealt_as_the_odds_say() -> None:
    """Five standard errors."""
    found = Continuation(begun(bet_se(0.1, 1.0), 0), make_generator(4, 0))._split_participants(
        100_000, [1, 0, 3]
    )
    assert abs(found[0] - 25_000) < 700
    assert found[1] == 0


def test_where_every_answer_counts_those_who_are_in_answer_first() -> None:
    run = make_run(ctb_tt(2.0, 0.1), 3, 3000, 0.1)
    for _ in range(30):
        run.assign_next()
    people, _ = Continuation(run, make_generator(1, 0)).play(MEANS)
    assert people >= 30
    assert [arm.pulls for arm in run.view_arms()] == [arm.count for arm in run.view_arms()]


def test_people_under_way_stay_as_many_where_enrolment_does_not_wait() -> None:
    run = begun(bet_se(0.1, 1.0), 1, continuous=True)
    state = run.dump()
    alone = np.mean([_ends(run, state, number) for number in range(20)])
    run.load(state)
    for _ in range(3):
        run.assign_random(spread)
    ahead = run.dump()
    assert np.mean([_ends(run, ahead, number) for number in range(20)]) > alone + 20


def _ends(run: Run, state: dict[str, object], number: int) -> int:
    run.load(state)
    return Continuation(run, make_generator(2, number)).play(MEANS)[0]


def test_numbers_that_lie_close_together_take_fewer_people() -> None:
    run = begun(bet_se(0.1, 1.0, outcomes="numbers"), 0)
    state = run.dump()
    apart = np.mean([_ends(run, state, number) for number in range(20)])
    run.load(state)
    run.book.closeness_totals[:] = 9.0, 10.0, 1.0  # type: ignore[attr-defined]
    assert np.mean([_ends(run, run.dump(), number) for number in range(20)]) < apart


def test_the_band_says_what_is_unknown() -> None:
    early = forecast(begun(bet_se(0.1, 1.0), 1), 3, 60.0)
    late = forecast(begun(bet_se(0.1, 1.0), 3), 3, 60.0)
    assert early is not None
    assert late is not None
    assert early.runs == module.MAX_CONTINUATIONS
    assert early.now < early.low < early.median < early.high <= 6000
    assert late.high / late.low < early.high / early.low
    hopeless = forecast(begun(bet_se(0.01, 0.1), 0, cap=60), 3, 60.0)
    assert hopeless is not None
    assert hopeless.inconclusive == 1.0
    assert hopeless.high <= 60


def test_means_fit_what_was_released() -> None:
    rng = make_generator(1, 1)
    drawn = np.array([draw_means([Belief(0.9, 0.3), Belief(0.2, 0.0)], rng) for _ in range(300)])
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    assert drawn[:, 0].std() > 0.15
    assert (drawn[:, 1] == 0.2).all()


def test_the_time_is_kept_and_too_few_continuations_say_nothing() -> None:
    assert forecast(begun(bet_se(0.1, 1.0), 1), 3, -1.0) is None


def test_beliefs_come_closer_with_every_release() -> None:
    for strategy, rounds in (
        (bet_se(0.1, 1.0), 1),
        (adap_tt_star(2.0, 0.1), 9),
        (adap_tt(None, 0.1, rho=1.0), 9),
        (dp_se(2, 0.1), 1),
    ):
        before, after = (
            begun(strategy, 0).estimate_means(),
            begun(strategy, rounds).estimate_means(),
        )
        assert all(one.error > 0.2 for one in before)
        for belief, mean in zip(after, MEANS, strict=True):
            assert abs(belief.mean - mean) < 3 * belief.error < 0.9
