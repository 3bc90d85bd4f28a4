"""Live trials: ask for assignments, tell outcomes, stop when it is sound, publish.

A `Trial` is a view of a trial in a store; any number of them, in any number of
processes and places, may work on the same trial. What can be seen through `Batch`,
`Status` and `transcript` is computed from released sums and public counts: outcomes go
in and never come out.
"""

import json
import unicodedata
from collections.abc import Sequence
from typing import Any, cast

from discreet.arrays import Progress
from discreet.errors import InvalidInputError, TamperedError
from discreet.remote.address import is_remote
from discreet.scale import REFUSE
from discreet.strategies.presets import warn_if_rounded
from discreet.strategies.run import Run
from discreet.strategies.strategy import Strategy
from discreet.trials import mechanisms
from discreet.trials.calls import Caller, Calls
from discreet.trials.chain import Event, Head, is_first_event
from discreet.trials.desk import Desk
from discreet.trials.draft import new_protocol
from discreet.trials.entry import check_head, enter, examine, transcript_of
from discreet.trials.intake import (
    who_calls,
)
from discreet.trials.listing import no_trial
from discreet.trials.names import check_place, writable
from discreet.trials.protocol import (
    ANONYMOUS,
    COMPLETE,
    UNBLINDED,
    WAITING,
    Protocol,
    digest,
)
from discreet.trials.record import fresh
from discreet.trials.status import (
    Entry,
    Figures,
    Status,
    Verification,
    make_figures,
    make_status,
)
from discreet.trials.store.database import Store
from discreet.trials.store.looking import latest
from discreet.trials.stored import StoredTrial
from discreet.validate import check_whole


def start(url: str, protocol: Protocol, who: str | None) -> None:
    """Start a trial for somebody who is not at this machine: what `Trial.create` would
    warn of, the caller tells them.
    """
    Trial._start(url, protocol, who).close()


def far_away() -> "type[Trial]":
    """The class of trials at a service, which has the methods of `Trial`: a test
    compares them.
    """
    from discreet.remote.trial import RemoteTrial

    return cast("type[Trial]", RemoteTrial)


class Trial(StoredTrial, Calls):
    """A live trial. Make one with `Trial.create`, open it again with `Trial.open`."""

    def __init__(self, home: Store, protocol: Protocol, protocol_hash: str, who: str) -> None:
        super().__init__(home, protocol, protocol_hash, who)
        self._figures: tuple[Head, Figures] | None = None
        """What takes long in a status, and the head at which it was computed."""

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        arms: Sequence[str],
        strategy: Strategy,
        max_people: int,
        retain: str = "until-release",
        range: tuple[float, float] = (0.0, 1.0),
        direction: str = "max",
        outside: str = REFUSE,
        dealing: str | None = None,
        sites: Sequence[str] | None = None,
        deadline: float | None = None,
        release: str = COMPLETE,
        enrolment: str = WAITING,
        people: str = ANONYMOUS,
        blinding: str = UNBLINDED,
        question: str = "",
        script: str | None = None,
        who: str | None = None,
        token: str | None = None,
        ca: str | None = None,
    ) -> "Trial":
        """Start a trial, or continue the one of this name if it has these settings;
        other settings are refused. If `url` is that of a service, https://…, the trial
        is started there, with an operator's `token` (see `open`).

        Everything here is the protocol: it is frozen and hashed. `retain` says how
        long outcomes are kept (`until-release` or `forever`), `range` and `direction`
        (`max` or `min`) which outcomes there are and which are better, `outside`
        whether an outcome beyond the range is refused or counts as the nearer end
        (`clip`). The strategy says whether outcomes are numbers:
        `bet_se(outcomes="numbers")`. If it does not, and the range is not (0, 1), there
        is a `RoundedWarning`.

        `sites` names where people are enrolled (None: anywhere). Arms are assigned in
        the strategy's usual way: with `bet-se` by coins. With a `deadline`, in seconds
        from assignment, an outcome counts if it is told by then; otherwise it counts as
        the worst one. Without one, `miss` says that an outcome will not come. Rounds
        are released when they are `complete`, or by the `clock`; and with
        `enrolment="continuous"` people are enrolled while rounds wait. `people` says
        what happens if somebody comes again: `sticky`, they get the same assignment;
        `refuse`, they are refused; or `anonymous`, nobody needs to say who comes. With
        `blinding="codes"` those who enrol people see codes instead of arms
        (`codes`, `unblind`). `question` is what each outcome answers, in words for
        people ("Was the pain gone after two hours?"), shown wherever an outcome is
        entered, and `script` is the SHA-256 of the script that randomises answers in
        their browsers. `who` is the caller's name for the private journal (None: the
        user of the database, or of this machine).
        """
        said: dict[str, Any] = dict(retain=retain, range=range, direction=direction)
        said |= dict(outside=outside, dealing=dealing, sites=sites)
        said |= dict(deadline=deadline, release=release, enrolment=enrolment)
        said |= dict(people=people, blinding=blinding, question=question)
        if is_remote(url):
            said |= dict(who=who, token=token, ca=ca)
            return far_away().create(url, name, arms, strategy, max_people, **said)
        protocol = new_protocol(name, arms, strategy, max_people, script=script, **said)
        warn_if_rounded(strategy, protocol.scale.numbers)
        return cls._start(url, protocol, who)

    @classmethod
    def _start(cls, url: str, protocol: Protocol, who: str | None) -> "Trial":
        """Start the trial of a protocol, or continue it."""
        if protocol.strategy.trust_model.private:
            mechanisms.ready(protocol.strategy)
        who, home = who_calls(who), Store(url)
        enter(home, protocol, who or home.user)
        trial = cls._open(home, protocol.name, None, who)
        if differences := trial.protocol.differences(protocol):
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
        who: str | None = None,
        token: str | None = None,
        ca: str | None = None,
    ) -> "Trial":
        """Open a trial that exists. With `head`, as `status` gave it, a record older
        than that is refused. `who` is the caller's name for the private journal (None:
        the user of the database, or of this machine).

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
            return far_away().open(url, name, head, who, token, ca)
        if name is None or not writable(name):
            raise InvalidInputError("name must be a text, the name of a trial")
        who, home = who_calls(who), Store(url, must_exist=True)
        composed = unicodedata.normalize("NFC", str(name))
        if composed != name and name not in home.names():
            name = composed
        return cls._open(home, name, head, who)

    @classmethod
    def _open(cls, home: Store, name: str, head: str | None, who: str | None) -> "Trial":
        with home.reading(name) as session:
            row = session.look()
            if row is None:
                raise InvalidInputError(no_trial(name, home.called, home.names()))
            protocol_hash = digest(row.protocol)
            first = session.first_event()
            if first is None or not is_first_event(first, protocol_hash):
                raise TamperedError(f"the protocol of {name!r} is not the one it was started with")
            protocol = Protocol.from_dict(json.loads(row.protocol))
            trial = cls(home, protocol, protocol_hash, who or home.user)
            if head is not None:
                check_head(session, Head.parse(head))
            trial._look(session)
        trial._tidy_up(row)
        return trial

    def __repr__(self) -> str:
        """Name, strategy and place; nothing that was told."""
        return f"Trial({self.protocol.name!r}, {self.protocol.strategy.name}, {self._store!r})"

    @property
    def place(self) -> str:
        """Where the trial is kept, without a password."""
        return self._store.address

    def close(self) -> None:
        """Close the connections to the store. Nothing is lost without it; the next call
        opens new ones.
        """
        self._scrub()
        self._store.close()

    def caller(self, who: str, site: str | None = None) -> "Caller":
        """The same trial for another caller, who may be bound to a site: people then
        come from that site, and the caller can see and change no others. Any number of
        callers share the connections and the commits of this trial.
        """
        name = who_calls(who)
        return Caller(self, self.who if name is None else name, check_place(site))

    # --- what staff may see -----------------------------------------------------------

    def journal(self, most: int = 1000) -> list[Entry]:
        """The last calls that changed or handed out anything, the newest first: when,
        who, from which site, what kind of call, how many people; never an outcome.

        It is private, and not part of the record.
        """
        count = check_whole("most", most, least=1, most=10**6)
        with self._reading() as desk:
            return desk.ledger.entries(count)

    # --- what anyone may see ----------------------------------------------------------

    def status(self) -> Status:
        """Everything in it may be shown to anyone."""
        with self._reading() as desk:
            return self._status(desk)

    def transcript(self) -> dict[str, Any]:
        """What may be published: protocol, assignments, releases, decisions, and the
        chain that ties them together.

        It contains nothing that was not released, no identifiers of people, and no ids
        under which outcomes are told.
        """
        with self._reading() as desk:
            status = self._status(desk)
            return transcript_of(self.protocol, self.protocol_hash, desk.session, status)

    def record(self, most: int = 100, before: int | None = None) -> list[Event]:
        """The last events of the public record, the newest first; with `before`, those
        before that position.
        """
        count = check_whole("most", most, least=1, most=10**6)
        place = 2**31 - 1 if before is None else check_whole("before", before, least=1)
        with self._reading() as desk:
            return latest(desk.session, place, count)

    def verify(self, head: str | None = None, progress: Progress | None = None) -> Verification:
        """Check the record: recompute its chain, and the state from the record alone.

        With `head`, also check that the record continues from there. `progress(done,
        total)` is called now and then with the number of events done and of all events.
        """
        self._check_may_verify()
        known = None if head is None else Head.parse(head)
        with self._store.lock, self._store.reading(self.protocol.name) as session:
            self._look(session)
            return examine(self.protocol, session, known, progress)

    def played_on(self) -> Run:
        """A copy of the run as far as it is public, to try out how it may go on."""
        now = fresh(self.protocol)
        with self._reading():
            state = self._now.dump()
        now.load(state)
        return now.run

    def _status(self, desk: Desk) -> Status:
        row = desk.session.row
        head = Head(row.seq, row.head)
        if self._figures is None or self._figures[0] != head:
            self._figures = (head, make_figures(self._now))
        return make_status(
            self.protocol_hash,
            self._now,
            self._figures[1],
            desk.tally(shown=True),
            self._aside(desk),
            row.people,
            head,
        )
