"""What nobody should hand in, and what must hold when somebody does.

`NASTY` makes each value anew, as some can be used once only. `SECRET` stands in every
outcome that the fuzz tests hand in, so that a message which repeats one is found.
"""

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

SECRET = "731317"
"""The digits that every outcome of these tests has in it."""
LONGEST = 2000
"""Characters of a message."""


class Mute:
    """Cannot be shown."""

    def __repr__(self) -> NoReturn:
        raise RuntimeError("this cannot be shown")

    __str__ = __repr__


class Broken:
    """Has a length, items and a number, and tells an outcome if one asks for them."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, _place: Any) -> NoReturn:
        raise RuntimeError(f"the outcome is 0.{SECRET}")

    __float__ = __iter__ = __getitem__


def nested(depth: int = 2000) -> list[Any]:
    """A list in a list in a list …"""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def itself() -> list[Any]:
    """A list that holds itself."""
    found: list[Any] = []
    found.append(found)
    return found


NASTY: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "False": lambda: False,
    "True": lambda: True,
    "0": lambda: 0,
    "-1": lambda: -1,
    "huge": lambda: 10**400,
    "too long to write": lambda: 10**5000,
    "minus huge": lambda: -(10**400),
    "0.0": lambda: 0.0,
    "2.0": lambda: 2.0,
    "-0.5": lambda: -0.5,
    "1e300": lambda: 1e300,
    "tiny": lambda: 5e-324,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "complex": lambda: 1 + 2j,
    "Decimal": lambda: Decimal("NaN"),
    "signalling Decimal": lambda: Decimal("sNaN"),
    "Fraction": lambda: Fraction(1, 3),
    "no text": lambda: "",
    "space": lambda: "  ",
    "word": lambda: "no such thing",
    "dash": lambda: "--help",
    "half a pair": lambda: "\ud800",
    "escaped byte": lambda: "\udcff",
    "NUL": lambda: "a\0b",
    "lines": lambda: "a\nb\r\nc\u2028d",
    "bidi": lambda: "\u202eabc\u2066",
    "long": lambda: "x" * 100_000,
    "number as text": lambda: "1",
    "braces": lambda: "{0} %s {x!r}",
    "bytes": lambda: b"\xff\xfe\0",
    "bytearray": lambda: bytearray(b"abc"),
    "empty list": list,
    "list": lambda: [None, 1, "a"],
    "list of huge": lambda: [10**400, 1],
    "list of lists": lambda: [[1], [2, 3]],
    "list of halves": lambda: ["\ud800", "b"],
    "list of mute": lambda: [Mute(), Mute()],
    "tuple": lambda: (1, 2, 3),
    "nested": nested,
    "itself": itself,
    "empty dict": dict,
    "dict": lambda: {"a": 1},
    "wrong dict": lambda: {None: 1, (1, 2): [3]},
    "dict of mute": lambda: {"a": Mute()},
    "set": lambda: {1, 2},
    "range": lambda: range(3),
    "generator": lambda: (one for one in (1, 2)),
    "numpy int": lambda: np.int64(-3),
    "numpy float": lambda: np.float64(math.nan),
    "numpy bool": lambda: np.bool_(True),
    "numpy text": lambda: np.str_("abc"),
    "numpy array": lambda: np.arange(200.0).reshape(4, 50) - 3,
    "numpy one": lambda: np.array([0.5]),
    "numpy none": lambda: np.array([]),
    "numpy objects": lambda: np.array([None, "a"], dtype=object),
    "numpy time": lambda: np.datetime64("2020-01-01"),
    "a class": lambda: int,
    "a function": lambda: len,
    "object": object,
    "mute": Mute,
    "broken": Broken,
}
OUTCOMES: dict[str, Callable[[], Any]] = {
    "text": lambda: "0.731317",
    "comma": lambda: "0,731317",
    "two": lambda: "0.731317 mg",
    "far": lambda: 731317.0,
    "below": lambda: -7.31317,
    "whole": lambda: 731317,
    "huge": lambda: 731317 * 10**400,
    "list": lambda: [0.731317],
    "dict": lambda: {"outcome": 0.731317},
    "numpy": lambda: np.array([0.731317, 0.731317]),
    "numpy float": lambda: np.float64(731317),
    "numpy text": lambda: np.str_("0.731317"),
    "Decimal": lambda: Decimal(731317),
    "Fraction": lambda: Fraction(731317, 3),
    "complex": lambda: 0.731317j,
    "bytes": lambda: b"0.731317",
    "half a pair": lambda: "0.731317\ud800",
}
"""Outcomes that no protocol takes."""


def said(error: BaseException) -> Iterator[str]:
    """What an error says, and those behind it, which logs may show too."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield f"{type(one).__name__}: {one}"
            waiting += [one.__cause__, one.__context__]


def check_said(error: BaseException) -> None:
    """One short line that every screen can show, and no outcome in it nor behind it."""
    words = str(error)
    assert words.strip(), "says nothing"
    assert len(words.splitlines()) == 1, f"more than one line: {words!r}"
    assert len(words) < LONGEST, f"too long: {words[:300]}"
    words.encode()
    assert not [one for one in said(error) if SECRET in one], f"repeats the outcome: {words}"
