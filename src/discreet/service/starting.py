"""A trial is started for somebody who calls the service, and what the library would
warn of is told to them: the machine that serves has nobody to warn.
"""

from typing import Any, NamedTuple

from discreet.errors import InvalidInputError, RoundedWarning
from discreet.service import wire
from discreet.service.home import Home
from discreet.service.scripts import script_for
from discreet.strategies.presets import levels_of, preset_of, rounded_words
from discreet.strategies.strategy import Strategy
from discreet.trials.draft import new_protocol
from discreet.trials.trial import start
from discreet.validate import quoted


class Started(NamedTuple):
    """A trial that was started."""

    name: str
    """As it is kept."""
    warnings: tuple[wire.Warned, ...]


def strategy_of(said: dict[str, Any]) -> Strategy:
    """A strategy by all its parts, or by its preset and what that takes."""
    if "estimator" in said:
        return Strategy.from_dict(said)
    given = dict(said)
    name = given.pop("name", None)
    preset = preset_of(name)
    for key in levels_of(str(name), given.get("trust")):
        if given.get(key) is None:
            raise InvalidInputError(f"{name} is private: say how private, with {key}")
    try:
        return preset(**given)
    except TypeError:
        known = ", ".join(sorted(map(quoted, given)))
        raise InvalidInputError(f"{name} does not take one of these: {known}") from None


def start_trial(home: Home, who: str, strategy: Strategy, said: dict[str, Any]) -> Started:
    """Start a trial with the settings of `Trial.create`, or continue it."""
    settings = {**said, "script": script_for(strategy)}
    protocol = new_protocol(strategy=strategy, **settings)
    start(home.url, protocol, who)
    words = rounded_words(strategy, protocol.scale.numbers)
    warned = (wire.Warned(RoundedWarning.__name__, words),) if words else ()
    return Started(protocol.name, warned)
