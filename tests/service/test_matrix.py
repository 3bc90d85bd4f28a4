"""Every role at every endpoint, over HTTP: what the table says, and no more.

Bodies are not what the endpoints take, so that nothing is done: whoever may is told
what is wrong with the body, whoever may not is refused before it is read.
"""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from discreet import Trial, bet_se
from discreet.service.auth import ACTIONS, PUBLIC, WHOLE
from discreet.service.endpoints import ENDPOINTS, PREFIX, Endpoint
from discreet.trials.inputs import parse_number
from discreet.trials.verbs import MANAGER, PARTICIPANT, ROLES, SITE
from tests.support.service import Service, serving

STRANGER = "somebody with a wrong token"
ELSEWHERE = "manager of another trial"
CALLERS = (*ROLES, ELSEWHERE, STRANGER)
PLACES = [one for one in ENDPOINTS if one.action != "events"]
"""A stream would not end; tests/service/test_events.py has those."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("matrix")
    with serving(f"sqlite:///{folder}/trials.db") as made:
        for name in ("dose", "other", "shown"):
            Trial.create(made.home.url, name, ["a", "b"], bet_se(0.1, 1.0), 500).close()
        made.home.token_table.publish("shown", "a test")
        yield made


@pytest.fixture(scope="module")
def secrets(service: Service) -> dict[str, str]:
    id = service.home.trial("dose").ask(site="x").assignments[0].id
    assert parse_number(id) == 1
    scope = {SITE: {"trial": "dose", "site": "x"}}
    scope[PARTICIPANT] = {"trial": "dose", "participant": id}
    made = {role: service.token(role, **scope.get(role, {})) for role in ROLES}
    made[ELSEWHERE] = service.token(MANAGER, trial="other")
    return made | {STRANGER: "discreet_" + "A" * 43}


@pytest.fixture(scope="module")
def wrong(service: Service, secrets: dict[str, str]) -> dict[str, str]:
    """Tokens that do not work, by the reason."""
    tokens = service.home.tokens
    revoked, token = tokens.make("gone", MANAGER, "a test")
    assert tokens.revoke(token.number, "a test")
    expired, _ = tokens.make("old", MANAGER, "a test", days=1e-9)
    return {"unknown": secrets[STRANGER], "revoked": revoked, "expired": expired}


def call(service: Service, one: Endpoint, name: str, secret: str | None) -> int:
    path = one.path.replace("{name}", name).replace("{number}", "0")
    body = b'{"no": ' if one.method == "POST" and one.body is not None else None
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    where = f"{service.base_url}{PREFIX}{path}"
    with httpx.stream(one.method, where, headers=headers, content=body, timeout=30) as answer:
        return answer.status_code  # what follows may be a stream that does not end


@pytest.mark.parametrize("one", PLACES, ids=lambda one: f"{one.method} {one.path}")
def test_every_role_at_every_endpoint(
    one: Endpoint, service: Service, secrets: dict[str, str]
) -> None:
    for who in CALLERS:
        found = call(service, one, "dose", secrets[who])
        may = who in ACTIONS[one.action] and who != PARTICIPANT  # who has a page, and no API
        if who == ELSEWHERE:
            may = MANAGER in ACTIONS[one.action] and one.action not in WHOLE
            may = may and "{name}" not in one.path
        refused = 401 if who in (STRANGER, PARTICIPANT) else 403
        assert (found == refused) == (not may), (who, found)
        assert found < 500, (who, found)


@pytest.mark.parametrize("one", PLACES, ids=lambda one: f"{one.method} {one.path}")
def test_what_was_published_is_anyones(
    one: Endpoint, service: Service, secrets: dict[str, str]
) -> None:
    found = call(service, one, "shown", None)
    public = one.action in PUBLIC and "{name}" in one.path
    assert found == (200 if public else 401)


@pytest.mark.parametrize("one", ENDPOINTS, ids=lambda one: f"{one.method} {one.path}")
def test_a_wrong_token_is_refused_even_where_none_is_needed(
    one: Endpoint, service: Service, wrong: dict[str, str]
) -> None:
    """Whoever sends one means to be somebody, and must hear that it is not so."""
    for why, secret in wrong.items():
        assert call(service, one, "shown", secret) == 401, why
