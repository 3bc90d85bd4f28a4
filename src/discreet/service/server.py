"""`discreet serve`: a server in front of the trials at an address, until it is told to
stop.
"""

import ctypes
import errno
import ipaddress
import logging
import os
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType

import uvicorn

from discreet.errors import DiscreetError, InvalidInputError
from discreet.service import observability
from discreet.service.app import make_app
from discreet.service.auth import CODE_MINUTES
from discreet.service.limits import LimitConfig
from discreet.service.state import AppState
from discreet.trials import mechanisms
from discreet.trials.listing import list_trials_with_deadline

EVERY = 60.0
"""Seconds from one look to the next."""


@contextmanager
def run_scheduler(app_state: AppState) -> Iterator[None]:
    """Make due releases every minute, in a thread of its own, until the block ends."""
    end = threading.Event()

    def keep() -> None:
        while not end.wait(EVERY - time.time() % EVERY):
            make_due_releases(app_state)

    keeper = threading.Thread(target=keep, name="clock", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        end.set()
        keeper.join()


def make_due_releases(app_state: AppState) -> None:
    """Make the releases that are due now, and erase what must be erased. What cannot be
    done now is done a minute later, or by a call.
    """
    try:
        names = sorted(
            {*list_trials_with_deadline(app_state.store), *app_state.store.erasing_trials()}
        )
    except DiscreetError as error:
        observability.trouble(str(error), "clock")
        return
    for name in names:
        try:
            app_state.trial(name).make_due_releases()
        except DiscreetError as error:
            observability.trouble(str(error), "clock")
        except Exception as error:
            observability.unexpected(error, "clock")


try:
    import resource
except ImportError:  # not on every system
    resource = None  # type: ignore[assignment]

HOST, PORT = "127.0.0.1", 8642
PR_SET_DUMPABLE = 4
"""Number of an option of Linux's `prctl`."""
IN_THE_CLEAR = (
    "warning: other machines can reach the service, and what they send is not encrypted: tokens "
    "and outcomes can be read on the way. Give --tls-cert and --tls-key, or let a reverse proxy "
    "on this machine do the encryption and give --behind-proxy."
)


@dataclass(frozen=True)
class ServerConfig:
    """Where a service is to be found, and what encrypts."""

    host: str = HOST
    port: int = PORT
    certificate: str | None = None
    key: str | None = None
    behind_proxy: bool = False
    limit_config: LimitConfig = field(default_factory=LimitConfig)

    def __post_init__(self) -> None:
        """Refuse half of what encrypts."""
        if (self.certificate is None) != (self.key is None):
            raise InvalidInputError(
                "give both --tls-cert, the certificate, and --tls-key, its private key, or neither"
            )

    @property
    def url(self) -> str:
        """The address in a browser."""
        scheme = "http" if self.certificate is None else "https"
        host = socket.gethostname() if self.host in ("", "0.0.0.0", "::") else self.host
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def in_the_clear(self) -> bool:
        """Whether tokens would travel where others can read them."""
        encrypted = self.certificate is not None or self.behind_proxy
        return not encrypted and not is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def login_link(place: ServerConfig, code: str) -> str:
    """Return a login link. Its one-time code stands after the #, so that it is in no
    address that a server or a proxy logs.
    """
    return f"{place.url}/login#{code}"


def open_listener(place: ServerConfig) -> socket.socket:
    """The socket that listens; refuses, with what to do, if it cannot be had."""
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        door = socket.create_server((place.host, place.port), family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            reason = "another program uses this port. Give another one with --port"
        elif error.errno == errno.EACCES:
            reason = "this user may not use this port. Give one above 1023 with --port"
        else:
            reason = "this is not an address of this machine. Check --host"
        where = f"{place.host}, port {place.port}"
        raise InvalidInputError(f"cannot listen on {where}: {reason}") from None
    except OverflowError:
        raise InvalidInputError("port must be a whole number from 0 to 65535") from None
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # of all who come by it
    return door


class Server(uvicorn.Server):
    """A server that ends when it is told to: what is under way is answered, and what
    comes then is refused; at once if it is told twice.
    """

    def __init__(self, config: uvicorn.Config, app_state: AppState) -> None:
        super().__init__(config)
        self._home = app_state

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal has come."""
        if self.should_exit:
            os._exit(128 + sig)
        self.end()

    def end(self) -> None:
        """Begin to end; called from any thread."""
        self._home.stop()
        self.should_exit = True


def make_server(app_state: AppState, place: ServerConfig) -> Server:
    """The server of a service."""
    limit_config = place.limit_config
    logging.getLogger("uvicorn.access").disabled = True  # its lines have paths and queries
    config = uvicorn.Config(
        make_app(app_state),
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=place.behind_proxy,
        forwarded_allow_ips=["127.0.0.1", "::1"],
        limit_concurrency=limit_config.connections,
        timeout_keep_alive=limit_config.idle,
        timeout_graceful_shutdown=limit_config.grace,
        ssl_certfile=place.certificate,
        ssl_keyfile=place.key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError):
        raise InvalidInputError(
            "the certificate and its key cannot be used: check that --tls-cert and --tls-key name "
            "files in PEM format that belong together, and that you may read them"
        ) from None
    return Server(config, app_state)


def serve(
    url: str, place: ServerConfig, say: Callable[[str], None], warn: Callable[[str], None]
) -> None:
    """Serve until a signal comes."""
    forbid_memory_dumps()
    with (
        open_listener(place) as door,
        closing(AppState(url, limit_config=place.limit_config)) as app_state,
    ):
        place = replace(place, port=door.getsockname()[1])
        server = make_server(app_state, place)
        if place.in_the_clear:
            warn(IN_THE_CLEAR)
        welcome(app_state, place, say)
        mechanisms.load_opendp()  # before a release keeps callers waiting
        with run_scheduler(app_state):
            server.run([door])
    if not server.started:
        raise DiscreetError("the service could not start: the reason is in its log, above")


def forbid_memory_dumps() -> None:
    """Have the system write no core file of this process, nor of those it starts: their
    memory has outcomes and secrets in it. Linux ignores the limit if it hands core
    files to a program, so this process is also marked as one that may not be dumped,
    nor be read by other programs of its user.
    """
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)


def welcome(app_state: AppState, place: ServerConfig, say: Callable[[str], None]) -> None:
    """Say where the service is; if there is no manager yet, make one's token and say
    it, with a link to log in at once.
    """
    say(f"Serving the trials of {app_state.store.address} at {place.url} (Ctrl-C ends it).")
    first = app_state.tokens.make_first()
    if first is not None:
        secret, token = first
        link = login_link(place, app_state.tokens.make_code(token))
        say(f"The manager's token, shown only once; keep it secret:\n{secret}")
        say(f"To log in now, open this link; it works once, for {CODE_MINUTES} minutes:\n{link}")
    else:
        say(
            "Log in there with a token. To make a new one: discreet token create NAME --role "
            "manager"
        )
