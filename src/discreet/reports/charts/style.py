"""How pictures look: settings, colours, lines, labels and axes; no pyplot, no global
state.

Lines differ in pattern, marker and lightness as well as in colour (Okabe and Ito's,
told apart by colour-blind people) and carry their names where they end, so that a print
in black and white says the same.
"""

import functools
import io
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from discreet.errors import MissingExtraError
from discreet.words import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

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
OTHER: dict[str, Any] = {"color": GREY, "ls": DASH_DOT, "marker": "*"}
COLORS = (BLACK, BLUE, "#d55e00", "#007a5a", "#aa4480", "#8a5a00", GREY)
PATTERNS: tuple[Any, ...] = ("-", DASH, DOT, DASH_DOT, FINE)
MARKERS = ("o", "D", "s", "^", "v", "P", "X")
LABEL_ROOM = 0.058
"""Least distance of two labels, as a share of the axis."""
RC: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "svg.hashsalt": "discreet",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.linewidth": 0.8,
    "axes.unicode_minus": True,
}


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
    """Draw with our settings, and leave matplotlib's as they were."""

    @functools.wraps(draw)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        require_matplotlib()
        import matplotlib as mpl

        with mpl.rc_context(RC):
            return draw(*args, **kwargs)

    return inner


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of that size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


@styled
def render(figure: "Figure", kind: str = "svg", dpi: int = 160) -> bytes:
    """The figure as a file of that kind: svg (the same bytes every time), png or pdf.

    Its layout is settled once.
    """
    import warnings

    buffer = io.BytesIO()
    meta = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}.get(kind)
    with warnings.catch_warnings():  # a name may have signs that the font lacks: boxes then
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=meta)
    figure.set_layout_engine("none")
    return buffer.getvalue()


# --- lines ----------------------------------------------------------------------------


def strategy_style(strategy: str) -> dict[str, Any]:
    """Line and marks of a strategy, the same in every picture."""
    return {"lw": 1.4, "ms": 4.5, **STRATEGIES.get(strategy, OTHER)}


def arm_look(arm: int) -> Look:
    """Colour, pattern and marker of an arm."""
    return Look(
        COLORS[arm % len(COLORS)],
        PATTERNS[(arm // 2 + arm) % len(PATTERNS)],
        MARKERS[arm % len(MARKERS)],
    )


# --- labels ---------------------------------------------------------------------------


def label_ends(axes: "Axes", ends: Sequence[End], log: bool) -> None:
    """Names at the right end of the lines, moved apart where they would overlap."""
    low, high = axes.get_ylim()

    def place(y: float) -> float:
        if log:
            return math.log(y / low) / math.log(high / low)
        return (y - low) / (high - low)

    seen = [end for end in ends if math.isfinite(end.value)]
    known = sorted((min(max(place(end.value), 0.0), 1.0), end) for end in seen)
    spots = _apart([at for at, _ in known])
    for spot, (at, end) in zip(spots, known, strict=True):
        weight = "bold" if end.label == "bet-se" else "normal"
        color = end.color
        inside = axes.transAxes
        axes.text(1.04, spot, end.label, transform=inside, va="center", color=color, weight=weight)
        axes.plot([1.0, 1.033], [at, spot], transform=inside, color=color, lw=0.5, clip_on=False)


def _apart(spots: list[float]) -> list[float]:
    """The places of labels, in order, with room between any two and none below the
    axis.
    """
    for _ in range(200):
        for i in range(len(spots) - 1):
            overlap = LABEL_ROOM - (spots[i + 1] - spots[i])
            if overlap > 1e-9:
                spots[i] -= overlap / 2
                spots[i + 1] += overlap / 2
        shift = max(0.0, 0.01 - min(spots, default=0.01))
        spots = [spot + shift for spot in spots]
    return spots


def label_line(axes: "Axes", x: float, words: str, color: str = BLACK) -> None:
    """Small words above the picture, over the place x."""
    axes.annotate(
        words,
        (x, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        color=color,
        fontsize=8,
    )


def write_title(axes: "Axes", title: str, note: str = "") -> None:
    """The title, and a note on a line of its own."""
    words = title + (f"\n{note}" if note else "")
    if words:
        axes.set_title(words, loc="left", pad=16)


# --- axes -----------------------------------------------------------------------------


def open_frame(axes: "Axes", *also: str) -> None:
    """No frame at the top and the right."""
    axes.spines[["top", "right", *also]].set_visible(False)


def short_numbers(axis: "Axis") -> None:
    """Ticks as 1k, 1M."""
    axis.set_major_formatter(lambda value, _: short(value))


def powers_of_ten(axis: "Axis") -> None:
    """Ticks at powers of ten alone."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(numticks=12))
    axis.set_minor_locator(NullLocator())


def people_axis(axes: "Axes") -> None:
    """A logarithmic axis of people: ticks at 1, 2, 5 where it spans little, else at
    powers of ten.
    """
    low, high = axes.get_xlim()
    if high < 2 * low:  # one look: no tick would fall into the picture
        low, high = low / 2, 2 * high
        axes.set_xlim(low, high)
    few_ticks(axes.xaxis, low, high)


def few_ticks(axis: "Axis", low: float, high: float) -> None:
    """Short numbers on a logarithmic axis: at 1, 2, 5 where it spans little, else at
    powers of ten.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    short_numbers(axis)
    near = high < 300 * low
    steps = (1.0, 2.0, 5.0) if near else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=20 if near else 7))
    axis.set_minor_locator(NullLocator())
