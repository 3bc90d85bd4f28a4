"""The public record of a live trial, and the state that follows from its events.

Nothing here knows a database, and nothing makes noise: whoever has the record can
follow it.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from discreet.errors import InvalidInputError, NoConvergenceError, TamperedError
from discreet.strategies.estimators import SIMPLE
from discreet.strategies.run import ArmBatch, Randomisation, Run, Totals, make_run
from discreet.strategies.strategy import Strategy
from discreet.trials.names import is_site_name
from discreet.trials.operations import Management, ManagementAction
from discreet.trials.protocol import Protocol, canonical
from discreet.trials.randomisation import UnrevealedKeys
from discreet.trials.responses import compute_largest_response, payable_delta

_decoder = json.JSONDecoder()
SALT = re.compile(r"[0-9a-f]{32}")
"""The salt of an event: 16 random bytes. Without them a hash confirms a guess of what
the event says, such as the arm of a participant in a blinded trial.
"""


class AuditEntry(NamedTuple):
    """An entry of the audit trail."""

    entry: int
    at: float
    """Time in seconds since 1970, by the clock of the database."""
    user: str
    """Name of the token, or user of the database or of the machine."""
    site: str | None
    action: str
    participants: int
    """Number of participants that it was about."""


class UnknownHeadError(TamperedError):
    """The record does not go on from a head that a caller gave. Whether the record or
    the head is wrong, only the caller can tell.
    """


class Event(NamedTuple):
    """One line of the public record."""

    seq: int
    kind: str
    body: str
    """What it says, as JSON: the very text that was hashed."""
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        """The body in plain types."""
        return parse_body(self.body)


class Head(NamedTuple):
    """How long a record is, and the hash of its last event: who knows it knows the
    whole record.
    """

    seq: int
    hash: str

    def __str__(self) -> str:
        """As `status` shows it."""
        return f"{self.seq}:{self.hash}"

    @staticmethod
    def parse(text: str) -> "Head":
        """The head that was shown as this text."""
        try:
            length, known = text.split(":")
            if not (length.isascii() and length.isdigit() and len(length) < 10):
                raise ValueError
            return Head(int(length), known)
        except (AttributeError, TypeError, ValueError):
            raise InvalidInputError("head must look like 17:5f2c…, as status shows it") from None


def check_continues(name: str, known: Head, found: Head) -> None:
    """Refuse a record that is older than one that is known, or another one of the same
    length.
    """
    if known.seq > found.seq:
        raise TamperedError(
            f"the record of {name!r} has {found.seq} events, but {known.seq} are known: it was "
            "restored from a backup. Going on would release outcomes a second time, with "
            "fresh noise, and spend their ε twice"
        )
    if known.seq == found.seq and known.hash != found.hash:
        raise TamperedError(changed_event_words(name, known.seq))


def changed_event_words(name: str, seq: int) -> str:
    """What to say of a record that does not go on from a known event."""
    return f"event {seq} of {name!r} is not the one that is known: the record was changed"


def parse_body(body: str) -> dict[str, Any]:
    """What an event says, in plain types. (`json.loads` looks for spaces around, which
    no event has, and takes twice the time for lines as short as most.)
    """
    found, end = _decoder.raw_decode(body)
    if end != len(body):
        raise ValueError
    return found  # type: ignore[no-any-return]


def chain_hash(previous: str, seq: int, kind: str, body: str) -> str:
    """The hash of an event: of all before it, its place, and what it says."""
    return hashlib.sha256(f"{previous}\n{seq}\n{kind}\n{body}".encode()).hexdigest()


def new_salt() -> str:
    """Draw the salt of an event."""
    return secrets.token_hex(16)


def next_event(previous: str, seq: int, kind: str, body: dict[str, Any]) -> Event:
    """Make the event that follows a hash, with a salt of its own."""
    text = canonical({**body, "salt": new_salt()})
    return Event(seq, kind, text, chain_hash(previous, seq, kind, text))


def first_event(protocol_hash: str) -> Event:
    """Make the event with which a record begins."""
    return next_event(protocol_hash, 1, "created", {"protocol": protocol_hash})


def is_first_event(event: Event, protocol_hash: str) -> bool:
    """Return whether a record of this protocol can begin with an event."""
    if (event.seq, event.kind) != (1, "created"):
        return False
    linked = event.hash == chain_hash(protocol_hash, 1, "created", event.body)
    return linked and event.content.get("protocol") == protocol_hash


BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    NoConvergenceError,
)
"""What reading something raises that is not what we wrote."""


# --- the state ------------------------------------------------------------------------


def response_noise(strategy: Strategy) -> float | None:
    """The standard deviation, in rewards, of Gaussian responses; only OpenDP's own map
    knows it.
    """
    if strategy.gamma is None or not strategy.spec.gamma:
        return None
    from discreet.trials.mechanisms import find_noise_scale

    return find_noise_scale(float(strategy.epsilon or 0), strategy.gamma)


def new_live_run(strategy: Strategy, arms: int, people: int, randomisation: Randomisation) -> Run:
    """A live run of at most so many people; its thresholds pay for discrete noise."""
    delta, noise = payable_delta(strategy), response_noise(strategy)
    return make_run(strategy, arms, people, delta, noise, randomisation)


@dataclass
class PublicState:
    """What is public and changes: the run, and what is known beside it."""

    protocol: Protocol
    run: Run
    management: Management
    releases: int = 0
    stopped: bool = False
    conclusive: bool = False
    cursor: int = 0
    """For strategies that learn from every answer: how many answers are taken in, in
    the order of assignment.
    """

    def dump(self) -> str:
        """Return the state as text."""
        state = {
            "releases": self.releases,
            "stopped": self.stopped,
            "conclusive": self.conclusive,
            "cursor": self.cursor,
            "run": self.run.dump(),
            "management": self.management.dump(),
        }
        return json.dumps(state)

    def load(self, text: str) -> None:
        """Load the state that `dump` wrote."""
        state = json.loads(text)
        self.management = Management.load(state["management"])
        self.run.cap = self.management.maximum
        self.run.load(state["run"])
        self.releases, self.cursor = _whole(state["releases"]), _whole(state["cursor"])
        self.stopped, self.conclusive = _flag(state["stopped"]), _flag(state["conclusive"])

    def end(self) -> dict[str, Any]:
        """The trial is over: what the record says about it."""
        self.stopped = True
        self.conclusive = self.run.stopped
        return {"conclusive": self.conclusive, "recommendation": self.run.recommendation}


def _whole(value: Any) -> int:
    """A count, as it was written."""
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError
    return value


def new_state(protocol: Protocol) -> PublicState:
    """A trial that has not begun."""
    run = new_live_run(
        protocol.strategy,
        len(protocol.arms),
        protocol.max_participants,
        protocol.live_randomisation,
    )
    return PublicState(protocol, run, Management(protocol.max_participants, list(protocol.arms)))


# --- a release ------------------------------------------------------------------------


class Release(NamedTuple):
    """What is published about a batch of one arm (or one answer), in units of the
    grid.
    """

    arm: int
    phase: int
    size: int
    sum: int | None
    """None if the batch only entered the number of another arm, its margin."""
    near: int | None = None
    """How close its outcomes are to the announced centre, where that is released."""


def make_release(
    due: Sequence[ArmBatch],
    totals: Sequence[Totals | None],
    grid: int,
    noisy: Callable[[Totals], Totals],
    decide: Callable[..., None],
) -> list[Release]:
    """One release, live or rehearsed, of what a run has combined: noise on each total,
    and decisions from the noisy numbers alone.
    """
    shown = [None if total is None else noisy(total) for total in totals]
    with np.errstate(all="ignore"):  # no warning, made an error, may follow a draw
        decide(*to_rewards([total for total in shown if total is not None], 1 / grid))
    return [
        Release(*batch, None) if total is None else Release(*batch, *total)
        for batch, total in zip(due, shown, strict=True)
    ]


def to_rewards(totals: Sequence[Totals], unit: float) -> list[list[float]]:
    """What was released, on the scale of rewards: sums, and beside them closeness where
    it is released.
    """
    sums = [total.sum * unit for total in totals]
    near = [total.near * unit for total in totals if total.near is not None]
    return [sums, near] if near else [sums]


ALL_ROUNDS = 2**62
"""All keys are revealed, whatever the round."""


Seat = tuple[int, int]
"""Where a person is: the arm, and its phase, or where answers are taken in turn the
person's number. There are as many as people, so that they are plain.
"""
RELEASE_FIELDS = {"arm", "phase", "count", "sum"}
"""What a release says about each batch, beside the ε or ρ that it costs."""
MAX_GAUSSIAN_ROUNDING = 1e-4
"""By so much less than promised a release with Gaussian noise may cost."""
COMMITMENT = re.compile(r"[0-9a-f]{64}")
"""What an event says of the key of a round that is opened: its SHA-256."""
NEAR_FIELDS = {"near"}
"""And where closeness is released beside sums."""


def event_fields(kind: str, protocol: Protocol) -> tuple[set[str], set[str]]:
    """What an event of a kind says, and what it may say beside."""
    at = {"at"} if protocol.has_times else set()
    keys = {"keys"} if protocol.has_round_keys else set()
    return {
        "created": ({"protocol"}, set()),
        "opened": ({"round", "odds", "participants", "commit"}, set()),
        "assigned": ({"first", "arms"} | at, {"site"}),
        "released": ({"releases", "unit"} | keys | at, {"margin"}),
        "answered": ({"answers", "unit"}, set()),
        "managed": ({"action", "reason"}, {"about"}),
        "stopped": ({"conclusive", "recommendation"} | keys, set()),
    }[kind]


def assignment_round(protocol: Protocol, phase: int) -> int:
    """The round that people of a phase were dealt in, where several may be under way;
    else 0.
    """
    return phase if protocol.randomisation == SIMPLE else 0


def last_revealed_round(protocol: Protocol, due: Sequence[ArmBatch]) -> int:
    """Up to which round keys are revealed with a release: rounds that are still dealt
    keep theirs.
    """
    return assignment_round(protocol, due[0].phase) or ALL_ROUNDS


class Replay:
    """The state, from public events alone."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.state = new_state(protocol)
        self.events = 0
        self.seats: list[Seat] = []
        """Of each person, in the order of assignment."""
        self.released: set[Seat] = set()
        """(arm, phase) of all batches that were released."""
        self.unrevealed = UnrevealedKeys()
        self.round = 0
        """The round that was opened last."""
        self._salts = set[str]()
        self._steps = {kind: (step, *event_fields(kind, protocol)) for kind, step in STEPS.items()}
        self._level, _ = protocol.strategy.level
        self._keyed, self._timed, self._grid = (
            protocol.has_round_keys,
            protocol.has_times,
            protocol.grid,
        )
        self._in_turn = self.state.run.releases_each_answer
        """Whether answers are taken one by one, in the order of assignment."""

    def apply(self, event: Event) -> str | None:
        """Go on by one event; what is wrong with it, if anything."""
        kind, now = event.kind, self.state
        self.events += 1
        if kind not in self._steps or (kind == "created") != (self.events == 1):
            return "of a kind that does not exist, or not there"
        if now.stopped:
            return "the trial was over before"
        if (now.run.stopped or now.management.ended) and kind != "stopped":
            return "the strategy had stopped before"
        try:
            body, (step, must, may) = parse_body(event.body), self._steps[kind]
            salted = self._is_salted(body.pop("salt"))
            if not salted or (body.keys() != must and body.keys() - may != must):
                return "it does not say what such an event says"
            return step(self, body)
        except BROKEN:
            return "it does not say what such an event says"

    def _is_salted(self, salt: Any) -> bool:
        """Return whether an event has a salt that no event before it has."""
        if type(salt) is not str or SALT.fullmatch(salt) is None or salt in self._salts:
            return False
        self._salts.add(salt)
        return True

    def count_unreleased(self) -> int:
        """People whose outcome is in no release."""
        if self.state.run.releases_each_answer:
            return len(self.seats) - self.state.cursor
        return sum(seat not in self.released for seat in self.seats)

    def count_awaited(self) -> int:
        """Return for how many participants the next release waits. In a blinded trial
        it also waits for those of arms that were dropped or taken off its round.
        """
        due = [] if self.state.stopped else self.state.run.list_due()
        count = sum(batch.size for batch in due)
        if not (self.protocol.is_blinded and due):
            return count
        last, slots = (
            assignment_round(self.protocol, due[0].phase),
            {(one.arm, one.phase) for one in due},
        )
        return count + sum(
            seat not in slots and self._is_unrevealed(seat, last) for seat in self.seats
        )

    def count_unrevealed(self) -> int:
        """Return how many participants are pending if releases are scheduled: those in
        no release; in a blinded trial those of rounds that are not released.
        """
        if not self.protocol.is_blinded or self.state.stopped:
            return self.count_unreleased()
        return sum(self._is_unrevealed(seat, ALL_ROUNDS) for seat in self.seats)

    def _is_unrevealed(self, seat: Seat, last: int) -> bool:
        """Return whether a participant is in no release, and the key of the round, one
        up to the last, is secret.
        """
        round = assignment_round(self.protocol, seat[1])
        secret = not round or (round <= last and round in self.unrevealed.commits)
        return secret and seat not in self.released

    def _created(self, body: dict[str, Any]) -> str | None:
        return None  # the chain begins with the hash of the protocol

    # --- people -----------------------------------------------------------------------

    def _opened(self, body: dict[str, Any]) -> str | None:
        management = self.state.management
        full = len(self.seats) >= management.maximum
        if (
            not self.protocol.has_round_keys
            or not self.state.run.needs_round
            or management.paused
            or full
        ):
            return "no round was to be opened"
        opening, commit = self.state.run.open_round(), body["commit"]
        said = {name: body[name] for name in ("round", "odds", "participants")}
        made = {"round": opening.round, "odds": opening.odds, "participants": opening.participants}
        if canonical(said) != canonical(made):
            return "the strategy would have opened another round"
        if type(commit) is not str or COMMITMENT.fullmatch(commit) is None:
            raise ValueError
        self.round = opening.round
        again = not self.unrevealed.open(self.round, commit)
        return "its key was committed to before" if again else None

    def _assigned(self, body: dict[str, Any]) -> str | None:
        first = body["first"]
        arms: list[int] = body["arms"]
        if not _wholes([first, *arms]) or not arms:
            raise ValueError
        if problem := self._arrive(body, len(arms)):
            return problem
        run = self.state.run

        def deal(weights: list[int]) -> int:
            """Deals what was dealt, and notes it until the key is revealed."""
            if self._keyed:
                self.unrevealed.note(self.round, number, weights, arm)
            return arm

        for number, arm in enumerate(arms, start=first):
            place = run.assign_next(deal)
            if place is None or place.arm != arm:
                return "the strategy would not have assigned this arm"
            phase = number if self._in_turn else place.phase
            self.seats.append((arm, phase))
            if self._timed:
                self.state.management.note_arrival(assignment_round(self.protocol, phase))
        over = len(self.seats) > self.state.management.maximum
        return "more people than the protocol allows" if over else None

    def _arrive(self, body: dict[str, Any], people: int) -> str | None:
        """Whether people may come now, and from there."""
        management, site = self.state.management, body.get("site")
        sites = management.list_sites(self.protocol)
        if body["first"] != len(self.seats) + 1:
            return "people are numbered wrongly"
        if self.state.run.needs_round or management.paused:
            return "the trial was paused" if management.paused else "no round was opened for them"
        if ("site" in body and not is_site_name(site)) or (sites is not None and site not in sites):
            return "from a site that the protocol does not know"
        if site in management.closed_sites:
            return "from a site that was closed"
        if site is not None:
            management.count_site(site, people)
        return self._advance_time(body) if self._timed else None

    def _advance_time(self, body: dict[str, Any]) -> str | None:
        """Whether the record's time goes on, where it tells any."""
        at = body["at"]
        if type(at) is not int or at < self.state.management.at:
            return "at a time before the last one"
        self.state.management.at = at
        return None

    # --- releases ---------------------------------------------------------------------

    def _released(self, body: dict[str, Any]) -> str | None:
        run, releases = self.state.run, body["releases"]
        due = run.list_due()
        whole = all(_wholes([one["arm"], one["phase"], one["count"]]) for one in releases)
        wanted = RELEASE_FIELDS | {self._level} | (NEAR_FIELDS if run.releases_closeness else set())
        if not whole or any(set(one) != wanted for one in releases):
            raise ValueError
        batches = [[one["arm"], one["phase"], one["count"]] for one in releases]
        if not due or [[*batch] for batch in due] != batches:
            return "no such release was due"
        shown = [one for one in releases if one["sum"] is not None]
        problem = self._check_time(body, due) or self._check_numbers(body, due, shown)
        if problem is None and self.protocol.has_round_keys:
            problem = self.unrevealed.reveal(body["keys"], last_revealed_round(self.protocol, due))
        if problem is not None:
            return problem
        self.released |= {(batch.arm, batch.phase) for batch in due}
        self.state.releases += len(shown)
        totals = [Totals(one["sum"], one.get("near")) for one in shown]
        run.release(*to_rewards(totals, body["unit"]))
        return None

    def _check_time(self, body: dict[str, Any], due: list[ArmBatch]) -> str | None:
        """Whether a release by the clock came before its time."""
        if not self.protocol.has_times:
            return None
        if problem := self._advance_time(body):
            return problem
        round, deadline = (
            assignment_round(self.protocol, due[0].phase),
            float(self.protocol.deadline or 0),
        )
        if not self.state.management.is_past_deadline(round, deadline, body["at"]):
            return "a release before the deadline of its last person"
        self.state.management.note_release(round, body["at"])
        return None

    def _check_numbers(
        self, body: dict[str, Any], due: list[ArmBatch], shown: list[dict[str, Any]]
    ) -> str | None:
        """What is wrong with the numbers, if anything."""
        run, releases = self.state.run, body["releases"]
        empty = Totals(0, 0 if run.releases_closeness else None)
        silent = [total is None for total in run.combine([empty] * len(due))]
        margin = shown[0]["arm"] if any(silent) and shown else None
        named = body.get("margin")
        same = type(named) is type(margin) and named == margin
        if silent != [one["sum"] is None for one in releases] or not same:
            return "not the numbers that were to be released"
        numbers = [one[name] for one in shown for name in ("sum", "near") if name in one]
        grid = run.scale_grid(self.protocol.grid)
        hidden = [one.get("near") for one in releases if one["sum"] is None]
        if any(near is not None for near in hidden) or not self._are_in_units(
            body["unit"], numbers, grid
        ):
            return "not in the units of the protocol"
        unnoised = [one[self._level] for one in releases if one["sum"] is None]
        if unnoised != [None] * len(unnoised) or not all(
            self._is_payable(one[self._level]) for one in shown
        ):
            sign = "ε" if self._level == "epsilon" else "ρ"
            return f"not of the {sign} that the protocol promises"
        sums = [(Totals(one["sum"], one.get("near")), one["count"]) for one in shown]
        noised = self.protocol.strategy.trust_model.noised
        if not noised and not all(run.is_possible(total, size, grid) for total, size in sums):
            return "no outcomes in the range of the protocol have this sum"
        return None

    def _answered(self, body: dict[str, Any]) -> str | None:
        run, unit, answers = self.state.run, body["unit"], body["answers"]
        if not self._in_turn:
            return "this strategy takes no single answers"
        said = [one for answer in answers for one in answer]
        whole = _wholes(said) and _is_unit(unit, self._grid)
        largest = self._largest
        for number, units in answers:
            arm, _ = self.seats[number - 1]
            if number != self.state.cursor + 1 or run.stopped:
                return "an answer that was taken before, or out of turn"
            if not whole or abs(units) > largest:
                return "not in the units of the protocol"
            self.state.cursor = number
            run.record_answer(arm, units * unit)
        self.state.releases += len(answers)
        return None

    # --- managers, and the end -------------------------------------------------------

    def _managed(self, body: dict[str, Any]) -> str | None:
        act = ManagementAction(body["action"], body.get("about"), body["reason"])
        try:
            self.state.management.apply(act, self.state.run, len(self.seats), self.protocol)
        except InvalidInputError as error:
            return f"what a manager may not do: {error}"
        return "it does not say what such an event says" if body.get("about", 0) is None else None

    def _stopped(self, body: dict[str, Any]) -> str | None:
        run = self.state.run
        keys = body.pop("keys", [])
        if canonical(body) != canonical(self.state.end()):
            return "the strategy would have ended otherwise"
        if problem := self.unrevealed.reveal(keys, ALL_ROUNDS):
            return problem
        if run.stopped or self.state.management.ended:
            return None
        if not (run.is_finished or len(self.seats) >= self.state.management.maximum):
            return "an end before the maximum"
        awaited = self.count_unreleased() if run.releases_each_answer else len(run.list_due())
        if awaited:
            return "an end before a release that was to come"
        return None

    @cached_property
    def _largest(self) -> float:
        """No answer lies beyond, in units."""
        noise = response_noise(self.protocol.strategy)
        return min(compute_largest_response(noise, self._grid), 2**63 - 1)

    def _are_in_units(self, unit: Any, values: list[Any], grid: int) -> bool:
        """Whether these are whole numbers of such units, of 64 bits as noise is."""
        whole = _wholes(values) and max(map(abs, values), default=0) < 2**63
        return whole and _is_unit(unit, grid)

    def _is_payable(self, cost: float | None) -> bool:
        """Whether a release may state this ε, or ρ: the promised one, but for
        rounding.
        """
        strategy = self.protocol.strategy
        _, promised = strategy.level
        if promised is None or cost is None:
            return promised is cost
        rounded = 1e-6 if strategy.is_pure else MAX_GAUSSIAN_ROUNDING
        return type(cost) is float and promised * (1 - rounded) <= cost <= promised


def _is_unit(unit: Any, grid: int) -> bool:
    """Whether this is the unit of what there are so many of in a whole outcome."""
    return type(unit) is float and unit == 1 / grid


def _wholes(values: Sequence[Any]) -> bool:
    """Whether these are whole numbers, and none a truth value."""
    return set(map(type, values)) <= {int}


Step = Callable[[Replay, dict[str, Any]], str | None]
STEPS: dict[str, Step] = {
    "created": Replay._created,
    "opened": Replay._opened,
    "assigned": Replay._assigned,
    "released": Replay._released,
    "answered": Replay._answered,
    "managed": Replay._managed,
    "stopped": Replay._stopped,
}
"""What is checked of an event, by its kind."""
