"""Requests that are repeated because their answer was lost: what was done once is not
done again, and the same answer is given. (Requests for people are in enrol.py.)
"""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from discreet.errors import InvalidInputError
from discreet.trials.protocol import canonical
from discreet.trials.status import Assignment, Told
from discreet.trials.store.ledger import Ledger

if TYPE_CHECKING:
    from discreet.trials.desk import Desk

Result = TypeVar("Result")
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


def do_once(
    desk: "Desk", request: Request | None, ids: Sequence[str], work: "Callable[[Desk], Result]"
) -> Result:
    """Do the work of a request, or return the answer that it has had. (An id that was
    reissued is unknown, and the request that did it may come again: so a caller who is
    bound to a site is known by the participants' numbers.)
    """
    if request is None:
        return work(desk)
    ledger = desk.ledger
    hash = ledger.hash(request.text)
    text = ledger.answered(hash)
    if text is not None:
        desk.check_site(ids)
        found = json.loads(text)
        if found["said"] != _said(ledger, request):
            raise InvalidInputError(ANOTHER)
        answer: Result = _unpacked(found["answer"])
        return answer
    result = work(desk)
    plain = vars(result) if isinstance(result, Told | Assignment) else result
    ledger.keep_answer(hash, canonical({"said": _said(ledger, request), "answer": plain}))
    return result


def _said(ledger: Ledger, request: Request) -> list[str]:
    about = canonical(list(request.about)).encode()
    return [request.kind, ledger.hash(about).hex()]


def _unpacked(plain: dict[str, Any] | str | None) -> Any:
    """Which answer it is, its names tell."""
    if not isinstance(plain, dict):
        return plain
    if "arm" in plain:
        return Assignment(**plain)
    return Told(plain["new"], tuple(plain["before"]), tuple(plain["late"]))
