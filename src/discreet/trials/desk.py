"""What happens to a live trial inside one transaction: assign, take in, lose, release,
end.

A release is drawn in the transaction that closes its batch, once. Nothing that can be
refused may follow a draw: whoever is refused could try again until the noise suits.
"""

import hmac
import secrets
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from discreet.errors import DiscreetError, InvalidInputError
from discreet.strategies.run import Place, Run
from discreet.trials import mechanisms
from discreet.trials.chain import Head, first_event
from discreet.trials.dealing import deal
from discreet.trials.protocol import Protocol, digest
from discreet.trials.record import Public, Seat, fresh, release
from discreet.trials.releases import noise_of, released, spent, totals_of
from discreet.trials.status import Assignment, Tally
from discreet.trials.store import schema
from discreet.trials.store.database import Store
from discreet.trials.store.schema import Assigned, Row
from discreet.trials.store.session import Session
from discreet.trials.verify import Followed

Middles = Mapping[str, float | None]
"""The middle levels that answers were randomised with, by id."""
Slot = tuple[int, int]
"""(arm, phase) of the batch in which people are counted."""


class Next(NamedTuple):
    """The place of the next person."""

    arm: int
    phase: int
    replaces: bool
    """Whether the person takes the place of another one."""


class Desk:
    """One transaction on a trial whose public state is `now`."""

    def __init__(self, protocol: Protocol, now: Public, session: Session) -> None:
        self.protocol = protocol
        self.now = now
        self.session = session
        self.erased = False
        """Whether outcomes were erased that may still be readable in the files of the
        database.
        """

    # --- assign -----------------------------------------------------------------------

    def assign(self, count: int, names: Sequence[bytes] | None) -> list[Assignment]:
        """The next people, up to a release; whoever took part before is refused."""
        hashes = [] if names is None else self._hashes(names)
        places = [] if self.now.stopped else self._places(count)
        self.session.enter_people(hashes[: len(places)])
        return self._enter(places)

    def _hashes(self, names: Sequence[bytes]) -> list[bytes]:
        """What is kept of identifiers; refuses whoever took part before."""
        key = self.session.key()
        hashes = [hmac.digest(key, name, "sha256") for name in names]
        again = self.session.known_people(hashes)
        if again:
            places = ", ".join(str(place + 1) for place in again)
            raise InvalidInputError(
                f"people number {places} of the list took part before (or are named twice): leave "
                "them out. Nobody was assigned"
            )
        return hashes

    def _places(self, count: int) -> list[Next]:
        """Places of people who are replaced come first; where a strategy's places are
        dealt by chance they are dealt among those, and only written first.
        """
        room = min(count, self.protocol.max_people - self.session.look_again().people)
        vacant, found = list[Next](), list[Next]()
        for batch in sorted(self.session.batches().values()):
            vacant += [Next(batch.arm, batch.phase, True)] * batch.vacant
        while len(found) < room:
            left = self.now.run.to_deal()
            drawn = secrets.randbelow(len(vacant) + left) if left else 0
            if drawn < len(vacant):
                found.append(vacant.pop(drawn))
            elif (place := self.now.run.take(deal)) is not None:
                found.append(Next(place.arm, place.phase, False))
            else:
                break
        return sorted(found, key=lambda place: not place.replaces)

    def _enter(self, places: list[Next]) -> list[Assignment]:
        """Enter the people in these places."""
        if not places:
            return []
        first = self.session.look_again().people + 1
        rows = [
            Assigned(number, secrets.token_hex(8), place.arm, place.phase, schema.OPEN)
            for number, place in enumerate(places, start=first)
        ]
        lease = self.protocol.lease
        self.session.assign(rows, None if lease is None else time.time() + lease)
        changes = Changes()
        for place in places:
            vacant = -1 if place.replaces else 0
            changes.count(self._slot(place.arm, place.phase), open=1, vacant=vacant)
        self.session.add(changes.by_slot)
        arms = [place.arm for place in places]
        replacing = sum(place.replaces for place in places)
        self.session.append("assigned", {"first": first, "arms": arms, "replacing": replacing})
        return [Assignment(id_of(row), self.protocol.arms[row.arm]) for row in rows]

    # --- take in, and lose ------------------------------------------------------------

    def find(self, ids: Sequence[str]) -> dict[str, Assigned]:
        """The assignments of these ids; an unknown one is an error, and says nothing
        else.
        """
        numbers = {id: _number(id) for id in ids}
        known = self.session.assigned(sorted(set(numbers.values())))
        found = {}
        for id, number in numbers.items():
            row = known.get(number)
            if row is None or not _same(id_of(row), id):
                raise InvalidInputError(
                    f"there is no assignment {id!r} in this trial; nothing was told"
                )
            found[id] = row
        return found

    def take_in(self, units: Mapping[str, int], middles: Middles | None = None) -> None:
        """Seal outcomes by id, and release what is complete with them; those told
        before stay. `middles` are the levels that answers were randomised with.
        """
        rows = self.find(list(units))
        told = [(row, units[id]) for id, row in rows.items() if row.state == schema.OPEN]
        if not told:
            return
        if middles is not None:
            self._check_middles(middles[id] for id in rows if rows[id].state == schema.OPEN)
        news = [row for row, _ in told]
        self.session.mark(news, schema.TOLD)
        self.session.seal(told)
        changes = Changes()
        for row in news:
            changes.count(self._slot(row.arm, row.phase), open=-1, told=1)
        self.session.add(changes.by_slot)
        self._settle(news)

    def _check_middles(self, middles: Iterable[float | None]) -> None:
        """Refuse answers that were randomised with another middle level than the one
        announced.
        """
        wanted = self.now.run.middle
        if any(middle != wanted for middle in middles):
            raise InvalidInputError(
                "the response was not randomised with the middle level that was announced with "
                f"the assignment: --middle {wanted!r}. If it has left the person's place, do not "
                "randomise the outcome again, which would spend ε twice: say that it is missing"
            )

    def amend(self, id: str, units: int) -> None:
        """Put another outcome in the place of one that is not released."""
        row = self.find([id])[id]
        if row.state == schema.OPEN:
            raise InvalidInputError("there is no outcome to amend under this id: tell it")
        if self._slot(row.arm, row.phase) not in self.session.batches() or self._taken(row):
            raise InvalidInputError(
                "the outcome under this id has been released: it cannot be amended any more"
            )
        self.session.reseal(row, units)

    def lose(self, rows: Iterable[Assigned], state: int) -> int:
        """Outcomes that will not come: the worst one, or a place for another person;
        how many.
        """
        lost = [row for row in rows if row.state == schema.OPEN]
        if not lost:
            return 0
        self.session.mark(lost, state)
        replace = self.protocol.missing == "replace"
        in_turn = self.now.run.learns_always
        if not replace:
            self.session.seal([(row, self._worst()) for row in lost])
        elif in_turn:
            self.session.seal([(row, None) for row in lost])
        vacant = 1 if replace and not in_turn else 0
        changes = Changes()
        for row in lost:
            slot = self._slot(row.arm, row.phase)
            changes.count(slot, open=-1, told=1 - vacant, vacant=vacant)
        self.session.add(changes.by_slot)
        self._settle(lost)
        return len(lost)

    def _worst(self) -> int:
        """The worst outcome in units; randomised if that is how outcomes come in."""
        strategy = self.protocol.strategy
        if not strategy.trust_model.randomised:
            return 0
        epsilon, middle = float(strategy.epsilon or 0), self.now.run.middle
        return mechanisms.respond(0.0, epsilon, strategy.gamma, middle=middle).value

    # --- release, and end -------------------------------------------------------------

    def _settle(self, news: Iterable[Assigned]) -> None:
        """Release what is complete now that these outcomes are in, and decide."""
        if self.now.stopped:
            return
        run = self.now.run
        if run.learns_always:
            self._take_answers(run, {row.arm for row in news})
        while not run.stopped and (due := run.due()) and not self.tally().waiting:
            self._release(due)
        self.end_if_over()

    def _release(self, due: list[Place]) -> None:
        """Draw the noise, publish the sums, erase the outcomes."""
        run, protocol = self.now.run, self.protocol
        sealed = [totals_of(batch, run, protocol.grid, self.session) for batch in due]
        if [count for _, count in sealed] != [batch.size for batch in due]:
            raise DiscreetError(
                "the outcomes of a batch do not match its assignments: run `discreet trial verify`"
            )
        totals, grid = run.combine([total for total, _ in sealed]), run.due_grid(protocol.grid)
        pairs, cost = run.fine, spent(protocol, run)
        made = release(due, totals, grid, noise_of(protocol, grid), run.release)
        self.now.releases += sum(one.sum is not None for one in made)
        for batch in due:
            self.session.close_batch(batch.arm, batch.phase)
            if self.protocol.retain != "forever":
                self.session.erase(batch.arm, batch.phase)
                self.erased = not self.protocol.strategy.trust_model.randomised
        self.session.append("released", released(made, cost, 1 / grid, pairs))

    def _take_answers(self, run: Run, arms: Iterable[int]) -> None:
        """Take in answers, each arm's in the order of its assignments.

        The order of arrival may depend on the outcomes.
        """
        grid = self.protocol.grid
        taken = []
        for arm in sorted(arms):
            before = self.now.cursor[arm]
            for place, number, units in self.session.answers(arm, before):
                if units is not None and not run.stopped:
                    self.now.cursor[arm] = place
                    run.answer(arm, units / grid)
                    taken.append([number, units])
            if self.protocol.retain != "forever":
                self.session.erase_answers(arm, before, self.now.cursor[arm])
        if taken:
            self.now.releases += len(taken)
            self.session.append("answered", {"answers": taken, "unit": 1 / grid})

    def end_if_over(self) -> None:
        """Write the end if the rule has stopped, or no release can come any more."""
        if not self.now.stopped and (self.now.run.stopped or self._exhausted()):
            self.session.append("stopped", self.now.end())

    def _exhausted(self) -> bool:
        """Whether nobody else may be asked, and what is due can never be complete."""
        run = self.now.run
        full = self.session.look_again().people >= self.protocol.max_people
        batches = self.session.batches()
        if run.learns_always:
            return full and not any(batch.open for batch in batches.values())
        due = run.due()
        if not due:
            return full or run.finished
        waited = (batches.get((batch.arm, batch.phase)) for batch in due)
        return full and any(batch.vacant for batch in waited if batch is not None)

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

    # --- where people are counted -----------------------------------------------------

    def _slot(self, arm: int, phase: int) -> Slot:
        """Answers that are taken one by one have one batch for each arm."""
        return (arm, 0) if self.now.run.learns_always else (arm, phase)

    def _taken(self, row: Assigned) -> bool:
        return self.now.run.learns_always and row.phase <= self.now.cursor[row.arm]


class Changes:
    """What is to be added to the counts of batches."""

    def __init__(self) -> None:
        self.by_slot: dict[Slot, tuple[int, int, int]] = {}
        """(open, told, vacant) of each."""

    def count(self, slot: Slot, open: int = 0, told: int = 0, vacant: int = 0) -> None:
        """Add to one of them."""
        now = self.by_slot.get(slot, (0, 0, 0))
        self.by_slot[slot] = (now[0] + open, now[1] + told, now[2] + vacant)


def identifiers(people: Sequence[str]) -> list[bytes]:
    """Identifiers as they are hashed: without spaces around, in one of Unicode's ways
    to write them.
    """
    if not people:
        raise InvalidInputError("the list of people is empty")
    texts = all(isinstance(person, str) and person.strip() for person in people)
    if isinstance(people, str) or not texts:
        raise InvalidInputError("people must be a list of identifiers, each a text")
    try:
        return [unicodedata.normalize("NFC", person.strip()).encode() for person in people]
    except UnicodeEncodeError:
        raise InvalidInputError(
            "people must be a list of identifiers, each a text that can be written down"
        ) from None


def id_of(row: Assigned) -> str:
    """Under which a person's outcome is told."""
    return f"{row.number}-{row.token}"


def _same(id: str, given: str) -> bool:
    return secrets.compare_digest(id.encode(), str(given).encode(errors="replace"))


def _number(id: str) -> int:
    number = str(id).partition("-")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1


def enter(home: Store, protocol: Protocol) -> None:
    """Begin the record of a new trial, unless there is one of this name."""
    text = protocol.text
    state = fresh(protocol).dump()
    with home.session(protocol.name) as session:
        if session.look() is None:
            key = secrets.token_bytes(32)
            if session.create(text, digest(text), key, state):
                begin = first_event(digest(text))
                session.append(begin.kind, begin.says)
                session.save(state)


def disagreements(followed: Followed, row: Row, session: Session) -> Iterator[str]:
    """What in the database does not follow from its record."""
    replay = followed.replay
    if followed.head != Head(row.seq, row.head):
        yield "the record is shorter than the trial says"
    if followed.unfinished:
        yield followed.unfinished
    if replay.now.dump() != row.state:
        yield "the state does not follow from the record"
    places = [Seat(*place) for place in session.places_assigned()]
    if replay.places != places or row.people != len(places):
        yield "the assignments do not follow from the record"
    if not session.counts_agree():
        yield "the counts of outcomes do not agree with the outcomes"
