"""How pictures look: settings, colours, lines and labels; no pyplot, no global state.

Lines differ in pattern, marker and lightness as well as in colour (Okabe and Ito's,
told apart by colour-blind people) and carry their names where they end, so that a print
in black and white says the same.
"""

import functools
import io
import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from discreet.errors import MissingExtraError
from discreet.reports.charts.fit import any_letters, apart, fold, text_width, turned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text

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


class Look(NamedTuple):
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


def new_figure(height: float) -> "Figure":
    """An empty figure, as wide as all are and of that height in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained")


def settle(figure: "Figure") -> None:
    """Lay the figure out, so that texts and axes can be measured."""
    engine = figure.get_layout_engine()
    if engine is not None:
        with any_letters():
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
    with any_letters():
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


def strategy_styles(strategies: Sequence[str]) -> list[dict[str, Any]]:
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


def arm_look(arm: int) -> Look:
    """Colour, pattern and marker of an arm."""
    return Look(
        COLORS[arm % len(COLORS)],
        PATTERNS[(arm + arm // len(COLORS)) % len(PATTERNS)],
        MARKERS[(arm + 2 * (arm // len(COLORS))) % len(MARKERS)],
    )


# --- labels ---------------------------------------------------------------------------


def label(name: str, more: str = "") -> str:
    """A short name in lines that are short enough for a label, and `more` after it."""
    lines = turned(name, fold(name, LABEL, TYPE).split("\n"))
    if more and text_width(f"{lines[-1]} {more}", TYPE) <= LABEL:
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
        with any_letters():
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
