"""Public names that are imported when they are first asked for, from the one place
where they are listed.
"""

import ast
from pathlib import Path


def homes(file: str) -> dict[str, str]:
    """The home of each name that a module imports under TYPE_CHECKING, read from its
    source.
    """
    found: dict[str, str] = {}
    for node in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            for line in node.body:
                if isinstance(line, ast.ImportFrom):
                    found |= {alias.name: str(line.module) for alias in line.names}
    return found
