"""Live trials: ask for assignments, tell outcomes, stop when it is sound, publish.

A `Trial` is a view of a trial in a store; any number of them, in any number of
processes and places, may work on the same trial. What can be seen through `Batch`,
`Status` and `transcript` is computed from released sums and public counts: outcomes go
in and never come out.
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from discreet.arrays import Progress
from discreet.errors import InvalidInputError, TamperedError
from discreet.scale import REFUSE, ends_of
from discreet.strategies.strategy import Strategy
from discreet.trials import mechanisms
from discreet.trials.chain import Head, first_event
from discreet.trials.conduct import SET_CLOCK, Act
from discreet.trials.dealing import usual_dealing
from discreet.trials.desk import Desk, Outcomes
from discreet.trials.enrol import (
    ask,
    assignment_of,
    open_assignments,
    open_round,
    wanted_of,
)
from discreet.trials.entry import check_head, enter, examine, transcript_of
from discreet.trials.intake import (
    check_many,
    one_id,
    outcome_units,
    response_units,
    who_calls,
)
from discreet.trials.kept import Kept
from discreet.trials.listing import no_trial
from discreet.trials.names import check_place, plain_name, plain_names, writable
from discreet.trials.outcomes import Response
from discreet.trials.protocol import ANONYMOUS, COMPLETE, WAITING, Protocol, digest
from discreet.trials.status import (
    Assignment,
    Batch,
    Figures,
    OpenAssignment,
    Status,
    Told,
    Verification,
    make_figures,
    make_status,
)
from discreet.trials.store.database import Store
from discreet.trials.store.interrupts import Later
from discreet.trials.store.ledger import Entry
from discreet.trials.together import Job
from discreet.validate import check_whole, quoted


class Trial(Kept):
    """A live trial. Make one with `Trial.create`, come back to it with `Trial.open`."""

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
        people: str = ANONYMOUS,
        who: str | None = None,
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
        `enrolment="continuous"` people are enrolled while rounds wait. `people` says
        what it means if somebody comes again: `sticky`, the same assignment, `refuse`,
        or `anonymous`, nobody needs to say who comes. `who` calls is for the private
        journal (None: the user of the database, or of this machine).
        """
        settings = (max_people, missing, retain, *ends_of(range), direction, lease)
        protocol = Protocol(
            plain_name("the name of the trial", name),
            plain_names("the name of an arm", arms),
            strategy,
            *settings,
            outside=outside,
            dealing=usual_dealing(strategy) if dealing is None else dealing,
            block=block,
            sites=plain_names("the name of a site", sites),
            deadline=deadline,
            release=release,
            enrolment=enrolment,
            people=people,
        )
        if not protocol.dealing:
            raise InvalidInputError("dealing must be one of the strategy's ways, or None")
        if strategy.trust_model.private:
            mechanisms.ready()
        who, home = who_calls(who), Store(url)
        enter(home, protocol, who or home.user)
        trial = cls._open(home, protocol.name, None, who)
        if dealing is None and not trial.protocol.dealing:
            protocol = replace(protocol, dealing="")  # begun before it was written down
        if differences := trial.protocol.differences(protocol):
            raise InvalidInputError(
                f"there is a trial {name!r} with other settings: {'; '.join(differences)}. Go "
                "on with it as it is, or take another name"
            )
        return trial

    @classmethod
    def open(cls, url: str, name: str, head: str | None = None, who: str | None = None) -> "Trial":
        """Come back to a trial. With `head`, as `status` gave it, a record older than
        that is refused. `who` calls is for the private journal (None: the user of the
        database, or of this machine).

        A database restored from a backup would draw again, with fresh noise, what was
        released after the backup: two releases of the same outcomes spend twice the ε.
        Whoever knows a later head can see that.
        """
        if not writable(name):
            raise InvalidInputError("give the name of a trial, a text")
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
            if session.hash_at(1) != first_event(protocol_hash).hash:
                raise TamperedError(f"the protocol of {name!r} is not the one it was started with")
            protocol = Protocol.from_dict(json.loads(row.protocol))
            trial = cls(home, protocol, protocol_hash, who or home.user)
            if head is not None:
                check_head(session, Head.parse(head))
            trial._seen = Head(row.seq, row.head)
            trial._erasing = row.erasing
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

    # --- ask and tell -----------------------------------------------------------------

    def ask(
        self,
        n: int = 1,
        people: Sequence[str] | None = None,
        site: str | None = None,
        person: str | None = None,
        request: str | None = None,
    ) -> Batch:
        """Up to n assignments of one round, fewer if it is full before; none while
        outcomes are waited for, or the trial is paused.

        Ask when a person is there: whoever is assigned is in. `person` is who comes, or
        `people` the next n of them, by identifiers of which only keyed hashes are kept;
        what it means if one of them came before, the protocol says. `site` is where
        they come from; the record tells it. With a `request`, a text of the caller's
        own, the same request gets the same assignments again, for ever: repeat it when
        the answer was lost. Ctrl-C is heard when the answer is there.

        Late outcomes are given up before, and a round is opened, each in a transaction
        of its own: nothing that can fail may follow a draw, or it could be drawn again;
        and a key is committed to before anybody of its round is known.
        """
        wanted = wanted_of(n, people, site, person, request)
        with Later(afterwards=True):
            self._expire(noted=False)
            while (
                batch := self._do(Job(ask, wanted, wanted.alike, people=wanted.how_many))
            ) is None:
                self._write(open_round)
            return batch

    def tell(self, id: str, outcome: float) -> Told:
        """Tell one outcome. Telling again changes nothing, and looks the same, whatever
        it carries: `before` has the id then, and `amend` corrects an outcome.
        """
        return self.tell_many({one_id(id): outcome})

    def tell_many(self, outcomes: Mapping[str, float]) -> Told:
        """Tell many outcomes at once: all of them are taken, or with an error none; how
        many were new, and which ids were told before or came too late.
        """
        if self.protocol.strategy.trust_model.randomised:
            raise InvalidInputError(
                "this trial has local trust: it takes no raw outcomes. Randomise each where the "
                "person is, with discreet.respond or `discreet respond`, and pass the response to "
                "answer"
            )
        check_many(outcomes)
        units = {id: outcome_units(one, self.protocol) for id, one in outcomes.items()}
        return self._take_in(Outcomes(units, None))

    def answer(self, id: str, response: Response) -> Told:
        """Tell one randomised response, in a trial with local trust."""
        return self.answer_many({one_id(id): response})

    def answer_many(self, responses: Mapping[str, Response]) -> Told:
        """Tell many randomised responses at once, as `tell_many` does."""
        if not self.protocol.strategy.trust_model.randomised:
            raise InvalidInputError(
                "this trial has no local trust: tell it the outcomes themselves"
            )
        check_many(responses)
        units = {id: response_units(one, self.protocol) for id, one in responses.items()}
        middles = {id: response.middle for id, response in responses.items()}
        return self._take_in(Outcomes(units, middles))

    def amend(self, id: str, outcome: float) -> None:
        """Correct an outcome that was told (or counts as a failure), until it is
        released.

        Whether it was told or is missing makes no difference to what can be seen.
        """
        if self.protocol.strategy.trust_model.randomised:
            raise InvalidInputError(
                "a randomised response cannot be amended: a second one would spend ε again"
            )
        wanted, units = one_id(id), outcome_units(outcome, self.protocol)
        self._write(lambda desk: desk.amend(wanted, units), ids=[wanted])

    def miss(self, id: str) -> Told:
        """Say that an outcome will not come. If it was told before, or its deadline has
        passed, nothing changes, and the answer says so, as that of `tell` does.
        """
        wanted = [one_id(id)]
        return self._write(lambda desk: desk.miss(wanted[0]), ids=wanted)

    def reissue(self, id: str) -> Assignment:
        """The same assignment under a new id, if the old one was seen by others: that
        one is of no use any more.
        """
        wanted = one_id(id)
        return self._write(lambda desk: assignment_of(desk, desk.reissue(wanted)), ids=[wanted])

    def expire(self) -> int:
        """Give up the assignments whose deadline or lease has passed, and release what
        the clock says (as `ask` does); how many numbers were released.
        """
        return self._expire(noted=True)

    def _expire(self, noted: bool) -> int:
        """The same; what `ask` does by the way is not noted."""
        if self.protocol.until is None:
            self._scrub()
            return 0
        return self._write(lambda desk: desk.expire(noted))

    def operate(
        self,
        action: str,
        reason: str,
        about: str | int | None = None,
        seen: int | None = None,
    ) -> None:
        """What an operator does: `pause`, `resume`, `stop`, `raise-maximum` and
        `lower-maximum` (about how many people), `close-site` and `open-site` (about
        which), `drop-arm` and `add-arm`, `set-clock`.

        All of it stands in the public record, with the reason. What each means for the
        guarantee is on the docs page "What the guarantee means". With `seen`, the
        number of `acts` in the status that the decision was made from, it is refused if
        another operator has acted since.
        """
        thing = plain_name("what it is about", about)
        word = action if isinstance(action, str) else quoted(action)
        act = Act(word, thing, plain_name("the reason", reason))
        acts = None if seen is None else check_whole("seen", seen, least=0)
        self._write(lambda desk: desk.operate(act, acts), any_clock=word == SET_CLOCK)

    def _take_in(self, outcomes: Outcomes) -> Told:
        if not outcomes.units:
            return Told(0)
        ids = tuple(outcomes.units)
        return self._do(Job(Desk.take_in, outcomes, alike="tell", ids=ids, people=len(ids)))

    # --- what staff may see -----------------------------------------------------------

    def open_assignments(self, site: str | None = None) -> list[OpenAssignment]:
        """Whose outcome is not in, in the order of assignment; of one site, or all.

        For staff alone: whoever has an id can tell its outcome, and that an outcome is
        in is nobody else's to know. The journal notes who looked.
        """
        place = check_place(site)
        return self._write(lambda desk: open_assignments(desk, place))

    def journal(self, most: int = 1000) -> list[Entry]:
        """The last calls that changed or handed out anything, the newest first: when,
        who, from which site, what kind of call, how many people; never an outcome.

        Private: it is no part of the record.
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
        chain that ties them.

        It holds nothing that was not released, no identifiers of people, and no ids
        under which outcomes are told.
        """
        with self._reading() as desk:
            status = self._status(desk)
            return transcript_of(self.protocol, self.protocol_hash, desk.session, status)

    def verify(self, head: str | None = None, progress: Progress | None = None) -> Verification:
        """Recompute the chain, and the state from the public record alone.

        With `head`, also that the record goes on from there. `progress(done, total)` is
        called now and then with the events that are done, and how many there are.
        """
        self._check_may_verify()
        known = None if head is None else Head.parse(head)
        with self._store.lock, self._store.reading(self.protocol.name) as session:
            self._look(session)
            return examine(self.protocol, session, known, progress)

    def _status(self, desk: Desk) -> Status:
        row = desk.session.look_again()
        head = Head(row.seq, row.head)
        if self._figures is None or self._figures[0] != head:
            self._figures = (head, make_figures(self._now))
        return make_status(
            self.protocol_hash,
            self._now,
            self._figures[1],
            desk.shown_tally(),
            self._aside(desk),
            row.people,
            head,
        )
