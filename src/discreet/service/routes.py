"""Routes whose paths hold names of trials, whatever is in these."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from discreet.trials.names import from_path

MOST_PATHS = 1024
LONGEST = 256
"""Paths whose routes are remembered, and letters of one: most calls are about a few
trials.
"""
Serve = Callable[[Request], Awaitable[Response]]


class Route:
    """What answers calls of a path, such as /trials/{name}/open.

    It is looked for in the path as it was sent: what is a slash there separates, and
    what is written %2F is in a name. (`trials.names.in_path` writes names so.)
    """

    def __init__(self, path: str, serve: Serve, methods: Sequence[str] = ("GET",)) -> None:
        self.path = path
        self.serve = serve
        self.methods = {*methods, "HEAD"} if "GET" in methods else {*methods}
        parts = list(enumerate(path.split("/")))
        self._named = {place: part[1:-1] for place, part in parts if part.startswith("{")}
        self._fixed = [(place, part) for place, part in parts if place not in self._named]
        last = len(parts) - 1
        self.kind = (len(parts), None if last in self._named else parts[last][1])
        """How many parts it has, and the last of them, unless that is a name."""

    def names(self, parts: Sequence[str]) -> dict[str, str] | None:
        """What a path of this kind names; None if another one is meant."""
        for place, part in self._fixed:
            if parts[place] != part:
                return None
        try:
            found = {name: from_path(parts[place]) for place, name in self._named.items()}
        except UnicodeDecodeError:
            return None
        return found if all(found.values()) else None


class Ways:
    """All routes, found by the parts of a path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes: dict[tuple[int, str | None], list[Route]] = {}
        for route in routes:
            self._routes.setdefault(route.kind, []).append(route)
        self._meant = lru_cache(MOST_PATHS)(self._fitting)

    def find(self, scope: Scope) -> Route:
        """The route of a call; what its path names is written into the scope."""
        allowed = set[str]()
        path = raw_path(scope)
        fitting = self._meant if len(path) <= LONGEST else self._fitting
        for route, names in fitting(path):
            scope["path_params"], scope["template"] = names, route.path
            if scope["method"] in route.methods:
                return route
            allowed |= route.methods
        if allowed:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
        raise HTTPException(404)

    def _fitting(self, path: str) -> list[tuple[Route, dict[str, str]]]:
        """The routes that fit a path, with what it names."""
        parts = path.split("/")
        kinds = ((len(parts), parts[-1]), (len(parts), None))
        routes = [route for kind in kinds for route in self._routes.get(kind, ())]
        return [(route, names) for route in routes if (names := route.names(parts)) is not None]


def raw_path(scope: Scope) -> str:
    """The path as it was sent."""
    return bytes(scope.get("raw_path") or b"").decode("latin-1")
