"""A trial as it is kept: its state in step with the database, in transactions."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from discreet.errors import DiscreetError, InvalidInputError, TamperedError
from discreet.trials.chain import Head
from discreet.trials.desk import Desk
from discreet.trials.entry import check_head
from discreet.trials.protocol import Protocol
from discreet.trials.record import BROKEN, fresh
from discreet.trials.store.database import Store
from discreet.trials.store.ledger import Ledger
from discreet.trials.store.schema import Row
from discreet.trials.store.session import Session
from discreet.trials.together import Job, Together

Found = TypeVar("Found")


class Kept:
    """A trial in a database, of which we have the state and have seen the head."""

    def __init__(self, home: Store, protocol: Protocol, protocol_hash: str, who: str) -> None:
        self.protocol = protocol
        self.protocol_hash = protocol_hash
        self.who = who
        """Who calls, for the journal."""
        self._store = home
        self._together = Together()
        self._now = fresh(protocol)
        self._seq = -1
        """Events behind the state we have; none that counts while a transaction is
        under way.
        """
        self._seen = Head(0, "")
        """Of the longest record we have seen: it can only grow."""
        self._erasing: int | None = None
        """The event up to which outcomes were erased, by us or by others, that may
        still be readable in the files of the database.
        """

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the database on this machine: nothing else may be written there."""
        return self._store.dialect.files

    def _write(self, work: Callable[[Desk], Found], any_clock: bool = False) -> Found:
        """Do something in a transaction, with the state as it is now: all of it
        happens, and is on disk, or nothing of it.
        """
        return self._together.do(Job(work, any_clock), self._serve)

    @contextmanager
    def _reading(self) -> Iterator[Desk]:
        with self._store.lock, self._store.reading(self.protocol.name) as session:
            self._catch_up(session)
            yield self._desk(session, Ledger(session))

    # --- transactions -----------------------------------------------------------------

    def _serve(self, jobs: list[Job[Any]]) -> None:
        """Do the jobs of several callers in as few transactions as may be."""
        left = jobs
        while left:
            left = left[self._transaction(left) :]
        self._scrub()

    def _transaction(self, jobs: Sequence[Job[Any]]) -> int:
        """Do jobs up to one that draws; how many. If one alone is refused, there was no
        transaction; among several it is taken back by itself.

        Whatever was drawn ends its transaction: if something that may fail came after
        it, it could be drawn again.
        """
        tried = 0
        try:
            with self._store.lock:
                with self._store.session(self.protocol.name) as session:
                    self._catch_up(session)
                    self._seq, ledger, drew = -1, Ledger(session), False
                    while tried < len(jobs) and not drew:
                        tried += 1
                        step = self._step if len(jobs) == 1 else self._step_of_several
                        drew = step(session, ledger, jobs[tried - 1])
                    erasing = ledger.erasing()
                row = session.look_again()
                self._seq, self._seen = row.seq, Head(row.seq, row.head)
                self._erasing = None if erasing is None else erasing[1]
        except Exception as error:
            for job in jobs[:tried] or jobs:
                job.error = error
        for job in jobs[:tried] or jobs:
            job.done = True
        return tried or len(jobs)

    def _step(self, session: Session, ledger: Ledger, job: Job[Any]) -> bool:
        """Do one job; whether it drew anything. Every change of the state is an event,
        so that the state is written if there were any.
        """
        if not job.any_clock:
            ledger.check_clock()
        before, desk = session.look_again().seq, self._desk(session, ledger)
        job.run(desk)
        if session.look_again().seq != before:
            session.save(self._now.dump())
        if desk.erased:
            ledger.erase_later()
        return desk.drew

    def _step_of_several(self, session: Session, ledger: Ledger, job: Job[Any]) -> bool:
        """The same, so that a job that is refused leaves nothing behind."""
        try:
            with session.connection.begin_nested():
                return self._step(session, ledger, job)
        except DiscreetError as error:
            job.error = error
            session.forget()
            ledger.forget()
            self._load(session.look_again())
            return False

    def _desk(self, session: Session, ledger: Ledger) -> Desk:
        return Desk(self.protocol, self._now, session, ledger, self.who)

    def _catch_up(self, session: Session) -> None:
        """Load the state unless it is the one we have: every change of it is an
        event.
        """
        row = self._look(session)
        if row.seq != self._seq:
            self._seq = -1
            self._load(row)
            self._seq = row.seq

    def _load(self, row: Row) -> None:
        try:
            self._now.load(row.state)
        except BROKEN:
            raise TamperedError(
                f"the state of {self.protocol.name!r} is not what was written: run `discreet "
                "trial verify`"
            ) from None

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

    # --- what was erased --------------------------------------------------------------

    def _scrub(self) -> None:
        """Make erased outcomes unreadable; what cannot be done now, with a later
        call.
        """
        through = self._erasing
        if through is None or not self._store.scrub():
            return
        with self._store.lock, self._store.session(self.protocol.name) as session:
            if session.look() is not None:
                Ledger(session).erased(through)
        self._erasing = None
