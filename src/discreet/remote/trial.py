"""Trials on another machine: `RemoteTrial`, and with `await` `AsyncTrial`."""

from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from discreet.errors import InvalidInputError
from discreet.remote import calls
from discreet.remote.address import PATIENCE, TRIAL, way_to_trial
from discreet.remote.calls import Far
from discreet.remote.lines import AsyncLine, Line
from discreet.remote.opening import created, opened, warn_here
from discreet.remote.steps import Steps
from discreet.strategies.strategy import Strategy
from discreet.trials.draft import new_protocol
from discreet.trials.names import in_path
from discreet.trials.protocol import Protocol

Said = ParamSpec("Said")
Found = TypeVar("Found")
NAMED = (
    "the token says who calls the service, and for which site: leave who out, or use another token"
)


def now(
    steps: Callable[Concatenate[Far, Said], Steps[Found]],
) -> Callable[Concatenate["RemoteTrial", Said], Found]:
    """A call as a method that is done when it returns."""

    @wraps(steps)
    def call(self: "RemoteTrial", /, *said: Said.args, **named: Said.kwargs) -> Found:
        return self._line.run(steps(self._far, *said, **named))

    return call


def later(
    steps: Callable[Concatenate[Far, Said], Steps[Found]],
) -> Callable[Concatenate["AsyncTrial", Said], Coroutine[Any, Any, Found]]:
    """The same as one to be awaited."""

    @wraps(steps)
    async def call(self: "AsyncTrial", /, *said: Said.args, **named: Said.kwargs) -> Found:
        return await self._line.run(steps(self._far, *said, **named))

    return call


class _Remote:
    """What is known of a trial without asking."""

    files: tuple[str, ...] = ()
    """Files of the database on this machine: none."""

    def __init__(self, far: Far) -> None:
        self._far = far

    def __repr__(self) -> str:
        """Name, strategy and place; nothing that was told, and no token."""
        name, strategy = self.protocol.name, self.protocol.strategy.name
        return f"{type(self).__name__}({name!r}, {strategy}, {self.place!r})"

    @property
    def protocol(self) -> Protocol:
        """What the trial was started with."""
        return self._far.protocol

    @property
    def protocol_hash(self) -> str:
        """Its hash."""
        return self._far.protocol_hash

    @property
    def who(self) -> str:
        """Who calls, for the journal: what the token is called."""
        return self._far.who

    @property
    def role(self) -> str:
        """What the token lets its holder be."""
        return self._far.role

    @property
    def site(self) -> str | None:
        """The site that the token is bound to; None: to none."""
        return self._far.site

    @property
    def place(self) -> str:
        """The address of the trial."""
        return f"{self._far.service.way.base}{TRIAL}{in_path(self.protocol.name)}"

    def caller(self, who: str, site: str | None = None) -> NoReturn:
        """Not here: another caller has another token."""
        raise InvalidInputError(NAMED)


class RemoteTrial(_Remote):
    """A trial on another machine, with the methods of a local `Trial`.

    `Trial.open` returns one if the address begins with https://. Every call that
    changes something has a key of its own (or the caller's `request`). While the
    service cannot be reached, is busy, or its answer is lost, the call is repeated
    automatically, with pauses, for up to `patience` seconds in all; the service does it
    only once. If there is no answer by then, a `StoreError` names the key with which
    the call can be repeated later.
    """

    def __init__(self, far: Far, line: Line) -> None:
        super().__init__(far)
        self._line = line

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
        line = Line(way)
        return cls(line.run(opened(way, called, head)), line)

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
        said = _settings(name, arms, strategy, max_people, settings)
        way, _ = way_to_trial(url, said["name"], token, ca, patience)
        line = Line(way)
        far, warned = line.run(created(way, said))
        warn_here(warned)
        return cls(far, line)

    def close(self) -> None:
        """Close the connections. Nothing is lost without it; the next call opens new
        ones.
        """
        self._line.close()

    ask = now(calls.ask)
    tell = now(calls.tell)
    tell_many = now(calls.tell_many)
    answer = now(calls.answer)
    answer_many = now(calls.answer_many)
    amend = now(calls.amend)
    miss = now(calls.miss)
    reissue = now(calls.reissue)
    unblind = now(calls.unblind)
    open_assignments = now(calls.open_assignments)
    asked = now(calls.asked)
    operate = now(calls.operate)
    codes = now(calls.codes)
    expire = now(calls.expire)
    journal = now(calls.journal)
    status = now(calls.status)
    transcript = now(calls.transcript)
    verify = now(calls.verify)


class AsyncTrial(_Remote):
    """A trial on another machine, with the methods of `RemoteTrial` as coroutines, to
    be awaited; any number of tasks may share one.
    """

    def __init__(self, far: Far, line: AsyncLine) -> None:
        super().__init__(far)
        self._line = line

    @classmethod
    async def open(
        cls,
        url: str,
        name: str | None = None,
        head: str | None = None,
        who: str | None = None,
        token: str | None = None,
        ca: str | None = None,
        patience: float = PATIENCE,
    ) -> "AsyncTrial":
        """Open a trial, as `RemoteTrial.open` does."""
        _check_nobody(who)
        way, called = way_to_trial(url, name, token, ca, patience)
        line = AsyncLine(way)
        return cls(await line.run(opened(way, called, head)), line)

    @classmethod
    async def create(
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
    ) -> "AsyncTrial":
        """Start a trial, or go on with it, as `RemoteTrial.create` does."""
        said = _settings(name, arms, strategy, max_people, settings)
        way, _ = way_to_trial(url, said["name"], token, ca, patience)
        line = AsyncLine(way)
        far, warned = await line.run(created(way, said))
        warn_here(warned)
        return cls(far, line)

    async def __aenter__(self) -> "AsyncTrial":
        """For `async with`, which closes it."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        await self._line.close()

    ask = later(calls.ask)
    tell = later(calls.tell)
    tell_many = later(calls.tell_many)
    answer = later(calls.answer)
    answer_many = later(calls.answer_many)
    amend = later(calls.amend)
    miss = later(calls.miss)
    reissue = later(calls.reissue)
    unblind = later(calls.unblind)
    open_assignments = later(calls.open_assignments)
    asked = later(calls.asked)
    operate = later(calls.operate)
    codes = later(calls.codes)
    expire = later(calls.expire)
    journal = later(calls.journal)
    status = later(calls.status)
    transcript = later(calls.transcript)
    verify = later(calls.verify)


def _check_nobody(who: Any) -> None:
    if who is not None:
        raise InvalidInputError(NAMED)


def _settings(
    name: str, arms: Sequence[str], strategy: Strategy, max_people: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """A protocol as it is sent to be frozen; refused here if it cannot be carried
    out.
    """
    given = dict(settings)
    _check_nobody(given.pop("who", None))
    made = new_protocol(name, arms, strategy, max_people, **given).to_dict()
    del made["version"], made["script"]
    made["range"] = [made.pop("low"), made.pop("high")]
    return made | {"dealing": given.get("dealing")}
