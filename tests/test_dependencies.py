"""Lower bounds of dependencies exclude vulnerable versions, and pins satisfy them."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
FIRST_FIXED = {
    "click": "8.3.3",  # CVE-2026-7246
    "distributed": "2026.1.1",  # CVE-2026-23528; 2026.1.0 was broken
    "h11": "0.16.0",  # CVE-2025-43859
    "jinja2": "3.1.6",  # CVE-2025-27516
    "pytest": "9.0.3",  # CVE-2025-71176
    "python-multipart": "0.0.31",  # GHSA-v9pg-7xvm-68hf, and CVE-2024-53981 before it
    "starlette": "1.3.1",  # CVE-2026-54283, and CVE-2025-62727 before it
}
"""The first version of each package without a vulnerability that is known."""


def read_requirements() -> list[Requirement]:
    """Read every direct dependency, of the package, its extras and its build."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = said["project"]["optional-dependencies"].values()
    lists = [said["build-system"]["requires"], said["project"]["dependencies"], *extras]
    found = [Requirement(text) for texts in lists for text in texts]
    return [one for one in found if one.name != said["project"]["name"]]


def read_pins() -> dict[str, Version]:
    pins = [Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines()]
    return {
        canonicalize_name(pin.name): Version(str(pin.specifier).removeprefix("==")) for pin in pins
    }


REQUIREMENTS, PINS = read_requirements(), read_pins()


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_a_dependency_has_a_lower_bound_that_its_pin_satisfies(requirement: Requirement) -> None:
    assert [bound.operator for bound in requirement.specifier] == [">="]
    assert PINS[canonicalize_name(requirement.name)] in requirement.specifier


@pytest.mark.parametrize("name", FIRST_FIXED)
def test_lower_bounds_exclude_vulnerable_versions(name: str) -> None:
    bounds = [one.specifier for one in REQUIREMENTS if canonicalize_name(one.name) == name]
    assert bounds
    for specifier in bounds:
        (bound,) = specifier
        assert Version(bound.version) >= Version(FIRST_FIXED[name])


def test_a_dependency_has_the_same_bound_wherever_it_is_stated() -> None:
    bounds: dict[str, set[str]] = {}
    for one in REQUIREMENTS:
        bounds.setdefault(canonicalize_name(one.name), set()).add(str(one.specifier))
    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}
