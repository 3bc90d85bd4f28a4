"""What takes long is computed once, however many ask for it at the same time."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Found = TypeVar("Found")


@dataclass
class _Place(Generic[Found]):
    """What is kept under a key, or is being computed."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    found: list[Found] = field(default_factory=list)
    at: float = 0.0


class OnceCache(Generic[Found]):
    """The last few values by their key; each is computed by the first who asks, while
    others who ask for the same wait for it.
    """

    def __init__(self, most: int, seconds: float | None = None) -> None:
        self._most = most
        self._seconds = seconds
        """After which a value is computed again; None: never."""
        self._lock = threading.Lock()
        self._places: OrderedDict[Hashable, _Place[Found]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Found]) -> Found:
        """The value of a key, computed if it is not known."""
        with self._lock:
            place = self._places.setdefault(key, _Place())
            self._places.move_to_end(key)
            while len(self._places) > self._most:
                self._places.popitem(last=False)
        with place.lock:
            if not place.found or self._old(place):
                begun = time.monotonic()
                place.found = [make()]
                place.at = begun
            return place.found[0]

    def find(self, key: Hashable) -> Found | None:
        """Return the value of a key if it is there at once."""
        with self._lock:
            place = self._places.get(key)
        return place.found[0] if place is not None and place.found else None

    def forget(self, key: Hashable) -> None:
        """From now on it is computed again: what is being computed may be too old."""
        with self._lock:
            self._places.pop(key, None)

    def known(self, key: Hashable) -> bool:
        """Whether a value is there at once."""
        with self._lock:
            place = self._places.get(key)
        return place is not None and bool(place.found) and not self._old(place)

    def _old(self, place: _Place[Found]) -> bool:
        return self._seconds is not None and time.monotonic() - place.at > self._seconds
