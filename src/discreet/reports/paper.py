"""What the paper's study came to: findings computed from its table, and the report with its pictures."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidInputError
from discreet.files import write
from discreet.instance import benchmarks
from discreet.reports import charts as plots
from discreet.reports.page import (
    Bullets,
    Heading,
    Part,
    Picture,
    Pictures,
    Point,
    Points,
    Section,
    Table,
    Text,
    page,
)
from discreet.statistics import clopper_pearson
from discreet.studies.paper import AUTHORS, DELTA, LEAST_LOCAL, SEED, STRATEGIES, Scope, switch_of
from discreet.words import short, shown_name

Row = dict[str, Any]
PICTURED = {"global": ("empirical", "printed", "proved"), "local": ("empirical", "proved")}
WORDS = {
    "empirical": "empirical thresholds (the published experiments'; no guarantee)",
    "printed": "printed thresholds (the paper's formulas)",
    "proved": "proved thresholds (the smallest with a proof)",
}
ADAPTIVE = ("adap-tt", "adap-tt-star")


@dataclass(frozen=True)
class Finding:
    """A claim, whether the results agree with it, and the numbers that say so."""

    verdict: str
    """`agrees`, `differs`, `agrees in part`, or `not in the paper`."""
    trust: str
    claim: str
    evidence: tuple[str, ...]


class Study:
    """The rows of the table by what they are about."""

    def __init__(self, rows: Sequence[Row], scope: Scope) -> None:
        self.scope = scope
        self.cells = {(r["instance"], r["trust"], r["strategy"], r["threshold"], r["epsilon"]): r for r in rows}

    def find(self, instance: str, trust: str, strategy: str, threshold: str, epsilon: float | None) -> Row | None:
        """The row shown under that threshold: where a strategy has no such threshold, its proved one."""
        if strategy == "ttucb":
            trust, epsilon = "none", None
        own = [mine for name, mine in STRATEGIES[trust] if name == strategy]
        return self.cells.get((instance, trust, strategy, threshold if threshold in own else "proved", epsilon))

    def pairs(self, trust: str, one: tuple[str, str], other: tuple[str, str]) -> Iterator[tuple[str, float, Row, Row]]:
        """(instance, ε, row, row) of two strategies, each with its threshold, wherever runs of both stopped."""
        for instance in self.scope.instances:
            for level in self.scope.levels[trust]:
                rows = [self.find(instance, trust, *which, level) for which in (one, other)]
                if rows[0] and rows[1] and rows[0]["mean"] is not None and rows[1]["mean"] is not None:
                    yield instance, level, rows[0], rows[1]

    def shown(self, instance: str, trust: str, threshold: str) -> list[Row]:
        """The rows of one picture."""
        names = dict.fromkeys(name for name, _ in (*STRATEGIES[trust], ("ttucb", "")))
        rows = []
        for name in names:
            if name != AUTHORS or threshold == "empirical":
                for level in (None,) if name == "ttucb" else sorted(self.scope.levels[trust]):
                    row = self.find(instance, trust, name, threshold, level)
                    if row is not None:
                        rows.append(row)
        return rows


# --- findings -------------------------------------------------------------------------------------


def find(rows: Sequence[Row], scope: Scope) -> tuple[Finding, ...]:
    """What agrees with the paper and what does not, all of it computed from the table."""
    study = Study(rows, scope)
    checks: list[tuple[str, Callable[[Study], Finding | None]]] = [
        ("global", _beats_dp_se),
        ("global", _provable_ranking),
        ("global", _authors_dp_se),
        ("global", _star_improves),
        ("global", _two_regimes),
        ("global", _never_stop),
        ("global", _heavy_tails),
        ("global", _errors_global),
        ("global", _bets_global),
        ("local", _local_free),
        ("local", _local_price),
        ("local", _switches),
        ("local", _errors_local),
        ("local", _bets_local),
    ]
    found = [check(study) for trust, check in checks if trust in scope.levels]
    return tuple(finding for finding in found if finding is not None)


def _wins(study: Study, trust: str, one: tuple[str, str], other: tuple[str, str]) -> tuple[int, int, str]:
    """In how many cells the first has the smaller mean, of how many, and that in words with medians beside."""
    pairs = list(study.pairs(trust, one, other))
    won, medians = (sum(a[key] < b[key] for *_, a, b in pairs) for key in ("mean", "median"))
    return won, len(pairs), f"{won} of {len(pairs)} cells by means, {medians} by medians"


def _ratios(study: Study, trust: str, one: tuple[str, str], other: tuple[str, str]) -> list[float]:
    """Ratios of medians: a few runs that all but never stop can rule a mean."""
    return [a["median"] / b["median"] for *_, a, b in study.pairs(trust, one, other)]


def _verdict(hits: int, of: int) -> str:
    return "agrees" if hits == of else "differs" if hits < of / 2 else "agrees in part"


def _span(values: Sequence[float], digits: int = 2) -> str:
    low, high = (f"{value:.{digits}g}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _beats_dp_se(study: Study) -> Finding | None:
    parts, hits, of = [], 0, 0
    for rival, words in ((AUTHORS, "the DP-SE of the authors' code"), ("dp-se", "DP-SE as published")):
        for name in ADAPTIVE:
            won, cells, counts = _wins(study, "global", (name, "empirical"), (rival, "empirical"))
            hits, of = hits + won, of + cells
            parts.append(f"{shown_name(name)} is below {words} in {counts}")
    claim = "With the thresholds of the experiments AdaP-TT and AdaP-TT* need fewer samples than DP-SE at every ε."
    return Finding(_verdict(hits, of), "global", claim, tuple(parts)) if of else None


def _provable_ranking(study: Study) -> Finding | None:
    parts, hits, of = [], 0, 0
    for name, threshold in (("adap-tt", "proved"), ("adap-tt-star", "printed"), ("adap-tt-star", "proved")):
        won, cells, counts = _wins(study, "global", (name, threshold), ("dp-se", "proved"))
        hits, of = hits + won, of + cells
        words = "printed = proved" if name == "adap-tt" else threshold
        parts.append(f"{shown_name(name)} ({words}) is below DP-SE in {counts}")
    claim = "The same ranking with thresholds that guarantee the error rate."
    return Finding(_verdict(hits, of), "global", claim, tuple(parts)) if of else None


def _authors_dp_se(study: Study) -> Finding | None:
    pairs = list(study.pairs("global", (AUTHORS, "empirical"), ("dp-se", "proved")))
    if not pairs:
        return None
    instance, level, a, b = max(pairs, key=lambda pair: pair[2]["mean"] / pair[3]["mean"])
    more = sum(a["mean"] > 1.05 * b["mean"] for *_, a, b in pairs)
    claim = "The DP-SE of the paper's figures is that of Sajed and Sheffet."
    evidence = (
        "The authors' code divides an epoch's sum by the count of all epochs.",
        f"So it takes over 5 % more samples in {more} of {len(pairs)} cells, most of all on {instance} at ε = "
        f"{level:g}: {short(a['mean'])} instead of {short(b['mean'])}.",
    )
    return Finding("differs" if more else "agrees", "global", claim, evidence)


def _star_improves(study: Study) -> Finding | None:
    parts, hits, of = [], 0, 0
    for threshold in PICTURED["global"]:
        pairs = list(study.pairs("global", ("adap-tt-star", threshold), ("adap-tt", threshold)))
        high = [a["mean"] < b["mean"] for i, e, a, b in pairs if e < switch_of(i, "global")]
        low = [abs(a["mean"] / b["mean"] - 1) <= 0.1 for i, e, a, b in pairs if e >= 10]
        worse = sum(a["mean"] > b["mean"] for _, _, a, b in pairs)
        hits, of = hits + sum(high) + sum(low), of + len(high) + len(low)
        parts.append(
            f"{threshold}: fewer samples in {sum(high)} of {len(high)} cells below the switch, within 10 % of "
            f"AdaP-TT in {sum(low)} of {len(low)} with ε ≥ 10, more in {worse} of all {len(pairs)}"
        )
    claim = "AdaP-TT* improves on AdaP-TT where privacy is high, and equals it where privacy is low."
    return Finding(_verdict(hits, of), "global", claim, tuple(parts)) if of else None


def _slope(study: Study, trust: str, name: str, threshold: str) -> list[float]:
    """d log samples / d log ε between the two smallest ε, if both lie below the switch."""
    found: list[float] = []
    if len(study.scope.levels[trust]) < 2:
        return found
    first, second = sorted(study.scope.levels[trust])[:2]
    for instance in study.scope.instances:
        rows = [study.find(instance, trust, name, threshold, level) for level in (first, second)]
        if second < switch_of(instance, trust) and all(row and row["median"] for row in rows):
            a, b = (math.log(row["median"]) for row in rows if row)
            found.append((b - a) / math.log(second / first))
    return found


def _two_regimes(study: Study) -> Finding | None:
    if len(study.scope.levels["global"]) < 3:
        return None
    parts, worst = [], {}
    for threshold in ("empirical", "proved"):
        for name in ADAPTIVE:
            top = max(study.scope.levels["global"])
            ratios = [
                a["mean"] / b["mean"]
                for _, e, a, b in study.pairs("global", (name, threshold), ("ttucb", threshold))
                if e == top
            ]
            slopes = _slope(study, "global", name, threshold)
            words = f"{shown_name(name)}, {threshold}: "
            words += f"samples grow like ε^{np.median(slopes):.2g} for small ε, " if slopes else ""
            if ratios:
                worst[name, threshold] = max(ratios)
                words += f"and at ε = {top:g} are {_span(ratios)} times TTUCB's"
            parts.append(words)
    claim = (
        "Two regimes: samples depend on ε below the switch, not above it, where they are at most four times TTUCB's."
    )
    hits = sum(value <= 4.2 for value in worst.values())
    return Finding(_verdict(hits, len(worst)), "global", claim, tuple(parts))


def _never_stop(study: Study) -> Finding | None:
    parts = []
    for instance in study.scope.instances:
        for name, threshold in STRATEGIES["global"]:
            rows = [study.find(instance, "global", name, threshold, level) for level in study.scope.levels["global"]]
            shares = [row["unstopped"] / row["runs"] for row in rows if row]
            if shares and max(shares) > 0:
                parts.append(f"{instance} {shown_name(name)} ({threshold}) up to {max(shares):.1%}")
    tied = [name for name in study.scope.instances if len(set(benchmarks[name].means)) < benchmarks[name].arms]
    claim = "Every run stops."
    if not parts:
        return Finding("agrees", "global", claim, ("No run was left unstopped after 10^12 samples.",))
    parts = [f"{part} had not stopped after 10^12 samples" for part in parts]
    parts.append(f"Instances with tied suboptimal arms: {', '.join(tied) or 'none'}. The proof needs distinct means.")
    return Finding("differs", "global", claim, tuple(parts))


def at_half_epsilon(instance: str, epsilon: float) -> bool:
    """Whether some arm's gap is ε/2 exactly, where the two cases of AdaP-TT*'s rule meet."""
    return any(abs(gap - epsilon / 2) < 1e-9 for gap in benchmarks[instance].gaps)


def _heavy_tails(study: Study) -> Finding | None:
    parts, heavier = [], []
    for threshold in PICTURED["global"]:
        ties, others = list[tuple[float, str, float, float]](), list[tuple[float, str, float, float]]()
        for instance, level, row, _ in study.pairs("global", ("adap-tt-star", threshold), ("dp-se", "proved")):
            if row["std"] is not None and row["unstopped"] == 0:
                spread = (row["std"] / row["mean"], instance, level, row["mean"] / row["median"])
                (ties if at_half_epsilon(instance, level) else others).append(spread)
        if ties and others:
            most, usual = max(ties), float(np.median([spread[0] for spread in others]))
            heavier.append(most[0] > 2 * usual)
            parts.append(
                f"{threshold}: {'seen' if heavier[-1] else 'not seen'}; a standard deviation of up to {most[0]:.2g} "
                f"means ({most[1]}, ε = {most[2]:g}; the mean is {most[3]:.2g} medians), elsewhere typically "
                f"{usual:.2g} means"
            )
    if not parts:
        return None
    claim = "Where a gap is ε/2 exactly, AdaP-TT* may have a heavy tail, and a mean says little."
    return Finding("not in the paper", "global", claim, tuple(parts))


def _errors(study: Study, trust: str) -> Finding:
    parts, clean, broken = list[str](), list[str](), 0
    for name, threshold in (*STRATEGIES[trust], ("ttucb", "empirical"), ("ttucb", "proved")):
        levels = (None,) if name == "ttucb" else study.scope.levels[trust]
        rows = [study.find(i, trust, name, threshold, e) for i in study.scope.instances for e in levels]
        rates = [(row["errors"], row["runs"]) for row in rows if row]
        if rates:
            most = max(rates, key=lambda rate: rate[0] / rate[1])
            above = sum(clopper_pearson(*rate, 1 - 0.05 / len(rates))[0] > DELTA for rate in rates)
            broken += above
            if most[0]:
                wrong, runs = (sum(column) for column in zip(*rates, strict=True))
                words = f"{shown_name(name)} ({threshold}): {wrong} wrong of {runs}, "
                words += f"at most {most[0]} in a cell of {most[1]}"
                parts.append(words + (f", {above} cells above δ for certain" if above else ""))
            else:
                clean.append(f"{shown_name(name)} ({threshold})")
    parts.append("Each cell is tested with an exact interval, at 5 % for all cells of a strategy together (Bonferroni)")
    if clean:
        parts.append(f"No wrong answer: {', '.join(clean)}")
    claim = f"The error rate is at most δ = {DELTA:g}."
    return Finding("differs" if broken else "agrees", trust, claim, tuple(parts))


def _errors_global(study: Study) -> Finding:
    return _errors(study, "global")


def _errors_local(study: Study) -> Finding:
    return _errors(study, "local")


def _bets(study: Study, trust: str, rivals: Sequence[tuple[str, str]]) -> Finding | None:
    parts = []
    for name, threshold in rivals:
        ratios = _ratios(study, trust, ("bet-se", "proved"), (name, threshold))
        if ratios:
            won = sum(ratio < 1 for ratio in ratios)
            parts.append(
                f"{min(ratios):.2g} to {max(ratios):.2g} times the median of {shown_name(name)} ({threshold}); "
                f"fewer in {won} of {len(ratios)} cells"
            )
    claim = "bet-se, whose error rate is proved, beside the strategies of the paper."
    return Finding("not in the paper", trust, claim, tuple(parts)) if parts else None


def _bets_global(study: Study) -> Finding | None:
    rivals = [("dp-se", "proved"), ("adap-tt-star", "proved"), ("adap-tt", "proved"), ("adap-tt-star", "empirical")]
    return _bets(study, "global", rivals)


def _bets_local(study: Study) -> Finding | None:
    return _bets(study, "local", [("ctb-tt", "proved"), ("ctb-tt", "empirical")])


def _local_free(study: Study) -> Finding | None:
    parts, hits, of, top = [], 0, 0, max(study.scope.levels["local"])
    for threshold in PICTURED["local"]:
        pairs = [pair for pair in study.pairs("local", ("ctb-tt", threshold), ("ttucb", threshold)) if pair[1] == top]
        near = [abs(a["mean"] - b["mean"]) <= 4 * math.hypot(a["sem"], b["sem"]) for *_, a, b in pairs]
        ratios = [a["mean"] / b["mean"] for *_, a, b in pairs]
        hits, of = hits + sum(near), of + len(near)
        if ratios:
            parts.append(f"{threshold}: {_span(ratios, 4)} times TTUCB's samples at ε = {top:g}")
    claim = "Where privacy is low, CTB-TT needs what TTUCB needs."
    return Finding(_verdict(hits, of), "local", claim, tuple(parts)) if of else None


def _local_price(study: Study) -> Finding | None:
    slopes = {threshold: _slope(study, "local", "ctb-tt", threshold) for threshold in PICTURED["local"]}
    if not all(slopes.values()):
        return None
    parts = [f"{threshold}: ε^{np.median(mine):.3g}" for threshold, mine in slopes.items()]
    hits = sum(abs(value + 2) < 0.25 for mine in slopes.values() for value in mine)
    claim = "Where privacy is high, samples grow like ε^−2."
    evidence = "Between the two smallest ε simulated CTB-TT's median grows like " + ", ".join(parts) + "."
    return Finding(_verdict(hits, sum(map(len, slopes.values()))), "local", claim, (evidence,))


def _switches(study: Study) -> Finding:
    parts, ratios = [], []
    for instance in study.scope.instances:
        low, high = (switch_of(instance, trust) for trust in ("global", "local"))
        ratios.append(high / low)
        parts.append(f"{instance} {high:.2g} against {low:.2g}")
    claim = "The switch of regimes lies an order of magnitude higher under local than under global privacy."
    words = f"Switch by the formulas, local against global: {', '.join(parts)}."
    evidence = (words, "The paper's values (4 and 2 against 0.1 and 0.4 on mu1 and mu2) are read off its plots.")
    return Finding(_verdict(sum(ratio >= 5 for ratio in ratios), len(ratios)), "local", claim, evidence)


# --- the report -----------------------------------------------------------------------------------


def write_report(folder: Path, rows: Sequence[Row], scope: Scope, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Draw every picture (PNG and SVG under figures/), write report.html; the pictures' files."""
    study, files = Study(rows, scope), list[str]()
    try:
        (folder / "figures").mkdir(exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"cannot use {folder / 'figures'}: {error.strerror or error}") from None
    sections = [_summary(scope, findings)]
    for trust in scope.levels:
        for instance in scope.instances:
            sections.append(_instance_section(study, instance, trust, folder, files))
    sections.append(_method(scope))
    title = "Differentially private best-arm identification: the paper's study again"
    kind = "A quick look, not the study: " if scope.quick else ""
    lead = f"{kind}{len(rows)} cells of {scope.runs} runs, δ = {DELTA:g}, seed {SEED}."
    write(folder / "report.html", page(title, sections, lead))
    return tuple(files)


def _summary(scope: Scope, findings: Sequence[Finding]) -> Section:
    parts: list[Part] = []
    if scope.quick:
        parts.append(
            Text(
                f"This is the quick version: {', '.join(scope.instances)} only, few ε, {scope.runs} runs in a cell. "
                "Good for a look; make the whole study before you quote a number."
            )
        )
    for trust, words in (("global", "A trusted collector (global DP)"), ("local", "Nobody trusted (local DP)")):
        mine = [finding for finding in findings if finding.trust == trust]
        if mine:
            parts.append(Heading(words))
            parts.append(Points([Point(f.verdict, f.claim, f.evidence) for f in mine]))
    parts.append(
        Text(
            "Statistics are over the runs that stopped, which flatters a strategy that leaves runs unstopped; "
            "verdicts go by means, as in the paper, but a few runs that all but never stop can rule a mean. Every "
            "sentence is computed from the table."
        )
    )
    return Section("What agrees with the paper, and what does not", parts)


def _instance_section(study: Study, instance: str, trust: str, folder: Path, files: list[str]) -> Section:
    arms, scope = benchmarks[instance], study.scope
    bound = plots.bound_curve(arms, scope.levels[trust], DELTA, trust)
    pictures = {}
    for threshold in PICTURED[trust]:
        words = "printed = proved" if (trust, threshold) == ("local", "proved") else threshold
        title = f"{instance}, {trust} privacy, {words} thresholds"
        rows = study.shown(instance, trust, threshold)
        pictures[threshold] = plots.samples_by_epsilon(rows, arms, trust, title=title, bound=bound)
    parts: list[Part] = [
        Text(
            f"Means {', '.join(f'{mean:g}' for mean in arms.means)}. Switch of regimes at ε = "
            f"{switch_of(instance, trust):.3g}."
        )
    ]
    for threshold, data in pictures.items():
        shown = []
        for scale in ("log-log", "log-linear"):
            limits = plots.sample_limits(pictures.values()) if scale == "log-log" else None
            figure = plots.draw_samples_by_epsilon(data, scale, limits)
            name = f"{instance}-{trust}-{threshold}-{scale}"
            for kind in ("svg", "png"):
                content = plots.render(figure, kind)
                write(folder / "figures" / f"{name}.{kind}", content)
                files.append(f"figures/{name}.{kind}")
                if kind == "svg":
                    caption = f"{scale}. Band: one standard deviation, where it is less than the mean. "
                    caption += "Hollow marks: some runs had not stopped."
                    if scale == "log-linear":
                        caption += " Scaled to the right part of the picture; lines leave it at the top."
                    shown.append(
                        Picture(content, f"{data.title}, {scale}: the numbers are in the table below", caption)
                    )
        words = (
            "printed and proved thresholds (the same here)"
            if trust == "local" and threshold == "proved"
            else WORDS[threshold]
        )
        parts += [Heading(words[0].upper() + words[1:]), Pictures(shown), _table(study, instance, trust, threshold)]
    return Section(f"{instance}, {'trusted collector' if trust == 'global' else 'nobody trusted'}", parts)


def _table(study: Study, instance: str, trust: str, threshold: str) -> Table:
    rows = study.shown(instance, trust, threshold)
    names = list(dict.fromkeys(row["strategy"] for row in rows))
    table = []
    for level in sorted(study.scope.levels[trust]):
        cells = [next((r for r in rows if r["strategy"] == n and r["epsilon"] in (level, None)), None) for n in names]
        bound = max(r["lower_bound"] for r in cells if r)
        table.append([f"{level:g}", *(_cell(row) for row in cells), short(bound)])
    caption = (
        "Samples: mean (median) over the runs that stopped; then, where it is not zero, the share of unstopped runs "
        "(u) and of wrong answers (w). k thousand, M million, G billion."
    )
    return Table(["ε", *(shown_name(name) for name in names), "lower bound"], table, caption)


def _cell(row: Row | None) -> str:
    if row is None:
        return "–"
    words = "none stopped" if row["mean"] is None else f"{short(row['mean'])} ({short(row['median'])})"
    for key, mark in (("unstopped", "u"), ("errors", "w")):
        if row[key]:
            words += f" {mark} {row[key] / row['runs']:.1%}"
    return words


def _method(scope: Scope) -> Section:
    items = [
        "Instances: the paper's six Bernoulli instances mu1 … mu6 (here: " + ", ".join(scope.instances) + ").",
        *(f"ε, {trust}: {', '.join(f'{e:g}' for e in levels)}." for trust, levels in scope.levels.items()),
        "Thresholds: empirical, what the authors' experiments used, without a proof; printed, the paper's formulas "
        "to the letter; proved, the smallest with a proof in our documentation. TTUCB, CTB-TT and AdaP-TT have the "
        "same threshold printed and proved; DP-SE and bet-se have one stopping rule each and stand in every picture.",
        "A run that reaches 10^12 samples counts as unstopped and is in no mean or median.",
        "The lower bound is T·kl(1−δ, δ) with our tightest characteristic time: no δ-correct private strategy needs "
        "fewer on average.",
        "DP-SE is that of Sajed and Sheffet; the authors' code, which divides by the wrong count, is drawn beside it "
        "in the pictures with empirical thresholds.",
        "AdaP-TT, AdaP-TT* and TTUCB follow the paper's pseudocode, also with empirical thresholds. The authors' code "
        "differs in more than thresholds. Measured for its AdaP-TT, 100 runs in each of the 102 cells, below its own "
        "DP-SE: by the pseudocode in 7 cells; with its bonus, where log n stands for the arm's own phase, in 40, as no "
        "arm stays frozen after a bad first mean; with its coin flips and stopping rule in 39; not counting unfinished "
        "phases, about a fifth of the samples, in 72. It is below in all 102 only if the stopping rule's cost has "
        "σ = 1/2 as in the paper instead of that code's σ = 1, and then up to 39 of 100 answers in a cell are wrong.",
        "The empirical threshold of AdaP-TT* is the asymptotic form the paper displays: σ = 1/2, where those of "
        "AdaP-TT and TTUCB have σ = 1 (a factor of four), and no logarithms of counts (about a factor of two). At "
        "ε = 1000, where both have the same transport cost, that makes it nine to eleven times quicker than AdaP-TT.",
        "table.parquet has every number, figures/ every picture as PNG and SVG, runs/ what an interrupted study "
        "goes on from.",
    ]
    if scope.left_out:
        levels = ", ".join(f"{level:g}" for level in scope.left_out)
        items.append(
            f"Left out: local ε = {levels} (below {LEAST_LOCAL:g}), which take very long; --all-local simulates them."
        )
    return Section("How this was made", [Bullets(items)])
