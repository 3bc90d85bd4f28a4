"""The first page: every trial, and how far it is."""

from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.service import planner
from discreet.service.access import Visitor
from discreet.service.home import Home
from discreet.service.pages.ahead import ahead_of
from discreet.service.pages.frame import Look, look
from discreet.service.pages.words import waits_words
from discreet.trials.listing import GOES_ON, PAUSED, Listed

MOST = 60
"""Trials of which it is said what they wait for: each has to be opened for that."""
STATES = {
    GOES_ON: "running",
    "conclusive": "ended with an answer",
    "inconclusive": "ended without an answer",
}


@dataclass(frozen=True)
class Shown:
    """A line of the list."""

    trial: Listed
    waits: str
    ahead: str = ""
    """How it may go on."""

    @property
    def state(self) -> str:
        """How it stands."""
        return STATES.get(self.trial.state, self.trial.state)

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended."""
        return self.trial.state in (GOES_ON, PAUSED)


def shown_trials(home: Home, visitor: Visitor) -> list[Shown]:
    """The trials within reach, those that go on first."""
    listed = sorted(home.listed(visitor), key=lambda one: one.state not in (GOES_ON, PAUSED))
    return [
        _shown(home, visitor, one) if place < MOST else Shown(one, "")
        for place, one in enumerate(listed)
    ]


def _shown(home: Home, visitor: Visitor, one: Listed) -> Shown:
    if one.state not in (GOES_ON, PAUSED):
        return Shown(one, "Nothing: it has ended.")
    try:
        seen = home.seen(one.name, visitor)
        ahead = ahead_of(home, seen.trial, seen.status, visitor)
        return Shown(one, waits_words(seen.said()), "" if ahead is None else ahead.brief)
    except DiscreetError as error:
        return Shown(one, f"It cannot be opened: {error}.")


async def _trials(looking: Look) -> Response:
    shown = await looking.run(shown_trials, looking.home, looking.visitor)
    if not shown and looking.visitor.may("plan", None):
        planner.warm()  # the next step is a plan
    return looking.page("trials.html", shown=shown)


def routes(home: Home) -> list[Route]:
    """The list of trials."""
    return [look(home, "/", "list", _trials)]
