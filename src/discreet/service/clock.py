"""What is due by the clock, whether anybody calls or not: outcomes past their deadline
count as the worst, rounds whose time has come are released, and erased outcomes are
made unreadable if somebody still read them when they were released.

A service looks at every full minute, so that the moment of a release tells nothing of
when outcomes came. Several servers of one database may look at once: whoever is later
finds nothing left to do.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.errors import DiscreetError
from discreet.service import logs
from discreet.service.home import Home
from discreet.trials.listing import timed_trials

EVERY = 60.0
"""Seconds from one look to the next."""


@contextmanager
def keeping_time(home: Home) -> Iterator[None]:
    """Look again and again, in a thread of its own, until the block ends."""
    end = threading.Event()

    def keep() -> None:
        while not end.wait(EVERY - time.time() % EVERY):
            do_what_is_due(home)

    keeper = threading.Thread(target=keep, name="clock", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        end.set()
        keeper.join()


def do_what_is_due(home: Home) -> None:
    """Look once. What cannot be done now is done at the next look, or by a call."""
    try:
        names = sorted({*timed_trials(home.store), *home.store.erasing_trials()})
    except DiscreetError as error:
        logs.trouble(str(error), "clock")
        return
    for name in names:
        try:
            home.trial(name).make_due_releases()
        except DiscreetError as error:
            logs.trouble(str(error), "clock")
        except Exception as error:
            logs.unexpected(error, "clock")
