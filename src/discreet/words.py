"""Numbers and phrases for people, the same on a page, in a picture and in a terminal."""

import math

PAPER_NAMES = {
    "adap-tt": "AdaP-TT",
    "adap-tt-star": "AdaP-TT*",
    "dp-se": "DP-SE",
    "dp-se-authors": "DP-SE (authors')",
    "ttucb": "TTUCB",
    "ctb-tt": "CTB-TT",
}


def short(number: float) -> str:
    """Three figures: 1234567 is 1.23M."""
    if not math.isfinite(number):
        return "–"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= 0.9995 * size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def shown_name(strategy: str) -> str:
    """The strategy's name in the paper, or ours."""
    return PAPER_NAMES.get(strategy, strategy)
