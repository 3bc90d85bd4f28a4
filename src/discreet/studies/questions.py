"""Studies of what the paper leaves to its theorems: the choice of β, rounds of
adaptivity, and small δ.

Each is a `StudyQuestion`: cells to simulate, and what they say, all of it computed from the
results. The report is in `discreet.reports.paper`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet import theory
from discreet.errors import InvalidInputError
from discreet.instances import Bernoulli, benchmarks
from discreet.strategies import presets
from discreet.strategies.strategy import Strategy
from discreet.studies.findings import CellTally, Finding, format_span
from discreet.studies.paper import DELTA, QUICK, SEED, Say, prepare_folder, run_part, write_table
from discreet.studies.run import OnStep
from discreet.studies.study import Study
from discreet.theory import bounds
from discreet.validation import quote
from discreet.wording import format_count, format_short, format_strategy_name

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


class MeasuredCell(NamedTuple):
    """Hold one cell, and its row in the table."""

    instance: str
    strategy: Strategy
    row: dict[str, Any]

    @property
    def arms(self) -> Bernoulli:
        """Return the instance itself."""
        return benchmarks[self.instance]


@dataclass(frozen=True)
class StudyQuestion:
    """Hold what is simulated: strategies by part, some of them with a cap of their own."""

    name: str
    title: str
    strategies: dict[str, tuple[Strategy, ...]]
    caps: dict[str, int]

    def make_studies(self, instances: Sequence[str], runs: int) -> dict[str, Study]:
        """Return the parts by name."""
        arms = {name: benchmarks[name] for name in instances}
        return {
            part: Study(arms, mine, runs, SEED, self.caps.get(part))
            for part, mine in self.strategies.items()
        }


def _ask_shares() -> StudyQuestion:
    made: list[Callable[..., Strategy]] = [
        lambda **parts: presets.ttucb(DELTA, **parts),
        lambda **parts: presets.ctb_tt(EPSILON, DELTA, **parts),
        lambda **parts: presets.adap_tt(EPSILON, DELTA, **parts),
        lambda **parts: presets.adap_tt_star(EPSILON, DELTA, **parts),
    ]
    fixed = tuple(make(beta=share) for make in made for share in SHARES if share != "ids")
    ids = tuple(make(beta="ids") for make in made)
    title = "Which share of the samples the leader should get: β from 0.1 to 0.9, and IDS"
    return StudyQuestion(
        "beta", title, {"beta": fixed, "beta-ids": ids}, {"beta-ids": EPISODE_CAP * 10}
    )


def _ask_rounds() -> StudyQuestion:
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
    return StudyQuestion("adaptivity", title, parts, {"adaptivity-global": EPISODE_CAP})


def _ask_deltas() -> StudyQuestion:
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
    return StudyQuestion("delta", title, {"delta": made}, {})


QUESTIONS: dict[str, Callable[[], StudyQuestion]] = {
    "beta": _ask_shares,
    "adaptivity": _ask_rounds,
    "delta": _ask_deltas,
}


@dataclass(frozen=True)
class QuestionScope:
    """Hold a question with its scope."""

    question: StudyQuestion
    instances: tuple[str, ...]
    runs: int
    quick: bool


def make_question_scope(name: str, runs: int | None = None, quick: bool = False) -> QuestionScope:
    """Return a question by name; `quick` is the paper's main pair of instances with 100
    runs, else all six with 1000.
    """
    if name not in QUESTIONS:
        raise InvalidInputError(
            f"study must be one of samples, {', '.join(QUESTIONS)}; got {quote(name)}"
        )
    if runs is not None and (isinstance(runs, bool) or not isinstance(runs, int) or runs < 2):
        raise InvalidInputError(f"runs must be a whole number, 2 or more; got {quote(runs)}")
    pair: Any = QUICK["instances"]
    default: Any = QUICK["runs"] if quick else 1000
    return QuestionScope(
        QUESTIONS[name](), pair if quick else tuple(benchmarks), runs or default, quick
    )


def run_question(
    folder: Path, asked: QuestionScope, progress: OnStep | None = None, say: Say | None = None
) -> tuple["pl.DataFrame", list[MeasuredCell]]:
    """Simulate what is missing in a folder, write `table.parquet`; the table, and its
    rows beside their cells.
    """
    import polars as pl

    studies = asked.question.make_studies(asked.instances, asked.runs)
    prepare_folder(folder, studies, asked.question.name)
    if say is not None:
        cells = sum(len(study.cells) for study in studies.values())
        say(f"{format_count(cells, 'cell')} of {format_count(asked.runs, 'run')}, in {folder}")
    tables = {part: run_part(folder, studies, part, progress) for part in studies}
    found = [cell for part, table in tables.items() for cell in _pair_cells(studies[part], table)]
    whole = pl.concat(tables.values())
    write_table(folder, whole)
    return whole, found


def _pair_cells(study: Study, table: "pl.DataFrame") -> Iterator[MeasuredCell]:
    for cell, row in zip(study.cells, table.to_dicts(), strict=True):
        yield MeasuredCell(cell.instance_name, cell.strategy, row)


def scale_by_log_delta(cell: MeasuredCell) -> float:
    """Return the mean samples over log(1/δ); NaN if no run stopped."""
    mean = cell.row["mean"]
    return math.nan if mean is None else float(mean) / math.log(1 / cell.strategy.delta)


Cells = Sequence[MeasuredCell]
NEAR_LIMIT = 1.5
"""Largest ratio to a limit as δ → 0 that counts as agreement at the smallest δ that is
simulated.
"""


def judge_question(name: str, cells: Cells) -> tuple[Finding, ...]:
    """Return the findings of a question."""
    checks: dict[str, list[Callable[[Cells], Finding | None]]] = {
        "beta": [_judge_half, _judge_ids, _judge_share_times],
        "adaptivity": [_judge_rounds_bound, _judge_cost_of_rounds, _judge_one_episode],
        "delta": [_judge_upper, _judge_lower, _judge_decline],
    }
    found = [check(cells) for check in checks[name]]
    return tuple(finding for finding in found if finding is not None)


def group_by_strategy(cells: Iterable[MeasuredCell]) -> dict[tuple[str, str], list[MeasuredCell]]:
    """Group the cells in which runs stopped by instance and strategy."""
    found: dict[tuple[str, str], list[MeasuredCell]] = {}
    for cell in cells:
        if cell.row["mean"] is not None:
            found.setdefault((cell.instance, cell.strategy.name), []).append(cell)
    return found


# --- β --------------------------------------------------------------------------------


def _find_least(cells: Cells) -> MeasuredCell:
    return min(cells, key=lambda cell: float(cell.row["mean"]))


def _select_fixed(cells: Cells) -> list[MeasuredCell]:
    return [cell for cell in cells if cell.strategy.beta != "ids"]


def _judge_half(cells: Cells) -> Finding | None:
    tally, ratios = CellTally(), dict[str, list[float]]()
    for (_, name), mine in group_by_strategy(_select_fixed(cells)).items():
        half = [cell for cell in mine if cell.strategy.beta == 0.5]
        if half:
            ratio = half[0].row["mean"] / _find_least(mine).row["mean"]
            tally.add(ratio <= 2, 1)
            ratios.setdefault(name, []).append(ratio)
    parts = [
        f"{format_strategy_name(name)}: {format_span(mine)} times the samples of the best of the "
        "fixed shares"
        for name, mine in ratios.items()
    ]
    claim = "β = 1/2 needs at most twice the samples of the best share."
    return tally.make_finding("both", claim, parts)


def _judge_ids(cells: Cells) -> Finding | None:
    tally, ratios = CellTally(), dict[str, list[float]]()
    for (_, name), mine in group_by_strategy(cells).items():
        ids = [cell for cell in mine if cell.strategy.beta == "ids"]
        half = [cell for cell in mine if cell.strategy.beta == 0.5]
        if ids and half:
            ratio = ids[0].row["mean"] / half[0].row["mean"]
            tally.add(ratio <= 1.05, 1)
            ratios.setdefault(name, []).append(ratio)
    parts = [
        f"{format_strategy_name(name)}: {format_span(mine)} times those of β = 1/2"
        for name, mine in ratios.items()
    ]
    claim = "IDS needs no more samples than β = 1/2, up to 5 %, without a share to choose."
    return tally.make_finding("both", claim, parts)


def _judge_share_times(cells: Cells) -> Finding | None:
    tally, parts = CellTally(), list[str]()
    for (instance, name), mine in group_by_strategy(_select_fixed(cells)).items():
        if name == "ttucb":
            best = min(mine, key=_compute_time)
            seen = _find_least(mine)
            near = abs(float(best.strategy.beta) - float(seen.strategy.beta)) < 0.15
            tally.add(near, 1)
            parts.append(
                f"{instance}: fewest samples at β = {seen.strategy.beta:g}, smallest T*_β at "
                f"{best.strategy.beta:g}"
            )
    claim = "The best share is where the time T*_β is smallest, up to one step of the grid (TTUCB)."
    return tally.make_finding("both", claim, parts)


def _compute_time(cell: MeasuredCell) -> float:
    return theory.t_gaussian_beta(cell.arms, float(cell.strategy.beta)).value


# --- rounds ---------------------------------------------------------------------------


def compute_rounds_limit(cell: MeasuredCell) -> float:
    """Return the bound on the rounds of a phased strategy, at its mean samples;
    infinite for those that have none.
    """
    if not cell.strategy.is_phased or cell.row["mean"] is None:
        return math.inf
    episodes = "arm" if cell.strategy.episodes == "arm" else "global"
    return theory.rounds_bound(cell.row["mean"], cell.arms.arms, episodes)


def _judge_rounds_bound(cells: Cells) -> Finding | None:
    tally, ratios = CellTally(), dict[tuple[str, str], list[float]]()
    for cell in cells:
        limit = compute_rounds_limit(cell)
        if math.isfinite(limit):
            ratio = cell.row["rounds_mean"] / limit
            tally.add(ratio <= 1, 1)
            ratios.setdefault((cell.strategy.name, cell.strategy.episodes), []).append(ratio)
    parts = [
        f"{format_strategy_name(name)}, {_describe_episodes(episodes)}: {format_span(mine)} times "
        f"the bound in {len(mine)} cells"
        for (name, episodes), mine in ratios.items()
    ]
    if any(cell.row["unstopped"] for cell in cells if cell.strategy.episodes == "global"):
        parts.append(
            "rounds and samples are those of the runs that stopped; with one episode (global) the "
            "mean of all runs is infinite"
        )
    claim = (
        "Rounds are at most the bound at the mean number of samples: K times its log2, or its log2 "
        "for one episode."
    )
    return tally.make_finding("both", claim, parts)


def _describe_episodes(episodes: str) -> str:
    return {"arm": "an episode for each arm"}.get(episodes, f"one episode ({episodes})")


def _judge_cost_of_rounds(cells: Cells) -> Finding | None:
    parts = list[str]()
    for instance in dict.fromkeys(cell.instance for cell in cells):
        mine = [cell for cell in cells if cell.instance == instance and cell.row["mean"]]
        named = {
            cell.strategy.name: cell
            for cell in mine
            if cell.strategy.epsilon in (None, 1.0) and cell.strategy.episodes == "arm"
        }
        said = [
            f"{format_strategy_name(name)} {format_short(named[name].row['rounds_mean'])} rounds "
            f"for {format_short(named[name].row['mean'])} samples"
            for name in ("ttucb", "ttucb-batched", "adap-tt", "dp-se", "bet-se")
            if name in named
        ]
        parts.append(f"{instance}, ε = 1: {', '.join(said)}")
    claim = "What it costs to have few rounds: the samples that come with them."
    return Finding("not in the paper", "both", claim, tuple(parts)) if parts else None


def _judge_one_episode(cells: Cells) -> Finding | None:
    tally, parts = CellTally(), list[str]()
    for kind in EPISODES[1:]:
        mine = [cell for cell in cells if cell.strategy.episodes == kind]
        shares = [cell.row["unstopped"] / cell.row["runs"] for cell in mine]
        if shares:
            if kind == "global":
                tally.add(sum(share == 0 for share in shares), len(shares))
            parts.append(
                f"{kind}: {format_span([100 * share for share in shares], 3)} % of the runs "
                f"of a cell had not stopped after {format_short(EPISODE_CAP)} samples"
            )
    claim = (
        "One global episode has the same guarantees as an episode for each arm: every run stops."
    )
    return tally.make_finding("both", claim, parts)


# --- δ --------------------------------------------------------------------------------


def compute_upper_constant(cell: MeasuredCell) -> float:
    """Return what the theorems say E[τ]/log(1/δ) is at most, as δ → 0; infinite for
    bet-se, which has none.
    """
    strategy, arms = cell.strategy, cell.arms
    share = float(strategy.beta) if strategy.sampling == "top-two" else 0.5
    epsilon = float(strategy.epsilon or 1.0)
    return {
        "ttucb": lambda: bounds.upper_constant_ttucb(arms, share),
        "ctb-tt": lambda: bounds.upper_constant_ctb_tt(arms, epsilon, share),
        "adap-tt": lambda: bounds.upper_constant_adap_tt(arms, epsilon, share),
        "adap-tt-star": lambda: bounds.upper_constant_adap_tt_star(
            arms, epsilon, share, proved=True
        ),
    }.get(strategy.name, lambda: math.inf)()


def compute_lower_constant(cell: MeasuredCell) -> float:
    """Return what no strategy of this trust can go below, as δ → 0."""
    strategy: Strategy = cell.strategy
    return theory.tightest(cell.arms, strategy.epsilon, strategy.trust).value


def _select_smallest_delta(cells: Cells) -> list[MeasuredCell]:
    """Return the cells of the smallest δ in which runs stopped."""
    found = [
        min(mine, key=lambda cell: cell.strategy.delta)
        for mine in group_by_strategy(cells).values()
    ]
    return found


def _judge_upper(cells: Cells) -> Finding | None:
    tally, ratios = CellTally(), dict[str, list[float]]()
    for cell in _select_smallest_delta(cells):
        limit = compute_upper_constant(cell)
        if math.isfinite(limit):
            ratio = scale_by_log_delta(cell) / limit
            tally.add(ratio <= NEAR_LIMIT, 1)
            ratios.setdefault(cell.strategy.name, []).append(ratio)
    parts = [
        f"{format_strategy_name(name)}: {format_span(mine)} times the upper constant at the "
        "smallest δ"
        for name, mine in ratios.items()
    ]
    parts.append("The theorems are about the limit δ → 0, and about distinct means.")
    claim = (
        "At the smallest δ, samples over log(1/δ) are at most "
        f"{NEAR_LIMIT:g} times the upper constant."
    )
    return tally.make_finding("both", claim, parts)


def _judge_lower(cells: Cells) -> Finding | None:
    tally, ratios = CellTally(), dict[str, list[float]]()
    for cell in _select_smallest_delta(cells):
        ratio = scale_by_log_delta(cell) / compute_lower_constant(cell)
        tally.add(ratio >= 1, 1)
        ratios.setdefault(cell.strategy.name, []).append(ratio)
    parts = [
        f"{format_strategy_name(name)}: {format_span(mine)} times the lower constant at the "
        "smallest δ"
        for name, mine in ratios.items()
    ]
    claim = "No strategy is below the lower bound; how far above it each one is."
    return tally.make_finding("both", claim, parts)


def _judge_decline(cells: Cells) -> Finding | None:
    tally, parts = CellTally(), list[str]()
    for (instance, name), mine in group_by_strategy(cells).items():
        ordered = sorted(mine, key=lambda cell: -cell.strategy.delta)
        if len(ordered) > 1:
            first, last = scale_by_log_delta(ordered[0]), scale_by_log_delta(ordered[-1])
            tally.add(last < first, 1)
            parts.append(
                f"{instance} {format_strategy_name(name)}: from {format_short(first)} to "
                f"{format_short(last)}"
            )
    claim = (
        "Samples divided by log(1/δ) fall as δ becomes small: what does not depend on δ is "
        "paid once."
    )
    return tally.make_finding("both", claim, parts)
