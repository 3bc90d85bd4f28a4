"""Trials as they were made before it was written down how people are dealt: they must
go on as they were.
"""

from collections.abc import Sequence
from typing import Any

from discreet import Strategy
from discreet.trials.entry import enter
from discreet.trials.protocol import Protocol
from discreet.trials.store.database import Store
from discreet.trials.trial import Trial


def create_before(
    url: str, name: str, arms: Sequence[str], strategy: Strategy, people: int, **settings: Any
) -> Trial:
    """One that has not begun: no round is opened, no key is drawn; bet-se may replace
    people who are missing.
    """
    home = Store(url)
    enter(home, Protocol(name, tuple(arms), strategy, people, dealing="", **settings), "before")
    home.close()
    return Trial.open(url, name)
