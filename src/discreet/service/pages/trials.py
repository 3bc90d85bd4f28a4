"""The first page: every trial, and how far it is."""

from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import DiscreetError
from discreet.service import planner
from discreet.service.auth import NotHereError, Principal
from discreet.service.pages import trial
from discreet.service.pages.base import PageRequest, Work, page_route
from discreet.service.pages.trial import flow
from discreet.service.pages.trial_text import ahead_of, waits_words
from discreet.service.state import AppState
from discreet.trials.listing import GOES_ON, PAUSED, ListedTrial

NOT_PUBLISHED = "there is no published trial of this name here"


def if_published(work: Work) -> Work:
    """A page for anyone, of a trial that was published."""

    async def shown(page: PageRequest) -> Response:
        if not await page.run(_there, page.app_state, page.name):
            raise NotHereError(NOT_PUBLISHED)
        return await work(page)

    return shown


def _there(app_state: AppState, name: str) -> bool:
    return app_state.published(name) and name in app_state.store.list_names()


async def _public(page: PageRequest) -> Response:
    shown = await page.run(page.app_state.trial, page.name)
    before = trial.before_of(page) or None
    found = await page.run(trial.view, page.app_state, shown, Principal(), before, True)
    return page.render("trial.html", published=True, **found)


def as_anyone(work: Work) -> Work:
    """What anyone would see, whoever looks."""

    async def shown(page: PageRequest) -> Response:
        page.principal = Principal()
        return await work(page)

    return shown


def make_public_routes(app_state: AppState) -> list[Route]:
    """What is open to all of a published trial."""
    pages: dict[str, Work] = {
        "": _public,
        "/head": trial.mark,
        "/means.svg": as_anyone(trial.means),
        "/evidence.svg": as_anyone(trial.evidence),
        "/participants.svg": as_anyone(flow),
        "/transcript.json": trial.transcript,
        "/report.html": trial.report,
        "/arms.csv": trial.arms,
    }
    return [
        page_route(app_state, f"/p/{{name}}{path}", "", if_published(work))
        for path, work in pages.items()
    ]


MOST = 60
"""Trials of which it is said what they wait for: each has to be opened for that."""
STATES = {
    GOES_ON: "running",
    "conclusive": "ended with a conclusion",
    "inconclusive": "ended without a conclusion",
}


@dataclass(frozen=True)
class Shown:
    """A line of the list."""

    trial: ListedTrial
    waits: str
    ahead: str = ""
    """Forecast."""

    @property
    def state(self) -> str:
        """Status."""
        return STATES.get(self.trial.state, self.trial.state)

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended."""
        return self.trial.state in (GOES_ON, PAUSED)


def shown_trials(app_state: AppState, principal: Principal) -> list[Shown]:
    """The trials within reach, those that go on first."""
    listed = sorted(app_state.listed(principal), key=lambda one: one.state not in (GOES_ON, PAUSED))
    return [
        _shown(app_state, principal, one) if place < MOST else Shown(one, "")
        for place, one in enumerate(listed)
    ]


def _shown(app_state: AppState, principal: Principal, one: ListedTrial) -> Shown:
    if one.state not in (GOES_ON, PAUSED):
        return Shown(one, "Nothing: it has ended.")
    try:
        seen = app_state.seen(one.name, principal)
        ahead = ahead_of(app_state, seen.trial, seen.status, principal)
        return Shown(one, waits_words(seen.said()), "" if ahead is None else ahead.brief)
    except DiscreetError as error:
        return Shown(one, f"It cannot be opened: {error}.")


async def _trials(page: PageRequest) -> Response:
    shown = await page.run(shown_trials, page.app_state, page.principal)
    if not shown and page.principal.may("plan", None):
        planner.warm()  # the next step is a plan
    return page.render("trials.html", shown=shown)


def make_list_routes(app_state: AppState) -> list[Route]:
    """The list of trials."""
    return [page_route(app_state, "/", "list", _trials)]
