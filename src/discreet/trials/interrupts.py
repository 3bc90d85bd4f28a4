"""Ctrl-C waits for the end of a transaction, and no connection outlives a fork."""

import os
import signal
import threading
import time
import weakref
from typing import Any, Protocol


class Later:
    """Ctrl-C comes when the block is left: in the middle it could leave a lock to
    nobody, or fail the tasks of other threads.

    Python runs the handlers of signals in its main thread only. Not a generator, which
    an interrupt can leave halfway.
    """

    def __enter__(self) -> None:
        """Take note of interrupts from here on."""
        self.noted: list[Any] = []
        self.before: Any = None
        if threading.current_thread() is threading.main_thread():
            self.before = signal.getsignal(signal.SIGINT)
            if callable(self.before):
                signal.signal(signal.SIGINT, lambda *event: self.noted.append(event))
                _noting.append(self)

    def __exit__(self, *_: object) -> None:
        """Let one happen now, if there was any."""
        if callable(self.before) and self in _noting:
            _noting.remove(self)
            signal.signal(signal.SIGINT, self.before)
            if self.noted:
                self.before(*self.noted[0])


_noting: list[Later] = []
"""Those that note interrupts now, the outermost first."""


class Connected(Protocol):
    """Whatever has connections that must not outlive a fork."""

    lock: threading.RLock
    pid: int

    def close(self) -> None:
        """Close the connections; the next use opens new ones."""


_all: weakref.WeakSet[Connected] = weakref.WeakSet()
_held: list[Connected] = []


def close_at_fork(one: Connected) -> None:
    """See to it that no connection outlives a fork.

    SQLite's locks belong to the process, so that a child would write unprotected, and
    what it wrote could vanish when the parent closes the file.
    """
    _all.add(one)


class Renewed(Protocol):
    """Whatever has locks that are new in a forked process."""

    def renew(self) -> None:
        """Start anew: no other thread of before is in the child."""


_renewed: weakref.WeakSet[Renewed] = weakref.WeakSet()


def renew_after_fork(one: Renewed) -> None:
    """Have something start anew in a forked process."""
    _renewed.add(one)


def _before_fork() -> None:
    """Let the transactions of other threads end, and close all connections. Whoever
    works on two databases holds one lock and waits for the other: so all locks, or none
    while we wait.
    """
    while not all(_hold(one) for one in list(_all)):
        _after_fork_in_parent()
        time.sleep(0.001)
    for one in _held:
        one.close()


def _hold(one: Connected) -> bool:
    """Take a lock, if it is free."""
    free = one.lock.acquire(blocking=False)
    if free:
        _held.append(one)
    return free


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().lock.release()


def _after_fork_in_child() -> None:
    if _noting and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _noting[0].before)
        _noting.clear()
    while _held:
        one = _held.pop()
        one.lock = threading.RLock()
        one.pid = os.getpid()
    for renewed in _renewed:
        renewed.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
