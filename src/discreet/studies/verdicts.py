"""What a finding is, and what several of them are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.statistics import clopper_pearson
from discreet.studies.paper import DELTA, STRATEGIES, PaperRows, Row
from discreet.words import shown_name

Chosen = tuple[str, str]
"""A strategy and its threshold."""


@dataclass(frozen=True)
class Finding:
    """A claim, whether the results agree with it, and the numbers that say so."""

    verdict: str
    """`agrees`, `differs`, `agrees in part`, or `not in the paper`."""
    trust: str
    claim: str
    evidence: tuple[str, ...]


class Tally:
    """In how many cells a claim holds, of how many."""

    def __init__(self, hits: int = 0, of: int = 0) -> None:
        self.hits = hits
        self.of = of

    def add(self, hits: int, of: int) -> None:
        """Count some more cells."""
        self.hits += hits
        self.of += of

    def finding(self, trust: str, claim: str, evidence: Sequence[str]) -> Finding | None:
        """None if there was no cell to judge by."""
        return Finding(self.verdict, trust, claim, tuple(evidence)) if self.of else None

    @property
    def verdict(self) -> str:
        """Whether the cells agree with the claim."""
        if self.hits == self.of:
            return "agrees"
        return "differs" if self.hits < self.of / 2 else "agrees in part"


def compare(table: PaperRows, tally: Tally, one: Chosen, other: Chosen) -> str:
    """Count the cells in which the first has the smaller mean, and say it with medians
    beside.
    """
    pairs = list(table.pairs("global", one, other))
    means = sum(pair.one["mean"] < pair.other["mean"] for pair in pairs)
    medians = sum(pair.one["median"] < pair.other["median"] for pair in pairs)
    tally.add(means, len(pairs))
    return f"{means} of {len(pairs)} cells by means, {medians} by medians"


def span(values: Sequence[float], digits: int = 2) -> str:
    """From the smallest to the largest, in words."""
    low = f"{min(values):.{digits}g}"
    high = f"{max(values):.{digits}g}"
    return low if low == high else f"{low} to {high}"


def errors(table: PaperRows, trust: str) -> Finding:
    """Whether the error rate is at most δ, in every cell."""
    parts = list[str]()
    clean = list[str]()
    broken = 0
    for name, threshold in (*STRATEGIES[trust], ("ttucb", "empirical"), ("ttucb", "proved")):
        levels = (None,) if name == "ttucb" else table.scope.levels[trust]
        places = [(instance, level) for instance in table.scope.instances for level in levels]
        found = [table.find(where, trust, name, threshold, level) for where, level in places]
        rows = [row for row in found if row]
        above = _above_delta(rows)
        broken += above
        if any(row["errors"] for row in rows):
            words = f"{shown_name(name)} ({threshold}): {_wrong(rows)}"
            parts.append(words + (f", {above} cells above δ for certain" if above else ""))
        elif rows:
            clean.append(f"{shown_name(name)} ({threshold})")
    parts.append(
        "Each cell is tested with an exact interval, at 5 % for all cells of a strategy together "
        "(Bonferroni)"
    )
    if clean:
        parts.append(f"No wrong answer: {', '.join(clean)}")
    claim = f"The error rate is at most δ = {DELTA:g}."
    return Finding("differs" if broken else "agrees", trust, claim, tuple(parts))


def _above_delta(rows: Sequence[Row]) -> int:
    """Cells whose error rate exceeds δ for certain, at 5 % for all together."""
    lows = [clopper_pearson(row["errors"], row["runs"], 1 - 0.05 / len(rows))[0] for row in rows]
    return sum(low > DELTA for low in lows)


def _wrong(rows: Sequence[Row]) -> str:
    most = max(rows, key=lambda row: row["errors"] / row["runs"])
    wrong = sum(row["errors"] for row in rows)
    runs = sum(row["runs"] for row in rows)
    return f"{wrong} wrong of {runs}, at most {most['errors']} in a cell of {most['runs']}"


def bets(table: PaperRows, trust: str, rivals: Sequence[Chosen]) -> Finding | None:
    """By medians: a few runs that all but never stop can rule a mean."""
    parts = []
    for name, threshold in rivals:
        pairs = table.pairs(trust, ("bet-se", "proved"), (name, threshold))
        ratios = [pair.one["median"] / pair.other["median"] for pair in pairs]
        if ratios:
            won = sum(ratio < 1 for ratio in ratios)
            parts.append(
                f"{min(ratios):.2g} to {max(ratios):.2g} times the median of {shown_name(name)} "
                f"({threshold}); fewer in {won} of {len(ratios)} cells"
            )
    claim = "bet-se, whose error rate is proved, beside the strategies of the paper."
    return Finding("not in the paper", trust, claim, tuple(parts)) if parts else None
