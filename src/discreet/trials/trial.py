"""Live trials: ask for assignments, tell outcomes, stop when it is sound, publish.

A `Trial` is a view of a trial in a store; any number of them, in any number of processes and places, may work on the
same trial. What can be seen through `Batch`, `Status` and `transcript` is computed from released sums and public
counts: outcomes go in and never come out. A release is drawn in the transaction that closes its batch, once.
"""

import hmac
import json
import secrets
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from discreet.errors import DiscreetError, InvalidInputError, TamperedError
from discreet.strategies.run import Place
from discreet.strategies.strategy import Strategy
from discreet.strategies.stream.run import StreamRun
from discreet.trials import mechanisms as privacy
from discreet.trials.mechanisms import Response
from discreet.trials.protocol import MISSING, RETAIN, Protocol, digest
from discreet.trials.record import Replay, fresh
from discreet.trials.status import ArmStatus, Assignment, Batch, Status, Verification
from discreet.trials.store import schema
from discreet.trials.store.database import Session, Store, link
from discreet.trials.store.schema import Assigned, Row, canonical
from discreet.validate import check_whole

MOST_AT_ONCE = 100_000
Counts = dict[tuple[int, int], tuple[int, int, int]]


class Trial:
    """A live trial. Make one with `Trial.create`, come back to it with `Trial.open`."""

    def __init__(self, home: Store, protocol: Protocol, protocol_hash: str) -> None:
        self.protocol, self.protocol_hash = protocol, protocol_hash
        self._store = home
        self._now = fresh(protocol)
        self._seq = -1
        self._seen: tuple[int, str] = (0, "")
        """Length and head of the longest record we have seen: it can only grow."""
        self._end: tuple[float | None] | None = None
        self._erased = False
        """Whether outcomes were erased that may still be readable in the files of the database."""

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
    ) -> "Trial":
        """Start a trial, or go on with one of this name and these settings; other settings are refused.

        Everything here is the protocol: it is frozen and hashed. `missing` says what an outcome that stays missing
        counts as (`failure` or `replace`), `retain` how long outcomes are kept (`until-release` or `forever`), `range`
        and `direction` (`max` or `min`) which outcomes there are and which are better, `lease` after how many seconds
        an outcome counts as missing.
        """
        try:
            low, high = range
        except (TypeError, ValueError):
            raise InvalidInputError("range must be two numbers (low, high)") from None
        protocol = Protocol(name, arms, strategy, max_people, missing, retain, low, high, direction, lease)  # type: ignore[arg-type]
        if strategy.trust != "none":
            privacy.ready()
        text = canonical(protocol.to_dict())
        home, now = Store(url), fresh(protocol)
        with home.session(name) as session:
            if session.look() is None and session.create(text, digest(text), secrets.token_bytes(32), now.dump()):
                session.append("created", {"protocol": digest(text)})
                session.save(now.dump())
        trial = cls._open(home, name, None)
        if differences := trial.protocol.differences(protocol):
            raise InvalidInputError(
                f"there is a trial {name!r} with other settings: {'; '.join(differences)}. Open it with Trial.open, or "
                "take another name"
            )
        return trial

    @classmethod
    def open(cls, url: str, name: str, head: str | None = None) -> "Trial":
        """Come back to a trial. With `head`, as `status` gave it, a record older than that is refused.

        A database restored from a backup would draw again, with fresh noise, what was released after the backup: two
        releases of the same outcomes spend twice the ε. Whoever knows a later head can see that.
        """
        return cls._open(Store(url, must_exist=True), name, head)

    @classmethod
    def _open(cls, home: Store, name: str, head: str | None) -> "Trial":
        with home.reading(name) as session:
            row = session.look()
            if row is None:
                known = ", ".join(home.names()) or "none yet"
                raise InvalidInputError(f"there is no trial {name!r} in {home.place}; trials there: {known}")
            first = link(digest(row.protocol), 1, "created", canonical({"protocol": digest(row.protocol)}))
            if session.hash_at(1) != first:
                raise TamperedError(f"the protocol of {name!r} is not the one it was started with")
            protocol = Protocol.from_dict(json.loads(row.protocol))
            trial = cls(home, protocol, digest(row.protocol))
            if head is not None:
                trial._check_head(session, head)
            trial._seen = (row.seq, row.head)
        trial._erased = protocol.retain != "forever" and protocol.strategy.trust != "local"
        trial._scrub()
        return trial

    def __repr__(self) -> str:
        """Name, strategy and place; nothing that was told."""
        return f"Trial({self.protocol.name!r}, {self.protocol.strategy.name}, {self._store!r})"

    @property
    def place(self) -> str:
        """Where the trial is kept, without a password."""
        return self._store.shown

    def close(self) -> None:
        """Close the connections to the store. Nothing is lost without it, and the next call opens new ones."""
        self._scrub()
        self._store.close()

    # --- ask --------------------------------------------------------------------------------------

    def ask(self, n: int = 1, people: Sequence[str] | None = None) -> Batch:
        """Up to n assignments, fewer if a release comes before; none while outcomes are waited for, or at the end.

        With `people`, identifiers of the next n people, whoever took part before is refused, and nobody is assigned.
        Of an identifier only a keyed hash is kept. Outcomes whose lease has ended are given up first, in a transaction
        of its own: nothing that can fail may follow a release that was drawn, or it could be drawn again.
        """
        names = None if people is None else _names(people)
        count = check_whole("n", n if names is None else len(names), least=1, most=MOST_AT_ONCE)
        self.expire()
        with self._writing() as session:
            hashes = [] if names is None else self._hashes(session, names)
            places = [] if self._now.stopped else self._places(session, count)
            session.enter_people(hashes[: len(places)])
            made = self._assign(session, places)
            self._end_if_over(session)
            batch = Batch(tuple(made), self._waiting(session.batches()), self._now.stopped)
        return batch

    def _places(self, session: Session, count: int) -> list[tuple[int, int, bool]]:
        """(arm, phase, whether it replaces somebody) of the next people."""
        row = session.look_again()
        room = min(count, self.protocol.max_people - row.people)
        found: list[tuple[int, int, bool]] = []
        for batch in sorted(session.batches().values()):
            found += [(batch.arm, batch.phase, True)] * min(batch.vacant, room - len(found))
        while len(found) < room:
            place = self._now.course.take()
            if place is None:
                break
            found.append((place.arm, place.phase, False))
        return found

    def _assign(self, session: Session, places: list[tuple[int, int, bool]]) -> list[Assignment]:
        """Enter the people in these places."""
        if not places:
            return []
        first = session.look_again().people + 1
        rows = [
            Assigned(first + offset, secrets.token_hex(8), arm, phase, schema.OPEN)
            for offset, (arm, phase, _) in enumerate(places)
        ]
        lease = self.protocol.lease
        session.assign(rows, None if lease is None else time.time() + lease)
        changes: Counts = {}
        for arm, phase, replaces in places:
            _count(changes, self._slot(arm, phase), 1, 0, -1 if replaces else 0)
        session.add(changes)
        replacing = sum(replaces for _, _, replaces in places)
        session.append("assigned", {"first": first, "arms": [arm for arm, _, _ in places], "replacing": replacing})
        return [Assignment(_id(row), self.protocol.arms[row.arm]) for row in rows]

    def _hashes(self, session: Session, names: list[bytes]) -> list[bytes]:
        """What is kept of identifiers; refuses whoever took part before."""
        key = session.key()
        hashes = [hmac.digest(key, name, "sha256") for name in names]
        again = session.known_people(hashes)
        if again:
            places = ", ".join(str(place + 1) for place in again)
            raise InvalidInputError(
                f"people number {places} of the list took part before (or are named twice): leave them out. Nobody "
                "was assigned"
            )
        return hashes

    # --- tell -------------------------------------------------------------------------------------

    def tell(self, id: str, outcome: float) -> None:
        """Tell one outcome. Telling again changes nothing, and looks the same, whatever it carries."""
        self.tell_many({id: outcome})

    def tell_many(self, outcomes: Mapping[str, float]) -> None:
        """Tell many outcomes at once: all of them are taken, or with an error none."""
        if self.protocol.strategy.trust == "local":
            raise InvalidInputError(
                "this trial has local trust: it takes no raw outcomes. Randomise each where the person is, with "
                "privacy.respond or `discreet respond`, and pass the response to answer"
            )
        scale, grid = self.protocol.scale, self.protocol.grid
        self._take_in({id: privacy.to_units(scale.reward(outcome), grid) for id, outcome in outcomes.items()})

    def answer(self, id: str, response: Response) -> None:
        """Tell one randomised response, in a trial with local trust."""
        self.answer_many({id: response})

    def answer_many(self, responses: Mapping[str, Response]) -> None:
        """Tell many randomised responses at once: all of them are taken, or with an error none."""
        if self.protocol.strategy.trust != "local":
            raise InvalidInputError("this trial has no local trust: tell it the outcomes themselves")
        self._take_in({id: self._units(response) for id, response in responses.items()})

    def amend(self, id: str, outcome: float) -> None:
        """Correct an outcome that was told (or counts as a failure), until it is released.

        Whether it was told or is missing makes no difference to what can be seen.
        """
        if self.protocol.strategy.trust == "local":
            raise InvalidInputError("a randomised response cannot be amended: a second one would spend ε again")
        units = privacy.to_units(self.protocol.scale.reward(outcome), self.protocol.grid)
        with self._writing() as session:
            row = self._find(session, [id])[id]
            if row.state == schema.OPEN:
                raise InvalidInputError("there is no outcome to amend under this id: tell it")
            if self._slot(row.arm, row.phase) not in session.batches() or self._taken(row):
                raise InvalidInputError("the outcome under this id has been released: it cannot be amended any more")
            session.reseal(row, units)

    def miss(self, id: str) -> None:
        """Say that an outcome will not come. If it was told before, nothing changes."""
        with self._writing() as session:
            self._settle(session, self._lose(session, list(self._find(session, [id]).values()), schema.MISSED))

    def expire(self) -> int:
        """Give up the assignments whose lease has ended (as `ask` does); how many."""
        if self.protocol.lease is None:
            return 0
        with self._writing() as session:
            lost = self._lose(session, session.late(time.time()), schema.EXPIRED)
            self._settle(session, lost)
        return len(lost)

    def _take_in(self, units: Mapping[str, int]) -> None:
        if not units:
            return
        with self._writing() as session:
            rows = self._find(session, list(units))
            told = [(row, units[id]) for id, row in rows.items() if row.state == schema.OPEN]
            if told:
                session.mark([row for row, _ in told], schema.TOLD)
                session.seal(told)
                changes: Counts = {}
                for row, _ in told:
                    _count(changes, self._slot(row.arm, row.phase), -1, 1, 0)
                session.add(changes)
                self._settle(session, [row for row, _ in told])

    def _lose(self, session: Session, rows: list[Assigned], state: int) -> list[Assigned]:
        """Note outcomes that will not come, as the worst one or as a place for another person; whose they are."""
        lost = [row for row in rows if row.state == schema.OPEN]
        if not lost:
            return []
        session.mark(lost, state)
        replace, changes = self.protocol.missing == "replace", Counts()
        if not replace:
            session.seal([(row, self._worst()) for row in lost])
        elif self._now.course.learns_always:
            session.seal([(row, None) for row in lost])
        vacant = 1 if replace and not self._now.course.learns_always else 0
        for row in lost:
            _count(changes, self._slot(row.arm, row.phase), -1, 1 - vacant, vacant)
        session.add(changes)
        return lost

    def _worst(self) -> int:
        """The worst outcome in units; behind randomised response if that is how outcomes come in."""
        strategy = self.protocol.strategy
        if strategy.trust != "local":
            return 0
        return privacy.respond(0.0, float(strategy.epsilon or 0), strategy.gamma).value

    def _units(self, response: Response) -> int:
        if not isinstance(response, Response):
            raise InvalidInputError("this trial takes randomised responses only: make one with privacy.respond")
        strategy = self.protocol.strategy
        wanted = ("gauss" if strategy.estimator == "gauss" else "rr", strategy.epsilon, strategy.gamma)
        if (response.mechanism, response.epsilon, response.gamma) != wanted or response.scale != self.protocol.scale:
            raise InvalidInputError(
                f"the response was not randomised as the protocol says: {self.protocol.respond_options}"
            )
        if abs(response.value) > privacy.largest_response(strategy):
            raise InvalidInputError("the response is larger than noise can make it: it was not made by respond")
        return response.value

    def _find(self, session: Session, ids: list[str]) -> dict[str, Assigned]:
        """The assignments of these ids; an unknown one is an error, and says nothing else."""
        numbers = {id: _number(id) for id in ids}
        known = session.assigned(sorted(set(numbers.values())))
        found = {}
        for id, number in numbers.items():
            row = known.get(number)
            if row is None or not secrets.compare_digest(_id(row).encode(), str(id).encode(errors="replace")):
                raise InvalidInputError(f"there is no assignment {id!r} in this trial; nothing was told")
            found[id] = row
        return found

    # --- releases and the end ---------------------------------------------------------------------

    def _settle(self, session: Session, news: list[Assigned]) -> None:
        """Release what is complete now that these outcomes are in, and decide; all in this transaction."""
        if not news or self._now.stopped:
            return
        course = self._now.course
        if isinstance(course, StreamRun):
            self._take_answers(session, course, {row.arm for row in news})
        while not course.stopped and (due := course.due()) and not self._waiting(session.batches()):
            self._release(session, due)
        self._end_if_over(session)

    def _release(self, session: Session, due: list[Place]) -> None:
        """Draw the noise, publish the sums, erase the outcomes: one transaction, or nothing of it."""
        grid, strategy = self.protocol.grid, self.protocol.strategy
        releases, sums = [], []
        sealed = [session.unseal_sum(arm, phase) for arm, phase, _ in due]
        if [count for _, count in sealed] != [size for _, _, size in due]:
            raise DiscreetError("the outcomes of a batch do not match its assignments: run `discreet trial verify`")
        for (arm, phase, size), (raw, _) in zip(due, sealed, strict=True):
            total, spent = raw, None
            if strategy.trust == "global":
                total, spent = privacy.noisy_sum(raw, float(strategy.epsilon or 0), grid)
            elif strategy.trust == "local":
                spent = privacy.response_epsilon(float(strategy.epsilon or 0), strategy.gamma)
            releases.append({"arm": arm, "phase": phase, "count": size, "sum": total, "epsilon": spent})
            sums.append(total / grid)
            session.close_batch(arm, phase)
            if self.protocol.retain != "forever":
                session.erase(arm, phase)
                self._erased = strategy.trust != "local"
        self._now.releases += len(releases)
        self._now.course.release(sums)
        session.append("released", {"releases": releases, "unit": 1 / grid})

    def _take_answers(self, session: Session, course: StreamRun, arms: Iterable[int]) -> None:
        """Take in answers, each arm's in the order of its assignments: arrival order may depend on the outcomes."""
        taken, grid = [], self.protocol.grid
        for arm in sorted(arms):
            before = self._now.cursor[arm]
            for place, number, units in session.answers(arm, self._now.cursor[arm]):
                if units is not None and not course.stopped:
                    self._now.cursor[arm] = place
                    course.answer(arm, units / grid)
                    taken.append([number, units])
            if self.protocol.retain != "forever":
                session.erase_answers(arm, before, self._now.cursor[arm])
        if taken:
            self._now.releases += len(taken)
            session.append("answered", {"answers": taken, "unit": 1 / grid})

    def _end_if_over(self, session: Session) -> None:
        """Write the end if the rule has stopped, or nobody else may be asked and no release can come."""
        now, row = self._now, session.look_again()
        if now.stopped or not (now.course.stopped or self._exhausted(session, row.people)):
            return
        now.stopped, now.conclusive = True, now.course.stopped
        session.append("stopped", {"conclusive": now.conclusive, "recommendation": now.course.recommendation})

    def _exhausted(self, session: Session, people: int) -> bool:
        """Whether no further release can come: nobody else may be asked, and what is due can never be complete."""
        course, full = self._now.course, people >= self.protocol.max_people
        if course.learns_always:
            return full and not any(batch.open for batch in session.batches().values())
        due = course.due()
        if not due:
            return full or course.finished
        batches = session.batches() if full else {}
        return any(batches[arm, phase].vacant for arm, phase, _ in due if (arm, phase) in batches)

    def _waiting(self, batches: Mapping[tuple[int, int], Any]) -> int:
        """Outcomes that the next release waits for; at the maximum, all that are not in."""
        if self._now.stopped:
            return 0
        if self._now.course.learns_always:
            return sum(batch.open for batch in batches.values()) if self._now.course.finished else 0
        due = self._now.course.due()
        return sum(size - (batches[arm, phase].told if (arm, phase) in batches else 0) for arm, phase, size in due)

    # --- what anyone may see ----------------------------------------------------------------------

    def status(self) -> Status:
        """Everything in it may be shown to anyone."""
        with self._reading() as session:
            return self._status(session)

    def _status(self, session: Session) -> Status:
        batches, row = session.batches(), session.look_again()
        now, protocol, strategy = self._now, self.protocol, self.protocol.strategy
        best = now.course.recommendation
        return Status(
            name=protocol.name,
            strategy=strategy.name,
            stopped=now.stopped,
            conclusive=now.conclusive,
            recommendation=None if best is None else protocol.arms[best],
            smallest_delta=self._smallest_delta(),
            people=row.people,
            max_people=protocol.max_people,
            pending=sum(batch.open for batch in batches.values()),
            waiting=self._waiting(batches),
            releases=now.releases,
            epsilon=strategy.epsilon,
            gamma=strategy.gamma,
            delta=strategy.delta,
            privacy=strategy.privacy,
            correctness=strategy.correctness,
            missing=MISSING[protocol.missing],
            retain=RETAIN[protocol.retain],
            arms=tuple(self._arms()),
            head=f"{row.seq}:{row.head}",
            protocol_hash=self.protocol_hash,
        )

    def _smallest_delta(self) -> float | None:
        """Of an inconclusive end; computed when asked for, as it takes long enough to be seen from outside."""
        if not self._now.stopped or self._now.conclusive:
            return None
        if self._end is None:
            self._end = (self.protocol.shown_delta(self._now.course.smallest_delta()),)
        return self._end[0]

    def _arms(self) -> Iterator[ArmStatus]:
        scale = self.protocol.scale
        for name, arm in zip(self.protocol.arms, self._now.course.table(), strict=True):
            mean = None if arm.mean is None else scale.shown(arm.mean)
            ends = None if arm.interval is None else sorted(scale.shown(end) for end in arm.interval)
            yield ArmStatus(name, arm.pulls, arm.count, mean, None if ends is None else (ends[0], ends[1]))

    def transcript(self) -> dict[str, Any]:
        """What may be published: the protocol, every assignment, release and decision, and the chain that ties them.

        It holds nothing that was not released, no identifiers of people, and no ids under which outcomes are told.
        """
        with self._reading() as session:
            status = self._status(session).to_dict()
            record = [
                {"seq": event.seq, "kind": event.kind, **event.says, "hash": event.hash} for event in session.events()
            ]
            protocol = self.protocol.to_dict()
        return {"protocol": protocol, "protocol_hash": self.protocol_hash, "events": record, "status": status}

    def verify(self, head: str | None = None) -> Verification:
        """Recompute the chain, and the state from the public record alone; with `head`, that it goes on from there."""
        problems: list[str] = []
        with self._store.lock, self._store.reading(self.protocol.name) as session:
            row = self._look(session)
            if head is not None:
                try:
                    self._check_head(session, head)
                except TamperedError as error:
                    problems.append(str(error))
            previous, seq, again = digest(row.protocol), 0, Replay(self.protocol)
            for event in session.events():
                if event.seq != seq + 1 or event.hash != link(previous, event.seq, event.kind, event.body):
                    problems.append(f"event {event.seq} is not what was written there")
                    break
                previous, seq = event.hash, event.seq
                problem = again.follow(event)
                if problem:
                    problems.append(f"event {event.seq}: {problem}")
                    break
            if not problems and (seq, previous) != (row.seq, row.head):
                problems.append("the record is shorter than the trial says")
            if not problems and again.now.course.stopped and not again.now.stopped:
                problems.append("the strategy had stopped, and the record does not say so")
            if not problems and again.now.dump() != row.state:
                problems.append("the state does not follow from the record")
            if not problems and (again.places != list(session.places_assigned()) or row.people != len(again.places)):
                problems.append("the assignments do not follow from the record")
            if not problems and not session.counts_agree():
                problems.append("the counts of outcomes do not agree with the outcomes")
        return Verification(seq, f"{row.seq}:{row.head}", tuple(problems))

    # --- the store --------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """One transaction, with the state as it is now; what was computed in one that failed is forgotten.

        Every change of the state is an event, so that the state is written if there were any.
        """
        with self._store.lock:
            with self._store.session(self.protocol.name) as session:
                self._catch_up(session)
                before, self._seq = self._seq, -1
                yield session
                row = session.look_again()
                if row.seq != before:
                    session.save(self._now.dump())
            self._seq, self._seen = row.seq, (row.seq, row.head)
            self._scrub()

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        with self._store.lock:
            self._scrub()
            with self._store.reading(self.protocol.name) as session:
                self._catch_up(session)
                yield session

    def _catch_up(self, session: Session) -> None:
        """Load the state unless it is the one we have: every change of it is an event."""
        row = self._look(session)
        if row.seq != self._seq:
            self._seq = -1
            try:
                self._now.load(row.state)
            except (KeyError, TypeError, ValueError):
                raise TamperedError(
                    f"the state of {self.protocol.name!r} is not what was written: run `discreet trial verify`"
                ) from None
            self._seq = row.seq

    def _look(self, session: Session) -> Row:
        row = session.look()
        if row is None:
            raise InvalidInputError(f"there is no trial {self.protocol.name!r} in {self._store.place} any more")
        if (row.seq, row.head) != self._seen:
            if self._seen[0]:
                self._check_head(session, f"{self._seen[0]}:{self._seen[1]}")
            self._seen = (row.seq, row.head)
        return row

    def _scrub(self) -> None:
        """Make erased outcomes unreadable; if somebody is reading, with the next call."""
        if self._erased:
            self._erased = not self._store.scrub()

    def _check_head(self, session: Session, head: str) -> None:
        row = session.look_again()
        try:
            length, expected = head.split(":")
            if not (length.isascii() and length.isdigit() and len(length) < 10):
                raise ValueError
            seq = int(length)
        except (AttributeError, ValueError):
            raise InvalidInputError("head must look like 17:5f2c…, as status shows it") from None
        if seq > row.seq:
            raise TamperedError(
                f"the record of {self.protocol.name!r} has {row.seq} events, {seq} are known: it was restored from a "
                "backup. Going on would release outcomes a second time, with fresh noise, and spend their ε twice"
            )
        if session.hash_at(seq) != expected:
            raise TamperedError(
                f"event {seq} of {self.protocol.name!r} is not the one that is known: the record was changed"
            )

    def _slot(self, arm: int, phase: int) -> tuple[int, int]:
        """The batch in which people are counted; answers that are taken one by one have one for each arm."""
        return (arm, 0) if self._now.course.learns_always else (arm, phase)

    def _taken(self, row: Assigned) -> bool:
        return self._now.course.learns_always and row.phase <= self._now.cursor[row.arm]


def _count(changes: Counts, slot: tuple[int, int], open_: int, told: int, vacant: int) -> None:
    now = changes.get(slot, (0, 0, 0))
    changes[slot] = (now[0] + open_, now[1] + told, now[2] + vacant)


def _names(people: Sequence[str]) -> list[bytes]:
    """Identifiers as they are hashed: without spaces around them, and in one of Unicode's ways to write them."""
    if not people:
        raise InvalidInputError("the list of people is empty")
    if isinstance(people, str) or not all(isinstance(person, str) and person.strip() for person in people):
        raise InvalidInputError("people must be a list of identifiers, each a text")
    try:
        return [unicodedata.normalize("NFC", person.strip()).encode() for person in people]
    except UnicodeEncodeError:
        raise InvalidInputError("people must be a list of identifiers, each a text that can be written down") from None


def _id(row: Assigned) -> str:
    return f"{row.number}-{row.token}"


def _number(id: str) -> int:
    number = str(id).partition("-")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
