"""What discreet shows to the world, and which room may know which."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import discreet
from discreet.cli import main

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"
HEAVY = {"numba", "scipy", "matplotlib", "polars", "sqlalchemy", "opendp", "distributed"}
# Who may import which heavy library, and which rooms know nobody (or only those named) of ours.
KEEPERS = {
    "numba": {"kernel"},
    "matplotlib": {"plots"},
    "sqlalchemy": {"schema", "store"},
    "opendp": {"privacy"},
    "scipy": set(),
    "distributed": {"sweep"},
    "polars": {"results", "sweep", "plots", "report", "reproduce"},
}
LEAVES = {"decision", "laws", "board", "leap", "phased", "stream", "dpse"}  # compiled by kernel, run as they are live
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "version": set(),
    "validate": {"errors"},
    "divergence": {"validate"},
    "solve": {"errors"},
    "instance": {"errors"},
    "transport": {"divergence", "errors"},
    "game": {"errors", "solve", "transport"},
    "theory": {"decision", "errors", "game", "instance", "solve", "transport", "validate"},
    "threshold": {"decision", "errors", "solve", "validate"},
    "bounding": {"errors", "instance", "theory"},
    "strategy": {"errors", "validate"},
    "rules": {"betting", "decision", "errors", "strategy", "threshold"},
    "decision": set(),
    "laws": LEAVES,
    "board": LEAVES,
    "leap": LEAVES,
    "phased": LEAVES,
    "stream": LEAVES,
    "dpse": LEAVES,
    "betting": set(),
    "play": {"betting"},
    "kernel": LEAVES | {"betting", "play"},
    "results": {"errors", "solve"},
    "engine": {"errors", "instance", "kernel", "results", "rules", "strategy", "validate", "version"},
    "planning": {"engine", "errors", "instance", "results", "strategy", "theory", "validate", "version"},
    "audit": {"engine", "errors", "instance", "results", "strategy", "validate", "version"},
    "rehearsal": {"course", "errors", "privacy", "protocol", "strategy"},
    "privacy_audit": {"errors", "protocol", "rehearsal", "results", "strategy", "validate", "version"},
    "tables": {"audit", "bounding", "instance", "planning", "privacy_audit", "views"},
    "study": {"engine", "errors", "instance", "strategy", "validate"},
    "sweep": {"engine", "errors", "instance", "results", "strategy", "study", "theory", "version"},
    "path": {"betting", "decision", "engine", "errors", "instance", "kernel", "play", "rules", "strategy"},
    "plots": {"errors", "instance", "path", "results", "theory"},
    "report": {"errors", "version"},
    "privacy": {"errors", "strategy", "validate"},
    "course": LEAVES | {"betting", "errors", "rules", "strategy"},
    "protocol": {"course", "errors", "privacy", "strategy", "validate", "version"},
    "schema": {"errors"},
    "store": {"errors", "schema"},
    "record": {"course", "privacy", "protocol", "schema"},
    "options": {"errors", "instance", "strategy"},
    "trial_cli": {"errors", "options", "privacy", "report", "tables", "trial", "trial_report"},
    "trial_report": {"plots", "protocol", "record", "report", "schema"},
    "views": set(),
    "trial": {
        *("course", "errors", "privacy", "protocol", "record", "schema", "store", "strategy", "validate", "views"),
    },
    "reproduce": {
        *("decision", "engine", "errors", "instance", "plots", "report", "results", "strategy", "study"),
        *("study_report", "sweep", "theory", "version"),
    },
    "plan_report": {"errors", "instance", "path", "planning", "plots", "report", "tables"},
    "demo": {
        *("privacy", "trial", "trial_report"),
        *("engine", "instance", "path", "plan_report", "planning", "plots", "report", "results", "strategy", "tables"),
    },
    "study_report": {"errors", "instance", "plots", "report", "reproduce", "results"},
}
# Rooms that the live trial runs as they stand and the kernel compiles: plain Python, numpy and math.
PLAIN = {"betting", "play"}


def imports(path: Path) -> set[str]:
    """All modules a file imports anywhere in it, as dotted names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_public_names() -> None:
    homes = {name for names in discreet._HOMES.values() for name in names}
    assert set(dir(discreet)) == set(discreet.__all__) == homes | {"__version__"}
    assert all(hasattr(discreet, name) for name in discreet.__all__)
    assert not homes & {path.stem for path in SOURCE.glob("*.py")}, "a room of the same name would hide it"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = discreet.nothing


@pytest.mark.parametrize("room", sorted(path.stem for path in SOURCE.glob("*.py")))
def test_imports_point_one_way(room: str) -> None:
    found = imports(SOURCE / f"{room}.py")
    for library, keepers in KEEPERS.items():
        if room not in keepers:
            assert not {name for name in found if name.split(".")[0] == library}, f"{room} imports {library}"
    if room in PLAIN:
        assert {name.split(".")[0] for name in found} <= {"math", "typing", "collections", "numpy", "discreet"}
    if room in ROOMS:
        ours = {name.split(".")[1] for name in found if name.startswith("discreet.")}
        assert ours <= ROOMS[room], f"{room} may know {ROOMS[room]}"


def test_starting_imports_nothing_heavy() -> None:
    code = "import sys, discreet, discreet.cli; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not HEAVY & set(loaded.split())


def commands(group: click.Group, path: str = "") -> dict[str, click.Command]:
    """All commands below a group by their full names, `audit correctness` too; a group is a command as well."""
    found: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        found[f"{path}{name}"] = command
        if isinstance(command, click.Group):
            found |= commands(command, f"{path}{name} ")
    return found


def test_every_command_is_documented() -> None:
    """Each command has a section of its own in which all its options stand, but for those of the introduction."""
    page = (ROOT / "docs" / "commands.md").read_text()
    intro, *parts = page.split("\n## `discreet ")
    sections = {part.split("`", 1)[0]: part for part in parts}
    for name, command in commands(main).items():
        assert command.help, name
        if isinstance(command, click.Group):
            assert any(title.startswith(f"{name} ") for title in sections), name
            continue
        assert name in sections
        section = intro + sections[name]
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.name != "help":
                option = parameter.opts[0]
                assert re.search(rf"{option}(?![\w-])", section), (name, option)


def test_every_public_name_is_in_the_api_page() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    for name in discreet.__all__:
        module = getattr(getattr(discreet, name), "__module__", None)
        assert module is None or f"automodule:: {module}" in page, name


def test_nothing_of_a_machine_or_registry_in_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    words = ["/home" + "/", "/root" + "/", "/work" + "/", "index" + "-url", "files." + "pythonhosted"]
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".json", ".css", ""} and path.is_file():
            text = path.read_text()
            assert not [word for word in words if word in text], name
