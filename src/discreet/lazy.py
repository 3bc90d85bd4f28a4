"""Public names that are imported when they are first asked for, from the one place
where they are listed.
"""

import ast
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec


def homes(spec: ModuleSpec | None) -> dict[str, str]:
    """The home of each name that a module imports under TYPE_CHECKING, read from its
    source.
    """
    found: dict[str, str] = {}
    for node in ast.parse(_source(spec)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom):
                    found |= {alias.name: str(line.module) for alias in line.names}
    return found


def _source(spec: ModuleSpec | None) -> str:
    """The text of a module, from a file or out of an archive."""
    loader: InspectLoader | None = getattr(spec, "loader", None)
    source = None if loader is None or spec is None else loader.get_source(spec.name)
    if source is None:
        raise ImportError("discreet must be installed with its sources, because kernels need them")
    return source
