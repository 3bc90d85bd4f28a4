"""Live trials: ask for assignments, tell outcomes, stop when it is sound, publish.

A `Trial` is a view of a trial in a store; any number of them, in any number of
processes and places, may work on the same trial. What can be seen through `Batch`,
`Status` and `transcript` is computed from released sums and public counts: outcomes go
in and never come out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from discreet.errors import InvalidInputError, TamperedError
from discreet.scale import REFUSE, ends_of
from discreet.strategies.strategy import Strategy
from discreet.trials import mechanisms
from discreet.trials.chain import Head, first_event
from discreet.trials.conduct import Act
from discreet.trials.dealing import usual_dealing
from discreet.trials.desk import Desk, Middles
from discreet.trials.entry import check_head, enter, examine
from discreet.trials.intake import identifiers, outcome_units, response_units
from discreet.trials.outcomes import Response
from discreet.trials.protocol import COMPLETE, WAITING, Protocol, as_written, digest
from discreet.trials.record import BROKEN, fresh
from discreet.trials.settling import end_if_over
from discreet.trials.status import Batch, Figures, Status, Verification, make_figures, make_status
from discreet.trials.store import schema
from discreet.trials.store.database import Store
from discreet.trials.store.schema import Row
from discreet.trials.store.session import Session
from discreet.validate import check_whole

MOST_AT_ONCE = 100_000


class Trial:
    """A live trial. Make one with `Trial.create`, come back to it with `Trial.open`."""

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
        self._figures: tuple[Head, Figures] | None = None
        """What takes long in a status, and the head at which it was computed."""
        self._erased = False
        """Whether outcomes were erased that may still be readable in the files of the
        database.
        """

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        arms: Sequence[str],
        strategy: Strategy,
        max_people: int,
        missing: str = "failure",
        retain: str = "until-release",
        range: tuple[float, float] = (0.0, 1.0),
        direction: str = "max",
        lease: float | None = None,
        outside: str = REFUSE,
        dealing: str | None = None,
        block: int = 0,
        sites: Sequence[str] | None = None,
        deadline: float | None = None,
        release: str = COMPLETE,
        enrolment: str = WAITING,
    ) -> "Trial":
        """Start a trial, or go on with one of this name and these settings; other
        settings are refused.

        Everything here is the protocol: it is frozen and hashed. `missing` says what an
        outcome that stays missing counts as (`failure` or `replace`), `retain` how long
        outcomes are kept (`until-release` or `forever`), `range` and `direction` (`max`
        or `min`) which outcomes there are and which are better, `lease` after how many
        seconds an outcome counts as missing, `outside` whether an outcome beyond the
        range is refused or counts as the nearer end (`clip`). That outcomes are numbers
        is for the strategy to say: `bet_se(outcomes="numbers")`.

        `sites` names where people are enrolled (None: anywhere). They are dealt in the
        strategy's usual way: `bet-se` by coins, or with `dealing="blocks"` in permuted
        blocks of at least `block` people. With a `deadline`, in seconds from
        assignment, an outcome counts if it is told by then, and else as the worst one;
        rounds are released when they are `complete`, or by the `clock`; and with
        `enrolment="continuous"` people are enrolled while rounds wait.
        """
        settings = (max_people, missing, retain, *ends_of(range), direction, lease)
        protocol = Protocol(
            name,
            arms,  # type: ignore[arg-type]
            strategy,
            *settings,
            outside=outside,
            dealing=usual_dealing(strategy) if dealing is None else dealing,
            block=block,
            sites=sites,  # type: ignore[arg-type]
            deadline=deadline,
            release=release,
            enrolment=enrolment,
        )
        if not protocol.dealing:
            raise InvalidInputError("dealing must be one of the strategy's ways, or None")
        if strategy.trust_model.private:
            mechanisms.ready()
        home = Store(url)
        enter(home, protocol)
        trial = cls._open(home, name, None)
        if dealing is None and not trial.protocol.dealing:
            protocol = replace(protocol, dealing="")  # begun before it was written down
        if differences := trial.protocol.differences(protocol):
            raise InvalidInputError(
                f"there is a trial {name!r} with other settings: {'; '.join(differences)}. Open "
                "it with Trial.open, or take another name"
            )
        return trial

    @classmethod
    def open(cls, url: str, name: str, head: str | None = None) -> "Trial":
        """Come back to a trial. With `head`, as `status` gave it, a record older than
        that is refused.

        A database restored from a backup would draw again, with fresh noise, what was
        released after the backup: two releases of the same outcomes spend twice the ε.
        Whoever knows a later head can see that.
        """
        return cls._open(Store(url, must_exist=True), name, head)

    @classmethod
    def _open(cls, home: Store, name: str, head: str | None) -> "Trial":
        with home.reading(name) as session:
            row = session.look()
            if row is None:
                known = ", ".join(home.names()) or "none yet"
                raise InvalidInputError(
                    f"there is no trial {name!r} in {home.called}; trials there: {known}"
                )
            protocol_hash = digest(row.protocol)
            if session.hash_at(1) != first_event(protocol_hash).hash:
                raise TamperedError(f"the protocol of {name!r} is not the one it was started with")
            protocol = Protocol.from_dict(json.loads(row.protocol))
            trial = cls(home, protocol, protocol_hash)
            if head is not None:
                check_head(session, Head.parse(head))
            trial._seen = Head(row.seq, row.head)
        trial._erased = (
            protocol.retain != "forever" and not protocol.strategy.trust_model.randomised
        )
        trial._scrub()
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

    # --- ask and tell -----------------------------------------------------------------

    def ask(
        self, n: int = 1, people: Sequence[str] | None = None, site: str | None = None
    ) -> Batch:
        """Up to n assignments of one round, fewer if it is full before; none while
        outcomes are waited for, or the trial is paused.

        Ask when a person is there: whoever is assigned is in. With `people`,
        identifiers of the next n people, whoever took part before is refused, and
        nobody is assigned. Of an identifier only a keyed hash is kept. `site` is where
        they come from; the record tells it.
        Late outcomes are given up before, and a round is opened, each in a transaction
        of its own: nothing that can fail may follow a draw, or it could be drawn again;
        and a key is committed to before anybody of its round is known.
        """
        names = None if people is None else identifiers(people)
        wanted = n if names is None else len(names)
        count = check_whole("n", wanted, least=1, most=MOST_AT_ONCE)
        self.expire()
        while True:
            with self._writing() as desk:
                made = desk.assign(count, names, site)
                end_if_over(desk)
                now, unopened = self._now, desk.closed and not made
                middle = None if now.stopped else now.run.middle
                waiting, paused = desk.shown_tally().waiting, now.conduct.paused
            if not unopened:
                return Batch(tuple(made), waiting, now.stopped, middle, paused)
            with self._writing() as desk:
                desk.open_round()

    def tell(self, id: str, outcome: float) -> None:
        """Tell one outcome. Telling again changes nothing, and looks the same, whatever
        it carries.
        """
        self.tell_many({id: outcome})

    def tell_many(self, outcomes: Mapping[str, float]) -> None:
        """Tell many outcomes at once: all of them are taken, or with an error none."""
        if self.protocol.strategy.trust_model.randomised:
            raise InvalidInputError(
                "this trial has local trust: it takes no raw outcomes. Randomise each where the "
                "person is, with discreet.respond or `discreet respond`, and pass the response to "
                "answer"
            )
        self._take_in({id: outcome_units(one, self.protocol) for id, one in outcomes.items()})

    def answer(self, id: str, response: Response) -> None:
        """Tell one randomised response, in a trial with local trust."""
        self.answer_many({id: response})

    def answer_many(self, responses: Mapping[str, Response]) -> None:
        """Tell many randomised responses at once: all of them are taken, or with an
        error none.
        """
        if not self.protocol.strategy.trust_model.randomised:
            raise InvalidInputError(
                "this trial has no local trust: tell it the outcomes themselves"
            )
        units = {id: response_units(one, self.protocol) for id, one in responses.items()}
        self._take_in(units, {id: response.middle for id, response in responses.items()})

    def amend(self, id: str, outcome: float) -> None:
        """Correct an outcome that was told (or counts as a failure), until it is
        released.

        Whether it was told or is missing makes no difference to what can be seen.
        """
        if self.protocol.strategy.trust_model.randomised:
            raise InvalidInputError(
                "a randomised response cannot be amended: a second one would spend ε again"
            )
        units = outcome_units(outcome, self.protocol)
        with self._writing() as desk:
            desk.amend(id, units)

    def miss(self, id: str) -> None:
        """Say that an outcome will not come. If it was told before, nothing changes."""
        with self._writing() as desk:
            desk.lose(desk.find([id]).values(), schema.MISSED)

    def expire(self) -> int:
        """Give up the assignments whose deadline or lease has passed, and release what
        the clock says (as `ask` does); how many numbers were released.
        """
        if self.protocol.lease is None and self.protocol.deadline is None:
            return 0
        with self._writing() as desk:
            return desk.expire()

    def operate(self, action: str, reason: str, about: str | int | None = None) -> None:
        """What an operator does: `pause`, `resume`, `stop`, `maximum` (about how many
        people), `close-site` and `open-site` (about which), `drop-arm` and `add-arm`.

        All of it stands in the public record, with the reason. What each means for the
        guarantee is on the docs page "What the guarantee means".
        """
        with self._writing() as desk:
            desk.operate(Act(action, about, reason))

    def _take_in(self, units: Mapping[str, int], middles: Middles | None = None) -> None:
        if units:
            with self._writing() as desk:
                desk.take_in(units, middles)

    # --- what anyone may see ----------------------------------------------------------

    def status(self) -> Status:
        """Everything in it may be shown to anyone."""
        with self._reading() as desk:
            return self._status(desk)

    def transcript(self) -> dict[str, Any]:
        """What may be published: protocol, assignments, releases, decisions, and the
        chain that ties them.

        It holds nothing that was not released, no identifiers of people, and no ids
        under which outcomes are told.
        """
        with self._reading() as desk:
            status = self._status(desk).to_dict()
            events = [
                {"seq": event.seq, "kind": event.kind, **event.says, "hash": event.hash}
                for event in desk.session.events()
            ]
            written = desk.session.look_again().protocol
        return {
            "protocol": as_written(self.protocol.to_dict(), json.loads(written)),
            "protocol_hash": self.protocol_hash,
            "events": events,
            "status": status,
        }

    def verify(self, head: str | None = None) -> Verification:
        """Recompute the chain, and the state from the public record alone.

        With `head`, also that the record goes on from there.
        """
        with self._store.lock, self._store.reading(self.protocol.name) as session:
            self._look(session)
            return examine(self.protocol, session, None if head is None else Head.parse(head))

    def _status(self, desk: Desk) -> Status:
        row = desk.session.look_again()
        head = Head(row.seq, row.head)
        if self._figures is None or self._figures[0] != head:
            self._figures = (head, make_figures(self._now))
        figures = self._figures[1]
        return make_status(
            self.protocol_hash, self._now, figures, desk.shown_tally(), row.people, head
        )

    # --- the store --------------------------------------------------------------------

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
