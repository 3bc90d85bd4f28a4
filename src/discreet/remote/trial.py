"""Trials on another machine. What is passed to a call is checked here as a local trial
does, then sent; the rest is checked there, with the same sentences.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn
from urllib.parse import quote

from discreet.arrays import Progress
from discreet.errors import InvalidInputError
from discreet.remote.address import PATIENCE, TRIAL, way_to_trial
from discreet.remote.http import HEAD, ApiRequest, Got, HttpClient
from discreet.remote.reading import UnreadableError, made, plain, read, read_list
from discreet.remote.service import RemoteState, create_trial, open_trial, warn_here
from discreet.strategies.strategy import Strategy
from discreet.trials.chain import Head, check_goes_on
from discreet.trials.conduct import check_reason
from discreet.trials.draft import new_protocol
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
from discreet.trials.names import check_place, in_path, plain_name
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

NAMED = (
    "the token says who calls the service, and for which site: leave who out, or use another token"
)
THERE = "the service says: "


class RemoteTrial:
    """A trial on another machine, with the methods of a local `Trial`.

    `Trial.open` returns one if the address begins with https://. Every call that
    changes something has a key of its own (or the caller's `request`). While the
    service cannot be reached, is busy, or its answer is lost, the call is repeated
    automatically, with pauses, for up to `patience` seconds in all; the service does it
    only once. If there is no answer by then, a `StoreError` names the key with which
    the call can be repeated later. Any number of threads may share one; code with
    `async` calls it with `asyncio.to_thread`.
    """

    files: tuple[str, ...] = ()
    """Files of the database on this machine: none."""
    site: str | None = None
    """The site that the token is bound to; None: to none."""

    def __init__(self, client: HttpClient, state: RemoteState) -> None:
        self.protocol = state.protocol
        """What the trial was started with."""
        self.protocol_hash = state.protocol_hash
        self.who, self.role, self.site = state.who, state.role, state.site
        """Who calls, for the journal: what the token is called, and what it allows."""
        self._client = client
        self._path = state.path
        self._seen = state.head
        """Of the longest record that was seen: it can only grow."""

    @classmethod
    def open(
        cls,
        url: str,
        name: str | None = None,
        head: str | None = None,
        who: str | None = None,
        token: str | None = None,
        ca: str | None = None,
        patience: float = PATIENCE,
    ) -> "RemoteTrial":
        """Open a trial: by the address of its service and its name, or by its own
        address, such as https://trial.example.org/t/dose. With `head`, as `status` gave
        it, a record older than that is refused.

        The token is read from DISCREET_TOKEN, or from the file that DISCREET_TOKEN_FILE
        names, if none is given. It only ever travels encrypted; http:// is accepted
        only for this machine. `ca` is a file of certificate authorities to trust, in
        place of the usual ones.
        """
        _check_nobody(who)
        way, called = way_to_trial(url, name, token, ca, patience)
        client = HttpClient(way)
        return cls(client, open_trial(client, called, head))

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        arms: Sequence[str],
        strategy: Strategy,
        max_people: int,
        token: str | None = None,
        ca: str | None = None,
        patience: float = PATIENCE,
        **settings: Any,
    ) -> "RemoteTrial":
        """Start a trial, or go on with one of this name and these settings, which are
        those of `Trial.create`.
        """
        body = _settings(name, arms, strategy, max_people, settings)
        way, _ = way_to_trial(url, body["name"], token, ca, patience)
        client = HttpClient(way)
        warned = create_trial(client, body)
        trial = cls(client, open_trial(client, body["name"]))
        warn_here(warned)
        return trial

    def __repr__(self) -> str:
        """Name, strategy and place; nothing that was told, and no token."""
        name, strategy = self.protocol.name, self.protocol.strategy.name
        return f"RemoteTrial({name!r}, {strategy}, {self.place!r})"

    def close(self) -> None:
        """Close the connections. Nothing is lost without it; the next call opens new
        ones.
        """
        self._client.close()

    @property
    def place(self) -> str:
        """The address of the trial."""
        return f"{self._client.way.base}{TRIAL}{in_path(self.protocol.name)}"

    def caller(self, who: str, site: str | None = None) -> NoReturn:
        """Not here: another caller has another token."""
        raise InvalidInputError(NAMED)

    # --- ask and tell -----------------------------------------------------------------

    def ask(
        self,
        n: int = 1,
        people: Sequence[str] | None = None,
        site: str | None = None,
        person: str | None = None,
        request: str | None = None,
    ) -> Batch:
        """Return up to n assignments of one round, as `Trial.ask` gives them."""
        wanted = wanted_of(n, people, site, person, request)
        names = None if wanted.people is None else [*wanted.people]
        body = {"n": wanted.how_many, "people": names, "site": wanted.site}
        return read(Batch, self._post("ask", body, wanted.request))

    def tell(self, id: str, outcome: float, request: str | None = None) -> Told:
        """Tell one outcome."""
        check_tells(self.protocol)
        _outcome(outcome, self.protocol)  # None, as in tell_many, is a mistake here
        return self.tell_many({one_id(id): outcome}, request)

    def tell_many(self, outcomes: Mapping[str, float | None], request: str | None = None) -> Told:
        """Tell many outcomes at once: all of them are accepted or, with an error,
        none.
        """
        check_tells(self.protocol)
        check_many(outcomes)
        told = read_each(outcomes, lambda one: _outcome(one, self.protocol))
        key = check_request(request)
        if not told:
            return Told(0)
        _check_ids([*told])
        return read(Told, self._post("tell", {"outcomes": told}, key))

    def answer(self, id: str, response: Response, request: str | None = None) -> Told:
        """Tell one randomised response, in a trial with local trust."""
        check_answers(self.protocol)
        check_response(response, self.protocol)
        return self.answer_many({one_id(id): response}, request)

    def answer_many(
        self, responses: Mapping[str, Response | None], request: str | None = None
    ) -> Told:
        """Tell many randomised responses at once."""
        check_answers(self.protocol)
        check_many(responses)
        read_each(responses, lambda one: check_response(one, self.protocol))
        key = check_request(request)
        if not responses:
            return Told(0)
        _check_ids([*responses])
        answers = {id: None if one is None else str(one) for id, one in responses.items()}
        return read(Told, self._post("answer", {"answers": answers}, key))

    def amend(self, id: str, outcome: float, request: str | None = None) -> None:
        """Correct an outcome that was told (or counts as a failure), until it is
        released.
        """
        check_amends(self.protocol)
        body = {"id": one_id(id), "outcome": _outcome(outcome, self.protocol)}
        key = check_request(request)
        _check_ids([id])
        self._post("amend", body, key)

    def miss(self, id: str, request: str | None = None) -> Told:
        """Say that an outcome will not come."""
        wanted, key = one_id(id), check_request(request)
        _check_ids([wanted])
        local = self.protocol.strategy.trust_model.randomised
        call, name = ("answer", "answers") if local else ("tell", "outcomes")
        return read(Told, self._post(call, {name: {wanted: None}}, key))

    def reissue(self, id: str, request: str | None = None) -> Assignment:
        """Give the same assignment a new id, if the old one was seen by others."""
        wanted, key = one_id(id), check_request(request)
        _check_ids([wanted])
        return read(Assignment, self._post("reissue", {"id": wanted}, key))

    def unblind(self, id: str, reason: str, request: str | None = None) -> str:
        """Return the arm of a person where staff see codes; the record notes it and the
        reason.
        """
        wanted, why = one_id(id), plain_name("the reason", reason)
        key = check_request(request)
        _check_ids([wanted])
        body = {"id": wanted, "reason": check_reason(why)}
        return str(_field(plain(self._post("unblind", body, key)), "arm", str))

    def open_assignments(self, site: str | None = None) -> list[OpenAssignment]:
        """Return the assignments whose outcome is not in, in order; of one site, or of
        all.
        """
        place = check_place(site)
        query = "" if place is None else f"?site={quote(place, safe='')}"
        return read_list(OpenAssignment, self._get(f"/open{query}"))

    def asked(self, request: str) -> bool:
        """Return whether a request with this key has been answered."""
        key = check_request(request)
        answer = plain(self._get("/asked", key))
        return key is not None and bool(_field(answer, "asked", bool))

    # --- operators --------------------------------------------------------------------

    def operate(
        self,
        action: str,
        reason: str,
        about: str | int | None = None,
        seen: int | None = None,
        request: str | None = None,
    ) -> None:
        """Do what an operator may do, as `Trial.operate` says."""
        act = act_of(action, reason, about)
        acts = None if seen is None else check_whole("seen", seen, least=0)
        key = check_request(request)
        if act.about is not None and type(act.about) not in (str, int):
            raise InvalidInputError(f"about must be a text or a whole number; got {quoted(about)}")
        why = act.reason if isinstance(act.reason, str) else check_reason(act.reason)
        body = {"action": act.action, "reason": why, "about": act.about, "seen": acts}
        self._post("operate", body, key)

    def codes(self) -> dict[str, str]:
        """Return the arm of each code, in a trial in which staff see codes."""
        answer = plain(self._get("/codes"))
        if not isinstance(answer, dict):
            raise UnreadableError
        return {str(code): str(arm) for code, arm in answer.items()}

    def expire(self) -> int:
        """Count outcomes past their deadline as the worst, and make the releases that
        are due. Returns how many numbers were released.
        """
        answer = plain(self._post("expire", None, None, once=False))
        return int(_field(answer, "releases", int))

    def journal(self, most: int = 1000) -> list[Entry]:
        """Return the last calls that changed or handed out anything, the newest
        first.
        """
        count = check_whole("most", most, least=1, most=10**6)
        return read_list(Entry, self._get(f"/journal?most={count}"))

    # --- what anyone may see ----------------------------------------------------------

    def status(self) -> Status:
        """Return the trial as the caller may see it: sites of a blinded trial see
        nothing of arms before the end.
        """
        before = self._seen
        status = read(Status, self._get(""))
        self._see(Head.parse(status.head), before)
        return status

    def transcript(self) -> dict[str, Any]:
        """Return what may be published."""
        before = self._seen
        transcript: dict[str, Any] = plain(self._get("/transcript", slow=True))
        status = made(Status, _field(transcript, "status", dict))
        self._see(Head.parse(status.head), before)
        return transcript

    def verify(self, head: str | None = None, progress: Progress | None = None) -> Verification:
        """Recompute the chain, and the state from the public record alone. This is done
        here, from the transcript, so that nobody need trust the service. It also checks
        that the record continues from every head that was seen.

        Only the service can see whether assignments, keys and counts in the database
        agree with the record, so it is asked too; what it finds begins with "the
        service says".
        """
        check_progress(progress)
        before = self._seen
        if head is not None:
            Head.parse(head)
        transcript = self.transcript()
        found = verify_transcript(transcript, head or str(before), progress)
        problems = list(found.problems)
        if transcript["protocol_hash"] != self.protocol_hash:
            problems.append("the protocol is not the one that the trial was opened with")
        heads = {str(Head(one["seq"], one["hash"])) for one in transcript["events"]}
        if head is not None and str(before) not in heads:
            problems.append(
                f"the record does not continue from event {before.seq} as it was seen before"
            )
        there = _field(plain(self._get("/verify", slow=True)), "problems", list)
        problems += [f"{THERE}{one}" for one in there]
        return Verification(found.events, found.head, tuple(problems))

    # --- requests ---------------------------------------------------------------------

    def _post(self, call: str, body: Any, key: str | None, once: bool = True) -> Got:
        return self._call(ApiRequest("POST", f"{self._path}/{call}", body, key, once))

    def _get(self, path: str, key: str | None = None, slow: bool = False) -> Got:
        return self._call(ApiRequest("GET", f"{self._path}{path}", key=key, slow=slow))

    def _call(self, request: ApiRequest) -> Got:
        """Send a request, and check that the record has grown since the last one."""
        before = self._seen
        got = self._client.call(request._replace(known=str(before)))
        if (head := got.headers.get(HEAD)) is not None:
            self._see(Head.parse(head), before)
        return got

    def _see(self, found: Head, before: Head) -> None:
        """Keep in mind a head; refuse one that is older than what was known when the
        request for it was sent.
        """
        check_goes_on(self.protocol.name, before, found)
        if found.seq > self._seen.seq:
            self._seen = found


def _check_nobody(who: Any) -> None:
    if who is not None:
        raise InvalidInputError(NAMED)


def _settings(
    name: str, arms: Sequence[str], strategy: Strategy, max_people: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return a protocol as it is sent to be frozen; refuse one that cannot be carried
    out.
    """
    given = dict(settings)
    _check_nobody(given.pop("who", None))
    body = new_protocol(name, arms, strategy, max_people, **given).to_dict()
    del body["version"], body["script"]
    body["range"] = [body.pop("low"), body.pop("high")]
    return body | {"dealing": given.get("dealing")}


def _check_ids(ids: Sequence[str]) -> None:
    """Refuse what can be no id: it may be an outcome in the wrong place, and need not
    travel.
    """
    for id in ids:
        if not looks_like_id(id):
            raise unknown_id(id, ids)


def _outcome(outcome: float, protocol: Protocol) -> float:
    """Return an outcome as it is sent; refuse one that the protocol does not take."""
    protocol.scale.reward(outcome, protocol.outside)
    value = float(outcome)
    return min(max(value, protocol.low), protocol.high)


def _field(found: Any, name: str, kind: type) -> Any:
    if not isinstance(found, dict) or type(found.get(name)) is not kind:
        raise UnreadableError
    return found[name]
