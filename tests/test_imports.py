"""Who may import whom, the privacy boundary, and what discreet shows to the world."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from discreet.strategies.estimators import ESTIMATORS
from discreet.trust import TRUSTS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"
HEAVY = {"numba", "scipy", "matplotlib", "polars", "sqlalchemy", "opendp", "distributed", "httpx"}
HEAVY |= {"IPython", "starlette", "uvicorn", "jinja2", "prometheus_client", "segno"}
IMPORTERS = {
    "numba": {"simulation/compile"},
    "matplotlib": {"reports/charts"},
    "sqlalchemy": {"trials/store"},
    "opendp": {"trials/mechanisms"},
    "httpx": {"client/http"},
    "distributed": {"studies/run"},
    "rich": {"reports/terminal", "cli/output"},
    "IPython": {"tabular"},
    "jinja2": {"service", "reports/html"},
    "starlette": {"service"},
    "uvicorn": {"service"},
    "prometheus_client": {"service"},
    "segno": {"service"},
    "scipy": set(),
}
"""Modules, or packages of modules, that import a heavy library."""
PUBLIC = (
    "settings protocol verbs names inputs randomisation operations responses record transcript "
    "status listing"
)
"""The public part of trials: modules that see no outcome."""
LAYERS = {
    "__init__": "anything",
    "__main__": "anything",
    **{f"trials/{name}": "public" for name in PUBLIC.split()},
    "trials/store": "store",
}
"""Layers that are not a package, by module or folder; modules in no package are `base`."""
ALLOWED = {
    "base": "",
    "theory": "base",
    "strategies": "base theory",
    "simulation": "base theory strategies",
    "planning": "base theory strategies simulation",
    "studies": "base theory strategies simulation planning",
    "public": "base theory strategies",
    "store": "base theory strategies public",
    "trials": "base theory strategies public store client",
    "client": "base strategies public",
    "audits": "base theory strategies simulation public trials",
    "reports": "base theory strategies simulation/paths planning studies audits public trials",
    "service": "base theory strategies simulation planning reports public store trials",
    "cli": "base theory strategies simulation planning studies audits reports public store trials "
    "client service",
}
"""Layers, or modules, that a layer may import."""
EXCEPTIONS = {
    "trials/listing": "store client",  # a function that opens the database or calls the service
    "trials/transcript": "store",  # that the state in a database follows from its record
    "trials/record": "trials/mechanisms",  # the grid of the noise, which decides what is possible
}
"""Layers, or modules, that single modules may import as well."""
RANDOM = {"random", "secrets", "uuid", "numpy.random", "opendp"}
"""Sources of randomness: nothing outside the privacy boundary has one."""
DECIDED = {
    "estimator": {
        "strategies/estimators",
        "strategies/strategy",
        "strategies/presets",
    },
    "trust": {"trust", "strategies/estimators"},
}
"""Modules that may compare an idea by name; others ask `strategy.spec` and
`strategy.trust_model`.
"""


MAX_LAYERS = 24
"""Layers of modules, each of which imports from those below it."""


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
    assert not homes & {*MODULES}, "a module of the same name would hide it"
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


MODULES = sorted(
    str(path.relative_to(SOURCE).with_suffix("")).removesuffix("/__init__")
    for path in SOURCE.rglob("*.py")
)


def path_of(module: str) -> Path:
    folder = SOURCE / module
    return folder / "__init__.py" if folder.is_dir() else SOURCE / f"{module}.py"


def is_part(module: str, of: str) -> bool:
    return module == of or module.startswith(f"{of}/")


def layer(module: str) -> str:
    """Return the layer of a module, such as theory of theory/times."""
    named = [name for where, name in LAYERS.items() if is_part(module, where)]
    package = module.split("/", maxsplit=1)[0]
    return named[0] if named else package if (SOURCE / package).is_dir() else "base"


def imported_modules(module: str) -> set[str]:
    """Return the modules of discreet that a module imports anywhere in it."""
    found = set()
    for name in imports(path_of(module)):
        parts = name.split(".")[1:] if name.startswith("discreet.") else []
        while parts and "/".join(parts) not in MODULES:
            parts.pop()
        found |= {"/".join(parts)} if parts else set()
    return found


def refused(module: str, imported: set[str]) -> set[str]:
    """Return those of the modules that a module may not import."""
    mine = layer(module)
    if mine == "anything":
        return set()
    allowed = [mine, *ALLOWED[mine].split(), *EXCEPTIONS.get(module, "").split()]
    return {
        name
        for name in imported
        if layer(name) not in allowed and not any(is_part(name, one) for one in allowed)
    }


@pytest.mark.parametrize("module", MODULES)
def test_imports_follow_the_layers(module: str) -> None:
    assert refused(module, imported_modules(module)) == set()
    libraries = {name.split(".")[0] for name in imports(path_of(module))}
    for library, importers in IMPORTERS.items():
        assert library not in libraries or any(is_part(module, one) for one in importers), library


def test_an_import_against_the_layers_would_be_seen() -> None:
    assert refused("theory/times", {"trials/trial", "scale"}) == {"trials/trial"}
    assert refused("client/trial", {"trials/trial", "trials/status"}) == {"trials/trial"}
    assert refused("reports/plan", {"simulation/paths", "simulation/engine"}) == {
        "simulation/engine"
    }


def test_no_class_name_is_used_twice() -> None:
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in ast.walk(ast.parse(path_of(module).read_text())):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def imported_at_once(module: str) -> set[str]:
    """Return the modules of discreet that a module imports when it is imported itself."""
    found = set()
    for node in ast.parse(path_of(module).read_text()).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("discreet."):
            home = str(node.module).removeprefix("discreet.").replace(".", "/")
            names = {f"{home}/{alias.name}" for alias in node.names} & {*MODULES}
            found |= names or ({home} & {*MODULES})
    return found - {module}


def test_modules_lie_in_few_layers_without_cycles() -> None:
    """A module is one layer above the highest that it imports at once."""
    needs = {module: imported_at_once(module) for module in MODULES}
    layers: dict[str, int] = {}
    while len(layers) < len(needs):
        ready = {m for m, below in needs.items() if m not in layers and below <= layers.keys()}
        assert ready, f"a cycle among {sorted(needs.keys() - layers.keys())}"
        layers |= {m: 1 + max((layers[n] for n in needs[m]), default=0) for m in ready}
    assert max(layers.values()) <= MAX_LAYERS


def test_outcomes_are_read_in_one_module() -> None:
    """The table is named in the store alone, and what reads it is called by a release."""
    naming, reading = set(), set()
    for module in MODULES:
        for node in ast.walk(ast.parse(path_of(module).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "discreet.trials.store.schema":
                naming |= {module for alias in node.names if alias.name == "outcomes"}
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "schema.outcomes":
                naming.add(module)
            if isinstance(node, ast.Attribute) and node.attr in ("sum_outcomes", "read_outcomes"):
                reading.add(module)
    assert {layer(module) for module in naming} == {"store"}
    assert reading == {"trials/release"}


@pytest.mark.parametrize(
    "module", [module for module in MODULES if layer(module) in ("theory", "strategies")]
)
def test_the_privacy_boundary(module: str) -> None:
    """Outside it nothing draws a number, sees an outcome, or imports what does: there are
    only released numbers and public counts.
    """
    path = path_of(module)
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


def test_a_hole_in_the_boundary_would_be_seen(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("module", MODULES)
def test_an_idea_is_decided_in_its_module(module: str) -> None:
    found = comparisons(path_of(module))
    if module == "studies/paper":  # where `both` is an answer too: a choice of studies
        found -= {"trust"}
    assert {idea for idea in found if module not in DECIDED[idea]} == set()


def test_a_comparison_elsewhere_would_be_seen(tmp_path: Path) -> None:
    lines = (
        'a.estimator == "daf"',
        '(a.trust, b) == ("local", c)',
        'b["trust"] in ("local", "none")',
        '"global" != trust',
        'c.d.trust != "none"',
    )
    for line in lines:
        (tmp_path / "module.py").write_text(line)
        assert comparisons(tmp_path / "module.py"), line


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
