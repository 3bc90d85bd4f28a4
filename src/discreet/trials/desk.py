"""What happens to a live trial inside one transaction: assign, take in, lose, operate.

A release is drawn in the transaction that closes its batch, once. Nothing that can be
refused may follow a draw: whoever is refused could try again until the noise suits.
"""

import hmac
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from discreet.errors import InvalidInputError
from discreet.strategies.run import Deal
from discreet.trials import mechanisms
from discreet.trials.conduct import Act
from discreet.trials.dealing import commitment, deal, draw, new_key
from discreet.trials.intake import id_of, number_of, same_id
from discreet.trials.protocol import Protocol, check_site
from discreet.trials.record import Public
from discreet.trials.replay import dealt_in
from discreet.trials.settling import end_if_over, settle, sweep
from discreet.trials.status import Assignment, Tally, Told
from discreet.trials.store import schema
from discreet.trials.store.schema import Assigned
from discreet.trials.store.session import Session

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

    @cached_property
    def time(self) -> float:
        """When this happens; where the record tells times, as it tells them: in whole
        seconds, and never back.
        """
        time = self.session.clock()
        return max(int(time), self.now.conduct.at) if self.protocol.timed else time

    # --- assign -----------------------------------------------------------------------

    def assign(
        self, count: int, names: Sequence[bytes] | None, site: str | None
    ) -> list[Assignment]:
        """The next people of the round that is open, up to its end; whoever took part
        before is refused.
        """
        self._check_site(site)
        hashes = [] if names is None else self._hashes(names)
        enrols = not (self.now.stopped or self.now.conduct.paused or self.closed)
        places = self._places(count) if enrols else []
        self.session.enter_people(hashes[: len(places)])
        return self._enter(places, site) if places else []

    @property
    def closed(self) -> bool:
        """Whether somebody may come, and no round is open for them."""
        conduct = self.now.conduct
        full = self.session.look_again().people >= conduct.maximum
        return not (self.now.stopped or conduct.paused or full) and self.now.run.closed

    def open_round(self) -> None:
        """Open a round: its key is drawn, kept, and committed to, before anybody of it
        is known.
        """
        if not self.closed:
            return
        opening, key = self.now.run.open(), new_key()
        self.session.open_round(opening.round, key)
        self.session.append(
            "opened",
            {
                "round": opening.round,
                "odds": opening.odds,
                "people": opening.people,
                "commit": commitment(key),
            },
        )

    def _check_site(self, site: str | None) -> None:
        """Refuse people from where nobody may come."""
        sites = self.now.conduct.sites_of(self.protocol)
        if sites is not None and site not in sites:
            got = "" if site is None else f"; got {site!r}"
            raise InvalidInputError(
                f"say from which site people come: one of {', '.join(sites)}{got}. Nobody was "
                "assigned"
            )
        if site is not None and not check_site(site):
            raise InvalidInputError("site must be the name of a site. Nobody was assigned")
        if site in self.now.conduct.closed:
            raise InvalidInputError(
                f"{site} is closed: nobody is enrolled there. Nobody was assigned"
            )

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
        """Up to so many places of one round; those of people who are replaced come
        first. In trials from before rounds had keys, they are dealt among the others
        and only written first.
        """
        people = self.session.look_again().people
        room = min(count, self.now.conduct.maximum - people)
        vacant, found = list[Next](), list[Next]()
        for batch in sorted(self.session.batches().values()):
            vacant += [Next(batch.arm, batch.phase, True)] * batch.vacant
        while len(found) < room:
            left = 0 if self.protocol.keyed else self.now.run.to_deal()
            drawn = secrets.randbelow(len(vacant) + left) if vacant or left else 0
            if drawn < len(vacant):
                found.append(vacant.pop(drawn))
            elif (place := self.now.run.take(self._dealer(people + len(found) + 1))) is not None:
                found.append(Next(place.arm, place.phase, False))
            else:
                break
        return sorted(found, key=lambda place: not place.replaces)

    @cached_property
    def _key(self) -> bytes:
        """The key of the round that was opened last."""
        return list(self.session.round_keys().values())[-1]

    def _dealer(self, number: int) -> Deal:
        """What deals the person of this number."""
        if not self.protocol.keyed:
            return deal
        return lambda weights: draw(self._key, number, weights)

    def _enter(self, places: list[Next], site: str | None) -> list[Assignment]:
        """Enter the people in these places."""
        first = self.session.look_again().people + 1
        until = self.protocol.lease if self.protocol.deadline is None else self.protocol.deadline
        ends = None if until is None else self.time + until
        one_line = self.now.run.learns_always and self.protocol.dealing
        rows, changes = list[Assigned](), Changes()
        for number, place in enumerate(places, start=first):
            phase = number if one_line else place.phase
            token = secrets.token_hex(8)
            rows.append(Assigned(number, token, place.arm, phase, schema.OPEN, ends, site))
            vacant = -1 if place.replaces else 0
            changes.count(self._slot(place.arm, place.phase), open=1, vacant=vacant)
        self.session.assign(rows)
        self.session.add(changes.by_slot)
        says: dict[str, Any] = {"first": first, "arms": [place.arm for place in places]}
        says["replacing"] = sum(place.replaces for place in places)
        if site is not None:
            says["site"] = site
        self.now.conduct.enrol(site, len(places))
        if self.protocol.timed:
            says["at"] = self.now.conduct.at = int(self.time)
            self.now.conduct.came(dealt_in(self.protocol, places[-1].phase))
        self.session.append("assigned", says)
        return [Assignment(id_of(row), self.now.conduct.arms[row.arm]) for row in rows]

    # --- take in, and lose ------------------------------------------------------------

    def find(self, ids: Sequence[str]) -> dict[str, Assigned]:
        """The assignments of these ids; an unknown one is an error, and says nothing
        else.
        """
        numbers = {id: number_of(id) for id in ids}
        known = self.session.assigned(sorted(set(numbers.values())))
        found = {}
        for id, number in numbers.items():
            row = known.get(number)
            if row is None or not same_id(id_of(row), id):
                raise InvalidInputError(
                    f"there is no assignment {id!r} in this trial; nothing was told"
                )
            found[id] = row
        return found

    def take_in(self, units: Mapping[str, int], middles: Middles | None = None) -> Told:
        """Seal outcomes by id, and release what is complete with them; those told
        before stay, those past the deadline count no more. `middles` are the levels
        that answers were randomised with.
        """
        rows = self.find(list(units))
        late = self.late() if self.protocol.deadline is not None else []
        gone = {row.number for row in late}
        told = {
            id: row
            for id, row in rows.items()
            if row.state == schema.OPEN and row.number not in gone
        }
        if middles is not None:
            self._check_middles([(row, middles[id]) for id, row in told.items()])
        news = list(told.values())
        self.session.mark(news, schema.TOLD)
        self._seal([(row, units[id]) for id, row in told.items()])
        changes = Changes()
        for row in news:
            changes.count(self._slot(row.arm, row.phase), open=-1, told=1)
        self.session.add(changes.by_slot)
        self._give_up(late, schema.EXPIRED)
        if news or late:
            settle(self, news + late)
        over = tuple(id for id, row in rows.items() if self._past(row))
        before = tuple(id for id in rows if id not in told and id not in over)
        return Told(len(news), before, over)

    def _past(self, row: Assigned) -> bool:
        """Whether the deadline of a person has passed, whatever was told by then."""
        return self.protocol.deadline is not None and (row.deadline or 0) < self.time

    def _check_middles(self, middles: Iterable[tuple[Assigned, float | None]]) -> None:
        """Refuse answers that were randomised with another middle level than the one
        announced.
        """
        for row, middle in middles:
            wanted = self.now.run.middle_of(row.phase)
            if middle != wanted and self.now.run.under_way(row.arm, row.phase):
                raise InvalidInputError(
                    "the response was not randomised with the middle level that was announced with "
                    f"the assignment: --middle {wanted!r}. If it has left the person's place, do "
                    "not randomise the outcome again, which would spend ε twice: say that it is "
                    "missing"
                )

    def amend(self, id: str, units: int) -> None:
        """Put another outcome in the place of one that is not released."""
        row = self.find([id])[id]
        if self._past(row):
            raise InvalidInputError(
                "the deadline of this person has passed: what was told by then counts, and cannot "
                "be amended any more"
            )
        if row.state == schema.OPEN:
            raise InvalidInputError("there is no outcome to amend under this id: tell it")
        released = self._slot(row.arm, row.phase) not in self.session.batches()
        if released or self._taken(row) or not self.now.run.under_way(row.arm, row.phase):
            raise InvalidInputError(
                "the outcome under this id has been released: it cannot be amended any more"
            )
        self.session.reseal(self._sealed(row), units)

    def late(self) -> list[Assigned]:
        """Open assignments past their deadline, or lease."""
        return self.session.late(self.time)

    def lose(self, rows: Iterable[Assigned], state: int) -> None:
        """Outcomes that will not come: the worst one, or a place for another person."""
        lost = [row for row in rows if row.state == schema.OPEN]
        self._give_up(lost, state)
        if lost:
            settle(self, lost)

    def expire(self) -> int:
        """Outcomes past their deadline are given up, and what is released by the clock
        is; how many numbers were released. (How many were given up is no count to be
        shown: an outcome that is missing is an outcome.)
        """
        late, before = self.late(), self.now.releases
        self._give_up(late, schema.EXPIRED)
        settle(self, late, by_clock=True)
        return self.now.releases - before

    def _give_up(self, lost: Sequence[Assigned], state: int) -> None:
        self.session.mark(lost, state)
        replace = self.protocol.missing == "replace"
        in_turn = self.now.run.learns_always
        if not replace:
            self._seal([(row, self._worst(row)) for row in lost])
        elif in_turn:
            self.session.seal([(self._sealed(row), None) for row in lost])
        vacant = 1 if replace and not in_turn else 0
        changes = Changes()
        for row in lost:
            slot = self._slot(row.arm, row.phase)
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

    def operate(self, act: Act) -> None:
        """What an operator does, and what follows from it."""
        if self.now.stopped:
            raise InvalidInputError("the trial is over: nothing can be done to it any more")
        people = self.session.look_again().people
        self.now.conduct.apply(act, self.now.run, people, self.protocol)
        about = {} if act.about is None else {"about": act.about}
        self.session.append("operator", {"action": act.action, "reason": act.reason, **about})
        if self.now.conduct.ended:
            end_if_over(self)
        else:
            settle(self, [])
            sweep(self)

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

    def _slot(self, arm: int, phase: int) -> Slot:
        """Answers that are taken one by one have one batch for each arm."""
        return (arm, 0) if self.now.run.learns_always else (arm, phase)

    def _sealed(self, row: Assigned) -> Assigned:
        """Where an outcome is kept: an answer that is taken in turn, in its line."""
        in_turn = self.now.run.learns_always
        return row._replace(arm=self.now.line(row.arm)) if in_turn else row

    def _taken(self, row: Assigned) -> bool:
        in_turn = self.now.run.learns_always
        return in_turn and row.phase <= self.now.cursor[self.now.line(row.arm)]


class Changes:
    """What is to be added to the counts of batches."""

    def __init__(self) -> None:
        self.by_slot: dict[Slot, tuple[int, int, int]] = {}
        """(open, told, vacant) of each."""

    def count(self, slot: Slot, open: int = 0, told: int = 0, vacant: int = 0) -> None:
        """Add to one of them."""
        now = self.by_slot.get(slot, (0, 0, 0))
        self.by_slot[slot] = (now[0] + open, now[1] + told, now[2] + vacant)
