"""A stored trial: its state in step with the database, in transactions."""

import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from discreet.errors import (
    DiscreetError,
    ErasingWarning,
    InvalidInputError,
    StoreError,
    TamperedError,
    warn_caller,
)
from discreet.trials import mechanisms
from discreet.trials.chain import Head, UnknownHeadError
from discreet.trials.desk import Desk, Task
from discreet.trials.enrol import answered_before, open_round
from discreet.trials.entry import check_head
from discreet.trials.group_commit import GroupCommit
from discreet.trials.intake import check_request, number_of
from discreet.trials.protocol import Protocol
from discreet.trials.record import BROKEN, fresh
from discreet.trials.status import Aside
from discreet.trials.store.database import Store
from discreet.trials.store.ledger import Ledger
from discreet.trials.store.schema import Row
from discreet.trials.store.session import Session

Result = TypeVar("Result")
READABLE = (
    "outcomes that this trial erases stay readable in the server's files until the owner of its "
    "tables opens it, because this user may not vacuum discreet_sealed: have the owner run "
    "discreet trial expire from a timer or, on PostgreSQL 17 and newer, GRANT MAINTAIN ON "
    "discreet_sealed to this user"
)
"""What to say to whoever erases outcomes and may not make them unreadable."""
MAX_KNOWN_HEADS = 1000
"""Heads that are kept in mind, for callers who know one of them."""


class _RefusedTaskError(Exception):
    """One of several tasks was refused: none of them has happened."""


class StoredTrial:
    """A stored trial: cache its state and the head of its record, and run tasks on it
    in transactions.
    """

    def __init__(self, home: Store, protocol: Protocol, protocol_hash: str, who: str) -> None:
        self.protocol = protocol
        self.protocol_hash = protocol_hash
        self.who = who
        """Who calls, for the journal."""
        self._store = home
        self._group = GroupCommit(self._commit)
        self._now = fresh(protocol)
        self._seq = -1
        """Events behind the state we have; none that counts while a transaction is
        under way.
        """
        self._seen = Head(0, "")
        """Of the longest record we have seen: it can only grow."""
        self._known = deque[Head](maxlen=MAX_KNOWN_HEADS)
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
                try:
                    check_head(session, known)
                except TamperedError as error:
                    raise UnknownHeadError(str(error)) from None

    @contextmanager
    def _reading(self) -> Iterator[Desk]:
        with self._store.lock, self._store.reading(self.protocol.name) as session:
            self._catch_up(session)
            yield Desk(self.protocol, self._now, session, Ledger(session))

    # --- transactions -----------------------------------------------------------------

    def _do(self, task: Task[Result]) -> Result:
        """Run a task in a transaction, maybe with tasks of other callers."""
        self._prepare(task)
        return self._group.run(task)

    async def _do_async(self, task: Task[Result]) -> Result:
        """Do the same while the event loop serves others."""
        self._prepare(task)
        return await self._group.run_async(task)

    def _prepare(self, task: Task[Any]) -> None:
        """Load what draws noise before others are kept waiting."""
        if task.ids and self.protocol.strategy.trust_model.private:
            mechanisms.load()

    def _commit(self, tasks: list[Task[Any]]) -> None:
        """Run tasks in one transaction, up to one that draws. If one of several is
        refused, all are taken back, and each has a transaction of its own.

        If participants are enrolled, late outcomes are expired before, and a round is
        opened if one is missing, each in a transaction of its own: nothing that can
        fail may follow a draw, or it could be drawn again; and a key is committed to
        before anybody of its round is known.
        """
        enrolling = [task for task in tasks if task.enrols]
        if enrolling and self.protocol.deadline is not None:
            self._run_for(enrolling, lambda desk: desk.expire(noted=False))
        tasks = [task for task in tasks if not task.done]
        try:
            self._transact(tasks)
        except _RefusedTaskError:
            for task in tasks:
                if not task.done:
                    self._transact([task])
        if missing := [task for task in enrolling if task.needs_round and not task.done]:
            self._run_for(missing, open_round)
        if self._erasing is not None:
            self._scrub()

    def _run_for(self, tasks: list[Task[Any]], work: Callable[[Desk], Any]) -> None:
        """Run work in a transaction before tasks that need it; if it fails, so do
        they.
        """
        task = Task(work, tasks[0].who)
        self._transact([task])
        if task.error is not None:
            for waiting in tasks:
                waiting.finish(error=task.error)

    def _transact(self, tasks: list[Task[Any]]) -> None:
        """Run tasks in one transaction, up to one that draws: if something that may be
        refused came after a draw, it could be drawn again.
        """
        results = list[tuple[Task[Any], Any]]()
        try:
            with self._store.lock:
                with self._store.session(self.protocol.name) as session:
                    self._catch_up(session)
                    before, self._seq = session.row.seq, -1
                    ledger = Ledger(session)
                    if any(task.ids or task.request for task in tasks):
                        self._refuse_unknown(session, ledger, tasks)
                    for task in [task for task in tasks if not task.done]:
                        desk = Desk(self.protocol, self._now, session, ledger, task.who, task.site)
                        results.append((task, self._run(desk, task, alone=len(tasks) == 1)))
                        if desk.drew:
                            break
                    if session.row.seq != before:  # every change of the state is an event
                        session.save(self._now.dump())
                    row = session.row
                self._seq = row.seq
                self._seen = Head(row.seq, row.head)
                self._known.append(self._seen)
                self._erasing = row.erasing
        except _RefusedTaskError:
            raise
        except Exception as error:
            for task in tasks:
                if not task.done:
                    task.finish(error=error)
        else:
            for task, result in results:
                task.needs_round = task.enrols and result is None
                if not task.needs_round:
                    task.finish(result)

    def _refuse_unknown(self, session: Session, ledger: Ledger, tasks: list[Task[Any]]) -> None:
        """Read at once what the tasks need, and fail those with unknown ids before
        anything is done, so that nothing has to be taken back for them.
        """
        session.assigned(sorted({number_of(id) for task in tasks for id in task.ids}))
        ledger.look_up([ledger.hash(task.request) for task in tasks if task.request is not None])
        for task in tasks:
            known = task.request is not None and ledger.answered(ledger.hash(task.request))
            if task.ids and not known:
                try:
                    Desk(self.protocol, self._now, session, ledger, "", task.site).find(task.ids)
                except InvalidInputError as error:
                    task.finish(error=error)

    def _run(self, desk: Desk, task: Task[Result], alone: bool) -> Result:
        """Run one task of a transaction."""
        try:
            if not (task.any_clock or self._now.stopped):
                desk.ledger.check_clock(self._now.conduct.at)
            result = task.work(desk)
        except DiscreetError:
            if alone:
                raise
            raise _RefusedTaskError from None
        if desk.erased:
            desk.ledger.erase_later()
        return result

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
            self._known.append(head)
        self._erasing = row.erasing
        return row

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
