"""Requests that are repeated because their answer was lost: what was done once is not
done again, and the same answer is given. (Requests for people are in enrol.py.)
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from discreet.errors import InvalidInputError
from discreet.trials.protocol import canonical
from discreet.trials.status import Assignment, Told
from discreet.trials.store.ledger import Ledger

ANOTHER = (
    "this request was made before, for something else: repeat it exactly, or use a new key. "
    "Nothing was changed"
)


class Request(NamedTuple):
    """What a caller wants to be done once."""

    key: str
    """The caller's own."""
    kind: str
    about: tuple[str | int | None, ...]
    """What it is about; never an outcome, since it is kept."""

    @property
    def text(self) -> bytes:
        """What is hashed: apart from the keys of `ask`, which have no zero in them."""
        return f"\0{self.key}".encode()


def done_before(ledger: Ledger, request: Request) -> list[Any]:
    """The answer that a request has had, or nothing if it is new."""
    text = ledger.answered(ledger.hash(request.text))
    if text is None:
        return []
    found = json.loads(text)
    if found["said"] != _said(ledger, request):
        raise InvalidInputError(ANOTHER)
    return [_unpacked(found["answer"])]


def keep(ledger: Ledger, request: Request, answer: Any) -> None:
    """Write down the answer of a request, in the transaction that did it."""
    plain = vars(answer) if isinstance(answer, Told | Assignment) else answer
    text = canonical({"said": _said(ledger, request), "answer": plain})
    ledger.keep_answer(ledger.hash(request.text), text)


def check_apart(requests: Sequence[Request]) -> None:
    """Refuse two of one key at once, so that they are served one after the other."""
    if len({request.key for request in requests}) < len(requests):
        raise InvalidInputError(ANOTHER)


def _said(ledger: Ledger, request: Request) -> list[str]:
    about = canonical(list(request.about)).encode()
    return [request.kind, ledger.hash(about).hex()]


def _unpacked(plain: dict[str, Any] | str | None) -> Told | Assignment | str | None:
    """Which answer it is, its names tell."""
    if not isinstance(plain, dict):
        return plain
    if "arm" in plain:
        return Assignment(**plain)
    return Told(plain["new"], tuple(plain["before"]), tuple(plain["late"]))
