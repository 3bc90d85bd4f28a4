"""Invitations: one link for one answer of one person, in a trial with local trust."""

from discreet.errors import InvalidInputError
from discreet.service.access import PARTICIPANT, Visitor
from discreet.service.home import Home
from discreet.trials.intake import number_of
from discreet.trials.people import OPEN
from discreet.trials.store.doors import Token

PATH = "/a"
"""The participant's page."""
DAYS = 7.0
"""For how long an invitation is good, unless somebody says otherwise."""


def invite(home: Home, visitor: Visitor, name: str, id: str, days: float) -> tuple[str, Token]:
    """Make the secret with which the participant of an id can answer once. It stops
    working when the assignment gets another id.
    """
    caller = home.caller(name, visitor)
    if not caller.protocol.strategy.trust_model.randomised:
        raise InvalidInputError(
            "people answer for themselves only in trials with local trust: tell this trial the "
            "outcome"
        )
    if caller.question(id).state != OPEN:
        raise InvalidInputError(
            "this trial is not waiting for an answer from this person: nobody was invited"
        )
    number = number_of(id)
    site = caller.person(number).site
    words = f"invitation of person {number}"
    return home.tokens.make(words, PARTICIPANT, visitor.who, name, site, days, id)


def link_path(secret: str) -> str:
    """The link of an invitation, within this service. What stands behind the # stays in
    the browser: no server and no log sees it.
    """
    return f"{PATH}#{secret}"
