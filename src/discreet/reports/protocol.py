"""What was fixed before the first person, as a list for readers."""

from collections.abc import Mapping
from typing import Any

from discreet.reports.conduct import duration_words
from discreet.scale import Scale, is_yes_no, yes_no_words
from discreet.strategies.parts import COINS, ORDER, SHUFFLED
from discreet.strategies.strategy import Strategy
from discreet.trials.protocol import BLINDING, CLOCK, COMPLETE, MISSING, PEOPLE

Said = Mapping[str, Any]
ASSIGNED = {
    COINS: "a coin for each person, with announced odds, tossed when the person is enrolled",
    SHUFFLED: "in random order, to places that are fixed up to the next look",
    ORDER: "in the order that the strategy says",
}
LOOKS = {
    COMPLETE: "as soon as all outcomes of a round are in",
    CLOCK: "by the clock, when the deadline of the last person of a round has passed",
}
EACH_ANSWER = "at every answer, in the order of assignment"
ENROLMENT = {
    "waiting": "nobody is enrolled while a full round waits for its outcomes",
    "continuous": "people are enrolled while earlier rounds wait for their outcomes",
}
RETAINED = {
    "until-release": "outcomes are erased as soon as they have been used in a look",
    "forever": "OUTCOMES ARE KEPT, and whoever can read the database can read them",
}


def protocol_facts(said: Said) -> list[tuple[str, str]]:
    """A name and a value each."""
    protocol = said["protocol"]
    strategy = protocol["strategy"]
    question = [("Question", protocol["question"])] if protocol["question"] else []
    return [
        *question,
        ("Arms", ", ".join(protocol["arms"])),
        ("Outcomes", _outcomes(protocol)),
        *_outside(said["status"]),
        ("Missing outcomes", MISSING),
        ("Strategy", f"{strategy['name']}, threshold {strategy['threshold']}"),
        *_levels(strategy),
        *_design(strategy),
        ("At most", f"{protocol['max_people']:,} people"),
        *_field(protocol, Strategy.from_dict(strategy).part.each_answer),
        ("People", PEOPLE[protocol["people"]]),
        ("Blinding", BLINDING[protocol["blinding"]]),
        ("Storage", RETAINED[protocol["retain"]]),
        ("Made with", f"discreet {protocol['version']}"),
    ]


def scale_of(protocol: Said) -> Scale:
    """How outcomes become rewards, and back."""
    return Scale(protocol["low"], protocol["high"], protocol["direction"])


def _outcomes(protocol: Said) -> str:
    outcomes = Strategy.from_dict(protocol["strategy"]).outcomes
    if is_yes_no(scale_of(protocol), outcomes):
        return yes_no_words(protocol["direction"])
    better = "more is better" if protocol["direction"] == "max" else "less is better"
    return f"{protocol['low']:g} to {protocol['high']:g}, {better}"


def _levels(strategy: Said) -> list[tuple[str, str]]:
    """How private, and how often wrong."""
    gamma = "" if strategy["gamma"] is None else f", γ = {strategy['gamma']:g}"
    if strategy["rho"] is not None:
        privacy = f"ρ = {strategy['rho']:g}"
    elif strategy["epsilon"] is None:
        privacy = "none"
    else:
        privacy = f"ε = {strategy['epsilon']:g}{gamma}"
    rate = f"{100 * strategy['delta']:.4g} % (δ = {strategy['delta']:g})"
    return [("Privacy", privacy), ("Error rate aimed at", rate)]


def _field(protocol: Said, each_answer: bool) -> list[tuple[str, str]]:
    """How people come, are dealt and answer."""
    deadline, sites = protocol["deadline"], protocol["sites"]
    dealt = ASSIGNED[protocol["dealing"]]
    late = "none" if deadline is None else f"{duration_words(deadline)} from assignment"
    return [
        ("Assignment", dealt),
        ("Sites", "anywhere" if sites is None else ", ".join(sites)),
        ("Deadline of an outcome", late),
        ("Looks", EACH_ANSWER if each_answer else LOOKS[protocol["release"]]),
        ("Enrolment", ENROLMENT[protocol["enrolment"]]),
    ]


def _outside(status: Said) -> list[tuple[str, str]]:
    """What outcomes outside the range count as, if they are not refused."""
    return [("Outcomes outside that range", status["outside"])] if status["outside"] else []


def _design(strategy: Said) -> list[tuple[str, str]]:
    """What else was chosen of the strategy."""
    from discreet.studies.study import extras

    chosen = extras(Strategy.from_dict(dict(strategy)))
    return [("Design", chosen)] if chosen else []
