"""What room words take: their width, lines that fit, and places that do not overlap."""

import functools
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from discreet.words import LRM, from_right

TURNED, BACK = "\u202b", "\u202c"
"""Around words that are read from right to left, up to their last sign."""


@contextmanager
def any_letters() -> Iterator[None]:
    """A name may have letters that matplotlib's font lacks: boxes in a PNG, while in an
    SVG the reader's own font has them.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        yield


@functools.lru_cache(4096)
def text_width(words: str, size: float) -> float:
    """Points that words on one line take."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with any_letters():
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
        if text_width(longer, size) <= width:
            lines[-1] = longer
            continue
        lines.append("")
        for sign in word:
            if lines[-1] and text_width(lines[-1] + sign, size) > width:
                lines.append("")
            lines[-1] += sign
    return "\n".join(lines).lstrip("\n")


def starts_right(words: str) -> bool:
    """Whether words are written from right to left, which their first letter tells."""
    letters = (sign for sign in words if unicodedata.bidirectional(sign) in ("L", "R", "AL"))
    return from_right(next(letters, " "))


def turned(name: str, lines: Sequence[str]) -> list[str]:
    """The lines of a name, each in the direction of the name: what ends a line of one
    that is written from right to left (three dots, a bracket) stands on its left, and
    what follows the name on its right.
    """
    if starts_right(name):
        return [f"{LRM}{TURNED}{line}{BACK}{LRM}" for line in lines]
    mixed = any(map(from_right, name))
    return [*lines[:-1], lines[-1] + LRM] if mixed else [*lines]


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
