"""Which of many arms are shown where there is room for a dozen: one rule for every
picture and table.
"""

import math
from collections.abc import Sequence

from discreet.arrays import Flags, Floats
from discreet.words import LONGEST_NAME, cut

MOST_SHOWN = 12
"""Lines, rows or names of arms that people can still tell apart."""
AWAY = "… "
"""In the place of what a name has lost."""


def arms_shown(
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


def left_out_words(shown: int, count: int, what: str = "arms") -> str:
    """How many are not shown; nothing if all are."""
    missing = count - shown
    verb = "is" if missing == 1 else "are"
    return f"{shown} of {count:,} {what}; {missing:,} {verb} left out" if missing else ""


def shown_words(count: int) -> str:
    """Which arms a picture shows, a sentence for its caption; nothing if all are."""
    if count <= MOST_SHOWN:
        return ""
    return (
        f" Of {count:,} arms the picture shows {MOST_SHOWN}: the one that is named, then those "
        "still in, the best first."
    )


def short_names(names: Sequence[str], longest: int | None = None) -> list[str]:
    """Names that are not too long; those that would look the same show where they
    differ, or begin with their number if that is not enough.
    """
    room = LONGEST_NAME if longest is None else longest
    short = [cut(name, room) for name in names]
    apart = [
        one if short.count(one) == 1 else _apart(name, _alike(one, short, names), room)
        for one, name in zip(short, names, strict=True)
    ]
    return [
        one if apart.count(one) == 1 else cut(f"{number}: {name}", room)
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
