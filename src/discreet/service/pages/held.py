"""The tokens that a page lists: those that were given by hand one by one, the links of
participants in one row a trial, as hundreds of them would hide all others.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from discreet.service.pages.words import when
from discreet.trials.store.doors import Token
from discreet.trials.verbs import PARTICIPANT
from discreet.validate import read_whole
from discreet.words import counted

MOST = 200
"""Rows of a page."""


class Row(NamedTuple):
    """A token in words."""

    token: Token
    state: str
    used: str
    works: bool


class Links(NamedTuple):
    """The links of a trial's participants."""

    words: str
    path: str


class Part(NamedTuple):
    """As many tokens as a page shows, what it leaves out, and where that is."""

    rows: list[Row]
    words: str
    before: str
    after: str
    all_alike: bool
    """Whether all of them are of one role and one trial."""


def by_hand(tokens: Iterable[Token]) -> list[Token]:
    """Tokens without the links that sites make for participants."""
    return [one for one in tokens if one.role != PARTICIPANT]


def links_of(tokens: Iterable[Token], trial: str) -> list[Token]:
    """The links for participants of a trial."""
    return [one for one in tokens if one.role == PARTICIPANT and one.trial == trial]


def links_path(trial: str | None) -> str:
    """Where the links of a trial are listed."""
    return _path(trial or "", 0)


def folded(tokens: Iterable[Token], now: float) -> list[Links]:
    """The links of all trials, a row each."""
    found: dict[str, list[Token]] = {}
    for one in tokens:
        if one.role == PARTICIPANT:
            found.setdefault(one.trial or "", []).append(one)
    return [Links(_counts(trial, found[trial], now), links_path(trial)) for trial in sorted(found)]


def _counts(trial: str, links: Sequence[Token], now: float) -> str:
    valid = [one for one in links if one.valid(now)]
    opened = sum(one.used is not None for one in valid)
    counts = {
        "not opened yet": len(valid) - opened,
        "opened": opened,
        "expired or revoked": len(links) - len(valid),
    }
    how = ", ".join(f"{count:,} {words}" for words, count in counts.items() if count)
    return f"{counted(f'{len(links):,}', 'link')} for participants of {trial}: {how}."


def part_of(tokens: Iterable[Token], now: float, start: int, trial: str = "") -> Part:
    """Tokens from one on, those that work first."""
    ordered = sorted(tokens, key=lambda one: not one.valid(now))
    start = min(start, max(0, len(ordered) - 1)) // MOST * MOST
    rows = [_row(one, now) for one in ordered[start : start + MOST]]
    end = start + len(rows)
    before = _path(trial, start - MOST) if start else ""
    after = _path(trial, end) if end < len(ordered) else ""
    return Part(rows, _which(start, end, len(ordered), trial), before, after, bool(trial))


def _which(start: int, end: int, all: int, trial: str) -> str:
    """What is said where not all are shown."""
    if end - start == all:
        return ""
    what = "Links" if trial else "Tokens"
    return f"{what} {start + 1:,} to {end:,} of {all:,} are shown, those that work first."


def _row(token: Token, now: float) -> Row:
    return Row(token, _state(token, now), when(token.used), token.valid(now))


def _state(token: Token, now: float) -> str:
    if token.revoked is not None:
        return f"revoked {when(token.revoked)}"
    if token.expires is None:
        return "valid, never expires"
    return f"{'valid until' if token.valid(now) else 'expired'} {when(token.expires)}"


def _path(trial: str, start: int) -> str:
    said = {**({"links": trial} if trial else {}), **({"from": str(start)} if start else {})}
    return f"/tokens?{urlencode(said)}" if said else "/tokens"


def start_of(text: str) -> int:
    """From which row on a page is wanted; from the first one if that makes no sense."""
    return read_whole(text) or 0
