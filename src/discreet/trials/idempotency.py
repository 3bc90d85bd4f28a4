"""Idempotency keys: a request that is repeated because its answer was lost is not done
again, and gets the same answer.
"""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from discreet.errors import InvalidInputError
from discreet.trials.protocol import canonical
from discreet.trials.transaction import TrialTransaction
from discreet.trials.verbs import REISSUE, UNBLIND, AskBody, Body, Verb

Result = TypeVar("Result")
Arguments = TypeVar("Arguments", bound=Body)
OTHER_REQUEST = (
    "this key was used before, for something else: repeat that call exactly, or use a new key. "
    "Nothing was changed"
)
OTHER_ASK = (
    "this key was used before, for other participants, another number or another site: repeat "
    "that call exactly, or give only its key, or use a new key. Nobody was assigned"
)


def key_text(verb_name: str, key: str) -> bytes:
    """Return what is hashed of a key: those of `ask` are apart from those of other
    verbs, since no key has a zero character in it.
    """
    return (key if verb_name == "ask" else f"\0{key}").encode()


def run_once(
    tx: TrialTransaction,
    verb: Verb[Arguments, Result],
    body: Arguments,
    key: str,
    work: Callable[[TrialTransaction, Arguments], Result],
) -> Result:
    """Do the work of a request, or return the answer that it has had.

    An id that was reissued is unknown, and the request that did it may come again: so
    the participants of a caller who is bound to a site are recognised by number. The
    audit trail notes who gets an id or an arm by the key of somebody else.
    """
    hash_with_secret = tx.tables.hash_with_secret
    hash = hash_with_secret(key_text(verb.name, key))
    arguments = canonical(list(body.identity)).encode()
    request = [verb.name, hash_with_secret(arguments).hex()]
    text = tx.tables.find_answer(hash)
    if text is not None:
        tx.check_site(body.ids)
        stored = json.loads(text)
        if stored["request"] != request:
            raise InvalidInputError(OTHER_REQUEST)
        if verb.name in (REISSUE.name, UNBLIND.name) and stored["user"] != tx.user:
            tx.audit(f"{verb.name} again", 1)
        return msgspec.convert(stored["answer"], verb.result)
    result = work(tx, body)
    answer = canonical({"request": request, "user": tx.user, "answer": msgspec.to_builtins(result)})
    tx.tables.insert_answer(hash, answer)
    return result


def was_answered(tx: TrialTransaction, key: str) -> bool:
    """Return whether an `ask` with this key was answered."""
    hash = tx.tables.hash_with_secret(key_text("ask", key))
    return tx.tables.find_answer(hash) is not None


def find_asked(
    tx: TrialTransaction, body: AskBody, site: str | None, key: str
) -> dict[int, int] | None:
    """Return the participants of the answer that an `ask` has had, by their places in
    the list; None if the key is new. (A request that got nobody is new.) The audit
    trail notes who gets them by the key of somebody else.
    """
    text = tx.tables.find_answer(tx.tables.hash_with_secret(key_text("ask", key)))
    if text is None:
        return None
    stored = json.loads(text)
    for name, value in _describe(tx, body, site).items():
        if value is not None and value != stored["request"][name]:
            raise InvalidInputError(OTHER_ASK)
    if stored["user"] != tx.user:
        tx.audit("ask again", len(stored["numbers"]), site)
    return {int(place): number for place, number in stored["numbers"].items()}


def store_asked(
    tx: TrialTransaction, body: AskBody, site: str | None, key: str, numbers: dict[int, int]
) -> None:
    """Store which participants an `ask` was answered with."""
    hash = tx.tables.hash_with_secret(key_text("ask", key))
    answer = {"request": _describe(tx, body, site), "user": tx.user, "numbers": numbers}
    tx.tables.insert_answer(hash, canonical(answer))


def _describe(tx: TrialTransaction, body: AskBody, site: str | None) -> dict[str, Any]:
    """Return what was asked for, as it is stored: of identifiers a keyed hash. One
    participant without a name is what an `ask` means that says nothing.
    """
    names, count = None, body.n if body.n > 1 else None
    if body.named is not None:
        listed = canonical([name.hex() for name in body.identifiers]).encode()
        names = tx.tables.hash_with_secret(listed).hex()
    return {"count": count, "names": names, "site": site}
