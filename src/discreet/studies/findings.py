"""What agrees with the paper and what does not, all of it computed from the table of
its study.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.instances import benchmarks
from discreet.numerics import compute_clopper_pearson
from discreet.studies.paper import (
    AUTHORS,
    DELTA,
    STRATEGIES,
    THRESHOLDS,
    PaperRows,
    Scope,
    TableRow,
    find_switch,
)
from discreet.wording import format_short, format_strategy_name

StrategyChoice = tuple[str, str]
"""A strategy and its threshold."""


@dataclass(frozen=True)
class Finding:
    """Hold a claim, whether the results agree with it, and the numbers that say so."""

    verdict: str
    """`agrees`, `differs`, `agrees in part`, or `not in the paper`."""
    trust: str
    claim: str
    evidence: tuple[str, ...]


class CellTally:
    """Count the cells in which a claim holds, of how many."""

    def __init__(self, hits: int = 0, of: int = 0) -> None:
        self.hits = hits
        self.total = of

    def add(self, hits: int, of: int) -> None:
        """Count some more cells."""
        self.hits += hits
        self.total += of

    def make_finding(self, trust: str, claim: str, evidence: Sequence[str]) -> Finding | None:
        """Make the finding; None if there was no cell to judge by."""
        return Finding(self.verdict, trust, claim, tuple(evidence)) if self.total else None

    @property
    def verdict(self) -> str:
        """Return whether the cells agree with the claim."""
        if self.hits == self.total:
            return "agrees"
        return "differs" if self.hits < self.total / 2 else "agrees in part"


def compare_cells(
    table: PaperRows, tally: CellTally, one: StrategyChoice, other: StrategyChoice
) -> str:
    """Count the cells in which the first has the smaller mean, and say it with medians
    beside.
    """
    pairs = list(table.pairs("global", one, other))
    means = sum(pair.one["mean"] < pair.other["mean"] for pair in pairs)
    medians = sum(pair.one["median"] < pair.other["median"] for pair in pairs)
    tally.add(means, len(pairs))
    return f"{means} of {len(pairs)} cells by means, {medians} by medians"


def format_span(values: Sequence[float], digits: int = 2) -> str:
    """Format the smallest and the largest value."""
    low = f"{min(values):.{digits}g}"
    high = f"{max(values):.{digits}g}"
    return low if low == high else f"{low} to {high}"


def judge_error_rates(table: PaperRows, trust: str) -> Finding:
    """Judge whether the error rate is at most δ, in every cell."""
    parts = list[str]()
    clean = list[str]()
    broken = 0
    for name, threshold in (*STRATEGIES[trust], ("ttucb", "empirical"), ("ttucb", "proved")):
        levels = (None,) if name == "ttucb" else table.scope.levels[trust]
        places = [(instance, level) for instance in table.scope.instances for level in levels]
        found = [table.find(where, trust, name, threshold, level) for where, level in places]
        rows = [row for row in found if row]
        above = _count_above_delta(rows)
        broken += above
        if any(row["errors"] for row in rows):
            words = f"{format_strategy_name(name)} ({threshold}): {_describe_errors(rows)}"
            parts.append(words + (f", {above} cells above δ for certain" if above else ""))
        elif rows:
            clean.append(f"{format_strategy_name(name)} ({threshold})")
    parts.append(
        "Each cell is tested with an exact interval, at 5 % for all cells of a strategy together "
        "(Bonferroni)"
    )
    if clean:
        parts.append(f"No wrong answer: {', '.join(clean)}")
    claim = f"The error rate is at most δ = {DELTA:g}."
    return Finding("differs" if broken else "agrees", trust, claim, tuple(parts))


def _count_above_delta(rows: Sequence[TableRow]) -> int:
    """Count the cells whose error rate exceeds δ for certain, at 5 % for all together."""
    lows = [
        compute_clopper_pearson(row["errors"], row["runs"], 1 - 0.05 / len(rows))[0] for row in rows
    ]
    return sum(low > DELTA for low in lows)


def _describe_errors(rows: Sequence[TableRow]) -> str:
    most = max(rows, key=lambda row: row["errors"] / row["runs"])
    wrong = sum(row["errors"] for row in rows)
    runs = sum(row["runs"] for row in rows)
    return f"{wrong} wrong of {runs}, at most {most['errors']} in a cell of {most['runs']}"


def judge_bet_se(table: PaperRows, trust: str, rivals: Sequence[StrategyChoice]) -> Finding | None:
    """Compare bet-se with its rivals by medians: a few runs that hardly ever stop can
    rule a mean.
    """
    parts = []
    for name, threshold in rivals:
        pairs = table.pairs(trust, ("bet-se", "proved"), (name, threshold))
        ratios = [pair.one["median"] / pair.other["median"] for pair in pairs]
        if ratios:
            won = sum(ratio < 1 for ratio in ratios)
            parts.append(
                f"{min(ratios):.2g} to {max(ratios):.2g} times the median of "
                f"{format_strategy_name(name)} ({threshold}); fewer in {won} of {len(ratios)} cells"
            )
    claim = "bet-se, whose error rate is proved, beside the strategies of the paper."
    return Finding("not in the paper", trust, claim, tuple(parts)) if parts else None


ADAPTIVE = ("adap-tt", "adap-tt-star")


def judge_paper(rows: Sequence[TableRow], scope: Scope) -> tuple[Finding, ...]:
    """Judge what agrees with the paper and what does not, all of it computed from the
    table.
    """
    table = PaperRows(rows, scope)
    checks: dict[str, list[Callable[[PaperRows], Finding | None]]] = {
        "global": [
            _judge_against_dp_se,
            _judge_provable_ranking,
            _judge_authors_dp_se,
            _judge_star,
            _judge_regimes,
            _judge_stopping,
            _judge_tails,
            lambda table: judge_error_rates(table, "global"),
            _judge_bet_se_global,
        ],
        "local": [
            _judge_local_freedom,
            _judge_local_cost,
            _judge_switches,
            lambda table: judge_error_rates(table, "local"),
            _judge_bet_se_local,
        ],
    }
    found = [check(table) for trust in checks if trust in scope.levels for check in checks[trust]]
    return tuple(finding for finding in found if finding is not None)


def _judge_against_dp_se(table: PaperRows) -> Finding | None:
    rivals = {AUTHORS: "the DP-SE of the authors' code", "dp-se": "DP-SE as published"}
    parts = []
    tally = CellTally()
    for rival, words in rivals.items():
        for name in ADAPTIVE:
            counts = compare_cells(table, tally, (name, "empirical"), (rival, "empirical"))
            parts.append(f"{format_strategy_name(name)} is below {words} in {counts}")
    claim = (
        "With the thresholds of the experiments AdaP-TT and AdaP-TT* need fewer samples than "
        "DP-SE at every ε."
    )
    return tally.make_finding("global", claim, parts)


def _judge_provable_ranking(table: PaperRows) -> Finding | None:
    ours = (("adap-tt", "proved"), ("adap-tt-star", "printed"), ("adap-tt-star", "proved"))
    parts = []
    tally = CellTally()
    for name, threshold in ours:
        counts = compare_cells(table, tally, (name, threshold), ("dp-se", "proved"))
        words = "printed = proved" if name == "adap-tt" else threshold
        parts.append(f"{format_strategy_name(name)} ({words}) is below DP-SE in {counts}")
    claim = "The same ranking with thresholds that guarantee the error rate."
    return tally.make_finding("global", claim, parts)


def _judge_authors_dp_se(table: PaperRows) -> Finding | None:
    pairs = list(table.pairs("global", (AUTHORS, "empirical"), ("dp-se", "proved")))
    if not pairs:
        return None
    most = max(pairs, key=lambda pair: pair.one["mean"] / pair.other["mean"])
    more = sum(pair.one["mean"] > 1.05 * pair.other["mean"] for pair in pairs)
    evidence = (
        "The authors' code divides an epoch's sum by the count of all epochs.",
        f"So it takes over 5 % more samples in {more} of {len(pairs)} cells, most of all on "
        f"{most.instance} at ε = {most.epsilon:g}: {format_short(most.one['mean'])} instead of "
        f"{format_short(most.other['mean'])}.",
    )
    claim = "The DP-SE of the paper's figures is that of Sajed and Sheffet."
    return Finding("differs" if more else "agrees", "global", claim, evidence)


def _judge_star(table: PaperRows) -> Finding | None:
    parts = []
    tally = CellTally()
    for threshold in THRESHOLDS["global"]:
        pairs = list(table.pairs("global", ("adap-tt-star", threshold), ("adap-tt", threshold)))
        private = [p for p in pairs if p.epsilon < find_switch(p.instance, "global")]
        below = [p.one["mean"] < p.other["mean"] for p in private]
        free = [p for p in pairs if p.epsilon >= 10]
        near = [abs(p.one["mean"] / p.other["mean"] - 1) <= 0.1 for p in free]
        worse = sum(p.one["mean"] > p.other["mean"] for p in pairs)
        tally.add(sum(below) + sum(near), len(below) + len(near))
        parts.append(
            f"{threshold}: fewer samples in {sum(below)} of {len(below)} cells below the switch, "
            f"within 10 % of AdaP-TT in {sum(near)} of {len(near)} with ε ≥ 10, more in {worse} of "
            f"all {len(pairs)}"
        )
    claim = (
        "AdaP-TT* improves on AdaP-TT where privacy is high, and equals it where privacy is low."
    )
    return tally.make_finding("global", claim, parts)


def _compute_slopes(table: PaperRows, trust: str, name: str, threshold: str) -> dict[str, float]:
    """Return d log of the median / d log ε between the two smallest ε, for the
    instances whose switch lies above both. Medians, as a few runs that hardly ever stop
    can rule a mean.
    """
    if len(table.scope.levels[trust]) < 2:
        return {}
    first, second = sorted(table.scope.levels[trust])[:2]
    found = {}
    for instance in table.scope.instances:
        low = table.find(instance, trust, name, threshold, first)
        high = table.find(instance, trust, name, threshold, second)
        known = low and high and low["median"] and high["median"]
        if low and high and known and second < find_switch(instance, trust):
            rise = math.log(high["median"]) - math.log(low["median"])
            found[instance] = rise / math.log(second / first)
    return found


def _describe_growth(slopes: dict[str, float], form: str) -> str:
    """Describe how medians grow as ε falls, and on which instances that was seen."""
    middle = float(np.median(list(slopes.values())))
    return f"ε^{middle:{form}} ({', '.join(slopes)})"


def _judge_regimes(table: PaperRows) -> Finding | None:
    levels = table.scope.levels["global"]
    if len(levels) < 3:
        return None
    top = max(levels)
    parts = []
    tally = CellTally()
    for threshold in ("empirical", "proved"):
        for name in ADAPTIVE:
            pairs = table.pairs("global", (name, threshold), ("ttucb", threshold))
            ratios = [p.one["median"] / p.other["median"] for p in pairs if p.epsilon == top]
            slopes = _compute_slopes(table, "global", name, threshold)
            words = f"Medians of {format_strategy_name(name)}, {threshold}: "
            words += (
                f"for small ε they grow like {_describe_growth(slopes, '.2g')}, " if slopes else ""
            )
            if ratios:
                tally.add(max(ratios) <= 4.2, 1)
                words += f"at ε = {top:g} they are {format_span(ratios)} times TTUCB's"
            parts.append(words)
    parts += _describe_switches(table, "global")
    claim = (
        "Two regimes: samples depend on ε below the switch, not above it, where they are at most "
        "four times TTUCB's."
    )
    return Finding(tally.verdict, "global", claim, tuple(parts))


def _judge_stopping(table: PaperRows) -> Finding:
    levels = table.scope.levels["global"]
    parts = []
    for instance in table.scope.instances:
        for name, threshold in STRATEGIES["global"]:
            rows = [table.find(instance, "global", name, threshold, level) for level in levels]
            most = max((row["unstopped"] / row["runs"] for row in rows if row), default=0.0)
            if most > 0:
                parts.append(
                    f"{instance} {format_strategy_name(name)} ({threshold}) up to {most:.1%} had "
                    "not stopped after 10^12 samples"
                )
    claim = "Every run stops."
    if not parts:
        evidence = "No run was left unstopped after 10^12 samples."
        return Finding("agrees", "global", claim, (evidence,))
    tied = [name for name in table.scope.instances if _has_ties(name)]
    parts.append(
        f"Instances with tied suboptimal arms: {', '.join(tied) or 'none'}. The proof needs "
        "distinct means."
    )
    return Finding("differs", "global", claim, tuple(parts))


def _has_ties(instance: str) -> bool:
    return len(set(benchmarks[instance].means)) < benchmarks[instance].arms


class _CellSpread(NamedTuple):
    """Hold how far the runs of a cell lie apart; compared by the standard deviation
    first.
    """

    std_in_means: float
    instance: str
    epsilon: float
    mean_in_medians: float


def has_gap_of_half_epsilon(instance: str, epsilon: float) -> bool:
    """Return whether some arm's gap is ε/2 exactly, where the two cases of AdaP-TT*'s
    rule meet.
    """
    return any(abs(gap - epsilon / 2) < 1e-9 for gap in benchmarks[instance].gaps)


def _measure_spreads(table: PaperRows, threshold: str) -> list[_CellSpread]:
    """Measure the spread of AdaP-TT* in the cells in which every run stopped."""
    found = []
    for pair in table.pairs("global", ("adap-tt-star", threshold), ("dp-se", "proved")):
        row = pair.one
        if row["std"] is not None and row["unstopped"] == 0:
            std = row["std"] / row["mean"]
            median = row["mean"] / row["median"]
            found.append(_CellSpread(std, pair.instance, pair.epsilon, median))
    return found


def _judge_tails(table: PaperRows) -> Finding | None:
    parts = []
    for threshold in THRESHOLDS["global"]:
        spreads = _measure_spreads(table, threshold)
        halves = [
            spread for spread in spreads if has_gap_of_half_epsilon(spread.instance, spread.epsilon)
        ]
        others = [spread.std_in_means for spread in spreads if spread not in halves]
        if halves and others:
            most = max(halves)
            usual = float(np.median(others))
            seen = "seen" if most.std_in_means > 2 * usual else "not seen"
            parts.append(
                f"{threshold}: {seen}; a standard deviation of up to {most.std_in_means:.2g} means "
                f"({most.instance}, ε = {most.epsilon:g}; the mean is {most.mean_in_medians:.2g} "
                f"medians), elsewhere typically {usual:.2g} means"
            )
    if not parts:
        return None
    claim = "Where a gap is ε/2 exactly, AdaP-TT* may have a heavy tail, and a mean says little."
    return Finding("not in the paper", "global", claim, tuple(parts))


def _judge_bet_se_global(table: PaperRows) -> Finding | None:
    proved = [(name, "proved") for name in ("dp-se", "adap-tt-star", "adap-tt")]
    return judge_bet_se(table, "global", [*proved, ("adap-tt-star", "empirical")])


def _judge_local_freedom(table: PaperRows) -> Finding | None:
    top = max(table.scope.levels["local"])
    parts = []
    tally = CellTally()
    for threshold in THRESHOLDS["local"]:
        pairs = table.pairs("local", ("ctb-tt", threshold), ("ttucb", threshold))
        both = [(pair.one, pair.other) for pair in pairs if pair.epsilon == top]
        ratios = [one["mean"] / other["mean"] for one, other in both]
        if ratios:
            parts.append(
                f"{threshold}: {format_span(ratios, 4)} times TTUCB's samples at ε = {top:g}"
            )
            tally.add(sum(_have_same_mean(one, other) for one, other in both), len(both))
    claim = "Where privacy is low, CTB-TT needs what TTUCB needs."
    return tally.make_finding("local", claim, parts)


def _have_same_mean(one: TableRow, other: TableRow) -> bool:
    """Return whether two means are equal up to four standard errors."""
    return bool(abs(one["mean"] - other["mean"]) <= 4 * math.hypot(one["sem"], other["sem"]))


def _judge_local_cost(table: PaperRows) -> Finding | None:
    slopes = {kind: _compute_slopes(table, "local", "ctb-tt", kind) for kind in THRESHOLDS["local"]}
    if not all(slopes.values()):
        return None
    parts = [f"{threshold}: {_describe_growth(mine, '.3g')}" for threshold, mine in slopes.items()]
    every = [slope for mine in slopes.values() for slope in mine.values()]
    tally = CellTally(sum(abs(slope + 2) < 0.25 for slope in every), len(every))
    evidence = "Between the two smallest ε simulated CTB-TT's median grows like "
    claim = "Where privacy is high, samples grow like ε^−2."
    return tally.make_finding("local", claim, [f"{evidence}{', '.join(parts)}."])


def _judge_switches(table: PaperRows) -> Finding | None:
    tally = CellTally()
    for instance in table.scope.instances:
        tally.add(find_switch(instance, "local") / find_switch(instance, "global") >= 5, 1)
    evidence = (*_describe_switches(table, "local"), *_describe_switches(table, "global"))
    claim = (
        "The switch of regimes lies an order of magnitude higher under local than under global "
        "privacy."
    )
    return tally.make_finding("local", claim, evidence)


READ_OFF = {"global": "0.1 and 0.4", "local": "4 and 2"}
"""What the paper says of mu1 and mu2."""


def _describe_switches(table: PaperRows, trust: str) -> tuple[str, str]:
    """Describe where the shaded lines stand, and that the paper has them elsewhere."""
    lines = [f"{name} {find_switch(name, trust):.2g}" for name in table.scope.instances]
    return (
        f"The switch lines, {trust} privacy, are the formula's: {', '.join(lines)}.",
        f"The paper's values ({READ_OFF[trust]} on mu1 and mu2) are read off its plots.",
    )


def _judge_bet_se_local(table: PaperRows) -> Finding | None:
    return judge_bet_se(table, "local", [("ctb-tt", "proved"), ("ctb-tt", "empirical")])
