"""Tells whoever listens that kernels have to be compiled, which takes a while."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def hearing(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` when the first kernel meanwhile is compiled; not if all of them are
    kept from before.
    """
    from numba.core import event

    class Once(event.Listener):
        """Hears the first one."""

        told = False

        def on_start(self, event: Any) -> None:
            """A kernel is about to be compiled."""
            if not self.told:
                self.told = True
                tell()

        def on_end(self, event: Any) -> None:
            """It has been."""

    with event.install_listener("numba:compile", Once()):
        yield
