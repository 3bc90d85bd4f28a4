"""How pictures look: settings, colours, lines and labels; no pyplot, no global state.

Lines differ in pattern, marker and lightness as well as in colour (Okabe and Ito's,
told apart by colour-blind people) and carry their names where they end, so that a print
in black and white says the same.
"""

import functools
import io
import math
import threading
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from discreet._types import Flags, Floats
from discreet.errors import MissingExtraError
from discreet.wording import (
    LEFT_TO_RIGHT_MARK,
    MAX_NAME_CHARACTERS,
    format_short,
    is_right_to_left,
    shorten,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.dates import AutoDateLocator
    from matplotlib.figure import Figure
    from matplotlib.text import Text


FAR = 30.0
"""Times the least from which on numbers of people are drawn on a logarithmic axis."""
NEAR = (
    (1.0, 2.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
    (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0),
)
"""Ticks of a logarithmic axis that spans little: as few as its scale can be read by."""
FEWEST = 3
"""Ticks from which the scale of an axis can be read."""
LOGARITHMIC = ", logarithmic"
"""What the name of such an axis ends with."""


def open_frame(axes: "Axes", *also: str) -> None:
    """No frame at the top and the right."""
    axes.spines[["top", "right", *also]].set_visible(False)


def format_short_numbers(axis: "Axis") -> None:
    """Ticks as 1k, 1M."""
    axis.set_major_formatter(lambda value, _: format_short(value))


def format_powers_of_ten(axis: "Axis") -> None:
    """Ticks at powers of ten alone."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(numticks=12))
    axis.set_minor_locator(NullLocator())


def scale_participants(axes: "Axes", least: float, most: float, words: str) -> None:
    """An axis of people from the least to the most: from 0 on, or logarithmic where
    they are far apart, which its name then says.
    """
    if most < FAR * least:
        axes.set_xlim(0, 1.03 * most)
        format_short_numbers(axes.xaxis)
        axes.set_xlabel(words)
    else:
        axes.set_xscale("log")
        draw_participants_axis(axes)
        axes.set_xlabel(f"{words}{LOGARITHMIC}")


def draw_participants_axis(axes: "Axes") -> None:
    """A logarithmic axis of people: ticks at 1, 2, 5 where it spans little, else at
    powers of ten.
    """
    low, high = axes.get_xlim()
    if high < 2 * low:  # one look: no tick would fall into the picture
        low, high = low / 2, 2 * high
        axes.set_xlim(low, high)
    set_few_ticks(axes.xaxis, low, high)


def _count(steps: Sequence[float], low: float, high: float) -> int:
    """How many ticks at such steps are on an axis."""
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return sum(low <= step * 10.0**ten <= high for ten in tens for step in steps)


def set_few_ticks(axis: "Axis", low: float, high: float) -> None:
    """Short numbers on a logarithmic axis: at 1, 2, 5 where it spans little, at more
    where it spans so little that hardly one of these is on it, else at powers of ten.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    format_short_numbers(axis)
    near = high < 300 * low
    enough = (steps for steps in NEAR if _count(steps, low, high) >= FEWEST)
    steps = next(enough, NEAR[-1]) if near else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=20 if near else 7))
    axis.set_minor_locator(NullLocator())


def make_date_locator() -> "AutoDateLocator":
    """Where the days or times of an axis stand, three to six of them. Its steps go up
    to the next unit: without that it warns just before that unit begins.
    """
    from matplotlib.dates import HOURLY, MONTHLY, SECONDLY, AutoDateLocator

    locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    for unit, whole in ((SECONDLY, 60), (HOURLY, 24), (MONTHLY, 12)):
        locator.intervald[unit] = [*locator.intervald[unit], whole]
    return locator


TURNED, BACK = "\u202b", "\u202c"
"""Around words that are read from right to left, up to their last sign."""


@contextmanager
def allow_any_letters() -> Iterator[None]:
    """A name may have letters that matplotlib's font lacks: boxes in a PNG, while in an
    SVG the reader's own font has them.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        yield


@functools.lru_cache(4096)
def measure_text(words: str, size: float) -> float:
    """Points that words on one line take."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with allow_any_letters():
        size_of = text_to_path.get_text_width_height_descent(
            words, FontProperties(size=size), False
        )
    return float(size_of[0])


def fold(words: str, width: float, size: float) -> str:
    """Words broken into lines of at most that many points, between words where that
    can be.
    """
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if measure_text(longer, size) <= width:
            lines[-1] = longer
            continue
        lines.append("")
        for sign in word:
            if lines[-1] and measure_text(lines[-1] + sign, size) > width:
                lines.append("")
            lines[-1] += sign
    return "\n".join(lines).lstrip("\n")


def is_written_from_right(words: str) -> bool:
    """Whether words are written from right to left, which their first letter tells."""
    letters = (sign for sign in words if unicodedata.bidirectional(sign) in ("L", "R", "AL"))
    return is_right_to_left(next(letters, " "))


def turned(name: str, lines: Sequence[str]) -> list[str]:
    """The lines of a name, each in the direction of the name: what ends a line of one
    that is written from right to left (three dots, a bracket) stands on its left, and
    what follows the name on its right.
    """
    if is_written_from_right(name):
        return [f"{LEFT_TO_RIGHT_MARK}{TURNED}{line}{BACK}{LEFT_TO_RIGHT_MARK}" for line in lines]
    mixed = any(map(is_right_to_left, name))
    return [*lines[:-1], lines[-1] + LEFT_TO_RIGHT_MARK] if mixed else [*lines]


def apart(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """The places of labels, in order, as near to those wanted as they can be without
    one reaching into another or beyond the axis.
    """
    below = [sum(heights[:i]) for i in range(len(heights))]
    pools = list[tuple[float, int]]()  # (sum, count) of neighbours that touch
    for at, height, under in zip(wanted, heights, below, strict=True):
        total, count = at - height / 2 - under, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    starts = [total / count for total, count in pools for _ in range(count)]
    free = max(0.0, 1 - sum(heights))
    return [
        min(max(start, 0.0), free) + under + height / 2
        for start, under, height in zip(starts, below, heights, strict=True)
    ]


MOST_SHOWN = 12
"""Lines, rows or names of arms that people can still tell apart."""
AWAY = "… "
"""In the place of what a name has lost."""


def choose_arms(
    better: Sequence[float] | Floats,
    out: Sequence[bool] | Flags = (),
    named: Sequence[int | None] = (),
) -> list[int]:
    """The arms that matter, in their own order: all of up to a dozen. Of more first
    those that are `named` (the best one, a control), then those that are not `out`, and
    of these the ones whose number is larger; an arm without a number (NaN) comes last.
    """
    gone = out if len(out) else [False] * len(better)

    def rank(arm: int) -> tuple[bool, bool, bool, float]:
        number = float(better[arm])
        unknown = math.isnan(number)
        return arm not in named, bool(gone[arm]), unknown, 0.0 if unknown else -number

    return sorted(sorted(range(len(better)), key=rank)[:MOST_SHOWN])


def describe_left_out(shown: int, count: int, what: str = "arms") -> str:
    """How many are not shown; nothing if all are."""
    missing = count - shown
    verb = "is" if missing == 1 else "are"
    return f"{shown} of {count:,} {what}; {missing:,} {verb} left out" if missing else ""


def describe_shown(count: int) -> str:
    """Which arms a picture shows, a sentence for its caption; nothing if all are."""
    if count <= MOST_SHOWN:
        return ""
    return (
        f" Of {count:,} arms the picture shows {MOST_SHOWN}: the one that is named, then those "
        "still in, the best first."
    )


def shorten_names(names: Sequence[str], longest: int | None = None) -> list[str]:
    """Names that are not too long; those that would look the same show where they
    differ, or begin with their number if that is not enough.
    """
    room = MAX_NAME_CHARACTERS if longest is None else longest
    short = [shorten(name, room) for name in names]
    apart = [
        one if short.count(one) == 1 else _apart(name, _alike(one, short, names), room)
        for one, name in zip(short, names, strict=True)
    ]
    return [
        one if apart.count(one) == 1 else shorten(f"{number}: {name}", room)
        for number, (one, name) in enumerate(zip(apart, names, strict=True), 1)
    ]


def _alike(one: str, short: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names that are cut to the same text."""
    return [name for text, name in zip(short, names, strict=True) if text == one]


def _apart(name: str, alike: Sequence[str], room: int) -> str:
    """The beginning of a name, and its words from where it differs from others."""
    letters = enumerate(zip(*alike, strict=False))
    same = next((place for place, each in letters if len({*each}) > 1), min(map(len, alike)))
    word = name.rfind(" ", 0, same) + 1
    head = name[: room // 3 - 1].rstrip()
    rest = name[word if same - word < room // 3 else same :]
    left = room - len(head) - len(AWAY)
    return f"{head}{AWAY}{rest if len(rest) <= left else f'{rest[: left - 1]}…'}"


P = ParamSpec("P")
T = TypeVar("T")
BLACK = "#000000"
GREY = "#6b6b6b"
PALE = "#e4e4e4"
BLUE = "#0072b2"
DASH = (0, (5, 2))
DOT = (0, (1, 1.4))
DASH_DOT = (0, (6, 2, 1, 2))
FINE = (0, (1, 3))
STRATEGIES: dict[str, dict[str, Any]] = {
    "bet-se": {"color": BLACK, "ls": "-", "marker": "o", "lw": 2.2},
    "adap-tt": {"color": "#d55e00", "ls": DOT, "marker": "s"},
    "adap-tt-star": {"color": BLUE, "ls": DASH, "marker": "D"},
    "dp-se": {"color": "#007a5a", "ls": DASH_DOT, "marker": "^"},
    "dp-se-authors": {"color": "#8a5a00", "ls": DASH_DOT, "marker": "v"},
    "ttucb": {"color": GREY, "ls": FINE, "marker": ""},
    "ttucb-batched": {"color": GREY, "ls": DASH, "marker": "x"},
    "ttucb-forgetting": {"color": GREY, "ls": DASH_DOT, "marker": "+"},
    "ctb-tt": {"color": "#aa4480", "ls": DASH, "marker": "v"},
    "gauss-tt": {"color": "#8a5a00", "ls": DOT, "marker": "P"},
}
COLORS = (BLACK, BLUE, "#d55e00", "#007a5a", "#aa4480", "#8a5a00", GREY)
PATTERNS: tuple[Any, ...] = ("-", DASH, DOT, DASH_DOT, FINE)
MARKERS = ("o", "D", "s", "^", "v", "P", "X")
OTHER_MARKERS = ("*", "X", "h", "<", ">", "p")
"""Of strategies that are not ours."""
WIDTH = 3.6
"""Of every picture, in inches: a column of a journal. On a phone, 350 px wide, the
smallest type then has 12 px, and no picture needs a layout of its own there.
"""
TYPE = 9.0
"""Points of the smallest type, and of nearly all."""
TITLE = 10.0
LABEL = 78.0
"""Points of the longest line of a label."""
GAP = 2.0
"""Points between two labels."""
BESIDE, TIED = 1.04, 1.1
"""Where names stand beside the axes, as a share of their width: near to the ends of
their lines, or with room for what ties them to these.
"""
RC: Any = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "svg.hashsalt": "discreet",
    "font.size": TYPE,
    "axes.titlesize": TITLE,
    "axes.labelsize": TYPE,
    "xtick.labelsize": TYPE,
    "ytick.labelsize": TYPE,
    "legend.fontsize": TYPE,
    "axes.linewidth": 0.8,
    "axes.unicode_minus": True,
}


DRAWING = threading.RLock()


class LineLook(NamedTuple):
    """How one of several lines is told from the others."""

    color: str
    pattern: Any
    marker: str


class End(NamedTuple):
    """Where a line ends, and what is written there."""

    label: str
    value: float
    color: str


def require_matplotlib() -> None:
    """Refuse before any work is done if no picture could be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError('pictures need matplotlib: pip install "discreet[plot]"') from None


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Draw with our settings, and leave matplotlib's as they were. They belong to the
    whole process, so threads draw one after another.
    """

    @functools.wraps(draw)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        require_matplotlib()
        import matplotlib as mpl
        import matplotlib.figure

        with DRAWING, mpl.rc_context(RC):
            drawn = draw(*args, **kwargs)
            if isinstance(drawn, mpl.figure.Figure):
                spare_ticks(drawn)
            return drawn

    return inner


def make_figure(height: float) -> "Figure":
    """An empty figure, as wide as all are and of that height in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained")


def settle(figure: "Figure") -> None:
    """Lay the figure out, so that texts and axes can be measured."""
    engine = figure.get_layout_engine()
    if engine is not None:
        with allow_any_letters():
            engine.execute(figure)


@styled
def render(figure: "Figure", kind: str = "svg", dpi: int = 160) -> bytes:
    """The figure as a file of that kind: svg (the same bytes every time), png or pdf.

    Its layout is settled once; for svg here, as matplotlib would, which then does not
    go through the whole figure twice.
    """
    buffer = io.BytesIO()
    meta = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}.get(kind)
    if kind == "svg":
        _settle_for_svg(figure)
    with allow_any_letters():
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=meta)
    figure.set_layout_engine("none")
    return buffer.getvalue()


def _settle_for_svg(figure: "Figure") -> None:
    """Lay the figure out by the measures of svg, and for good."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    FigureCanvasSVG(figure)
    figure.set_dpi(FigureCanvasSVG.fixed_dpi)
    settle(figure)
    figure.set_layout_engine("none")


# --- lines ----------------------------------------------------------------------------


def choose_strategy_styles(strategies: Sequence[str]) -> list[dict[str, Any]]:
    """Line and marks of each line of a picture. A strategy of ours has the same in
    every picture, any other a colour that is left; more lines of one strategy have its
    colour, with other patterns and marks.
    """
    known = {name: STRATEGIES[name] for name in strategies if name in STRATEGIES}
    taken = {GREY, *(style["color"] for style in known.values())}
    colors = [color for color in COLORS if color not in taken] or COLORS
    others = [name for name in dict.fromkeys(strategies) if name not in known]
    for i, name in enumerate(others):
        pattern, marker = PATTERNS[(i + 3) % len(PATTERNS)], OTHER_MARKERS[i % len(OTHER_MARKERS)]
        known[name] = {"color": colors[i % len(colors)], "ls": pattern, "marker": marker}
    found, lines = list[dict[str, Any]](), Counter[str]()
    for name in strategies:
        found.append({"lw": 1.4, "ms": 4.5, **_varied(known[name], lines[name])})
        lines[name] += 1
    return found


def _varied(style: dict[str, Any], line: int) -> dict[str, Any]:
    """The style of a strategy's line of that number, the first of which is 0."""
    if line == 0:
        return style
    pattern = PATTERNS[(PATTERNS.index(style["ls"]) + line) % len(PATTERNS)]
    marks = [marker for marker in MARKERS if marker != style["marker"]]
    return {**style, "ls": pattern, "marker": marks[(line - 1) % len(marks)]}


def choose_look(arm: int) -> LineLook:
    """Colour, pattern and marker of an arm."""
    return LineLook(
        COLORS[arm % len(COLORS)],
        PATTERNS[(arm + arm // len(COLORS)) % len(PATTERNS)],
        MARKERS[(arm + 2 * (arm // len(COLORS))) % len(MARKERS)],
    )


# --- labels ---------------------------------------------------------------------------


def label(name: str, more: str = "") -> str:
    """A short name in lines that are short enough for a label, and `more` after it."""
    lines = turned(name, fold(name, LABEL, TYPE).split("\n"))
    if more and measure_text(f"{lines[-1]} {more}", TYPE) <= LABEL:
        return "\n".join(lines) + f" {more}"
    return "\n".join([*lines, *([more] if more else [])])


def label_rows(labels: Sequence[str], least: float = 0.28) -> tuple[list[float], float]:
    """The middles of rows that have room for their labels, from the top in inches; and
    the height of all.
    """
    heights = [max(least, 0.1 + 0.16 * (words.count("\n") + 1)) for words in labels]
    return [sum(heights[:i]) + height / 2 for i, height in enumerate(heights)], sum(heights)


def label_ends(axes: "Axes", ends: Sequence[End], log: bool) -> None:
    """Names at the right end of the lines, moved apart where they would overlap; the
    picture grows where they need more room than it has. It is drawn last, when the rest
    of the picture has its place.

    A name that was moved is tied to its line; elsewhere a stroke before it would read
    as a minus sign.
    """
    low, high = axes.get_ylim()

    def place(y: float) -> float:
        share = math.log(y / low) / math.log(high / low) if log else (y - low) / (high - low)
        return min(max(share, 0.0), 1.0)

    known = sorted(
        ((place(end.value), end) for end in ends if math.isfinite(end.value)),
        key=lambda one: one[0],
    )
    inside = axes.transAxes
    texts = []
    for _, end in known:
        weight = "bold" if end.label == "bet-se" else "normal"
        look: dict[str, Any] = {"color": end.color, "weight": weight}
        texts.append(axes.text(BESIDE, 0.5, end.label, transform=inside, va="center", **look))
    spots = _spots(axes, texts, [at for at, _ in known])
    room = axes.get_window_extent().height
    moved = [
        2 * abs(spot - at) * room > text.get_window_extent().height
        for text, spot, (at, _) in zip(texts, spots, known, strict=True)
    ]
    for text, spot, tied, (at, end) in zip(texts, spots, moved, known, strict=True):
        text.set_position((TIED if any(moved) else BESIDE, spot))
        if tied:
            leader: dict[str, Any] = {"color": end.color, "lw": 0.5, "clip_on": False}
            axes.plot([1.01, TIED - 0.02], [at, spot], transform=inside, **leader)


def _spots(axes: "Axes", texts: "Sequence[Text]", wanted: list[float]) -> list[float]:
    """Where the middle of each label comes, as a share of the axis; the picture is made
    taller until all have room.
    """
    figure = axes.get_figure(root=True)
    if figure is None or not texts:
        return wanted
    for _ in range(6):
        settle(figure)
        room = axes.get_window_extent().height
        heights = [text.get_window_extent().height + GAP * figure.dpi / 72 for text in texts]
        if sum(heights) <= room:
            break
        figure.set_size_inches(WIDTH, figure.get_size_inches()[1] * sum(heights) / room + 0.02)
    return apart(wanted, [height / room for height in heights])


def key(figure: "Figure", axes: "Axes") -> None:
    """The names of lines that end in one place, under the picture with a piece of each;
    the picture grows by as much.
    """
    lines, names = axes.get_legend_handles_labels()
    if names:
        folded = [
            "\n".join(turned(name, fold(name, 72 * WIDTH - 60, TYPE).split("\n"))) for name in names
        ]
        below: Any = {"loc": "outside lower left", "frameon": False, "handlelength": 3.5}
        height, rows = figure.get_size_inches()[1], "\n".join(folded).count("\n") + 1
        figure.set_size_inches(WIDTH, height + rows * 2 * TYPE / 72)
        drawn = figure.legend(lines, folded, **below)
        settle(figure)
        with allow_any_letters():
            more = drawn.get_window_extent().height / figure.dpi
        figure.set_size_inches(WIDTH, height + more)


def label_line(axes: "Axes", x: float, words: str, color: str = BLACK) -> None:
    """Words above the picture, over the place x."""
    axes.annotate(
        words,
        (x, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        color=color,
    )


def note(axes: "Axes", *sentences: str) -> None:
    """Sentences in grey above the axes, each on lines of its own."""
    words = "\n".join(fold(one, 0.8 * 72 * WIDTH, TYPE) for one in sentences if one)
    if words:
        axes.set_title(words, loc="left", pad=4, color=GREY, fontsize=TYPE)


def write_title(figure: "Figure", *lines: str) -> None:
    """The title of the picture, and notes on lines of their own."""
    words = "\n".join(fold(line, 0.97 * 72 * WIDTH, TITLE) for line in lines if line)
    if words:
        figure.suptitle(words, x=0.01, ha="left", fontsize=TITLE)


def write_foot(figure: "Figure", words: str) -> None:
    """A sentence in grey under the picture, which grows by as much."""
    folded = fold(words, 0.97 * 72 * WIDTH, TYPE)
    height = figure.get_size_inches()[1] + (folded.count("\n") + 1) * 1.35 * TYPE / 72
    figure.set_size_inches(WIDTH, height)
    figure.supxlabel(folded, x=0.01, ha="left", fontsize=TYPE, color=GREY)


# --- ticks ----------------------------------------------------------------------------


def spare_ticks(figure: "Figure") -> None:
    """Leave out every other tick until no label reaches into its neighbour; the one at
    no difference stays.
    """
    from matplotlib.ticker import FixedLocator

    for _ in range(6):
        settle(figure)
        crowded = [axes.xaxis for axes in figure.axes if _overprinted(axes.xaxis)]
        if not crowded:
            return
        for axis in crowded:
            low, high = sorted(axis.get_view_interval())
            inside = [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
            zero = next((i for i, tick in enumerate(inside) if abs(tick) < 1e-9 * (high - low)), 0)
            axis.set_major_locator(FixedLocator(inside[zero % 2 :: 2]))


def _overprinted(axis: "Axis") -> bool:
    """Whether labels of an axis touch."""
    low, high = sorted(axis.get_view_interval())
    shown = [
        tick.label1.get_window_extent()
        for tick in axis.get_major_ticks()
        if low <= tick.get_loc() <= high and tick.label1.get_visible() and tick.label1.get_text()
    ]
    room = GAP * axis.axes.figure.dpi / 72
    return any(left.x1 + room > right.x0 for left, right in pairwise(shown))
