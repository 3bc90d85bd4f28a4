"""What sites see of a trial in which staff are blinded: before its end nothing of how
arms do.
"""

from dataclasses import replace
from typing import Any

from discreet.service.access import Visitor
from discreet.trials.conduct import ADD, DROP
from discreet.trials.protocol import Protocol
from discreet.trials.status import Status
from discreet.trials.verbs import SITE

HIDDEN = ("recommendation", "smallest_delta", "middle", "error_rate")
"""Of a status: what tells how arms do, or that one came or went."""


def blinded(protocol: Protocol, stopped: bool, visitor: Visitor) -> bool:
    """Whether a visitor is not to know now how arms do."""
    return protocol.blind and not stopped and visitor.role == SITE


def shown(status: Status, protocol: Protocol, visitor: Visitor) -> Status:
    """A status as a visitor may see it: for sites of a blinded trial that goes on,
    without people, means, intervals and leads of arms, without a recommendation, and
    without what managers did to arms.
    """
    if not blinded(protocol, status.stopped, visitor):
        return status
    acts = tuple(act for act in status.acts if act.action not in (ADD, DROP))
    hidden: dict[str, Any] = dict.fromkeys(HIDDEN)
    return replace(status, arms=(), leads=(), acts=acts, **hidden)
