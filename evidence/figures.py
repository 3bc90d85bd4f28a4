"""Compute the figures of README, docs and report from evidence/*.json."""

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from evidence import authors as authors_study
from evidence import bernoulli as bernoulli_study
from evidence import beyond
from evidence import field as field_study
from evidence import numbers as numbers_study
from evidence import rules as rules_study

ROOT = Path(__file__).parents[1]
NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
FRACTIONS = {2: "a half", 3: "a third", 5: "a fifth", 30: "a thirtieth"}


def read_evidence(name: str) -> Any:
    """Return what a study measured."""
    return json.loads((ROOT / "evidence" / f"{name}.json").read_text())


CHOOSING = read_evidence("choosing")
CELLS = CHOOSING["cells"]
LOCAL = CHOOSING["local"]
PARTICIPANTS = read_evidence("bet_se_participants")
FIELD = read_evidence("field")
OUTCOMES = read_evidence("numbers")
BEYOND = read_evidence("beyond")
RULES = read_evidence("rules")
BERNOULLI = read_evidence("bernoulli")
AUTHORS = read_evidence("authors")
THEIRS = AUTHORS["cells"]
THRESHOLDS = read_evidence("thresholds")
AUDITS = {(row["strategy"], row["scale"]): row for row in read_evidence("audits")}


# --- how sentences write numbers ------------------------------------------------------


def ends(values: Iterable[float], form: str = ".1f") -> list[str]:
    """Return the smallest and the largest."""
    found = list(values)
    return [format(min(found), form), format(max(found), form)]


def percents(values: Iterable[float]) -> list[str]:
    return ends((100 * value for value in values), ".0f")


def about(number: float) -> str:
    """Round to one figure."""
    return f"{float(f'{number:.1g}'):.0f}"


def word(number: float) -> str:
    return NUMBERS[round(number)]


def fraction(share: float) -> str:
    """Say half, fifth, …: to the nearest ten from a tenth on."""
    parts = round(1 / share) if share > 0.1 else 10 * round(0.1 / share)
    return FRACTIONS.get(parts, f"1/{parts}")


def shorten(value: float) -> str:
    """Return a number with two digits at least."""
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def samples(number: float) -> str:
    return f"{number / 1e6:.3g} M" if number >= 1e6 else f"{number / 1e3:.0f} k"


# --- outcomes that are numbers --------------------------------------------------------


def beyond_ratios(way: str, low: float, high: float) -> list[float]:
    """Return the participants that bet-se takes with Gaussian noise for each with Laplace noise, in
    every cell with an ε between these.
    """
    levels = [level for level in beyond.EPSILONS if low <= level <= high]
    chosen = {"part": "epsilons", "strategy": "bet-se"}
    return [one for at in levels for one in beyond.ratios(BEYOND, way, epsilon=at, **chosen)]


def cost_of_numbers(part: str) -> list[float]:
    """Return the participants with `numbers` for each with `yes-no`, on yes-no outcomes."""
    cells = numbers_study.cells_of(OUTCOMES, part)
    return [1 / numbers_study.gain(cell) for cell in cells if "bern" in cell["instance"]]


def cost_of_twice_the_range(way: str) -> list[float]:
    """Return the participants with a range twice as wide for each with the narrower one."""
    ratios = []
    for epsilon in numbers_study.RANGE_EPSILONS:
        cells = numbers_study.cells_of(OUTCOMES, "ranges", epsilon=epsilon)
        means = [cell[way]["mean"] for cell in cells]
        ratios += [means[1] / means[0], means[2] / means[1]]
    return ratios


# --- what the evidence says -----------------------------------------------------------


def ratios(other: str, statistic: str = "mean") -> list[float]:
    """Return the samples of bet-se relative to another strategy's, with a trusted collector."""
    return [
        cell["bet-se"]["mean"] / cell[other][statistic] for cell in CELLS if cell[other][statistic]
    ]


def to_the_bound(instance: str = "") -> list[float]:
    cells = [cell for cell in CELLS if instance in cell["instance"]]
    return [cell["bet-se"]["mean"] / cell["lower_bound"] for cell in cells]


def cell(cells: list[dict[str, Any]], instance: str, epsilon: float) -> dict[str, Any]:
    (found,) = [one for one in cells if (one["instance"], one["epsilon"]) == (instance, epsilon)]
    return found


def runs_of(cells: list[dict[str, Any]], name: str) -> str:
    (runs,) = {one[name]["runs"] for one in cells}
    return str(runs)


def adap_tt(step: str) -> list[float]:
    """Return the means of AdaP-TT after one step from the pseudocode to the authors' code."""
    bonus, coins, leader, half = authors_study.VARIANTS
    if step == "pseudocode":
        return [one["paper's pseudocode"] for one in THEIRS]
    column, key = {
        "bonus": (bonus, "mean"),
        "coins": (coins, "mean"),
        "leader": (leader, "mean"),
        "finished": (leader, "finished"),
        "half": (half, "finished"),
    }[step]
    return [one[column][key] for one in THEIRS]


def below(step: str, rival: str = "dp-se-authors") -> str:
    """Count the cells in which it is below a DP-SE."""
    pairs = zip(adap_tt(step), THEIRS, strict=True)
    return str(sum(mean < one[rival] for mean, one in pairs))


def of_mu2(values: list[float], epsilon: float) -> float:
    pairs = zip(values, THEIRS, strict=True)
    (found,) = [
        value for value, one in pairs if (one["instance"], one["epsilon"]) == ("mu2", epsilon)
    ]
    return found


def step_row(step: str) -> list[str]:
    means = adap_tt(step)
    shown = [samples(of_mu2(means, epsilon)) for epsilon in (0.01, 10.0)]
    return [below(step, "dp-se"), below(step), *shown]


def dp_se_row() -> list[str]:
    rivals = ("dp-se", "dp-se-authors")
    return [
        samples(cell(THEIRS, "mu2", epsilon)[rival]) for epsilon in (0.01, 10.0) for rival in rivals
    ]


def lost() -> dict[str, list[float]]:
    """Return the ε at which the authors' AdaP-TT takes no less than their DP-SE."""
    found: dict[str, list[float]] = {}
    for mean, one in zip(adap_tt("finished"), THEIRS, strict=True):
        if mean >= one["dp-se-authors"]:
            found.setdefault(one["instance"], []).append(one["epsilon"])
    return found


def losses() -> list[str]:
    """Return the ε from which it loses, the instances, and the ε from which it loses on the
    last.
    """
    least = {instance: min(levels) for instance, levels in lost().items()}
    most = max(least.values())
    first = sorted(name for name, level in least.items() if level < most)
    last = [name for name, level in least.items() if level == most]
    assert len({least[name] for name in first}) == 1
    return [
        f"{least[first[0]]:g}",
        *(name[2:] for name in first),
        f"{most:g}",
        *(name[2:] for name in last),
    ]


def half_sigma() -> list[str]:
    """Count the wrong answers in all with σ = 1/2, of how many; the most in a cell, of how
    many.
    """
    wrong = [one[list(authors_study.VARIANTS)[-1]]["errors"] for one in THEIRS]
    runs = AUTHORS["runs"]
    return [str(sum(wrong)), spaced(runs * len(wrong)), str(max(wrong)), str(runs)]


def dp_se_handicap() -> list[str]:
    most = max(THEIRS, key=lambda one: float(one["dp-se-authors"] / one["dp-se"]))
    factor = most["dp-se-authors"] / most["dp-se"]
    return [f"{factor:.1f}", most["instance"][2:], f"{most['epsilon']:g}"]


def unfinished() -> float:
    """Return the share of the samples in unfinished phases, on average over the cells."""
    shares = [
        1 - done / mean for done, mean in zip(adap_tt("finished"), adap_tt("leader"), strict=True)
    ]
    return sum(shares) / len(shares)


def quicker() -> list[str]:
    rows = THRESHOLDS["at ε = 1000"]
    return [
        word(value)
        for value in map(float, ends((row["adap-tt"] / row["adap-tt-star"] for row in rows), ".6f"))
    ]


def empirical(strategy: str, epsilon: float | None, arms: int) -> dict[str, Any]:
    key = (strategy, epsilon, arms)
    rows: list[dict[str, Any]] = THRESHOLDS["empirical"]
    (found,) = [row for row in rows if (row["strategy"], row["epsilon"], row["arms"]) == key]
    return found


def rate(strategy: str, epsilon: float, arms: int = 2) -> str:
    row = empirical(strategy, epsilon, arms)
    return f"{100 * row['errors'] / row['runs']:.1f}"


def empirical_rates() -> list[str]:
    first = empirical("adap-tt", 0.1, 2)
    interval = [f"{100 * bound:.1f}" for bound in first["interval"]]
    rates = [rate("adap-tt", 1.0), rate("adap-tt-star", 0.1), rate("adap-tt-star", 1.0)]
    return [str(first["runs"]), rate("adap-tt", 0.1), *interval, *rates, rate("adap-tt", 1.0, 10)]


def gaussian() -> list[str]:
    """Return the error rates in percent with too little noise and with enough."""
    return [about(100 * row["errors"] / row["runs"]) for row in THRESHOLDS["gaussian σ"]]


def scaled_noise() -> list[str]:
    counts = [
        AUDITS[name, scale]["found"] for scale in (0.8, 0.9, 0.95) for name in ("bet-se", "adap-tt")
    ]
    assert counts[0] == counts[1]
    (audits,) = {row["audits"] for row in AUDITS.values()}
    (runs,) = {row["runs"] for row in AUDITS.values()}
    last = "none" if counts[5] == 0 else str(counts[5])
    return [
        spaced(runs),
        str(counts[0]),
        str(audits),
        str(counts[2]),
        str(counts[3]),
        str(counts[4]),
        last,
    ]


def bets_to_bernoulli() -> dict[str, float]:
    """Return the samples of `bet-se` over those of `ttucb` with Bernoulli costs, by instance."""
    return {
        cell["instance"]: cell["bet-se"]["mean"] / cell["kl"]["mean"] for cell in BERNOULLI["cells"]
    }


def bernoulli_to_bets() -> list[tuple[str, float]]:
    """Return the inverse ratios on the paper's instances."""
    return [
        (name, 1 / ratio) for name, ratio in bets_to_bernoulli().items() if name.startswith("mu")
    ]


EACH = ("ttucb", "ttucb kl", "ctb-tt")

FIGURES: dict[str, Callable[[], list[str]]] = {
    "choosing.summary": lambda: ends(to_the_bound()),
    "field.days": lambda: [
        shorten(end(field_study.days(one, way) for one in field_study.cells_of(FIELD, share=share)))
        for share in (0.1, 2.0)
        for way in ("waiting", "continuous")
        for end in (min, max)
    ],
    "rules.ratios": lambda: [
        f"{end(rules_study.ratios(RULES, EACH, rules)):.2f}"
        for rules in (("eb-tci", "ts-tc"), ("track-and-stop",))
        for end in (min, max)
    ],
    "rules.unstopped": lambda: [
        percents(
            cell["eb-tc"]["unstopped"] / RULES["runs"][cell["way"]]
            for cell in RULES["cells"]
            if cell["way"] in EACH
        )[1]
    ],
    "rules.phased": lambda: [
        *(
            f"{end(rules_study.ratios(RULES, ('adap-tt',), ('track-and-stop',))):.2f}"
            for end in (min, max)
        ),
        spaced(rules_study.wrong(RULES)[1]),
    ],
    "bernoulli.saved": lambda: [
        *ends(map(bernoulli_study.saved, BERNOULLI["cells"]), ".2f"),
        *ends(cell["kl"]["mean"] / cell["bound"] for cell in BERNOULLI["cells"]),
    ],
    "bernoulli.wrong": lambda: [
        str(
            sum(
                cell[way]["errors"]
                for cell in BERNOULLI["cells"]
                for way in ("gaussian", "kl", "kl ids")
            )
        )
    ],
    "bernoulli.bets": lambda: [
        *ends((ratio for ratio in bets_to_bernoulli().values() if ratio < 1), ".2f"),
        *(name for name, ratio in bets_to_bernoulli().items() if ratio >= 1),
    ],
    "bernoulli.strong": lambda: [
        f"{study(BERNOULLI['strong'][-1]):.2f}"
        for study in (bernoulli_study.saved, bernoulli_study.error_of_saved)
    ],
    "bernoulli.against_bets": lambda: [
        *ends(ratio for _, ratio in bernoulli_to_bets() if ratio > 1),
        *(f"{ratio:.2f}" for _, ratio in bernoulli_to_bets() if ratio < 1),
        *(name for name, ratio in bernoulli_to_bets() if ratio < 1),
    ],
    "participants.wrong": lambda: [
        spaced(PARTICIPANTS["runs"] * len(PARTICIPANTS["cells"])),
        str(sum(cell["now"]["errors"] for cell in PARTICIPANTS["cells"])),
        f"{0.01 * PARTICIPANTS['runs'] * len(PARTICIPANTS['cells']):.0f}",
    ],
    "beyond.gamma": lambda: [
        *ends(beyond_ratios("gamma", 0, 10), ".2f"),
        str(len(beyond_ratios("gamma", 0, 10))),
    ],
    "beyond.rho": lambda: [
        *ends(beyond_ratios("rho", 0, 0.1), ".2f"),
        *ends(beyond_ratios("rho", 5, 100), ".2f"),
    ],
    "beyond.phased": lambda: [f"{max(beyond.pure_to_phased(BEYOND)):.2f}"],
    "beyond.wrong": lambda: [
        spaced(beyond.wrong(BEYOND, "bet-se")[2]),
        str(beyond.wrong(BEYOND, "bet-se")[0]),
        spaced(beyond.wrong(BEYOND, "adap-tt")[2]),
        str(beyond.wrong(BEYOND, "adap-tt")[0]),
        str(beyond.wrong(BEYOND, "adap-tt")[1]),
    ],
    "numbers.wrong": lambda: [
        str(sum(cell["numbers"]["errors"] for cell in numbers_study.cells_of(OUTCOMES, "cells"))),
        spaced(OUTCOMES["runs"] * len(numbers_study.cells_of(OUTCOMES, "cells"))),
    ],
    "numbers.misleading": lambda: [
        f"{numbers_study.find_worst_error(OUTCOMES, delta):.1%}".replace("%", " %")
        for delta in numbers_study.DELTAS
    ],
    "numbers.yes_no": lambda: [f"{100 * max(cost_of_numbers('cells')) - 100:.0f}"],
    "numbers.local": lambda: ends(
        numbers_study.gain(cell)
        for cell in numbers_study.cells_of(OUTCOMES, "local")
        if "bern" not in cell["instance"]
    ),
    "numbers.levels": lambda: [str(math.ceil(100 * max(cost_of_numbers("local")) - 100))],
    "numbers.range": lambda: [
        end for way in ("numbers", "yes-no") for end in ends(cost_of_twice_the_range(way))
    ],
    "choosing.adap_tt": lambda: [f"{cell(CELLS, 'mu2', 0.01)['adap-tt']['median'] / 1e6:.0f}"],
    "choosing.trusted": lambda: [
        str(len(CELLS)),
        str(CHOOSING["delta"]),
        *(runs_of(CELLS, name) for name in ("bet-se", "dp-se", "adap-tt-star")),
    ],
    "choosing.ratios": lambda: [
        *percents(ratios("dp-se")),
        *percents(ratios("adap-tt-star", "median")),
        percents(ratios("adap-tt", "median"))[1],
        *ends(to_the_bound()),
    ],
    "choosing.wrong": lambda: [
        str(sum(one["bet-se"]["errors"] for one in CELLS)),
        spaced(sum(one["bet-se"]["runs"] for one in CELLS)),
        f"{CHOOSING['delta'] * sum(one['bet-se']['runs'] for one in CELLS):.0f}",
        "Some" if any(one["bet-se"]["unstopped"] for one in CELLS) else "No",
    ],
    "choosing.none": lambda: [
        runs_of(CHOOSING["none"], "bet-se"),
        str(CHOOSING["delta"]),
        runs_of(CHOOSING["none"], "ttucb-batched"),
    ],
    "choosing.local": lambda: [
        runs_of(LOCAL, "bet-se"),
        *map(
            word,
            map(float, ends(one["ctb-tt"]["runs"] for one in LOCAL if one["epsilon"] == 0.01)),
        ),
        str(min(one["epsilon"] for one in LOCAL)),
    ],
    "choosing.local_ratios": lambda: [
        str(len(LOCAL)),
        *percents(one["bet-se"]["mean"] / one["ctb-tt"]["mean"] for one in LOCAL),
    ],
    "choosing.errors": lambda: [
        str(CHOOSING["errors"][0]["runs"]),
        "not all" if any(one["unstopped"] for one in CHOOSING["errors"]) else "all",
        f"{0.1 * CHOOSING['errors'][0]['runs']:.0f}",
        str(CHOOSING["errors"][0]["runs"]),
    ],
    "recommended.global": lambda: [
        str(len(CELLS)),
        word(len({one["instance"] for one in CELLS})),
        word(len({one["epsilon"] for one in CELLS})),
        str(CHOOSING["delta"]),
    ],
    "recommended.local": lambda: [
        str(len(LOCAL)),
        word(len({one["instance"] for one in LOCAL})),
        *ends((one["epsilon"] for one in LOCAL), "g"),
        str(CHOOSING["delta"]),
    ],
    "recommended.none": lambda: [word(len(CHOOSING["none"])), str(CHOOSING["delta"])],
    "authors.below": lambda: [below("pseudocode", "dp-se"), str(len(THEIRS)), str(AUTHORS["runs"])],
    "authors.pseudocode": lambda: step_row("pseudocode"),
    "authors.bonus": lambda: step_row("bonus"),
    "authors.coins": lambda: step_row("coins"),
    "authors.leader": lambda: step_row("leader"),
    "authors.finished": lambda: step_row("finished"),
    "authors.half": lambda: step_row("half"),
    "authors.dp_se": dp_se_row,
    "authors.factor": lambda: [
        about(of_mu2(adap_tt("pseudocode"), 0.01) / of_mu2(adap_tt("bonus"), 0.01))
    ],
    "authors.losses": losses,
    "authors.half_sigma": half_sigma,
    "authors.handicap": dp_se_handicap,
    "thresholds.quicker": quicker,
    "report.steps": lambda: [
        str(AUTHORS["runs"]),
        str(len(THEIRS)),
        *map(below, ("pseudocode", "bonus", "leader")),
        fraction(round(unfinished(), 1)),
        *map(below, ("finished", "half")),
    ],
    "report.half_sigma": lambda: half_sigma()[2:],
    "report.quicker": quicker,
    "thresholds.empirical": empirical_rates,
    "thresholds.gaussian": gaussian,
    "thresholds.sharp": lambda: [
        spaced(THRESHOLDS["sharp"]["cases"]),
        f"{math.ceil(100 * THRESHOLDS['sharp']['largest ratio']) / 100:.2f}",
    ],
    "audits.scaled": scaled_noise,
}
