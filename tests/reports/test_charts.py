"""The numbers behind every picture, and that the pictures can be drawn and say what
they show.
"""

import math
import re
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from discreet import (
    Bernoulli,
    InvalidInputError,
    Results,
    Strategy,
    adap_tt,
    adap_tt_star,
    benchmarks,
    bet_se,
    ctb_tt,
    dp_se,
    simulate,
    theory,
    ttucb,
)
from discreet.reports import charts
from discreet.reports.charts.style import choose_strategy_styles, make_date_locator
from discreet.simulation.paths import run_path

ARMS = Bernoulli((0.8, 0.5, 0.3), ("A < B", "b & c", "third"))


def written(svg: str) -> str:
    """The words of a picture, whose lines may be broken."""
    return " ".join(re.findall(r">([^<>]+)</text>", svg))


def rows() -> list[dict[str, Any]]:
    base = {"delta": 0.01, "runs": 100, "unstopped": 0, "errors": 0, "std": 50.0, "median": 900.0}
    table: list[dict[str, Any]] = []
    for epsilon, mean in ((1.0, 1000.0), (0.1, 5000.0), (10.0, 800.0)):
        row = {**base, "epsilon": epsilon, "mean": mean, "q10": mean / 2, "q90": mean * 2}
        table.append({**row, "strategy": "bet-se"})
        table.append({**row, "strategy": "adap-tt", "mean": 20 * mean, "unstopped": 7, "std": 1e9})
        table.append(
            {
                **row,
                "strategy": "dp-se",
                "mean": None,
                "median": None,
                "std": None,
                "unstopped": 100,
            }
        )
    free = {**base, "strategy": "ttucb", "epsilon": None, "mean": 400.0, "q10": 1.0, "q90": 2.0}
    return [*table, free]


def test_samples_by_epsilon() -> None:
    data = charts.make_epsilon_data(rows(), benchmarks.mu4, title="mu4")
    curves = {curve.strategy: curve for curve in data.curves}
    assert curves["bet-se"].epsilon == (0.1, 1.0, 10.0)
    assert curves["bet-se"].middle == (5000.0, 1000.0, 800.0)
    assert curves["bet-se"].high == (5050.0, 1050.0, 850.0)
    assert curves["adap-tt"].unstopped == (0.07, 0.07, 0.07)
    assert curves["ttucb"].middle == (400.0, 400.0, 400.0)
    assert all(math.isnan(value) for value in curves["dp-se"].middle)
    assert data.switch == pytest.approx(theory.switch_epsilon_global(benchmarks.mu4))
    first, last = data.bound[0], data.bound[-1]
    assert [first[0], last[0]] == pytest.approx([0.1, 10.0])
    assert first[1] == pytest.approx(
        theory.lower_bound(theory.t_epsilon(benchmarks.mu4, 0.1), 0.01)
    )
    medians = charts.make_epsilon_data(rows(), statistic="median")
    assert medians.curves[0].low == (2500.0, 500.0, 400.0)
    assert medians.switch is None
    assert medians.bound == ()


def test_rows_that_differ_in_more_than_epsilon_are_lines_of_their_own() -> None:
    usual = [{**row, "instance": "mu4", "threshold": "proved"} for row in rows()]
    table = [*usual, *({**row, "threshold": "empirical"} for row in usual)]
    for options in ("scale = 1, code = a", "scale = 2, code = a"):
        own = {"strategy": "mine", "options": options, "correctness": "no guarantee of ours: own"}
        table += [{**row, **own} for row in usual[:7:3]]
    data = charts.make_epsilon_data(table)
    labels = [curve.label for curve in data.curves]
    assert {"AdaP-TT (proved)", "AdaP-TT (empirical)", "TTUCB (no privacy, empirical)"} < {*labels}
    assert labels[-2:] == ["mine (scale = 1, no proof)", "mine (scale = 2, no proof)"]
    assert all(curve.epsilon == (0.1, 1.0, 10.0) for curve in data.curves)
    figure = charts.draw_samples_by_epsilon(data)
    styles = choose_strategy_styles([curve.strategy for curve in data.curves])
    assert len({(look["color"], look["ls"], look["marker"]) for look in styles}) == len(labels)
    assert "no guarantee of ours" in written(charts.render(figure).decode())
    with pytest.raises(InvalidInputError, match="rows are of mu4, mu5"):
        charts.make_epsilon_data([*usual, {**usual[0], "instance": "mu5"}])
    with pytest.raises(InvalidInputError, match="two rows of bet-se have the same"):
        charts.make_epsilon_data([*usual, usual[0]])


def test_a_strategy_that_is_not_ours_has_a_colour_of_its_own() -> None:
    table = [{**row, "strategy": name} for row in rows()[:7:3] for name in ("one", "two", "bet-se")]
    figure = charts.draw_samples_by_epsilon(charts.make_epsilon_data(table))
    colours = {line.get_color() for line in figure.axes[0].lines if line.get_zorder() == 3}
    assert len(colours) == 3
    assert "#6b6b6b" not in colours


def test_the_local_bound_is_the_larger_one() -> None:
    found = charts.make_bound_curve(benchmarks.mu2, [0.1], 0.01, "local")[0][1]
    assert found == pytest.approx(theory.lower_bound(theory.t_local(benchmarks.mu2, 0.1), 0.01))
    assert found > charts.make_bound_curve(benchmarks.mu2, [0.1], 0.01)[0][1]


@pytest.mark.parametrize("scale", ["log-log", "log-linear"])
@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_draw_samples_by_epsilon(scale: str, statistic: str) -> None:
    data = charts.make_epsilon_data(rows(), benchmarks.mu4, statistic=statistic, title="a < b")
    svg = charts.render(charts.draw_samples_by_epsilon(data, scale)).decode()
    shown = written(svg)
    for words in (
        "bet-se",
        "AdaP-TT",
        "TTUCB (no privacy)",
        "lower bound",
        "switch of regimes",
        "a &lt; b",
        statistic,
    ):
        assert words in shown, words
    assert svg == charts.render(charts.draw_samples_by_epsilon(data, scale)).decode()


def test_labels_do_not_overlap() -> None:
    table = [
        {**row, "strategy": name}
        for row in rows()[:1]
        for name in ("bet-se", "adap-tt", "dp-se", "ctb-tt", "x")
    ]
    data = charts.make_epsilon_data([*table, *({**row, "epsilon": 0.01} for row in table)])
    figure = charts.draw_samples_by_epsilon(data)
    charts.render(figure, "png", 60)
    boxes = sorted(
        (text.get_window_extent() for text in figure.axes[0].texts), key=lambda box: float(box.y0)
    )
    assert len(boxes) == 5
    assert all(upper.y0 >= lower.y1 - 3 for lower, upper in pairwise(boxes))


def draw_doses(people: list[int], *ends: float) -> Any:
    """A trial of doses, at each look with these people."""
    names = tuple(f"{dose} mg" for dose in range(10, 10 + len(ends)))
    means = np.array([ends] * len(people))
    about = (None, "estimate", (0.0, 1.0), tuple(range(len(ends))))
    (axes,) = charts.draw_means(charts.TrialMeans(names, np.array(people), means, *about)).axes
    return axes


def test_no_stroke_before_a_name_reads_as_a_minus_sign() -> None:
    for ends, tied in (((0.2, 0.8), 0), ((0.5, 0.501, 0.502), 2)):
        axes = draw_doses([30, 60], *ends)
        strokes = [
            line.get_ydata() for line in axes.lines if line.get_transform() is axes.transAxes
        ]
        assert len(strokes) == tied, ends
        assert all(abs(end - begin) > 0.02 for begin, end in strokes)


@pytest.mark.parametrize(
    ("people", "scale", "words"),
    [
        ([42], "linear", "participants assigned"),
        ([30, 800], "linear", "participants assigned"),
        ([30, 900], "log", "participants assigned, logarithmic"),
    ],
)
def test_a_logarithmic_axis_of_people_says_so(people: list[int], scale: str, words: str) -> None:
    axes = draw_doses(people, 0.2, 0.8)
    assert (axes.get_xscale(), axes.get_xlabel()) == (scale, words)
    low, high = axes.get_xlim()
    assert sum(low <= tick <= high for tick in axes.get_xticks()) >= 3


@pytest.fixture(scope="module")
def results() -> Results:
    return simulate(ARMS, bet_se(0.1, 1.0), 60, 3)


def test_draw_people() -> None:
    nan = float("nan")
    rows = [
        charts.ParticipantsRow("ε < 1", 400, 514.2, 900, 270),
        charts.ParticipantsRow("one length", 300, 300, 300, nan),
        charts.ParticipantsRow("none ends", nan, nan, nan, nan),
    ]
    svg = charts.render(charts.draw_participants(rows, "title", limit=5000)).decode()
    for words in (
        "ε &lt; 1",
        "515",
        "300",
        "none ends",
        "lower bound",
        "median",
        "maximum 5,000",
        "title",
    ):
        assert words in svg, words
    with pytest.raises(InvalidInputError, match="nothing to draw"):
        charts.draw_participants([])


def test_linear_limits_are_for_the_right_end() -> None:
    data = charts.make_epsilon_data(rows())
    low, high = charts.find_sample_limits([data], log=False)
    assert low == 0
    assert high == pytest.approx(2.5 * max(curve.middle[-1] for curve in data.curves))


def test_a_band_below_zero_is_left_out() -> None:
    for strategy, drawn in (
        ("bet-se", True),
        ("adap-tt", False),
    ):  # standard deviations of 50 and of 1e9
        data = charts.make_epsilon_data([row for row in rows() if row["strategy"] == strategy])
        bands = charts.draw_samples_by_epsilon(data).axes[0].collections
        assert any(np.size(path.vertices) for band in bands for path in band.get_paths()) == drawn


def test_distribution(results: Results) -> None:
    data = charts.distribution({"ours": results})
    assert data.runs == (60,)
    assert np.array_equal(data.samples[0], np.sort(results.samples))
    assert b"ours" in charts.render(charts.draw_distribution(data, "title"))


def test_allocation(results: Results) -> None:
    data = charts.allocation(results)
    assert sum(data.share) == pytest.approx(1)
    assert sum(data.ideal) == pytest.approx(1)
    assert data.ideal == pytest.approx(theory.t_epsilon(ARMS, 1.0).allocation)
    assert all(low <= high for low, high in zip(data.low, data.high, strict=True))
    svg = charts.render(charts.draw_allocation(data)).decode()
    assert "A &lt; B (0.8)" in svg
    assert "ideal" in svg


@pytest.mark.parametrize(
    "strategy",
    [
        bet_se(0.1, 1.0),
        bet_se(0.1, 2.0, "local"),
        adap_tt(1.0, 0.1),
        adap_tt_star(1.0, 0.1),
        adap_tt_star(1.0, 0.1, threshold="printed"),
        dp_se(1.0, 0.1),
        ctb_tt(2.0, 0.1),
        ttucb(0.1, threshold="empirical"),
    ],
    ids=lambda s: f"{s.name}-{s.trust}-{s.threshold}",
)
def test_the_way_of_a_run_is_that_run(strategy: Strategy) -> None:
    run = 0 if strategy.estimator in ("epochs", "daf", "dpa") else 2
    found, path = simulate(ARMS, strategy, 3, 5), run_path(ARMS, strategy, 5, run)
    assert path.samples[-1] == found.samples[run]
    assert path.recommendation == found.recommendation[run]
    assert path.stopped
    assert (np.diff(path.samples) >= 0).all()
    assert path.means.shape == path.high.shape == path.evidence.shape == path.released.shape
    known = path.low[~np.isnan(path.low)], path.high[~np.isnan(path.high)]
    assert all((ends >= 0).all() and (ends <= 1).all() for ends in known)
    assert (known[0] <= known[1]).all()
    weakest = path.weakest
    assert weakest[-1] >= 1 - 1e-9
    assert (weakest[:-1] < 1).all()
    svg = charts.render(charts.draw_path(path)).decode()
    for words in ("A &lt; B", "threshold", "participants (samples)", "estimate"):
        assert words in svg


def test_a_run_that_hits_the_cap() -> None:
    path = run_path(Bernoulli((0.51, 0.5)), bet_se(0.01, 1.0), max_samples=1000)
    assert not path.stopped
    assert "hit the cap" in charts.render(charts.draw_path(path)).decode()


def test_what_cannot_be_drawn_is_refused(results: Results) -> None:
    with pytest.raises(InvalidInputError, match="nothing to draw"):
        charts.make_epsilon_data([])
    with pytest.raises(InvalidInputError, match="mean or median"):
        charts.make_epsilon_data(rows(), statistic="mode")
    with pytest.raises(InvalidInputError, match="log-log or log-linear"):
        charts.draw_samples_by_epsilon(charts.make_epsilon_data(rows()), "linear")
    with pytest.raises(InvalidInputError, match="nothing to draw"):
        charts.distribution({})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InvalidInputError, match="global episode"):
            run_path(ARMS, adap_tt(1.0, 0.1, episodes="global"))
    with pytest.raises(InvalidInputError, match="multiple of 64"):
        run_path(ARMS, dp_se(1.0, 0.1), run=3)


def test_without_matplotlib_the_command_to_install_it_is_named() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from discreet import MissingExtraError; from discreet.reports import charts\n"
        "try: charts.draw_distribution(charts.Distribution((), (), ()))\n"
        "except MissingExtraError as error: print(error)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert 'pip install "discreet[plot]"' in shown


@pytest.mark.parametrize("seconds", [2, 40, 155, 175, 3600 * 61, 3600 * 71, 86_400 * 1000])
def test_a_time_axis_of_any_length_has_places_without_a_warning(seconds: int) -> None:
    first = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = make_date_locator().tick_values(first, first + timedelta(seconds=seconds))  # type: ignore[no-untyped-call]
    assert 1 <= len(found) <= 8
