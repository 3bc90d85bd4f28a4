"""Live trials: ask for assignments, record outcomes, stop when it is sound, publish.

A `Trial` is a view of a trial in a database; any number of them, in any number of
processes and places, may work on the same trial. What can be seen through `AskResult`,
`Status` and `transcript` is computed from released sums and public counts: outcomes go
in and never come out.
"""

import json
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from discreet._types import Progress
from discreet.client.address import is_remote
from discreet.errors import (
    DiscreetError,
    ErasingWarning,
    InvalidInputError,
    StoreError,
    TamperedError,
    warn_caller,
)
from discreet.scale import REFUSE
from discreet.strategies.presets import warn_if_rounded
from discreet.strategies.strategy import Strategy
from discreet.trials import enrolment, mechanisms, outcomes, transaction
from discreet.trials.group_commit import GroupCommit, Task
from discreet.trials.inputs import check_key, check_user, parse_number
from discreet.trials.listing import unknown_trial_words
from discreet.trials.names import is_writable, read_site
from discreet.trials.operations import SET_CLOCK
from discreet.trials.protocol import Protocol, digest, new_protocol
from discreet.trials.record import BROKEN, AuditEntry, Event, Head, is_first_event, new_state
from discreet.trials.settings import (
    ANONYMOUS,
    COMPLETE,
    SETTINGS,
    UNBLINDED,
    UNTIL_RELEASE,
    WAITING,
)
from discreet.trials.status import (
    ERASING_WORDS,
    OpenAssignment,
    ParticipantView,
    PrivateNotes,
    ReleasedFigures,
    Status,
    Verification,
    make_status,
    summarize_releases,
)
from discreet.trials.store.database import Database
from discreet.trials.store.schema import TrialRow
from discreet.trials.store.tables import TrialTables
from discreet.trials.transaction import TrialTransaction
from discreet.trials.transcript import (
    check_head,
    copy_stored,
    create_record,
    make_transcript,
    verify_database,
)
from discreet.trials.verbs import (
    ASK,
    FIND,
    VIEW,
    Answered,
    AskBody,
    Body,
    Done,
    IdBody,
    ManageBody,
    NumberBody,
    RevealedArm,
    TrialVerbs,
    Verb,
)
from discreet.validation import check_whole

Arguments = TypeVar("Arguments", bound=Body)
Result = TypeVar("Result")
READABLE = (
    "outcomes that this trial erases stay readable in the server's files until the owner of its "
    "tables opens it, because this user may not vacuum discreet_outcomes: have the owner run "
    "discreet trial expire from a timer or, on PostgreSQL 17 and newer, GRANT MAINTAIN ON "
    "discreet_outcomes to this user"
)
MAX_KNOWN_HEADS = 1000
"""Heads that are kept in mind, for callers who know one of them."""


def _amend(tx: TrialTransaction, body: Any) -> Done:
    outcomes.amend(tx, body)
    return Done()


def _manage(tx: TrialTransaction, body: Any) -> Done:
    outcomes.manage(tx, body)
    return Done()


WORK: dict[str, Callable[..., Any]] = {
    "tell": outcomes.tell,
    "answer": outcomes.answer,
    "amend": _amend,
    "reissue": lambda tx, body: outcomes.reissue(tx, body.id),
    "unblind": lambda tx, body: RevealedArm(outcomes.unblind(tx, body)),
    "list-open": lambda tx, body: enrolment.list_open(tx, body.site),
    "find": lambda tx, body: enrolment.find_assignment(tx, body.number),
    "was-answered": lambda tx, body: Answered(transaction.was_answered(tx, body.key)),
    "view": lambda tx, body: outcomes.view_participant(tx, body.id),
    "manage": _manage,
    "list-codes": lambda tx, body: outcomes.list_codes(tx),
    "expire": lambda tx, body: outcomes.expire(tx),
}
"""The function of each verb but `ask`."""


def start(url: str, protocol: Protocol, user: str | None) -> None:
    """Start a trial for somebody who is not at this machine: what `Trial.create` would
    warn of, the caller tells them.
    """
    Trial._start(url, protocol, user).close()


def _remote_class() -> "type[Trial]":
    """Return the class of trials at a service, which has the methods of `Trial`."""
    from discreet.client.trial import RemoteTrial

    return cast("type[Trial]", RemoteTrial)


class _RefusedTaskError(Exception):
    """A task was refused: nothing of its transaction has happened."""

    def __init__(self, task: Task[Any], error: DiscreetError) -> None:
        super().__init__()
        self.task = task
        self.error = error


class Trial(TrialVerbs):
    """A live trial. Make one with `Trial.create`, open it again with `Trial.open`."""

    def __init__(
        self, database: Database, protocol: Protocol, protocol_hash: str, user: str
    ) -> None:
        self.protocol = protocol
        self.protocol_hash = protocol_hash
        self.user = user
        """The caller, for the audit trail."""
        self._database = database
        self._group = GroupCommit()
        self._state = new_state(protocol)
        self._seq = -1
        """Number of events behind the state; none while a transaction is under way."""
        self._seen = Head(0, "")
        """Head of the longest record that was seen: a record only grows."""
        self._known = deque[Head](maxlen=MAX_KNOWN_HEADS)
        """The last heads that were seen, each of which is continued by the next."""
        self._erasing: int | None = None
        """The event up to which outcomes were erased, by any process, that may still be
        readable in the files of the database, as of the last look.
        """
        self._figures: tuple[Head, ReleasedFigures] | None = None
        """The costly part of a status, and the head at which it was computed."""

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        arms: Sequence[str],
        strategy: Strategy,
        max_participants: int,
        retain: str = UNTIL_RELEASE,
        range: tuple[float, float] = (0.0, 1.0),
        direction: str = "max",
        out_of_range: str = REFUSE,
        randomisation: str = "",
        sites: Sequence[str] | None = None,
        deadline: float | None = None,
        release: str = COMPLETE,
        enrolment: str = WAITING,
        returning: str = ANONYMOUS,
        blinding: str = UNBLINDED,
        question: str = "",
        script: str | None = None,
        user: str | None = None,
        token: str | None = None,
        ca: str | None = None,
    ) -> "Trial":
        """Start a trial, or continue the one of this name if it has these settings;
        other settings are refused. If `url` is that of a service, https://…, the trial
        is started there, with a manager's `token` (see `open`).

        The settings are part of the protocol, which is frozen and hashed; their table
        is `discreet.trials.settings.SETTINGS`. `retain` says how long outcomes are kept
        (`until-release` or `forever`), `range` and `direction` (`max` or `min`) which
        outcomes are possible and which are better, and `out_of_range` whether an
        outcome outside the range is refused (`refuse`) or counts as the nearer end
        (`clip`). The strategy says whether outcomes are numbers:
        `bet_se(outcomes="numbers")`. If it does not, and the range is not (0, 1), there
        is a `RoundedWarning`.

        `randomisation` says how arms are assigned: the strategy's way if it is empty.
        `sites` names where participants are enrolled (None: anywhere). With a
        `deadline`, in seconds from assignment, an outcome that is recorded later counts
        as the worst one. Without one, `miss` says that an outcome will not come. Rounds
        are released when they are `complete`, or `scheduled`, when the last deadline
        has passed. With `enrolment="continuous"` participants are enrolled while rounds
        wait for outcomes. `returning` says what happens if somebody returns: they get
        the same assignment (`same-arm`), are refused (`refuse`), or are refused only if
        they are named, which nobody has to be (`anonymous`). With `blinding="codes"`
        staff see codes instead of arms (`list_codes`, `unblind`). `question` is what
        each outcome answers, in words for participants ("Was the pain gone after two
        hours?"), shown wherever an outcome is entered, and `script` is the SHA-256 of
        the script that randomises responses in their browsers.

        `user` is the caller's name for the private audit trail (None: the user of the
        database, or of this machine).
        """
        arguments = dict(locals())
        settings = {name: arguments[name] for name in SETTINGS}
        if is_remote(url):
            caller: dict[str, Any] = {"user": user, "token": token, "ca": ca}
            return _remote_class().create(url, name, arms, strategy, **settings, **caller)
        protocol = new_protocol(name, arms, strategy, **settings)
        warn_if_rounded(strategy, protocol.scale.is_numbers)
        return cls._start(url, protocol, user)

    @classmethod
    def _start(cls, url: str, protocol: Protocol, user: str | None) -> "Trial":
        """Start the trial of a protocol, or continue it."""
        if protocol.strategy.trust_model.is_private:
            mechanisms.check_available(protocol.strategy)
        user, database = check_user(user), Database(url)
        create_record(database, protocol, user or database.user)
        trial = cls._open(database, protocol.name, None, user)
        if differences := trial.protocol.find_differences(protocol):
            raise InvalidInputError(
                f"there is a trial {protocol.name!r} with other settings: "
                f"{'; '.join(differences)}. Continue it as it is, or choose another name"
            )
        return trial

    @classmethod
    def open(
        cls,
        url: str,
        name: str | None = None,
        head: str | None = None,
        user: str | None = None,
        token: str | None = None,
        ca: str | None = None,
    ) -> "Trial":
        """Open a trial that exists. With `head`, as `status` gave it, a record older
        than that is refused. `user` is the caller's name for the private audit trail
        (None: the user of the database, or of this machine).

        A trial at a service has an address, https://trial.example.org/t/dose, which
        needs no name beside it, and takes a `token` (None: that of DISCREET_TOKEN, or
        of the file that DISCREET_TOKEN_FILE names); `ca` is a file of authorities to
        trust, in place of the usual ones. What is given back then is a `RemoteTrial`,
        which has the methods of this class.

        A database restored from a backup would draw again, with fresh noise, what was
        released after the backup: two releases of the same outcomes spend twice the ε.
        Anyone who knows a later head can notice this.
        """
        if is_remote(url):
            return _remote_class().open(url, name, head, user, token, ca)
        if name is None or not is_writable(name):
            raise InvalidInputError("name must be a text, the name of a trial")
        user, database = check_user(user), Database(url, must_exist=True)
        composed = unicodedata.normalize("NFC", str(name))
        if composed != name and name not in database.list_names():
            name = composed
        return cls._open(database, name, head, user)

    @classmethod
    def _open(cls, database: Database, name: str, head: str | None, user: str | None) -> "Trial":
        with database.snapshot(name) as tables:
            row = tables.lock()
            if row is None:
                raise InvalidInputError(
                    unknown_trial_words(name, database.label, database.list_names())
                )
            protocol_hash = digest(row.protocol)
            first = tables.first_event()
            if first is None or not is_first_event(first, protocol_hash):
                raise TamperedError(f"the protocol of {name!r} is not the one it was started with")
            protocol = Protocol.from_dict(json.loads(row.protocol))
            trial = cls(database, protocol, protocol_hash, user or database.user)
            if head is not None:
                check_head(tables, Head.parse(head))
            trial._look(tables)
        trial._tidy_up(row)
        return trial

    def __repr__(self) -> str:
        """Return name, strategy and address; nothing that was recorded."""
        return f"Trial({self.protocol.name!r}, {self.protocol.strategy.name}, {self._database!r})"

    @property
    def url(self) -> str:
        """The address of the database, without a password."""
        return self._database.address

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the database on this machine: nothing else may be written there."""
        return self._database.dialect.files

    def close(self) -> None:
        """Close the connections to the database. Nothing is lost without it; the next
        call opens new ones.
        """
        self._scrub()
        self._database.close()

    def as_user(self, user: str, site: str | None = None) -> "TrialUser":
        """Return the trial for another caller, who may be bound to a site:
        participants then come from that site, and the caller can see and change no
        others. Any number of callers share the connections and commits of this trial.
        """
        name = check_user(user)
        return TrialUser(self, self.user if name is None else name, read_site(site))

    # --- what staff may see -----------------------------------------------------------

    def audit_trail(self, limit: int = 1000) -> list[AuditEntry]:
        """Return the last calls that changed or handed out anything, the newest first:
        when, who, from which site, which action, how many participants; never an
        outcome.

        It is private, and not part of the record.
        """
        limit = check_whole("limit", limit, least=1, most=10**6)
        with self._reading() as tx:
            return tx.tables.audit_entries(limit)

    # --- what anyone may see ----------------------------------------------------------

    def status(self) -> Status:
        """Return the status, all of which may be shown to anyone."""
        with self._reading() as tx:
            return self._status(tx)

    def transcript(self) -> dict[str, Any]:
        """Return what may be published: protocol, assignments, releases, decisions, and
        the chain that ties them together.

        It contains nothing that was not released, no identifiers of participants, and
        no ids under which outcomes are recorded.
        """
        with self._reading() as tx:
            status, events = self._status(tx), list(tx.tables.events())
        return make_transcript(self.protocol, self.protocol_hash, events, status)

    def record(self, limit: int = 100, before: int | None = None) -> list[Event]:
        """Return the last events of the public record, the newest first; with `before`,
        those before that position.
        """
        limit = check_whole("limit", limit, least=1, most=10**6)
        place = 2**31 - 1 if before is None else check_whole("before", before, least=1)
        with self._reading() as tx:
            return tx.tables.latest_events(place, limit)

    def verify(self, head: str | None = None, progress: Progress | None = None) -> Verification:
        """Check the record: recompute its chain, and the state from the record alone.

        With `head`, also check that the record continues from there. `progress(done,
        total)` is called now and then with the number of events done and of all events.
        """
        if not self._database.rights().verifies:
            raise StoreError(
                f"{self._database.label}: this user may not read everything that verify compares "
                "with the record. Check what is published instead: discreet trial transcript "
                "NAME --out FILE, then discreet verify FILE"
            )
        known = None if head is None else Head.parse(head)
        with self._database.lock, self._database.snapshot(self.protocol.name) as tables:
            self._look(tables)
            stored = copy_stored(tables, known)
        return verify_database(self.protocol, stored, progress)

    def _status(self, tx: TrialTransaction) -> Status:
        """Return the status. Of deadlines nothing is told to those who may not read
        assignments, since the rows of these change when outcomes are recorded.
        """
        row = tx.tables.row
        head, past_deadline = Head(row.seq, row.head), None
        if self._figures is None or self._figures[0] != head:
            self._figures = (head, summarize_releases(self._state))
        if self.protocol.deadline is not None and self._database.rights().verifies:
            past_deadline = tx.tables.last_past_deadline(tx.time)
        return make_status(
            self.protocol_hash,
            self._state,
            self._figures[1],
            tx.count_pending(is_shown=True),
            PrivateNotes(past_deadline, "" if row.erasing is None else ERASING_WORDS),
            row.participants,
            head,
        )

    # --- transactions -----------------------------------------------------------------

    def _call(self, verb: Verb[Arguments, Result], body: Arguments, key: Any = None) -> Result:
        return self._submit(verb, body, key, self.user).result()

    def _submit(
        self,
        verb: Verb[Arguments, Result],
        body: Arguments,
        key: Any,
        user: str,
        site: str | None = None,
    ) -> "Future[Result]":
        """Check the arguments of a verb, queue it, and return its future result."""
        arguments: Any = body.checked(self.protocol)
        key = None if verb.is_repeatable or key is None else check_key(key)
        work: Any
        if verb.name == ASK.name:
            work = partial(enrolment.ask, body=arguments, key=key)
        elif key is None:
            work = partial(WORK[verb.name], body=arguments)
        else:
            work = partial(
                transaction.run_once, work=WORK[verb.name], verb=verb, body=arguments, key=key
            )
        ids = arguments.ids
        if ids and self.protocol.strategy.trust_model.is_private:
            mechanisms.load_opendp()  # before others are kept waiting for it
        task: Task[Result] = Task(work, user, site, ids=ids, participants=max(len(ids), 1))
        if key is not None:
            task.key = transaction.key_text(verb.name, key)
        if isinstance(arguments, AskBody):
            task.participants, task.enrols = arguments.n, True
        if isinstance(arguments, ManageBody):
            task.sets_clock = arguments.action == SET_CLOCK
        return self._group.submit(task, self._commit)

    def _commit(self, tasks: list[Task[Any]]) -> None:
        """Run tasks in one transaction, up to one that draws. A task that is refused
        fails alone: the transaction is rolled back, and the others run again.

        If participants are enrolled, late outcomes are expired before, and a round is
        opened if one is missing, each in a transaction of its own: nothing that can
        fail may follow a draw, or it could be drawn again; and a key is committed to
        before anybody of its round is known.
        """
        enrolling = [task for task in tasks if task.enrols]
        if enrolling and self.protocol.deadline is not None:
            self._run_for(enrolling, lambda tx: outcomes.expire(tx, is_noted=False))
        while pending := [task for task in tasks if not task.future.done()]:
            try:
                self._transact(pending)
                break
            except _RefusedTaskError as refusal:
                refusal.task.finish(error=refusal.error)
        if missing := [task for task in enrolling if task.needs_round and not task.future.done()]:
            self._run_for(missing, enrolment.open_round)

    def _run_for(self, tasks: list[Task[Any]], work: Callable[[TrialTransaction], Any]) -> None:
        """Run work in a transaction before tasks that need it; if it fails, so do
        they.
        """
        task = Task(work, tasks[0].user)
        try:
            self._transact([task])
        except _RefusedTaskError as refusal:
            task.finish(error=refusal.error)
        if (error := task.future.exception()) is not None:
            for waiting in tasks:
                waiting.finish(error=error)

    def _transact(self, tasks: list[Task[Any]]) -> None:
        """Run tasks in one transaction, up to one that draws, and finish them. If one
        is refused, nothing has happened. What was erased is made unreadable before the
        callers hear that it is done: the process may end then.
        """
        results = list[tuple[Task[Any], Any]]()
        try:
            with self._database.lock:
                with self._database.transaction(self.protocol.name) as tables:
                    self._load_state(tables)
                    before, self._seq = tables.row.seq, -1
                    if len(tasks) > 1:
                        self._look_up(tables, tasks)
                    for task in tasks:
                        tx = TrialTransaction(
                            self.protocol, self._state, tables, task.user, task.site
                        )
                        try:
                            results.append((task, tx.run(task)))
                        except DiscreetError as error:
                            raise _RefusedTaskError(task, error) from None
                        if tx.drew:
                            break
                    if tables.row.seq != before:  # every change of the state is an event
                        tables.save_state(self._state.dump())
                    row = tables.row
                self._seq = row.seq
                self._seen = Head(row.seq, row.head)
                self._known.append(self._seen)
                self._erasing = row.erasing
        except _RefusedTaskError:
            raise
        except Exception as error:
            for task in tasks:
                task.finish(error=error)
        else:
            if self._erasing is not None:
                with suppress(StoreError):  # it is committed, and can be scrubbed later
                    self._scrub()
            for task, result in results:
                task.needs_round = task.enrols and result is None
                if not task.needs_round:
                    task.finish(result)

    def _look_up(self, tables: TrialTables, tasks: list[Task[Any]]) -> None:
        """Read in a statement each what the tasks need."""
        if numbers := {parse_number(id) for task in tasks for id in task.ids}:
            tables.find_assignments(sorted(numbers))
        if keys := [task.key for task in tasks if task.key is not None]:
            tables.load_answers([tables.hash_with_secret(key) for key in keys])

    @contextmanager
    def _reading(self) -> Iterator[TrialTransaction]:
        """Return one consistent look at the trial."""
        with self._database.lock, self._database.snapshot(self.protocol.name) as tables:
            self._load_state(tables)
            yield TrialTransaction(self.protocol, self._state, tables)

    def _load_state(self, tables: TrialTables) -> None:
        """Load the state unless it is the one we have: every change of it is an
        event.
        """
        row = self._look(tables)
        if row.seq == self._seq:
            return
        self._seq = -1
        try:
            self._state.load(row.state)
        except BROKEN:
            raise TamperedError(
                f"the state of {self.protocol.name!r} is not what was written: run `discreet "
                "trial verify`"
            ) from None
        self._seq = row.seq

    def _look(self, tables: TrialTables) -> TrialRow:
        """Read the trial's row; refuse a record that is older than the last one seen."""
        row = tables.lock()
        if row is None:
            raise InvalidInputError(
                f"there is no trial {self.protocol.name!r} in {self._database.label} any more"
            )
        head = Head(row.seq, row.head)
        if head != self._seen:
            if self._seen.seq:
                check_head(tables, self._seen)
            self._seen = head
            self._known.append(head)
        self._erasing = row.erasing
        return row

    # --- erased outcomes --------------------------------------------------------------

    def _tidy_up(self, row: TrialRow) -> None:
        """Scrub what others left when the trial is opened, or say who must."""
        is_over = False
        with suppress(*BROKEN):
            is_over = bool(json.loads(row.state)["stopped"])
        if self._erasing is not None or (self.protocol.erases_outcomes and not is_over):
            rights = self._database.rights()
            if rights.erases and not rights.scrubs:
                warn_caller(READABLE, ErasingWarning)
        self._scrub()

    def _scrub(self) -> None:
        """Make erased outcomes unreadable; what cannot be done now, with a later
        call.
        """
        through = self._erasing
        if through is None or not self._database.scrub():
            return
        with self._database.lock, self._database.transaction(self.protocol.name) as tables:
            if tables.lock() is not None:
                tables.delete_erasing(through)
        if self._erasing == through:
            self._erasing = None


@dataclass(eq=False)
class TrialUser(TrialVerbs):
    """A trial for one of several callers, with what only a service asks."""

    trial: Trial
    user: str
    site: str | None

    @property
    def protocol(self) -> Protocol:  # type: ignore[override]
        """The trial's protocol."""
        return self.trial.protocol

    def _call(self, verb: Verb[Arguments, Result], body: Arguments, key: Any = None) -> Result:
        return self.trial._submit(verb, body, key, self.user, self.site).result()

    def find_assignment(self, number: int) -> OpenAssignment:
        """Return the assignment of a participant by number, whether the outcome is in
        or not, for staff who look somebody up. The audit trail notes who looked.
        """
        return self._call(FIND, NumberBody(number))

    def participant_view(self, id: str) -> ParticipantView:
        """Return what a participant may know about the own answer; nothing changes."""
        return self._call(VIEW, IdBody(id))
