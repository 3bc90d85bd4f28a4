"""Invitations: one link for one answer of one person, in a trial with local trust."""

from discreet.errors import InvalidInputError
from discreet.service.access import Visitor
from discreet.service.home import Home
from discreet.trials.inputs import parse_number
from discreet.trials.outcomes import OPEN
from discreet.trials.store.doors import Token
from discreet.trials.verbs import PARTICIPANT

PATH = "/a"
"""The participant's page."""
DAYS = 7.0
"""For how long an invitation is good, unless somebody says otherwise."""


def invite(home: Home, visitor: Visitor, name: str, id: str, days: float) -> tuple[str, Token]:
    """Make the secret with which the participant of an id can answer once. It stops
    working when the assignment gets another id.
    """
    caller = home.as_user(name, visitor)
    if not caller.protocol.strategy.trust_model.randomised:
        raise InvalidInputError(
            "people answer for themselves only in trials with local trust: tell this trial the "
            "outcome"
        )
    if caller.participant_view(id).state != OPEN:
        raise InvalidInputError(
            "this trial is not waiting for an answer from this person: nobody was invited"
        )
    number = parse_number(id)
    site = caller.find_assignment(number).site
    words = f"invitation of person {number}"
    return home.tokens.make(words, PARTICIPANT, visitor.who, name, site, days, id)


def link_path(secret: str) -> str:
    """The link of an invitation, within this service. What stands behind the # stays in
    the browser: no server and no log sees it.
    """
    return f"{PATH}#{secret}"
