"""The documents of bounds, simulations, sweeps and audits, and sentences on past data."""

import math
from typing import TYPE_CHECKING, Any

from discreet.instances import Instance
from discreet.past_data import Sampled
from discreet.reports.charts.style import choose_arms, shorten_names
from discreet.reports.document import Document, List, Note, Paragraph, Part, Section, Table
from discreet.scale import Scale
from discreet.wording import (
    describe_correctness,
    describe_privacy,
    format_count,
    format_known,
    format_participants_full,
    format_ratio,
    isolate_name,
    join_first,
)

if TYPE_CHECKING:
    from discreet.audits.correctness import CorrectnessAudit
    from discreet.audits.privacy import PrivacyAudit
    from discreet.theory.bounds import Bounds

FEW_OUTCOMES = 5
"""Past outcomes of an arm below which a plan hardly knows it."""
NOT_PRIVATE = (
    "These averages and counts are those of the data, without noise: they are not private, and "
    "neither is what is simulated from the data"
)
MAX_CELLS = 200
"""Cells of a sweep that are shown."""
ROUNDED = "once each outcome is rounded at random to a bit"


# --- past data ------------------------------------------------------------------------


def find_scale(arms: Instance) -> Scale | None:
    """Return the units of the outcomes if they are known from data."""
    return arms.scale if isinstance(arms, Sampled) else None


def describe_past_data(arms: Instance) -> str | None:
    """Describe the means of data in its units, with its range and direction, so that a
    mistake in them is seen; None if these are not known.
    """
    scale = find_scale(arms)
    if scale is None:
        return None
    means = zip(arms.names, arms.means, strict=True)
    parts = [f"{isolate_name(name)} {format_in_units(mean, scale)}" for name, mean in means]
    return (
        f"{join_first(parts)} on average{count_past_outcomes(arms)}, range {scale.low:.12g} to "
        f"{scale.high:.12g}, {'more' if scale.direction == 'max' else 'less'} is better"
    )


def count_past_outcomes(arms: Instance) -> str:
    """Return how many participants the data of each arm has, in brackets; empty without
    data.
    """
    if not isinstance(arms, Sampled):
        return ""
    if len(set(arms.counts)) == 1:
        return f" ({format_count(arms.counts[0], 'participant')} each)"
    return f" ({join_first([str(count) for count in arms.counts])} participants)"


def list_past_notes(arms: Instance) -> list[str]:
    """List what else to know of past data."""
    if not isinstance(arms, Sampled):
        return []
    notes = [NOT_PRIVATE]
    if arms.clipped:
        every = len(arms.flat)
        lie, count_as = ("lies", "counts") if arms.clipped == 1 else ("lie", "count")
        notes.append(
            f"{arms.clipped} of {every} past outcomes ({arms.clipped / every:.1%}) {lie} outside "
            f"the range and {count_as} as the nearer end"
        )
    few = [
        name for name, count in zip(arms.names, arms.counts, strict=True) if count < FEW_OUTCOMES
    ]
    if few:
        have = "has" if len(few) == 1 else "have"
        notes.append(
            f"{join_first(few)} {have} fewer than {FEW_OUTCOMES} past outcomes, which are drawn "
            "again and again: this plan is hardly more than a guess"
        )
    return notes


def format_in_units(mean: float, scale: Scale) -> str:
    """Format a mean in the units of the outcomes, to a few thousandths of the range."""
    digits = max(0, 3 - math.floor(math.log10(scale.high - scale.low)))
    return f"{round(scale.convert_to_outcome(mean), digits):.12g}"


# --- bounds ---------------------------------------------------------------------------


def build_bounds(found: "Bounds") -> Document:
    """Build the document of lower bounds: samples at this δ, what privacy costs, and how
    samples are allocated. Arms that are not Bernoulli have a floor for all strategies,
    and the rest for outcomes rounded to bits.
    """
    instance, bits = found.instance, found.rounded_to_bits
    kind = "arms" if instance.is_bounded else f"Gaussian arms with σ = {instance.sigma:g}"
    lead = (
        f"{instance.arms} {kind}, {instance.names[instance.best]} is best; error rate δ = "
        f"{found.delta:g}."
    )
    sections = [Section("", [Paragraph(_bound_sentence(found))])]
    if instance.is_bounded:
        tables = [_lower_bounds_table(found)]
        if bits:
            tables.insert(0, _floors_table(found))
        sections.append(Section("Lower bounds with privacy", [*tables, *_bounds_notes(found)]))
    sections.append(Section("Ideal allocation", _allocation(found)))
    if not instance.is_bounded:
        words = "For unbounded rewards there are no bounds with privacy."
        sections.append(Section("", [Note(words)]))
    more = (
        "--json has every quantity, and the docs page 'Theory and proofs' says where each comes "
        "from."
    )
    return Document("Lower bounds", [*sections, Section("", [Note(more)])], lead)


def _bound_sentence(found: "Bounds") -> str:
    if found.delta >= 0.5:
        return (
            "With an error rate of 1/2 or more no samples are needed, so the lower bounds say "
            "nothing."
        )
    least = format_participants_full(found.lower_bound if found.floor is None else found.floor)
    if not found.instance.is_bounded:
        which = " that keeps this error rate for all Gaussian arms with this σ"
    elif found.rounded_to_bits:
        which = " that keeps this error rate however rewards are spread over [0, 1]"
    else:
        which = ""
    return f"Without privacy every strategy{which} needs at least {least} samples on average."


def _floors_table(found: "Bounds") -> Table:
    rows = [
        [
            f"{row.epsilon:g}",
            format_participants_full(row.floor_global or 0),
            format_participants_full(row.floor_local or 0),
        ]
        for row in found.per_epsilon
    ]
    caption = "The floor: at least this many samples on average under ε-privacy."
    return Table(["ε", "collector trusted", "nobody trusted"], rows, caption)


def _lower_bounds_table(found: "Bounds") -> Table:
    head = ["ε", "collector trusted", "cost", "regime"]
    head += ["nobody trusted", "cost, nobody trusted", "regime, nobody trusted"]
    rows = [
        [
            f"{row.epsilon:g}",
            format_participants_full(row.lower_bound_global),
            format_ratio(row.cost_global),
            row.regime_global,
            format_participants_full(row.lower_bound_local_both),
            format_ratio(row.cost_local),
            row.regime_local,
        ]
        for row in found.per_epsilon
    ]
    caption = "At least this many samples on average under ε-privacy"
    if found.rounded_to_bits:
        caption += f", {ROUNDED} ({format_participants_full(found.lower_bound)} without privacy)"
    words = ["regime", "regime, nobody trusted"]
    return Table(head, rows, f"{caption}.", words=words, optional=words[::-1])


def _bounds_notes(found: "Bounds") -> list[Part]:
    bits = found.rounded_to_bits
    switch, free = found.switch_epsilon, found.free_epsilon
    cost = f"is free at ε = {free:.4g} and above" if free < math.inf else "is never quite free"
    given = f"{ROUNDED[0].upper()}{ROUNDED[1:]}, with" if bits else "With"
    whose = (
        "No strategy needs fewer samples than these on average: they are the characteristic time "
        "T times kl(1−δ, δ)."
    )
    if bits:
        whose = (
            "Only the floors hold for every strategy. The other numbers are for strategies that "
            "round each outcome to a bit, as ctb-tt and (with yes-no outcomes) bet-se do; a "
            "strategy that uses the outcomes as numbers may need fewer samples."
        )
    return [
        Paragraph(
            f"{given} a trusted collector (global DP) privacy matters most below ε ≈ "
            f"{switch['global']:.4g} and {cost}; with nobody trusted (local DP) it matters most "
            f"below ε ≈ {switch['local']:.4g}. The cost of privacy is how many times as many "
            f"samples are needed as without privacy. {whose}"
        )
    ]


def _allocation(found: "Bounds") -> list[Part]:
    """Make a table of shares by arm; the best arms if there are many."""
    instance = found.instance
    times = {"no privacy": found.t_kl}
    times |= {f"global ε = {row.epsilon:g}": row.t_epsilon for row in found.per_epsilon}
    shown = choose_arms(instance.means)
    names = shorten_names([instance.names[arm] for arm in shown])
    rows = [
        [
            name,
            f"{instance.means[arm]:g}",
            *(f"{one.allocation[arm]:.1%}" for one in times.values()),
        ]
        for name, arm in zip(names, shown, strict=True)
    ]
    bits = " of such bits" if found.rounded_to_bits else ""
    caption = f"How an ideal strategy{bits} spreads its samples."
    optional = [*times][:0:-1]
    parts: list[Part] = [Table(["arm", "mean", *times], rows, caption, optional=optional)]
    if len(shown) < instance.arms:
        parts.append(Note(f"The best {len(shown)} of {instance.arms} arms."))
    return parts


# --- simulations and sweeps -----------------------------------------------------------


def build_simulation(found: dict[str, Any], instance: Instance, design: str = "") -> Document:
    """Build the document of a simulation. `design` lists further options of the
    strategy.
    """
    privacy = describe_privacy(found["privacy"])
    correctness = describe_correctness(found["correctness"], find_scale(instance))
    items = [f"Privacy: {privacy}.", f"Error rate: {correctness}."]
    if past := describe_past_data(instance):
        items += [f"Data: {past}.", *(f"{note}." for note in list_past_notes(instance))]
    parts: list[Part] = [List(items)]
    if found["interrupted"]:
        parts.append(Note("Interrupted: only the runs that had finished, which are the shorter."))
    parts.append(Table(["quantity", "value"], _simulation_rows(found)))
    if found["pulls_mean"] is not None:
        total = sum(found["pulls_mean"])
        spread = zip(instance.names, found["pulls_mean"], strict=True)
        shares = [f"{name} {pulls / total:.1%}" for name, pulls in spread]
        parts.append(Paragraph(f"Samples by arm: {join_first(shares)}."))
    lead = (
        f"{found['strategy']} with the {found['threshold']} threshold"
        f"{f' ({design})' if design else ''}, {format_count(found['runs'], 'run')} in "
        f"{found['seconds']:.2f} s."
    )
    return Document("Simulation", [Section("", parts)], lead)


def _simulation_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    rows = []
    if found["mean"] is not None:
        error = "" if found["sem"] is None else f" ± {found['sem']:,.0f}"
        ends = (found["quantiles"][which] for which in ("0.1", "0.9"))
        rows = [
            ("samples, mean ± standard error", f"{found['mean']:,.0f}{error}"),
            ("samples, median", f"{found['median']:,.0f}"),
            ("samples, 10 % and 90 % quantiles", " … ".join(f"{end:,.0f}" for end in ends)),
            ("releases, mean", f"{found['rounds_mean']:,.1f}"),
        ]
        if "days_mean" in found:
            low, high = (found["days_quantiles"][which] for which in ("0.1", "0.9"))
            rows += [
                ("days, mean", f"{found['days_mean']:,.0f}"),
                ("days, 10 % and 90 % quantiles", f"{low:,.0f} … {high:,.0f}"),
                ("pipeline participants, mean", f"{found['pipeline_mean']:,.0f}"),
            ]
    low, high = found["error_interval"]
    return [
        *rows,
        ("wrong answers", f"{found['errors']} of {found['runs']}"),
        ("error rate, 95 % interval", f"{low:.2%} … {high:.2%}"),
        ("runs that hit the cap", f"{found['unstopped']} of {found['runs']}"),
    ]


def build_sweep(rows: list[dict[str, Any]], folder: str) -> Document:
    """Build the document of a sweep, with a table for each instance."""
    shown = rows[:MAX_CELLS]
    parts: list[Part] = [
        _sweep_table(instance, [row for row in shown if row["instance"] == instance])
        for instance in dict.fromkeys(row["instance"] for row in shown)
    ]
    notes = [
        f"{format_count(rows[0]['runs'], 'run')} in each cell; samples are means over the runs "
        "that stopped. No strategy with that privacy needs fewer samples on average than the "
        f"lower bound. All numbers are in {folder}/table.parquet."
    ]
    if any(row["threshold"] == "empirical" for row in rows):
        notes.append("The empirical thresholds have no guarantee: the error rate may exceed δ.")
    own = dict.fromkeys(row["correctness"] for row in rows if row["threshold"] == "own")
    notes += [f"{words[0].upper()}{words[1:]}." for words in own]
    if len(shown) < len(rows):
        notes.append(f"The first {len(shown)} of {len(rows)} cells.")
    return Document("Sweep", [Section("", [*parts, List(notes)])])


def _sweep_table(instance: str, rows: list[dict[str, Any]]) -> Table:
    head = ["strategy", "ε", "δ", "samples", "± error", "lower bound", "days", "wrong", "at cap"]
    cells = []
    for row in rows:
        threshold = [row["threshold"]] if row["threshold"] != "proved" else []
        cells.append(
            [
                ", ".join(filter(None, [row["strategy"], *threshold, row["options"]])),
                format_known(row["epsilon"], "g"),
                f"{row['delta']:g}",
                *(
                    "–" if row[key] is None else format_participants_full(row[key])
                    for key in ("mean", "sem", "lower_bound")
                ),
                format_known(row.get("days_mean"), ",.0f"),
                str(row["errors"]),
                str(row["unstopped"]),
            ]
        )
    if "days_mean" not in rows[0]:
        place = head.index("days")
        head, cells = (
            [*head[:place], *head[place + 1 :]],
            [[*row[:place], *row[place + 1 :]] for row in cells],
        )
    return Table(
        head, cells, instance, words=["strategy"], optional=["± error", "lower bound", "days"]
    )


# --- audits ---------------------------------------------------------------------------


def build_correctness_audit(found: "CorrectnessAudit") -> Document:
    """Build the document of an audit of δ: a row for each instance, and the verdict."""
    head = ["instance", "wrong", "not stopped", "error rate between", "δ is"]
    title = f"Wrong answers of {found.strategy.shown}, δ = {found.delta:g}"
    if found.field:
        head = ["instance", "eliminated", "undecided", "probability between", "verdict"]
        title = (
            f"How often {found.strategy.shown} eliminates arm 1 of two equally good arms, δ = "
            f"{found.delta:g}"
        )
    rows = [
        [
            case.name,
            f"{case.errors} of {case.runs}",
            str(case.unstopped),
            f"{case.low:.2%} … {case.high:.2%}",
            case.verdict if found.is_promised else "no promise",  # is not cut
        ]
        for case in found.cases
    ]
    worst = found.worst
    share = f"{worst.errors / worst.runs:.2%}"
    if found.is_violated:
        verdict = f"VIOLATED: on '{worst.name}' {share} of the answers were wrong."
    else:
        kept = "Not violated" if found.is_promised else "Not promised"
        verdict = f"{kept}; most errors on '{worst.name}': {share}."
    rule = f"{found.rule[0].upper()}{found.rule[1:]}."
    parts: list[Part] = [Table(head, rows), Paragraph(rule), Paragraph(verdict)]
    return Document(title, [Section("", parts)])


def build_privacy_audit(found: "PrivacyAudit") -> Document:
    """Build the document of an audit of ε: a row for each mechanism, what was compared,
    and the verdict.
    """
    head = ["audited", "event on one input", "on the other", "runs each", "ε at least", "noise by"]
    rows = [
        [
            leak.name,
            f"{leak.hits:,}",
            f"{leak.hits_other:,}",
            f"{leak.runs:,}",
            f"{leak.low:.3f}",
            leak.noise,
        ]
        for leak in found.leaks
    ]
    items = [
        f"{leak.name}. Inputs: {leak.neighbours}. Event: {leak.event}. {leak.verdict.capitalize()}."
        for leak in found.leaks
    ]
    items += [f"Left out: {words}." for words in found.left_out]
    worst = found.worst
    parts: list[Part] = [
        Table(head, rows),
        List(items),
        Paragraph(f"{found.rule[0].upper()}{found.rule[1:]}."),
    ]
    if found.gamma is not None:
        note = f"γ = {found.gamma:g} was subtracted from the larger probability."
        parts.append(Note(note))
    if found.is_violated:
        verdict = f"VIOLATED: {worst.name}, ε is at least {worst.low:.3f}, not {found.epsilon:g}."
    else:
        verdict = f"No violation found; the largest bound, {worst.low:.3f}, is on '{worst.name}'."
    title = f"What {found.strategy.name} reveals; it promises ε = {found.epsilon:g}"
    return Document(title, [Section("", [*parts, Paragraph(verdict)])])
