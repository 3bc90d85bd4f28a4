"""Checks of callers' input: identifiers, ids, outcomes and randomised responses."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from discreet.errors import InvalidInputError
from discreet.trials.names import MAX_NAME_LENGTH, is_writable, normalize_name
from discreet.trials.protocol import Protocol
from discreet.trials.record import response_noise
from discreet.trials.responses import Response, compute_largest_response, response_kind, to_units

Value = TypeVar("Value")
Checked = TypeVar("Checked")

MAX_BATCH = 10_000
"""Participants of one call, or of one transaction: nobody waits long for another
caller.
"""
ID = re.compile(r"[0-9]{1,9}-[0-9a-f]{8,64}")
"""The form of an id."""


def normalize_identifiers(people: Sequence[str]) -> list[bytes]:
    """Return identifiers as they are hashed: without spaces around, in Unicode's form
    NFC.
    """
    listed = isinstance(people, Sequence) and not isinstance(people, str | bytes)
    if listed and not people:
        raise InvalidInputError("the list of people is empty")
    if not listed or not all(isinstance(person, str) and person.strip() for person in people):
        raise InvalidInputError("people must be a list of identifiers, each a text")
    if any(len(person) > MAX_NAME_LENGTH for person in people):  # before they are normalised
        raise InvalidInputError(
            f"an identifier may have at most {MAX_NAME_LENGTH} characters. Nobody was assigned"
        )
    try:
        return [unicodedata.normalize("NFC", person.strip()).encode() for person in people]
    except UnicodeEncodeError:
        raise InvalidInputError(
            "people must be a list of identifiers, each a text that can be written down"
        ) from None


def looks_like_id(id: str) -> bool:
    """Return whether a text has the form of an id: one that has not may be an outcome
    in the wrong place.
    """
    return ID.fullmatch(id) is not None


def unknown_id(id: str, among: Sequence[str] = ()) -> InvalidInputError:
    """Return the error for an unknown id, which says its place among those of the call.
    A text that does not have the form of an id is not repeated.
    """
    given = f"the id {id!r}" if looks_like_id(id) else "this id"
    which = f"{entry_words(among.index(id) + 1, len(among))}: " if len(among) > 1 else ""
    return InvalidInputError(
        f"{which}there is no assignment with {given} in this trial; nothing was changed"
    )


def entry_words(place: int, many: int) -> str:
    """Name an entry of a call without what it says."""
    return f"entry {place} of {many}"


def parse_number(id: str) -> int:
    """Return the participant's number in an id; -1 if it is no id."""
    number = str(id).partition("-")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1


def check_id(id: Any) -> str:
    """Return an id as `ask` gave it; refuse what is no text."""
    if not isinstance(id, str):
        raise InvalidInputError("an id must be a text, as ask gave it; nothing was recorded")
    return id


def check_key(key: Any) -> str | None:
    """Return an idempotency key, if there is one."""
    if key is None or (is_writable(key) and len(key) <= MAX_NAME_LENGTH):
        return None if key is None else str(key)
    raise InvalidInputError(
        f"key must be a text of your own, of at most {MAX_NAME_LENGTH} characters, a different "
        "one for each request"
    )


def check_user(user: Any) -> str | None:
    """Return the name of the caller, as the audit trail notes it."""
    name = normalize_name("user", user)
    if name is None or (is_writable(name) and len(name) <= MAX_NAME_LENGTH):
        return None if name is None else str(name)
    raise InvalidInputError(f"user must be a name of at most {MAX_NAME_LENGTH} characters, or None")


def check_outcomes(outcomes: Any) -> None:
    """Refuse what is no mapping from ids, and too many at once."""
    if not isinstance(outcomes, Mapping):
        raise InvalidInputError(
            "give a dictionary from ids to outcomes, such as {'1-5f2c': 1}; nothing was recorded"
        )
    if len(outcomes) > MAX_BATCH:
        raise InvalidInputError(
            f"at most {MAX_BATCH} outcomes can be recorded at once; got {len(outcomes)}: "
            "send them in parts; nothing was recorded"
        )
    for id in outcomes:
        check_id(id)


def check_each(
    values: Mapping[str, Value | None], check: Callable[[Value], Checked]
) -> dict[str, Checked | None]:
    """Check values by id one by one, and return them as `check` does; None says that an
    outcome will not come. The error for one of several says which, by its place.
    """
    checked: dict[str, Checked | None] = {}
    for place, (id, value) in enumerate(values.items(), 1):
        try:
            checked[id] = None if value is None else check(value)
        except InvalidInputError as error:
            if len(values) == 1:
                raise
            entry = entry_words(place, len(values))
            raise InvalidInputError(f"{entry}: {error}; nothing was recorded") from None
    return checked


def check_outcome(outcome: float, protocol: Protocol) -> float:
    """Return an outcome within the range of the protocol; refuse one that the protocol
    does not take.
    """
    protocol.scale.convert_to_reward(outcome, protocol.out_of_range)
    return min(max(float(outcome), protocol.low), protocol.high)


def outcome_units(outcome: float, protocol: Protocol) -> int:
    """Return an outcome in whole units, rounded at random without bias."""
    return to_units(protocol.scale.convert_to_reward(outcome, protocol.out_of_range), protocol.grid)


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
    """Return a response in whole units; refuse one that no mechanism of ours gives."""
    check_response(response, protocol)
    strategy = protocol.strategy
    if abs(response.value) > compute_largest_response(response_noise(strategy), protocol.grid):
        raise InvalidInputError(
            "the response is larger than its noise can make it, so it was not made by respond"
        )
    return response.value


def check_takes_outcomes(protocol: Protocol) -> None:
    """Refuse raw outcomes if the protocol wants them randomised before."""
    if protocol.strategy.trust_model.randomised:
        raise InvalidInputError(
            "this trial has local trust: it takes no raw outcomes. Randomise each where the "
            "person is, with discreet.respond or `discreet respond`, and pass the response to "
            "answer"
        )


def check_takes_responses(protocol: Protocol) -> None:
    """Refuse randomised responses if the protocol wants the outcomes themselves."""
    if not protocol.strategy.trust_model.randomised:
        raise InvalidInputError(
            "this trial does not have local trust: give it the outcomes themselves"
        )


def check_takes_amendments(protocol: Protocol) -> None:
    """Refuse to correct a randomised response."""
    if protocol.strategy.trust_model.randomised:
        raise InvalidInputError(
            "a randomised response cannot be amended: a second one would spend ε again"
        )
