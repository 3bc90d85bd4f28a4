"""What the service has at hand: the store, its trials, opened once and shared by all
callers, and the threads that wait for the disk in place of the event loop.
"""

import asyncio
import base64
import hashlib
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from discreet.errors import InvalidInputError, TamperedError
from discreet.service.auth import NotHereError, Principal, TokenStore, check_site
from discreet.service.cache import OnceCache
from discreet.service.events import Events
from discreet.service.limits import LimitConfig, Limits
from discreet.service.observability import Metrics
from discreet.service.planner import Forecasts
from discreet.strategies.run import Run
from discreet.strategies.strategy import Strategy
from discreet.trials import outcomes
from discreet.trials.group_commit import Task
from discreet.trials.inputs import parse_number
from discreet.trials.listing import ListedTrial, list_trials
from discreet.trials.operations import ADD, DROP
from discreet.trials.outcomes import OPEN
from discreet.trials.protocol import Protocol
from discreet.trials.record import Event, Head, UnknownHeadError, new_state
from discreet.trials.status import Status
from discreet.trials.store.database import Database
from discreet.trials.store.sqlite import HiddenAddress
from discreet.trials.store.tokens import Token, TokenTable
from discreet.trials.transcript import check_head
from discreet.trials.trial import Trial, TrialUser
from discreet.trials.verbs import PARTICIPANT, SITE, Arguments, Result, Verb
from discreet.validation import quote

STATIC = Path(__file__).parent / "static"
RESPOND = STATIC / "respond.js"
OTHER = (
    "this service's script for randomising answers is not the one that the trial's protocol "
    "names, so it is not used: tell the person who invited you. Your answer can still be "
    "randomised elsewhere, with discreet respond"
)


@lru_cache(maxsize=1)
def script_hash() -> str:
    """The SHA-256 of the script as this installation serves it, in hex."""
    return hashlib.sha256(RESPOND.read_bytes()).hexdigest()


def integrity(hash: str) -> str:
    """A hash, as a browser is told to check it."""
    return "sha256-" + base64.b64encode(bytes.fromhex(hash)).decode()


def script_for(strategy: Strategy) -> str | None:
    """What the protocol of a new trial says of the script, if people answer by it."""
    return script_hash() if strategy.trust_model.randomised else None


HIDDEN = ("recommendation", "smallest_delta", "middle_level", "error_rate")
"""Of a status: what tells how arms do, or that one came or went."""


def blinded(protocol: Protocol, stopped: bool, principal: Principal) -> bool:
    """Whether a principal is not to know now how arms do."""
    return protocol.is_blinded and not stopped and principal.role == SITE


def shown(status: Status, protocol: Protocol, principal: Principal) -> Status:
    """A status as a principal may see it: for sites of a blinded trial that goes on,
    without people, means, intervals and leads of arms, without a recommendation, and
    without what managers did to arms.
    """
    if not blinded(protocol, status.stopped, principal):
        return status
    acts = tuple(act for act in status.actions if act.action not in (ADD, DROP))
    hidden: dict[str, Any] = dict.fromkeys(HIDDEN)
    return replace(status, arms=(), leads=(), actions=acts, **hidden)


Found = TypeVar("Found")
THREADS = 128
"""Calls that wait for the disk at once; those that wait together share a commit."""
MAX_OPEN_TRIALS = 64
"""Trials that are kept open: each has connections of its own."""
KEPT = 256
"""Trials, and parts of them, that are kept while they are fresh."""
KEPT_RESULTS = 64
"""Reports, transcripts and pictures that are kept: some have megabytes."""
FRESH = 1.0
"""Seconds for which a status is: so long does a change that was made by another server
take to be seen. As long counts a try to write to the store.
"""


class ServedTrial(Trial):
    """A trial, with what only a service needs."""

    @property
    def head(self) -> Head:
        """The head of the record as it was seen last."""
        return self._seen

    async def call(
        self, verb: Verb[Arguments, Result], body: Arguments, key: str | None, principal: Principal
    ) -> Result:
        """Do a verb for a principal while the event loop serves others."""
        future = self._submit(verb, body, key, principal.who, principal.site)
        return await asyncio.wrap_future(future)

    def make_due_releases(self) -> None:
        """Expire late outcomes and make scheduled releases, unasked: the audit trail
        does not note it.
        """
        work = partial(outcomes.expire, is_noted=False)
        self._group.submit(Task(work, self.user), self._commit).result()

    def is_known(self, head: Head) -> bool:
        """Return whether a head is one of the last that were seen."""
        return head in self._known

    def check_known(self, head: Head) -> None:
        """Refuse to go on with a record that is older than one that a caller knows by
        its head, or another one.
        """
        if head not in self._known:
            with self._database.lock, self._database.snapshot(self.protocol.name) as tables:
                self._look(tables)
                try:
                    check_head(tables, head)
                except TamperedError as error:
                    raise UnknownHeadError(str(error)) from None

    def copy_run(self) -> Run:
        """Return a copy of the run as far as it is public, to try out how it may go
        on.
        """
        copied = new_state(self.protocol)
        with self._reading():
            text = self._state.dump()
        copied.load(text)
        return copied.run


class Seen:
    """A trial as it was at a moment, for however many look at it: each part of what
    they see is computed by the first who wants it.
    """

    def __init__(self, trial: ServedTrial, status: Status) -> None:
        self.trial = trial
        self.status = status
        self._parts = OnceCache[Any](KEPT)

    def shown_to(self, principal: Principal) -> "Seen":
        """Return the same as a principal may see it."""
        protocol = self.trial.protocol
        if not blinded(protocol, self.status.stopped, principal):
            return self
        return self.part(
            "blinded", lambda: Seen(self.trial, shown(self.status, protocol, principal))
        )

    def part(self, key: Hashable, make: Callable[[], Found]) -> Found:
        """What is kept under a key."""
        found: Found = self._parts.get(key, make)
        return found

    def text(self) -> msgspec.Raw:
        """The status as JSON."""
        return self.part("text", lambda: msgspec.Raw(msgspec.json.encode(self.status)))

    def said(self) -> dict[str, Any]:
        """The status as a document; not to be changed."""
        return self.part("said", self.status.to_dict)

    def record(self, most: int, before: int | None) -> list[Event]:
        """The last of the events before one of them."""
        return self.part(("record", most, before), lambda: self.trial.record(most, before))


def as_it_is(found: Any) -> Any:
    """Return what was computed, unchanged."""
    return found


class Computation(NamedTuple):
    """Something that takes long: see `AppState.compute`."""

    key: Hashable | None
    """What the result depends on, such as the head of a record; None: not kept."""
    make: Callable[[], Any]
    finish: Callable[[Any], Any] = as_it_is
    """Makes of the result, quickly, what one caller gets."""


class AppState:
    """A service's store and what is open of it."""

    def __init__(
        self, url: str, who: str = "discreet serve", limit_config: LimitConfig | None = None
    ) -> None:
        self.url = HiddenAddress(url)
        self.who = who
        self.limit_config = limit_config or LimitConfig()
        self.metrics = Metrics()
        self.limits = Limits(self.limit_config, self.metrics)
        self.stopping = False
        """Whether the service ends: what is under way is answered, and nothing else."""
        Database(url).close()  # who starts the service is told what is wrong, and where
        self.store = Database(self.url)
        self._noting = Database(self.url)
        self.token_table = TokenTable(self.store, self._noting)
        self.tokens = TokenStore(self.token_table)
        self._threads = ThreadPoolExecutor(THREADS, "trial")
        self._computing = ThreadPoolExecutor(1, "computation")
        self._computed = OnceCache[Any](KEPT_RESULTS)
        self._opening = threading.Lock()
        self.open_trials: dict[str, ServedTrial] = {}
        self._seen = OnceCache[Seen](KEPT, FRESH)
        self._under_way: dict[tuple[str, str], asyncio.Future[Any]] = {}
        """What is done once for all who want it at the same moment, such as looking a
        token up by its secret.
        """
        self._tried = (-FRESH, False)
        """When it was last tried to write to the store, and whether it could be."""
        self.events = Events(self)
        self.forecasts = Forecasts()

    async def run(self, work: Callable[..., Found], *about: Any) -> Found:
        """Do something that waits for the disk, while others are served."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *about)

    async def compute(self, work: Computation) -> Any:
        """Return what takes long, computed once for all who want it. One computation
        runs at a time, in a thread of its own: calls that wait for it keep no thread
        from others.
        """
        found = None if work.key is None else self._computed.find(work.key)
        if found is None:
            loop = asyncio.get_running_loop()
            if work.key is None:
                found = await loop.run_in_executor(self._computing, work.make)
            else:
                get = self._computed.get
                found = await loop.run_in_executor(self._computing, get, work.key, work.make)
        return work.finish(found)

    async def token_of(self, secret: str) -> Token | None:
        """The token of a secret, looked up once for all who call with it at the same
        moment.
        """
        return await self._shared("token", self.tokens.find_token, secret)

    async def is_writable(self) -> bool:
        """Return whether the store can be written, tried once for all who ask within a
        second: anyone may ask.
        """
        at, writable = self._tried
        if time.monotonic() - at < FRESH:
            return writable
        return await self._shared("writable", self._try_to_write, "")

    def _try_to_write(self, _: str) -> bool:
        try:
            self.token_table.try_to_write()
            writable = True
        except Exception:  # whatever it is, callers are better served elsewhere
            writable = False
        self._tried = (time.monotonic(), writable)
        return writable

    async def _shared(self, what: str, work: Callable[[str], Found], about: str) -> Found:
        found = self._under_way.get((what, about))
        if found is None:
            found = asyncio.ensure_future(self.run(work, about))
            found.add_done_callback(lambda _: self._under_way.pop((what, about), None))
            self._under_way[what, about] = found
        shared: Found = await asyncio.shield(found)
        return shared

    def stop(self) -> None:
        """Refuse what comes from now on, and end the streams."""
        self.stopping = True
        self.events.stop()

    def close(self) -> None:
        """Let what is under way end, and close all connections."""
        self.forecasts.close()
        self._computing.shutdown(cancel_futures=True)
        self._threads.shutdown()
        for trial in self.open_trials.values():
            trial.close()
        self.store.close()
        self._noting.close()

    # --- trials -----------------------------------------------------------------------

    def trial(self, name: str) -> ServedTrial:
        """Return the trial of a name, opened once."""
        if found := self.open_trials.get(name):
            return found
        with self._opening:
            if found := self.open_trials.get(name):
                return found
            self.check_there(name)
            found = cast(ServedTrial, ServedTrial.open(self.url, name, user=self.who))
            self.open_trials[name] = found
            spare = list(self.open_trials)[:-MAX_OPEN_TRIALS]
            closed = [self.open_trials.pop(one) for one in spare]
        for one in closed:
            one.close()
        return found

    def as_user(self, name: str, principal: Principal) -> TrialUser:
        """A trial, for whoever calls: bound to the site of its token, which was checked
        when the token was made.
        """
        return TrialUser(self.trial(name), principal.who, principal.site)

    def seen(self, name: str, principal: Principal) -> "Seen":
        """Return a trial as a principal may see it now. It is computed once for all who
        look within a second and after the last change that was made here.
        """

        def look() -> Seen:
            trial = self.trial(name)
            return Seen(trial, trial.status())

        return self._seen.get(name, look).shown_to(principal)

    def status(self, name: str, principal: Principal) -> Status:
        """Return the status of a trial at this moment as a principal may see it."""
        trial = self.trial(name)
        return shown(trial.status(), trial.protocol, principal)

    def changed(self, name: str) -> None:
        """Something was done to a trial: whoever looks at it is told."""
        self._seen.forget(name)
        self.events.stir(name)

    def listed(self, principal: Principal) -> list[ListedTrial]:
        """The trials within a principal's reach."""
        return [one for one in list_trials(self.url) if principal.sees(one.name)]

    def check_site(self, name: str | None, site: str | None) -> None:
        """Refuse a site that a trial with named sites does not have."""
        if name is not None and site is not None:
            trial = self.trial(name)
            check_site(trial.protocol, trial.status(), site)

    def publish(self, name: str, who: str) -> None:
        """Let anyone see a trial; not while its staff are blinded."""
        trial = self.trial(name)
        if trial.protocol.is_blinded and not trial.status().stopped:
            raise InvalidInputError(
                "staff of this trial are blinded, and would see on the public page how the arms "
                "are doing: publish it after its end"
            )
        self.token_table.publish(name, who)

    def published(self, name: str) -> bool:
        """Whether anyone may see what may be published of a trial."""
        return name in self.token_table.list_published()

    def check_there(self, name: str | None) -> None:
        """Refuse a trial that is not there; of the others nobody learns the names."""
        if name is not None and name not in self.store.list_names():
            raise NotHereError(f"there is no trial {quote(name)} here")


PATH = "/a"
"""The participant's page."""
DAYS = 7.0
"""For how long an invitation is good, unless somebody says otherwise."""


def invite(
    app_state: AppState, principal: Principal, name: str, id: str, days: float
) -> tuple[str, Token]:
    """Make the secret with which the participant of an id can answer once. It stops
    working when the assignment gets another id.
    """
    caller = app_state.as_user(name, principal)
    if not caller.protocol.strategy.trust_model.randomised:
        raise InvalidInputError(
            "people answer for themselves only in trials with local trust: tell this trial the "
            "outcome"
        )
    if caller.participant_view(id).state != OPEN:
        raise InvalidInputError(
            "this trial is not waiting for an answer from this participant: nobody was invited"
        )
    number = parse_number(id)
    site = caller.find_assignment(number).site
    words = f"invitation of participant {number}"
    return app_state.tokens.make(words, PARTICIPANT, principal.who, name, site, days, id)


def link_path(secret: str) -> str:
    """The link of an invitation, within this service. What stands behind the # stays in
    the browser: no server and no log sees it.
    """
    return f"{PATH}#{secret}"
