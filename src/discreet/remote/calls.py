"""The calls of a trial on another machine, as steps: what is said is checked here as a
local trial does, then sent; the rest is checked there, with the same sentences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from discreet.arrays import Progress
from discreet.errors import InvalidInputError
from discreet.remote.reading import UnreadableError, made, plain, read, read_list
from discreet.remote.steps import HEAD, Asked, Got, Service, Steps, Work, called
from discreet.trials.chain import Head, check_goes_on
from discreet.trials.conduct import check_reason
from discreet.trials.intake import (
    act_of,
    check_amends,
    check_answers,
    check_many,
    check_request,
    check_response,
    check_tells,
    looks_like_id,
    one_id,
    read_each,
    unknown_id,
    wanted_of,
)
from discreet.trials.names import check_place, plain_name
from discreet.trials.outcomes import Response
from discreet.trials.protocol import Protocol
from discreet.trials.status import (
    Assignment,
    Batch,
    Entry,
    OpenAssignment,
    Status,
    Told,
    Verification,
)
from discreet.trials.verify import verify_transcript
from discreet.validate import check_progress, check_whole, quoted

THERE = "the service says: "


@dataclass
class Far:
    """A trial on another machine, as we know it."""

    service: Service
    path: str
    """Of the trial, in the API."""
    protocol: Protocol
    protocol_hash: str
    seen: Head
    """Of the longest record that was seen: it can only grow."""
    who: str
    role: str
    site: str | None

    def see(self, found: Head, before: Head) -> None:
        """Keep in mind a head; refuse one that is older than what was known when the
        request for it was made.
        """
        check_goes_on(self.protocol.name, before, found)
        if found.seq > self.seen.seq:
            self.seen = found


# --- ask and tell ---------------------------------------------------------------------


def ask(
    far: Far,
    n: int = 1,
    people: Sequence[str] | None = None,
    site: str | None = None,
    person: str | None = None,
    request: str | None = None,
) -> Steps[Batch]:
    """Up to n assignments of one round, as `Trial.ask` gives them."""
    wanted = wanted_of(n, people, site, person, request, "")
    named = None if wanted.people is None else [*wanted.people]
    said = {"n": wanted.how_many, "people": named, "site": wanted.site}
    return read(Batch, (yield from _post(far, "ask", said, wanted.request)))


def tell(far: Far, id: str, outcome: float, request: str | None = None) -> Steps[Told]:
    """Tell one outcome."""
    return (yield from tell_many(far, {one_id(id): outcome}, request))


def tell_many(far: Far, outcomes: Mapping[str, float], request: str | None = None) -> Steps[Told]:
    """Tell many outcomes at once: all of them are accepted or, with an error, none."""
    check_tells(far.protocol)
    check_many(outcomes)
    said = read_each(outcomes, lambda one: _outcome(one, far.protocol))
    key = check_request(request)
    if not said:
        return Told(0)
    _check_ids([*said])
    return read(Told, (yield from _post(far, "tell", {"outcomes": said}, key)))


def answer(far: Far, id: str, response: Response, request: str | None = None) -> Steps[Told]:
    """Tell one randomised response, in a trial with local trust."""
    return (yield from answer_many(far, {one_id(id): response}, request))


def answer_many(
    far: Far, responses: Mapping[str, Response], request: str | None = None
) -> Steps[Told]:
    """Tell many randomised responses at once."""
    check_answers(far.protocol)
    check_many(responses)
    read_each(responses, lambda one: check_response(one, far.protocol))
    key = check_request(request)
    if not responses:
        return Told(0)
    _check_ids([*responses])
    said = {id: str(one) for id, one in responses.items()}
    return read(Told, (yield from _post(far, "answer", {"answers": said}, key)))


def amend(far: Far, id: str, outcome: float, request: str | None = None) -> Steps[None]:
    """Correct an outcome that was told (or counts as a failure), until it is
    released.
    """
    check_amends(far.protocol)
    said = {"id": one_id(id), "outcome": _outcome(outcome, far.protocol)}
    key = check_request(request)
    _check_ids([id])
    yield from _post(far, "amend", said, key)


def miss(far: Far, id: str, request: str | None = None) -> Steps[Told]:
    """Say that an outcome will not come."""
    wanted, key = one_id(id), check_request(request)
    _check_ids([wanted])
    local = far.protocol.strategy.trust_model.randomised
    call, name = ("answer", "answers") if local else ("tell", "outcomes")
    return read(Told, (yield from _post(far, call, {name: {wanted: None}}, key)))


def reissue(far: Far, id: str, request: str | None = None) -> Steps[Assignment]:
    """The same assignment under a new id, if the old one was seen by others."""
    return read(Assignment, (yield from _about(far, "reissue", id, request)))


def unblind(far: Far, id: str, reason: str, request: str | None = None) -> Steps[str]:
    """The arm of a person where staff see codes; the record notes it and the reason."""
    wanted, why = one_id(id), plain_name("the reason", reason)
    key = check_request(request)
    _check_ids([wanted])
    said = {"id": wanted, "reason": check_reason(why)}
    found = plain((yield from _post(far, "unblind", said, key)))
    return str(_field(found, "arm", str))


def open_assignments(far: Far, site: str | None = None) -> Steps[list[OpenAssignment]]:
    """The assignments whose outcome is not in, in order; of one site, or of all."""
    place = check_place(site)
    query = "" if place is None else f"?site={quote(place, safe='')}"
    return read_list(OpenAssignment, (yield from _get(far, f"/open{query}")))


def asked(far: Far, request: str) -> Steps[bool]:
    """Whether a request with this key has been answered."""
    key = check_request(request)
    found = plain((yield from _get(far, "/asked", key)))
    return key is not None and bool(_field(found, "asked", bool))


# --- operators ------------------------------------------------------------------------


def operate(
    far: Far,
    action: str,
    reason: str,
    about: str | int | None = None,
    seen: int | None = None,
    request: str | None = None,
) -> Steps[None]:
    """Do what an operator may do, as `Trial.operate` says."""
    act = act_of(action, reason, about)
    acts = None if seen is None else check_whole("seen", seen, least=0)
    key = check_request(request)
    if act.about is not None and type(act.about) not in (str, int):
        raise InvalidInputError(f"about must be a text or a whole number; got {quoted(about)}")
    why = act.reason if isinstance(act.reason, str) else check_reason(act.reason)
    said = {"action": act.action, "reason": why, "about": act.about, "seen": acts}
    yield from _post(far, "operate", said, key)


def codes(far: Far) -> Steps[dict[str, str]]:
    """The arm of each code, in a trial in which staff see codes."""
    found = plain((yield from _get(far, "/codes")))
    if not isinstance(found, dict):
        raise UnreadableError
    return {str(code): str(arm) for code, arm in found.items()}


def expire(far: Far) -> Steps[int]:
    """Give up the assignments whose deadline or lease has passed, and release what is
    due by the clock. Returns how many numbers were released.
    """
    found = plain((yield from _post(far, "expire", None, None, once=False)))
    return int(_field(found, "releases", int))


def journal(far: Far, most: int = 1000) -> Steps[list[Entry]]:
    """The last calls that changed or handed out anything, the newest first."""
    count = check_whole("most", most, least=1, most=10**6)
    return read_list(Entry, (yield from _get(far, f"/journal?most={count}")))


# --- what anyone may see --------------------------------------------------------------


def status(far: Far) -> Steps[Status]:
    """The trial as the caller may see it: sites of a blinded trial see nothing of arms
    before the end.
    """
    before = far.seen
    found = read(Status, (yield from _get(far, "")))
    far.see(Head.parse(found.head), before)
    return found


def transcript(far: Far) -> Steps[dict[str, Any]]:
    """What may be published."""
    before = far.seen
    found = plain((yield from _get(far, "/transcript", slow=True)))
    said = made(Status, _field(found, "status", dict))
    far.see(Head.parse(said.head), before)
    whole: dict[str, Any] = found
    return whole


def verify(
    far: Far, head: str | None = None, progress: Progress | None = None
) -> Steps[Verification]:
    """Recompute the chain, and the state from the public record alone. This is done
    here, from the transcript, so that nobody need trust the service. It also checks
    that the record continues from every head that was seen.

    Only the service can see whether assignments, keys and counts in the database agree
    with the record, so it is asked too; what it finds begins with "the service says".
    """
    check_progress(progress)
    before = far.seen
    if head is not None:
        Head.parse(head)
    said = yield from transcript(far)
    known = head or str(before)
    found: Verification = yield Work(lambda: verify_transcript(said, known, progress))
    problems = list(found.problems)
    if said["protocol_hash"] != far.protocol_hash:
        problems.append("the protocol is not the one that the trial was opened with")
    if head is not None and str(before) not in _heads(said):
        problems.append(
            f"the record does not continue from event {before.seq} as it was seen before"
        )
    there = plain((yield from _get(far, "/verify", slow=True)))
    problems += [f"{THERE}{one}" for one in _field(there, "problems", list)]
    return Verification(found.events, found.head, tuple(problems))


def _heads(said: dict[str, Any]) -> set[str]:
    return {str(Head(one["seq"], one["hash"])) for one in said["events"]}


# --- how ------------------------------------------------------------------------------


def _post(far: Far, call: str, said: Any, request: str | None, once: bool = True) -> Steps[Got]:
    path = f"{far.path}/{call}"
    return (yield from _sent(far, Asked("POST", path, said, request, once)))


def _get(far: Far, path: str, request: str | None = None, slow: bool = False) -> Steps[Got]:
    path = f"{far.path}{path}"
    return (yield from _sent(far, Asked("GET", path, request=request, slow=slow)))


def _sent(far: Far, asked: Asked) -> Steps[Got]:
    """Make a request, and see to it that the record has grown since the last one."""
    before = far.seen
    got = yield from called(far.service, asked._replace(known=str(before)))
    if (head := got.headers.get(HEAD)) is not None:
        far.see(Head.parse(head), before)
    return got


def _about(far: Far, call: str, id: str, request: str | None) -> Steps[Got]:
    wanted, key = one_id(id), check_request(request)
    _check_ids([wanted])
    return (yield from _post(far, call, {"id": wanted}, key))


def _check_ids(ids: Sequence[str]) -> None:
    """Refuse what can be no id: it may be an outcome in the wrong place, and need not
    travel.
    """
    for id in ids:
        if not looks_like_id(id):
            raise unknown_id(id, ids)


def _outcome(outcome: float, protocol: Protocol) -> float:
    """An outcome as it is sent; refuses one that the protocol does not take."""
    protocol.scale.reward(outcome, protocol.outside)
    value = float(outcome)
    return min(max(value, protocol.low), protocol.high)


def _field(found: Any, name: str, kind: type) -> Any:
    if not isinstance(found, dict) or type(found.get(name)) is not kind:
        raise UnreadableError
    return found[name]
