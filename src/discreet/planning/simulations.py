"""Simulations of a plan: with one seed, so that strategies and privacy levels meet the
same luck.
"""

import warnings
from typing import Any

from discreet.arrays import Progress
from discreet.calendar import Calendar
from discreet.instance import Instance
from discreet.results import Results
from discreet.simulation.engine import MayNotStopWarning, simulate
from discreet.strategies.strategy import Strategy
from discreet.validate import check_progress, check_whole


class Simulations:
    """Simulations with one seed, each made once; tells how far it is, and warns once of
    a kind.
    """

    def __init__(
        self,
        runs: int,
        seed: int,
        progress: Progress | None,
        expected: int,
        calendar: Calendar | None = None,
    ) -> None:
        check_progress(progress)
        self.runs = check_whole("runs", runs, least=1, most=10**9)
        self.seed = seed
        self.calendar = calendar
        self.progress = progress
        self.total = expected * self.runs
        self.finished = 0
        self.known: dict[Any, Results] = {}
        self.planned: list[Strategy] = []
        """What is planned, not only compared with."""
        self.warned: set[str] = set()

    def __call__(
        self,
        instance: Instance,
        strategy: Strategy,
        most: int | None,
        runs: int | None = None,
        enrolment: str | None = None,
    ) -> Results:
        """Trials of at most so many people; as many trials as all others, unless `runs`
        says so, and enrolled as all others, unless `enrolment` does. What learns from
        every answer is only compared with: it has no calendar.
        """
        calendar = self.calendar
        if calendar is not None:
            calendar = calendar.enrolled(enrolment or calendar.enrolment)
        if strategy.part.each_answer and strategy not in self.planned:
            calendar = None
        key = (instance, strategy, most, runs, calendar)
        if key not in self.known:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", MayNotStopWarning)
                days = {} if calendar is None else calendar.to_dict()
                results = simulate(
                    instance,
                    strategy,
                    runs or self.runs,
                    self.seed,
                    most,
                    progress=self._tell,
                    **days,
                )
            for text in {str(warning.message) for warning in caught} - self.warned:
                self.warned.add(text)
                warnings.warn(f"{strategy.name}: {text}", MayNotStopWarning, stacklevel=4)
            if results.interrupted:
                raise KeyboardInterrupt
            self.finished += results.runs
            self.known[key] = results
        return self.known[key]

    def _tell(self, done: int, _: int) -> None:
        if self.progress is not None:
            now = self.finished + done
            self.progress(now, max(self.total, now))


def right(results: Results) -> int:
    """Runs that stopped in time with the right answer."""
    return int((results.stopped & results.correct).sum())
