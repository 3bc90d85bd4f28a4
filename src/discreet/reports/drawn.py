"""The pictures of a trial's report."""

from typing import Any

import numpy as np

from discreet.reports import charts
from discreet.reports.arms import MOST_SHOWN, arms_shown, shown_words
from discreet.reports.compared import Compared
from discreet.reports.course import TrialPath
from discreet.reports.page import Picture
from discreet.words import cut


def trial_drawings(path: TrialPath, said: dict[str, Any]) -> dict[str, Picture]:
    """Private `means` and the `evidence` against each arm at each look, as far as they
    are there. An arm is marked as the best only if it was found to be.
    """
    found, protocol = dict[str, Picture](), said["protocol"]
    shown = _shown(path, protocol["direction"])
    if not np.isnan(path.means).all():
        span = (protocol["low"], protocol["high"])
        chosen = path.recommendation if said["status"]["conclusive"] else None
        about = (chosen, _mean_words(protocol), span, shown, path.low, path.high)
        data = charts.TrialMeans(path.names, path.people, path.means, *about)
        words = (
            f"The private mean of each of {len(path.names)} arms at each look, against the people "
            "assigned."
        )
        if len(path.names) <= charts.FEW_BANDS and not np.isnan(path.low).all():
            words += " Bands: the intervals of the table above."
        words += shown_words(len(path.names))
        found["means"] = Picture(charts.render(charts.draw_means(data)), words, words)
    if not np.isnan(path.evidence).all():
        shares = charts.TrialEvidence(path.names, path.people, path.evidence, shown)
        words = (
            "The evidence against each arm at each look, as a share of what eliminates an arm; an "
            f"arm has no line while it leads.{shown_words(len(path.names))}"
        )
        found["evidence"] = Picture(charts.render(charts.draw_evidence(shares)), words, words)
    return found


def _shown(path: TrialPath, direction: str) -> tuple[int, ...]:
    """The arms that all pictures of a trial show."""
    if not len(path.people):
        return ()
    sign = 1 if direction == "max" else -1
    last = sign * path.means[-1]
    return tuple(arms_shown(last, path.evidence[-1] >= 1, [path.recommendation]))


def standing_picture(said: dict[str, Any]) -> Picture | None:
    """Where the arms stand now: means with their intervals, the best first."""
    protocol, status = said["protocol"], said["status"]
    arms = [arm for arm in status["arms"] if arm["mean"] is not None]
    if not arms or not any(arm["interval"] for arm in arms):
        return None
    arms.sort(key=lambda arm: arm["mean"], reverse=protocol["direction"] == "max")
    best = status["recommendation"] if status["conclusive"] else None
    rows = tuple(
        charts.ForestRow(
            arm["name"],
            arm["mean"],
            None if arm["interval"] is None else tuple(arm["interval"]),
            arm["name"] == best,
        )
        for arm in arms[:MOST_SHOWN]
    )
    span = (protocol["low"], protocol["high"])
    words = f"The private mean of each arm with its interval.{_left_out(len(arms))}"
    words += " Filled: the arm that was found to be the best." if best is not None else ""
    data = charts.Forest(rows, _mean_words(protocol), span, len(arms))
    return Picture(charts.render(charts.draw_forest(data)), words, words)


def compared_picture(said: dict[str, Any], compared: Compared) -> list[Picture]:
    """The differences with their intervals, the largest gain first."""
    protocol = said["protocol"]
    names = [arm["name"] for arm in said["status"]["arms"]]
    upwards = protocol["direction"] == "max"
    ordered = sorted(compared.rows, key=lambda row: row.difference, reverse=upwards)
    rows = tuple(
        charts.ForestRow(names[row.arm], row.difference, row.interval)
        for row in ordered[:MOST_SHOWN]
    )
    reach = protocol["high"] - protocol["low"]
    better = "right" if upwards else "left"
    words = (
        f"The differences from {names[compared.reference]} with their intervals; to the {better} "
        f"of the line an arm did better.{_left_out(len(compared.rows))}"
    )
    span, other = (-reach, reach), cut(names[compared.reference])
    data = charts.Forest(rows, "difference from", span, len(ordered), True, other)
    return [Picture(charts.render(charts.draw_forest(data)), words, words)]


def _mean_words(protocol: dict[str, Any]) -> str:
    better = "more is better" if protocol["direction"] == "max" else "less is better"
    return f"private mean ({better})"


def _left_out(count: int) -> str:
    if count <= MOST_SHOWN:
        return ""
    return f" The first {MOST_SHOWN} of {count}; the table has all."
