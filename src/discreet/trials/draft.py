"""The protocol of a trial that is to be started."""

from collections.abc import Sequence
from typing import Any

from discreet.errors import InvalidInputError
from discreet.scale import ends_of
from discreet.strategies.strategy import Strategy
from discreet.trials.dealing import usual_dealing
from discreet.trials.names import plain_name, plain_names
from discreet.trials.protocol import Protocol

SETTINGS = {"outside", "deadline", "release", "enrolment", "people", "blinding", "script"}
"""Those that are taken as they are given."""


def new_protocol(
    name: str,
    arms: Sequence[str],
    strategy: Strategy,
    max_people: int,
    retain: str = "until-release",
    range: tuple[float, float] = (0.0, 1.0),
    direction: str = "max",
    dealing: str | None = None,
    sites: Sequence[str] | None = None,
    question: str = "",
    **settings: Any,
) -> Protocol:
    """The protocol of a trial to be started, with the settings of `Trial.create`; names
    as they are kept.
    """
    if unknown := set(settings) - SETTINGS:
        raise InvalidInputError(f"a trial has no setting {', '.join(sorted(unknown))}")
    return Protocol(
        plain_name("the name of the trial", name),
        plain_names("the name of an arm", arms),
        strategy,
        max_people,
        usual_dealing(strategy) if dealing is None else dealing,
        retain,
        *ends_of(range),
        direction,
        sites=plain_names("the name of a site", sites),
        question=plain_name("the question", question),
        **settings,
    )
