"""A trial as it is kept: its state in step with the database, in transactions."""

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

from discreet.errors import (
    DiscreetError,
    ErasingWarning,
    InvalidInputError,
    StoreError,
    TamperedError,
    warn_caller,
)
from discreet.trials import mechanisms, neighbours
from discreet.trials.chain import Head
from discreet.trials.desk import Desk
from discreet.trials.enrol import answered_before
from discreet.trials.entry import check_head
from discreet.trials.intake import check_request
from discreet.trials.protocol import Protocol
from discreet.trials.record import BROKEN, fresh
from discreet.trials.slips import Answer, look
from discreet.trials.status import Aside
from discreet.trials.store.database import Store
from discreet.trials.store.ledger import Ledger
from discreet.trials.store.schema import Row
from discreet.trials.store.session import Session
from discreet.trials.together import (
    Call,
    Job,
    Start,
    Together,
    allowed,
    at_once,
    do_all,
    do_until_drawn,
    grouped,
    run_alike,
)

Found = TypeVar("Found")
READABLE = (
    "outcomes that this trial erases stay readable in the server's files until the owner of its "
    "tables opens it, because this user may not vacuum discreet_sealed: have the owner run "
    "discreet trial expire from a timer or, on PostgreSQL 17 and newer, GRANT MAINTAIN ON "
    "discreet_sealed to this user"
)
"""What to say to whoever erases outcomes and may not make them unreadable."""


class _OneRefusedError(Exception):
    """One of several jobs is refused, and the transaction with it."""


Keep = Callable[[Ledger, Sequence[Job[Any, Any]]], None]
"""What is written of jobs at the end of the transaction that does them."""
MOST_KNOWN = 1000
"""Heads that are kept in mind, for callers who know one of them."""


class Kept:
    """A trial in a database, of which we have the state and have seen the head."""

    def __init__(self, home: Store, protocol: Protocol, protocol_hash: str, who: str) -> None:
        self.protocol = protocol
        self.protocol_hash = protocol_hash
        self.who = who
        """Who calls, for the journal."""
        self._store = home
        self._together = Together()
        self._company = neighbours.Company(home.dialect.locks_rows)
        self._now = fresh(protocol)
        self._seq = -1
        """Events behind the state we have; none that counts while a transaction is
        under way.
        """
        self._seen = Head(0, "")
        """Of the longest record we have seen: it can only grow."""
        self._known: dict[Head, None] = {}
        """The last heads that we have seen, each of which goes on in the next."""
        self._erasing: int | None = None
        """The event up to which outcomes were erased, by any process, that may still be
        readable in the files of the database, as the database said when we last looked.
        """

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the database on this machine: nothing else may be written there."""
        return self._store.dialect.files

    def asked(self, request: str) -> bool:
        """Whether a request with this key has been answered."""
        key = check_request(request)
        with self._reading() as desk:
            return key is not None and answered_before(desk, key)

    @property
    def seen(self) -> Head:
        """The head of the record as it was seen last."""
        return self._seen

    def check_known(self, head: str) -> None:
        """Refuse to go on with a record that is older than one that somebody knows by
        its head, or another one.
        """
        known = Head.parse(head)
        if known not in self._known:
            with self._store.lock, self._store.reading(self.protocol.name) as session:
                self._look(session)
                check_head(session, known)

    def written(self) -> dict[str, Any]:
        """The protocol as it was written down, of which `protocol_hash` is the hash."""
        with self._store.lock, self._store.reading(self.protocol.name) as session:
            found: dict[str, Any] = json.loads(self._look(session).protocol)
            return found

    def _do(self, job: Job[Any, Found]) -> Found:
        """Do something in a transaction, that callers at the same time may have done at
        once.
        """
        return self._together.do(job, self._serve)

    def put(self, job: Job[Any, Any], start: Start, call: Call) -> None:
        """The same without waiting: `start` has something done in a thread of its own,
        and `call` is called from such a thread when the job is done.
        """
        self._together.put(job, self._serve, start, call)

    def do_now(self, jobs: list[Job[Any, Any]], keep: Keep | None = None) -> None:
        """Do jobs of several callers by ourselves, and `keep` what came of them; of
        each, `error` says what is wrong.
        """
        do_all(jobs, partial(self._serve, keep=keep))

    def slip(self, name: str, jobs: Mapping[int, Job[Any, Any]]) -> dict[int, Answer]:
        """What stands on a slip of these jobs; unknown, if it cannot be read."""
        try:
            with self._reading() as desk:
                return look(desk.ledger, name, jobs)
        except StoreError:
            raise self._store.unsure() from None

    def hear(self, head: Head) -> None:
        """Keep in mind a head that another process has written for us, unless somebody
        looks at this moment, who may look at what was there before it.
        """
        if self._store.lock.acquire(blocking=False):
            try:
                if head.seq > self._seen.seq:
                    self._see(head)
            finally:
                self._store.lock.release()

    @contextmanager
    def _reading(self) -> Iterator[Desk]:
        with self._store.lock, self._store.reading(self.protocol.name) as session:
            self._catch_up(session)
            yield self._desk(session, Ledger(session))

    # --- transactions -----------------------------------------------------------------

    def _serve(self, jobs: list[Job[Any, Any]], keep: Keep | None = None) -> None:
        """Do the jobs of several callers in as few transactions as may be."""
        self._prepare([job for job in jobs if job.ids])
        left = [job for job in jobs if not job.done]
        while left:
            self._transaction(at_once(left), keep)
            left = [job for job in left if not job.done]
        self._scrub()

    def _prepare(self, jobs: Sequence[Job[Any, Any]]) -> None:
        """Load what a release takes, before others are kept waiting; and whoever is
        alone looks at its ids, where all who write to any trial would wait: in a file.
        """
        if jobs and self.protocol.strategy.trust_model.private:
            mechanisms.load()
        if len(jobs) == 1 and not self._company.on_server:
            with self._store.lock, self._store.reading(self.protocol.name) as session:
                self._look(session)
                allowed(session, Ledger(session), jobs)

    def _transaction(self, jobs: Sequence[Job[Any, Any]], keep: Keep | None) -> None:
        """Do jobs up to one that draws, or find them done by others. If one alone is
        refused, there was no transaction; among several it is taken back by itself.
        """
        try:
            self._do_groups(jobs, grouped, keep)
        except _OneRefusedError:
            left = [job for job in jobs if not job.done]
            self._do_groups(left, lambda jobs: [[job] for job in jobs], keep)

    def _do_groups(
        self,
        jobs: Sequence[Job[Any, Any]],
        in_groups: Callable[[Sequence[Job[Any, Any]]], list[list[Job[Any, Any]]]],
        keep: Keep | None,
    ) -> None:
        """Do groups of jobs that are alike, and what others want who wait, up to one
        that draws. On a server those who come meanwhile share the commit too, once: so
        processes that call again at once come into step, and do not alternate.

        Whatever was drawn ends its transaction: if something that may fail came after
        it, it could be drawn again.
        """
        tried: list[Job[Any, Any]] = []
        name, unsure = secrets.token_hex(16), False
        note = neighbours.note_of(self.protocol.name, jobs, self._seen, name)
        try:
            with self._store.lock, self._store.turn(note) as turn:
                if head := neighbours.done_by_others(turn, jobs):
                    self._see(head)
                    self._company.join()
                    return
                began, unsure = time.monotonic(), neighbours.is_unsure(turn)
                with self._store.session(self.protocol.name, turn) as session:
                    self._catch_up(session)
                    self._seq, ledger = -1, Ledger(session)
                    jobs, unsure = neighbours.left_by_others(turn, ledger, name, jobs), False
                    here = cache(partial(self._store.same_place, session))
                    if turn is not None and self._company.expects(turn):
                        ledger.read_ahead()
                        here()
                        began += self._company.gather(turn)
                    beside = neighbours.Neighbours(turn, here, partial(self._holds, session))
                    known = partial(allowed, session, ledger)
                    groups = in_groups(known([*jobs, *beside.want()]))
                    one, several = (partial(do, session, ledger) for do in (self._alone, self._try))
                    drew = do_until_drawn(groups, one if len(groups) == 1 else several, tried)
                    if self._company.on_server and not drew:
                        do_until_drawn(grouped(known(beside.want())), several, tried)
                    if keep is not None:
                        keep(ledger, tried)
                    row = session.look_again()
                    beside.tell_them(ledger, tried, Head(row.seq, row.head))
                self._company.part(turn, time.monotonic() - began)
                self._seq = row.seq
                self._see(Head(row.seq, row.head))
                self._erasing = row.erasing
        except _OneRefusedError:
            raise
        except Exception as error:
            for job in tried or jobs:
                job.error = self._told(error, unsure or job.unsure)
        for job in tried or jobs:
            job.done = True

    def _alone(self, session: Session, ledger: Ledger, jobs: Sequence[Job[Any, Any]]) -> bool:
        """Do jobs that are alike and have the transaction for themselves."""
        try:
            return self._step(session, ledger, jobs)
        except DiscreetError as error:
            raise (error if len(jobs) == 1 else _OneRefusedError()) from None

    def _step(self, session: Session, ledger: Ledger, jobs: Sequence[Job[Any, Any]]) -> bool:
        """Do jobs that are alike; whether they drew anything. Every change of the state
        is an event, so that the state is written if there were any.
        """
        if not (jobs[0].any_clock or self._now.stopped):
            ledger.check_clock(self._now.conduct.at)
        before, desk = session.look_again().seq, self._desk(session, ledger, jobs[0].who)
        run_alike(desk, jobs)
        ledger.write()
        if session.look_again().seq != before:
            session.save(self._now.dump())
        if desk.erased:
            ledger.erase_later()
        return desk.drew

    def _try(self, session: Session, ledger: Ledger, jobs: Sequence[Job[Any, Any]]) -> bool | None:
        """The same, so that what is refused leaves nothing behind; None if they are to
        be done one by one, since one of them is refused.
        """
        part = session.connection.begin_nested()
        try:
            drew = self._step(session, ledger, jobs)
        except DiscreetError as error:
            part.rollback()
            session.forget()
            ledger.forget()
            self._load(session.look_again())
            if len(jobs) > 1:
                return None
            jobs[0].error = self._told(error, jobs[0].unsure)
            return False
        part.commit()
        return drew

    def _told(self, error: Exception, unsure: bool) -> Exception:
        """What to say if something is not done: if another process may have done it,
        that, unless it is refused.
        """
        refused = isinstance(error, TamperedError | InvalidInputError)
        return self._store.unsure() if unsure and not refused else error

    def _desk(self, session: Session, ledger: Ledger, who: str = "") -> Desk:
        return Desk(self.protocol, self._now, session, ledger, who)

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
            self._see(head)
        self._erasing = row.erasing
        return row

    def _holds(self, session: Session, head: Head) -> bool:
        """Whether the record goes on from a head that somebody else has seen."""
        return head in self._known or session.hash_at(head.seq) == head.hash

    def _see(self, head: Head) -> None:
        """Keep in mind a head that goes on from those before."""
        self._seen = head
        self._known[head] = None
        while len(self._known) > MOST_KNOWN:
            self._known.pop(next(iter(self._known)), None)

    def _aside(self, desk: Desk) -> Aside:
        """What of a status is not in the record; of deadlines nothing to whoever may
        not read assignments, since their rows move when outcomes are told.
        """
        past = desk.past_deadline() if self._store.rights().verifies else None
        return Aside(past, desk.erasing_words())

    def _check_may_verify(self) -> None:
        """Refuse whoever may not read what is compared, before the server does."""
        if not self._store.rights().verifies:
            raise StoreError(
                f"{self._store.called}: this user may not read everything that verify compares "
                "with the record. Check what is published instead: discreet trial transcript "
                "NAME --out FILE, then discreet verify FILE"
            )

    # --- what was erased --------------------------------------------------------------

    def _tidy_up(self, row: Row) -> None:
        """When the trial is opened: do what others left, or say who must."""
        if self._erasing is not None or (self.protocol.erases and not _over(row)):
            rights = self._store.rights()
            if rights.erases and not rights.scrubs:
                warn_caller(READABLE, ErasingWarning)
        self._scrub()

    def _finish_erasing(self) -> None:
        """Make unreadable what any process has erased, if nobody still reads it."""
        with self._store.lock, self._store.reading(self.protocol.name) as session:
            self._look(session)
        self._scrub()

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
        if self._erasing == through:
            self._erasing = None


def _over(row: Row) -> bool:
    """Whether a trial has ended, without making a run of its state."""
    try:
        return bool(json.loads(row.state)["stopped"])
    except BROKEN:
        return False
