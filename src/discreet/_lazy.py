"""Public names that are imported when they are first asked for, from the one place
where they are listed.
"""

import ast
from collections.abc import Mapping
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

NEEDS = {
    "discreet.client.trial": "httpx",
    "discreet.trials.backup": "sqlalchemy",
    "discreet.trials.trial": "sqlalchemy",
}
"""Homes of public names that cannot be imported without a library of an extra."""


def find_homes(spec: ModuleSpec | None) -> dict[str, str]:
    """Return the home of each name that a module imports under TYPE_CHECKING, read from
    its source.
    """
    found: dict[str, str] = {}
    for node in ast.parse(_read_source(spec)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom):
                    found |= {alias.name: str(line.module) for alias in line.names}
    return found


def list_available(homes: Mapping[str, str]) -> list[str]:
    """Return the names that need no library that is not installed: `import *` imports
    them all, and others say what to install.
    """
    missing = {library for library in set(NEEDS.values()) if find_spec(library) is None}
    return sorted(name for name, home in homes.items() if NEEDS.get(home) not in missing)


def _read_source(spec: ModuleSpec | None) -> str:
    """Return the text of a module, from a file or out of an archive."""
    loader: InspectLoader | None = getattr(spec, "loader", None)
    source = None if loader is None or spec is None else loader.get_source(spec.name)
    if source is None:
        raise ImportError("discreet must be installed with its sources, because kernels need them")
    return source
