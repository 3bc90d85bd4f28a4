"""The API is called as its description says, and as it does not, by schemathesis:
whatever comes back is described, and nothing breaks.

The examples are the same in every run. Found with a field of an answer left out, a
status that is not described, and something unknown after the ? that is taken.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from discreet import Trial, bet_se
from discreet.service.endpoints import ENDPOINTS, PREFIX
from discreet.service.openapi import document
from tests.support.service import Service, serving

schemathesis = pytest.importorskip("schemathesis")
EXAMPLES = 5
CALLS = [
    (kind, one.method, f"{PREFIX}{one.path}")
    for one in ENDPOINTS
    for kind in ("POSITIVE", *(["NEGATIVE"] if one.body or one.query else []))
    if one.action != "events"
]
"""As described, and otherwise where there is something to be said otherwise."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('api')}/trials.db") as made:
        Trial.create(made.home.url, "dose", ["a", "b"], bet_se(0.1, 1.0), 500).close()
        yield made


@pytest.fixture(scope="module")
def described() -> Any:
    return schemathesis.openapi.from_dict(document())


def checks() -> list[Any]:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as of_openapi

    return [
        not_a_server_error,
        of_openapi.status_code_conformance,
        of_openapi.content_type_conformance,
        of_openapi.response_headers_conformance,
        of_openapi.response_schema_conformance,
        of_openapi.negative_data_rejection,
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "method", "path"), CALLS)
def test_the_api_is_as_described(
    kind: str, method: str, path: str, service: Service, described: Any
) -> None:
    from schemathesis import GenerationMode

    operation, wanted = described[path][method], checks()

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=GenerationMode[kind]))
    def tried(case: Any) -> None:
        if "name" in case.path_parameters:
            case.path_parameters["name"] = "dose"
        answer = case.call(base_url=service.base_url, headers=service.headers)
        case.validate_response(answer, checks=wanted)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tried()
