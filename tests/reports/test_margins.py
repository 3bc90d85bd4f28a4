"""Pictures of runs that release differences, and of runs with a single look."""

import numpy as np

from discreet import Bernoulli, bet_se
from discreet.reports import charts
from discreet.simulation.paths import run_path


def test_a_difference_is_no_mean() -> None:
    """Two arms, one look: nothing is known of either mean, and the picture says so."""
    strategy = bet_se(epsilon=0.05, delta=0.05, target_difference=0.2)
    path = run_path(Bernoulli([0.5, 0.7]), strategy, seed=1)
    assert len(path.samples) == 1
    assert np.isnan(path.means).all()
    assert not path.released.any()
    figure = charts.draw_path(path)
    words = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "no means: only differences\nbetween arms were released" in words
    low, high = figure.axes[-1].get_xlim()
    assert low < path.samples[0] / 1.2 < 1.2 * path.samples[0] < high
    assert any(low < tick < high for tick in figure.axes[-1].get_xticks())
