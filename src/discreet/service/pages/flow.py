"""How people came to a trial, drawn: times of the public record where it tells any,
those of the audit trail for whoever may see it.
"""

from starlette.responses import Response

from discreet.reports import charts
from discreet.service.access import Visitor
from discreet.service.pages.downloads import NOTHING, svg
from discreet.service.pages.frame import Look
from discreet.service.pictures import without_styles
from discreet.service.remember import Remembered
from discreet.trials.status import Status
from discreet.trials.trial import Trial

FLOWS = Remembered[str](64)
STEPS = 50
"""The picture is drawn again when there is so great a part of people more."""
MOST_CALLS = 100_000
"""Calls by which people are drawn: the last ones, if there were more."""
TIMED = "People assigned over time, by site and in all, with the times of the public record."
NOTED = "People assigned over time, by site and in all, with the times of the audit trail."
IN_ORDER = (
    "People assigned at each site against people assigned in all: the public record of this "
    "trial has their order, but no times."
)


def flow_words(trial: Trial, status: Status, visitor: Visitor, follows: bool) -> str:
    """What the picture shows to a visitor, who may follow the record; empty if there is
    none.
    """
    if status.people < 2 or not follows:
        return ""
    if trial.protocol.timed:
        return TIMED
    if visitor.may("audit-trail", status.name):
        return NOTED
    return IN_ORDER if any(site.people for site in status.sites) else ""


def flow_key(status: Status) -> str:
    """What the picture depends on."""
    return f"{status.people - status.people % max(status.people // STEPS, 1)}-{status.stopped}"


async def flow(looking: Look) -> Response:
    """People against time, by site."""

    def drawn() -> str:
        trial = looking.home.trial(looking.name)
        private = not trial.protocol.timed and looking.visitor.may("audit-trail", looking.name)
        key = (
            looking.home.url,
            looking.name,
            private,
            flow_key(looking.home.seen(looking.name, looking.visitor).status),
        )
        return FLOWS.get(key, lambda: _drawn(trial, private))

    return svg(await looking.run(drawn))


def _drawn(trial: Trial, private: bool) -> str:
    data = charts.enrolment(_noted(trial) if private else _recorded(trial))
    if data is None:
        return NOTHING
    return without_styles(charts.render(charts.draw_enrolment(data)).decode())


def _noted(trial: Trial) -> list[charts.Arrival]:
    calls = reversed(trial.audit_trail(MOST_CALLS))
    return [
        charts.Arrival(one.at, one.site, one.participants) for one in calls if one.action == "ask"
    ]


def _recorded(trial: Trial) -> list[charts.Arrival]:
    said = [one.says for one in reversed(trial.record(MOST_CALLS)) if one.kind == "assigned"]
    return [charts.Arrival(one.get("at"), one.get("site"), len(one["arms"])) for one in said]
