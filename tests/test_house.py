"""How the tests themselves are arranged."""

import ast
from pathlib import Path

TESTS = Path(__file__).parent


def imported(path: Path) -> set[str]:
    """Every module that a file may import, wherever in it: `from a import b` may be the
    module a.b.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_no_test_file_imports_another() -> None:
    """What two of them need lives in tests/support: a file can be run, moved and
    changed by itself.
    """
    files = {path: imported(path) for path in TESTS.rglob("*.py")}
    assert len(files) > 30
    tests = {
        ".".join(path.relative_to(TESTS.parent).with_suffix("").parts)
        for path in files
        if "test_" in path.name
    }
    assert {
        str(path.relative_to(TESTS)): names & tests
        for path, names in files.items()
        if names & tests
    } == {}


def test_packages_are_mirrored() -> None:
    """A package of discreet has its tests in a folder of the same name."""
    source = TESTS.parent / "src" / "discreet"
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    folders = {path.parent.name for path in TESTS.glob("*/test_*.py")}
    assert packages == folders - {"contract"}  # which tests all ways to a trial alike
