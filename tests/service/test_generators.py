"""Generators of clients accept the API's description, and what they make works: a
Python client by openapi-python-client enrols a participant and records an outcome, and
the types of openapi-typescript know both calls.
"""

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet import Trial, bet_se
from discreet.service.endpoints import PREFIX
from tests.support.service import Service, serving

pytestmark = pytest.mark.slow
REQUIRED = "DISCREET_REQUIRE_GENERATORS"
"""If this is set in the environment, a missing generator is an error."""
MODULES = Path(__file__).parent.parent.parent / "node_modules"
TYPESCRIPT = MODULES / "openapi-typescript" / "bin" / "cli.js"
CALLS = """
import type { operations } from "./api";
type Answer<Name extends keyof operations> =
  operations[Name]["responses"] extends { 200: { content: { "application/json": infer T } } }
    ? T : never;
const id = (answer: Answer<"ask">): string => answer.assignments[0].id;
const body = (id: string): operations["tell"]["requestBody"]["content"]["application/json"] =>
  ({ outcomes: { [id]: 1 } });
export const call = (answer: Answer<"ask">) => body(id(answer));
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('generators')}/trials.db") as made:
        Trial.create(made.home.url, "phase 2/3", ["a", "b"], bet_se(0.1, 1.0), 500).close()
        yield made


@pytest.fixture
def description(service: Service, tmp_path: Path) -> Path:
    path = tmp_path / "openapi.json"
    path.write_bytes(httpx.get(f"{service.base_url}{PREFIX}/openapi.json").content)
    return path


def need(is_installed: bool, name: str) -> None:
    if not is_installed:
        assert REQUIRED not in os.environ, f"{name} is not installed, and it must be there"
        pytest.skip(f"{name} is not installed")


def run(*command: str | Path) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_generated_python_client_enrols_and_records(
    service: Service, description: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(find_spec("openapi_python_client") is not None, "openapi-python-client")
    settings = tmp_path / "settings.yml"
    settings.write_text("post_hooks: []\n")
    command = ("generate", "--meta", "none", "--fail-on-warning", "--config", settings)
    files = ("--path", description, "--output-path", tmp_path / "generated_client")
    run(sys.executable, "-m", "openapi_python_client", *command, *files)
    monkeypatch.syspath_prepend(tmp_path)
    ask, tell, find, status, models, clients = (
        importlib.import_module(f"generated_client.{name}")
        for name in (
            *("api.trials.ask", "api.trials.tell", "api.trials.find", "api.trials.get_status"),
            *("models", "client"),
        )
    )

    def client(token: str) -> Any:
        return clients.AuthenticatedClient(base_url=service.base_url, token=token)

    with client(service.secret) as here:
        body = models.AskBody(participant="Ada")
        batch = ask.sync("phase 2/3", client=here, body=body, idempotency_key="monday-1")
        again = ask.sync("phase 2/3", client=here, body=body, idempotency_key="monday-1")
        assert [one.id for one in again.assignments] == [one.id for one in batch.assignments]
        (assigned,) = batch.assignments
        outcomes = models.TellBodyOutcomes.from_dict({assigned.id: 1.0})
        told = tell.sync("phase 2/3", client=here, body=models.TellBody(outcomes))
        assert told.new == 1
        now = status.sync("phase 2/3", client=here)
        assert now.name == "phase 2/3"
        problem = find.sync("phase 2/3", client=here, body=models.NumberBody(77))
        assert isinstance(problem, models.Problem)
        assert problem.type_ == "urn:discreet:problem:refused"
    with client("wrong") as stranger:
        assert status.sync("phase 2/3", client=stranger).status == 401


def test_generated_types_know_the_calls(description: Path, tmp_path: Path) -> None:
    node = shutil.which("node")
    need(node is not None and TYPESCRIPT.exists(), "openapi-typescript")
    assert node is not None
    run(node, TYPESCRIPT, description, "--output", tmp_path / "api.d.ts")
    (tmp_path / "calls.ts").write_text(CALLS)
    compiler = MODULES / "typescript" / "bin" / "tsc"
    run(node, compiler, "--noEmit", "--strict", "--skipLibCheck", tmp_path / "calls.ts")
