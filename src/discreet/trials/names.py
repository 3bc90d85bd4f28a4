"""Names of trials, arms and sites: what can be kept, and shown without rewriting the
line it stands in.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote

from discreet.errors import InvalidInputError

MAX_NAME_LENGTH = 200
MAX_TEXT_LENGTH = 1200
"""Characters of a text that is normalised, somewhat more than of any that is kept: a
run of combining marks takes quadratically long.
"""
MAX_ARMS = 1000
"""Arms of a live trial: each round enrols several people on each of them."""
LOOK_ALIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеіјорсухѕԁһԛԝѵΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορυγχɑɡցՕօ‐‑‒–—−’ʼ“”∕⁄×µIlӀӏ|OЗзб",
    "ABESIJKMHOPCTYXaeijopcyxsdhqwvABEZHIKMNOPTYXavopuyxaggOo------''\"\"//xμ111110336",
)
"""Cyrillic, Greek and Armenian letters, punctuation, and letters like digits that look
alike.
"""
HIDDEN_CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Cs"}
"""Unicode's categories of control, format, line- and paragraph-separating characters,
and of halves of pairs.
"""
JOINERS = "\u200c\u200d"
"""Of these, what some scripts need within a word."""
FILLERS = f"{JOINERS}\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
SELECTORS = (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
INVISIBLE = dict.fromkeys((*map(ord, FILLERS), *SELECTORS))
"""Characters without an appearance of their own, for `str.translate`: joiners, fillers,
and selectors of variants.
"""
DOT_NAMES = re.compile(r"=*\.{1,2}")
"""Names that a path cannot hold as they are: whoever reads it takes . and .. for steps,
however they are written.
"""


def check_names(name: Any, arms: Any) -> None:
    """Refuse names of a trial and its arms that cannot be kept."""
    if not is_writable(name) or len(name) > MAX_NAME_LENGTH or name.startswith("-"):
        raise InvalidInputError(
            f"name must be a text of 1 to {MAX_NAME_LENGTH} ordinary characters that does not "
            "begin "
            "with -"
        )
    if not isinstance(arms, tuple | list) or not all(is_writable(arm) for arm in arms):
        raise InvalidInputError("arms must be a list of names, such as ['5 mg', '10 mg']")
    if max(map(len, arms), default=0) > MAX_NAME_LENGTH:
        raise InvalidInputError(f"an arm's name may have at most {MAX_NAME_LENGTH} characters")
    if len(arms) < 2:
        raise InvalidInputError("a trial needs at least two arms")
    check_arms(arms)


def check_arms(arms: Sequence[str]) -> None:
    """Refuse too many arms, and arms that look alike."""
    if len(arms) > MAX_ARMS:
        raise InvalidInputError(f"a trial can have at most {MAX_ARMS} arms; got {len(arms)}")
    check_distinct("arms", arms)


def check_distinct(what: str, names: Sequence[str]) -> None:
    """Refuse names that a reader cannot tell apart. The error gives their positions,
    since showing both would not help.
    """
    known = dict[str, int]()
    for position, name in enumerate(names, start=1):
        former = known.setdefault(skeleton(name), position)
        if former != position and name == names[former - 1]:
            raise InvalidInputError(f"two {what} have the same name: give each its own")
        if former != position:
            raise InvalidInputError(
                f"{what} {former} and {position} look alike ({name!r}): give them names that "
                "nobody can confuse"
            )


def skeleton(name: str) -> str:
    """Return what a reader sees of a name: names with the same skeleton look alike.
    Compatible forms, accents written in other ways, white space, invisible characters
    and letters of other scripts that look like Latin ones are the same; small and large
    letters differ.
    """
    text = unicodedata.normalize("NFKC", name).translate(INVISIBLE)
    return " ".join(text.translate(LOOK_ALIKE).translate(LOOK_ALIKE).split())


def check_sites(sites: Any) -> tuple[str, ...]:
    """The names of sites; refuses what cannot be kept."""
    named = isinstance(sites, tuple | list) and all(map(is_site_name, sites))
    if not named or not sites or len(set(sites)) < len(sites):
        raise InvalidInputError(
            "sites must be a list of different names, such as ['Leeds', 'Lyon'], or None where "
            "people may come from anywhere"
        )
    check_distinct("sites", sites)
    return tuple(sites)


def is_site_name(name: Any) -> bool:
    """Whether this can be the name of a site."""
    return is_writable(name) and len(name) <= MAX_NAME_LENGTH


def read_site(site: Any) -> str | None:
    """The site that people are said to come from, or None; refuses what is no text."""
    if site is None or isinstance(site, str):
        return None if site is None else str(normalize_name("the site", site))
    raise InvalidInputError("site must be the name of a site. Nobody was assigned")


def is_shown_plainly(text: str) -> bool:
    """Whether a name has nothing in it that rewrites the line it is shown in: no
    control, line-separating or direction-changing characters, no halves of pairs.
    """
    if text.isascii():
        return text.isprintable()
    return not any(
        unicodedata.category(one) in HIDDEN_CATEGORIES and one not in JOINERS for one in text
    )


def normalize_names(what: str, names: Any) -> Any:
    """The same of several."""
    return (
        [normalize_name(what, one) for one in names] if isinstance(names, list | tuple) else names
    )


def normalize_name(what: str, text: Any) -> Any:
    """A new name as it is kept: in one of Unicode's ways to write it; refuses one that
    cannot be shown. (What is no text at all is refused where it is checked.)
    """
    if not isinstance(text, str):
        return text
    if len(text) > MAX_TEXT_LENGTH:
        raise InvalidInputError(f"{what} may have at most {MAX_TEXT_LENGTH} characters")
    name = unicodedata.normalize("NFC", text)
    if not is_shown_plainly(name):
        raise InvalidInputError(
            f"{what} contains an invisible character that changes how lines are shown: use "
            "letters, digits and ordinary signs"
        )
    return name


def is_writable(text: Any) -> bool:
    """Return whether this is a text that every database can hold, that can be seen, and
    that can be shown without rewriting the line it stands in.
    """
    return (
        isinstance(text, str) and bool(text.translate(INVISIBLE).strip()) and is_shown_plainly(text)
    )


def quote_name(name: str) -> str:
    """A name as one part of the path of an address, whatever it has in it."""
    return quote(f"={name}" if DOT_NAMES.fullmatch(name) else name, safe="")


def unquote_name(part: str) -> str:
    """The name that `in_path` wrote so; an error (of Unicode) if it is none."""
    name = unquote(part, errors="strict")
    return name[1:] if name.startswith("=") and DOT_NAMES.fullmatch(name) else name
