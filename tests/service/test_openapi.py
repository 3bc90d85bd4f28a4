"""The API's description says what is so."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from discreet.service.auth import ACTIONS
from discreet.service.endpoints import ENDPOINTS, PREFIX
from discreet.service.openapi import REFUSALS, docs_page, document
from tests.support.service import serving


def operations(found: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def references(thing: Any) -> Iterator[str]:
    if isinstance(thing, dict):
        yield from ([thing["$ref"]] if isinstance(thing.get("$ref"), str) else [])
        for one in thing.values():
            yield from references(one)
    elif isinstance(thing, list):
        for one in thing:
            yield from references(one)


def test_every_endpoint_is_described() -> None:
    found = document()
    assert found["openapi"] == "3.1.0"
    described = {(method, path) for method, path, _ in operations(found)}
    assert described == {(row.method, f"{PREFIX}{row.path}") for row in ENDPOINTS}
    names = [operation["operationId"] for _, _, operation in operations(found)]
    assert len(set(names)) == len(names)
    for method, path, operation in operations(found):
        assert operation["summary"]
        given = {(one["in"], one["name"]) for one in operation["parameters"]}
        assert {("path", name) for name in re.findall(r"{(\w+)}", path)} <= given
        assert (("header", "Idempotency-Key") in given) == (method == "POST"), path
        assert set(operation["responses"]) == {"200", *REFUSALS}
        assert {"token": []} in operation["security"]


def test_every_reference_leads_somewhere() -> None:
    found = document()
    wanted = set(references(found))
    assert len(wanted) > 20
    for reference in wanted:
        thing: Any = found
        for step in reference.removeprefix("#/").split("/"):
            thing = thing[step]
        assert thing


def test_every_action_of_an_endpoint_is_in_the_table() -> None:
    assert {row.action for row in ENDPOINTS} <= set(ACTIONS)


class Parts(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags = set[str]()
        self.addresses = set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses |= {value or "" for name, value in attrs if name in ("href", "src")}


def test_the_page_needs_nothing_from_elsewhere() -> None:
    text = docs_page(document())
    parts = Parts()
    parts.feed(text)
    assert "script" not in parts.tags
    assert all(address.startswith("#") for address in parts.addresses)
    for row in ENDPOINTS:
        call = rf">{row.method}</td><td[^>]*>{re.escape(PREFIX + row.path)}</td>"
        assert re.search(call, text)
        assert row.help in text.replace("\u00a0", " ")


@pytest.mark.parametrize("path", [f"{PREFIX}/openapi.json", "/api/docs"])
def test_it_is_served_to_anyone(path: str, tmp_path: Any) -> None:
    with serving(f"sqlite:///{tmp_path}/trials.db") as service:
        answer = httpx.get(f"{service.base_url}{path}")
    assert answer.status_code == 200
    if path.endswith(".json"):
        assert answer.json() == json.loads(json.dumps(document()))
