"""Simulations of a plan: with one seed, so that strategies and privacy levels meet the
same luck.
"""

import warnings
from typing import Any, NamedTuple

from discreet.arrays import Doing, Progress
from discreet.calendar import Calendar
from discreet.errors import RoundedWarning
from discreet.instance import Instance
from discreet.results import Results
from discreet.simulation.engine import MayNotStopWarning, simulate
from discreet.simulation.runner import BLOCK
from discreet.strategies.strategy import Strategy
from discreet.validate import check_progress, check_whole


class Example(NamedTuple):
    """Simulated trials of one strategy in one scenario."""

    scenario: str
    strategy: Strategy
    results: Results


class Simulations:
    """Simulations with one seed, each made once; tells how far it is, and warns once of
    a kind.
    """

    def __init__(
        self,
        runs: int,
        seed: int,
        progress: Progress | None,
        calendar: Calendar | None = None,
        doing: Doing | None = None,
    ) -> None:
        check_progress(progress)
        check_progress(doing, "doing")
        self.runs = check_whole("runs", runs, least=1, most=10**9)
        self.seed = seed
        self.calendar = calendar
        self.progress = progress
        self.doing = doing
        self.purpose = "people it takes"
        """What the next simulations are for, in words."""
        self.total = 0
        self.finished = 0
        self.known: dict[Any, Results] = {}
        self.planned: list[Strategy] = []
        """What is planned, not only compared with."""
        self.warned: set[str] = set()

    def expect(self, simulations: int, runs: int | None = None) -> None:
        """About so many simulations more will be asked for, of so many runs."""
        self.total += simulations * (runs or self.runs)

    def __call__(
        self,
        instance: Instance,
        strategy: Strategy,
        most: int | None,
        runs: int | None = None,
        enrolment: str | None = None,
        fresh: int = 0,
    ) -> Results:
        """Trials of at most so many people; as many trials as all others, unless `runs`
        says so, and enrolled as all others, unless `enrolment` does. What learns from
        every answer is only compared with: it has no calendar. `fresh` numbers trials
        of the same seed that no other number has, if all ask for as many.
        """
        calendar = self.calendar
        if calendar is not None:
            calendar = calendar.enrolled(enrolment or calendar.enrolment)
        if strategy.part.each_answer and strategy not in self.planned:
            calendar = None
        key = (instance, strategy, most, runs, calendar, fresh)
        if key not in self.known:
            self._announce(strategy)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", MayNotStopWarning)
                warnings.simplefilter("ignore", RoundedWarning)  # a plan says what it expects
                days = {} if calendar is None else calendar.to_dict()
                results = simulate(
                    instance,
                    strategy,
                    runs or self.runs,
                    self.seed,
                    most,
                    progress=self._tell,
                    first_run=fresh * BLOCK * -(-(runs or self.runs) // BLOCK),
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

    def _announce(self, strategy: Strategy) -> None:
        if self.doing is not None:
            level = "" if strategy.epsilon is None else f" at ε = {strategy.epsilon:.3g}"
            self.doing(f"{self.purpose}: {strategy.name}{level or ' without privacy'}")

    def _tell(self, done: int, _: int) -> None:
        if self.progress is not None:
            now = self.finished + done
            self.progress(now, max(self.total, now))


def right(results: Results) -> int:
    """Runs that stopped in time with the right answer."""
    return int((results.stopped & results.correct).sum())
