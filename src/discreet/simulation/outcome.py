"""What simulated runs come to."""

from typing import NamedTuple

import numpy as np

from discreet.arrays import Flags, Floats, Ints


class Outcome(NamedTuple):
    """One run; its pulls are written beside it."""

    samples: int
    recommendation: int
    stopped: bool
    """Whether it stopped by its rule, not at the cap."""
    rounds: int
    """Releases, or rounds of releases."""


class Outcomes(NamedTuple):
    """Many runs, a row each."""

    samples: Ints
    recommendation: Ints
    stopped: Flags
    rounds: Ints
    pulls: Ints
    """[run, arm]"""
    days: Floats
    """From the first day of enrolment to the end, where there is a calendar."""
    in_flight: Ints
    """People assigned and not released at the end, where there is a calendar."""

    def part(self, rows: slice | Flags) -> "Outcomes":
        """Some of the runs; what is written into a slice is written here."""
        return Outcomes(
            self.samples[rows],
            self.recommendation[rows],
            self.stopped[rows],
            self.rounds[rows],
            self.pulls[rows],
            self.days[rows],
            self.in_flight[rows],
        )

    def write(self, row: int, found: Outcome) -> None:
        """Note what one run came to, but for its pulls."""
        self.samples[row] = found.samples
        self.recommendation[row] = found.recommendation
        self.stopped[row] = found.stopped
        self.rounds[row] = found.rounds


def new_outcomes(runs: int, arms: int) -> Outcomes:
    """Nothing simulated yet."""
    return Outcomes(
        np.zeros(runs, np.int64),
        np.zeros(runs, np.int64),
        np.zeros(runs, np.bool_),
        np.zeros(runs, np.int64),
        np.zeros((runs, arms), np.int64),
        np.zeros(runs),
        np.zeros(runs, np.int64),
    )


def no_trace(arms: int) -> Floats:
    """Room for no rows: most runs are not written down."""
    return np.zeros((0, 4 + arms))
