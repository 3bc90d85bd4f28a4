"""Studies of what the paper leaves to its theorems: the choice of β, rounds of
adaptivity, and small δ.

Each is a `Question`: cells to simulate, and what they say, all of it computed from the
results. The report is in `discreet.reports.questions`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.errors import InvalidInputError
from discreet.instance import Bernoulli, benchmarks
from discreet.strategies import presets
from discreet.strategies.strategy import Strategy
from discreet.studies.paper import DELTA, QUICK, SEED, Say
from discreet.studies.place import prepare, run_part, write_table
from discreet.studies.run import OnStep
from discreet.studies.study import Study
from discreet.validate import quoted
from discreet.words import counted

if TYPE_CHECKING:
    import polars as pl

SHARES: tuple[float | str, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, "ids")
DELTAS = (1e-1, 1e-2, 1e-4, 1e-7, 1e-10, 1e-15, 1e-20, 1e-30)
LEVELS = (0.1, 0.3, 1.0, 3.0, 10.0)
EPSILON = 1.0
"""Where a study has one ε: that of its private strategies."""
EPISODE_CAP = 10**7
"""Of runs with one global episode, most of which would never end."""
EPISODES = ("arm", "global", "global-yielding")


class Measured(NamedTuple):
    """One cell, and its row in the table."""

    instance: str
    strategy: Strategy
    row: dict[str, Any]

    @property
    def arms(self) -> Bernoulli:
        """The instance itself."""
        return benchmarks[self.instance]


@dataclass(frozen=True)
class Question:
    """What is simulated: strategies by part, some of them with a cap of their own."""

    name: str
    title: str
    strategies: dict[str, tuple[Strategy, ...]]
    caps: dict[str, int]

    def studies(self, instances: Sequence[str], runs: int) -> dict[str, Study]:
        """The parts by name."""
        arms = {name: benchmarks[name] for name in instances}
        return {
            part: Study(arms, mine, runs, SEED, self.caps.get(part))
            for part, mine in self.strategies.items()
        }


def _shares() -> Question:
    made: list[Callable[..., Strategy]] = [
        lambda **parts: presets.ttucb(DELTA, **parts),
        lambda **parts: presets.ctb_tt(EPSILON, DELTA, **parts),
        lambda **parts: presets.adap_tt(EPSILON, DELTA, **parts),
        lambda **parts: presets.adap_tt_star(EPSILON, DELTA, **parts),
    ]
    fixed = tuple(make(beta=share) for make in made for share in SHARES if share != "ids")
    ids = tuple(make(beta="ids") for make in made)
    title = "Which share of the samples the leader should get: β from 0.1 to 0.9, and IDS"
    return Question("beta", title, {"beta": fixed, "beta-ids": ids}, {"beta-ids": EPISODE_CAP * 10})


def _rounds() -> Question:
    private = (presets.adap_tt, presets.adap_tt_star)
    by_arm = [
        presets.ttucb(DELTA),
        presets.ttucb_batched(DELTA),
        *(make(level, DELTA) for make in private for level in LEVELS),
        *(presets.dp_se(level, DELTA) for level in LEVELS),
        *(presets.bet_se(DELTA, epsilon=level) for level in LEVELS),
    ]
    whole = [
        make(level, DELTA, episodes=kind)
        for make in private
        for level in LEVELS
        for kind in EPISODES[1:]
    ]
    parts = {"adaptivity": tuple(by_arm), "adaptivity-global": tuple(whole)}
    title = "How often a strategy must look: rounds of adaptivity against the bound"
    return Question("adaptivity", title, parts, {"adaptivity-global": EPISODE_CAP})


def _deltas() -> Question:
    made = tuple(
        strategy
        for delta in DELTAS
        for strategy in (
            presets.ttucb(delta),
            presets.ctb_tt(EPSILON, delta),
            presets.adap_tt(EPSILON, delta),
            presets.adap_tt_star(EPSILON, delta),
            presets.bet_se(delta, epsilon=EPSILON),
        )
    )
    title = "Samples as δ becomes small: E[τ]/log(1/δ) against the constants of the theorems"
    return Question("delta", title, {"delta": made}, {})


QUESTIONS: dict[str, Callable[[], Question]] = {
    "beta": _shares,
    "adaptivity": _rounds,
    "delta": _deltas,
}


@dataclass(frozen=True)
class Asked:
    """A question with its scope."""

    question: Question
    instances: tuple[str, ...]
    runs: int
    quick: bool


def ask(name: str, runs: int | None = None, quick: bool = False) -> Asked:
    """A question by name; `quick` is the paper's main pair of instances with 100
    runs, else all six with 1000.
    """
    if name not in QUESTIONS:
        raise InvalidInputError(
            f"study must be one of samples, {', '.join(QUESTIONS)}; got {quoted(name)}"
        )
    if runs is not None and (isinstance(runs, bool) or not isinstance(runs, int) or runs < 2):
        raise InvalidInputError(f"runs must be a whole number, 2 or more; got {quoted(runs)}")
    pair: Any = QUICK["instances"]
    default: Any = QUICK["runs"] if quick else 1000
    return Asked(QUESTIONS[name](), pair if quick else tuple(benchmarks), runs or default, quick)


def run_question(
    folder: Path, asked: Asked, progress: OnStep | None = None, say: Say | None = None
) -> tuple["pl.DataFrame", list[Measured]]:
    """Simulate what is missing in a folder, write `table.parquet`; the table, and its
    rows beside their cells.
    """
    import polars as pl

    studies = asked.question.studies(asked.instances, asked.runs)
    prepare(folder, studies, asked.question.name)
    if say is not None:
        cells = sum(len(study.cells) for study in studies.values())
        say(f"{counted(cells, 'cell')} of {counted(asked.runs, 'run')}, in {folder}")
    tables = {part: run_part(folder, studies, part, progress) for part in studies}
    found = [cell for part, table in tables.items() for cell in _measured(studies[part], table)]
    whole = pl.concat(tables.values())
    write_table(folder, whole)
    return whole, found


def _measured(study: Study, table: "pl.DataFrame") -> Iterator[Measured]:
    for cell, row in zip(study.cells, table.to_dicts(), strict=True):
        yield Measured(cell.instance_name, cell.strategy, row)


def per_log(cell: Measured) -> float:
    """Mean samples over log(1/δ); NaN if no run stopped."""
    mean = cell.row["mean"]
    return math.nan if mean is None else float(mean) / math.log(1 / cell.strategy.delta)
