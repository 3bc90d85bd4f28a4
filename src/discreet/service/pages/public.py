"""A trial that was published, for anyone. That others are there nobody learns."""

from starlette.responses import Response
from starlette.routing import Route

from discreet.service.access import NotHereError, Visitor
from discreet.service.home import Home
from discreet.service.pages import downloads, trial
from discreet.service.pages.flow import flow
from discreet.service.pages.frame import Look, Work, look

NOT_PUBLISHED = "there is no published trial of this name here"


def if_published(work: Work) -> Work:
    """A page for anyone, of a trial that was published."""

    async def shown(looking: Look) -> Response:
        if not await looking.run(_there, looking.home, looking.name):
            raise NotHereError(NOT_PUBLISHED)
        return await work(looking)

    return shown


def _there(home: Home, name: str) -> bool:
    return home.published(name) and name in home.store.names()


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


def routes(home: Home) -> list[Route]:
    """What is open to all of a published trial."""
    pages: dict[str, Work] = {
        "": _public,
        "/head": trial.mark,
        "/means.svg": as_anyone(downloads.means),
        "/evidence.svg": as_anyone(downloads.evidence),
        "/people.svg": as_anyone(flow),
        "/transcript.json": downloads.transcript,
        "/report.html": downloads.report,
        "/arms.csv": downloads.arms,
    }
    return [
        look(home, f"/p/{{name}}{path}", "", if_published(work)) for path, work in pages.items()
    ]
