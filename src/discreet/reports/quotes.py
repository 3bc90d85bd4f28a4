"""Sentences about a trial that a paper can quote: only what holds, and under which
conditions.
"""

from collections.abc import Mapping
from typing import Any

from discreet.reports.conduct import duration_words, level_words
from discreet.strategies.parts import COINS
from discreet.strategies.strategy import Strategy
from discreet.trials.conduct import RESTORED, RESTORED_WORDS
from discreet.trials.protocol import CLOCK, CONTINUOUS
from discreet.words import times_as_likely, unprotected_words

Said = Mapping[str, Any]
ROUNDS = {
    COINS: (
        "If one arm was at least as good as every other for the people enrolled in each round, "
        "the probability that the trial lost it (eliminated it, at any look) is at most {rate}, "
        "over the random assignment and the added noise, however often the data were looked at "
        "and whatever the differences between sites and times, as long as nobody knew an "
        "assignment before its person was enrolled."
    ),
}
ONE_MEAN = (
    "If the outcomes of each arm are independent, with one mean at all sites and at all times, and "
    "one arm has the best mean, the probability that the trial named another one is at most "
    "{rate}, however often the data were looked at."
)


def quotes(said: Said) -> list[tuple[str, str]]:
    """A title and sentences each: privacy, and the error rate."""
    return [("Privacy", privacy_quote(said)), ("Error rate", error_quote(said))]


def privacy_quote(said: Said) -> str:
    """What is promised to each person, with its conditions."""
    protocol, status = said["protocol"], said["status"]
    strategy = Strategy.from_dict(protocol["strategy"])
    model = strategy.trust_model
    if not model.private:
        return (
            "No privacy is promised: everything published about this trial was computed from the "
            "outcomes as they are, without noise."
        )
    where = (
        "Each person's outcome was randomised before it was sent, so that nobody had to be trusted "
        "with it."
        if model.randomised
        else "Random noise was added to every number before it was shown or used for a decision."
    )
    conditions = "This holds if nobody took part twice"
    if protocol["release"] != CLOCK and not model.randomised:
        conditions += ", and if the time at which an outcome was told did not depend on the outcome"
    acts = [act["action"] for act in status["acts"]]
    restored = f" {RESTORED_WORDS}." if RESTORED in acts else ""
    return (
        f"Everything published about this trial, taken together, is {_level(strategy)} with "
        f"respect to the outcome of one person{_factor(strategy)}. {where} Who took part, where "
        f"and on which arm is not protected. {conditions}.{restored}"
    )


def _level(strategy: Strategy) -> str:
    if strategy.rho is not None:
        return f"{strategy.rho:g}-zero-concentrated differentially private (ρ = {strategy.rho:g})"
    if strategy.gamma is not None:
        level = f"({strategy.epsilon:g}, {strategy.gamma:g})"
        return f"{level}-differentially private (ε = {strategy.epsilon:g}, γ = {strategy.gamma:g})"
    return f"{strategy.epsilon:g}-differentially private (ε = {strategy.epsilon:g})"


def _factor(strategy: Strategy) -> str:
    """What that means, where one number says it."""
    if strategy.rho is not None or strategy.epsilon is None:
        return ""
    another = ": had that outcome been another one,"
    times = times_as_likely(strategy.epsilon)
    if not times:
        return unprotected_words(f"{another} a result")
    rare = "" if strategy.gamma is None else f", apart from a probability of {strategy.gamma:g}"
    return (
        f"{another} no result would have been more than {times} times as likely, or as "
        f"unlikely{rare}"
    )


def error_quote(said: Said) -> str:
    """What the error rate says of this end; of an inconclusive one, nothing."""
    status = said["status"]
    strategy = Strategy.from_dict(said["protocol"]["strategy"])
    if not status["stopped"]:
        return "The trial is still running: nothing can be said about an answer yet."
    if not status["conclusive"]:
        return _inconclusive(status)
    named = f"Arm {status['recommendation']} was named by the rule fixed in the protocol."
    if not strategy.proved:
        return f"{named} No error rate is claimed: {status['correctness']}."
    rate = status["error_rate"] or strategy.delta
    shown = f"{100 * rate:.3g} %"
    if strategy.zeta:
        return (
            f"{named} The probability that it is more than {strategy.zeta:g} below the best, with "
            f"outcomes on a scale from 0 to 1, is at most {shown}. {_counted(said['protocol'])}"
        )
    rule = ROUNDS.get(said["protocol"]["dealing"], ONE_MEAN).format(rate=shown)
    return f"{named} {rule}{_pace(said['protocol'])} {_counted(said['protocol'])}"


def _pace(protocol: Said) -> str:
    """What continuous enrolment asks for beside."""
    if protocol["enrolment"] != CONTINUOUS:
        return ""
    return (
        " It is assumed that the speed at which people came did not depend on outcomes that had "
        "not been looked at."
    )


def _counted(protocol: Said) -> str:
    """What a missing outcome was."""
    seconds = protocol["deadline"]
    within = "" if seconds is None else f" within {duration_words(seconds)} of the assignment"
    return f"An outcome that was not told{within} counted as the worst."


def _inconclusive(status: Said) -> str:
    lead = "arms that were level" if level_words(status) else "arm that did best so far"
    words = (
        "The trial ended without a conclusion. No arm was found to be the best, and the error rate "
        f"of the protocol does not apply to the {lead}."
    )
    if status["smallest_delta"] is None:
        return words
    return (
        f"{words} The p-value against the claim that another arm is the best is "
        f"{status['smallest_delta']:.3g}; it is valid although the trial was stopped early."
    )
