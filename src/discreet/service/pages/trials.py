"""The first page: every trial, and how far it is."""

from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.service import planner
from discreet.service.auth import NotHereError, Visitor
from discreet.service.pages import trial
from discreet.service.pages.base import Look, Work, look
from discreet.service.pages.trial import flow
from discreet.service.pages.trial_text import ahead_of, waits_words
from discreet.service.state import Home
from discreet.trials.listing import GOES_ON, PAUSED, ListedTrial

NOT_PUBLISHED = "there is no published trial of this name here"


def if_published(work: Work) -> Work:
    """A page for anyone, of a trial that was published."""

    async def shown(looking: Look) -> Response:
        if not await looking.run(_there, looking.home, looking.name):
            raise NotHereError(NOT_PUBLISHED)
        return await work(looking)

    return shown


def _there(home: Home, name: str) -> bool:
    return home.published(name) and name in home.store.list_names()


async def _public(looking: Look) -> Response:
    shown = await looking.run(looking.home.trial, looking.name)
    before = trial.before_of(looking) or None
    found = await looking.run(trial.view, looking.home, shown, Visitor(), before, True)
    return looking.page("trial.html", published=True, **found)


def as_anyone(work: Work) -> Work:
    """What anyone would see, whoever looks."""

    async def shown(looking: Look) -> Response:
        looking.visitor = Visitor()
        return await work(looking)

    return shown


def make_public_routes(home: Home) -> list[Route]:
    """What is open to all of a published trial."""
    pages: dict[str, Work] = {
        "": _public,
        "/head": trial.mark,
        "/means.svg": as_anyone(trial.means),
        "/evidence.svg": as_anyone(trial.evidence),
        "/people.svg": as_anyone(flow),
        "/transcript.json": trial.transcript,
        "/report.html": trial.report,
        "/arms.csv": trial.arms,
    }
    return [
        look(home, f"/p/{{name}}{path}", "", if_published(work)) for path, work in pages.items()
    ]


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

    trial: ListedTrial
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


def _shown(home: Home, visitor: Visitor, one: ListedTrial) -> Shown:
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


def make_list_routes(home: Home) -> list[Route]:
    """The list of trials."""
    return [look(home, "/", "list", _trials)]
