"""What the commands show to people in a terminal: simulations, audits, sweeps, trials.
Bounds and plans have rooms of their own.
"""

import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import rich.table
from rich import box
from rich.console import Console, JustifyMethod
from rich.padding import Padding

from discreet.reports.document import (
    Definitions,
    Document,
    Figure,
    FigureRow,
    FlowDiagram,
    Heading,
    List,
    Note,
    Paragraph,
    Part,
    Quote,
    Table,
    Verdicts,
)
from discreet.reports.html import lay_out_table
from discreet.reports.past import past_notes, past_words, units_of
from discreet.reports.trial_text import (
    PAUSED,
    SITE_HEAD,
    act_rows,
    ahead_words,
    answer_words,
    end_words,
    flow_words,
    interval_words,
    left_words,
    level_words,
    promises,
    site_rows,
)
from discreet.wording import (
    as_sure,
    correctness_words,
    counted,
    full_people,
    interval_ends,
    known,
    lead_words,
    listed,
    percent,
    privacy_words,
)

if TYPE_CHECKING:
    from discreet.audits.correctness import Correctness
    from discreet.audits.privacy import PrivacyAudit
    from discreet.instances import Instance
    from discreet.trials.protocol import Protocol
    from discreet.trials.status import Status

NARROWEST = 64
"""Columns below which numbers would be cut."""
MOST_CELLS = 200


def plain_console() -> Console:
    """Return a console for plain text on stdout, wide enough that no number is cut."""
    console = Console(file=sys.stdout, highlight=False, markup=False)
    console.width = max(console.width, NARROWEST)
    return console


def render(document: Document) -> None:
    """Print a document without its figures."""
    console = plain_console()
    if document.title:
        console.print(f"{document.title}\n{'═' * min(len(document.title), console.width)}")
    if document.lead:
        console.print(document.lead)
    for section in document.sections:
        parts = [part for part in section.parts if not isinstance(part, Figure | FigureRow)]
        if section.title and parts:
            console.print(f"\n{section.title}\n{'─' * min(len(section.title), console.width)}")
        for part in parts:
            _print_part(part, console)


def _print_part(part: Part, console: Console) -> None:
    match part:
        case Paragraph() | Note():
            console.print(part.text)
        case Heading():
            console.print(f"\n{part.text}")
        case Quote():
            console.print(Padding(part.text, (0, 0, 0, 2)))
        case List():
            _print_pairs([("-", item) for item in part.items], console)
        case Verdicts():
            for item in part.items:
                console.print(f"[{item.mark}] {item.text}")
                _print_pairs([("  -", words) for words in item.details], console)
        case Definitions():
            _print_pairs([(f"{term}:", text) for term, text in part.items], console)
        case FlowDiagram():
            for number, level in enumerate(part.levels):
                boxes = [f"{box.title}: {'; '.join(box.lines)}" for box in level]
                _print_pairs([("↓" if number else " ", box) for box in boxes], console)
        case Table():
            print_table(part, console)


def _print_pairs(pairs: Iterable[tuple[str, str]], console: Console) -> None:
    """Print a short text and a long one in each row, the long one broken into lines."""
    grid = rich.table.Table.grid(padding=(0, 1))
    grid.add_column(max_width=24)
    grid.add_column()
    for short, long in pairs:
        grid.add_row(short, long)
    console.print(grid)


def print_table(table: Table, console: Console | None = None) -> None:
    """Print a table. Columns that are `optional` are left out if there is no room for
    them; a line below the table names them.
    """
    console = console or plain_console()
    cells = zip(table.head, zip(*table.rows, strict=True), strict=True) if table.rows else ()
    columns = dict[str, Sequence[str]](cells) or dict.fromkeys(table.head, ())
    text = lay_out_table(table)
    words = {head for head, is_text in zip(table.head, text.columns, strict=True) if is_text}
    left_out = list[str]()
    for head in table.optional:
        if sum(_column_width(*pair) for pair in columns.items()) + 2 <= console.width:
            break
        if columns.pop(head, None) is not None:
            left_out.insert(0, head)
    shown = rich.table.Table(box=box.SIMPLE_HEAD, title=table.caption or None, title_justify="left")
    for head, column in columns.items():
        justify: JustifyMethod = "left" if head in words or head == table.head[0] else "right"
        width = max(map(len, column), default=0)
        title = head if head in words else textwrap.fill(head, max(width, *map(len, head.split())))
        shown.add_column(title, justify=justify, no_wrap=head not in words)
    for row in zip(*columns.values(), strict=True):
        shown.add_row(*row)
    console.print(shown)
    if left_out:
        console.print(f"For lack of room without: {', '.join(left_out)}.")


def _column_width(head: str, column: Sequence[str]) -> int:
    """Return the least number of characters that a column takes with its border."""
    return max([*map(len, column), *map(len, head.split())], default=0) + 3


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
    table = rich.table.Table(box=box.SIMPLE_HEAD, title=title)
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    plain_console().print(table)


def _sentence(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}."


def say_once(phrases: Iterable[str]) -> None:
    """Each of them in a line, once."""
    for phrase in dict.fromkeys(phrases):
        say(_sentence(phrase))


# --- simulations and sweeps -----------------------------------------------------------


def show_simulation(found: dict[str, Any], instance: "Instance", design: str = "") -> None:
    """What a simulation came to, with what the strategy promises; `design` is what else
    was chosen of it.
    """
    cut_short = " (interrupted: only the runs finished so far, which are the shorter ones)"
    say(
        f"{found['strategy']} with the {found['threshold']} threshold"
        f"{f' ({design})' if design else ''}, {counted(found['runs'], 'run')} in "
        f"{found['seconds']:.2f} s{cut_short if found['interrupted'] else ''}\nprivacy: "
        f"{privacy_words(found['privacy'])}\nerror rate: "
        f"{correctness_words(found['correctness'], units_of(instance))}"
    )
    if past := past_words(instance):
        say_once([f"data: {past}", *past_notes(instance)])
    table = rich.table.Table(box=box.SIMPLE_HEAD, show_header=False)
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
            ("samples, 10 % and 90 % quantiles", " … ".join(f"{end:,.0f}" for end in ends)),
            ("releases, mean", f"{found['rounds_mean']:,.1f}"),
            *_day_rows(found),
        ]
    low, high = found["error_interval"]
    return [
        *rows,
        ("wrong answers", f"{found['errors']} of {found['runs']}"),
        ("error rate, 95 % interval", f"{low:.2%} … {high:.2%}"),
        ("runs that hit the cap", f"{found['unstopped']} of {found['runs']}"),
    ]


def _day_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What is known of days, if anything is."""
    if "days_mean" not in found:
        return []
    low, high = (found["days_quantiles"][which] for which in ("0.1", "0.9"))
    return [
        ("days, mean", f"{found['days_mean']:,.0f}"),
        ("days, 10 % and 90 % quantiles", f"{low:,.0f} … {high:,.0f}"),
        ("people in flight at the end, mean", f"{found['in_flight_mean']:,.0f}"),
    ]


def show_sweep(rows: list[dict[str, Any]], out: str) -> None:
    """The cells of a sweep, a table for each instance."""
    console = plain_console()
    wide = console.width >= 92
    shown = rows[:MOST_CELLS]
    days = ["days"] if "days_mean" in rows[0] else []
    heads = ["ε", "δ", "samples", *(["± error", "at least"] if wide else [])]
    heads += [*days, "wrong", "at cap"]
    for instance in dict.fromkeys(row["instance"] for row in shown):
        table = rich.table.Table(box=box.SIMPLE_HEAD, title=instance, title_justify="left")
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
    say_once(row["correctness"] for row in rows if row["threshold"] == "own")
    bound = (
        ", and no strategy with that privacy needs fewer samples on average than 'at least' says"
        if wide
        else ""
    )
    say(
        f"{counted(rows[0]['runs'], 'run')} in each cell; samples are means over the runs that "
        f"stopped{bound}. All numbers are in {out}/table.parquet"
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
        *(known(row[key], ",.0f") for key in ("days_mean",) if key in row),
        str(row["errors"]),
        str(row["unstopped"]),
    ]


# --- audits ---------------------------------------------------------------------------


def show_correctness(found: "Correctness") -> None:
    """An audit of δ: a row for each instance, and the verdict."""
    rows = []
    for case in found.cases:
        between = f"{case.low:.2%} … {case.high:.2%}"
        wrong = f"{case.errors} of {case.runs}"
        verdict = case.verdict if found.promised else "no promise"  # is not cut
        rows.append([case.name, wrong, str(case.unstopped), between, verdict])
    heads = ["\ninstance", "\nwrong", "not\nstopped", "error rate\nbetween", "\nδ is"]
    title = f"Wrong answers of {found.strategy.shown}, δ = {found.delta:g}"
    if found.field:
        heads[1:] = ["\nlost", "un-\ndecided", "chance\nbetween", "\nverdict"]
        loses = f"How often {found.strategy.shown} loses arm 1 of two equally good ones"
        title = f"{loses}, δ = {found.delta:g}"
    show_grid(heads, rows, title, left=["\ninstance", heads[-1]])
    say(_sentence(found.rule))
    worst = found.worst
    share = worst.errors / worst.runs
    if found.violated:
        say(f"VIOLATED: on '{worst.name}' {share:.1%} of the answers were wrong.")
    else:
        kept = "Not violated" if found.promised else "Not promised"
        say(f"{kept}; most errors on '{worst.name}': {share:.2%}.")


def show_privacy(found: "PrivacyAudit") -> None:
    """An audit of ε: a row for each mechanism, then what was compared in it, then the
    verdict.
    """
    rows = []
    for leak in found.leaks:
        numbers = [f"{leak.hits:,}", f"{leak.hits_other:,}", f"{leak.runs:,}", f"{leak.low:.3f}"]
        rows.append([leak.name, *numbers, leak.noise])
    heads = [
        "\naudited",
        "event on\none input",
        "on the\nother",
        "runs\neach",
        "ε at\nleast",
        "noise\nby",
    ]
    title = f"What {found.strategy.name} reveals; it promises ε = {found.epsilon:g}"
    show_grid(heads, rows, title, left=["\naudited", "noise\nby"])
    for leak in found.leaks:
        said = f"{leak.name}. Inputs: {leak.neighbours}. Event: {leak.event}."
        say(f"{said} {leak.verdict.capitalize()}.")
    for words in found.left_out:
        say(f"Left out: {words}.")
    say(f"\n{_sentence(found.rule)}")
    if found.gamma is not None:
        say(f"γ = {found.gamma:g} was subtracted from the larger probability.")
    worst = found.worst
    if found.violated:
        say(f"VIOLATED: {worst.name}, ε is at least {worst.low:.3f}, not {found.epsilon:g}.")
    else:
        say(f"No violation found; the largest bound, {worst.low:.3f}, is on '{worst.name}'.")


# --- live trials ----------------------------------------------------------------------


def show_trial(found: "Status", protocol: "Protocol | None" = None) -> None:
    """A live trial: where it stands, what was released about each arm, what is
    promised, and what sites and managers did.
    """
    said = found.to_dict()
    say(f"{found.name} ({found.strategy}) {_verdict(found, said)}.")
    if found.stopped:
        say(answer_words(said) if found.conclusive else ahead_words(said))
    elif found.recommendation is not None:
        level = level_words(said)
        best = f"The best arm so far is {found.recommendation}."
        say(f"{level} are level so far." if level else best)
    if left := left_words(said):
        say(left)
    if found.smallest_delta is not None:
        say(f"It would have been conclusive at an error rate of δ = {found.smallest_delta:.3g}.")
    say(flow_words(said))
    if protocol is not None:
        say(f"Outcomes: {protocol.outcome_description}.")
    _show_arms(found, said)
    for lead in found.leads:
        say(f"{lead_words(lead.name, lead.over, lead.better_by, lead.participants)}.")
    _show_conduct(said)
    rate = correctness_words(found.correctness, None if protocol is None else protocol.scale)
    say(f"Privacy: {privacy_words(found.privacy)}; {found.retain}.\nError rate: {rate}.")
    for title, words in promises(said):
        say(f"{title}: {words}.")
    if found.out_of_range:
        say(_sentence(found.out_of_range))
    say(f"Head: {found.head}")


def _verdict(found: "Status", said: dict[str, Any]) -> str:
    if not found.stopped:
        return PAUSED if found.paused else "is running"
    return "has stopped: conclusive" if found.conclusive else f"{end_words(said)}: INCONCLUSIVE"


def _show_arms(found: "Status", said: dict[str, Any]) -> None:
    """A row for each arm, and which mean its interval covers."""
    if not found.arms:
        say("The staff of this trial are blinded: how the arms are doing is shown only at the end.")
        return
    heads = ["arm", "people", "outcomes behind the mean", "private mean"]
    rows = [
        [
            arm.name,
            str(arm.assigned),
            str(arm.count),
            "–" if arm.mean is None else as_sure(arm.mean, arm.interval),
        ]
        for arm in found.arms
    ]
    level = percent(1 - found.delta)
    bounded = any(arm.interval for arm in found.arms)
    if bounded:
        heads.append(f"{level} interval")
        for row, arm in zip(rows, found.arms, strict=True):
            ends = arm.interval
            row.append("–" if ends is None else interval_ends(ends))
    show_grid(heads, rows, left=["arm"])
    if bounded:
        say(interval_words(said, level))


def _show_conduct(said: dict[str, Any]) -> None:
    """Where people came from, and what managers did."""
    if sites := site_rows(said):
        show_grid(SITE_HEAD, sites, left=["site", "now"])
    if acts := act_rows(said, named=str):
        say("What managers did:")
    for action, about, reason, means in acts:
        what = action if about == "–" else f"{action} {about}"
        say(f"- {what} (reason: {reason}): {means}.")
