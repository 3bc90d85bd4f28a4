"""Addresses of services and of trials there, and the tokens for them."""

import ipaddress
import os
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from discreet.errors import InvalidInputError
from discreet.trials.names import is_writable, unquote_name
from discreet.validation import check_path, name_path, quote

TOKEN, TOKEN_FILE = "DISCREET_TOKEN", "DISCREET_TOKEN_FILE"
TRIAL = "/t/"
"""Before the name of a trial, in the address of its page."""
EXAMPLES = "give an address such as https://trial.example.org, or https://trial.example.org/t/dose"
PATIENCE = 60.0
"""Seconds for which a call is repeated while the service does not answer."""
MAX_PATIENCE = 86_400.0


class ServiceAddress(NamedTuple):
    """How to get to a service, and as whom."""

    base: str
    """Such as https://trial.example.org, without a slash at the end."""
    token: str | None
    ca: str | None
    """A file of authorities to trust, in place of the usual ones."""
    patience: float

    def __repr__(self) -> str:
        """The address; never the token."""
        return f"Way({self.base!r})"

    @property
    def is_unencrypted(self) -> bool:
        """Whether nothing is encrypted: within this machine."""
        return self.base.startswith("http:")


def is_remote(url: object) -> bool:
    """Whether an address is that of a service."""
    return isinstance(url, str) and url.strip().lower().startswith(("http://", "https://"))


def locate_service(
    url: Any, token: Any = None, ca: Any = None, patience: Any = PATIENCE
) -> ServiceAddress:
    """How to get to the service at an address."""
    return _make_address(parse_address(url)[0], token, ca, patience)


def locate_trial(
    url: Any, name: Any, token: Any = None, ca: Any = None, patience: Any = PATIENCE
) -> tuple[ServiceAddress, str]:
    """How to get to the service of a trial, and the trial's name: beside the address,
    or in it.
    """
    base, there = parse_address(url)
    name = there if name is None else name
    if not is_writable(name):
        raise InvalidInputError(
            "say which trial: by its name, or in the address, such as "
            "https://trial.example.org/t/dose"
        )
    if there is not None and there != name:
        raise InvalidInputError(
            f"the address is for the trial {quote(there)}, not for {quote(name)}: leave one of "
            "the two out"
        )
    return _make_address(base, token, ca, patience), str(name)


def parse_address(url: Any) -> tuple[str, str | None]:
    """The address of a service, and the trial that it names, if it names one."""
    try:
        parts = urlsplit(str(url).strip())
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise InvalidInputError(f"this is no address of a service: {EXAMPLES}") from None
    if parts.username is not None or parts.password is not None:
        raise InvalidInputError(
            "a service takes a token, not a name or password in its address: put the token into "
            f"{TOKEN}"
        )
    if not host or parts.query or parts.fragment or not is_remote(url):
        raise InvalidInputError(f"this is no address of a service: {EXAMPLES}")
    if parts.scheme == "http" and not _is_loopback(host):
        raise InvalidInputError(
            f"http://{name_path(host)} would send the token unencrypted: use https://, or on this "
            "machine http://localhost"
        )
    return _split_trial(parts)


def _split_trial(parts: SplitResult) -> tuple[str, str | None]:
    before, found, last = parts.path.rpartition(TRIAL)
    try:
        name = unquote_name(last) if found and "/" not in last else None
    except UnicodeDecodeError:
        raise InvalidInputError(f"the address names no trial: {EXAMPLES}") from None
    path = parts.path if name is None else before
    return f"{parts.scheme}://{parts.netloc}{path.rstrip('/')}", name


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _make_address(base: str, token: Any, ca: Any, patience: Any) -> ServiceAddress:
    number = isinstance(patience, int | float) and not isinstance(patience, bool)
    if not number or not 0 <= patience <= MAX_PATIENCE:
        raise InvalidInputError(
            f"patience must be a number of seconds from 0 to {MAX_PATIENCE:g}; got "
            f"{quote(patience)}"
        )
    file = None if ca is None else str(check_path("a file of authorities", ca))
    return ServiceAddress(base, read_token(token), file, float(patience))


def read_token(token: Any = None) -> str | None:
    """The token that was given, or that of the environment; None: there is none."""
    if token is not None:
        return _check_token(token, "the token")
    if found := os.environ.get(TOKEN):
        return _check_token(found, TOKEN)
    path = os.environ.get(TOKEN_FILE)
    if not path:
        return None
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError):
        raise InvalidInputError(
            f"cannot read {name_path(path)}, which {TOKEN_FILE} names: check the file"
        ) from None
    return _check_token(text, f"{name_path(path)}, which {TOKEN_FILE} names,")


def _check_token(token: Any, where: str) -> str:
    """A token as the service showed it; what is none is not repeated."""
    text = token.strip() if isinstance(token, str) else ""
    if not re.fullmatch(r"[!-~]{1,500}", text):
        raise InvalidInputError(
            f"{where} must be a single word, the token as the service showed it"
        )
    return text
