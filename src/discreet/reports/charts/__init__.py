"""Pictures: first a small frozen object with the numbers, then a function that draws it
as a matplotlib Figure.

Importing this does not import matplotlib; drawing does.
"""

from discreet.reports.charts.bars import (
    Allocation,
    EndRow,
    ParticipantsRow,
    allocation,
    draw_allocation,
    draw_ends,
    draw_participants,
)
from discreet.reports.charts.epsilon import (
    EpsilonCurve,
    EpsilonData,
    draw_samples_by_epsilon,
    find_sample_limits,
    make_bound_curve,
    make_epsilon_data,
)
from discreet.reports.charts.lines import (
    Distribution,
    PowerLine,
    distribution,
    draw_distribution,
    draw_power,
)
from discreet.reports.charts.run import draw_path
from discreet.reports.charts.style import render, require_matplotlib
from discreet.reports.charts.trial import (
    FEW_BANDS,
    Arrival,
    EnrolmentCurves,
    Forest,
    ForestRow,
    TrialEvidence,
    TrialMeans,
    draw_enrolment,
    draw_evidence,
    draw_forest,
    draw_means,
    enrolment,
)

__all__ = [
    "FEW_BANDS",
    "Allocation",
    "Arrival",
    "Distribution",
    "EndRow",
    "EnrolmentCurves",
    "EpsilonCurve",
    "EpsilonData",
    "Forest",
    "ForestRow",
    "ParticipantsRow",
    "PowerLine",
    "TrialEvidence",
    "TrialMeans",
    "allocation",
    "distribution",
    "draw_allocation",
    "draw_distribution",
    "draw_ends",
    "draw_enrolment",
    "draw_evidence",
    "draw_forest",
    "draw_means",
    "draw_participants",
    "draw_path",
    "draw_power",
    "draw_samples_by_epsilon",
    "enrolment",
    "find_sample_limits",
    "make_bound_curve",
    "make_epsilon_data",
    "render",
    "require_matplotlib",
]
