"""What happens to a live trial inside one transaction: take in, lose, operate, tally.
(How people are assigned is in enrol.py, how rounds are released in settling.py.)

A release is drawn in the transaction that closes its batch, once. Nothing that can be
refused may follow a draw: whoever is refused could try again until the noise suits.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from discreet.errors import InvalidInputError
from discreet.trials import mechanisms
from discreet.trials.changes import Changes, Slot
from discreet.trials.codes import codes_of
from discreet.trials.conduct import CLOCK_TELLS, NOT_NOW, SET_CLOCK, UNBLIND, Act
from discreet.trials.intake import id_of, number_of, same_id, unknown_id
from discreet.trials.protocol import Protocol
from discreet.trials.record import Public
from discreet.trials.settling import end_if_over, settle, sweep
from discreet.trials.status import ERASING, Tally, Told
from discreet.trials.store import schema
from discreet.trials.store.ledger import Ledger
from discreet.trials.store.schema import Assigned
from discreet.trials.store.session import Session


class Outcomes(NamedTuple):
    """What one caller tells, by id."""

    units: Mapping[str, int | None]
    """None: the outcome will not come."""
    middles: Mapping[str, float | None] | None
    """The middle levels that answers were randomised with, where they were."""
    who: str
    """Who tells, for the journal."""


class Desk:
    """One transaction on a trial whose public state is `now`."""

    def __init__(
        self, protocol: Protocol, now: Public, session: Session, ledger: Ledger, who: str
    ) -> None:
        self.protocol = protocol
        self.now = now
        self.session = session
        self.ledger = ledger
        self.who = who
        """Who calls, if one does; several who are served at once say it themselves."""
        self.entered: list[Assigned] = []
        """Who was assigned."""
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

    def note(
        self,
        call: str,
        people: int,
        site: str | None = None,
        set_back: bool = False,
        who: str | None = None,
    ) -> None:
        """Write who does this into the journal; nothing of an outcome."""
        self.ledger.note(self.who if who is None else who, call, people, site, set_back)

    # --- take in, and lose ------------------------------------------------------------

    def find(self, ids: Sequence[str]) -> dict[str, Assigned]:
        """The assignments of these ids; an unknown one is an error, and says nothing
        else.
        """
        found = known_ids(self.session, ids)
        for id in ids:
            if id not in found:
                raise unknown_id(id)
        return found

    def take_in(self, files: Sequence[Outcomes]) -> list[Told]:
        """Seal the outcomes of one caller or several, or give up those that will not
        come, and release what is complete with them; those told before stay, those past
        the deadline count no more.
        """
        owner = {id: place for place, one in reversed([*enumerate(files)]) for id in one.units}
        rows = self.find(list(owner))
        late = self.late() if self.protocol.deadline is not None else []
        gone = {row.number for row in late}
        told = {
            id: row
            for id, row in rows.items()
            if row.state == schema.OPEN and row.number not in gone
        }
        for one in files:
            if one.middles is not None:
                middles = one.middles.items()
                self._check_middles((told[id], middle) for id, middle in middles if id in told)
        given = [(row, files[owner[id]].units[id]) for id, row in told.items()]
        present = [(row, units) for row, units in given if units is not None]
        self.session.close_assignments([row for row, _ in present])
        self._seal(present)
        changes = Changes()
        for row, _ in present:
            changes.count(self.slot(row.arm, row.phase), open=-1, told=1)
        self.session.add(changes.by_slot)
        self._give_up([row for row, units in given if units is None] + late)
        over = {id for id, row in rows.items() if self._past(row)}
        found = []
        for place, one in enumerate(files):
            new = {id for id in one.units if id in told and owner[id] == place}
            found.append(_told(one, new, over))
            if new:  # whether others are late may be an outcome, and decides nothing here
                self.note("tell", len(one.units), who=one.who)
        if told or late:
            settle(self, [*told.values(), *late])
        return found

    def _past(self, row: Assigned) -> bool:
        """Whether the deadline of a person has passed, whatever was told by then."""
        return self.protocol.deadline is not None and (row.deadline or 0) < self.time

    def _check_middles(self, middles: Iterable[tuple[Assigned, float | None]]) -> None:
        """Refuse answers that were randomised with another middle level than the one
        announced.
        """
        for row, middle in middles:
            wanted = self.now.run.middle_of(row.phase)
            if middle != wanted and self._is_round_open(row):
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
        if released or self._taken(row) or not self._is_round_open(row):
            raise InvalidInputError(
                "the outcome under this id has been released: it can no longer be amended"
            )
        self.note("amend", 1)
        if self.now.run.under_way(row.arm, row.phase):
            self.session.reseal(self._sealed(row), units)

    def _is_round_open(self, row: Assigned) -> bool:
        """Return whether the outcomes of a participant's round are not released. In a
        blinded trial those of an arm that was dropped or taken off the round go with
        the round: a different answer would tell staff who has that arm.
        """
        run = self.now.run
        if not self.protocol.blind:
            return run.under_way(row.arm, row.phase)
        phases = {phase for arm, phase in self.session.batches() if run.under_way(arm, phase)}
        return row.phase in phases

    def reissue(self, id: str) -> Assigned:
        """Another id for an assignment; the one before is of no use any more."""
        row = self.find([id])[id]
        made = row._replace(token=secrets.token_hex(8))
        self.session.reissue(row, made.token)
        self.note("reissue", 1)
        return made

    def late(self) -> list[Assigned]:
        """Open assignments past their deadline, or lease."""
        return self.session.late(self.time)

    def expire(self, noted: bool) -> int:
        """Outcomes past their deadline are given up, and what is released by the clock
        is; how many numbers were released. (How many were given up is no count to be
        shown: an outcome that is missing is an outcome. So the call is noted whoever is
        late.)
        """
        late, before = self.late(), self.now.releases
        self._give_up(late)
        if noted:
            self.note("expire", 0)
        settle(self, late, by_clock=True)
        return self.now.releases - before

    def _give_up(self, lost: Sequence[Assigned]) -> None:
        """Seal the worst outcome of those whose outcome will not come, or make room for
        other participants.
        """
        self.session.close_assignments(lost)
        replace = self.protocol.missing == "replace"
        in_turn = self.now.run.learns_always
        if not replace:
            self._seal([(row, self._worst(row)) for row in lost])
        elif in_turn:
            self.session.seal([(self._sealed(row), None) for row in lost])
        vacant = 1 if replace and not in_turn else 0
        changes = Changes()
        for row in lost:
            slot = self.slot(row.arm, row.phase)
            changes.count(slot, open=-1, told=1 - vacant, vacant=vacant)
        self.session.add(changes.by_slot)

    def _seal(self, outcomes: Iterable[tuple[Assigned, int]]) -> None:
        """Put outcomes behind the wall; of those that will never be released nothing
        but that they were told.
        """
        going = self.now.run.under_way
        self.session.seal(
            [
                (self._sealed(row), units if going(row.arm, row.phase) else None)
                for row, units in outcomes
            ]
        )

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
        """The arm of each code."""
        if not self.protocol.blind:
            return {}
        self.note("codes", 0)
        arms = enumerate(self.now.conduct.arms)
        return {code: arm for place, arm in arms for code in codes_of(self.ledger.hash, place)}

    def _act(self, act: Act) -> None:
        """Write down what is done, and let follow what follows."""
        if act.action == SET_CLOCK:
            if act.about is not None:
                raise InvalidInputError(CLOCK_TELLS)
            act = act._replace(about=int(self.ledger.now))
            if self.protocol.until is not None:
                self.session.bring_forward(float(act.about or 0) + self.protocol.until)
        people = self.session.look_again().people
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
        """People whose deadline, or lease, has passed, told or not."""
        return None if self.protocol.until is None else self.session.last_past(self.time)

    def erasing_words(self) -> str:
        """What to say while erased outcomes may still be readable."""
        return "" if self.session.look_again().erasing is None else ERASING

    # --- where people are counted -----------------------------------------------------

    def tally(self) -> Tally:
        """How many outcomes are not in, and how many of them the next release waits
        for.
        """
        batches = self.session.batches()
        pending = sum(batch.open for batch in batches.values())
        run = self.now.run
        if self.now.stopped:
            return Tally(pending, 0)
        if run.learns_always:
            return Tally(pending, pending if run.finished else 0)
        due = run.due()
        known = (batches.get((batch.arm, batch.phase)) for batch in due)
        told = sum(batch.told for batch in known if batch is not None)
        return Tally(pending, sum(batch.size for batch in due) - told)

    def shown_tally(self) -> Tally:
        """What anyone may see of it: where rounds are released by the clock, so that
        nobody sees when outcomes come, all that are not released count as not in.
        """
        if not self.protocol.timed:
            return self.tally()
        pending = sum(batch.open + batch.told for batch in self.session.batches().values())
        waiting = 0 if self.now.stopped else sum(batch.size for batch in self.now.run.due())
        return Tally(pending, waiting)

    def slot(self, arm: int, phase: int) -> Slot:
        """Answers that are taken one by one have one batch for each arm."""
        return (arm, 0) if self.now.run.learns_always else (arm, phase)

    def _sealed(self, row: Assigned) -> Assigned:
        """Where an outcome is kept: an answer that is taken in turn, in its line."""
        in_turn = self.now.run.learns_always
        return row._replace(arm=self.now.line(row.arm)) if in_turn else row

    def _taken(self, row: Assigned) -> bool:
        in_turn = self.now.run.learns_always
        return in_turn and row.phase <= self.now.cursor[self.now.line(row.arm)]


def known_ids(session: Session, ids: Sequence[str]) -> dict[str, Assigned]:
    """The assignments of those of these ids that there are."""
    numbers = {id: number_of(id) for id in ids}
    known = session.assigned(sorted(set(numbers.values())))
    rows = {id: row for id, number in numbers.items() if (row := known.get(number))}
    return {id: row for id, row in rows.items() if same_id(id_of(row), id)}


def _told(file: Outcomes, new: set[str], over: set[str]) -> Told:
    """What a caller hears of what it told: what was new, and of the rest why not."""
    late = tuple(id for id in file.units if id in over)
    before = tuple(id for id in file.units if id not in new and id not in over)
    return Told(len(new), before, late)
