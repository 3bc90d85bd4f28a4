"""The trials at an address: which there are, and how far each is."""

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.client.address import is_remote
from discreet.trials.record import Head
from discreet.validation import quote

if TYPE_CHECKING:
    from discreet.trials.store.database import Database

MAX_NAMES_SHOWN = 5
"""So many names are shown all; of more only those that are near to a wrong one."""
GOES_ON, PAUSED, CONCLUSIVE, INCONCLUSIVE = "goes on", "paused", "conclusive", "inconclusive"


@dataclass(frozen=True)
class ListedTrial:
    """One trial of several, as anyone may see it."""

    name: str
    strategy: str
    state: str
    """It goes on, is paused, or has ended, conclusive or not."""
    participants: int
    max_participants: int


def list_trials(url: str, token: str | None = None, ca: str | None = None) -> list[ListedTrial]:
    """Every trial at an address, by name; at a service, https://…, those for which the
    `token` is valid (see `Trial.open`).
    """
    if is_remote(url):
        from discreet.client.trial import fetch_list

        return fetch_list(url, token, ca)
    from discreet.trials.store.database import Database

    home = Database(url, must_exist=True)
    try:
        return [_summarize(*row) for row in home.list_rows()]
    finally:
        home.close()


def list_trials_with_deadline(home: "Database") -> list[str]:
    """The trials that have not ended and in which something is due by the clock."""
    said = [(json.loads(row[1]), _summarize(*row)) for row in home.list_rows()]
    return [
        one.name
        for protocol, one in said
        if one.state in (GOES_ON, PAUSED) and protocol["deadline"] is not None
    ]


def find_trial(home: "Database", name: str) -> tuple[int, str, ListedTrial] | None:
    """How far one trial is: the length of its record, its head, and what is listed of
    it; None if there is none of this name.
    """
    with home.snapshot(name) as tables:
        row = tables.lock()
    if row is None:
        return None
    listed = _summarize(name, row.protocol, row.participants, row.state)
    return row.seq, str(Head(row.seq, row.head)), listed


def _summarize(name: str, protocol: str, people: int, state: str) -> ListedTrial:
    """From what is stored, without making a run of it."""
    said, now = json.loads(protocol), json.loads(state)
    management = now["management"]
    if now["stopped"]:
        stands = CONCLUSIVE if now["conclusive"] else INCONCLUSIVE
    else:
        stands = PAUSED if management["paused"] else GOES_ON
    return ListedTrial(name, said["strategy"]["name"], stands, people, management["maximum"])


def unknown_trial_words(name: str, place: str, names: Sequence[str]) -> str:
    """What to say where there is no trial of a name."""
    return f"there is no trial {quote(name)} in {place}; {describe_names(name, names)}"


def describe_names(name: str, names: Sequence[str]) -> str:
    """Which names there are, or which are near to it."""
    if not names:
        return "there are no trials yet"
    if len(names) <= MAX_NAMES_SHOWN:
        return f"trials there: {', '.join(names)}"
    near = difflib.get_close_matches(name, names, n=3)
    many = f"there are {len(names)}: discreet trial list shows them"
    return f"did you mean {' or '.join(map(repr, near))}? {many}" if near else many
