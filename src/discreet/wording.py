"""Numbers and phrases for people, the same on a page, in a picture and in a
terminal.
"""

import math
import unicodedata
from collections.abc import Sequence
from datetime import date

from discreet.scale import YES_NO, Scale
from discreet.trust import TRUSTS

MAX_NAME_CHARACTERS = 24
"""Characters of an arm's name that are shown where room is scarce."""
NO_GUARANTEE = "no guarantee of ours"
"""How everything is labelled that only its author can vouch for."""
NO_PROOF = "no proof"
"""The same in tables and keys, where room is scarce."""
NO_PROOF_WORDS = f"{NO_PROOF}: {NO_GUARANTEE} that its error rate holds"
"""What stands under them."""
FLOOR = (
    " (where outcomes are more than yes or no: no strategy whose error rate holds however they are "
    "spread over their range)"
)
"""What is added where a lower bound may be one."""
PROVED = "its error rate is proved, and that it stops whenever the best arm is unique"
"""What every recommended strategy has, as programs are told it."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""Whatever language the machine speaks."""
LEFT_TO_RIGHT_MARK = "\u200e"
"""After a name written from right to left: what follows stays on its right."""
PAPER_NAMES = {
    "adap-tt": "AdaP-TT",
    "adap-tt-star": "AdaP-TT*",
    "dp-se": "DP-SE",
    "dp-se-authors": "DP-SE (authors')",
    "ttucb": "TTUCB",
    "ctb-tt": "CTB-TT",
}


def describe_reason(reason: str) -> str:
    """Say in sentences why a strategy is recommended."""
    proved = "It is proved that it keeps its error rate, and that it stops if one arm is best"
    return reason.replace(f"; {PROVED}", f". {proved}").replace("cells measured", "cases measured")


def describe_privacy(said: str) -> str:
    """Say what is promised of privacy: in words first, its level after them."""
    level, _, how = said.partition(": ")
    return f"none, {how}" if level == "none" else f"{how} ({level})"


def describe_correctness(said: str, scale: Scale | None) -> str:
    """Say what is promised of the error rate, in terms of outcomes if their range is
    known: records and programs say rewards.
    """
    if scale is None or not scale.is_numbers:
        return said
    ends = f"{scale.low:.12g} to {scale.high:.12g}"
    plain = said.replace("for rewards in [0, 1]", f"for outcomes in the range {ends}")
    return plain.replace("(rewards in [0, 1])", f"(on a scale from 0 to 1 for the range {ends})")


def describe_means(outcomes: str, bounded: bool = True) -> str:
    """Return what the means of such outcomes are called, before they are listed."""
    if outcomes == YES_NO:
        return "success rates"
    return "mean outcomes on a scale from 0 to 1:" if bounded else "mean outcomes"


def describe_lead(name: str, over: Sequence[str], better_by: float, people: int) -> str:
    """Say what was released in place of means."""
    how = "better" if better_by >= 0 else "worse"
    others = over[0] if len(over) == 1 else f"the best of {', '.join(over)}"
    return (
        f"Released in place of means: {name} did {how} than {others} by {abs(better_by):.4g} on "
        f"average, with noise, over about {format_count(people, 'participant')} each"
    )


def format_count(count: int | str, one: str, many: str = "") -> str:
    """Format so many of something: 1 look, 2 looks; `many` if an s does not make it. A
    count that is shown in a way of its own comes as text.
    """
    return f"{count} {one if str(count) == '1' else many or f'{one}s'}"


def format_short(number: float) -> str:
    """Format a number in three figures: 1234567 is 1.23M."""
    if not math.isfinite(number):
        return "–"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= 0.9995 * size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def format_participants(count: float | None) -> str:
    """Format a number of participants, in sentences and tables: whole below a million,
    then 1.23 M; `no end` if unknown.
    """
    if count is None:
        return "no end"
    if count < 999_999.5:
        return f"{math.ceil(count - 1e-9):,}"
    for size, letter in ((1e12, "T"), (1e9, "G")):
        if count >= size:
            return f"{count / size:.3g} {letter}"
    return f"{count / 1e6:.3g} M"


def format_participants_short(count: float) -> str:
    """Format a number of participants in a picture, where room is scarce: whole below a
    million, then 1.23M.
    """
    return f"{math.ceil(count):,}" if count < 1e6 else format_short(count)


def format_participants_full(count: float) -> str:
    """Format a number of participants by every digit, rounded up as a lower bound must
    be; above 10^12 as 1.234e+15.
    """
    return f"{math.ceil(count):,}" if count < 1e12 else f"{count:.3e}"


def format_ratio(value: float) -> str:
    """Format how many times as much, such as × 1.25."""
    return f"× {value:.2f}" if value < 100 else f"× {value:,.0f}"


def format_likelihood_ratio(epsilon: float) -> str:
    """Say how many times as likely one outcome makes what another one would: e^ε, never
    rounded down below a thousand, then "about 2,980"; empty if it exceeds a million, as
    a bound that large protects hardly anything.
    """
    factor = math.exp(min(epsilon, 100.0))
    if factor > 1e6:
        return ""
    unit = 10.0 ** (math.floor(math.log10(factor)) - 2)
    if factor > 999:
        return f"about {round(factor / unit) * unit:,.0f}"
    return f"{math.ceil(factor / unit) * unit:.3g}"


def describe_unprotected(what: str, otherwise: str = "") -> str:
    """Say what holds if `format_likelihood_ratio` says nothing."""
    return (
        f"{what} may have been more than a million times as likely or as unlikely{otherwise}, so "
        "that hardly anything is protected"
    )


def format_percent(share: float) -> str:
    """Format a level of confidence: 0.999 is 99.9 %."""
    return f"{100 * share:.4g} %"


def format_known(value: float | None, form: str) -> str:
    """Format a number, or return a dash."""
    return "–" if value is None else format(value, form)


def format_cost_of_privacy(value: float | None) -> str:
    """Format how many times the participants without privacy, to three figures, or
    return a dash.
    """
    return "–" if value is None else f"× {value:.3g}"


def format_to_precision(value: float, ends: Sequence[float] | None, sign: str = "") -> str:
    """Format a noisy number with as many digits as its interval supports."""
    if ends is None or not ends[1] > ends[0]:
        return f"{value:{sign}.4g}"
    places = max(0, 1 - math.floor(math.log10(ends[1] - ends[0])))
    return f"{round(value, places) + 0.0:{sign}.{places}f}"


def format_interval(ends: Sequence[float]) -> str:
    """Format the ends of an interval."""
    return f"{format_to_precision(ends[0], ends)} to {format_to_precision(ends[1], ends)}"


def format_day(day: date | None) -> str:
    """Format a day, as plans say it."""
    return "–" if day is None else f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def format_epsilon(epsilon: float | None) -> str:
    """Format a privacy level for a table."""
    return "none" if epsilon is None else f"{epsilon:g}"


def describe_trust(trust: str) -> str:
    """Say who may see outcomes under a trust model."""
    return TRUSTS[trust].who


def format_strategy_name(strategy: str) -> str:
    """Return the strategy's name in the paper, or ours."""
    return PAPER_NAMES.get(strategy, strategy)


def shorten(name: str, longest: int = MAX_NAME_CHARACTERS) -> str:
    """Shorten a name that is too long to its beginning and its end, where long names
    differ.
    """
    if len(name) <= longest:
        return name
    end = (longest - 1) // 3
    return f"{name[: longest - 2 - end].rstrip()}… {name[-end:].lstrip()}"


def is_right_to_left(sign: str) -> bool:
    """Return whether a letter belongs to a script that is written from right to left."""
    return unicodedata.bidirectional(sign) in ("R", "AL")


def isolate_name(name: str) -> str:
    """Return a name for a sentence. What follows it, a number or the next name of a
    list, stays on its right also if the name is written from right to left.
    """
    return f"{name}{LEFT_TO_RIGHT_MARK}" if any(map(is_right_to_left, name)) else name


def join_names(names: Sequence[str]) -> str:
    """Join names for a sentence: a, b and c."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def join_first(items: Sequence[str], most: int = 12) -> str:
    """Join the first items with commas, and add a sign that there are more."""
    return ", ".join(items[:most]) + (" …" if len(items) > most else "")
