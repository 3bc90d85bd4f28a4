"""What a status says, as people read it.

The sentences of a status are compared word for word when a transcript is verified, so
they stay as they were first written. Where a status is shown, they may be said better.
"""

from discreet.strategies.parts import BLOCKS, COINS, ORDER, SHUFFLED
from discreet.trials.conduct import (
    ADD,
    DROP,
    LOWER,
    MEANS,
    RAISE,
    RESTORED,
    SET_CLOCK,
    UNBLIND,
)
from discreet.trials.dealing import DEALING, GUARANTEE
from discreet.trials.protocol import ANONYMOUS, CONTINUOUS, ENROLMENT, PEOPLE, STICKY
from discreet.trials.protocol import REFUSED as REFUSE

NAMED = {
    "pause": "Pause",
    "resume": "Resume",
    "stop": "Stop for good",
    RAISE: "Raise the maximum",
    LOWER: "Lower the maximum",
    "close-site": "Close a site",
    "open-site": "Open a site",
    DROP: "Drop an arm",
    ADD: "Add an arm",
    SET_CLOCK: "Set the clock back",
    UNBLIND: "Reveal the arm of a person",
    "maximum": "Change the maximum",
    RESTORED: "Restore the record from a backup",
}
"""What operators do, as pages say it, in the order in which it is offered; commands,
records and programs have words of their own for it.
"""
ACTIONS = {
    LOWER: "the error rate holds at every size at once: a maximum only says when the last look is",
    "pause": (
        "nobody is assigned during the pause. The deadlines of people who are in keep running, so "
        "keep telling outcomes"
    ),
    "resume": (
        "nobody was assigned during the pause; the deadlines of people who were in kept running"
    ),
    "stop": (
        "the end is inconclusive; the smallest error rate that is shown for it is valid whatever "
        "the reason was"
    ),
    "close-site": (
        "people who are in stay in; from then on the answer is about the people who still come"
    ),
    "open-site": "from then on the answer is also about its people",
    DROP: (
        "all bets start again among the arms that are left. Nothing more is released about the "
        "people of the dropped arm, and rounds that were open are released without bets. Given "
        "everything before, the probability that the trial ends with an arm that is not the best "
        "of those left is at most δ; over a whole trial with h arms dropped, at most (h + 1) δ"
    ),
    ADD: (
        "the new arm is compared only with people who are assigned at the same time. With h arms "
        "added the error rate is at most (h + 1) δ, and at most δ if the best of all arms was "
        "there from the start"
    ),
    SET_CLOCK: (
        "the clock that decides deadlines was set back. Deadlines that had passed by the wrong "
        "clock stay passed, whatever the outcomes. For everybody else in the trial, the time until "
        "the deadline is counted from now at the latest"
    ),
}
SAID = {MEANS[action]: words for action, words in ACTIONS.items()} | {
    DEALING[COINS]: (
        "each person's arm is drawn by a coin with the announced odds once the person is in, from "
        "a key that is revealed with the release of the round. It must stay that way: nobody may "
        "know an arm before its person is in"
    ),
    DEALING[BLOCKS]: (
        "arms are assigned in permuted blocks, and every bet pays for what that reveals. Towards "
        "the end of a block the arms that are left can be guessed: the error rate does NOT cover "
        "staff who guess them and select people accordingly"
    ),
    DEALING[SHUFFLED]: (
        "the places up to each release, which the record announces, are assigned in random order. "
        "Sites that differ, trends, and staff who guess the arms that are left can break the error "
        "rate. bet-se does not have this weakness"
    ),
    DEALING[ORDER]: (
        "anyone who can read the record knows the next arm. Sites that differ, trends, and staff "
        "who select people for the next arm can break the error rate. bet-se does not have this "
        "weakness"
    ),
    GUARANTEE[COINS]: (
        "if one arm is at least as good as every other for the people of each round, it is lost "
        "(eliminated, at any look) with probability at most δ, whatever the sites, trends and "
        "seasons, and however people were selected, as long as nobody knows the next coin. If the "
        "order of the arms changes over time, less is promised: an arm that is eliminated was "
        "worse than its rival for the people of at least one round up to then. The claim is about "
        "the people who were enrolled"
    ),
    ENROLMENT[CONTINUOUS]: (
        "people are enrolled while earlier rounds wait for their outcomes. The error rate then "
        "also requires that the pace at which people come does not depend on how people fare whose "
        "outcomes are not released"
    ),
    PEOPLE[ANONYMOUS]: (
        "people may be enrolled without saying who they are; somebody who is named takes part only "
        "once"
    ),
    PEOPLE[STICKY]: "a person who comes again gets the same assignment again",
    PEOPLE[REFUSE]: "a person who comes again is refused",
}
"""A sentence of a status, and how it is shown."""


def act_name(action: str) -> str:
    """An operator's action, as a page calls it."""
    return NAMED.get(action, action)


def act_phrase(action: str) -> str:
    """The same within a sentence."""
    name = act_name(action)
    return f"{name[:1].lower()}{name[1:]}"


def plainly(words: str) -> str:
    """A sentence of a status, as it is shown to people."""
    return SAID.get(words, words)
