"""What the commands show to people in a terminal: bounds, simulations, plans, audits,
sweeps, trials.
"""

import math
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from discreet.words import (
    cut,
    full_people,
    hint_words,
    known,
    lead_words,
    level,
    listed,
    people,
    price,
    ratio,
    trusted,
)

if TYPE_CHECKING:
    from discreet.audits.correctness import Correctness
    from discreet.audits.privacy import PrivacyAudit
    from discreet.instance import Bernoulli
    from discreet.planning.budget import Affordable
    from discreet.planning.plan import Plan, PlanRow
    from discreet.theory.bounds import Bounds
    from discreet.theory.times import CharacteristicTime
    from discreet.trials.status import Status

NARROWEST = 64
"""Columns below which numbers would be cut."""
MOST_ARMS = 12
MOST_CELLS = 200


def plain_console() -> Console:
    """Plain text on stdout, never so narrow that numbers would be cut."""
    console = Console(file=sys.stdout, highlight=False, markup=False)
    console.width = max(console.width, NARROWEST)
    return console


def say(words: str, wrap: bool = True) -> None:
    """Words, broken into lines that fit unless told otherwise."""
    plain_console().print(words, soft_wrap=not wrap)


def show_grid(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str | None = None,
    left: Collection[str] = (),
) -> None:
    """Cells under their heads: numbers to the right, the columns of the heads in `left`
    to the left.
    """
    table = Table(box=box.SIMPLE_HEAD, title=title)
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    plain_console().print(table)


def _sentence(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}."


def _say_once(phrases: Iterable[str]) -> None:
    """Each of them in a line, once."""
    for phrase in dict.fromkeys(phrases):
        say(_sentence(phrase))


# --- bounds ---------------------------------------------------------------------------


def show_bounds(found: "Bounds") -> None:
    """Samples at this δ, regimes, what privacy costs, and how samples are spread."""
    instance = found.instance
    least = "An error rate of 1/2 or more asks for nothing: the lower bounds are empty."
    if found.delta < 0.5:
        count = full_people(found.lower_bound)
        least = f"Without privacy every strategy needs at least {count} samples on average."
    best = instance.names[instance.best]
    say(f"{instance.arms} arms, {best} is best; error rate δ = {found.delta:g}\n{least}\n")
    _show_lower_bounds(found)
    _show_allocation(found)
    switch = found.switch_epsilon
    free = found.free_epsilon
    cost = f"is free from ε = {free:.4g} on" if free < math.inf else "is never quite free"
    say(
        "With a trusted collector (global DP) privacy matters most below ε ≈ "
        f"{switch['global']:.4g} and {cost}; with nobody trusted (local DP) it matters most below "
        f"ε ≈ {switch['local']:.4g}. The price is the ratio to no privacy. All of this is what no "
        "strategy can beat, T · kl(1−δ, δ); --json has every quantity, and the docs page 'Theory "
        "and proofs' says where each comes from.",
    )


def _show_lower_bounds(found: "Bounds") -> None:
    """Regimes only where there is room for them."""
    shown = 3 if plain_console().width >= 76 else 2
    heads = ["\nε"]
    for trust in ("collector\ntrusted", "nobody\ntrusted"):
        heads += [trust, "\nprice", "privacy\nregime"][:shown]
    rows = []
    for row in found.per_epsilon:
        collector = (full_people(row.lower_bound_global), ratio(row.cost_global), row.regime_global)
        nobody = (full_people(row.lower_bound_local_both), ratio(row.cost_local), row.regime_local)
        rows.append([f"{row.epsilon:g}", *collector[:shown], *nobody[:shown]])
    title = "At least this many samples on average under ε-privacy"
    show_grid(heads, rows, title, left=["privacy\nregime"])


def _show_allocation(found: "Bounds") -> None:
    """As many levels of ε as fit, and the best arms if there are many."""
    instance = found.instance
    times: list[tuple[str, CharacteristicTime]] = [("no\nprivacy", found.t_kl)]
    times += [(f"global\nε = {row.epsilon:g}", row.t_epsilon) for row in found.per_epsilon]
    names = [cut(name) for name in instance.names]
    fitting = max(1, (plain_console().width - 14 - max(map(len, names))) // 13)
    shown = sorted(range(instance.arms), key=lambda arm: -instance.means[arm])[:MOST_ARMS]
    rows = []
    for arm in sorted(shown):
        shares = [f"{time.allocation[arm]:.1%}" for _, time in times[:fitting]]
        rows.append([names[arm], f"{instance.means[arm]:g}", *shares])
    heads = ["\narm", "\nmean", *(head for head, _ in times[:fitting])]
    show_grid(heads, rows, "How an ideal strategy spreads its samples", left=["\narm"])
    if len(times) > fitting:
        say(f"(for {len(times) - fitting} more levels of ε a wider window is needed, or --json)\n")
    if len(shown) < instance.arms:
        say(f"(the best {len(shown)} of {instance.arms} arms)\n")


# --- simulations and sweeps -----------------------------------------------------------


def show_simulation(found: dict[str, Any], instance: "Bernoulli", design: str = "") -> None:
    """What a simulation came to, with what the strategy promises; `design` is what else
    was chosen of it.
    """
    cut_short = "interrupted; the runs done so far, which are the shorter ones"
    done = cut_short if found["interrupted"] else "all done"
    say(
        f"{found['strategy']} with the {found['threshold']} threshold"
        f"{f' ({design})' if design else ''}, {found['runs']} runs "
        f"({done}), {found['seconds']:.2f} s\nprivacy: {found['privacy']}\nerror rate: "
        f"{found['correctness']}"
    )
    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for words, number in _simulation_rows(found):
        table.add_row(words, number)
    plain_console().print(table)
    if found["pulls_mean"] is not None:
        total = sum(found["pulls_mean"])
        spread = zip(instance.names, found["pulls_mean"], strict=True)
        shares = [f"{name} {pulls / total:.1%}" for name, pulls in spread]
        say("samples went to: " + listed(shares))


def _simulation_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    rows = []
    if found["mean"] is not None:
        error = "" if found["sem"] is None else f" ± {found['sem']:,.0f}"
        ends = (found["quantiles"][which] for which in ("0.1", "0.9"))
        rows = [
            ("samples, mean ± standard error", f"{found['mean']:,.0f}{error}"),
            ("samples, median", f"{found['median']:,.0f}"),
            ("samples, 10 % … 90 %", " … ".join(f"{end:,.0f}" for end in ends)),
            ("releases, mean", f"{found['rounds_mean']:,.1f}"),
        ]
    low, high = found["error_interval"]
    return [
        *rows,
        ("wrong answers", f"{found['errors']} of {found['runs']}"),
        ("error rate, 95 % interval", f"{low:.2%} … {high:.2%}"),
        ("runs that hit the cap", f"{found['unstopped']} of {found['runs']}"),
    ]


def show_sweep(rows: list[dict[str, Any]], out: str) -> None:
    """The cells of a sweep, a table for each instance."""
    console = plain_console()
    wide = console.width >= 92
    shown = rows[:MOST_CELLS]
    heads = ["ε", "δ", "samples", *(["± error", "at least"] if wide else []), "wrong", "at cap"]
    for instance in dict.fromkeys(row["instance"] for row in shown):
        table = Table(box=box.SIMPLE_HEAD, title=instance, title_justify="left")
        table.add_column("strategy", min_width=14)
        for head in heads:
            table.add_column(head, justify="right", no_wrap=True)
        for row in shown:
            if row["instance"] == instance:
                table.add_row(*_sweep_row(row, wide))
        console.print(table)
    if len(shown) < len(rows):
        say(f"(the first {len(shown)} of {len(rows)} cells)\n")
    if any(row["threshold"] == "empirical" for row in rows):
        say("The empirical thresholds have no guarantee: the error rate may exceed δ.")
    _say_once(row["correctness"] for row in rows if row["threshold"] == "own")
    bound = ", 'at least' is what no strategy with that privacy can beat" if wide else ""
    say(
        f"{rows[0]['runs']} runs in each cell; samples are means over the runs that "
        f"stopped{bound}. Every number: {out}/table.parquet"
    )


def _sweep_row(row: dict[str, Any], wide: bool) -> list[str]:
    threshold = [row["threshold"]] if row["threshold"] != "proved" else []
    words = filter(None, [row["strategy"], *threshold, row["options"]])
    keys = ("mean", "sem", "lower_bound") if wide else ("mean",)
    return [
        ", ".join(words),
        known(row["epsilon"], "g"),
        f"{row['delta']:g}",
        *("–" if row[key] is None else full_people(row[key]) for key in keys),
        str(row["errors"]),
        str(row["unstopped"]),
    ]


# --- plans ----------------------------------------------------------------------------


def show_plan(found: "Plan") -> None:
    """A plan as a trialist wants it: a table a scenario, what to take, what a budget
    affords.
    """
    every = (*found.no_privacy, *found.per_epsilon)
    several = len({row.strategy.name for row in every}) > 1
    against = " (of bet-se against bet-se, of others against ttucb)" if several else ""
    for name, instance in found.scenarios.items():
        more = ", …" if instance.arms > 6 else ""
        means = ", ".join(f"{mean:g}" for mean in instance.means[:6]) + more
        about = f"{name}\n" if name != means else ""
        best = instance.names[instance.best]
        say(f"{about}{instance.arms} arms with success rates {means}; {best} is best")
        _show_rows(found, [row for row in every if row.scenario == name], several)
    say(
        f"{found.runs} simulated trials a row, error rate δ = {found.delta:g}, "
        f"{trusted(found.trust)}. '10 … 90 %': eight of ten trials end in this range. 'right': "
        "trials that end with the right answer. 'on best': share of the people who get the best "
        "arm. 'looks': times at which results are released. 'price': people for each one without "
        f"privacy{against}. 'at least': what no strategy with this privacy can beat on average.\n"
    )
    _say_once(words for row in found.per_epsilon for words in row.strategy.label.values())
    say(f"Take {found.recommended.reason}.")
    if found.hint > 0:
        say(f"\n{hint_words(found.hint)}.")
    for entry in found.affordable:
        say(f"\nBudget, {entry.strategy}: {_affordable_words(found, entry)}.")


def _affordable_words(found: "Plan", entry: "Affordable") -> str:
    if entry.epsilon is None:
        return entry.reason
    return (
        f"{found.budget:,} people suffice down to ε ≈ {entry.epsilon:.3g} (found to "
        f"{entry.tolerance:.0%}; right and in time in {entry.correct:.1%} of the trials there, "
        f"{found.probability:.0%} wanted)"
    )


def _show_rows(found: "Plan", rows: "list[PlanRow]", several: bool) -> None:
    """All columns that fit, the more important ones first."""
    columns = _columns(found, rows, several)
    for head in ("\nlooks", "on\nbest", "at\nleast", "\nprice"):
        widths = (
            max(map(len, [*title.split("\n"), *cells])) + 3 for title, cells in columns.items()
        )
        if sum(widths) + 2 > plain_console().width:
            del columns[head]
    cells = zip(*columns.values(), strict=True)
    show_grid(list(columns), list(cells), "People it takes", left=["\nstrategy"])


def _columns(found: "Plan", rows: "list[PlanRow]", several: bool) -> dict[str, list[str]]:
    """The cells of each column that has something to say."""
    most = found.max_people
    ends = most is not None or any(row.unstopped for row in rows)
    unstopped = "no\nend" if most is None else f"hits\n{people(most)}"
    columns = {
        "\nε": [level(row.epsilon) for row in rows],
        "\nstrategy": [row.strategy.name for row in rows] if several else [],
        "\nmean": [people(row.samples.mean) for row in rows],
        "\n10 … 90 %": [f"{people(row.samples.q10)} … {people(row.samples.q90)}" for row in rows],
        "\nright": [f"{row.correct:.1%}" for row in rows],
        unstopped: [f"{row.unstopped_probability:.1%}" for row in rows] if ends else [],
        "on\nbest": [f"{row.best_share:.0%}" for row in rows],
        "\nlooks": [known(row.releases, ",.0f") for row in rows],
        "\nprice": [price(row.privacy_cost) for row in rows],
        "at\nleast": ["–" if row.lower_bound is None else people(row.lower_bound) for row in rows],
    }
    return {head: cells for head, cells in columns.items() if cells}


# --- audits ---------------------------------------------------------------------------


def show_correctness(found: "Correctness") -> None:
    """An audit of δ: a row for each instance, and the verdict."""
    rows = []
    for case in found.cases:
        between = f"{case.low:.2%} … {case.high:.2%}"
        wrong = f"{case.errors} of {case.runs}"
        rows.append([case.name, wrong, str(case.unstopped), between, case.verdict])
    heads = ["\ninstance", "\nwrong", "no\nend", "error rate\nbetween", "\nδ is"]
    title = f"Wrong answers of {found.strategy.shown}, δ = {found.delta:g}"
    show_grid(heads, rows, title, left=["\ninstance", "\nδ is"])
    say(_sentence(found.rule))
    worst = found.worst
    share = worst.errors / worst.runs
    if found.violated:
        say(f"VIOLATED: on '{worst.name}' {share:.1%} of the answers were wrong.")
    else:
        say(f"Not violated; most errors on '{worst.name}': {share:.2%}.")


def show_privacy(found: "PrivacyAudit") -> None:
    """An audit of ε: a row for each mechanism, then what was compared in it, then the
    verdict.
    """
    rows = []
    for leak in found.leaks:
        numbers = [f"{leak.hits:,}", f"{leak.hits_other:,}", f"{leak.runs:,}", f"{leak.low:.3f}"]
        rows.append([leak.name, *numbers, leak.noise])
    heads = ["\naudited", "event\nseen", "on the\nother", "\nof", "ε at\nleast", "\nnoise"]
    title = f"What {found.strategy.name} gives away, ε = {found.epsilon:g} promised"
    show_grid(heads, rows, title, left=["\naudited", "\nnoise"])
    for leak in found.leaks:
        say(f"{leak.name}: {leak.neighbours}. Event: {leak.event}. {leak.verdict.capitalize()}.")
    for words in found.left_out:
        say(f"Left out: {words}.")
    say(f"\n{_sentence(found.rule)}")
    if found.strategy.gamma is not None:
        say(f"γ = {found.strategy.gamma:g} was taken off the larger probability.")
    worst = found.worst
    if found.violated:
        say(f"VIOLATED: {worst.name}, ε is at least {worst.low:.3f}, not {found.epsilon:g}.")
    else:
        say(f"No violation found; the largest bound, {worst.low:.3f}, is on '{worst.name}'.")


# --- live trials ----------------------------------------------------------------------


def show_trial(found: "Status") -> None:
    """A live trial: where it stands, what was released about each arm, what is
    promised.
    """
    verdict = "goes on"
    if found.stopped:
        ended = "has ended at its maximum: INCONCLUSIVE"
        verdict = "has stopped: conclusive" if found.conclusive else ended
    say(f"{found.name} ({found.strategy}) {verdict}.")
    if found.recommendation is not None:
        words = "The best arm is" if found.conclusive else "The best arm so far is"
        say(f"{words} {found.recommendation}.")
    if found.smallest_delta is not None:
        say(f"It would have been conclusive at an error rate of δ = {found.smallest_delta:.3g}.")
    waits = f", the next release waits for {found.waiting}" if found.waiting else ""
    say(
        f"{found.people} of at most {found.max_people} people; {found.pending} outcomes are not "
        f"in{waits}."
    )
    _show_arms(found)
    for lead in found.leads:
        say(f"{lead_words(lead.name, lead.over, lead.better_by, lead.people)}.")
    say(f"Privacy: {found.privacy}; {found.retain}.\nError rate: {found.correctness}.")
    if found.assignment:
        say(f"Assignment: {found.assignment}.")
    say(f"Head: {found.head}")


def _show_arms(found: "Status") -> None:
    heads = ["arm", "people", "behind the mean", "private mean"]
    rows = [
        [arm.name, str(arm.pulls), str(arm.count), known(arm.mean, ".4g")] for arm in found.arms
    ]
    if any(arm.interval for arm in found.arms):
        heads.append(f"{1 - found.delta:.4g} interval")
        for row, arm in zip(rows, found.arms, strict=True):
            ends = arm.interval
            row.append("–" if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}")
    show_grid(heads, rows, left=["arm"])
