"""The evidence against each arm of a live run: nothing at first, enough at the end."""

import math

import numpy as np
import pytest

from discreet import adap_tt_star, bet_se, ctb_tt, dp_se
from discreet.strategies.run import Randomisation, Run, Totals, make_run
from discreet.strategies.strategy import Strategy
from discreet.trials.randomisation import default_randomisation

MEANS = (0.05, 0.95, 0.5)


def run_of(strategy: Strategy) -> Run:
    return make_run(
        strategy,
        3,
        50_000,
        strategy.delta,
        randomisation=Randomisation(default_randomisation(strategy)),
    )


def step(run: Run) -> None:
    """A release, or an answer, just at the means."""
    if run.releases_each_answer:
        place = run.assign_next()
        assert place is not None
        run.record_answer(place.arm, MEANS[place.arm])
        return
    run.assign_random(lambda people, weights: [people * one // sum(weights) for one in weights])
    totals = run.combine([Totals(round(MEANS[one.arm] * one.size)) for one in run.list_due()])
    run.release([float(total.sum) for total in totals if total is not None])


@pytest.mark.parametrize(
    "strategy",
    [bet_se(0.1, 2.0), adap_tt_star(5.0, 0.1), dp_se(5.0, 0.1), ctb_tt(5.0, 0.1)],
    ids=lambda one: one.name,
)
def test_it_grows_from_nothing_to_enough(strategy: Strategy) -> None:
    run = run_of(strategy)
    assert run.measure_evidence() == [None, None, None]
    seen = list[list[float | None]]()
    while not run.stopped:
        step(run)
        seen.append(run.measure_evidence())
    assert seen[-1][1] is None
    assert all(share is not None and share >= 1 for share in (seen[-1][0], seen[-1][2]))
    before = [min(_known(row), default=math.inf) for row in seen[:-1]]
    assert all(least < 1 for least in before if least < math.inf)
    assert run.recommendation == 1


def _known(row: list[float | None]) -> list[float]:
    return [share for share in row if share is not None]


def test_an_arm_that_was_dropped_has_none() -> None:
    run = run_of(bet_se(0.1, 0.5))
    step(run)
    assert run.measure_evidence()[0] is not None
    run.drop_arm(0)
    assert run.measure_evidence()[0] is None
    assert len(run.measure_evidence()) == 3


def test_money_is_the_evidence_of_bets() -> None:
    run = run_of(bet_se(0.1, 0.5))
    step(run)
    book = run.book  # type: ignore[attr-defined]
    shares = np.array([np.nan if one is None else one for one in run.measure_evidence()])
    wanted = np.where(book.eliminated, 1.0, np.clip(book.log_wealth / math.log(10), 0, 0.999))
    np.testing.assert_allclose(shares[[0, 2]], wanted[[0, 2]], rtol=1e-6)
