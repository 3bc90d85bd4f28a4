"""The verbs of a live trial: what callers may do, with the arguments, the result and
the roles of each.

A local trial runs a verb in a transaction, a remote one posts it, the service makes a
route of it, and OpenAPI and the table of roles are made from this table.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from discreet.errors import InvalidInputError
from discreet.trials.inputs import (
    MAX_BATCH,
    check_each,
    check_id,
    check_key,
    check_outcome,
    check_outcomes,
    check_response,
    check_takes_amendments,
    check_takes_outcomes,
    check_takes_responses,
    normalize_identifiers,
)
from discreet.trials.names import normalize_name, read_site
from discreet.trials.operations import check_reason
from discreet.trials.protocol import Protocol
from discreet.trials.responses import Response
from discreet.trials.settings import (
    MAX_PARTICIPANTS,
)
from discreet.trials.status import (
    AskResult,
    Assignment,
    OpenAssignment,
    ParticipantView,
    TellResult,
)
from discreet.validation import check_whole, quote

MANAGER, SITE, MONITOR, PARTICIPANT = "manager", "site", "monitor", "participant"
ROLES = (MANAGER, SITE, MONITOR, PARTICIPANT)
"""Roles of tokens."""
STAFF = frozenset({MANAGER, SITE})

Text = Annotated[str, msgspec.Meta(max_length=2000)]
"""A name, an id, a response or a reason: a longer text is refused when it is read."""


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of a verb; unknown names are refused."""

    def checked(self, protocol: Protocol) -> Any:
        """Return the arguments as they are carried out or sent; refuse those that the
        protocol does not take.
        """
        return self

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the assignments that the verb is about."""
        return ()

    @property
    def identity(self) -> Sequence[str | int | None]:
        """What a repetition with the same key must have in common; never an outcome,
        since its hash is stored.
        """
        return self.ids


class NoBody(Body):
    """No arguments."""


class AskBody(Body):
    """Participants who have arrived."""

    n: int = 1
    participants: list[Text] | None = None
    site: Text | None = None
    participant: Text | None = None

    def checked(self, protocol: Protocol) -> "AskBody":
        """Return the arguments with the number of participants."""
        if self.participant is not None and self.participants is not None:
            raise InvalidInputError("give participant or participants, not both")
        site, named = None if self.site is None else read_site(self.site), self.named
        count = self.n if named is None else len(normalize_identifiers(named))
        count = check_whole("n", count, least=1, most=MAX_BATCH)
        listed = None if self.participants is None else list(self.participants)
        return AskBody(count, listed, site, self.participant)

    @property
    def named(self) -> Sequence[str] | None:
        """Identifiers of the participants, if they are named."""
        return self.participants if self.participant is None else [self.participant]

    @property
    def identifiers(self) -> list[bytes]:
        """Identifiers as they are hashed."""
        return normalize_identifiers(self.named or ())


class TellBody(Body):
    """Outcomes by id; null: the outcome will not come. That it is missing may be the
    outcome, so no address or log line may tell.
    """

    outcomes: dict[Text, float | None]

    def checked(self, protocol: Protocol) -> "TellBody":
        """Return the outcomes within the range of the protocol."""
        check_takes_outcomes(protocol)
        check_outcomes(self.outcomes)
        return TellBody(check_each(self.outcomes, lambda value: check_outcome(value, protocol)))

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the assignments."""
        return tuple(self.outcomes)


class AnswerBody(Body):
    """Randomised responses by id, each as `discreet respond` writes it; null: the
    response will not come.
    """

    answers: dict[Text, Text | None]

    def checked(self, protocol: Protocol) -> "AnswerBody":
        """Refuse responses that were not made as the protocol says."""
        check_takes_responses(protocol)
        check_outcomes(self.answers)
        check_each(self.answers, lambda text: check_response(Response.parse(text), protocol))
        return self

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the assignments."""
        return tuple(self.answers)


class IdBody(Body):
    """One assignment."""

    id: Text

    def checked(self, protocol: Protocol) -> "IdBody":
        """Refuse an id that is no text."""
        check_id(self.id)
        return self

    @property
    def ids(self) -> tuple[str, ...]:
        """The id."""
        return (self.id,)


class AmendBody(IdBody):
    """An outcome in place of the one that was recorded."""

    outcome: float

    def checked(self, protocol: Protocol) -> "AmendBody":
        """Return the outcome within the range of the protocol."""
        check_takes_amendments(protocol)
        return AmendBody(check_id(self.id), check_outcome(self.outcome, protocol))


class UnblindBody(IdBody):
    """Whose arm must be known now, and why."""

    reason: Text

    def checked(self, protocol: Protocol) -> "UnblindBody":
        """Refuse a reason that cannot be published."""
        return UnblindBody(
            check_id(self.id), check_reason(normalize_name("the reason", self.reason))
        )

    @property
    def identity(self) -> Sequence[str | int | None]:
        """The id and the reason."""
        return (self.id, self.reason)


class ManageBody(Body):
    """A management action, and why."""

    action: Text
    reason: Text
    about: Text | int | None = None
    seen: int | None = None
    """Number of actions in the status on which the decision was based."""

    def checked(self, protocol: Protocol) -> "ManageBody":
        """Return the arguments in plain types. What can be done depends on the state of
        the trial, and is checked there.
        """
        if self.seen is not None:
            check_whole("seen", self.seen, least=0)
        about = normalize_name("what it is about", self.about)
        if about is not None and type(about) not in (str, int):
            raise InvalidInputError(f"about must be a text or a whole number; got {quote(about)}")
        action = self.action if isinstance(self.action, str) else quote(self.action)
        reason = normalize_name("the reason", self.reason)
        if not isinstance(reason, str):
            check_reason(reason)
        return ManageBody(action, reason, about, self.seen)

    @property
    def identity(self) -> Sequence[str | int | None]:
        """The action and the reason."""
        return (self.action, self.about, self.reason)


class SiteBody(Body):
    """One site, or all that the caller may see."""

    site: Text | None = None

    def checked(self, protocol: Protocol) -> "SiteBody":
        """Refuse what is no name of a site."""
        return SiteBody(read_site(self.site))


class NumberBody(Body):
    """A participant's number in the trial."""

    number: int

    def checked(self, protocol: Protocol) -> "NumberBody":
        """Refuse what is no number of a participant."""
        check_whole("number", self.number, least=1, most=MAX_PARTICIPANTS)
        return self


class KeyBody(Body):
    """The idempotency key of an `ask`."""

    key: Text

    def checked(self, protocol: Protocol) -> "KeyBody":
        """Refuse what is no key."""
        if check_key(self.key) is None:
            raise InvalidInputError("key must be the key of an earlier request")
        return self


class Done(msgspec.Struct):
    """That something was done."""

    done: bool = True


class RevealedArm(msgspec.Struct):
    """The arm of a participant."""

    arm: str


class Expired(msgspec.Struct):
    """How many numbers `expire` released."""

    releases: int


class Answered(msgspec.Struct):
    """Whether a request was answered."""

    answered: bool


Arguments = TypeVar("Arguments", bound=Body)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Verb(Generic[Arguments, Result]):
    """A row of the table."""

    name: str
    body: type[Arguments]
    result: type[Result]
    roles: frozenset[str]
    """Roles that may do it."""
    help: str
    """One sentence for the API's description and the table of roles."""
    is_repeatable: bool = False
    """True if nothing depends on how often it is done, so that it takes no key."""


ASK = Verb("ask", AskBody, AskResult, STAFF, "Assign participants who have arrived.")
TELL = Verb("tell", TellBody, TellResult, STAFF, "Record outcomes, or say that they will not come.")
ANSWER = Verb(
    *("answer", AnswerBody, TellResult, STAFF | {PARTICIPANT}),
    "Record randomised responses, or say that they will not come.",
)
AMEND = Verb("amend", AmendBody, Done, STAFF, "Correct an outcome until it is released.")
REISSUE = Verb("reissue", IdBody, Assignment, STAFF, "Give an assignment a new id.")
UNBLIND = Verb(
    *("unblind", UnblindBody, RevealedArm, STAFF),
    "Reveal the arm of a participant in a blinded trial; the record says so, with the reason.",
)
LIST_OPEN = Verb(
    *("list-open", SiteBody, list[OpenAssignment], STAFF),
    "List the assignments without an outcome.",
    is_repeatable=True,
)
FIND = Verb(
    *("find", NumberBody, OpenAssignment, STAFF),
    "Find the assignment of a participant by number.",
    is_repeatable=True,
)
WAS_ANSWERED = Verb(
    *("was-answered", KeyBody, Answered, STAFF),
    "Say whether an `ask` with this key was answered.",
    is_repeatable=True,
)
VIEW = Verb(
    *("view", IdBody, ParticipantView, frozenset({PARTICIPANT})),
    "Show what a participant may know about the own answer.",
    is_repeatable=True,
)
MANAGE = Verb(
    *("manage", ManageBody, Done, frozenset({MANAGER})),
    "Pause, resume, stop, drop an arm, close a site, …, with a reason.",
)
LIST_CODES = Verb(
    *("list-codes", NoBody, dict[str, str], frozenset({MANAGER})),
    "List the arm behind the code of each participant of a blinded trial.",
    is_repeatable=True,
)
EXPIRE = Verb(
    *("expire", NoBody, Expired, frozenset({MANAGER})),
    "Count late outcomes as the worst, and make the releases that are due.",
    is_repeatable=True,
)
VERBS: tuple[Verb[Any, Any], ...] = (
    *(ASK, TELL, ANSWER, AMEND, REISSUE, UNBLIND, LIST_OPEN, FIND, WAS_ANSWERED, VIEW),
    *(MANAGE, LIST_CODES, EXPIRE),
)


class TrialVerbs(ABC):
    """The verbs as methods, for callers of local and remote trials alike.

    Every method that changes something takes a `key`, a text of the caller's own. If
    the answer was lost, repeat the call with the same key: it is done only once, and
    always gets the same answer.
    """

    protocol: Protocol

    @abstractmethod
    def _call(self, verb: Verb[Arguments, Result], body: Arguments, key: Any = None) -> Result:
        """Do a verb, and return its result."""

    def ask(
        self,
        n: int = 1,
        participants: Sequence[str] | None = None,
        site: str | None = None,
        participant: str | None = None,
        key: str | None = None,
    ) -> AskResult:
        """Return up to n assignments of one round: fewer if the round is full before
        that, and none while the trial waits for outcomes or is paused.

        Ask when a participant is there: everybody who is assigned is in the trial.
        `participant` is an identifier of theirs, or `participants` those of the next
        ones; only keyed hashes of them are kept. The protocol says what happens if
        somebody comes again. `site` is where they are enrolled, which is part of the
        record.

        In the result, `not_assigned` are the named participants who got no place: ask
        for them again later. `key` is an idempotency key. If the answer is lost, repeat
        the call exactly, with the participants and the same key: nobody is assigned
        twice, and the answer is the same. (By the key alone the assignments are found,
        but not whose they are.)

        Before that, late outcomes are counted as the worst, and a round is opened if
        none is open.
        """
        return self._call(ASK, AskBody(n, participants, site, participant), key)  # type: ignore[arg-type]

    def tell(self, id: str, outcome: float, key: str | None = None) -> TellResult:
        """Record one outcome. Recording it again changes nothing and looks the same,
        whatever the outcome: the id is then in `already_told`. `amend` corrects an
        outcome until it is released. A repeated call with the same `key` is answered as
        it was the first time.
        """
        check_takes_outcomes(self.protocol)
        check_outcome(outcome, self.protocol)  # None, as in tell_many, is a mistake here
        return self.tell_many({check_id(id): outcome}, key)

    def tell_many(self, outcomes: Mapping[str, float | None], key: str | None = None) -> TellResult:
        """Record many outcomes at once; None says that one will not come. Either all of
        them are accepted or, with an error, none; it says which entry is wrong, by its
        place. Return how many were new, and which ids were recorded before or came too
        late.
        """
        return self._call(TELL, TellBody(outcomes), key)  # type: ignore[arg-type]

    def answer(self, id: str, response: Response, key: str | None = None) -> TellResult:
        """Record one randomised response, in a trial with local trust."""
        check_takes_responses(self.protocol)
        check_response(response, self.protocol)
        return self.answer_many({check_id(id): response}, key)

    def answer_many(
        self, responses: Mapping[str, Response | None], key: str | None = None
    ) -> TellResult:
        """Record many randomised responses at once, as `tell_many` does."""
        check_takes_responses(self.protocol)
        check_outcomes(responses)
        check_each(responses, lambda response: check_response(response, self.protocol))
        words = {id: None if one is None else str(one) for id, one in responses.items()}
        return self._call(ANSWER, AnswerBody(words), key)

    def miss(self, id: str, key: str | None = None) -> TellResult:
        """Say that an outcome will not come. If it was recorded before, or its deadline
        has passed, nothing changes, and the result says so. What is kept of the call is
        what is kept of `tell`: that an outcome is missing may be the outcome.
        """
        if self.protocol.strategy.trust_model.randomised:
            return self.answer_many({check_id(id): None}, key)
        return self.tell_many({check_id(id): None}, key)

    def amend(self, id: str, outcome: float, key: str | None = None) -> None:
        """Correct an outcome that was recorded or is missing, until it is released.

        What can be seen does not depend on whether it was recorded or is missing.
        """
        self._call(AMEND, AmendBody(id, outcome), key)

    def reissue(self, id: str, key: str | None = None) -> Assignment:
        """Return the same assignment under a new id, if others have seen the old one,
        which then no longer works.
        """
        return self._call(REISSUE, IdBody(id), key)

    def unblind(self, id: str, reason: str, key: str | None = None) -> str:
        """Return the arm of a participant in a blinded trial, for somebody who must
        know it now. The record says that it was asked for, with the reason.
        """
        return self._call(UNBLIND, UnblindBody(id, reason), key).arm

    def open_assignments(self, site: str | None = None) -> list[OpenAssignment]:
        """Return the assignments without an outcome, in order; of one site, or of all.

        For staff only: anyone who has an id can record its outcome, and nobody else may
        know whether an outcome is in. The audit trail notes who looked.
        """
        return self._call(LIST_OPEN, SiteBody(site))

    def was_answered(self, key: str) -> bool:
        """Return whether an `ask` with this key was answered."""
        return self._call(WAS_ANSWERED, KeyBody(key)).answered

    def manage(
        self,
        action: str,
        reason: str,
        about: str | int | None = None,
        seen: int | None = None,
        key: str | None = None,
    ) -> None:
        """Carry out a management action: `pause`, `resume`, `stop`, `raise-maximum` and
        `lower-maximum` (about how many participants), `close-site` and `open-site`
        (about which site), `drop-arm` and `add-arm` (about which arm), `set-clock`.

        Every action goes into the public record, with the reason. The docs page "What
        the guarantee means" says what each means for the guarantee. `seen` is the
        number of `actions` in the status on which the decision was based; the action is
        refused if another manager has acted since.
        """
        self._call(MANAGE, ManageBody(action, reason, about, seen), key)

    def list_codes(self) -> dict[str, str]:
        """Return the arm behind the code of each participant of a blinded trial, in the
        order of assignment, for managers and for those who hand out what participants
        are given. The audit trail notes who looked.
        """
        return self._call(LIST_CODES, NoBody())

    def expire(self) -> int:
        """Count outcomes past their deadline as the worst, and make the releases that
        are due (as `ask` does). Return how many numbers were released.
        """
        return self._call(EXPIRE, NoBody()).releases
