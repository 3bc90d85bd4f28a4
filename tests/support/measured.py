"""What evidence/*.json says, in the numbers and words of the sentences that say it."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evidence import authors as authors_study
from evidence import beyond
from evidence import numbers as numbers_study

ROOT = Path(__file__).parents[2]
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


def evidence(name: str) -> Any:
    return json.loads((ROOT / "evidence" / f"{name}.json").read_text())


CHOOSING = evidence("choosing")
CELLS = CHOOSING["cells"]
LOCAL = CHOOSING["local"]
PARTICIPANTS = evidence("bet_se_participants")
FIELD = evidence("field")
OUTCOMES = evidence("numbers")
BEYOND = evidence("beyond")
RULES = evidence("rules")
BERNOULLI = evidence("bernoulli")
AUTHORS = evidence("authors")
THEIRS = AUTHORS["cells"]
THRESHOLDS = evidence("thresholds")
AUDITS = {(row["strategy"], row["scale"]): row for row in evidence("audits")}


# --- how sentences write numbers ------------------------------------------------------


def ends(values: Iterable[float], form: str = ".1f") -> list[str]:
    """The smallest and the largest."""
    found = list(values)
    return [format(min(found), form), format(max(found), form)]


def percents(values: Iterable[float]) -> list[str]:
    return ends((100 * value for value in values), ".0f")


def about(number: float) -> str:
    """To one figure."""
    return f"{float(f'{number:.1g}'):.0f}"


def word(number: float) -> str:
    return NUMBERS[round(number)]


def fraction(share: float) -> str:
    """Half, fifth, …: to the nearest ten from a tenth on."""
    parts = round(1 / share) if share > 0.1 else 10 * round(0.1 / share)
    return FRACTIONS.get(parts, f"1/{parts}")


def spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def samples(number: float) -> str:
    return f"{number / 1e6:.3g} M" if number >= 1e6 else f"{number / 1e3:.0f} k"


# --- outcomes that are numbers --------------------------------------------------------


def beyond_ratios(way: str, low: float, high: float) -> list[float]:
    """People that bet-se takes with Gaussian noise for each with Laplace noise, in
    every cell with an ε between these.
    """
    levels = [level for level in beyond.EPSILONS if low <= level <= high]
    chosen = {"part": "epsilons", "strategy": "bet-se"}
    return [one for at in levels for one in beyond.ratios(BEYOND, way, epsilon=at, **chosen)]


def cost_of_numbers(part: str) -> list[float]:
    """People with `numbers` for each with `yes-no`, where outcomes are yes or no."""
    cells = numbers_study.cells_of(OUTCOMES, part)
    return [1 / numbers_study.gain(cell) for cell in cells if "bern" in cell["instance"]]


def cost_of_twice_the_range(way: str) -> list[float]:
    """People with a range twice as wide for each with the narrower one."""
    ratios = []
    for epsilon in numbers_study.RANGE_EPSILONS:
        cells = numbers_study.cells_of(OUTCOMES, "ranges", epsilon=epsilon)
        means = [cell[way]["mean"] for cell in cells]
        ratios += [means[1] / means[0], means[2] / means[1]]
    return ratios


# --- what the evidence says -----------------------------------------------------------


def ratios(other: str, statistic: str = "mean") -> list[float]:
    """Samples of bet-se relative to another strategy's, with a trusted collector."""
    return [
        cell["bet-se"]["mean"] / cell[other][statistic] for cell in CELLS if cell[other][statistic]
    ]


def to_the_bound(instance: str = "") -> list[float]:
    cells = [cell for cell in CELLS if instance in cell["instance"]]
    return [cell["bet-se"]["mean"] / cell["lower_bound"] for cell in cells]


def to_the_next_best() -> list[float]:
    """Relative to the best other strategy with a proof: means of DP-SE, medians where
    runs may not stop.
    """
    rivals = (("dp-se", "mean"), ("adap-tt", "median"), ("adap-tt-star", "median"))
    best = [min(cell[name][key] for name, key in rivals if cell[name][key]) for cell in CELLS]
    return [cell["bet-se"]["mean"] / rival for cell, rival in zip(CELLS, best, strict=True)]


def cell(cells: list[dict[str, Any]], instance: str, epsilon: float) -> dict[str, Any]:
    (found,) = [one for one in cells if (one["instance"], one["epsilon"]) == (instance, epsilon)]
    return found


def runs_of(cells: list[dict[str, Any]], name: str) -> str:
    (runs,) = {one[name]["runs"] for one in cells}
    return str(runs)


def adap_tt(step: str) -> list[float]:
    """Means of AdaP-TT after one step from the pseudocode to the authors' code."""
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
    """In how many cells it is below a DP-SE."""
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
    """Where the authors' AdaP-TT takes no less than their DP-SE: ε by instance."""
    found: dict[str, list[float]] = {}
    for mean, one in zip(adap_tt("finished"), THEIRS, strict=True):
        if mean >= one["dp-se-authors"]:
            found.setdefault(one["instance"], []).append(one["epsilon"])
    return found


def losses() -> list[str]:
    """The ε from which it loses, the instances, and the ε from which it loses on the
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
    """Wrong answers in all with σ = 1/2, of how many; the most in a cell, of how
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
    """The share of the samples in unfinished phases, on average over the cells."""
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
    found = []
    for row in THRESHOLDS["gaussian σ"]:
        found += [about(100 * row["errors"] / row["runs"]), f"{row['scale']:.3f}"]
    return found


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
    """Samples of `bet-se` over those of `ttucb` with Bernoulli costs, by instance."""
    return {
        cell["instance"]: cell["bet-se"]["mean"] / cell["kl"]["mean"] for cell in BERNOULLI["cells"]
    }


def bernoulli_to_bets() -> list[tuple[str, float]]:
    """The other way round, on the paper's instances."""
    return [
        (name, 1 / ratio) for name, ratio in bets_to_bernoulli().items() if name.startswith("mu")
    ]
