"""What callers hand in: people, ids, outcomes and randomised responses."""

import re
import secrets
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from discreet.errors import InvalidInputError
from discreet.trials.conduct import Act
from discreet.trials.names import LONGEST_NAME, check_place, plain_name, writable
from discreet.trials.outcomes import Response, largest_response, response_kind, to_units
from discreet.trials.protocol import Protocol
from discreet.trials.record import live_noise
from discreet.validate import check_whole, quoted

Told = TypeVar("Told")
Read = TypeVar("Read")

MOST_AT_ONCE = 10_000
"""People of one call: nobody waits long for another caller."""
ID = re.compile(r"[0-9]{1,9}-[0-9a-f]{8,64}")
"""How an id looks."""


def identifiers(people: Sequence[str]) -> list[bytes]:
    """Identifiers as they are hashed: without spaces around, in one of Unicode's ways
    to write them.
    """
    listed = isinstance(people, Sequence) and not isinstance(people, str | bytes)
    if listed and not people:
        raise InvalidInputError("the list of people is empty")
    if not listed or not all(isinstance(person, str) and person.strip() for person in people):
        raise InvalidInputError("people must be a list of identifiers, each a text")
    if any(len(person) > LONGEST_NAME for person in people):  # before they are normalised
        raise InvalidInputError(
            f"an identifier may have at most {LONGEST_NAME} characters. Nobody was assigned"
        )
    try:
        return [unicodedata.normalize("NFC", person.strip()).encode() for person in people]
    except UnicodeEncodeError:
        raise InvalidInputError(
            "people must be a list of identifiers, each a text that can be written down"
        ) from None


def looks_like_id(id: str) -> bool:
    """Whether it may be one: what is none may be an outcome in the wrong place."""
    return ID.fullmatch(id) is not None


def unknown_id(id: str, among: Sequence[str] = ()) -> InvalidInputError:
    """What to say of an id that nobody has: which one it is of those that came at once,
    by its place; what is none at all is not repeated.
    """
    given = f"the id {id!r}" if looks_like_id(id) else "this id"
    which = f"{entry_words(among.index(id) + 1, len(among))}: " if len(among) > 1 else ""
    return InvalidInputError(
        f"{which}there is no assignment with {given} in this trial; nothing was changed"
    )


def entry_words(place: int, many: int) -> str:
    """Which of those that came at once, without what it says."""
    return f"entry {place} of {many}"


def same_id(id: str, given: str) -> bool:
    """Whether somebody gave this id."""
    return secrets.compare_digest(id.encode(), str(given).encode(errors="replace"))


def number_of(id: str) -> int:
    """The person's number that an id claims; -1 for what is no id."""
    number = str(id).partition("-")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1


def one_id(id: Any) -> str:
    """An id as `ask` gave it; refuses what is no text."""
    if not isinstance(id, str):
        raise InvalidInputError("an id must be a text, as ask gave it; nothing was told")
    return id


def check_request(request: Any) -> str | None:
    """The key of a request, if there is one."""
    if request is None or (writable(request) and len(request) <= LONGEST_NAME):
        return None if request is None else str(request)
    raise InvalidInputError(
        f"request must be a text of your own, of at most {LONGEST_NAME} characters, a different "
        "one for each request"
    )


def who_calls(who: Any) -> str | None:
    """Who calls, as the journal notes it."""
    name = plain_name("who", who)
    if name is None or (writable(name) and len(name) <= LONGEST_NAME):
        return None if name is None else str(name)
    raise InvalidInputError(f"who must be a name of at most {LONGEST_NAME} characters, or None")


class Wanted(NamedTuple):
    """What a caller asks for."""

    how_many: int
    people: tuple[str, ...] | None
    """Who comes, as the caller calls them."""
    names: tuple[bytes, ...] | None
    """The same, as they are hashed."""
    site: str | None
    request: str | None
    """The key under which the answer can be had again."""
    alone: bool = False
    """Whether one person was named, and no list."""
    bound: bool = False
    """Whether the caller is bound to the site, and learns nothing of other sites'
    participants.
    """


def wanted_of(
    n: int,
    people: Sequence[str] | None,
    site: str | None,
    person: str | None,
    request: str | None,
    bound: bool = False,
) -> Wanted:
    """Check what a caller asks for."""
    if person is not None:
        if people is not None:
            raise InvalidInputError("give person or people, not both")
        people = [person]
    place = None if site is None else check_place(site)
    names = None if people is None else tuple(identifiers(people))
    count = check_whole("n", n if names is None else len(names), least=1, most=MOST_AT_ONCE)
    called = None if people is None else tuple(people)
    key = None if request is None else check_request(request)
    return Wanted(count, called, names, place, key, person is not None, bound)


def check_many(told: Any) -> None:
    """Refuse what is no mapping from ids, and too many at once."""
    if not isinstance(told, Mapping):
        raise InvalidInputError(
            "give a dictionary from ids to outcomes, such as {'1-5f2c': 1}; nothing was told"
        )
    if len(told) > MOST_AT_ONCE:
        raise InvalidInputError(
            f"at most {MOST_AT_ONCE} outcomes can be told at once; got {len(told)}: tell them in "
            "parts; nothing was told"
        )
    for id in told:
        one_id(id)


def read_each(
    told: Mapping[str, Told | None], read: Callable[[Told], Read]
) -> dict[str, Read | None]:
    """What was told, read one by one; None says that an outcome will not come. The
    error of one among several says which, by its place.
    """
    found: dict[str, Read | None] = {}
    for place, (id, one) in enumerate(told.items(), 1):
        try:
            found[id] = None if one is None else read(one)
        except InvalidInputError as error:
            if len(told) == 1:
                raise
            which = entry_words(place, len(told))
            raise InvalidInputError(f"{which}: {error}; nothing was told") from None
    return found


def outcome_units(outcome: float, protocol: Protocol) -> int:
    """The units of an outcome; refuses one that the protocol does not take."""
    return to_units(protocol.scale.reward(outcome, protocol.outside), protocol.grid)


def check_response(response: Response, protocol: Protocol) -> None:
    """Refuse a response that was not made as the protocol says."""
    if not isinstance(response, Response):
        raise InvalidInputError(
            "this trial takes randomised responses only: make one with discreet.respond"
        )
    strategy = protocol.strategy
    wanted = (response_kind(strategy), strategy.epsilon, strategy.gamma, protocol.scale)
    if (response.mechanism, response.epsilon, response.gamma, response.scale) != wanted:
        raise InvalidInputError(
            f"the response was not randomised as the protocol says: {protocol.respond_options}"
        )


def response_units(response: Response, protocol: Protocol) -> int:
    """The units of a response; refuses one that was not made as the protocol says."""
    check_response(response, protocol)
    strategy = protocol.strategy
    if abs(response.value) > largest_response(live_noise(strategy), protocol.grid):
        raise InvalidInputError(
            "the response is larger than its noise can make it, so it was not made by respond"
        )
    return response.value


def act_of(action: Any, reason: Any, about: Any) -> Act:
    """What an operator wants to do, as it is written down; whether it can be done is
    seen where the trial is.
    """
    word = action if isinstance(action, str) else quoted(action)
    return Act(word, plain_name("what it is about", about), plain_name("the reason", reason))


def check_tells(protocol: Protocol) -> None:
    """Refuse raw outcomes where they are randomised before they are told."""
    if protocol.strategy.trust_model.randomised:
        raise InvalidInputError(
            "this trial has local trust: it takes no raw outcomes. Randomise each where the "
            "person is, with discreet.respond or `discreet respond`, and pass the response to "
            "answer"
        )


def check_answers(protocol: Protocol) -> None:
    """Refuse randomised responses where outcomes themselves are told."""
    if not protocol.strategy.trust_model.randomised:
        raise InvalidInputError(
            "this trial does not have local trust: tell it the outcomes themselves"
        )


def check_amends(protocol: Protocol) -> None:
    """Refuse to have a randomised response corrected."""
    if protocol.strategy.trust_model.randomised:
        raise InvalidInputError(
            "a randomised response cannot be amended: a second one would spend ε again"
        )
