"""Routes whose paths hold names of trials, whatever is in these."""

from typing import Any

from starlette import routing
from starlette.routing import Match
from starlette.types import Scope

from discreet.trials.names import from_path


class Route(routing.Route):
    """A route that is looked for in the path as it was sent: what is a slash there
    separates, and what is written %2F is in a name. (`trials.names.in_path` writes
    names so.)
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether it is meant, and what the path names."""
        if scope["type"] != "http":
            return Match.NONE, {}
        match, found = super().matches({**scope, "path": raw_path(scope)})
        if match is Match.NONE:
            return match, {}
        named: dict[str, Any] = found["path_params"]
        try:
            found["path_params"] = {key: from_path(part) for key, part in named.items()}
        except UnicodeDecodeError:
            return Match.NONE, {}
        return match, {**found, "template": self.path}


def raw_path(scope: Scope) -> str:
    """The path as it was sent."""
    return bytes(scope.get("raw_path") or b"").decode("latin-1")
