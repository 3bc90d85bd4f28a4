"""What is kept beside the record, and is nobody's to see but the operator's: identities
as keyed hashes, requests and their answers, the journal, what is still to be erased.
"""

import hmac
import shlex
import time
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import sqlalchemy as sa

from discreet.errors import StoreError
from discreet.trials.status import Entry
from discreet.trials.store.many import Listed, pieces
from discreet.trials.store.schema import erasing, journal, keys, people, requests
from discreet.trials.store.session import Session, at

BACKWARDS = 60.0
"""Seconds by which the clock may be behind the last call: clocks are put right."""


_key = sa.select(keys.c.key).where(at(keys))
_hashed = sa.select(people.c.hash, people.c.number)
_numbers = Listed(lambda among: _hashed.where(among(people.c.hash)))
_answered = sa.select(requests.c.hash, requests.c.answer)
_requests = Listed(lambda among: _answered.where(among(requests.c.hash)))
_entries = sa.select(*(journal.c[name] for name in Entry._fields)).where(at(journal))
_newest_first = _entries.order_by(journal.c.entry.desc()).limit(sa.bindparam("most"))
_last = (
    sa.select(journal.c.entry, journal.c.at)
    .where(at(journal))
    .order_by(journal.c.entry.desc())
    .limit(1)
)
_erased = erasing.delete().where(at(erasing), erasing.c.seq <= sa.bindparam("through"))


class Last(NamedTuple):
    """Of the last entry all that the next one must know: a site may read no more."""

    entry: int
    at: float


class Ledger:
    """The private side of one trial in one transaction."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._newest: Last | None = None
        self._answers: dict[bytes, str | None] = {}
        """Of requests that were looked up, the answers they have had."""
        self._entered: dict[bytes, int] = {}
        """Participants who were entered in this transaction."""

    @cached_property
    def _secret(self) -> bytes:
        return bytes(self.session.run(_key).scalar_one())

    @cached_property
    def now(self) -> float:
        """When this transaction happens, by the one clock of the database."""
        session = self.session
        if session.clock is None:
            return time.time()
        return float(session.connection.execute(session.clock).scalar_one())

    def hash(self, text: bytes) -> bytes:
        """What is kept of an identity or a request: a hash with the trial's secret."""
        return hmac.digest(self._secret, text, "sha256")

    # --- people and requests ----------------------------------------------------------

    def numbers(self, hashes: Sequence[bytes]) -> dict[bytes, int]:
        """The numbers of those of them who took part before."""
        found: dict[bytes, int] = {}
        for some in pieces(hashes):
            rows = self.session.run_listed(_numbers, some).all()
            found |= {bytes(value): number for value, number in rows}
        return found | {hash: self._entered[hash] for hash in hashes if hash in self._entered}

    def enter_people(self, numbers: Sequence[tuple[bytes, int]]) -> None:
        """Note who takes part, under which number."""
        self._entered |= dict(numbers)
        self.session.insert(people, numbers)

    def look_up(self, hashes: Sequence[bytes]) -> None:
        """Look many requests up at once, for `answered`."""
        for some in pieces([hash for hash in hashes if hash not in self._answers]):
            rows = self.session.run_listed(_requests, some).all()
            found = {bytes(hash): text for hash, text in rows}
            self._answers |= {hash: found.get(hash) for hash in some}

    def answered(self, hash: bytes) -> str | None:
        """The answer that a request has had before."""
        if hash not in self._answers:
            self.look_up([hash])
        return self._answers[hash]

    def keep_answer(self, hash: bytes, answer: str) -> None:
        """Keep the answer of a request, to be given again."""
        self._answers[hash] = answer
        self.session.insert(requests, [(hash, answer)])

    # --- the journal ------------------------------------------------------------------

    def entries(self, most: int) -> list[Entry]:
        """The last calls, the newest first."""
        return [Entry(*row) for row in self.session.run(_newest_first, most=most)]

    def note(
        self, who: str, call: str, people: int, site: str | None, set_back: bool = False
    ) -> None:
        """Put a call into the journal. Its times never go back, but where the clock was
        `set_back`.
        """
        last = self._last()
        at = self.now if last is None or set_back else max(self.now, last.at)
        entry = Entry(last.entry + 1 if last else 1, at, who, site, call, people)
        self.session.insert(journal, [entry])
        self._newest = Last(entry.entry, entry.at)

    def check_clock(self, recorded: float) -> None:
        """Refuse a clock that is well behind the last call, or the last time that the
        record tells: deadlines go by it.
        """
        last = self._last()
        behind = max(0.0 if last is None else last.at, recorded) - self.now
        if behind > BACKWARDS:
            raise StoreError(
                f"the clock is {_span(behind)} behind the last recorded call: correct it; "
                "nothing was changed. If the clock was wrong then, and is right now, an "
                f"operator must say so: discreet trial operate {shlex.quote(self.session.name)} "
                "set-clock --reason …"
            )

    def _last(self) -> Last | None:
        if self._newest is None:
            found = self.session.run(_last).one_or_none()
            self._newest = None if found is None else Last(*found)
        return self._newest

    # --- what is still to be erased ---------------------------------------------------

    def erase_later(self) -> None:
        """Note that the outcomes of what was just released are still to be made
        unreadable.
        """
        seq = self.session.row.seq
        self.session.insert(erasing, [(seq, self.now)])
        self.session.row = self.session.row._replace(erasing=seq)

    def erased(self, through: int) -> None:
        """What was erased up to this event is unreadable."""
        self.session.run(_erased, through=through)


def _span(seconds: float) -> str:
    """A time in words."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
