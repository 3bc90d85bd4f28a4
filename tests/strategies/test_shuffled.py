"""Shuffled places: the counts, releases and decisions of the strategy's own order, and
every order as likely.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from discreet import Strategy, adap_tt
from discreet.errors import DiscreetError, InvalidInputError
from discreet.strategies.phased.run import PhasedRun
from discreet.strategies.presets import PRESETS
from discreet.strategies.run import ArmBatch, DrawArm, Randomisation, Run, ShuffledRun, make_run
from tests.support.oracle import OPTIONS, make

ARMS, CAP = 4, 1500
SHUFFLED = Randomisation("shuffled")


def sums_strategies() -> list[Strategy]:
    """Every preset with its options that learns from released sums."""
    made = [make(name, options) for name, options in OPTIONS]
    kept = [one for one in made if one is not None and not one.spec.each_answer]
    return [one.with_(epsilon=10.0) if one.trust == "global" else one for one in kept]


def named(strategy: Strategy) -> str:
    return f"{strategy.name}-{strategy.sampling}-{strategy.threshold}-{strategy.episodes}"


STRATEGIES = sums_strategies()
ONE_EACH = list({(one.name, one.episodes): one for one in STRATEGIES}.values())
every = pytest.mark.parametrize("strategy", STRATEGIES, ids=named)
each = pytest.mark.parametrize("strategy", ONE_EACH, ids=named)


def at_random(seed: int) -> DrawArm:
    """Each place that is left as likely as any other."""
    rng = random.Random(seed)
    return lambda left: rng.choices(range(len(left)), left)[0]


def shuffled(strategy: Strategy, cap: int = CAP, arms: int = ARMS) -> ShuffledRun:
    run = make_run(strategy, arms, cap, strategy.delta, randomisation=SHUFFLED)
    assert isinstance(run, ShuffledRun)
    return run


def in_turn(strategy: Strategy, cap: int = CAP, arms: int = ARMS) -> Run:
    return make_run(strategy, arms, cap, strategy.delta)


def sums_of(due: list[ArmBatch], means: tuple[float, ...] = (0.9, 0.5, 0.3, 0.2)) -> list[float]:
    """Sums that depend on what is due alone, so that two runs get the same."""
    return [
        size * means[arm] + float(np.random.default_rng([arm, phase, size]).uniform(-0.05, 0.05))
        for arm, phase, size in due
    ]


def test_all_of_them_are_tried() -> None:
    found = {strategy.name for strategy in STRATEGIES}
    assert found == {"adap-tt", "adap-tt-star", "ttucb-batched", "ttucb-forgetting", "dp-se"}
    assert found == {
        name
        for name in PRESETS
        if name != "bet-se"
        and not any(
            one.spec.each_answer for one in [make(name, {"threshold": "proved"})] if one is not None
        )
    }


# --- looking ahead --------------------------------------------------------------------


@every
def test_looking_ahead_takes_the_same_places(strategy: Strategy) -> None:
    """From anywhere between two releases, up to caps that cut and caps that do not."""
    rng = np.random.default_rng(1)
    steps, leaps = in_turn(strategy), in_turn(strategy)
    for _ in range(40):
        cap = steps.samples + int(rng.integers(0, 400))
        steps.set_cap(cap)
        leaps.set_cap(cap)
        for _ in range(int(rng.integers(0, 6))):
            assert steps.assign_next() == leaps.assign_next()
        assert leaps.assign_all() == Run.assign_all(steps)
        assert leaps.dump() == steps.dump()
        if due := steps.list_due():
            steps.release(sums_of(due))
            leaps.release(sums_of(due))
    assert steps.samples > 200 or steps.stopped


def test_a_look_ahead_that_stops_short_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = PhasedRun._assign

    def short(run: PhasedRun, most: int, leaping: bool) -> list[ArmBatch]:
        return usual(run, most - leaping, leaping)

    monkeypatch.setattr(PhasedRun, "_assign", short)
    with pytest.raises(AssertionError):
        test_looking_ahead_takes_the_same_places(STRATEGIES[0])


@pytest.mark.parametrize("episodes", ["arm", "global"])
def test_a_million_people_are_looked_ahead_quickly(episodes: str) -> None:
    run = shuffled(adap_tt(epsilon=0.1, delta=0.05, episodes=episodes), cap=10**9, arms=5)
    longest, slowest = 0, 0.0
    for _ in range(400):
        begun = time.thread_time()
        opening = run.open_round()
        slowest = max(slowest, time.thread_time() - begun)
        longest = max(longest, opening.participants)
        run.samples, run.left[:] = run.inner.samples, 0
        run.release([size * (0.5 + 1e-4 * arm) for arm, _, size in run.list_due()])
        if longest > 10**6:
            break
    assert longest > 10**6
    assert slowest < 2  # of the processor's time; 0.01 is usual


# --- the same decisions ---------------------------------------------------------------


def course(run: Run, deal: DrawArm) -> list[Any]:
    """What is released and decided, to the end: what was due, samples, people of each
    arm, stop and recommendation.
    """
    lines: list[Any] = []
    while not run.is_finished:
        if run.needs_round:
            run.open_round()
        while not (due := run.list_due()) and run.assign_next(deal) is not None:
            assert not run.needs_round or not run.count_unassigned()
        if due:
            run.release(sums_of(due))
        table = [(view.pulls, view.count, view.mean) for view in run.view_arms()]
        lines.append((due, run.samples, table, run.stopped, run.recommendation))
    return lines


@every
def test_the_same_releases_and_decisions(strategy: Strategy) -> None:
    for cap in (3, 90, CAP):
        expected = course(in_turn(strategy, cap), at_random(0))
        run = shuffled(strategy, cap)
        assert course(run, at_random(1)) == expected
        cut = 0 if expected[-1][0] else 1
        assert run.opened == len(expected)
        assert run.opened == sum(bool(line[0]) for line in expected) + cut


def test_a_release_before_everybody_is_dealt_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShuffledRun, "list_due", lambda run: run.inner.list_due())
    with pytest.raises(AssertionError):
        test_the_same_releases_and_decisions(STRATEGIES[0])


@each
def test_a_run_goes_on_from_what_it_wrote(strategy: Strategy) -> None:
    cap = 2700 if strategy.name == "dp-se" else 300
    one, deal, released = shuffled(strategy, cap), at_random(2), 0
    while not one.is_finished:
        two = shuffled(strategy, cap)
        two.load(one.dump())
        assert two.dump() == one.dump()
        assert (two.needs_round, two.is_finished, two.list_due()) == (
            one.needs_round,
            one.is_finished,
            one.list_due(),
        )
        if one.needs_round:
            assert two.open_round() == one.open_round()
        elif due := one.list_due():
            one.release(sums_of(due))
            two.release(sums_of(due))
            released += 1
        else:
            place = one.assign_next(deal)
            assert place is not None
            assert two.assign_next(lambda _, arm=place.arm: arm) == place  # type: ignore[misc]
        assert two.view_arms() == one.view_arms()
        assert two.dump() == one.dump()
    assert released > 0


def test_what_is_stored_is_stored_under_these_names() -> None:
    run = shuffled(ONE_EACH[0])
    run.open_round()
    run.assign_next()
    stored = run.dump()
    assert set(stored) == {"samples", "stopped", "recommendation", "opened", "inner", "arrays"}
    assert stored["arrays"] == {"left": [0, 1, 1, 1], "phase": [1, 1, 1, 1]}
    assert stored["inner"] == run.inner.dump()


@each
def test_recorded_arms_lead_to_the_same_course(strategy: Strategy) -> None:
    arms: list[int] = []
    usual = at_random(3)

    def recorded(left: list[int]) -> int:
        arms.append(usual(left))
        return arms[-1]

    run = shuffled(strategy)
    first = course(run, recorded)
    assert run.find_smallest_delta() == run.inner.find_smallest_delta()
    written = iter(arms)
    assert course(shuffled(strategy), lambda _: next(written)) == first
    assert next(written, None) is None


def test_an_arm_without_places_is_not_dealt() -> None:
    run = shuffled(ONE_EACH[0])
    assert run.assign_next() is None
    run.open_round()
    assert run.assign_next(lambda _: 2) == ArmBatch(2, 1, 1)
    for arm in (2, -1, ARMS):
        assert run.assign_next(lambda _, arm=arm: arm) is None  # type: ignore[misc]
    assert run.samples == 1


# --- order ----------------------------------------------------------------------------


ORDERS, DRAWS, ALARM = 12, 3000, 1e-9
"""Places 2, 1, 1 have 12 orders; the chi-square test on 3000 runs gives a false alarm
with probability 1e-9 (asymptotically).
"""


def unlikely(deal_of: Callable[[DrawArm], DrawArm]) -> bool:
    """Whether the orders of a round with places 2, 1, 1 are not equally frequent."""
    counts: Counter[tuple[int, ...]] = Counter()
    run, deal = shuffled(ONE_EACH[0], arms=3), deal_of(at_random(4))
    run.open_round()
    run.left[:] = (2, 1, 1)
    begun = run.dump()
    for _ in range(DRAWS):
        run.load(begun)
        order = [run.assign_next(deal) for _ in range(4)]
        counts[tuple(place.arm for place in order if place is not None)] += 1
    expected = DRAWS / ORDERS
    statistic = sum((count - expected) ** 2 / expected for count in counts.values())
    statistic += (ORDERS - len(counts)) * expected
    return bool(statistic > chi2.isf(ALARM, ORDERS - 1))


def test_every_order_is_as_likely() -> None:
    assert not unlikely(lambda deal: deal)


def test_arms_dealt_as_if_they_had_one_place_each_are_seen() -> None:
    assert unlikely(lambda deal: lambda left: deal([min(one, 1) for one in left]))


# --- cap, table, what is refused ------------------------------------------------------


def test_the_table_counts_people_who_were_dealt() -> None:
    strategy = ONE_EACH[0]
    run, deal = shuffled(strategy), at_random(5)
    dealt = [0] * ARMS
    for _ in range(300):
        if run.needs_round:
            opening = run.open_round()
            assert opening.participants == sum(size for _, size in opening.odds)
            assert run.count_unassigned() == opening.participants
        elif due := run.list_due():
            run.release(sums_of(due))
        elif (place := run.assign_next(deal)) is not None:
            dealt[place.arm] += 1
        assert [view.pulls for view in run.view_arms()] == dealt
        assert run.samples == sum(dealt)


@each
def test_a_higher_cap_goes_on_where_the_old_one_cut(strategy: Strategy) -> None:
    """With the releases of a run that had the higher cap from the start."""
    expected = [line for line in course(in_turn(strategy, 500), at_random(0)) if line[0]]
    run, lines = shuffled(strategy, 7), []
    for cap in (7, 8, 100, 101, 300, 500):
        run.set_cap(cap)
        assert run.is_finished == run.stopped
        lines += course(run, at_random(6))
        assert run.is_finished
        assert run.samples == cap or run.stopped
    assert [line for line in lines if line[0]] == expected
    assert run.opened >= len(expected)


@each
def test_a_lower_cap_cuts(strategy: Strategy) -> None:
    run, deal = shuffled(strategy, 2 * CAP), at_random(7)
    while (people := run.open_round().participants) < 3 or (
        run.opened < 2 and strategy.name != "dp-se"
    ):
        while run.assign_next(deal) is not None:
            pass
        run.release(sums_of(run.list_due()))
    run.assign_next(deal)
    run.set_cap(run.samples)
    assert run.is_finished
    assert (run.assign_next(deal), run.list_due(), run.needs_round, run.count_unassigned()) == (
        None,
        [],
        False,
        0,
    )
    with pytest.raises(DiscreetError, match="has to be dealt"):
        run.open_round()
    run.set_cap(2 * CAP)
    assert not run.is_finished
    assert sum(run.assign_next(deal) is not None for _ in range(people)) == people - 1
    waiting = run.list_due()
    assert waiting
    run.set_cap(1)
    assert run.list_due() == waiting
    assert not run.is_finished
    run.release(sums_of(waiting))
    assert run.is_finished


def test_what_cannot_be_shuffled_is_refused() -> None:
    strategy = make("ttucb", {"threshold": "proved"})
    assert strategy is not None
    with pytest.raises(InvalidInputError, match="learns from every answer"):
        shuffled(strategy)
    with pytest.raises(InvalidInputError, match="no arm can be dropped"):
        shuffled(ONE_EACH[0]).drop_arm(0)
