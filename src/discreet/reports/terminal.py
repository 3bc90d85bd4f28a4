"""What the commands show to people: tables of bounds, simulations, plans, audits and sweeps."""

import math
import sys
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from discreet.audits.correctness import Correctness
    from discreet.audits.privacy import PrivacyAudit
    from discreet.instance import Bernoulli
    from discreet.planning.plan import Plan, PlanRow
    from discreet.theory.bounds import Bounds
    from discreet.trials.status import Status


def plain_console() -> "Console":
    """Plain text on stdout, never so narrow that numbers would be cut."""
    console = Console(file=sys.stdout, highlight=False, markup=False)
    console.width = max(console.width, 64)
    return console


def show_bounds(found: "Bounds") -> None:
    """Samples at this δ, regimes, what privacy costs, and how samples are spread."""
    console = plain_console()
    instance = found.instance
    console.print(
        f"{instance.arms} arms, {instance.names[instance.best]} is best; error rate δ = {found.delta:g}\n"
        + (
            f"Without privacy every strategy needs at least {count_people(found.lower_bound)} samples on average.\n"
            if found.delta < 0.5
            else "An error rate of 1/2 or more asks for nothing: the lower bounds are empty.\n"
        )
    )
    table = Table(box=box.SIMPLE_HEAD, title="At least this many samples on average under ε-privacy")
    table.add_column("\nε", justify="right", no_wrap=True)
    wide = console.width >= 76
    for trust in ("collector\ntrusted", "nobody\ntrusted"):
        table.add_column(trust, justify="right", no_wrap=True)
        table.add_column("\nprice", justify="right", no_wrap=True)
        if wide:
            table.add_column("privacy\nregime", no_wrap=True)
    for row in found.per_epsilon:
        trusted = [count_people(row.lower_bound_global), _ratio(row.cost_global), row.regime_global]
        local = [count_people(row.lower_bound_local_both), _ratio(row.cost_local), row.regime_local]
        shown = trusted + local if wide else trusted[:2] + local[:2]
        table.add_row(f"{row.epsilon:g}", *shown)
    console.print(table)
    _show_allocation(found, console)
    switch, free = found.switch_epsilon, found.free_epsilon
    price = f"is free from ε = {free:.4g} on" if free < math.inf else "is never quite free"
    console.print(
        f"With a trusted collector (global DP) privacy matters most below ε ≈ {switch['global']:.4g} and {price}; "
        f"with nobody trusted (local DP) it matters most below ε ≈ {switch['local']:.4g}. "
        "The price is the ratio to no privacy. All of this is what no strategy can beat, T · kl(1−δ, δ); "
        "--json has every quantity, and the docs page 'Theory and proofs' says where each comes from.",
    )


def _show_allocation(found: "Bounds", console: Any) -> None:
    instance = found.instance
    columns = [("no\nprivacy", found.t_kl)]
    columns += [(f"global\nε = {row.epsilon:g}", row.t_epsilon) for row in found.per_epsilon]
    names = [name if len(name) <= 24 else name[:23] + "…" for name in instance.names]
    fitting = max(1, (console.width - 14 - max(map(len, names))) // 13)
    left_out, columns = columns[fitting:], columns[:fitting]
    table = Table(box=box.SIMPLE_HEAD, title="How an ideal strategy spreads its samples")
    table.add_column("\narm", no_wrap=True)
    table.add_column("\nmean", justify="right", no_wrap=True)
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    shown = sorted(range(instance.arms), key=lambda a: -instance.means[a])[:12]
    for a in sorted(shown):
        shares = [f"{time.allocation[a]:.1%}" for _, time in columns]
        table.add_row(names[a], f"{instance.means[a]:g}", *shares)
    console.print(table)
    if left_out:
        console.print(f"(for {len(left_out)} more levels of ε a wider window is needed, or --json)\n")
    if len(shown) < instance.arms:
        console.print(f"(the best {len(shown)} of {instance.arms} arms)\n")


def count_people(samples: float) -> str:
    """A lower bound on a number of people, rounded up."""
    return f"{math.ceil(samples):,}" if samples < 1e12 else f"{samples:.3e}"


def _ratio(value: float) -> str:
    return f"× {value:.2f}" if value < 100 else f"× {value:,.0f}"


def show_simulation(found: dict[str, Any], instance: "Bernoulli") -> None:
    """What a simulation came to, with what the strategy promises."""
    console = plain_console()
    done = "interrupted; the runs done so far, which are the shorter ones" if found["interrupted"] else "all done"
    console.print(
        f"{found['strategy']} with the {found['threshold']} threshold, {found['runs']} runs ({done}), "
        f"{found['seconds']:.2f} s\nprivacy: {found['privacy']}\nerror rate: {found['correctness']}"
    )
    low, high = found["error_interval"]
    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    if found["mean"] is not None:
        sem = "" if found["sem"] is None else f" ± {found['sem']:,.0f}"
        table.add_row("samples, mean ± standard error", f"{found['mean']:,.0f}{sem}")
        table.add_row("samples, median", f"{found['median']:,.0f}")
        table.add_row("samples, 10 % … 90 %", f"{found['quantiles']['0.1']:,.0f} … {found['quantiles']['0.9']:,.0f}")
        table.add_row("releases, mean", f"{found['rounds_mean']:,.1f}")
    table.add_row("wrong answers", f"{found['errors']} of {found['runs']}")
    table.add_row("error rate, 95 % interval", f"{low:.2%} … {high:.2%}")
    table.add_row("runs that hit the cap", f"{found['unstopped']} of {found['runs']}")
    console.print(table)
    if found["pulls_mean"] is not None:
        total = sum(found["pulls_mean"])
        spread = zip(instance.names, found["pulls_mean"], strict=True)
        shares = [f"{name} {pulls / total:.1%}" for name, pulls in spread]
        console.print("samples went to: " + ", ".join(shares[:12]) + (" …" if len(shares) > 12 else ""))


def _sweep_row(row: dict[str, Any], wide: bool) -> list[str]:
    words = [row["strategy"], *([row["threshold"]] if row["threshold"] != "proved" else []), row["options"]]
    keys = ("mean", "sem", "lower_bound") if wide else ("mean",)
    level = "–" if row["epsilon"] is None else f"{row['epsilon']:g}"
    numbers = ["–" if row[key] is None else count_people(row[key]) for key in keys]
    counts = [str(row["errors"]), str(row["unstopped"])]
    return [", ".join(filter(None, words)), level, f"{row['delta']:g}", *numbers, *counts]


def show_sweep(rows: list[dict[str, Any]], out: str) -> None:
    """The cells of a sweep, a table for each instance."""
    console = plain_console()
    shown, wide = rows[:200], console.width >= 92
    headings = ["ε", "δ", "samples", *(["± error", "at least"] if wide else []), "wrong", "at cap"]
    for instance in dict.fromkeys(row["instance"] for row in shown):
        table = Table(box=box.SIMPLE_HEAD, title=instance, title_justify="left")
        table.add_column("strategy", min_width=14)
        for heading in headings:
            table.add_column(heading, justify="right", no_wrap=True)
        for row in shown:
            if row["instance"] == instance:
                table.add_row(*_sweep_row(row, wide))
        console.print(table)
    if len(shown) < len(rows):
        console.print(f"(the first {len(shown)} of {len(rows)} cells)\n")
    if any(row["threshold"] == "empirical" for row in rows):
        console.print("The empirical thresholds have no guarantee: the error rate may exceed δ.")
    console.print(
        f"{rows[0]['runs']} runs in each cell; samples are means over the runs that stopped"
        + (", 'at least' is what no strategy with that privacy can beat" if wide else "")
        + f". Every number: {out}/table.parquet"
    )


def people(count: float | None) -> str:
    """A number of people: whole below a million, else with three digits."""
    if count is None:
        return "no end"
    if count < 999_999.5:
        return f"{math.ceil(count - 1e-9):,}"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if count >= size:
            return f"{count / size:.3g} {letter}"
    return f"{count / 1e6:.3g} M"


def show_plan(found: "Plan", console: "Console") -> None:
    """The plan as a trialist wants it: a table for each scenario, then what to take, then what a budget affords."""
    several = len({row.strategy.name for row in (*found.no_privacy, *found.per_epsilon)}) > 1
    price = " (of bet-se against bet-se, of others against ttucb)" if several else ""
    for name, instance in found.scenarios.items():
        means = ", ".join(f"{mean:g}" for mean in instance.means[:6]) + (", …" if instance.arms > 6 else "")
        best = instance.names[instance.best]
        about = f"{name}\n" if name != means else ""
        console.print(f"{about}{instance.arms} arms with success rates {means}; {best} is best")
        rows = [row for row in (*found.no_privacy, *found.per_epsilon) if row.scenario == name]
        _show_rows(found, rows, several, console)
    trusted = "a trusted collector" if found.trust == "global" else "nobody trusted"
    console.print(
        f"{found.runs} simulated trials a row, error rate δ = {found.delta:g}, {trusted}. '10 … 90 %': eight of ten "
        "trials end in this range. 'right': trials that end with the right answer. 'on best': share of the people who "
        "get the best arm. 'looks': times at which results are released. 'price': people for each one without "
        f"privacy{price}. "
        "'at least': what no strategy with this privacy can beat on average.\n"
    )
    console.print(f"Take {found.recommended.reason}.")
    for entry in found.affordable:
        if entry.epsilon is None:
            console.print(f"\nBudget, {entry.strategy}: {entry.reason}.")
        else:
            console.print(
                f"\nBudget, {entry.strategy}: {found.budget:,} people suffice down to ε ≈ {entry.epsilon:.3g} (found "
                f"to {entry.tolerance:.0%}; right and in time in {entry.correct:.1%} of the trials there, "
                f"{found.probability:.0%} wanted)."
            )


def _show_rows(found: "Plan", rows: "list[PlanRow]", several: bool, console: "Console") -> None:
    """All columns that fit, the more important ones first."""
    most = found.max_people
    columns = {
        "\nε": ["none" if row.epsilon is None else f"{row.epsilon:g}" for row in rows],
        "\nstrategy": [row.strategy.name for row in rows] if several else [],
        "\nmean": [people(row.samples.mean) for row in rows],
        "\n10 … 90 %": [f"{people(row.samples.q10)} … {people(row.samples.q90)}" for row in rows],
        "\nright": [f"{row.correct:.1%}" for row in rows],
        "no\nend" if most is None else f"hits\n{people(most)}": [f"{row.unstopped_probability:.1%}" for row in rows]
        if most is not None or any(row.unstopped for row in rows)
        else [],
        "on\nbest": [f"{row.best_share:.0%}" for row in rows],
        "\nlooks": ["–" if row.releases is None else f"{row.releases:,.0f}" for row in rows],
        "\nprice": ["–" if row.privacy_cost is None else f"× {row.privacy_cost:.3g}" for row in rows],
        "at\nleast": ["–" if row.lower_bound is None else people(row.lower_bound) for row in rows],
    }
    columns = {heading: cells for heading, cells in columns.items() if cells}
    for heading in ("\nlooks", "on\nbest", "at\nleast", "\nprice"):
        wide = [max(map(len, [*title.split("\n"), *cells])) + 3 for title, cells in columns.items()]
        if sum(wide) + 2 > console.width:
            del columns[heading]
    table = Table(box=box.SIMPLE_HEAD, title="People it takes")
    for heading in columns:
        table.add_column(heading, justify="left" if "strategy" in heading else "right", no_wrap=True)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    console.print(table)


def show_correctness(found: "Correctness", console: "Console") -> None:
    """An audit of δ: a row for each instance, and the verdict."""
    table = Table(box=box.SIMPLE_HEAD, title=f"Wrong answers of {found.strategy.name}, δ = {found.delta:g}")
    table.add_column("\ninstance", no_wrap=True)
    columns: list[tuple[str, Any]] = [("\nwrong", "right"), ("no\nend", "right"), ("error rate\nbetween", "right")]
    for heading, justify in [*columns, ("\nδ is", "left")]:
        table.add_column(heading, justify=justify, no_wrap=True)
    for case in found.cases:
        between = f"{case.low:.2%} … {case.high:.2%}"
        table.add_row(case.name, f"{case.errors} of {case.runs}", str(case.unstopped), between, case.verdict)
    console.print(table)
    worst = found.worst
    console.print(f"{found.rule[0].upper()}{found.rule[1:]}.")
    if found.violated:
        console.print(f"VIOLATED: on '{worst.name}' {worst.errors / worst.runs:.1%} of the answers were wrong.")
    else:
        console.print(f"Not violated; most errors on '{worst.name}': {worst.errors / worst.runs:.2%}.")


def show_trial(found: "Status", console: "Console") -> None:
    """A live trial: where it stands, what was released about each arm, what is promised."""
    verdict = "goes on"
    if found.stopped:
        verdict = "has stopped: conclusive" if found.conclusive else "has ended at its maximum: INCONCLUSIVE"
    console.print(f"{found.name} ({found.strategy}) {verdict}.")
    if found.recommendation is not None:
        words = "The best arm is" if found.conclusive else "The best arm so far is"
        console.print(f"{words} {found.recommendation}.")
    if found.smallest_delta is not None:
        console.print(f"It would have been conclusive at an error rate of δ = {found.smallest_delta:.3g}.")
    waits = f", the next release waits for {found.waiting}" if found.waiting else ""
    console.print(f"{found.people} of at most {found.max_people} people; {found.pending} outcomes are not in{waits}.")
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("arm", no_wrap=True)
    for column in ("people", "behind the mean", "private mean"):
        table.add_column(column, justify="right", no_wrap=True)
    intervals = any(arm.interval for arm in found.arms)
    if intervals:
        table.add_column(f"{1 - found.delta:.4g} interval", justify="right", no_wrap=True)
    for arm in found.arms:
        cells = [arm.name, str(arm.pulls), str(arm.count), "–" if arm.mean is None else f"{arm.mean:.4g}"]
        ends = "–" if arm.interval is None else f"{arm.interval[0]:.4g} to {arm.interval[1]:.4g}"
        table.add_row(*cells, *([ends] if intervals else []))
    console.print(table)
    console.print(f"Privacy: {found.privacy}; {found.retain}.\nError rate: {found.correctness}.\nHead: {found.head}")


def show_privacy(found: "PrivacyAudit", console: "Console") -> None:
    """An audit of ε: a row for each mechanism, then what was compared in it, then the verdict."""
    table = Table(box=box.SIMPLE_HEAD, title=f"What {found.strategy.name} gives away, ε = {found.epsilon:g} promised")
    table.add_column("\naudited", no_wrap=True)
    for heading in ("event\nseen", "on the\nother", "\nof", "ε at\nleast"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("\nnoise", no_wrap=True)
    for leak in found.leaks:
        numbers = [f"{leak.hits:,}", f"{leak.hits_other:,}", f"{leak.runs:,}", f"{leak.low:.3f}"]
        table.add_row(leak.name, *numbers, leak.noise)
    console.print(table)
    for leak in found.leaks:
        console.print(f"{leak.name}: {leak.neighbours}. Event: {leak.event}. {leak.verdict.capitalize()}.")
    for words in found.left_out:
        console.print(f"Left out: {words}.")
    console.print(f"\n{found.rule[0].upper()}{found.rule[1:]}.")
    if found.strategy.gamma is not None:
        console.print(f"γ = {found.strategy.gamma:g} was taken off the larger probability.")
    if found.violated:
        console.print(f"VIOLATED: {found.worst.name}, ε is at least {found.worst.low:.3f}, not {found.epsilon:g}.")
    else:
        console.print(f"No violation found; the largest bound, {found.worst.low:.3f}, is on '{found.worst.name}'.")
