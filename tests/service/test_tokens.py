"""Tokens: made by commands, used by callers, of no use when they are revoked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from discreet import InvalidInputError, Trial, bet_se
from discreet.cli import main
from discreet.service.auth import SecretKind, TokenStore, hash_secret, is_kind, new_secret
from discreet.trials.store.database import Database
from discreet.trials.store.tokens import TokenTable
from tests.support.service import serving, wait_for


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["token", *words])


def done(*words: str) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def place(url: str) -> str:
    Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), max_participants=50).close()
    return f"--url={url}"


@contextmanager
def opened(url: str) -> Iterator[TokenStore]:
    store = Database(url)
    try:
        yield TokenStore(TokenTable(store))
    finally:
        store.close()


def test_a_token_is_shown_once(place: str) -> None:
    result = run("create", "the office", "--role=manager", place)
    assert result.exit_code == 0, result.output
    secret = result.stdout.strip()
    assert is_kind(SecretKind.TOKEN, secret)
    assert secret not in result.stderr
    shown = run("list", place)
    assert "the office" in shown.stdout
    assert secret not in shown.stdout
    (found,) = done("list", place)["tokens"]
    assert found["valid"]
    assert secret not in json.dumps(found)
    assert (found["role"], found["trial"], found["used"]) == ("manager", None, None)


def test_a_token_is_of_no_use_when_it_is_revoked(place: str, url: str) -> None:
    made = done("create", "Leeds", "--role=site", "--trial=dose", "--site=Leeds", place)
    headers = {"Authorization": f"Bearer {made['secret']}"}
    with serving(url) as service:
        address = f"{service.base_url}/api/v1/trials/dose"
        assert httpx.get(address, headers=headers).status_code == 200
        assert done("revoke", str(made["token"]["number"]), place) == {
            "revoked": made["token"]["number"]
        }
        service.home.tokens._known.clear()  # what was found is remembered for a second
        assert httpx.get(address, headers=headers).status_code == 401
    assert "revoked" in run("list", place).stdout
    used = [one["used"] for one in done("list", place)["tokens"] if one["name"] == "Leeds"]
    assert used != [None]


def test_a_token_expires(url: str) -> None:
    with opened(url) as tokens:
        secret, _ = tokens.make("short", "monitor", "a test", days=1e-9)
        wait_for(lambda: tokens.find_token(secret) is None)
        secret, made = tokens.make("long", "monitor", "a test", days=1)
        assert tokens.find_token(secret) == made
        assert tokens.find_token(secret[:-1]) is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--role=site", "--trial=dose"], "must name a site"),
        (["--role=site", "--site=Leeds"], "must name a trial"),
        (["--role=monitor", "--site=Leeds"], "must name a site"),
        (["--role=monitor", "--trial=none"], "no trial 'none'"),
        (["--role=monitor", "--days=-1"], "days must be"),
        (["--role=monitor", "--days=nan"], "days must be"),
        (["--role=participant", "--trial=dose"], "participant"),
        (["--role=king"], "king"),
        ([], "--role"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], says: str, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), max_participants=50).close()
    result = run("create", "x", *words, f"--url={url}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr
    with opened(url) as tokens:
        assert tokens.token_table.list_all() == []


def test_a_site_that_the_trial_does_not_have_is_refused(url: str) -> None:
    sites = ["Leeds", "Lyon"]
    made = Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), max_participants=50, sites=sites)
    words = ("create", "x", "--role=site", "--trial=dose", f"--url={url}")
    says = "this trial has no site 'Lion'; its sites: Leeds, Lyon. Another one can be opened"
    result = run(*words, "--site=Lion")
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr
    with serving(url) as service:
        address, said = f"{service.base_url}/api/v1/tokens", {"name": "x", "role": "site"}
        body = {**said, "trial": "dose", "site": "Lion"}
        answer = httpx.post(address, json=body, headers=service.headers)
        assert answer.status_code == 422
        assert says in answer.json()["detail"]
    made.manage("open-site", "They want to take part.", "Lion")
    made.close()
    for site in (*sites, "Lion"):
        assert done(*words, f"--site={site}")["token"]["site"] == site


def test_there_is_no_token_to_revoke(place: str) -> None:
    result = run("revoke", "7", place)
    assert result.exit_code == 2
    assert "no token 7" in result.stderr


def test_a_participant_has_one_person(url: str) -> None:
    """Without one, a link could answer for anybody."""
    with opened(url) as tokens:
        for role, participant in (("participant", None), ("monitor", "abc")):
            with pytest.raises(InvalidInputError, match="one assignment"):
                tokens.make("x", role, "a test", trial="dose", participant=participant)


def test_secrets_of_one_kind_are_unknown_as_another() -> None:
    for kind in SecretKind:
        secrets = {new_secret(kind) for _ in range(100)}
        assert len(secrets) == 100
        for secret in secrets:
            assert [other for other in SecretKind if is_kind(other, secret)] == [kind]
            assert len({hash_secret(other, secret) for other in SecretKind}) == len(SecretKind)
