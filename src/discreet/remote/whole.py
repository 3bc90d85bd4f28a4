"""What is asked of a service as a whole: which trials there are, and a backup."""

from contextlib import closing
from typing import TYPE_CHECKING

from discreet.remote.address import way_to
from discreet.remote.lines import Line
from discreet.remote.opening import backed_up, listed

if TYPE_CHECKING:
    from discreet.trials.listing import Listed


def fetch_list(url: str, token: str | None = None, ca: str | None = None) -> "list[Listed]":
    """The trials that a token is for."""
    way = way_to(url, token, ca)
    with closing(Line(way)) as line:
        return line.run(listed(way))


def fetch_backup(url: str, token: str | None = None, ca: str | None = None) -> bytes:
    """A backup of all trials, a file of SQLite."""
    way = way_to(url, token, ca)
    with closing(Line(way)) as line:
        return line.run(backed_up(way))
