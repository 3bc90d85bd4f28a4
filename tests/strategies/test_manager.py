"""What a manager may do to a run of bet-se: another maximum, an arm less, one more;
and everything again from the record of the calls.
"""

import json
from typing import Any

import numpy as np
import pytest

from discreet import InvalidInputError, Strategy, bet_se
from discreet.strategies.betting import rounds, schedule
from discreet.strategies.betting.run import BettingRun
from discreet.strategies.run import Randomisation
from tests.support.coins import AHEAD, SIMPLE, opened

DEALINGS = {"waiting": SIMPLE, "ahead": AHEAD}
MEANS = (0.6, 0.5, 0.4, 0.55, 0.7)
CAP = 1500
STRATEGIES = {
    "ε = 1": bet_se(1e-3, epsilon=1.0),
    "dear": bet_se(1e-3, epsilon=0.1),
    "numbers": bet_se(1e-3, epsilon=1.0, outcomes="numbers"),
    "levels": bet_se(1e-3, epsilon=2.0, outcomes="numbers", trust="local"),
    "open": bet_se(1e-3, trust="none"),
}


class Operated:
    """A run on which a manager acts now and then; every call is written down."""

    def __init__(self, strategy: Strategy, randomisation: Randomisation, seed: int) -> None:
        self.strategy, self.randomisation = strategy, randomisation
        self.live = opened(strategy, 3, CAP, randomisation)
        self.rng, self.calls = np.random.default_rng(seed), list[list[Any]]()

    def step(self) -> None:
        live, turn = self.live, self.rng.random()
        if turn < 0.004:
            self.do("set_cap", int(self.rng.integers(live.samples, 2 * CAP)))
        elif turn < 0.008 and len(live.rows) > 2:
            self.do("drop_arm", int(self.rng.choice(live.rows)))
        elif turn < 0.012 and live.arms < 5 and not live.stopped:
            self.do("add_arm")
        elif live.list_due() and (self.rng.random() < 0.02 or not self.free()):
            self.do("release", *self.drawn())
        elif live.needs_round:
            self.do("open_round")
        elif live.count_unassigned():
            self.do("assign_next", int(self.rng.choice(live.arms, p=self.odds())))

    def free(self) -> bool:
        return self.live.needs_round or self.live.count_unassigned() > 0

    def odds(self) -> Any:
        flight = self.live.queue[-1]
        weights = np.zeros(self.live.arms)
        for row, arm in enumerate(self.live.rows):
            odds = flight.plan.odds if row == flight.favoured else 1
            weights[arm] = odds * flight.playing[row]
        return weights / weights.sum()

    def drawn(self) -> tuple[list[float], list[float] | None]:
        """Noisy sums, from bits."""
        live = self.live
        sums = [float(self.rng.binomial(size, MEANS[arm])) for arm, _, size in live.list_due()]
        if live.current.difference:
            sums = [max(sums) - min(sums)]
        return sums, [0.1 * one for one in sums] if live.releases_closeness else None

    def do(self, name: str, *about: Any) -> None:
        self.calls.append([name, *about])
        repeat(self.live, name, *about)


def repeat(live: BettingRun, name: str, *about: Any) -> None:
    """A call from the record."""
    if name == "assign_next":
        assert live.assign_next(lambda _: about[0]) is not None
    else:
        getattr(live, name)(*about)


def played(case: str, randomisation: str, seed: int, steps: int = 900) -> Operated:
    operated = Operated(STRATEGIES[case], DEALINGS[randomisation], seed)
    for _ in range(steps):
        if not operated.live.stopped:
            operated.step()
    return operated


@pytest.mark.parametrize("randomisation", DEALINGS)
@pytest.mark.parametrize("case", STRATEGIES)
def test_the_same_calls_lead_to_the_same_state(case: str, randomisation: str) -> None:
    """Read back from the record, and every few calls from what was stored."""
    names = set[str]()
    for seed in (0, 1):
        one = played(case, randomisation, seed)
        two, three = (opened(one.strategy, 3, CAP, one.randomisation) for _ in range(2))
        for number, call in enumerate(json.loads(json.dumps(one.calls))):
            repeat(two, *call)
            repeat(three, *call)
            if number % 5 == 0 or call[0] in ("drop_arm", "add_arm", "release", "set_cap"):
                again, cap = opened(one.strategy, 3, CAP, one.randomisation), three.cap
                again.cap = cap
                again.load(json.loads(json.dumps(three.dump())))
                assert again.dump() == three.dump() == two.dump()
                assert (again.list_due(), again.needs_round) == (two.list_due(), two.needs_round)
                assert (again.middle_level, again.is_finished) == (
                    two.middle_level,
                    two.is_finished,
                )
                three = again
        assert two.dump() == three.dump() == one.live.dump()
        assert two.view_arms() == three.view_arms()
        names |= {call[0] for call in one.calls}
    assert names == {"set_cap", "drop_arm", "add_arm", "release", "open_round", "assign_next"}


@pytest.mark.parametrize("randomisation", DEALINGS)
@pytest.mark.parametrize("case", STRATEGIES)
def test_everybody_is_counted(case: str, randomisation: str) -> None:
    """Whatever the manager does, each person stays with the arm they were dealt."""
    for seed in (2, 3):
        one = played(case, randomisation, seed)
        dealt = [call[1] for call in one.calls if call[0] == "assign_next"]
        assert len(dealt) == one.live.samples
        views = one.live.view_arms()
        assert [view.pulls for view in views] == [dealt.count(a) for a in range(len(views))]
        for arm, over, *_ in one.live.list_leads():
            assert set(over) | {arm} <= set(range(one.live.arms))


def started(randomisation: Randomisation = SIMPLE, **options: Any) -> BettingRun:
    """A run of four arms after two rounds, the third one half dealt."""
    live = opened(bet_se(0.01, **{"epsilon": 1.0, **options}), 4, 10_000, randomisation)
    for sums in ([40.0, 5.0, 6.0, 30.0], [44.0, 5.0, 6.0, 33.0]):
        if live.needs_round:
            live.open_round()
        while not live.list_due():
            take(live)
        live.release([min(x, batch.size) for x, batch in zip(sums, live.list_due(), strict=False)])
    if live.needs_round:
        live.open_round()
    for _ in range(max(live.count_unassigned() // 2, 1)):
        take(live)
    return live


def take(live: BettingRun) -> None:
    """One after the other."""
    assert live.assign_next(lambda weights: max(_dealable(weights), key=_fewest(live))) is not None


def _dealable(weights: list[int]) -> list[int]:
    return [arm for arm, weight in enumerate(weights) if weight]


def _fewest(live: BettingRun) -> Any:
    return lambda arm: -int(live.queue[-1].assigned[live.rows.index(arm)])


@pytest.mark.parametrize("randomisation", DEALINGS)
def test_a_dropped_arm_is_gone_and_bets_begin_anew(randomisation: str) -> None:
    live = started(DEALINGS[randomisation])
    assert live.book.log_wealth.any()
    before, pulls = live.view_arms(), [view.pulls for view in live.view_arms()]
    means = live.book.mean.copy()
    live.drop_arm(0)
    assert not live.book.log_wealth.any()
    assert not live.book.wealth.any()
    assert not live.book.eliminated.any()
    assert live.book.mean.tolist() == means[1:].tolist()
    assert live.recommendation != 0
    assert live.find_smallest_delta() is None
    assert live.view_arms()[0] == before[0]
    assert [view.pulls for view in live.view_arms()] == pulls
    assert live.assign_next() is None or randomisation == "ahead"
    while live.list_due():
        assert 0 not in [batch.arm for batch in live.list_due()]
        assert live.current.length == 0
        live.release([batch.size / 2 for batch in live.list_due()])
        assert not live.book.wealth.any()
    opening = live.open_round()
    assert [arm for arm, _ in opening.odds] == [1, 2, 3]
    assert live.assign_next(lambda _: 0) is None
    while not live.list_due():
        take(live)
    live.release([5.0, 6.0, 33.0])
    assert live.book.wealth.any()


@pytest.mark.parametrize("randomisation", DEALINGS)
def test_an_added_arm_plays_from_the_next_round_on(randomisation: str) -> None:
    live = started(DEALINGS[randomisation])
    money = live.book.log_wealth.tolist()
    live.add_arm()
    assert live.book.log_wealth.tolist() == [*money, 0.0]
    assert live.assign_next(lambda _: 4) is None
    assert live.view_arms()[4].pulls == 0
    while not live.list_due():
        take(live)
    assert 4 not in [batch.arm for batch in live.list_due()]
    live.release([float(batch.size // 2) for batch in live.list_due()])
    while not live.needs_round:
        take(live)
        if live.list_due():
            live.release([float(batch.size // 2) for batch in live.list_due()])
    assert 4 in [arm for arm, _ in live.open_round().odds]
    assert live.assign_next(lambda _: 4) == (4, live.opened, 1)


def test_a_lower_maximum_cuts_a_round_before_its_next_coin() -> None:
    for randomisation in DEALINGS.values():
        live = started(randomisation)
        people = live.samples
        live.set_cap(people + 3)
        for _ in range(3):
            take(live)
        assert live.assign_next() is None
        assert not live.needs_round
        while live.list_due():
            live.release([float(batch.size // 2) for batch in live.list_due()])
        assert live.is_finished
        assert live.samples == people + 3
        live.set_cap(people + 500)
        assert live.needs_round
        assert not live.is_finished


@pytest.mark.parametrize("arms", [2, 3])
@pytest.mark.parametrize("participants", [1, 2, 20])
def test_the_stakes_of_a_cut_round_are_those_announced(
    arms: int, participants: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With waiting enrolment the kind of bet and its stakes do not follow the size to
    which a lower maximum cuts a round: also where hardly anybody is in it.
    """
    live = opened(bet_se(0.1, 0.1), arms, 10**6)
    live.open_round()
    while not live.list_due():
        take(live)
    live.release([0.0] if arms == 2 else [float(batch.size // 2) for batch in live.list_due()])
    live.open_round()
    plan = live.queue[0].plan
    assert plan.by_tails
    assert plan.difference == (arms == 2)
    live.set_cap(live.samples + participants)
    while not live.list_due():
        take(live)
    now, lengths, weight = live.current, [], arms if arms == 2 else arms + 1
    assert (now.announced, now.length) == (plan.length, participants // weight)
    assert (now.by_tails, now.difference) == (True, arms == 2)
    honest, before = schedule.choose_all_in_share, live.book.log_wealth.copy()

    def record(a: int, rival: int, length: int, *about: Any) -> float:
        lengths.append(length)
        return float(honest(a, rival, length, *about))

    monkeypatch.setattr(rounds, "choose_all_in_share", record)
    released = 1 if now.difference else arms
    live.release([0.0] * released)
    assert lengths == [plan.length] * arms
    assert (live.book.log_wealth != before).all()
    assert len(live.list_leads()) == (0 if arms > 2 else 2 if now.length else 1)


def test_what_an_operator_may_not_do() -> None:
    live = started()
    with pytest.raises(InvalidInputError, match="not in the trial"):
        live.drop_arm(7)
    live.drop_arm(1)
    with pytest.raises(InvalidInputError, match="not in the trial"):
        live.drop_arm(1)
    live.drop_arm(2)
    with pytest.raises(InvalidInputError, match="two arms must be left"):
        live.drop_arm(0)
    with pytest.raises(InvalidInputError, match="indifference zone"):
        started(indifference_zone=0.1).add_arm()
    live.stopped = True
    with pytest.raises(InvalidInputError, match="has stopped"):
        live.add_arm()
