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
KEEPERS = {
    "numba": {"simulation/kernels"},
    "matplotlib": {"reports/charts"},
    "sqlalchemy": {"trials/store"},
    "opendp": {"trials/mechanisms"},
    "scipy": set(),
    "distributed": {"studies/run"},
    "rich": {"reports/terminal", "cli/progress"},
}
"""Who may import which heavy library: rooms, or packages of rooms."""
MATRIX = {
    "base": "",
    "theory": "base",
    "strategies": "base theory",
    "simulation": "base theory strategies",
    "trials": "base theory strategies",
    "planning": "base theory strategies simulation",
    "studies": "base theory strategies simulation",
    "audits": "base theory strategies simulation trials",
    "reports": "base theory strategies simulation trials planning studies audits",
    "cli": "base theory strategies simulation trials planning studies audits reports",
}
"""Which package may import which others; `base` is every module that stands in no package."""
BUILDING = {("theory", "strategies"), ("strategies", "simulation")}
PUBLIC_PACKAGES = {"theory"}


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
    rooms = {path.stem for path in SOURCE.glob("*.py")} | {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert not homes & rooms, "a room of the same name would hide it"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = discreet.nothing


ROOMS = sorted(str(path.relative_to(SOURCE).with_suffix("")) for path in SOURCE.rglob("*.py"))


def package(room: str) -> str:
    """The package of a room, such as theory of theory/times; `base` for those that stand in none."""
    return room.split("/", maxsplit=1)[0] if "/" in room else "base"


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in ("__init__", "__main__")])
def test_imports_point_one_way(room: str) -> None:
    found = imports(SOURCE / f"{room}.py")
    for library, keepers in KEEPERS.items():
        if not any(room == keeper or room.startswith(f"{keeper}/") for keeper in keepers):
            assert not {name for name in found if name.split(".")[0] == library}, f"{room} imports {library}"
    mine = package(room)
    for name in (name for name in found if name.startswith("discreet.")):
        theirs = name.split(".")[1]
        theirs = theirs if theirs in MATRIX else "base"
        allowed = theirs in (mine, *MATRIX[mine].split())
        assert allowed or (mine, theirs) in BUILDING, f"{room} may not import {name}"


def test_starting_imports_nothing_heavy() -> None:
    code = "import sys, discreet.cli, discreet.reports.charts; print(*sorted({m.split('.')[0] for m in sys.modules}))"
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
