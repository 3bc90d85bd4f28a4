"""The trials at an address: which there are, and how far each is."""

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.client.address import is_remote
from discreet.trials.record import Head
from discreet.validation import quoted

if TYPE_CHECKING:
    from discreet.trials.store.database import Store

FEW = 5
"""So many names are shown all; of more only those that are near to a wrong one."""
GOES_ON, PAUSED, CONCLUSIVE, INCONCLUSIVE = "goes on", "paused", "conclusive", "inconclusive"


@dataclass(frozen=True)
class Listed:
    """One trial of several, as anyone may see it."""

    name: str
    strategy: str
    state: str
    """It goes on, is paused, or has ended, conclusive or not."""
    people: int
    max_participants: int


def list_trials(url: str, token: str | None = None, ca: str | None = None) -> list[Listed]:
    """Every trial at an address, by name; at a service, https://…, those for which the
    `token` is valid (see `Trial.open`).
    """
    if is_remote(url):
        from discreet.client.service import fetch_list

        return fetch_list(url, token, ca)
    from discreet.trials.store.database import Store

    home = Store(url, must_exist=True)
    try:
        return [_listed(*row) for row in home.rows()]
    finally:
        home.close()


def timed_trials(home: "Store") -> list[str]:
    """The trials that have not ended and in which something is due by the clock."""
    said = [(json.loads(row[1]), _listed(*row)) for row in home.rows()]
    return [
        one.name
        for protocol, one in said
        if one.state in (GOES_ON, PAUSED) and protocol["deadline"] is not None
    ]


def find_trial(home: "Store", name: str) -> tuple[int, str, Listed] | None:
    """How far one trial is: the length of its record, its head, and what is listed of
    it; None if there is none of this name.
    """
    with home.snapshot(name) as tables:
        row = tables.lock()
    if row is None:
        return None
    listed = _listed(name, row.protocol, row.participants, row.state)
    return row.seq, str(Head(row.seq, row.head)), listed


def _listed(name: str, protocol: str, people: int, state: str) -> Listed:
    """From what is stored, without making a run of it."""
    said, now = json.loads(protocol), json.loads(state)
    conduct = now["conduct"]
    if now["stopped"]:
        stands = CONCLUSIVE if now["conclusive"] else INCONCLUSIVE
    else:
        stands = PAUSED if conduct["paused"] else GOES_ON
    return Listed(name, said["strategy"]["name"], stands, people, conduct["maximum"])


def no_trial(name: str, place: str, names: Sequence[str]) -> str:
    """What to say where there is no trial of a name."""
    return f"there is no trial {quoted(name)} in {place}; {near_names(name, names)}"


def near_names(name: str, names: Sequence[str]) -> str:
    """Which names there are, or which are near to it."""
    if not names:
        return "there are no trials yet"
    if len(names) <= FEW:
        return f"trials there: {', '.join(names)}"
    near = difflib.get_close_matches(name, names, n=3)
    many = f"there are {len(names)}: discreet trial list shows them"
    return f"did you mean {' or '.join(map(repr, near))}? {many}" if near else many
