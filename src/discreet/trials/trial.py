"""Live trials: ask for assignments, tell outcomes, stop when it is sound, publish.

A `Trial` is a view of a trial in a store; any number of them, in any number of
processes and places, may work on the same trial. What can be seen through `Batch`,
`Status` and `transcript` is computed from released sums and public counts: outcomes go
in and never come out.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from discreet.errors import InvalidInputError, TamperedError
from discreet.scale import REFUSE, ends_of
from discreet.strategies.strategy import Strategy
from discreet.trials import mechanisms
from discreet.trials.chain import Head, first_event
from discreet.trials.desk import Desk, Middles, disagreements, enter, identifiers
from discreet.trials.outcomes import Response, largest_response, response_kind, to_units
from discreet.trials.protocol import Protocol, digest
from discreet.trials.record import BROKEN, Replay, fresh, live_noise
from discreet.trials.status import Batch, Figures, Status, Verification, make_figures, make_status
from discreet.trials.store import schema
from discreet.trials.store.database import Store
from discreet.trials.store.schema import Row
from discreet.trials.store.session import Session
from discreet.trials.verify import follow
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
        """
        settings = (max_people, missing, retain, *ends_of(range), direction, lease)
        protocol = Protocol(name, arms, strategy, *settings, outside=outside)  # type: ignore[arg-type]
        if strategy.trust_model.private:
            mechanisms.ready()
        home = Store(url)
        enter(home, protocol)
        trial = cls._open(home, name, None)
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
                trial._check_head(session, Head.parse(head))
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

    def ask(self, n: int = 1, people: Sequence[str] | None = None) -> Batch:
        """Up to n assignments, fewer if a release comes before; none while outcomes are
        waited for.

        With `people`, identifiers of the next n people, whoever took part before is
        refused, and nobody is assigned. Of an identifier only a keyed hash is kept.
        Outcomes whose lease has ended are given up first, in a transaction of its own:
        nothing that can fail may follow a release that was drawn, or it could be drawn
        again.
        """
        names = None if people is None else identifiers(people)
        wanted = n if names is None else len(names)
        count = check_whole("n", wanted, least=1, most=MOST_AT_ONCE)
        self.expire()
        with self._writing() as desk:
            made = desk.assign(count, names)
            desk.end_if_over()
            now = self._now
            middle = None if now.stopped else now.run.middle
            batch = Batch(tuple(made), desk.tally().waiting, now.stopped, middle)
        return batch

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
        self._take_in({id: self._units(outcome) for id, outcome in outcomes.items()})

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
        units = {id: self._response(response) for id, response in responses.items()}
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
        units = self._units(outcome)
        with self._writing() as desk:
            desk.amend(id, units)

    def miss(self, id: str) -> None:
        """Say that an outcome will not come. If it was told before, nothing changes."""
        with self._writing() as desk:
            desk.lose(desk.find([id]).values(), schema.MISSED)

    def expire(self) -> int:
        """Give up the assignments whose lease has ended (as `ask` does); how many."""
        if self.protocol.lease is None:
            return 0
        with self._writing() as desk:
            lost = desk.lose(desk.session.late(time.time()), schema.EXPIRED)
        return lost

    def _take_in(self, units: Mapping[str, int], middles: Middles | None = None) -> None:
        if units:
            with self._writing() as desk:
                desk.take_in(units, middles)

    def _units(self, outcome: float) -> int:
        protocol = self.protocol
        return to_units(protocol.scale.reward(outcome, protocol.outside), protocol.grid)

    def _response(self, response: Response) -> int:
        """The units of a response; refuses one that was not made as the protocol
        says.
        """
        if not isinstance(response, Response):
            raise InvalidInputError(
                "this trial takes randomised responses only: make one with discreet.respond"
            )
        strategy = self.protocol.strategy
        wanted = (response_kind(strategy), strategy.epsilon, strategy.gamma, self.protocol.scale)
        if (response.mechanism, response.epsilon, response.gamma, response.scale) != wanted:
            raise InvalidInputError(
                "the response was not randomised as the protocol says: "
                f"{self.protocol.respond_options}"
            )
        if abs(response.value) > largest_response(live_noise(strategy), self.protocol.grid):
            raise InvalidInputError(
                "the response is larger than noise can make it: it was not made by respond"
            )
        return response.value

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
        return {
            "protocol": self.protocol.to_dict(),
            "protocol_hash": self.protocol_hash,
            "events": events,
            "status": status,
        }

    def verify(self, head: str | None = None) -> Verification:
        """Recompute the chain, and the state from the public record alone.

        With `head`, also that the record goes on from there.
        """
        problems: list[str] = []
        with self._store.lock, self._store.reading(self.protocol.name) as session:
            row = self._look(session)
            if head is not None:
                try:
                    self._check_head(session, Head.parse(head))
                except TamperedError as error:
                    problems.append(str(error))
            followed = follow(Replay(self.protocol), digest(row.protocol), session.events())
            if followed.problem:
                problems.append(followed.problem)
            if not problems:
                problems += islice(disagreements(followed, row, session), 1)
        head_now = Head(row.seq, row.head)
        return Verification(followed.head.seq, str(head_now), tuple(problems))

    def _status(self, desk: Desk) -> Status:
        row = desk.session.look_again()
        head = Head(row.seq, row.head)
        if self._figures is None or self._figures[0] != head:
            self._figures = (head, make_figures(self.protocol, self._now))
        figures = self._figures[1]
        return make_status(
            self.protocol, self.protocol_hash, self._now, figures, desk.tally(), row.people, head
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
                self._check_head(session, self._seen)
            self._seen = head
        return row

    def _scrub(self) -> None:
        """Make erased outcomes unreadable; if somebody is reading, with the next
        call.
        """
        if self._erased:
            self._erased = not self._store.scrub()

    def _check_head(self, session: Session, known: Head) -> None:
        row = session.look_again()
        if known.seq > row.seq:
            raise TamperedError(
                f"the record of {self.protocol.name!r} has {row.seq} events, {known.seq} are "
                "known: it was restored from a backup. Going on would release outcomes a second "
                "time, with fresh noise, and spend their ε twice"
            )
        if session.hash_at(known.seq) != known.hash:
            raise TamperedError(
                f"event {known.seq} of {self.protocol.name!r} is not the one that is known: the "
                "record was changed"
            )
