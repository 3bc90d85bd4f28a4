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
from discreet.strategies.estimators import ESTIMATORS
from discreet.trust import TRUSTS
from tests.support.tree import commands

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"
HEAVY = {"numba", "scipy", "matplotlib", "polars", "sqlalchemy", "opendp", "distributed", "httpx"}
HEAVY |= {"IPython", "starlette", "uvicorn", "msgspec", "jinja2", "prometheus_client", "segno"}
KEEPERS = {
    "numba": {"simulation/compile", "simulation/hearing"},
    "matplotlib": {"reports/charts"},
    "sqlalchemy": {"trials/store"},
    "opendp": {"trials/mechanisms"},
    "httpx": {"remote/http"},
    "scipy": set(),
    "distributed": {"studies/run"},
    "rich": {"reports/terminal", "cli/progress"},
    "IPython": {"notebook"},
    **{
        library: {"service"}
        for library in ("starlette", "uvicorn", "msgspec", "jinja2", "prometheus_client", "segno")
    },
}
"""Who may import which heavy library: rooms, or packages of rooms."""
MATRIX = {
    "base": "",
    "theory": "base",
    "strategies": "base theory",
    "simulation": "base theory strategies",
    "trials": "base theory strategies remote",
    "remote": "base strategies trials.status trials.verify trials.protocol trials.chain "
    "trials.conduct trials.intake trials.names trials.outcomes trials.record trials.listing "
    "trials.draft",
    "planning": "base theory strategies simulation",
    "studies": "base theory strategies simulation",
    "audits": "base theory strategies simulation trials",
    "reports": "base theory strategies simulation.paths trials planning studies audits",
    "service": "base theory strategies simulation trials planning reports",
    "cli": (
        "base theory strategies simulation trials remote planning studies audits reports service"
    ),
}
"""Which package may import which others, or which room of one; `base` is every module
that stands in no package.
"""
RANDOM = {"random", "secrets", "uuid", "numpy.random", "opendp"}
"""Sources of chance: nothing before the wall knows one."""
DECIDED = {
    "estimator": {"strategies/parts", "strategies/strategy", "strategies/presets"},
    "trust": {"trust", "strategies/parts"},
}
"""Ideas with a room of their own: only there may code compare them by name."""


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
    homes = set(discreet._HOMES)
    assert set(dir(discreet)) == set(discreet.__all__) == homes | {"__version__"}
    assert all(hasattr(discreet, name) for name in discreet.__all__)
    rooms = {path.stem for path in SOURCE.glob("*.py")} | {
        path.name for path in SOURCE.iterdir() if path.is_dir()
    }
    assert not homes & rooms, "a room of the same name would hide it"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = discreet.nothing


BLOCKED = """
import sys
for library in {missing!r}:
    sys.modules[library] = None
from discreet import *
assert "bet_se" in globals() and "plan" in globals() and "verify_transcript" in globals()
import discreet
for name in {names!r}:
    try:
        getattr(discreet, name)
    except discreet.errors.MissingExtraError as error:
        assert "pip install" in str(error), error
    else:
        raise AssertionError(name)
    assert name not in globals() and name in dir(discreet)
"""


@pytest.mark.parametrize(
    ("missing", "names"),
    [
        (["httpx"], ["RemoteTrial"]),
        (["sqlalchemy"], ["Trial", "backup_trials"]),
        (["httpx", "sqlalchemy", "opendp", "matplotlib", "distributed"], ["Trial", "RemoteTrial"]),
    ],
)
def test_everything_can_be_imported_without_extras(missing: list[str], names: list[str]) -> None:
    code = BLOCKED.format(missing=missing, names=names)
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ROOMS = sorted(str(path.relative_to(SOURCE).with_suffix("")) for path in SOURCE.rglob("*.py"))


def package(room: str) -> str:
    """The package of a room, such as theory of theory/times; `base` for those that
    stand in none.
    """
    return room.split("/", maxsplit=1)[0] if "/" in room else "base"


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in ("__init__", "__main__")])
def test_imports_point_one_way(room: str) -> None:
    found = imports(SOURCE / f"{room}.py")
    for library, keepers in KEEPERS.items():
        if not any(room == keeper or room.startswith(f"{keeper}/") for keeper in keepers):
            assert not {name for name in found if name.split(".")[0] == library}, (
                f"{room} imports {library}"
            )
    mine = package(room)
    for name in (name for name in found if name.startswith("discreet.")):
        theirs, _, room_there = name.removeprefix("discreet.").partition(".")
        theirs = theirs if theirs in MATRIX else "base"
        allowed = (mine, *MATRIX[mine].split())
        known = theirs in allowed or f"{theirs}.{room_there.split('.')[0]}" in allowed
        assert known, f"{room} may not import {name}"


def table(first: str) -> dict[str, str]:
    """The first two columns of the table in docs/architecture.md whose head begins with
    this word.
    """
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = page.split(f"\n| {first} |")[1].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip().replace("`", "") for cell in row.split("|")[1:3]] for row in rows]
    return {cell[0]: cell[1] for cell in cells}


def test_the_page_on_architecture_has_these_tables() -> None:
    assert table("package") == MATRIX
    kept = {library: set(rooms.split()) for library, rooms in table("library").items()}
    assert kept == KEEPERS | {"scipy": {"nobody"}}


@pytest.mark.parametrize(
    "room", [room for room in ROOMS if package(room) in ("theory", "strategies")]
)
def test_the_wall(room: str) -> None:
    """Before it nobody draws a number, sees an outcome, or knows who does: only
    released numbers and public counts.
    """
    path = SOURCE / f"{room}.py"
    found = imports(path)
    assert not {
        name for name in found if any(f"{name}.".startswith(f"{source}.") for source in RANDOM)
    }
    assert not {
        name for name in found if name.startswith(("discreet.simulation", "discreet.trials"))
    }
    names = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
    }
    assert not names & {"default_rng", "Generator", "SeedSequence"}
    assert not re.search(
        r"\b(np|numpy)\.random\b|__import__|simulation\.|trials\.", make_code(path)
    )


def test_the_wall_has_no_hole(tmp_path: Path) -> None:
    """What the test above looks for it finds."""
    for text in (
        "from numpy.random import default_rng",
        "import secrets",
        "from discreet.simulation import laws",
    ):
        (tmp_path / "hole.py").write_text(text)
        found = imports(tmp_path / "hole.py")
        drawn = {
            name for name in found if any(f"{name}.".startswith(f"{source}.") for source in RANDOM)
        }
        assert drawn | {
            name for name in found if name.startswith(("discreet.simulation", "discreet.trials"))
        }


def make_code(path: Path) -> str:
    """The source without its docstrings and comments, which may speak of anything."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                line
                for line in body
                if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
            ] or [ast.Pass()]
    return ast.unparse(tree)


def comparisons(path: Path) -> set[str]:
    """The ideas of `DECIDED` that a file compares: `x.trust == …`, `strategy["trust"]
    in (…)`, `trust != "local"`.
    """
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                names = {name_of(part) for part in ast.walk(side)}
                others = [other for other in (node.left, *node.comparators) if other is not side]
                words = {
                    word.value
                    for other in others
                    for word in ast.walk(other)
                    if isinstance(word, ast.Constant)
                }
                if words & WORDS:
                    found |= {str(name) for name in names if name in DECIDED}
    return found


def name_of(node: ast.AST) -> str | None:
    """What an expression is called: of `a.trust`, `trust` and `a["trust"]`, trust."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    found: str | None = getattr(node, "attr", None) or getattr(node, "id", None)
    return found


WORDS = {*ESTIMATORS, *TRUSTS}


@pytest.mark.parametrize("room", ROOMS)
def test_an_idea_is_decided_in_its_room(room: str) -> None:
    """Whoever asks what kind of strategy it is asks `strategy.part` and
    `strategy.trust_model`.
    """
    found = comparisons(SOURCE / f"{room}.py")
    scope = (
        {"trust"} if room == "studies/paper" else set()
    )  # there `both` is an answer too: a choice of studies
    assert {idea for idea in found - scope if room not in DECIDED[idea]} == set()


def test_a_comparison_elsewhere_would_be_seen(tmp_path: Path) -> None:
    lines = (
        'a.estimator == "daf"',
        '(a.trust, b) == ("local", c)',
        'b["trust"] in ("local", "none")',
        '"global" != trust',
        'c.d.trust != "none"',
    )
    for line in lines:
        (tmp_path / "room.py").write_text(line)
        assert comparisons(tmp_path / "room.py"), line


def test_a_live_trial_loads_no_simulated_law() -> None:
    code = "import sys, discreet; discreet.Trial; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "discreet.trials.trial" in loaded
    assert not [name for name in loaded if name.startswith(("discreet.simulation", "numba"))]


def test_starting_imports_nothing_heavy() -> None:
    code = (
        "import sys, discreet.cli, discreet.reports.charts; print(*sorted({m.split('.')[0] for m "
        "in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert not HEAVY & set(loaded.split())


def test_every_command_is_documented() -> None:
    """Each command has a section of its own in which all its options stand, but for
    those of the introduction.
    """
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
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    words = [
        "/home" + "/",
        "/root" + "/",
        "/work" + "/",
        "index" + "-url",
        "files." + "pythonhosted",
    ]
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".json", ".css", ""} and path.is_file():
            text = path.read_text()
            assert not [word for word in words if word in text], name
