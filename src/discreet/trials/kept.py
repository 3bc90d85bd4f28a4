"""A trial as it is kept: its state in step with the database, in transactions."""

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.errors import InvalidInputError, TamperedError
from discreet.trials.chain import Head
from discreet.trials.desk import Desk
from discreet.trials.entry import check_head
from discreet.trials.protocol import Protocol
from discreet.trials.record import BROKEN, fresh
from discreet.trials.store.database import Store
from discreet.trials.store.schema import Row
from discreet.trials.store.session import Session


class Kept:
    """A trial in a database, of which we have the state and have seen the head."""

    def __init__(self, home: Store, protocol: Protocol, protocol_hash: str) -> None:
        self.protocol = protocol
        self.protocol_hash = protocol_hash
        self._store = home
        self._now = fresh(protocol)
        self._seq = -1
        """Events behind the state we have; none that counts while a transaction is
        under way.
        """
        self._seen = Head(0, "")
        """Of the longest record we have seen: it can only grow."""
        self._erased = False
        """Whether outcomes were erased that may still be readable in the files of the
        database.
        """

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the database on this machine: nothing else may be written there."""
        return self._store.dialect.files

    @contextmanager
    def _writing(self) -> Iterator[Desk]:
        """One transaction, with the state as it is now; what was computed in one that
        failed is forgotten.

        Every change of the state is an event, so that the state is written if there
        were any.
        """
        with self._store.lock:
            with self._store.session(self.protocol.name) as session:
                self._catch_up(session)
                before = self._seq
                self._seq = -1
                desk = Desk(self.protocol, self._now, session)
                yield desk
                row = session.look_again()
                if row.seq != before:
                    session.save(self._now.dump())
                # Before the commit: an interrupt that waited for it comes right after.
                self._erased = self._erased or desk.erased
            self._seq = row.seq
            self._seen = Head(row.seq, row.head)
            self._scrub()

    @contextmanager
    def _reading(self) -> Iterator[Desk]:
        with self._store.lock:
            self._scrub()
            with self._store.reading(self.protocol.name) as session:
                self._catch_up(session)
                yield Desk(self.protocol, self._now, session)

    def _catch_up(self, session: Session) -> None:
        """Load the state unless it is the one we have: every change of it is an
        event.
        """
        row = self._look(session)
        if row.seq != self._seq:
            self._seq = -1
            try:
                self._now.load(row.state)
            except BROKEN:
                raise TamperedError(
                    f"the state of {self.protocol.name!r} is not what was written: run `discreet "
                    "trial verify`"
                ) from None
            self._seq = row.seq

    def _look(self, session: Session) -> Row:
        row = session.look()
        if row is None:
            raise InvalidInputError(
                f"there is no trial {self.protocol.name!r} in {self._store.called} any more"
            )
        head = Head(row.seq, row.head)
        if head != self._seen:
            if self._seen.seq:
                check_head(session, self._seen)
            self._seen = head
        return row

    def _scrub(self) -> None:
        """Make erased outcomes unreadable; if somebody is reading, with the next
        call.
        """
        if self._erased:
            self._erased = not self._store.scrub()
