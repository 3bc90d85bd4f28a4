"""What happens to a live trial inside one transaction: take in, lose, operate, tally.
(How people are assigned is in enrol.py, how rounds are released in settling.py.)

A release is drawn in the transaction that closes its batch, once. Nothing that can be
refused may follow a draw: whoever is refused could try again until the noise suits.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar, cast

from discreet.errors import DiscreetError, InvalidInputError
from discreet.strategies.run import Place
from discreet.trials import mechanisms
from discreet.trials.codes import code_of
from discreet.trials.conduct import CLOCK_TELLS, NOT_NOW, SET_CLOCK, UNBLIND, Act
from discreet.trials.intake import number_of, same_id, unknown_id
from discreet.trials.protocol import Protocol
from discreet.trials.record import Public
from discreet.trials.replay import EVERY_ROUND, dealt_in
from discreet.trials.settling import end_if_over, settle, sweep
from discreet.trials.status import ERASING, Tally, Told
from discreet.trials.store import schema
from discreet.trials.store.ledger import Ledger
from discreet.trials.store.schema import Assigned, Batched
from discreet.trials.store.session import Session

Result = TypeVar("Result")


class Outcomes(NamedTuple):
    """What a caller tells, by id."""

    units: Mapping[str, int | None]
    """None: the outcome will not come."""
    middles: Mapping[str, float | None] | None
    """The middle levels that answers were randomised with, where they were."""


@dataclass(eq=False)
class Task(Generic[Result]):
    """Work for one transaction, and its result."""

    work: "Callable[[Desk], Result | None]"
    """Returns None if participants are to be assigned and no round is open."""
    who: str = ""
    """Who calls, for the journal."""
    site: str | None = None
    """Where the caller is bound to, if anywhere."""
    request: bytes | None = None
    """The text of the key under which the work is done once, if it has one."""
    ids: tuple[str, ...] = ()
    """Ids of the assignments that the work is about."""
    participants: int = 1
    """How many participants the work is about: it bounds a transaction."""
    any_clock: bool = False
    """Whether it is done though the clock has gone back."""
    enrols: bool = False
    """Whether it assigns participants: late outcomes are expired before."""
    needs_round: bool = False
    """Whether it found no round to assign them in, and waits until one is opened."""
    done: bool = False
    result: Result | None = None
    error: BaseException | None = None
    wake: Callable[[], object] = bool
    """Tells the caller that the task is done; called by the thread that writes."""

    def finish(self, result: Result | None = None, error: BaseException | None = None) -> None:
        """Set the result or the error, of which each caller raises one of its own."""
        self.error = type(error)(*error.args) if isinstance(error, DiscreetError) else error
        self.result, self.done = result, True
        self.wake()

    def get(self) -> Result:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return cast(Result, self.result)


class Desk:
    """One transaction on a trial whose public state is `now`."""

    def __init__(
        self,
        protocol: Protocol,
        now: Public,
        session: Session,
        ledger: Ledger,
        who: str = "",
        site: str | None = None,
    ) -> None:
        self.protocol = protocol
        self.now = now
        self.session = session
        self.ledger = ledger
        self.who = who
        """Who calls, for the journal."""
        self.site = site
        """Where the caller is bound to: others' participants are unknown to it."""
        self.drew = False
        """Whether a key or noise was drawn: nothing may follow that."""
        self.erased = False
        """Whether outcomes were erased that may still be readable in the files of the
        database.
        """

    @cached_property
    def time(self) -> float:
        """When this happens; where the record tells times, as it tells them: in whole
        seconds, and never back.
        """
        time = self.ledger.now
        return max(int(time), self.now.conduct.at) if self.protocol.timed else time

    def note(self, call: str, people: int, site: str | None = None, set_back: bool = False) -> None:
        """Write who does this into the journal; nothing of an outcome."""
        self.ledger.note(self.who, call, people, site, set_back)

    # --- take in, and lose ------------------------------------------------------------

    def find(self, ids: Sequence[str]) -> dict[str, Assigned]:
        """The assignments of these ids; an unknown one is an error, and says nothing
        else.
        """
        found = known_ids(self.session, ids)
        for id in ids:
            if id not in found:
                raise unknown_id(id, ids)
        self.check_site(ids)
        return found

    def check_site(self, ids: Sequence[str]) -> None:
        """Refuse participants from elsewhere, by their numbers, as unknown ids."""
        if self.site is None:
            return
        numbers = {id: number_of(id) for id in ids}
        rows = self.session.assigned(sorted(set(numbers.values())))
        for id, number in numbers.items():
            if number not in rows or rows[number].site != self.site:
                raise unknown_id(id, ids)

    def take_in(self, outcomes: Outcomes) -> Told:
        """Seal outcomes, the worst one for those that will not come, and release what
        is complete with them; those told before stay, those past the deadline count no
        more.
        """
        rows = self.find(list(outcomes.units))
        late = self.late() if self.protocol.deadline is not None else []
        gone = {row.number for row in late}
        new = {
            id: row
            for id, row in rows.items()
            if row.state == schema.OPEN and row.number not in gone
        }
        if outcomes.middles is not None:
            self._check_middles((new[id], m) for id, m in outcomes.middles.items() if id in new)
        given = [(row, outcomes.units[id]) for id, row in new.items()]
        self._seal([*given, *((row, None) for row in late)])
        if new:  # whether others are late may be an outcome, and decides nothing here
            self.note("tell", len(rows))
        if new or late:
            settle(self, [*new.values(), *late])
        past = tuple(id for id, row in rows.items() if self._past(row))
        before = tuple(id for id in rows if id not in new and id not in past)
        return Told(len(new), before, past)

    def _past(self, row: Assigned) -> bool:
        """Whether the deadline of a person has passed, whatever was told by then."""
        return self.protocol.deadline is not None and (row.deadline or 0) < self.time

    def _check_middles(self, middles: Iterable[tuple[Assigned, float | None]]) -> None:
        """Refuse answers that were randomised with another middle level than the one
        announced.
        """
        for row, middle in middles:
            wanted = self.now.run.middle_of(row.phase)
            if middle != wanted and self.is_round_open(row):
                raise InvalidInputError(
                    "the response was not randomised with the middle level that was announced "
                    f"with the assignment: --middle {wanted!r}. If it has already left the place "
                    "where the person is, do not randomise the outcome again, which would spend "
                    "ε twice: say that the outcome is missing"
                )

    def amend(self, id: str, units: int) -> None:
        """Put another outcome in the place of one that is not released."""
        row = self.find([id])[id]
        if self._past(row):
            raise InvalidInputError(
                "the deadline of this person has passed: what was told by then counts, and can "
                "no longer be amended"
            )
        if row.state == schema.OPEN:
            raise InvalidInputError("there is no outcome to amend under this id: tell it first")
        released = self.slot(row.arm, row.phase) not in self.session.batches()
        if released or self._taken(row) or not self.is_round_open(row):
            raise InvalidInputError(
                "the outcome under this id has been released, or will never be: it can no longer "
                "be amended"
            )
        self.note("amend", 1)
        if self._is_needed(row):
            self.session.reseal(self._sealed(row), units)

    def is_round_open(self, row: Assigned) -> bool:
        """Return whether the outcomes of a participant's round are not released. In a
        blinded trial those of an arm that was dropped or taken off the round go with
        the round, whose key is revealed with the release: a different answer would tell
        staff who has that arm.
        """
        round = dealt_in(self.protocol, row.phase)
        if not (self.protocol.blind and round):
            return self._is_needed(row)
        return round in self.session.round_keys()

    def reissue(self, id: str) -> Assigned:
        """Another id for an assignment; the one before is of no use any more."""
        row = self.find([id])[id]
        made = row._replace(token=secrets.token_hex(8))
        self.session.reissue(row, made.token)
        self.note("reissue", 1)
        return made

    def late(self) -> list[Assigned]:
        """Return the open assignments past their deadline."""
        return self.session.late(self.time)

    def expire(self, noted: bool) -> int:
        """Count outcomes past their deadline as the worst, and make the releases by the
        clock that are due. Return how many numbers were released. (How many were late
        is no count to be shown: an outcome that is missing is an outcome. So the call
        is noted whoever is late.)
        """
        late, before = self.late(), self.now.releases
        self._seal([(row, None) for row in late])
        if noted:
            self.note("expire", 0)
        settle(self, late, by_clock=True)
        return self.now.releases - before

    def _seal(self, outcomes: Sequence[tuple[Assigned, int | None]]) -> None:
        """Put outcomes behind the wall, the worst one for those that will not come
        (None); of those that will never be released nothing but that they were told.
        """
        sealed = []
        for row, units in outcomes:
            value = self._worst(row) if units is None else units
            sealed.append((self._sealed(row), value if self._is_needed(row) else None))
            self.session.count(*self.slot(row.arm, row.phase), open=-1, told=1)
        self.session.close_assignments([row for row, _ in outcomes])
        self.session.seal(sealed)

    def _is_needed(self, row: Assigned) -> bool:
        """Return whether the outcome of a participant may still be released."""
        return not self.now.stopped and self.now.run.under_way(row.arm, row.phase)

    def _worst(self, row: Assigned) -> int:
        """The worst outcome in units; randomised if that is how outcomes come in."""
        strategy = self.protocol.strategy
        if not strategy.trust_model.randomised:
            return 0
        epsilon, middle = float(strategy.epsilon or 0), self.now.run.middle_of(row.phase)
        return mechanisms.respond(0.0, epsilon, strategy.gamma, middle=middle).value

    # --- operate ----------------------------------------------------------------------

    def operate(self, act: Act, seen: int | None = None) -> None:
        """What an operator does, and what follows from it; refused if it was decided
        having `seen` fewer of the operators' acts than there are.
        """
        if self.now.stopped:
            raise InvalidInputError("the trial is over: it can no longer be changed")
        if seen is not None and seen != len(self.now.conduct.acts):
            raise InvalidInputError(
                "another operator has acted in the meantime: look at the status again, and "
                "decide again. Nothing was done"
            )
        if isinstance(act.action, str) and act.action in NOT_NOW:
            raise InvalidInputError(NOT_NOW[act.action])
        self._act(act)

    def unblind(self, id: str, reason: str) -> str:
        """The arm of a person, for whoever must know it now; the record says that
        somebody knows it.
        """
        row = self.find([id])[id]
        if not self.now.stopped:
            self._act(Act(UNBLIND, row.number, reason))
        return self.now.conduct.arms[row.arm]

    def codes(self) -> dict[str, str]:
        """Return the arm behind the code of each participant, in the order of
        assignment.
        """
        if not self.protocol.blind:
            return {}
        self.note("codes", self.session.row.people)
        arms = self.now.conduct.arms
        return {
            code_of(self.ledger.hash, number): arms[arm]
            for number, (arm, _) in enumerate(self.session.places_assigned(), start=1)
        }

    def _act(self, act: Act) -> None:
        """Write down what is done, and let follow what follows."""
        if act.action == SET_CLOCK:
            if act.about is not None:
                raise InvalidInputError(CLOCK_TELLS)
            act = act._replace(about=int(self.ledger.now))
            if self.protocol.deadline is not None:
                self.session.bring_forward(float(act.about or 0) + self.protocol.deadline)
        people = self.session.row.people
        noted = 1 if act.action == UNBLIND else people
        self.note(f"operate {act.action}", noted, set_back=act.action == SET_CLOCK)
        self.now.conduct.apply(act, self.now.run, people, self.protocol)
        about = {} if act.about is None else {"about": act.about}
        self.session.append("operator", {"action": act.action, "reason": act.reason, **about})
        if self.now.conduct.ended:
            end_if_over(self)
        else:
            settle(self, [])
            sweep(self)

    # --- what the record does not say -------------------------------------------------

    def past_deadline(self) -> int | None:
        """Return how many participants' deadlines have passed, told or not."""
        return None if self.protocol.deadline is None else self.session.last_past(self.time)

    def erasing_words(self) -> str:
        """What to say while erased outcomes may still be readable."""
        return "" if self.session.row.erasing is None else ERASING

    # --- where people are counted -----------------------------------------------------

    def tally(self, shown: bool = False) -> Tally:
        """Count the outcomes that are not in, and those of them that the next release
        waits for. In what is `shown` to anyone all that are not released count as not
        in if rounds are released by the clock: nobody sees when outcomes come.
        """
        batches, run = self.session.batches(), self.now.run
        hides = shown and self.protocol.timed
        counted = list(batches.values())
        if hides and self.protocol.blind and not self.now.stopped:
            counted = [one for one in counted if self._is_unrevealed(one, EVERY_ROUND)]
        pending = sum(batch.open + (batch.told if hides else 0) for batch in counted)
        if self.now.stopped:
            return Tally(pending, 0)
        if run.learns_always:
            return Tally(pending, pending if run.finished else 0)
        due = run.due()
        known = () if hides else (batches.get((batch.arm, batch.phase)) for batch in due)
        told = sum(batch.told for batch in known if batch is not None)
        waiting = sum(batch.size for batch in due) - told
        if self.protocol.blind:
            blocking = self._blocking(due)
            waiting += sum(batch.open + (batch.told if hides else 0) for batch in blocking)
        return Tally(pending, waiting)

    def _blocking(self, due: list[Place]) -> list[Batched]:
        """Return the batches beside those that are due for which a release of a blinded
        trial waits: of arms that were dropped or taken off its rounds. Otherwise the
        participants whose outcomes are still missing would be exactly those of an arm.
        """
        if not due:
            return []
        last, slots = dealt_in(self.protocol, due[0].phase), {(one.arm, one.phase) for one in due}
        return [
            batch
            for slot, batch in self.session.batches().items()
            if slot not in slots and self._is_unrevealed(batch, last)
        ]

    def _is_unrevealed(self, batch: Batched, last: int) -> bool:
        """Return whether the key of a batch's round, one up to the last, is secret."""
        round = dealt_in(self.protocol, batch.phase)
        return not round or (round <= last and round in self.session.round_keys())

    def slot(self, arm: int, phase: int) -> tuple[int, int]:
        """Answers that are taken one by one have one batch for each arm."""
        return (arm, 0) if self.now.run.learns_always else (arm, phase)

    def _sealed(self, row: Assigned) -> Assigned:
        """Return where an outcome is kept: answers that are taken in turn are one line,
        whatever their arms.
        """
        return row._replace(arm=0) if self.now.run.learns_always else row

    def _taken(self, row: Assigned) -> bool:
        return self.now.run.learns_always and row.number <= self.now.cursor


def known_ids(session: Session, ids: Sequence[str]) -> dict[str, Assigned]:
    """The assignments of those of these ids that there are."""
    numbers = {id: number_of(id) for id in ids}
    known = session.assigned(sorted(set(numbers.values())))
    rows = {id: row for id, number in numbers.items() if (row := known.get(number))}
    return {id: row for id, row in rows.items() if same_id(row.id, id)}
